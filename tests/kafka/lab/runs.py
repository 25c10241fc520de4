"""Clusters and programs that outlive the command that started them: where they are noted, and how they are ended."""
import json
import os
import shutil
import signal
import sys
import time

from . import cache, procs


def root():
    """The folder of everything that stays up."""
    return cache.root() / "run"


def save(c):
    """Notes a cluster of lab.cluster that was started with keep."""
    nodes = [*c.brokers, *([c.zookeeper] if c.zookeeper else [])]
    state = {"name": c.name, "version": c.version, "bootstrap": c.bootstrap, "cluster_id": c.cluster_id,
             "props": c.props, "nodes": {str(n.id): node(n.child.pid, n.ports) for n in nodes}}
    write(c.name, state)
    return state


def write(name, state):
    """Notes the state of one entry; a reader never sees half of it."""
    path = root() / name / "state.json"
    temp = path.with_suffix(".new")
    temp.write_text(json.dumps(state, indent=1))
    temp.rename(path)


def names():
    """All entries."""
    return sorted(p.parent.name for p in root().glob("*/state.json"))


def load(name):
    """The state of an entry."""
    if name not in names():
        sys.exit("nothing named %s is up; see: python3 tests/kafka/lab list" % name)
    return json.loads((root() / name / "state.json").read_text())


def node(pid, ports=None):
    """The note of one process."""
    return {"pid": pid, "born": procs.born(pid), "ports": ports or {}}


def running(state, number):
    """The pid of a node, or None when it has ended."""
    noted = state["nodes"][number]
    return noted["pid"] if noted["born"] and procs.born(noted["pid"]) == noted["born"] else None


def end(pid):
    """SIGKILL and wait."""
    if pid:
        os.kill(pid, signal.SIGKILL)
        while procs.born(pid):
            time.sleep(0.02)


def down(name):
    """Kills all processes of an entry, brokers before ZooKeeper, and removes its data."""
    state = load(name)
    for number in sorted(state["nodes"], reverse=True):
        end(running(state, number))
    shutil.rmtree(root() / name, ignore_errors=True)


def fresh_folder(name):
    """An empty folder for a new entry; refuses one that is still up."""
    folder = root() / name
    if name in names() and any(running(load(name), n) for n in load(name)["nodes"]):
        sys.exit("%s is already up; stop it with: python3 tests/kafka/lab down %s" % (name, name))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
