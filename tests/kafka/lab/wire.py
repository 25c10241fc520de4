"""A few requests that librdkafka has no call for, spoken by hand: who coordinates a group, and where replicas shall lie."""
import socket
import struct
import time

from confluent_kafka import ElectionType, KafkaException, TopicPartition

from . import feed

FIND_COORDINATOR, ALTER_REASSIGNMENTS = 10, 45


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


def ask(address, key, version, body, flexible, timeout=60):
    """The answer's bytes behind its header."""
    host, port = address.rsplit(":", 1)
    head = struct.pack(">hhih", key, version, 1, 3) + b"lab" + (b"\0" if flexible else b"")
    with socket.create_connection((host, int(port)), timeout) as s:
        s.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size, = struct.unpack(">i", s.recv(4, socket.MSG_WAITALL))
        answer = s.recv(size, socket.MSG_WAITALL)
    return answer[5 if flexible else 4:]


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
