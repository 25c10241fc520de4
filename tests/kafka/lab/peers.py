"""Peers that misbehave: a proxy that cuts connections inside a frame, and servers that do not speak Kafka."""
import socket
import socketserver
import ssl
import subprocess
import threading

from . import ports


class Proxy:
    """Passes bytes between clients and one address. cut() ends all connections after part of what is under way."""

    def __init__(self, target_port):
        self.target_port, self.port = target_port, ports.free_port()
        self.live, self.lock, self.cuts = {}, threading.Lock(), 0
        self.server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        self.cut()

    def accept(self):
        """One pair of threads per connection."""
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            try:
                target = socket.create_connection(("127.0.0.1", self.target_port), 5)
            except OSError:
                client.close()
                continue
            pair = {"sockets": (client, target), "cut": False}
            with self.lock:
                self.live[id(pair)] = pair
            for a, b in ((client, target), (target, client)):
                threading.Thread(target=self.pump, args=(pair, a, b), daemon=True).start()

    def pump(self, pair, a, b):
        """Copies one direction until the end or the cut; at the cut only half of the last piece passes."""
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                if pair["cut"]:
                    b.sendall(data[:max(1, len(data) // 2)])
                    break
                b.sendall(data)
        except OSError:
            pass
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
