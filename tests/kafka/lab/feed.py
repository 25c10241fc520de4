"""Producers that are not ours: librdkafka through confluent-kafka."""
import collections
import os
import random
import threading
import time

from confluent_kafka import ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient,
                                   AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, NewPartitions, NewTopic,
                                   ResourcePatternType, ResourceType)

from . import records

RETRY = {"enable.idempotence": True, "message.timeout.ms": 600000, "reconnect.backoff.ms": 50,
         "reconnect.backoff.max.ms": 500, "socket.connection.setup.timeout.ms": 5000,
         "topic.metadata.refresh.fast.interval.ms": 100, "retry.backoff.ms": 50, "log_level": 0}


def admin(bootstrap):
    """An admin client."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create_topic(bootstrap, name, partitions=1, config=None, replication=-1, tries=40):
    """Creates a topic and waits until every partition has a leader."""
    a = admin(bootstrap)
    replication = 1 if replication == -1 else replication
    topic = NewTopic(name, partitions, replication, config={k: str(v) for k, v in (config or {}).items()})
    for attempt in range(tries):
        try:
            a.create_topics([topic])[name].result(60)
            break
        except KafkaException as e:  # one of that name is still being deleted, or a broker has just come back: both pass soon
            if attempt == tries - 1 or not any(t in str(e) for t in ("ALREADY_EXISTS", "currently fenced")):
                raise
            time.sleep(0.25)
    wait_partitions(bootstrap, name, partitions)


def grow_topic(bootstrap, name, partitions):
    """Adds partitions to a topic."""
    a = admin(bootstrap)  # the client must outlive its futures
    a.create_partitions([NewPartitions(name, partitions)])[name].result(60)
    wait_partitions(bootstrap, name, partitions)


def delete_topics(bootstrap, names):
    """Deletes topics."""
    a = admin(bootstrap)
    for future in a.delete_topics(list(names)).values():
        future.result(60)


def delete_records(bootstrap, topic, partition, offset):
    """Deletes what lies before an offset."""
    a, place = admin(bootstrap), TopicPartition(topic, partition, offset)
    a.delete_records([place])[place].result(60)


def set_config(bootstrap, topic, **values):
    """Changes configs of a topic: "_" in a name stands for a dot, None removes."""
    a, op = admin(bootstrap), AlterConfigOpType
    entries = [ConfigEntry(k.replace("_", "."), None if v is None else str(v),
                           incremental_operation=op.DELETE if v is None else op.SET) for k, v in values.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    a.incremental_alter_configs([resource])[resource].result(60)


def describe(bootstrap, names):
    """{topic: {"partitions": n, "replication": n, "configs": {name: value of all that are not defaults}}}"""
    a = admin(bootstrap)
    for name in names:  # a topic that was just made is not in every broker's metadata yet
        wait_partitions(bootstrap, name, 1)
    topics = a.list_topics(timeout=60).topics
    futures = a.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, n) for n in names])
    out = {}
    for resource, future in futures.items():
        parts = topics[resource.name].partitions.values()
        configs = {k: v.value for k, v in future.result(60).items() if v.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
        out[resource.name] = {"partitions": len(parts), "replication": max(len(p.replicas) for p in parts),
                              "configs": configs}
    return out


def partitions_of(bootstrap, name):
    """How many partitions a topic has, 0 when there is none of that name."""
    topic = admin(bootstrap).list_topics(timeout=60).topics.get(name)
    return len(topic.partitions) if topic else 0


def wait_partitions(bootstrap, name, count, limit=120):
    """Until the topic has at least COUNT partitions, all with a leader."""
    a, end = admin(bootstrap), time.monotonic() + limit
    while time.monotonic() < end:
        topic = a.list_topics(timeout=60).topics.get(name)
        if topic and len(topic.partitions) >= count and all(p.leader >= 0 for p in topic.partitions.values()):
            return
        time.sleep(0.05)
    raise TimeoutError("topic %s has not got %d partitions with leaders within %d s" % (name, count, limit))


def topics_of(bootstrap):
    """{topic: number of partitions}, internal ones included."""
    return {n: len(t.partitions) for n, t in admin(bootstrap).list_topics(timeout=60).topics.items()}


def acl(bootstrap, permission, operations, kind, name, remove=False):
    """Adds or removes ACLs of everybody without a name. permission: "ALLOW", "DENY"; operations: "READ", "DESCRIBE_CONFIGS" …;
    kind: "TOPIC", "GROUP"."""
    a = admin(bootstrap)
    parts = [(ResourceType[kind], name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation[o],
              AclPermissionType[permission]) for o in operations]
    if remove:
        futures = a.delete_acls([AclBindingFilter(*p) for p in parts])
    else:
        futures = a.create_acls([AclBinding(*p) for p in parts])
    for future in futures.values():
        future.result(60)


def elect_preferred(bootstrap):
    """Each partition is led by its preferred replica again, where that can be."""
    a = admin(bootstrap)
    a.elect_leaders(ElectionType.PREFERRED).result(60)


CALM = 20000 if os.environ.get("HELIOSTAT_FULL", "") in ("", "0") else None


class Numbered(threading.Thread):
    """Writes numbered records to all partitions in turn at a steady rate until stop(); idempotent, so that the
    source itself neither loses nor repeats. rate 0: as quick as it goes. After CALM records only a hundred in a second: what a
    test waits for may take long on a busy machine, and more records would make it busier."""

    def __init__(self, bootstrap, topic, partitions=1, rate=1000, total=None, codec="lz4", run=None, options=None, calm=CALM):
        super().__init__(name="feed-" + topic, daemon=True)
        self.topic, self.partitions, self.rate, self.total = topic, partitions, rate, total
        self.calm, self.calm_since = calm, None
        self.run_name = run or records.new_run()
        self.next_seq = collections.Counter()
        self.sent, self.refused = 0, []
        self.ended = threading.Event()
        self.producer = Producer({**RETRY, "bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": codec,
                                  "queue.buffering.max.messages": 500000, "on_delivery": self.report,
                                  "delivery.report.only.error": True, **(options or {})})

    def report(self, error, message):
        """Keeps the first refusals: a feed that could not write makes every comparison worthless."""
        if error and len(self.refused) < 10:
            self.refused.append((message.topic(), message.partition(), error.str()))

    def run(self):
        """The thread."""
        began, partition = time.monotonic(), 0
        while not self.ended.is_set() and (self.total is None or self.sent < self.total):
            due = self.due(began)
            while self.sent < due:
                self.write(partition)
                partition = (partition + 1) % self.partitions
            self.producer.poll(0)
            if self.rate:
                time.sleep(0.01)

    def due(self, began):
        """How many records should have been written by now."""
        due = self.sent + 500 if not self.rate else int((time.monotonic() - began) * self.rate)
        if self.calm and self.total is None and self.sent >= self.calm:
            self.calm_since = self.calm_since or time.monotonic()
            due = min(due, self.calm + int((time.monotonic() - self.calm_since) * 100))
        due = min(due, self.sent + 5000)  # not all at once after a pause
        return due if self.total is None else min(due, self.total)

    def write(self, partition):
        """One record."""
        key, value, headers = records.numbered(self.run_name, partition, self.next_seq[partition])
        while True:
            try:
                self.producer.produce(self.topic, value, key, partition, headers=headers)
                break
            except BufferError:
                self.producer.poll(0.1)
                if self.ended.is_set():
                    return
        self.next_seq[partition] += 1
        self.sent += 1

    def stop(self, limit=120):
        """Ends the thread, waits until the brokers have everything, and returns the records per partition."""
        self.ended.set()
        if self.is_alive():
            self.join()
        left = self.producer.flush(limit)
        if left or self.refused:
            raise RuntimeError("the feed could not write: %d left, refused: %s" % (left, self.refused))
        return dict(self.next_seq)

    def finish(self, limit=600):
        """Waits until all TOTAL records are written."""
        self.join(limit)
        return self.stop()


class Transactional(threading.Thread):
    """Writes numbered records in transactions of SIZE over all partitions, at a steady rate, until stop(); one in four is
    aborted when all of it is written."""

    def __init__(self, bootstrap, topic, partitions=1, rate=1000, size=20, codec="lz4", seed=1):
        super().__init__(name="transactions-" + topic, daemon=True)
        self.topic, self.partitions, self.rate, self.size = topic, partitions, rate, size
        self.run_name, self.dice = records.new_run(), random.Random(seed)
        self.next_seq = collections.Counter()
        self.committed = self.aborted = 0
        self.failure = None
        self.ended = threading.Event()
        self.options = {**RETRY, "message.timeout.ms": 50000, "transaction.timeout.ms": 60000, "linger.ms": 2,
                        "bootstrap.servers": bootstrap, "compression.type": codec,
                        "transactional.id": "%s-%s" % (topic, self.run_name)}

    def run(self):
        """The thread. A producer that cannot go on is replaced: whether its last transaction was committed is the source's
        to say."""
        producer = None
        while not self.ended.is_set():
            began = time.monotonic()
            try:
                if not producer:
                    producer = Producer(self.options)
                    producer.init_transactions(60)
                self.turn(producer, self.dice.random() < 0.75)
            except KafkaException as e:
                producer, self.failure = None, e
            self.ended.wait(max(0.0, began + self.size / self.rate - time.monotonic()))

    def turn(self, producer, commit):
        """One transaction."""
        producer.begin_transaction()
        for i in range(self.size):
            partition = i % self.partitions
            key, value, headers = records.numbered(self.run_name, partition, self.next_seq[partition])
            produce(producer, self.topic, partition, key, value, headers)
            self.next_seq[partition] += 1
        producer.flush(60)  # an abort would forget what was not sent
        while True:
            try:
                (producer.commit_transaction if commit else producer.abort_transaction)(60)
                break
            except KafkaException as e:
                if e.args[0].txn_requires_abort():
                    commit = False
                elif not e.args[0].retriable():
                    raise
        if commit:
            self.committed += self.size
        else:
            self.aborted += self.size

    def stop(self, limit=120):
        """Ends the thread behind its last transaction; returns how many records were committed."""
        self.ended.set()
        if self.is_alive():
            self.join(limit)
        if not self.committed or self.is_alive():
            raise RuntimeError("transactions of %s: %s" % (self.topic, self.failure or "no end"))
        return self.committed


def mixed(bootstrap, topic, count, partitions, seed=1, codecs=records.CODECS, big=0.0005, options=None):
    """Writes COUNT mixed records, in equal parts by one producer per codec, batches of many sizes."""
    refused = []

    def report(error, message):
        if error:
            refused.append((message.partition(), error.str()))

    for number, codec in enumerate(codecs):
        maker = records.Mixed(seed * 100 + number, big)
        producer = Producer({**RETRY, "bootstrap.servers": bootstrap, "compression.type": codec,
                             "linger.ms": (0, 5, 20, 50, 100)[number % 5], "batch.size": (1000, 16384, 100000)[number % 3],
                             "message.max.bytes": 1000000, "queue.buffering.max.kbytes": 131072,
                             "on_delivery": report, "delivery.report.only.error": True, **(options or {})})
        share = count // len(codecs) + (number < count % len(codecs))
        for i in range(share):
            key, value, headers = maker.next()
            produce(producer, topic, (i * 7 + number) % partitions, key, value, headers)
            if i % 500 == 0:
                producer.poll(0)
        if producer.flush(300) or refused:
            raise RuntimeError("the feed could not write: %s" % refused[:5])
    return count


def produce(producer, topic, partition, key, value, headers=None, **more):
    """One record, waiting while the queue of the producer is full."""
    while True:
        try:
            producer.produce(topic, value, key, partition, headers=headers, **more)
            return
        except BufferError:
            producer.poll(0.2)


def write(bootstrap, topic, rows, partition=0, codec="none", options=None, **more):
    """Writes (key, value) or (key, value, headers) rows to one partition and waits for the acknowledgements; MORE goes
    to produce, as timestamp."""
    failed = []
    producer = Producer({**RETRY, "bootstrap.servers": bootstrap, "compression.type": codec,
                         "on_delivery": lambda e, m: e and failed.append(e.str()), **(options or {})})
    for row in rows:
        produce(producer, topic, partition, *row, **more)
    if producer.flush(60) or failed:
        raise RuntimeError("could not write to %s: %s" % (topic, failed[:3]))
