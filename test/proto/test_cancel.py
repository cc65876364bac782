# SPDX-License-Identifier: PostgreSQL
"""test_cancel: cancel requests in every state: T15 of the catalogue."""
import contextlib
import threading

import pytest

from pgt import late, proxy, waits
from pgt.diff import differential
from pgt.fake import error, ready
from pgt.wire import (COPY_DONE, FLUSH, SYNC, Address, Wire, bind, cancel, cancel_request, copy_data, execute, message, parse, pg, query)

RUNNING = "select count(*) > 0 from pg_stat_activity where {} and state = 'active' and wait_event is not null"


def wait_running(t, c) -> None:
    t.wait_sql(RUNNING.format(t.process_of(c)))


WAITS = query("select pg_advisory_xact_lock(150)")


@contextlib.contextmanager
def held(t):
    """WAITS waits: it runs for as long as the test wants."""
    with Wire(t.pg.address) as holder:
        holder.login()
        holder.rows("select pg_advisory_lock(150)")
        yield
        holder.rows("select pg_advisory_unlock(150)")


@differential(chunks=(0,))
@pytest.mark.parametrize("how", ["simple", "extended", "in_transaction", "pipeline", "function"])
def test_t15_cancel_a_running_query(t, how):
    c = t.connect()
    if how == "in_transaction":
        c.simple("begin")
    if how in ("simple", "in_transaction"):
        c.send(query("select pg_sleep(60)"))
    elif how == "extended":
        c.send(pg("select pg_sleep(60)"), SYNC)
    elif how == "pipeline":
        c.send(pg("select 1"), pg("select pg_sleep(60)"), pg("select 3"), SYNC, pg("select 4"), SYNC)
    else:
        c.send(query("do $$ begin perform pg_sleep(60); end $$"))
    wait_running(t, c)
    t.cancel(c)
    c.ready(2 if how == "pipeline" else 1)
    c.simple("select 'alive'")
    c.simple("rollback")


@differential(chunks=(0,))
@pytest.mark.parametrize("state", ["idle", "in_transaction", "aborted", "open_sequence"])
def test_t15_cancel_when_nothing_runs(t, state):
    """It has no effect, not on the next statement either."""
    c = t.connect()
    if state in ("in_transaction", "aborted"):
        c.simple("begin")
    if state == "aborted":
        c.simple("select 1/0")
    if state == "open_sequence":
        c.send(parse("select 1"), bind(), FLUSH)
        c.until("2")
    t.cancel(c)
    c.quiet(0.2)
    if state == "open_sequence":
        c.send(execute(), SYNC)
        c.ready()
    c.simple("select pg_sleep(0.05)")
    c.simple("rollback")


@differential(chunks=(0,))
@pytest.mark.parametrize("sent", [0, 1, 5])
def test_t15_cancel_in_copy_in(t, sent):
    """The server notices it at the client's next message."""
    c = t.connect()
    c.simple("create temp table cc(a text)")
    c.send(query("copy cc from stdin"))
    c.until("G")
    c.send(*[copy_data(b"x\n")] * sent)
    t.cancel(c)
    # PostgreSQL signals the process and then its group: on a busy machine the second signal is late, and would hit the next query.
    waits.wait_for("the signal is delivered", lambda: t.pg.value("select pg_sleep(0.3) is not null") == "t")
    c.send(copy_data(b"y\n"))
    c.until("E")
    c.send(COPY_DONE)
    c.until("Z")
    c.simple("select count(*) from cc")


@differential(chunks=(0,))
def test_t15_cancel_in_copy_out(t):
    """The rows before the error are as many as there were; the error and what follows is the same."""
    c = t.connect()
    c.send(query("copy (select repeat('x', 1000), generate_series(1, 100000000)) to stdout"))
    c.until("d")
    shown = len(c.lines)
    t.cancel(c)
    c.ready()
    c.lines[shown - 1:] = [line for line in c.lines[shown - 1:] if not line.startswith(("d ", "#"))]
    c.simple("select 'alive'")


@differential(chunks=(0,))
def test_t15_cancel_waiting_for_a_lock(t):
    a, b = t.connect("a"), t.connect("b")
    a.simple("begin; select pg_advisory_xact_lock(15)")
    b.send(query("select pg_advisory_xact_lock(15)"))
    t.wait_sql(f"select count(*) > 0 from pg_locks where {t.process_of(b)} and not granted")
    t.cancel(b)
    b.ready()
    a.simple("commit")


@differential(chunks=(0,))
@pytest.mark.parametrize("wrong", ["pid", "key", "both", "zero"])
def test_t15_wrong_key_cancels_nothing(t, wrong):
    c = t.connect()
    with held(t):
        c.send(WAITS)
        wait_running(t, c)
        pid = c.wire.pid if wrong == "key" else 2 ** 22 + 7
        key = c.wire.key if wrong == "pid" else bytes(4) if wrong == "zero" else bytes(b ^ 255 for b in c.wire.key)
        c.note(repr(cancel(t.address, pid, key)))
    c.ready()


@differential(chunks=(0,))
def test_t15_key_of_another_session(t):
    """The key of one with the pid of the other; then each with its own."""
    a, b = t.connect("a"), t.connect("b")
    b.send(query("select pg_sleep(60)"))
    wait_running(t, b)
    a.note(repr(cancel(t.address, b.wire.pid, a.wire.key)))
    a.note(repr(cancel(t.address, a.wire.pid, b.wire.key)))
    b.quiet(0.2)
    t.cancel(a)
    b.quiet(0.2)
    t.cancel(b)
    b.ready()
    a.simple("select 'a'")


@differential(chunks=(0,))
def test_t15_many_cancels_at_once(t):
    c = t.connect()
    c.send(query("select pg_sleep(60)"))
    wait_running(t, c)
    threads = [threading.Thread(target=cancel, args=(t.address, c.wire.pid, c.wire.key)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    c.ready()
    c.end()


@differential(chunks=(0,))
def test_t15_cancel_after_the_session_ended(t):
    """The key of a session that is gone hits nobody, also not the next user of its server process."""
    a = t.connect("a")
    pid, key = a.wire.pid, a.wire.key
    a.end()
    t.wait_sql(f"select count(*) = 0 from pg_stat_activity where pid = {pid} and state = 'active'")
    b = t.connect("b")
    with held(t):
        b.send(WAITS)
        wait_running(t, b)
        b.note(repr(cancel(t.address, pid, key)))
    b.ready()


@pytest.mark.parametrize("rounds", [30])
def test_t15_reassigned_link_is_never_hit(pg, pgpool, rounds):
    """A cancels as it leaves; B, who may get A's server process, must not see 57014."""
    for _ in range(rounds):
        a = Wire(pgpool.address)
        a.login()
        a.send(query("select pg_sleep(0.001)"))
        pid, key = a.pid, a.key
        late = threading.Thread(target=cancel, args=(pgpool.address, pid, key))
        late.start()
        a.bye()
        with Wire(pgpool.address) as b:
            b.login()
            found = b.simple("select pg_sleep(0.02), 'mine'")
            assert [m.fields for m in found if m.type == "E"] == []
        late.join()


def test_t15_cancel_reaches_the_right_link(fake, start_pool):
    """Two sessions at a fake server: each cancel arrives with the pid and key of its own link."""
    answers = {}

    def script(conn):
        conn.greet(key=bytes([conn.number] * 4))
        while True:
            kind, body = conn.read()
            if kind == "X":
                return
            if kind == "Q" and body.startswith(b"hold"):
                answers[body[:-1].decode()] = conn
                waits.wait_for("cancel", lambda: any(p == conn.pid for p, _ in conn.server.cancels), 15)
                conn.send(error("57014", "canceled"), ready())
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, num_init_children=4)
    clients = []
    for i in range(6):
        w = Wire(pool.address)
        assert w.login("fake", "fake")[-1].type == "Z"
        w.send(query(f"hold {i}"))
        clients.append(w)
    waits.wait_for("all run", lambda: len(answers) == 6)
    due = set()
    for i in (3, 0, 5, 1, 4, 2):
        conn = answers[f"hold {i}"]
        due.add((conn.pid, bytes([conn.number] * 4)))
        cancel(pool.address, clients[i].pid, clients[i].key)
        waits.wait_for("it arrives", lambda: len(set(server.cancels)) >= len(due))  # it is told again when nothing comes of it
        assert set(server.cancels) == due
        assert [m.sqlstate for m in clients[i].ready() if m.type == "E"] == ["57014"]
    for w in clients:
        w.bye()


@pytest.mark.skipif(proxy.has_sanitizers(), reason="they want to be the first library")
@pytest.mark.parametrize("pool_mode", ["session", "transaction"])
def test_cancel_goes_where_its_link_leads(fake, start_pool, monkeypatch, pool_mode):
    """The server's name has several addresses: a cancel request goes to the server that runs the statement."""
    holds = []

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if body == b"hold\0":
                holds.append(conn)
                waits.wait_for("cancel", lambda: conn.server.cancels, 15)
                conn.send(error("57014", "canceled"), ready())
            else:
                conn.send(conn.answer(kind, body))

    servers = [fake(script)]
    servers.append(fake(script, address=Address("127.0.0.2", servers[0].address.port)))
    monkeypatch.setenv("PGPOOL_BIN", str(late.names_by_turns()))
    pool = start_pool(Address(late.NAME, servers[0].address.port), num_init_children=1, pool_mode=pool_mode)
    with Wire(pool.address) as w:
        assert w.login("fake", "fake")[-1].type == "Z"
        w.send(query("hold"))
        waits.wait_for("it runs", lambda: holds)
        cancel(pool.address, w.pid, w.key)
        assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["57014"]
        assert [bool(s.cancels) for s in servers] == [s is holds[0].server for s in servers]


def test_cancel_by_a_unix_socket(pg, start_pool):
    pool = start_pool(pg.socket, num_init_children=1)
    with Wire(pool.address) as w:
        assert w.login()[-1].type == "Z"
        w.send(query("select pg_sleep(20) /* by a Unix socket */"))
        waits.wait_for("it runs", lambda: pg.sessions("state = 'active' and query like '%by a Unix socket%'"))
        cancel(pool.address, w.pid, w.key)
        assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["57014"]


@pytest.mark.parametrize("pool_mode", ["session", "transaction"])
@pytest.mark.parametrize("messages", [query("hold"), parse("hold") + bind() + execute() + SYNC], ids=["simple", "extended"])
def test_cancel_in_front_of_its_query_is_told_again(fake, start_pool, messages, pool_mode):
    """A server process that has not read the query yet takes no notice: it is told again, but not when the next query runs."""
    seen = []

    def holds(conn, kind) -> bool:
        if kind not in ("Q", "E"):
            return False
        seen.append(kind)
        waits.wait_for("the second one", lambda: len(conn.server.cancels) >= 2, 15)
        return True

    def script(conn):
        conn.greet()
        held = False
        while True:
            kind, body = conn.read()
            if kind == "X":
                return
            if not held and (held := (b"hold" in body or kind == "E") and holds(conn, kind)):
                conn.send(error("57014", "canceled"))
                if kind == "Q" or conn.read()[0] == "S":
                    conn.send(ready())
            elif b"hold" in body or kind == "B":
                conn.send(message("1" if kind == "P" else "2", b""))
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, num_init_children=1, pool_mode=pool_mode)
    with Wire(pool.address) as w:
        assert w.login("fake", "fake")[-1].type == "Z"
        w.send(messages)
        waits.wait_for("it runs", lambda: seen)
        cancel(pool.address, w.pid, w.key)
        assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["57014"]
        told = len(server.cancels)
        assert w.simple("select 1")[-1].type == "Z" and w.is_quiet(0.3)
        assert len(server.cancels) == told


@pytest.mark.parametrize("pool_mode", ["session", "transaction"])
def test_canceller_hears_when_nothing_is_under_way(fake, start_pool, pool_mode):
    """Not after the first of several requests: the one on its way would meet what the client sends next."""
    may_close = threading.Event()

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if body == b"hold\0":
                waits.wait_for("it is told again", lambda: len(conn.server.cancels) >= 2, 15)
                conn.send(error("57014", "canceled"), ready())
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    server.on_cancel = lambda: len(server.cancels) < 2 or may_close.wait(15 * waits.SCALE)
    pool = start_pool(server.address, num_init_children=1, pool_mode=pool_mode)
    with Wire(pool.address) as w, Wire(pool.address) as asks:
        assert w.login("fake", "fake")[-1].type == "Z"
        w.send(query("hold"))
        asks.send(cancel_request(w.pid, w.key))
        assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["57014"]
        assert asks.is_quiet(0)
        may_close.set()
        assert asks.read_eof() == []
