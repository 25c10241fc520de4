"""The program under test: starts it with a configuration, asks it over HTTP, stops and kills it."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from confluent_kafka import KafkaException

from . import cluster, compare, ports, procs

TOP = pathlib.Path(__file__).resolve().parents[3]


def binary():
    """$HELIOSTAT_BIN, else the release build."""
    return os.environ.get("HELIOSTAT_BIN") or str(TOP / "build" / "release" / "heliostat")


def as_text(config):
    """A configuration given as text or as a dictionary."""
    return config if isinstance(config, str) else "".join("%s = %s\n" % kv for kv in config.items())


def command(*args, limit=60):
    """Runs a verb of the program to its end: (exit code, standard output, standard error)."""
    done = subprocess.run([binary(), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    return done.returncode, done.stdout, done.stderr


class Heliostat:
    """One `heliostat run`. The HTTP port is chosen freely unless the configuration names one.

        with Heliostat({"clusters": "a, b", ...}) as h:
            h.wait_caught_up()
    """

    def __init__(self, config, args=(), folder=None, keep=False):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="heliostat-run-"))
        self.own_folder = folder is None
        self.conf = self.folder / "mm2.properties"
        self.log = self.folder / "heliostat.log"
        text = as_text(config)
        found = re.search(r"^\s*heliostat\.http\.listen\s*[=:]\s*(\S+)", text, re.M)
        if found:
            self.address = found.group(1)
        else:
            self.address = "127.0.0.1:%d" % ports.free_port()
            text += "\nheliostat.http.listen = %s\n" % self.address
        self.conf.write_text(text)
        self.args, self.keep, self.child = list(args), keep, None

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is not None:
            print("--- end of heliostat's log\n" + cluster.tail(self.log, 6000))
        self.kill9()
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """Starts the program; does not wait for it."""
        if not os.path.exists(binary()):
            raise cluster.LabError("%s is not built: cmake --preset release && cmake --build --preset release" % binary())
        self.child = procs.spawn([binary(), "run", str(self.conf), *self.args], self.log, keep=self.keep)
        return self

    def restart(self):
        """Starts it again after it has ended."""
        return self.start()

    def kill9(self):
        """SIGKILL, and waits for the end."""
        procs.kill(self.child)

    def stop(self, limit=30):
        """SIGTERM; returns the exit code."""
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(limit)
        except subprocess.TimeoutExpired:
            raise cluster.LabError("heliostat does not end within %d s after SIGTERM\n%s" %
                                   (limit, cluster.tail(self.log))) from None

    def running(self):
        """True while the process lives."""
        return self.child is not None and self.child.poll() is None

    def get(self, path, timeout=20):
        """(HTTP status, body)."""
        try:
            with urllib.request.urlopen("http://%s%s" % (self.address, path), timeout=timeout) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def status(self):
        """GET /v1/status."""
        code, body = self.get("/v1/status")
        if code != 200:
            raise cluster.LabError("GET /v1/status: %d %s" % (code, body[:300]))
        return json.loads(body)

    def metrics(self):
        """GET /metrics as {"name{labels}": value}."""
        out = {}
        for line in self.get("/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                out[name] = float(value)
        return out

    def ready(self):
        """(True or False, body of /readyz)."""
        code, body = self.get("/readyz")
        return code == 200, body

    def flow(self, source, target):
        """One flow of the status, None while it is not there."""
        return next((f for f in self.status()["flows"] if (f["source"], f["target"]) == (source, target)), None)

    def partitions(self, topic=None):
        """All partitions of the status, or those of one source topic."""
        return [p for f in self.status()["flows"] for p in f["partitions"] if topic in (None, p["topic"])]

    def wait(self, condition, limit=120, what="the condition"):
        """Until condition(self) is true; the connection being refused counts as not yet."""
        end, last = time.monotonic() + limit, ""
        while True:
            if not self.running():
                raise cluster.LabError("heliostat has ended with %s while waiting for %s\n%s" % (
                    self.child.returncode if self.child else None, what, cluster.tail(self.log)))
            try:
                found = condition(self)
                if found:
                    return found
            except (OSError, ValueError, cluster.LabError, KafkaException) as e:  # a topic may not be there yet
                last = str(e)
            if time.monotonic() > end:
                raise cluster.LabError("waited %d s for %s in vain %s\n%s\n%s" % (
                    limit, what, last, self.brief(), cluster.tail(self.log)))
            time.sleep(0.05)

    def brief(self):
        """The status without the partitions that are well, for messages."""
        try:
            s = self.status()
        except (OSError, ValueError, cluster.LabError) as e:
            return "no status: %s" % e
        for f in s["flows"]:
            f["partitions"] = [p for p in f["partitions"] if p["state"] != "caught-up"][:5]
        return json.dumps(s)[:4000]

    def wait_ready(self, limit=120):
        """Until /readyz says 200."""
        self.wait(lambda h: h.ready()[0], limit, "/readyz")
        return self

    def wait_copied(self, source, topics, limit=240, isolation="read_uncommitted"):
        """Until everything that the source's topics held at this moment is acknowledged by the target."""
        want = {(t, p): high for t in topics for p, (low, high) in compare.ends(source, t, isolation).items() if high > low}

        def done(h):
            have = {(p["topic"], p["partition"]): p["next_offset"] for p in h.partitions()}
            return all((have.get(k) or 0) >= v for k, v in want.items())  # null: not known yet

        self.wait(done, limit, "%d partitions of %s to be copied" % (len(want), ", ".join(topics)[:200]))

    def wait_caught_up(self, total=None, limit=240):
        """Until no flow has any lag; total: and at least this many records were copied since the start."""

        def done(h):
            flows = h.status()["flows"]
            parts = [p for f in flows for p in f["partitions"]]
            moved = sum(p["records"] for p in parts)
            return flows and all(p["lag_records"] == 0 for p in parts) and (moved > 0 if total is None else moved >= total)

        self.wait(done, limit, "lag 0")


def config(source, target, a="a", b="b", topics=".*", **more):
    """The lines of an mm2.properties for one flow a->b between two clusters of the lab, small and quick to react."""
    out = {"clusters": "%s, %s" % (a, b), a + ".bootstrap.servers": source, b + ".bootstrap.servers": target,
           "%s->%s.enabled" % (a, b): "true", "%s->%s.topics" % (a, b): topics,
           "replication.factor": 1, "checkpoints.topic.replication.factor": 1, "heartbeats.topic.replication.factor": 1,
           "offset-syncs.topic.replication.factor": 1, "offset.storage.replication.factor": 1,
           "status.storage.replication.factor": 1, "config.storage.replication.factor": 1,
           "refresh.topics.interval.seconds": 2, "refresh.groups.interval.seconds": 2}
    out.update({k.replace("__", "."): v for k, v in more.items()})
    return out
