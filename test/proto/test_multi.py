# SPDX-License-Identifier: PostgreSQL
"""test_multi: strings of several statements and aborted transactions: T11 and T12 of the catalogue."""
import pytest

from pgt.diff import differential
from pgt.wire import (COPY_DONE, FLUSH, SYNC, bind, copy_data, describe, execute, parse, pg, query)

SPECIAL = {
    "prepare": "prepare m as select 'prepared'",
    "declare": "declare cu cursor for select generate_series(1, 3)",
    "declare_hold": "declare ch cursor with hold for select generate_series(1, 3)",
    "copy_out": "copy (select 1) to stdout",
    "begin": "begin",
    "error": "select 1/0",
    "set": "set application_name = 'multi'",
    "syntax": "selec",
    "savepoint": "savepoint s",
    "commit": "commit",
    "rollback": "rollback",
    "vacuum": "vacuum pg_am",
    "listen": "listen m; notify m",
}


@differential(chunks=(0,))
@pytest.mark.parametrize("wrap", [False, True], ids=["bare", "in_transaction"])
@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("special", SPECIAL.values(), ids=SPECIAL.keys())
def test_t11_special_at_each_position(t, special, position, wrap):
    """Afterwards the names it may have made are bound, described and fetched."""
    c = t.connect()
    if wrap:
        c.simple("begin")
    parts = ["select 'a'", "select 'b'"]
    parts.insert(position, special)
    c.simple("; ".join(parts))
    for after in (bind(name="m") + describe("", "P") + execute(), describe("m"), describe("cu", "P"),
                  pg("fetch 1 from cu"), pg("fetch all from ch"), pg("execute m")):
        c.send(after, SYNC)
        c.ready()
    c.simple("commit")
    c.simple("show application_name")


@differential()
@pytest.mark.parametrize("position", range(3))
def test_t11_copy_in_at_each_position(t, position):
    c = t.connect()
    c.simple("create temp table mc(a int)")
    parts = ["select 'a'", "select 'b'"]
    parts.insert(position, "copy mc from stdin")
    c.send(query("; ".join(parts)))
    c.until("G")
    c.send(copy_data(b"1\n"), COPY_DONE)
    c.ready()
    c.simple("table mc")


@differential()
def test_t11_describe_portal_of_declare(t):
    """A portal made by SQL DECLARE, used by the messages."""
    c = t.connect()
    c.simple("begin; declare cu cursor for select g, g::text from generate_series(1, 5) g")
    c.send(describe("cu", "P"), execute("cu", 2), SYNC)
    c.ready()
    c.send(execute("cu", 0), FLUSH)
    c.until("C")
    c.send(SYNC)
    c.ready()
    c.simple("close cu; commit")


@differential()
def test_t11_prepare_execute_deallocate(t):
    c = t.connect()
    c.simple("select 1; prepare p2(int) as select $1 + 1; execute p2(41)")
    c.send(bind(["1"], name="p2"), execute(), SYNC)
    c.ready()
    c.simple("deallocate p2; execute p2(1)")
    c.send(bind(["1"], name="p2"), execute(), SYNC)
    c.ready()
    c.send(parse("select 'wire'", "p3"), SYNC)
    c.ready()
    c.simple("execute p3; deallocate p3")
    c.send(bind(name="p3"), execute(), SYNC)
    c.ready()


@differential()
def test_t11_implicit_transaction_of_a_string(t):
    c = t.connect()
    c.simple("create temp table im(a int)")
    c.simple("insert into im values (1); insert into im values (2); select 1/0; insert into im values (3)")
    c.simple("table im")
    c.simple("insert into im values (4); commit; insert into im values (5); select 1/0")
    c.simple("table im")
    c.simple("begin; insert into im values (6); commit; begin; insert into im values (7)")
    c.simple("rollback")
    c.simple("table im")


IN_ABORTED = {
    "semicolon": ";", "empty": "", "comment": "-- nothing", "block_comment": "/* nothing */",
    "show": "show work_mem", "select": "select 1", "rollback_to": "rollback to s", "release": "release s",
    "savepoint": "savepoint z", "rollback_to_unknown": "rollback to nope", "begin": "begin", "set": "set work_mem='5MB'",
    "commit": "commit", "rollback": "rollback", "prepare_tx": "prepare transaction 'x'", "syntax": "selec",
    "two": "select 1; rollback to s", "commit_chain": "commit and chain", "rollback_chain": "rollback and chain",
    "deallocate": "deallocate all", "discard": "discard all", "copy": "copy (select 1) to stdout",
    "show_pool": "show pool_nothing",
}


def abort_transaction(c, extended: bool) -> None:
    c.simple("begin; savepoint s")
    if extended:
        c.send(pg("select 1/0"), SYNC)
        c.ready()
    else:
        c.simple("select 1/0")


@differential(chunks=(0,))
@pytest.mark.parametrize("how", ["simple", "extended"])
@pytest.mark.parametrize("sql", IN_ABORTED.values(), ids=IN_ABORTED.keys())
def test_t12_in_aborted_transaction(t, sql, how):
    c = t.connect()
    abort_transaction(c, how == "extended")
    if how == "simple":
        c.simple(sql)
    else:
        c.send(pg(sql), SYNC)
        c.ready()
    c.simple("select 'next'")
    c.simple("rollback")
    c.simple("select 'after'")


@differential()
@pytest.mark.parametrize("sql", ["begin", "select 1", "rollback", "rollback to s", "", "commit"])
@pytest.mark.parametrize("step", range(1, 5))
def test_t12_parts_of_extended_in_aborted_transaction(t, sql, step):
    """Parse alone, Parse and Bind, ... in an aborted transaction, then the rest after rollback."""
    c = t.connect()
    c.send(parse("select 'known'", "known"), SYNC)
    c.ready()
    abort_transaction(c, False)
    pieces = [parse(sql, "x"), bind(name="x"), describe("", "P"), execute()]
    c.send(*pieces[:step], SYNC)
    c.ready()
    c.send(describe("known"), SYNC, bind(name="known"), execute(), SYNC)
    c.ready(2)
    c.simple("rollback")
    c.send(bind(name="known"), execute(), SYNC)
    c.ready()
    c.send(bind(name="x"), execute(), SYNC)
    c.ready()


@differential()
def test_t12_error_at_commit(t):
    c = t.connect()
    c.simple("create temp table dc(a int unique deferrable initially deferred)")
    c.simple("begin; insert into dc values (1), (1)")
    c.simple("commit")
    c.simple("select 'idle again'")
    c.simple("begin")
    c.simple("select 1/0")
    c.simple("commit")
    c.simple("commit")
    c.simple("rollback")


@differential()
def test_savepoints_nested(t):
    c = t.connect()
    for sql in ("begin", "savepoint a", "savepoint b", "select 1/0", "rollback to a", "select 1", "release a",
                "rollback to b", "rollback to a", "rollback", "savepoint x", "release x"):
        c.simple(sql)


@differential()
def test_notices_and_warnings(t):
    c = t.connect()
    c.simple("do $$ begin raise notice 'hello %', 1; raise warning 'w'; raise info 'i'; raise debug 'd'; end $$")
    c.simple("set client_min_messages = debug1; do $$ begin raise debug 'd'; end $$")
    c.send(pg("do $$ begin raise notice 'x' using hint = 'h', detail = 'd', errcode = '01ABC'; end $$"), SYNC)
    c.ready()
    c.simple("do $$ begin raise exception 'e' using errcode = 'XX123', hint = 'h', table = 't', column = 'c'; end $$")
    c.simple("create temp table if not exists nn(a int); create temp table if not exists nn(a int)")
