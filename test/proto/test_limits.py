# SPDX-License-Identifier: PostgreSQL
"""test_limits: the queue, limits and time-outs, and memory: T16 of the catalogue."""
import re
import threading

import pytest

from pgt import procs, waits
from pgt.pcp_tool import pcp, said
from pgt.wire import SYNC, Wire, bind, describe, execute, parse, query, startup


def login(pool, **params) -> Wire:
    w = Wire(pool.address, seconds=20)
    found = w.login(**params)
    assert found[-1].type == "Z", found[-1].fields
    return w


def fits(pool, **params) -> bool:
    """Whether there is room: the worker of who has left may not have noticed yet, and its link not be clean."""
    with Wire(pool.address, seconds=20) as w:
        return w.login(**params)[-1].type == "Z"


def test_queue_then_served(pg, start_pool):
    """Five clients, two server connections (and one of who looks): the others wait and are served in order of arrival.
    With one worker: between two, who has waited not much longer does not go first."""
    pg.rows("drop role if exists queue_user; create role queue_user login")
    pool = start_pool(pg.address, max_backend_connections=3, query_wait_timeout=30, num_init_children=1)
    looker = login(pool)
    held = [login(pool, user="queue_user"), login(pool, user="queue_user")]
    waiting = []
    for _ in range(3):
        w = Wire(pool.address, seconds=20)
        w.send_startup("queue_user", "postgres")
        waiting.append(w)
        waits.wait_for("it is in the queue", lambda: [r[3] for r in looker.rows("show pool_queue")] == [b"%d" % len(waiting)])
        assert w.is_quiet(0.1)
    assert len(pg.sessions("usename = 'queue_user'")) == 2
    for i, w in enumerate(waiting):
        (held + waiting)[i].bye()
        assert w.authenticate("queue_user", "")[-1].type == "Z"
        assert w.value("select 1") == "1"
        assert all(later.is_quiet(0.1) for later in waiting[i + 2:])
    for w in (*waiting, looker):
        w.bye()


def test_queue_timeout(pg, start_pool):
    """query_wait_timeout, with a text that says what and what to do; the one who holds the link is not hurt."""
    pool = start_pool(pg.address, max_backend_connections=1)
    holder = login(pool)
    pool.write_conf(query_wait_timeout=1)
    assert said(pcp(pool, "reload_config"))[0] == 0
    w = Wire(pool.address, seconds=10)
    start = waits.now()
    w.send_startup("postgres")
    found = [m for m in w.read_eof() if m.type == "E"]
    assert 0.5 < waits.now() - start < 15 * waits.SCALE
    assert len(found) == 1 and found[0].fields["S"] == "FATAL" and found[0].sqlstate == "53300", found
    assert len(found[0].text) > 10
    assert found[0].fields.get("D") or found[0].fields.get("H") or "query_wait_timeout" in found[0].text
    assert holder.value("select 'unhurt'") == "unhurt"
    holder.bye()
    waits.wait_for("the next one is served", lambda: fits(pool))


def test_waiting_client_leaves(pg, start_pool):
    """One that gives up waiting is out of the queue: the next gets the link."""
    pool = start_pool(pg.address, max_backend_connections=1, query_wait_timeout=30)
    holder = login(pool)
    quitters = [Wire(pool.address) for _ in range(3)]
    for w in quitters:
        w.send_startup("postgres")
    patient = Wire(pool.address, seconds=20)
    patient.send_startup("postgres")
    assert patient.is_quiet(0.3)
    for w in quitters:
        w.reset()
    holder.bye()
    assert patient.authenticate("postgres", "")[-1].type == "Z"
    assert patient.value("select 1") == "1"
    patient.bye()


def test_max_clients(pg, start_pool):
    pool = start_pool(pg.address, max_clients=3)
    held = [login(pool) for _ in range(3)]
    w = Wire(pool.address)
    w.send_startup("postgres")
    found = [m for m in w.read_eof() if m.type == "E"]
    assert len(found) == 1 and found[0].sqlstate == "53300" and found[0].fields["S"] == "FATAL"
    held[0].bye()
    waits.wait_for("a place is free again", lambda: fits(pool))
    for w in held[1:]:
        w.bye()


def test_reserved_connections(pg, start_pool):
    """The last places are a superuser's, also of one that no worker has seen; the others are told 53300."""
    pg.rows("drop role if exists plain_one; create role plain_one login; "
            "drop role if exists super_one; create role super_one login superuser")
    pool = start_pool(pg.address, max_clients=4, reserved_connections=2)
    users = [login(pool, user="plain_one", database="postgres") for _ in range(2)]
    for _ in range(3):  # the first of them before it is known who that is
        for name in ("plain_one", "trust_user"):
            w = Wire(pool.address, seconds=20)
            found = w.login(user=name, database="postgres")
            assert found[-1].type == "E" and found[-1].sqlstate == "53300", found
            w.read_eof()
    supers = [login(pool, user="super_one", database="postgres") for _ in range(2)]
    w = Wire(pool.address, seconds=20)
    found = w.login(user="super_one", database="postgres")
    assert found[-1].sqlstate == "53300", found
    for w in supers + users:
        assert w.value("select 1") == "1"
        w.bye()
    waits.wait_for("places are free again", lambda: fits(pool, user="plain_one", database="postgres"))


def test_client_idle_limit(pg, start_pool):
    pool = start_pool(pg.address)
    start = waits.now()
    idle, busy = login(pool), login(pool)
    busy.send(query("select pg_sleep(2)"))
    pool.reload(client_idle_limit=1)  # nobody is held up between two lines for as long as that
    found = idle.read_eof(10)
    assert waits.now() - start > 0.5
    assert [m.type for m in found] == ["E"] and found[0].fields["S"] == "FATAL" and found[0].sqlstate in ("57P01", "57P05"), found
    waits.wait_for("the log says whose", lambda: re.search(r'session of user "\w+" ends: client_idle_limit \(1 s\) is reached', pool.log()))
    assert [m.type for m in busy.ready()] == ["T", "D", "C", "Z"]
    busy.bye()


@pytest.mark.parametrize("sent", ["nothing", "half", "no_password"])
def test_authentication_timeout(pg, start_pool, sent):
    """Who does not finish the login is put out; others go on. A connection that never sends a byte is
    held by the kernel for some seconds before we are told of it."""
    pool = start_pool(pg.address, authentication_timeout=2)
    other = login(pool)
    w = Wire(pool.address)
    if sent == "half":
        w.send(startup({"user": "postgres"})[:9])
    elif sent == "no_password":
        w.send_startup("scram_user", "postgres")
    found = w.read_eof(40)
    assert [m.type for m in found if m.type != "R"] in ([], ["E"]), found
    assert other.value("select 1") == "1"
    other.bye()
    waits.wait_for("no login is left at the server", lambda: not pg.logins())


def test_connection_life_time(pg, start_pool):
    """An idle link of the pool is closed after it."""
    pool = start_pool(pg.address, connection_life_time=1, num_init_children=1)
    w = login(pool, application_name="life")
    pid = w.pid
    w.bye()
    waits.wait_for("the idle link is closed", lambda: pid not in pg.sessions(), 15)
    login(pool).bye()


def test_connection_cache_off(pg, start_pool):
    """connection_cache = off: the server connection ends with the session."""
    pool = start_pool(pg.address, connection_cache=False, num_init_children=1)
    w = login(pool)
    pid = w.pid
    w.bye()
    waits.wait_for("the link is closed", lambda: pid not in pg.sessions())


def test_child_max_connections(pg, start_pool):
    """A worker that has served so many clients is replaced; no client is lost by it."""
    pool = start_pool(pg.address, child_max_connections=5, num_init_children=1)
    def workers() -> set[str]:
        w = login(pool)
        pids = {row[0].decode() for row in w.rows("show pool_processes")}
        w.bye()
        return pids

    # It never has no client: a successor starts beside it, and it serves those who are left.
    kept, seen = [], workers()
    for i in range(1, 5):
        kept.append(login(pool))
        waits.wait_for("a successor", lambda i=i: len(workers()) == i + 1)
        seen |= workers()
    assert len(seen) == 5, "the old ones are there yet"
    # Four may retire at a time: the fifth goes on, however many it serves.
    kept.append(login(pool))
    assert all(workers() == seen for _ in range(12))
    assert [c.value("select 'still here'") for c in kept] == ["still here"] * 5
    kept.pop(0).bye()
    waits.wait_for("the one that has no client left is gone", lambda: (now := workers()) - seen and seen - now)
    assert [c.value("select 2") for c in kept] == ["2"] * 4
    for c in kept:
        c.bye()
    waits.wait_for("one is left", lambda: len(workers()) == 1)


def test_max_pool(pg, start_pool):
    """A worker keeps links of max_pool pairs without a client; the one left longest ago goes."""
    pg.rows("; ".join(f"drop role if exists keep_{i}; create role keep_{i} login" for i in range(4)))
    pool = start_pool(pg.address, max_pool=2, num_init_children=1, health_check_period=0, sr_check_period=0)

    def linked() -> list[str]:
        return sorted(u.decode() for (u,) in pg.rows(
            "select distinct usename from pg_stat_activity where usename like 'keep%'"))
    used = login(pool, user="keep_0", database="postgres")
    for i in (1, 2, 3):
        login(pool, user=f"keep_{i}", database="postgres").bye()
        waits.wait_for("it is clean, and so free", lambda i=i: pg.rows(
            f"select from pg_stat_activity where usename = 'keep_{i}' and state = 'idle' and query = 'DISCARD ALL'"))
    waits.wait_for("the oldest goes", lambda: linked() == ["keep_0", "keep_2", "keep_3"])
    login(pool, user="keep_2", database="postgres").bye()  # it is the newest now
    waits.wait_for("it is free", lambda: linked() == ["keep_0", "keep_2", "keep_3"])
    used.bye()
    waits.wait_for("3 goes", lambda: linked() == ["keep_0", "keep_2"])


def test_max_pool_off(pg, start_pool):
    """Without max_pool every pair is kept."""
    pg.rows("; ".join(f"drop role if exists keep_{i}; create role keep_{i} login" for i in range(8)))
    pool = start_pool(pg.address, num_init_children=1)
    for _ in range(2):
        for i in range(8):
            login(pool, user=f"keep_{i}", database="postgres").bye()
    # Who comes while the former link is cleaned gets another one: there may be more than eight.
    waits.wait_for("all are clean", lambda: pg.value(
        "select count(*) filter (where state = 'idle' and query = 'DISCARD ALL') = count(*) and count(distinct usename) = 8 "
        "from pg_stat_activity where usename like 'keep%'") == "t")
    assert pg.value("select count(distinct usename) from pg_stat_activity where usename like 'keep%'") == "8"


def test_many_short_sessions_leak_nothing(pg, pgpool):
    """300 logins of every kind of end: descriptors and links come back."""
    def fds() -> int:
        return sum(procs.fd_count(pid) for pid in pgpool.pids())
    for i in range(20):
        login(pgpool).bye()
    before, links = fds(), len(pg.sessions())
    for i in range(300):
        w = login(pgpool) if i % 3 else Wire(pgpool.address)
        if i % 2:
            w.bye()
        else:
            w.reset()
    waits.wait_for("descriptors come back", lambda: fds() <= before + 4)
    waits.wait_for("links come back", lambda: len(pg.sessions()) <= links + 4)


# ---- big messages and slow readers: memory stays bounded

MB = 1 << 20


def peak_growth(pool, work, limit_kb: int) -> None:
    """Runs `work` while watching the memory of all processes of the pool."""
    before = pool.memory_kb()
    peak = [before]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.01):
            peak[0] = max(peak[0], pool.memory_kb())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        work()
    finally:
        stop.set()
        thread.join()
    grown = peak[0] - before
    assert grown < limit_kb * waits.SCALE, f"memory grew by {grown} kB (limit {limit_kb})"


def big_row(pool, size: int) -> None:
    """One value of `size` bytes, read by a client that first does not read at all."""
    w = Wire(pool.address, seconds=300, rcvbuf=65536)
    assert w.login()[-1].type == "Z"
    w.send(query(f"select repeat('x', {size})"))
    assert w.fill(1)
    left = size + 1000
    seen = 0
    while left > 0 and not w.inbuf.endswith(b"Z\0\0\0\5I"):
        seen += len(w.inbuf)
        del w.inbuf[:-16]
        seen -= len(w.inbuf)
        w.fill(len(w.inbuf) + 1)
    assert size < seen + len(w.inbuf) < size + 200
    w.bye()


def big_parameter(pool, size: int) -> None:
    w = Wire(pool.address, seconds=300)
    assert w.login()[-1].type == "Z"
    value = b"y" * size
    w.send(parse("select length($1::text)"), bind([value]), describe("", "P"), execute(), SYNC)
    assert [m.row() for m in w.ready() if m.type == "D"] == [[str(size).encode()]]
    w.bye()


def test_t16_64_mb_row_slow_reader(pgpool):
    peak_growth(pgpool, lambda: big_row(pgpool, 64 * MB), 16 * 1024)


def test_t16_64_mb_parameter(pgpool):
    peak_growth(pgpool, lambda: big_parameter(pgpool, 64 * MB), 16 * 1024)


def test_t16_many_small_rows_nobody_reads(pg, pgpool):
    """The reply to a client that does not read waits at the server, not in us."""
    def work() -> None:
        w = Wire(pgpool.address, rcvbuf=65536)
        w.login()
        w.send(query("select repeat('z', 100), generate_series(1, 2000000)"))
        w.fill(1)
        waits.wait_for("the server waits for us", lambda: pg.value(
            f"select wait_event = 'ClientWrite' from pg_stat_activity where pid = {w.pid}") == "t")
        w.reset()
    peak_growth(pgpool, work, 8 * 1024)


def test_t16_pipeline_that_nobody_reads(pgpool):
    """Requests without end from a client that never reads: we stop taking them."""
    def work() -> None:
        w = Wire(pgpool.address, rcvbuf=65536)
        w.login()
        w.sock.setblocking(False)
        request = query("select repeat('q', 10000)") * 1000
        sent = 0
        try:
            while sent < 64 * MB:
                sent += w.sock.send(request)
        except BlockingIOError:
            pass
        assert sent < 64 * MB, "it takes requests without end"
        w.reset()
    peak_growth(pgpool, work, 16 * 1024)
    login(pgpool).bye()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("work", [big_row, big_parameter], ids=["row", "parameter"])
def test_t16_one_gb(pgpool, work):
    peak_growth(pgpool, lambda: work(pgpool, 1000 * MB), 16 * 1024)


@pytest.mark.parametrize("length", [65535, 65536, 65537, 131072, 1048575, 1048576, 1048577])
def test_sizes_around_buffer_ends(pgpool, length):
    with Wire(pgpool.address) as w:
        w.login()
        for size in range(length - 3, length + 4):
            assert len(w.value(f"select repeat('b', {size})")) == size
        assert w.value("select '" + "c" * length + "'") == "c" * length
