"""Peers that misbehave: a proxy that cuts connections inside a frame, and servers that do not speak Kafka."""
import collections
import queue
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import time

from . import ports


ENDS = 5  # seconds


class Proxy:
    """Passes bytes between clients and one address. cut() ends all connections after part of what is under way; while it
    is closed every connection is refused, while it is held nothing passes and nothing is lost. delay: seconds that every
    byte takes. idle: a connection that was silent for so many seconds swallows all bytes from then on, without a word, and
    is ended by the line when its broker has been silent for ENDS seconds."""

    def __init__(self, target_port, delay=0.0, idle=None):
        self.target_port, self.port = target_port, ports.free_port()
        self.delay, self.idle = delay, idle
        self.live, self.lock, self.cuts, self.swallowed = {}, threading.Lock(), 0, 0
        self.passing, self.closed = threading.Event(), False
        self.passing.set()
        self.server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        self.passing.set()
        self.cut()

    def accept(self):
        """One pair of threads per connection."""
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            if self.closed:
                client.close()
                continue
            try:
                target = self.connect()
                target.settimeout(None if self.idle is None else ENDS)
            except OSError:
                client.close()
                continue
            pair = {"sockets": (client, target), "cut": False, "seen": time.monotonic(), "dead": False}
            with self.lock:
                self.live[id(pair)] = pair
            for a, b in ((client, target), (target, client)):
                threading.Thread(target=self.pump, args=(pair, a, b), daemon=True).start()

    def connect(self):
        """To the address behind the proxy."""
        return socket.create_connection(("127.0.0.1", self.target_port), 5)

    def is_dead(self, pair):
        """True for a connection that the line has forgotten."""
        now = time.monotonic()
        if self.idle is not None and now - pair["seen"] > self.idle and not pair["dead"]:
            pair["dead"] = True
            self.swallowed += 1
        pair["seen"] = now
        return pair["dead"]

    def pump(self, pair, a, b):
        """Copies one direction until the end or the cut; at the cut only half of the last piece passes."""
        late = Late(b, self.delay) if self.delay else None
        try:
            while True:
                data = a.recv(65536)
                self.passing.wait()
                if not data:
                    break
                if self.is_dead(pair):
                    continue
                if pair["cut"]:
                    b.sendall(data[:max(1, len(data) // 2)])
                    break
                (late or b).sendall(data)
        except OSError:
            pass
        if late:
            late.end()
        for s in pair["sockets"]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()
        with self.lock:
            self.live.pop(id(pair), None)

    def cut(self):
        """The next piece of each connection is its last, and only half of it gets through."""
        with self.lock:
            for pair in self.live.values():
                pair["cut"] = True
                self.cuts += 1

    def hold(self):
        """Nothing passes until opened() is called."""
        self.passing.clear()

    def close(self):
        """Ends all connections and refuses new ones until opened() is called."""
        self.closed = True
        with self.lock:
            pairs = list(self.live.values())
        for pair in pairs:
            for s in pair["sockets"]:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def opened(self):
        """As before."""
        self.closed = False
        self.passing.set()


class Requests(Proxy):
    """A proxy that counts what it passes: requests by number of the API, the bytes of the largest of each, and the ids that clients
    give themselves. replace: bytes of requests that become others of the same length. source: the address that the broker sees
    instead of 127.0.0.1."""

    def __init__(self, target_port, replace=(), source="127.0.0.1"):
        self.counts, self.replace, self.source = collections.Counter(), dict(replace), source
        self.largest = collections.Counter()
        self.clients, self.caught, self.hold_back = collections.Counter(), 0, lambda api, body: False
        super().__init__(target_port)

    def catch(self, api, text=b""):
        """Requests of this API that have these bytes wait until let_go(), and what follows them on their connection too."""
        self.caught, self.hold_back = 0, lambda a, body: a == api and text in body

    def let_go(self):
        """What waits goes on."""
        self.hold_back = lambda api, body: False

    def connect(self):
        """From the address that was asked for."""
        return socket.create_connection(("127.0.0.1", self.target_port), 5, (self.source, 0))

    def pump(self, pair, a, b):
        """Requests frame by frame, answers as they are."""
        if a is not pair["sockets"][0]:
            super().pump(pair, a, b)
            return
        try:
            while True:
                head = a.recv(4, socket.MSG_WAITALL)
                body = a.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""
                if len(body) < 10:
                    break
                api, _, _, size = struct.unpack(">hhih", body[:10])
                self.counts[api] += 1
                self.largest[api] = max(self.largest[api], len(body))
                self.clients[api, body[10:10 + max(size, 0)].decode()] += 1
                self.caught += self.hold_back(api, body)
                while self.hold_back(api, body):
                    time.sleep(0.02)
                for old, new in self.replace.items():
                    body = body.replace(old, new)
                b.sendall(head + body)
        except OSError:
            pass
        for s in pair["sockets"]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


class Late:
    """Sends what it is given some time later; bounded, so that a slow reader is felt."""

    def __init__(self, to, delay):
        self.to, self.delay, self.queue = to, delay, queue.Queue(2000)
        threading.Thread(target=self.run, daemon=True).start()

    def sendall(self, data):
        """As of a socket."""
        self.queue.put((time.monotonic() + self.delay, data))

    def end(self):
        """Nothing more comes."""
        self.queue.put((0, None))

    def run(self):
        """The thread."""
        broken = False
        while True:
            due, data = self.queue.get()
            if data is None:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not broken:
                    self.to.sendall(data)
            except OSError:
                broken = True


class Server:
    """A server on a free port that treats every connection with one function."""

    def __init__(self, treat):
        self.connections = 0
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            """One connection."""

            def handle(self):
                outer.connections += 1
                try:
                    treat(self.request)
                except OSError:
                    pass

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self.port = ports.free_port()
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        """host:port."""
        return "127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def http(connection):
    """What a web server says to a Kafka request."""
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n"
                       b"Connection: close\r\n\r\nBad Request")


def absurd(connection):
    """A frame that claims to be two gigabytes long, and a little of it."""
    connection.recv(4096)
    connection.sendall(b"\x7f\xff\xff\xf0" + b"\0" * 4096)
    connection.recv(4096)


def silent(connection):
    """Takes everything and never answers."""
    while connection.recv(65536):
        pass


def tls(folder):
    """The function for a TLS server with a certificate made for the occasion."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def treat(connection):
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(4096)

    return treat
