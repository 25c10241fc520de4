"""Kafka's own Java programs: admin tools under the class names of each release, and the real MirrorMaker 2."""
import pathlib
import shutil
import subprocess
import tempfile
import time

from . import cluster, jars, procs

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


def consume(c, topic, isolation="read_uncommitted", idle_ms=2500):
    """What Java's console consumer prints of a topic, partition by partition in order; offsets left out."""
    shown = ("timestamp", "key", "partition", "headers")
    options = [x for k in shown for x in ("--formatter-property" if c.version.startswith("4.") else "--property",
                                          "print.%s=true" % k)]
    text = tool_output(c, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", topic, "--from-beginning",
                       "--isolation-level", isolation, "--timeout-ms", str(idle_ms), *options)
    lines = [line for line in text.splitlines() if "\tPartition:" in line]
    return sorted(lines, key=lambda line: line.split("Partition:")[1].split("\t")[0])


def tool_output(c, main, *args):
    """A program whose exit code says nothing: the console consumer ends with an error when it is idle."""
    return run_class(c.version, main, "--bootstrap-server", c.bootstrap, *args, check=False)
