# SPDX-License-Identifier: PostgreSQL
"""test_pool_cancel: cancel requests of clients that share connections end what the client waits for, whatever of ours is in the way;
and sequences of nothing but Close wait for no connection, so that none is spent on them."""
import threading

import pytest
from pooling_house import login, states, table

from pgt import waits
from pgt.fake import row_description
from pgt.wire import FLUSH, SYNC, Wire, bind, cancel, cancel_request, close, describe, execute, message, parse, query

SLEEP = "select pg_sleep(60)"


@pytest.fixture
def pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1, max_prepared_statements=8)


def shape(messages) -> str:
    return "".join(m.type for m in messages)


def wait_running(pg, text: str) -> None:
    waits.wait_for("it runs", lambda: pg.value(
        f"select count(*) > 0 from pg_stat_activity where state = 'active' and query like '{text}%' and pid <> pg_backend_pid()") == "t")


class Held:
    """The one connection is another client's, in a transaction."""

    def __init__(self, pool):
        self.pool = pool
        self.client = login(pool)

    def __enter__(self):
        self.client.rows("begin")
        self.client.rows("select 1")
        return self

    def __exit__(self, *_):
        assert states(self.client.simple("commit")) == []

    def wait_for_waiting(self) -> None:
        waits.wait_for("it waits", lambda: "waiting" in {r["state"] for r in table(self.client, "show pool_clients")})


CLOSES = {"named": (close("s"), "3"), "twice": (close("s") + close("s"), "33"), "unknown": (close("nobody's"), "3"),
          "unnamed": (close(""), "3"), "portal": (close("", "P"), "3"), "sql": (close("by_sql"), "3"),
          "many": (b"".join(close(f"n{n}") for n in range(200)) + close("s"), "3" * 201)}


@pytest.mark.parametrize("what", CLOSES)
def test_close_waits_for_no_connection(pool, what):
    """It is answered at once; what was closed is gone on the connection, and what was not is there."""
    c = login(pool)
    assert not states(c.simple("prepare by_sql as select 'by sql'"))
    c.send(parse("select 's'", "s"), parse("select 'kept'", "kept"), parse("select 'unnamed'"), SYNC)
    assert shape(c.ready()) == "111Z"
    messages, told = CLOSES[what]
    with Held(pool):
        c.send(messages, SYNC)
        assert shape(c.ready(seconds=20)) == told + "Z"
    c.send(bind(name="kept"), execute(), SYNC)
    assert shape(c.ready()) == "2DCZ"
    gone = {"named": "s", "twice": "s", "many": "s", "unnamed": "", "sql": "by_sql"}.get(what)
    for name in ("s", "", "by_sql"):
        c.send(bind(name=name), execute(), SYNC)
        assert states(c.ready()) == (["26000"] if name == gone else []), name
    c.send(parse("select 'again'", "s") if gone == "s" else describe("kept"), SYNC)
    assert not states(c.ready())
    c.bye()


@pytest.mark.parametrize("begin, status", [("", b"I"), ("begin", b"T")])
def test_close_and_its_flush(pool, begin, status):
    """The sequence goes on behind it; in a transaction that no server knows of it is no statement."""
    c = login(pool)
    c.send(parse("select 's'", "s"), SYNC)
    c.ready()
    if begin:
        c.rows(begin)
    with Held(pool) as held:
        c.send(close("s"), FLUSH)
        assert shape(c.read_until("3")) == "3"
        c.send(parse("select 'new'", "s"), bind(name="s"), execute(), SYNC)
        held.wait_for_waiting()
    found = c.ready()
    assert shape(found) == "12DCZ" and found[2].row() == [b"new"] and found[-1].body == status
    c.bye()


def test_close_in_a_transaction_that_is_lost(pg, pool):
    c = login(pool)
    c.send(parse("select 's'", "s"), SYNC)
    c.ready()
    c.rows("begin")
    pg.end_process(c.value("select pg_backend_pid()"))
    assert states(c.simple("select 1")) == ["08006"]
    with Held(pool):
        c.send(close("s"), SYNC)
        found = c.ready(seconds=20)
        assert shape(found) == "3Z" and found[-1].body == b"E"
        c.rows("rollback")
    c.send(bind(name="s"), execute(), SYNC)
    assert states(c.ready()) == ["26000"]
    c.bye()


@pytest.mark.parametrize("mine", [close("s", "P"), close("s") + b"P\0\0\0\4", b"C\0\0\0\5S", b"C\0\0\0\6Xs", b"C\0\0\0\10Ss\0x"])
def test_what_is_more_than_close_waits(pool, mine):
    """What a server finds fault with is for it to say, and a portal may be there."""
    c = login(pool)
    c.send(parse("select 's'", "s"), SYNC)
    c.ready()
    c.rows("begin")
    c.rows("select 1")
    c.send(mine, SYNC)
    before = c.ready()
    c.rows("rollback")
    c.send(parse("select 's'", "s2"), SYNC)
    c.ready()
    c.rows("begin")
    with Held(pool) as held:
        c.send(mine, SYNC)
        held.wait_for_waiting()
    found = c.ready()
    assert (shape(found), states(found)) == (shape(before), states(before))
    c.bye()


@pytest.mark.parametrize("by", ["simple", "extended"])
def test_cancel_behind_a_close(pg, pool, by):
    """What waits is what is cancelled, not the Close in front of it."""
    c = login(pool)
    c.send(parse("select 's'", "s"), SYNC)
    c.ready()
    with Held(pool) as held:
        never = f"{SLEEP} /* never */"
        c.send(close("s"), SYNC, query(never) if by == "simple" else parse(never) + bind() + execute() + SYNC)
        assert shape(c.ready(seconds=20)) == "3Z"
        held.wait_for_waiting()
        cancel(pool.address, c.pid, c.key)
        assert states(c.ready(seconds=20)) == ["57014"]
    assert c.value("select 1") == "1"
    assert pg.value(f"select count(*) from pg_stat_activity where query = '{never}'") == "0"
    c.bye()


@pytest.mark.parametrize("in_transaction", [False, True])
def test_cancel_behind_a_close_of_ours(pg, pool, in_transaction):
    """A statement has to make place on the connection: the server tells of its Close with the end of the client's sequence."""
    c = login(pool)
    for n in range(8):
        c.send(parse(f"select {n}", f"s{n}"), bind(name=f"s{n}"), execute(), SYNC)
        assert not states(c.ready())
    if in_transaction:
        c.rows("begin")
    c.send(parse(SLEEP, "sleeps"), bind(name="sleeps"), execute(), SYNC)
    wait_running(pg, SLEEP)
    cancel(pool.address, c.pid, c.key)
    assert states(c.ready()) == ["57014"]
    c.rows("rollback")
    c.send(bind(name="s7"), execute(), SYNC)
    assert not states(c.ready())
    c.bye()


def test_cancel_while_the_catalogue_is_asked(pg, start_pool):
    """The question waits for a lock; what waits for its answer is what is cancelled."""
    pg.rows("drop function if exists slow_to_know(); create function slow_to_know() returns int language sql volatile as 'select 1'")
    pool = start_pool(pg.address, pg.address, num_init_children=1, pool_mode="transaction", load_balance_mode=True,
                      max_backend_connections=2, health_check_period=0, sr_check_period=0, backend_flag0="ALWAYS_PRIMARY")
    c = login(pool)
    assert c.value("select 1") == "1"
    with login(pg) as lock:
        lock.rows("begin")
        lock.rows("lock table pg_proc in access exclusive mode")
        c.send(query("select slow_to_know()"))
        waits.wait_for("it is asked", lambda: lock.value("select count(*) from pg_locks where not granted") != "0")
        cancel(pool.address, c.pid, c.key)
        assert states(c.ready()) == ["57014"]
        lock.rows("commit")
    assert c.value("select slow_to_know()") == "1"
    c.bye()


@pytest.mark.parametrize("begin", ["", "begin", "begin; select 1"])
def test_cancel_while_columns_are_asked(pg, start_pool, begin):
    """The cancel comes while a connection is asked whether a statement has the columns there that the client was told."""
    pg.rows("drop table if exists asked; create table asked as select 1 as a")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True)
    c = login(pool)
    c.send(parse("select * from asked", "s"), describe("s"), SYNC)
    assert not states(c.ready())
    if begin:
        c.rows(begin)
    with login(pg) as lock:
        lock.rows("begin; lock table asked in access exclusive mode")
        c.send(bind(name="s"), execute(), SYNC)
        waits.wait_for("it is asked", lambda: pg.value("select count(*) from pg_locks where not granted") == "1")
        cancel(pool.address, c.pid, c.key)
        found = c.ready()
        assert states(found) == ["57014"] and found[-1].body == (b"E" if begin else b"I")
        lock.rows("commit")
    c.rows("rollback")
    c.send(bind(name="s"), execute(), SYNC)
    assert shape(c.ready()) == "2DCZ"
    c.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_each_of_many_cancels(pg, start_pool, mode):
    """Each comes right behind its query, while the one before it may be on its way to the server still."""
    pool = start_pool(pg.address, num_init_children=2, pool_mode=mode, worker_fill=0)
    c = login(pool)
    for _ in range(40):
        c.send(query(SLEEP))
        sock = pool.address.connect()
        sock.sendall(cancel_request(c.pid, c.key))
        assert states(c.ready()) == ["57014"]
        sock.close()
    c.bye()


def test_who_cancels_hears_when_it_is_over(fake, start_pool):
    """The client's settings are on their way to the server, in front of its statement: the cancel waits for them. Whoever asked
    for it is told when it was sent, not before: else it would hit what the client says next."""
    held, asked, goes_on = threading.Event(), threading.Event(), threading.Event()

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if held.is_set() and b"6MB" in body:
                asked.set()
                waits.wait_for("the test lets it go on", goes_on.is_set)
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, num_init_children=1, pool_mode="transaction", health_check_period=0, max_backend_connections=1)
    c, other = login(pool, user="fake"), login(pool, user="fake")
    c.simple("set work_mem = '6MB'")
    other.simple("select 1")
    held.set()
    c.send(query("insert into t values (1)"))
    waits.wait_for("its settings are sent", asked.is_set)
    with pool.address.connect(20) as sock:
        sock.sendall(cancel_request(c.pid, c.key))
        sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        assert server.cancels == []
        goes_on.set()
        sock.settimeout(20)
        assert sock.recv(1) == b""
        assert len(server.cancels) == 1
    c.ready()
    assert not states(c.simple("rollback"))
    c.bye()
    other.bye()


def test_who_cancels_a_question_hears_when_that_is_over(fake, start_pool):
    """The statement that waited for the answer is done sooner than the server is done with the cancel of the question: that would
    hit what the client says next."""
    is_known, asked, may_close = threading.Event(), threading.Event(), threading.Event()

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if kind == "D" and is_known.is_set():
                asked.set()
                waits.wait_for("its cancel has come", lambda: conn.server.cancels)
            conn.send(message("t", b"\0\0") + row_description("a") if kind == "D" else conn.answer(kind, body))

    server = fake(script)
    server.on_cancel = lambda: may_close.wait(15 * waits.SCALE)
    pool = start_pool(server.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True)
    c = login(pool, user="fake")
    c.send(parse("select a from t", "s"), describe("s"), SYNC)
    assert shape(c.ready()) == "1tTZ"
    is_known.set()
    c.rows("begin")
    c.send(bind(name="s"), execute(), SYNC)
    waits.wait_for("it is asked", asked.is_set)
    with Wire(pool.address) as asks:
        asks.send(cancel_request(c.pid, c.key))
        assert not states(c.ready(seconds=20))
        assert asks.is_quiet(0)
        may_close.set()
        assert asks.read_eof() == []
    c.rows("rollback")
    c.bye()
