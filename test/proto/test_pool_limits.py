# SPDX-License-Identifier: PostgreSQL
"""test_pool_limits: every limit on links and clients, with two workers, also when one of them is killed."""
import os
import select
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgt import postgres, procs, waits
from pgt.pcp_tool import pcp, said
from pgt.wire import FLUSH, Wire, bind, execute, parse, query

from test_admin_orders import report

MODE = {"pool_mode": "transaction", "num_init_children": 2}
BY_TCP = "client_addr is not null"  # as pgpool; the tests' own, of which the last may have yet to end, come by the Unix socket


@pytest.fixture(autouse=True)
def alone(pg) -> None:
    """Connections are counted at the server: those of other tests' proxies go first."""
    pg.end_sessions()


def login(pool, user="trust_user", database="postgres", **params) -> Wire:
    w = Wire(pool.address, seconds=30)
    found = w.login(user, database, **params)
    assert found[-1].type == "Z", found[-1].fields
    return w


def limits(w: Wire, name: str) -> dict[tuple[str, str], int]:
    """(user, database) -> links or clients counted."""
    return {(r["user"], r["database"]): int(r["used"]) for r in report(w, "pool_limits") if r["name"] == name}


def workers(pool) -> list[int]:
    """By what they are not: the title of a worker says what it does."""
    others = ("pgpool -n", "monitor", "PCP")
    return [pid for pid in pool.pids() if (line := procs.command_line(pid)) and not any(o in line for o in others)]


class Load:
    """Clients that run short queries, five per session (`stay`: in one), until told to stop."""

    def __init__(self, pool, clients: list[tuple[str, str]], sql="select pg_sleep(0.002)", is_rough=False, stay=True):
        self.stop = threading.Event()
        self.done = [0] * len(clients)
        self.errors: list[str] = []
        self.is_rough = is_rough
        self.stay = stay
        self.threads = [threading.Thread(target=self.run, args=(pool, i, user, database, sql), daemon=True)
                        for i, (user, database) in enumerate(clients)]
        for t in self.threads:
            t.start()

    def run(self, pool, i, user, database, sql):
        try:
            while not self.stop.is_set():
                w = login(pool, user, database)
                while not self.stop.is_set():
                    assert w.simple(sql)[-1].type == "Z"
                    self.done[i] += 1
                    if self.done[i] % 5 == 0 and not self.stay:
                        break
                w.bye()
        except Exception as e:  # pylint: disable=broad-except
            self.errors.append(f"{i}: {e!r}")

    def finish(self) -> None:
        if not self.is_rough:
            waits.wait_for("everybody was served", lambda: self.errors or min(self.done) > 0, 30)
        self.stop.set()
        for t in self.threads:
            t.join(60)
        if not self.is_rough:
            assert not self.errors, self.errors[:3]


def watch(pg, where: str, load: Load, rounds=20) -> int:
    """The most server connections seen at once while everybody gets on by two queries per look."""
    most = 0
    for _ in range(rounds):
        before = list(load.done)
        most = max(most, len(pg.held(where)))
        waits.wait_for("clients get on", lambda: load.errors or sum(load.done) > sum(before) + len(before), 30)
    return most


def test_pool_size(pg, start_pool):
    """40 clients of two workers share 3 links."""
    pool = start_pool(pg.address, default_pool_size=3, **MODE)
    load = Load(pool, [("trust_user", "postgres")] * 40)
    most = watch(pg, "usename = 'trust_user'", load)
    w = login(pool, "postgres")
    assert limits(w, "default_pool_size")[("trust_user", "postgres")] == 3
    load.finish()
    assert most == 3
    w.bye()


def test_link_travels_behind_commit(pg, start_pool):
    """A link that a transaction leaves goes to who waits for it in the other worker: it is not closed there, and
    opened again here. (The answer to COMMIT has two messages, the first of which is looked at.)"""
    pool = start_pool(pg.address, default_pool_size=1, worker_fill=0, **MODE)
    clients = [login(pool) for _ in range(4)]
    homes = {r["pid"] for r in report(clients[0], "pool_clients")}
    assert len(homes) == 2, homes
    server = clients[0].simple("select pg_backend_pid()")[1].body
    for _ in range(3):
        holder, *others = clients
        holder.simple("begin")
        assert holder.simple("select pg_backend_pid()")[1].body == server
        for w in others:
            w.send(query("select pg_backend_pid()"))
        waits.holds_for("nobody else is served", lambda: not select.select([w.sock for w in others], [], [], 0)[0], 0.05)  # and over POOL_REOPEN_US
        holder.simple("commit")
        assert [w.ready()[1].body for w in others] == [server] * 3
        clients = [*others, holder]
    for w in clients:
        w.bye()


def test_database_and_user_limits(pg, start_pool):
    """Two users in two databases: no database and no user has more than its limit, and nobody starves."""
    pool = start_pool(pg.address, max_db_connections=3, max_user_connections=4, **MODE)
    pairs = [(u, d) for u in ("trust_user", "other_user") for d in ("postgres", "other_db")]
    load = Load(pool, pairs * 6)

    def exceed() -> list:
        rows = pg.rows("select datname, usename, count(*) from pg_stat_activity where usename in "
                       "('trust_user', 'other_user') group by 1, 2")
        sums: dict[tuple[int, bytes], int] = {}
        for r in rows:
            for at in (0, 1):
                sums[at, r[at]] = sums.get((at, r[at]), 0) + int(r[2])
        return [(name, n) for (at, name), n in sums.items() if n > (3, 4)[at]]

    for _ in range(20):
        # The process of a connection that was closed to make room may take its time to go.
        waits.wait_for("nobody has more than the limit", lambda: not exceed())
        before = sum(load.done)
        waits.wait_for("clients get on", lambda: load.errors or sum(load.done) > before + 10, 30)
    load.finish()


def test_node_limit_is_shared(pg, start_pool):
    """Pools of a full node take turns: a pool without a link is not shut out by one that is always busy."""
    pool = start_pool(pg.address, max_backend_connections=3, **MODE)
    load = Load(pool, [("trust_user", "postgres")] * 12)
    waits.wait_for("the first pool is busy", lambda: load.errors or min(load.done) > 5, 30)
    late = Load(pool, [("other_user", "other_db")] * 6)
    waits.wait_for("the second pool is served", lambda: late.errors or min(late.done) > 5, 60)
    # The process of a connection that was closed for the other pool may take its time to go.
    waits.wait_for("no more than the limit", lambda: len(pg.sessions("usename in ('trust_user', 'other_user')")) <= 3)
    late.finish()
    load.finish()


def test_reserve(pg, start_pool):
    """A client that has waited for reserve_pool_timeout gets a link of the reserve, not before."""
    pool = start_pool(pg.address, default_pool_size=1, reserve_pool_size=1, reserve_pool_timeout=1,
                      num_init_children=2)
    first = login(pool)
    start = waits.now()
    second = login(pool)
    waited = waits.now() - start
    assert 0.8 < waited < 8 * waits.SCALE, waited
    assert len(pg.sessions("usename = 'trust_user'")) == 2
    third = Wire(pool.address, seconds=20)
    third.send_startup("trust_user", "postgres")
    assert third.is_quiet(1.5), "the reserve has one link, not two"
    for w in (first, second):
        w.bye()
    assert third.authenticate("trust_user", "")[-1].type == "Z"
    third.bye()


def test_reserve_is_never_used(pg, start_pool):
    """reserve_pool_timeout = 0 switches the reserve off, as with PgBouncer."""
    pool = start_pool(pg.address, default_pool_size=1, reserve_pool_size=2, reserve_pool_timeout=0, num_init_children=2)
    first = login(pool)
    second = Wire(pool.address, seconds=20)
    second.send_startup("trust_user", "postgres")
    assert second.is_quiet(0.5)
    assert len(pg.sessions("usename = 'trust_user'")) == 1
    first.bye()
    assert second.authenticate("trust_user", "")[-1].type == "Z"
    second.bye()


@pytest.mark.parametrize("name", ["default_pool_size", "max_db_connections", "max_user_connections",
                                  "max_backend_connections"])
@pytest.mark.parametrize("busy", [False, True])
def test_limit_is_lowered(pg, start_pool, name, busy):
    """By a reload: what is open beyond it is closed, idle or as soon as it is free, and nobody notices."""
    pool = start_pool(pg.address, default_pool_size=8, **MODE)
    mine = "usename = 'trust_user'"
    load = Load(pool, [("trust_user", "postgres")] * 16)
    waits.wait_for("the pool is full", lambda: load.errors or len(pg.sessions(mine)) == 8, 20)
    if not busy:
        load.finish()
    pool.write_conf(**{name: 2})
    assert said(pcp(pool, "reload_config"))[0] == 0, "all workers have it: one that has not may open more"
    waits.wait_for("links are closed", lambda: load.errors or len(pg.sessions(mine)) <= 2, 10)
    if busy:
        assert watch(pg, mine, load, 10) == 2
        pool.reload(**{name: 4})
        waits.wait_for("they are opened again", lambda: load.errors or len(pg.sessions(mine)) == 4, 10)
        load.finish()


@pytest.mark.parametrize("name,key", [("max_db_client_connections", "database \"postgres\""),
                                      ("max_user_client_connections", "user \"trust_user\"")])
def test_client_limits(pg, start_pool, name, key):
    pool = start_pool(pg.address, num_init_children=2, **{name: 3})
    held = [login(pool) for _ in range(3)]
    w = Wire(pool.address)
    w.send_startup("trust_user", "postgres")
    found = [m for m in w.read_eof() if m.type == "E"]
    assert len(found) == 1 and found[0].sqlstate == "53300" and found[0].fields["S"] == "FATAL", found
    assert found[0].text == f"too many clients of {key}" and found[0].fields["D"] == f"{name} is 3."
    other = login(pool, "other_user", "other_db")
    assert sum(limits(other, name).values()) == 4
    held.pop().bye()
    waits.wait_for("the client that left is counted out", lambda: sum(limits(other, name).values()) == 3)
    held.append(login(pool))
    for one in held + [other]:
        one.bye()


def test_min_pool_size(pg, start_pool):
    """A pool that has had a client is filled up, and stays so beyond server_idle_timeout."""
    pool = start_pool(pg.address, min_pool_size=3, server_idle_timeout=1, **MODE)
    login(pool).bye()
    mine = "usename = 'trust_user'"
    waits.wait_for("the pool is warm", lambda: len(pg.sessions(mine)) == 3, 10)
    waits.holds_for("the pool stays warm", lambda: len(pg.sessions(mine)) == 3, 3)
    pg.end_sessions(mine)
    w = login(pool)
    waits.wait_for("the pool is warm again", lambda: len(pg.sessions(mine)) == 3, 10)
    w.bye()


def test_min_pool_size_ends_at_the_pool_size(pg, start_pool):
    pool = start_pool(pg.address, min_pool_size=6, default_pool_size=2, **MODE)
    login(pool).bye()
    mine = "usename = 'trust_user'"
    waits.wait_for("the pool is warm", lambda: len(pg.sessions(mine)) == 2, 10)
    waits.holds_for("it has no more than it may", lambda: len(pg.sessions(mine)) == 2, 2.5)


def test_server_idle_timeout(pg, start_pool):
    pool = start_pool(pg.address, server_idle_timeout=1, **MODE)
    held = [login(pool) for _ in range(5)]
    assert all(int(w.value("select pg_backend_pid()")) > 0 for w in held), "there were some"
    waits.wait_for("idle links are closed", lambda: not pg.sessions("usename = 'trust_user'"), 10)
    for w in held:
        assert w.value("select 1") == "1"
        w.bye()


def test_server_lifetime(pg, start_pool):
    """A link that is in use all the time is replaced, too, and no client notices."""
    pool = start_pool(pg.address, server_lifetime=1, default_pool_size=2, **MODE)
    load = Load(pool, [("trust_user", "postgres")] * 8)
    waits.wait_for("the pool is full", lambda: len(pg.sessions("usename = 'trust_user'")) == 2, 10)
    first = set(pg.sessions("usename = 'trust_user'"))
    waits.wait_for("both links were replaced", lambda: load.errors or
                   not first & set(pg.sessions("usename = 'trust_user'")), 20)
    load.finish()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_server_lifetime_of_one_use(pg, start_pool, mode):
    """0, as with PgBouncer: a link serves one session, or one transaction, and is closed; what waits is not forgotten."""
    pool = start_pool(pg.address, server_lifetime=0, pool_mode=mode, num_init_children=2, default_pool_size=2)
    seen = []
    for _ in range(3):
        w = login(pool)
        for _ in range(2):
            seen.append(w.rows("begin; select pg_backend_pid(); commit")[0][0])
        w.bye()
    assert len(set(seen)) == (3 if mode == "session" else 6)
    load = Load(pool, [("trust_user", "postgres")] * 8, stay=mode == "transaction")
    assert watch(pg, "usename = 'trust_user' and state <> 'idle'", load, 5) <= 2
    load.finish()


def test_server_check(pg, start_pool):
    """server_check_delay 0: every link that was idle is asked before it is lent."""
    pool = start_pool(pg.address, server_check_delay=0, server_check_query="select 'checked'", num_init_children=1,
                      role_check_delay=0)
    login(pool).bye()
    waits.wait_for("the link is clean", lambda: pg.sessions("usename = 'trust_user' and query = 'DISCARD ALL'"))
    w = login(pool)
    assert pg.sessions("usename = 'trust_user' and query = 'select ''checked'''") == [w.pid]
    w.bye()


def test_server_check_of_many(pg, start_pool):
    """Logins in pairs, every link to be checked first: the second does not wait for the next sweep (50 ms), which would be
    150 ms at least for four pairs."""
    pool = start_pool(pg.address, server_check_delay=0, num_init_children=1, max_backend_connections=8, default_pool_size=8)
    before = [login(pool) for _ in range(8)]
    pids = {w.pid for w in before}
    for w in before:
        w.bye()

    def pairs() -> float:
        clean = "usename = 'trust_user' and query = 'DISCARD ALL' and state = 'idle'"
        waits.wait_for("the links are clean", lambda: len(pg.sessions(clean)) == 8)
        got = []
        begin = time.monotonic()
        with ThreadPoolExecutor(2) as two:
            for _ in range(4):
                got += two.map(lambda _: login(pool), range(2))
        taken = time.monotonic() - begin
        assert {w.pid for w in got} == pids, "a link was opened although others were idle"
        for w in got:
            w.bye()
        return taken

    assert any(pairs() < 0.12 for _ in range(40)), "once without a hiccup of the machine"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_worker_is_killed(pg, start_pool, mode):
    """kill -9 under load: counts return to the truth, nothing is lost, everybody who comes is served."""
    pool = start_pool(pg.address, default_pool_size=4, pool_mode=mode, num_init_children=2, max_backend_connections=8)
    load = Load(pool, [("trust_user", "postgres")] * 20 + [("other_user", "other_db")] * 20, is_rough=True, stay=mode != "session")
    waits.wait_for("there is load", lambda: sum(load.done) > 100, 30)
    for turn in range(3):
        killed = workers(pool)[turn % 2]
        os.kill(killed, signal.SIGKILL)
        before = sum(load.done)
        # One that is about to die may still take clients.
        waits.wait_for("two workers run", lambda: killed not in (now := workers(pool)) and len(now) == 2, 20)
        more = Load(pool, [("trust_user", "postgres")] * 6 + [("other_user", "other_db")] * 6, stay=mode != "session")
        waits.wait_for("the others are served", lambda: sum(load.done) + sum(more.done) > before + 100, 60)
        more.finish()
    load.finish()
    w = login(pool, "postgres")

    def is_true() -> bool:
        counted = limits(w, "default_pool_size")
        node = next(r for r in report(w, "pool_limits") if r["name"] == "max_backend_connections")
        real = len(pg.sessions("usename in ('trust_user', 'other_user', 'postgres') and application_name <> 'pgpool' and " + BY_TCP))
        clients = sum(limits(w, "max_db_client_connections").values())
        return int(node["used"]) == sum(counted.values()) == real and clients == 1 and int(node["waiting"]) == 0

    waits.wait_for("the counts are the truth", is_true, 20)
    assert "terminated by signal 9" in pool.log() or "signal 9" in pool.log()
    w.bye()


# What six clients are doing when a worker dies: with two links, the first two have one, the others wait.
DOING = {"idle": [query("select 1")],
         "in_transaction": [query("begin; select 1")],
         "running": [query("select pg_sleep(5)")],
         "copying": [query("copy killed_at from stdin")],
         "in_a_sequence": [parse("select 1"), bind(), execute(), FLUSH],
         "in_a_message": [query("select 1")[:7]]}


def test_worker_is_killed_at_each_step(pg, start_pool):
    """Links lent, idle, half a message sent; clients that wait for one: what the dead had is given back, no less and
    no more, and what the other worker has is still counted.
    """
    pool = start_pool(pg.address, default_pool_size=2, max_backend_connections=6, query_wait_timeout=20, worker_fill=0,
                      **MODE)
    pg.rows("drop table if exists killed_at")
    pg.rows("create table killed_at(a int)")
    pg.rows("grant all on killed_at to public")
    w = None

    def differs() -> list:
        """From the truth: what the server has, and the one client that asks."""
        counted = limits(w, "default_pool_size")
        clients = limits(w, "max_db_client_connections")
        node = next(r for r in report(w, "pool_limits") if r["name"] == "max_backend_connections")
        mine = ("trust_user", "postgres")
        real = len(pg.held("usename in ('trust_user', 'postgres') and application_name <> 'pgpool' and " + BY_TCP))
        rows = len(report(w, "pool_links"))
        waiting = sum(int(r["waiting"]) for r in report(w, "pool_queue"))
        told = (int(node["used"]), sum(counted.values()), rows, sum(clients.values()), waiting)
        return [] if told == (real, real, real, 1, 0) and counted.get(mine, 0) <= 2 else [told, real]

    for turn, (name, messages) in enumerate(DOING.items()):
        clients = [login(pool) for _ in range(6)]
        for c in clients:
            c.send(*messages)
        if name not in ("idle", "in_a_message"):
            waits.wait_for(f"two are {name}", lambda: len(pg.held("usename = 'trust_user' and state <> 'idle'")) == 2)
        killed = sorted(workers(pool))[turn % 2]
        os.kill(killed, signal.SIGKILL)
        waits.wait_for("two workers run", lambda: killed not in (now := workers(pool)) and len(now) == 2, 20)
        for c in clients:
            c.reset()
        w = login(pool, "postgres")
        seen: list = []
        try:
            waits.wait_for("the counts are the truth", lambda seen=seen: not (seen.append(differs()) or seen[-1]))
        except AssertionError as e:
            raise AssertionError(f"{name}: {seen[0]}, at last {seen[-1]}") from e
        w.bye()
        fresh = [login(pool) for _ in range(2)]
        for c in fresh:
            c.rows("begin")
            assert c.value("select 'both links are to be had'"), name
        for c in fresh:
            c.bye()


def test_reconnect_storm(pg, start_pool):
    """2,000 clients that come and go at once do not open or close server connections beyond the limit."""
    pg.rows("alter system set log_connections = on")
    pg.reload()
    waits.wait_for("logins are logged", lambda: pg.value("show log_connections") == "on")
    pool = start_pool(pg.address, default_pool_size=5, **MODE)
    seen = pg.log().count("connection authorized: user=trust_user")
    login(pool).bye()
    errors: list[str] = []

    def come_and_go(n: int) -> None:
        try:
            for _ in range(n):
                w = login(pool)
                assert w.value("select 1") == "1"
                w.reset() if n % 2 else w.bye()  # pylint: disable=expression-not-assigned
        except Exception as e:  # pylint: disable=broad-except
            errors.append(repr(e))

    threads = [threading.Thread(target=come_and_go, args=(50 + i % 2,)) for i in range(40)]
    for t in threads:
        t.start()
    most = 0
    while any(t.is_alive() for t in threads):
        most = max(most, len(pg.sessions("usename = 'trust_user'")))
    for t in threads:
        t.join()
    assert not errors, errors[:3]
    pg.rows("alter system reset log_connections")
    pg.reload()
    assert 1 <= most <= 5
    assert 1 <= pg.log().count("connection authorized: user=trust_user") - seen <= 5


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_trust_is_learnt_in_the_line(fake, start_pool, mode):
    """Who waits to be let in by a connection of its own, and then by none: the server asks nobody. That of another
    is not closed for it."""
    from pgt import fake as f  # pylint: disable=import-outside-toplevel
    opened = threading.Event()
    seen: list[int] = []

    def script(conn):
        seen.append(1)
        waits.wait_for("the test lets it in", opened.is_set, 20)
        f.serve(conn)

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode=mode, default_pool_size=1,
                      health_check_period=0, sr_check_period=0, reset_query_list="")
    some = [Wire(pool.address, seconds=10) for _ in range(4)]
    for w in some:
        w.send_startup("fake", "postgres")
    login(pool, "postgres").bye()  # whose pool is another one: by then the others are in the line
    opened.set()
    for w in some:
        assert w.authenticate("fake", "")[-1].type == "Z"
        w.bye()
    assert len(seen) == 1


@pytest.mark.parametrize("sqlstate, says, other", [
    ("53300", "It is full: raise max_connections there", "It starts"), ("57P03", "It starts, stops or recovers", "It is full")])
def test_server_refuses(fake, start_pool, sqlstate, says, other):
    """A server without room, or that is starting: clients wait instead of failing, and are served when it lets them in. The log says which."""
    from pgt import fake as f  # pylint: disable=import-outside-toplevel
    seen: list[float] = []
    room = threading.Event()

    def script(conn):
        seen.append(waits.now())
        if not room.is_set():
            conn.send(f.error(sqlstate, "not now", "FATAL"))
            return
        f.serve(conn)

    server = fake(script)
    pool = start_pool(server.address, num_init_children=2, query_wait_timeout=60)
    waiting = [Wire(pool.address, seconds=30) for _ in range(10)]
    for w in waiting:
        w.send_startup("fake", "postgres")
    waits.wait_for("it was tried again", lambda: len(seen) >= 4, 20)
    assert all(w.is_quiet(0.05) for w in waiting), "a client was told instead of waiting"
    assert len(seen) < 40, "the server is not left alone"
    assert f"refuses connections (SQLSTATE {sqlstate})" in pool.log() and says in pool.log() and other not in pool.log()
    room.set()
    for w in waiting:
        assert w.authenticate("fake", "")[-1].type == "Z"
        w.bye()


def test_server_connect_limit(fake, start_pool):
    """So many logins at the server run at a time, over all workers; who waits is served by those, and no place is lost."""
    from pgt import fake as f  # pylint: disable=import-outside-toplevel
    lock, opened = threading.Lock(), threading.Event()
    now = most = 0

    def script(conn):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        waits.wait_for("the test lets it in", opened.is_set, 20)
        with lock:
            now -= 1
        f.serve(conn)

    server = fake(script)
    pool = start_pool(server.address, server_connect_limit=3, query_wait_timeout=60, health_check_period=0,
                      sr_check_period=0, **MODE)
    clients = [Wire(pool.address, seconds=30) for _ in range(30)]
    for w in clients:
        w.send_startup("fake", "postgres")
    waits.wait_for("as many as may run do", lambda: now == 3)
    waits.holds_for("no more than may run at a time", lambda: most <= 3, 0.3)
    opened.set()
    for w in clients:
        assert w.authenticate("fake", "")[-1].type == "Z"
        assert not [m for m in w.simple("select 1") if m.type == "E"]
        w.bye()
    assert most <= 3


@pytest.mark.parametrize("there", [20, 100])
def test_a_server_keeps_a_margin(start_pool, there):
    """max_backend_connections = 0: of what the server gives to ordinary roles one is the monitor's, and a tenth, but at least
    three, are left to others. Who comes to the server itself gets in when the pool is full."""
    server = postgres.start_postgres({"max_connections": str(there)})
    try:
        room = there - int(server.value("show superuser_reserved_connections"))
        margin = max(room // 10, 3)
        pool = start_pool(server.address, num_init_children=1, pool_mode="session", max_backend_connections=0, query_wait_timeout=60,
                          sr_check_user="postgres", sr_check_period=1)
        with Wire(pool.address, seconds=30) as w:
            assert w.login("postgres", "postgres")[-1].type == "Z"

            def limit() -> int:
                return next(int(r["limit"]) for r in report(w, "pool_limits") if r["name"] == "max_backend_connections")

            waits.wait_for("the server has been asked", lambda: limit() == room - 1 - margin, 20)
            if there > 20:
                return
            full = [login(pool) for _ in range(limit() - 1)]
            late = Wire(pool.address, seconds=30)
            late.send_startup("trust_user", "postgres")
            waits.wait_for("it waits", lambda: any(int(r["waiting"]) for r in report(w, "pool_queue")), 20)
            direct: list[Wire] = []

            def comes_in() -> bool:
                direct.append(Wire(server.address, seconds=30))
                if direct[-1].login("trust_user", "postgres")[-1].type == "Z":
                    return True
                direct.pop().bye()
                return False  # the process of a connection that the monitor has closed may be there still

            for _ in range(margin):
                waits.wait_for("there is room for those who come to the server itself", comes_in)
            full[0].bye()
            assert late.read_until("Z")[-1].type == "Z"
            for one in (*full[1:], late, *direct):
                one.bye()
    finally:
        server.stop()


def test_a_link_that_is_cleaned_is_not_waited_for(start_pool, pg):
    """A login that may open a connection of its own does not wait for one that is being cleaned, which may take 10 s."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="session", max_backend_connections=2,
                      reset_query_list="ABORT;DISCARD ALL;SELECT pg_sleep(60)")
    took = []
    for _ in range(3):
        first = login(pool)
        assert first.value("select 1") == "1"
        gone = first.pid
        first.bye()
        waits.wait_for("it is being cleaned", lambda: pg.sessions("query like 'SELECT pg_sleep(60)%' and state = 'active'"), 20)
        began = time.monotonic()
        with Wire(pool.address, seconds=30) as second:
            assert second.login("trust_user", "postgres")[-1].type == "Z"
            took.append(time.monotonic() - began)
            assert second.pid != gone
        pg.end_sessions()
        if took[-1] < 5:
            break
    assert min(took) < 5
