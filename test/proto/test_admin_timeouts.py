# SPDX-License-Identifier: PostgreSQL
"""test_admin_timeouts: query_timeout, query_wait_timeout, idle_transaction_timeout, transaction_timeout:
PgBouncer's meanings and words."""
import pytest

from pgt import fake as fk
from pgt import waits
from pgt.wire import SYNC, Wire, bind, cancel_request, execute, parse, query

from test_admin_orders import login, report


@pytest.fixture(name="start_pool", params=["session", "transaction"])
def start_pool_of_each_mode(request, start_pool):
    """Time-outs are the client's: they do not depend on how it is pooled."""
    return lambda backend, *a, **conf: start_pool(backend, *a, **{"pool_mode": request.param, **conf})


def ended(w: Wire, seconds: float = 10) -> tuple[str, str, str]:
    """What a client that was sent away was told at last."""
    last = w.read_eof(seconds * waits.SCALE)[-1]
    assert last.type == "E", last
    return last.fields["S"], last.sqlstate, last.text


def test_query_timeout(pg, start_pool):
    """The client is told and goes; the query is cancelled, and the connection serves another."""
    pool = start_pool(pg.address, query_timeout=1, num_init_children=1)
    w = login(pool, application_name="slow")
    start = waits.now()
    w.send(query("select pg_sleep(30), 'query_timeout_mark'"))
    assert ended(w) == ("FATAL", "08P01", "query timeout")
    assert 0.9 < waits.now() - start < 15 * waits.SCALE
    waits.wait_for("the query is cancelled", lambda: not pg.sessions(
        "query like '%query_timeout_mark%' and state = 'active' and query not like '%pg_stat_activity%'"))
    other = login(pool)
    assert other.value("select 1") == "1"
    assert "closing because: query timeout" in pool.log()


def test_query_timeout_spares_the_quick(pg, start_pool):
    """Many short statements, also in one long pipeline, and a client that idles: nobody is hurt."""
    pool = start_pool(pg.address, query_timeout=2, num_init_children=1)
    idle, w, pipelined = login(pool), login(pool), login(pool)
    n = 50
    for _ in range(n):
        pipelined.send(parse("select pg_sleep(0.05)"), bind(), execute(), SYNC)
    end = waits.deadline(2.5)
    while waits.now() < end:
        assert w.value("select pg_sleep(0.1)") == ""
    assert [m.type for m in pipelined.ready(n)].count("Z") == n
    assert idle.value("select 'idle'") == "idle"


def test_query_timeout_server_says_nothing(fake, start_pool):
    """A server that does not answer any more, nor to a cancel: the client is not kept waiting."""
    def script(conn):
        conn.greet()
        while True:
            kind, body = conn.read()
            if kind == "Q" and b"silence" in body:
                continue
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, query_timeout=1, num_init_children=1)
    w = login(pool, user="fake", database="fake")
    w.send(query("select 'silence'"))
    assert ended(w) == ("FATAL", "08P01", "query timeout")


def test_query_timeout_in_a_half_told_answer(fake, start_pool):
    """In the middle of a message of the server nothing of ours may follow: only the end."""
    def script(conn):
        conn.greet()
        while True:
            kind, body = conn.read()
            if kind == "Q" and b"half" in body:
                conn.send(fk.row_description("v"), fk.data_row("x" * 100)[:50])
                continue
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, query_timeout=1, num_init_children=1)
    w = login(pool, user="fake", database="fake")
    w.send(query("select 'half'"))
    raw = w.read_eof_raw(10 * waits.SCALE)
    assert raw == fk.row_description("v") + fk.data_row("x" * 100)[:50]


def test_limits_of_less_than_a_second(pg, start_pool):
    """Kept, and told as they are. They come when all have logged in, which may take longer."""
    pool = start_pool(pg.address, default_pool_size=1, num_init_children=1)
    w, other = login(pool, user="trust_user", database="postgres"), login(pool, user="other_user", database="postgres")
    w.simple("begin; select 1")
    pool.reload(query_wait_timeout="300ms")
    waits.wait_for("the worker has it", lambda: other.value("pgpool show query_wait_timeout") == "300ms")
    late = Wire(pool.address, seconds=20)
    late.send_startup("trust_user", "postgres", DateStyle="German")
    found = late.read_eof(10 * waits.SCALE)
    assert found[-1].text == "query_wait_timeout" and "within 300 ms" in found[-1].fields["D"]
    pool.reload(query_timeout="400ms")
    waits.wait_for("the worker has it", lambda: other.value("pgpool show query_timeout") == "400ms")
    w.send(query("select pg_sleep(30)"))
    found = w.read_eof(10 * waits.SCALE)
    assert (found[-1].text, found[-1].fields["D"]) == ("query timeout", "The limit is 400 ms.")
    other.bye()


@pytest.mark.parametrize("state", ["open", "failed"])
def test_idle_transaction_timeout(pg, start_pool, state):
    pool = start_pool(pg.address, idle_transaction_timeout=2, num_init_children=1)
    bystander, w = login(pool), login(pool)
    w.simple("begin")
    w.simple("create table idle_tx_mark (a int)")
    if state == "failed":
        w.simple("select nonsense")
    for _ in range(3):
        assert w.is_quiet(0.7)
        start = waits.now()
        w.simple("select 1")  # each statement starts the time anew
    assert ended(w) == ("FATAL", "08P01", "idle transaction timeout")
    assert waits.now() - start > 1.6
    assert pg.rows("select to_regclass('idle_tx_mark')") == [[None]]
    assert bystander.value("select 1") == "1", "outside of a transaction one may idle"


def test_transaction_timeout(pg, start_pool):
    """From BEGIN on, busy or not; a single long statement is a transaction, too."""
    pool = start_pool(pg.address, transaction_timeout=2, num_init_children=1)
    bystander, w, single = login(pool), login(pool), login(pool)
    w.simple("begin")
    single.send(query("select pg_sleep(30)"))
    w.send(query("select pg_sleep(0.1)") * 100)
    assert ended(w) == ("FATAL", "08P01", "transaction timeout")
    assert ended(single) == ("FATAL", "08P01", "transaction timeout")
    for _ in range(3):
        assert bystander.value("select pg_sleep(0.7), 'x'") == ""


def test_query_wait_timeout_says_why(pg, start_pool):
    pool = start_pool(pg.address, max_backend_connections=1, pool_mode="session", num_init_children=1)
    holder = login(pool)
    pool.reload(query_wait_timeout=1)
    waits.wait_for("the worker has it", lambda: holder.value("pgpool show query_wait_timeout") in ("1", "1s"))
    w = Wire(pool.address, seconds=20)
    w.send_startup("postgres")
    found = w.read_eof(10 * waits.SCALE)
    assert [m.type for m in found] == ["E"]
    assert (found[0].fields["S"], found[0].sqlstate, found[0].text) == ("FATAL", "53300", "query_wait_timeout")
    detail = found[0].fields["D"]
    assert '"postgres"' in detail and "node limit" in detail and "1 s" in detail
    assert found[0].fields["H"]
    stats = report(holder, "pool_stats")
    assert int(stats[0]["logins"]) == 1


def test_query_wait_timeout_names_a_server_that_refuses(fake, start_pool):
    """A server that is full is asked again now and then: who has waited in vain is told what it says, not that a
    connection was being made all the time."""
    pool = start_pool(fake(lambda conn: conn.send(fk.error("53300", "sorry, too many clients already", "FATAL"))).address,
                      query_wait_timeout=2, num_init_children=1)
    w = Wire(pool.address, seconds=20 * waits.SCALE)
    w.send_startup("fake", "postgres")
    found = w.read_eof(20 * waits.SCALE)[-1]
    assert (found.sqlstate, found.text) == ("53300", "query_wait_timeout")
    assert found.fields["D"].endswith("waiting for: connecting (the server refuses connections)."), found.fields["D"]


def test_reload_changes_time_outs(pg, start_pool):
    """Also for those that are here."""
    pool = start_pool(pg.address, num_init_children=1)
    w, admin = login(pool), login(pool)
    w.simple("begin")
    pool.reload(idle_transaction_timeout=2)
    waits.wait_for("the setting is there", lambda: admin.value("pgpool show idle_transaction_timeout") in ("2", "2s"))
    w.simple("select 1")
    assert ended(w) == ("FATAL", "08P01", "idle transaction timeout")


def test_reload_ends_what_lasts_already(pg, start_pool):
    """Who says nothing more, or has run for long when the time-out is set: an operator sets it for these."""
    pool = start_pool(pg.address, num_init_children=1)
    idle, inside, busy = login(pool), login(pool), login(pool)
    for sql in ("begin", "select 1"):
        inside.simple(sql)
    busy.send(query("select pg_sleep(30)"))
    pool.reload(idle_transaction_timeout=1, client_idle_limit=2, query_timeout=3)
    assert ended(inside) == ("FATAL", "08P01", "idle transaction timeout")
    assert ended(idle)[:2] == ("FATAL", "57P05")
    assert ended(busy) == ("FATAL", "08P01", "query timeout")


def test_set_client_idle_limit(pg, start_pool):
    """PGPOOL SET holds for the session that says it, at once."""
    pool = start_pool(pg.address, num_init_children=1)
    w, other = login(pool), login(pool)
    w.simple("pgpool set client_idle_limit = 1")
    assert ended(w)[:2] == ("FATAL", "57P05")
    assert other.value("select 1") == "1"


def test_per_user_and_database(pg, start_pool, tmp_path):
    """pools.conf: the user's value comes before the database's, that before the one for all."""
    pg.rows("drop role if exists slow_user; create role slow_user login")
    pools = tmp_path / "pools.conf"
    pools.write_text("[database other_db]\nquery_timeout = 1s\n[user slow_user]\nquery_timeout = 0\n")
    tmp_path.chmod(0o755)
    pool = start_pool(pg.address, num_init_children=1, pools_file=pools)
    w, exempt, elsewhere = (login(pool, database="other_db"), login(pool, user="slow_user", database="other_db"),
                            login(pool))
    for each in (w, exempt, elsewhere):
        each.send(query("select pg_sleep(2.5)"))
    assert ended(w) == ("FATAL", "08P01", "query timeout")
    for each in (exempt, elsewhere):
        assert [m.type for m in each.ready()] == ["T", "D", "C", "Z"]
    pools.write_text("[user slow_user]\nquery_timeout = 1s\n")
    pool.reload()
    waits.wait_for("the file is read again", lambda: "generation 2 is in use" in pool.log())
    exempt.simple("select 1")
    exempt.send(query("select pg_sleep(30)"))
    assert ended(exempt) == ("FATAL", "08P01", "query timeout")


def keep_cancels_open(monkeypatch) -> list[fk.FakeConn]:
    """Cancel requests are taken, but the answer, which is the end, does not come. Those that are open."""
    open_cancels: list[fk.FakeConn] = []
    closing = fk.FakeConn.close

    def close(conn: fk.FakeConn) -> None:
        if conn.params or conn in open_cancels:
            closing(conn)
        else:
            open_cancels.append(conn)

    monkeypatch.setattr(fk.FakeConn, "close", close)
    return open_cancels


def silent(conn: fk.FakeConn) -> None:
    """A server that answers all but one query."""
    conn.greet()
    while True:
        kind, body = conn.read()
        if kind != "Q" or b"silence" not in body:
            conn.send(conn.answer(kind, body))


@pytest.mark.parametrize("seconds", [1, 0])
def test_cancel_wait_timeout(fake, start_pool, monkeypatch, seconds):
    """A server that takes no notice of a cancel request: it is given up; 0 waits for ever. The client goes on."""
    open_cancels = keep_cancels_open(monkeypatch)
    server = fake(silent)
    pool = start_pool(server.address, cancel_wait_timeout=seconds, num_init_children=1)
    w = login(pool, user="fake", database="fake")
    w.send(query("select 'silence'"))
    start = waits.now()
    sock = pool.address.connect(3 if seconds == 0 else 20)
    with sock:
        sock.sendall(cancel_request(w.pid, w.key))
        if seconds == 0:
            with pytest.raises(TimeoutError):
                sock.recv(1)
            waits.wait_for("it has come", lambda: server.cancels)
            assert len(server.cancels) == 1
        else:
            assert sock.recv(1) == b""
            assert 0.9 < waits.now() - start < 15 * waits.SCALE
            assert "cancel_wait_timeout" in pool.log()
    for conn in server.links():
        conn.send(conn.answer("Q", b"select 'spoken'\0"))
    assert [m.type for m in w.ready()][-1] == "Z"
    for conn in open_cancels:
        conn.close()


def test_cancel_that_is_given_up_meets_nobody_else(fake, start_pool, monkeypatch):
    """The server may read the request when another client has the connection: it is lent to no other."""
    open_cancels = keep_cancels_open(monkeypatch)
    server = fake(silent)
    pool = start_pool(server.address, cancel_wait_timeout=1, num_init_children=1)
    w = login(pool, user="fake", database="fake")
    w.send(query("select 'silence'"))
    waits.wait_for("it is there", lambda: any("Q" in conn.seen for conn in server.links()))
    asked = next(conn for conn in server.links() if "Q" in conn.seen)
    with pool.address.connect(20) as sock:
        sock.sendall(cancel_request(w.pid, w.key))
        assert sock.recv(1) == b""
    asked.send(asked.answer("Q", b"select 'spoken'\0"))
    w.ready()
    seen = len(asked.seen)
    w.bye()
    with login(pool, user="fake", database="fake") as other:
        assert other.value("select 1") == "1"
    assert set(asked.seen[seen:]) <= {"X"}
    for conn in open_cancels:
        conn.close()
