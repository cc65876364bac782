# SPDX-License-Identifier: PostgreSQL
"""test_pool_odds: small questions to one pool of transaction mode: plans that have gone stale under EXECUTE, and what is
sent behind a COPY without waiting for it.
"""
import pytest
from pooling_house import login, states

from pgt.wire import COPY_DONE, FLUSH, SYNC, Wire, bind, copy_data, copy_fail, describe, execute, parse, query
from pgt.wire import pg as pgx


@pytest.fixture
def pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2)


def test_execute_of_a_stale_plan(pg, pool):
    """EXECUTE outside of a transaction, or as the first thing in one, gets a new plan unseen; within one it cannot."""
    pg.rows("drop table if exists odds")
    pg.rows("create table odds(a int); insert into odds values (1)")
    c = login(pool)
    c.rows("prepare p as select * from odds")
    c.send(parse("select * from odds where $1 = 1", "q"), SYNC)
    c.ready()
    assert [len(r) for r in c.rows("execute p")] == [1]
    assert [len(r) for r in c.rows("execute q(1)")] == [1]
    for i, name in enumerate(["p", "q(1)"] * 2):
        pg.rows(f"alter table odds add c{i} int")
        if i < 2:
            assert [len(r) for r in c.rows(f"execute {name}")] == [i + 2]
        else:
            c.rows("begin")
            assert [len(r) for r in c.rows(f"execute {name}")] == [i + 2]
            c.rows("commit")
    assert [len(r) for r in c.rows("execute p")] == [5]
    c.rows("begin; select 1")
    pg.rows("alter table odds add d int")
    assert states(c.simple("execute p")) == ["0A000"]
    c.rows("rollback")
    assert [len(r) for r in c.rows("execute p")] == [6]
    assert states(c.simple("execute nobody")) == ["26000"]
    c.bye()


TIES = ("listen odds_tied", "create temp table odds_own(a int)", "declare odds_h cursor with hold for select 1",
        "select pg_advisory_lock(17)", "load 'plpgsql'")


def test_stale_plans_of_a_tied_session(pg, pool):
    """A session keeps its link when its plans are stale: they are made anew there, what ties it stays, and what comes by
    itself meanwhile (a notification, a notice of the failed transaction) comes once."""
    pg.rows("drop table if exists odds_own, odds_tie")
    pg.rows("create table odds_tie(a int); insert into odds_tie values (1)")
    columns = 1
    for tie in TIES:
        c = login(pool)
        c.rows("prepare p as select * from odds_tie")
        c.send(parse("select * from odds_tie", "s"), parse("select 1 / $1", "div"), SYNC)
        c.ready()
        assert not states(c.simple(tie))
        pid = c.value("select pg_backend_pid()")
        for ask in (query("execute p"), bind(name="s") + describe("", "P") + execute() + SYNC,
                    parse("select 0") + bind(name="s") + describe("", "P") + execute() + SYNC):
            c.send(ask)
            c.ready()
        for ask, shape in ((query("execute p"), "TDCZ"), (bind(name="s") + describe("", "P") + execute() + SYNC, "2TDCZ"),
                           (parse("select 0") + bind(name="s") + describe("", "P") + execute() + SYNC, "12TDCZ")):
            pg.rows(f"alter table odds_tie add c{columns} int; notify odds_tied")
            columns += 1
            c.send(ask)
            found = c.ready()
            assert "".join(m.type for m in found if m.type not in "AS") == shape, (tie, [m.fields for m in found])
            assert [len(m.row()) for m in found if m.type == "D"] == [columns], tie
        assert c.value("select pg_backend_pid()") == pid
        pg.rows(f"alter table odds_tie add c{columns} int")
        columns += 1
        # What fails behind a stale plan is not tried again; within a transaction the server's error is the answer.
        c.send(bind(name="s"), describe("", "P"), execute(), bind([b"0"], name="div"), execute(), SYNC)
        assert states(c.ready()) == ["22012"]
        c.rows("begin; select 1")
        pg.rows(f"alter table odds_tie add c{columns} int")
        columns += 1
        assert states(c.simple("execute p")) == ["0A000"]
        c.rows("rollback")
        assert [len(r) for r in c.rows("execute p")] == [columns]
        # The client knows the columns and does not ask for them: other ones would surprise it.
        c.send(describe("s"), SYNC)
        c.ready()
        pg.rows(f"alter table odds_tie add c{columns} int")
        columns += 1
        c.send(bind(name="s"), execute(), SYNC)
        assert states(c.ready()) == ["0A000"]
        c.simple("deallocate p")
        assert c.value("select pg_backend_pid()") == pid
        assert states(c.simple("execute p")) == ["26000"]
        c.bye()


@pytest.mark.parametrize("end", ["done", "fail"])
@pytest.mark.parametrize("sql", ["set my.own = 'x'; copy odds_copy from stdin", "copy odds_copy from stdin; reset all",
                                 "begin; copy odds_copy from stdin; commit"])
def test_sync_behind_a_string_that_copies(pg, pool, sql, end):
    """A Sync in a COPY is nothing, and nothing waits for it."""
    pg.rows("create table if not exists odds_copy(a int)")
    c = login(pool)
    c.send(query(sql), SYNC)
    c.read_until("G")
    c.send(copy_data(b"1\n"), SYNC, COPY_DONE if end == "done" else copy_fail("no"))
    c.send(query("rollback"), query("select 'behind'"))
    found = c.ready(3)
    assert states(found) == (["57014"] if end == "fail" else [])
    assert [m.row() for m in found if m.type == "D"] == [[b"behind"]]
    c.send(query(sql), SYNC, COPY_DONE if end == "done" else copy_fail("no"), query("rollback"), query("set my.own = 'z'"))
    assert states(c.ready(3)) == (["57014"] if end == "fail" else [])
    assert c.value("show my.own") == "z"
    c.bye()


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "sends_ahead"])
@pytest.mark.parametrize("conf", [{"pool_mode": "transaction"}, {"load_balance_mode": True}], ids=["transaction", "balanced"])
def test_copy_whose_server_dies_before_the_sync_that_counts(pg, start_pool, conf, waits):
    """The Sync in it was ignored: nothing is committed, and nobody is told so."""
    pg.rows("create table if not exists odds_unsynced(a int)")
    nodes = [pg.address] * (2 if "load_balance_mode" in conf else 1)
    c = login(start_pool(*nodes, num_init_children=1, **conf), seconds=20)
    c.send(pgx("copy odds_unsynced from stdin"), SYNC, *([] if waits else [copy_data(b"1\n"), COPY_DONE, FLUSH]))
    c.read_until("G")
    if waits:
        c.send(copy_data(b"1\n"), COPY_DONE, FLUSH)
    c.read_until("C")
    pg.end_sessions("query like 'copy odds_unsynced%'")
    c.send(SYNC)
    assert states(c.ready()) != []
    assert pg.rows("select a from odds_unsynced") == []
    c.bye()


def test_extended_copy_behind_a_set(pg, pool):
    pg.rows("create table if not exists odds_copy(a int)")
    c = login(pool)
    c.send(parse("set my.own = 'y'"), bind(), execute(), parse("copy odds_copy from stdin"), bind(), execute(), SYNC)
    c.read_until("G")
    c.send(copy_data(b"2\n"), COPY_DONE, SYNC)
    assert states(c.ready()) == []
    assert c.value("show my.own") == "y"
    c.bye()


def test_copy_that_fails_with_a_sync_over_several_servers(pg, start_pool):
    """Which Syncs the server read before its COPY failed is asked."""
    pg.rows("create table if not exists odds_copy(a int)")
    one = start_pool(pg.address, pg.address, num_init_children=1, load_balance_mode=True)
    c = login(one)
    c.send(parse("copy odds_copy from stdin"), bind(), execute(), SYNC)
    c.read_until("G")
    c.send(copy_data(b"bad\n"), COPY_DONE, SYNC)
    assert states(c.ready()) == ["22P02"]
    for sql in ("set my.own = 'y'", "begin", "set my.own = 'z'", "rollback", "select 1"):
        assert states(c.simple(sql)) == []
    assert c.value("show my.own") == "y"
    c.bye()


def test_rest_of_a_message_behind_a_failed_copy(pg, start_pool):
    """The server has failed while a CopyData was half sent. Its rest comes together with more: the link must not go back
    in the middle of a message, for the next statement on it would be taken for that rest (sim_run --seed 1684)."""
    pg.rows("create table if not exists odds_copy(a int)")
    one = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    c = login(one)
    half = copy_data(b"1234567\n")
    pid = c.value("select pg_backend_pid()")
    c.send(query("copy odds_copy from stdin"))
    c.read_until("G")
    c.send(copy_data(b"not a number\n") + half[:5])
    assert states(c.ready()) == ["22P02"]
    c.send(half[5:] + copy_data(b"2\n") + COPY_DONE)
    assert c.value("select pg_backend_pid()") == pid
    c.bye()


def test_query_in_the_middle_of_a_sequence(pg, pool):
    """It has a ReadyForQuery of its own, so what it made stays when the rest of the sequence fails: the next one
    who gets the connection must not find it."""
    c, other = login(pool), login(pool)
    c.send(parse("select 1"), query("create temp table odds_own(a int); set work_mem = '7MB'"), execute("nobody"), SYNC)
    assert states(c.ready(2)) == ["34000"]
    assert c.value("show work_mem") == "7MB"
    assert c.value("select count(*) from odds_own") == "0"
    c.bye()
    for _ in range(3):
        assert states(other.simple("select count(*) from odds_own")) == ["42P01"]
        assert other.value("show work_mem") == "4MB"
    other.bye()


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_command_of_ours_fails_in_a_sequence(pg, start_pool, mode):
    """What stands in front of it in the same implicit transaction is undone, as by a server's own error; a transaction
    that the client began is left as it is, as by a simple query."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    pg.rows("drop table if exists odd_undone; create table odd_undone(a int)")
    c = login(pool)

    def sequence(n: int) -> bytes:
        return b"".join(pgx(sql) for sql in (f"insert into odd_undone values ({n})", f"set my.own = 'is {n}'", "pgpool resume",
                                             f"insert into odd_undone values (-{n})", "pgpool resume")) + SYNC
    for n in (1, 2):
        c.send(sequence(n), pgx("select 'behind'"), SYNC)
        found = c.ready(2)
        assert states(found) == ["55000"]
        assert [m.body for m in found if m.type == "Z"] == [b"I", b"I"]
        assert [m.row() for m in found if m.type == "D"] == [[b"behind"]]
        assert c.value("select coalesce(current_setting('my.own', true), '')") == ""
        assert pg.rows("select a from odd_undone") == []
        assert not states(c.simple("insert into odd_undone values (0); delete from odd_undone"))
    if mode != "statement":
        c.simple("begin")
        c.send(sequence(3))
        found = c.ready()
        assert states(found) == ["55000"] and found[-1].body == b"T"
        c.simple("commit")
        assert pg.rows("select a from odd_undone") == [[b"3"]]
        assert c.value("select current_setting('my.own', true)") == "is 3"
    c.bye()


def told(found) -> dict[str, str]:
    return dict(m.status() for m in found if m.type == "S")


def test_login_by_another_name(pg, pool):
    """All connections are in use: who differs from one before by application_name alone waits for none at login, and is
    told what the server would say. Names that a server changes are its to say."""
    names = ["worker:4711", "", "x" * 63, "it's \\ \"one\""]
    changed = ["y" * 64, "z\u00e9", "tab\there"]
    want = {}
    for name in names + changed:
        direct = login(pg, application_name=name)
        want[name] = direct.value("show application_name")
        direct.bye()
    pg.rows("alter role other_user set application_name = 'by the role'")
    busy = [login(pool) for _ in range(2)]
    other = login(pool, user="other_user", application_name="somebody")
    other.bye()
    for c in busy:
        c.rows("begin")
        c.rows("select 1")
    clients = {}
    for name in names:
        clients[name] = Wire(pool.address)
        seen = told(clients[name].login(application_name=name))
        assert seen["application_name"] == want[name] == name and seen["server_version"] and "DateStyle" in seen
    more = [Wire(pool.address) for _ in range(len(changed) + 2)]
    for w, name in zip(more, changed):
        w.send_startup("postgres", "postgres", application_name=name)
    more[-2].send_startup("postgres", "postgres", application_name="new", DateStyle="German")
    more[-1].send_startup("other_user", "postgres")
    assert all(w.is_quiet(0.2) for w in more)
    for c in busy:
        c.rows("commit")
    for w, name in zip(more, changed):
        assert told(w.authenticate("postgres", ""))["application_name"] == want[name]
        clients[name] = w
    assert told(more[-2].authenticate("postgres", ""))["DateStyle"] == "German, DMY"
    assert told(more[-1].authenticate("other_user", ""))["application_name"] == "by the role"
    for name, w in clients.items():
        assert w.value("show application_name") == want[name]
    for w in [*clients.values(), *more[-2:], *busy]:
        w.bye()
    pg.rows("alter role other_user reset application_name")
