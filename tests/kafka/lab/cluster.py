"""One real Kafka cluster: KRaft, or ZooKeeper for 2.8, one or more brokers on loopback ports.

    with Cluster("4.3.0", brokers=3) as c:
        c.kill(2); c.restart(2); print(c.bootstrap)

Data lie in a temporary folder that stop() removes. Clusters end by SIGKILL: a clean stop may hang for minutes.
"""
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from . import cache, config, jars, ports, procs

AUTO = "auto"
READY = 300  # seconds until a broker must be ready: they take 6 s, and many times that where tests run side by side
FAST = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true"]


class LabError(RuntimeError):
    """The lab could not do what was asked; the text says why."""


class Node:
    """One process of a cluster: a broker, or ZooKeeper (id 0)."""

    def __init__(self, number, folder):
        self.id = number
        self.folder = folder
        self.ports = {}
        self.conf = folder / ("zoo.cfg" if number == 0 else "server.properties")
        self.out = folder / "out.log"
        self.child = None
        self.stopped = False  # on purpose


def brokers_seen(port, timeout=2.0):
    """Number of brokers in a Metadata answer on a plain port, 0 when there is no answer: a TCP connect is not enough."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout) as s:
            request = struct.pack(">hhih", 3, 1, 1, 3) + b"lab" + struct.pack(">i", 0)
            s.sendall(struct.pack(">i", len(request)) + request)
            head = s.recv(12, socket.MSG_WAITALL)
            return struct.unpack(">iii", head)[2] if len(head) == 12 else 0
    except OSError:
        return 0


class Cluster:
    """version: "4.3.0" or "4.3". port: of the first broker's first listener, else free ports are found.
    props: added to every server.properties. listeners: further ones by name, {"TLS": "SSL"}.
    keep: the processes outlive this one (then folder must be given, and nothing is cleaned up)."""

    def __init__(self, version, brokers=1, port=None, props=None, listeners=None, host="127.0.0.1",
                 heap="256m", jvm=(), archive=AUTO, folder=None, keep=False, name=None):
        self.version = jars.short(version)
        self.name = name or "kafka-" + self.version
        self.libs = jars.libs(self.version)
        self.archive = jars.archive(self.version) if archive == AUTO else archive
        self.heap, self.jvm, self.keep, self.host = heap, list(jvm), keep, host
        self.listeners = {"PLAINTEXT": "PLAINTEXT", **(listeners or {})}
        self.props, self.node_props = dict(props or {}), {}  # of all; of single ones, by their id
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="heliostat-lab-"))
        self.own_folder = folder is None
        self.cluster_id = config.new_id()
        self.zookeeper = Node(0, self.folder / "zk") if jars.uses_zookeeper(self.version) else None
        self.brokers = [Node(i + 1, self.folder / ("n%d" % (i + 1))) for i in range(brokers)]
        self.give_ports(port)

    def told(self):
        """What joined() in another process needs."""
        return {"version": self.version, "name": self.name, "folder": str(self.folder), "ports": [n.ports for n in self.brokers]}

    @classmethod
    def joined(cls, told):
        """A running cluster of another process: to be used, not to be killed."""
        c = cls(told["version"], brokers=len(told["ports"]), name=told["name"], folder=told["folder"])
        for node, places in zip(c.brokers, told["ports"]):
            node.ports = dict(places)
        return c

    def give_ports(self, first):
        """Every port is fixed before the start, so that a restarted node comes back at its old address."""
        if first is not None:
            if not ports.is_free(first):
                raise LabError("port %d is in use: a leftover broker there would mix two clusters; "
                               "stop it or choose another port" % first)
            self.brokers[0].ports["PLAINTEXT"] = first
        if self.zookeeper:
            self.zookeeper.ports["CLIENT"] = ports.free_port()
        for node in self.brokers:
            for name in [*self.listeners, *([] if self.zookeeper else ["CONTROLLER"])]:
                node.ports.setdefault(name, ports.free_port())

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def bootstrap(self):
        """The addresses of all brokers, as clients want them."""
        return self.bootstrap_of("PLAINTEXT")

    def bootstrap_of(self, listener):
        """The same for another listener."""
        return ",".join("%s:%d" % (self.host, n.ports[listener]) for n in self.brokers)

    def start(self, limit=READY):
        """launch() and wait_ready(): to start several clusters at once call the two apart."""
        self.launch()
        self.wait_ready(limit)
        return self

    def launch(self):
        """Writes the files and starts all processes; returns before they are ready."""
        for node in [*([self.zookeeper] if self.zookeeper else []), *self.brokers]:
            node.folder.mkdir(parents=True, exist_ok=True)
        zk_port = self.zookeeper.ports["CLIENT"] if self.zookeeper else None
        if self.zookeeper:
            config.write(self.zookeeper.conf, config.zookeeper(self.folder, zk_port))
            self.spawn(self.zookeeper)
            self.until(lambda: not ports.is_free(zk_port), 30, self.zookeeper)
        for node in self.brokers:
            config.write(node.conf, config.broker(node, self.brokers, self.listeners, self.host, zk_port,
                                                   {**self.props, **self.node_props.get(node.id, {})}))
            if not self.zookeeper:
                self.format(node)
            self.spawn(node)

    def format(self, node):
        """Storage as `kafka-storage format` makes it: made once per release, copied and given new ids here."""
        template = cache.root() / "kafka" / (self.version + ".storage")
        if not template.is_dir():
            with cache.locked("storage-" + self.version):
                if not template.is_dir():
                    make_storage(self, node, template)
        data = node.folder / "data"
        shutil.copytree(template, data)
        config.write(data / "meta.properties", {"version": 1, "cluster.id": self.cluster_id, "node.id": node.id,
                                                "directory.id": config.new_id()})

    def java(self, heap, main, *args, opts=()):
        """The command line for one Java program of this release."""
        share = ["-XX:SharedArchiveFile=%s" % self.archive] if self.archive else []
        return [jars.java(), "-Xms64m", "-Xmx" + heap, *FAST, *share, *opts, "-cp", "%s/*" % self.libs, main, *args]

    def spawn(self, node):
        """Starts the process of a node."""
        for port in node.ports.values():
            if not ports.is_free(port):
                raise LabError("%s: port %d is in use by another process" % (self.name, port))
        if node is self.zookeeper:
            command = self.java("192m", "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(node.conf))
            command = [a for a in command if "SharedArchiveFile" not in a]
        else:
            command = self.java(self.heap, "kafka.Kafka", str(node.conf), opts=self.jvm)
        node.child = procs.spawn(command, node.out, keep=self.keep)
        node.stopped = False

    def wait_ready(self, limit=READY):
        """Until every broker that should be up answers and lists all the others."""
        up = [n for n in self.brokers if not n.stopped]
        for node in up:
            self.until(lambda n=node: brokers_seen(n.ports["PLAINTEXT"]) >= len(up), limit, node)

    def until(self, condition, limit, node):
        """Waits for a condition on a node; a node that has ended, or takes too long, is an error with its log."""
        end = time.monotonic() + limit
        while not condition():
            dead = node.child and node.child.poll() is not None
            if dead or time.monotonic() > end:
                raise LabError("%s node %d %s\n%s" % (self.name, node.id, "has ended" if dead else
                               "is not ready after %d s" % limit, tail(node.out)))
            time.sleep(0.05)

    def node(self, number):
        """The broker with this id; 0 is ZooKeeper."""
        if number == 0 and self.zookeeper:
            return self.zookeeper
        return self.brokers[number - 1]

    def kill(self, number=1, sig=signal.SIGKILL):
        """Sends a signal to one node; SIGKILL (the default) waits for its end, SIGSTOP and SIGCONT do not end it."""
        node = self.node(number)
        if sig in (signal.SIGKILL, signal.SIGTERM):
            node.stopped = True
            node.killed_at = time.monotonic()
        procs.kill(node.child, sig)

    def terminate(self, number=1, limit=30):
        """A clean end of one node by SIGTERM."""
        self.kill(number, signal.SIGTERM)
        try:
            self.node(number).child.wait(limit)
        except subprocess.TimeoutExpired:
            raise LabError("%s node %d does not end after SIGTERM" % (self.name, number)) from None

    def restart(self, number=1, limit=READY):
        """Starts a node that was killed again, on its old data and ports, and waits until it is ready."""
        node = self.node(number)
        if node.child and node.child.poll() is None:
            raise LabError("%s node %d is still running" % (self.name, number))
        if self.zookeeper and number:  # the old session must run out first, else: NodeExists /brokers/ids/1
            time.sleep(max(0.0, node.killed_at + 3 - time.monotonic()))
        self.spawn(node)
        self.wait_ready(limit)

    def heal(self):
        """Brings back what a test that failed has left behind: nodes killed or held."""
        for node in self.brokers:
            if node.child.poll() is None:
                self.kill(node.id, signal.SIGCONT)
            else:
                self.restart(node.id)
        return self

    def stop(self):
        """Kills everything, brokers before ZooKeeper, and removes the data."""
        for node in [*self.brokers, *([self.zookeeper] if self.zookeeper else [])]:
            procs.kill(node.child)
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def make_storage(cluster, node, template):
    """Runs Kafka's own formatter into a new template folder."""
    work = pathlib.Path(tempfile.mkdtemp(prefix=".storage-", dir=template.parent))
    conf = work / "server.properties"
    try:
        props = config.broker(node, cluster.brokers, cluster.listeners, cluster.host, None, {})
        config.write(conf, dict(props, **{"log.dirs": work / "data"}))
        command = cluster.java("96m", "kafka.tools.StorageTool", "format", "-t", cluster.cluster_id, "-c", str(conf))
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode:
            raise LabError("kafka-storage format failed\n%s%s" % (run.stdout[-2000:], run.stderr[-2000:]))
        (work / "data").rename(template)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def tail(path, size=3000):
    """The end of a log file."""
    try:
        return path.read_text(errors="replace")[-size:]
    except OSError:
        return "(no log)"
