"""Kafka's own Java programs: admin tools under the class names of each release, and the real MirrorMaker 2."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from . import cache, cluster, jars, procs

_NEW = "org.apache.kafka.tools."


def tool_class(version, tool):
    """The class of a tool: topics, configs, acls, groups, dump, delete-records, transactions, elections."""
    version = jars.short(version)
    old2 = version.startswith("2.")
    old3 = old2 or version.startswith("3.")
    table = {
        "topics": "kafka.admin.TopicCommand" if old2 else _NEW + "TopicCommand",
        "configs": _NEW + "ConfigCommand" if version.startswith("4.4") else "kafka.admin.ConfigCommand",
        "acls": "kafka.admin.AclCommand" if old3 else _NEW + "AclCommand",
        "groups": "kafka.admin.ConsumerGroupCommand" if old2 else _NEW + "consumer.group.ConsumerGroupCommand",
        "elections": "kafka.admin.LeaderElectionCommand" if old2 else _NEW + "LeaderElectionCommand",
        "reassign": "kafka.admin.ReassignPartitionsCommand" if old2 else _NEW + "reassign.ReassignPartitionsCommand",
        "dump": "kafka.tools.DumpLogSegments" if old3 else _NEW + "DumpLogSegments",
        "delete-records": "kafka.admin.DeleteRecordsCommand" if old2 else _NEW + "DeleteRecordsCommand",
        "transactions": _NEW + "TransactionsCommand",
    }
    return table[tool]


def command(version, main, *args, heap="128m", opts=()):
    """The command line of any class of a release."""
    version = jars.short(version)
    archive = jars.archive_path(version)
    share = ["-XX:SharedArchiveFile=%s" % archive] if archive.exists() else []
    return [jars.java(), "-Xmx" + heap, *cluster.FAST, *share, *opts, "-cp", "%s/*" % jars.libs(version), main, *args]


def run_class(version, main, *args, check=True, limit=120):
    """Runs a class to its end and returns what it printed."""
    done = subprocess.run(command(version, main, *args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=limit)
    if check and done.returncode:
        raise cluster.LabError("%s ended with %d\n%s" % (main, done.returncode, done.stdout[-3000:]))
    return done.stdout


def tool(c, name, *args, **options):
    """Runs a tool against a cluster of the lab."""
    return run_class(c.version, tool_class(c.version, name), "--bootstrap-server", c.bootstrap, *args, **options)


def dump_log(c, topic, partition=0, node=1):
    """DumpLogSegments of the segments of one partition, batch and record lines."""
    folder = c.node(node).folder / "data" / ("%s-%d" % (topic, partition))
    files = ",".join(str(f) for f in sorted(folder.glob("*.log")))
    return run_class(c.version, tool_class(c.version, "dump"), "--deep-iteration", "--files", files)


class MirrorMaker:
    """The real MirrorMaker 2 in dedicated mode."""

    def __init__(self, config, version="4.3.0", heap="512m"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="heliostat-mm2-"))
        self.conf = self.folder / "mm2.properties"
        self.conf.write_text(config)
        self.out = self.folder / "out.log"
        self.command = command(version, "org.apache.kafka.connect.mirror.MirrorMaker", str(self.conf), heap=heap)
        self.child = None

    def __enter__(self):
        self.child = procs.spawn(self.command, self.out)
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """SIGKILL: a clean stop of Connect takes long and changes nothing that tests look at."""
        procs.kill(self.child)
        shutil.rmtree(self.folder, ignore_errors=True)

    def terminate(self, limit=60):
        """A clean end, which writes the last offsets."""
        self.child.terminate()
        self.child.wait(limit)

    def wait(self, condition, limit=240, what="condition"):
        """Until the condition holds while MirrorMaker runs."""
        end = time.monotonic() + limit
        while not condition():
            if self.child.poll() is not None or time.monotonic() > end:
                raise cluster.LabError("MirrorMaker: %s not reached\n%s" % (what, cluster.tail(self.out)))
            time.sleep(0.25)


def compiled(version, program):
    """The folder with the classes of a program of this folder, compiled against the jars of a release."""
    source = pathlib.Path(__file__).parent / (program + ".java")
    mark = hashlib.sha256(source.read_bytes() + str(jars.archive_path(version)).encode()).hexdigest()[:12]
    folder = cache.root() / "kafka" / ("%s-%s" % (program, mark))
    with cache.locked(program):
        if not folder.is_dir():
            work = tempfile.mkdtemp(prefix=".%s-" % program, dir=folder.parent)
            javac = str(pathlib.Path(jars.java()).resolve().parent / "javac")
            done = subprocess.run([javac, "-d", work, "-cp", "%s/*" % jars.libs(version), str(source)],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode:
                raise cluster.LabError("javac %s\n%s" % (source, done.stderr[-3000:]))
            os.rename(work, folder)
    return folder


def topic_lists(names, files, version="4.3.0"):
    """Which of the names MirrorMaker 2's own classes take by each of the files: a set, or the reason why a file is refused."""
    run = command(version, "TopicLists", ",".join(names), *(str(f) for f in files))
    run[run.index("-cp") + 1] += ":%s" % compiled(version, "TopicLists")
    done = subprocess.run(run, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    rows = [line for line in done.stdout.splitlines() if line.startswith("!") or line in ("", *names) or "," in line]
    if done.returncode or len(rows) != len(files):
        raise cluster.LabError("TopicLists ended with %d\n%s" % (done.returncode, (done.stdout + done.stderr)[-3000:]))
    return [row if row.startswith("!") else {n for n in row.split(",") if n} for row in rows]


def mirror_client(bootstrap, alias, group, version="4.3.0"):
    """What Java's MirrorClient and RemoteClusterUtils say of a target cluster."""
    run = command(version, "MirrorCheck", bootstrap, alias, group)
    run[run.index("-cp") + 1] += ":%s" % compiled(version, "MirrorCheck")
    done = subprocess.run(run, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    if done.returncode:
        raise cluster.LabError("MirrorCheck ended with %d\n%s" % (done.returncode, (done.stdout + done.stderr)[-3000:]))
    return json.loads(done.stdout)


def consume(*places, version="4.3.0"):
    """What Java's consumer sees of topics, given as (bootstrap, topic, isolation level): for each of them a list of
    (partition, timestamp type, timestamp, key, value, headers), partition by partition. Bytes are in hex, "-" is null."""
    run = command(version, "Consume", *(word for place in places for word in place))
    run[run.index("-cp") + 1] += ":%s" % compiled(version, "Consume")  # the archive is for what stands before it
    done = subprocess.run(run, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    if done.returncode:
        raise cluster.LabError("Consume ended with %d\n%s" % (done.returncode, done.stderr[-3000:]))
    out = [[] for _ in places]
    for text in done.stdout.splitlines():
        number, partition, kind, stamp, key, value, *headers = text.split(" ")
        out[int(number)].append((int(partition), kind, int(stamp), key, value, headers))
    return out
