# SPDX-License-Identifier: PostgreSQL
"""Servers of native replication that know nothing of each other, behind one pgpool; and whether they hold the same."""
import os
import signal

import pytest
from pgt import waits
from pgt.postgres import start_postgres
from pgt.wire import Wire, WireClosed

TABLES = """\
create table t (id int primary key, v text, at timestamptz default clock_timestamp(), u uuid default gen_random_uuid());
create table s (id serial primary key, v int, r float8 default random());
create table q (id serial primary key, v int);
create table accounts (id int primary key, amount int);
insert into accounts select i, 100 from generate_series(1, 20) i;
create function fails_here() returns int language plpgsql as $$ begin
  if current_setting('port') = current_setting('my.bad', true) then raise exception 'not here'; end if; return 1; end $$;
create function counts_here() returns setof int language plpgsql as $$ begin
  return next 1; if current_setting('port') = current_setting('my.bad', true) then return next 2; end if; end $$;
"""


# Large objects: number and content.
OBJECTS = "select oid::text, md5(lo_get(oid)) from pg_largeobject_metadata order by oid"


def kill_workers(it, c):
    """Each process that has clients dies at once; `c` hears of it."""
    with it.client() as other:
        pids = {int(r[0]) for r in other.rows("show pool_processes")}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises((WireClosed, OSError)):
        c.ready(seconds=60)


class Refused(WireClosed):
    """A client that was not let in, and told why."""


class Nodes:
    def __init__(self, count, start_pool, conf_of_nodes=None, env=None, kill=None, **conf):
        self.conf = {"max_connections": "100", "log_statement": "all", **(conf_of_nodes or {})}
        self.nodes = [start_postgres(self.conf, roles=False) for _ in range(count)]
        self.killed_at = 3  # of the test's own transactions
        if kill is not None:
            ours = sum(1 for sql in TABLES.split(";\n") if sql.strip())  # each of them is one
            env.setenv("PGPOOL_TEST_KILL_AT", f"{ours + self.killed_at}:{kill[0]}:{kill[1]}")
        settings = {"backend_clustering_mode": "native_replication", "load_balance_mode": True,
                    "health_check_period": 1, "health_check_max_retries": 0, "health_check_timeout": 30,
                    "log_min_messages": "debug1", **conf}
        settings |= {f"backend_flag{i}": "ALLOW_TO_FAILOVER" for i in range(count)}
        self.pool_settings = settings
        self.pool = start_pool(*[n.address for n in self.nodes], **settings)
        with self.client() as c:
            for sql in TABLES.split(";\n"):
                if sql.strip():
                    one(c, sql)

    def client(self, **params):
        """Refused: while a node is lost and not yet known to be, nobody may be let in."""
        c = Wire(self.pool.address)
        last = c.login(**params)[-1]
        if last.type != "Z":
            c.bye()
            raise Refused(f"{last.sqlstate} {last.text}")
        return c

    def everywhere(self, sql, nodes=None):
        return [n.rows(sql) for n in (nodes or self.nodes)]

    def equal(self, nodes=None, tables=("t", "s", "q", "accounts")):
        for table in tables:
            rows = self.everywhere(f"select x::text from {table} x order by 1", nodes)
            assert all(r == rows[0] for r in rows), f"{table}: {str(rows)[:2000]}"
        return True

    def status(self):
        """SHOW POOL_NODES, as soon as somebody is let in."""
        def attempt():
            try:
                with self.client() as c:
                    return [[v.decode() for v in r] for r in c.rows("show pool_nodes")]
            except (OSError, WireClosed):
                return None
        return waits.wait_for("SHOW POOL_NODES is answered", attempt)

    def stop(self):
        for n in self.nodes:
            n.stop(signal.SIGQUIT)


def one(c, sql):
    """Runs one statement that works."""
    got = c.simple(sql)
    assert not [m for m in got if m.type == "E"], [m.text for m in got if m.type == "E"]
    return got


def error_of(messages):
    found = [m for m in messages if m.type == "E"]
    assert found, messages
    return found[0]
