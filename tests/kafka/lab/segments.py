"""Log segments built by hand, for what no client produces: batches that compaction has thinned, control batches that nobody
knows, deltas of any size. The broker is down while its log is replaced; it rebuilds its indexes when it starts."""
import gzip
import struct

from . import cluster as clusters

TRANSACTIONAL, CONTROL = 0x10, 0x20
GZIP = 1


def _table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        yield n


_CRC = list(_table())


def crc32c(data):
    """Castagnoli's CRC."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def varint(n):
    """A zig-zag varint of any width."""
    n = n << 1 if n >= 0 else (-n << 1) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def _bytes(value):
    return varint(-1) if value is None else varint(len(value)) + value


def record(delta, time_delta, key, value, headers=()):
    """One record of a batch."""
    body = b"\0" + varint(time_delta) + varint(delta) + _bytes(key) + _bytes(value) + varint(len(headers))
    for name, content in headers:
        body += _bytes(name.encode()) + _bytes(content)
    return varint(len(body)) + body


def batch(base, records, last_delta=None, time_ms=0, max_time_ms=None, attributes=0, producer=-1, epoch=-1, sequence=-1):
    """records: of record(); last_delta: of the batch as it was written first."""
    body = b"".join(records)
    if attributes & 7 == GZIP:
        body = gzip.compress(body)
    last = len(records) - 1 if last_delta is None else last_delta
    tail = struct.pack(">hiqqqhii", attributes, last, time_ms, time_ms if max_time_ms is None else max_time_ms,
                       producer, epoch, sequence, len(records)) + body
    return struct.pack(">qiibI", base, len(tail) + 9, 0, 2, crc32c(tail)) + tail


def marker(base, kind, producer=-1, epoch=-1, time_ms=0):
    """A control batch: kind 0 aborts, 1 commits; others are not about transactions."""
    one = record(0, 0, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    return batch(base, [one], attributes=CONTROL | (TRANSACTIONAL if producer >= 0 else 0), producer=producer, epoch=epoch,
                 time_ms=time_ms)


def replace(cluster, topic, batches, node=1):
    """Puts a log in the place of that of partition 0; the broker is killed for it and started again."""
    folder = cluster.node(node).folder / "data" / (topic + "-0")
    if not folder.is_dir():
        raise clusters.LabError("%s is not there" % folder)
    cluster.kill(node)
    for path in folder.iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot") or path.name == "leader-epoch-checkpoint":
            path.unlink()
    (folder / ("%020d.log" % 0)).write_bytes(b"".join(batches))
    cluster.restart(node)
