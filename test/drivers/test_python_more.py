# SPDX-License-Identifier: PostgreSQL
"""test_python_more: what one Python driver does and others do not: pipelines that fail, rows as they come, COPY both ways, types that
are looked up, tables that change under a statement, deadlines as cancel requests, listeners, and server processes that end.

`test_orm_python` is their ordinary use. 20 clients at each place (conftest.py); what is not installed is skipped by name.
"""
import asyncio
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgt import waits

CLIENTS = 20


def together(work) -> None:
    """One thread per client; the first error is the test's."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(work, i) for i in range(CLIENTS)]:
            done.result(200 * waits.SCALE)


def all_of(work) -> None:
    """One task per client."""
    async def everybody() -> None:
        await asyncio.gather(*(work(i) for i in range(CLIENTS)))
    asyncio.run(asyncio.wait_for(everybody(), 200 * waits.SCALE))


@pytest.fixture
def table(pg, request):
    name = "more_" + request.node.originalname[5:]
    pg.rows(f"drop table if exists {name}")
    pg.rows(f"create table {name}(client int, n int, unique (client, n))")
    return name


@pytest.fixture(scope="module")
def at(pool):
    return {"host": "127.0.0.1", "port": pool.port, "user": "postgres"}


# ---- psycopg

def pipelines(psycopg, conn, table: str, i: int) -> None:
    conn.autocommit = True
    with pytest.raises(psycopg.errors.UniqueViolation), conn.pipeline() as p:
        conn.execute(f"insert into {table} values (%s, 1)", (i,))
        p.sync()
        conn.execute(f"insert into {table} values (%s, 2)", (i,))
        conn.execute(f"insert into {table} values (%s, 1)", (i,))
        conn.execute(f"insert into {table} values (%s, 3)", (i,))
    with conn.pipeline(), conn.transaction():
        conn.execute(f"insert into {table} values (%s, 4)", (i,))
        with pytest.raises(psycopg.errors.DivisionByZero), conn.transaction():
            conn.execute("select 1 / %s::int", (0,)).fetchone()
        conn.execute(f"insert into {table} values (%s, 5)", (i,))
    got = conn.execute(f"select n from {table} where client = %s order by n", (i,)).fetchall()
    assert got == [(1,), (4,), (5,)]
    with conn.cursor() as cur:
        cur.executemany(f"insert into {table} values (%s, %s) returning n", [(i, n) for n in range(10, 40)], returning=True)
        seen = [cur.fetchone()[0]]
        while cur.nextset():
            seen.append(cur.fetchone()[0])
    assert seen == list(range(10, 40))


def copies(psycopg, conn, table: str, i: int) -> None:
    with conn.cursor().copy("copy (select g * %s from generate_series(1, 4) g) to stdout", (i,)) as copy:
        assert [int(r[0]) for r in copy.rows()] == [g * i for g in range(1, 5)]
    with conn.cursor().copy(f"copy {table} from stdin (format binary)") as copy:
        copy.set_types(["int4", "int4"])
        for n in range(100, 130):
            copy.write_row((i, n))
    with pytest.raises(psycopg.errors.UniqueViolation), conn.cursor().copy(f"copy {table} from stdin") as copy:
        copy.write_row((i, 100))
    with pytest.raises(psycopg.errors.QueryCanceled), conn.cursor().copy(f"copy {table} from stdin") as copy:
        copy.write_row((i, 900))
        raise psycopg.errors.QueryCanceled("the client thinks better of it")
    assert conn.execute(f"select count(*) from {table} where client = %s and n >= 100", (i,)).fetchone() == (30,)


def cursors(psycopg, conn, i: int) -> None:
    assert [r[0] for r in conn.cursor().stream("select %s::int + g from generate_series(1, 50) g", (i,))] == list(range(i + 1, i + 51))
    with conn.transaction(), conn.cursor(name="here", scrollable=True) as cur:
        cur.execute("select %s::int + g from generate_series(1, 20) g", (i,))
        cur.scroll(10)
        assert cur.fetchmany(2) == [(i + 11,), (i + 12,)]
        cur.scroll(0, mode="absolute")
        assert cur.fetchone() == (i + 1,)
    with psycopg.ClientCursor(conn) as cur:
        assert cur.execute("select %s, %s", (i, "it's")).fetchone() == (i, "it's")
    with psycopg.RawCursor(conn) as cur:
        assert cur.execute("select $1::int + $2::int", (i, 5)).fetchone() == (i + 5,)


@pytest.mark.parametrize("prepare", [None, 0], ids=["never", "at_once"])
def test_psycopg(pg, at, table, prepare):
    psycopg = pytest.importorskip("psycopg")

    def work(i: int) -> None:
        with psycopg.connect(**at, dbname="postgres", prepare_threshold=prepare, application_name=f"client {i}") as conn:
            conn.prepared_max = 8
            pipelines(psycopg, conn, table, i)
            copies(psycopg, conn, table, i)
            cursors(psycopg, conn, i)
            for n in range(30):
                assert conn.execute(f"select %s::int + {n}", (i,)).fetchone() == (i + n,)

    together(work)
    assert pg.value(f"select count(*) from {table}") == str(CLIENTS * (3 + 30 + 30))


def test_psycopg_asyncio_deadlines(at):
    """Each task is cancelled in its query, which psycopg cancels at the server; most wait for a link. The connection stays."""
    psycopg = pytest.importorskip("psycopg")

    async def work(i: int) -> None:
        async with await psycopg.AsyncConnection.connect(**at, dbname="postgres", autocommit=True) as conn:
            for n in range(3):
                with pytest.raises((asyncio.TimeoutError, psycopg.errors.QueryCanceled)):
                    await asyncio.wait_for(conn.execute("select pg_sleep(20), %s::int", (i,)), 0.1)
                assert await (await conn.execute("select %s::int", (i * 10 + n,))).fetchone() == (i * 10 + n,)

    all_of(work)


def test_psycopg_changed_table(pg, place, at):
    """Its statements are described with each execution: a transaction pool plans anew, a session hears of it once."""
    psycopg = pytest.importorskip("psycopg")

    def work(i: int) -> None:
        name = f"more_changed_{i}"
        with psycopg.connect(**at, dbname="postgres", prepare_threshold=0, autocommit=True) as conn:
            conn.execute(f"drop table if exists {name}")
            conn.execute(f"create table {name} as select 1 as c0")
            for columns in range(1, 4):
                for n in range(3):
                    try:
                        assert len(conn.execute(f"select * from {name} where c0 = %s", (1,)).fetchone()) == columns
                    except psycopg.errors.FeatureNotSupported:
                        assert n == 0 and "pool_mode" not in place.conf
                        conn.prepare_threshold = None
                conn.prepare_threshold = 0
                conn.execute(f"alter table {name} add column c{columns} int")
                for n in range(3):
                    try:
                        with conn.transaction():
                            conn.execute("select 1")
                            assert len(conn.execute(f"select * from {name} where c0 = %s", (1,)).fetchone()) == columns + 1
                    except psycopg.errors.FeatureNotSupported:
                        assert n == 0
                        conn.prepare_threshold = None
                conn.prepare_threshold = 0
            conn.execute(f"drop table {name}")

    together(work)


def test_psycopg_listens(at):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(**at, dbname="postgres", autocommit=True) as listener, \
            psycopg.connect(**at, dbname="postgres", autocommit=True) as other:
        listener.execute("listen more_told")
        for n in range(5):
            other.execute("select pg_notify('more_told', %s)", (str(n),))
        assert [told.payload for told in listener.notifies(stop_after=5, timeout=60)] == [str(n) for n in range(5)]
        listener.execute("unlisten *")


# ---- asyncpg

@pytest.mark.parametrize("cache", [0, 3], ids=["no_cache", "small_cache"])
def test_asyncpg(pg, at, table, cache):
    asyncpg = pytest.importorskip("asyncpg")
    pg.rows("do $$ begin create type more_pair as (a int, b text); exception when duplicate_object then null; end $$")

    async def work(i: int) -> None:
        conn = await asyncpg.connect(**at, database="postgres", statement_cache_size=cache)
        try:
            await conn.copy_records_to_table(table, records=[(i, n) for n in range(50)], columns=["client", "n"])
            out = io.BytesIO()
            await conn.copy_from_query(f"select n from {table} where client = $1 and n < $2 order by n", i, 4, output=out)
            assert out.getvalue() == b"0\n1\n2\n3\n"
            with pytest.raises(asyncpg.UniqueViolationError):  # all or nothing
                await conn.executemany(f"insert into {table} values ($1, $2)", [(i, n) for n in (60, 61, 0, 62)])
            assert await conn.fetchval(f"select count(*) from {table} where client = $1", i) == 50
            assert await conn.fetchval("select $1::more_pair", (i, "b")) == (i, "b")
            await conn.set_type_codec("json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
            assert await conn.fetchval("select $1::json", {"a": [i]}) == {"a": [i]}
            await conn.reset_type_codec("json", schema="pg_catalog")
            await conn.reload_schema_state()
            for n in range(15):
                assert await conn.fetchval(f"select $1::int + {n % 5}", i) == i + n % 5
            async with conn.transaction(isolation="serializable", readonly=True, deferrable=True):
                assert await conn.fetchval("show transaction_isolation") == "serializable"
                cur = await conn.cursor("select $1::int + g from generate_series(1, 20) g", i)
                await cur.forward(5)
                assert [r[0] for r in await cur.fetch(3)] == [i + 6, i + 7, i + 8]
            await conn.reset()
            assert [r[0] for r in await conn.fetchmany("select $1::int", [(n,) for n in range(20)])] == list(range(20))
        finally:
            await conn.close()

    all_of(work)
    assert pg.value(f"select count(*) from {table}") == str(CLIENTS * 50)


def test_asyncpg_deadlines(at):
    """timeout= is a cancel request on a connection of its own; the next query waits for it."""
    asyncpg = pytest.importorskip("asyncpg")

    async def work(i: int) -> None:
        conn = await asyncpg.connect(**at, database="postgres")
        try:
            for n in range(3):
                with pytest.raises(asyncio.TimeoutError):
                    await conn.execute("select pg_sleep(20)", timeout=0.1)
                assert await conn.fetchval("select $1::int", i * 10 + n) == i * 10 + n
        finally:
            await conn.close()

    all_of(work)


def test_asyncpg_changed_table(place, at):
    """Outside of transactions it prepares anew, unseen; within one it says so, once for each of its cached statements."""
    asyncpg = pytest.importorskip("asyncpg")
    if place.has_readers:
        pytest.skip("a reader that parses a statement later has other columns than the client was told: doc/internals/known-gaps.md")

    async def work(i: int) -> None:
        conn = await asyncpg.connect(**at, database="postgres")
        name = f"more_asyncpg_{i}"
        try:
            await conn.execute(f"drop table if exists {name}")
            await conn.execute(f"create table {name} as select 1 as c0")
            for columns in range(1, 6):
                for _ in range(3):
                    assert len(await conn.fetchrow(f"select * from {name}")) == columns
                await conn.execute(f"alter table {name} add column c{columns} int")
                if columns % 2 == 0:
                    continue
                for n in range(3):
                    try:
                        async with conn.transaction():
                            await conn.execute("select 1")
                            assert len(await conn.fetchrow(f"select * from {name}")) == columns + 1
                    except asyncpg.InvalidCachedStatementError:
                        assert n == 0
            await conn.execute(f"drop table {name}")
        finally:
            await conn.close()

    all_of(work)


def test_asyncpg_listens(at):
    asyncpg = pytest.importorskip("asyncpg")

    async def both() -> None:
        told = asyncio.Queue()
        listener = await asyncpg.connect(**at, database="postgres")
        other = await asyncpg.connect(**at, database="postgres")

        def on_told(_conn, _pid, _channel, payload) -> None:
            told.put_nowait(payload)

        await listener.add_listener("more_told", on_told)
        for n in range(5):
            await other.execute("select pg_notify('more_told', $1)", str(n))
        assert [await told.get() for _ in range(5)] == [str(n) for n in range(5)]
        await listener.remove_listener("more_told", on_told)
        await listener.close()
        await other.close()

    asyncio.run(asyncio.wait_for(both(), 200 * waits.SCALE))


# ---- pg8000 and SQLAlchemy

def test_pg8000(pg, at, table):
    """Its DB-API: a transaction around everything, COPY to and from a stream, many rows."""
    dbapi = pytest.importorskip("pg8000.dbapi")

    def work(i: int) -> None:
        conn = dbapi.connect(**at, database="postgres", password="x")
        cur = conn.cursor()
        cur.executemany(f"insert into {table} values (%s, %s)", [(i, n) for n in range(20)])
        cur.execute("savepoint a")
        with pytest.raises(dbapi.DatabaseError):
            cur.execute(f"insert into {table} values (%s, 0)", (i,))
        cur.execute("rollback to a")
        conn.commit()
        cur.execute(f"copy {table} from stdin", stream=io.BytesIO(b"".join(b"%d\t%d\n" % (i, n) for n in range(20, 30))))
        conn.commit()
        out = io.BytesIO()
        cur.execute(f"copy (select n from {table} where client = {i} and n > 27 order by n) to stdout", stream=out)
        assert out.getvalue() == b"28\n29\n"
        cur.execute(f"select count(*) from {table} where client = %s", (i,))
        assert cur.fetchone()[0] == 30
        conn.rollback()
        conn.autocommit = True
        cur.execute("select %s::int + 1", (i,))
        assert list(cur.fetchall()[0]) == [i + 1]
        conn.close()

    together(work)
    assert pg.value(f"select count(*) from {table}") == str(CLIENTS * 30)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_sqlalchemy(at, table, driver):
    """Rows as they come, many rows in one INSERT with their keys, upserts, tables found by reflection, DDL in a transaction."""
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip(driver)
    from sqlalchemy.dialects.postgresql import insert
    engine = sa.create_engine(f"postgresql+{driver}://postgres:x@127.0.0.1:{at['port']}/postgres", pool_size=CLIENTS)
    found = sa.Table(table, sa.MetaData(), autoload_with=engine)

    def work(i: int) -> None:
        with engine.begin() as conn:
            rows = conn.execute(sa.insert(found).returning(found.c.n, sort_by_parameter_order=False),
                                [{"client": i, "n": n} for n in range(40)])
            assert sorted(rows.scalars()) == list(range(40))
        with engine.begin() as conn:
            conn.execute(insert(found).values(client=i, n=3).on_conflict_do_nothing())
            with pytest.raises(sa.exc.IntegrityError), conn.begin_nested():
                conn.execute(sa.insert(found).values(client=i, n=3))
            query = sa.select(found.c.n).where(found.c.client == i).order_by(found.c.n)
            assert list(conn.execution_options(yield_per=7).scalars(query)) == list(range(40))
        with pytest.raises(ZeroDivisionError), engine.begin() as conn:
            sa.Table(f"more_sa_{i}", sa.MetaData(), sa.Column("a", sa.Integer)).create(conn)
            raise ZeroDivisionError
        with engine.connect() as conn:
            assert not sa.inspect(conn).has_table(f"more_sa_{i}")

    together(work)
    engine.dispose()


# ---- when server processes end

def test_psycopg_outlives_server_processes(pg, place, at):
    """Sessions of a transaction pool, prepared statements and settings included."""
    psycopg = pytest.importorskip("psycopg")
    if "pool_mode" not in place.conf:
        pytest.skip("in session mode with one server a session ends with its server process")
    conns = [psycopg.connect(**at, dbname="postgres", prepare_threshold=0, autocommit=True) for _ in range(CLIENTS)]
    for i, conn in enumerate(conns):
        conn.execute(f"set work_mem = '{2000 + i}kB'")
        assert conn.execute("select %s::int", (i,)).fetchone() == (i,)
    pg.end_sessions()
    for i, conn in enumerate(conns):
        assert conn.execute("select %s::int", (i,)).fetchone() == (i,)
        assert conn.execute("show work_mem").fetchone() == (f"{2000 + i}kB",)
        conn.close()


def test_sqlalchemy_connects_again(pg, at):
    """pool_pre_ping finds out, and opens what was lost."""
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    engine = sa.create_engine(f"postgresql+psycopg://postgres:x@127.0.0.1:{at['port']}/postgres", pool_size=5, pool_pre_ping=True)
    conns = [engine.connect() for _ in range(2)]
    assert [c.scalar(sa.text("select 1")) for c in conns] == [1, 1]
    for c in conns:
        c.close()
    for _ in range(3):
        pg.end_sessions()
        with engine.connect() as c:
            assert c.scalar(sa.text("select 2")) == 2
    engine.dispose()


def test_threads_end(left_behind):
    waits.wait_for("the threads end", lambda: not left_behind())
