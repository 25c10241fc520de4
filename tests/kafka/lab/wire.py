"""A few requests that librdkafka has no call for, or none for thousands of objects, spoken by hand: who coordinates a group,
where replicas shall lie, topics by the hundred, and positions of groups that have no members."""
import socket
import struct
import time

from confluent_kafka import ElectionType, KafkaException, TopicPartition

from . import feed

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, CREATE_TOPICS, ALTER_REASSIGNMENTS = 8, 9, 10, 19, 45
PASSING = (3, 14, 15, 16)  # a topic that was made just now; a coordinator that loads, is not there, or is another one
PORTION = 500


def varint(n):
    """An unsigned varint."""
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def compact(text):
    """A compact string."""
    return varint(len(text) + 1) + text.encode()


def text(s):
    """A string."""
    return struct.pack(">h", len(s)) + s.encode()


class Line:
    """A connection that stays."""

    def __init__(self, address, timeout=60):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, key, version, body, flexible=False):
        """The answer's bytes behind its header."""
        head = struct.pack(">hhih", key, version, 1, 3) + b"lab" + (b"\0" if flexible else b"")
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size, = struct.unpack(">i", self.socket.recv(4, socket.MSG_WAITALL))
        return self.socket.recv(size, socket.MSG_WAITALL)[5 if flexible else 4:]


def ask(address, key, version, body, flexible, timeout=60):
    """The answer's bytes behind its header, on a connection for this one question."""
    with Line(address, timeout) as line:
        return line.ask(key, version, body, flexible)


def create_topics(address, names, partitions, limit=600):
    """Creates many topics at the controller, a portion at a time; those that are there already stay."""
    names = list(names)
    with Line(address, limit) as line:
        for i in range(0, len(names), PORTION):
            part = names[i:i + PORTION]
            body = struct.pack(">i", len(part)) + b"".join(text(n) + struct.pack(">ihii", partitions, 1, 0, 0) for n in part)
            answer = line.ask(CREATE_TOPICS, 2, body + struct.pack(">ib", limit * 1000, 0))
            at = 8
            for _ in part:
                size, = struct.unpack_from(">h", answer, at)
                error, message = struct.unpack_from(">hh", answer, at + 2 + size)
                if error not in (0, 36):
                    raise RuntimeError("topic %s: error %d" % (answer[at + 2:at + 2 + size].decode(), error))
                at += 6 + size + max(message, 0)


def commit(line, group, places, limit=120):
    """Sets positions, {(topic, partition): offset}, of a group without members, on a line to its coordinator."""
    topics = {}
    for (topic, partition), offset in places.items():
        topics.setdefault(topic, []).append(struct.pack(">iqh", partition, offset, 0))
    body = text(group) + struct.pack(">ihqi", -1, 0, -1, len(topics))
    body += b"".join(text(t) + struct.pack(">i", len(p)) + b"".join(p) for t, p in topics.items())
    end = time.monotonic() + limit
    while True:
        answer, at, errors = line.ask(OFFSET_COMMIT, 2, body), 4, set()
        for _ in topics:
            size, = struct.unpack_from(">h", answer, at)
            n, = struct.unpack_from(">i", answer, at + 2 + size)
            at += 6 + size
            errors.update(struct.unpack_from(">h", answer, at + 6 * i + 4)[0] for i in range(n))
            at += 6 * n
        if errors == {0}:
            return
        if not errors <= {0, *PASSING} or time.monotonic() > end:
            raise RuntimeError("positions of %s: errors %s" % (group, errors))
        time.sleep(0.1)


def committed(line, group):
    """{(topic, partition): offset} of a group."""
    answer, at, out = line.ask(OFFSET_FETCH, 2, text(group) + struct.pack(">i", -1)), 4, {}
    for _ in range(struct.unpack_from(">i", answer, 0)[0]):
        size, = struct.unpack_from(">h", answer, at)
        topic, (n,) = answer[at + 2:at + 2 + size].decode(), struct.unpack_from(">i", answer, at + 2 + size)
        at += 6 + size
        for _ in range(n):
            partition, offset, metadata = struct.unpack_from(">iqh", answer, at)
            at += 16 + max(metadata, 0)
            if offset >= 0:
                out[topic, partition] = offset
    error, = struct.unpack_from(">h", answer, at)
    if error:
        raise RuntimeError("positions of %s: error %d" % (group, error))
    return out


def coordinator(bootstrap, group, limit=120):
    """The id of the broker that coordinates a group."""
    end = time.monotonic() + limit
    while True:
        for address in bootstrap.split(","):
            try:
                answer = ask(address, FIND_COORDINATOR, 1, struct.pack(">h", len(group)) + group.encode() + b"\0", False)
            except OSError:
                continue
            error, text = struct.unpack_from(">hh", answer, 4)
            if not error:
                return struct.unpack_from(">i", answer, 8 + max(text, 0))[0]
        if time.monotonic() > end:
            raise TimeoutError("no broker knows the coordinator of %s" % group)
        time.sleep(0.2)


def place(bootstrap, topic, partition):
    """(leader, replicas, in-sync replicas) of one partition."""
    p = feed.admin(bootstrap).list_topics(topic, timeout=60).topics[topic].partitions[partition]
    return p.leader, list(p.replicas), set(p.isrs)


def reassign(bootstrap, topic, partition, replicas):
    """Says where the replicas shall lie; the first is the preferred leader."""
    ids = varint(len(replicas) + 1) + b"".join(struct.pack(">i", r) for r in replicas)
    body = struct.pack(">i", 30000) + varint(2) + compact(topic) + varint(2) + struct.pack(">i", partition) + ids + b"\0\0\0"
    for address in bootstrap.split(","):
        try:
            answer = ask(address, ALTER_REASSIGNMENTS, 0, body, True)
        except OSError:
            continue
        error, = struct.unpack_from(">h", answer, 4)
        if not error:
            return
    raise RuntimeError("the reassignment of %s-%d was refused" % (topic, partition))


def move_leader(bootstrap, topic, partition, replicas, limit=180):
    """Moves a partition to these replicas, and the leader to the first of them."""
    reassign(bootstrap, topic, partition, replicas)
    admin, end = feed.admin(bootstrap), time.monotonic() + limit
    while True:
        leader, now, isr = place(bootstrap, topic, partition)
        if now == replicas and set(replicas) <= isr:
            if leader == replicas[0]:
                return
            try:
                admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, partition)]).result(15)
            except KafkaException:
                pass  # it may lead by now, or be elected the next time
        if time.monotonic() > end:
            raise TimeoutError("%s-%d: leader %d of %s, in sync %s, wanted %s" % (topic, partition, leader, now, isr, replicas))
        time.sleep(0.1)
