# SPDX-License-Identifier: PostgreSQL
"""fake: a scripted PostgreSQL server that can misbehave.

`FakeServer(script)` runs script(conn) in a thread for each connection whose user is not one of the
proxy's own (health checks and catalogue queries get the polite `serve`). The script sees every message
and may answer with any bytes, split, late, or not at all.
"""
import re
import socket
import struct
import threading
from typing import Callable, Iterator

from pgt import procs, waits
from pgt.wire import CANCEL_CODE, GSSENC_CODE, SSL_CODE, Address, cstr, message

STATUS = {"server_version": "15.9", "server_encoding": "UTF8", "client_encoding": "UTF8",
          "DateStyle": "ISO, MDY", "integer_datetimes": "on", "standard_conforming_strings": "on",
          "TimeZone": "UTC", "IntervalStyle": "postgres", "is_superuser": "off",
          "session_authorization": "fake", "application_name": "", "in_hot_standby": "off",
          "default_transaction_read_only": "off"}


class Gone(Exception):
    """The peer closed the connection."""


# ---- messages a server sends

def auth_ok() -> bytes:
    return message("R", struct.pack("!I", 0))


def parameter(name: str, value: str) -> bytes:
    return message("S", cstr(name) + cstr(value))


def key_data(pid: int, key: bytes) -> bytes:
    return message("K", struct.pack("!i", pid) + key)


def ready(status: str = "I") -> bytes:
    return message("Z", status.encode())


def error(sqlstate: str, text: str, severity: str = "ERROR", kind: str = "E") -> bytes:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": text}
    return message(kind, b"".join(k.encode() + cstr(v) for k, v in fields.items()) + b"\0")


def notice(text: str, sqlstate: str = "00000") -> bytes:
    return error(sqlstate, text, "NOTICE", "N")


def notification(pid: int, channel: str, payload: str) -> bytes:
    return message("A", struct.pack("!i", pid) + cstr(channel) + cstr(payload))


def row_description(*names: str) -> bytes:
    body = struct.pack("!H", len(names))
    for name in names:
        body += cstr(name) + struct.pack("!IHIhih", 0, 0, 25, -1, -1, 0)
    return message("T", body)


def data_row(*values: str | bytes | None) -> bytes:
    body = struct.pack("!H", len(values))
    for value in values:
        raw = value.encode() if isinstance(value, str) else value
        body += struct.pack("!i", -1) if raw is None else struct.pack("!i", len(raw)) + raw
    return message("D", body)


def complete(tag: str) -> bytes:
    return message("C", cstr(tag))


def one_row(value: str, name: str = "v") -> bytes:
    return row_description(name) + data_row(value) + complete("SELECT 1")


PARSE_COMPLETE = message("1")
BIND_COMPLETE = message("2")
CLOSE_COMPLETE = message("3")
NO_DATA = message("n")


def _age(sock: socket.socket) -> float:
    """Seconds since the kernel made the connection, on which we have sent nothing yet: our threads may hear of it late."""
    last_data_sent = struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 44)[0]
    return last_data_sent / 1000


class FakeConn:
    """A connection accepted by the fake server."""

    def __init__(self, server: "FakeServer", sock: socket.socket, number: int):
        self.server = server
        self.sock = sock
        self.since = waits.now() - _age(sock)
        self.number = number
        self.pid = 100000 + number
        self.params: dict[str, str] = {}
        self.seen: list[str] = []
        self.tx = "I"

    def send(self, *parts: bytes, chunk: int = 0) -> None:
        data = b"".join(parts)
        step = chunk or len(data) or 1
        try:
            for at in range(0, len(data), step):
                self.sock.sendall(data[at:at + step])
        except OSError as e:
            raise Gone(str(e)) from e

    def take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                piece = self.sock.recv(count - len(data))
            except OSError as e:
                raise Gone(str(e)) from e
            if not piece:
                raise Gone("end of file")
            data += piece
        return data

    def read_startup(self) -> bool:
        """False for a cancel request, which is put into server.cancels."""
        while True:
            size, code = struct.unpack("!II", self.take(8))
            rest = self.take(size - 8)
            if code in (SSL_CODE, GSSENC_CODE):
                self.send(b"N")
                continue
            if code == CANCEL_CODE:
                self.server.cancels.append((struct.unpack_from("!i", rest)[0], rest[4:]))
                self.server.on_cancel()
                return False
            words = rest.split(b"\0")
            self.params = {words[i].decode(): words[i + 1].decode() for i in range(0, len(words) - 2, 2)}
            return True

    def greet(self, key: bytes = b"\1\2\3\4", status: dict[str, str] | None = None) -> None:
        values = {**STATUS, "session_authorization": self.params.get("user", ""), **(status or {})}
        if "application_name" in self.params:
            values["application_name"] = self.params["application_name"]
        self.send(auth_ok(), *(parameter(k, v) for k, v in values.items()),
                  key_data(self.pid, key), ready())

    def read(self) -> tuple[str, bytes]:
        kind, size = struct.unpack("!cI", self.take(5))
        body = self.take(size - 4)
        self.seen.append(kind.decode())
        return kind.decode(), body

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """Until Terminate."""
        while (found := self.read())[0] != "X":
            yield found

    def close(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    # ---- polite answers

    def answer_query(self, sql: str) -> bytes:
        """The reply to a simple query, without ReadyForQuery."""
        word = (re.findall(r"[a-z]+", sql.lower()) or [""])[0]
        if word == "":
            return message("I")
        if word in ("begin", "start"):
            self.tx = "T"
        elif word in ("commit", "end", "rollback", "abort"):
            self.tx = "I"
        if "pg_is_in_recovery" in sql:
            return one_row("f", "pg_is_in_recovery")
        if word in ("select", "show", "values"):
            return one_row("1", "?column?")
        return complete(word.upper())

    def answer(self, kind: str, body: bytes) -> bytes:
        """The polite reply to any message."""
        if kind == "Q":
            return self.answer_query(body[:-1].decode("utf-8", "replace")) + ready(self.tx)
        return {"P": PARSE_COMPLETE, "B": BIND_COMPLETE, "D": NO_DATA, "C": CLOSE_COMPLETE,
                "E": complete("SELECT 0"), "S": ready(self.tx)}.get(kind, b"")


def serve(conn: FakeConn) -> None:
    """Greets, then answers everything politely until Terminate."""
    conn.greet()
    for kind, body in conn.messages():
        conn.send(conn.answer(kind, body))


Script = Callable[[FakeConn], None]


class FakeServer:
    """Listens on a free port, or where it is told; one thread per connection. `user` is whose connections get the script."""

    def __init__(self, script: Script = serve, user: str = "fake", address: Address | None = None):
        self.script = script
        self.user = user
        self.cancels: list[tuple[int, bytes]] = []
        self.on_cancel: Callable[[], object] = lambda: None  # before the connection of one is closed
        self.conns: list[FakeConn] = []
        self.failures: list[BaseException] = []
        self.address = address or Address("127.0.0.1", procs.free_port())
        self.listener = socket.create_server((self.address.host, self.address.port), backlog=128)
        self.threads: list[threading.Thread] = []
        self._spawn(self._accept)

    def _spawn(self, target: Callable, *args) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            conn = FakeConn(self, sock, len(self.conns) + 1)
            self.conns.append(conn)
            self._spawn(self._run, conn)

    def _run(self, conn: FakeConn) -> None:
        try:
            if conn.read_startup():
                script = self.script if conn.params.get("user") == self.user else serve
                script(conn)
        except Gone:
            pass
        except BaseException as e:  # shown by close(): a script's assertion is the test's
            self.failures.append(e)
        finally:
            conn.close()

    def links(self) -> list[FakeConn]:
        """Connections of the scripted user."""
        return [c for c in self.conns if c.params.get("user") == self.user]

    def close(self) -> None:
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for conn in list(self.conns):
            conn.close()
        for thread in self.threads:
            thread.join(5 * waits.SCALE)
        if self.failures:
            raise self.failures[0]
