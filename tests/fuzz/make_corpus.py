#!/usr/bin/env python3
# make_corpus.py -- makes the seeds of fuzz_batch, fuzz_compress, fuzz_record_path and fuzz_formats.
# SPDX-License-Identifier: Apache-2.0
#
#     tests/fuzz/make_corpus.py       from tests/data: batches of Java's library, records of MirrorMaker 2
import gzip
import json
import pathlib
import struct
import zlib

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def save(target, name, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def varint(n, bits=32):
    z = ((n << 1) ^ (n >> (bits - 1))) & ((1 << bits) - 1)
    out = b""
    while z > 0x7f:
        out += bytes([z & 0x7f | 0x80])
        z >>= 7
    return out + bytes([z])


def counted(b):
    return varint(-1) if b is None else varint(len(b)) + b


def record(offset, time, key, value, headers=()):
    body = b"\0" + varint(time, 64) + varint(offset) + counted(key) + counted(value) + varint(len(headers))
    for k, v in headers:
        body += counted(k) + counted(v)
    return varint(len(body)) + body


def header(payload, attributes, last_delta, count, magic=2, base=1000):
    inner = struct.pack(">hiqqqhii", attributes, last_delta, 1700000000000, 1700000000009, 7, 1, 5, count)
    return struct.pack(">qiibI", base, 49 + len(payload), 3, magic, 0) + inner


def message(magic, attributes, offset, key, value):
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", 1600000000000) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def areas():
    dense = [record(i, i * 3, b"k%d" % i, b"v" * i) for i in range(9)]
    yield "dense", dense, 9, 8
    holes = [record(i * i, -i, b"k", None if i % 2 else b"value") for i in range(9)]
    yield "holes", holes, 9, 70
    full = [record(0, 0, None, b"", [(b"h", b"x"), (b"", None)]), record(5, 1 << 40, b"", None)]
    yield "headers", full, 2, 5
    yield "shortest", [record(i, 0, None, None) for i in range(30)], 30, 29
    yield "empty", [], 0, 4


def batches():
    for codec in CODECS:
        data = (DATA / "batches" / f"java-{codec}.bin").read_bytes()
        if codec != "none":
            save("fuzz_batch", f"java-{codec}", data)
            save("fuzz_compress", f"java-{codec}", bytes([CODECS.index(codec)]) + data[61:])
            save("fuzz_record_path", f"java-{codec}",
                 struct.pack(">BHHHHHB", 0x80 | CODECS.index(codec), 200, 199, 20, 3, 700, 0) + data[61:])
    save("fuzz_compress", "none", b"\0plain bytes")
    save("fuzz_compress", "gzip-twice", b"\1" + gzip.compress(b"ab" * 40, mtime=0) * 2)
    save("fuzz_compress", "snappy-raw", b"\2" + b"\x05\x10hello")
    save("fuzz_compress", "unknown", b"\5abc")
    for name, records, count, last in areas():
        payload = b"".join(records)
        save("fuzz_batch", f"area-{name}", header(payload, 0, last, count) + payload)
        for codec in range(5):
            choice = struct.pack(">BHHHHHB", codec | (8 if codec % 2 else 0), count, last, codec * 2, codec % 3,
                                 80 if codec in (0, 3) else 0, codec % 2)
            save("fuzz_record_path", f"{name}-{CODECS[codec]}", choice + payload)
    a = header(b"", 0, 4, 0)
    two = b"".join(record(i, 0, b"a", b"b") for i in range(2))
    save("fuzz_batch", "several", a + header(two, 0x10, 1, 2) + two + a + a[:40])
    for magic in (0, 1):
        inner = b"".join(message(magic, 0, i if magic else 100 + i, b"k%d" % i, None if i == 1 else b"value") for i in range(3))
        save("fuzz_batch", f"messages-v{magic}", inner)
        save("fuzz_batch", f"wrapper-v{magic}", message(magic, 1, 102, None, gzip.compress(inner, mtime=0)) + a)
        for codec in range(4):
            choice = struct.pack(">BHHHHHB", codec, 3, 40, 2 * codec, 0, 0 if codec else 90, 2 | magic << 2)
            save("fuzz_record_path", f"wrapper-v{magic}-{CODECS[codec]}",
                 choice + b"".join(message(magic, 0, i if magic else 70038 + i, b"k", b"value") for i in range(3)))
    save("fuzz_batch", "legacy", struct.pack(">qiIbbii", 5, 14, 0, 0, 0, -1, -1) + header(b"x", 0, 0, 1, magic=3) + b"x")


def formats():
    for path in sorted((DATA / "golden").glob("*.jsonl")):
        seen = set()
        for line in path.read_text().splitlines():
            row = json.loads(line)
            key, value = bytes.fromhex(row["key_hex"]), bytes.fromhex(row["value_hex"] or "")
            kind = key[:12]
            if kind not in seen and len(seen) < 3:
                save("fuzz_formats", f"{path.stem}-{len(seen)}", bytes([len(key)]) + key + value)
                seen.add(kind)
    odd = ['["x",{"topic":"t\\ud83d\\ude00\\u0000\\n","more":[1,{}],"partition":1,"cluster":"\u00e9"}]', "null", "{}"]
    for i, text in enumerate(odd):
        key = text.encode()
        save("fuzz_formats", f"odd-{i}", bytes([len(key)]) + key + b'{"offset":-1,"x":null}')


batches()
formats()
