# SPDX-License-Identifier: PostgreSQL
"""fog: an ethernet whose frames pass through this process (tap devices): it loses and delays them, and lets none pass from one host
to another, in one direction or both. No kernel module for loss and latency is needed."""
import fcntl
import heapq
import os
import random
import selectors
import socket
import struct
import threading

from pgt import ether, lan, waits

IFF_TAP = 2
FRAME = 2048


class Cloud:
    """The switch: what it does to frames is set by the test at any moment. Who is in `clear` is spared."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.taps: dict[int, int] = {}
        self.macs: dict[bytes, int] = {}
        self.cut: set[tuple[int, int]] = set()  # (from, to)
        self.loss = 0.0
        self.delay_s = (0.0, 0.0)
        self.clear: set[int] = set()
        self.late: list[tuple[float, int, int, bytes]] = []
        self.last: dict[tuple[int, int], float] = {}
        self.count = self.lost = self.passed = 0
        self.ending, self.wake = socket.socketpair()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.wake, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self._run, daemon=True)

    def heal(self) -> None:
        self.cut.clear()
        self.loss, self.delay_s = 0.0, (0.0, 0.0)

    def split(self, a: int, b: int) -> None:
        """Neither hears the other."""
        self.cut |= {(a, b), (b, a)}

    def add(self, number: int, tap: int, mac: bytes) -> None:
        self.taps[number], self.macs[mac] = tap, number
        self.selector.register(tap, selectors.EVENT_READ, number)

    def _deliver(self, to: int, frame: bytes) -> None:
        try:
            os.write(self.taps[to], frame)
            self.passed += 1
        except OSError:
            self.lost += 1  # its queue is full, or it is down: a loss like any other

    def _pass(self, source: int, to: int, frame: bytes) -> None:
        is_clear = source in self.clear or to in self.clear
        if (source, to) in self.cut or (not is_clear and self.random.random() < self.loss):
            self.lost += 1
            return
        delay = 0.0 if is_clear else self.random.uniform(*self.delay_s)
        due = max(waits.now() + delay, self.last.get((source, to), 0))  # in order, as on a wire
        if delay == 0 and due <= waits.now():
            self._deliver(to, frame)
            return
        self.last[(source, to)] = due
        self.count += 1
        heapq.heappush(self.late, (due, self.count, to, frame))

    def _take(self, source: int) -> None:
        try:
            frame = os.read(self.taps[source], FRAME)
        except OSError:
            return
        to = self.macs.get(frame[:6])
        for number in self.taps if to is None else (to,):
            if number != source:
                self._pass(source, number, frame)

    def _run(self) -> None:
        while True:
            now = waits.now()
            while self.late and self.late[0][0] <= now:
                _, _, to, frame = heapq.heappop(self.late)
                self._deliver(to, frame)
            wait = max(0.0, self.late[0][0] - now) if self.late else None
            for key, _ in self.selector.select(wait):
                if key.data is None:
                    return
                self._take(key.data)

    def close(self) -> None:
        self.ending.send(b"x")
        self.thread.join(10)
        self.selector.close()
        self.ending.close()
        self.wake.close()
        for tap in self.taps.values():
            os.close(tap)


class FoggyHost(ether.Host):
    """A host whose eth0 ends in a cloud."""

    def __init__(self, cloud: Cloud, number: int):
        self.cloud, self.tap = cloud, -1
        super().__init__(None, number)
        cloud.add(number, self.tap, self.mac)

    def make_wire(self, switch: ether.Space | None) -> None:
        def make() -> None:
            lan._call("setns", self.ns, lan.CLONE_NEWNET)
            self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(self.tap, lan.TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TAP | lan.IFF_NO_PI))
        self.inside(make)


class Fog(ether.Ether):
    """`n` hosts in one cloud."""

    def __init__(self, n: int, seed: int = 0):
        self.hosts = []
        self.cloud = Cloud(seed)
        try:
            for i in range(n):
                self.hosts.append(FoggyHost(self.cloud, i))
        finally:
            self.cloud.thread.start()

    def wire(self, host: ether.Host, is_up: bool) -> None:
        host.run("ip", "link", "set", "eth0", "up" if is_up else "down")

    def close(self) -> None:
        self.cloud.close()
        for host in self.hosts:
            host.close()


def why_not() -> str:
    """Why there cannot be such an ethernet here; "" when there can."""
    reason = ether.why_not()
    if reason:
        return reason
    try:
        Fog(1).close()
    except (OSError, AssertionError) as e:
        return f"tap devices are not permitted here ({e})"
    return ""
