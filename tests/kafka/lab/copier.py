"""A plain consume-and-produce copy of a topic: the lab checks its own feeds and comparers with it."""
from confluent_kafka import Producer

from . import compare, feed


def copy(source, source_topic, target, target_topic, codec="none", change=None, isolation="read_uncommitted"):
    """Copies all records to a topic that exists, keeping partition, timestamp and headers.
    change: called with (number, message), returns how often to write the record."""
    producer = Producer({**feed.RETRY, "bootstrap.servers": target, "compression.type": codec})
    for number, message in enumerate(compare.Reader(source, source_topic, isolation).messages()):
        for _ in range(change(number, message) if change else 1):
            feed.produce(producer, target_topic, message.partition(), message.key(), message.value(),
                         message.headers(), timestamp=message.timestamp()[1])
    if producer.flush(120):
        raise RuntimeError("the copy did not get through")
