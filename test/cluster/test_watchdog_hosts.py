# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_hosts: three pgpools with an address, each on a host of its own on a real ethernet: leaders that are killed, hang,
lose their wire or part of the others. A fourth host asks all the time who has the address: never do two have it."""
import contextlib
import os
import signal

import pytest

from pgt import ether, procs, waits

PGPOOL = os.environ.get("PGPOOL_BIN", "pgpool")
V4, V6 = "192.0.2.100", "2001:db8::100"
PATIENCE = 40


class Member:
    """A pgpool on a host."""

    def __init__(self, host: ether.Host, hosts: list[ether.Host], address: str, more: dict[str, object]):
        self.host = host
        self.home = procs.folder("pgpool")
        conf: dict[str, object] = {
            "listen_addresses": "*", "port": 9999, "unix_socket_directories": self.home, "pcp_port": 9898, "pcp_socket_dir": self.home, "wd_ipc_socket_dir": self.home,
            "pcp_listen_addresses": "", "pid_file_name": self.home / "pgpool.pid", "work_dir": self.home, "num_init_children": 1,
            "backend_clustering_mode": "streaming_replication", "health_check_period": 0, "sr_check_period": 0,
            "backend_hostname0": "192.0.2.250", "backend_port0": 5432, "use_watchdog": "on", "wd_authkey": "one key for all",
            "delegate_ip": address}
        for i, other in enumerate(hosts):
            conf |= {f"hostname{i}": other.address, f"wd_port{i}": 9000, f"pgpool_port{i}": 9999}
        text = "".join(f"{name} = '{value}'\n" for name, value in (conf | more).items())
        (self.home / "pgpool.conf").write_text(text, encoding="utf-8")
        (self.home / "pgpool_node_id").write_text(f"{host.number}\n", encoding="ascii")
        self.daemon: procs.Daemon | None = None

    def start(self) -> None:
        self.daemon = procs.Daemon([*self.host.enter(), PGPOOL, "-n", "-f", str(self.home / "pgpool.conf")], self.home / "log")

    def log(self) -> str:
        return (self.home / "log").read_text(encoding="utf-8", errors="replace")

    def signal(self, number: int) -> None:
        assert self.daemon
        for pid in procs.session_pids(self.daemon.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        if self.daemon:
            self.daemon.kill()
        self.daemon = None


class Cluster:
    """Three of them, and who asks."""

    def __init__(self, net: ether.Ether, address: str, more: dict[str, object]):
        self.net, self.address = net, address
        self.hosts = net.hosts[:3]
        self.members = [Member(h, self.hosts, address, more) for h in self.hosts]
        self.asker = ether.Asker(net.hosts[3], [address])

    def start(self) -> int:
        for member in self.members:
            member.start()
        return self.wait_holder(())

    def holder(self) -> int | None:
        macs = self.asker.holders(self.address)
        return next(i for i, h in enumerate(self.hosts) if h.mac == macs[-1]) if macs else None

    def wait_holder(self, not_these: tuple[int, ...]) -> int:
        try:
            waits.wait_for("another has the address", lambda: self.holder() not in (None, *not_these), PATIENCE)
        except AssertionError as e:
            raise AssertionError(f"{e}\n" + "\n".join(m.log()[-3000:] for m in self.members)) from None
        found = self.holder()
        assert found is not None
        return found

    def history(self) -> list[int]:
        return [next(i for i, h in enumerate(self.hosts) if h.mac == mac) for mac in self.asker.holders(self.address)]

    def close(self) -> None:
        for member in self.members:
            if member.daemon:
                member.signal(signal.SIGCONT)
            member.kill()
        self.asker.close()
        for host in self.hosts:
            self.net.wire(host, True)
            waits.wait_for("the address is gone", lambda h=host: not h.has(self.address), PATIENCE)


@pytest.fixture(scope="module")
def net():
    reason = ether.why_not()
    if reason:
        pytest.skip(reason)
    with contextlib.closing(ether.Ether(4)) as it:
        yield it


@pytest.fixture
def cluster(net):
    with contextlib.ExitStack() as stack:
        def make(address: str = V4, **more) -> Cluster:
            made = Cluster(net, address, more)
            stack.callback(made.close)
            return made
        yield make


@pytest.mark.parametrize("address", [V4, V6])
def test_leader_is_killed(cluster, address):
    c = cluster(address)
    old = c.start()
    began = waits.now()
    c.members[old].kill()
    new = c.wait_holder((old,))
    back = next(t for t, _, mac in c.asker.answers if mac == c.hosts[new].mac) - began
    print(f"address back {back:.2f} s after kill -9 of the leader")
    assert c.history() == [old, new]


def test_leader_is_stopped(cluster):
    c = cluster()
    old = c.start()
    began = waits.now()
    c.members[old].signal(signal.SIGINT)
    new = c.wait_holder((old,))
    back = next(t for t, _, mac in c.asker.answers if mac == c.hosts[new].mac) - began
    print(f"address back {back:.2f} s after the leader was stopped")
    assert c.history() == [old, new]


@pytest.mark.parametrize("address", [V4, V6])
def test_leader_hangs_and_goes_on(cluster, address):
    c = cluster(address)
    old = c.start()
    c.members[old].signal(signal.SIGSTOP)
    new = c.wait_holder((old,))
    c.members[old].signal(signal.SIGCONT)
    waits.holds_for("the old one stays without", lambda: not c.hosts[old].has(address), 4)
    assert c.asker.answers_now(address, c.hosts[new])
    assert c.history() == [old, new]


def test_leader_loses_its_wire(cluster, net):
    c = cluster()
    old = c.start()
    net.wire(c.hosts[old], False)
    new = c.wait_holder((old,))
    waits.wait_for("the old one gives it up", lambda: not c.hosts[old].has(V4), PATIENCE)
    net.wire(c.hosts[old], True)
    waits.holds_for("the old one stays without", lambda: not c.hosts[old].has(V4), 4)
    assert c.history() == [old, new]


def test_leader_loses_one_of_the_others(cluster, net):
    """Who leads and one of the two others do not hear each other; the third hears all: one of them has the address, and it does
    not go to and fro."""
    c = cluster()
    old = c.start()
    deaf = (old + 1) % 3
    for i in (old, deaf):
        net.switch.run("ip", "link", "set", c.hosts[i].port, "type", "bridge_slave", "isolated", "on")
    try:
        waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 8)
        assert c.asker.answers_now(V4, c.hosts[c.wait_holder(())])
        assert len(c.history()) <= 2
    finally:
        for i in (old, deaf):
            net.switch.run("ip", "link", "set", c.hosts[i].port, "type", "bridge_slave", "isolated", "off")


def test_all_at_once(cluster):
    """Killed together and started again: one has it again."""
    c = cluster()
    old = c.start()
    for member in c.members:
        member.kill()
    waits.wait_for("the kernel removes it", lambda: not c.hosts[old].has(V4), PATIENCE)
    c.asker.answers.clear()
    c.start()
    waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 3)
    assert len(c.history()) == 1
