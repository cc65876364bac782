#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""fake_server: a PostgreSQL server that is only a protocol: trusts everybody, answers every query
with one canned row. One process serves thousands of connections, so that a proxy's memory per idle
client can be measured where a real server would need as many processes. A statement with "large" in
it has a large answer.

Usage: fake_server.py PORT [primary|standby]   (listens on 127.0.0.1; ends on SIGINT or SIGTERM)
"""

import select
import signal
import socket
import struct
import sys

LARGE_BYTES = 300_000
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
PARAMETERS = {
    "application_name": "", "client_encoding": "UTF8", "DateStyle": "ISO, MDY",
    "default_transaction_read_only": "off", "in_hot_standby": "off", "integer_datetimes": "on",
    "IntervalStyle": "postgres", "is_superuser": "off", "server_encoding": "UTF8",
    "server_version": "15.0", "session_authorization": "bench",
    "standard_conforming_strings": "on", "TimeZone": "UTC",
}
USER = b"bench"
NO_ROW_WORDS = (b"SET", b"RESET", b"DISCARD", b"ABORT", b"BEGIN", b"COMMIT", b"ROLLBACK",
                b"DEALLOCATE", b"UNLISTEN", b"CLOSE")


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


READY = message(b"Z", b"I")
LOGIN_HEAD = message(b"R", struct.pack("!i", 0)) + b"".join(
    message(b"S", name.encode() + b"\0" + value.encode() + b"\0")
    for name, value in PARAMETERS.items())
DESCRIPTION = message(b"T", struct.pack("!h", 1) + b"value\0" +
                      struct.pack("!ihihih", 0, 0, 25, -1, -1, 0))


def row_of(text):
    """The canned answer; probes, and pgpool's questions about the catalogue, need believable ones."""
    low = text.lower()
    if text.rstrip(b"\0").endswith(b" AS bits FROM q"):
        return b"".join(message(b"D", struct.pack("!hi", 2, len(i)) + i + struct.pack("!i", 1) + b"0")
                        for i in (str(n).encode() for n in range(17)))
    if b"rolcanlogin" in low:  # the role, and no reason why it may not log in
        return message(b"D", struct.pack("!hi", 2, len(USER)) + USER + struct.pack("!i", -1))
    if b"version" in low:
        value = b"PostgreSQL 15.0 (fake)"
    elif b"recovery" in low:
        value = b"t" if "standby" in sys.argv[2:] else b"f"
    elif b"large" in low:
        value = b"x" * LARGE_BYTES
    else:
        value = b"1"
    return message(b"D", struct.pack("!hi", 1, len(value)) + value)


def has_rows(text):
    words = text.strip(b" ;\0\n\t").upper().split(None, 1)
    return bool(words) and words[0] not in NO_ROW_WORDS


def tag_of(text):
    words = text.strip(b" ;\0\n\t").upper().split(None, 1)
    return message(b"C", (b"SELECT 1" if has_rows(text) else (words or [b""])[0]) + b"\0")


class Connection:
    """What one peer sent that is not answered yet."""

    def __init__(self, sock, number):
        self.sock, self.number = sock, number
        self.data = b""
        self.started = False
        self.text = b""  # of the last Parse

    def on_data(self, data):
        """Bytes to send back, or None to hang up."""
        self.data += data
        out = b""
        while True:
            head = 0 if not self.started else 1
            if len(self.data) < head + 4:
                return out
            size = struct.unpack_from("!i", self.data, head)[0] + head
            if size < head + 4 or size > 1 << 24:
                return None
            if len(self.data) < size:
                return out
            whole, self.data = self.data[:size], self.data[size:]
            reply = self.on_startup(whole) if head == 0 else self.on_message(whole)
            if reply is None:
                return None
            out += reply

    def on_startup(self, whole):
        code = struct.unpack_from("!i", whole, 4)[0]
        if code in (SSL_REQUEST, GSS_REQUEST):
            return b"N"
        if code == CANCEL_REQUEST:
            return None
        self.started = True
        return LOGIN_HEAD + message(b"K", struct.pack("!ii", self.number, 12345)) + READY

    def on_message(self, whole):
        kind, body = whole[:1], whole[5:]
        if kind == b"X":
            return None
        if kind == b"Q":
            if not has_rows(body):
                return tag_of(body) + READY
            return DESCRIPTION + row_of(body) + tag_of(body) + READY
        if kind == b"P":
            self.text = body.split(b"\0", 2)[1]
            return message(b"1")
        if kind == b"D":
            none = message(b"n")
            about = message(b"t", struct.pack("!h", 0)) if body[:1] == b"S" else b""
            return about + (DESCRIPTION if has_rows(self.text) else none)
        if kind == b"E":
            row = row_of(self.text) if has_rows(self.text) else b""
            return row + tag_of(self.text)
        return {b"B": message(b"2"), b"C": message(b"3"), b"S": READY}.get(kind, b"")


def serve(port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(4096)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    connections, number = {}, 0
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                sock, _ = listener.accept()
                number += 1
                connections[sock.fileno()] = Connection(sock, number)
                poll.register(sock, select.EPOLLIN)
                continue
            conn = connections[fd]
            try:
                data = conn.sock.recv(65536)
                reply = conn.on_data(data) if data else None
                if reply:
                    conn.sock.sendall(reply)  # blocks: who asks for much reads it
            except OSError:
                reply = None
            if reply is None:
                del connections[fd]
                poll.unregister(fd)
                conn.sock.close()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: fake_server.py PORT [primary|standby]")
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, lambda *_: sys.exit(0))
    serve(int(sys.argv[1]))


if __name__ == "__main__":
    main()
