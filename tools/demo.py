"""The part of ./demo that runs Kafka, the producers and Heliostat, and shows what crosses."""
import argparse
import pathlib
import re
import signal
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests" / "kafka"))

from lab import cache, cluster, compare, feed, heliostat, jars, ports, procs, runs  # noqa: E402

FILE = TOP / "examples" / "demo.properties"
VERSION = "4.3.0"
FEEDS = (("orders", 6, 3000, "lz4"), ("payments", 3, 1000, "zstd"))  # topic, partitions, records per second, codec


def say(step, text):
    """Says what is being done."""
    print("[%d/6] %s" % (step, text) if step else "      " + text, flush=True)


class Demo:
    """All that the demo starts."""

    def __init__(self, keep):
        self.keep = keep
        self.clusters, self.feeds, self.mirror = {}, [], None

    def start_clusters(self):
        """East and west of examples/demo.properties, on the ports that stand there where these are free."""
        wanted = dict(re.findall(r"^(\w+)\.bootstrap\.servers = 127\.0\.0\.1:(\d+)", FILE.read_text(), re.M))
        for alias, port in wanted.items():
            port = int(port) if ports.is_free(int(port)) else None
            c = cluster.Cluster(VERSION, port=port, folder=runs.fresh_folder("demo-" + alias), keep=self.keep,
                                name="demo-" + alias)
            self.clusters[alias] = (c, port is None)
            c.launch()
            runs.save(c)
        for alias, (c, _) in self.clusters.items():
            c.wait_ready()
            say(0, "%s: Kafka %s on %s" % (alias, c.version, c.bootstrap))

    def start_feeds(self):
        """Producers that keep writing, each a process of its own."""
        east = self.clusters["east"][0].bootstrap
        for topic, partitions, rate, codec in FEEDS:
            feed.create_topic(east, topic, partitions)
            folder = runs.fresh_folder("demo-feed-" + topic)
            command = [sys.executable, str(TOP / "tests" / "kafka" / "lab"), "feed", east, "--topic", topic,
                       "--partitions", str(partitions), "--rate", str(rate), "--codec", codec]
            child = procs.spawn(command, folder / "feed.log", keep=self.keep)
            note("demo-feed-" + topic, child.pid)
            self.feeds.append(child)
            say(0, "%s: %d partitions, %d records a second, %s" % (topic, partitions, rate, codec))

    def start_mirror(self):
        """`heliostat run examples/demo.properties`, with --set for ports that were taken."""
        sets = []
        for alias, (c, moved) in self.clusters.items():
            if moved:
                sets += ["--set", "%s.bootstrap.servers=%s" % (alias, c.bootstrap)]
        address = "127.0.0.1:8380"
        if not ports.is_free(8380):
            address = "127.0.0.1:%d" % ports.free_port()
            sets += ["--set", "heliostat.http.listen=" + address]
        folder = runs.fresh_folder("demo-mirror")
        self.mirror = heliostat.Heliostat("", args=sets, folder=folder, keep=self.keep)
        self.mirror.conf, self.mirror.address = FILE, address
        self.mirror.start()
        note("demo-mirror", self.mirror.child.pid)
        say(0, "heliostat run examples/demo.properties %s" % " ".join(sets))
        self.mirror.wait_ready(60)

    def stop_feeds(self):
        """Lets the producers write out what they have, so that both ends can be compared."""
        for child in self.feeds:
            child.send_signal(signal.SIGTERM)
        for child in self.feeds:
            if child.wait(60):
                raise cluster.LabError("a producer could not write all its records: see the log in %s" % runs.root())

    def stop(self):
        """Ends everything and removes its data."""
        if self.mirror and self.mirror.running():
            try:
                self.mirror.stop()
            except cluster.LabError as e:
                print(e)
                self.mirror.kill9()
        for child in self.feeds:
            procs.kill(child)
        for c, _ in self.clusters.values():
            c.stop()
        stop_noted()


def note(name, pid):
    """Notes a process so that ./demo --stop finds it."""
    runs.write(name, {"name": name, "nodes": {"1": runs.node(pid)}})


def stop_noted():
    """Ends what is noted of a demo, the mirror before the producers before the clusters."""
    found = [n for n in runs.names() if n.startswith("demo-")]
    for name in sorted(found, key=lambda n: ("mirror" not in n, "feed" not in n)):
        runs.down(name)
    return found


def rows(status):
    """One row per topic: (name, partitions, records, bytes, lag in records, lag in seconds, states)."""
    topics = {}
    for p in (p for f in status["flows"] for p in f["partitions"]):
        if p["topic"] in {f[0] for f in FEEDS}:
            topics.setdefault((p["topic"], p["target_topic"]), []).append(p)
    for (source, target), parts in sorted(topics.items()):
        yield ("%s -> %s" % (source, target), len(parts), sum(p["records"] for p in parts), sum(p["bytes"] for p in parts),
               sum(max(p["lag_records"], 0) for p in parts), max(max(p["lag_ms"], 0) for p in parts) / 1000,
               ", ".join(sorted({p["state"] for p in parts})))


def table(demo, seconds):
    """The live table; on a terminal it stays in place."""
    terminal, lines = sys.stdout.isatty(), 0
    started = time.monotonic() + 10  # new topics take a moment to have leaders everywhere
    while time.monotonic() < started and sum(1 for row in rows(demo.mirror.status()) if row[2]) < len(FEEDS):
        time.sleep(0.2)
    end, last = time.monotonic() + seconds, time.monotonic()
    before = {name: records for name, _, records, *_ in rows(demo.mirror.status())}
    time.sleep(1)
    while time.monotonic() < end:
        now = time.monotonic()
        out = ["  %-28s %5s %12s %9s %9s %12s  %s" % ("topic", "parts", "records", "lag", "lag s", "records/s", "state")]
        for name, parts, records, _, lag, lag_s, states in rows(demo.mirror.status()):
            rate = (records - before[name]) / (now - last) if name in before else 0.0
            before[name] = records
            out.append("  %-28s %5d %12s %9s %9.1f %12s  %s" % (
                name, parts, format(records, ","), format(lag, ","), lag_s, format(int(rate), ","), states))
        last = now
        if terminal and lines:
            sys.stdout.write("\x1b[%dA" % lines)
        print("\n".join(("\x1b[2K" + line if terminal else line) for line in out), flush=True)
        lines = len(out)
        time.sleep(1 if terminal else 4)


def proof(demo):
    """The one line that counts. True when both ends are equal."""
    east, west = (demo.clusters[a][0].bootstrap for a in ("east", "west"))
    results = []
    for topic, *_ in FEEDS:
        results.append(compare.topics(east, topic, west, "east." + topic))
    parts = [p for f in demo.mirror.status()["flows"] for p in f["partitions"]]
    decoded = sum(p["decoded_batches"] for p in parts if p["topic"] in {f[0] for f in FEEDS})
    relayed = sum(p["relayed_batches"] for p in parts if p["topic"] in {f[0] for f in FEEDS})
    good = all(r.equal for r in results)
    if good:
        print("\nProof: %s records read back from both clusters by librdkafka are equal byte for byte (key, value, headers, "
              "timestamp, order); %s batches relayed, %d decompressed." % (
                  format(sum(r.records for r in results), ","), format(relayed, ","), decoded), flush=True)
    else:
        print("\nNO PROOF: the clusters differ: %s" % "; ".join(str(r) for r in results if not r.equal))
    return good


def run(a):
    """The whole demo; returns the exit code."""
    if any(runs.running(runs.load(n), k) for n in runs.names() if n.startswith("demo-") for k in runs.load(n)["nodes"]):
        sys.exit("A demo is still running. Stop it with: ./demo --stop")
    stop_noted()
    demo = Demo(a.keep)
    good = kept = False
    try:
        say(3, "Kafka %s as jars from Maven, kept in %s" % (VERSION, cache.root()))
        jars.archive(VERSION)
        say(4, "Starting two clusters of one broker each")
        demo.start_clusters()
        say(5, "Starting producers that keep writing to east")
        demo.start_feeds()
        say(6, "Starting Heliostat")
        demo.start_mirror()
        print(flush=True)
        table(demo, a.seconds)
        if a.keep:
            kept = good = True
            how_to_look(demo)
        else:
            print("\nStopping the producers and waiting until all their records have arrived")
            demo.stop_feeds()
            demo.mirror.wait_copied(demo.clusters["east"][0].bootstrap, [f[0] for f in FEEDS])
            good = proof(demo)
    except KeyboardInterrupt:
        print("\nStopped.")
    except (cluster.LabError, RuntimeError, OSError) as e:
        print("\ndemo: a step failed: %s\nIf a port or an old process is in the way: ./demo --stop, then ./demo again." % e)
    finally:
        if not kept:
            print("Stopping all that was started", flush=True)
            demo.stop()
    return 0 if good else 1


def how_to_look(demo):
    """What --keep leaves behind."""
    east, west = (demo.clusters[a][0].bootstrap for a in ("east", "west"))
    print("\n".join((
        "", "All of it keeps running. To look:",
        "  build/release/heliostat status --url http://%s" % demo.mirror.address,
        "  curl http://%s/v1/status        (also /metrics, /readyz, /healthz)" % demo.mirror.address,
        "  kcat -b %s -t east.orders -C -o -5 -e     (west, the target; east is %s)" % (west, east),
        "  tail -f %s" % demo.mirror.log,
        "To stop: ./demo --stop")))


def main():
    """Reads the options."""
    ap = argparse.ArgumentParser(prog="./demo")
    ap.add_argument("--seconds", type=float, default=20)
    ap.add_argument("--keep", action="store_true")
    ap.add_argument("--stop", action="store_true")
    a = ap.parse_args()
    if a.stop:
        found = stop_noted()
        print("Stopped: %s" % ", ".join(found) if found else "Nothing is running.")
        return 0
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, signal.default_int_handler)
    return run(a)


if __name__ == "__main__":
    sys.exit(main())
