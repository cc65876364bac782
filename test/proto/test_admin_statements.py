# SPDX-License-Identifier: PostgreSQL
"""test_admin_statements: SHOW POOL_STATEMENTS: what each statement did, by its text without values."""
import re

import pytest

from pgt import waits
from pgt.wire import SYNC, Wire, bind, close, describe, execute, parse, query

from test_admin_orders import error_of, login, report, tag_of

MODES = ["session", "transaction"]


def statements(w, database="other_db"):
    return {r["statement"]: r for r in report(w, "pool_statements") if r["database"] == database}


@pytest.mark.parametrize("mode", MODES)
def test_simple_queries(pg, start_pool, mode):
    """Values are no part of a statement: calls, rows and errors of two workers are added up."""
    pool = start_pool(pg.address, num_init_children=2, pool_mode=mode)
    admin = login(pool)
    clients = [login(pool, database="other_db") for _ in range(4)]
    for w in clients:
        for n in range(5):
            w.simple(f"SELECT  generate_series(1, {n + 1}) /* {n} */ -- '{n}'")
        w.simple("select 'secret' where 1 = 1 or 2 in (3, 4, 5)")
        assert error_of(w.simple("select 1 / 0"))[0] == "22012"
    waits.wait_for("the workers have counted all", lambda: statements(admin).get("select $1 / $2", {}).get("calls") == "4")
    got = statements(admin)
    series = got["SELECT generate_series($1, $2)"]
    assert (series["calls"], series["rows"], series["errors"]) == ("20", "60", "0"), series
    assert series["node"] == "0" and len(series["fingerprint"]) == 16
    assert 0 < int(series["mean_us"]) <= int(series["max_us"]) <= int(series["total_us"])
    assert 0 < int(series["p99_us"]) <= int(series["max_us"])
    assert got["select $1 where $2 = $3 or $4 in ($5, ...)"]["calls"] == "4"
    failed = got["select $1 / $2"]
    assert (failed["calls"], failed["rows"], failed["errors"]) == ("4", "0", "4")
    assert "secret" not in str(got)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("together", [True, False])
def test_prepared_statements(pg, start_pool, mode, together):
    """A statement is counted when it is executed, not when it is parsed, whatever its name and however it comes."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    w = login(pool, database="other_db")

    def say(*messages):
        if together:
            w.send(*messages, SYNC)
        else:
            for message in messages:
                w.send(message)
            w.send(SYNC)
        w.ready()

    say(parse("select $1::int + 7", "one"), describe("one"))
    say(parse("select $1::text || 'x'", "two"))
    for _ in range(3):
        say(bind(["1"], name="one"), execute())
    for _ in range(2):
        say(bind(["a"], name="two"), execute())
    say(parse("values (1), (2)"), bind(), execute())
    say(parse("select 1 as parsed_only"))
    say(close("one"))
    got = statements(w)
    assert (got["select $1::int + $2"]["calls"], got["select $1::int + $2"]["rows"]) == ("3", "3")
    assert got["select $1::text || $2"]["calls"] == "2"
    assert (got["values ($1), ($2)"]["calls"], got["values ($1), ($2)"]["rows"]) == ("1", "2")
    assert not any("parsed_only" in text for text in got)


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_commands(pg, start_pool, mode):
    """Rows that were changed count like those that were read; a pipeline of one statement is as many calls."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    w = login(pool, database="other_db")
    w.simple("create table if not exists counted (a int); truncate counted")
    w.simple("insert into counted select generate_series(1, 9)")
    w.simple("begin; update counted set a = a + 1; delete from counted where a > 5; commit")
    w.send(parse("insert into counted values ($1)", "i"), *[m for n in range(4) for m in (bind([str(n)], name="i"), execute())],
           SYNC)
    w.ready()
    got = statements(w)
    assert got["insert into counted select generate_series($1, $2)"]["rows"] == "9"
    assert got["begin; update counted set a = a + $1; delete from counted where a > $2; commit"]["rows"] == "14"
    many = got["insert into counted values ($1)"]
    assert (many["calls"], many["rows"]) == ("4", "4")
    w.simple("drop table counted")


def test_one_text_in_many_shapes(pg, start_pool):
    """White space, comments, the case of words, lists of values and semicolons at the end are no part of a statement."""
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    shapes = ["select 1 where 2 in (3)", "SELECT 1 WHERE 2 IN (3);", "select  4\twhere\n5 in (6, 7) ; ", "/* a */ select 1 where 2 in (3); -- b",
              "select 1 where 2 in (3);;", "select 1 where 2 in (9); -- c"]
    for n in range(4):
        with login(pool, database="other_db") as w:
            for text in shapes[n:] + shapes[:n]:
                w.simple(text)
            w.send(parse(shapes[n], ""), bind(), execute(), SYNC)
            w.ready()
            w.simple("begin; select 8 where true; commit;")
            w.simple("begin; select 8 where true; commit")

    def calls() -> list[dict[str, str]]:
        return [r for r in report(admin, "pool_statements") if "where" in r["statement"].lower()]

    waits.wait_for("the workers have counted all", lambda: sum(int(r["calls"]) for r in calls()) >= 36)
    got = calls()
    assert sorted(int(r["calls"]) for r in got) == [8, 28], got
    assert not any(r["statement"].endswith(";") for r in got), got


def found(admin):
    return statements(admin, "postgres").get("select $1 as seen")


def test_reset_and_switch(pg, start_pool):
    """RESET STATEMENTS forgets, for operators; a reload stops and resumes the counting."""
    pg.rows("drop role if exists counted_user; create role counted_user login")
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    w = login(pool, user="counted_user", database="postgres")
    w.simple("select 5 as seen")
    waits.wait_for("it is counted", lambda: (row := found(admin)) and row["calls"] == "1")
    assert error_of(w.simple("pgpool reset statements"))[0] == "42501"
    assert set(statements(w, "postgres")) == {"<insufficient privilege>"}, "texts are for operators"
    assert tag_of(admin.simple("pgpool reset statements")) == "RESET STATEMENTS"
    assert found(admin) is None
    w.simple("select 6 as seen")
    waits.wait_for("it is counted", lambda: (row := found(admin)) and row["calls"] == "1")
    pool.reload(track_statements="off")

    def is_off():
        before = found(admin)["calls"]
        w.simple("select 7 as seen")
        return found(admin)["calls"] == before

    waits.wait_for("no more counting", is_off)
    pool.reload(track_statements="on")
    waits.wait_for("counting again", lambda: not is_off())


def test_bounded(pg, start_pool):
    """No more statements than track_statements_max have rows; what the others did is in one row, and nothing is lost."""
    pool = start_pool(pg.address, num_init_children=1, track_statements_max=10)
    admin = login(pool)
    w = login(pool, database="other_db")
    for n in range(200):
        w.simple(f"select 1 as name_{n}")
        w.simple("select 2")
    rows = report(admin, "pool_statements")
    assert len(rows) == 11
    others = [r for r in rows if r["statement"] == "<all others>"]
    assert len(others) == 1 and others[0]["node"] == "" and others[0]["fingerprint"] == ""
    assert statements(admin)["select $1"]["calls"] == "200", "what is used stays"
    assert sum(int(r["calls"]) for r in rows) == 400


def test_cache_hits(pg, start_pool):
    """An answer from the query cache is no call."""
    pg.rows("drop table if exists cached; create table cached (a int); insert into cached values (1)")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", memory_cache_enabled="on", memqcache_invalidation="statement",
                      memqcache_method="shmem")
    w = login(pool, database="postgres")

    def found(text):
        return statements(w, "postgres").get(text)

    def is_hit():
        w.simple("select a from cached where a = 1")
        return int(found("select a from cached where a = $1")["cache_hits"]) > 0
    waits.wait_for("an answer from the cache", is_hit)
    got = found("select a from cached where a = $1")
    assert int(got["calls"]) >= 1 and int(got["rows"]) == int(got["calls"])


def test_none(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1, track_statements_max=0)
    w = login(pool)
    w.simple("select 1")
    assert report(w, "pool_statements") == []


@pytest.mark.parametrize("mode", MODES)
def test_slow_statements_are_logged(pg, start_pool, mode):
    """With the time of the server and what was before it apart; fast ones are not logged."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode, default_pool_size=1, log_min_duration_statement=600, query_wait_notify=0)
    first = login(pool)
    first.simple("select 'warm'")
    first.simple("select 'fast'")
    second = login(pool) if mode == "transaction" else None
    if second:
        with Wire(pg.address, seconds=20) as holder, login(pool) as looker:
            holder.login()
            holder.rows("select pg_advisory_lock(600)")
            first.send(query("select pg_advisory_xact_lock(600), 'slow'"))
            waits.wait_for("it runs", lambda: pg.sessions("query like 'select pg_advisory%slow%' and wait_event_type = 'Lock'"))
            second.send(query("select 'waited'"))
            waits.wait_for("the other waits for long", lambda: [
                r for r in report(looker, "pool_queue") if int(r["longest_wait_ms"]) > 900])
            holder.rows("select pg_advisory_unlock(600)")
            second.ready()
        second.simple("select pg_sleep(0.8), 'alone'")
    else:
        first.send(query("select pg_sleep(0.8), 'slow'"))
    first.ready()

    def lines(of):
        return re.findall(rf"LOG:  duration: ([0-9.]+) ms  statement: .*{of}.*\n.*DETAIL:  waited for a server connection ([0-9.]+) ms, routing ([0-9.]+) ms, at node 0 ([0-9.]+) ms",
                          pool.daemon.log())
    slow = waits.wait_for("the slow one is logged", lambda: lines("slow"))
    took, waited, routed, served = (float(x) for x in slow[0])
    assert took >= 800 and served >= 800 > waited + routed
    assert all(float(took) >= 600 for took, *_ in lines("fast"))
    if second:
        took, waited, routed, served = (float(x) for x in waits.wait_for("the one that waited is logged", lambda: lines("waited"))[0])
        assert waited > routed + served
        alone = waits.wait_for("the one after it is logged", lambda: lines("alone"))
        assert float(alone[0][1]) == 0, "what the one before waited is not counted again"


def test_slow_statements_are_sampled(pg, start_pool):
    """Every fourth; those that took longer than log_min_duration_statement are all there."""
    pool = start_pool(pg.address, num_init_children=1, log_min_duration_sample=0, log_statement_sample_rate=0.25,
                      log_min_duration_statement=300)
    w = login(pool)
    for n in range(40):
        w.simple(f"select {n}, 'sampled'")
    for _ in range(2):
        w.simple("select pg_sleep(0.4), 'slow'")

    def took(of):
        return [float(ms) for ms in re.findall(rf"duration: ([0-9.]+) .*{of}", pool.daemon.log())]
    waits.wait_for("the slow ones are logged", lambda: len(took("slow")) == 2)
    sampled = [ms for ms in took("sampled") if ms < 300]
    late = len(took("sampled")) - len(sampled)
    assert 9 - late <= len(sampled) <= 11, "of another session there may be one before it"
