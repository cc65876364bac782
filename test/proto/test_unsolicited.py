# SPDX-License-Identifier: PostgreSQL
"""test_unsolicited: what a server may say unasked, between every pair of messages: T13 of the
catalogue; and servers that misbehave."""
import struct

import pytest

from pgt import waits
from pgt.fake import (BIND_COMPLETE, PARSE_COMPLETE, complete, data_row, error, key_data, notice,
                      notification, parameter, ready, row_description)
from pgt.wire import SYNC, Wire, message, pg, query

# The reply to one query, message by message, in both protocols.
SIMPLE = [row_description("v"), data_row("1"), data_row("2"), complete("SELECT 2"), ready()]
EXTENDED = [PARSE_COMPLETE, BIND_COMPLETE, row_description("v"), data_row("1"), complete("SELECT 1"), ready()]
EXTRA = {
    "notice": notice("by the way"),
    "notification": notification(4711, "channel", "payload"),
    "parameter": parameter("TimeZone", "Asia/Tokyo"),
    "three": notice("a") + parameter("application_name", "x") + notification(1, "c", ""),
}
# How the server writes: everything at once, byte by byte, in threes.
CHUNKS = pytest.mark.parametrize("chunk", [0, 1, 3])


def scripted(replies: bytes, chunk: int = 0, after=None):
    """A server that answers each query of the client's with `replies`."""
    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if (kind == "Q" and b"ours" in body) or (kind == "S" and "E" in conn.seen[-3:]):
                conn.send(replies, chunk=chunk)
                if after is not None:
                    after(conn)
            elif kind == "Q":
                conn.send(conn.answer(kind, body))
            elif kind == "S":
                conn.send(ready())
    return script


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("flood", ["names", "bytes", "login"])
def test_a_flood_of_parameters_ends_the_link(fake, start_pool, mode, flood):
    """What a server reports is kept: it has to have an end. Another client of the worker is served meanwhile."""
    many = b"".join(parameter(f"name_{i}", "x" * (2000 if flood == "bytes" else 1)) for i in range(300))

    def script(conn):
        if flood == "login" and conn.params.get("database") == "flood":
            conn.greet(status={f"name_{i}": "x" for i in range(300)})
        else:
            conn.greet()
        for kind, body in conn.messages():
            if kind == "Q" and b"ours" in body:
                conn.send(many + b"".join(SIMPLE))
            else:
                conn.send(conn.answer(kind, body))

    pool = start_pool(fake(script).address, pool_mode=mode, num_init_children=1)
    with Wire(pool.address) as w, Wire(pool.address) as other:
        assert other.login("fake")[-1].type == "Z"
        found = w.login("fake", "flood")
        if flood != "login":
            assert found[-1].type == "Z"
            w.send(query("select ours"))
            found = [m for m in w.read_until("E")]
        assert found[-1].sqlstate == "08P01" or mode == "transaction", found[-1].fields
        assert "reports more parameters than anybody needs" in pool.log()
        assert other.simple("select 1")[-1].type == "Z"


def flat(messages) -> bytes:
    return b"".join(message(m.type, m.body) for m in messages)


@CHUNKS
@pytest.mark.parametrize("extra", EXTRA.values(), ids=EXTRA.keys())
@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_t13_between_every_pair(fake, start_pool, extra, extended, chunk):
    """The extra messages at each place inside the reply arrive there, and nothing is lost or moved."""
    parts = EXTENDED if extended else SIMPLE
    replies = []
    for position in range(len(parts)):
        replies.append(b"".join(parts[:position]) + extra + b"".join(parts[position:]))
    turn = iter(replies)

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if (kind == "Q" and b"ours" in body) or (kind == "S" and "P" in conn.seen[-5:]):
                conn.send(next(turn), chunk=chunk)
            elif kind in "QS":
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address)
    with Wire(pool.address) as w:
        assert w.login("fake", "fake")[-1].type == "Z"
        for expected in replies:
            w.send(pg("ours"), SYNC) if extended else w.send(query("ours"))
            assert flat(w.ready()) == expected


NO_ROOM = {
    "full": error("53300", "sorry, too many clients already", "FATAL"),
    "starting": error("57P03", "the database system is starting up", "FATAL"),
}


@CHUNKS
@pytest.mark.parametrize("fatal", NO_ROOM.values(), ids=NO_ROOM.keys())
def test_login_waits_for_room(fake, start_pool, fatal, chunk):
    """A server that has no room now is asked again: the client waits, and is let in when there is room."""
    left = [2]

    def script(conn):
        if left[0] > 0:
            left[0] -= 1
            conn.send(fatal, chunk=chunk)
            conn.close()
            return
        conn.greet()
        for kind, body in conn.messages():
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address)
    with Wire(pool.address, seconds=20) as w:
        assert w.login("fake", "fake")[-1].type == "Z"
    assert left[0] == 0



@CHUNKS
@pytest.mark.parametrize("extra", EXTRA.values(), ids=EXTRA.keys())
def test_t13_while_idle(fake, start_pool, extra, chunk):
    """Behind ReadyForQuery, when nobody asked: it reaches the client who holds the link."""
    server = fake(scripted(b"".join(SIMPLE) + extra, chunk))
    pool = start_pool(server.address)
    with Wire(pool.address) as w:
        w.login("fake", "fake")
        w.send(query("ours"))
        assert flat(w.ready()) == b"".join(SIMPLE)
        assert w.take(len(extra)) == extra
        w.send(query("ours"))
        assert flat(w.ready()) == b"".join(SIMPLE)


@CHUNKS
@pytest.mark.parametrize("sqlstate", ["57P01", "57P05", "40001"])
def test_t13_fatal_at_each_position(fake, start_pool, sqlstate, chunk):
    """What came before it, the FATAL itself, then the end; the pool goes on with a new link."""
    fatal = error(sqlstate, "the server says so", "FATAL")
    replies = [b"".join(SIMPLE[:position]) + fatal for position in range(len(SIMPLE) + 1)]
    turn = {"next": b""}

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if kind == "Q" and b"ours" in body:
                conn.send(turn["next"], chunk=chunk)
                return
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address)
    for reply in replies:
        turn["next"] = reply
        w = Wire(pool.address)
        w.login("fake", "fake")
        w.send(query("ours"))
        assert flat(w.read_eof()) == reply
        with Wire(pool.address) as again:
            again.login("fake", "fake")
            assert again.value("select 1") == "1"
    assert len(server.links()) >= 2


# What a server says to one session: an operator's command, time-outs of sessions, a recovery conflict, no room,
# a start or an end under way, refusals.
OF_ONE_SESSION = ("57P01", "57P02", "57P05", "25P03", "25P04", "40001", "53300", "57P03", "28P01", "28000", "3D000", "42501")


def test_t22_no_words_to_a_session_mark_a_server_down(fake, start_pool):
    """At the login, as the answer to a query, to an idle session; and a connection that ends without a word."""
    turn = {"code": "", "at": ""}

    def script(conn):
        fatal = error(turn["code"], "the server says so", "FATAL") if turn["code"] else b""
        if turn["at"] == "login":
            turn["at"] = ""
            conn.send(fatal)
            return
        conn.greet()
        if turn["at"] == "idle":
            conn.send(fatal)
            return
        while conn.read()[0] not in ("Q", "X"):
            pass
        conn.send(fatal)

    server = fake(script)
    pool = start_pool(server.address, health_check_period=1, health_check_max_retries=0, query_wait_timeout="300ms",
                      failover_on_backend_error=True)
    for code in (*OF_ONE_SESSION, ""):
        for at in ("login", "query", "idle"):
            turn.update(code=code, at=at)
            with Wire(pool.address) as w:
                if w.login("fake", "fake")[-1].type == "Z":
                    w.send(query("select 1"))
                    w.read_eof()

    def is_up() -> bool:
        """As soon as it is let in, for which there are 300 ms."""
        with Wire(pool.address) as w:
            if w.login("other", "other")[-1].type != "Z":
                return False
            found = w.rows("show pool_nodes")
            assert [r[3] for r in found] == [b"up"], found
            return True
    waits.wait_for("it is asked", is_up)
    log = pool.log()
    for words in ("health check failed", "egenerat", "is shutdown", "marked"):
        assert words not in log.split("successfully started", 1)[1], log[-3000:]


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("position", range(len(SIMPLE) + 1))
def test_server_drops_at_each_position(fake, start_pool, position, how):
    """The client gets the whole messages that were sent, at most one error of ours, and the end."""
    before = b"".join(SIMPLE[:position])
    cut = b"".join(SIMPLE)[len(before):len(before) + 3] if position < len(SIMPLE) else b""
    server = fake(scripted(before + (cut if how == "close" else b""),
                           after=lambda conn: conn.close() if how == "close" else conn.reset()))
    pool = start_pool(server.address)
    w = Wire(pool.address)
    w.login("fake", "fake")
    w.send(query("ours"))
    got = w.read_eof()
    if how == "close":
        assert flat(got).startswith(before)
        rest = got[position:]
    else:
        rest = [m for m in got if m.type == "E"]
    assert [m.type for m in rest] in ([], ["E"]), got
    assert all(m.fields["S"] == "FATAL" for m in rest)
    with Wire(pool.address) as again:
        again.login("fake", "fake")
        assert again.value("select 1") == "1"


GARBAGE = {
    "zero_length": b"D\0\0\0\0", "length_three": b"D\0\0\0\3", "negative": b"D\xff\xff\xff\xff",
    "min_int": b"C\x80\0\0\0", "unknown_type": message("?", b"x"), "nul_type": b"\0\0\0\0\4",
    "client_type": message("Q", b"select 1\0"), "http": b"HTTP/1.1 200 OK\r\n\r\n",
    "ready_twice": b"".join(SIMPLE) + ready() + ready(), "ready_unknown_status": b"".join(SIMPLE[:-1]) + ready("?"),
    "auth_again": message("R", struct.pack("!I", 0)) + b"".join(SIMPLE),
    "key_again": key_data(1, b"abcd") + b"".join(SIMPLE),
    "copy_both": message("W", b"\0\0\0"), "short_parameter": message("S", b"x"), "empty_ready": message("Z"),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_server_sends_garbage(fake, start_pool, garbage):
    """The session may end; other sessions, the process and the next login do not care."""
    state = {"mad": True}

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if kind == "Q" and b"ours" in body and state["mad"]:
                conn.send(garbage)
            elif kind == "Q" and b"stay" in body:
                conn.send(b"".join(SIMPLE))
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address)
    with Wire(pool.address) as calm:
        calm.login("fake", "fake")
        before = pool.pids()
        mad = Wire(pool.address, seconds=20)
        mad.login("fake", "fake")
        mad.send(query("ours"))
        try:
            mad.read_eof_raw(1)
        except AssertionError:
            pass
        mad.reset()
        state["mad"] = False
        assert len(calm.rows("stay")) == 2
        with Wire(pool.address) as fresh:
            fresh.login("fake", "fake")
            assert len(fresh.rows("stay")) == 2
        assert pool.pids() == before


@pytest.mark.parametrize("late", [b"", b"".join(SIMPLE), notice("late"), error("57P01", "late", "FATAL")],
                         ids=["nothing", "reply", "notice", "fatal"])
def test_late_messages_reach_nobody_else(fake, start_pool, late):
    """The client leaves in mid-query; what its link says late never reaches the next client."""
    ask = {"gone": False}

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if kind == "Q" and b"slow" in body:
                conn.send(row_description("v"), data_row("secret of the first"))
                waits.wait_for("the client is gone", lambda: ask["gone"], 20)
                conn.send(data_row("secret too"), complete("SELECT 2"), ready(), late)
            elif kind == "Q" and b"mine" in body:
                conn.send(row_description("v"), data_row("mine"), complete("SELECT 1"), ready())
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, max_backend_connections=1, num_init_children=1)
    first = Wire(pool.address)
    first.login("fake", "fake")
    first.send(query("slow"))
    first.read_until("D")
    first.reset()
    ask["gone"] = True
    for _ in range(5):
        with Wire(pool.address, seconds=20) as w:
            found = w.login("fake", "fake")
            assert found[-1].type == "Z", found[-1].fields
            w.send(query("mine"))
            assert [m.body for m in w.ready() if m.type == "D"] == [data_row("mine")[5:]]


LOGIN_END = {
    "refused": error("28P01", 'password authentication failed for user "fake"', "FATAL"),
    "no_database": error("3D000", 'database "fake" does not exist', "FATAL"),
}


@CHUNKS
@pytest.mark.parametrize("fatal", LOGIN_END.values(), ids=LOGIN_END.keys())
def test_login_refused_by_server(fake, start_pool, fatal, chunk):
    """The server's words reach the client unchanged, and the node is not held for dead."""
    state = {"no": True}

    def script(conn):
        if state["no"]:
            conn.send(fatal, chunk=chunk)
            conn.close()
            return
        conn.greet()
        for kind, body in conn.messages():
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address)
    for _ in range(3):
        w = Wire(pool.address)
        w.send_startup("fake")
        assert flat(w.read_eof()) == fatal
    state["no"] = False
    with Wire(pool.address) as w:
        assert w.login("fake", "fake")[-1].type == "Z"


@CHUNKS
def test_notices_during_login(fake, start_pool, chunk):
    """Notices and settings in odd places of the login."""
    def script(conn):
        conn.send(notice("before"), message("R", struct.pack("!I", 0)), notice("after"),
                  parameter("client_encoding", "UTF8"), parameter("server_version", "15.9"),
                  parameter("my.own", "1"), key_data(conn.pid, b"abcd"), notice("last"), ready(), chunk=chunk)
        while True:
            kind, body = conn.read()
            if kind == "X":
                return
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address)
    with Wire(pool.address) as w:
        found = w.login("fake", "fake")
        assert found[-1].type == "Z"
        assert w.status["my.own"] == "1"
        assert w.value("select 1") == "1"


@pytest.mark.parametrize("chunk", [1, 2, 5, 1000])
def test_replies_in_pieces(fake, start_pool, chunk):
    """A long reply written in small pieces comes through byte for byte."""
    body = b"".join([row_description("v"), *(data_row(str(i) * (i % 40)) for i in range(300)),
                     complete("SELECT 300"), ready()])
    server = fake(scripted(body, chunk))
    pool = start_pool(server.address)
    with Wire(pool.address) as w:
        w.login("fake", "fake")
        for _ in range(3):
            w.send(query("ours"))
            assert flat(w.ready()) == body


def test_last_words_on_an_idle_link(fake, start_pool):
    """The server says that it ends an idle connection and takes its time over it: nobody gets that one."""
    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if b"DISCARD ALL" not in body:
                conn.send(conn.answer(kind, body))
                continue
            last_words = error("57P01", "terminating connection", "FATAL") if conn.number == first else b""
            conn.send(complete("DISCARD ALL"), ready(), last_words)
            if last_words:
                told.append(conn)
    first, told = 0, []
    server = fake(script)
    pool = start_pool(server.address, num_init_children=1)
    with Wire(pool.address) as w:
        w.login("fake", "fake")
        first = server.links()[-1].number
        w.bye()
    waits.wait_for("it has said so", lambda: told)
    with Wire(pool.address) as w:
        w.login("fake", "fake")
        assert w.value("select 1") == "1"
        assert server.links()[-1].number != first
        w.bye()
