# SPDX-License-Identifier: PostgreSQL
"""test_pool_types: transaction mode, statements that clients share, and DDL. Who prepares a text anew gets the types of its
parameters as they are now, not those that a server found for somebody else before an ALTER or a DROP."""
import struct

import pytest
from pooling_house import login, states

from pgt.wire import SYNC, bind, cstr, describe, execute, message, parse

BY_B = "select a from typed where b = $1"
INT4, INT8, TEXT = 23, 20, 25


@pytest.fixture
def typed(pg):
    pg.rows("drop table if exists typed; drop type if exists mood cascade; drop type if exists pair cascade; drop domain if exists word; "
            "create type mood as enum ('glad', 'sad'); create type pair as (x int, y text); create domain word as varchar(9); "
            "create table typed(a int, b int, m mood); insert into typed values (1, 7, 'sad')")


@pytest.fixture
def pool(pg, typed, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", default_pool_size=1)


def shape(messages) -> str:
    return "".join(m.type for m in messages)


def types_of(messages) -> list[int]:
    body = next(m.body for m in messages if m.type == "t")
    return list(struct.unpack(f"!{struct.unpack('!H', body[:2])[0]}I", body[2:]))


def prepare(c, sql: str, name: str = "s", types=()) -> list:
    c.send(message("P", cstr(name) + cstr(sql) + struct.pack(f"!H{len(types)}I", len(types), *types)) + describe(name) + SYNC)
    found = c.ready()
    assert not states(found), [m.fields for m in found if m.type == "E"]
    return found


def use(c, *values: bytes, name: str = "s") -> list:
    c.send(bind(name=name, params=values) + execute() + SYNC)
    found = c.ready()
    assert not states(found), [m.fields for m in found if m.type == "E"]
    return [m.row() for m in found if m.type == "D"]


def test_a_column_gets_another_type(pg, pool):
    """A new client's Parse, and a new name of the old one."""
    old, new = login(pool), login(pool)
    assert types_of(prepare(old, BY_B)) == [INT4] and use(old, b"7") == [[b"1"]]
    assert not states(old.simple("alter table typed alter column b type text"))
    for c, name in ((new, "s"), (old, "t"), (login(pool), "s")):
        assert types_of(prepare(c, BY_B, name)) == [TEXT]
        assert use(c, b"7", name=name) == [[b"1"]]


ALTER = "alter table typed alter column b type bigint"
AGAIN = "drop table typed; create table typed(a int, b bigint, m mood)"
LONG = f"-- {'x' * 90000}\n"  # more than is read
WAYS = {
    "simple": [ALTER], "in a transaction": ["begin", ALTER, "commit"], "in a string": [f"select 1; {ALTER}; select 2"],
    "behind a comment": [f"/* a */ -- b\n {ALTER}"], "made anew": [AGAIN], "made anew in a transaction": ["begin", *AGAIN.split(";"), "commit"],
    "in a DO": [f"do $$ begin execute '{ALTER}'; end $$"], "in a DO of a transaction": ["begin", f"do $$ begin execute '{ALTER}'; end $$", "end"],
    "in a long string": [f"alter table typed add z int; {LONG} {ALTER}"], "in a long transaction": ["begin", f"drop type pair; {LONG} {ALTER}", "commit"],
    "behind a savepoint": ["begin", "savepoint a", ALTER, "release a", "select 1", "commit"],
}


@pytest.mark.parametrize("how", [*WAYS, "extended", "by another worker"])
@pytest.mark.parametrize("who", ["transaction", "session"])
def test_ddl_is_seen(pg, typed, start_pool, tmp_path, how, who):
    """Also of a session that is not followed: its database has another name in pools.conf."""
    names = tmp_path / "pools.conf"
    names.write_text(f"[database typed]\ndbname = postgres\npool_mode = {who}\n", encoding="ascii")
    more = {"num_init_children": 2, "max_backend_connections": 0} if how == "by another worker" else {"num_init_children": 1}
    pool = start_pool(pg.address, worker_fill=1, pool_mode="transaction", pools_file=names, **more)
    old, new, third, ddl = login(pool), login(pool), login(pool), login(pool, database="typed")
    for c in (old, new, third):  # each on a link of its own, for some DDL ties its client to one
        assert not states(c.simple("begin"))
        assert types_of(prepare(c, BY_B)) == [INT4]
    for c in (old, new, third):
        assert not states(c.simple("commit"))
    if how == "extended":
        ddl.send(parse(ALTER, "d") + bind(name="d") + execute() + SYNC)
        assert not states(ddl.ready())
    for sql in WAYS.get(how, [ALTER] if how == "by another worker" else []):
        assert not states(ddl.simple(sql)), sql
    for c in (old, new, ddl, login(pool)):
        assert types_of(prepare(c, BY_B, "t")) == [INT8]


@pytest.mark.parametrize("call", ["select widen()", "call widening()"])
@pytest.mark.parametrize("kind", ["text", "bigint"])
def test_what_code_alters_is_seen_when_it_is_refused(pg, pool, call, kind):
    """DDL within functions is not seen: whoever then uses the text is answered rightly, or has it refused, once."""
    body = f"$$ begin execute 'alter table typed alter column b type {kind}'; end $$"
    pg.rows(f"create or replace function widen() returns void language plpgsql as {body}; "
            f"create or replace procedure widening() language plpgsql as {body}")
    old, new = login(pool), login(pool)
    assert types_of(prepare(old, BY_B)) == [INT4]
    assert not states(old.simple(call))
    prepare(new, BY_B)
    assert use(new, b"7") == [[b"1"]]
    if kind == "text":  # an int4 is compared with an int8 as ever
        assert types_of(prepare(new, BY_B, "t")) == types_of(prepare(old, BY_B, "t")) == [TEXT]
        assert use(old, b"7", name="t") == use(new, b"7", name="t") == [[b"1"]]
    else:
        assert use(old, b"7") == [[b"1"]]


def test_scripts_of_extensions_are_seen(pg, pool):
    """An extension's types are others behind DROP and CREATE."""
    sql = "select a from texts where b = $1"
    c, new = login(pool), login(pool)
    if states(c.simple("create extension citext")):
        pytest.skip("there is no extension citext")
    try:
        assert not states(c.simple("create table texts(a int, b citext); insert into texts values (1, 'B')"))
        before = types_of(prepare(c, sql))
        assert use(c, b"b") == [[b"1"]]
        assert not states(c.simple("drop extension citext cascade"))
        assert not states(c.simple("create extension citext"))
        assert not states(c.simple("alter table texts add b citext default 'B'"))
        for w, name in ((new, "s"), (c, "t")):
            assert types_of(prepare(w, sql, name)) != before
            assert use(w, b"b", name=name) == [[b"1"]]
    finally:
        pg.rows("drop table if exists texts; drop extension if exists citext cascade")


@pytest.mark.parametrize("sql, again", [
    ("select a from typed where m = $1", "create type mood as enum ('sad'); alter table typed add m mood default 'sad'"),
    ("select $1::mood", "create type mood as enum ('sad')"),
    ("select $1::word", "create domain word as varchar(9)"),
    ("select ($1::pair).x", "create type pair as (x int, y text)")])
@pytest.mark.parametrize("is_seen", [True, False], ids=["seen", "unseen"])
def test_a_type_is_dropped_and_made_again(pg, pool, sql, again, is_seen):
    """Also when the DDL does not pass through us: what the server says of the old type is believed."""
    value = b"(1,x)" if "pair" in sql else b"sad"
    old, new = login(pool), login(pool)
    before = types_of(prepare(old, sql))
    assert len(use(old, value)) == 1
    change = f"drop {' '.join(again.split()[1:3])} cascade; {again}"
    if is_seen:
        assert not states(old.simple(change))
    else:
        pg.rows(change)
    if not is_seen and "pair" in sql:
        prepare(new, sql, "u")  # nothing shows it but the value itself
        new.send(bind(name="u", params=(value,)) + execute() + SYNC)
        assert states(new.ready()) == ["XX000"]
    for c, name in ((new, "s"), (old, "t")):
        assert types_of(prepare(c, sql, name)) != before
        assert len(use(c, value, name=name)) == 1


def test_an_unseen_alter_of_a_sequence_that_parses(pg, pool):
    """Who prepares and executes in one sequence was told nothing of types."""
    old, new = login(pool), login(pool)
    prepare(old, BY_B)
    assert use(old, b"7") == [[b"1"]]
    pg.rows("alter table typed alter column b type text")
    new.send(parse(BY_B, "s") + bind(name="s", params=(b"7",)) + execute() + SYNC)
    found = new.ready()
    assert shape(found) == "12DCZ", [m.fields for m in found if m.type == "E"]


@pytest.mark.parametrize("sql, types", [("select a from typed", ()), (BY_B, (INT4,))], ids=["no parameter", "told"])
def test_what_depends_on_no_type_stays_shared(pg, pool, sql, types):
    """DDL does not cost a Parse where the client says the types, or there are none."""
    count = "select count(*) from pg_prepared_statements where statement = '" + sql + "'"
    c = login(pool)
    prepare(c, sql, "s", types)
    assert not states(c.simple("alter table typed add c int"))
    prepare(c, sql, "t", types)
    assert c.value(count) == "1"


def test_temporary_tables_change_nothing(pg, pool):
    count = "select count(*) from pg_prepared_statements where statement = '" + BY_B + "'"
    c, other = login(pool), login(pool)
    prepare(c, BY_B)
    assert not states(c.simple("create temp table t_t(a int)")) and not states(c.simple("drop table t_t"))
    assert not states(c.simple("discard all"))
    prepare(other, BY_B)
    prepare(other, BY_B, "t")
    assert other.value(count) == "1"


@pytest.mark.parametrize("sql, value", [(BY_B, struct.pack("!i", 7)), ("insert into typed(b) values ($1)", struct.pack("!i", 8))])
@pytest.mark.parametrize("asks", [False, True], ids=["asks not", "asks"])
def test_values_are_not_taken_for_others(pg, start_pool, pool, sql, value, asks):
    """Who was told a parameter's type sends its value in binary: a connection that has parsed the statement since then
    must not take that for another type."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True)
    c = login(pool)
    assert types_of(prepare(c, sql)) == [INT4]
    pg.rows("alter table typed alter column b type real")
    for _ in range(4):
        c.send(bind(name="s", params=(value,), formats=(1,)) + (describe("", "P") if asks else b"") + execute() + SYNC)
        found = c.ready()
        assert states(found) in (["0A000"], ["42804"], ["42883"]) or (
            not states(found) and pg.rows("select 1 from typed where b not in (7, 8)") == [])
    prepare(c, sql, "t")
    assert pg.rows("select b from typed where b not in (7, 8)") == []
    assert not states(c.simple("select 1"))
