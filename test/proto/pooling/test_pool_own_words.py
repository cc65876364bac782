# SPDX-License-Identifier: PostgreSQL
"""test_pool_own_words: what pgpool says by itself, on a link or to a client, is never put into the midst of somebody
else's message; and what it answers itself waits for who does not read it.
"""
import os
import socket
import threading
import time
from pathlib import Path

import pytest
from pooling_house import login, states

from pgt import fake as fakes
from pgt import procs, waits
from pgt.wire import COPY_DONE, FLUSH, SYNC, Wire, bind, close, copy_data, execute, message, parse, query

LONG = "A" * 60


def half_then(c: Wire, sql: str, tail: bytes) -> list:
    """`sql`, and the data of a COPY behind it of which the first half is sent at once; its last bytes are `tail`."""
    half = copy_data(b"x" * 2000)
    c.send(query(sql), half[:50])
    c.read_until("C")
    c.is_quiet(0.5)
    c.send(half[50:len(half) - len(tail)], tail)
    return c.ready()


def as_long_as(sql: str, ours: str) -> bytes:
    return query(sql + " " * (len(ours) - len(sql)))


@pytest.mark.parametrize("mode,ours", [
    ("transaction", f"SELECT pg_catalog.set_config('application_name','{LONG}',false);"),
    ("session", f"SET application_name TO '{LONG}';")])
def test_what_a_reset_undid_is_put_right_behind_half_a_message(pg, start_pool, mode, ours):
    """The server takes what comes next for the rest of that message, and what is left of it for messages of the client."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode, max_backend_connections=1)
    login(pool, application_name="before").bye()
    c = login(pool, application_name=LONG)
    assert c.value("show application_name") == LONG
    assert states(half_then(c, "reset application_name", as_long_as("set search_path to evil", ours))) == []
    assert c.value("show application_name") == LONG
    assert c.value("show search_path") != "evil"
    c.bye()
    other = login(pool)
    assert other.value("show search_path") != "evil"
    other.bye()


def test_statement_mode_rolls_back_behind_half_a_message(pg, start_pool):
    """The COPY has failed; its data are not read as messages."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="statement", max_backend_connections=1)
    pg.rows("drop table if exists own_words")
    pg.rows("create table own_words(a int)")
    c = login(pool)
    half = copy_data(b"1\n" * 2000)
    c.send(query("begin; copy own_words from stdin; commit"), copy_data(b"no number\n"), half[:50])
    assert states(c.ready()) == ["22P02"]
    c.send(half[50:], COPY_DONE)
    assert c.value("select 'on'") == "on"
    c.bye()


@pytest.mark.parametrize("asked", ["begin", "show pool_version", None], ids=["begin", "show", "sync"])
def test_half_a_notification_and_an_answer_of_ours(fake, start_pool, asked):
    """A session that keeps its link, which speaks by itself: the client gets whole messages."""
    cut = []

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            conn.send(conn.answer(kind, body))
            if b"listen" in body.lower() and b"channels" not in body:
                said = fakes.notification(7, "pieces", "S" * 300)
                conn.send(said[:100])
                cut.append(said[100:])
                waits.wait_for("the client has been answered", lambda: "go" in cut)
                conn.send(cut[0])

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction")
    w = login(pool, user="fake")
    w.rows("set pool_mode = session")
    w.rows("listen pieces")
    waits.wait_for("half of it is there", lambda: cut)
    w.is_quiet(0.3)
    w.send(SYNC if asked is None else query(asked))
    found = w.ready()
    cut.append("go")
    assert all(m.type in "TDCZ" for m in found), "".join(m.type for m in found)
    (note,) = w.read_until("A")
    assert note.body.count(b"S") == 300
    w.bye()


ASKS = {"simple": query("show pool_status"),
        "extended": parse("show pool_status") + bind() + execute() + SYNC}


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("how", ["simple", "extended"])
def test_who_asks_and_does_not_read_is_held(pg, start_pool, mode, how):
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    other = login(pool)
    before = pool.memory_kb()
    c = login(pool, seconds=60)
    sender = threading.Thread(target=lambda: c.send(ASKS[how] * 3000), daemon=True)
    sender.start()
    for _ in range(100):
        assert other.value("select 1") == "1"
        assert pool.memory_kb() < before + 20000 or procs.is_sanitized()
    found = c.ready(3000)
    sender.join()
    assert sum(m.type == "Z" for m in found) == 3000
    assert c.value("select 'on'") == "on"
    c.bye()
    other.bye()


def cpu_seconds(pool) -> float:
    ticks = 0
    for pid in pool.pids():
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_many_portals_that_set_something(pg, start_pool):
    """Each Bind looks through them: it must not take longer and longer."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    c = login(pool, seconds=60)
    c.send(parse("set own.words = 1", "s"), SYNC)
    c.ready()
    before = cpu_seconds(pool)
    c.send(b"".join(bind(portal=f"p{i}", name="s") for i in range(60000)), SYNC)
    c.ready()
    assert cpu_seconds(pool) - before < 2
    c.bye()


def test_a_long_message_behind_half_of_it_ends_the_session(pg, start_pool):
    """What is left of the data is too much to be made up."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    c, other = login(pool, application_name=LONG), login(pool)
    c.send(query("reset application_name"), message("d", b"x" * 4000000)[:50])
    found = c.read_eof()
    assert states(found) == ["08P01"]
    assert other.value("select 'on'") == "on"
    other.bye()


def test_who_asks_and_says_goodbye_early_is_answered(pg, start_pool):
    """More than is sent at once waits for a client that has closed its sending half and reads later."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    pg.rows("drop table if exists own_early")
    pg.rows("create table own_early(a int)")
    c = login(pool, seconds=60)
    c.send(ASKS["simple"] * 1000, query("insert into own_early values (1)"))
    c.sock.shutdown(socket.SHUT_WR)
    began = time.monotonic()
    waits.wait_for("a second has passed, more than a client may be gone", lambda: time.monotonic() - began > 1)
    found = c.read_eof()
    assert sum(m.type == "Z" for m in found) == 1001
    assert pg.value("select count(*) from own_early") == "1"


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_flush_behind_the_close_of_a_command_needs_no_server(pg, start_pool, mode):
    """Nothing of ours is left of that client then; the sequence is ours still, as is its Sync."""
    pool = start_pool(pg.address, num_init_children=2, pool_mode=mode)
    admin, c = login(pool), login(pool)
    assert not states(admin.simple("pgpool pause"))
    c.send(parse("show pool_version", "s") + bind(portal="p", name="s") + execute("p") + close("p", "P") + close("s") + FLUSH)
    assert [m.type for m in c.read_until("3")][-1] == "3"
    assert c.read_until("3")[-1].type == "3"
    c.send(SYNC)
    assert [m.type for m in c.ready()] == ["Z"]
    assert not states(admin.simple("pgpool resume"))
    assert c.value("select 1") == "1"
    for w in (admin, c):
        w.bye()
