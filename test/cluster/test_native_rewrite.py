# SPDX-License-Identifier: PostgreSQL
"""What native replication runs in place of a statement does what the statement does: on a real server, in one transaction.
The program rewrite-run is looked for in $PGPOOL_BUILD, beside $PGPOOL_BIN, else in the current folder."""
import os
import subprocess

import pytest

BUILD = os.environ.get("PGPOOL_BUILD") or os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd()
PROGRAM = os.path.join(BUILD, "rewrite-run")
pytestmark = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="rewrite-run is not built")

SCHEMA = """\
create table t (id int primary key, at timestamptz default now(), day date default current_date, note text default 'x',
  "Utc Time" timestamp(3) default timezone('utc', now()), lt time(0) with time zone default current_time,
  calc int generated always as (id * 2) stored, late timestamp default 'now');
create table plain (a int, b int default 7, w timestamp, z timestamptz, d date, tz timetz, ti time, txt text);
create table ids as select 55 as i;
create table kinds (id serial, u uuid default gen_random_uuid(), r float8 default random() * 10, v int);
insert into plain select i, i % 3, '2020-01-01' from generate_series(1, 5) i;
insert into t (id) select i from generate_series(100, 104) i;
"""

SAME = """\
insert into plain (w, z, d, tz, ti) values (now(), now(), now(), now()::timetz, now()::time)
insert into plain (w, z, d, tz, ti) values (current_timestamp, current_timestamp, current_date, current_time, localtime)
insert into plain (w, z, tz, ti) values (localtimestamp(1), current_timestamp(2), current_time(3), localtime(0))
insert into plain (z, tz, ti, w) values (current_timestamp(0), current_time(0), localtime(4), localtimestamp)
insert into plain (txt) values (now()::text), (current_date::text), (current_time(2)::text), (localtimestamp(5)::text)
insert into plain (txt) values (extract(epoch from now())::text), (to_char(current_timestamp, 'HH24:MI:SS.US TZ'))
insert into plain (w, z, d, tz, ti) values ('now', 'now', 'now', 'now', 'now')
insert into plain (w, z, d) values ('today', 'tomorrow', ' YESTERDAY ')
insert into plain (w, z, d) values ('now'::timestamp, timestamptz 'now', cast('today' as date))
insert into plain (w, z, tz) values (timestamp(2) 'now', timestamp(1) with time zone 'now', time(3) with time zone 'now')
insert into plain (ti, txt) values (time without time zone 'now', 'now')
insert into plain values (1, 2, now()), (2, 3, 'now'::timestamp)
insert into t (id) values (1)
insert into t (id) values (1), (2), (3) returning *
insert into t values (1)
insert into t values (1, default, default, default, default)
insert into t as x (id, note, at) values (1, default, default) returning x.at, now(), current_date
insert into t (id) select a from plain
insert into t (id, note) select a, 'x''y' from plain where b is distinct from 1 group by a order by a limit 2
insert into t (id) select a from plain where a < 3 union select a from plain where a > 3 order by 1
insert into t (id) (select 1) union all (select 2)
insert into t (id) with q as (select 7) select * from q
insert into t (id) table ids limit 1
insert into t (id) values (100) on conflict (id) do update set at = default, day = default, note = default
insert into t (id) values (100) on conflict do nothing
update t set at = default, "Utc Time" = default where id < 103
update t set (at, note, day) = (default, 'a', default), lt = default
update only t as x set (at) = row (default) from plain p where p.a + 99 = x.id returning x.id, x.at
update plain set w = now() - interval '1 day' * a, txt = 'now' where z is null and now() > '2020-01-01'
delete from plain where w < current_date and a < extract(day from current_date) + 5 returning a, now()
merge into t using plain p on p.a + 99 = t.id when matched then update set day = default, note = current_date::text when not matched then insert (id) values (p.a)
merge into t using plain p on p.a = t.id when matched then delete when not matched and p.a = 3 then insert values (p.a, default) when not matched then do nothing
with x as (insert into t (id) values (1), (2) returning *) select *, now() from x
with x as (update t set at = default returning id), y as (delete from plain where z < now() returning a) insert into plain (a, w) select id, now() from x
select now(), 1 as one, current_date into temp x
create temp table x as select now(), localtime(1), current_timestamp as c, statement_timestamp() > '2020-01-01' from plain
insert into plain (z) select * from now()
insert into plain (z, a) select n, 1 from now() as n where n <= now()
insert into plain (z, txt) values (now(), 'today'), ('now'::timestamptz, e'now')
explain (analyze, costs off, timing off, summary off) insert into t (id) select 1 where false and now() is null
"""

KEPT = """\
create table x (at timestamptz default now())
create view x as select now()
insert into plain (a) values (1)
insert into plain (txt) values ('now')
set datestyle = 'ISO'
insert into plain (txt) values ('now()'), (E'it\\'s now()'), ($$now()$$) /* now() */ -- now()
"""

RANDOM = """\
insert into plain (a, txt) values (random() * 100, gen_random_uuid()), (5, random()::text)
insert into plain (w, z) values (clock_timestamp(), statement_timestamp())
insert into plain (txt) values (timeofday())
insert into kinds (id, v) values (1, 1), (2, 2)
insert into kinds (id, u, r) values (1, default, default)
insert into kinds (id, r) values (5, power(random(), 2))
"""


@pytest.fixture(scope="module")
def database(pg):
    pg.rows("create database native_rewrite")
    pg.rows(SCHEMA, "native_rewrite")
    yield "native_rewrite"
    pg.rows("drop database native_rewrite with (force)")


def run(pg, database, texts, **settings):
    options = " ".join(f"-c {k}={v}" for k, v in settings.items())
    conninfo = f"host={pg.socket.host} port={pg.socket.port} user=postgres dbname={database}"
    done = subprocess.run([PROGRAM, conninfo], input="".join(t + "\0" for t in texts).encode(), capture_output=True,
                          timeout=110, check=False, env={**os.environ, "PGOPTIONS": options})
    assert done.returncode == 0, done.stderr.decode()
    lines = [line for line in done.stdout.decode().split("\n") if line]
    assert len(lines) == len(texts), done.stdout.decode()
    return [line.split("\t", 1) for line in lines]


@pytest.mark.parametrize("settings", [
    {}, {"timezone": "Asia/Kolkata"}, {"timezone": "America/St_Johns", "datestyle": "SQL,DMY"},
    {"datestyle": "German", "intervalstyle": "iso_8601"}, {"standard_conforming_strings": "off", "timezone": "UTC"}])
def test_equal_rows(pg, database, settings):
    texts = [t for t in SAME.split("\n") if t and not ("merge" in t and int(pg.value("show server_version_num")) < 150000)]
    for text, (verdict, now) in zip(texts, run(pg, database, texts, **settings)):
        assert verdict == "same", f"{text}\n{verdict} {now}"


def test_values_of_one_node(pg, database):
    texts = ["!" + t for t in RANDOM.split("\n") if t]
    for text, (verdict, now) in zip(texts, run(pg, database, texts)):
        assert verdict == "same", f"{text}\n{now}"


def test_left_as_they_are(pg, database):
    texts = [t for t in KEPT.split("\n") if t]
    for text, (verdict, now) in zip(texts, run(pg, database, texts)):
        assert verdict == "kept", f"{text}\n{now}"
