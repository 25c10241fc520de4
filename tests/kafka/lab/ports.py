"""Free loopback ports below the ephemeral range, so that no outgoing connection can take one by chance."""
import random
import socket

LOW, HIGH = 20000, 30000
_given = set()


def is_free(port):
    """True when a server could listen on the port now."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def free_port():
    """A free port that this process has not handed out before."""
    for _ in range(2000):
        port = random.randrange(LOW, HIGH)
        if port not in _given and is_free(port):
            _given.add(port)
            return port
    raise RuntimeError("no free port between %d and %d" % (LOW, HIGH))
