# SPDX-License-Identifier: PostgreSQL
"""test_pool_bound: set_config() whose arguments come with a Bind, as drivers and ORMs call it. The client sees its
own settings on each link, nobody else does, and it is tied to none.
"""
import asyncio

import asyncpg
import pytest
from pooling_house import MODES, OWN, login, states, table

from pgt.diff import WHOLE, differential
from pgt.wire import FLUSH, SYNC, bind, close, describe, execute, parse, query

SEEN = (f"select {OWN}, current_setting('work_mem') as w, current_setting('search_path') as p, "
        "current_setting('DateStyle') as d, current_setting('role') as r")
TEXT, VARCHAR, NAME, BOOL, INT = 25, 1043, 19, 16, 23
CALL = "select set_config($1, $2, $3)"
BEGIN, COMMIT, ROLLBACK = query("begin"), query("commit"), query("rollback")


def call(sql: str, params=(), formats=(), types=()) -> bytes:
    return parse(sql, "", types) + bind(params, formats=formats) + describe("", "P") + execute() + SYNC


def own(value, is_local="f") -> bytes:
    return call(CALL, ["my.own", value, is_local])


STEPS = {
    "value": [call("select set_config('my.own', $1, false)", ["tenant 1"]),
              call("select pg_catalog.set_config('work_mem', $1, false)", ["5MB"], (), (TEXT,)),
              call("select set_config('work_mem', $1, false) as w", ["6MB"], (), (VARCHAR,)),
              call("select set_config('work_mem', $1, false)", ["7MB"], (), (NAME,)),
              call("select set_config('work_mem', $1, false)", ["8MB"], (), (705,))],
    "name": [call("select set_config($1, '5MB', false)", ["work_mem"]), call("select set_config($1, '6MB', false)", ["WORK_Mem"]),
             call("select set_config($1, 'x', false)", ["My.Own"]), call("select set_config($1, 'x', false)", ["no_such"]),
             call("select set_config($1, 'x', false)", [""]), call("select set_config($1, 'x', false)", ["it's"]),
             call("select set_config($1, 'x', false)", ["my.own"], (1,)), call("select set_config($1, 'x', false)", ["a b.c"])],
    "role": [call(CALL, ["role", "trust_user", "f"]), call(CALL, ["role", "none", "f"]), call(CALL, ["role", "other_user", "f"]),
             call(CALL, ["role", None, "f"]), call(CALL, ["session_authorization", "trust_user", "f"]),
             call(CALL, ["session_authorization", None, "f"]), query("reset session authorization")],
    "of the transaction": [call(CALL, ["transaction_isolation", "serializable", "f"]), call(CALL, ["seed", "0.5", "f"]), BEGIN,
                           call(CALL, ["transaction_read_only", "on", "f"]), query("show transaction_read_only"), COMMIT],
    "is_local": [own("a", v) for v in ("t", "true", " TRUE ", "yes", "on", "1", "f", "no", "of", "0", "maybe", "")],
    "is_local in binary": [call(CALL, [b"my.own", b"x%d" % n, v], (0, 0, 1)) for n, v in
                           enumerate((b"\1", b"\0", b"\2", b"", b"\0\0", b"\0"))],
    "is_local, typed": [call("select set_config('my.own', 'v', $1)", ["f"], (), (BOOL,)),
                        call("select set_config('my.own', 'w', $1)", ["t"], (), (BOOL,)),
                        call("select set_config('my.own', 'u', $1)", ["1"], (), (INT,))],
    "in transactions": [BEGIN, own("a"), COMMIT, BEGIN, own("b"), ROLLBACK, BEGIN, own("c", "t"), COMMIT, BEGIN, own("d"), own("e", "t"),
                        COMMIT, BEGIN, own("f", "t"), own("g"), query("savepoint s"), own("h"), query("rollback to s"), COMMIT,
                        BEGIN, query("savepoint s"), own("i"), query("release s"), own("j"), query("select 1/0"), COMMIT],
    "null": [own("a"), own(None), own("b"), own("c", None), own("d"), own(None, "t"), call(CALL, [None, "x", "f"]),
             call(CALL, [None, None, None]), call(CALL, ["work_mem", "9MB", "f"]), call(CALL, ["work_mem", None, "f"]),
             call(CALL, ["datestyle", "german", "f"]), call(CALL, ["datestyle", None, None]), query("set work_mem = '3MB'"),
             BEGIN, call(CALL, ["work_mem", None, "f"]), ROLLBACK, query("select set_config('work_mem', null, false)"),
             query("reset work_mem")],
    "binary": [call(CALL, [b"my.own", b"all", b"\0"], (1,)), call(CALL, [b"my.own", b"each", b"f"], (1, 1, 0)),
               call(CALL, [b"my.own", b"nul\0byte", b"f"], (1, 1, 0)), call(CALL, [b"my.own", b"\xff\xfe", b"f"], (1, 1, 0)),
               call(CALL, ["my.own", "formats", "f"], (0, 1)), call(CALL, ["my.own", "format 2", "f"], (2,))],
    "characters": [own(v) for v in ("", "it's", "''", "a\\b", "E'\\", "grün €", "$1", "$$", "a, b)", "--", "/*", '{"k": ["v"]}',
                                    "line\nfeed", " spaces ", "x" * 4000)],
    "backslashes": [query("set standard_conforming_strings = off"), own("a\\\\'b"), own("c'd"),
                    query("set standard_conforming_strings = on"), own("e\\f")],
    "encodings": [query("set client_encoding = 'LATIN1'"), own(b"gr\xfcn"), call(CALL, [b"my.own", b"\xfc\xdf", b"\0"], (1,)),
                  query("set client_encoding = 'UTF8'"), query("set client_encoding = 'SJIS'"), own(b"\x83\x5c"), own(b"\x83\x5c'"),
                  query("reset client_encoding")],
    "casts": [call("select set_config('my.own', $1::text, false)", ["text"]),
              call("select set_config($1 :: text, $2::varchar, $3::boolean)", ["my.own", "varchar", "false"]),
              call("select set_config('my.own', $1::TEXT, $2::bool)", ["local", "true"]),
              call("select set_config('my.own', $1::int::text, false)", ["007"]),
              call("select set_config('my.own', $1::text, false)", [" 08"], (), (INT,)),
              call("select set_config('my.own', $1::name, false)", ["n" * 70]),
              call("select set_config('my.own', $1::varchar(3), false)", ["cut off"]),
              call("select set_config('my.own', cast($1 as text), false)", ["cast"]),
              call("select set_config('my.own', ($1), false)", ["parentheses"]),
              call("select set_config('my.own', $1 || '', false)", ["expression"])],
    "types that do not fit": [call("select set_config('my.own', $1, false)", ["1"], (), (INT,)),
                              call(CALL, ["my.own", "x", "f"], (), (TEXT, TEXT, TEXT)),
                              call("select $1::int, set_config('my.own', $1, false)", ["1"]),
                              call("select set_config('my.own', $1, false), $1::int", ["2"]),
                              call("select set_config('my.own', $2, false)", ["3", "4"]), own("a") + own("b")],
    "several": [call("select set_config('my.own', $1, false), set_config('work_mem', $2, false)", ["a", "5MB"]),
                call("select set_config('my.own', $1, false), set_config('my.own', $2, false)", ["b", "c"]),
                call("select set_config('my.own', $1, false), set_config('search_path', $1, $2)", ["d", "t"]),
                call("select set_config('my.own', $1, false) as o, current_setting('work_mem') as w;", ["e"]),
                call("select set_config('my.own', set_config('work_mem', $1, false), false)", ["6MB"]),
                call("select set_config('my.own', $1, false), current_setting($2)", ["f", "work_mem"])],
    "perhaps not": [call("select set_config('my.own', $1, false) where false", ["a"]),
                    call("select case when $2 then set_config('my.own', $1, false) end", ["b", "f"]),
                    call("select case when $2 then set_config('my.own', $1, false) end", ["c", "t"]),
                    call("select set_config('my.own', $1, false) from generate_series(1, 2)", ["d"]),
                    call("select set_config('my.own', $1, false) limit $2", ["e", "0"]),
                    call("explain (costs off) select set_config('my.own', $1, false)", ["f"])],
    "refused": [own("a"), call(CALL, ["work_mem", "much", "f"]), call(CALL, ["port", "1", "f"]), call(CALL, ["my.own", "b"]),
                call(CALL, ["my.own", "b", "f", "g"])],
    "comments": [call("select set_config('my.own' -- 'a'\n, $1, false)", ["v"]), call("select set_config('my.own', $1 /* , */, false)", ["w"]),
                 query("select set_config('my.own', 'b' -- 'x'\n, false)"), query("select set_config('my.own', 'c' /* ' */, false)"),
                 query("select set_config('my.own', 'on ' || current_date - current_date || ' at', false)"),
                 query("select set_config('my.own', 'pid ' || (pg_backend_pid() > 0) || '', false)")],
    "prepared by SQL": [query("prepare sql_p(text) as select set_config('my.own', $1, false)"),
                        bind(["x"], name="sql_p") + execute() + SYNC, query("execute sql_p('y')"),
                        bind(["z"], name="sql_p") + execute() + SYNC, query("discard all"),
                        query("prepare sql_q as select set_config('my.own', 'literal', false)"), bind(name="sql_q") + execute() + SYNC],
}


def ends(step: bytes) -> int:
    """How many ReadyForQuery come."""
    count = at = 0
    while at < len(step):
        count += step[at:at + 1] in (b"S", b"Q")
        at += 1 + int.from_bytes(step[at + 1:at + 5], "big")
    return count


def watch(t, steps, **params) -> None:
    """Each step, and what the client and another one see then, on two links each."""
    c, other = t.connect("c1", **params), t.connect("c2")
    for step in steps:
        c.send(step)
        c.ready(ends(step))
        for w in (c, c, other, other):
            w.simple(SEEN)


@pytest.mark.parametrize("what", STEPS)
@MODES
@differential(chunks=(WHOLE,))
def test_arguments(t, what):
    watch(t, STEPS[what])


@MODES
@differential(chunks=(WHOLE,))
def test_start_up_parameters(t):
    """NULL goes back to them, although its answer tells what the server itself would have."""
    c, other = t.connect("c1", options="-c my.own=started", TimeZone="Asia/Tokyo"), t.connect("c2")
    for step in (own("a"), own(None), call(CALL, ["work_mem", "9MB", "f"]), BEGIN, own(None), ROLLBACK, own("b"), query("reset all")):
        c.wire.send(step)
        assert states(c.wire.ready()) == []
        for w in (c, c, other, other):
            w.simple(SEEN)


@MODES
@differential(chunks=(WHOLE,))
def test_encodings(t):
    """A value is what it was, in whatever encoding it is restored, and whoever had the link before."""
    c, other = t.connect("c1"), t.connect("c2")
    for step in (query("set client_encoding = 'LATIN1'"), call(CALL, [b"app.own", b"gr\xfcn", b"f"]), query(b"set my.own = '\xfc'"), query("set client_encoding = 'LATIN1'"),
                 query("set client_encoding = 'UTF8'"), query("discard all")):
        c.send(step)
        c.ready()
        for w in (c, c, other, other):
            w.simple("select coalesce(current_setting('app.own', true), '') as own")
            w.simple(SEEN)


def test_start_up_values_behind_another_encoding(pg, start_pool):
    """One connection for all: each login, and each RESET, meets what the other has left."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    own_is = "select current_setting('my.own')"
    with login(pool) as c:
        for i in range(2):
            c.rows("set client_encoding = 'LATIN1'")
            with login(pool, options=f"-c my.own=grün{i}") as other:
                assert other.value(own_is) == f"grün{i}"
                c.rows("select 1")
                assert other.value(own_is) == f"grün{i}"
                other.rows("set my.own = 'x'; set client_encoding = 'LATIN1'")
                other.rows("reset all")
                assert other.value(own_is) == f"grün{i}"


NAMED = parse(CALL, "s")


def bound(value, portal="", is_local="f") -> bytes:
    return bind(["my.own", value, is_local], portal, "s")


SEQUENCES = {
    "often": [bound(f"v{n}") + execute() + SYNC for n in range(4)],
    "in one sequence": [b"".join(bound(f"v{n}") + execute() for n in range(4)) + SYNC],
    "in a pipeline": [b"".join(bound(f"v{n}") + execute() + SYNC for n in range(4))],
    "not executed": [bound("a") + SYNC, bound("b") + execute() + bound("c") + SYNC, bound("d") + describe("", "P") + SYNC],
    "by another name": [bound("a", "p") + bound("b", "q") + execute("q") + execute("p") + SYNC,
                        bound("c", "p") + bound("d", "q") + execute("p") + execute("q") + SYNC,
                        bound("e", "p") + bound("f", "q") + execute("p") + SYNC],
    "closed": [bound("a", "p") + close("p", "P") + execute("p") + SYNC, bound("b", "p") + close("p", "P") + bound("c", "p") + execute("p") + SYNC,
               bound("d", "p") + close("s") + execute("p") + SYNC, bound("e") + execute() + SYNC],
    "twice": [bound("a", "p") + execute("p") + execute("p") + SYNC, bound("b") + execute("", 1) + execute("", 1) + SYNC,
              bound("c") + execute("", 1) + SYNC],
    "the name is taken": [bound("a", "p") + bound("b", "p") + execute("p") + SYNC],
    "error in front": [bound("a") + execute() + SYNC, bind(name="nobody") + bound("b") + execute() + SYNC],
    "error behind": [bound("a") + execute() + SYNC, bound("b") + execute() + bind(name="nobody") + SYNC,
                     bound("c") + execute() + FLUSH + bind(name="nobody") + SYNC],
    "error behind a commit": [bound("a") + execute() + SYNC + parse("commit") + bind() + execute() + bind(name="nobody") + SYNC],
    "error between": [bound("a") + execute() + SYNC + bind(name="nobody") + SYNC + bound("b") + execute() + SYNC],
    "parsed with an error": [parse("selec", "t") + bound("a") + execute() + SYNC],
    "over sequences": [BEGIN, bound("a", "p") + SYNC, bound("b") + execute() + SYNC, execute("p") + SYNC, COMMIT,
                       BEGIN, bound("c", "p") + SYNC, close("p", "P") + SYNC, execute("p") + SYNC, ROLLBACK,
                       BEGIN, bound("d", "p") + SYNC, ROLLBACK, execute("p") + SYNC],
    "transaction in a sequence": [b"".join(parse(sql) + bind() + execute() + bound(value) + execute() for sql, value in
                                           (("begin", "a"), ("savepoint x", "b"), ("rollback to x", "c"))) +
                                  parse("commit") + bind() + execute() + SYNC,
                                  parse("begin") + bind() + execute() + bound("d") + execute() + parse("rollback") + bind() + execute() + SYNC],
    "dropped": [bound("a") + execute() + SYNC, query("discard all"), NAMED + bound("b") + execute() + SYNC],
}


@pytest.mark.parametrize("what", SEQUENCES)
@MODES
@differential(chunks=(WHOLE,))
def test_sequences(t, what):
    watch(t, [NAMED + SYNC, *SEQUENCES[what]])


# ---- nobody is tied

FREE = {
    "value": own("a"), "name and value in binary": call(CALL, [b"my.own", b"b", b"\0"], (1,)), "local": own("c", "t"),
    "typed": call(CALL, ["my.own", "d", "f"], (), (TEXT, VARCHAR, BOOL)), "null": own(None), "null for is_local": own("e", None),
    "casts": call("select set_config($1::text, $2::text, $3::bool)", ["my.own", "f", "false"]),
    "quotes": own("it's ''"), "refused": call(CALL, ["work_mem", "much", "f"]),
    "two": call("select set_config('my.own', $1, false) as a, set_config('work_mem', $2, true) as b", ["g", "5MB"]),
    "local, of anything": call("select set_config('my.own', $1::int::text, $2)", ["1", "t"]),
    "not executed": parse("select set_config('my.own', $1 || '', false)") + bind(["h"]) + SYNC,
}
TIED = {"backslash": own("a\\b"), "expression": call("select set_config('my.own', $1 || '', false)", ["h"]),
        "perhaps not": call("select set_config('my.own', $1, false) where false", ["a"])}


def pinned(watcher, name: str) -> tuple[str, str]:
    row = next(r for r in table(watcher, "show pool_clients") if r["application_name"] == name)
    return row["pinned"], row["pin_reason"]


@pytest.mark.parametrize("policy", ["on", "error"])
def test_ties(pg, start_pool, policy):
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True, pin_on_session_state=policy)
    with login(pool) as watcher:
        for what, step in {**FREE, **TIED}.items():
            with login(pool, application_name="bound") as c:
                for send in (step, BEGIN + step + COMMIT):
                    c.send(send)
                    found = c.ready(ends(send))
                    refused = "0A000" in states(found)
                    assert refused == (policy == "error" and what in (*TIED, "not executed")), (what, states(found))
                    ties = policy == "on" and what in TIED
                    assert pinned(watcher, "bound") == (("true", "setting") if ties else ("false", "")), what
                assert c.value("select 'alive'") == "alive"


async def asyncpg_work(port: int, looks_free) -> list:
    """Its look at a type that it does not know sets jit off and back."""
    c = await asyncpg.connect(host="127.0.0.1", port=port, user="postgres", database="postgres",
                              server_settings={"application_name": "bound"})
    seen = [await c.fetchval("select 'b'::bound_enum"), await c.fetchval("select array[('b', 1)::bound_row]")]
    for tenant in ("one", "it's two"):
        seen.append(await c.fetchval("select set_config('my.own', $1, false)", tenant))
        async with c.transaction():
            await c.execute("select set_config('my.own', $1, $2)", "for this transaction", True)
            seen.append(await c.fetchval("select current_setting('my.own')"))
        for _ in range(3):
            seen += await c.fetchrow("select current_setting('my.own') as o, current_setting('jit') as j")
        looks_free()
    await c.close()
    return seen


def test_asyncpg(pg, start_pool):
    pg.rows("drop type if exists bound_enum, bound_row cascade; create type bound_enum as enum ('a', 'b'); "
            "create type bound_row as (e bound_enum, n int)")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True)

    def looks_free() -> None:
        assert pinned(watcher, "bound") == ("false", "")

    with login(pool) as watcher:
        seen = asyncio.run(asyncpg_work(pool.port, looks_free))
    assert seen == asyncio.run(asyncpg_work(pg.port, lambda: None))
