# SPDX-License-Identifier: PostgreSQL
"""tls: a Wire that speaks TLS, and a fake server that does."""
import socket
import ssl
import struct
from dataclasses import dataclass, field
from pathlib import Path

from pgt import waits
from pgt.certs import Pair
from pgt.fake import FakeConn, FakeServer, Gone, Script, serve
from pgt.wire import CANCEL_CODE, SSL_CODE, TERMINATE, Wire, WireClosed, request_code

ALPN = "postgresql"


def client_context(ca: Path | None = None, pair: Pair | None = None, alpn: tuple[str, ...] = (),
                   version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """Checks the server when `ca` is given; shows `pair`."""
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        ctx.check_hostname = False
        ctx.verify_mode = ssl.CERT_NONE
    else:
        ctx.load_verify_locations(ca)
    if pair is not None:
        ctx.load_cert_chain(pair.cert, pair.key)
    if alpn:
        ctx.set_alpn_protocols(list(alpn))
    if version is not None:
        ctx.minimum_version = ctx.maximum_version = version
    return ctx


@dataclass
class TlsWire(Wire):
    """After SSLRequest, or at once with `direct`. `raw_chunk` > 0 sends the encrypted bytes in pieces of
    that many. A failed handshake is an ssl.SSLError or a WireClosed."""
    ctx: ssl.SSLContext = field(default_factory=client_context)
    direct: bool = False
    raw_chunk: int = 0
    name: str = "localhost"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tls: ssl.SSLObject | None = None
        self.got_goodbye = False
        if not self.direct:
            self.send(request_code(SSL_CODE))
            answer = self.take(1)
            assert answer == b"S", f"answer to SSLRequest: {answer!r}"
        self.begin()

    def begin(self) -> None:
        self.inside = ssl.MemoryBIO()
        self.outside = ssl.MemoryBIO()
        self.tls = self.ctx.wrap_bio(self.inside, self.outside, server_hostname=self.name)
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                if self.eof:
                    raise WireClosed("end of file during the handshake") from None
                self._wait_raw()
            except ssl.SSLError:
                self._flush()
                raise
        self._flush()

    def _wait_raw(self) -> None:
        def arrived() -> bool:
            self._receive_raw()
            return self.inside.pending > 0 or self.eof
        waits.wait_for("the peer goes on with the handshake", arrived, self.seconds)

    def _receive_raw(self) -> None:
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.inside.write(data)
        else:
            self.eof = True

    def _flush(self) -> None:
        data = memoryview(self.outside.read())
        while data:
            piece = data[:self.raw_chunk] if self.raw_chunk else data
            sent = Wire._send_some(self, piece, waits.deadline(self.seconds))
            data = data[sent:]

    def _send_some(self, piece: memoryview, end: float) -> int:
        if self.tls is None:
            return super()._send_some(piece, end)
        sent = self.tls.write(piece[:16384])
        self._flush()
        return sent

    def _receive(self) -> None:
        if self.tls is None:
            super()._receive()
            return
        self._receive_raw()
        try:
            while True:
                data = self.tls.read(1 << 18)
                if not data:
                    self.got_goodbye = self.eof = True
                    return
                self.inbuf += data
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.eof = True

    def bye(self) -> None:
        """Terminate, in TLS; never fails."""
        try:
            if self.tls is not None:
                self.tls.write(TERMINATE)
                self.sock.send(self.outside.read())
        except OSError:
            pass
        self.sock.close()


class TlsFakeServer(FakeServer):
    """Says S to SSLRequest and goes on in TLS; counts what comes in clear. Cancel requests are noted with
    whether they came in TLS (`cancels_in_tls`)."""

    def __init__(self, ctx: ssl.SSLContext, script: Script = serve, user: str = "fake"):
        self.ctx = ctx
        self.cancels_in_tls: list[bool] = []
        self.in_clear = 0
        self.errors: list[str] = []
        super().__init__(script, user)

    def _run(self, conn: FakeConn) -> None:
        try:
            size, code = struct.unpack("!II", conn.take(8))
            if code == SSL_CODE:
                conn.send(b"S")
                conn.sock = self.ctx.wrap_socket(conn.sock, server_side=True)
                if self._is_cancel(conn):
                    return
                (self.script if conn.params.get("user") == self.user else serve)(conn)
            elif code == CANCEL_CODE:
                self._note_cancel(conn.take(size - 8), False)
            else:
                self.in_clear += 1
        except (ssl.SSLError, OSError) as e:
            self.errors.append(str(e))
        except Gone:
            pass
        except BaseException as e:
            self.failures.append(e)
        finally:
            conn.close()

    def _note_cancel(self, rest: bytes, in_tls: bool) -> None:
        self.cancels.append((struct.unpack_from("!i", rest)[0], rest[4:]))
        self.cancels_in_tls.append(in_tls)

    def _is_cancel(self, conn: FakeConn) -> bool:
        size, code = struct.unpack("!II", conn.take(8))
        rest = conn.take(size - 8)
        if code == CANCEL_CODE:
            self._note_cancel(rest, True)
            return True
        words = rest.split(b"\0")
        conn.params = {words[i].decode(): words[i + 1].decode() for i in range(0, len(words) - 2, 2)}
        return False


def server_context(pair: Pair) -> ssl.SSLContext:
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(pair.cert, pair.key)
    return ctx


def shown_cert(address, ca: Path | None = None) -> bytes:
    """The certificate (DER) that the server shows to a new connection."""
    with TlsWire(address, ctx=client_context(ca)) as w:
        assert w.tls is not None
        der = w.tls.getpeercert(True)
        assert der is not None
        return der


def der_of(pair: Pair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.cert.read_text(encoding="ascii"))


def tls_socket(address, ctx: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """A blocking TLS socket: for tests with more sockets than select() can watch."""
    return (ctx or client_context()).wrap_socket(half_open(address), server_hostname="localhost")


def half_open(address, data: bytes = b"") -> socket.socket:
    """SSLRequest, the S, `data`, and then nothing."""
    sock = address.connect()
    sock.sendall(request_code(SSL_CODE))
    assert sock.recv(1) == b"S"
    if data:
        sock.sendall(data)
    return sock
