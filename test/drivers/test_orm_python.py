# SPDX-License-Identifier: PostgreSQL
"""test_orm_python: Python's drivers and object mappers in their ordinary use, 20 clients at each place (conftest.py).

What is not installed is skipped by name; dev/check installs psycopg and asyncpg, `test/drivers/install` the rest.
"""
import asyncio
import glob
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgt import waits

CLIENTS = 20
ROUNDS = 8


@pytest.fixture(scope="module")
def url(pool):
    """Where the drivers connect to."""
    return {"host": "127.0.0.1", "port": pool.port, "user": "postgres", "database": "postgres", "password": "x"}


def together(work, clients: int = CLIENTS) -> None:
    """One thread per client; the first error is the test's."""
    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(work, i) for i in range(clients)]:
            done.result(200 * waits.SCALE)


# ---- drivers

@pytest.mark.parametrize("prepare", [None, 0, 2], ids=["never", "at_once", "after_two"])
def test_psycopg(pg, url, prepare):
    """Transactions, savepoints, server-side cursors, COPY, pipelines, prepared statements."""
    psycopg = pytest.importorskip("psycopg")
    pg.rows("drop table if exists drv_psycopg")
    pg.rows("create table drv_psycopg(client int, n int, t text, unique (client, n))")

    def work(i: int) -> None:
        with psycopg.connect(host=url["host"], port=url["port"], user="postgres", dbname="postgres",
                             prepare_threshold=prepare, application_name=f"client {i}") as conn:
            for n in range(ROUNDS):
                conn.execute("insert into drv_psycopg values (%s, %s, %s)", (i, n, f"{i}/{n}"))
                with pytest.raises(psycopg.errors.UniqueViolation), conn.transaction():
                    conn.execute("insert into drv_psycopg values (%s, %s, %s)", (i, n, "doubled"))
                assert conn.execute("select t from drv_psycopg where client = %s and n = %s", (i, n)).fetchone() == (f"{i}/{n}",)
                if n % 2:
                    conn.rollback()
                    assert conn.execute("select count(*) from drv_psycopg where client = %s and n = %s", (i, n)).fetchone() == (0,)
                conn.commit()
            assert conn.execute("show application_name").fetchone() == (f"client {i}",)
            with conn.cursor(name="many") as cur:
                cur.itersize = 10
                cur.execute("select %s::int * 1000 + g from generate_series(1, 45) g", (i,))
                assert [r[0] for r in cur] == [i * 1000 + g for g in range(1, 46)]
            conn.commit()
            with conn.cursor().copy("copy drv_psycopg from stdin") as copy:
                for n in range(100, 150):
                    copy.write_row((i, n, "copied"))
            conn.commit()
            conn.autocommit = True
            with conn.pipeline():
                curs = [conn.execute("select %s::int + %s::int", (i, n)) for n in range(20)]
                assert [c.fetchone()[0] for c in curs] == [i + n for n in range(20)]

    together(work)
    assert pg.value("select count(*) from drv_psycopg") == str(CLIENTS * (ROUNDS // 2 + 50))


@pytest.mark.parametrize("cache", [0, 100], ids=["no_cache", "cache"])
def test_asyncpg(pg, url, cache):
    """Its statement cache, transactions within transactions, cursors, executemany, COPY, types by introspection."""
    asyncpg = pytest.importorskip("asyncpg")
    pg.rows("drop table if exists drv_asyncpg")
    pg.rows("create table drv_asyncpg(client int, n int, tags text[], unique (client, n))")
    pg.rows("do $$ begin create type drv_mood as enum ('sad', 'ok'); exception when duplicate_object then null; end $$")

    async def work(i: int) -> None:
        conn = await asyncpg.connect(**url, statement_cache_size=cache, server_settings={"application_name": f"client {i}"})
        try:
            for n in range(ROUNDS):
                async with conn.transaction():
                    await conn.execute("insert into drv_asyncpg values ($1, $2, $3)", i, n, ["a", str(i)])
                    try:
                        async with conn.transaction():
                            await conn.execute("insert into drv_asyncpg values ($1, $2, $3)", i, n, None)
                    except asyncpg.UniqueViolationError:
                        pass
                row = await conn.fetchrow("select tags, $3::drv_mood as m from drv_asyncpg where client = $1 and n = $2", i, n, "ok")
                assert row["tags"] == ["a", str(i)] and row["m"] == "ok"
            async with conn.transaction():
                got = [r[0] async for r in conn.cursor("select $1::int + g from generate_series(1, 30) g", i, prefetch=7)]
            assert got == [i + g for g in range(1, 31)]
            await conn.executemany("insert into drv_asyncpg values ($1, $2, null)", [(i, n) for n in range(100, 120)])
            statement = await conn.prepare("select $1::int * 2")
            assert [await statement.fetchval(n) for n in range(10)] == [n * 2 for n in range(10)]
            assert await conn.fetchval("show application_name") == f"client {i}"
        finally:
            await conn.close()

    async def everybody() -> None:
        await asyncio.gather(*(work(i) for i in range(CLIENTS)))

    asyncio.run(asyncio.wait_for(everybody(), 200 * waits.SCALE))
    assert pg.value("select count(*) from drv_asyncpg") == str(CLIENTS * (ROUNDS + 20))


def test_asyncpg_pool(pg, url):
    """Its own pool in front of ours: it resets each connection with a string of statements."""
    asyncpg = pytest.importorskip("asyncpg")

    async def everybody() -> None:
        async with asyncpg.create_pool(**url, min_size=2, max_size=6) as pool:
            async def work(i: int) -> None:
                async with pool.acquire() as conn, conn.transaction():
                    await conn.execute(f"set local work_mem = '{1000 + i}kB'")
                    assert await conn.fetchval("show work_mem") == f"{1000 + i}kB"
            await asyncio.gather(*(work(i % 24) for i in range(100)))

    asyncio.run(asyncio.wait_for(everybody(), 200 * waits.SCALE))


def test_psycopg2(pg, url):
    psycopg2 = pytest.importorskip("psycopg2")
    pg.rows("drop table if exists drv_psycopg2")
    pg.rows("create table drv_psycopg2(client int, n int)")

    def work(i: int) -> None:
        conn = psycopg2.connect(host=url["host"], port=url["port"], user="postgres", dbname="postgres",
                                options=f"-c work_mem={1000 + i}kB")
        with conn, conn.cursor() as cur:
            cur.execute("set timezone = %s", ("Asia/Tokyo" if i % 2 else "Europe/Paris",))
        for n in range(ROUNDS):
            with conn, conn.cursor() as cur:
                cur.execute("insert into drv_psycopg2 values (%s, %s)", (i, n))
            with conn, conn.cursor() as cur:
                cur.execute("show work_mem; show timezone")
                assert cur.fetchone() == ("Asia/Tokyo" if i % 2 else "Europe/Paris",)
        with pytest.raises(psycopg2.Error), conn, conn.cursor() as cur:
            cur.execute("insert into drv_psycopg2 values (1, 1); select 1/0")
        with conn, conn.cursor("server_side") as cur:
            cur.itersize = 5
            cur.execute("select generate_series(1, 23)")
            assert sum(r[0] for r in cur) == 276
        conn.set_isolation_level(psycopg2.extensions.ISOLATION_LEVEL_SERIALIZABLE)
        with conn, conn.cursor() as cur:
            cur.execute("show transaction_isolation")
            assert cur.fetchone() == ("serializable",)
        conn.set_session(readonly=True, autocommit=True)
        with conn.cursor() as cur, pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
            cur.execute("insert into drv_psycopg2 values (1, 1)")
        conn.close()

    together(work)
    assert pg.value("select count(*) from drv_psycopg2") == str(CLIENTS * ROUNDS)


def test_pg8000(pg, url):
    pg8000 = pytest.importorskip("pg8000.native")
    pg.rows("drop table if exists drv_pg8000")
    pg.rows("create table drv_pg8000(client int, n int)")

    def work(i: int) -> None:
        conn = pg8000.Connection("postgres", host=url["host"], port=url["port"], database="postgres", application_name=f"a{i}")
        prepared = conn.prepare("select cast(:v as int) + 1")
        for n in range(ROUNDS):
            conn.run("start transaction")
            conn.run("insert into drv_pg8000 values (:c, :n)", c=i, n=n)
            conn.run("rollback" if n % 2 else "commit")
            assert prepared.run(v=n) == [[n + 1]]
            assert conn.run("show application_name") == [[f"a{i}"]]
        with pytest.raises(pg8000.DatabaseError):
            conn.run("select 1/0")
        prepared.close()
        conn.close()

    together(work)
    assert pg.value("select count(*) from drv_pg8000") == str(CLIENTS * ROUNDS // 2)


@pytest.mark.parametrize("use_declare", [0, 1], ids=["plain", "declare"])
def test_odbc(pg, url, use_declare):
    """psqlODBC: statements prepared by the server, its savepoint for each statement, cursors by DECLARE and FETCH."""
    pyodbc = pytest.importorskip("pyodbc")
    libraries = glob.glob("/usr/lib/*/odbc/psqlodbcw.so")
    if not libraries:
        pytest.skip("psqlODBC is not installed")
    pg.rows("drop table if exists drv_odbc")
    pg.rows("create table drv_odbc(client int, n int, unique (client, n))")

    def work(i: int) -> None:
        conn = pyodbc.connect(f"Driver={libraries[0]};Server={url['host']};Port={url['port']};Database=postgres;Uid=postgres;Pwd=x;"
                              f"UseServerSidePrepare=1;Protocol=7.4-{i % 3};UseDeclareFetch={use_declare};Fetch=7;"
                              f"ConnSettings={{set application_name = 'odbc {i}'}}")
        cur = conn.cursor()
        for n in range(ROUNDS):
            cur.execute("insert into drv_odbc values (?, ?)", i, n)
            if i % 3 == 2:  # a savepoint for each statement: the rest of the transaction is unharmed
                with pytest.raises(pyodbc.IntegrityError):
                    cur.execute("insert into drv_odbc values (?, ?)", i, n)
            assert cur.execute("select count(*) from drv_odbc where client = ? and n = ?", i, n).fetchone()[0] == 1
            conn.rollback() if n % 2 else conn.commit()
        assert [r[0] for r in cur.execute("select g from generate_series(1, 30) g where g > ?", 3)] == list(range(4, 31))
        cur.executemany("insert into drv_odbc values (?, ?)", [(i, n) for n in range(100, 120)])
        conn.commit()
        assert "drv_odbc" in [t.table_name for t in cur.tables(schema="public")]
        assert cur.execute("show application_name").fetchone()[0] == f"odbc {i}"
        with pytest.raises(pyodbc.Error, match="22012"):
            cur.execute("select 1/0")
        conn.rollback()
        conn.close()

    together(work)
    assert pg.value("select count(*) from drv_odbc") == str(CLIENTS * (ROUNDS // 2 + 20))


# ---- object mappers

@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_sqlalchemy(pg, url, driver):
    """Sessions with units of work, savepoints, relations, isolation levels, its pool's ping and reset."""
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip(driver)
    orm = pytest.importorskip("sqlalchemy.orm")
    base = orm.declarative_base()

    class Author(base):
        __tablename__ = f"sa_author_{driver}"
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String, unique=True)
        books = orm.relationship("Book", back_populates="author")

    class Book(base):
        __tablename__ = f"sa_book_{driver}"
        id = sa.Column(sa.Integer, primary_key=True)
        title = sa.Column(sa.String)
        author_id = sa.Column(sa.ForeignKey(Author.id))
        author = orm.relationship(Author, back_populates="books")

    engine = sa.create_engine(f"postgresql+{driver}://postgres:x@{url['host']}:{url['port']}/postgres", pool_size=CLIENTS,
                              pool_pre_ping=True)
    base.metadata.drop_all(engine)
    base.metadata.create_all(engine)

    def work(i: int) -> None:
        for n in range(ROUNDS // 2):
            with orm.Session(engine) as session, session.begin():
                author = Author(name=f"author {i} {n}", books=[Book(title=f"book {k}") for k in range(3)])
                session.add(author)
                session.flush()
                with pytest.raises(sa.exc.IntegrityError), session.begin_nested():
                    session.add(Author(name=f"author {i} {n}"))
                    session.flush()
            with orm.Session(engine) as session:
                found = session.scalars(sa.select(Author).where(Author.name == f"author {i} {n}")).one()
                assert sorted(b.title for b in found.books) == ["book 0", "book 1", "book 2"]
                found.name += " renamed"
                session.rollback()
            with engine.connect().execution_options(isolation_level="SERIALIZABLE") as conn:
                assert conn.scalar(sa.text("show transaction_isolation")) == "serializable"

    together(work)
    with engine.connect() as conn:
        assert conn.scalar(sa.text(f"select count(*) from sa_book_{driver}")) == CLIENTS * (ROUNDS // 2) * 3
        assert sa.inspect(conn).get_table_names()
    engine.dispose()


def test_sqlalchemy_asyncio(pg, url):
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip("asyncpg")
    pytest.importorskip("greenlet")
    aio = pytest.importorskip("sqlalchemy.ext.asyncio")
    pg.rows("drop table if exists sa_async")
    pg.rows("create table sa_async(client int, n int)")

    async def everybody() -> None:
        engine = aio.create_async_engine(f"postgresql+asyncpg://postgres:x@{url['host']}:{url['port']}/postgres",
                                         pool_size=CLIENTS)

        async def work(i: int) -> None:
            for n in range(ROUNDS):
                async with engine.begin() as conn:
                    await conn.execute(sa.text("insert into sa_async values (:i, :n)"), {"i": i, "n": n})
                async with engine.connect() as conn:
                    got = await conn.scalar(sa.text("select count(*) from sa_async where client = :i"), {"i": i})
                    assert got == n + 1
        await asyncio.gather(*(work(i) for i in range(CLIENTS)))
        await engine.dispose()

    asyncio.run(asyncio.wait_for(everybody(), 200 * waits.SCALE))


@pytest.mark.parametrize("cursors", ["client_side", "server_side"])
def test_django(pg, url, cursors):
    """Models, atomic blocks within atomic blocks, iterators, select_for_update, a thread and a connection each."""
    django = pytest.importorskip("django")
    pytest.importorskip("psycopg")
    from django.conf import settings
    if not settings.configured:
        settings.configure(INSTALLED_APPS=[], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True, DATABASES={
            "default": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres",
                        "HOST": url["host"], "PORT": url["port"], "CONN_MAX_AGE": None}})
        django.setup()
    from django.db import IntegrityError, connection, models, transaction
    connection.settings_dict["PORT"] = url["port"]  # of all threads
    connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = cursors == "client_side"
    global DjangoNote
    if DjangoNote is None:
        class Note(models.Model):
            owner = models.IntegerField()
            text = models.CharField(max_length=100, unique=True)

            class Meta:
                app_label = "notes"
        DjangoNote = Note
    note = DjangoNote
    pg.rows(f"drop table if exists {note._meta.db_table}")
    with connection.schema_editor() as editor:
        editor.create_model(note)

    def work(i: int) -> None:
        connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = cursors == "client_side"
        try:
            for n in range(ROUNDS):
                with transaction.atomic():
                    mine = note.objects.create(owner=i, text=f"{i} {n}")
                    with pytest.raises(IntegrityError), transaction.atomic():
                        note.objects.create(owner=i, text=f"{i} {n}")
                    assert note.objects.select_for_update().get(pk=mine.pk).text == f"{i} {n}"
                assert note.objects.filter(owner=i).count() == n + 1
            with transaction.atomic():
                texts = [x.text for x in note.objects.filter(owner=i).order_by("pk").iterator(chunk_size=3)]
            assert texts == [f"{i} {n}" for n in range(ROUNDS)]
            assert note.objects.filter(owner=i).update(owner=i + 1000) == ROUNDS
        finally:
            connection.close()

    together(work)
    connection.close()
    assert pg.value(f"select count(*) from {note._meta.db_table} where owner >= 1000") == str(CLIENTS * ROUNDS)


DjangoNote = None  # Django registers a model once per process


def test_threads_end(url, left_behind):
    """No client thread is left behind by the tests above."""
    waits.wait_for("the threads end", lambda: not left_behind())
