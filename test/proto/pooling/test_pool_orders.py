# SPDX-License-Identifier: PostgreSQL
"""test_pool_orders: in transaction mode, under load: DRAIN, KILL CLIENT, a worker that is killed, and 2,000 clients that
come at once and are gone at once. (PAUSE, RESUME and RECONNECT under load: test_admin_shared.py.)
"""
import os
import random
import signal
import socket
import struct
import threading

import pytest
from pooling_house import login, states, table
from test_pool_vanish import workers

from pgt import waits
from pgt.wire import Wire, WireClosed, query, startup

LINKS = 3


class Worker(threading.Thread):
    """Transactions of three statements; what was begun and what came of it."""

    def __init__(self, pool, number: int, user: str):
        super().__init__()
        self.pool, self.number, self.user = pool, number, user
        self.stop = threading.Event()
        self.done = 0
        self.inside = False
        self.ended: list[tuple[str, bool]] = []
        self.trouble = ""

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                w = Wire(self.pool.address, seconds=30)
                try:
                    found = w.login(user=self.user, application_name=f"w{self.number}")
                except (WireClosed, ConnectionError):
                    self.ended.append(("", False))
                    continue
                if found[-1].type != "Z":
                    self.ended.append((found[-1].sqlstate, False))
                    self.stop.wait(0.05)
                    continue
                self.work(w)
        except BaseException as e:  # pylint: disable=broad-except
            self.trouble = f"{self.number}: {type(e).__name__}: {e}"

    def work(self, w: Wire) -> None:
        while not self.stop.is_set():
            text = f"{self.number}-{self.done}"
            for sql in ("begin", f"insert into orders_t values ('{text}')", f"select '{text}'", "commit"):
                w.send(query(sql))
                found = self.answer(w)
                if not found or found[-1].type != "Z":
                    self.ended.append((found[-1].sqlstate if found and found[-1].type == "E" else "", self.inside))
                    self.inside = False
                    return
                assert not states(found), [m.fields for m in found if m.type == "E"]
                rows = [m.row()[0].decode() for m in found if m.type == "D"]
                assert rows in ([], [text]), (rows, text)
                self.inside = found[-1].body == b"T"
            self.done += 1
        w.bye()

    @staticmethod
    def answer(w: Wire) -> list:
        """Up to ReadyForQuery, or to the last word of a server that closes."""
        found = []
        while True:
            try:
                m = w.read()
            except (WireClosed, ConnectionError):
                return found
            found.append(m)
            if m.type == "Z" or (m.type == "E" and m.fields["S"] == "FATAL"):
                return found


@pytest.fixture
def crowd(pg, start_pool):
    """Twelve clients of an ordinary role at work on three links of two workers."""
    pg.rows("drop table if exists orders_t; create table orders_t(a text)")
    pg.rows("do $$ begin create role orders_user login; exception when duplicate_object then null; end $$")
    pg.rows("grant all on orders_t to orders_user")
    pool = start_pool(pg.address, num_init_children=2, pool_mode="transaction", max_backend_connections=LINKS + 1,
                      max_user_connections=LINKS, query_wait_timeout=30)
    clients = [Worker(pool, i, "orders_user") for i in range(12)]
    for c in clients:
        c.start()
    waits.wait_for("all work", lambda: all(c.done > 0 or c.trouble for c in clients))
    yield pool, clients
    for c in clients:
        c.stop.set()
    for c in clients:
        c.join()


def trouble(clients: list[Worker]) -> list[str]:
    return [c.trouble for c in clients if c.trouble]


def test_drain_under_load(pg, crowd):
    """Each is sent away between two transactions, never within one; who comes is refused until RESUME."""
    pool, clients = crowd
    admin = login(pool)
    for turn in range(3):
        seen = [len(c.ended) for c in clients]
        admin.send(query("pgpool drain"))
        assert [m.type for m in admin.ready()] == ["C", "Z"]
        # Settings of a client's, made for a statement that it did not come to send, may be under way.
        assert not pg.sessions("usename = 'orders_user' and state <> 'idle' and query not like '%set_config(%'")
        waits.wait_for("all were sent away", lambda: trouble(clients) or all(len(c.ended) > n for c, n in zip(clients, seen)))
        assert not states(admin.simple("pgpool resume"))
        before = [c.done for c in clients]
        waits.wait_for(f"all work again, turn {turn}",
                       lambda: trouble(clients) or all(c.done > n for c, n in zip(clients, before)), 30)
    assert not trouble(clients)
    assert {state for c in clients for state, _ in c.ended} <= {"57P01", "57P03"}
    assert not [c.number for c in clients for state, inside in c.ended if inside], "sent away inside a transaction"
    admin.bye()


def test_kill_client_under_load(pg, crowd):
    """One goes, with 57P01, wherever it is; what it had begun is undone, its link serves the others."""
    pool, clients = crowd
    admin = login(pool)
    rng = random.Random(5)
    for turn in range(12):
        rows = [r for r in table(admin, "show pool_clients") if r["user"] == "orders_user" and r["state"] != "login"]
        victim = rng.choice([r for r in rows if r["state"] == ("waiting" if turn % 3 == 0 else "active")] or rows)
        one = clients[int(victim["application_name"][1:])]
        seen = len(one.ended)
        found = admin.simple(f"pgpool kill client {victim['id']}")
        assert not states(found), [m.fields for m in found]
        waits.wait_for("it is gone", lambda: one.trouble or len(one.ended) > seen)
        done = one.done
        waits.wait_for("it is back", lambda: one.trouble or one.done > done)
    assert not trouble(clients)
    assert {state for c in clients for state, _ in c.ended} == {"57P01"}
    waits.wait_for("those that were closed are no more", lambda: len(pg.sessions("usename = 'orders_user'")) <= LINKS)
    for c in clients:
        c.stop.set()
    for c in clients:
        c.join()
    there = [r[0].decode() for r in pg.rows("select a from orders_t")]
    assert {f"{c.number}-{i}" for c in clients for i in range(c.done)} <= set(there), "confirmed, and lost"
    admin.bye()


def test_worker_killed_in_a_crowd(pg, crowd):
    """SHOW POOL_LIMITS, POOL_QUEUE and POOL_CLIENTS tell the truth again, also of those that waited."""
    pool, clients = crowd
    for turn in range(2):
        waits.wait_for("two workers run", lambda: len(workers(pool)) == 2)
        victim = workers(pool)[turn]
        os.kill(victim, signal.SIGKILL)
        waits.wait_for("another has its place", lambda: len(found := workers(pool)) == 2 and victim not in found)
        before = [c.done for c in clients]
        waits.wait_for("all work again", lambda: trouble(clients) or all(c.done > n for c, n in zip(clients, before)))
    assert not trouble(clients)
    assert {state for c in clients for state, _ in c.ended} == {""}
    for c in clients:
        c.stop.set()
    for c in clients:
        c.join()
    admin = login(pool)

    def is_true() -> bool:
        used = {r["name"]: int(r["used"]) for r in table(admin, "show pool_limits")
                if r["user"] in ("", "orders_user") and r["name"] in ("max_user_connections", "max_clients")}
        real = len(pg.sessions("usename = 'orders_user'"))
        return (table(admin, "show pool_queue") == [] and len(table(admin, "show pool_clients")) == 1
                and used.get("max_user_connections", real) == real <= LINKS)

    waits.wait_for("the counts are the truth", is_true)
    admin.bye()
    pool.log_seen = len(pool.log())  # killed workers are in the log, as they should be


def ready(sock) -> None:
    """Reads up to ReadyForQuery; select() knows no descriptors beyond 1,024, so this is no Wire."""
    seen = b""
    while not seen.endswith(b"Z\0\0\0\5I"):
        piece = sock.recv(65536)
        assert piece, seen
        seen += piece
        assert not seen.startswith(b"E"), seen


@pytest.mark.slow
def test_storm_of_2000(pg, start_pool):
    """2,000 clients at once, all asking, all gone without a word in the midst of it, and again: the server sees no more
    connections than the limit, few new ones, and serves who comes next."""
    pg.end_sessions()
    pg.rows("alter system set log_connections = on")
    pg.reload()
    waits.wait_for("logins are logged", lambda: pg.value("show log_connections") == "on")
    pool = start_pool(pg.address, num_init_children=2, pool_mode="transaction", default_pool_size=10, max_clients=5000,
                      query_wait_timeout=60)
    before = pg.log().count("connection authorized: user=trust_user")
    first, direct = login(pool, user="trust_user"), login(pg)
    assert first.value("select 1") == "1"
    opened = pg.log().count("connection authorized: user=trust_user")
    assert opened > before, "the log tells of logins"
    most = 0

    def look() -> None:
        nonlocal most
        most = max(most, int(direct.value("select count(*) from pg_stat_activity where usename = 'trust_user'")))

    for turn in range(3):
        storm = []
        for i in range(2000):
            sock = pool.address.connect(60)
            sock.sendall(startup({"user": "trust_user", "database": "postgres"}))
            storm.append(sock)
            if i % 200 == 0:
                look()
        for i, sock in enumerate(storm):
            ready(sock)
            sock.sendall(query(f"select pg_sleep(0.01), {i}"))
        look()
        assert int(table(first, "show pool_queue")[0]["waiting"]) > 1000
        for sock in storm[:300]:
            ready(sock)
        look()
        for i, sock in enumerate(storm):
            if i % 2:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        start = waits.now()
        assert first.value(f"select {turn}") == str(turn)
        assert waits.now() - start < 3 * waits.SCALE, "it stood behind clients that are gone"
    waits.wait_for("all are gone", lambda: len(table(first, "show pool_clients")) == 1)
    assert table(first, "show pool_queue") == []
    assert most <= 10
    pg.rows("alter system reset log_connections")
    pg.reload()
    assert pg.log().count("connection authorized: user=trust_user") - opened <= 20, "links are not the clients'"
    first.bye()
    direct.bye()
