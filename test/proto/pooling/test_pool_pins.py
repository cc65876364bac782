# SPDX-License-Identifier: PostgreSQL
"""test_pool_pins: state that cannot move from one server process to another ties the client to its link, and
no longer than it has to; SHOW POOL_CLIENTS says why.
"""
import pytest
from pooling_house import BY, MODES, login, run, states, table

from pgt import waits
from pgt.diff import differential
from pgt.wire import SYNC, Wire, bind, execute, parse, pg, query
from pgt.wire import pg as pgx

HISTORIES = {
    "temp_table": ["create temp table pin_t(a int)", "insert into pin_t values (1)", "select * from pin_t",
                   "begin; insert into pin_t values (2); rollback", "select * from pin_t", "alter table pin_t add b int",
                   "drop table pin_t", "select * from pin_t"],
    "temp_spellings": ["create temporary table pin_a as select 1 as a", "select 2 as b into temp pin_b",
                       "create table pg_temp.pin_c(a int)", "create local temp view pin_v as select 3 as c",
                       "create temp sequence pin_s", "select nextval('pin_s')", "select nextval('pin_s'), currval('pin_s')",
                       "select * from pin_a, pin_b, pin_v", "discard temp", "select * from pin_a"],
    "temp_in_transaction": ["begin", "create temp table pin_t(a int)", "rollback", "select * from pin_t", "begin",
                            "create temp table pin_t(a int)", "commit", "select * from pin_t", "discard all", "select * from pin_t"],
    "temp_on_commit": ["begin", "create temp table pin_t on commit drop as select 1 as a", "select * from pin_t", "commit",
                       "select * from pin_t", "create temp table pin_t(a int) on commit delete rows",
                       "insert into pin_t values (1)", "select count(*) from pin_t"],
    "temp_savepoint": ["begin", "savepoint a", "create temp table pin_t(a int)", "rollback to a", "commit",
                       "select * from pin_t"],
    "temp_if_not_exists": ["create temp table if not exists pin_t(a int)", "create temp table if not exists pin_t(a int)",
                           "select * from pin_t", "drop table if exists pin_t", "drop table if exists pin_t"],
    "temp_in_do": ["do $$ begin create temp table pin_t as select 5 as a; end $$", "select * from pin_t"],
    "temp_function": ["create function pg_temp.pin_f() returns int language sql as 'select 6'", "select pg_temp.pin_f()",
                      "select pg_temp.pin_f()"],
    "temp_and_prepared": ["create temp table pin_t(a int)", "prepare q as select count(*) from pin_t", "execute q",
                          "insert into pin_t values (1)", "execute q", "drop table pin_t", "execute q"],
    "hold_cursor": ["declare pin_c cursor with hold for select generate_series(1, 9)", "fetch 2 from pin_c",
                    "fetch 2 from pin_c", "begin", "fetch 2 from pin_c", "rollback", "fetch 1 from pin_c", "close pin_c",
                    "fetch 1 from pin_c"],
    "hold_cursor_in_transaction": ["begin", "declare pin_c scroll cursor with hold for select generate_series(1, 9)",
                                   "fetch 2 from pin_c", "commit", "fetch 2 from pin_c", "close all", "fetch pin_c", "begin",
                                   "declare pin_c cursor with hold for select 1", "rollback", "fetch pin_c"],
    "advisory": ["select pg_advisory_lock(70)", "select pg_try_advisory_lock(70)", "select pg_advisory_unlock(70)",
                 "select pg_advisory_unlock(70)", "select pg_advisory_unlock(70)"],
    "advisory_all": ["select pg_advisory_lock(71), pg_advisory_lock_shared(72)", "select pg_advisory_unlock_all()",
                     "select pg_advisory_unlock(71)"],
    "advisory_transaction": ["select pg_advisory_xact_lock(73)", "begin", "select pg_advisory_xact_lock(73)", "commit",
                             "begin", "select pg_advisory_lock(74)", "rollback", "select pg_advisory_unlock(74)"],
    "advisory_discard": ["select pg_try_advisory_lock(75), pg_try_advisory_lock(1, 2)", "discard all",
                         "select pg_advisory_unlock(75)"],
    "large_object": ["begin", "select lo_open(lo_create(81234), 131072)", "select lowrite(0, 'abc')", "commit",
                     "select lo_get(81234)", "select loread(0, 10)", "begin", "select lo_open(81234, 262144)",
                     "select loread(0, 10)", "commit", "select lo_unlink(81234)"],
    "load": ["load '$libdir/plpgsql'", "select 1", "load 'no_such_library'"],
    "listen": ["listen pin_news", "notify pin_news, 'one'", "begin", "notify pin_news, 'two'", "commit",
               "select pg_notify('pin_news', 'three')", "unlisten pin_news", "notify pin_news, 'four'", "listen a; listen b",
               "unlisten *", "notify a", "begin; listen c; rollback", "notify c", "listen d", "discard all", "notify d"],
    "several": ["create temp table pin_t(a int)", "listen pin_x", "select pg_advisory_lock(76)", "drop table pin_t",
                "notify pin_x", "unlisten *", "select pg_advisory_unlock(76)"],
    "temp_by_path": ["set search_path = pg_temp, public", "create table pin_t(a int)", "insert into pin_t values (1)",
                     "select * from pin_t", "create view pin_v as select 2 as b", "select 3 as c into pin_i",
                     "select b, c from pin_v, pin_i", "drop table pin_t, pin_i", "drop view pin_v", "reset search_path"],
    "temp_by_local_path": ["begin", "set local search_path = pg_temp", "create table pin_t as select 1 as a", "commit",
                           "select * from pin_t", "begin", "select set_config('search_path', 'pg_temp', true)",
                           "create table pin_u as select 2 as a", "commit", "select * from pin_u",
                           "set search_path = pg_temp; create table pin_s as select 3 as a", "select * from pin_s"],
    "temp_domain": ["create domain pg_temp.pin_d as int", "select 7::pg_temp.pin_d", "drop domain pg_temp.pin_d"],
    "random_seed": ["select setseed(0.5)", "begin; select setseed(0.25)", "select random() < 2", "commit"],
}


@differential()
@MODES
@BY
@pytest.mark.parametrize("steps", HISTORIES.values(), ids=HISTORIES.keys())
def test_histories(t, steps, extended, pool_mode):
    if pool_mode != "session" and steps is HISTORIES["temp_and_prepared"]:
        pytest.skip("once the table is gone its statement cannot be prepared again: 26000 instead of 42P01")
    c = t.connect()
    for sql in steps:
        run(c, sql, extended and ";" not in sql)
    c.simple("rollback")
    c.simple("discard all")
    c.simple("select 'alive'")


@pytest.mark.session_mode
@differential()
def test_sequences(t):
    """currval() and lastval() belong to the server process. Who asks for a number is not tied to its link: every
    application would be. So this is a promise of session mode."""
    c = t.connect()
    for sql in ("drop sequence if exists pin_seq", "create sequence pin_seq", "select nextval('pin_seq')",
                "select currval('pin_seq')", "select lastval()", "select nextval('pin_seq'), currval('pin_seq')",
                "discard sequences", "select currval('pin_seq')", "drop sequence pin_seq"):
        c.simple(sql)


@differential()
@MODES
def test_notifications_arrive(t):
    """At an idle listener, unasked, after every kind of transaction of another client; and after many links."""
    a, b = t.connect("a"), t.connect("b")
    b.simple("listen pin_n; unlisten pin_n")
    a.simple("listen pin_n")
    for i in range(5):
        b.simple(f"notify pin_n, '{i}'")
        a.until("A")
        a.simple(f"select {i}")
        b.simple(f"begin; notify pin_n, 'in a transaction {i}'")
        b.simple("commit")
        a.until("A")
    a.simple("unlisten pin_n")
    b.simple("notify pin_n, 'nobody'")
    a.simple("select 'after'")


@differential()
@MODES
def test_two_pinned_clients(t):
    """Each has its own temporary table of one name, its own lock, its own cursor."""
    clients = [t.connect(name) for name in "abc"]
    for i, c in enumerate(clients):
        c.simple(f"create temp table pin_own as select {i} as v")
        c.simple(f"select pg_try_advisory_lock(77), {i}")
        c.simple(f"declare pin_cur cursor with hold for select {i} as v union all select 10")
    for c in (*clients, *reversed(clients)):
        c.simple("select * from pin_own")
        c.simple("fetch 1 from pin_cur")
        c.simple("select pg_advisory_unlock(77)")


# ---- what only transaction mode has: no oracle

def pinned(watcher: Wire, pid: int) -> tuple[str, str]:
    """(pinned, reason) of the client who was told this pid: found by its application_name."""
    rows = [r for r in table(watcher, "show pool_clients") if r["application_name"] == f"pins {pid}"]
    assert len(rows) == 1, rows
    return rows[0]["pinned"], rows[0]["pin_reason"]


@pytest.fixture
def two(pgpool):
    """A client who gets tied, and one who looks."""
    c, watcher = login(pgpool), login(pgpool)
    c.rows(f"set application_name = 'pins {c.pid}'")
    yield c, watcher
    c.bye()
    watcher.bye()


def moves(c: Wire) -> bool:
    """True when four transactions are not all in one server process."""
    return len({c.value("select pg_backend_pid()") for _ in range(4)}) > 1


TRANSACTION = pytest.mark.parametrize("pool_mode", ["transaction"])
PINS = {
    "temp_table": (["create temp table p(a int)"], "temporary table", ["drop table p"]),
    "temp_discard": (["create temp table p(a int)"], "temporary table", ["discard all"]),
    "temp_discard_temp": (["create temp table p(a int)"], "temporary table", ["discard temp"]),
    "temp_view": (["create temp view p as select 1"], "temporary table", ["drop view p"]),
    "temp_into": (["select 1 as a into temp p"], "temporary table", ["drop table pg_temp.p"]),
    "temp_by_schema": (["create table pg_temp.p(a int)"], "temporary table", ["drop table p"]),
    "temp_by_path": (["set search_path = pg_temp", "create table p(a int)"], "temporary table", ["drop table p"]),
    "temp_function": (["create function pg_temp.p() returns int language sql as 'select 1'"], "temporary table",
                      ["drop function pg_temp.p()"]),
    "temp_two": (["create temp table p(a int)", "create temp table q(a int)"], "temporary table", ["drop table p, q"]),
    "hold": (["declare p cursor with hold for select 1"], "cursor with hold", ["close p"]),
    "hold_all": (["declare p cursor with hold for select 1"], "cursor with hold", ["close all"]),
    "listen": (["listen p"], "listen", ["unlisten p"]),
    "listen_all": (["listen p", "listen q"], "listen", ["unlisten *"]),
    "advisory": (["select pg_advisory_lock(60)"], "advisory lock", ["select pg_advisory_unlock(60)"]),
    "advisory_try": (["select pg_try_advisory_lock(61)"], "advisory lock", ["select pg_advisory_unlock_all()"]),
    "advisory_twice": (["select pg_advisory_lock(62)", "select pg_advisory_lock(62)"], "advisory lock",
                       ["select pg_advisory_unlock(62)", "select pg_advisory_unlock(62)"]),
    "load": (["load '$libdir/plpgsql'"], "load", ["discard all"]),
}


@TRANSACTION
@BY
@pytest.mark.parametrize("tie,reason,untie", PINS.values(), ids=PINS.keys())
def test_pin_and_unpin(two, tie, reason, untie, extended):
    c, watcher = two
    assert moves(c) and pinned(watcher, c.pid)[0] in ("f", "false", "off", "0")
    for sql in tie:
        c.send(*((pg(sql), SYNC) if extended else (query(sql),)))
        assert not states(c.ready())
    assert not moves(c), "it has state that cannot move"
    yes, why = pinned(watcher, c.pid)
    assert yes in ("t", "true", "on", "1") and why == reason
    if reason != "load":
        for sql in untie:
            c.send(*((pg(sql), SYNC) if extended else (query(sql),)))
            assert not states(c.ready())
        c.rows(f"set application_name = 'pins {c.pid}'")
        waits.wait_for("it is free again", lambda: moves(c))
        assert pinned(watcher, c.pid)[0] in ("f", "false", "off", "0")


NO_PINS = {
    "temp_rolled_back": ["begin", "create temp table p(a int)", "rollback"],
    "temp_on_commit_drop": ["begin", "create temp table p(a int) on commit drop", "commit"],
    "temp_on_commit_drop_alone": ["create temp table p on commit drop as select 1; select 2"],
    "path": ["set search_path = public, pg_temp", "create table pin_path(a int)", "drop table pin_path"],
    "local_path": ["begin", "set local search_path = pg_temp", "create table pin_path(a int)", "rollback"],
    "path_of_a_function": ["create or replace function pin_f() returns int language sql set search_path = public, pg_temp "
                           "as 'select 1'", "drop function pin_f()"],
    "listen_rolled_back": ["begin", "listen p", "rollback"],
    "hold_rolled_back": ["begin", "declare p cursor with hold for select 1", "rollback"],
    "cursor": ["begin", "declare p cursor for select 1", "commit"],
    "xact_lock": ["begin", "select pg_advisory_xact_lock(63)", "commit"],
    "failed": ["create temp table p(a nosuchtype)"], "large_object": ["begin", "select lo_create(0)", "rollback"],
    "unlisten": ["unlisten *"], "set": ["set work_mem = '5MB'"], "role": ["set role trust_user", "reset role"],
    "prepare": ["prepare p as select 1", "execute p"],
    "prepare_of_settings": ["prepare p(text) as select count(*) as setting from pg_settings where name = $1", "execute p('work_mem')"], "text": ["select 'create temp table p(a int); listen p'"],
    "mentions": ["select 1 as temp, 2 as listen -- pg_advisory_lock(1)"],
}


@TRANSACTION
@pytest.mark.parametrize("steps", NO_PINS.values(), ids=NO_PINS.keys())
def test_not_pinned(two, steps):
    c, watcher = two
    for sql in steps:
        c.simple(sql)
    assert moves(c)
    assert pinned(watcher, c.pid)[0] in ("f", "false", "off", "0")


@TRANSACTION
@pytest.mark.parametrize("tie", [s[0] for s in PINS.values()][:9:2])
def test_pinned_client_leaves(pg, pgpool, tie):
    """What it leaves behind is not there for the next, and its link is used again or closed."""
    c = login(pgpool)
    for sql in tie:
        c.simple(sql)
    pid = c.value("select pg_backend_pid()")
    c.sock.close()
    waits.wait_for("its state is gone", lambda: pg.value(
        f"select (select count(*) from pg_locks where pid = {pid} and locktype = 'advisory') = 0 "
        f"and not exists (select from pg_stat_activity where pid = {pid} and state <> 'idle')") == "t")
    others = [login(pgpool) for _ in range(3)]
    for other in others:
        for _ in range(4):
            assert other.value("select count(*) from pg_class where relname in ('p', 'q') and relnamespace = "
                               "pg_my_temp_schema()") == "0"
            assert other.value("select count(*) from pg_listening_channels()") == "0"
            assert other.value("select count(*) from pg_cursors") == "0"
        other.bye()


REFUSED = ["create temp table p(a int)", "listen p", "declare p cursor with hold for select 1",
           "select pg_advisory_lock(64)", "load 'plpgsql'", "select 1 as a into temp p"]


@pytest.fixture
def strict(pg, start_pool):
    return start_pool(pg.address, pool_mode="transaction", pool_test_rotate=True, pin_on_session_state="error")


def test_pin_policy_error(strict):
    """The statement is refused with an ERROR that says what to do; the connection and its links live."""
    c = login(strict)
    for sql in REFUSED:
        for send in ((query(sql),), (pg(sql), SYNC), (parse(sql, "s"), bind(name="s"), execute(), SYNC)):
            c.send(*send)
            found = c.ready()
            assert len(states(found)) == 1, (sql, [m.type for m in found])
            error = next(m for m in found if m.type == "E")
            assert error.fields["V"] == "ERROR" and error.text
            assert found[-1].body == b"I"
        c.simple("deallocate all")
        assert c.value("select 'alive'") == "alive"
    assert moves(c)
    c.simple("begin")
    found = c.simple("create temp table p(a int)")
    assert states(found) and found[-1].body == b"E", "as any error in a transaction"
    assert states(c.simple("select 1")) == ["25P02"]
    assert not states(c.simple("rollback"))
    for sql in ("begin", "declare d cursor for select 1", "fetch d", "commit", "set work_mem = '5MB'", "select pg_advisory_xact_lock(1)"):
        assert not states(c.simple(sql)), sql
    c.bye()


@pytest.mark.parametrize("sql", REFUSED)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in_transaction"])
def test_pin_policy_error_in_a_sequence(pg, strict, sql, inside):
    """Behind others, before the same Sync: what went before is undone, what follows is skipped, and the transaction
    around it has failed."""
    pg.rows("create table if not exists pin_sequence(a int); truncate pin_sequence")
    c = login(strict)
    if inside:
        c.rows("begin")
        assert c.value("select 1") == "1"
    c.send(pgx("insert into pin_sequence values (1)"), pgx(sql), pgx("insert into pin_sequence values (2)"), SYNC,
           pgx("select 'next'"), SYNC)
    found = c.ready(2)
    assert states(found) == (["0A000", "25P02"] if inside else ["0A000"])
    assert found[-1].body == (b"E" if inside else b"I")
    assert [m.row() for m in found if m.type == "D"] == ([] if inside else [[b"next"]])
    c.simple("rollback")
    assert pg.rows("select a from pin_sequence") == []
    assert moves(c)
    c.bye()


def test_pin_policy_off(pg, start_pool):
    """The client is not tied: the state is lost to it, and it does not reach another client's."""
    pool = start_pool(pg.address, pool_mode="transaction", pool_test_rotate=True, pin_on_session_state="off")
    c, keeper = login(pool), login(pool)
    keeper.simple("begin")
    assert not states(c.simple("create temp table p(a int)"))
    assert moves(c)
    c.bye()
    keeper.bye()


def test_count_per_reason(pg, start_pool):
    pool = start_pool(pg.address, pool_mode="transaction", pool_test_rotate=True)
    clients = [login(pool) for _ in range(3)]
    for c in clients:
        c.rows("create temp table p(a int)")
    clients[0].rows("listen p")
    watcher = login(pool)

    def counts():
        return {r["reason"]: (r["clients"], r["total"]) for r in table(watcher, "show pool_pins") if r["database"] == "postgres"}

    waits.wait_for("three are tied", lambda: counts().get("temporary table") == ("3", "3"))
    waits.wait_for("one listens, too", lambda: counts().get("listen", ("", ""))[1] == "1")
    for c in clients:
        c.bye()
    waits.wait_for("none is", lambda: counts()["temporary table"] == ("0", "3"))
    watcher.bye()
