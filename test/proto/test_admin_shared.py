# SPDX-License-Identifier: PostgreSQL
"""test_admin_shared: orders, time-outs and figures where clients share server connections: transaction mode."""
import threading

import pytest

from pgt import waits
from pgt.wire import SYNC, Wire, bind, cancel, describe, execute, parse, query

from test_admin_orders import error_of, login, ordered, report, tag_of
from test_admin_stats import stats_of
from test_admin_timeouts import ended


@pytest.fixture
def shared(pg, start_pool):
    def start(**conf):
        return start_pool(pg.address, **{"pool_mode": "transaction", "num_init_children": 1, **conf})
    return start


def hold(pool, **params) -> Wire:
    """A client in a transaction: it has a server connection."""
    w = login(pool, **params)
    w.simple("begin")
    w.simple("select 1")
    return w


def limit(pool, w: Wire, **conf: int) -> None:
    """Seconds that hold from now on, when all have logged in: on a busy machine that may take longer."""
    pool.reload(**conf)
    for name, seconds in conf.items():
        waits.wait_for("the worker has it", lambda n=name, s=seconds: w.value(f"pgpool show {n}") in (f"{s}", f"{s}s"))


def waiting(admin: Wire, n: int = 1) -> None:
    waits.wait_for("clients wait", lambda: sum(int(r["waiting"]) for r in report(admin, "pool_queue")) == n)


def test_pause_between_transactions(pg, shared):
    """PAUSE lets transactions end, holds what comes, and RESUME lets it through; nobody is disconnected."""
    others = set(pg.sessions())  # of another test's pgpool
    pool = shared(num_init_children=2)
    admin = login(pool)
    idle, busy = login(pool), hold(pool)
    admin.send(query("pgpool pause"))
    ordered(idle, "")
    assert admin.is_quiet(0.3)
    assert busy.value("select 2") == "2", "a transaction goes on"
    idle.send(query("select 'held'"))
    assert idle.is_quiet(0.3)
    busy.simple("commit")
    assert tag_of(admin.ready()) == "PAUSE"
    waits.wait_for("the server has seen them go", lambda: not set(pg.sessions()) - others)
    waits.wait_for("one waits", lambda: [(r["reason"], r["waiting"]) for r in report(admin, "pool_queue")] == [("paused", "1")])
    busy.send(query("select 'held, too'"))
    late = Wire(pool.address, seconds=20)
    late.send_startup("postgres")
    assert busy.is_quiet(0.3)
    tag_of(admin.simple("pgpool resume"))
    for w, text in ((idle, b"held"), (busy, b"held, too")):
        assert [m.row() for m in w.ready() if m.type == "D"] == [[text]]
    assert late.authenticate("postgres", "")[-1].type == "Z"


def test_pause_keeps_to_query_wait_timeout(pg, shared):
    pool = shared()
    admin, w = login(pool), login(pool)
    limit(pool, admin, query_wait_timeout=1)
    tag_of(admin.simple("pgpool pause"))
    w.send(query("select 1"))
    assert ended(w) == ("FATAL", "53300", "query_wait_timeout")
    admin.simple("pgpool resume")


def test_reconnect_at_the_end_of_a_transaction(pg, shared):
    pool = shared()
    admin, w = login(pool), hold(pool)
    pid = w.value("select pg_backend_pid()")
    tag_of(admin.simple("pgpool reconnect"))
    assert w.value("select pg_backend_pid()") == pid
    w.simple("commit")
    assert w.value("select pg_backend_pid()") != pid
    waits.wait_for("the old one is closed", lambda: int(pid) not in pg.sessions())


def test_drain_between_transactions(pg, shared):
    pg.rows("drop role if exists drain_shared; create role drain_shared login")
    pool = shared()
    admin = login(pool)
    who = {"user": "drain_shared", "database": "postgres"}
    idle, busy, begun = login(pool, **who), hold(pool, **who), login(pool, **who)
    begun.simple("begin")
    admin.send(query("pgpool drain"))
    assert [m.sqlstate for m in idle.read_eof(10)] == ["57P01"]
    assert busy.value("select 3") == "3"
    assert begun.value("select 4") == "4", "BEGIN was answered: a transaction is open, though no server knows"
    for w in (busy, begun):
        w.send(query("commit"))
        assert [m.type for m in w.read_eof(10)] == ["C", "Z", "E"]
    assert tag_of(admin.ready()) == "DRAIN"
    admin.simple("pgpool resume")


def test_waiting_is_told_and_counted(pg, shared):
    """query_wait_notify: once per wait, in PgBouncer's words."""
    begun = waits.now()
    pool = shared(max_backend_connections=1, query_wait_notify=1)
    admin, w = login(pool), login(pool, database="postgres")
    busy = hold(pool)
    asked = waits.now()
    w.send(query("select 'served'"))
    notice = w.read(10)
    assert notice.type == "N" and notice.fields["S"] == "NOTICE" and notice.sqlstate == "00000"
    assert notice.text == "No server connection available in postgres backend, client being queued"
    assert w.is_quiet(1.3)
    rows = report(admin, "pool_clients")
    assert [(r["state"], int(r["wait_ms"]) > 900) for r in rows if r["state"] == "waiting"] == [("waiting", True)]
    waited = waits.now() - asked
    busy.simple("commit")
    assert [m.row() for m in w.ready() if m.type == "D"] == [[b"served"]]
    got = stats_of(admin, "postgres")
    assert got["wait_p999_us"] > 900000 > got["wait_p50_us"]
    assert got["query_time_us"] < (waits.now() - begun - waited) * 1e6, "waiting is not query time"


def test_notice_can_be_hidden(pg, shared):
    pool = shared(max_backend_connections=1, query_wait_notify=1)
    w = login(pool)
    w.simple("pgpool set client_min_messages = warning")
    busy = hold(pool)
    w.send(query("select 1"))
    assert w.is_quiet(1.6)
    busy.simple("commit")
    assert [m.type for m in w.ready()] == ["T", "D", "C", "Z"]


@pytest.mark.parametrize("how", ["simple", "extended"])
def test_waiting_can_be_cancelled(pg, shared, how):
    """57014, the session lives on, and the place in the queue is given up."""
    pool = shared(max_backend_connections=1)
    admin, w, other = login(pool), login(pool), login(pool)
    busy = hold(pool)
    w.send(query("select 1") if how == "simple" else parse("select 1") + bind() + execute() + SYNC)
    waiting(admin)
    cancel(pool.address, w.pid, w.key)
    assert error_of(w.ready())[0] == "57014"
    waiting(admin, 0)
    other.send(query("select 'other'"))
    waiting(admin)
    busy.simple("commit")
    assert [m.row() for m in other.ready() if m.type == "D"] == [[b"other"]]
    assert w.value("select 'again'") == "again"


@pytest.mark.parametrize("setting,state", [("query_wait_timeout", "53300"), ("query_timeout", "08P01")])
def test_waiting_too_long(pg, shared, setting, state):
    pool = shared(max_backend_connections=1)
    admin, w = login(pool), login(pool)
    busy = hold(pool)
    limit(pool, admin, **{setting: 1})
    w.send(query("select 1"))
    assert ended(w) == ("FATAL", state, setting)
    waiting(admin, 0)
    assert busy.value("select 2") == "2"
    busy.simple("commit")
    assert login(pool).value("select 3") == "3"


def test_time_outs(pg, shared):
    """The connection of a client that was timed out serves the next."""
    pool = shared(max_backend_connections=1)
    slow, stays = login(pool), login(pool)
    limit(pool, stays, query_timeout=1, idle_transaction_timeout=1)
    slow.send(query("select pg_sleep(30)"))
    assert ended(slow) == ("FATAL", "08P01", "query timeout")
    pid = stays.value("select pg_backend_pid()")
    idle = hold(pool)
    assert ended(idle) == ("FATAL", "08P01", "idle transaction timeout")
    assert stays.value("select pg_backend_pid()") == pid
    begun = login(pool)
    begun.simple("begin")
    assert ended(begun) == ("FATAL", "08P01", "idle transaction timeout")
    assert stays.value("select 1") == "1", "who is outside of a transaction may idle"


def test_counts_shared(pg, shared):
    pool = shared()
    admin = login(pool)
    clients = [login(pool, database="other_db") for _ in range(3)]
    before = stats_of(admin, "other_db")
    for w in clients:
        for _ in range(4):
            w.simple("select 1")
        w.simple("begin")
        w.simple("select 2")
        w.simple("select 3")
        w.simple("commit")
    got = {k: v - before[k] for k, v in stats_of(admin, "other_db").items()}
    assert got["transactions"] == got["assignments"] == 3 * 5
    assert got["queries"] == 3 * 8
    assert got["logins"] == 0 and before["logins"] == 3


def test_pin_reasons(pg, shared):
    pool = shared()
    admin, w = login(pool), login(pool, application_name="pinned")

    def row() -> dict[str, str]:
        return next(r for r in report(admin, "pool_clients") if r["application_name"] == "pinned")

    assert (row()["pinned"], row()["pin_reason"]) == ("false", "")
    w.simple("listen c")
    w.simple("create temp table pin_mark (a int)")
    waits.wait_for("both reasons are shown", lambda: set(row()["pin_reason"].split(", ")) == {"listen", "temporary table"})
    assert row()["pinned"] == "true"
    link = next(r for r in report(admin, "pool_links") if r["client_id"] == row()["id"])
    assert link["pin_reason"] == row()["pin_reason"]
    w.simple("unlisten *")
    w.simple("drop table pin_mark")
    waits.wait_for("it is free", lambda: row()["pinned"] == "false")
    pins = {r["reason"]: (r["clients"], r["total"]) for r in report(admin, "pool_pins")}
    assert pins["listen"] == pins["temporary table"] == ("0", "1")


def test_orders_under_load(pg, shared):
    """Twelve clients at work on three connections while operators pause, resume and reconnect, ten times: no client
    sees anything of it but time, and every answer is the one it asked for."""
    others = set(pg.sessions())  # of another test's pgpool
    pool = shared(num_init_children=2, max_backend_connections=3)
    admin = login(pool)
    stop = threading.Event()
    failures: list[str] = []
    done = [0] * 12

    def work(i: int) -> None:
        try:
            with login(pool) as w:
                while not stop.is_set():
                    text = f"{i}-{done[i]}"
                    w.simple("begin")
                    if w.value(f"select '{text}'") != text:
                        failures.append(text)
                    w.simple("commit")
                    done[i] += 1
        except Exception as error:  # what goes wrong in a thread is told at the end
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(done))]
    for t in threads:
        t.start()
    for _ in range(10):
        before = list(done)
        assert tag_of(admin.simple("pgpool pause")) == "PAUSE"
        waits.wait_for("the server has seen them go", lambda: not set(pg.sessions()) - others)
        assert tag_of(admin.simple("pgpool resume")) == "RESUME"
        assert tag_of(admin.simple("pgpool reconnect")) == "RECONNECT"
        waits.wait_for("everybody goes on", lambda: all(a > b for a, b in zip(done, before)))
    stop.set()
    for t in threads:
        t.join()
    assert failures == []
    waits.wait_for("those that were replaced have gone", lambda: len(set(pg.sessions()) - others) <= 3)


def test_answers_keep_their_order(shared):
    """What is answered here comes behind what the server says of messages in front of it in the same sequence."""
    pool = shared()
    other = Wire(pool.address)
    other_pid = next(int.from_bytes(m.body[:4], "big") for m in other.login() if m.type == "K")
    w = login(pool)
    show = parse("show pool_version"), bind(), execute()

    def order(*parts: bytes) -> str:
        w.send(*parts, SYNC)
        return "".join(m.type for m in w.ready())
    assert order(parse("select 1", "a"), *show) == "112DCZ"
    assert order(parse("select 2", "b"), describe("b"), *show) == "1tT12DCZ"
    assert order(parse("select 3", "c"), bind(name="c", portal="p"), *show, execute("p")) == "1212DCDCZ"
    kill = parse("select pg_cancel_backend($1)"), bind([str(other_pid)]), describe(what="P"), execute()
    assert order(*kill) == "12TDCZ"
    w.send(parse("select 4", "d"), query("show pool_version"))
    assert [m.type for m in w.ready()][0] == "1"
    assert w.value("select 5") == "5"
    w.bye()
    other.bye()
