# SPDX-License-Identifier: PostgreSQL
"""test_balance_lsn: what a read must at least see: read_consistency with standbys that replay late, tables
written lately (dml_adaptive_global), and the catalogue after another worker's DDL. The primary is on node
0 and on node 2; replication is asynchronous."""
import random
import threading
import time

import pytest

from pgt import procs, waits
from pgt.trio import wait_replayed
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


def caught_up(cluster) -> None:
    wait_replayed(cluster.primary, *(cluster.nodes[i] for i in cluster.standbys))


def away(cluster, wire) -> bool:
    return is_standby(cluster, wire.value(PORT))


COUNT = "select count(*), inet_server_port() from w"


def count(wire) -> tuple[int, int]:
    found = wire.rows(COUNT)[0]
    return int(found[0]), int(found[1])


def count_away(cluster, wire, read=count) -> int:
    """What a standby says. It must have been heard within read_consistency_wait that it has all: on a busy machine that takes some
    reads, which are the primary's."""
    found = []

    def is_away():
        found[:] = read(wire)
        return is_standby(cluster, found[1])
    waits.wait_for("a standby is read", is_away)
    return found[0]


def begin_away(cluster, wire, begin: str) -> int:
    """As count_away, the first read of a transaction, which is open then."""
    found = []

    def is_away():
        ok(wire, begin)
        found[:] = count(wire)
        if not is_standby(cluster, found[1]):
            ok(wire, "commit")
            return False
        return True
    waits.wait_for("a standby is read", is_away)
    return found[0]


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
    count_away(cluster, wire)
    if how == "session":  # within a transaction nothing is asked: what was missed is asked when it is over
        ok(wire, "begin", "insert into w values (4)", "commit")
        ok(wire, "begin")
        count(wire)
        ok(wire, "commit")
        caught_up(cluster)
        begin_away(cluster, wire, "begin")
        ok(wire, "commit")
    wire.bye()


def test_waits_for_the_standby(cluster, make):
    wire = login(cluster, make(read_consistency="session", read_consistency_wait=60000))
    before, _ = count(wire)
    replay(cluster, "pause")
    ok(wire, "insert into w values (1)")
    began = time.monotonic()
    later = threading.Timer(0.5, replay, (cluster, "resume"))
    later.start()
    seen, port = count(wire)
    took = time.monotonic() - began
    later.join()
    assert (seen, is_standby(cluster, port), took > 0.45) == (before + 1, True, True)
    wire.bye()


def test_session_that_has_not_written_does_not_wait(cluster, make):
    pool = make(read_consistency="session", read_consistency_wait=60000)
    wire, writer = login(cluster, pool), login(cluster, pool)
    before, _ = count(wire)
    replay(cluster, "pause")
    ok(writer, "insert into w values (1)")
    began = time.monotonic()
    seen, port = count(wire)
    assert (seen, is_standby(cluster, port)) == (before, True)
    assert time.monotonic() - began < 30
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


def tell_lag(home, seconds: int) -> None:
    """To replication_delay_source_cmd, of both standbys."""
    (home / "lag.new").write_text(f"{seconds * 1000} {seconds * 1000}\n", encoding="ascii")
    (home / "lag.new").rename(home / "lag")


def test_tables_written_lately(cluster, make):
    """Somebody's write keeps everybody's reads of that table on the primary for a while, five times the lag; others go on. A command
    says what the lag is: a server's own word of it may be of a moment in which there was next to none."""
    home = procs.folder("lag")
    tell_lag(home, 0)
    pool = make(disable_load_balance_on_write="dml_adaptive_global", num_init_children=2,
                track_table_mutation_cold_start_duration=0, track_table_mutation_max_staleness=600000,
                sr_check_period=1, replication_delay_source_cmd=f"cat {home}/lag #")
    wires = [login(cluster, pool) for _ in range(4)]
    other = "select inet_server_port() from other right join t on true limit 1"
    table = "select inet_server_port() from w right join t on true limit 1"
    for wire in wires:
        waits.wait_for("nothing was written lately", lambda wire=wire: is_standby(cluster, wire.value(table)))
    ok(wires[0], "begin", "insert into w values (1)", "rollback")
    for wire in wires:
        assert is_standby(cluster, wire.value(table)), "rolled back"
    replay(cluster, "pause")
    tell_lag(home, 20)
    waits.wait_for("the lag is known", lambda: [column(pool, "replication_delay")[i] for i in cluster.standbys] == ["20.000000 seconds"] * 2)
    ok(wires[1], "begin", "insert into w values (1)", "commit")
    assert [is_standby(cluster, wire.value(table)) for wire in wires] == [False] * 4
    assert [is_standby(cluster, wire.value(other)) for wire in wires] == [True] * 4
    replay(cluster, "resume")
    tell_lag(home, 0)
    waits.wait_for("the mark runs out", lambda: is_standby(cluster, wires[2].value(table)))
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
    before = count_away(cluster, wire)
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
    count_away(cluster, wire)
    count_away(cluster, wire, batch_count)
    assert begin_away(cluster, wire, "begin isolation level repeatable read, read only") == before + 7
    assert count(wire)[0] == before + 7
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
    before = begin_away(cluster, wire, "begin read only, isolation level repeatable read")
    ok(writer, "insert into w values (1)")
    assert count(wire)[0] == before
    ok(wire, "commit")
    wire.bye()
    writer.bye()


def test_waits_for_the_standby_in_transaction_mode(cluster, make):
    wire = login(cluster, make(read_consistency="session", read_consistency_wait=60000, **SHARED))
    for read in (count, batch_count):
        before, _ = count(wire)
        replay(cluster, "pause")
        ok(wire, "insert into w values (1)")
        began = time.monotonic()
        later = threading.Timer(0.5, replay, (cluster, "resume"))
        later.start()
        seen, port = read(wire)
        took = time.monotonic() - began
        later.join()
        assert (seen, is_standby(cluster, port), took > 0.45) == (before + 1, True, True)
        caught_up(cluster)
    wire.bye()


def test_global_in_transaction_mode(cluster, make):
    """More clients than links, in two workers: each sees what any of them has committed."""
    pool = make(read_consistency="global", read_consistency_wait=100, num_init_children=2, default_pool_size=2,
                **SHARED)
    wires = [login(cluster, pool) for _ in range(5)]
    caught_up(cluster)
    before = count_away(cluster, wires[0])
    replay(cluster, "pause")
    for n, writer in enumerate(wires):
        ok(writer, "insert into w values (1)")
        assert [count(reader)[0] for reader in wires] == [before + n + 1] * 5
        assert [batch_count(reader)[0] for reader in wires] == [before + n + 1] * 5
    replay(cluster, "resume")
    caught_up(cluster)
    assert [count_away(cluster, reader) for reader in wires] == [before + 5] * 5
    for wire in wires:
        wire.bye()


def test_only_writers_wait_in_transaction_mode(cluster, make):
    pool = make(read_consistency="session", read_consistency_wait=60000, default_pool_size=2, **SHARED)
    wire, writer = login(cluster, pool), login(cluster, pool)
    before, _ = count(wire)
    replay(cluster, "pause")
    ok(writer, "insert into w values (1)")
    began = time.monotonic()
    seen, port = count(wire)
    assert (seen, is_standby(cluster, port)) == (before, True)
    assert time.monotonic() - began < 30
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
    for step in range(2000):
        if step >= 160 and seen == {True, False}:
            break  # a standby that is asked answers in 20 ms: not always, on a busy machine
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
