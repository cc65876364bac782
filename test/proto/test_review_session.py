# SPDX-License-Identifier: PostgreSQL
"""test_review_session: links that end in mid-message, slow half-closed clients, and the queue for links."""
import signal
import struct
import threading

import pytest

from pgt import waits
from pgt.fake import complete, notice, ready, row_description
from pgt.wire import SYNC, Wire, WireClosed, WireTimeout, bind, execute, message, parse, query


def polite_login(w: Wire) -> Wire:
    found = w.login("fake", "fake")
    assert found[-1].type == "Z", found[-1].fields
    return w


def answer(conn, kind: str, body: bytes) -> None:
    """The polite answer; DISCARD ALL with its proper tag."""
    if kind == "Q" and body.upper().startswith(b"DISCARD ALL"):
        conn.send(complete("DISCARD ALL"), ready())
    else:
        conn.send(conn.answer(kind, body))


def cut_row(conn) -> None:
    """Begins a row whose last 40 bytes never come."""
    conn.greet()
    while True:
        kind, body = conn.read()
        if kind == "Q" and b"cut" in body:
            row = struct.pack("!HI", 1, 1040) + b"x" * 1000
            conn.send(row_description("v"), b"D" + struct.pack("!I", 4 + 6 + 1040) + row)
            conn.server.begun.set()
            conn.server.let_go.wait(10 * waits.SCALE)
            return
        conn.send(conn.answer(kind, body))


def rows_of(raw: bytes) -> list[bytes]:
    """Bodies of the whole DataRows in what a client received."""
    found = []
    at = 0
    while at + 5 <= len(raw):
        size = struct.unpack_from("!I", raw, at + 1)[0]
        if at + 1 + size > len(raw):
            break
        if raw[at:at + 1] == b"D":
            found.append(raw[at + 5:at + 1 + size])
        at += 1 + size
    return found


def begin_cut_row(fake, start_pool):
    server = fake(cut_row)
    server.begun = threading.Event()
    server.let_go = threading.Event()
    pool = start_pool(server.address, num_init_children=1)
    w = polite_login(Wire(pool.address, seconds=20))
    w.send(query("cut"))
    assert server.begun.wait(10 * waits.SCALE)
    w.fill(1000)
    return server, pool, w


def test_no_error_inside_a_row(fake, start_pool):
    """The server dies in the middle of a row: our message must not become the rest of it."""
    server, _, w = begin_cut_row(fake, start_pool)
    server.let_go.set()
    assert rows_of(w.read_eof_raw()) == []


def test_no_goodbye_inside_a_row(fake, start_pool):
    """Fast stop in the middle of a row."""
    server, pool, w = begin_cut_row(fake, start_pool)
    pool.daemon.signal(signal.SIGINT)
    raw = w.read_eof_raw()
    server.let_go.set()
    assert rows_of(raw) == []


def test_half_closed_client_gets_all(pg, start_pool):
    """It closed its sending half and reads late: the reply is not cut off. Of many sizes some leave the
    last bytes in pgpool's own buffer when the server has finished."""
    pool = start_pool(pg.address, num_init_children=1)
    for rows in range(1800, 3800, 40):
        w = Wire(pool.address, seconds=20, rcvbuf=4096)
        assert w.login()[-1].type == "Z"
        w.send(query(f"select repeat('x', 1000) from generate_series(1, {rows})"))
        w.half_close()
        waits.wait_for("the server has said all or cannot", lambda: not pg.sessions(
            "state = 'active' and wait_event is distinct from 'ClientWrite'"), 20)
        found = w.read_eof()
        assert ([m.type for m in found].count("D"), found[-1].type) == (rows, "Z")
        w.bye()


@pytest.mark.parametrize("is_evil", [False, True], ids=["control", "evil"])
def test_clients_input_is_never_the_servers(fake, start_pool, is_evil):
    """A client is sent away in the callback of its link: what it sent meanwhile must not be taken for
    the rest of what the server said."""
    fill = 3000
    junk = b"S" + struct.pack("!I", fill) + b"application_name\0evil\0" + b"\0" * 4000

    def script(conn) -> None:
        conn.greet()
        while True:
            kind, body = conn.read()
            if kind == "Q" and b"go" in body:
                conn.server.asked.set()
                conn.server.let_go.wait(10 * waits.SCALE)
                tail = notice("y" * fill)
                conn.send(complete("SELECT 0"), ready(), tail)
                continue
            if kind == "X":
                return
            answer(conn, kind, body)

    server = fake(script)
    server.asked = threading.Event()
    server.let_go = threading.Event()
    pool = start_pool(server.address, num_init_children=1, max_backend_connections=1)
    w = polite_login(Wire(pool.address, seconds=20))
    head = len(complete("SELECT 0") + ready())
    w.send(query("go"), message("z"))
    assert server.asked.wait(10 * waits.SCALE)
    if is_evil:
        w.send(b"\0" * head + message("Z", b"?") * 2000 + junk)
    server.let_go.set()
    w.read_eof_raw()
    second = polite_login(Wire(pool.address, seconds=20))
    assert server.links()[-1].number == server.links()[0].number, "the link was lost: " + pool.log()[-600:]
    second.bye()


def test_waiting_clients_of_two_kinds(fake, start_pool):
    """Two links come back at the same moment, two clients wait, the first of them cannot use either."""
    gate = threading.Event()
    cleaning = []

    def script(conn) -> None:
        conn.greet()
        for kind, body in conn.messages():
            if kind == "Q" and b"DISCARD" in body and not gate.is_set():
                cleaning.append(conn.number)
                gate.wait(10 * waits.SCALE)
            answer(conn, kind, body)

    server = fake(script)
    pool = start_pool(server.address, num_init_children=1, max_backend_connections=2, query_wait_timeout=8)
    first = [polite_login(Wire(pool.address, seconds=20)) for _ in range(2)]
    other = Wire(pool.address, seconds=20)
    other.send_startup("fake", "fake", options="-c work_mem=1MB")
    same = Wire(pool.address, seconds=20)
    same.send_startup("fake", "fake")
    for w in first:
        w.bye()
    waits.wait_for("both links are being cleaned", lambda: len(cleaning) == 2, 10)
    gate.set()
    assert same.authenticate("fake", "")[-1].type == "Z"
    assert other.authenticate("fake", "")[-1].type == "Z"
    other.bye()
    same.bye()


def is_refused(pool) -> bool:
    try:
        with Wire(pool.address) as w:
            w.send_startup("postgres", "postgres")
            return bool(w.read_eof(seconds=1)) or w.eof
    except WireTimeout:
        return False  # it waits for a link, as the one before the stop
    except (OSError, WireClosed):
        return True


def test_smart_stop_serves_who_waits(pg, start_pool):
    """A client that waits for a link when the smart stop begins gets the link that becomes free."""
    pool = start_pool(pg.address, num_init_children=1, max_backend_connections=1, query_wait_timeout=10)
    first = Wire(pool.address, seconds=20)
    assert first.login()[-1].type == "Z"
    second = Wire(pool.address, seconds=20)
    second.send_startup("postgres", "postgres")
    waits.wait_for("the second waits", lambda: first.rows("show pool_queue"))
    pool.daemon.signal(signal.SIGTERM)
    waits.wait_for("the stop is known", lambda: is_refused(pool))
    first.bye()
    found = second.authenticate("postgres", "")
    assert found[-1].type == "Z", found[-1].fields
    second.bye()


def test_many_messages_without_a_reply(pg, start_pool):
    """More messages under way than the book has room for: a command of ours still has its turn."""
    pool = start_pool(pg.address, num_init_children=1)
    w = Wire(pool.address, seconds=60)
    assert w.login()[-1].type == "Z"
    w.send(parse("select pg_sleep(0.5)"), bind(), execute(), parse("select 1", "s"))
    w.send((bind(name="s") + execute()) * 30000, SYNC)
    w.ready()
    found = w.simple("show pool_version")
    assert [m.type for m in found] == ["T", "D", "C", "Z"]
    w.bye()
