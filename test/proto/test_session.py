# SPDX-License-Identifier: PostgreSQL
"""test_session: what one client leaves behind, the next on the same server connection never sees; and
links that died while idle are replaced unseen."""
import pytest

from pgt import waits
from pgt.wire import SYNC, Wire, parse, pg, query


@pytest.fixture
def one_link(pg, start_pool):
    """A pool with a single server connection, so that the next client gets the last one's."""
    return start_pool(pg.address, num_init_children=1, max_backend_connections=1, query_wait_timeout=20)


def login(pool, **params) -> Wire:
    w = Wire(pool.address, seconds=20)
    found = w.login(**params)
    assert found[-1].type == "Z", found[-1].fields
    return w


LEFT = {
    "temp_table": ("create temp table left_behind(a int)", "select to_regclass('pg_temp.left_behind') is null"),
    "setting": ("set work_mem = '7MB'; set my.own = 'secret'",
                "select current_setting('work_mem') = '4MB' and coalesce(current_setting('my.own', true), '') = ''"),
    "role": ("set role trust_user", "select current_user = 'postgres'"),
    "authorization": ("set session authorization trust_user", "select session_user = 'postgres'"),
    "prepared": ("prepare p as select 1", "select count(*) = 0 from pg_prepared_statements"),
    "listen": ("listen news", "select count(*) = 0 from pg_listening_channels()"),
    "advisory_lock": ("select pg_advisory_lock(99)", "select count(*) = 0 from pg_locks where locktype = 'advisory'"),
    "cursor": ("declare c cursor with hold for select 1", "select count(*) = 0 from pg_cursors"),
    "transaction": ("begin; create table never(a int)", "select to_regclass('never') is null"),
    "aborted": ("begin; select 1/0", "select true"),
    "read_only": ("set session characteristics as transaction read only",
                  "select current_setting('transaction_read_only') = 'off'"),
    "search_path": ("set search_path = pg_temp", "select current_setting('search_path') = '\"$user\", public'"),
    "seed_sequence": ("create temp sequence s; select nextval('s')", "select to_regclass('s') is null"),
}


@pytest.mark.parametrize("leave", ["terminate", "close", "reset"])
@pytest.mark.parametrize("make,gone", LEFT.values(), ids=LEFT.keys())
def test_nothing_is_left(one_link, make, gone, leave):
    first = login(one_link)
    pid = first.pid
    first.simple(make)
    if leave == "terminate":
        first.bye()
    elif leave == "reset":
        first.reset()
    else:
        first.sock.close()
    second = login(one_link)
    # What is this session's own would be there for ever; a lock of a connection that was closed goes with its process.
    waits.wait_for("nothing is left", lambda: second.value(gone) == "t", 20)
    assert second.pid == pid or leave != "terminate", "the link was not used again"
    second.bye()


def test_named_statement_of_the_wire_is_gone(one_link):
    first = login(one_link)
    first.send(parse("select 'secret'", "st"), SYNC)
    first.ready()
    first.bye()
    second = login(one_link)
    second.send(parse("select 'mine'", "st"), SYNC)
    assert [m.type for m in second.ready()] == ["1", "Z"]
    second.bye()


@pytest.mark.parametrize("cut", ["extended", "query", "copy", "error"])
def test_client_leaves_in_mid_sequence(one_link, cut):
    """Half an extended sequence, a running query, a COPY, an error without Sync: the next is clean."""
    first = login(one_link)
    first.send({"extended": pg("select 1"), "query": query("select pg_sleep(0.2)"),
                "copy": query("create temp table x(a int); copy x from stdin"), "error": pg("select 1/0")}[cut])
    if cut == "copy":
        first.read_until("G")
    first.sock.close()
    second = login(one_link)
    assert second.value("select 'clean'") == "clean"
    second.send(pg("select 'too'"), SYNC)
    assert [m.type for m in second.ready()] == ["1", "2", "T", "D", "C", "Z"]
    second.bye()


def test_startup_parameters_on_shared_links(one_link):
    """Clients with other settings, one after the other on one link: each sees and is told its own."""
    cases = [{"application_name": "a", "DateStyle": "German"}, {}, {"TimeZone": "Asia/Tokyo"},
             {"client_encoding": "LATIN1"}, {"application_name": "b"}, {"options": "-c work_mem=9MB"}, {}]
    plain = None
    for params in cases:
        w = login(one_link, **params)
        shown = {name: w.value(f"show {name}") for name in ("application_name", "DateStyle", "TimeZone",
                                                            "client_encoding", "work_mem")}
        told = {name: w.status[name] for name in ("application_name", "DateStyle", "TimeZone", "client_encoding")}
        assert {k: shown[k] for k in told} == told
        if not params:
            plain = plain or shown
            assert shown == plain
        for name, value in params.items():
            if name != "options":
                assert value.lower() in shown[name].lower()
        assert (shown["work_mem"] == "9MB") == ("options" in params)
        w.bye()


def test_link_is_used_again(pg, one_link):
    pids = set()
    for _ in range(20):
        w = login(one_link)
        pids.add(w.pid)
        w.bye()
    assert len(pids) == 1


@pytest.mark.parametrize("how", ["terminate_backend", "restart"])
def test_dead_idle_link_is_replaced_unseen(start_pool, how):
    """The server ends an idle link of the pool; the next client notices nothing."""
    from pgt import postgres
    server = postgres.start_postgres(roles=False)
    try:
        pool = start_pool(server.address, num_init_children=1)
        login(pool).bye()
        for _ in range(3):
            if how == "restart":
                server.stop()
                server.start()
            else:
                server.end_sessions()
            w = login(pool)
            assert w.value("select 'fine'") == "fine"
            w.bye()
    finally:
        server.stop()


def test_server_down_then_up(start_pool):
    """A clear FATAL while it is away, service again by itself when it is back."""
    from pgt import postgres
    server = postgres.start_postgres(roles=False)
    pool = start_pool(server.address, num_init_children=1, query_wait_timeout=2)
    login(pool).bye()
    server.stop()
    w = Wire(pool.address, seconds=15)
    last = w.login()[-1]
    assert last.type == "E" and last.fields["S"] == "FATAL" and last.sqlstate[:2] in ("08", "57", "53"), last.fields
    assert last.text
    w.bye()
    server.start()

    def works() -> bool:
        with Wire(pool.address) as again:
            return again.login()[-1].type == "Z"

    waits.wait_for("it serves again", works, 15)
    server.stop()


def test_many_sessions_each_its_own(pg, pgpool):
    """60 sessions at once, each with its own setting and temp table, in mixed order."""
    sessions = [login(pgpool) for _ in range(60)]
    for i, w in enumerate(sessions):
        w.send(query(f"set my.own = '{i}'; create temp table own as select {i} as i"))
    for w in sessions:
        w.ready()
    for w in reversed(sessions):
        w.send(query("select current_setting('my.own'), i, pg_backend_pid() from own"))
    for i, w in enumerate(sessions):
        row = [m.row() for m in w.ready() if m.type == "D"][0]
        assert row == [str(i).encode(), str(i).encode(), str(w.pid).encode()]
    for w in sessions:
        w.bye()


def test_unix_socket(pgpool):
    with Wire(pgpool.socket) as w:
        assert w.login()[-1].type == "Z"
        assert w.value("select 'by socket'") == "by socket"
