# SPDX-License-Identifier: PostgreSQL
"""test_pool_startup: session mode over one server, where the kept connections were opened with other start-up parameters: the client's own
are what RESET goes back to, as on a server."""
import pytest

from pgt.wire import COPY_DONE, SYNC, Wire, bind, copy_data, execute, parse, query

from pooling_house import login

CAIRO, UTC = "set timezone = 'Africa/Cairo'", "set timezone = 'UTC'"
LOOK = "select current_setting('timezone'), current_setting('datestyle')"
RESETS = ["reset timezone", "reset all", "discard all", "set timezone to default", "set time zone local", "set session timezone to default",
          "begin; reset timezone; commit", "begin; reset timezone; rollback", "begin; set local timezone to default; commit",
          "set timezone = 'Europe/Paris'; set timezone to default", "begin; set timezone = 'UTC'; rollback", "select 'no reset'"]
BY_CODE = ["do $$ begin reset timezone; end $$", "do $$ begin perform set_config('timezone', null, false); end $$"]


@pytest.fixture(name="pool")
def with_others_connection(pg, start_pool):
    """One connection, which a client with parameters of its own has opened."""
    pool = start_pool(pg.address, num_init_children=1, default_pool_size=1)
    with login(pool, TimeZone="UTC", DateStyle="SQL, DMY") as before:
        assert before.value("show timezone") == "UTC"
    return pool


@pytest.fixture(name="pairs")
def direct_and_through(pg, pool):
    """Makes clients of the server, and clients that find only that connection."""

    def make() -> tuple[Wire, Wire]:
        direct = Wire(pg.address)
        direct.login(timezone="Asia/Tokyo", DateStyle="German")
        return direct, login(pool, timezone="Asia/Tokyo", DateStyle="German")

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
    """Whatever the client itself has SET in between."""

    def ask(w: Wire, sql: str) -> list:
        w.simple(before)
        w.simple(sql)
        told = [seen(w)]
        for then in ("begin", sql, LOOK, "commit", LOOK):
            told.append(answers(w.simple(then)))
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
        w.send(query(sql), extended(LOOK),
               extended("begin"), query("reset timezone"), query(LOOK), query("commit"), extended(LOOK),
               extended("set timezone to default"), query("create temp table t(a text); copy t from stdin"), copy_data(b"a\n"), COPY_DONE,
               query(LOOK), parse("reset all") + bind() + execute() + SYNC + query(LOOK))
        told = answers(w.ready(12))
        w.chunk = 0
        return [*told, seen(w)]

    assert not differing(pairs, ask)


@pytest.mark.parametrize("sql", BY_CODE)
def test_what_code_resets_is_the_servers(pg, pool, sql):
    """A known gap: nobody looks into code. It is the server's value then, never that of another client."""
    with Wire(pg.address) as direct:
        direct.login()
        servers = direct.value("show timezone")
    with login(pool, TimeZone="Asia/Tokyo") as c:
        assert c.value("show timezone") == "Asia/Tokyo"
        c.simple(sql)
        assert c.value("show timezone") == servers
        c.simple("reset timezone")
        assert c.value("show timezone") == "Asia/Tokyo"


def test_clients_who_differ_one_by_one_share(pool):
    """The connection that was opened for the first of them is everybody's."""
    pids = set()
    for n in range(4):
        with login(pool, application_name=f"worker {n}", extra_float_digits="2", search_path=f"s{n}", TimeZone="Asia/Tokyo") as c:
            assert c.rows("select current_setting('application_name'), current_setting('search_path'), current_setting('extra_float_digits'), "
                          "current_setting('timezone')") == [[f"worker {n}".encode(), f"s{n}".encode(), b"2", b"Asia/Tokyo"]]
            pids.add(c.value("select pg_backend_pid()"))
    assert len(pids) == 1
    with login(pool) as plain:
        assert plain.value("select pg_backend_pid()") == pids.pop(), "who has none of his own finds one of his kind"
        assert plain.value("show search_path") != "s3"


def test_what_start_up_alone_can_set(pool):
    """By no SET could it be had: a connection of its own."""
    with login(pool, TimeZone="Asia/Tokyo") as c:
        assert c.value("show timezone") == "Asia/Tokyo"
    with login(pool, options="-c ignore_system_indexes=on -c timezone=Asia/Tokyo") as c:
        assert c.value("show ignore_system_indexes") == "on"
        c.simple("reset timezone")
        assert c.value("show timezone") == "Asia/Tokyo"


def test_a_value_that_no_server_takes(pool):
    """The server's own error, and the connection is there for the next one."""
    w = Wire(pool.address)
    found = w.login(TimeZone="Nowhere/Land")
    assert [m.sqlstate for m in found if m.type == "E"] == ["22023"]
    with login(pool, TimeZone="Asia/Tokyo") as c:
        assert c.value("show timezone") == "Asia/Tokyo"


def test_temporary_tables_and_cursors_stay(pool):
    """It is a session all the same: all that is made in it lives on its connection, up to its end."""
    with login(pool, application_name="keeps") as c:
        c.simple("create temp table mine(a int)")
        c.simple("insert into mine values (7)")
        c.simple("prepare p as select a from mine")
        assert c.value("execute p") == "7"
        c.simple("begin; declare h cursor with hold for select a from mine; commit")
        assert c.value("fetch h") == "7"
        c.simple("select pg_advisory_lock(4711)")
        assert c.value("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()") == "1"
    with login(pool, application_name="next") as c:
        assert c.value("select to_regclass('pg_temp.mine') is null") == "t"
        assert c.value("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()") == "0"
        assert c.value("select count(*) from pg_prepared_statements") == "0"
