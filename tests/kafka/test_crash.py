"""kill -9 of the mirror and of brokers on either side under load; and the clean end."""
import json
import random
import re
import signal
import time

import pytest

from conftest import soak
from lab import compare, feed
from lab.heliostat import Heliostat
from lab.pace import most


def no_damage(flow, counts):
    """Nothing missing, nothing altered, nothing out of order, nothing twice; the figures are printed."""
    result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
    print("\n%s" % result)
    assert result.records == sum(counts.values())
    assert not (result.missing or result.altered or result.foreign), str(result)
    assert not result.disorder, str(result)
    assert not result.repeated, str(result)


@pytest.mark.fc("FC-001")
@pytest.mark.long
def test_kill_and_restart_under_load(flow, full):
    kills = 20 if full else 5
    dice = random.Random(8)
    feed.create_topic(flow.source, flow.name, 8)
    producer = feed.Numbered(flow.source, flow.name, 8, rate=20000 if full else 10000, calm=None if full else 60000)
    producer.start()
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        for _ in range(kills):
            time.sleep(0.4 + 1.6 * dice.random())
            h.kill9()
            time.sleep(0.3 * dice.random())
            h.restart()
        h.wait_ready()
        counts = producer.stop()
        h.wait_copied(flow.source, [flow.name])
        print("\n%d kills, %d records" % (kills, sum(counts.values())))
        no_damage(flow, counts)
        assert h.stop() == 0


def test_kill_at_once_after_the_start(flow):
    """Killed again and again before it could settle."""
    feed.create_topic(flow.source, flow.name, 4)
    feed.mixed(flow.source, flow.name, 5000, 4)
    with Heliostat(flow.config()) as h:
        for wait in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8):
            time.sleep(wait)
            h.kill9()
            h.restart()
        h.wait_copied(flow.source, [flow.name])
        no_damage(flow, {0: 5000})


@pytest.mark.fc("FC-032")
@pytest.mark.parametrize("side", ["source", "target"])
def test_broker_killed_and_restarted(own_flow, side):
    flow = own_flow
    broker = flow.clusters[side == "target"]
    feed.create_topic(flow.source, flow.name, 4)
    producer = feed.Numbered(flow.source, flow.name, 4, rate=1000)
    producer.start()
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        time.sleep(2)
        broker.kill()
        time.sleep(1.5)
        assert h.running() and h.get("/healthz")[0] == 200
        broker.restart()
        time.sleep(2)
        counts = producer.stop()
        h.wait_copied(flow.source, [flow.name])
        no_damage(flow, counts)
        h.wait(lambda h: not h.status()["faults"], what="the faults to be over")
        assert h.stop() == 0


@pytest.mark.fc("FC-046")
@pytest.mark.parametrize("side, how", [soak("source", signal.SIGKILL), ("source", signal.SIGSTOP), soak("target", signal.SIGKILL),
                                       ("target", signal.SIGSTOP)], ids=["source-gone", "source-hangs", "target-gone", "target-hangs"])
def test_sigterm_ends_within_5_s_when_a_cluster_is_away(own_flow, side, how):
    flow = own_flow
    broker = flow.clusters[side == "target"]
    feed.create_topic(flow.source, flow.name, 4)
    producer = feed.Numbered(flow.source, flow.name, 4, rate=1000)
    producer.start()
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        time.sleep(1)
        broker.kill(1, how)
        try:
            time.sleep(1)
            began = time.monotonic()
            code = h.stop()
            took = time.monotonic() - began
        finally:
            if how == signal.SIGSTOP:
                broker.kill(1, signal.SIGCONT)
            else:
                broker.restart()
        want = 1 if side == "target" else 0  # positions cannot be stored while the target is away, and 1 says so
        assert code == want and took < most(5), "exit code %d after %.1f s" % (code, took)
        h.restart()
        counts = producer.stop()
        h.wait_copied(flow.source, [flow.name])
        no_damage(flow, counts)


def test_sigterm_stores_the_positions(flow):
    """After a clean end the last position of each partition stands in mm2-offsets, where MirrorMaker 2 finds it."""
    feed.create_topic(flow.source, flow.name, 3)
    with Heliostat(flow.config()) as h:
        feed.mixed(flow.source, flow.name, 3000, 3)
        h.wait_copied(flow.source, [flow.name])
        began = time.monotonic()
        assert h.stop() == 0
        assert time.monotonic() - began < most(5)
    stored = {}
    for m in compare.read(flow.target, "mm2-offsets.%s.internal" % flow.a, "read_committed"):
        kind, place = json.loads(m.key())
        if kind == "MirrorSourceConnector" and place["topic"] == flow.name:
            stored[place["partition"]] = json.loads(m.value())["offset"]
    assert stored == {p: high - 1 for p, (_, high) in compare.ends(flow.source, flow.name).items()}


def test_sighup_is_ignored(flow):
    feed.create_topic(flow.source, flow.name, 1)
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        h.child.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert h.running() and re.search("SIGHUP|hang-?up|restart to read it again", h.log.read_text(), re.I)
