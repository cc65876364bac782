# SPDX-License-Identifier: PostgreSQL
"""test_pool_code: procedures and DO, of which nobody sees what they do: they end transactions, and set what is not said; and
what SQL executes that was bound by the protocol."""
import pytest
from pooling_house import login, states

from pgt import postgres
from pgt.wire import SYNC, Wire, bind, execute, function_call, parse, query
from pgt.wire import pg as pgx

CODE = {"commits": "commit; perform 1 / 0;", "rolls_back": "rollback;", "goes_on": "commit;"}


@pytest.mark.parametrize("by", ["call", "do", "named", "query"])
@pytest.mark.parametrize("ends", CODE.values(), ids=CODE.keys())
def test_code_that_ends_its_sequence(pg, start_pool, ends, by):
    """A procedure may commit what is in front of it in its sequence, and fail then, or undo that and go on: nobody else is
    given the link with another role than he has."""
    pg.rows(f"create or replace procedure code_ends() language plpgsql as $$ begin {ends} end $$")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    a, b, c = login(pool), login(pool), login(pool)
    b.rows("set role trust_user")
    sql = f"do $$ begin {ends} end $$" if by == "do" else "call code_ends()"
    if by == "named":
        a.send(parse(sql, "s"), SYNC)
        a.ready()
    last = {"named": bind(name="s") + execute(), "query": query(sql)}.get(by, pgx(sql))
    with Wire(pg.address) as direct:  # from PostgreSQL 17 on code ends nothing of what is in front of it
        direct.login()
        if by == "named":
            direct.send(parse(sql, "s"), SYNC)
            direct.ready()
        direct.send(pgx("set role trust_user"), last, SYNC)
        there = direct.ready(2 if by == "query" else 1)
        is_set = direct.value("select current_user") == "trust_user"
    a.send(pgx("set role trust_user"), last, SYNC)
    found = a.ready(2 if by == "query" else 1)
    assert [m.sqlstate for m in found if m.type == "E"] == [m.sqlstate for m in there if m.type == "E"]
    for _ in range(3):
        assert c.value("select current_user") == "postgres"
        assert b.value("select current_user") == "trust_user"
        assert a.value("select current_user") == ("trust_user" if is_set else "postgres")
    for w in (a, b, c):
        w.bye()


def test_code_by_itself_ties_nobody(pg, start_pool):
    """Nothing that has to be followed is in front of it."""
    pg.rows("create or replace procedure code_alone() language plpgsql as $$ begin commit; end $$")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    a, b = login(pool), login(pool)
    behind = [pgx("select 1") + pgx("call code_alone()")] if postgres.major() < 17 else []  # since then it is refused there
    for sequence in (pgx("call code_alone()") + pgx("set work_mem = '7MB'"), *behind, pgx("do $$ begin commit; end $$")):
        a.send(sequence, SYNC)
        assert "E" not in [m.type for m in a.ready()]
        assert b.value("show work_mem") == "4MB"
        assert a.value("show work_mem") == "7MB"
    a.bye()
    b.bye()


@pytest.mark.parametrize("gap", [" ", "\n", "\t", "/**/", "--x\n"], ids=["space", "line", "tab", "comment", "line_comment"])
def test_do_that_sets(pg, start_pool, gap):
    """However it is written, it ties the session: what it set is seen by nobody else."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    a, b = login(pool), login(pool)
    a.rows(f"do $$ begin set{gap}work_mem{gap}to '7MB'; end $$")
    for _ in range(2):
        assert b.value("show work_mem") == "4MB"
        assert a.value("show work_mem") == "7MB"
    a.bye()
    b.bye()


@pytest.mark.parametrize("how", ["simple", "extended", "named", "move", "string"])
def test_portal_that_sql_executes(pg, start_pool, how):
    """FETCH and MOVE do what was bound: it is no secret of the link's."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    a, b = login(pool), login(pool)
    a.rows("begin")
    a.send(parse("select set_config('work_mem', '9MB', false)"), bind(portal="p"), SYNC,
           {"simple": query("fetch all from p"), "extended": pgx("fetch all from p") + SYNC, "move": query("move all in p"),
            "named": parse("fetch all from p", "f") + bind(name="f") + execute() + SYNC,
            "string": query("select 1; fetch all from p; select 2")}[how])
    assert "E" not in [m.type for m in a.ready(2)]
    a.rows("commit")
    for _ in range(2):
        assert b.value("show work_mem") == "4MB"
        assert a.value("show work_mem") == "9MB"
    a.bye()
    b.bye()


def test_portal_whose_name_is_too_long(pg, start_pool):
    """A server knows its first 63 bytes: what is executed under another name that begins so is what was bound."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    a, b = login(pool), login(pool)
    for value in ("9MB", "8MB"):
        a.send(parse(f"set work_mem = '{value}'"), bind(portal=63 * "p" + "a"), execute(63 * "p" + "b"), SYNC)
        assert not states(a.ready())
        for _ in range(2):
            assert b.value("show work_mem") == "4MB"
            assert a.value("show work_mem") == value
    a.bye()
    b.bye()


LOCKS = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
CALLS = {"set_config": (2078, [b"work_mem", b"9MB", b"f"]), "lock": (2880, [b"7001"]), "two_keys": (2889, [b"70", b"2"])}


@pytest.mark.parametrize("oid, args", CALLS.values(), ids=CALLS.keys())
def test_function_calls(pg, start_pool, oid, args):
    """The protocol's own way to call a function, in one piece or byte by byte: what it sets or locks is the session's."""
    call = function_call(oid, args, formats=[0], result_format=0)
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    for chunk in (0, 1):
        with login(pool) as a, login(pool) as b:
            a.chunk = chunk
            a.send(call)
            assert not states(a.ready())
            assert b.value("show work_mem") == "4MB"
            assert b.value(LOCKS) == "0"
            assert (a.value("show work_mem"), a.value(LOCKS)) == (("9MB", "0") if oid == 2078 else ("4MB", "1"))
    strict = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pin_on_session_state="error")
    with login(strict) as a:
        a.send(call, function_call(1299, []))
        assert states(a.ready(2)) == ["0A000"]
