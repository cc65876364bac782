# SPDX-License-Identifier: PostgreSQL
"""test_tools: PostgreSQL's own programs in transaction mode, where links change between any two transactions:
dump and restore with several jobs, which share a snapshot, and maintenance."""
import os
import subprocess

from pgt import postgres

SQL = """
create table a(id serial primary key, t text not null, j jsonb);
insert into a(t, j) select 'x' || g, jsonb_build_object('g', g) from generate_series(1, 5000) g;
create index on a(t);
create view v as select id from a where id > 3;
create function f(i int) returns int language plpgsql as $$ begin return i + 1; end $$;
create table part(i int, d date) partition by range(d);
create table part1 partition of part for values from ('2020-01-01') to ('2021-01-01');
insert into part select g, '2020-01-01'::date + g % 300 from generate_series(1, 1000) g;
select lo_from_bytea(4711, '\\x00010203'::bytea);
create materialized view mv as select count(*) from a;
"""


def run(port: int, name: str, *args: str, script: str = "") -> str:
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGUSER": "postgres", "PGPORT": str(port)}
    done = subprocess.run([str(postgres.bindir() / name), *args], input=script, env=env, capture_output=True, text=True,
                          check=False, timeout=110)
    assert done.returncode == 0, f"{name} {args}: {done.stderr[-1000:]}"
    return done.stdout


def dump(port: int, database: str) -> list[str]:
    return [line for line in run(port, "pg_dump", "--inserts", database).splitlines() if "restrict" not in line]


def test_dump_and_restore_with_jobs(pg, start_pool, tmp_path):
    pool = start_pool(pg.address, pool_mode="transaction", pool_test_rotate=True, default_pool_size=4, query_wait_timeout=60)
    run(pool.port, "createdb", "tools_from")
    run(pool.port, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "tools_from", script=SQL)
    run(pool.port, "pg_dump", "-Fd", "-j3", "-f", str(tmp_path / "folder"), "tools_from")
    run(pool.port, "createdb", "tools_jobs")
    run(pool.port, "pg_restore", "-j3", "-d", "tools_jobs", str(tmp_path / "folder"))
    run(pool.port, "createdb", "tools_text")
    run(pool.port, "psql", "-X", "-1", "-q", "-v", "ON_ERROR_STOP=1", "tools_text",
        script="\n".join(dump(pool.port, "tools_from")))
    want = dump(pg.port, "tools_from")
    assert len(want) > 6000 and dump(pg.port, "tools_jobs") == dump(pool.port, "tools_text") == want
    run(pool.port, "vacuumdb", "-j3", "-z", "tools_from")
    run(pool.port, "reindexdb", "-j3", "tools_from")
    for database in ("tools_from", "tools_jobs", "tools_text"):
        run(pool.port, "dropdb", database)
