# SPDX-License-Identifier: PostgreSQL
"""test_failover: a lost primary is replaced, by pg_promote() or by failover_command; commands that
misbehave; the monitor killed on the way; switchover. Real servers, the primary on node 0 and on node 2."""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pgt import crowd, postgres, procs, waits
from pgt.wire import Wire, WireClosed, WireTimeout
from test_monitor import (PERIOD, Trio, column, logged_in, logs, monitor_pid, roles, show,  # noqa: F401
                          trio, wait_settled)
from test_pcp import Side

QUICK = {**PERIOD, "health_check_max_retries": 0, **{f"backend_application_name{i}": f"node{i}" for i in range(3)}}


def pool_for(start_pool, trio, **conf):
    return start_pool(*[n.address for n in trio.nodes], **{**QUICK, **conf})


def is_primary(pg) -> bool:
    return pg.value("select pg_is_in_recovery()") == "f"


def primaries(trio) -> list[int]:
    return [i for i, n in enumerate(trio.nodes) if n.daemon is not None and is_primary(n)]


def wait_primary(pool, node: int, seconds: float = 40) -> None:
    waits.wait_for(f"node {node} is the primary", lambda: column(pool, "role")[node] == "primary", seconds)


def wait_replaced(trio, pool) -> int:
    """Another server is the primary: until the loss is seen, the lost one still is, as far as pgpool knows."""
    def new() -> list[int]:
        return [i for i, role in enumerate(column(pool, "role")) if role == "primary" and i != trio.at]
    return waits.wait_for("another server is the primary", new, 60)[0]


def write(pool, table: str) -> None:
    """A write by a new client; it may be refused while there is no primary."""
    def attempt():
        try:
            with Wire(pool.address) as w:
                if w.login()[-1].type != "Z":
                    return False
                messages = w.simple(f"create table if not exists {table} as select 1 as a")
                return any(m.type == "C" for m in messages) and not any(m.type == "E" for m in messages)
        except (OSError, WireClosed, WireTimeout):
            return False
    waits.wait_for("a write succeeds", attempt, 90)


def wait_everywhere(trio, table: str) -> None:
    waits.wait_for(f"{table} is everywhere", lambda: all(n.value(
        f"select count(*) from pg_class where relname = '{table}'") == "1" for n in trio.nodes))


def script(name: str, text: str) -> Path:
    home = procs.folder(name)
    path = home / f"{name}.sh"
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(0o755)
    return path


def promoting(trio, extra: str = "") -> Path:
    """A failover_command that promotes its new main node by SQL, as a site's own script would."""
    psql = "psql -X -q -h 127.0.0.1 -U postgres -d postgres"
    return script("failover", f"""{extra}
echo "promoting node $5"
[ "$1" = "$8" ] || exit 0
exec {psql} -p "$7" -c 'select pg_promote()' </dev/null
""")


ARGS = "%d %h %p '%D' %m %H %r %P %N %S %M %R %%"


def behind(trio, node: int) -> None:
    """Makes a standby miss the last writes: it must not be the one that is promoted."""
    trio.nodes[node].rows("alter system set primary_conninfo = ''")
    trio.nodes[node].reload()
    waits.wait_for("it does not stream", lambda: trio.nodes[node].value(
        "select count(*) from pg_stat_wal_receiver") == "0")
    trio.primary.rows("create table last_words as select 1 as a")
    ahead = next(i for i in trio.standbys if i != node)
    waits.wait_for("the other one has it", lambda: trio.nodes[ahead].value(
        "select count(*) from pg_class where relname = 'last_words'") == "1")


def test_auto_promote_takes_the_one_that_has_most(trio, start_pool):
    """The lower standby misses the last write: the other one is promoted, and the lower one is led to it."""
    pool = pool_for(start_pool, trio, auto_promote=True)
    wait_settled(pool, trio.at)
    late, ahead = trio.standbys
    old_conninfo = trio.nodes[late].value("show primary_conninfo")
    behind(trio, late)
    trio.primary.stop(signal.SIGQUIT)
    wait_primary(pool, ahead)
    assert primaries(trio) == [ahead]
    write(pool, "after")
    assert trio.nodes[ahead].value("select count(*) from last_words") == "1"
    host = f"127.0.0.1({trio.primary.port})"
    for text in (f"=== Starting degeneration. shutdown host {host} ===", f"promoting node {ahead}",
                 f"failover: set new primary node: {ahead}", f"failover: set new main node: {ahead}",
                 f"=== Failover done. shutdown host {host} ==="):
        logs(pool, text)
    # It has nothing to begin with; give it the word of the old primary back.
    trio.nodes[late].rows(f"alter system set primary_conninfo = '{old_conninfo}'")
    trio.nodes[late].reload()
    waits.wait_for("the other standby follows", lambda: show(pool)[late]["replication_state"] == "streaming", 60)
    assert f"port='{trio.nodes[ahead].port}'" in trio.nodes[late].value("show primary_conninfo")
    assert "application_name" in trio.nodes[late].value("show primary_conninfo")


def test_auto_promote_and_follow(trio, start_pool):
    pool = pool_for(start_pool, trio, auto_promote=True)
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGKILL)
    new = wait_replaced(trio, pool)
    other = next(i for i in trio.standbys if i != new)
    waits.wait_for("the other one follows", lambda: show(pool)[other]["replication_state"] == "streaming", 60)
    write(pool, "after")
    waits.wait_for("it arrives there", lambda: trio.nodes[other].value(
        "select count(*) from pg_class where relname = 'after'") == "1")
    # The old primary comes back, believing in itself: it is never used, whatever it says.
    trio.primary.start()
    waits.wait_for("it answers", lambda: column(pool, "pg_status")[trio.at] == "up")
    waits.holds_for("it is not used", lambda: column(pool, "role")[new] == "primary" and
                    column(pool, "status")[trio.at] == "down", 2)
    (told,) = waits.wait_for("it is told", lambda: [e for e in show(pool, "POOL_EVENTS") if e["event"] == "stale_primary"])
    assert told["node_id"] == str(trio.at)
    assert told["text"] == (f"node {trio.at} is back and says that it is a primary, a former one on timeline 1: "
                            "it stays down")
    logs(pool, told["text"])
    assert pool.log().count(told["text"]) == 1


@contextlib.contextmanager
def archived(nodes):
    """A pg_receivewal on each of them: who receives from a standby, and is no server of pgpool's."""
    running = []
    for node in nodes:
        folder = procs.folder("archive")
        running.append(subprocess.Popen(  # pylint: disable=consider-using-with
            [postgres.bindir() / "pg_receivewal", "-D", folder, "-h", "127.0.0.1", "-p", str(node.port), "-U", "postgres", "-w"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        for node in nodes:
            waits.wait_for("it receives", lambda node=node: node.value(
                "select count(*) from pg_stat_replication where application_name = 'pg_receivewal' and state = 'streaming'") == "1")
        yield
    finally:
        for one in running:
            one.terminate()
            one.wait(30)


@pytest.mark.parametrize("archives", [False, True], ids=["standbys", "archived_standbys"])
def test_a_living_primary_is_not_replaced(trio, start_pool, archives):
    """Only we do not reach it: a standby still streams from it, so nobody is promoted."""
    if archives and not (postgres.bindir() / "pg_receivewal").exists():
        pytest.skip("this PostgreSQL comes without pg_receivewal")
    pool = pool_for(start_pool, trio, auto_promote=True, health_check_test=True)
    wait_settled(pool, trio.at)
    with archived([trio.nodes[i] for i in trio.standbys] if archives else []):
        request = pool.home / "backend_down_request"
        request.write_text(f"{trio.at}\tdown\n", encoding="utf-8")
        waits.wait_for("the loss is seen", lambda: f"failover of node {trio.at} waits" in pool.log())
        waits.holds_for("nobody is promoted", lambda: primaries(trio) == [trio.at], 2)
        request.unlink()
        wait_settled(pool, trio.at)
        write(pool, "after")


def test_failover_command_gets_everything(trio, start_pool):
    facts = procs.folder("facts")
    path = promoting(trio, f'for a in "$@"; do echo "$a"; done > {facts}/args\nenv > {facts}/env\ncat > {facts}/json')
    dirs = {f"backend_data_directory{i}": f"/data of/$(node)'{i}" if i == trio.at else f"/data/{i}" for i in range(3)}
    pool = pool_for(start_pool, trio, failover_command=f"{path} {ARGS.replace(chr(39), '')}",
                    **{k: v.replace("'", "") for k, v in dirs.items()})
    wait_settled(pool, trio.at)
    late, new = trio.standbys
    behind(trio, late)
    trio.primary.stop(signal.SIGQUIT)
    wait_primary(pool, new)
    old_dir = dirs[f"backend_data_directory{trio.at}"].replace("'", "")
    old_port, new_port = str(trio.primary.port), str(trio.nodes[new].port)
    assert (facts / "args").read_text(encoding="utf-8").splitlines() == [
        str(trio.at), "127.0.0.1", old_port, old_dir, str(new), "127.0.0.1", new_port, str(trio.at), "127.0.0.1",
        old_port, str(trio.at), f"/data/{new}", "%"]
    env = (facts / "env").read_text(encoding="utf-8").splitlines()
    for line in ("PGPOOL_EVENT=failover", f"PGPOOL_NODE_ID={trio.at}", f"PGPOOL_NODE_DATA_DIRECTORY={old_dir}",
                 f"PGPOOL_NEW_PRIMARY_PORT={new_port}", "PGPOOL_OLD_PRIMARY_HOST=127.0.0.1"):
        assert line in env
    told = json.loads((facts / "json").read_text(encoding="utf-8"))
    assert told["event"] == "failover" and told["node"]["id"] == trio.at and told["new_primary"]["id"] == new
    assert [n["id"] for n in told["nodes"]] == [0, 1, 2]
    assert told["nodes"][new]["received_lsn"] > told["nodes"][late]["received_lsn"]
    logs(pool, f"failover_command: promoting node {new}")
    logs(pool, "execute command: ")


def line_in(path: Path) -> str:
    """What a command has written: its file is there before its text."""
    return waits.wait_for(f"a line in {path.name}",
                          lambda: path.exists() and (text := path.read_text(encoding="utf-8")).endswith("\n") and text)


def test_a_lost_standby_runs_the_command_and_nobody_is_promoted(trio, start_pool):
    facts = procs.folder("facts")
    command = script("failover", f'echo "$@" >> {facts}/down\n')
    back = script("failback", f'echo "$@" >> {facts}/up\n')
    pool = pool_for(start_pool, trio, failover_command=f"{command} %d %m %P", failback_command=f"{back} %d %m %P")
    wait_settled(pool, trio.at)
    lost = trio.standbys[0]
    trio.nodes[lost].stop()
    assert line_in(facts / "down") == f"{lost} {trio.at} {trio.at}\n"
    host = f"127.0.0.1({trio.nodes[lost].port})"
    waits.wait_for("it is done", lambda: f"=== Failover done. shutdown host {host} ===" in pool.log())
    trio.nodes[lost].start()
    wait_settled(pool, trio.at)
    assert line_in(facts / "up") == f"{lost} {trio.at} {trio.at}\n"
    waits.wait_for("it is told", lambda: f"=== Failback done. reconnect host {host} ===" in pool.log())
    assert primaries(trio) == [trio.at]


def test_commands_that_fail_are_tried_again(trio, start_pool):
    count = procs.folder("count") / "n"
    path = promoting(trio, f'echo x >> {count}\n[ $(wc -l < {count}) -lt 3 ] && exit 7')
    pool = pool_for(start_pool, trio, failover_command=f"{path} {ARGS}")
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGQUIT)
    wait_replaced(trio, pool)
    assert count.read_text(encoding="utf-8").count("x") == 3
    logs(pool, "exit status 7")
    assert len(primaries(trio)) == 1


def test_a_command_that_always_fails_is_given_up(trio, start_pool):
    """And the primary that comes back is welcome."""
    pool = pool_for(start_pool, trio, failover_command="exit 3")
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("it is given up", lambda: f"failover of node {trio.at} was given up" in pool.log(), 60)
    assert pool.log().count("execute command: exit 3") == 3
    trio.primary.start()
    wait_settled(pool, trio.at)
    write(pool, "after")


def test_a_command_that_hangs_is_ended(trio, start_pool):
    count = procs.folder("count") / "n"
    path = promoting(trio, f'echo x >> {count}\n[ $(wc -l < {count}) -lt 2 ] && tail -f /dev/null')
    pool = pool_for(start_pool, trio, failover_command=f"{path} {ARGS}", failover_command_timeout=1)
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("it is ended", lambda: "it took too long and was ended" in pool.log())
    pool.reload(failover_command_timeout=60)  # the next one has all the time that a busy machine takes
    wait_replaced(trio, pool)
    assert len(primaries(trio)) == 1


def test_a_command_that_prints_ten_megabytes(trio, start_pool):
    path = promoting(trio, "yes 'a line that says nothing at all' | head -c 10000000; printf end")
    pool = pool_for(start_pool, trio, failover_command=f"{path} {ARGS}")
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGQUIT)
    wait_replaced(trio, pool)
    waits.wait_for("the end is told", lambda: "more lines were left out" in pool.log())
    assert pool.log().count("a line that says nothing at all") <= 1000
    assert len(primaries(trio)) == 1


def test_a_command_that_is_killed(trio, start_pool):
    count = procs.folder("count") / "n"
    path = promoting(trio, f'echo x >> {count}\n[ $(wc -l < {count}) -lt 2 ] && kill -9 $$')
    pool = pool_for(start_pool, trio, failover_command=f"{path} {ARGS}")
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGQUIT)
    wait_replaced(trio, pool)
    waits.wait_for("the log says how it ended", lambda: "exit status 137" in pool.log() or "was ended by signal 9" in pool.log())
    assert len(primaries(trio)) == 1


def test_follow_primary_command(trio, start_pool):
    facts = procs.folder("facts")
    path = promoting(trio)
    follow = script("follow", f'echo "$@" >> {facts}/follow\n')
    pool = pool_for(start_pool, trio, failover_command=f"{path} {ARGS}", follow_primary_command=f"{follow} %d %m %P %M")
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGQUIT)
    new = wait_replaced(trio, pool)
    others = [i for i in range(3) if i != new]
    waits.wait_for("both others are told", lambda: (facts / "follow").exists() and
                   len((facts / "follow").read_text(encoding="utf-8").splitlines()) == 2)
    assert (facts / "follow").read_text(encoding="utf-8").splitlines() == [
        f"{i} {new} {trio.at} {trio.at}" for i in others]


@pytest.mark.parametrize("moment", ["confirm", "command", "search"])
def test_the_monitor_is_killed_on_the_way(trio, start_pool, moment):
    """The next one goes on: one primary, nobody lost, and the command is not run beside itself."""
    home = procs.folder("way")
    path = promoting(trio, f'echo x >> {home}/began\n[ -e {home}/go ] || while [ -d {home} ] && ! [ -e {home}/go ]; do sleep 0.05; done\n'
                           f'echo x >> {home}/ended\n' + ("exit 0" if moment == "search" else ""))
    pool = pool_for(start_pool, trio, failover_command=f"{path} {ARGS}")
    wait_settled(pool, trio.at)
    if moment != "command":
        (home / "go").touch()
    monitor = monitor_pid(pool)
    trio.primary.stop(signal.SIGQUIT)
    if moment == "command":
        # The line comes behind the view that the next monitor goes on from.
        waits.wait_for("the command runs", lambda: (home / "began").exists() and "execute command" in pool.log())
    elif moment == "search":
        waits.wait_for("the command has run", lambda: (home / "ended").exists())
    os.kill(monitor, signal.SIGKILL)
    waits.wait_for("there is a new monitor", lambda: monitor_pid(pool) not in (0, monitor))
    if moment == "command":
        waits.wait_for("it knows", lambda: "is still running" in pool.log())
        assert (home / "began").read_text(encoding="utf-8") == "x\n"
        (home / "go").touch()
    elif moment == "search":
        trio.nodes[trio.standbys[0]].rows("select pg_promote()")
    wait_replaced(trio, pool)
    if moment == "command":
        waits.wait_for("its words are not lost", lambda: "failover_command: promoting node" in pool.log())
    assert len(primaries(trio)) == 1
    assert column(pool, "status")[primaries(trio)[0]] == "up"
    pool.log_seen = len(pool.log())


def test_the_monitor_is_killed_again_and_again(trio, start_pool):
    pool = pool_for(start_pool, trio, auto_promote=True)
    wait_settled(pool, trio.at)
    stop = threading.Event()

    def killer():
        while not stop.wait(0.15):
            pid = monitor_pid(pool)
            if pid:
                os.kill(pid, signal.SIGKILL)
    thread = threading.Thread(target=killer)
    trio.primary.stop(signal.SIGQUIT)
    thread.start()
    stop.wait(2)
    stop.set()
    thread.join()
    wait_replaced(trio, pool)
    assert len(primaries(trio)) == 1
    write(pool, "after")
    pool.log_seen = len(pool.log())


def test_rolling_restart(trio, start_pool):
    """Standbys first, then the primary: with patience nobody is replaced, and all are back by themselves. Without, and
    nobody to promote, each of them was down once, and nothing is left of that."""
    pool = pool_for(start_pool, trio, auto_promote=True, health_check_max_retries=20, auto_failback_interval=0)
    wait_settled(pool, trio.at)
    for i in trio.standbys + [trio.at]:
        trio.nodes[i].stop()
        trio.nodes[i].start()
        wait_settled(pool, trio.at, 30)
    assert primaries(trio) == [trio.at]
    write(pool, "after")
    if trio.at == 0:
        return
    pool.reload(auto_promote=False, health_check_max_retries=0)
    waits.wait_for("the settings are read", lambda: "generation 2 is in use" in pool.log())
    for i in trio.standbys + [trio.at]:
        trio.nodes[i].stop()
        waits.wait_for("it is down", lambda i=i: column(pool, "status")[i] == "down")
        trio.nodes[i].start()
        wait_settled(pool, trio.at, 30)
    assert {e["node_id"] for e in show(pool, "POOL_EVENTS") if e["event"] == "down"} == {"0", "1", "2"}
    write(pool, "again")


def test_false_primary(trio, start_pool):
    """detach_false_primary: one that believes in itself, and from which nobody streams."""
    pool = pool_for(start_pool, trio, detach_false_primary=True)
    wait_settled(pool, trio.at)
    stray = postgres.start_postgres({"wal_keep_size": "64MB"}, roles=False)
    pool.reload(backend_hostname3="127.0.0.1", backend_port3=stray.port)
    waits.wait_for("it has answered", lambda: "says that it is a primary, but the primary is node" in pool.log())
    waits.wait_for("it is detached", lambda: column(pool, "status")[3:] == ["down"])
    assert column(pool, "role")[trio.at] == "primary"
    stray.stop(signal.SIGQUIT)



# Switchover


@pytest.fixture
def orders(start_pool, trio):
    """Starts a pool whose PCP port takes orders."""
    def start(**conf):
        port = procs.free_port()
        pool = pool_for(start_pool, trio, pcp_listen_addresses="127.0.0.1", pcp_port=port, **conf)
        pool.pcp = Side(pool.home, port)
        wait_settled(pool, trio.at)
        return pool
    return start


class Writer:
    """Writes numbers through pgpool until it is stopped, and remembers which were acknowledged."""

    def __init__(self, pool):
        self.pool, self.acked, self.ends = pool, [], threading.Event()
        write(pool, "numbers")
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        n = 1
        while not self.ends.is_set():
            try:
                with Wire(self.pool.address) as w:
                    if w.login()[-1].type != "Z":
                        continue
                    while not self.ends.is_set():
                        n += 1
                        messages = w.simple(f"insert into numbers values ({n})")
                        if not any(m.type == "E" for m in messages):
                            self.acked.append(n)
            except (OSError, WireClosed):
                continue

    def stop(self) -> list[int]:
        self.ends.set()
        self.thread.join()
        return self.acked


def test_switchover_by_sql(trio, orders):
    pool = orders()
    trio.primary.rows("alter system set synchronous_commit = on")
    trio.primary.reload()
    new, other = trio.standbys[-1], trio.standbys[0]
    writer = Writer(pool)
    waits.wait_for("writes run", lambda: len(writer.acked) > 20)
    done = pool.pcp.run("promote_node", "-s", str(new))
    assert done.returncode == 0, done
    before = len(writer.acked)
    waits.wait_for("writes go on", lambda: len(writer.acked) > before + 20)
    acked = writer.stop()
    assert column(pool, "role")[new] == "primary"
    there = {int(r[0]) for r in trio.nodes[new].rows("select a from numbers")}
    assert not set(acked) - there, "an acknowledged write is missing"
    assert is_primary(trio.nodes[trio.at]) and not Path(trio.primary.data / "postgresql.auto.conf").read_text(
        encoding="utf-8").count("default_transaction_read_only")
    waits.wait_for("the old primary is not used", lambda: column(pool, "status")[trio.at] == "quarantine")
    waits.wait_for("the other one follows", lambda: trio.nodes[other].value(
        "select count(*) from pg_stat_wal_receiver where received_tli = 2 and status = 'streaming'") == "1", 60)
    host = f"127.0.0.1({trio.nodes[new].port})"
    logs(pool, f"=== Starting promotion. promote host {host} ===")
    logs(pool, f"=== Promotion done. promoted host {host} ===")
    events = show(pool, "POOL_EVENTS")
    (order,) = [e for e in events if e["event"] == "switchover"]
    assert order["actor"] == "PCP user op" and order["node_id"] == str(new)
    assert [e["event"] for e in events].index("switchover") < [e["event"] for e in events].index("switchover_done")


class Bookkeeper:
    """Has a server write WAL that no fence holds up, as its own processes do, until it is stopped."""

    def __init__(self, pg):
        self.pg, self.count, self.ends = pg, 0, threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        with Wire(self.pg.socket) as w, contextlib.suppress(OSError, WireClosed):
            assert w.login()[-1].type == "Z"
            while not self.ends.wait(0.001):
                w.rows("select pg_create_restore_point('book')")
                self.count += 1

    def stop(self) -> None:
        self.ends.set()
        self.thread.join()


def streams_from(trio, standby: int, primary: int, timeline: int) -> bool:
    rows = trio.nodes[standby].rows("select 1 from pg_stat_wal_receiver where status = 'streaming' and "
                                    f"sender_port = {trio.nodes[primary].port} and received_tli = {timeline}")
    return len(rows) == 1


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_switchover_without_an_error(trio, orders, mode):
    """Sessions that write lone statements all the time notice nothing but a pause, and keep their connections."""
    pool = orders(load_balance_mode=True, pool_mode=mode, failover_wait=25)  # however long it takes on a busy machine
    new = trio.standbys[0]
    trio.primary.rows(crowd.TABLE)
    wait_everywhere(trio, "crowd")
    load = crowd.Crowd(pool.address, writers=4, readers=2, pause_s=0.005)
    load.start()
    waits.wait_for("writes run", lambda: len(load.acknowledged()) > 100)
    done = pool.pcp.run("promote_node", "-s", str(new))
    before = len(load.acknowledged())
    assert done.returncode == 0, done
    waits.wait_for("writes go on", lambda: len(load.acknowledged()) > before + 200)
    load.stop()
    assert [f.text for f in load.errors(load.writers + load.readers)] == []
    assert crowd.two_primaries(load.acknowledged()) == ""
    assert load.acknowledged()[-1].port == str(trio.nodes[new].port)


@pytest.mark.parametrize("balance", [True, False], ids=["balanced", "not balanced"])
def test_nobody_writes_to_a_former_primary(trio, start_pool, balance):
    """Somebody else promotes a standby, and the old primary lives on, unfenced: a session that was there writes to the
    new one; a transaction that is open there fails."""
    pool = pool_for(start_pool, trio, load_balance_mode=balance)
    wait_settled(pool, trio.at)
    new = trio.standbys[0]
    write(pool, "notes")
    wait_everywhere(trio, "notes")
    with logged_in(pool) as idle, logged_in(pool) as busy:
        idle.rows("insert into notes values (2)")
        idle.rows("set application_name = 'kept'")
        busy.rows("begin")
        busy.rows("insert into notes values (3)")
        trio.promote(new)
        wait_primary(pool, new)
        waits.wait_for("what leads there is cut", lambda: pool.log().count("is not the primary any more") >= 2
                       and str(trio.at) not in [r["node"] for r in show(pool, "POOL_LINKS")])
        with contextlib.suppress(WireClosed, OSError):
            assert any(m.type == "E" for m in busy.simple("commit")), "committed on a former primary"
        assert idle.rows("insert into notes values (4) returning current_setting('port')") == [[str(trio.nodes[new].port).encode()]]
        assert idle.value("show application_name") == "kept"
    assert "3" not in [(r[0] or b"").decode() for r in trio.primary.rows("select a from notes")]
    assert "4" not in [(r[0] or b"").decode() for r in trio.primary.rows("select a from notes")]


def test_a_session_that_began_on_a_standby_moves_on(trio, start_pool):
    """It logged in while there was no primary: its writes wait for one, and go there."""
    pool = pool_for(start_pool, trio, load_balance_mode=True, failover_wait=20)
    wait_settled(pool, trio.at)
    write(pool, "notes")
    wait_everywhere(trio, "notes")
    new = trio.standbys[0]
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[trio.at] == "down")
    with logged_in(pool) as w:
        assert w.rows("select 1") == [[b"1"]]
        thread = threading.Timer(1, lambda: trio.nodes[new].rows("select pg_promote()"))
        thread.start()
        found = w.rows("insert into notes values (5) returning current_setting('port')")
        assert found == [[str(trio.nodes[new].port).encode()]]
        thread.join()


def test_logins_choose_again(trio, start_pool):
    """Clients that come while the primary is lost, seen or not yet: they are let in, to whoever is there."""
    pool = pool_for(start_pool, trio, auto_promote=True)
    wait_settled(pool, trio.at)
    found: list[str] = []
    ends = threading.Event()

    def come():
        while not ends.is_set():
            try:
                with Wire(pool.address, seconds=20) as w:
                    found.append(w.login()[-1].type)
            except (OSError, WireClosed) as e:
                found.append(str(e))
    threads = [threading.Thread(target=come) for _ in range(3)]
    for t in threads:
        t.start()
    waits.wait_for("they come", lambda: len(found) > 20)
    trio.primary.stop(signal.SIGKILL)
    wait_replaced(trio, pool)
    seen = len(found)
    waits.wait_for("they come", lambda: len(found) > seen + 20)
    ends.set()
    for t in threads:
        t.join()
    assert set(found) == {"Z"}, {text: found.count(text) for text in set(found)}


def detach_events(pool) -> list[dict[str, str]]:
    return [e for e in show(pool, "POOL_EVENTS") if e["event"] == "detach"]


@pytest.mark.parametrize("slots", [False, True], ids=["no slots", "slots"])
def test_switchover_strands_nobody(trio, orders, slots):
    """The old primary writes on, and whoever has received of that cannot follow the new one: so the third server
    leaves it before; also when it is detached, and detached it stays: who did so, when and why survives restarts."""
    pool = orders()
    new, other = trio.standbys[0], trio.standbys[1]
    if trio.at == 0:
        assert pool.pcp.run("detach_node", str(other), "--why", "new disk").returncode == 0
    if slots:
        trio.primary.rows("select pg_create_physical_replication_slot('third')")
        trio.nodes[other].rows("alter system set primary_slot_name = 'third'")
        trio.nodes[other].reload()
        waits.wait_for("the slot is used", lambda: trio.primary.value("select active from pg_replication_slots") == "t")
    books = Bookkeeper(trio.primary)
    waits.wait_for("it writes", lambda: books.count > 10)
    done = pool.pcp.run("promote_node", "-s", str(new))
    assert done.returncode == 0, done
    waits.wait_for("the third one follows", lambda: streams_from(trio, other, new, 2), 60)
    more = books.count + 20
    waits.wait_for("the old one writes on", lambda: books.count > more or not books.thread.is_alive())
    books.stop()
    trio.nodes[new].rows("create table afterwards as select 1 as a")
    waits.wait_for("it arrives there", lambda: trio.nodes[other].value(
        "select count(*) from pg_class where relname = 'afterwards'") == "1")
    assert trio.nodes[new].value("select count(*) from pg_replication_slots where active") == ("1" if slots else "0")
    assert "forked off" not in trio.nodes[other].log()
    waits.wait_for("pgpool sees it stream", lambda: show(pool)[other]["replication_state"] == "streaming")
    if trio.at != 0:
        assert column(pool, "status")[other] == "up"
        return
    before = detach_events(pool)[-1]
    assert (before["node_id"], before["actor"], before["cause"]) == (str(other), "PCP user op", "new disk")
    for _ in range(2):
        pool.stop()
        pool.start()
        wait_primary(pool, new)
        assert column(pool, "status")[other] == "down"
        assert detach_events(pool) == [{**before, "text": f"node {other} stays detached, as PCP user op wanted"}]


def test_a_third_one_is_led_back(trio, orders):
    """The switchover is called off after the third server had left: it streams from the old primary again, and the
    slot that was made for it is gone."""
    pool = orders(failover_wait=6)
    new, other = trio.standbys[0], trio.standbys[1]
    trio.primary.rows("select pg_create_physical_replication_slot('third')")
    trio.nodes[other].rows("alter system set primary_slot_name = 'third'")
    trio.nodes[other].reload()
    waits.wait_for("the slot is used", lambda: trio.primary.value("select active from pg_replication_slots") == "t")
    behind(trio, new)
    done = pool.pcp.run("promote_node", "-s", str(new), seconds=60)
    assert done.returncode == 1 and "did not receive all in time" in done.stderr
    waits.wait_for("it is led back", lambda: streams_from(trio, other, trio.at, 1), 60)
    waits.wait_for("no slot is left", lambda: trio.nodes[new].value("select count(*) from pg_replication_slots") == "0")
    logs(pool, f"node {other} is led back to the primary, node {trio.at}")
    write(pool, "after")


def test_switchover_ends_what_does_not_end(trio, orders):
    """A transaction that stays open is given time and then ended; what it wrote is gone everywhere."""
    pool = orders(failover_wait=4)
    trio.primary.rows("create table kept (a int)")
    new = trio.standbys[0]
    with Wire(trio.primary.socket) as lazy:
        assert lazy.login()[-1].type == "Z"
        lazy.rows("begin")
        lazy.rows("insert into kept values (1)")
        done = pool.pcp.run("promote_node", "-s", str(new))
        assert done.returncode == 0, done
    assert column(pool, "role")[new] == "primary"
    assert trio.nodes[new].value("select count(*) from kept") == "0"


def test_switchover_is_taken_back(trio, orders):
    """The chosen standby gets nothing any more: the old primary goes on as if nothing had been."""
    pool = orders(failover_wait=4)
    new = trio.standbys[0]
    behind(trio, new)
    done = pool.pcp.run("promote_node", "-s", str(new), seconds=60)
    assert done.returncode == 1 and "did not receive all in time" in done.stderr
    assert primaries(trio) == [trio.at]
    write(pool, "after")
    assert trio.primary.value("show default_transaction_read_only") == "off"


def test_switchover_refused(trio, orders):
    pool = orders()
    lost = trio.standbys[0]
    trio.nodes[lost].stop()
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[lost] == "down")
    done = pool.pcp.run("promote_node", "-s", str(lost))
    assert done.returncode == 1 and "not in use or does not answer" in done.stderr
    assert primaries(trio) == [trio.at]


def test_switchover_by_command(trio, orders):
    """As with pgpool-II: failover_command is told of the old primary and the new one, and does it all."""
    facts = procs.folder("facts")
    pool = orders(failover_command=f"{promoting(trio, f'echo $1 $5 > {facts}/told')} {ARGS}")
    new = trio.standbys[-1]
    done = pool.pcp.run("promote_node", "-s", str(new))
    assert done.returncode == 0, done
    assert (facts / "told").read_text(encoding="utf-8").split() == [str(trio.at), str(new)]
    assert column(pool, "role")[new] == "primary"
    waits.wait_for("the old primary is not used", lambda: column(pool, "status")[trio.at] == "quarantine")


def test_an_operator_promotes_when_nobody_else_does(trio, orders):
    pool = orders()
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[trio.at] == "down")
    new = trio.standbys[-1]
    done = pool.pcp.run("promote_node", "-s", str(new))
    assert done.returncode == 0, done
    assert primaries(trio) == [new]
    write(pool, "after")


def test_two_orders_at_once(trio, orders):
    """Each standby is to become the primary: one of them does, and what was acknowledged is there."""
    pool = orders()
    trio.primary.rows("alter system set synchronous_commit = on")
    trio.primary.reload()
    writer = Writer(pool)
    waits.wait_for("writes run", lambda: len(writer.acked) > 20)
    with ThreadPoolExecutor(2) as two:
        done = list(two.map(lambda n: pool.pcp.run("promote_node", "-s", str(n), seconds=40), trio.standbys))
    before = len(writer.acked)
    assert any(d.returncode == 0 for d in done), done
    waits.wait_for("writes go on", lambda: len(writer.acked) > before + 20)
    acked = writer.stop()
    waits.wait_for("there is one primary", lambda: [
        r for r, s in zip(column(pool, "role"), column(pool, "status")) if s == "up"].count("primary") == 1)
    new = column(pool, "role").index("primary")
    there = {int(r[0]) for r in trio.nodes[new].rows("select a from numbers")}
    assert not set(acked) - there, "an acknowledged write is missing"


def test_orders_during_a_failover(trio, orders):
    """While failover_command runs, the other standby is detached and ordered to be the primary."""
    facts = procs.folder("facts")
    os.mkfifo(facts / "go")
    pool = orders(failover_command=f"{promoting(trio, f'echo $5 > {facts}/told; read x < {facts}/go')} {ARGS}")
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("the command runs", (facts / "told").exists)
    waits.wait_for("it has said all", lambda: (facts / "told").read_text(encoding="utf-8").endswith("\n"))
    new = int((facts / "told").read_text(encoding="utf-8"))
    other = next(i for i in trio.standbys if i != new)
    with ThreadPoolExecutor(2) as two:
        detached = two.submit(pool.pcp.run, "detach_node", str(other), seconds=40)
        promoted = two.submit(pool.pcp.run, "promote_node", "-s", str(other), seconds=40)
        waits.wait_for("the one is done, the other is refused", lambda: detached.done() and promoted.done())
        (facts / "go").write_text("go\n", encoding="ascii")
        assert detached.result().returncode == 0, detached.result()
        assert promoted.result().returncode != 0, promoted.result()
    (facts / "go").unlink()  # the command does not wait when it runs again
    wait_primary(pool, new)
    assert primaries(trio) == [new]
    write(pool, "after")
    assert pool.pcp.run("attach_node", str(other)).returncode == 0
    waits.wait_for("the other one is back", lambda: column(pool, "status")[other] == "up", 60)


@pytest.mark.parametrize("seconds", [0.05, 0.15, 0.3, 0.6])
def test_the_monitor_is_killed_in_a_switchover(trio, orders, seconds):
    """At some moment of it: one primary that takes writes, whichever."""
    pool = orders()
    new = trio.standbys[0]
    monitor = monitor_pid(pool)

    def order():
        # Killed before it took the order in, the monitor leaves nobody to answer.
        with contextlib.suppress(subprocess.TimeoutExpired):
            pool.pcp.run("promote_node", "-s", str(new), seconds=5)
    thread = threading.Thread(target=order)
    thread.start()
    threading.Event().wait(seconds)
    os.kill(monitor, signal.SIGKILL)
    waits.wait_for("there is a new monitor", lambda: monitor_pid(pool) not in (0, monitor))
    write(pool, "after")
    thread.join()

    def one_takes_writes() -> bool:
        found = [i for i, role in enumerate(column(pool, "role")) if role == "primary"]
        return len(found) == 1 and found[0] in (new, trio.at) and trio.nodes[found[0]].value("show default_transaction_read_only") == "off"
    waits.wait_for("one primary takes writes", one_takes_writes)
    pool.log_seen = len(pool.log())


def test_events_tell_the_story(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    lost = trio.standbys[0]
    trio.nodes[lost].stop()
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[lost] == "down")
    (down,) = waits.wait_for("it is told", lambda: [e for e in show(pool, "POOL_EVENTS") if (e["node_id"], e["event"]) == (str(lost), "down")])
    assert down["text"] == f"health check failed on node {lost} (timeout:5)"
    # Who is let in when it ends hears of that by his connection.
    assert any(why in down["cause"] for why in ("Connection refused", "server closed the connection", "Connection reset"))
    assert down["actor"] == "monitor" and down["time"]
