# SPDX-License-Identifier: PostgreSQL
"""test_reset_waits: the reset of a session that only read goes out with the next session's first message."""
import threading

import pytest

from pgt import waits
from pgt.fake import complete, data_row, error, parameter, ready, row_description
from pgt.wire import SYNC, Wire, bind, cancel_request, execute, message, parse, query


def come(pool) -> Wire:
    w = Wire(pool.address, seconds=20)
    found = w.login("fake", "fake")
    assert found[-1].type == "Z", found[-1].fields
    return w


class Script:
    """A server that notes what it is asked; `reset` answers a reset, given how many came before on that link."""

    def __init__(self, reset=None):
        self.log: list[tuple[int, str]] = []
        self.reset = reset or (lambda conn, nth: conn.send(complete("DISCARD ALL"), ready()))

    def __call__(self, conn) -> None:
        conn.greet()
        resets = 0
        while True:
            kind, body = conn.read()
            if kind == "X":
                return
            text = body.rstrip(b"\0").decode() if kind == "Q" else kind
            self.log.append((conn.number, text))
            if text == "DISCARD ALL":
                resets += 1
                self.reset(conn, resets)
            else:
                conn.send(conn.answer(kind, body))

    def texts(self) -> list[str]:
        return [text for _, text in self.log]


def warm(pool) -> None:
    """The first reset of a pool is never postponed."""
    w = come(pool)
    w.rows("select 0")
    w.bye()


def started(fake, start_pool, script, **conf):
    server = fake(script)
    pool = start_pool(server.address, **{"num_init_children": 1, "max_backend_connections": 1, "reset_query_delay": 1000,
                                         "role_check_delay": 0, **conf})
    warm(pool)
    waits.wait_for("the first session is reset", lambda: script.texts()[-1:] == ["DISCARD ALL"], 10)
    return server, pool


def test_goes_out_with_the_next_message(fake, start_pool):
    """The server answers the second reset only when it has read what comes behind."""
    def slow(conn, nth):
        if nth > 1:
            kind, body = conn.read()
            script.log.append((conn.number, body.rstrip(b"\0").decode()))
            conn.send(complete("DISCARD ALL"), ready(), conn.answer(kind, body))
        else:
            conn.send(complete("DISCARD ALL"), ready())

    script = Script(slow)
    server, pool = started(fake, start_pool, script)
    for number in (1, 2):
        w = come(pool)
        assert w.rows(f"select {number};") == [[b"1"]]
        w.bye()
    assert script.texts()[2:5] == ["select 1;", "DISCARD ALL", "select 2;"]
    assert len(server.links()) == 1


def test_goes_out_alone_when_nobody_comes(fake, start_pool):
    script = Script()
    _, pool = started(fake, start_pool, script, reset_query_delay=10)
    w = come(pool)
    w.rows("select 1")
    w.bye()
    waits.wait_for("the reset", lambda: script.texts()[-2:] == ["select 1", "DISCARD ALL"], 10)


@pytest.mark.parametrize("sql", ["select f(1)", "set a.b = 1", "select 1; set a.b = 1", "insert into t values (1)", "listen x",
                                 "with x as (delete from t returning 1) table x", "P select f(1)"])
def test_what_may_leave_traces_is_undone_at_once(fake, start_pool, sql):
    """The next client is not let in before the reset is answered."""
    gate = threading.Event()

    def held(conn, nth):
        if nth > 1:
            gate.wait(10 * waits.SCALE)
        conn.send(complete("DISCARD ALL"), ready())

    script = Script(held)
    _, pool = started(fake, start_pool, script)
    w = come(pool)
    w.send(parse(sql[2:]) + SYNC if sql[0] == "P" else query(sql))
    w.ready()
    w.bye()
    other = Wire(pool.address, seconds=20)
    other.send_startup("fake", "fake")
    waits.wait_for("the reset", lambda: script.texts()[-1] == "DISCARD ALL", 10)
    assert other.is_quiet(0.05)
    gate.set()
    assert other.authenticate("fake", "")[-1].type == "Z"
    other.bye()


@pytest.mark.parametrize("delay", [0, 1000])
def test_another_servers_tag(fake, start_pool, delay):
    """Others that speak like PostgreSQL call it DISCARD: the connection serves on."""
    script = Script(lambda conn, nth: conn.send(complete("DISCARD"), ready()))
    _, pool = started(fake, start_pool, script, reset_query_delay=delay)
    for n in range(1, 4):
        w = come(pool)
        w.rows(f"select {n}")
        w.bye()
        waits.wait_for("the reset", lambda: script.texts().count("DISCARD ALL") == n + 1, 10)
    assert {number for number, _ in script.log} == {script.log[0][0]}


@pytest.mark.parametrize("answer", [
    pytest.param(error("58000", "no"), id="error"), pytest.param(complete("DISCARD ALL") + ready("T"), id="transaction"),
    pytest.param(row_description("v") + data_row("not yours") + ready(), id="row"), pytest.param(complete("SELECT 1") + ready(), id="tag")])
def test_a_reset_that_fails_ends_the_session(fake, start_pool, answer):
    """Its client is told; nothing of the answer reaches it, and the pool does not rely on resets any more."""
    def failing(conn, nth):
        conn.send(answer + ready() if nth > 1 else complete("DISCARD ALL") + ready())

    script = Script(failing)
    server, pool = started(fake, start_pool, script)
    w = come(pool)
    w.rows("select 1")
    w.bye()
    w = come(pool)
    w.send(query("select 2"))
    found = w.read_eof()
    assert [m.type for m in found] == ["E"], found
    assert found[0].fields["C"] == "08006" and "could not be reset" in found[0].fields["M"]
    w = come(pool)
    w.rows("select 3")
    w.bye()
    waits.wait_for("at once again", lambda: script.texts()[-1] == "DISCARD ALL", 0.8 * waits.SCALE)
    assert len(server.links()) == 2


def test_what_the_reset_changes_is_told(fake, start_pool):
    def telling(conn, nth):
        conn.send(parameter("DateStyle", "ISO, YMD") if nth > 1 else b"", complete("DISCARD ALL"), ready())

    _, pool = started(fake, start_pool, Script(telling))
    w = come(pool)
    w.rows("select 1")
    w.bye()
    w = come(pool)
    assert [m.type for m in w.simple("select 2")] == ["S", "T", "D", "C", "Z"]
    w.bye()


def test_a_cancel_waits_for_the_reset(fake, start_pool):
    gate = threading.Event()

    def held(conn, nth):
        if nth > 1:
            gate.wait(10 * waits.SCALE)
        conn.send(complete("DISCARD ALL"), ready())

    server, pool = started(fake, start_pool, Script(held))
    w = come(pool)
    w.rows("select 1")
    w.bye()
    w = Wire(pool.address, seconds=20)
    key = next(m for m in w.login("fake", "fake") if m.type == "K").body
    w.send(query("select 2"))
    with pool.address.connect(20) as sock:
        sock.sendall(cancel_request(int.from_bytes(key[:4], "big"), key[4:]))
        assert w.is_quiet(0.05) and server.cancels == []
        gate.set()
        waits.wait_for("the cancel", lambda: server.cancels)
        assert sock.recv(1) == b"", "who asked hears of it, too"
    w.ready()
    w.bye()


@pytest.mark.parametrize("rest", [parse("select 1"), message("H"), parse("select 1") + message("H")])
def test_a_goodbye_behind_the_reset(fake, start_pool, rest):
    """Nothing but the reset has an end to wait for."""
    _, pool = started(fake, start_pool, Script())
    w = come(pool)
    w.rows("select 1")
    w.bye()
    w = come(pool)
    w.send(rest + message("X"))
    w.read_eof(seconds=20)
    with come(pool) as other:
        assert other.rows("select 2") == [[b"1"]]


SETUP = """create or replace view reset_sets as select set_config('work_mem', '5MB', false) as v;
    create or replace view reset_locks as select cast(pg_advisory_lock(4711) as text) as v;
    grant select on reset_sets, reset_locks to public"""


def shown(w: Wire, name: str) -> bytes:
    return w.rows(f"select setting from pg_settings where name = '{name}'")[0][0]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_nothing_is_left_for_the_next(pg, start_pool, workers, mode):
    """Views hide what sets and locks; the next client, whatever its mode and worker, meets neither."""
    pg.rows(SETUP)
    pool = start_pool(pg.address, num_init_children=workers, max_backend_connections=1, reset_query_delay=1000)
    for turn in range(12):
        with Wire(pool.address, seconds=20) as w:
            w.login(**({"pool_mode": mode} if turn % 3 == 1 else {}))
            assert shown(w, "work_mem") == b"4096", turn
            # Of this session there would be one for ever; one of a connection that was closed goes with its process.
            waits.wait_for(f"nobody holds a lock, {turn}", lambda w=w: w.rows("select pid from pg_locks where locktype = 'advisory'") == [])
            if turn % 3 != 1:
                w.rows("table reset_sets")
                w.rows("table reset_locks")
                assert shown(w, "work_mem") == b"5120"
            w.bye()


def test_the_unnamed_statement_is_nobodys(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1, max_backend_connections=1, reset_query_delay=1000)
    for _ in range(3):
        with Wire(pool.address, seconds=20) as w:
            w.login()
            w.send(bind(), execute(), SYNC)
            assert [m.fields["C"] for m in w.ready() if m.type == "E"] == ["26000"]
            w.send(parse("select 1"), SYNC)
            w.ready()
            w.bye()


def test_a_slow_reset_keeps_nobody_waiting(fake, start_pool):
    """A connection that does not become idle counts as one to come for a moment only: the next one gets its own."""
    go_on = threading.Event()

    gone = []

    def slow(conn, nth):
        conn.sock.settimeout(0.05)
        while not go_on.is_set() and not gone:
            try:
                gone.extend([True] if conn.sock.recv(1) == b"" else [])
            except TimeoutError:
                pass
        conn.sock.settimeout(None)
        conn.send(complete("DISCARD ALL"), ready())

    script = Script(slow)
    server = fake(script)
    pool = start_pool(server.address, num_init_children=1)
    try:
        first = come(pool)
        first.rows("set work_mem = '5MB'")
        first.bye()
        waits.wait_for("the reset is asked for", lambda: "DISCARD ALL" in script.texts(), 10)
        others = [come(pool) for _ in range(2)]
        assert len(server.links()) == 3
        assert not gone, "it was not given up: nobody waited for that"
    finally:
        go_on.set()
    for w in others:
        assert w.rows("select 1") == [[b"1"]]
        w.bye()
