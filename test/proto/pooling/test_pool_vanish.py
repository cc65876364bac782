# SPDX-License-Identifier: PostgreSQL
"""test_pool_vanish: clients that vanish, cancel or are cut off in the midst of things, and links that die, in
transaction mode. A link is not at fault for its client; a client does not notice a link that dies in a pause.
"""
import os
import random
import signal
import threading

import pytest
from pooling_house import login, states, table

from pgt import fake as fakes
from pgt import postgres, procs, waits
from pgt.wire import COPY_DONE, FLUSH, SYNC, Wire, bind, cancel, copy_data, execute, function_call, parse, pg, query

LINKS = 2


@pytest.fixture
def pool(pg, start_pool):
    """Two links for everybody, one worker: what one client leaves on a link the next must meet."""
    return pool_of(pg, start_pool, "1s")


def pool_of(pg, start_pool, half_closed_timeout):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True,
                      max_backend_connections=LINKS, query_wait_timeout=30, half_closed_timeout=half_closed_timeout)


def busy(pg, marker: str) -> bool:
    return bool(pg.sessions(f"query like '%{marker}%' and state <> 'idle'"))


LEAVES = {
    "query": [query("select pg_sleep(60) /* van */")],
    "extended": [pg("select pg_sleep(60) /* van */"), SYNC],
    "no_sync": [pg("select pg_sleep(60) /* van */"), FLUSH],
    "rows": [query("select generate_series(1, 100000000) /* van */")],
    "in_transaction": [query("begin; create table vanished(a int) /* van */")],
    "aborted": [query("begin; select 1/0 /* van */")],
    "open_sequence": [parse("select 1 /* van */", "s"), bind(name="s"), FLUSH],
    "copy_in": [query("copy pool_van from stdin /* van */")],
    "copy_out": [query("copy (select generate_series(1, 100000000)) to stdout /* van */")],
    "pipeline": [pg("select 1"), SYNC, pg("select pg_sleep(60) /* van */"), SYNC, pg("select 3"), SYNC],
    "parked_behind": [query("select pg_sleep(60) /* van */"), query("begin"), query("select 2")],
    "half_a_message": [query("select 1 /* van */"), query("select 2")[:7]],
    "virtual_begin": [query("begin")],
    "lock": [query("begin; lock table pool_van; select 1 /* van */")],
}


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES.keys())
def test_client_vanishes(pg, pool, leave, how):
    """It ends at the server, nothing of it is kept, and its link serves on: cancelled, drained, rolled back."""
    pg.rows("create table if not exists pool_van(a int)")
    pg.rows("drop table if exists vanished")
    first = login(pool)
    pids = {first.value("select pg_backend_pid()") for _ in range(4)}
    first.send(*leave)
    if leave is not LEAVES["virtual_begin"]:
        waits.wait_for("the server has it", lambda: pg.sessions("query like '%van%'"))
    if how == "reset":
        first.reset()
    elif how == "close":
        first.sock.close()
    else:
        first.half_close()
    waits.wait_for("it ends at the server", lambda: not busy(pg, "van"), 40)  # before the sleep is over
    others = [login(pool) for _ in range(3)]
    for other in others:
        assert not states(other.simple("begin; select 1; commit"))
        assert other.value("select to_regclass('vanished') is null and to_regclass('pool_van') is not null") == "t"
    again = {other.value("select pg_backend_pid()") for other in others for _ in range(4)}
    assert len(again) <= LINKS
    if how != "half":
        assert again & pids, "both links were thrown away"
    for w in (*others, first):
        w.bye()


@pytest.mark.parametrize("what", ["simple", "extended", "in_transaction", "pinned"])
def test_cancel(pg, pool, what):
    """It stops what the client runs, on whichever link that is; the client and the link live on."""
    c, other = login(pool), login(pool)
    if what == "in_transaction":
        c.rows("begin")
        assert c.value("select 1") == "1"
    if what == "pinned":
        c.rows("create temp table van_pin(a int)")
    for _ in range(3):
        c.send((extended if what == "extended" else query)("select pg_sleep(60) /* can */"))
        waits.wait_for("it runs", lambda: busy(pg, "can"))
        assert cancel(pool.address, c.pid, c.key) == b""
        assert states(c.ready()) == ["57014"]
        assert other.value("select 'fine'") == "fine"
        if what == "in_transaction":
            assert states(c.simple("select 1")) == ["25P02"]
            c.simple("rollback")
            c.rows("begin")
            assert c.value("select 1") == "1"
    c.simple("rollback")
    assert c.value("select 'alive'") == "alive"
    c.bye()
    other.bye()


def extended(sql: str) -> bytes:
    return pg(sql) + SYNC


def test_cancel_of_an_idle_client_hits_nobody(pg, pool):
    """Its last link is somebody else's now."""
    a, b = login(pool), login(pool)
    for turn in range(20):
        assert a.value(f"select {turn}") == str(turn)
        b.send(query("select pg_sleep(0.05), 'b'"))
        cancel(pool.address, a.pid, a.key)
        found = b.ready()
        assert not states(found), f"turn {turn}: the cancel of another hit"
    a.bye()
    b.bye()


def hold_all_links(pool, extra: int) -> tuple[list[Wire], list[Wire]]:
    """Clients with a transaction open on every link, and some more that are logged in."""
    more = [login(pool) for _ in range(extra)]
    holders = [login(pool) for _ in range(LINKS)]
    for h in holders:
        h.rows("begin")
        assert h.value("select 1") == "1"
    return holders, more


BEHIND_BEGIN = {"simple": query("select pg_sleep(0.003)"), "write": query("insert into van_begin values (1)"),
                "extended": extended("select pg_sleep(0.003)"), "named": bind(name="n") + execute() + SYNC}
# PostgreSQL before 17 signals the process and then its group: between the two the statement may have ended already,
# and the COMMIT behind it is what the second one meets (also without pgpool).
BEHIND_BEGIN_TOLD = [([], b"TTI"), (["57014"], b"TEI"), (["57014"], b"TTE"), (["57014"] * 2, b"TEE")]


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("statement", BEHIND_BEGIN.values(), ids=BEHIND_BEGIN.keys())
def test_cancel_behind_begin(pg, start_pool, statement, links):
    """BEGIN is answered before a server knows of it, the statement behind it waits for a link that others use, for
    the client's role and settings, for BEGIN itself: whatever a cancel meets, the client is told 57014, not that
    its transaction has failed already."""
    pg.rows("create table if not exists van_begin(a int)")
    pg.rows("grant all on van_begin to public")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True,
                      max_backend_connections=links)
    c, other = login(pool), login(pool)
    c.rows("set work_mem = '9MB'; set role other_user")
    other.rows("set role trust_user")
    c.send(parse("select pg_sleep(0.003)", "n"), SYNC)
    c.ready()
    rng = random.Random(links)
    cancelled = 0
    for turn in range(800):
        if turn >= 80 and (cancelled > 0 or statement is BEHIND_BEGIN["write"]):
            break  # on a busy machine all of the first may come too late
        other.send(query("select pg_sleep(0.002)"))
        c.send(query("begin"), statement, query("commit"))
        other.is_quiet(rng.random() * 0.005)  # some moment
        cancel(pool.address, c.pid, c.key)
        found = c.ready(3)
        told = b"".join(m.body for m in found if m.type == "Z")
        assert (states(found), told) in BEHIND_BEGIN_TOLD
        if told.endswith(b"E"):  # it met the COMMIT before that began
            c.simple("rollback")
        cancelled += len(states(found))
        other.ready()
    assert cancelled > 0 or statement is BEHIND_BEGIN["write"], "an INSERT may be too quick each time"
    c.bye()
    other.bye()


@pytest.mark.parametrize("how", ["simple", "extended"])
def test_cancel_while_a_link_is_opened(fake, start_pool, how):
    """The client waits for a server that is slow to let anybody in; it is told, and can go on."""
    slow, opening = threading.Event(), threading.Event()

    def script(conn):
        if slow.is_set():
            opening.set()
            waits.wait_for("the test lets it in", lambda: not slow.is_set())
        fakes.serve(conn)

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0, query_wait_timeout=30)
    holder, c = (login(pool, user="fake") for _ in range(2))
    holder.rows("begin")
    holder.simple("select 1")
    slow.set()
    c.send(query("select 1") if how == "simple" else extended("select 1"))
    waits.wait_for("a second one is opened", opening.is_set)
    cancel(pool.address, c.pid, c.key)
    assert states(c.ready()) == ["57014"]
    c.send(query("select 1"))
    holder.simple("commit")
    slow.clear()
    assert not states(c.ready())
    for w in (c, holder):
        w.bye()


def test_login_while_all_links_are_held(pg, pool):
    """Who only logs in needs no link: what the server tells at a login is known."""
    holders, more = hold_all_links(pool, 1)
    c = login(pool)
    assert c.status["TimeZone"] == "UTC"
    for w in (c, *holders, *more):
        w.bye()


def test_cancel_of_a_waiting_client(pg, pool):
    """A client that waits for a link can be cancelled; it gets one error and can go on."""
    holders, (c, watcher) = hold_all_links(pool, 2)
    for send in ((query("select 'waits'"),), (extended("select 'waits'"),), (function_call(1299, []),)):
        c.send(*send)
        waits.wait_for("it waits", lambda: "waiting" in shown(watcher))
        assert c.is_quiet(0.05)
        cancel(pool.address, c.pid, c.key)
        assert states(c.ready()) == ["57014"]
    for h in holders:
        h.rows("commit")
    assert c.value("select 'goes on'") == "goes on"
    for w in (c, watcher, *holders):
        w.bye()


@pytest.mark.parametrize("more", [b"", query("select 'behind'") * 3], ids=["waits", "sent_more"])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_waiting_client_vanishes(pg, pool, how, more):
    """It is noticed soon: its place in the queue and its row are free, and what it asked for never runs."""
    pg.rows("create table if not exists van_queue(a int)")
    pg.rows("truncate van_queue")
    holders, (watcher, *waiting) = hold_all_links(pool, 7)
    for i, w in enumerate(waiting):
        w.send(query(f"insert into van_queue values ({i})"))
    waits.wait_for("all wait", lambda: shown(watcher).count("waiting") == 6)
    for w in waiting[::2]:
        if more:
            w.send(more)
        w.reset() if how == "reset" else w.sock.close()
    waits.wait_for("pgpool has noticed", lambda: len(shown(watcher)) == 1 + LINKS + 3)
    for h in holders:
        h.rows("commit")
    for w in waiting[1::2]:
        assert not states(w.ready())
        w.bye()
    assert [r[0] for r in pg.rows("select a from van_queue order by a")] == [b"1", b"3", b"5"]
    for w in (watcher, *holders):
        w.bye()


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("how", ["waits", "half_closed"])
def test_waiting_costs_nothing(pg, start_pool, how):
    """Input that waits to be read, or its end, does not keep the worker busy."""
    pool = pool_of(pg, start_pool, "10s")
    holders, (c,) = hold_all_links(pool, 1)
    lock = login(pg)
    if how == "waits":
        c.send(query("select 'waits'"), *[query(f"select {i}") for i in range(2000)])
        replies = 2001
    else:
        c = holders.pop()
        lock.rows("select pg_advisory_lock(4714)")
        c.send(query("select pg_advisory_xact_lock(4714)"), query("begin"))
        c.half_close()
        replies = 1
    pid = workers(pool)[0]
    before = cpu_seconds(pid)
    assert c.is_quiet(0.8)
    assert cpu_seconds(pid) - before < 0.5
    lock.bye()
    for h in holders:
        h.rows("commit")
    assert not states(c.ready(replies))
    for w in (c, *holders):
        w.sock.close()


def shown(watcher: Wire) -> list[str]:
    return [r["state"] for r in table(watcher, "show pool_clients")]


# ---- links that die

@pytest.mark.parametrize("state", ["idle", "set_and_prepared", "pinned"])
def test_link_dies_in_a_pause(pg, pool, state):
    """Outside a transaction a client notices nothing, its settings and statements are there; one that is tied
    to the link gets the server's last words and the end."""
    c = login(pool)
    c.rows("set application_name = 'die'; set work_mem = '5MB'")
    c.send(parse("select 'prepared'", "s"), SYNC)
    assert not states(c.ready())
    if state == "pinned":
        c.rows("create temp table die_t(a int)")
    assert c.value("select 1") == "1"
    pg.end_sessions()
    if state == "pinned":
        found = c.read_eof()
        assert states(found) in (["57P01"], []), "the server's words, once"
        return
    for _ in range(3):
        assert c.value("show work_mem") == "5MB"
        c.send(bind(name="s"), execute(), SYNC)
        found = c.ready()
        assert [m.row() for m in found if m.type == "D"] == [[b"prepared"]]
    c.bye()


def test_link_dies_in_a_transaction(pg, pool):
    """One ERROR, a failed transaction until ROLLBACK; the connection lives."""
    c = login(pool)
    c.rows("begin")
    pg.end_process(c.value("select pg_backend_pid()"))
    found = c.simple("select 1")
    assert states(found) == ["08006"] and found[-1].body == b"E"
    assert states(c.simple("select 2")) == ["25P02"]
    assert c.simple("rollback")[-1].body == b"I"
    assert c.value("select 'alive'") == "alive"
    c.bye()


@pytest.mark.parametrize("sql", ["select pg_sleep(60) /* kil */", "insert into pool_kil select pg_sleep(60)::text::int /* kil */"])
def test_link_dies_under_a_statement(pg, pool, sql):
    """A read may be run again unseen; a write never is: one ERROR. The connection lives either way."""
    pg.rows("create table if not exists pool_kil(a int)")
    c = login(pool)
    c.send(query(sql))
    waits.wait_for("it runs", lambda: busy(pg, "kil"))
    victim = pg.sessions("query like '%kil%' and state = 'active'")[0]
    pg.rows(f"select pg_terminate_backend({victim})")
    waits.wait_for("it is gone", lambda: victim not in pg.sessions())
    if sql.startswith("select"):
        waits.wait_for("an answer, or it runs again", lambda: c.inbuf or busy(pg, "kil") or not c.is_quiet(0.01))
        cancel(pool.address, c.pid, c.key)
    found = c.ready()
    assert len(states(found)) == 1 and found[-1].body == b"I"
    assert c.value("select 'alive'") == "alive"
    c.bye()


def workers(pool) -> list[int]:
    """The supervisor, the monitor and the PCP process are not."""
    others = ("pgpool -n", "monitor", "PCP")
    return [pid for pid in pool.pids() if not any(o in procs.command_line(pid) for o in others)]


def test_worker_dies(pg, start_pool):
    """kill -9 of one of two workers under load: the other's clients go on, no transaction is left open, and the
    links of the dead do not count for ever."""
    pool = start_pool(pg.address, num_init_children=2, pool_mode="transaction", max_backend_connections=4)
    clients = [login(pool) for _ in range(16)]
    for i, c in enumerate(clients[:4]):
        c.rows("begin")
        assert c.value(f"select {i}") == str(i)
    victim = workers(pool)[0]
    os.kill(victim, signal.SIGKILL)
    waits.wait_for("another takes its place", lambda: len([p for p in workers(pool) if p != victim]) == 2)
    for c in clients:
        c.bye()
    waits.wait_for("nothing is left open", lambda: not pg.sessions("state <> 'idle'"))
    fresh = [login(pool) for _ in range(4)]
    for c in fresh:
        c.rows("begin")
        assert c.value("select 'all four links are to be had'")
    waits.wait_for("the links of the dead are no more", lambda: len(pg.sessions()) <= 4)
    for c in fresh:
        c.bye()
    pool.log_seen = len(pool.log())  # the killed worker is in the log, as it should be


def test_copy_in_is_cut(pg, pool):
    """A client dies in COPY FROM STDIN, between two others that copy: its rows are not there, theirs are."""
    pg.rows("drop table if exists van_copy")
    pg.rows("create table van_copy(a int)")
    for turn in range(4):
        c = login(pool)
        c.send(query("copy van_copy from stdin"))
        assert c.read_until("G", "E")[-1].type == "G"
        c.send(copy_data(f"{turn}\n".encode() * 100))
        if turn % 2:
            c.reset()
        else:
            c.send(COPY_DONE)
            assert not states(c.ready())
            c.bye()
    waits.wait_for("nothing runs", lambda: not pg.sessions("state <> 'idle'"))
    assert pg.value("select string_agg(distinct a::text, ',' order by a::text) from van_copy") == "0,2"


HALVES = {"copy": ([query("copy van_half from stdin")], copy_data(b"1\n" * 1000)[:700], True),
          "extended": ([pg("copy van_half from stdin"), FLUSH], copy_data(b"1\n" * 1000)[:700], True),
          "with_sync": ([pg("copy van_half from stdin"), SYNC], copy_data(b"1\n"), False),
          "half_with_sync": ([pg("copy van_half from stdin"), SYNC], copy_data(b"1\n" * 1000)[:700], False),
          "query_in_copy": ([query("copy van_half from stdin")], query("insert into van_half values (1)" * 2000)[:70000], None),
          "half_a_query": ([query("begin; insert into van_half values (2)")], query("commit; select 1")[:12], True),
          "half_a_header": ([query("begin; insert into van_half values (3)")], query("commit")[:3], True),
          "half_a_long_query": ([query("begin; insert into van_half values (4)")],
                                query("insert into van_half values (5);" * 20000)[:300000], None)}


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_client_dies_in_a_message(pg, start_pool, mode):
    """Its link is free at once, and mostly kept: what is missing of COPY data is made up, and the COPY fails. Where that
    could do something, or what the server has read is not known, the link is closed."""
    one = start_pool(pg.address, num_init_children=1, pool_mode=mode, max_backend_connections=1)
    pg.rows("drop table if exists van_half")
    pg.rows("create table van_half(a int)")
    for name, (before, half, is_kept) in HALVES.items():
        if name == "query_in_copy" and postgres.major() < 14:
            continue  # PostgreSQL 13 goes on with the COPY behind the error, and the link is given up after 10 s
        c = login(one)
        pid = c.value("select pg_backend_pid()")
        c.send(*before)
        c.read_until("G", "Z", "E")
        c.send(half)
        c.reset()
        start = waits.now()
        with login(one) as other:
            same = other.value("select pg_backend_pid()") == pid
            assert waits.now() - start < 8 * waits.SCALE, name  # it would be given up after 10 s
            assert is_kept in (None, same), name
            assert other.value("select count(*) from van_half") == "0", name
            assert other.value("select 'next'") == "next"
