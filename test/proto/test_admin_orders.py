# SPDX-License-Identifier: PostgreSQL
"""test_admin_orders: PAUSE, RESUME, DRAIN, RECONNECT, KILL CLIENT, over all workers."""
import os
import signal

import pytest

from pgt import waits
from pgt.pcp_tool import pcp, said
from pgt.procs import command_line
from pgt.wire import SYNC, Wire, bind, cancel, describe, execute, parse, query


def login(pool, **params) -> Wire:
    w = Wire(pool.address, seconds=20)
    found = w.login(**params)
    assert found[-1].type == "Z", found[-1].fields
    return w


def report(w: Wire, name: str) -> list[dict[str, str]]:
    found = w.simple(f"show {name}")
    assert found[0].type == "T", [m.fields for m in found if m.type == "E"]
    names = names_of(found[0])
    return [dict(zip(names, [(v or b"").decode() for v in m.row()])) for m in found if m.type == "D"]


def names_of(msg) -> list[str]:
    names, at = [], 2
    for _ in range(int.from_bytes(msg.body[:2], "big")):
        end = msg.body.index(b"\0", at)
        names.append(msg.body[at:end].decode())
        at = end + 19
    return names


def error_of(found) -> tuple[str, str]:
    bad = [m for m in found if m.type == "E"]
    assert len(bad) == 1, found
    return bad[0].sqlstate, bad[0].text


def tag_of(found) -> str:
    return next(m.body.rstrip(b"\0").decode() for m in found if m.type == "C")


def ordered(w: Wire, *databases: str) -> None:
    """Waits until orders hold for just these (of no name: all of them): the worker of who gave one may not have read it yet."""
    waits.wait_for(f"orders for {databases}", lambda: tuple(r["database"] for r in report(w, "pool_orders")) == databases)


def test_pause_waits_for_clients_then_resume(pg, start_pool):
    """Session mode: PAUSE is complete when the clients have left; who comes meanwhile waits."""
    pg.rows("drop role if exists late_op; create role late_op login")
    others = set(pg.sessions())  # of another test's pgpool
    pool = start_pool(pg.address, num_init_children=2)
    admin, busy = login(pool), login(pool)
    admin.send(query("pgpool pause"))
    ordered(busy, "")
    assert admin.is_quiet(0.3), "PAUSE was answered while a client has its link"
    late = Wire(pool.address, seconds=20)
    late.send_startup("late_op", "postgres")
    waits.wait_for("it waits", lambda: {r["reason"] for r in report(busy, "pool_queue")} == {"paused"})
    assert late.is_quiet(0.3)
    assert busy.value("select 1") == "1", "a client that has its link goes on"
    busy.bye()
    assert tag_of(admin.ready()) == "PAUSE"
    assert {r["reason"] for r in report(admin, "pool_queue")} == {"paused"}
    assert [(r["database"], r["paused"]) for r in report(admin, "pool_orders")] == [("", "true")]
    assert admin.value("select 2") == "2", "the session that asked keeps its link"
    waits.wait_for("the server has seen the others go", lambda: set(pg.sessions()) - others == {admin.pid})
    assert tag_of(admin.simple("pgpool resume")) == "RESUME"
    assert late.authenticate("late_op", "")[-1].type == "Z"
    assert late.value("select 3") == "3"
    assert report(admin, "pool_orders") == []


def test_pause_one_database(pg, start_pool):
    """Others go on; idle connections of the paused one are closed."""
    others = set(pg.sessions())  # of another test's pgpool
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    login(pool, database="other_db").bye()
    found = admin.simple("pgpool pause other_db")
    assert [m.type for m in found] == ["C", "Z"] and tag_of(found) == "PAUSE", "it is used: no notice"
    waits.wait_for("the server has seen them go", lambda: not set(pg.sessions("datname = 'other_db'")) - others)
    assert login(pool).value("select 1") == "1"
    late = Wire(pool.address, seconds=20)
    late.send_startup("postgres", "other_db")
    assert late.is_quiet(0.3)
    assert error_of(admin.simple("pgpool pause other_db"))[0] == "55000"
    assert error_of(admin.simple("pgpool resume"))[0] == "55000", "RESUME takes back what PAUSE ordered"
    assert tag_of(admin.simple("pgpool resume other_db")) == "RESUME"
    assert late.authenticate("postgres", "")[-1].type == "Z"
    assert error_of(admin.simple("pgpool resume other_db"))[0] == "55000"
    for order in ("pause", "drain", "reconnect"):  # a name that is mistyped, perhaps
        found = admin.simple(f"pgpool {order} other_bd")
        assert [m.type for m in found] == ["N", "C", "Z"]
        assert found[0].text == 'database "other_bd" is used by no client and no server connection here'
    assert tag_of(admin.simple("pgpool resume other_bd")) == "RESUME"


@pytest.mark.parametrize("how", ["cancel", "hang_up"])
def test_pause_is_taken_back(pg, start_pool, how):
    """Who does not wait until PAUSE is complete takes it back, as with PgBouncer."""
    pool = start_pool(pg.address, num_init_children=2)
    admin, busy = login(pool), login(pool)
    admin.send(query("pgpool pause"))
    ordered(busy, "")
    assert admin.is_quiet(0.2)
    if how == "cancel":
        cancel(pool.address, admin.pid, admin.key)
        assert error_of(admin.ready())[0] == "57014"
        assert admin.value("select 1") == "1"
    else:
        admin.reset()
    waits.wait_for("the pause is over", lambda: report(busy, "pool_orders") == [])
    assert login(pool).value("select 1") == "1"


@pytest.mark.parametrize("how", ["killed", "cancel"])
def test_kill_pauses_whoever_waited_for_pause(pg, start_pool, how):
    """KILL leaves the database paused, also where somebody who waited for a PAUSE of it is sent away or gives up."""
    pool = start_pool(pg.address, num_init_children=2)
    admin, first = login(pool), login(pool, database="other_db" if how == "killed" else "postgres")
    busy = login(pool, database="other_db")
    busy.simple("begin")
    first.send(query("pgpool pause other_db"))
    ordered(admin, "other_db")
    assert first.is_quiet(0.2)
    if how == "cancel":
        cancel(pool.address, first.pid, first.key)  # on its way while KILL is run
    assert tag_of(admin.simple("pgpool kill other_db")) == "KILL"
    assert error_of(busy.read_eof())[0] == "57P01"
    if how == "killed":
        assert error_of(first.read_eof())[0] == "57P01"
    else:
        first.ready()
    assert [(r["database"], r["paused"]) for r in report(admin, "pool_orders")] == [("other_db", "true")]
    assert tag_of(admin.simple("pgpool resume other_db")) == "RESUME"


@pytest.mark.parametrize("who", ["worker", "control"])
def test_pause_is_taken_back_from_the_dead(pg, start_pool, who):
    """The process whose client waits for PAUSE is killed: nobody would ever end what nobody was told of."""
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    mine = next(r["pid"] for r in report(admin, "pool_clients") if r["server_pid"] == str(admin.pid))
    others = [login(pool) for _ in range(6)]
    busy = next(w for w in others if next(
        r["pid"] for r in report(w, "pool_clients") if r["server_pid"] == str(w.pid)) != mine)
    if who == "worker":
        admin.send(query("pgpool pause"))
        victim = int(mine)
    else:
        tool = pcp(pool, "pause")
        victim = next(pid for pid in pool.pids() if "PCP" in (command_line(pid) or ""))
    waits.wait_for("it is paused", lambda: [r["paused"] for r in report(busy, "pool_orders")] == ["true"])
    os.kill(victim, signal.SIGKILL)
    waits.wait_for("the pause is over", lambda: report(busy, "pool_orders") == [])
    assert login(pool).value("select 1") == "1"
    waits.wait_for("the log has it", lambda: "a pause that was not complete is taken back" in pool.log())
    assert tag_of(busy.simple("pgpool drain other_db")) == "DRAIN", "one that is complete"
    if who == "control":
        assert said(tool)[0] != 0


def test_pause_is_ended_by_another(pg, start_pool):
    """RESUME while PAUSE or DRAIN waits: it says so at once, and takes nothing back of what is ordered later."""
    pg.rows("drop role if exists drain_user; create role drain_user login")
    pool = start_pool(pg.address, num_init_children=2)
    admin, other, busy = login(pool), login(pool), login(pool, user="drain_user", database="postgres")
    busy.simple("begin")
    for order in ("pause", "drain"):
        admin.send(query(f"pgpool {order}"))
        ordered(other, "")
        assert admin.is_quiet(0.2)
        assert tag_of(other.simple("pgpool resume")) == "RESUME"
        assert error_of(admin.ready()) == ("55000", "all databases: resumed before this was complete")
    tool = pcp(pool, "pause", "postgres")
    waits.wait_for("it is paused", lambda: [r["database"] for r in report(other, "pool_orders")] == ["postgres"])
    assert tag_of(other.simple("pgpool resume postgres")) == "RESUME"
    code, text = said(tool)
    assert code == 1 and 'database "postgres": resumed before this was complete' in text
    admin.send(query("pgpool pause"))
    ordered(other, "")
    assert admin.is_quiet(0.2)
    assert tag_of(other.simple("pgpool resume")) == "RESUME"
    other.send(query("pgpool pause"))
    waits.wait_for("it is paused again", lambda: [r["paused"] for r in report(busy, "pool_orders")] == ["true"])
    admin.reset()
    waits.holds_for("the second pause holds", lambda: [r["paused"] for r in report(busy, "pool_orders")] == ["true"], 0.5)
    busy.bye()
    assert tag_of(other.ready()) == "PAUSE"
    assert tag_of(other.simple("pgpool resume")) == "RESUME"


def test_orders_remember_many_names(pg, start_pool):
    """More databases than a site has; one of the longest names can be resumed as it was paused, cut as the server cuts."""
    pool = start_pool(pg.address, num_init_children=1)
    admin = login(pool)
    for i in range(100):
        assert tag_of(admin.simple(f"pgpool drain db{i}")) == "DRAIN"
    assert len(report(admin, "pool_orders")) == 100
    for i in range(100):
        assert tag_of(admin.simple(f"pgpool resume db{i}")) == "RESUME"
    assert report(admin, "pool_orders") == []
    assert tag_of(admin.simple("pgpool pause " + "x" * 70)) == "PAUSE"
    assert tag_of(admin.simple("pgpool resume " + "x" * 70)) == "RESUME"


def test_pause_extended_protocol(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1)
    admin, busy = login(pool), login(pool)
    admin.send(parse("pgpool pause"), bind(), describe("", "P"), execute(), SYNC)
    assert [m.type for m in admin.read_until("n")] == ["1", "2", "n"]
    assert admin.is_quiet(0.3)
    busy.bye()
    assert [m.type for m in admin.ready()] == ["C", "Z"]
    admin.simple("pgpool resume")


def test_pause_survives_a_worker(pg, start_pool):
    """A worker that was started anew knows of the pause."""
    pg.rows("drop role if exists late_op; create role late_op login")
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    assert tag_of(admin.simple("pgpool pause")) == "PAUSE"
    mine = next(r["pid"] for r in report(admin, "pool_clients") if r["server_pid"] == str(admin.pid))
    pids = {r["pool_pid"] for r in report(admin, "pool_processes")}
    os.kill(int((pids - {mine}).pop()), signal.SIGKILL)
    waits.wait_for("another worker is there",
                   lambda: {r["pool_pid"] for r in report(admin, "pool_processes")} - pids - {"0"})
    late = [Wire(pool.address, seconds=20) for _ in range(6)]
    for w in late:
        w.send_startup("late_op", "postgres")
    waits.wait_for("all of them wait", lambda: sum(int(r["waiting"]) for r in report(admin, "pool_queue")) == 6)
    admin.simple("pgpool resume")
    for w in late:
        assert w.authenticate("late_op", "")[-1].type == "Z"


def test_pcp_ends_what_nobody_else_can(pg, start_pool):
    """All databases paused, no session left: pcp_resume. What pcp_pause begins is complete when it ends."""
    others = set(pg.sessions())  # of another test's pgpool
    pool = start_pool(pg.address, num_init_children=2)
    admin, busy = login(pool), login(pool)
    tool = pcp(pool, "pause")
    waits.wait_for("it is paused", lambda: [r["paused"] for r in report(admin, "pool_orders")] == ["true"])
    assert busy.value("select 1") == "1" and tool.poll() is None, "connections are in use"
    busy.bye()
    admin.bye()
    assert said(tool) == (0, "pcp_pause -- Command Successful\n")
    waits.wait_for("the server has seen them go", lambda: not set(pg.sessions()) - others)
    late = Wire(pool.address, seconds=20)
    late.send_startup("postgres")
    assert late.is_quiet(0.2)
    code, text = said(pcp(pool, "resume", "other_db"))
    assert code == 1 and 'database "other_db": neither paused nor draining' in text and "Paused or draining: all databases." in text
    assert said(pcp(pool, "resume"))[0] == 0
    assert late.authenticate("postgres", "")[-1].type == "Z"
    assert 'resumed by PCP user "op"' in pool.log()


def test_pcp_pause_is_taken_back(pg, start_pool):
    """When its tool goes; DRAIN goes on. RECONNECT is done at once."""
    pg.rows("drop role if exists drain_user; create role drain_user login")
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    tool = pcp(pool, "pause", "other_db")
    code, text = said(tool)
    assert code == 0 and 'NOTICE:  database "other_db" is used by no client' in text, text
    assert said(pcp(pool, "pause", "other_db"))[0] == 1
    tool = pcp(pool, "pause")
    waits.wait_for("both are paused", lambda: [r["paused"] for r in report(admin, "pool_orders")] == ["true", "true"])
    tool.terminate()
    said(tool)
    waits.wait_for("the pause of all is over", lambda: [r["database"] for r in report(admin, "pool_orders")] == ["other_db"])
    assert said(pcp(pool, "resume", "other_db"))[0] == 0
    idle = login(pool, user="drain_user", database="postgres")
    assert said(pcp(pool, "drain"))[0] == 0
    assert [m.sqlstate for m in idle.read_eof(10)] == ["57P01"]
    assert said(pcp(pool, "resume"))[0] == 0
    pid = admin.pid
    assert said(pcp(pool, "reconnect"))[0] == 0
    admin.bye()
    waits.wait_for("it is not kept", lambda: pid not in pg.sessions())


def test_reconnect(pg, start_pool):
    """Idle connections go at once, lent ones when they come back."""
    pool = start_pool(pg.address, num_init_children=2)
    admin, busy = login(pool), login(pool)
    first = login(pool, database="other_db")
    idle_pid, busy_pid = first.pid, busy.pid
    first.bye()
    waits.wait_for("it is idle", lambda: any(
        r["server_pid"] == str(idle_pid) and r["state"] == "idle" for r in report(admin, "pool_links")))
    assert tag_of(admin.simple("pgpool reconnect")) == "RECONNECT"
    waits.wait_for("the idle one is closed", lambda: idle_pid not in pg.sessions())
    assert busy.value("select pg_backend_pid()") == str(busy_pid)
    busy.bye()
    waits.wait_for("the lent one is closed", lambda: busy_pid not in pg.sessions())
    again = login(pool)
    pid = again.pid
    again.bye()
    waits.wait_for("a new one is kept", lambda: any(
        r["server_pid"] == str(pid) and r["state"] == "idle" for r in report(admin, "pool_links")))


def test_kill_client(pg, start_pool):
    """Of whatever worker, idle or busy; numbers are unique."""
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    victims = [login(pool, application_name=f"victim{i}") for i in range(4)]
    victims[0].send(query("select pg_sleep(60)"))
    waits.wait_for("it runs", lambda: pg.sessions("query = 'select pg_sleep(60)' and state = 'active'"))
    rows = report(admin, "pool_clients")
    assert len({r["id"] for r in rows}) == len(rows) == 5
    for i, w in enumerate(victims):
        number = next(r["id"] for r in rows if r["application_name"] == f"victim{i}")
        assert tag_of(admin.simple(f"pgpool kill client {number}")) == "KILL CLIENT"
        found = w.read_eof(10)
        assert [m.type for m in found][-1:] == ["E"] and found[-1].sqlstate == "57P01", found
    waits.wait_for("the statement is cancelled", lambda: not pg.sessions("query like '%pg_sleep(60)' and state = 'active'"))
    assert error_of(admin.simple("pgpool kill client 4000000000"))[0] == "42704"
    assert error_of(admin.simple("pgpool kill client 99999999999"))[0] == "22023"
    assert error_of(admin.simple("pgpool kill client x"))[0] == "42601"


def test_kill_itself(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1)
    w = login(pool)
    number = report(w, "pool_clients")[0]["id"]
    found = w.simple(f"pgpool kill client {number}")
    assert tag_of(found) == "KILL CLIENT"
    assert [m.sqlstate for m in w.read_eof(10)] == ["57P01"]


def test_drain(pg, start_pool):
    """No new clients; those that are here leave between two transactions."""
    pg.rows("drop role if exists drain_user; create role drain_user login")
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    idle, busy = login(pool, user="drain_user", database="postgres"), login(pool, user="drain_user", database="postgres")
    busy.simple("begin")
    admin.send(query("pgpool drain"))
    found = idle.read_eof(10)
    assert [m.sqlstate for m in found] == ["57P01"], found
    late = Wire(pool.address, seconds=20)
    late.send_startup("drain_user", "postgres")
    assert [m.sqlstate for m in late.read_eof(10) if m.type == "E"] == ["57P03"]
    assert admin.is_quiet(0.2)
    assert busy.value("select 'still here'") == "still here"
    busy.send(query("commit"))
    found = busy.read_eof(10)
    assert [m.type for m in found] == ["C", "Z", "E"] and found[-1].sqlstate == "57P01", found
    assert tag_of(admin.ready()) == "DRAIN"
    assert tag_of(admin.simple("pgpool resume")) == "RESUME"
    assert login(pool, user="drain_user", database="postgres").value("select 1") == "1"


def test_cancel_client(pg, start_pool):
    """What a client runs is cancelled, in whichever worker it is; its session goes on."""
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    victims = [login(pool, application_name=f"victim_{n}") for n in range(4)]
    for n, w in enumerate(victims):
        w.send(query(f"select pg_sleep(600), 'of victim {n}'"))
        # A server process that has yet to read the statement would take no notice.
        waits.wait_for("it runs", lambda n=n: pg.sessions(f"query like '%of victim {n}%' and state = 'active'"))
        row = waits.wait_for("it is shown", lambda n=n: next(
            (r for r in report(admin, "pool_clients") if r["application_name"] == f"victim_{n}" and r["state"] == "active"), None))
        assert tag_of(admin.simple(f"pgpool cancel client {row['id']}")) == "CANCEL CLIENT"
        assert error_of(w.ready())[0] == "57014"
        assert w.value("select 7") == "7"
    assert error_of(admin.simple("pgpool cancel client 4000000000"))[0] == "42704"
    assert error_of(admin.simple("pgpool cancel client x"))[0] == "42601"


def test_only_operators(pg, start_pool):
    pg.rows("drop role if exists plain_op; create role plain_op login")
    pool = start_pool(pg.address, num_init_children=1)
    w = login(pool, user="plain_op", database="postgres")
    for what in ("pause", "resume", "drain", "reconnect", "kill client 1", "cancel client 1", "pause other_db"):
        assert error_of(w.simple(f"pgpool {what}"))[0] == "42501"
    assert [r["state"] for r in report(w, "pool_links")] != []
