# SPDX-License-Identifier: PostgreSQL
"""test_failover_again: what sessions do about a server that is not the primary any more: what it refused or did not answer is
made again, reads go on without a primary, and nobody is believed before all have been asked."""
import signal

import pytest

from pgt import late, procs, waits, wire
from pgt.wire import Wire
from test_failover import pool_for, wait_everywhere, write
from test_monitor import column, logged_in, monitor_pid, show, trio, wait_settled  # noqa: F401


LOOKS_S = 2.5  # decide.c waits three seconds for who says nothing at a start
at_once = pytest.mark.skipif(late.reads_pieces(), reason="a sequence that comes in pieces goes where writes go (doc/internals/known-gaps.md)")


def tags(messages) -> list[str]:
    """What the messages are, errors by their code, without ParameterStatus, and what is said of a long wait (query_wait_notify)."""
    return [m.fields["C"] if m.type == "E" else m.type for m in messages if m.type not in "SN"]


def refused_writes(trio, pool, base: int):
    """Before: sessions of `pool` that have written. After the primary has become read-only and another one was promoted:
    what each of them gets."""
    clients = [logged_in(pool) for _ in range(5)]
    simple, extended, named, halves, several = clients
    for w in clients:
        w.rows("insert into notes values (0)")
    reader = Wire(pool.address)
    assert reader.login("looks")[-1].type == "Z"
    named.rows("set application_name to 'keeps'")
    named.send(wire.parse("insert into notes values ($1) returning current_setting('application_name')", "s") + wire.SYNC)
    named.ready()
    assert tags(reader.simple("insert into notes values (2)")) == ["25006", "Z"]
    yield
    # Unlike SHOW POOL_NODES this one does not look first.
    assert show(pool, "POOL_BACKEND_STATS")[trio.at]["role"] == "primary", "it has looked too early for this test"
    assert "25006" in tags(several.simple("insert into notes values (3); commit; insert into notes values (4)"))
    assert "25006" in tags(halves.simple("call halves()"))
    monitor = monitor_pid(pool)
    procs.stand_still(monitor)  # what is under way when it has looked is not refused, but cut off
    try:
        extended.send(wire.parse("select 1", "new") + wire.parse("insert into notes values ($1)") + wire.bind([str(base + 1)])
                      + wire.describe(what="P") + wire.execute() + wire.SYNC)
        simple.send(wire.query(f"insert into notes values ({base})"))
        named.send(wire.bind([str(base + 2)], name="s") + wire.describe(what="P") + wire.execute() + wire.SYNC)
        waits.wait_for("all are refused, and wait until somebody has looked", lambda: [
            int(r["wait_ms"]) > 300 for r in show(pool, "POOL_CLIENTS") if r["state"] == "waiting"] == [True] * 3)
    finally:
        procs.go_on(monitor)
    assert tags(simple.ready()) == ["C", "Z"]
    assert tags(extended.ready()) == ["1", "1", "2", "n", "C", "Z"]
    found = named.ready()
    assert tags(found) == ["2", "T", "D", "C", "Z"] and [m.row() for m in found if m.type == "D"] == [[b"keeps"]]
    assert tags(reader.simple("insert into notes values (2)"))[-2:] == ["25006", "Z"]
    simple.rows(f"insert into notes values ({base + 3})")
    for w in [*clients, reader]:
        w.bye()


@at_once
def test_a_refused_write_is_made_again(trio, start_pool):
    """Somebody makes the primary read-only and promotes a standby, between two probes: the first write that is refused
    makes pgpool look, and is made on the new primary, once. What is not a lone statement gets the error."""
    pools = [pool_for(start_pool, trio, load_balance_mode=True, pool_mode=mode, health_check_period=600, sr_check_period=600,
                      failover_wait=60)
             for mode in ("session", "transaction")]
    new = trio.standbys[0]
    for pool in pools:
        wait_settled(pool, trio.at)
    write(pools[0], "notes")
    trio.primary.rows("create role looks login")
    trio.primary.rows("alter role looks set default_transaction_read_only to on")
    trio.primary.rows("grant all on notes to looks")
    trio.primary.rows("create procedure halves() language plpgsql as "
                      "$$begin insert into notes values (50); commit; insert into notes values (51); end$$")
    wait_everywhere(trio, "notes")
    sides = [refused_writes(trio, pool, 10 * (i + 1)) for i, pool in enumerate(pools)]
    for side in sides:
        next(side)
    trio.primary.rows("alter system set default_transaction_read_only to on")
    trio.primary.reload()
    waits.wait_for("it takes no writes", lambda: trio.primary.value("show default_transaction_read_only") == "on")
    trio.promote(new)
    for side in sides:
        assert next(side, None) is None
    wrote = [int(r[0]) for r in trio.nodes[new].rows("select a from notes where a > 1 order by a")]
    assert wrote == [10, 11, 12, 13, 20, 21, 22, 23]


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_a_read_on_a_lost_primary_is_made_again(trio, start_pool):
    """A read that was under way on the client's own connection when its server was killed is answered by another."""
    pool = pool_for(start_pool, trio, load_balance_mode=True, auto_promote=True, failover_wait=60,
                    **{f"backend_weight{i}": int(i == trio.at) for i in range(3)})
    wait_settled(pool, trio.at)
    write(pool, "notes")
    wait_everywhere(trio, "notes")
    with logged_in(pool) as simple, logged_in(pool) as extended, logged_in(pool) as writer, logged_in(pool) as twice, \
            Wire(trio.primary.socket) as lock:
        lock.login()
        lock.rows("begin")
        lock.rows("lock table notes in access exclusive mode")
        simple.send(wire.query("select a from notes"))
        extended.send(wire.parse("select a from notes", "r") + wire.bind(name="r") + wire.describe(what="P")
                      + wire.execute() + wire.SYNC)
        writer.send(wire.parse("insert into notes values (7)", "w") + wire.bind(name="w") + wire.execute() + wire.SYNC)
        # the second Parse waits at pgpool for the answer to the first
        twice.send(wire.parse("select a from notes", "t") + wire.bind(name="t") + wire.execute()
                   + wire.parse("select a from notes", "t") + wire.bind(name="t") + wire.execute() + wire.SYNC)
        waits.wait_for("they wait", lambda: trio.primary.value("select count(*) from pg_locks where not granted") == "4")
        trio.primary.stop(signal.SIGKILL)
        found = simple.ready(seconds=60)
        assert tags(found) == ["T", "D", "C", "Z"]
        assert tags(extended.ready()) == ["1", "2", "T", "D", "C", "Z"]
        assert tags(twice.ready()) == ["1", "2", "D", "C", "42P05", "Z"]
        assert tags(twice.simple("select 'once' from notes")) == ["T", "D", "C", "Z"], "no reply comes twice"
        assert tags(writer.ready())[-2:] == ["08006", "Z"], "nobody knows whether it was done"
        writer.send(wire.parse("insert into notes values (8)", "w") + wire.bind(name="w") + wire.execute() + wire.SYNC)
        assert tags(writer.ready(seconds=60)) == ["1", "2", "C", "Z"]


def writes_when_it_has_asked(trio, start_pool, new, **conf) -> tuple[str, float]:
    """Where the first write of a pgpool goes that is started while server `new` answers nothing, and how long that server did not."""
    procs.stand_still(new.daemon.pid)
    began = waits.now()
    try:
        # How long it is stopped depends on how busy the machine is: nobody gives up on it.
        pool = pool_for(start_pool, trio, health_check_timeout=60, **conf)
        w = Wire(pool.address, seconds=30)
        w.send_startup("postgres", "postgres")
        waits.wait_for("the former one has been asked", lambda: trio.primary.sessions("application_name = 'pgpool monitor'") != [])
    finally:
        procs.go_on(new.daemon.pid)
    took = waits.now() - began
    w.read_until("Z")
    ((port,),) = w.rows("insert into notes values (1) returning current_setting('port')")
    w.bye()
    pool.stop()
    return port.decode(), took


@pytest.mark.parametrize("trio", [2], indirect=True)
@pytest.mark.parametrize("balance, mode", [(True, "session"), (False, "session"), (True, "transaction")])
def test_a_start_asks_everybody_first(trio, start_pool, balance, mode):
    """Two servers say that they are the primary, and the new one answers late: pgpool has just been started, and no write
    goes to the former one. Who says nothing for three seconds is waited for no longer: a slow machine has some tries."""
    trio.primary.rows("create table notes (a int)")
    wait_everywhere(trio, "notes")
    new = trio.nodes[trio.standbys[0]]
    new.rows("select pg_promote()")
    for _ in range(8):
        port, took = writes_when_it_has_asked(trio, start_pool, new, load_balance_mode=balance, pool_mode=mode)
        if port == str(new.port):
            return
        assert took > LOOKS_S, "it was there in time"
    pytest.skip(f"the machine is too slow: the server was stopped for {took:.1f} s")


def waits_for_the_lost_one(pool):
    """Before: sessions. While the primary is lost, and nobody knows: reads that wait for it. When that is known: what they get."""
    with logged_in(pool) as simple, logged_in(pool) as extended, logged_in(pool) as looks:
        for w in (simple, extended):
            w.rows("select a from notes")  # the catalogue has been asked
        yield
        simple.send(wire.query("select a from notes"))
        extended.send(wire.parse("select a from notes") + wire.bind() + wire.execute() + wire.SYNC)
        waits.wait_for("both wait", lambda: sum(b"waiting" in m.row() for m in looks.simple("show pool_clients") if m.type == "D") == 2)
        yield
        assert tags(simple.ready(seconds=60)) == ["T", "D", "C", "Z"]
        assert tags(extended.ready(seconds=60)) == ["1", "2", "D", "C", "Z"]


@at_once
@pytest.mark.parametrize("trio", [2], indirect=True)
def test_a_read_that_waits_for_a_lost_primary_goes_elsewhere(trio, start_pool):
    """No connection to the primary can be opened, and nobody knows yet that it is lost. When that is known, and nobody takes its
    place, a read that waited for it is answered by a standby."""
    pools = [pool_for(start_pool, trio, load_balance_mode=True, pool_mode=mode, failover_wait=100, num_init_children=1,
                      **{f"backend_weight{i}": 10000 if i == trio.at else 1 for i in range(3)}) for mode in ("session", "transaction")]
    for pool in pools:
        wait_settled(pool, trio.at)
    write(pools[0], "notes")
    wait_everywhere(trio, "notes")
    sides = [waits_for_the_lost_one(pool) for pool in pools]
    for side in sides:
        next(side)
    monitors = [monitor_pid(pool) for pool in pools]
    for pid in monitors:
        procs.stand_still(pid)
    try:
        trio.primary.stop(signal.SIGKILL)
        for side in sides:
            next(side)
    finally:
        for pid in monitors:
            procs.go_on(pid)
    for side in sides:
        assert next(side, None) is None


@at_once
def test_reads_go_on_without_a_primary(trio, start_pool):
    """Nobody takes the lost primary's place: sessions that were on it read from a standby, and their writes wait."""
    pool = pool_for(start_pool, trio, load_balance_mode=True, failover_wait=60, num_init_children=1)
    wait_settled(pool, trio.at)
    write(pool, "notes")
    wait_everywhere(trio, "notes")
    new = trio.standbys[0]
    with logged_in(pool) as simple, logged_in(pool) as extended, logged_in(pool) as writer:
        simple.rows("set application_name to 'keeps'")
        simple.rows("select current_setting('application_name') from notes limit 1")  # the catalogue has been asked
        trio.primary.stop(signal.SIGKILL)
        for _ in range(12):  # also where the draw falls on the standby that the session is on
            assert simple.rows("select current_setting('application_name') from notes limit 1") == [[b"keeps"]]
            extended.send(wire.parse("select a from notes") + wire.bind() + wire.execute() + wire.SYNC)
            assert tags(extended.ready()) == ["1", "2", "D", "C", "Z"]
        waits.wait_for("nobody is the primary", lambda: "primary" not in column(pool, "role"))
        writer.send(wire.query("insert into notes values (6) returning current_setting('port')"))
        simple.send(wire.query("insert into notes values (6) returning current_setting('port')"))
        assert writer.is_quiet(0.3) and simple.is_quiet(0.1)
        trio.nodes[new].rows("select pg_promote()")
        for w in (writer, simple):
            assert [m.row() for m in w.ready(seconds=60) if m.type == "D"] == [[str(trio.nodes[new].port).encode()]]


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_who_waits_in_a_line_moves_on(trio, start_pool):
    """The only connection to the primary is in use, and others wait for it, when another server becomes the primary: they are
    served there."""
    pool = pool_for(start_pool, trio, load_balance_mode=True, pool_mode="transaction", max_backend_connections=1, failover_wait=20,
                    num_init_children=1)
    wait_settled(pool, trio.at)
    write(pool, "notes")
    wait_everywhere(trio, "notes")
    new = trio.nodes[trio.standbys[0]]
    with logged_in(pool) as first, logged_in(pool) as second, logged_in(pool) as third:
        first.rows("begin")
        first.rows("insert into notes values (4)")
        for w in (second, third):
            w.send(wire.query("insert into notes values (5) returning current_setting('port')"))
        assert second.is_quiet(0.3) and third.is_quiet(0)
        trio.promote(trio.standbys[0])
        for w in (second, third):
            assert [m.row() for m in w.ready(seconds=60) if m.type == "D"] == [[str(new.port).encode()]]
        assert not [m.fields for m in second.simple("pgpool reconnect") if m.type == "E"], "a superuser is one on all servers"
