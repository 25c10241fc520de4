"""Cluster, calls by route and topic reader against real brokers of four versions."""
import os
import pathlib
import subprocess

import pytest
from confluent_kafka import Producer

from conftest import soak
from lab import feed

TOP = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("releases")


def probe(bootstrap, topic):
    """Runs the probe; its lines as lists of words."""
    program = os.environ.get("HELIOSTAT_PROBE") or str(TOP / "build" / "release" / "tests" / "kafka_probe")
    host, port = bootstrap.split(",")[0].rsplit(":", 1)
    run = subprocess.run([program, host, port, topic], capture_output=True, text=True, timeout=90)
    assert run.returncode == 0, run.stderr
    return [line.split() for line in run.stdout.splitlines()]


def facts(lines, name):
    return [line[1:] for line in lines if line[0] == name]


@pytest.mark.parametrize("version", ["2.8.2", soak("3.9.1"), soak("4.3.0"), "4.4.0"])
def test_cluster_topic_and_group(pool, name, version):
    cluster = pool.get(version, "source")
    lines = probe(cluster.bootstrap, name)
    assert len(facts(lines, "cluster")[0][0]) == 22
    assert facts(lines, "created")[0][0] == "NONE"
    assert [p[:3] for p in facts(lines, "partition")] == [[str(i), "leader", "1"] for i in range(3)]
    assert facts(lines, "config") == [["cleanup.policy", "compact"]]
    assert facts(lines, "group")[0][0] in ("NONE", "GROUP_ID_NOT_FOUND")
    assert facts(lines, "read") == [["0", "OK", "NONE"]]
    assert facts(probe(cluster.bootstrap, name), "created")[0][0] == "TOPIC_ALREADY_EXISTS"


@pytest.mark.parametrize("version", ["2.8.2", "4.3.0"])
def test_reads_what_is_committed(pool, name, version):
    """Every codec; an aborted transaction is skipped, one that stays open is not waited for."""
    bootstrap = pool.get(version, "source").bootstrap
    feed.create_topic(bootstrap, name, 3)
    want = set()
    for i, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        p = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for k in range(20):
            p.produce(name, key="%s-%d" % (codec, k), value="v" * 50, partition=k % 2)
            want.add("%s-%d" % (codec, k))
        assert p.flush(30) == 0
    for end in ("abort", "commit", "open"):
        p = Producer({"bootstrap.servers": bootstrap, "transactional.id": "%s-%s" % (name, end)})
        p.init_transactions(30)
        p.begin_transaction()
        p.produce(name, key=end, value="x", partition=2)
        p.flush(30)
        if end == "abort":
            p.abort_transaction(30)
        elif end == "commit":
            p.commit_transaction(30)
            want.add(end)
    lines = probe(bootstrap, name)
    assert sorted(r[3] for r in facts(lines, "record")) == sorted(want)
    assert facts(lines, "read") == [[str(len(want)), "OK", "NONE"]]
    del p
