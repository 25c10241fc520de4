"""Topics on the target: made with the right number of partitions, grown with the source, found while others flow."""
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from lab import compare, feed
from lab.heliostat import Heliostat
from lab.pace import most


@pytest.mark.fc("FC-023")
def test_partitions_equal_the_source_and_grow_under_load(flow):
    feed.create_topic(flow.source, flow.name, 10)
    producer = feed.Numbered(flow.source, flow.name, 10, rate=1000)
    producer.start()
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        assert feed.partitions_of(flow.target, flow.remote()) == 10
        time.sleep(1)
        feed.grow_topic(flow.source, flow.name, 14)
        for partition in range(10, 14):  # at once: the mirror cannot know of them yet
            feed.write(flow.source, flow.name, [(b"first", b"of %d" % partition)], partition)
        feed.wait_partitions(flow.target, flow.remote(), 14)
        more = feed.Numbered(flow.source, flow.name, 14, rate=1000)
        more.start()
        time.sleep(2)
        counts = [producer.stop(), more.stop()]
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == sum(sum(c.values()) for c in counts) + 4, str(result)


def test_a_target_topic_with_fewer_partitions_is_grown(flow):
    feed.create_topic(flow.source, flow.name, 5)
    feed.create_topic(flow.target, flow.remote(), 2)
    feed.mixed(flow.source, flow.name, 1000, 5)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert feed.partitions_of(flow.target, flow.remote()) == 5
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == 1000, str(result)


def test_a_target_topic_with_more_partitions_is_left_alone(flow):
    feed.create_topic(flow.source, flow.name, 2)
    feed.create_topic(flow.target, flow.remote(), 5)
    feed.mixed(flow.source, flow.name, 1000, 2)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert feed.partitions_of(flow.target, flow.remote()) == 5
        assert compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal


def largest_gap(bootstrap, topic, seconds):
    """The longest time between two arrivals in one partition of a topic that is written to all the time."""
    c = Consumer({"bootstrap.servers": bootstrap, "group.id": "lab-gap", "fetch.wait.max.ms": 10, "log_level": 0})
    c.assign([TopicPartition(topic, 0, c.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1])])
    c.poll(5)
    last, worst, end = time.monotonic(), 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        if c.poll(0.01):
            now = time.monotonic()
            worst, last = max(worst, now - last), now
    c.close()
    return worst


@pytest.mark.fc("FC-017")
def test_a_copy_deleted_while_stopped_is_copied_again(flow):
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"%d" % i, b"v%d" % i) for i in range(100)])
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.stop() == 0  # the position 100 is stored now
        feed.delete_topics(flow.target, [flow.remote()])
        h.restart().wait_ready()
        h.wait(lambda h: feed.partitions_of(flow.target, flow.remote()) == 1, what="the copy made anew")
        h.wait(lambda h: compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal, what="100 records")
        assert compare.ends(flow.target, flow.remote()) == {0: (0, 100)}


@pytest.mark.fc("FC-017")
def test_a_copy_deleted_while_running_is_copied_again(flow):
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"%d" % i, b"v%d" % i) for i in range(100)])
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        feed.delete_topics(flow.target, [flow.remote()])
        h.wait(lambda h: feed.partitions_of(flow.target, flow.remote()) == 1, what="the copy made anew")
        feed.write(flow.source, flow.name, [(b"%d" % i, b"v%d" % i) for i in range(100, 120)])
        h.wait(lambda h: compare.topics(flow.source, flow.name, flow.target, flow.remote()).equal, what="120 records")


@pytest.mark.fc("FC-004")
def test_a_source_topic_made_anew_while_stopped_is_copied_from_its_start(flow):
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"old", b"v%d" % i) for i in range(100)])
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.stop() == 0
        feed.delete_topics(flow.source, [flow.name])
        feed.create_topic(flow.source, flow.name, 1)
        feed.write(flow.source, flow.name, [(b"new", b"v%d" % i) for i in range(150)])
        h.restart().wait_ready()
        h.wait(lambda h: compare.ends(flow.target, flow.remote()) == {0: (0, 250)}, what="100 old and 150 new records")
        got = [m.value() for m in compare.read(flow.target, flow.remote())]
        assert got[100:] == [b"v%d" % i for i in range(150)]


@pytest.mark.long
def test_a_new_topic_flows_and_the_others_do_not_pause(flow):
    feed.create_topic(flow.source, flow.name, 1)
    producer = feed.Numbered(flow.source, flow.name, 1, rate=500)
    producer.start()
    refresh = 2
    with Heliostat(flow.config(flow.name + ".*", refresh__topics__interval__seconds=refresh)) as h:
        h.wait_ready()
        h.wait(lambda h: feed.partitions_of(flow.target, flow.remote()), what="the first topic")
        time.sleep(1)
        without = largest_gap(flow.target, flow.remote(), 4)
        fresh = flow.name + "-new"
        feed.create_topic(flow.source, fresh, 3)
        feed.write(flow.source, fresh, [(b"k", b"first")])
        began = time.monotonic()
        during = largest_gap(flow.target, flow.remote(), 4)
        h.wait(lambda h: any(p["records"] for p in h.partitions(fresh)), what="the new topic to flow")
        took = time.monotonic() - began
        producer.stop()
        h.wait_copied(flow.source, [flow.name, fresh])
        print("\nlargest gap of the old topic: %.0f ms without, %.0f ms with a new topic" % (without * 1000, during * 1000))
        assert took < 4 + most(refresh + 2)
        for topic in (flow.name, fresh):
            assert compare.topics(flow.source, topic, flow.target, flow.remote(topic)).equal


def test_filters_and_names(flow):
    """Lists, regular expressions and the default exclusions decide as MirrorMaker 2 does."""
    n = flow.name
    wanted = [n + "-orders", n + "-pay.1", n + "-pay-22"]
    unwanted = [n + "-pay", n + "-orders2", n + "-x.internal", n + "-x-internal", n + "-x.replica", n + "-pay-3"]
    for topic in wanted + unwanted:
        feed.create_topic(flow.source, topic)
        feed.write(flow.source, topic, [(None, b"1")])
    more = {"%s->%s.topics.exclude" % (flow.a, flow.b): r".*[\\-\\.]internal, .*\\.replica, __.*, .*-3"}
    topics = r"%s-orders, %s-pay[\\.-][0-9]+, %s-x.*" % (n, n, n)
    with Heliostat({**flow.config(topics), **more}) as h:
        h.wait_copied(flow.source, wanted)
        copies = [t for t in feed.topics_of(flow.target) if t.startswith(flow.a + "." + n)]
        assert sorted(copies) == sorted(flow.remote(t) for t in wanted)
