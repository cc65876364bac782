# SPDX-License-Identifier: PostgreSQL
"""test_balance_out: in transaction mode the reads of a read-write transaction leave it until it writes
(decisions/0012). Real standbys that keep in step; the primary is on node 0 and on node 2."""
import contextlib
import os
import random
import signal

import pytest

from pgt import waits
from pgt.wire import FLUSH, SYNC, Wire, bind, describe, execute, parse, query
from test_balance_tx import PORT, away, code, is_standby, ok, status
from test_monitor import Trio, pool_for, show, wait_settled

# A read that waits where its gate is shut.
GATE = "create function gate() returns int stable language plpgsql as $$begin perform pg_advisory_xact_lock_shared(4711); return 7; end$$"
THROUGH = "select gate(), inet_server_port() from t"
BEFORE_IT = "select pid from pg_locks where locktype = 'advisory' and not granted"


@contextlib.contextmanager
def shut_gate(*nodes):
    """On these servers, for the time of the block."""
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(Wire(node.socket)) for node in nodes]
        for holder in holders:
            assert holder.login()[-1].type == "Z"
            holder.rows("select pg_advisory_lock(4711)")
        yield
        for holder in holders:
            holder.rows("select pg_advisory_unlock(4711)")


@pytest.fixture(scope="module", params=[0, 2], ids=["primary0", "primary2"])
def cluster(request):
    it = Trio(request.param)
    it.keep_in_step()
    for sql in ("create table t(a int)", "insert into t values (7)", "create table w(id int, v text)",
                "insert into w values (0, 'there')", GATE, "create sequence s", "create role patient login",
                "alter role patient set default_transaction_isolation = 'repeatable read'",
                "grant all on t, w to patient"):
        it.primary.rows(sql)
    yield it
    it.stop()


@pytest.fixture
def make(cluster, start_pool):
    def start(**conf):
        weights = {f"backend_weight{i}": 0 if i == cluster.at else 1 for i in range(3)}
        one = pool_for(start_pool, cluster, **{"load_balance_mode": True, "num_init_children": 1,
                                               "pool_mode": "transaction", **weights, **conf})
        wait_settled(one, cluster.at)
        return one
    return start


def login(pool, **parameters) -> Wire:
    wire = Wire(pool.address, seconds=20)
    assert wire.login(**parameters)[-1].type == "Z"
    return wire


def types(found) -> str:
    return "".join(m.type for m in found)


def row(found) -> bytes:
    assert code(found) is None, found
    return next(m for m in found if m.type == "D").row()[0]


def run(wire, *messages: bytes):
    wire.send(b"".join(messages) + SYNC)
    return wire.ready()


def open_transactions(cluster) -> int:
    return sum(int(node.value("select count(*) from pg_stat_activity where state like 'idle in tr%'"))
               for node in cluster.nodes)


def test_reads_leave_until_it_writes(cluster, make):
    pool = make()
    w = login(pool)
    ok(w, "begin")
    found = w.simple(PORT)
    assert is_standby(cluster, row(found)) and status(found) == "T"
    assert open_transactions(cluster) == 0, "nobody holds a connection"
    found = w.simple("select 1 from t; select 2 from t")
    assert types(found) == "TDCTDCZ" and status(found) == "T"
    assert status(w.simple("")) == "T"
    assert explained(w) == (b"standby", b"a read, balanced by weight")
    ok(w, "insert into w values (1, 'x')")
    assert not away(cluster, w), "it has written"
    assert open_transactions(cluster) == 1
    ok(w, "commit")
    assert cluster.primary.value("select v from w where id = 1") == "x"
    for end in ("commit", "rollback"):
        ok(w, "begin isolation level read committed")
        assert away(cluster, w)
        found = w.simple(end)
        assert types(found) == "CZ" and status(found) == "I" and found[0].body == end.upper().encode() + b"\0"
    before = {r["node_id"]: int(r["select_cnt"]) for r in show(pool)}
    ok(w, "begin", "select a from t", "select a from t", "commit")
    after = {r["node_id"]: int(r["select_cnt"]) for r in show(pool)}
    counts = [after[i] - before[i] for i in sorted(after)]
    assert counts[cluster.at] == 0 and sorted(counts) == [0, 0, 2], counts
    w.bye()


BEGINS = ("select now() from t", "select current_date from t", "select 'NOW'::timestamptz from t",
          "select localtime from t", "select txid_current_if_assigned() from t", "select pg_current_snapshot() from t",
          "select nextval('s')", "select current_setting('transaction_isolation') from t", "show transaction_isolation",
          "select a from t for share", "declare c cursor for select 1", "savepoint a", "set local work_mem = '5MB'",
          "set work_mem = '4MB'", "lock table t", "select pg_backend_pid() from t", "select 1 from t; select now()",
          "select 1 from t; set local work_mem = '5MB'", "prepare p as select 1", "/*NO LOAD BALANCE*/ select 1 from t")


KEEPS = ("set local work_mem = '5MB'", "lock table t", "select 1 from t; set local work_mem = '5MB'")


def test_what_begins_the_transaction(cluster, make):
    """What begins a transaction on the primary, and what of it keeps all reads there; the others may go on leaving."""
    w = login(make(disable_load_balance_on_write="off"))
    for sql in BEGINS:
        ok(w, "begin")
        assert away(cluster, w), sql
        assert open_transactions(cluster) == 0
        ok(w, sql)
        assert open_transactions(cluster) == 1, sql
        assert away(cluster, w) == (sql not in KEEPS), sql
        assert explained(w)[0] == (b"primary" if sql in KEEPS else b"standby"), sql
        ok(w, "rollback", "deallocate all")
    ok(w, "begin")
    now = w.value("select now()")
    assert away(cluster, w) and w.value("select now()") == now
    ok(w, "rollback")
    for begin in ("begin isolation level repeatable read", "start transaction isolation level serializable"):
        ok(w, begin)
        assert not away(cluster, w)
        ok(w, "rollback")
    ok(w, "set default_transaction_isolation = 'repeatable read'", "begin")
    assert not away(cluster, w)
    ok(w, "rollback", "begin isolation level read committed")
    assert away(cluster, w)
    ok(w, "rollback")
    w.bye()


def test_the_level_of_the_role(cluster, make):
    pool = make()
    w = login(pool, user="patient")
    assert away(cluster, w)
    ok(w, "begin")
    assert not away(cluster, w)
    assert explained(w)[1] == b"the transaction promises one snapshot"
    ok(w, "rollback", "begin isolation level read committed")
    assert away(cluster, w)
    ok(w, "commit")
    w.bye()


def test_a_level_is_said_before_the_first_query(cluster, make):
    """The server does not know that there was one: it gets one."""
    w = login(make())
    for sql in ("set transaction isolation level repeatable read", "set transaction_isolation = 'serializable'"):
        ok(w, "begin")
        assert away(cluster, w)
        assert code(w.simple(sql)) == "25001", sql
        ok(w, "rollback", "begin -- so")
        assert away(cluster, w)
        assert code(run(w, parse(sql), bind(), execute())) == "25001", sql
        ok(w, "rollback", "begin", sql, "rollback")
    w.bye()


def test_errors(cluster, make):
    w = login(make())
    for bad, want in (("select 1 / (a - 7) from t", "22012"), ("select 1 from t; select 1 / (a - 7) from t", "22012"),
                      ("select 1 / (8 - g) from generate_series(1, 8) g, t", "22012")):
        ok(w, "begin")
        assert away(cluster, w)
        found = w.simple(bad)
        assert (code(found), status(found)) == (want, "E")
        assert [m.body for m in found if m.type == "C"] == ([b"SELECT 1\0"] if ";" in bad else [])
        found = w.simple("insert into w values (2, 'no')")
        assert (code(found), status(found)) == ("25P02", "E")
        assert code(run(w, parse(PORT), bind(), execute())) == "25P02"
        assert [m.body for m in w.simple("commit") if m.type == "C"] == [b"ROLLBACK\0"]
        assert away(cluster, w)
    ok(w, "begin")
    assert away(cluster, w)
    found = run(w, parse("select 1 / (8 - g) from generate_series(1, 8) g, t"), bind(), describe(what="P"), execute())
    assert (code(found), status(found)) == ("22012", "E")
    assert code(w.simple(PORT)) == "25P02"
    ok(w, "rollback")
    w.bye()


def test_a_parameter_changes_with_an_error_elsewhere(cluster, make):
    """A reload of the standby is told between its error and its ReadyForQuery: the error is not told, for the read is made
    again at home, and nothing of it is answered twice."""
    standby = next(i for i in range(3) if i != cluster.at)
    pool = make(**{f"backend_weight{i}": int(i == standby) for i in range(3)})
    node = cluster.nodes[standby]
    w = login(pool)
    ok(w, "begin")
    assert row(w.simple(PORT)) == str(node.port).encode()
    node.rows("alter system set IntervalStyle = iso_8601")
    node.reload()
    try:
        waits.wait_for("it is known", lambda: node.value("show IntervalStyle") == "iso_8601")
        found = run(w, parse("select 1 / (a - 7) from t"), bind(), execute())
    finally:
        node.rows("alter system reset IntervalStyle")
        node.reload()
    assert types(found).replace("S", "") == "12EZ" and code(found) == "22012" and status(found) == "E"
    ok(w, "rollback")
    w.bye()


def test_what_a_standby_cannot_do_is_done_at_home(cluster, make):
    """The function calls itself stable, and is not."""
    cluster.primary.rows("create or replace function sly() returns bigint stable language sql as "
                         "$$ select nextval('s') $$")
    cluster.primary.rows("create or replace function meek() returns bigint stable language plpgsql as "
                         "$$ begin return pg_current_wal_lsn() - '0/0'; end $$")
    w = login(make(read_only_function_list="sly,meek,inet_server_port"))
    for sql in ("select meek() from t", "select sly() from t"):
        ok(w, "begin")
        assert away(cluster, w)
        assert int(w.value(sql)) > 0
        assert not away(cluster, w)
        assert status(w.simple("commit")) == "I"
    w.bye()


def test_extended_protocol(cluster, make):
    """Sequences as drivers send them: of psycopg, asyncpg, and PgJDBC, which begins within the first one."""
    w = login(make())
    ok(w, "begin")
    assert is_standby(cluster, row(run(w, parse(PORT), bind(), describe(what="P"), execute())))
    found = run(w, parse(PORT, "n"), describe("n"))
    assert (types(found), status(found)) == ("1tTZ", "T")
    assert is_standby(cluster, row(run(w, bind(name="n"), execute())))
    assert open_transactions(cluster) == 0
    found = run(w, parse("insert into w values (3, 'n')"), bind(), execute())
    assert (types(found), status(found)) == ("12CZ", "T")
    assert not is_standby(cluster, row(run(w, bind(name="n"), execute())))
    ok(w, "commit")
    for name in ("", "S_1"):
        for again in range(2):
            begin = parse("BEGIN", name) if again == 0 or name == "" else b""
            found = run(w, begin, bind(name=name), execute(limit=0), parse(PORT, name and f"{name}q{again}"),
                        bind(name=name and f"{name}q{again}"), describe(what="P"), execute())
            assert types(found) == ("1" if begin else "") + "2C12TDCZ" and status(found) == "T"
            assert found[2 if begin else 1].body == b"BEGIN\0" and is_standby(cluster, row(found))
            assert open_transactions(cluster) == 0
            end = parse("COMMIT", name and f"S_2{again}")
            found = run(w, end, bind(name=name and f"S_2{again}"), describe(what="P"), execute())
            assert (types(found), status(found)) == ("12nCZ", "I")
    found = run(w, parse("begin"), bind(), execute())
    assert (types(found), status(found)) == ("12CZ", "T")
    w.send(parse(PORT) + bind() + execute() + FLUSH)
    found = w.read_until("C")
    w.send(SYNC)
    assert not is_standby(cluster, row(found + w.ready())), "what would follow was not known"
    assert is_standby(cluster, row(run(w, parse(PORT), bind(), execute())))
    assert not is_standby(cluster, row(run(w, bind(), execute(limit=1)))), "it might be gone on with"
    assert away(cluster, w)
    ok(w, "rollback")
    w.bye()


def test_portals_that_outlive_their_sequence_stay(cluster, make):
    w = login(make())
    ok(w, "begin")
    found = run(w, parse("select g from generate_series(1, 4) g, t"), bind(), execute(limit=2))
    assert [m.row()[0] for m in found if m.type == "D"] == [b"1", b"2"]
    assert [m.row()[0] for m in run(w, execute(limit=2)) if m.type == "D"] == [b"3", b"4"]
    ok(w, "commit", "begin")
    run(w, parse("select g from generate_series(1, 4) g, t"), bind(portal="p"), execute("p"))
    assert code(run(w, execute("p"))) is None
    ok(w, "commit")
    w.bye()


def test_pipelined(cluster, make):
    w = login(make())
    w.send(query("begin") + query(PORT) + query("insert into w values (4, 'p')") + query(PORT) + query("commit") +
           query(PORT))
    found = w.ready(6)
    assert [m.body for m in found if m.type == "Z"] == [b"T"] * 4 + [b"I"] * 2
    ports = [m.row()[0] for m in found if m.type == "D"]
    assert [is_standby(cluster, p) for p in ports[:2]] == [True, False]
    w.send(query("begin") + parse(PORT) + bind() + execute() + SYNC + SYNC + query("rollback"))
    found = w.ready(4)
    assert [m.body for m in found if m.type == "Z"] == [b"T", b"T", b"T", b"I"]
    w.bye()


@pytest.mark.parametrize("virtual", [True, False])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_query_within_the_sequence_that_commits_stays(cluster, make, mode, virtual):
    """What its Sync will say is not known yet: is there a transaction still?"""
    pool = make(pool_mode=mode, virtual_begin=virtual, disable_load_balance_on_write="dml_adaptive")
    assert away(cluster, login(pool))
    for word in ("commit", "rollback", "savepoint a"):
        told = []
        for w in (Wire(cluster.primary.address, seconds=20), Wire(pool.address, seconds=20)):
            assert w.login()[-1].type == "Z"
            w.send(query("begin") + query("select 1 from t") + parse(word) + bind() + execute() + FLUSH)
            found = w.ready(2) + w.read_until("C")
            w.send(query("select a from t") + SYNC + query("rollback"))
            told.append([(m.type, m.body) for m in found + w.ready(3) if m.type in "CZ"])
            w.bye()
        assert told[1] == told[0], word


@pytest.mark.parametrize("how", ["off", "transaction", "trans_transaction", "always", "dml_adaptive"])
def test_disable_load_balance_on_write(cluster, make, how):
    w = login(make(disable_load_balance_on_write=how))
    for table in "tw":
        w.simple(f"select 1 from {table}")  # known to the catalogue's cache from here on
    ok(w, "begin")
    assert away(cluster, w)
    run(w, parse("insert into w values (5, 'x')"), bind(), execute())
    assert away(cluster, w) == (how in ("off", "dml_adaptive"))
    assert is_standby(cluster, w.value("select inet_server_port() from w limit 1") or cluster.primary.port) == (how == "off")
    ok(w, "commit", "begin")
    assert away(cluster, w) == (how not in ("trans_transaction", "always"))
    ok(w, "commit")
    assert away(cluster, w) == (how != "always")
    w.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("virtual", [True, False])
def test_reads_leave_after_a_write(cluster, make, mode, virtual):
    """Reads leave when the setting lets them, and the transaction takes no harm from what becomes of them."""
    w = login(make(disable_load_balance_on_write="dml_adaptive", pool_mode=mode, virtual_begin=virtual))
    assert away(cluster, w)
    for table in "tw":
        w.simple(f"select 1 from {table}")  # known to the catalogue's cache from here on
    port = "select a, inet_server_port() from t"
    ok(w, "begin", "insert into w values (7, 'x')")
    assert is_standby(cluster, w.rows(port)[0][1]) and open_transactions(cluster) >= 1
    assert is_standby(cluster, next(m for m in run(w, parse(port), bind(), execute()) if m.type == "D").row()[1])
    assert w.value("select count(*) from w where id = 7") == "1", "a table that was written is read at home"
    if mode == "transaction":
        ok(w, "set work_mem = '7MB'", "savepoint a", "set work_mem = '9MB'")
        assert is_standby(cluster, w.rows(port)[0][1]) and w.value("show work_mem") == "9MB"
        ok(w, "rollback to a")
        assert w.value("show work_mem") == "7MB"
        ok(w, "select count(*) from w")
    ok(w, "savepoint b")
    found = w.simple("select 1 / (8 - g) from generate_series(1, 8) g, t")
    assert (code(found), status(found)) == ("22012", "E")
    assert code(w.simple(port)) == "25P02" and code(w.simple("insert into w values (8, 'x')")) == "25P02"
    ok(w, "rollback to b")
    assert w.value("select count(*) from w where id = 7") == "1"
    ok(w, "insert into w values (9, 'x')", "commit")
    assert cluster.primary.value("select count(*) from w where id in (7, 8, 9)") == "2"
    for lock in ("lock table t", "truncate w", "alter table w add column if not exists x int", "do 'begin end'"):
        ok(w, "begin", lock)
        assert not away(cluster, w), lock
        assert explained(w)[0] == b"primary"
        ok(w, "rollback")
    cluster.primary.rows("delete from w where id between 7 and 9")
    w.bye()


MINE = "application_name <> 'pgpool monitor' and backend_type = 'client backend' and pid <> pg_backend_pid()"


def test_a_server_dies_while_a_read_is_away(cluster, make):
    """The standby's: the read is made again. The primary's: the transaction is lost, and the client is told."""
    pool = make(disable_load_balance_on_write="off")
    for victim in ("standby", "primary", "standby between"):
        w = login(pool)
        assert away(cluster, w) and w.value("select a from t") == w.value(THROUGH) == "7"
        ok(w, "begin", "insert into w values (70, 'x')")
        node = next(n for n in cluster.nodes if n.port == int(w.value(PORT)))
        assert node is not cluster.primary
        if victim == "standby between":
            node.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where {MINE}")
            found = w.simple(PORT)
        else:
            with shut_gate(node):
                w.send(query(THROUGH))
                waits.wait_for("it reads", lambda n=node: n.rows(BEFORE_IT))
                end = node if victim == "standby" else cluster.primary
                assert end.value(f"select count(pg_terminate_backend(pid)) from pg_stat_activity where {MINE} and "
                                 "(state = 'active' or state like 'idle in%')") == "1"
            found = w.ready()
        assert code(found) is None and status(found) == "T", (victim, found)
        if victim == "primary":
            found = w.simple("insert into w values (71, 'x')")
            assert (code(found), status(found)) in (("57P01", "E"), ("08006", "E")), found
            assert [m.body for m in w.simple("commit") if m.type == "C"] == [b"ROLLBACK\0"]
        else:
            ok(w, "insert into w values (71, 'x')", "commit")
        w.bye()
    assert cluster.primary.value("select count(*) from w where id in (70, 71)") == "4"
    cluster.primary.rows("delete from w where id in (70, 71)")


def test_an_older_portal_is_not_taken_for_another(cluster, make):
    w = login(make(disable_load_balance_on_write="off"))
    w.simple("select 1 from t")
    ok(w, "begin", "insert into w values (80, 'x')")
    run(w, parse("select g from generate_series(1, 4) g, w for update of w"), bind(), execute(limit=2))
    assert is_standby(cluster, row(run(w, parse(PORT), bind(), execute())))
    assert code(run(w, execute())) == "34000"
    ok(w, "rollback")
    w.bye()


def test_a_simple_query_elsewhere_leaves_no_portal_at_home(cluster, make):
    w = login(make(pool_mode="session", disable_load_balance_on_write="off"))
    w.simple("select 1 from t")
    ok(w, "begin", "insert into w values (80, 'x')")
    run(w, parse("select g from generate_series(1, 4) g, w for update of w"), bind(), execute(limit=2))
    assert is_standby(cluster, row(w.simple(PORT)))
    assert code(run(w, execute())) == "34000"
    ok(w, "rollback")
    w.bye()


def test_one_connection_of_each_server(cluster, make):
    """Clients that write and read in turn, by one connection per node: nobody waits for what another holds."""
    pool = make(disable_load_balance_on_write="off", default_pool_size=1)
    wires = [login(pool) for _ in range(4)]
    wires[0].simple("select 1 from t")
    for _ in range(3):
        for w in wires:
            w.send(query("begin") + query("insert into w values (90, 'x')") + query("select a from t") * 3 +
                   query("rollback"))
        for w in wires:
            found = w.ready(6)
            assert code(found) is None and [m.row()[0] for m in found if m.type == "D"] == [b"7"] * 3
    ok(wires[0], "begin", "insert into w values (90, 'x')")
    assert away(cluster, wires[0])
    taken = set()
    for w in wires[1:3]:  # places are drawn in turn
        ok(w, "begin read only")
        taken.add(w.value(PORT))
    assert len(taken) == 2
    assert not away(cluster, wires[0]), "it holds locks: it does not queue"
    ok(wires[0], "rollback")
    for w in wires[1:3]:
        ok(w, "commit")
    for w in wires:
        w.bye()


def test_pins_keep_reads_at_home(cluster, make):
    w = login(make())
    ok(w, "begin")
    assert away(cluster, w)
    ok(w, "commit", "listen x", "begin")
    assert not away(cluster, w)
    ok(w, "commit", "unlisten x", "begin")
    assert away(cluster, w)
    ok(w, "commit")
    w.bye()


def test_a_standby_that_dies_is_not_noticed(cluster, make):
    """Its connection is ended while a read of a transaction runs on it, and while none does."""
    pool = make()
    for sql in (THROUGH, PORT):
        w = login(pool)
        assert away(cluster, w) and w.value(THROUGH) == "7"
        ok(w, "begin")
        node = next(n for n in cluster.nodes if n.port == int(w.value(PORT)))
        assert node is not cluster.primary
        if sql == PORT:
            node.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where {MINE}")
            w.send(query(sql))
        else:
            with shut_gate(node):
                w.send(query(sql))
                (reader,) = waits.wait_for("it reads", lambda n=node: n.rows(BEFORE_IT))
                assert node.value(f"select pg_terminate_backend({int(reader[0])})") == "t"
        found = w.ready()
        assert code(found) is None and status(found) == "T", found
        ok(w, "insert into w values (6, 'alive')", "commit")
        w.bye()


def test_reads_its_own_writes(cluster, make):
    w = login(make(read_consistency="session", read_consistency_wait=10000))
    for n in range(20):
        ok(w, "begin", f"insert into w values (100, 'n{n}')", "commit", "begin")
        found = w.simple("select count(*), inet_server_port() from w where id = 100")
        assert row(found) == str(n + 1).encode()
        assert is_standby(cluster, next(m for m in found if m.type == "D").row()[1])
        ok(w, "commit")
    w.bye()


def explained(wire) -> tuple[bytes, bytes]:
    """Where PORT would go, and why."""
    found = wire.rows(f"pgpool explain {PORT}")[0]
    return found[1], found[3]


READS = ("select count(*), sum(id) from w where id > 1000", "select v from w where id > 1000 order by id, v limit 3",
         "select a from t", "select 1 from t; select count(*) from w where id > 1000", "show work_mem", "", "values (1)",
         "select coalesce(current_setting('my.own', true), '') from t", "select g from generate_series(1, 5) g, t")
WORK = ("insert into w values (1001, 'a')", "update w set v = v || 'x' where id = 1001 and length(v) < 20",
        "delete from w where id = 1001 and length(v) > 10", "savepoint a", "rollback to a", "release a",
        "set local work_mem = '5MB'", "set work_mem = '6MB'", "reset work_mem", "set my.own = 'x'", "select 1/0 from t",
        "select 1 / (4 - g) from generate_series(1, 8) g, t", "select from nowhere", "not sql",
        "select 1 from t; select 1/0", "set transaction isolation level repeatable read", "begin",
        "declare c cursor for select a from t", "fetch c", "lock table t in access share mode",
        "prepare p as select count(*) from w", "execute p", "deallocate p", "create table made (a int)",
        "select * from made", "drop table made", "insert into w values (1002, 'b'); select count(*) from w")
BEGINS_RANDOM = ("begin", "begin", "begin", "start transaction", "begin isolation level read committed", "begin read only",
                 "begin isolation level repeatable read")


def script(seed: int, length: int) -> list[tuple[str, bool]]:
    """Texts, and whether they go by the extended protocol."""
    draw = random.Random(seed)
    steps: list[tuple[str, bool]] = []
    while len(steps) < length:
        body = [draw.choice(READS if draw.random() < 0.75 else WORK) for _ in range(draw.randrange(7))]
        if draw.random() < 0.8:
            body = [draw.choice(BEGINS_RANDOM), *body, draw.choice(("commit", "commit", "rollback"))]
        steps += [(sql, draw.random() < 0.4) for sql in body]
    return [*steps, ("rollback", False)]


def transcript(wire, steps) -> list[str]:
    said = []
    for sql, extended in steps:
        found = run(wire, parse(sql), bind(), describe(what="P"), execute()) if extended else wire.simple(sql)
        said.append(f"{sql}: " + " ".join(m.fields["C"] if m.type == "E" else m.type + repr(m.body) for m in found
                                          if m.type in "EDCZIn"))
    return said


@pytest.mark.parametrize("conf", [{}, {"disable_load_balance_on_write": "dml_adaptive", "virtual_begin": False}],
                         ids=["default", "after_writes"])
@pytest.mark.parametrize("seed", [int(s) for s in os.environ.get("PGT_OUT_SEEDS", "1").split(",")])
def test_random_transactions_are_answered_as_by_one_server(cluster, make, seed, conf):
    steps = script(seed, 250)
    told = []
    pool = make(**conf)
    for through in (False, True):
        cluster.primary.rows("delete from w where id > 1000")
        cluster.primary.rows("drop table if exists made")
        wire = login(pool) if through else Wire(cluster.primary.address, seconds=20)
        if not through:
            assert wire.login()[-1].type == "Z"
        told.append(transcript(wire, steps))
        wire.bye()
    for i, (want, got) in enumerate(zip(*told)):
        assert got == want, (i, steps[max(0, i - 12):i + 1])


def test_a_commit_waits_for_a_read_while_the_primary_is_replaced(start_pool):
    """The read is answered; the COMMIT is an error and no plain ROLLBACK, which most drivers take for done."""
    it = Trio(0)
    it.keep_in_step()
    it.primary.rows("create table t as select 7 as a")
    it.primary.rows("create table w(id int, v text)")
    it.primary.rows(GATE)
    pool = pool_for(start_pool, it, load_balance_mode=True, num_init_children=1, pool_mode="transaction", auto_promote=True,
                    disable_load_balance_on_write="off", backend_weight0=0)
    wait_settled(pool, 0)
    two = [login(pool) for _ in range(2)]
    for w in two:
        assert away(it, w) and w.value("select a from t") == w.value(THROUGH) == "7"
        ok(w, "begin", "insert into w values (1, 'x')")
        assert away(it, w)
    with shut_gate(*it.nodes[1:]):
        for w in two:
            w.send(query(THROUGH))
        waits.wait_for("both read", lambda: sum(len(node.rows(BEFORE_IT)) for node in it.nodes[1:]) == 2)
        it.primary.stop(signal.SIGQUIT)
        waits.wait_for("another one is the primary, and the old one's connections are cut", lambda: "primary" in
                       [r["role"] for r in show(pool)[1:]] and "0" not in [r["node"] for r in show(pool, "POOL_LINKS")])
        two[0].send(query("commit"))
        two[1].send(parse("commit") + bind() + execute() + SYNC)
        assert all(w.is_quiet(0.05) for w in two), "the COMMIT waits for the read"
    for w in two:
        found = w.ready()
        assert (code(found), status(found)) == (None, "T"), found
        found = w.ready()
        assert (code(found), status(found)) == ("08006", "I"), found
        assert w.value("select count(*) from w") == "0"
        w.bye()
    pool.stop()
    it.stop()
