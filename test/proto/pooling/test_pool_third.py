# SPDX-License-Identifier: PostgreSQL
"""test_review_third: what a third adversarial reading found: what a client had only just begun when its link died,
and who waits while the settings change.
"""
import pytest
from pooling_house import login, states, table

from pgt import waits
from pgt.wire import COPY_DONE, FLUSH, SYNC, Wire, bind, copy_data, describe, execute, parse, query
from pgt.wire import pg as pgx


@pytest.fixture
def pool(pg, start_pool):
    """One link for everybody."""
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      query_wait_timeout=10)


@pytest.mark.parametrize("sql", ["set work_mem = '5MB'", "savepoint a", "deallocate all", "prepare x as select 1"])
@pytest.mark.parametrize("is_run", [False, True], ids=["bound", "run"])
def test_link_dies_with_a_portal_or_savepoint(pg, pool, sql, is_run):
    """A portal that would change the session, or a savepoint that is none, goes with the link; the worker stays."""
    other = login(pool)
    c = login(pool)
    c.send(parse(sql, ""), bind(), *([execute()] if is_run else []), FLUSH)
    c.read_until("2", "E")
    if is_run:
        c.read_until("C", "E")
    pg.end_sessions()
    c.send(SYNC)
    found = c.ready()
    assert states(found) in ([], ["57P01"])
    assert found[-1].body == b"I"
    assert c.value("select 1") == "1"
    assert other.value("select 2") == "2"
    c.bye()
    other.bye()


@pytest.mark.parametrize("sql", ["begin", "commit", "rollback"])
def test_link_dies_behind_an_error(pg, pool, sql):
    """The word behind it was skipped: there is no transaction."""
    c = login(pool)
    c.send(describe("no_such"), pgx(sql), FLUSH)
    assert c.read_until("E")[-1].sqlstate == "26000"
    pg.end_sessions()
    c.send(SYNC)
    assert c.ready()[-1].body == b"I"
    assert c.value("select 1") == "1"
    c.bye()


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_policy_changes_while_it_waits(pg, pool, extended):
    """What waits for a link is not allowed any more: it is told so, and nobody waits behind it."""
    a, b, c = login(pool), login(pool), login(pool)
    a.rows("begin")
    a.value("select 1")
    b.send(*([parse("listen x"), bind(), execute(), SYNC] if extended else [query("listen x")]))
    waits.wait_for("b waits", lambda: [r for r in table(c, "show pool_clients") if r["state"] == "waiting"])
    pool.reload(pin_on_session_state="error")
    waits.wait_for("the worker knows", lambda: c.value("pgpool show pin_on_session_state") == "error")
    a.rows("commit")
    assert states(b.ready()) == ["0A000"]
    assert c.value("select 'c'") == "c"
    assert b.value("select 'b'") == "b"
    for w in (a, b, c):
        w.bye()


def test_sync_behind_an_error_and_a_command_of_ours(pool):
    """The server skips up to a Sync that waited for the server."""
    c = login(pool)
    c.send(parse("show pool_version", "v"), bind(name="nowhere"), SYNC)
    assert [m.type for m in c.ready()] == ["1", "E", "Z"]
    c.send(parse("select 1"), parse("show pool_version", "v"), bind(name="nowhere"), execute(), SYNC)
    assert [m.type for m in c.ready()] == ["1", "1", "E", "Z"]
    assert c.value("select 'c'") == "c"
    c.bye()


def test_link_dies_before_a_copy_that_is_sent_already(pg, start_pool):
    """One error for the COPY, none for its CopyDone; what comes behind is answered."""
    pg.rows("drop table if exists third_copy")
    pg.rows("create table third_copy(a int)")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    with Wire(pg.address) as holder:
        holder.login()
        holder.rows("begin")
        holder.rows("lock table third_copy")
        c = login(pool)
        c.send(query("copy third_copy from stdin"), copy_data(b"1\n"), COPY_DONE)
        waits.wait_for("it waits", lambda: pg.rows("select 1 from pg_stat_activity where wait_event_type = 'Lock'"))
        pg.rows("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'")
        found = c.ready()
        assert [m.type for m in found] == ["E", "Z"]
        c.send(query("select 'behind'"))
        assert [m.row() for m in c.ready() if m.type == "D"] == [[b"behind"]]
        c.bye()


def test_parse_in_a_transaction_that_was_lost(pg, pool):
    """Nothing can be prepared in it, also when the next link has that very statement already."""
    c, d = login(pool), login(pool)
    c.rows("begin")
    c.value("select 1")
    pg.end_sessions()
    assert states(c.simple("select 2")) in (["08006"], ["57P01"])  # lost, or told why
    d.send(parse("select 'same'", "n"), bind(name="n"), execute(), SYNC)
    assert states(d.ready()) == []
    c.send(parse("select 'same'", "m"), bind(name="m"), execute(), SYNC)
    found = c.ready()
    assert (states(found), found[0].type, found[-1].body) == (["25P02"], "E", b"E")
    c.rows("rollback")
    c.send(bind(name="m"), execute(), SYNC)
    assert states(c.ready()) == ["26000"]
    c.bye()
    d.bye()
