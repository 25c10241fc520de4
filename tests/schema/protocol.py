# protocol.py -- a small Kafka client for capture.py: any message from our rows, one blocking socket.
# SPDX-License-Identifier: Apache-2.0
#
# Messages are dictionaries; a field left out takes its default. An implementation apart from the one in C,
# so that what it captures is not shaped by the code under test.
import socket
import struct

NUMBERS = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I",
           "int64": ">q", "float64": ">d"}


def uvarint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def length(n, short, compact):
    """n is -1 for null."""
    return uvarint(n + 1) if compact else struct.pack(">h" if short else ">i", n)


def default(field):
    value = field.get("default", "")
    kind = field["type"]
    if value == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind == "struct":
        return {}
    if kind in NUMBERS:
        return value == "true" if kind == "bool" else int(value or "0", 0)
    return {"string": "", "uuid": bytes(16)}.get(kind, b"")


def encode_value(field, kind, version, compact, value):
    if kind.startswith("[]"):
        out = length(-1 if value is None else len(value), False, compact)
        return out + b"".join(encode_value(field, kind[2:], version, compact, v) for v in value or [])
    if kind == "struct":
        if field["null_since"] >= 0 and not field["type"].startswith("[]"):
            return b"\xff" if value is None else b"\x01" + encode(field["fields"], version, compact, value)
        return encode(field["fields"], version, compact, value)
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    if kind == "uuid":
        return value
    data = value.encode() if isinstance(value, str) else value
    return length(-1 if data is None else len(data), kind == "string", compact) + (data or b"")


def encode(fields, version, compact, message):
    """Tagged fields are sent when the message names them."""
    out, tags = b"", []
    unknown = set(message) - {f["name"] for f in fields}
    assert not unknown, unknown
    for f in fields:
        if not f["since"] <= version <= f["until"]:
            continue
        if f["tag"] < 0:
            out += encode_value(f, f["type"], version, compact, message.get(f["name"], default(f)))
        elif f["name"] in message:
            tags.append((f["tag"], encode_value(f, f["type"], version, compact, message[f["name"]])))
    if compact:
        out += uvarint(len(tags)) + b"".join(uvarint(t) + uvarint(len(v)) + v for t, v in sorted(tags))
    return out


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        assert 0 <= n <= len(self.data) - self.at, "the answer is too short"
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def uvarint(self):
        value = shift = 0
        while True:
            b = self.take(1)[0]
            value |= (b & 0x7f) << shift
            if b < 0x80:
                return value
            shift += 7

    def length(self, short, compact):
        return self.uvarint() - 1 if compact else self.number(">h" if short else ">i")


def decode_value(r, field, kind, version, compact):
    if kind.startswith("[]"):
        n = r.length(False, compact)
        return None if n < 0 else [decode_value(r, field, kind[2:], version, compact) for _ in range(n)]
    if kind == "struct":
        pointer = field["null_since"] >= 0 and not field["type"].startswith("[]")
        if pointer and r.number(">b") < 0:
            return None
        return decode(r, field["fields"], version, compact)
    if kind in NUMBERS:
        return r.number(NUMBERS[kind])
    if kind == "uuid":
        return r.take(16)
    n = r.length(kind == "string", compact)
    data = None if n < 0 else r.take(n)
    return data.decode() if data is not None and kind == "string" else data


def decode(r, fields, version, compact):
    out = {}
    for f in fields:
        if f["since"] <= version <= f["until"] and f["tag"] < 0:
            out[f["name"]] = decode_value(r, f, f["type"], version, compact)
        else:
            out[f["name"]] = default(f)
    for _ in range(r.uvarint() if compact else 0):
        tag, body = r.uvarint(), Reader(r.take(r.uvarint()))
        for f in fields:
            if f["tag"] == tag:
                out[f["name"]] = decode_value(body, f, f["type"], version, compact)
    return out


class Client:
    """One connection to one broker; `versions` is what it offers."""

    def __init__(self, address, apis):
        host, port = address.rsplit(":", 1)
        self.apis = {a["name"]: a for a in apis}
        self.sock = socket.create_connection((host, int(port)), 30)
        self.id = 0
        self.versions = {}
        hello = {"client_software_name": "heliostat", "client_software_version": "0"}
        answer, _, _ = self.call("ApiVersions", hello, 3)
        self.versions = {a["api_key"]: (a["min_version"], a["max_version"]) for a in answer["api_keys"]}

    def newest(self, name):
        """The highest version that the broker and our rows share, or None."""
        api = self.apis[name]
        low, high = self.versions.get(api["key"], (1, 0))
        version = min(high, api["max"])
        return version if version >= max(low, api["min"]) else None

    def receive(self, n):
        data = b""
        while len(data) < n:
            part = self.sock.recv(n - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data

    def call(self, name, message, version=None):
        """Gives the decoded answer, its bytes from the header on, and the version."""
        api = self.apis[name]
        version = self.newest(name) if version is None else version
        compact = version >= api.get("flexible", 1 << 15)
        self.id += 1
        frame = struct.pack(">hhih", api["key"], version, self.id, 2) + b"me" + (b"\0" if compact else b"")
        frame += encode(api["request"], version, compact, message)
        self.sock.sendall(struct.pack(">i", len(frame)) + frame)
        data = self.receive(struct.unpack(">i", self.receive(4))[0])
        r = Reader(data)
        assert r.number(">i") == self.id
        if compact and name != "ApiVersions":
            assert r.uvarint() == 0
        answer = decode(r, api["response"], version, compact)
        assert r.at == len(data), f"{name} v{version}: {len(data) - r.at} bytes are left"
        return answer, data, version
