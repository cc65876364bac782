# SPDX-License-Identifier: PostgreSQL
"""ether: hosts of the test's own, each a network namespace, on one ethernet: a bridge with a wire to each. One host asks all the
time who has some addresses, and writes down who answers: two machines with one address cannot hide."""
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import Callable

from pgt import lan, procs, waits
from pgt.wire import Address

NET4, NET6 = "192.0.2", "2001:db8::"  # of documentation: nobody has them
CLONE_NEWNET = lan.CLONE_NEWNET
ARP, IPV6 = 0x0806, 0x86DD
SOLICIT, ADVERTISE = 135, 136
PAUSE_S = 0.02  # between two questions
SILENCE_S = 0.1  # at least, between the last answer of a host and the first of another: who takes an address listens for longer
SO_TIMESTAMPNS = 35


def why_not() -> str:
    """Why there cannot be such hosts here; "" when there can."""
    if not procs.IS_ROOT:
        return "network namespaces need root"
    for program in ("ip", "nsenter", "setpriv", "cat"):
        if shutil.which(program) is None:
            return f"network namespaces need the program {program}"
    try:
        with contextlib.closing(Ether(1)):
            return ""
    except (OSError, AssertionError) as e:
        return f"network namespaces with a bridge are not permitted here ({e})"


class Space:
    """A namespace, kept by a process in it that waits for the end of its input."""

    def __init__(self) -> None:
        fds: list[int] = []

        def make() -> None:
            with contextlib.suppress(OSError):
                lan._call("unshare", CLONE_NEWNET)
                fds.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if not fds:
            raise OSError("no network namespace")
        self.ns = fds[0]
        self.keeper = subprocess.Popen([*self.enter(), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.keeper.stdin and self.keeper.stdout
        self.keeper.stdin.write(b"x")
        self.keeper.stdin.flush()
        self.keeper.stdout.read(1)  # it has arrived
        self.run("ip", "link", "set", "lo", "up")

    def enter(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.ns}"]

    def run(self, *command: str) -> str:
        return procs.run([*self.enter(), *command])

    def inside(self, what: Callable[[], None]) -> None:
        """Calls it in the namespace."""
        failed: list[OSError] = []

        def call() -> None:
            try:
                lan._call("setns", self.ns, CLONE_NEWNET)
                what()
            except OSError as e:
                failed.append(e)
        thread = threading.Thread(target=call)  # threads have namespaces of their own
        thread.start()
        thread.join()
        if failed:
            raise failed[0]

    def socket(self, *args: int) -> socket.socket:
        made: list[socket.socket] = []
        self.inside(lambda: made.append(socket.socket(*args)))
        return made[0]

    def close(self) -> None:
        assert self.keeper.stdin and self.keeper.stdout
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait()
        os.close(self.ns)


class Host(Space):
    """Has one interface, eth0, with an address of each kind."""

    def __init__(self, switch: Space | None, number: int):
        super().__init__()
        self.number, self.port = number, f"port{number}"
        self.address, self.address6 = f"{NET4}.{number + 1}", f"{NET6}{number + 1:x}"
        self.make_wire(switch)
        self.run("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        if os.path.exists("/proc/net/if_inet6"):
            self.run("ip", "addr", "add", f"{self.address6}/64", "dev", "eth0", "nodad")
        self.run("ip", "link", "set", "eth0", "up")
        words = self.run("ip", "-o", "link", "show", "eth0").split()
        self.mac = bytes.fromhex(words[words.index("link/ether") + 1].replace(":", ""))

    def make_wire(self, switch: Space | None) -> None:
        assert switch
        switch.run("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(self.keeper.pid))
        switch.run("ip", "link", "set", self.port, "master", "br0", "up")

    def has(self, address: str) -> bool:
        return f" {address}/" in self.run("ip", "-o", "addr", "show")


@dataclass
class HostAddress(Address):
    """An address as a host reaches it."""
    source: Host | None = None

    def connect(self, seconds: float = 10.0, rcvbuf: int = 0) -> socket.socket:
        assert self.source
        sock = self.source.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(seconds * waits.SCALE)
        try:
            sock.connect((self.host, self.port))
        except OSError:
            sock.close()
            raise
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


class Asker:
    """Asks from one host, all the time, who has the addresses. `answers` holds (time, address, mac) of each answer and of each
    announcement, the time as the kernel took it."""

    def __init__(self, host: Host, addresses: list[str]):
        self.host, self.addresses = host, addresses
        self.answers: list[tuple[float, str, bytes]] = []
        self.announced: list[tuple[str, bytes]] = []  # of them, those that were sent to everybody
        self.ending = threading.Event()
        self.socks = {}
        for protocol in (ARP, IPV6):
            sock = host.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
            sock.bind(("eth0", protocol))
            sock.settimeout(PAUSE_S)
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self.socks[protocol] = sock
        self.threads = [threading.Thread(target=self._hear, args=(p,), daemon=True) for p in self.socks]
        self.threads.append(threading.Thread(target=self._ask, daemon=True))
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        self.ending.set()
        for thread in self.threads:
            thread.join(10)
        for sock in self.socks.values():
            sock.close()

    # ---- packets

    def claim(self, host: Host, address: str) -> None:
        """A packet from `host` that says that the address is there."""
        sock = host.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ARP))
        with sock:
            sock.bind(("eth0", ARP))
            own = socket.inet_aton(address)
            sock.send(b"\xff" * 6 + host.mac + struct.pack("!HHHBBH6s4s6s4s", ARP, 1, 0x0800, 6, 4, 1, host.mac, own, bytes(6), own))

    def _question(self, address: str) -> tuple[int, bytes]:
        mac = self.host.mac
        if ":" not in address:
            body = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, socket.inet_aton(self.host.address), bytes(6),
                               socket.inet_aton(address))
            return ARP, b"\xff" * 6 + mac + struct.pack("!H", ARP) + body
        target, source = (socket.inet_pton(socket.AF_INET6, a) for a in (address, self.host.address6))
        group = bytes.fromhex("ff0200000000000000000001ff") + target[13:]
        body = struct.pack("!BBHI", SOLICIT, 0, 0, 0) + target + b"\x01\x01" + mac
        total = sum(struct.unpack(f"!{(40 + len(body)) // 2}H", source + group + struct.pack("!II", len(body), 58) + body))
        total = (total & 0xFFFF) + (total >> 16)
        total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
        body = body[:2] + struct.pack("!H", total) + body[4:]
        head = struct.pack("!IHBB", 0x60000000, len(body), 58, 255) + source + group
        return IPV6, b"\x33\x33" + group[12:] + mac + struct.pack("!H", IPV6) + head + body

    def _ask(self) -> None:
        while not self.ending.wait(PAUSE_S):
            for address in self.addresses:
                protocol, packet = self._question(address)
                with contextlib.suppress(OSError):
                    self.socks[protocol].send(packet)

    def _claim(self, protocol: int, packet: bytes) -> str | None:
        """The address that the sender says to have."""
        body = packet[14:]
        if protocol == ARP and len(body) >= 28:
            return socket.inet_ntoa(body[14:18])
        if protocol == IPV6 and len(body) >= 64 and body[6] == 58 and body[40] == ADVERTISE:
            return socket.inet_ntop(socket.AF_INET6, body[48:64])
        return None

    def _hear(self, protocol: int) -> None:
        while not self.ending.is_set():
            try:
                packet, more, _, _ = self.socks[protocol].recvmsg(2048, 64)
            except (TimeoutError, OSError):
                continue
            came = struct.unpack("qq", more[0][2][:16]) if more else (0, 0)
            address, mac = self._claim(protocol, packet), packet[6:12]
            if address in self.addresses and mac != self.host.mac:
                self.answers.append((came[0] + came[1] / 1e9 + self._offset(), address, mac))
                if packet[0] & 1:
                    self.announced.append((address, mac))

    @staticmethod
    def _offset() -> float:
        """From the kernel's clock to ours. Who is held up between the two looks would take the answer for a later one."""
        best = (float("inf"), 0.0)
        for _ in range(20):
            before, wall, behind = waits.now(), time.time(), waits.now()
            best = min(best, (behind - before, behind - wall))
            if best[0] < 0.001:
                break
        return best[1]

    # ---- what was heard

    def holders(self, address: str) -> list[bytes]:
        """Who has had the address, one after the other."""
        macs = [mac for _, a, mac in list(self.answers) if a == address]
        return [mac for i, mac in enumerate(macs) if i == 0 or mac != macs[i - 1]]

    def doubles(self, address: str) -> list[str]:
        """Where two hosts answered beside each other."""
        found = [(t, mac) for t, a, mac in list(self.answers) if a == address]
        return [f"{mac.hex()} at {t:.3f}, {later.hex()} at {then:.3f}" for (t, mac), (then, later) in zip(found, found[1:])
                if mac != later and then - t < SILENCE_S]

    def count(self, address: str, mac: bytes) -> int:
        return sum(1 for _, a, m in list(self.answers) if (a, m) == (address, mac))

    def answers_now(self, address: str, host: Host) -> bool:
        """Somebody on that host answers from now on."""
        before = self.count(address, host.mac)
        try:
            waits.wait_for("an answer", lambda: self.count(address, host.mac) > before + 2, 5)
        except AssertionError:
            return False
        return True


class Ether:
    """`n` hosts on one bridge."""

    def __init__(self, n: int):
        self.hosts: list[Host] = []
        self.switch = Space()
        try:
            self.switch.run("ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0", "stp_state", "0")
            self.switch.run("ip", "link", "set", "br0", "up")
            for i in range(n):
                self.hosts.append(Host(self.switch, i))
        except BaseException:
            self.close()
            raise

    def wire(self, host: Host, is_up: bool) -> None:
        """Pulls the host's wire out, or puts it in."""
        self.switch.run("ip", "link", "set", host.port, "up" if is_up else "down")

    def close(self) -> None:
        for host in self.hosts:
            host.close()
        self.switch.close()
