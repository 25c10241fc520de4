"""Command line of the lab: clusters that stay up, feeds and comparisons by hand.

    python3 tests/kafka/lab jars [VERSION...]                 fetch Kafka and make class archives
    python3 tests/kafka/lab up --name a --version 4.3 [--port 20100] [--brokers 3] [--prop K=V]...
    python3 tests/kafka/lab list
    python3 tests/kafka/lab kill|restart NAME NODE            SIGKILL one node, start it again
    python3 tests/kafka/lab down NAME...|--all
    python3 tests/kafka/lab feed NAME --topic T [--partitions 4] [--rate 1000] [--total N] [--mixed]
    python3 tests/kafka/lab compare NAME TOPIC NAME TOPIC [--isolation read_committed]

feed and compare need the Python of tools/setup.sh (confluent-kafka); NAME may be a bootstrap address there.
"""
import argparse
import json
import pathlib
import signal
import sys
import time

if not __package__:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    __package__ = "lab"

from lab import cluster, jars, runs  # noqa: E402


def up(a):
    """Starts a cluster that outlives this command."""
    began = time.monotonic()
    c = cluster.Cluster(a.version, brokers=a.brokers, port=a.port, props=dict(p.split("=", 1) for p in a.prop),
                        heap=a.heap, folder=runs.fresh_folder(a.name), keep=True, name=a.name)
    try:
        c.start()
    except BaseException:
        c.stop()
        raise
    state = runs.save(c)
    print(json.dumps({"name": a.name, "version": c.version, "bootstrap": c.bootstrap,
                      "seconds": round(time.monotonic() - began, 1), "nodes": state["nodes"]}))


def down(a):
    """Kills clusters and removes their data."""
    for name in runs.names() if a.all else a.names:
        runs.down(name)


def show(_):
    """One line per cluster."""
    for name in runs.names():
        state = runs.load(name)
        print(json.dumps({"name": name, "version": state.get("version"), "bootstrap": state.get("bootstrap"),
                          "up": {n: bool(runs.running(state, n)) for n in state["nodes"]}}))


def kill(a):
    """SIGKILL for one node."""
    runs.end(runs.running(runs.load(a.name), a.node))


def restart(a):
    """Starts one killed node again."""
    state = runs.load(a.name)
    if runs.running(state, a.node):
        sys.exit("node %s is still running" % a.node)
    count = len([n for n in state["nodes"] if n != "0"])
    c = cluster.Cluster(state["version"], brokers=count, props=state["props"], folder=runs.root() / a.name, keep=True,
                        name=a.name)
    for number, node in state["nodes"].items():
        c.node(int(number)).ports = node["ports"]
    if c.zookeeper:
        time.sleep(3)  # until the session of the killed broker is over
    node = c.node(int(a.node))
    c.spawn(node)
    state["nodes"][a.node] = runs.node(node.child.pid, node.ports)
    runs.write(a.name, state)
    c.until(lambda: cluster.brokers_seen(node.ports["PLAINTEXT"]) >= 1, 90, node)


def address(name):
    """A bootstrap address, given as such or by the name of a cluster that is up."""
    return name if ":" in name else runs.load(name)["bootstrap"]


def feed_topic(a):
    """Writes records until --total or Ctrl-C or SIGTERM."""
    from lab import feed
    bootstrap = address(a.name)
    if not feed.partitions_of(bootstrap, a.topic):
        feed.create_topic(bootstrap, a.topic, a.partitions)
    if a.mixed:
        print("%d records written" % feed.mixed(bootstrap, a.topic, a.total or 10000, a.partitions))
        return
    f = feed.Numbered(bootstrap, a.topic, a.partitions, a.rate, a.total, a.codec)
    signal.signal(signal.SIGTERM, lambda *_: f.ended.set())
    f.start()
    try:
        while f.is_alive():
            f.join(0.2)
    except KeyboardInterrupt:
        pass
    print("%d records written" % sum(f.stop().values()))


def compare_topics(a):
    """Compares two topics; exit code 1 when they differ."""
    from lab import compare
    result = compare.topics(address(a.source), a.source_topic, address(a.target), a.target_topic, a.isolation,
                            with_type=not a.any_timestamp_type)
    print(result)
    sys.exit(0 if result.equal else 1)


def fetch_jars(a):
    """Fills the cache."""
    for version in a.versions or jars.VERSIONS:
        print("%s: %s, class archive %s" % (version, jars.libs(version), jars.archive(version)), flush=True)


def parser():
    """The commands and their options."""
    ap = argparse.ArgumentParser(prog="python3 tests/kafka/lab", description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(required=True, metavar="COMMAND")
    p = sub.add_parser("jars")
    p.set_defaults(run=fetch_jars)
    p.add_argument("versions", nargs="*", metavar="VERSION")
    p = sub.add_parser("up")
    p.set_defaults(run=up)
    p.add_argument("--name", required=True)
    p.add_argument("--version", default="4.3.0")
    p.add_argument("--port", type=int)
    p.add_argument("--brokers", type=int, default=1)
    p.add_argument("--heap", default="256m")
    p.add_argument("--prop", action="append", default=[], metavar="KEY=VALUE")
    p = sub.add_parser("down")
    p.set_defaults(run=down)
    p.add_argument("names", nargs="*", metavar="NAME")
    p.add_argument("--all", action="store_true")
    sub.add_parser("list").set_defaults(run=show)
    for name, function in (("kill", kill), ("restart", restart)):
        p = sub.add_parser(name)
        p.set_defaults(run=function)
        p.add_argument("name")
        p.add_argument("node")
    p = sub.add_parser("feed")
    p.set_defaults(run=feed_topic)
    p.add_argument("name")
    p.add_argument("--topic", required=True)
    p.add_argument("--partitions", type=int, default=4)
    p.add_argument("--rate", type=int, default=1000, help="records per second, 0: as quick as it goes")
    p.add_argument("--total", type=int)
    p.add_argument("--codec", default="lz4")
    p.add_argument("--mixed", action="store_true", help="records of all shapes and codecs")
    p = sub.add_parser("compare")
    p.set_defaults(run=compare_topics)
    for what in ("source", "source_topic", "target", "target_topic"):
        p.add_argument(what)
    p.add_argument("--isolation", default="read_uncommitted")
    p.add_argument("--any-timestamp-type", action="store_true")
    return ap


def main():
    """Runs one command."""
    a = parser().parse_args()
    try:
        a.run(a)
    except (cluster.LabError, RuntimeError) as e:
        sys.exit("lab: %s" % e)


if __name__ == "__main__":
    main()
