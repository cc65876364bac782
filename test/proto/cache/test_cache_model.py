# SPDX-License-Identifier: PostgreSQL
"""test_cache_model: T50: random DML, DDL and DCL of several clients through pgpool against cached reads. Each read is made
twice, the second time with NO QUERY CACHE in front of it: nothing happens between them, so they have to agree. A run is
its seed; PGT_SEED sets one."""
import os
import random

import pytest
from cache_house import ask, login, start_cached

from pgt.wire import SYNC, parse

SCHEMA = """\
drop schema if exists m1 cascade; drop schema if exists m2 cascade; create schema m1; create schema m2;
set search_path = m1;
create table t (a int primary key, b int); create table u (a int, b int); create table m2.t (a int primary key, b int);
insert into t select i, i from generate_series(1, 5) i; insert into m2.t select i, 100 * i from generate_series(1, 5) i;
create table p (a int, b int) partition by range (a);
create table p1 partition of p for values from (0) to (3); create table p2 partition of p for values from (3) to (100);
insert into p select i, i from generate_series(1, 5) i;
create table h (a int, b int); create table h1 () inherits (h); insert into h1 values (1, 1);
create table fk (a int references t on delete cascade on update cascade, b int); insert into fk select i, i from generate_series(1, 5) i;
create table logged (n int); create function log_it() returns trigger language plpgsql as
'begin insert into m1.logged values (new.a); return new; end';
create table tr (a int, b int); create trigger x after insert or update on tr for each row execute function log_it();
create function add_u(x int) returns int language sql volatile as 'insert into m1.u values (x, x) returning a';
create view v as select a, b from t where a > 1; create view vv as select v.a, u.b from v left join u on v.a = u.a;
create materialized view mv as select count(*) from t;
create table r (a int, who text); alter table r enable row level security; create policy x on r using (who = current_user);
insert into r values (1, 'm_one'), (2, 'm_two');
do $$begin if not exists (select from pg_roles where rolname = 'm_one') then create role m_one; create role m_two; end if; end$$;
grant usage on schema m1, m2 to m_one, m_two; grant all on all tables in schema m1, m2 to m_one, m_two;
"""
TABLES = ("t", "u", "p", "p1", "p2", "h", "h1", "fk", "tr", "m2.t")
READS = ("select * from {0} order by 1, 2", "select count(*) from {0}", "select b from {0} where a = {1}",
         "select * from v order by 1, 2", "select * from vv order by 1, 2", "select * from mv", "select * from logged",
         "select * from r order by 1", "select max(a) from t, u", "select * from h order by 1, 2", "select * from p order by 1, 2",
         "select a from only h order by 1", "select x.a from t x join fk y on x.a = y.a order by 1")
WRITES = ("insert into {0} values ({2}, {1}) on conflict do nothing", "insert into {0} values ({2}, {1})",
          "update {0} set b = b + {1}", "update {0} set b = {1} where a = {2}", "delete from {0} where a = {2}",
          "with d as (delete from {0} where a = {2} returning *) insert into u select * from d", "truncate u",
          "explain analyze update {0} set b = {1}", "select add_u({1})", "refresh materialized view mv",
          "update v set b = {1} where a = {2}", "do $$begin update m1.t set b = {1} where a = {2}; end$$",
          "merge into t using u on t.a = u.a when matched then update set b = u.b when not matched then insert values (u.a, u.b)",
          "update t set a = a + 100 where a = {2}", "insert into r values ({1}, current_user)")
DDL = ("alter table t add column if not exists c{1} int default {1}", "alter table t drop column if exists c{1}",
       "alter table m1.p detach partition m1.p2", "alter table m1.p attach partition m1.p2 for values from (3) to (100)",
       "create or replace view m1.v as select a, b from m1.t where a > {2}", "alter table m1.t rename to t_gone",
       "alter table m1.t_gone rename to t", "create table if not exists m2.u as select {1} as a, {2} as b", "drop table if exists m2.u",
       "alter table m1.u set schema m2", "alter table m2.u set schema m1", "revoke select on m1.t from m_one",
       "grant select on m1.t to m_one", "create index on m1.t (b)", "alter table m1.r disable row level security",
       "alter table m1.r enable row level security", "comment on table m1.t is 'x'",
       "create or replace function m1.add_u(x int) returns int language sql volatile as 'insert into m1.u values (x, {1}) returning a'")
STATE = ("set role m_one", "set role m_two", "reset role", "set search_path = m1", "set search_path = m2, m1", "set search_path = m1, m2",
         "set datestyle = 'German'", "reset datestyle", "begin", "begin isolation level repeatable read", "begin", "commit", "commit",
         "rollback", "savepoint s", "rollback to s", "release s", "discard all; ", "set session authorization m_one",
         "set transaction isolation level repeatable read", "lock table m1.u in share mode", "select * from m1.t for update",
         "reset session authorization", "prepare pw(int) as update m1.t set b = $1 where a = 1", "execute pw(3)")
STEPS = int(os.environ.get("PGT_STEPS", "500"))


def fill(pick: random.Random, text: str) -> str:
    return text.replace("{0}", pick.choice(TABLES)).replace("{1}", str(pick.randint(0, 4))).replace("{2}", str(pick.randint(1, 6)))


class Model:
    def __init__(self, pool, seed: int):
        self.pick = random.Random(seed)
        self.clients = [login(pool) for _ in range(3)]
        self.done: list[str] = []
        for w in self.clients:
            w.simple("set search_path = m1")

    def read(self, w, sql: str) -> None:
        extended = self.pick.random() < 0.5
        found = self.answer(w, sql, extended)
        expected = self.answer(w, "/*NO QUERY CACHE*/" + sql, extended)
        assert found == expected, (sql, found, expected, self.done[-40:])

    @staticmethod
    def answer(w, sql: str, extended: bool) -> list:
        try:
            return ask(w, sql, () if extended else None)
        except AssertionError:
            return ["error"]

    def step(self) -> None:
        w = self.pick.choice(self.clients)
        dice = self.pick.random()
        if dice < 0.6:
            sql = fill(self.pick, self.pick.choice(READS))
            self.note(w, sql)
            self.read(w, sql)
            return
        sql = fill(self.pick, self.pick.choice(WRITES if dice < 0.8 else STATE if dice < 0.93 else DDL))
        self.note(w, sql)
        if self.pick.random() < 0.4 and ";" not in sql.rstrip("; "):
            w.send(parse(sql.rstrip("; ")), b"B\0\0\0\x0c\0\0\0\0\0\0\0\0", b"E\0\0\0\x09\0\0\0\0\0", SYNC)
            w.ready()
        else:
            w.simple(sql)

    def note(self, w, sql: str) -> None:
        self.done.append(f"{self.clients.index(w)}: {sql}")


@pytest.mark.parametrize("n", range(6))
@pytest.mark.parametrize("pool_mode", ["transaction", "session"])
def test_random_writes(pg, start_pool, n, pool_mode):
    pg.rows(SCHEMA)
    seed = int(os.environ.get("PGT_SEED", 7000 + n))
    pg.rows("alter role postgres set lock_timeout = '30ms'; alter role m_one set lock_timeout = '30ms'")
    pool = start_cached(pg, start_pool, num_init_children=2, worker_fill=1, pool_mode=pool_mode)
    m = Model(pool, seed)
    for _ in range(STEPS):
        m.step()
    pg.rows("alter role postgres reset lock_timeout")
