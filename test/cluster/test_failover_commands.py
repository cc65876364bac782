# SPDX-License-Identifier: PostgreSQL
"""test_failover_commands: failback_command and follow_primary_command: what they are told, that nobody waits for them, their
time, and that they outlive the monitor."""
import contextlib
import json
import os
import signal

from concurrent.futures import ThreadPoolExecutor

import pytest

from pgt import procs, waits
from test_failover import (ARGS, orders, pool_for, primaries, promoting, script, wait_everywhere,  # noqa: F401
                           wait_primary, write)
from test_monitor import column, logged_in, monitor_pid, show, trio, wait_settled  # noqa: F401

ODD = "/data of/$(touch x)`id`\"*"
TELL = """d=$(mktemp -d {facts}/new.XXXXXX)
for a in "$@"; do echo "$a"; done > $d/args
env > $d/env
cat > $d/json
mv $d {facts}/{name}$1
"""


def told(facts, name: str) -> tuple[list[str], dict[str, str], dict]:
    """Arguments, environment and input of a command."""
    waits.wait_for(f"{name} is run", (facts / name / "json").exists, 60)
    env = (facts / name / "env").read_text(encoding="utf-8").splitlines()
    return ((facts / name / "args").read_text(encoding="utf-8").splitlines(),
            dict(line.removeprefix("PGPOOL_").split("=", 1) for line in env if line.startswith("PGPOOL_")),
            json.loads((facts / name / "json").read_text(encoding="utf-8")))


def check_told(trio, facts, name: str, event: str, node: int, primary: int, old: int) -> None:
    args, env, text = told(facts, name)
    port = [str(n.port) for n in trio.nodes]
    here = "127.0.0.1"
    assert args == [str(node), here, port[node], f"{ODD}{node}", str(primary), here, port[primary], str(old), here, port[old],
                    str(old), f"{ODD}{primary}", "%"]
    wanted = {"EVENT": event, "ACTOR": "monitor"}
    for which, i in (("NODE", node), ("NEW_PRIMARY", primary), ("OLD_PRIMARY", old), ("OLD_MAIN", old)):
        wanted |= {f"{which}_ID": str(i), f"{which}_HOST": here, f"{which}_PORT": port[i], f"{which}_DATA_DIRECTORY": f"{ODD}{i}"}
        assert text[which.lower()] == {"id": i, "host": here, "port": int(port[i]), "data_directory": f"{ODD}{i}"}
    assert wanted.items() <= env.items() and env["REASON"] == text["reason"] != ""
    assert (text["event"], text["actor"], [n["id"] for n in text["nodes"]]) == (event, "monitor", [0, 1, 2])


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_nobody_waits_for_them(trio, start_pool):
    """failback_command hangs while the primary is lost, follow_primary_command hangs for one server and fails for the
    other. Each of them is told all, however odd the name of a folder is."""
    facts = procs.folder("facts")
    os.mkfifo(facts / "go")
    back = script("failback", TELL.format(facts=facts, name="back") + f"read x < {facts}/go\nexit 4\n")
    follow = script("follow", TELL.format(facts=facts, name="follow") + "[ $1 = 2 ] && exit 3\nexec tail -f /dev/null\n")
    quoted = {"bare": ARGS.replace("'", ""), "double": ARGS.replace("'", '"')}
    pool = pool_for(start_pool, trio, failover_command=f"[ %d = %P ] || exit 0; {promoting(trio)} {ARGS}".replace("'", ""),
                    failback_command=f"{back} {quoted['bare']}",
                    follow_primary_command=f"{follow} {quoted['double']}", follow_primary_command_timeout=8,
                    **{f"backend_data_directory{i}": f"{ODD}{i}" for i in range(3)})
    wait_settled(pool, 2)
    trio.nodes[0].stop()
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[0] == "down")
    trio.nodes[0].start()
    check_told(trio, facts, "back0", "failback", 0, 2, 2)
    waits.wait_for("it is in use while the command runs", lambda: column(pool, "status") == ["up"] * 3)
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("another is the primary", lambda: "primary" in column(pool, "role")[:2])
    new = column(pool, "role").index("primary")
    assert "failback_command failed" not in pool.log()
    (facts / "go").write_text("go\n", encoding="ascii")  # the failover has not waited for it
    check_told(trio, facts, f"follow{1 - new}", "follow_primary", 1 - new, new, 2)
    check_told(trio, facts, "follow2", "follow_primary", 2, new, 2)
    waits.wait_for("that one has failed", lambda: "the command follow_primary_command about node 2 failed" in pool.log())
    def failed() -> list[tuple[str, str]]:
        return sorted((e["node_id"], e["cause"]) for e in show(pool, "POOL_EVENTS") if e["event"] == "failed")
    waits.wait_for("all that failed is told", lambda: failed() == sorted(
        [("0", "exit status 4"), (str(1 - new), "it took too long and was ended"), ("2", "exit status 3")]))
    assert primaries(trio) == [new] and column(pool, "status")[:2] == ["up", "up"]
    assert pool.log().index("=== Starting fail back") < pool.log().index(f"execute command: {back}")
    began = pool.log().index(f"=== Starting degeneration. shutdown host 127.0.0.1({trio.primary.port}) ===")
    runs = pool.log().index("execute command: [ 2 = 2 ]")
    assert began < runs < pool.log().index("failover_command: promoting node") < pool.log().index("set new primary node")


@pytest.mark.parametrize("trio", [0], indirect=True)
def test_they_outlive_the_monitor(trio, start_pool):
    """follow_primary_command runs when the monitor is killed: it is not run a second time beside itself, and the next one is
    about the other server. Also when it ends while there is no monitor."""
    facts = procs.folder("facts")
    os.mkfifo(facts / "go")
    follow = script("follow", f"echo $1 >> {facts}/began\nread x < {facts}/go\necho done with $1\necho $1 >> {facts}/ended\n")
    pool = pool_for(start_pool, trio, failover_command=f"{promoting(trio)} {ARGS}", follow_primary_command=f"{follow} %d")
    wait_settled(pool, 0)
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("another is the primary", lambda: "primary" in column(pool, "role")[1:])
    new = column(pool, "role").index("primary")

    def lines(name: str) -> list[str]:
        return (facts / name).read_text(encoding="utf-8").split() if (facts / name).exists() else []

    def kill() -> int:
        old = monitor_pid(pool)
        os.kill(old, signal.SIGKILL)
        waits.wait_for("there is a new monitor", lambda: monitor_pid(pool) not in (0, old))
        return monitor_pid(pool)
    waits.wait_for("it runs for the lost one", lambda: lines("began") == ["0"])
    kill()
    waits.wait_for("the next one knows", lambda: pool.log().count("is still running") == 1)
    kill()
    waits.wait_for("and the next", lambda: pool.log().count("is still running") == 2)
    (facts / "go").write_text("go\n", encoding="ascii")
    waits.wait_for("it runs for the other one", lambda: lines("began") == ["0", str(3 - new)])
    waits.wait_for("the log says how the first one ended", lambda: "follow_primary_command: done with 0" in pool.log())
    assert lines("ended") == ["0"]
    pid = monitor_pid(pool)
    procs.stand_still(pid)
    (facts / "go").write_text("go\n", encoding="ascii")
    waits.wait_for("it has ended", lambda: lines("ended") == ["0", str(3 - new)])
    os.kill(pid, signal.SIGKILL)
    waits.wait_for("it is told", lambda: "follow_primary_command is done with node 0" in pool.log()
                   and f"follow_primary_command is done with node {3 - new}" in pool.log())
    assert lines("began") == ["0", str(3 - new)] and primaries(trio) == [new]
    wait_primary(pool, new)
    pool.log_seen = len(pool.log())


@pytest.mark.parametrize("trio", [0], indirect=True)
def test_a_switchover_waits_for_all(trio, orders):
    """The chosen standby lags, and the other one acknowledges: failover_command is not run before nothing is missing."""
    facts = procs.folder("facts")
    pool = orders(failover_command=f"{promoting(trio, f'touch {facts}/run')} {ARGS}")
    write(pool, "notes")
    wait_everywhere(trio, "notes")
    trio.primary.rows("alter system set synchronous_standby_names = 'ANY 1 (*)'")
    trio.primary.reload()
    receiver = int(trio.nodes[1].value("select pid from pg_stat_wal_receiver"))
    procs.stand_still(receiver)
    try:
        waits.wait_for("the other one counts", lambda: trio.primary.value(
            "select count(*) from pg_stat_replication where sync_state = 'quorum'") == "2")
        with logged_in(pool) as w, ThreadPoolExecutor(1) as one:
            w.rows("insert into notes values (7)")
            done = one.submit(pool.pcp.run, "promote_node", "-s", "-v", "1", seconds=40)
            waits.wait_for("writes are stopped", lambda: trio.primary.value("show default_transaction_read_only") == "on")
            waits.holds_for("it is not run", lambda: not (facts / "run").exists(), 1)
            procs.go_on(receiver)
            assert done.result().returncode == 0, done.result()
            assert "it receives what is left" in done.result().stderr
    finally:
        with contextlib.suppress(ProcessLookupError):
            procs.go_on(receiver)
    assert trio.nodes[1].value("select count(*) from notes where a = 7") == "1"
    assert primaries(trio) == [0, 1] and trio.nodes[1].value("show default_transaction_read_only") == "off"
    waits.wait_for("the old one's settings are as before", lambda: "default_transaction_read_only" not in
                   (trio.primary.data / "postgresql.auto.conf").read_text(encoding="utf-8"))


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_a_switchover_may_stop_the_old_primary(trio, orders):
    """failover_command stops the old primary first, and our user may not fence it: it is run once, and all is well."""
    facts = procs.folder("facts")
    stop = f"""echo x >> {facts}/runs
kill -INT $(head -n 1 {trio.primary.data}/postmaster.pid); while [ -e {trio.primary.data}/postmaster.pid ]; do sleep 0.05; done
while [ -d {facts} ] && ! grep -q seen {facts}/runs; do sleep 0.05; done"""
    trio.primary.rows("create role looker login in role pg_monitor")
    waits.wait_for("the role is everywhere", lambda: all(n.value("select count(*) from pg_roles where rolname = 'looker'") == "1"
                                                         for n in trio.nodes))
    pool = orders(failover_command=f"{promoting(trio, stop)} {ARGS}", sr_check_user="looker")
    with ThreadPoolExecutor(1) as one:
        order = one.submit(pool.pcp.run, "promote_node", "-s", "0", seconds=40)
        waits.wait_for("it is seen to be lost", lambda: "Starting degeneration. shutdown host" in pool.log())
        with (facts / "runs").open("a", encoding="utf-8") as out:
            out.write("seen\n")
        assert order.result().returncode == 0, order.result()
    log = pool.log()
    assert (facts / "runs").read_text(encoding="utf-8") == "x\nseen\n", log
    assert "node 2 is not kept from writing: failover_command has to see to that" in log
    assert "given up" not in log and "was lost meanwhile" not in log
    trio.primary.daemon = None
    assert column(pool, "role")[0] == "primary" and primaries(trio) == [0]
