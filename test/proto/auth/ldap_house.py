# SPDX-License-Identifier: PostgreSQL
"""ldap_house: a directory in a few lines: binds and searches, wrong answers, and no answers."""
import socket
import socketserver
import ssl
import threading

START_TLS = b"1.3.6.1.4.1.1466.20037"


def ber(tag: int, body: bytes) -> bytes:
    n = len(body)
    head = bytes([n]) if n < 128 else bytes([0x82]) + n.to_bytes(2, "big")
    return bytes([tag]) + head + body


def read_ber(data: bytes, at: int) -> tuple[int, bytes, int]:
    """Tag, body and where it ends; IndexError when more is needed."""
    tag, first = data[at], data[at + 1]
    at += 2
    if first & 0x80:
        size = first & 0x7F
        first = int.from_bytes(data[at:at + size], "big")
        at += size
    if len(data) < at + first:
        raise IndexError
    return tag, data[at:at + first], at + first


class Directory:
    """`people` maps names (DNs) to passwords; `entries` maps uid to a list of DNs. While `go` is not set
    nothing is answered. With `pair` (a certificate) it speaks TLS: from the first byte, or after the order to
    begin (`starts_later`), and takes no bind before."""

    def __init__(self, people: dict[str, str], entries: dict[str, list[str]] | None = None, pair=None, starts_later=False):
        self.people = people
        self.starts_later = starts_later
        self.tls = None
        if pair is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(pair.cert, pair.key)
        self.entries = entries or {}
        self.filters: list[str] = []
        self.binds: list[str] = []
        self.waiting = 0
        self.counting = threading.Lock()
        self.in_clear = 0
        self.go = threading.Event()
        self.go.set()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    if outer.tls is not None and not outer.starts_later:
                        self.request = outer.tls.wrap_socket(self.request, server_side=True)
                    outer.serve(self.request)
                except (OSError, ssl.SSLError):
                    pass  # who does not trust us goes in the middle of the handshake

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.go.set()
        self.server.shutdown()
        self.server.server_close()

    def serve(self, sock: socket.socket) -> None:
        data = b""
        while True:
            try:
                _, body, end = read_ber(data, 0)
            except IndexError:
                try:
                    more = sock.recv(65536)
                except OSError:
                    return
                if not more:
                    return
                data += more
                continue
            data = data[end:]
            _, number, at = read_ber(body, 0)
            tag, op, _ = read_ber(body, at)
            with self.counting:
                self.waiting += 1
            self.go.wait()
            with self.counting:
                self.waiting -= 1
            if tag == 0x42:
                return
            if tag == 0x77 and START_TLS in op and self.tls is not None:
                sock.sendall(ber(0x30, ber(2, number) + ber(0x78, ber(10, b"\x00") + ber(4, b"") + ber(4, b""))))
                sock = self.tls.wrap_socket(sock, server_side=True)
                continue
            if tag == 0x60 and self.starts_later and not isinstance(sock, ssl.SSLSocket):
                self.in_clear += 1
            for answer in self.answer(tag, op):
                try:
                    sock.sendall(ber(0x30, ber(2, number) + answer))
                except OSError:
                    return

    def answer(self, tag: int, op: bytes) -> list[bytes]:
        if tag == 0x60:
            return [self.bind(op)]
        if tag == 0x63:
            return self.search(op)
        return [ber(0x78, ber(10, b"\x02") + ber(4, b"") + ber(4, b""))]

    def bind(self, op: bytes) -> bytes:
        _, _, at = read_ber(op, 0)
        _, name, at = read_ber(op, at)
        _, password, _ = read_ber(op, at)
        dn = name.decode()
        self.binds.append(dn)
        good = password == b"" or self.people.get(dn, "\0") == password.decode()
        return ber(0x61, ber(10, b"\x00" if good else b"\x31") + ber(4, b"") + ber(4, b""))

    def search(self, op: bytes) -> list[bytes]:
        at = 0
        for _ in range(6):  # base, scope, deref, size, time, types
            _, _, at = read_ber(op, at)
        tag, body, _ = read_ber(op, at)
        value = ""
        if tag == 0xA3:
            _, name, at = read_ber(body, 0)
            _, raw, _ = read_ber(body, at)
            value = raw.decode()
            self.filters.append(f"{name.decode()}={value}")
        found = [ber(0x64, ber(4, dn.encode()) + ber(0x30, b"")) for dn in self.entries.get(value, [])]
        return [*found, ber(0x65, ber(10, b"\x00") + ber(4, b"") + ber(4, b""))]
