# SPDX-License-Identifier: PostgreSQL
"""test_notify: LISTEN and NOTIFY, and half-closed sockets and vanishing clients."""
import pytest

from pgt import postgres
from pgt.diff import differential
from pgt.wire import SYNC, TERMINATE, Wire, parse, pg, query


@differential()
def test_own_notification(t):
    c = t.connect()
    c.simple("listen a")
    c.simple("notify a, 'payload'")
    c.simple("select pg_notify('a', 'x'), pg_notify('b', 'not heard')")
    c.simple("begin; notify a, '1'; notify a, '1'; notify a, '2'; commit")
    c.simple("unlisten a; notify a")


@differential()
def test_notification_between_sessions(t):
    """It reaches an idle client unasked, and names the process id that the sender was told."""
    a = t.connect("a")
    b = t.connect("b")
    a.simple("listen news")
    b.simple("notify news, 'idle'")
    a.until("A")
    a.simple("begin")
    b.simple("notify news, 'in transaction'")
    a.quiet()
    a.simple("commit")
    a.simple("unlisten *")
    b.simple("notify news, 'lost'")
    a.quiet()


@differential()
def test_many_notifications_while_idle(t):
    a = t.connect("a")
    b = t.connect("b")
    a.simple("listen news")
    b.send(pg("select pg_notify('news', g::text) from generate_series(1, 500) g"), SYNC)
    b.ready()
    for _ in range(500):
        a.until("A")


@pytest.mark.session_mode
@differential()
def test_pid_is_the_server_process(t):
    """BackendKeyData, pg_backend_pid() and pg_stat_activity tell the same number."""
    a = t.connect("a")
    b = t.connect("b")
    a.simple("select pg_backend_pid()")
    b.simple("select pg_backend_pid()")
    a.simple("select pid from pg_stat_activity where pid = pg_backend_pid()")


@pytest.mark.session_mode
@differential()
def test_terminate_own_backend(t):
    c = t.connect()
    c.send(query("select pg_terminate_backend(pg_backend_pid())"))
    c.eof()


@pytest.mark.session_mode
@differential()
@pytest.mark.parametrize("state", ["idle", "in_transaction", "aborted"])
def test_backend_terminated_by_another(t, state):
    c = t.connect()
    if state != "idle":
        c.simple("begin")
    if state == "aborted":
        c.simple("select 1/0")
    pid = c.wire.pid
    t.direct(f"select pg_terminate_backend(pid) from pg_stat_activity where pid = {pid}")
    c.eof()


@pytest.mark.session_mode
@differential()
def test_idle_in_transaction_timeout(t):
    c = t.connect()
    c.simple("set idle_in_transaction_session_timeout = 100")
    c.simple("begin")
    c.eof()


@pytest.mark.session_mode
@differential()
def test_idle_session_timeout(t):
    if postgres.major() < 14:
        pytest.skip("PostgreSQL 13 has no idle_session_timeout")
    c = t.connect()
    c.simple("set idle_session_timeout = 100")
    c.eof()


@differential()
def test_statement_timeout(t):
    c = t.connect()
    c.simple("set statement_timeout = 400")  # it holds for the statement that ends it, too
    c.simple("select pg_sleep(10)")
    c.send(pg("select pg_sleep(10)"), SYNC)
    c.ready()
    c.simple("set statement_timeout = 0; select 'fine'")


@differential()
@pytest.mark.parametrize("what", ["query", "two", "extended", "nothing", "terminate", "behind", "behind_terminate"])
def test_half_closed(t, what):
    """The client shuts down its sending side at once and still gets its answers."""
    c = t.connect()
    c.send({"query": query("select 1"), "two": query("select 1") + query("select 2"),
            "extended": pg("select 3") + SYNC, "nothing": b"",
            "terminate": query("select 4") + TERMINATE,
            "behind": query("select 5") + pg("select 6") + SYNC + parse("select 7", "x"),
            "behind_terminate": query("select 8") + pg("select 9") + SYNC + pg("select 10") + TERMINATE}[what])
    c.wire.half_close()
    c.eof()


@differential()
def test_terminate_behind_statements(t):
    c = t.connect()
    c.send(query("select 1"), pg("select 2"), SYNC, TERMINATE)
    c.eof()


@differential()
def test_terminate_without_sync(t):
    c = t.connect()
    c.send(parse("select 1", "x"), pg("select 2"), TERMINATE)
    c.eof()


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("sql", ["select pg_sleep(60)", "begin", "begin; create table vanish(a int)",
                                 "select generate_series(1, 100000000)"])
def test_client_vanishes(pg, pgpool, wait_for, sql, how):
    """Whatever it was doing ends at the server, nothing it began is kept."""
    marker = f"/* vanish {how} */ "
    w = Wire(pgpool.address)
    w.login()
    w.send(query(marker + sql))
    wait_for("the server runs it", lambda: pg.sessions(f"query like '{marker}%'"))
    if sql.startswith("begin"):
        w.ready()
    if how == "reset":
        w.reset()
    else:
        w.sock.close()
    wait_for("it ends at the server", lambda: not pg.sessions(
        f"query like '{marker}%' and state in ('active', 'idle in transaction')"))
    assert pg.value("select count(*) from pg_class where relname = 'vanish'") == "0"
    with Wire(pgpool.address) as again:
        again.login()
        assert again.value("select 'alive'") == "alive"
