# SPDX-License-Identifier: PostgreSQL
"""test_pool_flows: the shapes of exchanges that drivers make, on links that change between any two transactions:
pipelines over several implicit transactions, Flush, cursors with row limits, COPY, errors in the midst,
savepoints around each statement, and BEGIN that is answered before a link is there.
"""
import pytest
from pooling_house import BY, MODES, look, run

from pgt.diff import WHOLE, differential
from pgt.wire import (COPY_DONE, FLUSH, SYNC, TERMINATE, bind, close, copy_data, copy_fail, describe, execute, parse, pg,
                      query)

pytestmark = MODES


# ---- pipelines

@differential()
@pytest.mark.parametrize("depth", [2, 10, 100])
def test_pipeline_of_transactions(t, depth):
    """Many implicit transactions in one write, with names made in one and used in the next."""
    c = t.connect()
    c.send(parse("select $1::int * 2 as v", "s"), SYNC,
           *(bind([str(i)], name="s") + execute() + SYNC for i in range(depth)),
           *(pg(f"select {i}") + SYNC for i in range(depth)), *(query(f"select -{i}") for i in range(1, depth)))
    c.ready(3 * depth)
    c.send(bind(["7"], name="s"), execute(), SYNC)
    c.ready()


@differential()
@pytest.mark.parametrize("at", range(5))
def test_pipeline_with_an_error_at(t, at):
    """Only the transaction with the error is lost; what it prepared before the error is kept."""
    c = t.connect()
    parts = []
    for i in range(5):
        parts += [parse(f"select {i} as n", f"p{i}"), pg("select 1/0" if i == at else f"select {i}"),
                  parse(f"select 'after {i}'", f"after{i}"), SYNC]
    c.send(*parts)
    c.ready(5)
    for i in range(5):
        c.send(bind(name=f"p{i}"), execute(), SYNC, bind(name=f"after{i}"), execute(), SYNC)
        c.ready(2)


@differential()
def test_pipeline_with_begin_and_commit(t):
    c = t.connect()
    c.send(pg("begin"), SYNC, pg("select 1"), SYNC, pg("commit"), SYNC, pg("begin"), pg("select 2"), pg("commit"), SYNC,
           pg("select 3"), pg("begin"), SYNC, pg("select 1/0"), SYNC, pg("select 4"), SYNC, pg("commit"), SYNC, pg("select 5"), SYNC)
    c.ready(9)
    c.send(query("begin"), query("select 1"), query("commit"), query("begin"), query("rollback"), pg("select 2"), SYNC,
           query("commit"))
    c.ready(7)


@differential()
def test_two_clients_pipeline_at_once(t):
    """Replies go to who asked, in order, while both have many transactions under way."""
    a, b = t.connect("a"), t.connect("b")
    for turn in range(5):
        for name, c in (("a", a), ("b", b)):
            c.send(*(pg(f"select '{name}', {turn}, {i}, repeat('{name}', {i * 50})") + SYNC for i in range(40)))
        a.ready(40)
        b.ready(40)


@differential()
@pytest.mark.parametrize("gap", range(4))
def test_client_leaves_a_sequence_open(t, gap):
    """Between two messages of one sequence other transactions of other clients run."""
    a, b = t.connect("a"), t.connect("b")
    pieces = [parse("select $1::text as v", "s"), bind(["x"], "por", "s"), describe("por", "P"), execute("por")]
    ends = [("1",), ("2",), ("T",), ("C",)]
    for i, piece in enumerate(pieces):
        a.send(piece, FLUSH)
        a.until(*ends[i])
        if i == gap:
            for _ in range(3):
                b.simple("select 'b'")
                b.send(parse("select 'of b'", "s"), close("s"), SYNC)
                b.ready()
    a.send(SYNC)
    a.ready()


@differential()
def test_sync_alone(t):
    """A Sync without anything before it, in and out of a transaction, and many."""
    c = t.connect()
    c.send(SYNC)
    c.ready()
    c.simple("begin")
    c.send(SYNC, SYNC)
    c.ready(2)
    c.simple("select 1/0")
    c.send(SYNC)
    c.ready()
    c.simple("rollback")
    c.send(FLUSH, SYNC, FLUSH, SYNC)
    c.ready(2)


@differential()
@pytest.mark.parametrize("sql", ["", ";", "-- nothing", "/* */"])
def test_empty_statements(t, sql):
    c = t.connect()
    for _ in range(2):
        c.simple(sql)
        c.send(pg(sql), SYNC)
        c.ready()
    c.simple("begin")
    c.simple(sql)
    c.simple("select 1/0")
    c.simple(sql)
    c.send(pg(sql), SYNC)
    c.ready()
    c.simple("rollback")


# ---- BEGIN

BEGINS = {
    "begin": "begin", "start": "start transaction", "work": "BEGIN WORK", "transaction": "begin transaction;",
    "comment": "/* c */ begin -- d", "serializable": "begin isolation level serializable",
    "read_only": "begin read only", "deferrable": "begin isolation level serializable, read only, deferrable",
    "repeatable": "start transaction isolation level repeatable read read write",
    "wrong": "begin isolation level nonsense", "two": "begin; begin", "with_select": "begin; select 1",
    "empty_tx": "begin; commit", "three": "begin;;;",
}
AFTER = {
    "nothing": [], "commit": ["commit"], "rollback": ["rollback"], "again": ["begin", "commit"], "empty": ["", "commit"],
    "error": ["select 1/0", "select 1", "commit"], "syntax": ["selec", "rollback"],
    "first_fails_then_savepoint": ["savepoint a", "select 1/0", "rollback to a", "select 2", "commit"],
    "set": ["set local work_mem = '5MB'", "show work_mem", "set my.own = 'x'", "commit"],
    "set_transaction": ["set transaction isolation level serializable", "show transaction_isolation", "commit"],
    "mode": ["show transaction_isolation", "show transaction_read_only", "create table pg_temp.bt(a int)", "rollback"],
    "chain": ["commit and chain", "show transaction_isolation", "rollback and chain", "commit"],
    "release": ["release a", "rollback"], "rollback_to": ["rollback to a", "rollback"], "end": ["end"],
    "abort": ["abort"], "prepare": ["prepare transaction 'pool_flows'", "rollback prepared 'pool_flows'", "rollback"],
    "now": ["select now() = statement_timestamp() or true", "select now() = transaction_timestamp()", "commit"],
}


def begin_pairs() -> list:
    """Every BEGIN with the endings that tell most, some with all; all with all by --slow."""
    full = ("begin", "serializable", "with_select")
    short = ("nothing", "commit", "error", "mode", "set")
    return [pytest.param(BEGINS[b], AFTER[a], id=f"{b}-{a}", marks=() if b in full or a in short else pytest.mark.slow)
            for b in BEGINS for a in AFTER]


@differential(chunks=(WHOLE,))
@BY
@pytest.mark.parametrize("begin,after", begin_pairs())
def test_begin(t, begin, after, extended):
    """Whether or not BEGIN is answered before the server has seen it. `nothing`: the client just leaves."""
    c = t.connect()
    run(c, begin, extended)
    for sql in after:
        run(c, sql, extended)
    if not after:
        return
    c.simple("select 'after'")
    c.simple("rollback")


@differential()
@BY
def test_begin_then_pipeline(t, extended):
    c = t.connect()
    run(c, "begin", extended)
    c.send(parse("select 1/0", "s"), bind(name="s"), execute(), SYNC, pg("select 1"), SYNC, pg("rollback"), SYNC,
           pg("select 2"), SYNC)
    c.ready(4)
    run(c, "begin", extended)
    c.send(parse("selec"), SYNC)
    c.ready()
    run(c, "commit", extended)
    run(c, "begin", extended)
    c.send(pg("commit"), pg("select 3"), SYNC)
    c.ready()


@differential()
@pytest.mark.parametrize("cut", range(4))
def test_begin_in_pieces(t, cut):
    """BEGIN by Parse, Bind, Describe, Execute, each with a Flush, a Query in between."""
    c = t.connect()
    pieces = [parse("begin"), bind(), describe("", "P"), execute()]
    ends = [("1",), ("2",), ("n",), ("C",)]
    for i, piece in enumerate(pieces):
        c.send(piece, FLUSH)
        c.until(*ends[i])
        if i == cut:
            c.send(query("select 'between'"))
            c.ready()
            break
    c.send(SYNC)
    c.ready()
    c.simple("select 1")
    c.simple("rollback")


@differential()
@pytest.mark.parametrize("name", ["", "s"])
def test_prepared_begin(t, name):
    """A prepared BEGIN and COMMIT, executed many times, as JDBC does."""
    c = t.connect()
    if name:
        c.send(parse("begin", "s"), parse("commit", "st"), SYNC)
        c.ready()
    for i in range(4):
        if name:
            c.send(bind(name="s"), execute(), pg(f"select {i}"), SYNC)
        else:
            c.send(parse("begin"), bind(), execute("", 1), pg(f"select {i}"), SYNC)
        c.ready()
        if i == 2:
            c.simple("select 1/0")
        c.send((bind(name="st") if name else parse("commit") + bind()), execute(), SYNC)
        c.ready()


@differential()
def test_begin_and_vanish(t):
    """BEGIN and the end of the connection, at once and later; another finds nothing of it."""
    a = t.connect("a")
    a.send(query("begin"), TERMINATE)
    a.eof()
    b = t.connect("b")
    b.simple("begin")
    b.simple("set my.own = 'vanished'")
    b.end()
    c = t.connect("c")
    look(c)


@differential()
def test_begin_waits_with_an_idle_transaction(t):
    """Two clients hold transactions open at once, each sees its own uncommitted rows."""
    t.direct("drop table if exists flows_iso")
    t.direct("create table flows_iso(a int)")
    a, b = t.connect("a"), t.connect("b")
    a.simple("begin")
    b.simple("begin")
    a.simple("insert into flows_iso values (1)")
    b.simple("insert into flows_iso values (2)")
    a.simple("select * from flows_iso order by 1")
    b.simple("select * from flows_iso order by 1")
    a.simple("commit")
    b.simple("select * from flows_iso order by 1")
    b.simple("rollback")
    a.simple("select * from flows_iso order by 1")


# ---- cursors

@differential()
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_portal_with_row_limit_in_transaction(t, limit):
    """JDBC's setFetchSize: Execute with a limit, Sync, other statements, Execute again."""
    c = t.connect()
    c.simple("begin")
    c.send(parse("select g from generate_series(1, 20) g", "s"), bind(portal="c1", name="s"), describe("c1", "P"),
           execute("c1", limit), SYNC)
    last = c.ready()[-2].type
    for i in range(30):
        if last != "s":
            break
        if i == 1:
            c.simple("select 'between'")
        c.send(execute("c1", limit), SYNC)
        last = c.ready()[-2].type
    c.send(close("c1", "P"), SYNC)
    c.ready()
    c.simple("commit")
    c.send(execute("c1", limit), SYNC)
    c.ready()


@differential()
@pytest.mark.parametrize("end", ["sync", "close"])
def test_portal_with_row_limit_outside(t, end):
    """Outside a transaction the portal ends with the Sync."""
    c = t.connect()
    for _ in range(2):
        c.send(parse("select g from generate_series(1, 20) g"), bind(portal="p"), execute("p", 5), FLUSH)
        c.until("s")
        c.send(execute("p", 5), FLUSH)
        c.until("s")
        c.send(close("p", "P") if end == "close" else b"", SYNC)
        c.ready()
        c.send(execute("p", 5), SYNC)
        c.ready()


@differential()
@BY
def test_sql_cursor(t, extended):
    c = t.connect()
    for sql in ("declare cu cursor for select 1", "begin", "declare cu scroll cursor for select generate_series(1, 9)",
                "fetch 2 from cu", "move 3 in cu", "fetch backward 2 from cu", "fetch all from cu", "close cu", "fetch cu",
                "rollback", "fetch cu", "begin; declare cu cursor for select 1", "commit", "fetch cu"):
        run(c, sql, extended)


# ---- COPY

@differential()
@BY
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in_transaction"])
def test_copy_both_ways(t, extended, inside):
    t.direct("drop table if exists flows_copy")
    t.direct("create table flows_copy(a int unique, b text)")
    c = t.connect()
    for turn in range(3):
        if inside:
            c.simple("begin")
        sql = "copy flows_copy from stdin"
        c.send(parse(sql) + bind() + execute() if extended else query(sql), FLUSH if extended else b"")
        c.until("G")
        c.send(*(copy_data(f"{turn * 100 + i}\tx{i}\n".encode()) for i in range(50)))
        if turn == 1:
            c.send(copy_fail("changed my mind"), SYNC if extended else b"")
        else:
            c.send(COPY_DONE, SYNC if extended else b"")
        c.ready()
        if inside:
            c.simple("commit")
        run(c, "copy (select * from flows_copy order by a) to stdout", extended)
        run(c, "select count(*) from flows_copy", extended)


@differential()
@pytest.mark.parametrize("bad", [b"not a number\tx\n", b"1\n", b"0\tdoubled\n"])
def test_copy_with_an_error(t, bad):
    t.direct("drop table if exists flows_copy_e")
    t.direct("create table flows_copy_e(a int unique, b text)")
    t.direct("insert into flows_copy_e values (0, 'there')")
    c = t.connect()
    for _ in range(2):
        c.send(query("copy flows_copy_e from stdin"))
        c.until("G")
        c.send(copy_data(b"7\tseven\n"), copy_data(bad), copy_data(b"8\teight\n"), COPY_DONE)
        c.ready()
        c.simple("select * from flows_copy_e")
        c.send(pg("copy flows_copy_e from stdin"), copy_data(bad), COPY_DONE, SYNC)
        c.ready()
        c.simple("select 'alive'")


@differential()
def test_copy_in_strings_and_pipelines(t):
    t.direct("drop table if exists flows_copy_s")
    t.direct("create table flows_copy_s(a int)")
    c = t.connect()
    c.send(query("select 1; copy flows_copy_s from stdin; select 2; copy flows_copy_s to stdout"))
    c.until("G")
    c.send(copy_data(b"1\n"), COPY_DONE)
    c.ready()
    c.send(pg("copy (select 5) to stdout"), SYNC, pg("copy flows_copy_s to stdout"), pg("select 1/0"), SYNC, pg("select 6"), SYNC)
    c.ready(3)


# ---- errors and savepoints around statements

@differential()
@BY
def test_autosave_always(t, extended):
    """PgJDBC's autosave=always: SAVEPOINT before, RELEASE or ROLLBACK TO after each statement."""
    t.direct("drop table if exists flows_save")
    t.direct("create table flows_save(a int unique)")
    c = t.connect()
    for turn in range(2):
        run(c, "begin", extended)
        for sql in (f"insert into flows_save values ({turn})", f"insert into flows_save values ({turn})", "select 1/0", "selec",
                    f"insert into flows_save values ({turn + 10})", "set my.own = 'saved'", "set work_mem = 'bad'"):
            run(c, "savepoint PGJDBC_AUTOSAVE", extended)
            seen = len(c.lines)
            run(c, sql, extended)
            failed = any(line.startswith("E ") for line in c.lines[seen:])
            run(c, f"{'rollback to' if failed else 'release'} savepoint PGJDBC_AUTOSAVE", extended)
        run(c, "commit", extended)
        look(c)
        run(c, "select * from flows_save order by a", extended)


@differential()
def test_autosave_with_named_savepoint(t):
    """PgJDBC's autosave, with the SAVEPOINT as a named statement in the sequence of what it guards."""
    c = t.connect()
    c.send(parse("savepoint PGJDBC_AUTOSAVE", "S_1"), parse("rollback to savepoint PGJDBC_AUTOSAVE", "S_2"), SYNC)
    c.ready()
    for _ in range(2):
        c.simple("begin")
        for sql in ("select 1", "select 1/0", "selec", "set my.own = 'saved'", "select 2"):
            c.send(bind(name="S_1"), execute("", 1), parse(sql), bind(), describe("", "P"), execute(), SYNC)
            if c.ready()[-1].body == b"E":
                c.send(bind(name="S_2"), execute("", 1), SYNC)
                c.ready()
        c.simple("commit")
        look(c)


@differential()
@BY
def test_aborted_transaction(t, extended):
    """Everything but ROLLBACK is refused; nothing of it is kept; the next transaction is clean."""
    c = t.connect()
    for sql in ("begin", "select 1/0", "select 1", "savepoint a", "set work_mem = '5MB'", "prepare q as select 1", "begin",
                "show work_mem", "discard all", "copy (select 1) to stdout", "listen x", "commit"):
        run(c, sql, extended)
    run(c, "execute q", extended)
    look(c)


@differential()
def test_deferred_constraint(t):
    """The error comes with COMMIT or Sync."""
    t.direct("drop table if exists flows_deferred")
    t.direct("create table flows_deferred(a int unique deferrable initially deferred)")
    c = t.connect()
    for _ in range(2):
        c.simple("begin; insert into flows_deferred values (1), (1)")
        c.simple("commit")
        c.send(pg("insert into flows_deferred values (2), (2)"), SYNC)
        c.ready()
        c.simple("insert into flows_deferred values (3), (3)")
        c.simple("begin; set constraints all immediate")
        c.simple("insert into flows_deferred values (4), (4)")
        c.simple("rollback")


@differential()
def test_function_call_message(t):
    from pgt.wire import function_call
    c = t.connect()
    for _ in range(2):
        c.send(function_call(177, [b"\0\0\0\1", b"\0\0\0\2"]))
        c.ready()
        c.send(function_call(154, [b"\0\0\0\1", b"\0\0\0\0"]))
        c.ready()
    c.simple("begin")
    c.send(function_call(154, [b"\0\0\0\1", b"\0\0\0\0"]))
    c.ready()
    c.simple("commit")


@differential(chunks=(WHOLE,))
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in_transaction"])
def test_large_result_and_large_query(t, inside):
    c = t.connect()
    if inside:
        c.simple("begin")
    for _ in range(2):
        c.simple("select -g, repeat('x', 10000) from generate_series(1, 500) g")
        c.send(query("select length('" + "y" * 3000000 + "')"), pg("select 'behind'"), SYNC)
        c.ready(2)
        c.send(parse("select length($1::text)"), bind(["z" * 2000000]), execute(), SYNC)
        c.ready()
    c.simple("commit")


@differential()
def test_transactions_that_cannot_be_in_a_block(t):
    c = t.connect()
    for sql in ("vacuum pg_class", "begin", "vacuum pg_class", "rollback", "checkpoint", "create database pg_nope template nope",
                "vacuum pg_class; select 1", "select 1; commit; select 2"):
        run(c, sql)
        run(c, "select 'alive'", True)


@differential()
def test_two_phase(t):
    a, b = t.connect("a"), t.connect("b")
    a.simple("begin")
    a.simple("set my.own = 'two'")
    a.simple("prepare transaction 'pool_2pc'")
    b.simple("select gid from pg_prepared_xacts where gid = 'pool_2pc'")
    b.simple("commit prepared 'pool_2pc'")
    a.simple("commit prepared 'pool_2pc'")
    look(a, 1)
