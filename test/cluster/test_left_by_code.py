# SPDX-License-Identifier: PostgreSQL
"""test_left_by_code: session mode where no router looks at what functions do: over several servers without load balancing, and over one
with the query cache. What code of users' may have left on the server connection (a lock, a temporary table, a setting) ties the session
to it: it ends with that connection, as one of PostgreSQL's does, and nothing of it is done on another one."""
import pytest

from pgt.wire import SYNC, Wire, bind, execute, function_call, parse
from test_balance_tx import cluster, code, make, ok  # noqa: F401
from test_monitor import PERIOD

CACHED = {"memory_cache_enabled": "on", "memqcache_invalidation": "statement", "num_init_children": 1, **PERIOD}


@pytest.fixture(scope="module", autouse=True)
def schema(cluster):
    cluster.primary.rows("create table left_rows(a int); "
                         "create function locks() returns int language plpgsql as $$begin perform pg_advisory_lock(6200); return 1; end$$; "
                         "create function makes() returns int language plpgsql as $$begin create temp table mine as select 5 as a; return 1; end$$; "
                         "create function reads_only() returns text language sql as $$select set_config('default_transaction_read_only', 'on', false)$$; "
                         "create procedure calls() language plpgsql as $$begin perform pg_advisory_lock(6200); end$$")


@pytest.fixture(params=["off", "cached"])
def pool(request, cluster, make, start_pool):
    if request.param == "off":
        return make(load_balance_mode=False)
    return start_pool(cluster.primary.address, **CACHED)


def login(pool) -> Wire:
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    ok(w, "select count(*) from left_rows")
    return w


def extended(w, sql: str) -> None:
    w.send(parse(sql, "s") + bind(name="s") + execute() + SYNC)
    assert code(w.ready()) is None


def named(w, sql: str) -> None:
    w.send(parse(sql, "s") + SYNC)
    w.ready()
    w.send(bind(name="s") + execute() + SYNC)
    assert code(w.ready()) is None


def behind_discard(w, sql: str) -> None:
    w.send(parse("discard all") + bind() + execute() + parse(sql) + bind() + execute() + SYNC)
    assert code(w.ready()) is None


def in_transaction(w, sql: str) -> None:
    ok(w, "begin", "select 1", sql, "commit")


WAYS = {"simple": ok, "extended": extended, "named": named, "in_transaction": in_transaction, "behind_discard": behind_discard,
        "prepared": lambda w, sql: ok(w, f"prepare p as {sql}", "execute p"),
        "string": lambda w, sql: ok(w, f"select 1; {sql}"),
        "long": lambda w, sql: ok(w, f"/*{' ' * 2_000_000}*/ {sql}"),
        "call": lambda w, sql: ok(w, "call calls()"),
        "do": lambda w, sql: ok(w, "do 'begin perform locks(); end'")}


def ends(cluster, w) -> bool:
    """With its server connection?"""
    cluster.primary.end_process(w.value("select pg_backend_pid()"))
    w.send(parse("select count(*) from left_rows") + bind() + execute() + SYNC)
    found = w.read_until("Z", "E")
    return found[-1].type == "E" and found[-1].fields["S"] == "FATAL" and w.read_eof() == []


@pytest.mark.parametrize("how", list(WAYS))
def test_the_session_ends_with_what_it_has_left(cluster, pool, how):
    w = login(pool)
    WAYS[how](w, "select locks()")
    assert cluster.primary.value("select count(*) from pg_locks where locktype = 'advisory' and objid = 6200") == "1"
    assert ends(cluster, w)


def test_behind_a_discard_where_reads_are_balanced(cluster, make):
    w = login(make(pool_mode="session"))
    behind_discard(w, "select locks()")
    assert ends(cluster, w)


def test_a_function_by_its_number(cluster, pool):
    w = login(pool)
    w.send(function_call(int(cluster.primary.value("select 'locks'::regproc::oid")), []))
    assert code(w.ready()) is None
    assert ends(cluster, w)


def test_what_leaves_nothing_goes_on(cluster, pool):
    """Built-in functions are known; DISCARD ALL ends what others left."""
    w = login(pool)
    ok(w, "select now(), max(a) from left_rows", "set work_mem = '5MB'", "insert into left_rows values (1)", "delete from left_rows")
    assert not ends(cluster, w) and w.value("show work_mem") == "5MB"
    ok(w, "select makes()", "discard all")
    assert code(w.simple("select a from mine")) == "42P01"
    assert not ends(cluster, w)
    w.bye()


def test_a_session_that_only_reads_writes_nowhere(cluster, pool):
    w = login(pool)
    ok(w, "select reads_only()")
    assert code(w.simple("insert into left_rows values (2)")) == "25006"
    w.send(parse("insert into left_rows values (2)") + bind() + execute() + SYNC)
    assert code(w.ready()) == "25006"
    assert w.value("show default_transaction_read_only") == "on"
    assert cluster.primary.value("select count(*) from left_rows") == "0"
    w.bye()


def test_its_mode_cannot_be_changed(cluster, pool):
    w = login(pool)
    ok(w, "select makes()")
    assert code(w.simple("set pool_mode = transaction")) == "55000"
    assert w.value("select a from mine") == "5"
    ok(w, "discard all", "set pool_mode = transaction")
    w.bye()
