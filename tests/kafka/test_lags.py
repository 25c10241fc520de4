"""Groups at random lags behind live transactions: where either mirror would have them go on at the target, to the record. What
test_checkpoints.py shows of forty groups is shown here of five hundred, and beside the real MirrorMaker 2."""
import bisect
import math
import random
import time

import pytest

from conftest import Flow
from lab import compare, feed, groups, heliostat, offsets, wire
from lab.heliostat import Heliostat
from lab.java import MirrorMaker

GROUPS, PARTITIONS, RATE, SECONDS = 500, 20, 2000, 60
QUICK = {"emit.checkpoints.interval.seconds": 2, "sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": 2,
         "refresh.groups.interval.seconds": 2, "emit.heartbeats.enabled": "false"}


def file(flow):
    """The same for both, but for the aliases."""
    return {**flow.config(), **QUICK, "groups": flow.name + "-.*", flow.a + ".consumer.isolation.level": "read_committed"}


def lags(name, ends, dice):
    """{group: {partition: offset}}: short lags are as frequent as long ones, from none to all."""
    return {"%s-%d" % (name, i): {p: end - int(math.exp(dice.uniform(0, math.log(end + 1))) - 1) for p, end in ends.items()}
            for i in range(GROUPS)}


def settled(target, topic, least):
    """The checkpoints, once nothing has been added to them for a while."""
    last, since, end = None, time.monotonic(), time.monotonic() + 600
    while time.monotonic() - since < 30 or len(last) < least:
        now = groups.checkpoints(target, topic)[0]
        if now != last:
            last, since = now, time.monotonic()
        assert time.monotonic() < end, "%d checkpoints" % len(last)
        time.sleep(3)
    return last


def distances(at, told, source, target, remote):
    """Of every position how many records would be read again; None where nothing was told. Below zero: records that are skipped."""
    out = []
    for group, places in at.items():
        for p, offset in places.items():
            ours, theirs = sorted(source[p]), sorted(target[p])
            place = bisect.bisect_left(ours, offset)
            down = told.get((group, remote, p))
            if down is not None and down[0] != offset:
                down = None  # of another position
            if down is None:
                out.append(None)
                continue
            there = bisect.bisect_left(theirs, down[1])
            exact = place == there and (place == len(ours) or source[p][ours[place]] == target[p][theirs[there]])
            assert exact or place != there, "the record there is another one"
            out.append(place - there)
    return out


def table(columns):
    """Side by side: how many positions are how far away."""
    steps = (("exact", 0, 0), ("1 to 10", 1, 10), ("11 to 100", 11, 100), ("101 to 1,000", 101, 1000), ("more", 1001, 10**18),
             ("skips records", -10**18, -1))
    rows = [(name, [sum(d is not None and low <= d <= high for d in c) for c in columns.values()]) for name, low, high in steps]
    rows.append(("none translated", [sum(d is None for d in c) for c in columns.values()]))
    for name, q in (("median of those translated", 0.5), ("99 of 100 within", 0.99), ("at most", 1)):
        known = [sorted(d for d in c if d is not None) for c in columns.values()]
        rows.append((name, [c[min(int(len(c) * q), len(c) - 1)] if c else "-" for c in known]))
    print("\n| records read again | %s |" % " | ".join(columns))
    for name, values in rows:
        print("| %s | %s |" % (name, " | ".join(str(v) for v in values)))


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
def test_five_hundred_groups_beside_mirrormaker(pair, name):
    """Of ours all 10,000 are exact, checkpoints and the target's groups."""
    ours, theirs = Flow(name, *pair), Flow(name, *pair)
    theirs.a, theirs.b = theirs.a + "m", theirs.b + "m"
    feed.create_topic(ours.source, name, PARTITIONS)
    with MirrorMaker(heliostat.as_text(file(theirs))) as mm2, Heliostat(file(ours)) as h:
        mm2.wait(lambda: feed.partitions_of(theirs.target, theirs.remote()) == PARTITIONS, what="the copy to be made")
        h.wait_ready()
        load = feed.Transactional(ours.source, name, PARTITIONS, RATE, 100)
        load.start()
        time.sleep(SECONDS)
        count = load.stop()
        h.wait_copied(ours.source, [name], isolation="read_committed")
        mm2.wait(lambda: sum(high for _, high in compare.ends(theirs.target, theirs.remote()).values()) >= count, 600, "the copy")
        ends = {p: high for p, (_, high) in compare.ends(ours.source, name).items()}
        at = lags(name, ends, random.Random(5))
        with wire.Line(ours.source.split(",")[0]) as line:
            for group, places in at.items():
                wire.commit(line, group, {(name, p): offset for p, offset in places.items()})
        source = offsets.by_offset(ours.source, name, "read_committed")
        copies = {f: offsets.by_offset(f.target, f.remote(), "read_committed") for f in (ours, theirs)}
        assert sum(len(t) for t in source.values()) == count
        told = {f: settled(f.target, f.a + ".checkpoints.internal", n) for f, n in ((ours, GROUPS * PARTITIONS), (theirs, 1))}
        found = {f: distances(at, told[f], source, copies[f], f.remote()) for f in (ours, theirs)}
        print("\n%d groups x %d partitions, %d records in transactions of 100, a quarter aborted; largest end %d" % (
            GROUPS, PARTITIONS, count, max(ends.values())))
        table({"MirrorMaker 2 4.3.0": found[theirs], "Heliostat": found[ours]})
        assert set(found[ours]) == {0} and len(found[ours]) == GROUPS * PARTITIONS
        wrong = []
        with wire.Line(ours.target.split(",")[0]) as there:
            for group, places in at.items():
                have = wire.committed(there, group)
                wrong += [(group, p) for p in places if have.get((ours.remote(), p)) != told[ours][group, ours.remote(), p][1]]
        assert not wrong, wrong[:5]
        assert h.stop() == 0
