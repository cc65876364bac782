# SPDX-License-Identifier: PostgreSQL
"""test_pool_unparsed: messages without an end, and statements that our grammar rejects though the server takes them: what they did
ties the session. Names of settings that are key words, and BEGIN in two spellings."""
import struct

import pytest
from pooling_house import login, states, table

from pgt.wire import SYNC, WireClosed, bind, execute, parse

# In a database of one byte per character the server takes this, and a reader of UTF-8 does not.
BYTES = "E'\\xe9'"


@pytest.fixture(scope="module")
def latin(pg):
    pg.rows("drop database if exists latin")
    pg.rows("create database latin encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0")
    pg.rows("drop role if exists boss")
    pg.rows("create role boss")
    yield pg
    pg.rows("drop database latin with (force)")
    pg.rows("drop role boss")


def pool_of(start_pool, *nodes, **conf):
    """A link that was given back is the next client's; who is tied to it leaves another one."""
    return start_pool(*nodes, **{"num_init_children": 1, "pool_mode": "transaction", "max_backend_connections": 2,
                                 "query_wait_timeout": 10, **conf})


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("kind", ["B", "P", "E", "D", "C", "Q", "F"])
def test_a_message_without_end(pg, start_pool, mode, kind):
    """Its name never ends: it is not kept for ever, and nobody else is hurt."""
    nodes = [pg.address] if mode == "transaction" else [pg.address, pg.address]
    pool = pool_of(start_pool, *nodes, pool_mode=mode, max_backend_connections=8, load_balance_mode=True)
    before = pool.pids()
    a, b = login(pool), login(pool)
    assert a.value("select 1") == "1"
    try:
        a.send(kind.encode() + struct.pack("!I", 64 << 20))
        for _ in range(64):
            a.send(b"x" * 65536)
    except (OSError, WireClosed):
        pass  # it was sent away
    assert b.value("select 2") == "2"
    assert pool.pids() == before
    a.sock.close()
    b.bye()


@pytest.mark.parametrize("way", ["simple", "extended"])
@pytest.mark.parametrize("sets", ["set role boss", "set app.who = 'a'", "create temp table shadow(a int)"])
def test_what_is_not_parsed_ties_the_session(latin, start_pool, way, sets):
    pool = pool_of(start_pool, latin.address)
    a, b = login(pool, database="latin"), login(pool, database="latin")
    if way == "simple":
        a.simple(f"{sets}; select {BYTES}")
    elif "temp" in sets:
        a.send(parse(f"create temp table shadow as select {BYTES} as a"), bind(), execute(), SYNC)
        assert "E" not in states(a.ready())
    else:
        name, value = ("role", "boss") if "role" in sets else ("app.who", "a")
        a.send(parse(f"select set_config('{name}', '{value}', false), {BYTES}"), bind(), execute(), SYNC)
        assert "E" not in states(a.ready())
    try:
        assert b.value("select current_user || coalesce(current_setting('app.who', true), '') || "
                       "coalesce(to_regclass('shadow')::text, '')") == "postgres"
    finally:
        a.bye()
        b.bye()


def test_a_plain_mistake_ties_nothing(pg, start_pool):
    pool = pool_of(start_pool, pg.address)
    a, b = login(pool), login(pool)
    assert a.simple("selec 1")[0].sqlstate == "42601"
    a.send(parse("selec 1"), SYNC)
    a.ready()
    assert b.value("select 2") == "2"
    assert [c["pinned"] for c in table(b, "show pool_clients") if c["pinned"] != "false"] == []
    a.bye()
    b.bye()


def test_settings_named_like_key_words(pg, start_pool):
    pool = pool_of(start_pool, pg.address)
    a, b = login(pool), login(pool)
    for name in ("user.id", "order.by_", "a.select.b"):
        a.rows(f"select set_config('{name}', '5', false)")
        assert b.value(f"select coalesce(current_setting('{name}', true), '')") == ""
        assert a.value(f"select current_setting('{name}')") == "5"
    a.bye()
    b.bye()


def test_begin_in_two_spellings(pg, start_pool):
    pool = pool_of(start_pool, pg.address)
    a = login(pool)
    long = "/*" + "c" * 60000 + "*/"
    for text, tag in (("/* c */ start transaction", b"START TRANSACTION"), ("start transaction", b"START TRANSACTION"),
                      ("/* c */ begin", b"BEGIN"), ("begin", b"BEGIN"), (f"{long} begin", b"BEGIN"), ("begin ", b"BEGIN")):
        assert [m.body.rstrip(b"\0") for m in a.simple(text) if m.type == "C"] == [tag], text[:40]
        a.simple("rollback")
    a.bye()


def test_named_statement_without_a_parse_of_ours(latin, start_pool):
    """It is executed later, in another exchange."""
    pool = pool_of(start_pool, latin.address)
    a, b = login(pool, database="latin"), login(pool, database="latin")
    a.send(parse(f"select set_config('role', 'boss', false), {BYTES}", "s"), SYNC)
    a.ready()
    assert b.value("select current_user") == "postgres"
    a.send(bind(name="s"), execute(), SYNC)
    assert "E" not in states(a.ready())
    assert b.value("select current_user") == "postgres"
    a.bye()
    b.bye()
