# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_weather: three pgpools with an address, each on a host of its own, in bad weather: packets are lost and late, cables have
loose contacts, a disk is full, clocks are wrong, a machine dies. At each test's end the lab looks at what was heard on the wire: never
have two hosts answered for the address."""
import contextlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from pgt import clocks, fog, postgres, waits
from watchdog_lab import CLIENTS, PATIENCE, V4, Client, Cluster, HostServer, Member, clusters, server_on

pytestmark = pytest.mark.skipif(not postgres.is_installed(), reason="no PostgreSQL")
SEED = int(os.environ.get("PGT_WEATHER_SEED", "0")) or random.randrange(1, 1 << 30)
SECONDS = int(os.environ.get("PGT_WEATHER_SECONDS", "60"))
REJOINS = int(os.environ.get("PGT_WEATHER_REJOINS", "100"))
DISK_BYTES = 4 << 20


@pytest.fixture(scope="module")
def net():
    reason = fog.why_not()
    if reason:
        pytest.skip(reason)
    with contextlib.closing(fog.Fog(CLIENTS + 1, SEED)) as it:
        it.cloud.clear = {CLIENTS}
        yield it


@pytest.fixture(scope="module")
def server(net):
    it = server_on(net.hosts[CLIENTS])
    it.rows("create table written (n int primary key)")
    yield it
    it.stop(signal.SIGQUIT)


@pytest.fixture
def cluster(net, server):
    with clusters(net) as make:
        yield lambda address=V4, servers=None, **more: make(address, servers or [server.address], **more)
    net.cloud.heal()


@pytest.fixture
def client(net):
    """Makes clients."""
    with contextlib.ExitStack() as stack:
        def make(host: str, statement: str, **more) -> Client:
            made = Client(net.hosts[CLIENTS], host, statement, **more)
            stack.callback(made.close)
            return made
        yield make


def writer(client, server: HostServer) -> Client:
    server.rows("truncate written")
    return client(V4, "insert into written values ({})")


def check_written(w: Client, server: HostServer) -> None:
    """Nothing that was acknowledged is missing."""
    w.close()
    there = {int(r[0] or 0) for r in server.rows("select n from written")}
    missing = [n for n in w.acked if n not in there]
    assert not missing, f"acknowledged and lost: {missing[:10]}"
    assert w.acked


# Packets

def storm(c: Cluster, net: fog.Fog, dice: random.Random, seconds: float) -> None:
    """Now and then another weather; who leads may change, and a majority that hears each other may be for nobody."""
    end = waits.now() + seconds
    while waits.now() < end:
        kind = dice.randrange(6)
        a, b = dice.sample(range(3), 2)
        net.cloud.heal()
        if kind == 0:
            net.cloud.loss, net.cloud.delay_s = dice.uniform(0.02, 0.3), (0.0, dice.uniform(0.01, 0.2))
        elif kind == 1:
            net.cloud.cut = {(a, b)}
        elif kind == 2:
            net.cloud.split(a, b)
        elif kind == 3:
            net.cloud.cut = {(a, i) for i in range(3)}  # is heard by nobody
        elif kind == 4:
            net.cloud.cut = {(i, a) for i in range(3)}  # hears nobody
        waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, dice.uniform(0.3, 4))
    net.cloud.heal()


def test_packets_are_lost_and_late(cluster, client, net, server):
    """A tenth is lost, and all take up to a twentieth of a second: the address is there all the same, and clients get on."""
    c = cluster()
    c.start()
    w = writer(client, server)
    w.wait_more()
    net.cloud.loss, net.cloud.delay_s = 0.1, (0.0, 0.05)
    waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 5)
    assert net.cloud.lost > 0
    w.wait_more()
    net.cloud.heal()
    c.wait_answers()
    check_written(w, server)


@pytest.mark.slow
def test_the_leader_is_not_heard_but_hears(cluster, net):
    """In one direction alone: its messages arrive nowhere, and it hears all. It gives the address up, another takes it. Then that one's
    interface goes down and up, faster than anybody could be elected: nobody is two, and no process ends for it."""
    c = cluster()
    old = c.start()
    net.cloud.cut = {(old, i) for i in range(3)}
    new = c.wait_holder((old,))
    waits.wait_for("the old one gives it up", lambda: not c.hosts[old].has(V4), PATIENCE)
    net.cloud.heal()
    assert c.history()[:2] == [old, new]
    for _ in range(20):
        net.wire(c.hosts[new], False)
        waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 0.05)
        net.wire(c.hosts[new], True)
        waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 0.05)
    c.wait_answers()
    assert all(m.daemon and m.daemon.is_running() for m in c.members)
    assert all("terminated by" not in m.log() for m in c.members)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 3 + 120)
def test_all_weathers(cluster, client, net, server):
    print(f"PGT_WEATHER_SEED={SEED}")
    c = cluster()
    c.start()
    w = writer(client, server)
    storm(c, net, random.Random(SEED), SECONDS)
    c.wait_answers()
    w.wait_more()
    print(f"{len(c.history())} holders, {len(w.acked)} rows, {len(w.errors)} errors")
    check_written(w, server)


# Machines

def without_ipv6(member: Member, on: bool) -> None:
    member.host.run("sh", "-c", f"test ! -d /proc/sys/net/ipv6 || echo {int(on)} >/proc/sys/net/ipv6/conf/all/disable_ipv6")


def test_clients_of_the_others_notice_nothing(cluster, client, server):
    """The leader is killed: who is connected to another pgpool goes on, without an error and without a wait. On kernels without IPv6."""
    c = cluster()
    for member in c.members:
        if clocks.library() is not None:
            member.env = clocks.no_ipv6()
            without_ipv6(member, True)
    try:
        c.start()
        clients = [client(host.address, "select {}", seconds=30) for host in c.hosts]
        for one in clients:
            one.wait_more()
        old = c.wait_answers()
        others = [one for i, one in enumerate(clients) if i != old]
        c.members[old].kill()
        before = [len(other.acked) for other in others]
        c.wait_holder((old,))
        during = [len(other.acked) - n for other, n in zip(others, before)]
        for other in others:
            other.wait_more()
            assert not other.errors
        assert min(during) > 10, "statements waited for the election"
    finally:
        c.close_members()
        for member in c.members:
            without_ipv6(member, False)


@pytest.mark.timeout(300)
def test_a_machine_dies(cluster, client, net):
    """Each host has a pgpool and a server, as most clusters do; that of the primary leads, and dies. Writers connect again to the same address, and find
    all that was acknowledged to them."""
    conf = {"synchronous_standby_names": "ANY 1 (*)", "synchronous_commit": "on", "wal_receiver_timeout": "3s"}
    with contextlib.ExitStack() as stack:
        servers = [server_on(net.hosts[0], **conf)]
        stack.callback(lambda: [s.stop(signal.SIGQUIT) for s in servers])
        servers += [server_on(net.hosts[i], servers[0], **conf) for i in (1, 2)]
        servers[0].rows("create table written (n int primary key)")
        c = cluster(servers=[s.address for s in servers], vip_follows="primary", auto_promote="on", load_balance_mode="off", health_check_period=1,
                    health_check_timeout=3, health_check_max_retries=0, sr_check_period=1, wd_priority=[9, 1, 1])
        c.start()
        waits.wait_for("the pgpool beside the primary has the address", lambda: c.holder() == 0, PATIENCE)
        w = client(V4, "insert into written values ({})")
        w.wait_more()
        began = waits.now()
        net.cloud.cut |= {(0, i) for i in range(CLIENTS + 1)} | {(i, 0) for i in range(CLIENTS + 1)}
        c.members[0].kill()
        servers[0].stop(signal.SIGQUIT)
        new = c.wait_holder((0,))
        print(f"address back after {c.first_answer(new, began) - began:.2f} s")
        w.wait_more()
        print(f"written again after {waits.now() - began:.2f} s")
        primaries = [s for s in servers[1:] if s.value("select pg_is_in_recovery()") == "f"]
        assert len(primaries) == 1
        check_written(w, primaries[0])


class SmallDisk:
    """A work_dir on a disk of its own, which stays while its pgpool is away."""

    def __init__(self, member: Member):
        folder = member.home / "disk"
        folder.mkdir()
        self.keeper = subprocess.Popen(["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size={DISK_BYTES} none '{folder}' && echo && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.keeper.stdin and self.keeper.stdout
        assert self.keeper.stdout.readline() == b"\n", "no disk"
        self.folder = Path(f"/proc/{self.keeper.pid}/root{folder}")
        member.prefix = ["nsenter", f"--mount=/proc/{self.keeper.pid}/ns/mnt"]
        member.write(work_dir=folder)

    def fill(self) -> None:
        with open(self.folder / "filler", "ab", buffering=0) as file:
            for size in (4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def give_room(self) -> None:
        (self.folder / "filler").unlink()

    def close(self) -> None:
        assert self.keeper.stdin and self.keeper.stdout
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait()


@pytest.fixture
def small_disk():
    """Gives members a disk of their own."""
    with contextlib.ExitStack() as stack:
        yield lambda member: stack.enter_context(contextlib.closing(SmallDisk(member)))


def test_a_pgpool_begins_on_a_full_disk(cluster, server, small_disk):
    """It says why it does not take part, again and again, and serves its clients; when there is room, it takes part."""
    c = cluster(wd_priority=[9, 1, 1])
    disk = small_disk(c.members[0])
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    c.wait_voters(0)
    c.members[0].kill()
    new = c.wait_holder((0,))
    disk.fill()
    seen = len(c.members[0].log())
    c.members[0].start()
    waits.wait_for("it says so", lambda: "No space left on device" in c.members[0].log()[seen:], PATIENCE)
    waits.wait_for("clients are served", lambda: c.members[0].ask("select 1 as one") == [{"one": "1"}], PATIENCE)
    waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 1)
    disk.give_room()
    c.wait_voters(new)


def write_into_the_log(member: Member) -> None:
    """The leader writes fifty events that change nothing, as far as it can: a server is given back that nobody took."""
    body = json.dumps({"IPCAuthKey": "k", "Function": "FAILBACK_REQUEST", "NodeIDList": [0] * 50}).encode()
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
        s.settimeout(2)
        s.connect(str(member.home / ".s.PGPOOLWD_CMD.9000"))
        s.sendall(b"f" + struct.pack(">I", len(body)) + body)
        s.recv(100)


def test_the_disk_fills_under_the_leader(cluster, server, client, small_disk):
    """The log can no longer be written: another one leads and has the address; writers lose nothing; when there is room again, it takes part."""
    c = cluster(wd_priority=[9, 1, 1], wd_authkey="k")
    disk = small_disk(c.members[0])
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    c.wait_voters(0)
    w = writer(client, server)
    w.wait_more()
    seen = len(c.members[0].log())

    def is_said() -> bool:
        disk.fill()  # also what old parts of the log leave
        write_into_the_log(c.members[0])
        return "the log of the cluster cannot be written" in c.members[0].log()[seen:]
    waits.wait_for("it says so", is_said, 2 * PATIENCE)
    new = c.wait_holder((0,))
    assert any(t in c.members[0].log()[seen:] for t in ("No space left on device", "not enough space")), c.members[0].log()[seen:]
    assert "terminated by" not in c.members[0].log()[seen:]
    w.wait_more()
    waits.wait_for("clients are served", lambda: c.members[0].ask("select 1 as one") == [{"one": "1"}], PATIENCE)
    disk.give_room()
    c.wait_voters(new)
    check_written(w, server)


def test_clocks_are_wrong(cluster, client, server):
    """Each machine has been up for another time; the wall clocks are days apart, and jump. Nothing depends on them."""
    reason = clocks.why_not()
    if reason:
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        c = cluster(wd_election_timeout="1500ms")  # nobody else is elected because the machine is busy
        walls = [clocks.WallClock() for _ in c.members]
        for i, (member, wall) in enumerate(zip(c.members, walls)):
            boot = stack.enter_context(contextlib.closing(clocks.BootClock((0, 900_000, 30_000_000)[i])))
            member.prefix, member.env = boot.enter(), wall.env()
            wall.set((-86_400, 0, 86_400)[i])
        try:
            old = c.start()
            c.wait_voters(old)
            w = writer(client, server)
            w.wait_more()
            for jump in (3600, -3600, 400 * 86_400, 0):
                for wall in walls:
                    wall.set(jump)
                waits.holds_for("it stays where it is", lambda: c.hosts[old].has(V4), 0.7)
            assert c.history() == [old]
            walls[old].set(-3600)
            c.members[old].signal(signal.SIGSTOP)
            new = c.wait_holder((old,))
            walls[old].set(3600)
            c.members[old].signal(signal.SIGCONT)
            waits.holds_for("the old one stays without", lambda: not c.hosts[old].has(V4), 2)
            w.wait_more()
            assert c.history() == [old, new]
            check_written(w, server)
        finally:
            c.close_members()


# Many times

@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_rejoins(cluster, client, server):
    """One after the other is killed, stopped or hangs, and comes back; each time all three vote again, and nothing grows."""
    dice = random.Random(SEED)
    print(f"PGT_WEATHER_SEED={SEED}")
    c = cluster()
    c.start()
    w = writer(client, server)
    for n in range(REJOINS):
        i = dice.randrange(3)
        member = c.members[i]
        how = dice.choice(["kill", "stop", "hang"])
        if how == "kill":
            member.kill()
        elif how == "stop":
            member.stop()
        else:
            member.signal(signal.SIGSTOP)
        others = [k for k in range(3) if k != i]
        waits.wait_for(f"round {n}: the others agree", lambda: c.members[others[0]].leader() in others and
                       c.members[others[0]].leader() == c.members[others[1]].leader(), PATIENCE)
        if how == "hang":
            member.signal(signal.SIGCONT)
        else:
            member.start()
        c.wait_voters(others[0])
        w.wait_more(5)
    for member in c.members:
        files = [f.stat().st_size for f in (member.home / f"pgpool_watchdog.{member.host.number}" / "log").iterdir()]
        assert sum(files) < 8 << 20, files
    print(f"{REJOINS} rejoins, {len(c.history())} holders, {len(w.acked)} rows, {len(w.errors)} errors")
    check_written(w, server)
