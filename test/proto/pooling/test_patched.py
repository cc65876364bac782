# SPDX-License-Identifier: PostgreSQL
"""A kept connection that was opened with other start-up parameters: the client's own are what RESET goes back to, as on a server."""
import pytest

from pgt import waits
from pgt.wire import COPY_DONE, SYNC, Wire, bind, copy_data, execute, parse, query

from pooling_house import login

CAIRO, UTC = "set timezone = 'Africa/Cairo'", "set timezone = 'UTC'"
LOOK = "select current_setting('timezone'), current_setting('datestyle')"
RESETS = ["reset timezone", "reset all", "discard all", "set timezone to default", "set time zone local", "set session timezone to default",
          "select set_config('timezone', null, false)", "do $$ begin reset timezone; end $$", "begin; reset timezone; commit",
          "begin; reset timezone; rollback", "begin; set local timezone to default; commit",
          "set timezone = 'Europe/Paris'; set timezone to default", "begin; set timezone = 'UTC'; rollback", "select 'no reset'"]


@pytest.fixture(name="pairs")
def direct_and_through(pg, start_pool):
    """Makes clients of the server, and clients whose connection was opened by a client with another time zone."""
    pool = start_pool(pg.address, num_init_children=1, default_pool_size=1)
    with login(pool, TimeZone="UTC", DateStyle="SQL, DMY") as before:
        pid = before.value("select pg_backend_pid()")

    def kept() -> Wire | None:
        w = login(pool, timezone="Asia/Tokyo", DateStyle="German")
        if w.value("select pg_backend_pid()") == pid:
            return w
        w.bye()
        return None

    def make() -> tuple[Wire, Wire]:
        direct = Wire(pg.address)
        direct.login(timezone="Asia/Tokyo", DateStyle="German")
        return direct, waits.wait_for("the kept connection", kept)

    return make


def seen(w: Wire) -> tuple:
    return w.rows(LOOK), w.status["TimeZone"], w.status["DateStyle"]


def answers(messages) -> list:
    return [m.row() if m.type == "D" else m.sqlstate for m in messages if m.type in "DE"]


def differing(pairs, ask) -> list:
    """Texts for which the two do not say the same."""
    found = []
    for sql in RESETS:
        both = pairs()
        told = []
        for w in both:
            with w:
                told.append(ask(w, sql))
        if told[0] != told[1]:
            found.append((sql, *told))
    return found


@pytest.mark.parametrize("before", [CAIRO, UTC, "select 1"])
def test_reset(pairs, before):
    """UTC is what the connection goes back to by itself: that the client has SET it, too, is not to be taken for that."""

    def ask(w: Wire, sql: str) -> list:
        w.simple(before)
        w.simple(sql)
        told = [seen(w)]
        for then in ("begin", sql, LOOK, "commit", LOOK):
            told.append(answers(w.simple(then)) if "set_config" not in then else w.simple(then)[-1])
        return [*told, seen(w)]

    assert not differing(pairs, ask)


def extended(sql: str) -> bytes:
    return parse(sql) + bind() + execute() + SYNC


@pytest.mark.parametrize("before", [CAIRO, UTC])
@pytest.mark.parametrize("chunk", [0, 7])
def test_what_was_sent_behind_it(pairs, before, chunk):
    """Without waiting, as drivers do that reset a session in front of its next statement."""

    def ask(w: Wire, sql: str) -> list:
        w.chunk = chunk
        w.simple(before)
        w.send(query(sql.replace("select set", "do $$ begin perform set") + ("; end $$" if "set_config" in sql else "")), extended(LOOK),
               extended("begin"), query("reset timezone"), query(LOOK), query("commit"), extended(LOOK),
               extended("set timezone to default"), query("create temp table t(a text); copy t from stdin"), copy_data(b"a\n"), COPY_DONE,
               query(LOOK), parse("reset all") + bind() + execute() + SYNC + query(LOOK))
        told = answers(w.ready(12))
        w.chunk = 0
        return [*told, seen(w)]

    assert not differing(pairs, ask)
