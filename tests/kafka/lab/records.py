"""The records that feeds write: numbered ones, and mixed ones that try every shape a record can have."""
import hashlib
import os
import random

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BIGGEST = 900_000
_SIZES = ((0.10, 0, 0), (0.62, 1, 40), (0.25, 41, 400), (0.0295, 401, 4000))  # the rest is big, up to BIGGEST
_NAMES = ("a", "trace-id", "content-type", "a", "", "ä-ö")


def numbered(run, partition, seq):
    """(key, value, headers) of one numbered record; the value proves itself."""
    head = "%s:%d:%d" % (run, partition, seq)
    digest = hashlib.sha256(head.encode()).hexdigest()[:12]
    return b"p%d" % partition, ("%s:%s" % (head, digest)).encode(), [("seq", b"%d" % seq)]


def parse_numbered(value):
    """(run, partition, seq) of a numbered value; ValueError when a byte of it is wrong."""
    head, _, digest = value.decode().rpartition(":")
    if hashlib.sha256(head.encode()).hexdigest()[:12] != digest:
        raise ValueError("the value does not carry its own digest: %r" % value[:80])
    run, partition, seq = head.split(":")
    return run, int(partition), int(seq)


class Mixed:
    """Endless mixed records from one seed; small most of the time, so that a million of them stay affordable."""

    def __init__(self, seed, big=0.0005):
        self.random = random.Random(seed)
        self.big = big
        text = b"".join(b"%d green apples and %x " % (i % 97, i * 7919) for i in range(60000))
        self.pools = (self.random.randbytes(BIGGEST + 4096), text[:BIGGEST + 4096])

    def bytes(self, size):
        """SIZE bytes, half the time compressible."""
        pool = self.pools[self.random.random() < 0.5]
        start = self.random.randrange(4096)
        return pool[start:start + size]

    def size(self):
        """A size between 0 and BIGGEST."""
        dice = self.random.random()
        if dice < self.big:
            return int(4000 + (BIGGEST - 4000) * self.random.random() ** 2)
        for share, low, high in _SIZES:
            if dice < share:
                return self.random.randint(low, high)
            dice -= share
        return self.random.randint(401, 4000)

    def headers(self):
        """Up to six headers, with names that repeat, empty names, empty values and null values."""
        out = []
        for _ in range(self.random.randint(1, 6)):
            dice = self.random.random()
            value = None if dice < 0.2 else b"" if dice < 0.35 else self.bytes(self.random.randint(1, 24))
            out.append((self.random.choice(_NAMES), value))
        return out

    def next(self):
        """(key, value, headers)."""
        dice = self.random.random()
        key = None if dice < 0.25 else b"" if dice < 0.3 else self.bytes(self.random.randint(1, 16))
        value = None if self.random.random() < 0.08 else self.bytes(self.size())
        headers = self.headers() if self.random.random() < 0.25 else None
        return key, value, headers


def new_run():
    """A short name for one run of a feed."""
    return os.urandom(4).hex()
