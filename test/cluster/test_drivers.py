# SPDX-License-Identifier: PostgreSQL
"""test_drivers: psycopg and asyncpg through pgpool, SHOW commands in both protocols, pgbench, psql.
"""
import asyncio
import os
import subprocess
import threading

import asyncpg
import psycopg
import pytest

from pgt import late, postgres, procs, waits

SHOWS = {
    "pool_nodes": 14, "pool_processes": 8, "pool_pools": 21, "pool_version": 1, "pool_status": 3,
    "pool_cache": 9, "pool_health_check_stats": 20, "pool_backend_stats": 14,
}


def dsn(pool, user: str = "postgres", database: str = "postgres") -> str:
    return f"host=127.0.0.1 port={pool.port} user={user} dbname={database} password={user}_pw"


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 200 * waits.SCALE))


async def apg(pool, user: str = "postgres", **kwargs):
    return await asyncpg.connect(host="127.0.0.1", port=pool.port, user=user, database="postgres",
                                 password=f"{user}_pw", **kwargs)


# ---- psycopg

@pytest.mark.parametrize("user", ["postgres", "plain_user", "md5_user", "scram_user"])
def test_psycopg_login_and_types(pgpool, user):
    with psycopg.connect(dsn(pgpool, user)) as conn:
        assert conn.info.backend_pid == conn.execute("select pg_backend_pid()").fetchone()[0]
        row = conn.execute("select %s::int, %s::text, %s::bytea, %s::numeric, null, array[1,2]",
                           (1, "ü", b"\0\1", 2)).fetchone()
        assert row[0] == 1 and row[1] == "ü" and row[2] == b"\0\1" and row[4] is None and row[5] == [1, 2]


@pytest.mark.parametrize("prepare", [None, 0, 1])
def test_psycopg_prepared(pgpool, prepare):
    with psycopg.connect(dsn(pgpool), prepare_threshold=prepare) as conn:
        for i in range(20):
            assert conn.execute("select %s::int + 1", (i,)).fetchone() == (i + 1,)
        conn.rollback()
        with pytest.raises(psycopg.errors.DivisionByZero):
            conn.execute("select 1 / %s::int", (0,))
        conn.rollback()
        assert conn.execute("select 'alive'").fetchone() == ("alive",)


def test_psycopg_pipeline(pgpool):
    with psycopg.connect(dsn(pgpool), autocommit=True) as conn:
        conn.execute("create temp table pl(a int unique)")
        with conn.pipeline():
            cursors = [conn.execute("insert into pl values (%s) returning a", (i,)) for i in range(200)]
        assert [c.fetchone()[0] for c in cursors] == list(range(200))
        with pytest.raises(psycopg.errors.UniqueViolation), conn.pipeline() as pipe:
            conn.execute("insert into pl values (1000)")
            conn.execute("insert into pl values (1000)")
            pipe.sync()
        assert conn.execute("select count(*) from pl").fetchone()[0] in (200, 201)


def test_psycopg_copy(pgpool):
    with psycopg.connect(dsn(pgpool)) as conn:
        conn.execute("create temp table cp(a int, b text)")
        with conn.cursor().copy("copy cp from stdin") as copy:
            for i in range(50000):
                copy.write_row((i, "x" * (i % 100)))
        with conn.cursor().copy("copy cp to stdout") as copy:
            assert sum(1 for _ in copy.rows()) == 50000
        with pytest.raises(psycopg.Error), conn.cursor().copy("copy cp from stdin") as copy:
            copy.write("not a number\tx\n")
        conn.rollback()


def test_psycopg_server_cursor_and_savepoints(pgpool):
    with psycopg.connect(dsn(pgpool)) as conn:
        with conn.cursor(name="srv") as cursor:
            cursor.itersize = 7
            cursor.execute("select generate_series(1, 100)")
            assert sum(r[0] for r in cursor) == 5050
        with conn.transaction():
            with pytest.raises(psycopg.errors.DivisionByZero), conn.transaction():
                conn.execute("select 1/0")
            assert conn.execute("select 5").fetchone() == (5,)


def test_psycopg_notify(pgpool):
    with psycopg.connect(dsn(pgpool), autocommit=True) as a, psycopg.connect(dsn(pgpool), autocommit=True) as b:
        a.execute("listen drivers")
        b.execute("notify drivers, 'hello'")
        got = next(a.notifies(timeout=60 * waits.SCALE))
        assert (got.channel, got.payload, got.pid) == ("drivers", "hello", b.info.backend_pid)


def test_psycopg_cancel(pg, pgpool):
    with psycopg.connect(dsn(pgpool)) as conn:
        def cancels() -> None:
            waits.wait_for("it runs", lambda: pg.sessions("state = 'active' and query = 'select pg_sleep(30)'"))
            conn.cancel()
        other = threading.Thread(target=cancels)
        other.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("select pg_sleep(30)")
        other.join()
        conn.rollback()
        assert conn.execute("select 1").fetchone() == (1,)


def test_psycopg_client_encoding_and_options(pgpool):
    with psycopg.connect(dsn(pgpool), client_encoding="utf-8", options="-c work_mem=9MB", application_name="drv") as c:
        assert c.info.parameter_status("client_encoding") == "UTF8"
        assert c.execute("show work_mem").fetchone() == ("9MB",)
        assert c.info.parameter_status("application_name") == "drv"


@pytest.mark.parametrize("user,password,database", [
    ("scram_user", "wrong", "postgres"), ("md5_user", "wrong", "postgres"), ("plain_user", "wrong", "postgres"),
    ("no_such_user", "x", "postgres"), ("postgres", "x", "no_such_db"), ("nohba_user", "x", "postgres")])
def test_error_texts_are_the_servers(pg, pgpool, user, password, database):
    texts = []
    for port in (pg.port, pgpool.port):
        with pytest.raises(psycopg.OperationalError) as caught:
            psycopg.connect(host="127.0.0.1", port=port, user=user, password=password, dbname=database)
        texts.append(str(caught.value).replace(str(port), "PORT"))
    assert texts[0] == texts[1]


# ---- asyncpg

def test_asyncpg_basics(pgpool):
    async def work():
        conn = await apg(pgpool, "scram_user")
        assert conn.get_server_pid() == await conn.fetchval("select pg_backend_pid()")
        statement = await conn.prepare("select $1::int * 2, $2::text")
        for i in range(20):
            assert tuple(await statement.fetchrow(i, str(i))) == (2 * i, str(i))
        with pytest.raises(asyncpg.DivisionByZeroError):
            await conn.fetch("select 1/$1::int", 0)
        async with conn.transaction():
            rows = [r[0] async for r in conn.cursor("select generate_series(1, 100)", prefetch=7)]
            assert sum(rows) == 5050
        assert await conn.fetchval("select array_agg(g) from generate_series(1, 3) g") == [1, 2, 3]
        await conn.reset()
        await conn.close()
    run(work())


def test_asyncpg_copy_listen_and_many(pgpool):
    async def work():
        conn = await apg(pgpool)
        await conn.execute("create temp table ap(a int, b text)")
        await conn.copy_records_to_table("ap", records=[(i, str(i)) for i in range(20000)])
        assert await conn.fetchval("select count(*) from ap") == 20000
        await conn.executemany("insert into ap values ($1, $2)", [(i, "m") for i in range(500)])
        heard = asyncio.get_running_loop().create_future()
        await conn.add_listener("apg", lambda *args: heard.set_result(args[1:]))
        await conn.execute("select pg_notify('apg', 'p')")
        assert await heard == (conn.get_server_pid(), "apg", "p")
        await conn.close()
    run(work())


def test_asyncpg_cancel_by_timeout(pgpool):
    async def work():
        conn = await apg(pgpool)
        for _ in range(5):
            with pytest.raises(asyncio.TimeoutError):
                await conn.fetch("select pg_sleep(30)", timeout=0.1)
            assert await conn.fetchval("select 7") == 7
        await conn.close()
    run(work())


def test_asyncpg_pool_of_connections(pgpool):
    async def work():
        async with asyncpg.create_pool(host="127.0.0.1", port=pgpool.port, user="postgres", database="postgres",
                                       min_size=2, max_size=20) as pool:
            values = await asyncio.gather(*(pool.fetchval("select $1::int", i) for i in range(500)))
            assert values == list(range(500))
    run(work())


# ---- SHOW commands

@pytest.mark.parametrize("name,columns", SHOWS.items())
def test_show_by_psycopg(pgpool, name, columns):
    """Simple and extended protocol give the same columns; all is text."""
    with psycopg.connect(dsn(pgpool), autocommit=True) as conn:
        simple = conn.pgconn.exec_(f"show {name}".encode())
        extended = conn.pgconn.exec_params(f"show {name}".encode(), [])
        for result in (simple, extended):
            assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
            assert result.nfields == columns
        assert [simple.fname(i) for i in range(columns)] == [extended.fname(i) for i in range(columns)]
        assert conn.execute(f"show {name}").description[0].name == simple.fname(0).decode()
        assert conn.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize("name,columns", SHOWS.items())
def test_show_by_asyncpg(pgpool, name, columns):
    async def work():
        conn = await apg(pgpool)
        rows = await conn.fetch(f"show {name}")
        assert all(len(r) == columns and all(isinstance(v, str) for v in r) for r in rows)
        if name not in ("pool_processes", "pool_pools"):
            assert rows
        assert await conn.fetchval("select 1") == 1
        await conn.close()
    run(work())


def test_show_content(pg, pgpool):
    with psycopg.connect(dsn(pgpool), autocommit=True) as conn:
        nodes = conn.execute("show pool_nodes").fetchall()
        assert [(n[0], n[1], n[2]) for n in nodes] == [("0", "127.0.0.1", str(pg.port))]
        status = {r[0]: r[1] for r in conn.execute("show pool_status").fetchall()}
        assert status["port"] == str(pgpool.port) and status["backend_port0"] == str(pg.port)
        assert conn.execute("pgpool show port").fetchall() == [(str(pgpool.port),)]
        assert len(conn.execute("pgpool show all").fetchall()) > 100


@pytest.mark.parametrize("sql", ["pgpool show no_such", "pgpool set port = 1", "pgpool set no_such = 1"])
def test_pgpool_command_errors(pgpool, sql):
    with psycopg.connect(dsn(pgpool), autocommit=True) as conn:
        with pytest.raises(psycopg.Error):
            conn.execute(sql)
        assert conn.execute("select 1").fetchone() == (1,)


def test_pgpool_set_is_the_sessions_own(pgpool):
    with psycopg.connect(dsn(pgpool), autocommit=True) as a, psycopg.connect(dsn(pgpool), autocommit=True) as b:
        a.execute("pgpool set log_statement = on")
        assert a.execute("pgpool show log_statement").fetchone() == ("on",)
        assert b.execute("pgpool show log_statement").fetchone() == ("off",)
        a.execute("pgpool reset log_statement")
        assert a.execute("pgpool show log_statement").fetchone() == ("off",)


def test_show_while_the_server_hangs(start_pool):
    """Every server process is stopped (SIGSTOP): a connected client still gets its answers."""
    server = postgres.start_postgres(roles=False)
    pool = start_pool(server.address)
    conn = psycopg.connect(dsn(pool), autocommit=True)
    stopped = procs.session_pids(server.daemon.pid) + [
        pid for child in procs.children(server.daemon.pid) for pid in procs.session_pids(child)]
    try:
        procs.stand_still(*stopped)
        for name, columns in SHOWS.items():
            assert conn.pgconn.exec_(f"show {name}".encode()).nfields == columns
            assert conn.pgconn.exec_params(f"show {name}".encode(), []).nfields == columns
        assert conn.execute("pgpool show port").fetchone() == (str(pool.port),)
    finally:
        procs.go_on(*stopped)
    assert conn.execute("select 1").fetchone() == (1,)
    conn.close()
    pool.stop()
    server.stop()


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("seen", [True, False], ids=["seen", "never seen"])
def test_show_on_a_new_session_with_no_server(start_pool, mode, seen):
    """login_without_server: whom pgpool knows by itself gets in, and is served when a server is back."""
    server = postgres.start_postgres(roles=False)
    pool = start_pool(server.address, pool_mode=mode, login_without_server=True, failover_wait=60)
    (pool.home / "pool_hba.conf").write_text("host all postgres 127.0.0.1/32 trust\nhost all all all reject\n")
    pool.reload(enable_pool_hba=True)
    waits.wait_for("the rules are read", lambda: "generation 2 is in use" in pool.log())
    if seen:
        psycopg.connect(dsn(pool)).close()
    server.stop()
    conn = psycopg.connect(dsn(pool) + " application_name=alone", autocommit=True, connect_timeout=60)
    assert [tuple(r[:1]) for r in conn.execute("show pool_nodes").fetchall()] == [("0",)]
    for name, columns in SHOWS.items():
        assert conn.pgconn.exec_(f"show {name}".encode()).nfields == columns
        # What comes in pieces waits for a server (doc/internals/known-gaps.md).
        assert late.reads_pieces() or conn.pgconn.exec_params(f"show {name}".encode(), []).nfields == columns
    assert conn.execute("pgpool show port").fetchone() == (str(pool.port),)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn(pool, user="stranger"), connect_timeout=10)
    server.start()
    assert conn.execute("select 'served'").fetchone() == ("served",)
    assert conn.info.parameter_status("server_version").startswith("15.") or not seen
    pid = conn.execute("select pg_backend_pid()").fetchone()
    assert conn.execute("select current_setting('application_name'), pg_backend_pid()").fetchone()[0] == "alone"
    assert mode == "transaction" or conn.execute("select pg_backend_pid()").fetchone() == pid
    conn.close()
    pool.stop()
    server.stop()


def test_new_session_with_no_server_is_refused(start_pool):
    """By default: the client may have another address to try."""
    server = postgres.start_postgres(roles=False)
    pool = start_pool(server.address)
    psycopg.connect(dsn(pool)).close()
    server.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn(pool), connect_timeout=10)
    pool.stop()


def test_show_when_the_own_server_is_gone(start_pool):
    """A session that outlives its server connection is answered at once, in both protocols."""
    server = postgres.start_postgres(roles=False)
    pool = start_pool(server.address, load_balance_mode=True, backend_hostname1="127.0.0.1",
                      backend_port1=procs.free_port(), backend_weight1=1, failover_wait=60)
    conn = psycopg.connect(dsn(pool), autocommit=True)
    conn.execute("select 1")
    server.stop()
    for name, columns in SHOWS.items():
        assert conn.pgconn.exec_(f"show {name}".encode()).nfields == columns
        assert conn.pgconn.exec_params(f"show {name}".encode(), []).nfields == columns
    server.start()
    assert conn.execute("select 1").fetchone() == (1,)
    conn.close()
    pool.stop()
    server.stop()


# ---- programs

def program(name: str) -> str:
    return str(postgres.client(name))


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("connect", [[], ["-C"]], ids=["kept", "reconnect"])
def test_pgbench(pg, pgpool, mode, connect):
    pg.rows("create database bench") if not pg.rows("select 1 from pg_database where datname = 'bench'") else None
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGUSER": "postgres", "PGPORT": str(pgpool.port)}
    if not pg.rows("select 1 from pg_class where relname = 'pgbench_accounts'", "bench"):
        done = subprocess.run([program("pgbench"), "-i", "-q", "bench"], env=env, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
    count = 20 if connect else 200
    done = subprocess.run([program("pgbench"), "-n", "-M", mode, "-c", "10", "-j", "2", "-t", str(count), *connect,
                           "bench"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{10 * count}/{10 * count}" in done.stdout, done.stdout


def test_psql_and_pg_dump(pg, pgpool):
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGUSER": "postgres", "PGPORT": str(pgpool.port)}
    script = "\\d pg_class\n\\copy (select 1) to stdout\nselect 1 \\gx\n\\l\nselect 1/0;\nselect 'done';\n"
    done = subprocess.run([program("psql"), "-X", "postgres"], input=script, env=env, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and "done" in done.stdout and "division by zero" in done.stderr
    dumps = []
    for port in (pg.port, pgpool.port):
        env["PGPORT"] = str(port)
        done = subprocess.run([program("pg_dump"), "other_db"], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        dumps.append([line for line in done.stdout.splitlines() if "restrict" not in line])
    assert dumps[0] == dumps[1]
