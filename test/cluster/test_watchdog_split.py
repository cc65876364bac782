# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_split: one of several pgpools, each on a host of its own, does not reach a server that the others reach: what is done about that
server, by the settings that say so; and half of the votes."""
import contextlib
import os
import signal

import pytest

from pgt import fog, postgres, procs, waits
from watchdog_lab import CLIENTS, PATIENCE, V4, Client, Cluster, clusters, server_on

pytestmark = pytest.mark.skipif(not postgres.is_installed(), reason="no PostgreSQL")
PRIMARY, STANDBY = CLIENTS + 1, CLIENTS + 2  # the hosts of the servers
TRUSTED = CLIENTS + 3
QUICK = {"health_check_period": 1, "health_check_timeout": 2, "health_check_max_retries": 0, "sr_check_period": 1, "auto_promote": "on"}


@pytest.fixture(scope="module")
def net():
    reason = fog.why_not()
    if reason:
        pytest.skip(reason)
    with contextlib.closing(fog.Fog(TRUSTED + 1)) as it:
        it.cloud.clear = {CLIENTS}
        yield it


@pytest.fixture
def servers(net):
    primary = server_on(net.hosts[PRIMARY], wal_keep_size="64MB")
    standby = server_on(net.hosts[STANDBY], primary, wal_receiver_timeout="2s")
    primary.rows("create table written (n int primary key)")
    waits.wait_for("the standby follows", lambda: primary.value("select count(*) from pg_stat_replication") == "1", PATIENCE)
    yield [primary, standby]
    net.cloud.heal()
    for s in (standby, primary):
        if s.daemon is not None:
            s.stop(signal.SIGQUIT)


@pytest.fixture
def cluster(net, servers):
    with clusters(net) as make:
        yield lambda **more: make(V4, [s.address for s in servers], **(QUICK | more))
    net.cloud.heal()


def cut(c: Cluster, a: int, b: int) -> None:
    c.net.cloud.cut |= {(a, b), (b, a)}


def cut_off_primary(c: Cluster, leader: int) -> None:
    """From the leader, and from the standby: nobody is promoted by SQL while a standby still streams."""
    cut(c, leader, PRIMARY)
    cut(c, STANDBY, PRIMARY)


def status_of(c: Cluster, i: int, node: int) -> str:
    rows = c.members[i].ask("SHOW POOL_NODES")
    return rows[node]["status"] if rows else "?"


def primary_of(c: Cluster, i: int) -> int | None:
    found = [int(r["node_id"]) for r in c.members[i].ask("SHOW POOL_NODES") if r["role"] == "primary"]
    return found[0] if found else None


def settled(c: Cluster, *ids: int) -> None:
    for i in ids:
        waits.wait_for(f"pgpool {i} uses both servers", lambda i=i: [status_of(c, i, n) for n in (0, 1)] == ["up", "up"] and primary_of(c, i) == 0, PATIENCE)
        waits.wait_for(f"pgpool {i} knows it from the log", lambda i=i: any(
            "the primary is node 0" in r["text"] for r in c.members[i].ask("SHOW POOL_WATCHDOG_EVENTS")), PATIENCE)


def wait_primary(c: Cluster, node: int, *ids: int) -> None:
    for i in ids:
        try:
            waits.wait_for(f"pgpool {i} has the new primary", lambda i=i: primary_of(c, i) == node, PATIENCE)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{c.logs()}") from None


def promotions(c: Cluster) -> int:
    return sum(m.log().count("promoting node") for m in c.members)


@pytest.mark.slow
def test_one_that_does_not_lead_misses_the_primary(cluster, servers):
    """It keeps away from that server, by itself; nobody else does, nothing is promoted, and who has the address notices nothing."""
    c = cluster(wd_priority=[9, 1, 1])
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    settled(c, 0, 1, 2)
    with contextlib.closing(Client(c.net.hosts[CLIENTS], V4, "insert into written values ({})")) as w:
        w.wait_more()
        cut(c, 1, PRIMARY)
        waits.wait_for("pgpool 1 does not use it", lambda: status_of(c, 1, 0) == "down", PATIENCE)
        waits.wait_for("the others know of its vote", lambda: c.members[0].ask("SHOW POOL_WATCHDOG")[1]["lost_nodes"] == "0", PATIENCE)
        waits.holds_for("nobody else gives it up", lambda: [status_of(c, i, 0) for i in (0, 2)] == ["up", "up"] and promotions(c) == 0, 2)
        w.wait_more()
        assert not w.errors
        c.net.cloud.heal()
        waits.wait_for("pgpool 1 uses it again", lambda: status_of(c, 1, 0) == "up" and primary_of(c, 1) == 0, PATIENCE)
    assert servers[1].value("select pg_is_in_recovery()") == "t"


def end_process(c: Cluster, i: int, title: str) -> None:
    """The process that the supervisor starts in its place has another number."""
    def found() -> list[int]:
        return [pid for pid in procs.session_pids(c.members[i].daemon.pid) if title in procs.command_line(pid)]
    old = waits.wait_for(f"{title} of pgpool {i}", found, PATIENCE)
    os.kill(old[0], signal.SIGKILL)
    waits.wait_for(f"another {title}", lambda: found() not in ([], old), PATIENCE)


def wait_lost_known(c: Cluster, i: int) -> None:
    waits.wait_for(f"pgpool {i} has read the log", lambda: any("node 1 is lost" in r["text"] for r in c.members[i].ask("SHOW POOL_WATCHDOG_EVENTS")), PATIENCE)


def missed_by_most(cluster) -> Cluster:
    """Pgpool 2 alone reaches the standby."""
    c = cluster(wd_priority=[9, 5, 1], wd_election_timeout="1500ms")
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    settled(c, 0, 1, 2)
    for i in (0, 1):
        cut(c, i, STANDBY)
    return c


def test_most_miss_a_standby(cluster):
    """It is down for all, also for one that reaches it, as with pgpool-II: all have the same status. And it is back for all."""
    c = missed_by_most(cluster)
    for i in range(3):
        waits.wait_for(f"it is down for pgpool {i}", lambda i=i: status_of(c, i, 1) == "down", PATIENCE)
    assert "node 1 is not used: the pgpools of the watchdog cluster have agreed that it is lost" in c.members[2].log()
    row = c.members[2].ask("SHOW POOL_NODES")[1]
    assert row["pg_status"] == "up"
    assert c.members[2].ask("SHOW POOL_WATCHDOG")[2]["lost_nodes"] == "", "it has no vote about what it reaches"
    waits.holds_for("and stays", lambda: status_of(c, 2, 1) == "down" and primary_of(c, 2) == 0, 3)
    for title in ("pgpool: watchdog", "pgpool: monitor"):
        end_process(c, 2, title)
        wait_lost_known(c, 2)
        waits.holds_for("whoever begins anew", lambda: status_of(c, 2, 1) == "down", 3)
    assert "request auto failback, node id:1" not in c.members[2].log()
    c.net.cloud.heal()
    for i in range(3):
        waits.wait_for(f"it is up for pgpool {i}", lambda i=i: status_of(c, i, 1) == "up", PATIENCE)
    assert promotions(c) == 0


def test_who_missed_a_standby_is_gone(cluster):
    """Nobody leads any more, who could find it well again, and no order of an operator is carried out: it is used by who reaches it."""
    c = missed_by_most(cluster)
    waits.wait_for("it is down for pgpool 2", lambda: status_of(c, 2, 1) == "down", PATIENCE)
    for i in (0, 1):
        c.members[i].kill()
    waits.wait_for("it is up for pgpool 2", lambda: status_of(c, 2, 1) == "up", PATIENCE)
    assert primary_of(c, 2) == 0


@pytest.mark.slow
def test_who_leads_misses_the_primary(cluster, servers):
    """No majority agrees: it fails nothing over, and after a while gives the lead, and the address, to one that reaches the primary; a higher
    priority is no reason to take it back before that is over."""
    c = cluster(wd_priority=[9, 1, 1])
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    settled(c, 0, 1, 2)
    cut(c, 0, PRIMARY)
    new = c.wait_holder((0,))
    waits.wait_for("the log says so", lambda: "building consensus for request" in c.members[0].log(), PATIENCE)
    assert promotions(c) == 0 and primary_of(c, new) == 0
    with contextlib.closing(Client(c.net.hosts[CLIENTS], V4, "insert into written values ({})")) as w:
        w.wait_more()
        waits.holds_for("it stays there", lambda: c.members[new].leader() == new, 5)
        assert not w.errors
    c.net.cloud.heal()
    waits.wait_for("the higher priority leads again", lambda: c.holder() == 0, PATIENCE)
    assert promotions(c) == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["failover_require_consensus", "allow_multiple_failover_requests_from_node"])
def test_one_is_enough(cluster, servers, how):
    """By the settings the leader alone decides: at once, or when it has said so as often as a majority has votes."""
    value = {"failover_require_consensus": "off", "allow_multiple_failover_requests_from_node": "on"}[how]
    c = cluster(wd_priority=[9, 1, 1], **{how: value})
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    settled(c, 0, 1, 2)
    cut_off_primary(c, 0)
    wait_primary(c, 1, 0, 1, 2)
    assert promotions(c) == 1
    waits.wait_for("the log says so", lambda: "1 of 3 pgpools do not reach it" in c.members[0].log(), PATIENCE)
    assert servers[1].value("select pg_is_in_recovery()") == "f"
    # The others still reach the old one, and write there no more.
    waits.holds_for("nobody takes it for the primary", lambda: all(primary_of(c, i) == 1 for i in range(3)), 2)


@pytest.mark.slow
def test_nobody_leads_and_each_acts_alone(cluster, servers):
    """failover_when_quorum_exists = off: one that hears nobody fails over."""
    c = cluster(failover_when_quorum_exists="off", wd_priority=[9, 1, 1])
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    settled(c, 0, 1, 2)
    for i in (0, 1):
        c.members[i].kill()
    waits.wait_for("nobody leads", lambda: c.members[2].leader() is None, PATIENCE)
    servers[0].stop(signal.SIGQUIT)
    waits.wait_for("there is a new primary", lambda: primary_of(c, 2) == 1, PATIENCE)
    assert promotions(c) == 1


@pytest.mark.parametrize("trusted", ["reachable", pytest.param("silent", marks=pytest.mark.slow), pytest.param("none", marks=pytest.mark.slow)])
def test_half_of_the_votes(cluster, net, servers, trusted):
    """Of two pgpools the leader alone does not reach the primary: that is half. It is enough only while a trusted server answers, and the log tells
    what is risked."""
    more = {} if trusted == "none" else {"trusted_servers": net.hosts[TRUSTED].address, "trusted_server_command": "ping -q -c1 -W1 %h", "wd_interval": 3600}
    # Nobody else leads because the machine is busy: the other one reaches the primary, and would have no reason.
    c = cluster(wd_priority=[9, 1, 1], enable_consensus_with_half_votes="on", wd_election_timeout="1500ms", **more)
    c.members[:] = c.members[:2]
    for m in c.members:
        m.write(hostname2="", wd_port2=0, pgpool_port2=0)
    c.start()
    waits.wait_for("pgpool 0 has the address", lambda: c.holder() == 0, PATIENCE)
    settled(c, 0, 1)
    told = c.members[0].log()
    assert ("has no effect without trusted_servers" if trusted == "none" else "Of two that only do not hear each other") in told
    if trusted == "silent":
        cut(c, 0, TRUSTED)
    cut_off_primary(c, 0)
    if trusted == "reachable":
        wait_primary(c, 1, 0, 1)
        assert promotions(c) == 1
        waits.wait_for("the log says so", lambda: "1 of 2 pgpools do not reach it" in c.members[0].log(), PATIENCE)
        return
    waits.wait_for("the other one leads", lambda: c.holder() == 1, PATIENCE)
    assert promotions(c) == 0 and primary_of(c, 1) == 0
    assert servers[1].value("select pg_is_in_recovery()") == "t"
