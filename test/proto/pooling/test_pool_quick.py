# SPDX-License-Identifier: PostgreSQL
"""test_pool_quick: plain statements that are passed on in one step, and what stands right beside them: what the
unnamed statement is after an error, settings of others, sequences that are not whole, not plain, or not alone.
"""
import pytest
from pooling_house import MODES

from pgt.diff import differential
from pgt.wire import SYNC, bind, close, describe, execute, parse, pg, query

ONE = "select $1::int as one"


def sequence(sql: str, *values: str, portal: bool = True) -> bytes:
    """As libpq sends it."""
    return parse(sql) + bind(list(values)) + (describe("", "P") if portal else b"") + execute() + SYNC


def again(c) -> None:
    """What the unnamed statement is now."""
    for _ in range(2):
        c.send(bind(["7"]), describe("", "P"), execute(), SYNC)
        c.ready()


@differential()
@MODES
@pytest.mark.parametrize("sql,value", [(ONE, "1"), (ONE, "x"), ("select 1 / $1::int", "0"), ("select no_such_column", ""),
                                       ("select 1 +", ""), ("select 1; select 2", ""), ("", "")])
@pytest.mark.parametrize("portal", [True, False])
def test_unnamed_behind_it(t, sql, value, portal):
    c = t.connect()
    values = [value] if "$1" in sql else []
    for _ in range(2):
        c.send(sequence(ONE, "41", portal=portal))
        c.ready()
        c.send(sequence(sql, *values, portal=portal))
        c.ready()
        again(c)
    c.simple("select 1")
    again(c)


@differential()
@MODES
def test_named_behind_an_error(t):
    c = t.connect()
    c.send(parse(ONE, "s"), SYNC)
    c.ready()
    for value in ("1", "x", "2", None):
        c.send(bind([value], name="s"), describe("", "P"), execute(), SYNC)
        c.ready()
    c.send(bind(["1"], name="none"), execute(), SYNC)
    c.ready()
    c.send(bind(["3"], name="s"), execute(), SYNC)
    c.ready()
    c.send(close("s"), SYNC, bind(["4"], name="s"), execute(), SYNC)
    c.ready(2)


@differential()
@MODES
def test_two_at_once(t):
    """The second one comes while the first is under way, plain or not."""
    c = t.connect()
    for second in (sequence(ONE, "2"), sequence("select 1 / $1::int", "0"), query("select 2"),
                   sequence("set work_mem = '5MB'"), query("begin")):
        c.send(sequence(ONE, "1") + second)
        c.ready(2)
        c.send(query("select 1") + second)
        c.ready(2)
        c.simple("rollback")
        c.simple("show work_mem")
        again(c)


@differential()
@MODES
def test_in_two_parts(t):
    c = t.connect()
    whole = sequence(ONE, "5")
    for at in (3, len(parse(ONE)), len(whole) - 8, len(whole) - 5, len(whole) - 1):
        c.send(whole[:at])
        c.send(whole[at:])
        c.ready()


@differential()
@MODES
def test_settings_in_between(t):
    """Each client sees its own, whoever had the link."""
    a, b = t.connect("a"), t.connect("b")
    look = "select current_setting('work_mem') as w, current_setting('extra_float_digits') as d"
    a.simple("set work_mem = '7MB'")
    b.send(pg("set extra_float_digits = 0"), SYNC)
    b.ready()
    for _ in range(2):
        for c in (a, b):
            c.send(sequence(look))
            c.ready()
            c.simple(look)
    a.send(sequence("select set_config('work_mem', '8MB', false)"))
    a.ready()
    for c in (a, b):
        c.send(sequence(look))
        c.ready()


@differential()
@MODES
def test_what_is_not_plain(t):
    """A text reads otherwise by a setting; a SELECT makes a table that nobody else sees."""
    c = t.connect()
    c.simple("set standard_conforming_strings = off")
    for sql in (r"select length('a\\b')", r"select 'a\'; set work_mem = ''6MB'", "select 1"):
        c.send(sequence(sql))
        c.ready()
        c.simple(sql)
    c.simple("reset standard_conforming_strings")
    c.send(sequence("select 1 as a into temp kept"))
    c.ready()
    for _ in range(2):
        c.send(sequence("select a from kept"))
        c.ready()
        c.simple("select a from kept")
