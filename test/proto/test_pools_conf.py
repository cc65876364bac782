# SPDX-License-Identifier: PostgreSQL
"""test_pools_conf: values per database and per user, databases on other servers, reload, --check-config."""
import os
import signal
import subprocess

import pytest

from pgt import postgres, procs, proxy, waits
from pgt.pcp_tool import pcp, said
from pgt.wire import SYNC, Wire, bind, cancel, execute, parse, query

from test_admin_orders import report
from test_pool_limits import Load


@pytest.fixture(autouse=True)
def alone(pg) -> None:
    """Connections are counted at the server: those of other tests' proxies go first."""
    pg.end_sessions()


def login(pool, user="trust_user", database="postgres") -> Wire:
    w = Wire(pool.address, seconds=20)
    found = w.login(user, database)
    assert found[-1].type == "Z", found[-1].fields
    return w


@pytest.fixture
def start(pg, start_pool, tmp_path):
    """start(text, **conf): a pgpool with that pools.conf."""
    def run(text: str, **conf):
        path = tmp_path / "pools.conf"
        path.write_text(text, encoding="utf-8")
        return start_pool(pg.address, num_init_children=2, pools_file=path, **conf), path
    return run


@pytest.fixture(scope="module")
def other_pg():
    """A second cluster."""
    server = postgres.start_postgres()
    server.rows("create database over_there")
    yield server
    server.stop()


def shop_at(server, extra="") -> str:
    return f"[database shop]\nhost = 127.0.0.1\nport = {server.port}\ndbname = postgres\n{extra}"


def pause(pool, admin) -> None:
    """Orders the pause of shop, whose answer comes when it is idle, and waits until it holds: workers look when they lend."""
    admin.send(query("pgpool pause shop"))
    other = login(pool, "postgres")
    waits.wait_for("shop is paused", lambda: ("shop", "true") in [(r["database"], r["paused"]) for r in report(other, "pool_orders")])
    other.bye()
    assert admin.is_quiet(0.2)


def put(pool, path, text: str) -> None:
    """That file, read again by all workers."""
    path.write_text(text, encoding="utf-8")
    assert said(pcp(pool, "reload_config"))[0] == 0


def test_size_per_database_and_user(pg, start):
    pool, _ = start("[database other_db]\npool_size = 1\n[user other_user]\npool_size = 2\n", default_pool_size=3)
    for user, database, size in (("trust_user", "other_db", 1), ("other_user", "other_db", 2),
                                 ("trust_user", "postgres", 3)):
        held = [login(pool, user, database) for _ in range(size)]
        late = Wire(pool.address, seconds=20)
        late.send_startup(user, database)
        assert late.is_quiet(0.3), (user, database)
        mine = f"usename = '{user}' and datname = '{database}'"
        waits.wait_for("as many as it may have", lambda mine=mine, size=size: len(pg.sessions(mine)) == size)
        held[0].bye()
        assert late.authenticate(user, "")[-1].type == "Z"
        for w in held[1:] + [late]:
            w.bye()


def test_mode_per_database(pg, start):
    """In transaction mode two clients share one link, in session mode they do not."""
    pool, _ = start("[database other_db]\npool_mode = transaction\npool_size = 1\n")
    shared = [login(pool, database="other_db") for _ in range(2)]
    assert len({w.value("select pg_backend_pid()") for w in shared}) == 1
    own = [login(pool) for _ in range(2)]
    assert len({w.value("select pg_backend_pid()") for w in own}) == 2
    for w in shared + own:
        w.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_other_cluster(pg, other_pg, start, mode):
    """A name maps to another server, database and user; * catches the rest; others stay where they were."""
    pool, _ = start(f"[database shop]\nhost = 127.0.0.1\nport = {other_pg.port}\ndbname = over_there\n"
                    f"user = other_user\n[database postgres]\n"
                    f"[database *]\nhost = 127.0.0.1\nport = {other_pg.port}\ndbname = postgres\n", pool_mode=mode)
    look = "select current_setting('port') || current_database() || current_user"
    for database, want in (("shop", f"{other_pg.port}over_thereother_user"), ("postgres", f"{pg.port}postgrestrust_user"),
                           ("anything", f"{other_pg.port}postgrestrust_user")):
        w = login(pool, database=database)
        assert w.value(look) == want
        w.simple("begin")
        assert w.value(look) == want
        w.simple("commit")
        w.bye()
    admin = login(pool)
    counted = {(r["user"], r["database"]) for r in report(admin, "pool_limits") if r["name"] == "default_pool_size"}
    assert ("other_user", "shop") in counted
    admin.bye()


def test_rights_end_at_the_server(pg, other_pg, start):
    """A superuser of another server gives no orders here, and the same name there is somebody else."""
    pool, _ = start(shop_at(other_pg))
    near, far = login(pool), login(pool, database="shop")
    assert near.value("select 'of mine'") == "of mine"
    boss = login(pool, user="postgres", database="shop")
    assert boss.value("show is_superuser") == "on"
    for what in ("pause", "resume", "reconnect", "kill client 1", "reset statements"):
        refused = [m for m in boss.simple(f"pgpool {what}") if m.type == "E"]
        assert [m.sqlstate for m in refused] == ["42501"], what

    def seen(w) -> set[str]:
        return {r["statement"] for r in report(w, "pool_clients") if (r["user"], r["database"]) == ("trust_user", "postgres")}

    with login(pool) as other:
        assert "select 'of mine'" in seen(other)
    for w in (far, boss):
        assert seen(w) and not any("mine" in s for s in seen(w))
    with login(pool, user="postgres") as ours:
        assert "select 'of mine'" in seen(ours)
        assert not [m for m in ours.simple("pgpool reset statements") if m.type == "E"]
    for w in (near, far, boss):
        w.bye()


def test_clients_are_counted_by_their_own_name(other_pg, start):
    """`user` makes one of all at the server; max_user_client_connections is still about who they are here."""
    pool, _ = start(f"[database shop]\nhost = 127.0.0.1\nport = {other_pg.port}\ndbname = postgres\nuser = other_user\n"
                    "[user trust_user]\nmax_user_client_connections = 1\n", pool_mode="transaction")
    first, other = login(pool, database="shop"), login(pool, user="postgres", database="shop")
    w = Wire(pool.address, seconds=20)
    w.send_startup("trust_user", "shop")
    refused = [m for m in w.read_eof() if m.type == "E"]
    assert [(m.sqlstate, m.text) for m in refused] == [("53300", 'too many clients of user "trust_user"')]
    counted = {r["user"]: (r["used"], r["limit"]) for r in report(other, "pool_limits")
               if r["name"] == "max_user_client_connections"}
    assert counted == {"trust_user": ("1", "1"), "postgres": ("1", "0")}
    first.bye()
    waits.wait_for("there is room again", lambda: "trust_user" not in {
        r["user"] for r in report(other, "pool_limits") if r["name"] == "max_user_client_connections"})
    for w in (login(pool, database="shop"), other):
        assert w.value("select current_user") == "other_user"
        w.bye()


def test_warm_before_the_first_client(other_pg, start):
    """min_pool_size of a database with `user`: kept whoever dies, until it is named no more."""
    text = shop_at(other_pg, "user = other_user\nmin_pool_size = 3\n")
    pool, path = start(text, pool_mode="transaction", server_idle_timeout=1)
    mine = "usename = 'other_user'"

    def are(n: int) -> None:
        waits.wait_for(f"{n} connections", lambda: len(other_pg.sessions(mine)) == n, 10)

    are(3)
    before = other_pg.sessions(mine)
    waits.holds_for("they stay", lambda: other_pg.sessions(mine) == before, 2.5)
    clients = [login(pool, database="shop") for _ in range(4)]
    assert all(w.value("select current_user") == "other_user" for w in clients)
    before = other_pg.sessions(mine)
    other_pg.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where {mine}")
    waits.wait_for("others", lambda: not set(before) & set(other_pg.sessions(mine)))
    are(3)
    workers = {r["pool_pid"] for r in report(clients[0], "pool_processes")} - {"0"}
    for w in clients:
        w.bye()
    before = other_pg.sessions(mine)
    for pid in workers:
        os.kill(int(pid), signal.SIGKILL)
    waits.wait_for("theirs are gone", lambda: not set(before) & set(other_pg.sessions(mine)))
    are(3)
    put(pool, path, shop_at(other_pg, "user = other_user\n"))
    are(0)
    put(pool, path, text)
    are(3)
    put(pool, path, "")
    are(0)


def test_warm_on_our_own_servers(pg, start):
    pool, _ = start("[database other_db]\nuser = other_user\n[database *]\nuser = other_user\n[database postgres]\n",
                    min_pool_size=2, default_pool_size=4)
    mine = "usename = 'other_user'"
    waits.wait_for("it is warm", lambda: len(pg.sessions(mine)) == 2, 10)
    assert len(pg.sessions(mine + " and datname = 'other_db'")) == 2
    held = [login(pool, database="other_db") for _ in range(3)]
    for w in held:
        assert w.value("select current_user") == "other_user"
        w.bye()


def test_other_cluster_has_a_limit(other_pg, start):
    """max_backend_connections holds for a server that only pools.conf names, too: one that a reload brings as well."""
    section = "[database {}]\nhost = {}\nport = {}\ndbname = postgres\n"
    pool, path = start(section.format("shop", "127.0.0.1", other_pg.port), pool_mode="transaction",
                       max_backend_connections=2)
    for database in ("shop", "store"):
        if database == "store":
            put(pool, path, section.format("shop", "127.0.0.1", other_pg.port) +
                section.format("store", "localhost", other_pg.port))
            assert f'settings of databases and users changed in "{path}"' in pool.log()
        clients = [login(pool, database=database) for _ in range(4)]
        for w in clients[:2]:
            w.simple("begin")
            w.simple("select 1")
        for w in clients[2:]:
            w.send(query("select 'served'"))
        assert all(w.is_quiet(0.3) for w in clients[2:])
        admin = login(pool)

        def last(admin=admin) -> tuple[str, ...]:
            rows = [r for r in report(admin, "pool_limits") if r["name"] == "max_backend_connections" and int(r["node"]) > 0]
            return tuple(rows[-1][name] for name in ("used", "limit", "waiting"))
        waits.wait_for("two have a connection, two wait", lambda: last() == ("2", "2", "2"))
        for w in clients[:2]:
            w.simple("commit")
        for w in clients[2:]:
            assert [m.row() for m in w.ready() if m.type == "D"] == [[b"served"]]
        for w in clients + [admin]:
            w.bye()


def test_other_cluster_cancel(other_pg, start):
    """A cancel request goes to the server that runs the query."""
    pool, _ = start(f"[database shop]\nhost = 127.0.0.1\nport = {other_pg.port}\ndbname = postgres\n")
    w = login(pool, database="shop")
    w.send(query("select pg_sleep(60)"))
    waits.wait_for("it runs", lambda: other_pg.sessions("query like '%pg_sleep(60)%' and state = 'active'"))
    cancel(pool.address, w.pid, w.key)
    assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["57014"]
    w.bye()


def test_reload(pg, start):
    """A new size holds for pools that exist; a file with an error is refused whole, with file and line."""
    pool, path = start("[database postgres]\npool_size = 1\n")
    first = login(pool)
    second = Wire(pool.address, seconds=20)
    second.send_startup("trust_user", "postgres")
    assert second.is_quiet(0.3)
    path.write_text("[database postgres]\n\npool_size = lots\n", encoding="utf-8")
    pool.reload()
    waits.wait_for("the file is refused", lambda: "was not reloaded" in pool.log())
    assert f"{path}:3" in pool.log() and "was not reloaded: 1 error;" in pool.log()
    assert second.is_quiet(0.2)
    path.write_text("[database postgres]\npool_size = 2\n", encoding="utf-8")
    pool.reload()
    assert second.authenticate("trust_user", "")[-1].type == "Z"
    assert len(pg.sessions("usename = 'trust_user'")) == 2
    first.bye()
    second.bye()


def test_a_file_that_vanishes_is_refused(pg, start_pool):
    """Between two steps of an editor, say: databases with a host of their own would be those of pgpool.conf."""
    pool = start_pool(pg.address, num_init_children=1)
    path = pool.home / "pools.conf"
    put(pool, path, "[database shop]\nhost = 127.0.0.1\nport = 1\n")
    path.unlink()
    status, told = said(pcp(pool, "reload_config"))
    assert status != 0 and "the file was there" in told, told
    put(pool, path, "")
    path.unlink()
    assert said(pcp(pool, "reload_config"))[0] == 0, "there was nothing in it"


PORT = "select current_setting('port')"


def test_database_moves(pg, other_pg, start):
    """PAUSE, another host, reload, RESUME: PgBouncer's way to move a database under its clients. They follow with what
    they have set and prepared, between two transactions; nobody is sent away."""
    pool, path = start(shop_at(pg), pool_mode="transaction")
    admin = login(pool, "postgres")
    idle, held, busy = (login(pool, database="shop") for _ in range(3))
    idle.simple("set work_mem = '7MB'")
    idle.send(parse("select current_setting('port') || $1", "p"), SYNC)
    idle.ready()
    busy.simple("begin")
    assert busy.value(PORT) == str(pg.port)
    pause(pool, admin)
    held.send(query(PORT))
    assert admin.is_quiet(0.2) and held.is_quiet(0.2)
    put(pool, path, shop_at(other_pg))
    assert busy.value(PORT) == str(pg.port), "a transaction ends where it began"
    busy.simple("commit")
    assert admin.ready()[0].type == "C"
    late = Wire(pool.address, seconds=20)
    late.send_startup("trust_user", "shop")
    admin.simple("pgpool resume shop")
    assert [m.row() for m in held.ready() if m.type == "D"] == [[str(other_pg.port).encode()]]
    assert idle.value("show work_mem") == "7MB"
    idle.send(bind(["!"], name="p"), execute(), SYNC)
    assert [m.row() for m in idle.ready() if m.type == "D"] == [[f"{other_pg.port}!".encode()]]
    assert busy.value(PORT) == str(other_pg.port)
    assert late.authenticate("trust_user", "")[-1].type == "Z" and late.value(PORT) == str(other_pg.port)
    idle.send(query("select pg_sleep(60)"))
    waits.wait_for("it runs", lambda: other_pg.sessions("query like '%pg_sleep(60)%' and state = 'active'"))
    cancel(pool.address, idle.pid, idle.key)
    assert [m.sqlstate for m in idle.ready() if m.type == "E"] == ["57014"]
    waits.wait_for("no link is left at the old place", lambda: not pg.sessions("usename = 'trust_user'"))
    put(pool, path, shop_at(pg))
    for w in (idle, held, busy, late):
        assert w.value(PORT) == str(pg.port), "and back"
        w.bye()
    admin.bye()


@pytest.mark.parametrize("conf", [{}, {"pool_test_rotate": True, "worker_fill": 1}], ids=["stay", "travel"])
def test_database_moves_under_load(pg, other_pg, start, conf):
    """To and fro, without a pause: no client sees an error, and what was committed after the reload is at the new place.
    So it is when they go from worker to worker all the time."""
    for server in (pg, other_pg):
        server.rows("drop table if exists moved; create table moved(a int); grant all on moved to public")
    pool, path = start(shop_at(pg), pool_mode="transaction", default_pool_size=3, **conf)
    load = Load(pool, [("trust_user", "shop")] * 12, sql="begin; insert into moved values (1); commit")
    for turn in range(4):
        old, new = (pg, other_pg) if turn % 2 == 0 else (other_pg, pg)
        waits.wait_for("it is written there", lambda s=old: load.errors or s.value("select count(*) > 0 from moved") == "t")
        put(pool, path, shop_at(new))
        waits.wait_for("the old place is left", lambda s=old: load.errors or not s.sessions("usename = 'trust_user'"))
        old.rows("truncate moved")
        new.rows("truncate moved")
        waits.holds_for("nothing is written there", lambda s=old: s.value("select count(*) from moved") == "0", 0.3)
    load.finish()


def test_session_waits_and_goes_elsewhere(pg, other_pg, start):
    """Session mode: a session stays where it is, those that come get the new place, also who waited already."""
    pool, path = start(shop_at(pg))
    admin, stays = login(pool, "postgres"), login(pool, database="shop")
    login(pool, database="shop").bye()
    pause(pool, admin)
    late = Wire(pool.address, seconds=20)
    late.send_startup("trust_user", "shop")
    assert late.is_quiet(0.2)
    put(pool, path, shop_at(other_pg))
    assert stays.value(PORT) == str(pg.port)
    stays.bye()
    assert admin.ready()[0].type == "C"
    admin.simple("pgpool resume shop")
    assert late.authenticate("trust_user", "")[-1].type == "Z" and late.value(PORT) == str(other_pg.port)
    waits.wait_for("no link is left at the old place", lambda: not pg.sessions("usename = 'trust_user'"))
    for w in (late, admin):
        w.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_another_dbname(pg, start, mode):
    """On the same server: links to the database that was meant before are not lent again."""
    pool, path = start("[database shop]\ndbname = postgres\n", pool_mode=mode, default_pool_size=2)
    clients = [login(pool, database="shop") for _ in range(2)]
    for w in clients:
        w.simple("begin")
        assert w.value("select current_database()") == "postgres"
    clients[0].simple("commit")
    if mode == "session":
        clients[0].bye()
    put(pool, path, "[database shop]\ndbname = other_db\n")
    assert clients[1].value("select current_database()") == "postgres"
    clients[1].simple("commit")
    if mode == "session":
        clients[1].bye()
        clients = [login(pool, database="shop") for _ in range(2)]
    for _ in range(3):
        for w in clients:
            assert w.value("select current_database()") == "other_db"
    for w in clients:
        w.bye()


def test_check_config(tmp_path):
    conf = {"backend_hostname0": "localhost", "backend_port0": 5432, "pid_file_name": tmp_path / "pid", "port": procs.free_port(),
            "pcp_port": procs.free_port(), "unix_socket_directories": tmp_path, "pcp_socket_dir": tmp_path}
    (tmp_path / "pgpool.conf").write_text(proxy.conf_text(conf), encoding="utf-8")
    (tmp_path / "pools.conf").write_text("[user x]\nhost = y\n[database z]\nport = 1\n", encoding="utf-8")
    done = subprocess.run([proxy.pgpool_bin(), "--check-config", "-f", str(tmp_path / "pgpool.conf")],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{tmp_path}/pools.conf:2: error: \"host\" belongs to a database" in done.stderr
    assert f"{tmp_path}/pools.conf:4: error: a port without a host" in done.stderr
    (tmp_path / "pools.conf").write_text("[database z]\npool_size = 1\n", encoding="utf-8")
    done = subprocess.run([proxy.pgpool_bin(), "--check-config", "-f", str(tmp_path / "pgpool.conf")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
