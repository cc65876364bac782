# SPDX-License-Identifier: PostgreSQL
"""test_cache_rows: a result that is restricted to a value of a column lives on when other rows are written, and goes when one
that it may depend on is, whoever writes it, whatever moves it."""
import os
import random
import struct

import pytest

from pgt import postgres, waits
from pgt.wire import SYNC, Wire, bind, describe, execute, parse

from test_cache_around import hits, one
from test_cache_stream import CACHE, LOGICAL, good

POOL = {**CACHE, "pool_mode": "transaction", "memqcache_wal_lag": "60s"}  # a busy machine may be late
SCHEMA = ("drop schema public cascade", "create schema public", "grant all on schema public to public",
          "create table t (id int primary key, n int, v varchar(10), u uuid, d date, \"Odd\" text)",
          "insert into t select i, i % 10, 'v' || i, ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, "
          "date '2020-01-01' + i, 'o' || i from generate_series(1, 50) i",
          "create table solo (like t including all)", "insert into solo select * from t",  # t has a cascade
          "create table child (id int primary key, t_id int references t on delete cascade on update cascade, w text)",
          "insert into child select i, i, 'w' || i from generate_series(1, 50) i",
          "create table p (id int primary key, w text) partition by range (id)", "create table p1 partition of p for values from (0) to (100)",
          "insert into p select i, 'p' || i from generate_series(1, 50) i",
          "create table moved (id int primary key, w text)", "insert into moved select i, 'm' || i from generate_series(1, 50) i",
          "create function move() returns trigger language plpgsql as 'begin new.id := new.id + 1; return new; end'",
          "create trigger x before update on moved for each row when (new.w = 'up') execute function move()",
          "create table tree (id int primary key, up int references tree on delete cascade on update cascade, w text)",
          "insert into tree select i, null, 'r' from generate_series(1, 40) i",
          "insert into tree select 100 + i, i, 'c' from generate_series(1, 40) i",
          "create table g (id int primary key, n int, twice int generated always as (n * 2) stored)",
          "insert into g select i, i from generate_series(1, 50) i",
          "create table self (id int primary key, up int references self on delete cascade on update cascade)",
          "insert into self values (7, null), (8, 7)")


@pytest.fixture(scope="module")
def server():
    pg = postgres.start_postgres(LOGICAL)
    yield pg
    pg.stop()


@pytest.fixture
def tables(server):
    server.rows("; ".join(SCHEMA))  # at once: a connection for each is half of what these tests cost
    return server


def login(pool) -> Wire:
    w = Wire(pool.address)
    assert w.login()[-1].type == "Z"
    return w


def is_hit(pool, w: Wire, sql: str) -> bool:
    before = hits(pool)
    w.rows(sql)
    return hits(pool) > before


def warm(pool, w: Wire, sql: str) -> None:
    waits.wait_for(f"{sql} is kept", lambda: is_hit(pool, w, sql), 60)


# What is read, what is written, whether the result may live on.
APART = [("select v from solo where id = 7", "update solo set v = 'new' where id = 8"),
         ("select v from solo where id = 7", "delete from solo where id = 8"),
         ("select v from solo where id = 7 and n = 7", "update solo set v = 'new' where id = 8"),
         ("select count(*) from solo where u = '00000000-0000-0000-0000-000000000007'", "delete from solo where u = '00000000-0000-0000-0000-000000000008'"),
         ("select v from solo where id = 7", "insert into solo (id, v) values (60, 'new')"),
        ("select v from solo where id in (6, 7)", "update solo set v = 'new' where id = 8")]
# Of partitions the stream tells rows; what is written through pgpool is told by table.
APART_AROUND = [("select w from p where id = 7", "update p set w = 'new' where id = 8"), ("select w from p where id in (7, 9)", "delete from p1 where id = 8"),
                ("select w from p1 where id = 7", "update p set w = 'new' where id = 8")]
TOGETHER = [("select v from t where id = 7", "update t set v = 'new' where id = 7"),
            ("select v from t where id = 7", "update t set v = 'new' where n = 7"),
            ("select v from t where id = 7", "update t set v = 'new'"),
            ("select v from t where id = 7", "delete from t where id = 7"),
            ("select count(*) from t where id = 8", "update t set id = 108 where id = 8"),
            ("select count(*) from t where id = 60", "insert into t (id, v) values (60, 'new')"),
            ("select count(*) from t where id = 60", "insert into t values (60)"),
            ("select count(*) from t where id = 60", "insert into t select 60"),
            ("select count(*) from t where id = 60", "update t set id = 60 where id = 7"),
            ("select count(*) from t where n = 7", "update t set n = 1 where id = 7"),
            ("select count(*) from t where n = 1", "update t set n = 1 where id = 7"),
            ("select count(*) from t where v = 'new'", "update t set v = 'new' where id = 7"),
            ("select id from t where d = '2020-01-08'", "update t set d = '1999-01-01' where id = 7"),
            ("select id from t where \"Odd\" = 'o7'", "update t set \"Odd\" = 'x' where id = 7"),
            ("select count(*) from t where id = 7", "truncate t cascade"),
            ("select v from t where id = 7", "insert into t (id, v) values (7, 'z') on conflict (id) do update set v = 'new'"),
            ("select v from t where id = 7", "with d as (update t set v = 'new' where id = 7 returning 1) select * from d"),
            ("select v from t where id = 7", "merge into t using (values (7)) x (id) on t.id = x.id when matched then update set v = 'new'"),
            ("select v from t where id = 7", "do $$begin update t set v = 'new' where id = 7; end$$"),
            ("select w from child where t_id = 7", "delete from t where id = 7"),
            ("select w from child where t_id = 7", "update t set id = 107 where id = 7"),
            ("select t_id from child where id = 7", "update t set id = 107 where id = 7"),
            ("select w from p where id = 7", "update p set w = 'new' where id = 7"),
            ("select w from p1 where id = 7", "update p set w = 'new' where id = 7"),
            ("select w from p where id = 7", "update p1 set w = 'new' where id = 7"),
            ("select w from p where id in (6, 7)", "update p set w = 'new' where id = 7"),
            ("select w from p where id = 7", "delete from p1 where id = 7"),
            ("select count(*) from p where id = 60", "insert into p1 values (60, 'new')"),
            ("select count(*) from p where id = 7", "truncate p1"),
            ("select count(*) from p where id = 7", "alter table p detach partition p1"),
            ("select v from t where id in (6, 7)", "update t set v = 'new' where id = 6"),
            ("select count(*) from t where id in (60, 61)", "insert into t (id, v) values (61, 'new')"),
            ("select count(*) from self where id = 8", "delete from self where id = 7"),
            ("select up from self where id = 8", "update self set id = 9 where id = 7"),
            ("select count(*) from moved where id = 108", "update moved set id = 107, w = 'up' where id = 7"),
            ("select count(*) from moved where id = 51", "update moved set w = 'up' where id = 50"),
            ("select id from g where twice = 14", "update g set n = 1 where id = 7"),
            ("select n from g where id = 7", "update g set n = 1 where twice = 14"),
            ("select v from t where id = 7", "alter table t alter v type text using 'new'"),
            ("select v from t where id = 7", "begin; savepoint a; update t set v = 'new' where id = 7; release a; commit"),
            ("select count(*) from t where v = 'ab'", "insert into t (id, v) values (60, 'ab         ')"),
            ("select count(*) from t where v = 'v7'", "update t set v = 'v7' where id = 8")]


@pytest.mark.parametrize("ours", [True, False], ids=["through us", "around us"])
@pytest.mark.parametrize("read, write", TOGETHER, ids=[w[:60] for _, w in TOGETHER])
def test_what_is_written_goes(tables, start_pool, read, write, ours):
    if write.startswith("merge") and int(tables.value("show server_version_num")) < 150000:
        pytest.skip("MERGE came with PostgreSQL 15")
    pool = start_pool(tables.address, **POOL)
    with login(pool) as w, (login(pool) if ours else Wire(tables.socket)) as writer:
        if not ours:
            writer.login()
        w.rows(read)
        good(pool)
        if ours and not write.startswith(("do", "alter", "begin")):
            writer.simple("explain " + write.split("; ")[0])  # what it writes is asked for before
        warm(pool, w, read)
        for part in [write] if write.startswith("do") else write.split("; "):
            assert all(m.type != "E" for m in writer.simple(part)), part
        want = tables.rows(read)
        told = w.rows(read)
        assert not ours or as_text(told) == as_text(want), (told, want)  # his own write
        waits.wait_for("the new value is told", lambda: as_text(w.rows(read)) == as_text(want))
        waits.holds_for("and no other", lambda: as_text(w.rows(read)) == as_text(want), 0.2)


@pytest.mark.parametrize("write, want", [("delete from tree where id = {}", []), ("update tree set id = {0} + 200 where id = {0}", None)])
def test_a_key_that_refers_to_its_own_table(tables, start_pool, write, want):
    """A row takes others of its table with it: he who wrote sees that at once, whether or not the stream has come so far."""
    pool = start_pool(tables.address, **POOL)
    read = "select up from tree where id = 1{:02}"
    with login(pool) as w:
        for sql in (read.format(1), "explain " + write.format(1)):
            w.rows(sql)
        good(pool)
        for i in range(1, 31):
            warm(pool, w, read.format(i))
            assert all(m.type != "E" for m in w.simple(write.format(i)))
            assert as_text(w.rows(read.format(i))) == (want if want is not None else [[str(i + 200)]])


def as_text(rows) -> list:
    return [[v.decode() if isinstance(v, bytes) else v for v in row] for row in rows]


@pytest.mark.parametrize("read, write, ours", [(*case, ours) for ours in (True, False) for case in APART] + [(*case, False) for case in APART_AROUND],
                         ids=lambda x: x[:60] if isinstance(x, str) else "through us" if x else "around us")
def test_other_rows_do_not_matter(tables, start_pool, read, write, ours):
    if "insert" not in write:
        for table in ("solo", "p1"):
            tables.rows(f"alter table {table} replica identity full")  # else only the key's old value is in the stream
    pool = start_pool(tables.address, **POOL)
    with login(pool) as w, login(pool) as writer:
        w.rows(read)
        good(pool)
        if ours:  # what is not known yet writes everything
            writer.simple(write.replace("8", "9").replace("60", "61"))
        warm(pool, w, read)
        before = good(pool)["transactions"]
        if ours:
            assert all(m.type != "E" for m in writer.simple(write))
        else:
            tables.rows(write)
        waits.wait_for("it was read in the stream", lambda: good(pool)["transactions"] != before)
        assert is_hit(pool, w, read)


SIDE = ("create table side (id int primary key, solo_id bigint, w text)", "insert into side select i, i, 'w' || i from generate_series(1, 50) i",
        "alter table side replica identity full", "alter table solo replica identity full")
JOIN = ("select s.v, x.w from solo s join side x on x.solo_id = s.id where s.id = 7 order by x.id",
        'SELECT "solo"."v", "side"."w" FROM "solo" INNER JOIN "side" ON ("side"."solo_id" = "solo"."id") WHERE ("solo"."id" = 7 AND "side"."solo_id" = 7) ORDER BY "side"."id"',
        "select v, w from solo, side where solo_id = 7 and solo.id in (7, 9) order by side.id, solo.id")
# What is written, whether the result may live on when that is told by row.
JOIN_WRITES = (("update solo set v = 'new' where id = 8", True), ("update side set w = 'new' where solo_id = 8", True), ("delete from side where solo_id = 11", True),
               ("update solo set v = 'new' where id = 7", False), ("update side set w = 'new' where solo_id = 7", False), ("update side set w = 'id' where id = 7", False),
               ("update side set solo_id = 7 where id = 12", False), ("insert into side (id, solo_id, w) values (100, 7, 'more')", False),
               ("delete from side where solo_id = 7 and id = 7", False), ("update solo set v = v || 'x'", False), ("delete from solo where id = 7", False))


@pytest.mark.parametrize("mode, ours", [("wal", True), ("wal", False), ("statement", True)], ids=["through us", "around us", "statement"])
@pytest.mark.parametrize("read", JOIN, ids=["on", "quoted", "comma"])
def test_joins(tables, start_pool, read, mode, ours):
    """All tables of the join are restricted: what is written to other rows of any of them does not matter."""
    for sql in SIDE:
        tables.rows(sql)
    pool = start_pool(tables.address, **{**POOL, "memqcache_invalidation": mode})
    with login(pool) as w, (login(pool) if ours else Wire(tables.socket)) as writer:
        if not ours:
            writer.login()
        w.rows(read)
        if mode == "wal":
            good(pool)
        for write, lives in JOIN_WRITES:
            if ours:
                writer.simple("explain " + write)  # what it writes is asked for before
            warm(pool, w, read)
            before = good(pool)["transactions"] if mode == "wal" else 0
            assert all(m.type != "E" for m in writer.simple(write)), write
            want = as_text(tables.rows(read))
            if ours:
                assert as_text(w.rows(read)) == want, write  # his own write
            else:
                waits.wait_for(f"{write} is told", lambda: as_text(w.rows(read)) == want)  # noqa: B023
            if mode == "wal" and lives:
                waits.wait_for("it was read in the stream", lambda: good(pool)["transactions"] != before)  # noqa: B023
                assert is_hit(pool, w, read), write


def test_a_join_with_what_is_not_restricted(tables, start_pool):
    """By table: an outer join's rows, those of a table with heirs, what is found by another table's column."""
    for sql in (*SIDE, "create table heir () inherits (side)"):
        tables.rows(sql)
    pool = start_pool(tables.address, **POOL)
    cases = (("select s.v, x.v from solo s left join t x on x.id = s.n where s.id = 7", "update t set v = 'new' where id = 7"),
             ("select s.v, x.w from solo s, side x where x.solo_id = s.id and s.id = 7 order by x.id", "insert into heir values (300, 7, 'heir')"),
             ("select s.v, x.v from solo s join solo x on x.n = s.n where s.id = 7 order by x.id", "update solo set v = 'new' where id = 17"))
    with login(pool) as w, login(pool) as writer:
        for read, write in cases:
            w.rows(read)
            good(pool)
            writer.simple("explain " + write)
            warm(pool, w, read)
            assert all(m.type != "E" for m in writer.simple(write)), write
            assert as_text(w.rows(read)) == as_text(tables.rows(read)), write


def test_parameters(tables, start_pool):
    """As drivers do it: prepared once, bound often, in text and in binary."""
    pool = start_pool(tables.address, **POOL)
    with login(pool) as w, login(pool) as writer:
        w.rows("select 1 from t")
        good(pool)
        w.send(parse("select v from solo where id = $1", name="r", types=(23,)), SYNC)
        w.ready()
        writer.send(parse("update solo set v = $1 where id = $2", name="u"), SYNC)
        writer.ready()

        def read(i: int, binary: bool) -> str:
            value = struct.pack(">i", i) if binary else str(i).encode()
            w.send(bind([value], name="r", formats=(1,) if binary else ()), describe("", "P"), execute(), SYNC)
            return next(m.row()[0].decode() for m in w.ready() if m.type == "D")

        def write(i: int, v: str) -> None:
            writer.send(bind([v.encode(), str(i).encode()], name="u"), describe("", "P"), execute(), SYNC)
            assert all(m.type != "E" for m in writer.ready())

        write(1, "a")
        pick = random.Random(int(os.environ.get("PGT_SEED", "5")))
        now = {i: f"v{i}" for i in range(1, 51)} | {1: "a"}
        before = hits(pool)
        for k in range(400):
            i = pick.randint(1, 50)
            if pick.random() < 0.2:
                now[i] = f"k{k}"
                write(i, now[i])
            else:
                assert read(i, pick.random() < 0.5) == now[i]
        assert hits(pool) - before > 100


def test_a_parameter_has_the_type_of_its_first_place(tables, start_pool):
    """Of char(n) the server cuts blanks off, wherever else the parameter stands: the row that it finds is another than the value says."""
    tables.rows("create table c8 (id int primary key, code char(8))")
    tables.rows("insert into c8 values (7, 'AB')")
    tables.rows("create table tx (id int primary key, code text, v int)")
    tables.rows("insert into tx values (7, 'AB', 1)")
    pool = start_pool(tables.address, **POOL)
    with login(pool) as w, login(pool) as writer:
        w.rows("select 1 from t")
        good(pool)
        w.send(parse("select b.v from c8 a cross join tx b where a.id = 7 and a.code = $1 and b.code = $1", name="r"), SYNC)
        w.ready()

        def read() -> list[bytes]:
            w.send(bind([b"AB      "], name="r"), describe("", "P"), execute(), SYNC)
            return [m.row()[0] for m in w.ready() if m.type == "D"]

        def is_kept() -> bool:
            before = hits(pool)
            read()
            return hits(pool) > before

        waits.wait_for("it is kept", is_kept, 60)
        for v in (2, 3, 4):
            writer.rows(f"update tx set v = {v} where code = 'AB'")
            assert read() == [str(v).encode()]
            waits.wait_for("it is kept", is_kept, 60)


def test_a_mix_of_reads_and_writes(tables, start_pool):
    """Nine reads for a write of a random row: nearly as many hits as without the writes, and none of them old."""
    pool = start_pool(tables.address, **{**POOL, "memqcache_max_num_cache": 20000})
    tables.rows("create table a (aid int primary key, bid int, abalance int, filler char(84))")
    tables.rows("insert into a select i, 1, 0, '' from generate_series(1, 1000) i")
    pick = random.Random(int(os.environ.get("PGT_SEED", "7")))
    rounds = int(os.environ.get("PGT_STEPS", "6000"))

    def run(share: float) -> float:
        before, reads = hits(pool), 0
        for _ in range(rounds):
            i = int(1000 * pick.random() ** 3) + 1
            if pick.random() < share:
                balance[i] += 1
                assert all(m.type != "E" for m in w.simple(f"update a set abalance = abalance + 1 where aid = {i}"))
            else:
                reads += 1
                assert one(w, f"select abalance from a where aid = {i}") == str(balance[i])
        return (hits(pool) - before) / reads

    balance = [0] * 1002
    with login(pool) as w:
        w.rows("select 1 from a limit 1")
        good(pool)
        w.simple("update a set abalance = abalance where aid = 1")
        run(0.0)
        without, mixed = run(0.0), run(0.1)
    print(f"hit ratio without writes {without:.3f}, with 10 % updates {mixed:.3f}")
    assert mixed >= 0.8 * without
