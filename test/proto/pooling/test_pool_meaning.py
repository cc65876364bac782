# SPDX-License-Identifier: PostgreSQL
"""test_pool_meaning: texts that mean one thing to one client and another to the next: what a backslash or a date in
them is depends on settings. Two clients share two links, which change hands with every transaction.
"""
import pytest
from pooling_house import login

from pgt.wire import SYNC, bind, execute, parse, query


@pytest.fixture
def pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2,
                      pool_test_rotate=True, query_wait_timeout=10)


def hidden_set(wire, text: bytes) -> None:
    """Two statements for the server, one string for who reads the backslash otherwise."""
    wire.send(query(text))
    wire.ready()


def check_nobody_else_has_it(pool, own) -> None:
    others = [login(pool, seconds=5) for _ in range(2)]
    for _ in range(4):
        for other in others:
            assert other.value("show work_mem") != "9MB"
    assert own.value("show work_mem") == "9MB", "who set it has it"
    own.bye()
    others.append(login(pool, seconds=5))
    for _ in range(4):
        for other in others:
            assert other.value("show work_mem") != "9MB"
    for other in others:
        other.bye()


def test_backslash_in_a_plain_string(pool):
    c = login(pool, seconds=5)
    c.simple("set standard_conforming_strings = off")
    hidden_set(c, rb"select 'a\''; set work_mem = '9MB'; --'")
    check_nobody_else_has_it(pool, c)


@pytest.mark.parametrize("text", [rb"set my.v = 'a\'b'", rb"select set_config('my.v', 'a\'b', false)",
                                  rb"set my.v = 'a\';b'"])
def test_backslash_in_a_sequence(pool, text):
    """One statement for the server; no statement, or two, for who reads the backslash otherwise."""
    c = login(pool, seconds=5)
    c.simple("set standard_conforming_strings = off")
    c.send(parse(text), bind(), execute(), SYNC)
    c.ready()
    own = c.value("show my.v")
    assert own.startswith("a'"), own
    others = [login(pool, seconds=5) for _ in range(2)]
    for _ in range(4):
        for other in others:
            assert other.value("select current_setting('my.v', true)") != own
        assert c.value("show my.v") == own
    for w in (c, *others):
        w.bye()


# A string with a quote and a call behind it, or one string, by how the backslash is read.
TWO_MEANINGS = rb"select 'a\'', set_config($$my.v$$, $$leaks$$, false) --'"


def test_backslash_in_what_another_user_prepared(pg, pool):
    """By a default of the role: the same text does nothing for one, and sets something for the other."""
    pg.rows("alter role other_user set standard_conforming_strings = off")
    try:
        c, other = login(pool, seconds=5), login(pool, seconds=5, user="other_user")
        for w in (c, other):
            w.send(parse(TWO_MEANINGS), bind(), execute(), SYNC)
            w.ready()
        third = login(pool, seconds=5, user="other_user")
        for _ in range(3):
            assert third.value("select current_setting('my.v', true)") != "leaks"
            assert other.value("select current_setting('my.v', true)") == "leaks"
    finally:
        pg.rows("alter role other_user reset standard_conforming_strings")


def test_backslash_by_a_default_of_the_role(pg, pool):
    pg.rows("alter role postgres set standard_conforming_strings = off")
    try:
        c = login(pool, seconds=5)
        hidden_set(c, rb"select 'a\''; set work_mem = '9MB'; --'")
        check_nobody_else_has_it(pool, c)
    finally:
        pg.rows("alter role postgres reset standard_conforming_strings")


@pytest.mark.parametrize("how", ["set", "startup"])
def test_half_a_character_is_no_backslash(pool, how):
    """In SJIS 0x95 0x5c is one character, so the string ends at the quote behind it."""
    c = login(pool, seconds=5) if how == "set" else login(pool, seconds=5, client_encoding="SJIS")
    if how == "set":
        c.simple("set client_encoding to sjis")
    hidden_set(c, b"select E'\x95\x5c'; set work_mem = '9MB'; --'")
    check_nobody_else_has_it(pool, c)


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("setting,values,sql,answers", [
    ("datestyle", ("sql, dmy", "sql, mdy"), "select extract(month from '01/02/2024'::date)", (b"2", b"1")),
    ("timezone", ("UTC", "Asia/Tokyo"), "select extract(epoch from '2024-01-01 00:00:00'::timestamptz)::bigint",
     (b"1704067200", b"1704034800")),
    ("standard_conforming_strings", ("on", "off"), r"select length('a\\b')", (b"4", b"3")),
    ("intervalstyle", ("postgres", "sql_standard"), "select extract(hour from '-1 2:00:00'::interval)", (b"2", b"-2")),
])
def test_literals_are_read_as_their_client_has_them(pool, setting, values, sql, answers, named):
    """The same text of two clients: a statement of one is not the other's."""
    name = "s" if named else ""
    clients = [login(pool, seconds=5) for _ in values]
    for c, value in zip(clients, values):
        c.simple(f"set {setting} = '{value}'" if "," not in value else f"set {setting} = {value}")
    for i in range(6):
        for c, answer in zip(clients, answers):
            c.send(*([] if named and i > 0 else [parse(sql, name)]), bind(name=name), execute(), SYNC)
            rows = [m.row() for m in c.ready() if m.type == "D"]
            assert rows == [[answer]]
    for c in clients:
        c.bye()
