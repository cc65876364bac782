# SPDX-License-Identifier: PostgreSQL
"""relay: a wire between pgpool and a server that can be made bad: silent without a goodbye (a black hole), or
slow. One thread per relay."""
import random
import selectors
import socket
import threading

from pgt.wire import Address

CHUNK = 65536
BACKLOG = 200


class Relay:
    """Listens on `host` with the server's own port, so that scripts see the right number."""

    def __init__(self, host: str, server: Address):
        self.address = Address(host, server.port)
        self.server = server
        self.delay_s = 0.0
        self.take = lambda: CHUNK  # bytes at once, asked each time
        self.note = lambda sock, data: None  # told what passes, and from whom
        self.hurt = 0  # connections that are to be reset
        self.open = threading.Event()  # cleared: nothing passes, nothing is closed
        self.open.set()
        self.ending = threading.Event()
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, server.port))
        self.listener.listen(BACKLOG)
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _accept(self) -> None:
        near, _ = self.listener.accept()
        try:
            far = self.server.connect(5)
        except OSError:
            # As a server that is gone: refused, not silent.
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            one.settimeout(10)
            self.selector.register(one, selectors.EVENT_READ, other)

    def _close(self, *socks: socket.socket) -> None:
        for sock in socks:
            try:
                self.selector.unregister(sock)
            except (KeyError, ValueError):
                pass
            sock.close()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        try:
            data = one.recv(self.take())
            if data:
                self.note(one, data)
                other.sendall(data)
                return
        except OSError:
            pass
        self._close(one, other)

    def reset_one(self) -> None:
        """Each end of a connection gets RST."""
        self.hurt += 1

    def _reset(self) -> None:
        self.hurt -= 1
        pairs = [k for k in self.selector.get_map().values() if k.data is not None]
        if pairs:
            key = random.choice(pairs)
            for sock in (key.fileobj, key.data):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self._close(key.fileobj, key.data)

    def _run(self) -> None:
        while not self.ending.is_set():
            if not self.open.wait(0.1):
                continue
            events = self.selector.select(0.1)
            if self.delay_s > 0 and events:
                self.ending.wait(self.delay_s)
            if self.hurt > 0:
                self._reset()
                continue
            for key, _ in events:
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj.fileno() != -1:  # it may have been closed with its other end
                    self._forward(key.fileobj, key.data)

    def close(self) -> None:
        self.ending.set()
        self.open.set()
        self.thread.join(20)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
