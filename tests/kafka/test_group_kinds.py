"""Groups of the consumer protocol (KIP-848): followed to the record, left alone while they have members."""
from test_checkpoints import config, seen, synced

from lab import feed, groups
from lab.heliostat import Heliostat

NEW = {"group.protocol": "consumer"}


def read(bootstrap, group, topic, number):
    """A member of the consumer protocol reads so many records and commits; its positions by partition."""
    member = groups.client(bootstrap, group, **NEW)
    member.subscribe([topic])
    have = {}
    while sum(n for _, n in have.values()) < number:
        m = member.poll(1)
        assert not m or not m.error(), m.error()
        if m:
            _, n = have.get(m.partition(), (0, 0))
            have[m.partition()] = (m.offset() + 1, n + 1)
    at = {p: offset for p, (offset, _) in have.items()}
    member.commit(asynchronous=False, offsets=[groups.TopicPartition(topic, p, o) for p, o in at.items()])
    member.close()
    return at


def test_consumer_protocol(flow):
    feed.create_topic(flow.source, flow.name, 2)
    for p in range(2):
        feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(200)], p)
    feed.delete_records(flow.source, flow.name, 0, 30)  # so that offsets of the two sides differ
    group, gone = flow.name + "-new", {0: 30, 1: 0}
    at = read(flow.source, group, flow.name, 90)
    with Heliostat(config(flow)) as h:
        h.wait_copied(flow.source, [flow.name])
        for p, offset in at.items():
            synced(h, 120, flow, group, (flow.remote(), p), offset - gone[p])

        member = groups.client(flow.target, group, **NEW)
        member.subscribe([flow.remote()])
        groups.wait(lambda: member.poll(0.2) is None and member.assignment() or None)
        groups.wait(lambda: member.poll(0) is None and seen(h)["active_at_target"] == 1)
        places = [(flow.remote(), p) for p in range(2)]
        before = groups.committed(flow.target, group, places)
        groups.commit(flow.source, group, {(flow.name, 0): 170, (flow.name, 1): 180})
        begun = seen(h)["rounds"]
        groups.wait(lambda: member.poll(0) is None and seen(h)["rounds"] > begun + 2 or None)
        assert groups.committed(flow.target, group, places) == before
        member.close()
        synced(h, 120, flow, group, (flow.remote(), 0), 140)
        synced(h, 120, flow, group, (flow.remote(), 1), 180)
