"""Reads a topic on both sides with librdkafka and compares record by record: key, value, headers, timestamp, order.

Only a digest of 16 bytes per record is kept, so a million records need some 50 MB.
"""
import collections
import dataclasses
import hashlib
import struct
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

SIZE = 16
PACK = struct.Struct(">i").pack
NULL = PACK(-1)


def digest(message, with_type=True):
    """The digest of all that must arrive unchanged."""
    kind, time_ms = message.timestamp()
    parts = [struct.pack(">bq", kind if with_type else 0, time_ms)]
    for value in (message.key(), message.value()):
        parts += (NULL,) if value is None else (PACK(len(value)), value)
    for name, value in message.headers() or ():
        name = name.encode()
        parts += (PACK(len(name)), name)
        parts += (NULL,) if value is None else (PACK(len(value)), value)
    return hashlib.blake2b(b"".join(parts), digest_size=SIZE).digest()


def watermarks(consumer, topic, partition, limit=60):
    """(first offset, end offset); a partition that was made a moment ago may not have its leader yet."""
    end = time.monotonic() + limit
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
        except KafkaException as e:
            if time.monotonic() > end or e.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            time.sleep(0.1)


class Reader:
    """One pass over a whole topic up to where it ended when the pass began."""

    def __init__(self, bootstrap, topic, isolation="read_uncommitted", limit=300, options=None):
        self.topic, self.limit = topic, limit
        self.consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": "lab-reader", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "isolation.level": isolation, "enable.partition.eof": True,
            "check.crcs": True, "fetch.message.max.bytes": 2000000, "queued.max.messages.kbytes": 32768,
            "fetch.wait.max.ms": 50, "log_level": 0, **(options or {})})

    def messages(self):
        """All messages, those of one partition in their order."""
        meta = self.consumer.list_topics(self.topic, timeout=60).topics[self.topic]
        if meta.error:
            raise KafkaException(meta.error)
        places = []
        for number in sorted(meta.partitions):
            low, high = watermarks(self.consumer, self.topic, number)
            if high > low:
                places.append(TopicPartition(self.topic, number, low))
        self.consumer.assign(places)
        open_ends = {p.partition for p in places}
        end = time.monotonic() + self.limit
        try:
            while open_ends:
                if time.monotonic() > end:
                    raise TimeoutError("%s: not read to its end within %d s" % (self.topic, self.limit))
                for message in self.consumer.consume(5000, 0.5):
                    error = message.error()
                    if error is None:
                        yield message
                    elif error.code() == KafkaError._PARTITION_EOF:
                        open_ends.discard(message.partition())
                    elif error.fatal() or not error.retriable():
                        raise KafkaException(error)
        finally:
            self.consumer.close()


def read(bootstrap, topic, isolation="read_uncommitted", **options):
    """All messages of a topic as a list: for small topics."""
    return list(Reader(bootstrap, topic, isolation, **options).messages())


def digests(bootstrap, topic, isolation="read_uncommitted", with_type=True, **options):
    """{partition: digests of all its records, one behind the other}."""
    out = collections.defaultdict(bytearray)
    for message in Reader(bootstrap, topic, isolation, **options).messages():
        out[message.partition()] += digest(message, with_type)
    return out


@dataclasses.dataclass
class Result:
    """What a comparison found; equal when nothing differs."""
    records: int = 0
    missing: int = 0
    repeated: int = 0
    altered: int = 0
    foreign: int = 0
    disorder: int = 0
    digest: str = ""
    notes: list = dataclasses.field(default_factory=list)

    @property
    def equal(self):
        """True when both sides are the same."""
        return not (self.missing or self.repeated or self.altered or self.foreign or self.disorder)

    def __str__(self):
        if self.equal:
            return "%d records equal, digest %s" % (self.records, self.digest)
        return ("%d records at the source; %d missing, %d repeated, %d altered, %d foreign, %d out of order at the target; %s"
                % (self.records, self.missing, self.repeated, self.altered, self.foreign, self.disorder,
                   "; ".join(self.notes[:5])))


def topics(source, source_topic, target, target_topic, isolation="read_uncommitted", with_type=True,
           target_isolation=None):
    """Compares two topics, source and target given by their bootstrap addresses."""
    left = digests(source, source_topic, isolation, with_type)
    right = digests(target, target_topic, target_isolation or isolation, with_type)
    result, whole = Result(), hashlib.blake2b(digest_size=SIZE)
    for partition in sorted(left.keys() | right.keys()):
        a, b = bytes(left.get(partition, b"")), bytes(right.get(partition, b""))
        result.records += len(a) // SIZE
        whole.update(PACK(partition) + b)
        if a != b:
            explain(result, partition, split(a), split(b))
    result.digest = whole.hexdigest()
    if with_type and result.altered and result.altered == result.records and topics(
            source, source_topic, target, target_topic, isolation, False, target_isolation).equal:
        result.notes.insert(0, "only the timestamp type differs (CreateTime or LogAppendTime), and a mirror leaves that to "
                               "the target's topic: compare with any timestamp type")
    return result


def split(text):
    """The digests one by one."""
    return [text[i:i + SIZE] for i in range(0, len(text), SIZE)]


def explain(result, partition, a, b):
    """Adds what differs between the records a of the source and b of the target."""
    first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    result.notes.append("partition %d: %d and %d records, first difference at number %d" %
                        (partition, len(a), len(b), first))
    lacking = collections.Counter(a)
    lacking.subtract(b)
    missing = sum(n for n in lacking.values() if n > 0)
    known = set(a)
    repeated = -sum(n for d, n in lacking.items() if n < 0 and d in known)
    foreign = -sum(n for d, n in lacking.items() if n < 0 and d not in known)
    altered = min(missing, foreign)  # a record that is gone while an unknown one has come
    result.altered += altered
    result.missing += missing - altered
    result.foreign += foreign - altered
    result.repeated += repeated
    result.disorder += disorder(a, b)


def disorder(a, b):
    """How many records of b stand before one that precedes them at the source; a repetition is no disorder."""
    place = {}
    for i, d in enumerate(a):
        place.setdefault(d, []).append(i)
    taken = collections.Counter()
    last, count = -1, 0
    for d in b:
        spots = place.get(d)
        if not spots or taken[d] >= len(spots):
            continue
        spot = spots[taken[d]]
        taken[d] += 1
        if spot < last:
            count += 1
        last = max(last, spot)
    return count


def ends(bootstrap, topic, isolation="read_uncommitted"):
    """{partition: (first offset, end offset)} of a topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "lab-ends", "isolation.level": isolation,
                         "log_level": 0})
    try:
        meta = consumer.list_topics(topic, timeout=60).topics[topic]
        return {p: watermarks(consumer, topic, p) for p in sorted(meta.partitions)}
    finally:
        consumer.close()
