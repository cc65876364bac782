# SPDX-License-Identifier: PostgreSQL
"""test_pool_statements: a prepared statement is the client's, whichever link it is on: named and unnamed, by
protocol and by SQL, used again under the same name with another text, closed, deallocated, unknown, doubled,
and with plans that have gone stale.
"""
import pytest
from pooling_house import MODES, login, states

from pgt.diff import WHOLE, differential
from pgt.wire import FLUSH, SYNC, Wire, bind, close, describe, execute, message, parse, pg, query

TWICE = range(2)


def each_own_transaction(c, *parts: bytes, times: int = 2) -> None:
    """Sends the messages again and again, each time up to a Sync."""
    for _ in range(times):
        c.send(*parts, SYNC)
        c.ready()


@differential()
@MODES
def test_named(t):
    c = t.connect()
    each_own_transaction(c, parse("select $1::int + 1 as a", "s"), times=1)
    for value in ("1", "41", None):
        each_own_transaction(c, bind([value], name="s"), describe("", "P"), execute())
    each_own_transaction(c, describe("s"))
    each_own_transaction(c, bind(["x"], name="s"), execute())
    each_own_transaction(c, bind(["1", "2"], name="s"), execute())
    c.simple("begin")
    each_own_transaction(c, bind(["7"], name="s"), execute())
    c.simple("commit")
    each_own_transaction(c, close("s"), times=1)
    each_own_transaction(c, bind(["7"], name="s"), execute())
    each_own_transaction(c, describe("s"))


@differential()
@MODES
def test_many_named(t):
    """More than fit (max_prepared_statements = 200 per link), used in another order than they were made."""
    c = t.connect()
    c.send(*(parse(f"select {i} as n{i}, $1::text", f"many{i}") + SYNC for i in range(300)))
    c.ready(300)
    for i in (*range(0, 300, 13), 299, 0, 150):
        each_own_transaction(c, bind([str(i)], name=f"many{i}"), describe("", "P"), execute(), times=1)
    c.send(*(bind(["all"], name=f"many{i}") + execute() for i in range(0, 300, 3)), SYNC)
    c.ready()
    c.simple("deallocate all")
    each_own_transaction(c, bind(["gone"], name="many7"), execute())


@differential()
@MODES
def test_parameter_types(t):
    """Types given, partly given, left open; the same text with other types is another statement."""
    c = t.connect()
    for name, types in (("a", [23]), ("b", [20]), ("x", [25]), ("y", []), ("z", [0])):
        each_own_transaction(c, parse("select $1 is null as n, pg_typeof($1)", name, types), times=1)
    for name in ("a", "b", "x", "y", "z", "a"):
        each_own_transaction(c, describe(name))
        each_own_transaction(c, bind(["5"], name=name), execute())
    each_own_transaction(c, bind([b"\0\0\0\5"], name="a", formats=[1], results=[1, 0]), describe("", "P"), execute())


@differential()
@MODES
def test_name_used_again(t):
    """A doubled name is an error and keeps the old text; after Close it may mean something else."""
    c = t.connect()
    each_own_transaction(c, parse("select 'first' as v", "s"), times=1)
    each_own_transaction(c, parse("select 'second' as v", "s"))
    each_own_transaction(c, parse("select 'first' as v", "s"))
    each_own_transaction(c, bind(name="s"), execute())
    for i in range(4):
        each_own_transaction(c, close("s"), parse(f"select 'text {i}' as v", "s"), times=1)
        each_own_transaction(c, bind(name="s"), describe("", "P"), execute())
    each_own_transaction(c, close("s"), close("s"), close("never"))
    each_own_transaction(c, parse("select 1", "s"), close("s"), parse("select 2", "s"), bind(name="s"), execute(), times=1)
    each_own_transaction(c, bind(name="s"), execute())


@differential()
@MODES
def test_parse_that_fails(t):
    """A name whose Parse failed, or was skipped behind an error, does not exist; one before the error does."""
    c = t.connect()
    each_own_transaction(c, parse("selec 1", "s"), times=1)
    each_own_transaction(c, bind(name="s"), execute())
    each_own_transaction(c, parse("select 'before'", "a"), parse("select * from no_such_table", "s"),
                         parse("select 'skipped'", "x"), times=1)
    for name in ("a", "s", "x"):
        each_own_transaction(c, bind(name=name), execute())
    each_own_transaction(c, parse("select 'now'", "s"), times=1)
    each_own_transaction(c, bind(name="s"), execute())
    c.simple("begin")
    each_own_transaction(c, parse("select 'in a transaction'", "w"), times=1)
    c.simple("rollback")
    each_own_transaction(c, bind(name="w"), execute())
    c.simple("begin; select 1/0")
    each_own_transaction(c, parse("select 'aborted'", "w2"), bind(name="a"), execute(), times=1)
    each_own_transaction(c, parse("rollback", "rb"), bind(name="rb"), execute(), times=1)
    each_own_transaction(c, bind(name="w2"), execute())


@differential()
@MODES
def test_unnamed(t):
    """The unnamed statement outlives its transaction; a simple query or another Parse ends it."""
    c = t.connect()
    each_own_transaction(c, parse("select $1::text as v"), times=1)
    for value in ("one", "two", "three"):
        each_own_transaction(c, bind([value]), describe("", "P"), execute())
    each_own_transaction(c, describe())
    c.simple("begin")
    c.simple("commit")
    each_own_transaction(c, bind(["after a simple query"]), execute())
    each_own_transaction(c, parse("select 'other' as v"), times=1)
    each_own_transaction(c, bind(), execute())
    each_own_transaction(c, close(), times=1)
    each_own_transaction(c, bind(), execute())
    each_own_transaction(c, parse("selec"), times=1)
    each_own_transaction(c, bind(), execute())


@differential()
@MODES
def test_unnamed_of_two_clients(t):
    """Each its own, in turn, Parse and Bind in different transactions."""
    a, b = t.connect("a"), t.connect("b")
    for turn in TWICE:
        for name, c in (("a", a), ("b", b)):
            each_own_transaction(c, parse(f"select '{name} {turn}' as v"), times=1)
        for c in (a, b, b, a):
            each_own_transaction(c, bind(), describe("", "P"), execute(), times=1)


@differential()
@MODES
def test_same_names_of_many_clients(t):
    """The names that drivers give out are the same in each client, the texts are not."""
    clients = [t.connect(f"c{i}") for i in range(4)]
    for i, c in enumerate(clients):
        each_own_transaction(c, parse(f"select {i} as mine, $1::int", "s1"), parse(f"select 'x{i}'", "s2"), times=1)
    for c in (*clients, *reversed(clients)):
        each_own_transaction(c, bind(["3"], name="s1"), execute(), bind(name="s2"), describe("", "P"), execute(), times=1)
    each_own_transaction(clients[0], close("s1"), times=1)
    clients[1].simple("deallocate s1")
    clients[2].simple("deallocate all")
    for c in clients:
        each_own_transaction(c, bind(["3"], name="s1"), execute(), times=1)
        each_own_transaction(c, bind(name="s2"), execute(), times=1)


@differential()
@MODES
@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("sql", ["deallocate s", "deallocate prepare s", "deallocate all", "deallocate prepare all",
                                 "discard all", "discard plans", "deallocate \"s\"", "deallocate S", "deallocate nope",
                                 "DEALLOCATE/**/s;", "begin; deallocate s; rollback", "begin; deallocate all; rollback",
                                 "deallocate s; select 1/0", "select 1/0; deallocate s", "reset all"])
def test_deallocate(t, sql, extended):
    """By SQL, of a statement of the protocol and of one of SQL. It is not undone by a rollback."""
    c = t.connect()
    each_own_transaction(c, parse("select 'protocol' as v", "s"), parse("select 'other' as v", "x"), times=1)
    c.simple("prepare q as select 'sql' as v")
    if extended:
        each_own_transaction(c, pg(sql), times=1)
    else:
        c.simple(sql)
    for name in ("s", "x", "q"):
        each_own_transaction(c, bind(name=name), describe("", "P"), execute())
        c.simple(f"execute {name}")
    each_own_transaction(c, parse("select 'again' as v", "s"), times=1)
    each_own_transaction(c, bind(name="s"), execute())


SQL_PREPARED = {
    "plain": ["prepare q as select 'one' as v", "execute q", "execute q", "deallocate q", "execute q"],
    "typed": ["prepare q(int, text) as select $1 + 1 as a, $2 as b", "execute q(1, 'x')", "execute q(2, null)",
              "execute q(1 + 1, upper('y'))", "execute q('z', 1)", "execute q(1)"],
    "untyped": ["prepare q as select $1 || 'x' as a", "execute q('b')", "prepare q as select 2", "execute q('c')"],
    "quoted": ["prepare \"Q s\" as select 1", "execute \"Q s\"", "execute q", "deallocate \"Q s\"", "execute \"Q s\""],
    "again": ["prepare q as select 'one'", "deallocate q", "prepare q as select 'two'", "execute q", "deallocate all",
              "prepare q as select 'three'", "execute q"],
    "rolled_back": ["begin", "prepare q as select 'kept'", "rollback", "execute q", "begin", "deallocate q", "rollback",
                    "execute q"],
    "failed": ["begin", "prepare q as select 'kept'", "select 1/0", "rollback", "execute q", "prepare w as selec",
               "execute w", "prepare w2 as select * from no_such_table", "execute w2"],
    "savepoint": ["begin", "savepoint a", "prepare q as select 'kept'", "rollback to a", "execute q", "commit", "execute q"],
    "strings": ["prepare q as select 1; prepare w as select 2", "execute q; execute w", "deallocate q; execute w",
                "execute w; execute q; execute w", "prepare q as select 3; select 1/0", "execute q"],
    "writes": ["drop table if exists sql_prepared", "create table sql_prepared(a int)",
               "prepare q as insert into sql_prepared values ($1) returning a", "execute q(1)", "begin", "execute q(2)",
               "rollback", "execute q(3)", "select * from sql_prepared order by a", "drop table sql_prepared", "execute q(4)"],
    "create_as": ["drop table if exists sql_made", "prepare q as select 5 as five", "create table sql_made as execute q",
                  "select * from sql_made", "explain (costs off) execute q", "drop table sql_made"],
    "discard": ["prepare q as select 1", "discard plans", "execute q", "discard all", "execute q"],
    "in_role": ["prepare q as select current_user", "set role trust_user", "execute q", "reset role", "execute q"],
    "comments": ["/* c */ prepare q -- d\n as select 'c'", "EXECUTE/**/q;", "\n execute q -- e", "deallocate prepare q"],
    "in_function": ["do $$ begin execute 'prepare q as select 7'; end $$", "execute q"],
}


@differential()
@MODES
@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("steps", SQL_PREPARED.values(), ids=SQL_PREPARED.keys())
def test_prepare_by_sql(t, steps, extended):
    c = t.connect()
    for sql in steps:
        if extended:
            each_own_transaction(c, pg(sql), times=1)
        else:
            c.simple(sql)
    c.simple("rollback")
    c.simple("select 'alive'")


@differential()
@MODES
def test_across_sql_and_protocol(t):
    """Bind to a name made by PREPARE, EXECUTE of a name made by Parse, Close and DEALLOCATE crosswise."""
    c = t.connect()
    c.simple("prepare q(int) as select $1 + 10 as v")
    each_own_transaction(c, describe("q"))
    each_own_transaction(c, bind(["1"], name="q"), describe("", "P"), execute())
    each_own_transaction(c, parse("select 'doubled'", "q"), times=1)
    each_own_transaction(c, close("q"), times=1)
    c.simple("execute q(1)")
    each_own_transaction(c, parse("select $1::int + 20 as v", "s"), times=1)
    for _ in TWICE:
        c.simple("execute s(1)")
    c.simple("prepare s as select 'doubled'")
    each_own_transaction(c, pg("execute s(2)"))
    each_own_transaction(c, parse("execute s(3)", "x"), times=1)
    each_own_transaction(c, bind(name="x"), describe("", "P"), execute())
    c.simple("deallocate s")
    each_own_transaction(c, bind(["1"], name="s"), execute())
    each_own_transaction(c, bind(name="x"), execute())
    each_own_transaction(c, parse("prepare w as select 'by parse'", "maker"), bind(name="maker"), execute(), times=1)
    c.simple("execute w")
    each_own_transaction(c, bind(name="w"), execute())


@differential()
@MODES
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("bad", ["bind", "describe", "execute_sql", "deallocate", "doubled", "parse"])
def test_unknown_and_doubled_in_pipeline(t, bad, at):
    """An ERROR, the rest skipped to Sync, never an end of the connection; and nothing else is lost."""
    c = t.connect()
    each_own_transaction(c, parse("select 'kept' as v", "s"), times=1)
    piece = {"bind": bind(name="nope"), "describe": describe("nope"), "execute_sql": pg("execute nope"),
             "deallocate": pg("deallocate nope"), "doubled": parse("select 2", "s"), "parse": parse("selec", "nope")}[bad]
    parts = [bind(name="s") + execute(), parse("select 'new' as v", "st"), bind(name="s") + execute()]
    parts.insert(at, piece)
    c.send(*parts, SYNC, bind(name="s"), execute(), SYNC)
    c.ready(2)
    each_own_transaction(c, bind(name="st"), execute())
    each_own_transaction(c, bind(name="s"), execute())


@differential()
@MODES
def test_flush_between_parse_and_bind(t):
    """asyncpg: Parse, Describe, Flush; Bind, Execute, Sync; and the name again in later transactions."""
    c = t.connect()
    for i in range(3):
        c.send(parse(f"select {i} as n, $1::int", f"__asyncpg_{i}__"), describe(f"__asyncpg_{i}__"), FLUSH)
        c.until("T")
        c.send(bind(["5"], name=f"__asyncpg_{i}__"), execute(), SYNC)
        c.ready()
    for i in (2, 0, 1):
        each_own_transaction(c, bind(["6"], name=f"__asyncpg_{i}__"), execute())
        c.send(describe(f"__asyncpg_{i}__"), FLUSH)
        c.until("T")
        c.send(SYNC)
        c.ready()
    c.send(close("__asyncpg_1__"), FLUSH)
    c.until("3")
    c.send(SYNC)
    c.ready()
    each_own_transaction(c, bind(["6"], name="__asyncpg_1__"), execute())


@differential()
@MODES
@pytest.mark.parametrize("sql", ["begin", "set work_mem = '5MB'", "select 1 union select 2", "create temp table st(a int)",
                                 "listen x", "", "savepoint a", "rollback", "show work_mem", "values (1)", "checkpoint",
                                 "copy (select 1) to stdout", "vacuum pg_class", "declare c cursor for select 1"])
def test_any_statement_by_name(t, sql):
    """Statements of every kind, prepared and run by name, in and out of a transaction."""
    c = t.connect()
    each_own_transaction(c, parse(sql, "any"), describe("any"), times=1)
    each_own_transaction(c, bind(name="any"), execute())
    c.simple("rollback")
    c.simple("begin")
    each_own_transaction(c, bind(name="any"), execute())
    c.simple("rollback")
    c.simple("discard all")


@differential()
@MODES
def test_long_text_and_long_name(t):
    c = t.connect()
    text = "select " + "'" + "x" * 200000 + "' as long, $1::int"
    name = "n" * 3000
    each_own_transaction(c, parse(text, name), times=1)
    each_own_transaction(c, bind(["1"], name=name), execute())
    each_own_transaction(c, parse(text), times=1)
    each_own_transaction(c, bind(["2"]), execute())
    each_own_transaction(c, close(name), times=1)
    each_own_transaction(c, bind(["1"], name=name), execute(), times=1)


UNREAD = "select 'unread' as a /*" + "x" * 140000 + "*/"
SKIPPED_CLOSE = parse("execute sql_n", "e") + bind(name="e") + execute() + parse("select no_such_column") + SYNC


@differential(chunks=(WHOLE,))
@MODES
@pytest.mark.parametrize("name", ["", "u"])
@pytest.mark.parametrize("between", [parse("unlisten *", "w") + bind(name="w") + execute() + SYNC, SKIPPED_CLOSE],
                         ids=["unlisten", "skipped"])
def test_text_that_is_not_read_outlives_what_is_put_right(t, name, between):
    """Nobody could parse it again: what pgpool asks or puts right on the link leaves it there."""
    c = t.connect()
    if name:
        c.simple("prepare sql_n as select 5")  # a simple query takes the unnamed statement away
    else:
        each_own_transaction(c, pg("prepare sql_n as select 5"), times=1)
    each_own_transaction(c, parse(UNREAD, name), times=1)
    for _ in range(3):
        c.send(between)
        c.ready()
        if name or between != SKIPPED_CLOSE:  # a Parse that is refused takes the unnamed one with it
            each_own_transaction(c, bind(name=name), describe("", "P"), execute())
    each_own_transaction(c, close(name), bind(name=name), execute(), times=1)


@differential(chunks=(WHOLE,))
@MODES
def test_unnamed_beside_what_is_prepared_again(t):
    """A PREPARE that is repeated is a simple query, which takes the unnamed statement with it."""
    c = t.connect()
    c.simple("prepare sql_n as select 5")
    c.simple("listen heard")
    each_own_transaction(c, parse("select 'unnamed'"), times=1)
    drop = parse("deallocate sql_n", "d") + bind(name="d") + execute()
    each_own_transaction(c, parse("select no_such_column", "x"), drop, times=1)
    each_own_transaction(c, bind(), execute())
    each_own_transaction(c, parse("execute sql_n", "e"), bind(name="e"), execute())
    each_own_transaction(c, bind(), execute())


@differential(chunks=(WHOLE,))
@MODES
def test_close_of_prepare_that_is_skipped_leaves_it_there(t):
    """It is not brought there again: a failed transaction would refuse that, and it takes the unnamed statement away."""
    c = t.connect()
    bad = bind(name="no_such") + close("sql_n")
    each_own_transaction(c, parse("prepare sql_n as select 4"), bind(), execute(), bad, times=1)
    each_own_transaction(c, bind(name="sql_n"), execute())
    c.simple("deallocate sql_n")
    c.simple("begin; prepare sql_n as select 5")
    each_own_transaction(c, bad, times=1)
    each_own_transaction(c, bind(name="sql_n"), execute())
    each_own_transaction(c, parse(f"execute sql_n{64 * 'n'}"), parse("execute sql_n"), bind(), execute())
    c.simple("rollback")
    each_own_transaction(c, bind(name="sql_n"), execute())
    each_own_transaction(c, parse(UNREAD), bad, times=1)
    each_own_transaction(c, bind(), execute())
    each_own_transaction(c, bind(name="sql_n"), execute())


@differential(chunks=(WHOLE,))
@MODES
def test_text_that_is_not_read_under_a_name(t):
    """The name is looked at: it is taken, or another client's."""
    c, other = t.connect("c1"), t.connect("c2")
    for w in (other, c):
        w.simple("prepare sql_n as select 5")
    other.simple("prepare u as select 'of another client'")
    for _ in range(4):
        other.simple("execute u")
    each_own_transaction(c, parse("select 6", "n"), times=1)
    each_own_transaction(c, parse(UNREAD, "n"), times=1)
    each_own_transaction(c, parse(UNREAD, "sql_n"), times=1)
    each_own_transaction(c, bind(name="n"), execute())
    each_own_transaction(c, parse("select 1/0"), bind(), execute(), parse(UNREAD, "u"), times=1)
    each_own_transaction(c, bind(name="u"), execute(), times=1)
    each_own_transaction(c, parse(UNREAD, "u"), times=2)
    for sql in ("begin", "deallocate no_such", "rollback", "execute u", "deallocate u", "execute u", "discard all"):
        c.simple(sql)
        each_own_transaction(c, bind(name="u"), execute())


@differential()
@MODES
def test_names_that_begin_alike(t):
    """A server tells names apart by 63 bytes."""
    c = t.connect()
    each_own_transaction(c, parse("select 1", "n" * 63), times=1)
    each_own_transaction(c, parse("select 2", "n" * 64), times=1)
    each_own_transaction(c, bind(name="n" * 70), execute())
    c.simple("deallocate " + "n" * 80)
    each_own_transaction(c, bind(name="n" * 63), execute(), times=1)


BAD = pg("select no_such_column")


@differential()
@MODES
@pytest.mark.parametrize("drop", ["discard all", "deallocate all"])
@pytest.mark.parametrize("before", [close("n"), pg("deallocate n"), parse("select 2", "other")],
                         ids=["close", "deallocate", "parse"])
def test_all_dropped_behind_an_error(t, drop, before):
    """What is skipped drops nothing, whatever is dropped before in the same sequence; the unnamed statement is the old one."""
    c = t.connect()
    each_own_transaction(c, parse("select 1", "n"), parse("select 'unnamed'"), times=1)
    c.send(bind(portal="p", name="no_such"), before, parse(drop, "drop"), bind(name="drop"), execute(), pg(drop), SYNC)
    c.ready()
    for name in ("n", "other", "drop", ""):
        each_own_transaction(c, bind(name=name), execute(), times=1)
    c.send(BAD, before, pg(drop), SYNC)
    c.ready()
    for name in ("n", "other", ""):
        each_own_transaction(c, bind(name=name), execute(), times=1)


@differential()
@MODES
@pytest.mark.parametrize("drop", ["discard all", "deallocate all"])
def test_all_dropped_twice(t, drop):
    """The second time it is skipped: what came in between is there, what was before the first is not."""
    c = t.connect()
    names = ("n", "new", "third", "")

    def look():
        for name in names:
            each_own_transaction(c, bind(name=name), execute(), times=1)
        each_own_transaction(c, parse("select 'new n'", "n"), times=1)
        each_own_transaction(c, parse("select 'new one'", "new"), times=1)
    for middle in ([parse("select 2", "new"), BAD], [BAD, parse("select 2", "new")], [BAD, close("n")],
                   [parse("select 2", "new"), pg(drop), parse("select 3", "third"), close("third"), BAD]):
        each_own_transaction(c, parse("select 1", "n"), pg(drop), *middle, pg(drop), parse("select 4", "third"), times=1)
        look()
    c.simple("deallocate all; prepare new as select 5; select no_such_column; deallocate all")
    c.simple("execute new")
    look()


@differential()
@MODES
@pytest.mark.parametrize("drop", ["discard all", "deallocate all"])
def test_prepared_in_front_of_a_drop_that_is_skipped(t, drop):
    """A PREPARE that worked stays, one that was skipped with the drop never was."""
    c = t.connect()
    each_own_transaction(c, pg("prepare worked as select 1"), BAD, pg("prepare skipped as select 2"), pg(drop), times=1)
    each_own_transaction(c, BAD, pg("prepare skipped as select 2"), pg("deallocate skipped"), times=1)
    c.simple("prepare later as selec")
    for name in ("worked", "skipped", "later"):
        c.simple(f"execute {name}")


@differential()
@MODES
def test_all_dropped_in_a_failed_transaction(t):
    """It is refused, and what SQL prepared, under a name that the link had for something else, is there as before."""
    c = t.connect()
    for text in ("prepare w as select 1", "begin", "release no_such_savepoint"):
        c.simple(text)
    for refused in (query("deallocate all"), query("deallocate w"), parse("select 2", "w") + SYNC):
        c.send(refused)
        c.ready()
        each_own_transaction(c, describe("w"), parse("select 3", "other"), times=1)
        each_own_transaction(c, bind(name="w"), execute(), times=1)
    c.simple("rollback")
    c.simple("execute w")


@differential()
@MODES
def test_unnamed_of_others_behind_an_error(t):
    """Who has none is given none, also in what was sent ahead of the error that leaves the link as it was."""
    c, other = t.connect("c1"), t.connect("c2")
    for _ in range(4):
        each_own_transaction(other, pg("select 'of another client'"), times=5)
        c.send(describe("no_such"), bind(), SYNC, parse("select 1", "mine"), bind(), execute(), SYNC)
        c.ready(2)


COMES_TO_NOTHING = {
    "close": [describe("no_such"), close(), SYNC],
    "query": [describe("no_such"), query("select 1"), SYNC],
    "long parse": [describe("no_such"), parse("select 1 /*" + 300000 * "x" + "*/"), SYNC],
    "malformed parse": [message("P", b"\0select 1\0\0\0more"), SYNC],
    "malformed close": [message("C", b"S\0more"), SYNC],
    "malformed query": [query("select 1\0more")],
}


@differential()
@MODES
@pytest.mark.parametrize("what", COMES_TO_NOTHING)
def test_unnamed_of_others_stays_theirs(t, what):
    """What would take it away from the link is skipped, or refused before it does: who has none is given none."""
    c, other = t.connect("c1"), t.connect("c2")
    for _ in range(3):
        each_own_transaction(other, pg("select 'of another client'"), times=5)
        c.send(parse("select pg_advisory_lock(4713)", "pin"), bind(name="pin"), execute(), close("pin"), SYNC)
        c.ready()
        c.send(*COMES_TO_NOTHING[what])
        c.ready()
        c.send(bind(), execute(), SYNC, *COMES_TO_NOTHING[what], bind(), execute(), SYNC)
        c.ready(3)
        c.simple("discard all")


@differential()
@MODES
def test_parsed_and_deallocated_behind_an_error(t):
    """Parse and DEALLOCATE are skipped: there is no such statement, which is no other for a DEALLOCATE that came to nothing."""
    c = t.connect()
    c.send(describe("no_such"), parse("select 1", "n"), pg("deallocate n"), SYNC, bind(name="n"), execute(), SYNC)
    c.ready(2)
    each_own_transaction(c, parse("select 2", "n"), bind(name="n"), execute(), close("n"))


@differential()
@MODES
@pytest.mark.parametrize("what", ["malformed parse", "malformed close", "malformed query", "close", "query"])
def test_unnamed_stays_when_nothing_takes_it_away(t, what):
    """A malformed message takes nothing away, nor does what is skipped."""
    c = t.connect()
    for _ in range(2):
        each_own_transaction(c, parse("select 'mine'"), times=1)
        c.send(*COMES_TO_NOTHING[what], bind(), execute(), SYNC)
        c.ready(2)
        each_own_transaction(c, bind(), execute())


@differential()
@MODES
def test_closed_behind_an_error_and_a_query(t):
    """The Close of the unnamed statement is skipped, the Query takes it away all the same."""
    c = t.connect()
    for _ in range(3):
        each_own_transaction(c, parse("select 'unnamed'"), times=1)
        c.send(describe("no_such"), close(), SYNC, query("select 1"), bind(), execute(), SYNC)
        c.ready(3)


@differential()
@MODES
def test_names_that_are_too_long(t):
    """A server knows their first 63 bytes: who has none of that name is given none."""
    c, other = t.connect("c1"), t.connect("c2")
    name = 63 * "n"
    for _ in range(3):
        each_own_transaction(other, close(name), parse("select 'of another client'", name + 1200 * "x"), bind(name=name), execute(),
                             times=5)
        for longer in ("", "x", 1200 * "x"):
            each_own_transaction(c, bind(name=name + longer), execute())
    each_own_transaction(other, close(name), times=1)
    other.simple(f"prepare {name}xyz as select 'of another client'")
    for _ in range(4):
        other.simple(f"execute {name}")
        for longer in ("", "x", 1200 * "x"):
            each_own_transaction(c, bind(name=name + longer), execute())


@differential(chunks=(WHOLE,))
@MODES
@pytest.mark.parametrize("letter", ["\u00e9", "\u20ac", "\U0001f40e"])
def test_names_that_are_cut_within_a_letter(t, letter):
    """The server cuts them there, SQL in front of the letter; but it takes no name with a part of one."""
    c, other = t.connect("c1"), t.connect("c2")
    name = 62 * "n" + letter
    other.simple(f"prepare {name} as select 'of another client'")
    each_own_transaction(other, parse("select 'of another client, too'", name), bind(name=name), execute(), times=3)
    each_own_transaction(c, bind(name=name), execute())
    for text in ("select 1", "select 2"):
        each_own_transaction(c, parse(text, name))
        each_own_transaction(c, bind(name=name), execute())
        for sql in ("execute", "deallocate"):
            c.simple(f"{sql} {name}")
            each_own_transaction(c, parse(f"{sql} {name}"), bind(), execute())
        each_own_transaction(c, close(name), times=1)


@differential(chunks=(WHOLE,))
@MODES
@pytest.mark.parametrize("name", ["", "s"])
def test_notice_of_a_parse_is_told_once(t, name):
    """However often it is parsed on links. (Of a text of its own each time: what a connection has still, that of a client of before as well, is not parsed
    anew there, and a client that has just gone gives one back at any time.)"""
    c = t.connect()
    for number in range(2):
        each_own_transaction(c, parse(f"select {number} as {64 * (name or 'n')}", name), times=1)
        each_own_transaction(c, bind(name=name), execute(), times=4)
        each_own_transaction(c, close(name), times=1)
        c.simple("discard all")


@differential()
@MODES
@pytest.mark.parametrize("drop", ["discard all", "deallocate all"])
def test_unnamed_behind_the_end_of_all(t, drop):
    """Names are dropped, and it has none."""
    c = t.connect()
    each_own_transaction(c, parse("select 1", "n"), times=1)
    each_own_transaction(c, parse("select 'unnamed'"), parse(drop, "drop"), bind(name="drop"), execute(), times=1)
    for name in ("n", "drop", ""):
        each_own_transaction(c, bind(name=name), execute(), times=1)
    each_own_transaction(c, pg(drop), times=1)
    each_own_transaction(c, bind(), execute(), times=1)


@differential()
@MODES
@pytest.mark.parametrize("ahead", [False, True])
def test_what_was_parsed_in_a_failed_transaction(t, ahead):
    """The Parse is skipped; behind the ROLLBACK, in its sequence, the same text is parsed again, and one that is known is bound."""
    c = t.connect()
    each_own_transaction(c, parse("select 1", "n"), parse("select 2", "m"), times=1)
    sequences = [[pg("begin"), BAD, SYNC], [BAD, parse("select 1", "a"), parse("select 2", "b"), SYNC],
                 [pg("rollback"), parse("select 1", "c"), bind(name="m"), execute(), bind(name="c"), execute(), SYNC]]
    if ahead:
        c.send(*[part for one in sequences for part in one])
        c.ready(3)
    else:
        for one in sequences:
            c.send(*one)
            c.ready()
    each_own_transaction(c, bind(name="c"), execute())
    each_own_transaction(c, bind(name="a"), execute(), times=1)


@differential()
@MODES
def test_stale_plan_in_transaction(t):
    """Inside a transaction a plan that no longer fits is an error, as it is direct; and Close mends it."""
    t.direct("drop table if exists stale_tx")
    t.direct("create table stale_tx as select 1 as a")
    c = t.connect()
    c.simple("begin")
    each_own_transaction(c, parse("select * from stale_tx", "s"), bind(name="s"), execute(), times=1)
    c.simple("alter table stale_tx add b text default 'new'")
    each_own_transaction(c, bind(name="s"), execute(), times=1)
    c.simple("rollback")
    each_own_transaction(c, close("s"), parse("select * from stale_tx", "s"), times=1)
    each_own_transaction(c, bind(name="s"), describe("", "P"), execute())


# ---- what is better than direct: no oracle

def spread_plans(clients: list[Wire], name: str, sql: str) -> None:
    """Every client prepares the statement, and all run it at once, so that several links have it."""
    for c in clients:
        c.send(parse(sql, name), SYNC)
        assert not states(c.ready())
    for c in clients:
        assert not states(c.simple("begin"))
        c.send(bind(name=name), execute(), SYNC)
        assert not states(c.ready())
    for c in clients:
        assert not states(c.simple("commit"))


CHANGES = {"add": ("alter table {} add b text default 'new'", [b"1", b"new"]),
           "type": ("alter table {} alter a type text using 'text ' || a", [b"text 1"]),
           "drop": ("drop table {0}; create table {0} as select 'made again' as c", [b"made again"])}


@pytest.mark.parametrize("pool_mode", ["transaction"])
@pytest.mark.parametrize("change,row", CHANGES.values(), ids=CHANGES.keys())
def test_stale_plan_is_made_new(pg, pgpool, change, row):
    """Outside a transaction a plan with another result than it had is made new and run again, unseen."""
    pg.rows("drop table if exists stale_auto")
    pg.rows("create table stale_auto as select 1 as a")
    clients = [login(pgpool) for _ in range(4)]
    spread_plans(clients, "stale", "select * from stale_auto")
    for sql in change.format("stale_auto").split("; "):
        pg.rows(sql)
    for turn in range(3):
        for c in clients:
            c.send(bind(name="stale"), describe("", "P"), execute(), SYNC)
            found = c.ready()
            assert not states(found), (turn, [m.fields for m in found if m.type == "E"])
            assert [m.row() for m in found if m.type == "D"] == [row]
            assert [m.type for m in found] == ["2", "T", "D", "C", "Z"]
    for c in clients:
        c.bye()


@pytest.mark.parametrize("pool_mode", ["transaction"])
@pytest.mark.parametrize("change,row", CHANGES.values(), ids=CHANGES.keys())
def test_stale_plan_is_nothing_to_who_parses_now(pg, pgpool, change, row):
    """The links have it from others, as it was: for a driver that prepares and describes, and for one that runs it as well."""
    pg.rows("drop table if exists stale_other")
    pg.rows("create table stale_other as select 1 as a")
    clients = [login(pgpool) for _ in range(4)]
    wanted = {"p": ([describe("p")], ["1", "t", "T", "Z"]),
              "d": ([bind(name="d"), describe("", "P"), execute()], ["1", "2", "T", "D", "C", "Z"]),
              "b": ([bind(name="b"), execute()], ["1", "2", "D", "C", "Z"])}
    for name, (messages, replies) in wanted.items():
        pg.rows("drop table stale_other")
        pg.rows("create table stale_other as select 1 as a")
        spread_plans(clients, f"old_{name}", "select * from stale_other")
        for sql in change.format("stale_other").split("; "):
            pg.rows(sql)
        for c in clients:
            c.send(parse("select * from stale_other", name), *messages, SYNC)
            found = c.ready()
            assert [m.type for m in found] == replies, (name, [m.fields for m in found if m.type == "E"])
            assert [m.row() for m in found if m.type == "D"] == [row] * replies.count("D")
    for c in clients:
        c.bye()


@pytest.mark.parametrize("pool_mode", ["transaction"])
def test_memory_for_statements_is_bounded(pg, pgpool):
    """A client that makes a new name for each query, and closes none: no link holds more than the limit."""
    c = login(pgpool)
    for i in range(20):
        c.send(*(parse(f"select {i * 100 + j}", f"leak{i}_{j}") + bind(name=f"leak{i}_{j}") + execute() + SYNC
                 for j in range(100)))
        assert not states(c.ready(100))
    most = 0
    for _ in range(6):
        most = max(most, int(c.value("select count(*) from pg_prepared_statements")))
    assert most <= 200, "max_prepared_statements"
    c.send(bind(name="leak3_7"), execute(), SYNC)
    found = c.ready()
    assert [m.row() for m in found if m.type == "D"] == [[b"307"]]
    c.send(query("deallocate all"))
    c.ready()
    c.bye()


def test_name_taken_twice_in_a_failed_transaction(pg, start_pool):
    """What stands in for a statement there, to have the server say that its name is taken, is not shown to the client."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    c = login(pool)
    c.simple("prepare s as select 1")
    c.simple("begin")
    c.simple("select 1/0")
    for _ in range(2):
        for messages in ([parse("select 2", "s")], [describe("s")]):
            c.send(*messages, SYNC)
            found = c.ready()
            assert [m.type for m in found] == ["E", "Z"], messages
            assert states(found)[0] in ("25P02", "26000", "42P05"), messages
    c.simple("rollback")
    assert c.value("execute s") == "1"
    c.bye()


@differential()
@MODES
def test_closed_behind_what_failed(t):
    """Sent ahead: the first sequence fails and closes nothing, the next one does."""
    c = t.connect()
    for closes in ([close("s"), SYNC], [query("deallocate s")], [query("deallocate all")]):
        for again in ([], [parse("select 2 as b", "s")]):
            each_own_transaction(c, parse("select 1 as a", "s"), times=1)
            c.send(bind(name="nobody"), close("s"), *again, SYNC, *closes)
            c.ready(2)
            each_own_transaction(c, parse("select 3 as c", "s"), times=1)
            each_own_transaction(c, bind(name="s"), describe("", "P"), execute(), close("s"), times=1)


def test_prepare_that_failed_is_on_no_link(pg, start_pool):
    """Another client has the same statement under the same name: it is brought to the link anew."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    one, other = login(pool), login(pool)
    one.simple("prepare same as select 7")
    assert states(one.simple("select pg_terminate_backend(pg_backend_pid())")) == ["57P01"]
    other.simple("begin")
    other.simple("select 1/0")
    assert states(other.simple("prepare same as select 7")) == ["25P02"]
    other.simple("rollback")
    assert one.value("execute same") == "7"
    assert states(other.simple("execute same")) == ["26000"]
    one.bye()
    other.bye()
