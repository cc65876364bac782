# SPDX-License-Identifier: PostgreSQL
"""test_copy_owed: a COPY FROM STDIN with a Sync in it fails, and how many ReadyForQuery are owed is found out.

libpq sends a Sync with the Execute, which the server ignores while it copies, and another behind the data. Whether the
first one was read before the COPY failed only the server knows; decisions/0001."""
import socket
import struct
import threading

import pytest
from pooling_house import login, states

from pgt import waits
from pgt.fake import BIND_COMPLETE, CLOSE_COMPLETE, PARSE_COMPLETE, FakeServer, complete, error, ready
from pgt.wire import COPY_DONE, FLUSH, SYNC, TERMINATE, Wire, bind, copy_data, copy_fail, execute, message, parse, query
from pgt.wire import pg as pgx

COPY = "copy owed from stdin"
BAD = copy_data(b"bad\n")
SESSION = {"num_init_children": 1}
CONFS = {"session": SESSION, "transaction": {**SESSION, "pool_mode": "transaction", "max_backend_connections": 1},
         "balanced": {**SESSION, "load_balance_mode": True}}
MODES = pytest.mark.parametrize("mode", CONFS)
# Behind CopyInResponse, with how many ReadyForQuery a server answers in the end, for it fails at the first bad row.
STREAMS = {"libpq": ([BAD, COPY_DONE, SYNC], 1), "unread": ([BAD, SYNC, COPY_DONE, SYNC], 2),
           "many": ([SYNC, BAD, SYNC, SYNC, COPY_DONE, SYNC], 3), "fail": ([copy_fail("no"), SYNC], 1),
           "no_end": ([BAD, SYNC], 1), "half_before": ([SYNC, copy_data(b"1\n"), BAD, COPY_DONE, SYNC], 1)}


@pytest.fixture(autouse=True)
def owed(pg):
    pg.rows("create table if not exists owed(a int)")


def pool_of(start_pool, pg, mode):
    return start_pool(*[pg.address] * (2 if mode == "balanced" else 1), **CONFS[mode])


def goes_on(c, pid=None):
    """Each answer is that of its question, whatever has to wait for the end of what was before."""
    for sql, found in (("set my.own = 'y'", []), ("begin", []), ("select 'in'", ["in"]), ("rollback", []),
                       ("show my.own", ["y"]), ("select 'alive'", ["alive"])):
        answer = c.simple(sql)
        assert states(answer) == []
        assert [m.row()[0].decode() for m in answer if m.type == "D"] == found
    c.send(pgx("select 'extended'"), SYNC)
    assert [m.row() for m in c.ready() if m.type == "D"] == [[b"extended"]]
    if pid is not None:
        assert c.value("select pg_backend_pid()") == pid


@MODES
@pytest.mark.parametrize("stream", STREAMS)
def test_replies_are_those_of_the_server(pg, start_pool, mode, stream):
    sent, count = STREAMS[stream]
    one = pool_of(start_pool, pg, mode)
    seen = []
    for address in (pg.address, one.address):
        c = Wire(address)
        c.login()
        c.send(pgx(COPY), SYNC)
        c.read_until("G")
        c.send(*sent)
        found = c.ready(count)
        assert c.is_quiet(0.05)
        seen.append([(m.type, m.sqlstate if m.type == "E" else m.body) for m in found])
        goes_on(c)
        c.bye()
    assert seen[0] == seen[1]


@MODES
def test_statements_that_wait_and_that_do_not(pg, start_pool, mode):
    """They are sent behind the COPY without waiting; the link is kept."""
    one = pool_of(start_pool, pg, mode)
    for behind in ("set my.own = 'x'", "begin", "select 'one'"):
        c = login(one)
        pid = c.value("select pg_backend_pid()")
        c.send(pgx(COPY), SYNC)
        c.read_until("G")
        c.send(BAD, COPY_DONE, SYNC, query(behind), query("select 'two'"))
        assert states(c.ready()) == ["22P02"]
        assert states(c.ready()) == []
        assert [m.row() for m in c.ready() if m.type == "D"] == [[b"two"]]
        if behind == "begin":
            c.simple("rollback")
        goes_on(c, pid)
        c.bye()


@MODES
def test_in_a_transaction(pg, start_pool, mode):
    """What psycopg does: the COPY fails, and ROLLBACK ends the transaction; so does a COMMIT that commits nothing."""
    one = pool_of(start_pool, pg, mode)
    for end, tag in (("rollback", b"ROLLBACK\0"), ("commit", b"ROLLBACK\0")):
        c = login(one)
        c.simple("begin")
        c.simple("insert into owed values (7)")
        c.send(pgx(COPY), SYNC)
        c.read_until("G")
        c.send(BAD, COPY_DONE, SYNC)
        found = c.ready()
        assert states(found) == ["22P02"] and found[-1].body == b"E"
        assert states(c.simple("select 1")) == ["25P02"]
        assert [m.body for m in c.simple(end) if m.type == "C"] == [tag]
        goes_on(c)
        c.bye()
    assert pg.rows("select a from owed") == []


@pytest.mark.parametrize("mode", ["transaction", "balanced"])
@pytest.mark.parametrize("sent", [[BAD, COPY_DONE, SYNC], [BAD, SYNC]], ids=["libpq", "no_end"])
def test_behind_a_set_in_its_sequence(pg, start_pool, mode, sent):
    """The last ReadyForQuery is told when the settings are put right: once."""
    one = pool_of(start_pool, pg, mode)
    c = login(one)
    c.send(pgx("set my.own = 'x'"), pgx(COPY), SYNC)
    c.read_until("G")
    c.send(*sent)
    assert states(c.ready()) == ["22P02"]
    assert c.is_quiet(0.05)
    assert c.value("select coalesce(current_setting('my.own', true), '')") == ""
    goes_on(c)
    c.bye()


@MODES
@pytest.mark.parametrize("sql", ["copy owed from stdin", "set my.own = 'x'; copy owed from stdin", "copy owed from stdin; set my.own = 'x'"])
@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "waits"])
def test_simple_query_with_syncs(pg, start_pool, mode, sql, ahead):
    """A Sync before the end of its data waits for nothing, also behind a SET in the string."""
    one = pool_of(start_pool, pg, mode)
    c = login(one)
    for row, count in ((b"1\n", 1), (b"bad\n", 2)):  # the Sync behind the bad row is not read before it fails
        c.send(query(sql), *([SYNC] if ahead else []))
        c.read_until("G")
        c.send(copy_data(row), SYNC, COPY_DONE)
        found = c.ready(count)
        assert states(found) == ([] if count == 1 else ["22P02"])
        assert c.is_quiet(0.05)
    goes_on(c)
    c.bye()
    pg.rows("truncate owed")


@MODES
def test_half_a_message_is_on_its_way(pg, start_pool, mode):
    """Nothing of ours goes out within the client's message."""
    one = pool_of(start_pool, pg, mode)
    c = login(one)
    half = copy_data(b"1234567\n" * 100)
    c.send(pgx(COPY), SYNC)
    c.read_until("G")
    c.send(BAD, SYNC, SYNC, half[:300])
    assert states(c.ready(2)) == ["22P02"]
    assert c.is_quiet(0.05)
    c.send(half[300:], COPY_DONE, query("select 'behind'"))
    assert [m.row() for m in c.ready() if m.type == "D"] == [[b"behind"]]
    goes_on(c)
    c.bye()


@MODES
def test_client_goes_away(pg, start_pool, mode):
    """At each point; the next client's answers are its own."""
    one = pool_of(start_pool, pg, mode)
    steps = [[BAD], [BAD, COPY_DONE], [BAD, COPY_DONE, SYNC], [BAD, SYNC, SYNC, BAD[:4]], [copy_data(b"1\n"), SYNC]]
    for how in ("close", "terminate"):
        for sent in steps:
            c = login(one)
            c.send(pgx(COPY), SYNC)
            c.read_until("G")
            c.send(*sent, *([TERMINATE] if how == "terminate" and sent[-1] != BAD[:4] else []))
            c.sock.shutdown(socket.SHUT_WR)
            c.sock.close()
            begin = waits.now()
            c = login(one)
            goes_on(c)
            assert waits.now() - begin < 8 * waits.SCALE, "its link is not held for an answer that does not come"
            c.bye()
    assert pg.rows("select a from owed") == []


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_client_that_sends_nothing_more(pg, start_pool, mode):
    """It is told what there is, and the end soon, whether the server skips for ever or not; by a Unix socket, too."""
    one = pool_of(start_pool, pg, mode)
    for sent in ([BAD], [BAD, COPY_DONE], [BAD, SYNC]):
        told = []
        for address in (pg.address, one.address, one.socket):
            c = Wire(address)
            c.login()
            c.send(pgx(COPY), SYNC)
            c.read_until("G")
            c.send(*sent)
            c.half_close()
            told.append("".join(m.type for m in c.read_eof(15)))
        assert told == [told[0]] * 3


class CopyServer(FakeServer):
    """Fails each COPY at `fails_at` messages, and answers what it finds then only when it is let."""

    def __init__(self, fails_at: int):
        super().__init__(self.talk)
        self.fails_at = fails_at
        self.may_ask = threading.Event()
        self.asked = threading.Event()
        self.dies = False
        self.may_die = threading.Event()
        self.may_die.set()
        self.dying_words = b""

    def talk(self, conn) -> None:
        conn.greet()
        copies = 0
        skips = is_query = False
        while True:
            kind, body = conn.read()
            if kind == "X":
                return
            if copies:
                copies -= 1
                if copies == 0:
                    conn.send(error("22P02", "bad row"))
                    skips = kind != "S" and not is_query
                    if kind == "S" or is_query:
                        conn.send(ready())
            elif kind == "S":
                skips = False
                conn.send(ready())
            elif skips:
                continue
            elif kind == "E":
                conn.send(message("G", struct.pack("!bh", 0, 0)))
                copies = self.fails_at
                is_query = False
            elif kind == "Q" and b"copy" in body:
                conn.send(complete("BEGIN"), message("G", struct.pack("!bh", 0, 0)))
                copies = self.fails_at
                is_query = True
            elif kind == "C":
                assert body.startswith(b"Spgpool: ")
                self.asked.set()
                if self.dies:
                    conn.send(self.dying_words)
                    assert self.may_die.wait(60)
                    return
                assert self.may_ask.wait(60)
                conn.send(CLOSE_COMPLETE)
            elif kind in "PB":
                conn.send({"P": PARSE_COMPLETE, "B": BIND_COMPLETE}[kind])
            elif kind == "Q":
                conn.send(conn.answer(kind, body))


@pytest.fixture
def copy_server():
    made = []

    def start(fails_at):
        made.append(CopyServer(fails_at))
        return made[-1]

    yield start
    for server in made:
        server.may_ask.set()
        server.may_die.set()
        server.close()
        assert server.failures == []


FAKE = {"session": SESSION, "transaction": {**SESSION, "pool_mode": "transaction"}}


@pytest.mark.parametrize("way", [pgx, query], ids=["extended", "simple"])
def test_nobody_knows_what_is_owed(start_pool, copy_server, way):
    """A Bind is among the Syncs: what has to wait would wait for ever. That session ends, and no other."""
    one = start_pool(copy_server(4).address, **FAKE["transaction"])
    c, other = (login(one, user="fake", database="fake") for _ in range(2))
    c.send(parse(COPY), bind(), execute(), SYNC)
    c.read_until("G")
    c.send(bind(), SYNC, SYNC)
    assert states(c.ready()) == ["22P02"]
    c.send(way("set my.own = 'x'"), SYNC)
    assert states(c.read_eof()) == ["08P01"]
    assert [m.type for m in other.simple("select 1")] == ["T", "D", "C", "Z"]
    other.bye()


@pytest.mark.parametrize("mode", FAKE)
@pytest.mark.parametrize("fails_at, count", [(1, 2), (2, 1), (3, 1)], ids=["at_the_sync", "behind_it", "at_the_end"])
def test_answer_that_takes_its_time(start_pool, copy_server, mode, fails_at, count):
    """The client has what is its own at once, and what it sends meanwhile is answered behind ours."""
    server = copy_server(fails_at)
    c = login(start_pool(server.address, **FAKE[mode]), user="fake", database="fake")
    c.send(parse(COPY), bind(), execute(), SYNC)
    c.read_until("G")
    c.send(copy_data(b"x"), COPY_DONE, SYNC)
    assert states(c.ready(count)) == ["22P02"]
    assert count == 2 or server.asked.wait(60)  # two have come: there may be nothing to ask
    assert c.is_quiet(0.05)
    c.send(query("select 1"), query("set x to 1"), query("begin"))
    assert count == 2 or c.is_quiet(0.05)
    server.may_ask.set()
    assert [[m.type for m in c.ready()] for _ in range(3)] == [["T", "D", "C", "Z"], ["C", "Z"], ["C", "Z"]]
    c.bye()


@pytest.mark.parametrize("mode", ["transaction", "balanced"])
@pytest.mark.parametrize("sent", [[], [copy_data(b"1\n")]], ids=["nothing", "row"])
def test_server_dies_in_the_copy(pg, start_pool, mode, sent):
    """A client is told what a server tells that has read the first Sync: an error, and one end, behind the Sync that ends the data."""
    c = login(pool_of(start_pool, pg, mode))
    pid = c.value("select pg_backend_pid()")
    c.send(pgx(COPY), SYNC)
    c.read_until("G")
    c.send(*sent)
    pg.end_process(pid)
    assert states(c.read_until("E"))[0][:2] in ("57", "08")
    assert c.is_quiet(0.05)
    c.send(COPY_DONE, SYNC)
    assert [m.type for m in c.ready()] == ["Z"]
    assert c.is_quiet(0.05)
    goes_on(c)
    c.bye()


@pytest.mark.parametrize("comes", ["before", "behind"])
@pytest.mark.parametrize("mode", FAKE)
def test_server_dies_instead_of_the_answer(start_pool, copy_server, mode, comes):
    """Nothing is told twice: the session goes on with another link, or is ended. A statement that came before the end waited
    for the answer, so it was not sent, and runs on the other link."""
    server = copy_server(2)
    server.dies = True
    c = login(start_pool(server.address, **FAKE[mode]), user="fake", database="fake")
    c.send(parse(COPY), bind(), execute(), SYNC)
    c.read_until("G")
    if comes == "before":
        server.may_die.clear()
    c.send(copy_data(b"x"), COPY_DONE, SYNC)
    assert states(c.ready()) == ["22P02"]
    assert server.asked.wait(60)
    if comes == "before":
        c.send(query("select 1"))
        assert c.is_quiet(0.1)
        server.may_die.set()
    if mode == "session":
        assert states(c.read_eof()) == ["08006"]
        c.sock.close()
        return
    if comes == "before":
        assert [m.type for m in c.ready()] == ["T", "D", "C", "Z"]
    else:
        waits.wait_for("the server's end is closed", lambda: server.links()[0].sock.fileno() == -1)
    assert [m.type for m in c.simple("select 1")] == ["T", "D", "C", "Z"]
    c.bye()


# Whether a transaction is open is looked at before the end is told.
HELD = {**SESSION, "pool_mode": "statement"}


@pytest.mark.parametrize("words", [b"", CLOSE_COMPLETE], ids=["nothing", "half_an_answer"])
def test_server_dies_while_the_end_is_held_back(start_pool, copy_server, words):
    """The ReadyForQuery that waits until all is put right is told all the same."""
    server = copy_server(2)
    server.dies, server.dying_words = True, words
    c = login(start_pool(server.address, **HELD), user="fake", database="fake")
    c.send(query(f"begin; {COPY}; commit"), SYNC)
    c.read_until("G")
    c.send(copy_data(b"x"))
    assert states(c.ready()) == ["22P02"]
    assert server.asked.is_set()
    c.bye()


def test_statement_behind_an_end_that_is_held_back(start_pool, copy_server):
    """It has an end of its own."""
    server = copy_server(2)
    c = login(start_pool(server.address, **HELD), user="fake", database="fake")
    c.send(query(f"begin; {COPY}; commit"), SYNC)
    c.read_until("G")
    c.send(copy_data(b"x"))
    assert states(c.read_until("E")) == ["22P02"]
    assert server.asked.wait(60)
    c.send(query("select 1"), query("select 2"))
    server.may_ask.set()
    assert [[m.type for m in c.ready()] for _ in range(3)] == [["Z"], ["T", "D", "C", "Z"], ["T", "D", "C", "Z"]]
    c.bye()


def test_parse_that_is_known_behind_it(pg, start_pool):
    """Its answer is not made here, where it would have no place among those that come."""
    c = login(pool_of(start_pool, pg, "transaction"))
    c.send(parse("select 'same'", name="one"), SYNC)
    assert [m.type for m in c.ready()] == ["1", "Z"]
    c.send(parse(COPY), bind(), execute(), SYNC)
    c.read_until("G")
    c.send(copy_fail("no"), SYNC, parse("select 'same'", name="two"), SYNC)
    assert [m.type for m in c.ready(2)] == ["E", "Z", "1", "Z"]
    goes_on(c)
    c.bye()
