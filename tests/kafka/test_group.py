"""Two processes, one file: one copies, the other stands by; takeovers by kill -9, SIGTERM, SIGSTOP; nothing is stored twice."""
import contextlib
import json
import random
import re
import signal
import time

import pytest

from conftest import Flow, soak
from lab import compare, feed
from lab.heliostat import Heliostat
from lab.pace import most
from test_crash import no_damage

QUICK = pytest.mark.xdist_group("quick")  # they share a cluster


@pytest.fixture
def quick(pool, name):
    """A flow to a target that allows short sessions, so that a takeover need not be waited for long."""
    target = pool.get("4.3.0", "group-target", props={"group.min.session.timeout.ms": 500})
    return Flow(name, pool.get("4.3.0", "source"), target)


def lines(flow, session_ms=None, **more):
    if session_ms:
        more.update({"heliostat.session.timeout.ms": session_ms, "heliostat.heartbeat.interval.ms": session_ms // 4})
    return flow.config(**more)


def state(h, flow):
    """The state of the flow in one process; None while it is not known."""
    found = h.flow(flow.a, flow.b)
    return found and found["state"]


def written(h):
    """How much log there is by now."""
    return len(h.log.read_text())


def wait_holder(h, flow, since=0, limit=120):
    """Until the log, from `since` on, says that a partition is copied by this process; returns how long that took."""
    began = time.monotonic()
    h.wait(lambda h: re.search(r"relay\.start relay=\"\S+ %s-" % flow.name, h.log.read_text()[since:]), limit, "this process to copy")
    return time.monotonic() - began


def wait_standby(h, flow, limit=120):
    h.wait(lambda h: state(h, flow) == "standby", limit, "this process to stand by")


@contextlib.contextmanager
def two(flow, config, other=None):
    """The first runs the flow, the second stands by."""
    with Heliostat(config) as first:
        wait_holder(first, flow)
        with Heliostat(other or config) as second:
            wait_standby(second, flow)
            yield first, second


def roles(flow, first, second):
    """(the one that copies, the one that stands by), once that is settled."""
    first.wait(lambda _: {state(first, flow), state(second, flow)} == {"copying", "standby"}, what="one to copy and one to stand by")
    return (first, second) if state(first, flow) == "copying" else (second, first)


def never_back(flow):
    """In the order of the log no stored position or pair of a partition is behind an earlier one."""
    seen = {}
    for m in compare.read(flow.target, "mm2-offsets.%s.internal" % flow.a):
        kind, place = json.loads(m.key())
        if kind == "MirrorSourceConnector" and m.value() is not None and place["topic"] == flow.name:
            seen.setdefault(("position", place["partition"]), []).append(json.loads(m.value())["offset"])
    for m in compare.read(flow.target, "mm2-heliostat.%s.internal" % flow.a):
        key = json.loads(m.key())
        if key["kind"] == "pair" and m.value() is not None and key["topic"] == flow.name:
            seen.setdefault(("pair", key["partition"]), []).append(json.loads(m.value())["source"])
    assert seen
    for place, offsets in seen.items():
        assert offsets == sorted(offsets), (place, offsets)


def test_second_process_stands_by(flow):
    """It writes nothing and says so; it takes over a dead one after the session, a stopping one at once."""
    feed.create_topic(flow.source, flow.name, 4)
    producer = feed.Numbered(flow.source, flow.name, 4, rate=1000)
    producer.start()
    with two(flow, lines(flow), lines(flow, **{"heliostat.session.timeout.ms": 60000})) as (first, second):
        code, body = second.get("/readyz")
        assert code == 200 and json.loads(body)["standby"] == ["%s->%s" % (flow.a, flow.b)], body
        status = second.flow(flow.a, flow.b)
        assert status["partitions"] == [] and status["group"] == flow.a + "-mm2", status
        assert status["holder"] == first.status()["instance"], status
        assert second.metrics()['heliostat_flow_standby{source="%s",target="%s"}' % (flow.a, flow.b)] == 1
        assert "flow.standby" in second.log.read_text() and "relay.start" not in second.log.read_text()
        since = written(second)
        first.kill9()
        took = wait_holder(second, flow, since)
        print("\nkill -9 of the holder: the other runs the flow after %.1f s" % took)
        assert 5 < took < most(30), took  # the default session is 10 s, of which up to 3 have passed
        first.restart()
        wait_standby(first, flow)
        since = written(first)
        began = time.monotonic()
        assert second.stop() == 0
        wait_holder(first, flow, since)
        took = time.monotonic() - began
        print("SIGTERM of the holder: the other runs the flow after %.1f s" % took)
        assert took < most(20), took  # its session is 60 s
        counts = producer.stop()
        first.wait_copied(flow.source, [flow.name])
        no_damage(flow, counts)
        never_back(flow)
        assert first.stop() == 0


@QUICK
def test_restart_takes_its_own_place(quick):
    """After kill -9 the same machine's next process waits neither for the session nor for a rebalance."""
    flow = quick
    feed.create_topic(flow.source, flow.name, 2)
    producer = feed.Numbered(flow.source, flow.name, 2, rate=1000)
    producer.start()
    with Heliostat(lines(flow, 60000)) as h:
        wait_holder(h, flow)
        times = []
        for _ in range(5):
            h.kill9()
            since = written(h)
            h.restart()
            times.append(wait_holder(h, flow, since))
        print("\nkill -9 and restart, copying again after %s s" % ", ".join("%.2f" % t for t in times))
        assert max(times) < most(20), times  # the session is 60 s
        counts = producer.stop()
        h.wait_copied(flow.source, [flow.name])
        no_damage(flow, counts)


@pytest.mark.fc("FC-002")
@QUICK
def test_woken_zombie_stores_nothing(quick, full):
    """SIGSTOP of the holder until the other has taken over, then SIGCONT: it drops what it had and stands by."""
    flow, dice = quick, random.Random(5)
    feed.create_topic(flow.source, flow.name, 4)
    producer = feed.Numbered(flow.source, flow.name, 4, rate=8000 if full else 2000)
    producer.start()
    config = lines(flow, 3000, **{flow.b + ".offset.flush.interval.ms": 300})
    with two(flow, config) as pair:
        for _ in range(50 if full else 3):
            time.sleep(dice.random())
            holder, other = roles(flow, *pair)
            holder.child.send_signal(signal.SIGSTOP)
            try:
                other.wait(lambda h: state(h, flow) == "copying", what="the other to take over")
                time.sleep(0.6 * dice.random())
            finally:
                holder.child.send_signal(signal.SIGCONT)
            holder, other = roles(flow, *pair)
        counts = producer.stop()
        holder.wait_copied(flow.source, [flow.name])
        assert other.partitions() == []
        no_damage(flow, counts)
        never_back(flow)
        texts = [h.log.read_text() for h in pair]
        print("%d turns ended by force, %d writers met the fence" % (
            sum(t.count("flow.lost") for t in texts), sum(t.count("INVALID_PRODUCER_EPOCH") for t in texts)))
        assert any("flow.lost" in t for t in texts)
        assert other.stop() == 0 and holder.stop() == 0


@pytest.mark.parametrize("how", [soak(signal.SIGKILL), signal.SIGSTOP], ids=["gone", "hangs"])
def test_coordinator_away_and_back(own_flow, how):
    """The target's only broker is away for longer than the session: nothing is copied twice, and it goes on by itself, soon."""
    flow = own_flow
    feed.create_topic(flow.source, flow.name, 2)
    producer = feed.Numbered(flow.source, flow.name, 2, rate=1000)
    producer.start()
    with two(flow, lines(flow, 6000)) as (first, second):
        flow.clusters[1].kill(1, how)
        first.wait(lambda h: "flow.lost" in h.log.read_text(), what="the end of the session")
        if how == signal.SIGKILL:
            flow.clusters[1].restart()
        else:
            flow.clusters[1].kill(1, signal.SIGCONT)
        began, wall_ms = time.monotonic(), time.time() * 1000

        def runs(h):
            return state(h, flow) == "copying" and h.status()["made_ms"] > wall_ms  # not what it showed before

        first.wait(lambda _: runs(first) or runs(second), what="one of the two to go on")
        took = time.monotonic() - began
        print("\ncopying again %.1f s after the coordinator was back" % took)
        assert took < most(30), took
        counts = producer.stop()  # whichever of the two has the flow by now copies the rest
        first.wait(lambda _: sum(high for _, high in compare.ends(flow.target, flow.remote()).values()) >= sum(counts.values()),
                   240, "the rest to be copied")
        no_damage(flow, counts)
        never_back(flow)


def test_switched_off(flow):
    feed.create_topic(flow.source, flow.name, 1)
    feed.mixed(flow.source, flow.name, 100, 1)
    with Heliostat(lines(flow, heliostat__membership="false")) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.flow(flow.a, flow.b)["group"] is None
        assert h.stop() == 0
