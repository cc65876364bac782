# SPDX-License-Identifier: PostgreSQL
"""test_cache_flight: a hundred clients ask for one result that is not kept: one query goes to the server, and the others wait
for its result, never for anything that could wait for them. A lock held around pgpool makes queries take as long as the test likes."""
import contextlib
import itertools
import os
import signal
import threading

import pytest
from cache_house import ask, login, run, start_cached

from pgt.waits import wait_for
from pgt.wire import SYNC, Wire, WireClosed, bind, cancel, describe, execute, parse, query

CLIENTS = 100
TEXT = "select a, b, (select max(c) from fu) from ft order by a"
ROWS = [[b"1", b"10", b"1"], [b"2", b"20", b"1"]]
numbers = itertools.count(1)


@pytest.fixture(params=["transaction", "session"])
def mode(request):
    return request.param


@pytest.fixture
def pool(pg, start_pool, mode):
    pg.rows("drop table if exists ft, fu cascade; create table ft (a int primary key, b int); create table fu (c int);"
            "insert into ft values (1, 10), (2, 20); insert into fu values (1); grant select on ft, fu to public")
    pool = start_cached(pg, start_pool, num_init_children=2, worker_fill=0, pool_mode=mode, max_pool=200, memqcache_cache_block_size=8000000,
                        memqcache_maxcache=8000000)
    warm = [login(pool) for _ in range(4)]  # in each worker the names are asked about once
    for w in warm:
        ask(w, f"{TEXT} -- {next(numbers)}")
        w.bye()
    return pool


@contextlib.contextmanager
def locked(pg, table: str = "ft"):
    """Queries of the table wait."""
    with Wire(pg.address, seconds=30) as w:
        w.login()
        run(w, "begin", f"lock table {table}")
        yield
        run(w, "rollback")


def running(pg, text: str) -> int:
    """Queries with this in their text that are at the server."""
    return int(pg.value("select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and "
                        f"strpos(query, $q${text}$q$) > 0"))


def new_text() -> str:
    return f"{TEXT} -- {next(numbers)}."


def send(w: Wire, text: str, extended: bool = False) -> None:
    w.send(*([parse(text), bind(), describe("", "P"), execute(), SYNC] if extended else [query(text)]))


def got(w: Wire) -> list:
    found = w.ready()
    assert not [m for m in found if m.type == "E"], [m.fields for m in found if m.type == "E"]
    return [m.row() for m in found if m.type == "D"]


def waiting(w: Wire) -> int:
    return sum(int(row[3]) for row in w.rows("show pool_queue") if b"result" in row)


def worker_of_first(w: Wire) -> int:
    """The process."""
    return next(int(row[1]) for row in w.rows("show pool_clients") if row[4] == b"first")


def flight(pg, pool, n: int, text: str, extended: bool = False) -> list[Wire]:
    """One asks, and n more wait for it, under a lock."""
    clients = [login(pool, seconds=60, application_name="first" if i == 0 else "") for i in range(n + 1)]
    send(clients[0], text, extended)
    wait_for("the first asks", lambda: running(pg, text) == 1)
    for w in clients[1:]:
        send(w, text, extended)
    with login(pool) as looker:
        wait_for("the others wait", lambda: waiting(looker) == n)
    assert running(pg, text) == 1
    return clients


@pytest.mark.parametrize("extended", [False, True])
def test_one_query_for_a_hundred_clients(pg, pool, extended):
    scans = "select seq_scan + coalesce(idx_scan, 0) from pg_stat_all_tables where relname = 'ft'"
    text = new_text()
    before = int(pg.value(scans))
    with locked(pg):
        clients = flight(pg, pool, CLIENTS - 1, text, extended)
    for w in clients:
        assert got(w) == ROWS
    with login(pool) as w:
        assert waiting(w) == 0
    for w in clients:
        w.bye()
    pg.end_sessions()  # what a server process has counted is told at its end, or when it has been idle for ten seconds
    wait_for("statistics are there", lambda: int(pg.value(scans)) > before)
    assert int(pg.value(scans)) <= before + 5, "one query was made"


def test_the_one_is_cancelled(pg, pool):
    text = new_text()
    with locked(pg):
        clients = flight(pg, pool, 5, text)
        cancel(pool.address, clients[0].pid, clients[0].key)
        assert [m.sqlstate for m in clients[0].ready() if m.type == "E"] == ["57014"]
        wait_for("others ask", lambda: running(pg, text) >= 1)
    for w in clients[1:]:
        assert got(w) == ROWS


@pytest.mark.parametrize("how", ["client", "server", "worker"])
def test_the_one_dies(pg, pool, how):
    text = new_text()
    alive = 0
    with locked(pg):
        clients = flight(pg, pool, 12, text)
        if how == "client":
            clients[0].reset()
        elif how == "server":
            pg.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where strpos(query, $q${text}$q$) > 0 and pid <> pg_backend_pid()")
        else:
            with login(pool) as looker:
                os.kill(worker_of_first(looker), signal.SIGKILL)
        wait_for("others ask", lambda: running(pg, text) > 1)
    for w in clients[1:]:
        try:
            assert got(w) == ROWS
            alive += 1
        except (WireClosed, ConnectionError):
            assert how == "worker"
    assert alive >= 4
    with login(pool) as looker:
        assert waiting(looker) == 0


def test_one_who_waits_can_be_cancelled_and_goes_on(pg, pool):
    text = new_text()
    with locked(pg):
        clients = flight(pg, pool, 3, text)
        cancel(pool.address, clients[1].pid, clients[1].key)
        found = clients[1].ready()
        assert [m.sqlstate for m in found] == ["57014", ""] and found[0].text == "canceling statement due to user request"
        assert ask(clients[1], "select c from fu") == [[b"1"]]
        clients[2].reset()
        with login(pool) as looker:
            wait_for("one is left", lambda: waiting(looker) == 1)
        assert running(pg, text) == 1
    assert got(clients[3]) == ROWS and got(clients[0]) == ROWS


def test_one_who_waits_in_a_transaction_of_which_no_server_knows(pg, pool):
    """Nothing is at a server that could be waited for. A cancelled one has failed."""
    text = new_text()
    with locked(pg):
        first, second, third = login(pool), login(pool), login(pool)
        send(first, text)
        wait_for("the first asks", lambda: running(pg, text) == 1)
        run(second, "begin")
        run(third, "begin")
        send(second, text)
        send(third, text)
        with login(pool) as looker:
            wait_for("they wait", lambda: waiting(looker) == 2)
        cancel(pool.address, third.pid, third.key)
        assert [m.sqlstate for m in third.ready()] == ["57014", ""]
        assert [m.sqlstate for m in third.simple("select 1")] == ["25P02", ""]
        run(third, "rollback")
    assert got(second) == ROWS
    run(second, "commit")
    assert got(first) == ROWS


def test_who_is_in_a_transaction_at_a_server_asks_himself(pg, pool):
    """The first could wait for what it holds."""
    text = new_text()
    with locked(pg):
        first, second = login(pool), login(pool)
        send(first, text)
        wait_for("the first asks", lambda: running(pg, text) == 1)
        run(second, "begin", "lock table fu in share mode")
        send(second, text)
        wait_for("the second asks, too", lambda: running(pg, text) == 2)
    assert got(second) == ROWS
    run(second, "commit")
    assert got(first) == ROWS


def test_others_do_not_wait_for_another_users_result(pg, pool):
    """Of another user, another role, other settings: the text alone says nothing."""
    text = new_text()
    with locked(pg):
        clients = [login(pool) for _ in range(4)]
        run(clients[1], "set datestyle to german")
        run(clients[2], "set role pg_monitor")
        run(clients[3], "set search_path to public")
        for n, w in enumerate(clients):
            send(w, text)
            wait_for("it asks", lambda n=n: running(pg, text) == n + 1)
    for w in clients:
        assert got(w) == ROWS


def test_a_write_meanwhile(pg, pool):
    """Those who began to wait before it, and see it, may not get what was read before."""
    text = new_text()
    with locked(pg):
        clients = flight(pg, pool, 8, text)
        with login(pool) as writer:
            run(writer, "update fu set c = 2")
            late = login(pool)
            send(late, text)
    for w in [late, *clients]:
        assert got(w) == [[b"1", b"10", b"2"], [b"2", b"20", b"2"]]
    pg.rows("update fu set c = 1")


def test_a_write_behind_the_read(pg, pool):
    """The first has read before the write; whoever asks behind it sees it."""
    text = f"select c, (select count(*) from ft) from fu -- {next(numbers)}."
    with login(pool) as w:
        ask(w, f"select c, (select count(*) from ft) from fu -- {next(numbers)}.")
        ask(w, "select c from fu")
    with locked(pg):
        first, second = login(pool), login(pool)
        send(first, text)
        wait_for("the first asks", lambda: running(pg, text) == 1)
        with login(pool) as writer:
            run(writer, "update fu set c = 3")
        send(second, text)
    assert got(second) == [[b"3", b"2"]]
    assert got(first) in ([[b"1", b"2"]], [[b"3", b"2"]])
    with login(pool) as w:
        assert ask(w, text) == [[b"3", b"2"]]
    pg.rows("update fu set c = 1")


def test_a_client_that_does_not_read_holds_up_nobody(pg, pool):
    """The next one who asks does not wait for it, and keeps the result for all others."""
    text = f"select repeat('x', 10000), c from fu, generate_series(1, 700) -- {next(numbers)}."
    slow = Wire(pool.address, seconds=60, rcvbuf=4096)
    slow.login(application_name="slow")
    others = [login(pool) for _ in range(6)]
    before = int(others[0].rows("show pool_cache")[0][0])
    send(slow, text)
    wait_for("it asks first", lambda: [r for r in others[0].rows("show pool_clients") if b"slow" in r and b"active" in r])
    for w in others:
        assert len(ask(w, text)) == 700
    wait_for("the others were told what is kept", lambda: int(others[0].rows("show pool_cache")[0][0]) == before + 5)
    slow.reset()


def test_query_wait_timeout(pg, start_pool, mode):
    pg.rows("drop table if exists ft, fu cascade; create table ft (a int primary key, b int); create table fu (c int)")
    pool = start_cached(pg, start_pool, num_init_children=2, worker_fill=0, pool_mode=mode, query_wait_timeout="2s")
    for _ in range(4):
        with login(pool) as w:
            ask(w, new_text())
    text = new_text()
    with locked(pg):
        clients = flight(pg, pool, 2, text)
        for w in clients[1:]:
            assert [m.text for m in w.read_eof() if m.type == "E"] == ["query_wait_timeout"]
    assert got(clients[0]) == []


def test_who_asks_stands_in_line_for_that_once(pg, start_pool):
    """One connection, on which others change the catalogue by turns: what was found out while a client waited is old when its turn comes."""
    pg.rows("drop table if exists lt, lu, lc; create table lt (a int); create table lu (a int); insert into lu values (7);"
            "create table lc (n int); insert into lc values (0)")
    pool = start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction", default_pool_size=1)
    others, stop = [login(pool) for _ in range(4)], threading.Event()

    def change(w: Wire) -> None:
        for n in range(100):
            if stop.is_set():
                return
            run(w, f"update lc set n = n + 1; alter table lt set (fillfactor = {n % 50 + 50})")

    threads = [threading.Thread(target=change, args=(w,)) for w in others]
    for t in threads:
        t.start()
    try:
        with login(pool) as w:
            wait_for("they stand in line", lambda: int(pg.value("select n from lc")) > 8)
            before = int(pg.value("select n from lc"))
            # Its turn comes once for the question and once for the statement: a dozen changes meanwhile, more if this process is slow. Else it
            # would be all of them.
            assert int(ask(w, "select a, (select n from lc) from lu")[0][1]) - before < 150
    finally:
        stop.set()
        for t in threads:
            t.join()
