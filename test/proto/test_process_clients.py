# SPDX-License-Identifier: PostgreSQL
"""test_process_clients: what clients see when pgpool stops, reloads or loses a process."""
import os
import re
import select
import signal
import socket
import threading

import pytest

from pgt import procs, waits
from pgt.wire import Wire, query, startup

from test_admin_orders import report

READY = b"Z\0\0\0\x05I"
HELPERS = (b"pgpool: monitor process", b"pgpool: PCP")


def workers(pool) -> list[int]:
    """Children that are not one of the helpers; a worker's title tells about its clients."""
    found = []
    for pid in procs.children(pool.daemon.pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                text = f.read()
        except OSError:
            continue
        if text.startswith(b"pgpool: ") and not text.startswith(HELPERS):
            found.append(pid)
    return found


def login(pool) -> Wire:
    wire = Wire(pool.address)
    found = wire.login()
    assert found[-1].type == "Z", found[-1].fields
    return wire


def refuses(pool) -> bool:
    try:
        pool.address.connect(2).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False


def test_smart_stop_waits_for_its_clients(pg, start_pool):
    pool = start_pool(pg.address)
    first, second = login(pool), login(pool)
    os.kill(pool.daemon.pid, signal.SIGTERM)
    waits.wait_for("no new clients", lambda: refuses(pool), 10)
    assert first.value("select 1") == "1"
    assert second.value("select 2") == "2"
    first.bye()
    waits.holds_for("one client is left", pool.daemon.is_running, 0.5)
    assert second.value("select 3") == "3"
    second.bye()
    assert pool.daemon.wait_exit(10) == 0


def test_fast_stop_tells_its_clients(pg, start_pool):
    pool = start_pool(pg.address)
    idle, busy, open_tx = login(pool), login(pool), login(pool)
    open_tx.simple("begin")
    busy.send(query("select pg_sleep(60)"))
    waits.wait_for("it runs", lambda: pg.sessions("query like '%pg_sleep(60)%' and state = 'active'"), 10)
    os.kill(pool.daemon.pid, signal.SIGINT)
    for wire in (idle, busy, open_tx):
        found = wire.read_eof(10)
        assert found and found[-1].type == "E", found
        assert found[-1].sqlstate == "57P01"
        wire.bye()
    assert pool.daemon.wait_exit(20) == 0
    waits.wait_for("no statement runs on", lambda: not pg.sessions(
        "query like '%pg_sleep(60)%' and state = 'active' and pid <> pg_backend_pid()"))


def test_fast_replaces_smart(pg, start_pool):
    pool = start_pool(pg.address)
    client = login(pool)
    os.kill(pool.daemon.pid, signal.SIGTERM)
    waits.wait_for("no new clients", lambda: refuses(pool), 10)
    assert client.value("select 1") == "1"
    os.kill(pool.daemon.pid, signal.SIGINT)
    assert client.read_eof(10)[-1].sqlstate == "57P01"
    assert pool.daemon.wait_exit(10) == 0


def test_immediate_stop_leaves_at_once(pg, start_pool):
    pool = start_pool(pg.address)
    clients = [login(pool) for _ in range(3)]
    os.kill(pool.daemon.pid, signal.SIGQUIT)
    assert pool.daemon.wait_exit(20) == 0
    for client in clients:
        client.bye()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_dead_worker_gives_back_what_it_held(pg, start_pool, how):
    """The limit of server connections is all used up by clients of workers that die."""
    pool = start_pool(pg.address, max_backend_connections=2, query_wait_timeout="10s")
    for _ in range(3):
        clients = [login(pool), login(pool)]
        assert [c.value("select 1") for c in clients] == ["1", "1"]
        old = waits.wait_for("two workers", lambda: len(w := workers(pool)) == 2 and w, 10)
        for pid in old:
            os.kill(pid, how)
        for client in clients:
            client.read_eof(10)
            client.bye()
        waits.wait_for("new workers", lambda: len(w := workers(pool)) == 2 and not set(w) & set(old), 10)
    survivors = [login(pool), login(pool)]
    assert [c.value("select 2") for c in survivors] == ["2", "2"]
    for client in survivors:
        client.bye()
    os.kill(pool.daemon.pid, signal.SIGINT)
    assert pool.daemon.wait_exit(10) == 0
    pool.log_seen = len(pool.log())  # the segmentation faults were ours


def test_other_clients_do_not_notice_a_crash(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=4)
    clients = [login(pool) for _ in range(8)]
    waits.wait_for("workers", lambda: len(workers(pool)) == 4, 10)
    victim = int(report(clients[0], "pool_clients")[0]["pid"])  # it has one of them at least
    os.kill(victim, signal.SIGKILL)
    waits.wait_for("a new worker", lambda: len(w := workers(pool)) == 4 and victim not in w, 10)
    alive = 0
    for client in clients:
        try:
            alive += client.value("select 7") == "7"
        except Exception:  # the connection went with its worker
            continue
        finally:
            client.bye()
    assert 4 <= alive <= 7, "clients of three of four workers live on, those of one do not"


def test_lines_of_a_session_name_it(pg, start_pool):
    """%a, %u and %d are those of the session; its own log_min_messages and verbosity hold for its lines."""
    pool = start_pool(pg.address, log_line_prefix="[%a|%u|%-12d] ", log_connections=True,
                      log_disconnections=True, log_statement=True)
    w = Wire(pool.address, seconds=20)
    w.login(application_name="my app")
    assert w.value("select 1") == "1"
    w.bye()
    waits.wait_for("the goodbye", lambda: "frontend disconnection" in pool.log())
    log = pool.log()
    assert re.search(r"^\[child\|\[No Connection\]\|\[No Connection\]\] LOG:  new connection received$", log, re.M)
    assert re.search(r"^\[my app\|postgres\|postgres    \] LOG:  statement: select 1$", log, re.M)
    assert re.search(r"^\[my app\|postgres\|postgres    \] LOG:  frontend disconnection: session time: "
                     r"0:00:0\d\.\d\d\d user=postgres database=postgres host=127\.0\.0\.1 port=\d+$", log, re.M)

    # Addresses: of what a tool reads that shuts out whom it sees too often.
    pool.reload(log_line_prefix="{%h|%r} ")
    def from_home() -> bool:
        with Wire(pool.address, seconds=20) as fresh:
            fresh.login()
            fresh.rows("select 5")
        return re.search(r"^\{127\.0\.0\.1\|127\.0\.0\.1\(\d+\)\} LOG:  statement: select 5$", pool.log(), re.M) is not None
    waits.wait_for("lines with the address", from_home)

    def count() -> int:
        return pool.log().count("LOG:  statement: ")
    quiet, other = Wire(pool.address, seconds=20), Wire(pool.address, seconds=20)
    for w in (quiet, other):
        w.login()
    quiet.rows("pgpool set log_min_messages = 'fatal'")
    before = count()
    quiet.rows("select 2")
    assert count() == before
    other.rows("select 3")
    assert count() == before + 1
    other.rows("pgpool set log_error_verbosity = 'verbose'")
    other.rows("select 4")
    assert re.search(r"LOG:  00000: statement: select 4\n.*LOCATION:  client_log_statement, client_log\.c:\d+\n",
                     pool.log())
    for w in (quiet, other):
        w.bye()


def test_title_names_the_only_client(pg, start_pool):
    """As pgpool-II's; of several the title says how many. It is %P of log_line_prefix, too."""
    pool = start_pool(pg.address, num_init_children=1, log_line_prefix="[%P] ", log_statement=True)
    pid = waits.wait_for("the worker", lambda: workers(pool), 10)[0]

    def title_is(pattern: str) -> None:
        waits.wait_for(f"the title is {pattern}, not {procs.command_line(pid).strip()}",
                       lambda: re.fullmatch(f"pgpool: {pattern}", procs.command_line(pid).strip()), 10)
    title_is("wait for connection request")
    mute = socket.create_connection((pool.address.host, pool.address.port))
    mute.sendall(b"\0\0\0")  # not before its first bytes
    title_is("accept connection")
    mute.close()
    title_is("wait for connection request")
    first = Wire(pool.address, seconds=20)
    first.login()
    port = first.sock.getsockname()[1]
    who = rf"postgres postgres 127\.0\.0\.1\({port}\) "
    title_is(who + "idle")
    first.simple("begin")
    title_is(who + "idle in transaction")
    first.send(query(" select pg_sleep(60)"))
    title_is(who + "SELECT")
    waits.wait_for("the server runs it", lambda: pg.sessions("query like ' select pg_sleep%' and state = 'active'"))
    second = login(pool)
    title_is("worker 0: 2 clients")
    assert re.search(r"^\[postgres postgres 127\.0\.0\.1\(\d+\) idle\] LOG:  statement: begin$", pool.log(), re.M)
    assert second.value("select count(pg_cancel_backend(pid)) from pg_stat_activity "
                        "where query like ' select pg_sleep%'") == "1"
    assert "[worker 0: 2 clients] LOG:  statement: select count" in pool.log()
    first.ready()
    first.bye()
    title_is(r"postgres postgres 127\.0\.0\.1\(\d+\) idle")
    second.bye()
    title_is("wait for connection request")


def test_log_hostname(pg, start_pool):
    """The lines of a client's coming and going have the name; a look-up does not hold up anybody."""
    name = socket.getnameinfo(("127.0.0.1", 1), 0)[0]
    if name == "127.0.0.1":
        pytest.skip("127.0.0.1 has no name here")
    pool = start_pool(pg.address, log_hostname=True, log_connections=True, log_disconnections=True)
    w = Wire(pool.address, seconds=20)
    w.login()
    w.bye()
    waits.wait_for("the connection", lambda: f"connecting host={name} port=" in pool.log())
    waits.wait_for("the goodbye", lambda: re.search(
        rf"frontend disconnection: .*user=postgres database=postgres host={re.escape(name)} port=\d+", pool.log()))


def test_clients_cannot_flood_the_log(pg, start_pool):
    pool = start_pool(pg.address, log_client_limit=5)
    begin = waits.now()
    for _ in range(300):
        with Wire(pool.address, seconds=20) as w:
            w.send(startup({"database": "postgres"}))  # no user
            w.read_eof()
    lines = pool.log().count("connection refused: ")
    assert 1 <= lines <= 5 * 2 * (waits.now() - begin + 2), lines  # per second and worker


def test_reload_keeps_sessions(pg, start_pool):
    pool = start_pool(pg.address)
    client = login(pool)
    client.simple("begin")
    client.simple("create temp table t_reload(a int) on commit drop")
    for n in range(2, 6):
        pool.reload(log_statement=n % 2 == 0)
        waits.wait_for("it is in use", lambda m=n: f"generation {m} is in use" in pool.log(), 10)
        assert client.value("select count(*) from t_reload") == "0"
    client.simple("commit")
    client.bye()


CLOEXEC = 0o2000000


def test_no_descriptor_outlives_exec(pg, start_pool):
    """Whatever runs another program (failover commands, PAM, passphrases, the linker of a library) hands on the
    first three descriptors and nothing of clients, servers, logs or the configuration."""
    pool = start_pool(pg.address, num_init_children=2, worker_fill=0, logging_collector=True, log_directory="log",
                      sr_check_user="postgres", pcp_listen_addresses="127.0.0.1", pcp_port=procs.free_port())
    clients = [login(pool) for _ in range(4)]
    clients[0].simple("begin")
    clients[1].simple("set pool_mode = transaction")
    clients[1].value("select 1")
    pool.reload()
    found = 0
    for pid in pool.pids():
        for fd in (int(n) for n in os.listdir(f"/proc/{pid}/fd") if int(n) > 2):
            try:
                with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                    flags = int(re.search(r"flags:\s*(\d+)", f.read()).group(1), 8)
                where = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue  # closed meanwhile
            found += 1
            assert flags & CLOEXEC, (procs.command_line(pid), fd, where)
    assert found > 20, found
    for client in clients:
        client.bye()


def clients_per_worker(asks: Wire) -> list[int]:
    """The fullest first. Who asks is one of them: clients that come and go would make others go elsewhere."""
    pids = [row[1] for row in asks.rows("show pool_clients")]
    return sorted((pids.count(pid) for pid in set(pids)), reverse=True)


def test_a_few_clients_share_a_worker_and_many_are_spread(pg, start_pool):
    """However long this takes: no worker is left out for being busy."""
    pool = start_pool(pg.address, num_init_children=3, worker_fill=4, pool_test_load=0)
    early = login(pool)  # perhaps by the second worker, before the first one runs
    waits.wait_for("three workers", lambda: len({row[0] for row in early.rows("show pool_processes")} - {b"0"}) == 3)
    early.bye()
    clients = [login(pool)]
    waits.wait_for("nobody else is there", lambda: clients_per_worker(clients[0]) == [1])
    for n, spread in ((4, [4]), (7, [4, 3]), (12, [4, 4, 4])):
        clients += [login(pool) for _ in range(n - len(clients))]
        assert clients_per_worker(clients[0]) == spread
    clients += [login(pool) for _ in range(12)]
    found = clients_per_worker(clients[0])
    assert sum(found) == 24 and max(found) - min(found) <= 3, found
    clients += [login(pool) for _ in range(66)]
    found = clients_per_worker(clients[0])
    assert sum(found) == 90 and max(found) - min(found) <= 4, found  # 2 and one in 16 more, and then one comes
    for client in clients:
        client.bye()


def keep_busy(wire, stop: threading.Event) -> None:
    """Answers that cost pgpool much and nobody else anything; they are not even looked at."""
    ahead = query("show pool_status") * 50
    wire.send(ahead + ahead)
    found = 0
    tail = b""
    while not stop.is_set() and select.select([wire.sock], [], [], 10)[0]:
        chunk = wire.sock.recv(1 << 20)
        found += (tail + chunk).count(READY)
        tail = chunk[-len(READY) + 1:]
        if found >= 50:
            wire.send(ahead)
            found -= 50


def cpu_s(pool) -> float:
    """Processor time that the processes of pgpool have used."""
    return sum(procs.cpu_ticks(pid) for pid in pool.pids()) / os.sysconf("SC_CLK_TCK")


def test_a_busy_worker_is_left_out(pg, start_pool):
    """A worker under load gets no more than the others, however few clients it has. All stay: it may be the one that
    the kernel wakes for each of them, and passes nobody on before it has clearly more."""
    pool = start_pool(pg.address, worker_fill=100)
    busy = [login(pool), login(pool)]
    stop = threading.Event()
    threads = [threading.Thread(target=keep_busy, args=(wire, stop)) for wire in busy]
    late = []

    def one_more_goes_elsewhere() -> bool:
        if len(late) < 50:  # all of them are fewer than worker_fill
            late.append(login(pool))
        asks = login(pool)
        own = asks.value("select pg_backend_pid()").encode()
        found = {row[1] for row in asks.rows("show pool_clients") if row[9] != own}
        asks.bye()
        return len(found) == 2

    begin, used = waits.now(), cpu_s(pool)
    try:
        for thread in threads:
            thread.start()
        waits.wait_for("a client on the other worker", one_more_goes_elsewhere, 20)
    except AssertionError:
        share = (cpu_s(pool) - used) / (waits.now() - begin)
        if share > 0.4:
            raise
        pytest.skip(f"others use the processors: the worker got {share:.0%} of one")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for wire in busy + late:
            wire.sock.close()
