"""Configs of copies follow those of their sources: set, changed, removed; what is refused holds up nothing else."""
import re

import pytest

from conftest import Flow
from lab import feed
from lab.heliostat import Heliostat


def configs(bootstrap, topic):
    """The topic's own settings."""
    return feed.describe(bootstrap, [topic])[topic]["configs"]


def follow(flow, h, **wanted):
    """Waits until the copy's own settings are exactly these ("_" for a dot)."""
    wanted = {k.replace("_", "."): str(v) for k, v in wanted.items()}
    h.wait(lambda h: configs(flow.target, flow.remote()) == wanted, what="configs %s" % wanted)


def test_configs_follow_the_source(flow):
    feed.create_topic(flow.source, flow.name, 2, {"retention.ms": 1000000, "min.insync.replicas": 1})
    with Heliostat(flow.config(sync__topic__configs__interval__seconds=1)) as h:
        h.wait_ready()
        follow(flow, h, retention_ms=1000000)
        feed.set_config(flow.source, flow.name, retention_ms=2000000, cleanup_policy="compact")
        follow(flow, h, retention_ms=2000000, cleanup_policy="compact")
        feed.set_config(flow.source, flow.name, retention_ms=None, compression_type="lz4")
        follow(flow, h, cleanup_policy="compact", compression_type="lz4")
        # What somebody sets at the copy goes, as with MirrorMaker 2, except what is excluded.
        feed.set_config(flow.target, flow.remote(), retention_ms=5, min_insync_replicas=1, compression_type="gzip")
        follow(flow, h, cleanup_policy="compact", compression_type="lz4", min_insync_replicas=1)
        f = h.flow(flow.a, flow.b)
        assert f["configs_altered"] >= 4 and f["configs_differ"] == 0 and f["configs_compared_ms"] > 0, f
        for _ in range(2):
            before = h.flow(flow.a, flow.b)
            h.wait(lambda h: h.flow(flow.a, flow.b)["configs_compared_ms"] > before["configs_compared_ms"], what="another comparison")
        assert h.flow(flow.a, flow.b)["configs_altered"] == before["configs_altered"]  # nothing is sent when nothing differs
        h.wait(lambda h: not h.status()["faults"], what="no faults")
        assert h.stop() == 0


@pytest.mark.parametrize("off", ["sync__topic__configs__enabled", "heliostat__sync__dry__run"])
def test_configs_are_left_alone(flow, off):
    feed.create_topic(flow.source, flow.name, 1, {"retention.ms": 1000000})
    feed.create_topic(flow.target, flow.remote(), 1, {"retention.ms": 7})
    dry = "dry" in off
    with Heliostat(flow.config(sync__topic__configs__interval__seconds=1, **{off: "true" if dry else "false"})) as h:
        h.wait_ready()
        if dry:
            h.wait(lambda h: h.flow(flow.a, flow.b)["configs_differ"] == 1, what="the difference to be told")
            assert re.search(r"config.differs .*config=\"?retention.ms.*was=\"?7\b.*now=\"?1000000", h.log.read_text())
        feed.write(flow.source, flow.name, [(b"k", b"v")])
        h.wait_copied(flow.source, [flow.name])
        assert configs(flow.target, flow.remote()) == {"retention.ms": "7"}
        assert h.flow(flow.a, flow.b)["configs_altered"] == 0
        assert h.stop() == 0


@pytest.mark.fc("FC-027")
def test_a_refused_config_holds_up_no_other(pool, name):
    """Kafka 4 takes no segments below 1 MiB, 3.9 does: neither the topic nor its other configs may wait for that."""
    flow = Flow(name, pool.get("3.9.1", "source"), pool.get("4.3.0", "target"))
    feed.create_topic(flow.source, flow.name, 1, {"segment.bytes": 100000, "retention.ms": 1000000, "cleanup.policy": "compact"})
    feed.write(flow.source, flow.name, [(b"k", b"v")])
    with Heliostat(flow.config(sync__topic__configs__interval__seconds=1)) as h:
        h.wait_ready()
        h.wait_copied(flow.source, [flow.name])
        follow(flow, h, retention_ms=1000000, cleanup_policy="compact")
        h.wait(lambda h: "segment.bytes" in str(h.status()["faults"]), what="the refusal to be shown")
        fault = next(f for f in h.status()["faults"] if f["topic"] == flow.name)
        assert fault["code"] == "INVALID_CONFIG" and "100000" in fault["text"] and "1048576" in fault["text"], fault
        assert h.flow(flow.a, flow.b)["configs_differ"] == 1
        feed.set_config(flow.source, flow.name, retention_ms=3000000)
        follow(flow, h, retention_ms=3000000, cleanup_policy="compact")
        feed.set_config(flow.source, flow.name, segment_bytes=None)
        h.wait(lambda h: not h.status()["faults"], what="the fault to be over")
        assert h.stop() == 0


@pytest.mark.fc("FC-026")
def test_min_insync_replicas_stay_bearable(flow):
    """Who copies min.insync.replicas gets it only as high as the copy has replicas."""
    feed.create_topic(flow.source, flow.name, 1, {"min.insync.replicas": 3, "retention.ms": 1000000})
    feed.create_topic(flow.target, flow.remote(), 1)
    with Heliostat(flow.config(sync__topic__configs__interval__seconds=1, config__properties__exclude="nothing")) as h:
        h.wait_ready()
        h.wait(lambda h: "TOO_FEW_REPLICAS" in str(h.status()["faults"]), what="the refusal to be shown")
        follow(flow, h, retention_ms=1000000)
        assert h.stop() == 0
