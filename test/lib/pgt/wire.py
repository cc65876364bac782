# SPDX-License-Identifier: PostgreSQL
"""wire: a raw client of the frontend/backend protocol.

It sends exactly what it is told, well formed or not, in pieces of any size, and hands back message
by message what arrives. It never blocks for ever: each read has a deadline.
"""
import select
import socket
import struct
from dataclasses import dataclass, field
from typing import Iterable

from pgt import scram, waits

PROTO_3_0 = 196608
PROTO_3_2 = 196610
CANCEL_CODE = 80877102
SSL_CODE = 80877103
GSSENC_CODE = 80877104


class WireTimeout(AssertionError):
    """Nothing arrived in time."""


class WireClosed(Exception):
    """The peer closed the connection."""


@dataclass(frozen=True)
class Msg:
    """One message from the server."""
    type: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """Fields of an ErrorResponse or NoticeResponse."""
        found = {}
        for part in self.body.split(b"\0"):
            if part:
                found[chr(part[0])] = part[1:].decode("utf-8", "replace")
        return found

    @property
    def sqlstate(self) -> str:
        return self.fields.get("C", "")

    @property
    def text(self) -> str:
        return self.fields.get("M", "")

    def row(self) -> list[bytes | None]:
        """Values of a DataRow."""
        values: list[bytes | None] = []
        at = 2
        for _ in range(struct.unpack_from("!H", self.body)[0]):
            size = struct.unpack_from("!i", self.body, at)[0]
            at += 4
            if size < 0:
                values.append(None)
                continue
            values.append(self.body[at:at + size])
            at += size
        return values

    def status(self) -> tuple[str, str]:
        """Name and value of a ParameterStatus."""
        name, value, _ = self.body.split(b"\0", 2)
        return name.decode(), value.decode()


# ---- messages a client sends

def cstr(text: str | bytes) -> bytes:
    return (text.encode() if isinstance(text, str) else text) + b"\0"


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def query(sql: str | bytes) -> bytes:
    return message("Q", cstr(sql))


def parse(sql: str | bytes, name: str = "", types: Iterable[int] = ()) -> bytes:
    oids = list(types)
    return message("P", cstr(name) + cstr(sql) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(params: Iterable[str | bytes | None] = (), portal: str = "", name: str = "",
         formats: Iterable[int] = (), results: Iterable[int] = ()) -> bytes:
    values = list(params)
    fmts, outs = list(formats), list(results)
    body = cstr(portal) + cstr(name) + struct.pack(f"!H{len(fmts)}H", len(fmts), *fmts)
    body += struct.pack("!H", len(values))
    for value in values:
        raw = value.encode() if isinstance(value, str) else value
        body += struct.pack("!i", -1) if raw is None else struct.pack("!i", len(raw)) + raw
    return message("B", body + struct.pack(f"!H{len(outs)}H", len(outs), *outs))


def describe(name: str = "", what: str = "S") -> bytes:
    return message("D", what.encode() + cstr(name))


def close(name: str = "", what: str = "S") -> bytes:
    return message("C", what.encode() + cstr(name))


def execute(portal: str = "", limit: int = 0) -> bytes:
    return message("E", cstr(portal) + struct.pack("!i", limit))


def function_call(oid: int, args: Iterable[bytes | None], formats: Iterable[int] = (1,),
                  result_format: int = 1) -> bytes:
    values, fmts = list(args), list(formats)
    body = struct.pack(f"!IH{len(fmts)}H", oid, len(fmts), *fmts) + struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message("F", body + struct.pack("!H", result_format))


def copy_data(data: bytes) -> bytes:
    return message("d", data)


def copy_fail(text: str) -> bytes:
    return message("f", cstr(text))


SYNC = message("S")
FLUSH = message("H")
COPY_DONE = message("c")
TERMINATE = message("X")


def startup(params: dict[str, str] | list[tuple[str, str]], version: int = PROTO_3_0) -> bytes:
    items = params.items() if isinstance(params, dict) else params
    body = struct.pack("!I", version) + b"".join(cstr(k) + cstr(v) for k, v in items) + b"\0"
    return struct.pack("!I", len(body) + 4) + body


def request_code(code: int) -> bytes:
    return struct.pack("!II", 8, code)


def cancel_request(pid: int, key: bytes) -> bytes:
    return struct.pack("!IIi", 12 + len(key), CANCEL_CODE, pid) + key


def pg(sql: str, params: Iterable[str | bytes | None] = (), limit: int = 0) -> bytes:
    """Parse, Bind, Describe, Execute of the unnamed statement, without Sync."""
    return parse(sql) + bind(params) + describe("", "P") + execute("", limit)


@dataclass
class Address:
    host: str
    port: int

    @property
    def is_unix(self) -> bool:
        return self.host.startswith("/")

    def connect(self, seconds: float = 10.0, rcvbuf: int = 0) -> socket.socket:
        family = socket.AF_UNIX if self.is_unix else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        if rcvbuf:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        sock.settimeout(seconds * waits.SCALE)
        target = f"{self.host}/.s.PGSQL.{self.port}" if self.is_unix else (self.host, self.port)
        sock.connect(target)
        if not self.is_unix:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


@dataclass
class Wire:
    """One connection. `chunk` > 0 sends everything in pieces of that many bytes."""
    address: Address
    chunk: int = 0
    seconds: float = 20.0
    rcvbuf: int = 0
    sock: socket.socket = field(init=False)
    status: dict[str, str] = field(default_factory=dict)
    pid: int = 0
    key: bytes = b""
    inbuf: bytearray = field(default_factory=bytearray)
    eof: bool = False

    def __post_init__(self) -> None:
        self.sock = self.address.connect(self.seconds, self.rcvbuf)
        self.sock.setblocking(False)

    # ---- bytes

    def send(self, *parts: bytes) -> None:
        """Sends all bytes, keeping what arrives meanwhile, so that two full buffers never deadlock."""
        data = memoryview(b"".join(parts))
        while data:
            piece = data[:self.chunk] if self.chunk else data
            # For each piece: byte by byte, much takes long on a busy machine.
            data = data[self._send_some(piece, waits.deadline(self.seconds)):]

    def _send_some(self, piece: memoryview, end: float) -> int:
        while True:
            left = end - waits.now()
            if left <= 0:
                raise WireTimeout("the peer takes no more bytes")
            reads = [] if self.eof else [self.sock]
            readable, writable, _ = select.select(reads, [self.sock], [], left)
            if readable:
                self._receive()
            if writable:
                try:
                    return self.sock.send(piece)
                except BlockingIOError:
                    continue
                except OSError as e:
                    raise WireClosed(str(e)) from e

    def _receive(self) -> None:
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.eof = True
        self.inbuf += data

    def fill(self, count: int, seconds: float | None = None) -> bool:
        """Waits until `count` bytes are in the buffer; False at end of file."""
        end = waits.deadline(self.seconds if seconds is None else seconds)
        while len(self.inbuf) < count:
            if self.eof:
                return False
            left = end - waits.now()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise WireTimeout(f"nothing within {self.seconds if seconds is None else seconds} s; "
                                  f"unread bytes: {bytes(self.inbuf[:40])!r}")
            self._receive()
        return True

    def take(self, count: int, seconds: float | None = None) -> bytes:
        if not self.fill(count, seconds):
            raise WireClosed(f"end of file, {len(self.inbuf)} bytes unread")
        data = bytes(self.inbuf[:count])
        del self.inbuf[:count]
        return data

    # ---- messages

    def read(self, seconds: float | None = None) -> Msg:
        """The next message. WireTimeout, WireClosed."""
        self.fill(5, seconds)
        if len(self.inbuf) < 5:
            raise WireClosed(f"end of file, unread: {bytes(self.inbuf)!r}")
        size = struct.unpack_from("!I", self.inbuf, 1)[0]
        if size < 4:
            raise AssertionError(f"length {size} in message {bytes(self.inbuf[:5])!r}")
        raw = self.take(size + 1, seconds)
        return self._note(Msg(chr(raw[0]), raw[5:]))

    def _note(self, msg: Msg) -> Msg:
        if msg.type == "S":
            name, value = msg.status()
            self.status[name] = value
        elif msg.type == "K":
            self.pid = struct.unpack_from("!i", msg.body)[0]
            self.key = msg.body[4:]
        return msg

    def read_until(self, *kinds: str, seconds: float | None = None) -> list[Msg]:
        """Messages up to and with the first of one of `kinds`."""
        found = [self.read(seconds)]
        while found[-1].type not in kinds:
            found.append(self.read(seconds))
        return found

    def ready(self, count: int = 1, seconds: float | None = None) -> list[Msg]:
        """Messages up to and with the count-th ReadyForQuery."""
        found: list[Msg] = []
        for _ in range(count):
            found += self.read_until("Z", seconds=seconds)
        return found

    def read_eof(self, seconds: float | None = None) -> list[Msg]:
        """What still arrives until the peer closes."""
        found = []
        try:
            while True:
                found.append(self.read(seconds))
        except WireClosed:
            return found

    def read_eof_raw(self, seconds: float | None = None) -> bytes:
        """All bytes until the peer closes, messages or not."""
        while self.fill(len(self.inbuf) + 1, seconds):
            pass
        return bytes(self.inbuf)

    def is_quiet(self, seconds: float) -> bool:
        """True when nothing at all arrives for so long."""
        if self.inbuf or self.eof:
            return False
        readable = select.select([self.sock], [], [], seconds)[0]
        return not readable

    # ---- whole exchanges

    def login(self, user: str = "postgres", database: str = "postgres", password: str = "",
              version: int = PROTO_3_0, **params: str) -> list[Msg]:
        """Startup and authentication up to ReadyForQuery or the error that ends it."""
        self.send(startup({"user": user, "database": database, **params}, version))
        return self.authenticate(user, password)

    def send_startup(self, user: str = "postgres", database: str = "", **params: str) -> None:
        self.send(startup({"user": user, "database": database or user, **params}))

    def authenticate(self, user: str, password: str) -> list[Msg]:
        found = []
        conversation = scram.Conversation(user, password)
        while True:
            msg = self.read()
            found.append(msg)
            if msg.type == "R":
                answer = conversation.answer(msg.body)
                if answer is not None:
                    self.send(message("p", answer))
            elif msg.type in ("Z", "E"):
                return found

    def simple(self, sql: str, seconds: float | None = None) -> list[Msg]:
        self.send(query(sql))
        return self.ready(seconds=seconds)

    def rows(self, sql: str) -> list[list[bytes | None]]:
        found = self.simple(sql)
        errors = [m for m in found if m.type == "E"]
        assert not errors, errors[0].fields
        return [m.row() for m in found if m.type == "D"]

    def value(self, sql: str) -> str:
        raw = self.rows(sql)[0][0]
        return "" if raw is None else raw.decode()

    def half_close(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Closes with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def bye(self) -> None:
        """Terminate and close; never fails."""
        try:
            self.sock.setblocking(False)
            self.sock.send(TERMINATE)
        except OSError:
            pass
        self.sock.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_exc) -> None:
        self.bye()


def cancel(address: Address, pid: int, key: bytes, seconds: float = 20.0) -> bytes:
    """Sends a cancel request on a connection of its own; what the server says (nothing) until it closes."""
    sock = address.connect(seconds)
    with sock:
        sock.sendall(cancel_request(pid, key))
        answer = b""
        while True:
            try:
                data = sock.recv(4096)
            except ConnectionError:
                return answer
            if not data:
                return answer
            answer += data
