# SPDX-License-Identifier: PostgreSQL
"""test_monitor: roles, status and lag of real servers with streaming replication, as SHOW POOL_NODES
tells them; losses, returns and promotions are followed. The primary is on node 0 and on node 2."""
import contextlib
import os
import signal
from pathlib import Path

import pytest

from pgt import postgres, procs, waits
from pgt.pcp_tool import pcp, said
from pgt.proxy import Pgpool, pgpool_bin
from pgt.trio import Trio, follow
from pgt.wire import Wire, WireClosed

PERIOD = {"health_check_period": 1, "sr_check_period": 1, "health_check_timeout": 5,
          "health_check_max_retries": 1, "health_check_retry_delay": 1, "delay_threshold": 0}


@pytest.fixture(params=[0, 2], ids=["primary0", "primary2"])
def trio(request):
    it = Trio(request.param)
    yield it
    it.stop()


def logged_in(pool) -> Wire:
    """A client; while a server is lost and not yet known to be, a login may fail."""
    def attempt():
        w = Wire(pool.address)
        with contextlib.suppress(WireClosed):
            if w.login()[-1].type == "Z":
                return w
        w.bye()
        return None
    return waits.wait_for("a client is let in", attempt)


def show(pool, what: str = "POOL_NODES") -> list[dict[str, str]]:
    """Rows of a SHOW as dictionaries by column name."""
    with logged_in(pool) as w:
        messages = w.simple(f"SHOW {what}")
    names = column_names(next(m.body for m in messages if m.type == "T"))
    return [dict(zip(names, [(v or b"").decode() for v in m.row()])) for m in messages if m.type == "D"]


def column_names(body: bytes) -> list[str]:
    """Names in a RowDescription: each is followed by 18 bytes."""
    at, names = 2, []
    while at < len(body):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode())
        at = end + 1 + 18
    return names


def logs(pool, text: str) -> None:
    """Waits for it: what the log says of a change is written when all workers have been told of that."""
    waits.wait_for(f"the log says {text}", lambda: text in pool.log())


def status_file(pool) -> list[str]:
    """What it says; nothing, as long as it has not been written."""
    try:
        return (pool.home / "pgpool_status").read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return []


def column(pool, name: str) -> list[str]:
    return [row[name] for row in show(pool)]


def pool_for(start_pool, trio, **conf):
    conf = {**PERIOD, **{f"backend_application_name{i}": f"node{i}" for i in range(3)}, **conf}
    return start_pool(*[n.address for n in trio.nodes], **conf)


def roles(at: int) -> list[str]:
    return ["primary" if i == at else "standby" for i in range(3)]


def wait_settled(pool, at: int, seconds: float = 40) -> None:
    waits.wait_for(f"node {at} is the primary and all are up", lambda: column(pool, "role") == roles(at)
                   and column(pool, "status") == ["up"] * 3, seconds)


def test_roles_and_status(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    waits.wait_for("standbys stream", lambda: [r["replication_state"] for r in show(pool)] ==
                   ["" if i == trio.at else "streaming" for i in range(3)])
    waits.wait_for("how they follow is known", lambda: [r["replication_sync_state"] for r in show(pool)] ==
                   ["" if i == trio.at else "async" for i in range(3)])
    rows = show(pool)
    assert [r["pg_role"] for r in rows] == roles(trio.at)
    assert [r["pg_status"] for r in rows] == ["up"] * 3
    logs(pool, f"find_primary_node: primary node is {trio.at}")


def test_standby_goes_and_returns_by_itself(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    lost = trio.standbys[0]
    trio.nodes[lost].stop()
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[lost] == "down" and column(pool, "pg_status")[lost] == "down")
    logs(pool, f"health check failed on node {lost} (timeout:5)")
    logs(pool, f"health check retrying on DB node: {lost} (round:1)")
    trio.nodes[lost].start()
    wait_settled(pool, trio.at)
    logs(pool, f"request auto failback, node id:{lost}")


def test_everything_goes_and_returns(trio, start_pool):
    """A rolling restart that catches every node, and then all of them at once: service heals."""
    pool = pool_for(start_pool, trio, auto_failback=False)
    wait_settled(pool, trio.at)
    for node in trio.nodes:
        node.stop()
    waits.wait_for("all are down", lambda: pool.log().count("health check failed on node") >= 3)
    for node in [trio.nodes[i] for i in trio.standbys] + [trio.primary]:
        node.start()
    waits.wait_for("the primary is back", lambda: column(pool, "role")[trio.at] == "primary"
                   and column(pool, "status")[trio.at] == "up", 60)
    with logged_in(pool) as w:
        w.rows("create table t as select 1")


def test_promotion_is_followed(trio, start_pool):
    """Somebody else promotes a standby while the old primary still runs, alone: it is left alone from then on."""
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    new = trio.standbys[-1]
    trio.nodes[next(i for i in trio.standbys if i != new)].stop()
    waits.wait_for("nobody else follows", lambda: column(pool, "pg_status").count("down") == 1)
    trio.nodes[new].rows("select pg_promote()")
    waits.wait_for("the new primary is found", lambda: column(pool, "role")[new] == "primary")
    waits.wait_for("the old one is not used", lambda: column(pool, "status")[trio.at] == "quarantine")
    logs(pool, f"node {trio.at} is a former primary on timeline 1: it is not used")
    with logged_in(pool) as w:
        w.rows("create table written_here as select 1")
    assert trio.nodes[new].value("select count(*) from written_here") == "1"
    # The third follows the new primary, then the old one does after a rewind's stand-in: a new copy.
    other = next(i for i in trio.standbys if i != new)
    follow(trio.nodes[other], trio.nodes[new], f"node{other}", recovery_target_timeline="latest")
    trio.nodes[other].start()
    waits.wait_for("the other standby follows", lambda: show(pool)[other]["replication_state"] == "streaming"
                   and column(pool, "status")[other] == "up", 60)


def test_what_a_reload_adds_is_down_until_it_answers(trio, start_pool):
    """So that "add, reload, pcp_recovery_node" works at once, as scripts do it."""
    new = trio.standbys[-1]
    trio.nodes[new].stop()
    spare = len(trio.nodes)
    pool = start_pool(*[n.address for i, n in enumerate(trio.nodes) if i != new], **PERIOD)
    waits.wait_for("the others are up", lambda: column(pool, "status") == ["up"] * 2)
    pool.reload(**{f"backend_hostname{spare}": "127.0.0.1", f"backend_port{spare}": trio.nodes[new].port,
                   f"backend_weight{spare}": 1})
    waits.wait_for("it is known", lambda: len(show(pool)) == 3)
    assert column(pool, "status")[-1] == "down"
    assert f"node {spare}" not in "".join(line for line in pool.log().splitlines() if "failed" in line)
    trio.nodes[new].start()
    waits.wait_for("it is used", lambda: column(pool, "status")[-1] == "up")


def test_primary_lost_then_promoted(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    new = trio.standbys[-1]
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[trio.at] == "down" and "primary" not in column(pool, "role"))
    waits.wait_for("nobody knows what it would say now", lambda: column(pool, "pg_role")[trio.at] == "unknown")
    trio.nodes[new].rows("select pg_promote()")
    waits.wait_for("the new primary is found", lambda: column(pool, "role")[new] == "primary")
    trio.primary.start()  # it believes in itself still
    waits.wait_for("the old primary answers", lambda: column(pool, "pg_status")[trio.at] == "up")
    waits.holds_for("the old primary is not used", lambda: column(pool, "status")[trio.at] == "down"
                    and column(pool, "role")[new] == "primary", 3)


def test_lag_is_told(trio, start_pool):
    pool = pool_for(start_pool, trio, delay_threshold=1000)
    wait_settled(pool, trio.at)
    slow = trio.standbys[0]
    trio.nodes[slow].rows("select pg_wal_replay_pause()")
    trio.primary.rows("create table lag as select repeat('x', 100) from generate_series(1, 5000)")
    waits.wait_for("the lag is seen", lambda: int(show(pool)[slow]["replication_delay"]) > 100000)
    waits.wait_for("the log tells", lambda: f"Replication of node: {slow} is behind " in pool.log())
    assert column(pool, "status")[slow] == "up", "a lagging standby is not a lost one"
    trio.nodes[slow].rows("select pg_wal_replay_resume()")
    waits.wait_for("the lag is gone", lambda: int(show(pool)[slow]["replication_delay"]) == 0)


def test_refusals_are_not_losses(trio, start_pool):
    """A user that may not log in, a terminated connection: nobody is marked down for that."""
    pool = pool_for(start_pool, trio, sr_check_user="nologin", health_check_max_retries=0, health_check_timeout=60)
    waits.wait_for("the refusal is told", lambda: pool.log().count("is alive but does not tell its role") >= 3)
    waits.wait_for("all are up", lambda: column(pool, "status") == ["up"] * 3)
    assert set(column(pool, "role")) == {"unknown"}
    pool.reload(sr_check_user="postgres")
    wait_settled(pool, trio.at)
    trio.primary.rows("select pg_terminate_backend(pid) from pg_stat_activity "
                      "where application_name = 'pgpool monitor'")
    before = int(show(pool, "POOL_HEALTH_CHECK_STATS")[trio.at]["success_count"])
    waits.wait_for("it was asked again", lambda:
                   int(show(pool, "POOL_HEALTH_CHECK_STATS")[trio.at]["success_count"]) > before + 1)
    assert column(pool, "status") == ["up"] * 3
    assert "health check failed" not in pool.log()
    assert "retrying" not in pool.log()


def test_nothing_configured_but_hosts(trio, start_pool):
    """Without a period the primary is still searched for, and the servers are then left alone."""
    pool = start_pool(*[n.address for n in trio.nodes])
    waits.wait_for("roles are found", lambda: column(pool, "role") == roles(trio.at))
    waits.wait_for("nobody looks any more", lambda: trio.primary.sessions("application_name = 'pgpool monitor'") == [])


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_the_defaults_follow(trio):
    """All settings at their defaults, but for the servers' addresses and the periods of the checks, which are long: somebody else
    stops the primary and promotes another one. The next write of a session that was there goes to that, and waits for no period."""
    home = procs.folder("bare")
    pool = Pgpool(home, procs.free_port())
    pool.write_conf(listen_addresses="127.0.0.1", port=pool.port, pcp_port=procs.free_port(), pid_file_name=home / "pid", work_dir=home,
                    health_check_period=600, sr_check_period=600,
                    **{name: home for name in ("unix_socket_directories", "pcp_socket_dir", "wd_ipc_socket_dir")},
                    **{f"backend_hostname{i}": n.address.host for i, n in enumerate(trio.nodes)},
                    **{f"backend_port{i}": n.port for i, n in enumerate(trio.nodes)})
    pool.launch([str(pgpool_bin()), "-n", "-f", str(pool.conf_path)])
    try:
        waits.wait_for("roles are found", lambda: column(pool, "role") == roles(trio.at))
        with logged_in(pool) as busy, logged_in(pool) as idle:
            busy.seconds = idle.seconds = 60
            busy.rows("create table t (a int)")
            trio.primary.stop()
            trio.nodes[0].rows("select pg_promote()")
            here = [[str(trio.nodes[0].port).encode()]]
            assert busy.rows("insert into t values (1) returning current_setting('port')") == here
            assert idle.rows("insert into t values (2) returning current_setting('port')") == here
    finally:
        pool.stop()


def test_new_node_by_reload(trio, start_pool):
    pool = start_pool(*[n.address for n in trio.nodes[:2]], **PERIOD)
    waits.wait_for("two are up", lambda: column(pool, "status") == ["up"] * 2)
    third = trio.nodes[2].address
    pool.reload(backend_hostname2=third.host, backend_port2=third.port, backend_weight2=1)
    wait_settled(pool, trio.at)


def test_command_tells_the_lag(trio, start_pool):
    """replication_delay_source_cmd: values for the nodes that are not the primary, in order."""
    home = procs.folder("delay")
    script = home / "delay.sh"
    script.write_text(f"#!/bin/sh\necho \"$@\" > {home}/args.new\nmv {home}/args.new {home}/args\n"
                      f"cat {home}/lag\n", encoding="utf-8")
    script.chmod(0o755)
    (home / "lag").write_text("1500.5 7\n", encoding="utf-8")
    pool = pool_for(start_pool, trio, replication_delay_source_cmd=script, delay_threshold_by_time=1000)
    wait_settled(pool, trio.at)
    first, second = trio.standbys
    waits.wait_for("the lag is told", lambda: column(pool, "replication_delay")[first] == "1.500500 second"
                   and column(pool, "replication_delay")[second] == "0.007000 second")
    wanted = " ".join(f"127.0.0.1:{trio.nodes[i].port}" for i in trio.standbys)
    assert (home / "args").read_text(encoding="utf-8").strip() == wanted
    waits.wait_for("the log tells", lambda: f"Replication of node: {first} is behind 1.500 second(s) from the primary server "
                   f"(node: {trio.at}) [external command]" in pool.log())
    (home / "lag").write_text("1\n", encoding="utf-8")
    waits.wait_for("a wrong answer is told of", lambda: "another number of values" in pool.log())
    assert column(pool, "replication_delay")[first] == "1.500500 second", "the last known lag holds"


def test_a_command_that_hangs_is_ended(trio, start_pool):
    pool = pool_for(start_pool, trio, replication_delay_source_cmd="sleep 1000 #",
                    replication_delay_source_timeout=1)
    waits.wait_for("it is ended", lambda: "took too long and was ended" in pool.log())
    wait_settled(pool, trio.at)


def test_faked_losses(trio, start_pool):
    """health_check_test: the file backend_down_request in work_dir."""
    pool = pool_for(start_pool, trio, health_check_test=True)
    wait_settled(pool, trio.at)
    lost = trio.standbys[0]
    request = pool.home / "backend_down_request"
    request.write_text(f"{lost}\tdown\n", encoding="utf-8")
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[lost] == "down")
    waits.wait_for("the request is answered", lambda: request.read_text(encoding="utf-8") == f"{lost}\talready_down\n")
    words = ["down" if i == lost else "up" for i in range(3)]
    waits.wait_for("the status file says so", lambda: status_file(pool) == words)
    request.unlink()
    wait_settled(pool, trio.at)


def test_the_status_file_is_written_when_it_can_be(trio, start_pool):
    """What an operator detached while the disk was full is still detached behind a restart."""
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    detached = trio.standbys[0]
    in_the_way = pool.home / "pgpool_status.held.new"
    in_the_way.mkdir()
    assert said(pcp(pool, "pcp_detach_node", str(detached)))[0] == 0
    waits.wait_for("the log says so", lambda: "a restart of pgpool forgets" in pool.log())
    in_the_way.rmdir()
    words = ["down" if i == detached else "up" for i in range(3)]
    waits.wait_for("it is written", lambda: status_file(pool) == words)
    waits.wait_for("the log says that, too", lambda: "could be written to" in pool.log())
    assert pool.log().count("a restart of pgpool forgets") == 1


def test_monitor_dies(trio, start_pool):
    """The next monitor adopts the view: the primary stays known all the time."""
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    logs(pool, f"find_primary_node: primary node is {trio.at}")
    epoch = pool.log().count("find_primary_node: primary node is")
    monitor = monitor_pid(pool)
    os.kill(monitor, signal.SIGKILL)
    waits.wait_for("there is a new monitor", lambda: monitor_pid(pool) not in (0, monitor))
    asked = int(show(pool, "POOL_HEALTH_CHECK_STATS")[trio.at]["success_count"])
    waits.wait_for("it works", lambda:
                   int(show(pool, "POOL_HEALTH_CHECK_STATS")[trio.at]["success_count"]) > asked)
    assert column(pool, "role") == roles(trio.at)
    assert pool.log().count("find_primary_node: primary node is") == epoch
    pool.log_seen = len(pool.log())


def monitor_pid(pool) -> int:
    """Pid of the living monitor process by its title; 0 while there is none."""
    for pid in pool.pids():
        try:
            title = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"pgpool: monitor process" in title:
            return pid
    return 0


def test_holds_survive_a_restart(trio, start_pool):
    """What an operator detached stays so, and a stale word of pgpool-II's keeps nobody down."""
    home = procs.folder("work")
    held, other = trio.standbys
    (home / "pgpool_status.held").write_text(f"{held}\t1700000000000000\talice\tnew disk\n", encoding="utf-8")
    (home / "pgpool_status").write_text("down\ndown\ndown\n", encoding="utf-8")
    pool = pool_for(start_pool, trio, work_dir=home)
    status = ["down" if i == held else "up" for i in range(3)]
    waits.wait_for("the others are up", lambda: column(pool, "status") == status)
    waits.holds_for("it stays detached", lambda: column(pool, "status") == status, 3)
    logs(pool, f"node {held} stays detached, as alice wanted")
    assert "alice\tnew disk" in (home / "pgpool_status.held").read_text(encoding="utf-8")
    waits.wait_for("the status file says so", lambda: (home / "pgpool_status").read_text(encoding="utf-8").split() == status)
    waits.wait_for("the other one answers", lambda: column(pool, "pg_status")[other] == "up")


@pytest.mark.parametrize("what", ["garbage", "somebody else's"])
def test_holds_that_cannot_be_read_are_told(trio, start_pool, what):
    """A detached server is in use again behind a restart: not without a word."""
    home = procs.folder("work")
    held = home / "pgpool_status.held"
    if what == "garbage":
        held.write_bytes(b"\x00\xff\n\n")
    else:
        held.write_text("1\t1700000000000000\talice\tnew disk\n", encoding="utf-8")
        os.chown(held, os.geteuid() + 1, -1)
    pool = pool_for(start_pool, trio, work_dir=home)
    wait_settled(pool, trio.at)
    said_so = f'{held}" cannot be read' if what == "garbage" else f'file "{held}" is not read'
    assert said_so in pool.log() and "look at SHOW POOL_NODES" in pool.log()
    pool.log_seen = len(pool.log())
