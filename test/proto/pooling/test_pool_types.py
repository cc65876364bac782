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
def pool(pg, start_pool):
    pg.rows("drop table if exists typed; drop type if exists mood cascade; drop type if exists pair cascade; "
            "create type mood as enum ('glad', 'sad'); create type pair as (x int, y text); "
            "create table typed(a int, b int, m mood); insert into typed values (1, 7, 'sad')")
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


@pytest.mark.parametrize("how", ["simple", "extended", "in a transaction", "by another worker", "in a string"])
def test_ddl_is_seen(pg, start_pool, pool, how):
    if how == "by another worker":
        pool = start_pool(pg.address, num_init_children=2, worker_fill=1, pool_mode="transaction", max_backend_connections=0)
    old, new, ddl = login(pool), login(pool), login(pool)
    alter = "alter table typed alter column b type bigint"
    assert types_of(prepare(old, BY_B)) == types_of(prepare(new, BY_B)) == [INT4]
    if how == "extended":
        ddl.send(parse(alter) + bind() + execute() + SYNC)
        assert not states(ddl.ready())
    elif how == "in a transaction":
        assert not states(ddl.simple("begin")) and not states(ddl.simple(alter)) and not states(ddl.simple("commit"))
    elif how == "in a string":
        assert not states(ddl.simple(f"select 1; {alter}; select 2"))
    else:
        assert not states(ddl.simple(alter))
    for c in (old, new, ddl, login(pool)):
        assert types_of(prepare(c, BY_B, "t")) == [INT8]


@pytest.mark.parametrize("sql, again", [
    ("select a from typed where m = $1", "create type mood as enum ('sad'); alter table typed add m mood default 'sad'"),
    ("select $1::mood", "create type mood as enum ('sad')"),
    ("select ($1::pair).x", "create type pair as (x int, y text)")])
@pytest.mark.parametrize("is_seen", [True, False], ids=["seen", "unseen"])
def test_a_type_is_dropped_and_made_again(pg, pool, sql, again, is_seen):
    """Also when the DDL does not pass through us: what the server says of the old type is believed."""
    value = b"(1,x)" if "pair" in sql else b"sad"
    old, new = login(pool), login(pool)
    before = types_of(prepare(old, sql))
    assert len(use(old, value)) == 1
    change = f"drop type {again.split()[2]} cascade; {again}"
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
