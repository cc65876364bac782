# SPDX-License-Identifier: PostgreSQL
"""test_pool_executed: what a statement does where its text does not say it plainly: EXECUTE of what was prepared,
set_config() that is perhaps not called, a view that sets, and what an error behind it leaves. The client sees its
own state on each link, and nobody else does.
"""
import pytest
from pooling_house import MODES, login, look, states

from pgt.diff import WHOLE, differential
from pgt.wire import SYNC, Wire, bind, close, describe, execute, parse, query

WORK = "select current_setting('work_mem')"
WHO = "select current_user, session_user, current_setting('role')"
LOCKS = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
HEARD = "select pg_listening_channels()"


FAIL = bind(name="nobody")


def run(sql: str) -> bytes:
    return parse(sql) + bind() + execute()


def check(t, steps, *looks: str) -> None:
    """Each step, and what the client and another one see then, on two links each."""
    c, other = t.connect("c1"), t.connect("c2")
    for step in steps:
        c.send(step if isinstance(step, bytes) else query(step))
        c.ready()
        for look in looks:
            for w in (c, c, other, other):
                w.simple(look)


# Prepared by the protocol, where any statement may be, and executed by SQL.
EXECUTED = {
    "set": ("set work_mem = '5MB'", ["execute s", "reset work_mem", "execute s(2)", "begin", "reset work_mem",
                                     "execute s", "rollback", "begin; execute s; rollback"], WORK),
    "role": ("set role trust_user", ["execute s", "reset role"], WHO),
    "set_config": ("select set_config('work_mem', '6MB', false)",
                   ["execute s", "reset work_mem", "explain (costs off) execute s",
                    "explain (analyze, costs off, timing off, summary off) execute s", "discard all"], WORK),
    "listen": ("listen exec", ["execute s", "unlisten *"], HEARD),
    "temporary": ("create temp table exec_t(a int)", ["execute s", "drop table exec_t"], "select * from exec_t"),
    "lock": ("select pg_advisory_lock(6001)", ["execute s", "select pg_advisory_unlock(6001)", "execute s",
                                               "select pg_advisory_unlock_all()"], LOCKS),
    "deallocate": ("deallocate all", ["execute s"], "execute s"),
    "prepare": ("prepare exec_y as select 7", ["execute s", "deallocate all"], "execute exec_y"),
    "begin": ("begin", ["execute s", "commit"], WORK),
}


@pytest.mark.parametrize("what", EXECUTED)
@MODES
@differential(chunks=(WHOLE,))
def test_execute_of_anything(t, what):
    text, steps, look = EXECUTED[what]
    check(t, [parse(text, "s") + SYNC, *steps], look)


# What is executed by an EXECUTE that is executed itself.
CHAINED = {
    "set": ([parse("set work_mem = '5MB'", "p")], ["execute s", "reset work_mem", "begin", "execute s", "rollback"], WORK),
    "three": ([parse("set work_mem = '5MB'", "q"), parse("execute q", "p")], ["execute s", "reset work_mem", "execute s"], WORK),
    "set_config": ([parse("select set_config('work_mem', '6MB', false)", "p")], ["execute s", "discard all"], WORK),
    "by SQL": ([query("prepare p as select set_config('work_mem', '6MB', false)")], ["execute s", "discard all"], WORK),
    "read": ([parse("select 7", "p")], ["execute s", "execute s", "deallocate p", "execute s"], WORK),
    "temporary": ([parse("create temp table chain_t(a int)", "p")], ["execute s", "drop table chain_t"], "select * from chain_t"),
    "begin": ([parse("begin", "p")], ["execute s", "set work_mem = '7MB'", "rollback"], WORK),
    "explain": ([parse("select set_config('work_mem', '6MB', false)", "x"),
                 parse("explain (analyze, costs off, timing off, summary off) execute x", "p")], ["execute s", "discard all"], WORK),
    "nothing": ([], ["execute s"], WORK),
    "itself": ([parse("execute q", "p"), parse("execute p", "q")], ["execute s"], "select 1"),
}


@pytest.mark.parametrize("by", ["query", "protocol", "sequence"])
@pytest.mark.parametrize("what", CHAINED)
@MODES
@differential(chunks=(WHOLE,))
def test_execute_of_execute(t, what, by):
    made, steps, look = CHAINED[what]
    steps = [bind(name="s") + execute() + SYNC if step == "execute s" and by == "protocol" else
             run("select 1") + run(step) + SYNC if step == "execute s" and by == "sequence" else step for step in steps]
    made = [m + SYNC if m[:1] == b"P" else m for m in made]
    check(t, [*made, parse("execute p", "s") + SYNC, *steps], look)


# What is executed makes or drops a statement by its name: the client's own are there, and nobody else's.
NAMING = {
    "prepare, taken by the protocol": ("prepare y as select 7", [parse("select 8", "y") + SYNC, "execute s"]),
    "deallocate": ("deallocate y", [query("prepare y as select 8"), "execute s", "execute s"]),
    "itself": ("prepare s as select 7", ["execute s"]),
}


@pytest.mark.parametrize("by", ["query", "sequence"])
@pytest.mark.parametrize("what", NAMING)
@MODES
@differential(chunks=(WHOLE,))
def test_execute_of_what_names_another(t, what, by):
    text, steps = NAMING[what]
    c, other = t.connect("c1"), t.connect("c2")
    other.simple("prepare y as select 'of another client'")
    for _ in range(4):
        other.simple("execute y")
    c.send(parse(text, "s") + SYNC)
    c.ready()
    for step in steps:
        if isinstance(step, str):
            step = query(step) if by == "query" else run("select 1") + run(step) + SYNC
        c.send(step)
        c.ready()
        for w in (c, c, other, other):
            w.simple("execute y")


def test_execute_of_what_prepares(pg, start_pool):
    """The client is tied to its connection, where its statement is, and nobody else's is taken for it."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2)
    with login(pool) as c, login(pool) as other:
        other.simple("prepare y as select 'of another client'")
        c.send(parse("prepare y as select 7", "s"), SYNC)
        c.ready()
        assert states(c.simple("execute s")) == []
        assert c.value("execute y") == "7"
        assert len({c.value("select pg_backend_pid()") for _ in range(4)}) == 1
        assert other.value("execute y") == "of another client"
        c.simple("discard all")


@MODES
@pytest.mark.parametrize("sql", ["reset all", "reset work_mem", "set my.own to default", "discard all", "execute y", "deallocate y"])
@differential(chunks=(WHOLE,))
def test_execute_of_what_goes_back(t, sql):
    """A session with start-up parameters goes back to these, and what is dropped is not there any more."""
    c = t.connect("c1", options="-c work_mem=9MB -c my.own=third")
    other = t.connect("c2")
    c.send(parse("reset all", "y"), SYNC, parse(sql, "s"), SYNC)
    c.ready(2)
    c.simple("set work_mem = '5MB'; set my.own = 'mine'")
    c.send(parse("execute s"), bind(), execute(), SYNC)
    c.ready()
    for w in (c, other, c):
        w.simple("select current_setting('work_mem'), nullif(current_setting('my.own', true), '')")
    c.send(bind(name="y"), execute(), SYNC)
    c.ready()
    c.simple("select current_setting('work_mem'), current_setting('my.own', true)")


@MODES
@differential(chunks=(WHOLE,))
def test_execute_of_another(t):
    """Several clients say one text, and each has another statement of that name, of another type."""
    clients = [t.connect("c1"), t.connect("c2"), t.connect("c3")]
    for c, sql in zip(clients, ("select 1", "select 'a'::text as a, 2", "")):
        for text, name in ((sql, "p"), ("execute p", "e"), ("execute e", "s"), ("explain (costs off) execute p", "x")):
            if text:
                c.send(parse(text, name), SYNC)
                c.ready()
    for _ in range(2):
        for c in clients:
            for name in "ex":
                c.send(describe(name), bind(name=name), describe("", "P"), execute(), SYNC, query(f"execute {name}"),
                       parse(f"execute {name}"), describe(""), bind(), execute(), SYNC)
                c.ready(3)
            c.simple("execute s")


@MODES
@differential(chunks=(WHOLE,))
def test_name_that_is_taken_in_a_failed_transaction(t):
    """COMMIT may be parsed there, so the name is looked at."""
    c = t.connect()
    c.simple("prepare sql_n as select 1")
    c.send(parse("select 1", "n"), SYNC)
    c.ready()
    for word in ("commit", "rollback", "rollback to a", "select 1", "selec", ""):
        for name in ("n", "sql_n"):
            c.simple("begin; select 1/0")
            c.send(parse(word, name), bind(name=name), execute(), SYNC, query("rollback"), bind(name=name), execute(), SYNC)
            c.ready(3)
            c.send(query("begin"), parse("select 1/0") + bind() + execute() + SYNC + parse(word, name) + SYNC, query("rollback"))
            c.ready(4)
            c.simple("begin")
            for sql in ("deallocate all", f"deallocate {name}", "discard all"):
                c.send(parse(word, name), SYNC)
                c.ready()
                c.simple(sql)
                c.send(parse(word, name), SYNC)
                c.ready()
            c.simple("rollback")


def test_execute_behind_the_end_of_a_failed_transaction(pg, start_pool):
    """The statement cannot be brought there: what another client calls so is not executed in its place."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    c, other = login(pool), login(pool)
    for w, text in ((c, "mine"), (other, "theirs")):
        w.send(parse(f"select '{text}'", "n"), SYNC)
        w.ready()
    for word in ("rollback", "commit"):
        assert other.value("execute n") == "theirs"
        c.simple("begin")
        assert states(c.simple("select 1/0")) == ["22012"]
        assert states(c.simple(f"{word}; execute n")) == ["26000"]
        assert c.value("execute n") == "mine"
    c.bye()
    other.bye()


@MODES
@differential(chunks=(WHOLE,))
def test_execute_behind_an_unlock(t):
    """The lock of the first EXECUTE is gone, and with it what tied the client; not that of the second."""
    check(t, ["prepare l as select pg_advisory_lock(6002)", "execute l", "select pg_advisory_unlock(6002)", "execute l",
              "select pg_advisory_unlock(6002)"], LOCKS)


NOT_CALLED = ["select {} where false", "select {} limit 0", "select case when false then {} end",
              "select coalesce('x', {})", "select true or {} is null", "select {} from generate_series(1, 0)",
              "select 1 where exists (select {})"]
CALLED = ["select {} order by set_config('work_mem', '6MB', false)", "select {}, {}", "select {} as a, {} AS b ;",
          "select current_setting('work_mem') as before, {} as now", "select pg_catalog.{}",
          "values ({})", "select {} union all select {}"]


@pytest.mark.parametrize("sql", NOT_CALLED + CALLED)
@MODES
@differential(chunks=(WHOLE,))
def test_set_config_is_called_or_not(t, sql):
    call = "set_config('work_mem', '5MB', false)"
    check(t, [sql.format(call, call), "begin", sql.format(call, call), "rollback"], WORK)


@MODES
@differential(chunks=(WHOLE,))
def test_settings_by_their_view(t):
    check(t, ["update pg_settings set setting = '9000' where name = 'work_mem'", "discard all", "begin",
              "update pg_settings set setting = '9001' where name = 'work_mem'", "rollback",
              "do $$ begin update pg_settings set setting = '9002' where name = 'work_mem'; end $$"], WORK)


@MODES
@differential(chunks=(WHOLE,))
def test_settings_by_their_view_when_prepared(t):
    check(t, ["prepare p as update pg_settings set setting = '9003' where name = 'work_mem'", "execute p", "discard all"], WORK)


# The transaction ends before the error: what it made is there.
KEPT = {
    "temporary": ("create temp table kept_t(a int)", "select * from kept_t"),
    "cursor": ("declare kept cursor with hold for select 1", "select name from pg_cursors where is_holdable"),
    "listen": ("listen kept", HEARD),
    "lock": ("select pg_advisory_lock(6003)", LOCKS),
}
ENDS = {"string": lambda sql: query(f"begin; {sql}; commit; select 1/0"),
        "string, rolled back": lambda sql: query(f"begin; {sql}; rollback; select 1/0"),
        "sequence": lambda sql: b"".join(map(run, ("begin", sql, "commit", "select 1/0"))) + SYNC,
        "sequence, failed": lambda sql: b"".join(map(run, ("begin", sql, "select 1/0", "commit"))) + SYNC + query("rollback")}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", KEPT)
@MODES
@differential(chunks=(WHOLE,))
def test_error_behind_a_commit(t, what, end):
    sql, look = KEPT[what]
    c = t.connect("c1")
    c.send(ENDS[end](sql))
    c.ready(2 if "failed" in end else 1)
    other = t.connect("c2")
    for w in (c, c, other, other):
        w.simple(look)
    c.simple("discard all")


# SQL prepares and deallocates outside of transactions, so an error in the same sequence counts only in front of it.
NAMED = {
    "prepare, error": [run("prepare s(int) as select $1") + FAIL + SYNC],
    "error, prepare": [FAIL + run("prepare s(int) as select $1") + SYNC],
    "deallocate, error": ["prepare s(int) as select $1", run("deallocate s") + FAIL + SYNC],
    "error, deallocate": ["prepare s(int) as select $1", FAIL + run("deallocate s") + SYNC],
    "all, error": ["prepare s(int) as select $1", run("deallocate all") + FAIL + SYNC],
    "error, all": ["prepare s(int) as select $1", FAIL + run("deallocate all") + SYNC],
    "all, error in a string": ["prepare s(int) as select $1", "deallocate all; select 1/0"],
    "error, all in a string": ["prepare s(int) as select $1", "select 1/0; deallocate all"],
    "error, parse, all": [FAIL + parse("select $1", "s", (23,)) + run("deallocate all") + SYNC],
    "parse, all, error": [parse("select $1", "s", (23,)) + run("deallocate all") + FAIL + SYNC],
    "all, parse, error": [run("deallocate all") + parse("select $1", "s", (23,)) + FAIL + SYNC],
}


@MODES
@differential(chunks=(WHOLE,))
def test_discard_all_in_a_string(t):
    """The server refuses it there: what was SET stays set, and nobody is told otherwise."""
    c = t.connect("c1", TimeZone="Asia/Tokyo", options="-c work_mem=17MB")
    c.simple("set timezone = 'UTC'")
    for sql in ("discard all; select 1; rollback to a", "begin; discard all; commit", "discard all; discard all"):
        c.simple(sql)
        c.simple("rollback")
        for _ in range(2):
            c.simple("show timezone")
            c.simple(WORK)


DISCARDED = {"error": FAIL, "set, error": run("set work_mem = '3MB'") + FAIL, "named, error": parse("select 1", "d") + FAIL,
             "transaction, error": run("begin") + run("commit") + FAIL}


@pytest.mark.parametrize("what", DISCARDED)
@MODES
@differential(chunks=(WHOLE,))
def test_error_behind_discard_all(t, what):
    """DISCARD ALL is committed by itself. What it took away is not thought to be there, by nobody."""
    start = {"options": "-c work_mem=17MB -c role=trust_user", "TimeZone": "Asia/Tokyo"}
    c, other = t.connect("c1", **start), t.connect("c2", **start)
    for tie in ("set lock_timeout = '5s'", "listen d"):
        c.simple(tie)
        c.send(run("discard all") + DISCARDED[what] + SYNC + query("rollback"))
        c.ready(2)
        for w in (c, c, other, other):
            for look in (WORK, WHO, HEARD, "show timezone", "show lock_timeout"):
                w.simple(look)
    t.connect("c3", **start).simple("show timezone")


@MODES
@differential(chunks=(WHOLE,))
def test_begin_with_a_parameter(t):
    c = t.connect()
    c.send(parse("begin", "b", (23,)), bind(name="b"), execute(), SYNC, bind(["1"], "", "b"), execute(), SYNC, query("commit"))
    c.ready(3)


@MODES
@differential(chunks=(WHOLE,))
def test_names_in_errors(t):
    """They are the client's, also when its statements are dropped in the sequence that fails."""
    c = t.connect()
    for sql in ("select 1", "discard all", "deallocate all"):
        c.send(parse(sql, "n"), SYNC, bind(name="n"), bind(["1"], "", "n"), execute(), SYNC, close("n"), SYNC)
        c.send(parse(sql, "n"), bind(["1"], "", "n"), close("n"), SYNC)
        c.ready(4)
    many = [f"of the same text {i}" for i in range(6)]
    c.send(*(parse("select 1", name) for name in many), SYNC)
    c.ready()
    for name in many:
        c.send(bind(["1"], "", name), SYNC)
        c.ready()


@pytest.mark.parametrize("what", NAMED)
@MODES
@differential(chunks=(WHOLE,))
def test_names_and_an_error_in_the_sequence(t, what):
    check(t, [*NAMED[what], "select 1", close("s") + SYNC, "prepare s(int) as select $1", "deallocate s"], "execute s(1)")


ROLES = {"authorization": ["set session authorization other_user", "reset session authorization"],
         "by set_config": ["select set_config('session_authorization', 'other_user', false)", "set session authorization default"],
         "none": ["set role none", "reset role", "set role other_user", "reset role", "discard all"],
         "in a transaction": ["begin", "set session authorization other_user", "savepoint a", "set role none", "rollback to a",
                              "commit", "reset all"]}


@pytest.mark.parametrize("what", ROLES)
@MODES
@differential(chunks=(WHOLE,))
def test_role_at_startup(t, what):
    """The role of the start-up packet ends with SET SESSION AUTHORIZATION, and with SET ROLE NONE."""
    c, other = t.connect("c1", options="-c role=trust_user"), t.connect("c2")
    for step in ROLES[what]:
        c.simple(step)
        for w in (c, c, other, other):
            w.simple(WHO)


@pytest.mark.parametrize("params", [{"session_authorization": "trust_user"}, {"options": "-c Session-Authorization=trust_user"},
                                    {"session_authorization": "trust_user", "user": "trust_user"}], ids=["direct", "options", "own"])
@MODES
@differential(chunks=(WHOLE,))
def test_authorization_at_startup(t, params):
    """It changes nothing, now or behind a RESET."""
    c, other = t.connect("c1", **params), t.connect("c2")
    for step in ("select 1", "reset session authorization", "reset all", "discard all"):
        c.simple(step)
        for w in (c, other, c):
            w.simple(WHO)


@MODES
@differential(chunks=(WHOLE,))
def test_role_by_alter_role(t):
    t.direct("drop role if exists exec_role")
    t.direct("create role exec_role login in role trust_user, other_user")
    t.direct("alter role exec_role set role = trust_user")
    c, other = t.connect("c1", user="exec_role"), t.connect("c2", user="exec_role")
    for step in ("set role none", "reset role", "begin", "set role none", "rollback", "set role none", "discard all"):
        c.simple(step)
        for w in (c, c, other, other):
            w.simple(WHO)


def test_link_that_refuses_a_setting(pg, start_pool):
    """temp_buffers is fixed once a temporary table was used: a link that refuses it is not for this client, but the
    next one may be."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2)
    with login(pool) as c, login(pool) as other:
        assert states(c.simple("set temp_buffers = 200")) == []
        for _ in range(2):  # on each of two links
            for w in (c, other):
                assert states(w.simple("begin; select 1")) == []
            other.rows("create temp table unfit on commit drop as select 1 as a")
            for w in (c, other):
                w.simple("commit")
            with Wire(pool.address) as third:
                third.login()
                third.rows("begin; create temp table unfit on commit drop as select 1 as a; commit")
                assert c.value("show temp_buffers") == "1600kB"
        assert other.value("show temp_buffers") == "8MB"


# Which of its parts are kept pgpool cannot know.
IN_PARTS = (
    ["savepoint s", "set session authorization other_user"], ["savepoint s", "set role other_user"],
    ["set session authorization other_user", "savepoint s"], ["set role other_user", "commit", "savepoint s"],
    ["set session authorization other_user", "commit", "savepoint s"], ["savepoint s", "set work_mem = '3MB'"],
    ["set role other_user", "begin", "select 1/0"], ["set work_mem = '3MB'", "commit", "set work_mem = '4MB'", "savepoint s"])


@pytest.mark.parametrize("parts", IN_PARTS, ids="; ".join)
@pytest.mark.parametrize("pool_mode", ["transaction"])
@differential(chunks=(WHOLE,))
def test_reset_behind_what_failed_in_parts(t, parts):
    """What was skipped is not made good, least of all a role, when start-up parameters are put right."""
    c = t.connect("c1", application_name="mine", TimeZone="Asia/Tokyo")
    c.send(*(run(sql) for sql in parts), SYNC)
    c.ready()
    for sql in ("select 1", "reset timezone", "rollback", "reset timezone", "reset all", "discard all"):
        c.simple(sql)
        look(c)
