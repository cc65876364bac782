# SPDX-License-Identifier: PostgreSQL
"""test_balance_lsn: what a read must at least see: read_consistency with standbys that replay late, tables
written lately (dml_adaptive_global), and the catalogue after another worker's DDL. The primary is on node
0 and on node 2; replication is asynchronous."""
import random
import threading
import time

import pytest

from pgt import waits
from pgt.wire import SYNC, Wire, bind, execute, parse
from test_balance_tx import PORT, code, is_standby, ok, weights
from test_monitor import Trio, column, pool_for, wait_settled


@pytest.fixture(scope="module", params=[0, 2], ids=["primary0", "primary2"])
def cluster(request):
    it = Trio(request.param)
    it.primary.rows("create table t(a int)")
    it.primary.rows("insert into t values (7)")
    it.primary.rows("create table w(id int)")
    it.primary.rows("create table other(id int)")
    yield it
    it.stop()


@pytest.fixture
def make(cluster, start_pool):
    def start(**conf):
        replay(cluster, "resume")
        caught_up(cluster)
        one = pool_for(start_pool, cluster, **{"load_balance_mode": True, "num_init_children": 1,
                                               **weights(cluster), **conf})
        wait_settled(one, cluster.at)
        return one
    yield start
    replay(cluster, "resume")


def login(cluster, pool) -> Wire:
    wire = Wire(pool.address, seconds=20)
    assert wire.login()[-1].type == "Z"
    waits.wait_for("reads are balanced", lambda: away(cluster, wire))
    return wire


def replay(cluster, what: str) -> None:
    for i in cluster.standbys:
        cluster.nodes[i].rows(f"select pg_wal_replay_{what}()")


# With synchronous_commit = off what is written ends before the last commit. Where the next record will begin is
# behind the header of its page, if there is one; what was replayed ends in front of it.
END_OF_WAL = """select x - case when x % pg_size_bytes(current_setting('wal_segment_size')) = 40 then 40
                     when x % 8192 = 24 then 24 else 0 end from pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') x"""


def caught_up(cluster) -> None:
    at = cluster.primary.value(END_OF_WAL)
    for i in cluster.standbys:
        waits.wait_for("it has replayed", lambda i=i: cluster.nodes[i].value(
            f"select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') >= {at}") == "t")


def away(cluster, wire) -> bool:
    return is_standby(cluster, wire.value(PORT))


COUNT = "select count(*), inet_server_port() from w"


def count(wire) -> tuple[int, int]:
    found = wire.rows(COUNT)[0]
    return int(found[0]), int(found[1])


def test_eventual_shows_less(cluster, make):
    """The harness can see a stale read at all: without this, the others prove nothing."""
    wire = login(cluster, make())
    before, _ = count(wire)
    replay(cluster, "pause")
    ok(wire, "insert into w values (1)")
    assert count(wire)[0] == before
    wire.bye()


@pytest.mark.parametrize("how", ["session", "global"])
def test_own_writes_are_seen(cluster, make, how):
    wire = login(cluster, make(read_consistency=how, read_consistency_wait=200))
    caught_up(cluster)  # `before` may come from a standby
    before, _ = count(wire)
    replay(cluster, "pause")
    for n in range(5):
        ok(wire, "insert into w values (1)")
        assert count(wire) == (before + n + 1, cluster.primary.port)
    ok(wire, "begin", "insert into w values (2)", "commit")
    assert count(wire)[0] == before + 6
    wire.send(parse("insert into w values (3)") + bind() + execute() + SYNC)
    assert code(wire.ready()) is None
    wire.send(parse(COUNT) + bind() + execute() + SYNC)
    assert next(m for m in wire.ready() if m.type == "D").row()[0] == str(before + 7).encode()
    ok(wire, "begin read only")
    assert count(wire)[0] == before + 7
    ok(wire, "commit", "begin")
    assert count(wire)[0] == before + 7
    ok(wire, "commit")
    replay(cluster, "resume")
    caught_up(cluster)
    assert is_standby(cluster, count(wire)[1])
    if how == "session":  # within a transaction nothing is asked: what was missed is asked when it is over
        ok(wire, "begin", "insert into w values (4)", "commit")
        ok(wire, "begin")
        count(wire)
        ok(wire, "commit")
        caught_up(cluster)
        ok(wire, "begin")
        assert is_standby(cluster, count(wire)[1])
        ok(wire, "commit")
    wire.bye()


def test_waits_for_the_standby(cluster, make):
    wire = login(cluster, make(read_consistency="session", read_consistency_wait=10000))
    before, _ = count(wire)
    replay(cluster, "pause")
    ok(wire, "insert into w values (1)")
    later = threading.Timer(0.5, replay, (cluster, "resume"))
    later.start()
    began = time.monotonic()
    seen, port = count(wire)
    later.join()
    assert (seen, is_standby(cluster, port)) == (before + 1, True)
    assert 0.3 < time.monotonic() - began < 8
    wire.bye()


def test_session_that_has_not_written_does_not_wait(cluster, make):
    pool = make(read_consistency="session", read_consistency_wait=10000)
    wire, writer = login(cluster, pool), login(cluster, pool)
    before, _ = count(wire)
    replay(cluster, "pause")
    ok(writer, "insert into w values (1)")
    began = time.monotonic()
    seen, port = count(wire)
    assert (seen, is_standby(cluster, port)) == (before, True)
    assert time.monotonic() - began < 3
    wire.bye()
    writer.bye()


def test_global_sees_what_others_wrote(cluster, make):
    pool = make(read_consistency="global", read_consistency_wait=100, num_init_children=2)
    wires = [login(cluster, pool) for _ in range(4)]
    before, _ = count(wires[0])
    replay(cluster, "pause")
    for n, writer in enumerate(wires):
        ok(writer, "insert into w values (1)")
        assert [count(reader)[0] for reader in wires] == [before + n + 1] * 4
    for wire in wires:
        wire.bye()


@pytest.mark.parametrize("how", ["off", "dml_adaptive"])
def test_uncommitted_writes_are_seen(cluster, make, how):
    """Whatever the settings say of reads after a write: what is not committed is on the primary only."""
    wire = login(cluster, make(read_consistency="session", disable_load_balance_on_write=how))
    before, _ = count(wire)
    ok(wire, "begin", "insert into w values (1)")
    assert count(wire) == (before + 1, cluster.primary.port)
    ok(wire, "rollback")
    assert count(wire)[0] == before
    wire.bye()


def test_tables_written_lately(cluster, make):
    """Somebody's write keeps everybody's reads of that table on the primary for a while; others go on."""
    pool = make(disable_load_balance_on_write="dml_adaptive_global", num_init_children=2,
                track_table_mutation_cold_start_duration=0, track_table_mutation_max_staleness=60000,
                sr_check_period=1)
    wires = [login(cluster, pool) for _ in range(4)]
    other = "select inet_server_port() from other right join t on true limit 1"
    table = "select inet_server_port() from w right join t on true limit 1"
    for wire in wires:
        waits.wait_for("nothing was written lately", lambda wire=wire: is_standby(cluster, wire.value(table)))
    ok(wires[0], "begin", "insert into w values (1)", "rollback")
    for wire in wires:
        assert is_standby(cluster, wire.value(table)), "rolled back"
    replay(cluster, "pause")
    cluster.primary.rows("drop table if exists lags; create table lags()")
    waits.wait_for("the lag is known, of which the time is a multiple", lambda: all(
        float(column(pool, "replication_delay")[i].split()[0]) >= 1 for i in cluster.standbys), 20)
    ok(wires[1], "begin", "insert into w values (1)", "commit")
    assert [is_standby(cluster, wire.value(table)) for wire in wires] == [False] * 4
    assert [is_standby(cluster, wire.value(other)) for wire in wires] == [True] * 4
    replay(cluster, "resume")
    waits.wait_for("the mark runs out", lambda: is_standby(cluster, wires[2].value(table)), 30)
    for wire in wires:
        wire.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_ddl_in_another_worker(cluster, make, mode):
    """A function becomes volatile: all workers know at once, though they had asked before. (A session that
    called it stays on the primary: it may have changed anything.)"""
    pool = make(num_init_children=2, relcache_expire=0, pool_mode=mode)
    cluster.primary.rows("create or replace function f() returns int language sql stable as 'select 1'")
    replay(cluster, "resume")
    caught_up(cluster)
    for i in cluster.standbys:
        waits.wait_for("the function is there", lambda i=i: cluster.nodes[i].value(
            "select count(*) from pg_proc where proname = 'f'") == "1")
    wires = [login(cluster, pool) for _ in range(12)]
    call = "select inet_server_port() from t, f() limit 1"
    assert [is_standby(cluster, w.value(call)) for w in wires] == [True] * 12
    ok(wires[0], "create or replace function f() returns int language sql volatile as 'select 1'")
    assert [is_standby(cluster, w.value(call)) for w in wires[:6]] == [False] * 6
    ok(wires[3], "begin", "create or replace function f() returns int language sql stable as 'select 1'", "commit")
    caught_up(cluster)
    assert [is_standby(cluster, w.value(call)) for w in wires[6:]] == [True] * 6
    for w in wires:
        w.bye()


# ----------------------------------------------------------------- followed clients

SHARED = {"pool_mode": "transaction"}


def batch(wire, sql: str, *before: bytes) -> list:
    wire.send(b"".join(before) + parse(sql) + bind() + execute() + SYNC)
    return wire.ready()


def batch_count(wire) -> tuple[int, int]:
    found = next(m for m in batch(wire, COUNT) if m.type == "D").row()
    return int(found[0]), int(found[1])


@pytest.mark.parametrize("how", ["session", "global"])
def test_own_writes_are_seen_in_transaction_mode(cluster, make, how):
    wire = login(cluster, make(read_consistency=how, read_consistency_wait=200, **SHARED))
    caught_up(cluster)
    before, port = count(wire)
    assert is_standby(cluster, port)
    replay(cluster, "pause")
    for n in range(5):
        ok(wire, "insert into w values (1)")
        assert count(wire) == (before + n + 1, cluster.primary.port)
    ok(wire, "begin", "insert into w values (2)", "commit")
    assert count(wire)[0] == before + 6
    assert code(batch(wire, "insert into w values (3)")) is None
    assert batch_count(wire) == (before + 7, cluster.primary.port)
    ok(wire, "begin read only")
    assert count(wire)[0] == before + 7
    assert count(wire)[0] == before + 7
    ok(wire, "commit", "begin")
    assert count(wire)[0] == before + 7
    ok(wire, "commit")
    replay(cluster, "resume")
    caught_up(cluster)
    assert is_standby(cluster, count(wire)[1])
    assert is_standby(cluster, batch_count(wire)[1])
    ok(wire, "begin isolation level repeatable read, read only")
    assert is_standby(cluster, count(wire)[1]) and count(wire)[0] == before + 7
    ok(wire, "commit")
    wire.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("virtual", [True, False])
def test_each_read_of_a_read_only_transaction_sees_what_others_wrote(cluster, make, mode, virtual):
    """With global: each statement of READ COMMITTED has a snapshot of its own, and what others have committed by then is
    to be in it. With one snapshot for all the transaction may be a standby's."""
    pool = make(read_consistency="global", read_consistency_wait=100, pool_mode=mode, virtual_begin=virtual)
    wire, writer = login(cluster, pool), login(cluster, pool)
    for begin in ("begin read only", "start transaction read only, isolation level read committed"):
        caught_up(cluster)
        ok(wire, begin)
        before, port = count(wire)
        assert port == cluster.primary.port
        replay(cluster, "pause")
        ok(writer, "insert into w values (1)")
        assert count(wire)[0] == before + 1
        ok(wire, "commit")
        replay(cluster, "resume")
    caught_up(cluster)
    ok(wire, "begin read only, isolation level repeatable read")
    before, port = count(wire)
    assert is_standby(cluster, port)
    ok(writer, "insert into w values (1)")
    assert count(wire)[0] == before
    ok(wire, "commit")
    wire.bye()
    writer.bye()


def test_waits_for_the_standby_in_transaction_mode(cluster, make):
    wire = login(cluster, make(read_consistency="session", read_consistency_wait=10000, **SHARED))
    for read in (count, batch_count):
        before, _ = count(wire)
        replay(cluster, "pause")
        ok(wire, "insert into w values (1)")
        later = threading.Timer(0.5, replay, (cluster, "resume"))
        later.start()
        began = time.monotonic()
        seen, port = read(wire)
        later.join()
        assert (seen, is_standby(cluster, port)) == (before + 1, True)
        assert 0.3 < time.monotonic() - began < 8
        caught_up(cluster)
    wire.bye()


def test_global_in_transaction_mode(cluster, make):
    """More clients than links, in two workers: each sees what any of them has committed."""
    pool = make(read_consistency="global", read_consistency_wait=100, num_init_children=2, default_pool_size=2,
                **SHARED)
    wires = [login(cluster, pool) for _ in range(5)]
    caught_up(cluster)
    before, port = count(wires[0])
    assert is_standby(cluster, port)
    replay(cluster, "pause")
    for n, writer in enumerate(wires):
        ok(writer, "insert into w values (1)")
        assert [count(reader)[0] for reader in wires] == [before + n + 1] * 5
        assert [batch_count(reader)[0] for reader in wires] == [before + n + 1] * 5
    replay(cluster, "resume")
    caught_up(cluster)
    assert [is_standby(cluster, count(reader)[1]) for reader in wires] == [True] * 5
    for wire in wires:
        wire.bye()


def test_only_writers_wait_in_transaction_mode(cluster, make):
    pool = make(read_consistency="session", read_consistency_wait=10000, default_pool_size=2, **SHARED)
    wire, writer = login(cluster, pool), login(cluster, pool)
    before, _ = count(wire)
    replay(cluster, "pause")
    ok(writer, "insert into w values (1)")
    began = time.monotonic()
    seen, port = count(wire)
    assert (seen, is_standby(cluster, port)) == (before, True)
    assert time.monotonic() - began < 3
    wire.bye()
    writer.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("how", ["session", "global"])
def test_explain_says_what_a_read_would_get(cluster, make, mode, how):
    """It asks the primary and waits for the standby, as the read behind it does, and takes no draw from it."""
    wire = login(cluster, make(read_consistency=how, read_consistency_wait=20, pool_mode=mode,
                               statement_level_load_balance=True))

    def explained(extended: bool) -> tuple[int, str]:
        said = batch(wire, "pgpool explain " + COUNT) if extended else wire.simple("pgpool explain " + COUNT)
        assert code(said) is None, said
        found = next(m for m in said if m.type == "D").row()
        return cluster.nodes[int(found[0])].port, found[3].decode()

    def agree(extended: bool) -> bool:
        """True when both are standbys: by then it is one and the same. (WAL may come at any time.)"""
        (port, why), (_, read) = explained(extended), count(wire)
        if not is_standby(cluster, port) or not is_standby(cluster, read):
            return False
        assert (why, read) == ("a read, balanced by weight", port)
        return True
    lacks = cluster.primary.port, "the chosen standby lacks what read_consistency asks for"
    for extended in (False, True):
        for tx in ((), ("begin read only, isolation level repeatable read",) if mode == "transaction" else ("begin",)):
            for _ in range(3):
                waits.wait_for("a standby is read", lambda extended=extended: agree(extended))
            replay(cluster, "pause")
            ok(wire, "insert into w values (1)", *tx)
            assert explained(extended) == lacks
            assert count(wire)[1] == cluster.primary.port
            ok(wire, "rollback")
            replay(cluster, "resume")
    wire.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_random_writes_and_reads_with_replay_paused(cluster, make, mode):
    """Clients that write and read in all protocols while replay stops and goes on: none ever sees less than it
    wrote."""
    rnd = random.Random(7)
    pool = make(read_consistency="session", read_consistency_wait=20, num_init_children=2, pool_mode=mode)
    cluster.primary.rows("create table if not exists mine(who int, n int)")
    caught_up(cluster)
    for i in cluster.standbys:
        waits.wait_for("it has the table", lambda i=i: cluster.nodes[i].value("select to_regclass('mine') is not null") == "t")
    wires = [login(cluster, pool) for _ in range(4)]
    wrote = [0] * len(wires)
    seen = set()
    for step in range(160):
        if step % 8 == 0:
            replay(cluster, rnd.choice(["pause", "resume"]))
        who = rnd.randrange(len(wires))
        wire, sql = wires[who], f"insert into mine values ({who}, {step})"
        match rnd.randrange(6):
            case 0:
                ok(wire, sql)
                wrote[who] += 1
            case 1:
                assert code(batch(wire, sql)) is None
                wrote[who] += 1
            case 2:
                ok(wire, "begin", sql, rnd.choice(["commit", "rollback"]))
                wrote[who] = int(cluster.primary.value(f"select count(*) from mine where who = {who}"))
        read = f"select count(*), inet_server_port() from mine where who = {who}"
        match rnd.randrange(3):
            case 0:
                found = wire.rows(read)[0]
            case 1:
                found = [v.decode() for v in next(m for m in batch(wire, read) if m.type == "D").row()]
            case _:
                ok(wire, "begin read only")
                found = wire.rows(read)[0]
                ok(wire, "commit")
        assert int(found[0]) >= wrote[who], (step, who, found, wrote)
        seen.add(is_standby(cluster, found[1]))
    assert seen == {True, False}
    for wire in wires:
        wire.bye()
