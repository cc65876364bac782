# SPDX-License-Identifier: PostgreSQL
"""test_balance_types: types in pg_temp, which only the session's own connection knows: domains, enums, composite types and
the rows of temporary tables. A statement that names one stays at home, and is not answered with what a permanent type of
that name is. Session and transaction mode, simple and extended protocol."""
import pytest

from test_balance_rules import MODES, extended
from test_balance_tx import cluster, away, code, login, make, ok  # noqa: F401


@pytest.fixture(scope="module", autouse=True)
def schema(cluster):
    cluster.primary.rows("create domain shadow as numeric(10, 3)")


MAKE = {
    "domain": ["create domain pg_temp.shadow as numeric(10, 1)"],
    "by search_path": ["set search_path = pg_temp, public", "create domain shadow as numeric(10, 1)"],
    "in a transaction": ["begin", "create domain pg_temp.shadow as numeric(10, 1)", "commit"],
    "renamed": ["create domain pg_temp.other as numeric(10, 1)", "alter domain pg_temp.other rename to shadow"],
}


def answers(wire, sql: str) -> list:
    out = []
    for found in (wire.simple(sql), extended(wire, sql)):
        assert code(found) is None, sql
        out += [m.row()[0] for m in found if m.type == "D"]
    return out


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", MAKE)
def test_a_domain_that_hides_another(cluster, make, mode, how):
    pool = make(pool_mode=mode)
    w = login(pool)
    read = "select 1.239::shadow"
    assert answers(w, read) == [b"1.239"] * 2
    ok(w, *MAKE[how])
    for sql in (read, "select cast(1.239 as shadow)", "select shadow '1.239'", "select 1.239::\"shadow\"",
                "select a from json_to_record('{\"a\": 1.239}') as x(a shadow)", "select ('{1.239}'::shadow[])[1]"):
        assert answers(w, sql) == [b"1.2"] * 2, sql
    other = login(pool)
    assert answers(other, read) == [b"1.239"] * 2, "it is the first one's alone"
    other.bye()
    w.bye()


@pytest.mark.parametrize("mode", MODES)
def test_types_that_no_standby_knows(cluster, make, mode):
    w = login(make(pool_mode=mode))
    ok(w, "create type pg_temp.mood as enum ('sad', 'glad')", "create type pg_temp.pair as (a int, b int)",
       "create temp table had(a int, b int)", "create domain pg_temp.small as int check (value < 10)",
       "create temp view saw as select 1 as a")
    for sql, value in (("select 'glad'::mood", b"glad"), ("select (row(1, 2)::pair).b", b"2"),
                       ("select (row(3, 4)::had).a", b"3"), ("select 7::small", b"7"), ("select 'sad'::pg_temp.mood", b"sad"),
                       ("select (row(5)::saw).a", b"5"), ("select to_regtype('mood') is not null", b"t"),
                       ("select 'mood'::regtype is not null", b"t"), ("select ('{sad}'::_mood)[1]", b"sad"),
                       ("select (json_populate_record(null::had, '{\"a\": 6}')).a", b"6")):
        assert answers(w, sql) == [value] * 2, sql
    ok(w, "prepare q as select 'glad'::mood")
    assert answers(w, "execute q") == [b"glad"] * 2
    assert away(cluster, w) == (mode == "session"), "what names none of them; in transaction mode the session is tied"
    w.bye()
