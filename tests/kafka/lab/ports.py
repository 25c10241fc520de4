"""Free loopback ports below the ephemeral range, so that no outgoing connection can take one by chance.

A process takes its ports from blocks that it holds a lock on for as long as it lives: a port whose server is not up yet,
or is down for a moment, is not given to a test that runs beside this one.
"""
import fcntl
import random
import socket

from . import cache

LOW, HIGH, BLOCK = 20000, 30000, 50
_locks = []  # the open files of our blocks; a child does not inherit them
_ports = []  # of our blocks, not handed out yet


def is_free(port):
    """True when a server could listen on the port now."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def take_block():
    """Locks a block that no other process has; False when there is none."""
    folder = cache.root() / "ports"
    folder.mkdir(exist_ok=True)
    blocks = list(range(LOW, HIGH, BLOCK))
    random.shuffle(blocks)
    for first in blocks:
        f = open(folder / ("%d.lock" % first), "w")
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            f.close()
            continue
        _locks.append(f)
        _ports.extend(range(first, first + BLOCK))
        return True
    return False


def free_port():
    """A free port that neither this process nor another one has been given."""
    while _ports or take_block():
        port = _ports.pop(0)
        if is_free(port):
            return port
    raise RuntimeError("no free port between %d and %d" % (LOW, HIGH))
