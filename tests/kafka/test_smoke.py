"""The main thing: live records cross between two clusters, and the program says so by HTTP and on the command line."""
import json
import re
import time

import pytest

from lab import compare, feed, heliostat
from lab.heliostat import Heliostat

STATES = {"idle", "starting", "copying", "caught-up", "retrying", "halted", "paused"}


def test_live_data_crosses(build, flow):
    feed.create_topic(flow.source, flow.name, 4)
    producer = feed.Numbered(flow.source, flow.name, 4, rate=1000)
    producer.start()
    with Heliostat(flow.config()) as h:
        h.wait_ready()
        time.sleep(4)
        counts = producer.stop()
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == sum(counts.values()), str(result)
        check_status(h, flow)
        check_command_line(h, flow)
        check_metrics(h)
        assert h.stop() == 0


def check_status(h, flow):
    """The answer of /v1/status has the members that scripts may rely on, and true figures."""
    h.wait_caught_up()
    status = h.status()
    assert status["version"] and status["instance"] and status["start_time_ms"] > 1600000000000
    one = h.flow(flow.a, flow.b)
    assert one["delivery"] == "exactly-once" and one["lag_records"] == 0 and one["faults"] == 0
    parts = h.partitions(flow.name)
    assert sorted(p["partition"] for p in parts) == [0, 1, 2, 3]
    ends = compare.ends(flow.source, flow.name)
    for p in parts:
        assert p["target_topic"] == flow.remote() and p["state"] in STATES and p["fault"] is None
        assert p["next_offset"] == p["source_end"] == p["target_end"] == ends[p["partition"]][1] == p["records"]
        assert p["relayed_batches"] + p["coalesced_batches"] > 0 and p["decoded_batches"] == 0 and p["lag_records"] == 0 and p["bytes"] > 0
    assert {c["alias"] for c in status["clusters"]} >= {flow.a, flow.b}
    assert all(c["cluster_id"] and c["brokers"] for c in status["clusters"])
    assert status["faults"] == [] and status["losses"] == []
    assert h.get("/healthz")[0] == 200 and h.get("/nothing")[0] == 404


def check_metrics(h):
    """Prometheus text in which every sample has a help line and a type."""
    text = h.get("/metrics")[1]
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    assert families == set(re.findall(r"^# HELP (\w+) ", text, re.M)) and "heliostat_ready" in families
    for name in h.metrics():
        base = name.partition("{")[0]
        assert base in families or re.sub("_(total|count|sum|bucket)$", "", base) in families, name


def check_command_line(h, flow):
    """`status` shows the same, as a table and as JSON; `version` names itself."""
    url = "http://" + h.address
    code, table, error = heliostat.command("status", "--url", url)
    assert code == 0 and flow.name in table, error
    code, text, _ = heliostat.command("status", "--url", url, "--json")
    assert code == 0 and json.loads(text)["flows"]
    code, text, _ = heliostat.command("version")
    assert code == 0 and "heliostat" in text.lower()


def test_status_without_a_daemon_is_exit_code_3():
    code, _, error = heliostat.command("status", "--url", "http://127.0.0.1:1")
    assert code == 3 and error.startswith("heliostat:") and error.count("\n") == 1


def test_usage_errors_are_exit_code_2(tmp_path):
    for args in (("nonsense",), ("run",), ("check", str(tmp_path / "absent.properties")), ("run", "--nonsense", "x")):
        code, _, error = heliostat.command(*args)
        assert code == 2 and (error.startswith("heliostat:") or "absent.properties:" in error), (args, code, error)


def test_a_restart_continues_where_it_was(flow):
    feed.create_topic(flow.source, flow.name, 3)
    feed.mixed(flow.source, flow.name, 2000, 3)
    with Heliostat(flow.config()) as h:
        h.wait_copied(flow.source, [flow.name])
        assert h.stop() == 0
        feed.mixed(flow.source, flow.name, 2000, 3, seed=2)
        h.restart()
        h.wait_copied(flow.source, [flow.name])
        result = compare.topics(flow.source, flow.name, flow.target, flow.remote())
        assert result.equal and result.records == 4000, str(result)
        assert sum(p["records"] for p in h.partitions(flow.name)) == 2000
