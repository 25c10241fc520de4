"""Topics deleted at the source: their copies stay, unless the flow says otherwise; and then only what surely is gone goes."""
from lab import compare, feed
from lab.heliostat import Heliostat, as_text

DELETE = {"heliostat.sync.topic.deletions.enabled": "true", "heliostat.sync.topic.deletions.delay.ms": 1000,
          "refresh.topics.interval.seconds": 1}


def fill(flow, names):
    for name in names:
        feed.create_topic(flow.source, name, 2)
        feed.write(flow.source, name, [(b"%d" % i, b"old") for i in range(20)])


def change(h, **more):
    """Later lines of the file are stronger."""
    with h.conf.open("a") as f:
        f.write(as_text({k.replace("__", "."): v for k, v in more.items()}))


def copies(flow):
    """The topics whose copies are at the target."""
    own = flow.a + "."
    return {t[len(own):] for t in feed.topics_of(flow.target) if t.startswith(own + flow.name)}


def test_copies_of_deleted_topics_are_deleted(flow):
    gone, away, hidden, stay = names = [flow.name + end for end in ("-gone", "-away", "-hidden", "-stay")]
    fill(flow, names)
    with Heliostat(flow.config(flow.name + "-.*", **DELETE)) as h:
        h.wait_copied(flow.source, names)
        feed.delete_topics(flow.source, [gone])
        h.wait(lambda h: copies(flow) == {away, hidden, stay}, what="the copy to be deleted")
        assert h.stop() == 0
        feed.delete_topics(flow.source, [away])  # nobody is there to see it
        change(h, topics__exclude=hidden)
        h.restart().wait_ready()
        h.wait(lambda h: copies(flow) == {hidden, stay}, what="the copy of the topic deleted meanwhile to be deleted")
        feed.create_topic(flow.source, gone, 1)
        feed.write(flow.source, gone, [(b"%d" % i, b"new") for i in range(50)])
        h.wait_copied(flow.source, [gone, stay])
        for topic in (gone, stay):
            result = compare.topics(flow.source, topic, flow.target, flow.remote(topic))
            assert result.equal and result.records == (50 if topic == gone else 20), str(result)
        assert copies(flow) == {hidden, stay, gone}
        assert h.log.read_text().count("topic.deleted") == 2


def test_copies_stay_where_it_is_not_certain_that_they_may_go(flow):
    names = [flow.name + "-%d" % i for i in range(4)]
    fill(flow, names)
    with Heliostat(flow.config(flow.name + "-.*", **{**DELETE, "heliostat.sync.topic.deletions.enabled": "false"})) as h:
        h.wait_copied(flow.source, names)
        assert h.stop() == 0
        feed.delete_topics(flow.source, names[:2])
        h.restart().wait_ready()
        change(h, **DELETE, heliostat__sync__topic__deletions__max=1)
        assert h.stop() == 0 and copies(flow) == set(names)
        h.restart()
        h.wait(lambda h: h.log.read_text().count("MANY_DELETIONS") == 2, what="both to be kept, for they are more than one")
        assert copies(flow) == set(names)
        assert h.stop() == 0
        change(h, heliostat__sync__topic__deletions__max=2, heliostat__sync__dry__run="true")
        h.restart()
        h.wait(lambda h: h.log.read_text().count("DRY_RUN") == 2, what="both to be named")
        assert copies(flow) == set(names)
        assert h.stop() == 0
        change(h, heliostat__sync__dry__run="false")
        h.restart()
        h.wait(lambda h: copies(flow) == set(names[2:]), what="both to be deleted")


def test_a_copy_without_the_sources_alias_is_not_deleted(flow):
    fill(flow, [flow.name])
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    with Heliostat(flow.config(**{**DELETE, "replication.policy.class": policy})) as h:
        h.wait(lambda h: compare.ends(flow.target, flow.name) == compare.ends(flow.source, flow.name), what="20 records")
        feed.delete_topics(flow.source, [flow.name])
        h.wait(lambda h: "COPY_IS_SHARED" in h.log.read_text(), what="the copy to be kept")
        assert sum(end for _, end in compare.ends(flow.target, flow.name).values()) == 20
