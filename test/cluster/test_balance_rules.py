# SPDX-License-Identifier: PostgreSQL
"""test_balance_rules: the adversarial catalogue's T70 to T77 with real standbys, in session and in transaction
mode, the primary on node 0 and on node 2; clusters of one, two and three nodes, raw mode, logical replication;
what the log, the notices and SHOW say of a statement's node."""
import re

import pytest

from pgt import postgres, waits
from pgt.wire import SYNC, Wire, bind, execute, parse, query
from test_balance_tx import PORT, away, code, is_standby, ok, rows_of, weights
from test_monitor import Trio, column, pool_for, show, wait_settled

MODES = ("session", "transaction")


@pytest.fixture(scope="module", params=[0, 2], ids=["primary0", "primary2"])
def cluster(request):
    it = Trio(request.param)
    it.keep_in_step()
    it.primary.rows("create table t(a int)")
    it.primary.rows("insert into t values (7)")
    it.primary.rows("create sequence s")
    yield it
    it.stop()


@pytest.fixture
def make(cluster, start_pool):
    def start(**conf):
        one = pool_for(start_pool, cluster, **{"load_balance_mode": True, "num_init_children": 1,
                                               **weights(cluster), **conf})
        wait_settled(one, cluster.at)
        return one
    return start


def login(pool) -> Wire:
    wire = Wire(pool.address, seconds=20)
    assert wire.login()[-1].type == "Z"
    wire.value(PORT)
    return wire


def extended(wire, sql: str) -> list:
    wire.send(parse(sql) + bind() + execute() + SYNC)
    return wire.ready()


def place(wire, sql: str) -> int:
    return int(wire.rows("pgpool explain " + sql)[0][0])


@pytest.mark.parametrize("mode", MODES)
def test_t70_a_temporary_table_of_the_same_name(cluster, make, mode):
    pool = make(pool_mode=mode)
    w, other = login(pool), login(pool)
    read = "select v, inet_server_port() from t70"
    ok(w, "create table t70(v text)", "insert into t70 values ('plain')")
    assert [r[0] for r in w.rows(read)] == [b"plain"] and [r[0] for r in other.rows(read)] == [b"plain"]
    assert is_standby(cluster, w.rows(read)[0][1])
    ok(w, "drop table t70", "create temp table t70(v text)", "insert into t70 values ('mine')")
    assert [r[0] for r in w.rows(read)] == [b"mine"]
    found = [m.row()[0] for m in extended(w, read) if m.type == "D"]
    assert found == [b"mine"]
    assert code(other.simple(read)) == "42P01" and code(extended(other, read)) == "42P01"
    ok(other, "create temp table t70(v text)", "insert into t70 values ('theirs')")
    assert [r[0] for r in other.rows(read)] == [b"theirs"] and [r[0] for r in w.rows(read)] == [b"mine"]
    ok(w, "drop table t70", "create table t70(v text)", "insert into t70 values ('plain again')")
    assert [r[0] for r in w.rows(read)] == [b"plain again"] and [r[0] for r in other.rows(read)] == [b"theirs"]
    ok(other, "drop table t70")
    assert [r[0] for r in other.rows(read)] == [b"plain again"]
    ok(w, "drop table t70")
    w.bye()
    other.bye()


@pytest.mark.parametrize("mode", MODES)
def test_t71_lag_in_mid_session(cluster, make, mode):
    """The standbys fall behind: reads stay, functions that write always do; they catch up: reads leave."""
    cluster.primary.rows("create table if not exists w71(a text)")
    cluster.primary.rows("create or replace function f71() returns int language sql volatile as "
                         "'insert into w71 select repeat(md5(g::text), 50) from generate_series(1, 2000) g; select 1'")
    w = login(make(pool_mode=mode, delay_threshold=100000, sr_check_period=1))
    assert away(cluster, w)
    ok(w, "select f71() from t")
    for i in cluster.standbys:
        cluster.nodes[i].rows("select pg_wal_replay_pause()")
    try:
        ok(w, "set synchronous_commit = local", "discard all", "set synchronous_commit = local", "insert into w71 "
           "select repeat(md5(g::text), 50) from generate_series(1, 2000) g")
        waits.wait_for("the lag is seen", lambda: not away(cluster, w), 60)
        assert w.rows("pgpool explain " + PORT)[0][3] == b"the chosen standby lags too far behind"
        ok(w, "select f71() from t", "discard all")
    finally:
        for i in cluster.standbys:
            cluster.nodes[i].rows("select pg_wal_replay_resume()")
    waits.wait_for("they have caught up", lambda: away(cluster, w), 60)
    w.bye()


@pytest.mark.parametrize("mode", MODES)
def test_t72_settings_made_in_many_ways(cluster, make, mode):
    """Whatever set it, the next read sees it, wherever it runs."""
    cluster.primary.rows("create schema if not exists s72")
    cluster.primary.rows("drop table if exists s72.u, public.u")
    cluster.primary.rows("create table s72.u as select 's72' v")
    cluster.primary.rows("create table public.u as select 'public' v")
    cluster.primary.rows("drop role if exists r72")
    cluster.primary.rows("create role r72")
    cluster.primary.rows("grant select on public.u to r72")
    cluster.primary.rows("create or replace procedure p72(v text) language plpgsql as "
                         "$$ begin perform set_config('search_path', v, false); end $$")
    w = login(make(pool_mode=mode))
    read = "select v, current_user from u"

    def sees(want: str, user: str = "postgres") -> None:
        for _ in range(2):
            assert [tuple(r) for r in w.rows(read)] == [(want.encode(), user.encode())]
            assert [m.row() for m in extended(w, read) if m.type == "D"][0][0] == want.encode()
    sees("public")
    ok(w, "set search_path = s72")
    sees("s72")
    ok(w, "reset search_path", "select set_config('search_path', 's72', false)")
    sees("s72")
    ok(w, "discard all", "begin", "set local search_path = s72")
    assert w.value("select v from u") == "s72"
    ok(w, "commit")
    sees("public")
    ok(w, "set role r72")
    sees("public", "r72")
    assert code(w.simple("select * from t")) == "42501"
    ok(w, "reset role", "begin", "set search_path = s72", "rollback")
    sees("public")
    if mode == "session":  # in transaction mode a procedure's settings are not followed (limits.md)
        ok(w, "call p72('s72')")
        sees("s72")
    w.bye()


HIDDEN = [
    "select nextval('s')", "select * from v73", "select a ==>> 1 from t", "select case when a = 7 then nextval('s') end from t",
    "select (select nextval('s')) from t", "with x as (select nextval('s')) select * from x",
    "select * from t where a < (select nextval('s'))", "select * from t, lateral nextval('s')",
    "select a from t order by nextval('s')", "select count(*) filter (where nextval('s') > 0) from t",
    "values (nextval('s'))", "explain analyze select nextval('s')", "select pg_advisory_xact_lock(1)",
    "select lo_create(0)", "select * from t for share", "select * from (select * from t for update) x",
    "select a into temp t73 from t", "listen c", "notify c", "select f73()", "select public.f73() from t",
    "copy (select nextval('s')) to stdout", "select txid_current()", "select setval('s', 100)", "select * from d73",
]


@pytest.mark.parametrize("mode", MODES)
def test_t73_what_writes_in_hiding(cluster, make, mode):
    one = cluster.primary.rows
    one("create or replace view v73 as select nextval('s') as n")
    one("create or replace function f73() returns int language sql volatile as 'select 1'")
    one("create or replace function op73(int, int) returns int language sql volatile as 'select 1'")
    one("drop operator if exists ==>>(int, int)")
    one("create operator ==>> (leftarg = int, rightarg = int, function = op73)")
    one("drop view if exists d73")
    one("drop domain if exists dom73")
    one("create or replace function chk73(int) returns bool language sql volatile as 'select true'")
    one("create domain dom73 as int check (chk73(value))")
    one("create view d73 as select a::dom73 from t")
    pool = make(pool_mode=mode)
    for sql in HIDDEN:
        w = login(pool)  # such a function may leave anything behind: each has a session of its own
        assert place(w, sql) == cluster.at, sql
        assert code(w.simple(sql)) is None, sql
        if not sql.startswith(("copy", "select a into")):
            assert code(extended(w, sql)) is None, sql
        w.bye()


SPELLINGS = ["set transaction_read_only = off", "set transaction_read_only to 'off'", "SET TRANSACTION_READ_ONLY = f",
             "set transaction_read_only = 'false'", "set local transaction_read_only to no", "set transaction read write",
             "set session transaction_read_only = 0", 'set "transaction_read_only" = \'OFF\'', "set transaction_read_only = of"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_t74_read_write_after_all(cluster, make, mode, spelling):
    w = login(make(pool_mode=mode))
    ok(w, "begin read only", spelling, "create table t74(a int)", "rollback")
    ok(w, "begin", "set transaction read only")
    assert code(w.simple("create table t74(a int)")) == "25006"
    ok(w, "rollback", "start transaction isolation level serializable, read only, deferrable")
    assert not away(cluster, w)
    ok(w, "commit")
    assert away(cluster, w)
    w.bye()


COMMENTS = ["/* a */ {}", "-- a\n{}", "/* /* nested */ */ {}", "/*+ SeqScan(t) */ {}", "{} /* a */", "{} -- a", "{};",
            " \t\n{}", "/* insert */ {}", "/*REPLICATION*/{}"]


@pytest.mark.parametrize("mode", MODES)
def test_t76_comments_never_matter(cluster, make, mode):
    w = login(make(pool_mode=mode))
    ok(w, "create table if not exists t76(a int)")
    for n, form in enumerate(COMMENTS):
        assert is_standby(cluster, w.value(form.format(PORT))), form
        assert is_standby(cluster, next(m for m in extended(w, form.format(PORT)) if m.type == "D").row()[0]), form
        ok(w, form.format(f"insert into t76 values ({n})"))
        ok(w, form.format("with x as (insert into t76 values (0) returning *) select * from x"))
        ok(w, form.format("select /* c */ nextval /* d */ ('s')"))
    assert w.value("select count(*) from t76") == str(2 * len(COMMENTS))
    ok(w, "drop table t76")
    for hint in ("/*NO LOAD BALANCE*/ ", "/* no load balance */"):
        assert not is_standby(cluster, w.value(hint + PORT)), hint
    w.bye()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_clusters_of_any_size(cluster, start_pool, nodes, mode):
    """With one node there is nothing to choose; with two, one standby has all reads; nothing else changes."""
    kept = sorted([cluster.at, *cluster.standbys[:nodes - 1]])
    at = kept.index(cluster.at)
    pool = start_pool(*[cluster.nodes[i].address for i in kept], load_balance_mode=True, sr_check_period=1,
                      health_check_period=1, pool_mode=mode, delay_threshold=0,
                      **{f"backend_weight{n}": 0 if i == cluster.at else 1 for n, i in enumerate(kept)})
    waits.wait_for("roles are known", lambda: column(pool, "role") == ["primary" if n == at else "standby"
                                                                     for n in range(nodes)], 60)
    before = [int(v) for v in column(pool, "select_cnt")]
    wires = [Wire(pool.address, seconds=20) for _ in range(4)]
    for wire in wires:
        assert wire.login()[-1].type == "Z"
        assert is_standby(cluster, wire.value(PORT)) == (nodes > 1)
        ok(wire, "begin", "insert into t select 1 where false", "commit", "begin read only", PORT, "commit")
        assert code(extended(wire, PORT)) is None
        assert place(wire, "insert into t values (1)") == at
        wire.bye()
    done = [int(b) - a for a, b in zip(before, column(pool, "select_cnt"))]
    assert sum(done) == 12 and (done[at] == 0) == (nodes > 1), done


@pytest.mark.parametrize("mode", MODES)
def test_raw_mode_balances_nothing(cluster, start_pool, mode):
    """The main node gets everything: the first that is up."""
    pool = start_pool(*[n.address for n in cluster.nodes], backend_clustering_mode="raw", load_balance_mode=True,
                      pool_mode=mode)
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    assert {int(w.value(PORT)) for _ in range(5)} == {cluster.nodes[0].port}
    assert place(w, PORT) == 0
    assert code(extended(w, PORT)) is None
    w.bye()


@pytest.mark.parametrize("mode", MODES)
def test_logical_replication_balances(start_pool, mode):
    """Two servers that both take writes: the one flagged is the primary, the other reads."""
    main, replica = (postgres.start_postgres({"wal_level": "logical"}, roles=False) for _ in range(2))
    for server in (main, replica):
        server.rows("create table t(a int)")
        server.rows("insert into t values (7)")
    for order in ((main, replica), (replica, main)):
        at = order.index(main)
        pool = start_pool(*[n.address for n in order], backend_clustering_mode="logical_replication", pool_mode=mode,
                          load_balance_mode=True, health_check_period=1, **{f"backend_flag{at}": "ALWAYS_PRIMARY"},
                          **{f"backend_weight{n}": 0 if n == at else 1 for n in range(2)})
        waits.wait_for("both are up", lambda pool=pool: column(pool, "status") == ["up"] * 2, 60)
        w = Wire(pool.address, seconds=20)
        assert w.login()[-1].type == "Z"
        w.value(PORT)
        assert column(pool, "role") == ["main" if n == at else "replica" for n in range(2)]
        assert place(w, "insert into t values (8)") == at
        assert int(w.value(PORT)) == replica.port
        ok(w, "begin read only")
        assert int(w.value(PORT)) == replica.port
        ok(w, "commit", "insert into t values (8)")
        assert main.value("select count(*) from t where a = 8") == "1"
        main.rows("delete from t where a = 8")
        w.bye()
    main.stop()
    replica.stop()


@pytest.mark.parametrize("mode", MODES)
def test_log_and_notices_name_the_node(cluster, make, mode):
    pool = make(pool_mode=mode, log_per_node_statement=True, notice_per_node_statement=True)
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    w.value(PORT)
    standby = next(i for i in cluster.standbys if cluster.nodes[i].port == int(w.value(PORT)))

    def told(found) -> list[str]:
        return [m.fields["M"] for m in found if m.type == "N"]
    write = "insert into t select 1 where false"
    text = r"DB node id: {} backend pid: \d+ statement: {}"
    assert told(w.simple(PORT)) == [f"DB node id: {standby} statement: {PORT}"]
    assert told(w.simple(write)) == [f"DB node id: {cluster.at} statement: {write}"]
    want = [f"Parse: {PORT}", f"Bind: {PORT}", f"Execute: {PORT}"]
    assert told(extended(w, PORT)) == [f"DB node id: {standby} statement: {line}" for line in want]
    log = pool.daemon.log() if hasattr(pool, "daemon") else pool.log()
    assert re.search(r"LOG:  " + text.format(cluster.at, write), log)
    for line in want:
        assert re.search(r"LOG:  " + text.format(standby, re.escape(line)), log), line
    w.bye()


FORMS = {
    "simple": query(PORT),
    "extended": parse(PORT) + bind() + execute() + SYNC,
    "prepared": bind(name="p") + execute() + SYNC,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("by_statement", [False, True], ids=["session", "statement"])
def test_reads_like_each_other_count_as_reads(cluster, make, form, by_statement):
    """Those that nothing speaks against are not judged one by one. A write in between counts by itself, is read where
    it was made while the transaction is open, and leaves nothing behind."""
    pool = make(statement_level_load_balance=by_statement)
    w = login(pool)
    w.send(parse(PORT, "p") + SYNC)
    assert code(w.ready()) is None

    def ports() -> list[bytes]:
        found = []
        for _ in range(10):
            w.send(FORMS[form])
            found += rows_of(w.ready())
        return found

    def counts(column: str) -> list[int]:
        return [int(row[column]) for row in show(pool, "POOL_BACKEND_STATS")]
    ports()  # known from now on
    before, others = counts("select_cnt"), counts("other_cnt")
    seen = ports()
    assert len(seen) == 10 and all(is_standby(cluster, port) for port in seen)
    assert len(set(seen)) == (2 if by_statement else 1)
    grown = [now - then for now, then in zip(counts("select_cnt"), before)]
    assert grown == [seen.count(str(node.port).encode()) for node in cluster.nodes]
    assert counts("other_cnt") == others
    ok(w, "begin", "insert into t values (8)")
    assert not any(is_standby(cluster, port) for port in ports())
    ok(w, "rollback")
    assert all(is_standby(cluster, port) for port in ports())
    w.bye()


def test_what_show_has(make):
    pool = make()
    assert list(show(pool)[0]) == ["node_id", "hostname", "port", "status", "pg_status", "lb_weight", "role", "pg_role",
                                   "select_cnt", "load_balance_node", "replication_delay", "replication_state",
                                   "replication_sync_state", "last_status_change"]
    assert list(show(pool, "POOL_BACKEND_STATS")[0]) == [
        "node_id", "hostname", "port", "status", "role", "select_cnt", "insert_cnt", "update_cnt", "delete_cnt",
        "ddl_cnt", "other_cnt", "panic_cnt", "fatal_cnt", "error_cnt"]
