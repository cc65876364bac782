# SPDX-License-Identifier: PostgreSQL
"""test_watchdog: three pgpools as one, on loopback addresses: who leads, what a majority agrees on, who is refused.
Real servers where servers are lost."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import time

import pytest

from pgt import procs, proxy, waits
from test_monitor import PERIOD, Trio, column, show, trio  # noqa: F401
from test_pcp import Side
from watchdog_lab import is_closed

KEY = "a key with ' and \\ and ü"
QUICK = {**PERIOD, "health_check_max_retries": 0, "auto_promote": True,
         **{f"backend_application_name{i}": f"node{i}" for i in range(3)}}
# Nobody else is elected because the machine is busy, where a test is about one change of the lead, or about none.
CALM = {"wd_election_timeout": 1500}


class Three:
    """Pgpools that know each other."""

    def __init__(self, backends=(), n: int = 3, **conf):
        self.ports = [procs.free_port() for _ in range(n)]
        self.pools: list[proxy.Pgpool] = []
        self.sides: list[Side] = []
        for i in range(n):
            self.pools.append(self.make(i, list(backends), conf))

    def members(self, ids) -> dict[str, object]:
        out: dict[str, object] = {}
        for i in ids:
            out |= {f"hostname{i}": "127.0.0.1", f"wd_port{i}": self.ports[i], f"pgpool_port{i}": 9000 + i}
        return out

    def make(self, i: int, backends, conf) -> proxy.Pgpool:
        home = procs.folder("pgpool")
        (home / "pgpool_node_id").write_text(f"{i}\n", encoding="ascii")
        pool = proxy.Pgpool(home, procs.free_port())
        side = Side(home, procs.free_port())
        base: dict[str, object] = {
            "listen_addresses": "127.0.0.1", "port": pool.port, "unix_socket_directories": home,
            "pcp_listen_addresses": "127.0.0.1", "pcp_port": side.port, "pcp_socket_dir": home, "wd_ipc_socket_dir": home,
            "pid_file_name": home / "pgpool.pid", "work_dir": home, "num_init_children": 1,
            "backend_clustering_mode": "streaming_replication", "load_balance_mode": False,
            "health_check_period": 0, "sr_check_period": 0, "use_watchdog": True, "wd_authkey": KEY,
            "wd_priority": 1, **self.members(range(len(self.ports)))}
        for k, address in enumerate(backends):
            base |= {f"backend_hostname{k}": address.host, f"backend_port{k}": address.port}
        own = {name: value[i] if isinstance(value, list) else value for name, value in conf.items()}
        pool.write_conf(**{**base, **own})
        self.sides.append(side)
        return pool

    def start(self, *ids: int) -> "Three":
        for i in ids or range(len(self.pools)):
            self.pools[i].start()
        return self

    def rows(self, i: int) -> list[dict[str, str]]:
        return show(self.pools[i], "POOL_WATCHDOG")

    def leader_of(self, i: int) -> int | None:
        """Whom pgpool `i` takes for the leader."""
        found = [int(r["pgpool_id"]) for r in self.rows(i) if r["status"] == "LEADER"]
        return found[0] if found else None

    def wait_leader(self, *ids: int, seconds: float = 60) -> int:
        """All of `ids` agree on one of them."""
        found: list[int | None] = []

        def agree() -> bool:
            found[:] = [self.leader_of(i) for i in ids]
            return found[0] in ids and len(set(found)) == 1
        waits.wait_for(f"pgpools {ids} agree on a leader", agree, seconds)
        return found[0]

    def wait_told(self, *ids: int, seconds: float = 60) -> int:
        """All of `ids` agree on one of them, of whom the log of all of them says that it leads."""
        def agree() -> list[int]:
            rows = {i: self.rows(i) for i in ids}
            found = [i for i in ids if all(r[i]["status"] == "LEADER" and r[i]["leader_since"] for r in rows.values())]
            return found if len(found) == 1 else []
        return waits.wait_for(f"the log of pgpools {ids} says who leads", agree, seconds)[0]

    def why_led(self, i: int) -> list[str]:
        """What the log of pgpool `i` says of each change of the lead."""
        return [e for e in self.events(i) if " leads: " in e]

    def wait_voters(self, i: int, n: int, seconds: float = 60) -> None:
        waits.wait_for(f"{n} pgpools vote", lambda: sum(
            r["votes"] == "true" and r["status"] in ("LEADER", "STANDBY") for r in self.rows(i)) == n, seconds)

    def events(self, i: int) -> list[str]:
        return [r["text"] for r in show(self.pools[i], "POOL_WATCHDOG_EVENTS")]

    def wait_events(self, text: str, *ids: int, seconds: float = 40) -> None:
        for i in ids:
            waits.wait_for(f"pgpool {i} knows: {text}", lambda i=i: any(text in e for e in self.events(i)), seconds)

    def kill(self, i: int) -> None:
        """All processes of one, as if its machine had died; the supervisor first, which would begin the others anew."""
        daemon, self.pools[i].daemon = self.pools[i].daemon, None
        for pid in [daemon.pid, *procs.session_pids(daemon.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        daemon.kill()

    def pause(self, i: int, how: int = signal.SIGSTOP) -> None:
        for pid in self.pools[i].pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)

    def stop(self) -> None:
        for pool in self.pools:
            pool.stop()


@pytest.fixture
def cluster(pg):
    made: list[Three] = []

    def make(backends=None, **conf) -> Three:
        made.append(Three(backends or [pg.address], **conf))
        return made[-1]
    yield make
    for three in made:
        three.stop()


def test_a_leader_is_elected_and_replaced(cluster):
    three = cluster().start()
    waits.wait_for("three vote", lambda: sum(r["votes"] == "true" for r in three.rows(0)) == 3, 60)
    first = three.wait_told(0, 1, 2)
    left = [i for i in range(3) if i != first]
    for i, text in ((first, "I am the cluster leader node. Starting escalation process"), *((i, "successfully joined the watchdog cluster as standby node") for i in left)):
        waits.wait_for(f"pgpool {i} says so as pgpool-II does", lambda i=i, text=text: text in three.pools[i].log())
    began = time.monotonic()
    three.kill(first)
    second = three.wait_told(*left)
    print(f"a new leader after {time.monotonic() - began:.2f} s")
    # One of the two took the lead over; on a busy machine the other one may have got it since.
    taken = three.why_led(second)
    assert [e for e in taken if e.endswith(f" leads: pgpool {first} was not heard any more")], taken
    other = next(i for i in left if i != second)

    def is_settled() -> bool:
        rows = three.rows(other)
        second = three.leader_of(other)
        return (second in left and [rows[i]["follows"] for i in left] == [str(second)] * 2 and rows[first]["status"] == "LOST" and
                rows[0]["quorum"] == "QUORUM EXIST" and three.why_led(other)[-1] == f"pgpool {second} leads: {rows[second]['leader_reason']}")
    waits.wait_for("both follow one of them, and the dead one is lost", is_settled)
    # Of two that are left one more may not die.
    three.kill(second)
    waits.wait_for("nobody leads", lambda: three.rows(other)[0]["quorum"] == "NO LEADER NODE" and three.leader_of(other) is None)
    three.start(first, second)
    three.wait_leader(0, 1, 2)
    for i in range(3):
        waits.wait_for("its log says so", lambda i=i: "watchdog node state changed from" in three.pools[i].log())


def test_all_stopped_and_started_again(cluster):
    """What was agreed on is there after all were ended at once, by force."""
    three = cluster().start()
    first = three.wait_leader(0, 1, 2)
    three.wait_voters(first, 3)
    before = three.events(first)
    three.wait_events("leads", 0, 1, 2)
    for i in range(3):
        three.kill(i)
    three.start()
    leader = three.wait_leader(0, 1, 2)
    waits.wait_for("the log goes on", lambda: three.events(leader)[:len(before)] == before)


def test_an_orderly_stop_gives_the_lead_away(cluster, tmp_path):
    tmp_path.chmod(0o777)
    three = cluster(wd_escalation_command=[f"touch {tmp_path}/up{i}" for i in range(3)]).start()
    three.wait_voters(three.wait_leader(0, 1, 2), 3)
    # Before, nobody can know whether another one has the address yet: there is nothing to give away.
    waits.wait_for("who leads has the address", lambda: (tmp_path / f"up{three.leader_of(0)}").exists())
    first = three.wait_leader(0, 1, 2)
    three.pools[first].stop(signal.SIGTERM)
    left = [i for i in range(3) if i != first]
    second = three.wait_leader(*left)
    three.wait_events(f" leads: pgpool {first} gave the lead away: it is being stopped", second)
    assert "Watchdog is shutting down" in three.pools[first].log()
    for i in left:
        waits.wait_for("they say so", lambda i=i: "is shutting down" in three.pools[i].log())
        waits.wait_for("it is shown", lambda i=i: three.rows(i)[first]["status"] == "SHUTDOWN")


def test_a_rolling_restart(cluster):
    """One after the other, who leads last: the lead, and with it the address, moves once; nobody is taken for dead because the
    machine is busy."""
    three = cluster(wd_election_timeout=2000).start()
    three.wait_voters(three.wait_leader(0, 1, 2), 3)
    first = three.wait_told(0, 1, 2)
    before = len([e for e in three.events(first) if " leads: " in e])
    for i in [*(k for k in range(3) if k != first), first]:
        three.pools[i].stop(signal.SIGINT)
        three.start(i)
        three.wait_voters(i, 3)
    last = three.wait_leader(0, 1, 2)
    leads = [e for e in three.events(last) if " leads: " in e][before:]
    assert leads == [f"pgpool {last} leads: pgpool {first} gave the lead away: it is being stopped"]
    assert last != first


def test_the_higher_priority_leads(cluster):
    three = cluster(wd_priority=[1, 5, 3], **CALM).start(0, 2)
    three.wait_leader(0, 2)
    waits.wait_for("pgpool 2 leads", lambda: three.leader_of(0) == 2, 60)
    three.start(1)
    waits.wait_for("pgpool 1 leads", lambda: [three.leader_of(i) for i in range(3)] == [1] * 3, 60)
    three.wait_events("pgpool 1 leads: pgpool 2 gave the lead away: the other one's wd_priority is higher", 0, 1, 2)


def test_strangers_are_refused(cluster):
    """Another key, no protocol at all, silence: none of them is a member, and the others go on."""
    three = cluster(wd_authkey=[KEY, KEY, "another"]).start()
    leader = three.wait_leader(0, 1)
    assert three.leader_of(2) is None
    with contextlib.ExitStack() as stack:
        for i in range(40):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", three.ports[leader]), timeout=5))
            if i % 2:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n" + b"x" * 100)
        waits.wait_for("they are counted", lambda: int(three.rows(leader)[leader]["strangers"]) >= 20)
        assert three.wait_leader(0, 1) in (0, 1)
    waits.wait_for("the log says so", lambda: "a connection was refused" in three.pools[leader].log())
    assert three.rows(leader)[2]["status"] == "DEAD"
    # With the right key it is let in.
    three.pools[2].reload(wd_authkey=KEY)
    three.wait_leader(0, 1, 2)


def test_strangers_keep_no_member_out(cluster):
    """Of too many who say nothing the oldest has to go, not whoever comes next."""
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", three.ports[leader]), timeout=5))
                for _ in range(40)]
        for s in held:
            s.setblocking(False)
        waits.wait_for("one is closed", lambda: any(map(is_closed, held)))
        assert is_closed(held[0])


def test_a_disk_that_was_lost(cluster):
    """Its log, votes and promises are gone: it is taken out and in again, and follows."""
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    waits.wait_for("all have joined", lambda: sum("has joined" in e for e in three.events(leader)) == 3)
    other = next(i for i in range(3) if i != leader)
    three.kill(other)
    shutil.rmtree(three.pools[other].home / f"pgpool_watchdog.{other}")
    three.start(other)
    three.wait_voters(leader, 3)
    waits.wait_for("it knows all", lambda: three.events(other) == three.events(leader), 60)
    for i in (leader, other):  # it was shown as before until it was seen that it had gone
        three.wait_voters(i, 3)
    third = next(i for i in range(3) if i not in (leader, other))
    three.kill(third)
    three.wait_leader(leader, other)


def test_a_beginning_that_failed_begins_again(cluster):
    """A disk that was full at the first start has libraft's term and no log: nobody takes that for a cluster."""
    three = cluster().start()
    three.wait_leader(0, 1, 2)
    three.stop()
    for i, pool in enumerate(three.pools):
        log = pool.home / f"pgpool_watchdog.{i}" / "log"
        kept = {f.name: f.read_bytes() for f in log.glob("metadata*")}
        assert kept
        shutil.rmtree(log)
        log.mkdir()
        for name, body in kept.items() if i == 0 else ():
            (log / name).write_bytes(body)
    three.start()
    three.wait_voters(three.wait_leader(0, 1, 2), 3)


def test_lists_that_differ_begin_nothing(cluster):
    """One of two that start has never heard of the third: each would have a majority of its own list."""
    three = cluster()
    conf = (three.pools[1].home / "pgpool.conf").read_text(encoding="utf-8")
    short = "".join(line for line in conf.splitlines(keepends=True) if not line.startswith(("hostname2", "wd_port2", "pgpool_port2")))
    assert short != conf
    (three.pools[1].home / "pgpool.conf").write_text(short, encoding="utf-8")
    three.start(0, 1)
    for i in (0, 1):
        waits.wait_for(f"pgpool {i} says that the lists differ", lambda i=i: "lists other members" in three.pools[i].log())
        assert three.leader_of(i) is None
        assert "the cluster begins" not in three.pools[i].log()
    three.pools[1].stop()
    (three.pools[1].home / "pgpool.conf").write_text(conf, encoding="utf-8")
    three.start(1)
    three.wait_leader(0, 1)


def test_a_damaged_disk_does_not_vote(cluster):
    """What is damaged is not put aside in silence: promises would be forgotten. The log says what to do."""
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    other = (leader + 1) % 3
    three.kill(other)
    pool = three.pools[other]
    log = pool.home / f"pgpool_watchdog.{other}" / "log"
    kept = {f.name: f.read_bytes() for f in log.iterdir()}
    for file in log.glob("0*-0*"):
        file.write_bytes(b"\xff" * 4096)
    three.start(other)
    waits.wait_for("it is told", lambda: "consensus cannot begin in folder" in pool.log(), 60)
    waits.wait_for("and what to do", lambda: "remove the folder" in pool.log())
    assert sorted(kept) == sorted(f.name for f in log.iterdir())
    waits.wait_for("it is out", lambda: three.rows(leader)[other]["status"] != "STANDBY")
    log.rename(pool.home / "damaged")  # at once: it is tried again all the while
    three.wait_voters(leader, 3)


def test_a_folder_that_cannot_be_used(cluster):
    """The watchdog ends with a message, again and again, and pgpool goes on; then it can be used."""
    three = cluster()
    pool = three.pools[2]
    folder = pool.home / "pgpool_watchdog.2"
    folder.write_text("no folder", encoding="ascii")
    three.start()
    three.wait_leader(0, 1)
    waits.wait_for("it is told", lambda: "pgpool_watchdog.2" in pool.log(), 60)
    assert "terminated by" not in pool.log()
    folder.unlink()
    three.wait_leader(0, 1, 2)


def test_the_leader_hangs(cluster):
    """Stopped for a while, it finds itself replaced, and says so at once."""
    three = cluster().start()
    first = three.wait_leader(0, 1, 2)
    three.wait_voters(first, 3)
    three.pause(first)
    left = [i for i in range(3) if i != first]
    three.wait_told(*left)
    three.pause(first, signal.SIGCONT)
    waits.wait_for("it says so", lambda: "watchdog node state changed from [LEADER] to [" in three.pools[first].log())
    three.wait_leader(0, 1, 2)
    waits.wait_for("it knows who replaced it", lambda: any(e.endswith(f" leads: pgpool {first} was not heard any more")
                                                           for e in three.why_led(first)))


def test_members_come_and_go_by_reload(cluster):
    three = cluster(n=3)
    for pool in three.pools[:2]:
        pool.write_conf(hostname2="", wd_port2=0, pgpool_port2=0)
        for name in ("hostname2", "wd_port2", "pgpool_port2"):
            del pool.conf[name]
        pool.write_conf()
    three.start(0, 1)
    leader = three.wait_leader(0, 1)
    three.wait_voters(leader, 2)
    three.start(2)
    for i in (0, 1):
        three.pools[i].reload(**three.members([2]))
    three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    pids = {i: three.pools[i].pids() for i in (0, 1)}
    for i in (0, 1):
        for name in ("hostname2", "wd_port2", "pgpool_port2"):
            del three.pools[i].conf[name]
        three.pools[i].reload()
    waits.wait_for("it is gone", lambda: len(three.rows(leader)) == 2, 60)
    waits.wait_for("two vote", lambda: "pgpool 2 is no member any more" in
                   three.pools[0].log() + three.pools[1].log(), 60)
    assert pids == {i: three.pools[i].pids() for i in (0, 1)}


def info(three: Three, i: int, *args: str) -> str:
    return three.sides[i].ok("watchdog_info", *args)


def test_pcp(cluster):
    three = cluster(**CALM).start()
    three.wait_voters(three.wait_leader(0, 1, 2), 3)
    leader = three.wait_told(0, 1, 2)
    other = next(i for i in range(3) if i != leader)
    why = three.rows(other)[leader]["leader_reason"]
    waits.wait_for("all are there", lambda: info(three, other).startswith("3 3 "))
    first, empty, *members = info(three, other).splitlines()
    assert first.startswith(f"3 3 NO 127.0.0.1:{9000 + leader} Linux ") and first.endswith(" 127.0.0.1")
    assert empty == "" and len(members) == 3
    # This one is the first.
    assert members[0].endswith(f" 127.0.0.1 {9000 + other} {three.ports[other]} 7 STANDBY 0 MEMBER YES")
    assert sum(" 4 LEADER 0 MEMBER YES" in m for m in members) == 1
    verbose = info(three, other, "-v")
    for text in ("Total Nodes              : 3", "Member Remote Nodes      : 2", "Alive Remote Nodes       : 2",
                 "Nodes required for quorum : 2", "Quorum state             : QUORUM EXIST",
                 "Status Name       : LEADER", f"Follows           : pgpool {leader}", "Watchdog History", "Leader since",
                 f"Leader because           : {why}", f"  pgpool {leader} leads: {why}"):
        assert text in verbose, verbose
    assert json.loads(info(three, other, "--json"))["NodeCount"] == 3
    # Orders for all.
    three.sides[other].ok("reload_config", "-s", "cluster")
    for i in range(3):
        if i != other:
            waits.wait_for("it was told", lambda i=i: "watchdog received the reload config command" in
                           three.pools[i].log())
    daemons = [pool.daemon for pool in three.pools]
    three.sides[other].ok("stop_pgpool", "-s", "cluster", "-m", "fast")
    for pool, daemon in zip(three.pools, daemons):
        daemon.wait_exit(60)
        pool.daemon = None
        assert daemon.popen.returncode == 0


# Servers

def wait_settled(three: Three, at: int, *ids: int) -> None:
    for i in ids:
        waits.wait_for(f"pgpool {i} knows the primary", lambda i=i: column(three.pools[i], "role")[at] == "primary" and
                       column(three.pools[i], "status") == ["up"] * 3, 60)


def primary_of(three: Three, i: int) -> int | None:
    found = [k for k, role in enumerate(column(three.pools[i], "role")) if role == "primary"]
    return found[0] if found else None


def begun(three: Three) -> int:
    return sum(pool.log().count("promoting node") for pool in three.pools)


def test_a_lost_primary_is_replaced_once(trio, cluster):  # noqa: F811
    three = cluster([n.address for n in trio.nodes], **QUICK, **CALM).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    three.wait_events(f"the primary is node {trio.at}", 0, 1, 2)
    began = time.monotonic()
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("there is a new primary", lambda: primary_of(three, leader) not in (None, trio.at), 60)
    print(f"a new primary after {time.monotonic() - began:.2f} s")
    new = primary_of(three, leader)
    for i in range(3):
        waits.wait_for("all agree", lambda i=i: primary_of(three, i) == new, 60)
    three.wait_events("failover 1, about node", 0, 1, 2)
    waits.wait_for("all have the same log", lambda: three.events(0) == three.events(1) == three.events(2))
    assert f"failover 1: node {new} is to take the place of node {trio.at}" in three.events(0)
    assert begun(three) == 1
    assert "promoting node" in three.pools[leader].log()
    assert sum(n.daemon is not None and n.value("select pg_is_in_recovery()") == "f" for n in trio.nodes) == 1


def test_detached_is_detached_for_all(trio, cluster, tmp_path):  # noqa: F811
    """The command about it is run by the one that leads, with the number of the failover in the log of all."""
    tmp_path.chmod(0o777)
    ran = tmp_path / "ran"
    # No other one leads because the machine is busy: the command about a standby is not run again then.
    three = cluster([n.address for n in trio.nodes], failover_command=[f"echo {i} %d $PGPOOL_EPOCH >> {ran}" for i in range(3)], wd_election_timeout=3000,
                    **QUICK).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    other = next(i for i in range(3) if i != leader)
    node = trio.standbys[0]
    three.sides[other].ok("detach_node", "-n", str(node))
    for i in range(3):
        waits.wait_for("it is down", lambda i=i: column(three.pools[i], "status")[node] == "down", 60)
    waits.wait_for("its command has run", lambda: ran.exists() and f" {node} " in ran.read_text(encoding="ascii").rpartition("\n")[0])
    three.wait_events(f", about node {node}, is over", 0, 1, 2)
    epochs = re.findall(rf"failover (\d+), about node {node}, is over", "\n".join(three.events(other)))
    lines = [line.split()[1:] for line in ran.read_text(encoding="ascii").splitlines()]
    assert [found for found in lines if found[0] == str(node)] == [[str(node), epoch] for epoch in epochs], "all pgpools together run it once"
    # Also for who was away.
    third = next(i for i in range(3) if i not in (leader, other))
    three.kill(third)
    three.start(third)
    waits.wait_for("it is down here, too", lambda: column(three.pools[third], "status")[node] == "down", 60)
    three.sides[leader].ok("attach_node", "-n", str(node))
    for i in range(3):
        waits.wait_for("it is up", lambda i=i: column(three.pools[i], "status")[node] == "up", 60)


def test_a_lost_standby_is_attached_for_all(trio, cluster):  # noqa: F811
    """auto_failback = off: nobody had detached it, so nobody holds it down, and yet it waits for an operator; at whichever pgpool."""
    three = cluster([n.address for n in trio.nodes], auto_failback=False, **QUICK, **CALM).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    node = trio.standbys[0]
    trio.nodes[node].stop()
    for i in range(3):
        waits.wait_for("it is down", lambda i=i: column(three.pools[i], "status")[node] == "down", 60)
    three.wait_events(f"node {node} is lost", 0, 1, 2)
    trio.nodes[node].start()
    for i in range(3):
        waits.wait_for("it answers", lambda i=i: column(three.pools[i], "pg_status")[node] == "up", 60)
    waits.holds_for("it waits", lambda: [column(three.pools[i], "status")[node] for i in range(3)] == ["down"] * 3, 3)
    three.sides[(leader + 1) % 3].ok("attach_node", "-n", str(node))
    for i in range(3):
        waits.wait_for("it is up", lambda i=i: column(three.pools[i], "status")[node] == "up", 60)
    three.wait_events(f"node {node} is attached by ", 0, 1, 2)
    # Who begins later does not take that for news.
    third = (leader + 2) % 3
    three.kill(third)
    seen = len(three.pools[third].log())
    three.start(third)
    three.wait_voters(leader, 3)
    waits.wait_for("it knows all", lambda: three.events(third) == three.events(leader), 60)
    assert f"node {node} is attached by" not in three.pools[third].log()[seen:]


def test_who_is_attached_is_asked_at_once(trio, cluster):  # noqa: F811
    """By each pgpool, whichever of them was told: none waits for its next probe."""
    three = cluster([n.address for n in trio.nodes], **{**QUICK, "health_check_period": 600, "sr_check_period": 600}).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    node = trio.standbys[0]
    three.sides[leader].ok("detach_node", "-n", str(node))
    for i in range(3):
        waits.wait_for("it is down", lambda i=i: column(three.pools[i], "status")[node] == "down", 60)
    trio.nodes[node].stop()
    for i in range(3):
        waits.wait_for("it does not answer", lambda i=i: column(three.pools[i], "pg_status")[node] == "down", 60)
    trio.nodes[node].start()
    three.sides[(leader + 1) % 3].ok("attach_node", "-n", str(node))
    for i in range(3):
        waits.wait_for("it is up", lambda i=i: column(three.pools[i], "status")[node] == "up", 60)


@pytest.mark.slow
def test_a_switchover_is_made_by_the_leader(trio, cluster):  # noqa: F811
    """Whichever pgpool is asked: the one that leads promotes, once, and all follow."""
    three = cluster([n.address for n in trio.nodes], **QUICK, **CALM).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    three.wait_events(f"the primary is node {trio.at}", 0, 1, 2)
    other, new = (leader + 1) % 3, trio.standbys[0]
    done = three.sides[other].run("promote_node", "-s", "-n", str(new), seconds=60)
    assert done.returncode == 0, done
    for i in range(3):
        waits.wait_for("all follow", lambda i=i: primary_of(three, i) == new, 60)
    assert begun(three) == 1 and "promoting node" in three.pools[leader].log()
    assert trio.nodes[new].value("select pg_is_in_recovery()") == "f"


def test_a_minority_does_nothing(trio, cluster):  # noqa: F811
    three = cluster([n.address for n in trio.nodes], **QUICK).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    three.wait_events(f"the primary is node {trio.at}", 0, 1, 2)  # who begins anew knows it from the log alone
    left = next(i for i in range(3) if i != leader)
    for i in range(3):
        if i != left:
            three.kill(i)
    waits.wait_for("nobody leads", lambda: three.leader_of(left) is None, 60)
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("it is seen", lambda: column(three.pools[left], "status")[trio.at] == "down", 60)
    waits.wait_for("it is said", lambda: "nobody is promoted yet" in three.pools[left].log(), 60)
    assert begun(three) == 0
    assert all(n.value("select pg_is_in_recovery()") == "t" for i, n in enumerate(trio.nodes) if i != trio.at)
    # With a majority it is done; by one that has never seen the primary a minute after its start, for it cannot tell an
    # outage of all from this.
    back = next(i for i in range(3) if i != left)
    three.start(back)
    waits.wait_for("there is a new primary", lambda: primary_of(three, left) not in (None, trio.at), 120)
    print(f"pgpool {three.leader_of(left)} leads, {left} had been left, {back} began anew")
    assert begun(three) == 1
    three.wait_events("is over", left, back)


def test_the_leader_dies_with_the_primary(trio, cluster):  # noqa: F811
    """Whatever it had begun: the next one finishes, and nobody is promoted beside another."""
    three = cluster([n.address for n in trio.nodes], **QUICK).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    three.wait_events(f"the primary is node {trio.at}", 0, 1, 2)
    trio.primary.stop(signal.SIGQUIT)
    with contextlib.suppress(AssertionError):
        waits.wait_for("it has begun", lambda: "we have got the consensus" in three.pools[leader].log(), 5)
    three.kill(leader)
    left = [i for i in range(3) if i != leader]
    for i in left:
        waits.wait_for("there is a new primary", lambda i=i: primary_of(three, i) not in (None, trio.at), 60)
    waits.wait_for("both name the same", lambda: primary_of(three, left[0]) == primary_of(three, left[1]) not in (None, trio.at))
    assert sum(n.daemon is not None and n.value("select pg_is_in_recovery()") == "f" for n in trio.nodes) == 1
    three.wait_events("is over", *left)
