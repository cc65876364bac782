# SPDX-License-Identifier: PostgreSQL
"""test_pool_code: procedures and DO, of which nobody sees what they do: they end transactions, and set what is not said."""
import pytest
from pooling_house import login

from pgt.wire import SYNC, bind, execute, parse, query
from pgt.wire import pg as pgx

CODE = {"commits": ("commit; perform 1 / 0;", True), "rolls_back": ("rollback;", False), "goes_on": ("commit;", True)}


@pytest.mark.parametrize("by", ["call", "do", "named", "query"])
@pytest.mark.parametrize("ends, is_set", CODE.values(), ids=CODE.keys())
def test_code_that_ends_its_sequence(pg, start_pool, ends, is_set, by):
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
    a.send(pgx("set role trust_user"), last, SYNC)
    found = a.ready(2 if by == "query" else 1)
    assert [m.sqlstate for m in found if m.type == "E"] == (["22012"] if "1 / 0" in ends else [])
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
    for sequence in (pgx("call code_alone()") + pgx("set work_mem = '7MB'"), pgx("select 1") + pgx("call code_alone()"),
                     pgx("do $$ begin commit; end $$")):
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
