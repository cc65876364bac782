# SPDX-License-Identifier: PostgreSQL
"""lan: hosts of the test's own, each a network namespace, and the wire between them: a switch that can lose
packets, delay them, and cut any two hosts off from each other without a word. The packets pass through this
process (tun devices), so that no kernel module for loss and latency is needed."""
import ctypes
import fcntl
import heapq
import json
import os
import random
import selectors
import shutil
import socket
import struct
import subprocess
import threading
import time

from pgt import procs

NET = "198.18"  # for benchmarks of networks: nobody routes it
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
MTU = 16000
PACKET = 65536
OUTSIDE = 0  # this test, and pgpool


def why_not() -> str:
    """Why there cannot be such hosts here; "" when there can."""
    if not procs.IS_ROOT:
        return "network namespaces need root"
    for program in ("ip", "nsenter", "setpriv"):
        if shutil.which(program) is None:
            return f"network namespaces need the program {program}"
    try:
        lan = Lan(0)
    except (OSError, AssertionError) as e:
        return f"network namespaces with tun devices are not permitted here ({e})"
    lan.close()
    return ""


def _call(name: str, *args: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _tun(name: str) -> int:
    """A tun device of the namespace that the calling thread is in."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError:
        os.close(fd)
        raise
    return fd


class Host:
    """A namespace, entered by `enter` in front of a command; host 0 is where we are."""

    def __init__(self, number: int, net: str):
        self.number, self.address = number, f"{net}.{number + 1}"
        self.ns, self.tun = -1, -1
        failed: list[OSError] = []

        def make() -> None:
            try:
                if number != OUTSIDE:
                    _call("unshare", CLONE_NEWNET)
                    self.ns = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
                self.tun = _tun(f"pgt{os.getpid()}" if number == OUTSIDE else "pgt")
            except OSError as e:
                failed.append(e)
        thread = threading.Thread(target=make)  # threads have namespaces of their own
        thread.start()
        thread.join()
        if failed:
            self.close()
            raise failed[0]
        device = f"pgt{os.getpid()}" if number == OUTSIDE else "pgt"
        for command in (["ip", "link", "set", "lo", "up"], ["ip", "addr", "add", f"{self.address}/24", "dev", device],
                        ["ip", "link", "set", device, "mtu", str(MTU), "up"]):
            if number != OUTSIDE or "lo" not in command:
                procs.run([*self.enter(), *command])

    def enter(self) -> list[str]:
        return [] if self.number == OUTSIDE else ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.ns}"]

    def enter_as(self, user: str) -> list[str]:
        return [*self.enter(), "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]

    def close(self) -> None:
        for fd in (self.tun, self.ns):
            if fd != -1:
                os.close(fd)
        self.tun = self.ns = -1


class Lan:
    """`n` hosts and ours, and the switch."""

    def __init__(self, n: int, seed: int = 0):
        self.net = f"{NET}.{os.getpid() % 250 + 1}"
        self.hosts: list[Host] = []
        self.random = random.Random(seed)
        self.cut: set[frozenset[int]] = set()  # pairs between which nothing passes
        self.loss: dict[int, float] = {}       # of a host's packets, in both directions
        self.delay_s: dict[int, float] = {}
        self.late: list[tuple[float, int, int, bytes]] = []
        self.count = self.lost = 0
        self.ending, self.wake = socket.socketpair()
        try:
            for i in range(n + 1):
                self.hosts.append(Host(i, self.net))
        except BaseException:
            self._close_hosts()
            raise
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # ---- what is done to the wire

    def hole(self, host: int) -> None:
        """Nothing reaches the host or comes from it; nothing is refused."""
        self.cut |= {frozenset((host, h.number)) for h in self.hosts if h.number != host}

    def split(self, a: int, b: int) -> None:
        self.cut.add(frozenset((a, b)))

    def heal(self) -> None:
        self.cut.clear()
        self.loss.clear()
        self.delay_s.clear()

    # ---- the switch

    def _deliver(self, to: int, packet: bytes) -> None:
        try:
            os.write(self.hosts[to].tun, packet)
        except OSError:
            self.lost += 1  # its queue is full: a loss like any other

    def _pass(self, source: int, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or packet[16:19] != socket.inet_aton(self.hosts[0].address)[:3]:
            return
        to = packet[19] - 1
        if not 0 <= to < len(self.hosts) or to == source:
            return
        rate = self.loss.get(source, 0) + self.loss.get(to, 0)
        if frozenset((source, to)) in self.cut or (rate > 0 and self.random.random() < rate):
            self.lost += 1
            return
        delay = self.delay_s.get(source, 0) + self.delay_s.get(to, 0)
        if delay > 0:
            self.count += 1
            heapq.heappush(self.late, (time.monotonic() + delay, self.count, to, packet))
        else:
            self._deliver(to, packet)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.wake, selectors.EVENT_READ, None)
            for host in self.hosts:
                selector.register(host.tun, selectors.EVENT_READ, host.number)
            while True:
                now = time.monotonic()
                while self.late and self.late[0][0] <= now:
                    _, _, to, packet = heapq.heappop(self.late)
                    self._deliver(to, packet)
                wait = max(0.0, self.late[0][0] - now) if self.late else None
                for key, _ in selector.select(wait):
                    if key.data is None:
                        return
                    try:
                        self._pass(key.data, os.read(key.fd, PACKET))
                    except BlockingIOError:
                        pass

    def _close_hosts(self) -> None:
        for host in self.hosts:
            host.close()
        self.ending.close()
        self.wake.close()

    def close(self) -> None:
        self.ending.send(b"x")
        self.thread.join(10)
        self._close_hosts()


class Shell:
    """What ssh is to scripts: runs commands on the hosts as `user`, asked through a socket by a small program."""

    CLIENT = """#!{python}
import json, os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect({path!r})
whole = dict(host=sys.argv[1].split("@")[-1], command=" ".join(sys.argv[2:]), input=sys.stdin.read(),
             env={{k: v for k, v in os.environ.items() if k.startswith(("PG", "PATH"))}})
sock.sendall(json.dumps(whole).encode())
sock.shutdown(socket.SHUT_WR)
done = json.loads(b"".join(iter(lambda: sock.recv(65536), b"")))
sys.stdout.write(done["output"])
sys.exit(done["status"])
"""

    def __init__(self, lan: Lan, user: str):
        self.lan, self.user = lan, user
        home = procs.folder("shell", user)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(home / "sock"))
        (home / "sock").chmod(0o777)
        self.listener.listen(10)
        self.program = home / "ssh"
        self.program.write_text(self.CLIENT.format(python="/usr/bin/python3", path=str(home / "sock")), encoding="ascii")
        self.program.chmod(0o755)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            asked = json.loads(b"".join(iter(lambda: sock.recv(65536), b"")))
            host = next(h for h in self.lan.hosts if h.address == asked["host"])
            done = subprocess.run([*host.enter_as(self.user), "bash", "-c", asked["command"]], input=asked["input"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd="/",
                                  env={**os.environ, **asked["env"]})
            sock.sendall(json.dumps({"output": done.stdout, "status": done.returncode}).encode())

    def close(self) -> None:
        self.listener.close()
