"""The offset map: whatever a source offset is asked, the record at the target offset is the same one, and back."""
import json
import random
import time

import pytest
from test_shapes import KEEP_ALL, compacted, transactional

from lab import compare, feed, offsets
from lab.heliostat import Heliostat, command

COMMITTED = "consumer.isolation.level"


def volume(full):
    """Offsets per kind of topic; five kinds."""
    return 200000 if full else 4000


def report(what, counts):
    print("\n%s: %s" % (what, ", ".join("%d %s" % (n, kind) for kind, n in sorted(counts.items()))))


@pytest.mark.fc("FC-012")
def test_plain_topics_after_kills(flow, full):
    """The map that was stored, and what the restart found in the target, make one map."""
    dice = random.Random(3)
    feed.create_topic(flow.source, flow.name, 4)
    producer = feed.Numbered(flow.source, flow.name, 4, rate=5000 if full else 1500)
    producer.start()
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        for _ in range(10 if full else 3):
            time.sleep(0.5 + dice.random())
            h.kill9()
            h.restart()
        h.wait_ready()
        producer.stop()
        h.wait_copied(flow.source, [flow.name])
        counts = offsets.check(h, flow, volume(full))
        report("plain", counts)
        assert set(counts) == {"exact"}


@pytest.mark.fc("FC-012")
def test_transactions_after_kills(flow, full):
    """Markers and aborted records have no place in the copy: the answer is the next record."""
    feed.create_topic(flow.source, flow.name, 2)
    with Heliostat({**flow.config(), flow.a + "." + COMMITTED: "read_committed"}) as h:
        h.wait_ready()
        for _ in range(3):
            transactional(flow.source, flow.name, 2, create=False)
            h.kill9()
            h.restart()
        h.wait_copied(flow.source, [flow.name])
        for turn in ("before", "after"):
            counts = offsets.check(h, flow, volume(full) // 2)
            report("transactions, %s a clean restart" % turn, counts)
            assert counts["exact"] and counts["next"] and set(counts) <= {"exact", "next", "end"}
            assert h.stop() == 0
            h.restart().wait_ready()
            h.wait_copied(flow.source, [flow.name])


@pytest.mark.fc("FC-012")
def test_compacted_topics(flow, full):
    compacted(flow.source, flow.name, 100)
    with Heliostat({**flow.config(), **KEEP_ALL}) as h:
        h.wait_copied(flow.source, [flow.name])
        counts = offsets.check(h, flow, volume(full))
        report("compacted", counts)
        assert counts["exact"] and counts["next"]


def test_others_write_to_the_copy(flow, full):
    """Somebody else's records in the copy: ours keep their places, theirs are nobody's."""
    feed.create_topic(flow.source, flow.name, 1)
    with Heliostat(flow.config()) as h:
        for turn in range(10):
            feed.write(flow.source, flow.name, [(b"k", b"ours %d %d" % (turn, i)) for i in range(50)])
            h.wait_copied(flow.source, [flow.name])
            feed.write(flow.target, flow.remote(), [(b"k", b"theirs %d" % turn)] * (turn % 3 + 1))
            if turn == 5:
                time.sleep(6)  # the pair and the map are stored by then
                h.kill9()
                h.restart()
        foreign = {compare.digest(m) for m in compare.read(flow.target, flow.remote()) if b"theirs" in m.value()}
        counts = offsets.check(h, flow, volume(full), foreign=foreign)
        report("with another writer", counts)
        assert counts["exact"] and counts["next"]
        assert len(compare.read(flow.target, flow.remote())) == 500 + sum(t % 3 + 1 for t in range(10))


def test_the_verb_and_the_route(flow):
    """What an operator sees: exact, next, end, not copied yet, and refusals by name."""
    feed.create_topic(flow.source, flow.name, 1)
    feed.write(flow.source, flow.name, [(b"k", b"%d" % i) for i in range(100)])
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        words = ["translate", "%s->%s" % (flow.a, flow.b), flow.name, "0"]
        code, out, _ = command(*words, "7", "99", "--url", h.address)
        assert code == 0 and out.split() == ["7", "7", "99", "99"], out
        code, out, _ = command(*words, "103", "--url", h.address)
        assert code == 1 and "3 short" in out, out
        code, out, _ = command(*words, "100", "--to-source", "--json", "--url", h.address)
        assert code == 0 and json.loads(out)["answers"] == [{"offset": 100, "kind": "end", "to": 100}]
        assert command("translate", "x->y", "t", "0", "1", "--url", h.address)[0] == 1
        assert command(*words, "one", "--url", h.address)[0] == 2
        base = "/v1/offsets?flow=%s->%s&topic=%s&partition=" % (flow.a, flow.b, flow.name)
        assert h.get(base + "1&offset=1")[0] == 404
        assert h.get(base + "0&offset=1,&")[0] == 400
        assert h.get(base + "0")[0] == 400
        assert h.get(base + "0&offset=1&color=red")[0] == 400
