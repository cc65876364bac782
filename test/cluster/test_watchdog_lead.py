# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_lead: who leads by more than votes: the pgpool beside the primary (vip_follows), none whose clients get no answer
(wd_lifecheck_method = query), and only after the former leader was shut out (wd_fence_command)."""
import signal

from pgt import procs, waits
from pgt.wire import Wire
from test_monitor import trio  # noqa: F401
from test_monitor import PERIOD
from test_watchdog import CALM, QUICK, Three, cluster, primary_of, wait_settled  # noqa: F401
from test_watchdog_cli import ask


def name_hosts(three: Three, hosts: list[str]) -> None:
    for pool in three.pools:
        pool.write_conf(**{f"hostname{k}": host for k, host in enumerate(hosts)})


def test_the_address_follows_the_primary(cluster, pg):  # noqa: F811
    """Pgpool 1 is on the primary's machine: it leads, though others have a higher priority; when it is gone, these do."""
    three = cluster(**PERIOD, **CALM, vip_follows="primary", wd_priority=[5, 1, 3])
    name_hosts(three, ["127.0.0.8", pg.address.host, "127.0.0.9"])
    three.start(0, 2)
    waits.wait_for("the higher priority leads", lambda: three.leader_of(2) == 0, 40)
    three.start(1)
    waits.wait_for("the one beside the primary leads", lambda: three.leader_of(0) == 1, 40)
    waits.wait_for("the log says why", lambda: any("on the machine of the primary" in three.pools[i].log() for i in (0, 2)))
    three.kill(1)
    waits.wait_for("the others go on", lambda: three.leader_of(2) == 0, 40)


def test_who_does_not_answer_clients_does_not_lead(cluster):  # noqa: F811
    """The leader's watchdog is well, but its clients wait for nothing: it gives the lead away, and may have it back."""
    three = cluster(wd_lifecheck_method="query", wd_interval=1, wd_life_point=2, wd_priority=[1, 9, 1])
    for pool in three.pools:
        pool.write_conf(**{f"pgpool_port{k}": other.port for k, other in enumerate(three.pools)})
    three.start()
    waits.wait_for("pgpool 1 leads", lambda: [three.leader_of(i) for i in range(3)] == [1] * 3, 60)
    three.wait_voters(1, 3)
    others = ("pgpool -n", "monitor", "PCP", "watchdog")
    workers = [pid for pid in three.pools[1].pids() if not any(o in procs.command_line(pid) for o in others)]
    assert workers
    for pid in workers:
        procs.stand_still(pid)
    waits.wait_for("another one leads", lambda: three.leader_of(0) in (0, 2), 40)
    waits.wait_for("it is told why", lambda: "a life check says that this pgpool is dead" in three.pools[1].log())
    for i in (0, 2):
        waits.wait_for("both have found it dead", lambda i=i: "informing the node status change to watchdog" in three.pools[i].log())
    for pid in workers:
        procs.go_on(pid)
    waits.wait_for("it leads again", lambda: three.leader_of(0) == 1, 60)


def test_when_nobody_answers_one_goes_on(cluster):  # noqa: F811
    """A port that none of them has: all find all others dead, and yet one leads."""
    three = cluster(wd_lifecheck_method="query", wd_interval=1, wd_life_point=1).start()
    waits.wait_for("all are called dead", lambda: all("informing the node status change" in p.log() for p in three.pools), 40)
    waits.wait_for("the lowest leads", lambda: [three.leader_of(i) for i in range(3)] == [0] * 3, 60)


def test_a_former_leader_is_shut_out_first(cluster, tmp_path):  # noqa: F811
    """The address waits for the command; who has given the lead away in order is not shut out."""
    said, may = tmp_path / "said", tmp_path / "may"
    tmp_path.chmod(0o777)
    three = cluster(wd_fence_command=f"echo %i %h 100%% >> {said}; test -e {may}", wd_escalation_command=f"touch {tmp_path}/up.$$",
                    **CALM).start()
    first = three.wait_leader(0, 1, 2)
    three.wait_voters(first, 3)
    waits.wait_for("it is escalated", lambda: len(list(tmp_path.glob("up.*"))) == 1)
    assert not said.exists(), "there was nobody to shut out"
    three.kill(first)
    left = [i for i in range(3) if i != first]
    second = three.wait_leader(*left)
    waits.wait_for("it is tried twice", lambda: said.exists() and len(said.read_text().splitlines()) >= 2, 60)
    assert said.read_text().splitlines()[0] == f"{first} 127.0.0.1 100%"
    assert len(list(tmp_path.glob("up.*"))) == 1, "nothing is taken before"
    may.touch()
    waits.wait_for("then it is", lambda: len(list(tmp_path.glob("up.*"))) == 2, 60)
    waits.wait_for("the log says so", lambda: any(f"the former leader, pgpool {first}, is shut out" in three.pools[i].log() for i in left))
    three.start(first)
    three.wait_voters(second, 3)
    said.unlink()
    three.pools[second].stop(signal.SIGTERM)
    waits.wait_for("the next one has it", lambda: len(list(tmp_path.glob("up.*"))) == 3, 60)
    assert not said.exists()


def test_the_lead_goes_on_while_nobody_is_shut_out(cluster, tmp_path):  # noqa: F811
    """A leader that could not shut the former one out yet gives the lead away: the next one has to shut out the same, and takes nothing before."""
    said, may = tmp_path / "said", tmp_path / "may"
    tmp_path.chmod(0o777)
    three = cluster(wd_fence_command=[f"echo {i} %i >> {said}; test -e {may}" for i in range(3)], wd_escalation_command=f"touch {tmp_path}/up.$$",
                    **CALM).start()
    first = three.wait_leader(0, 1, 2)
    three.wait_voters(first, 3)
    waits.wait_for("it is escalated", lambda: len(list(tmp_path.glob("up.*"))) == 1)
    three.kill(first)
    left = [i for i in range(3) if i != first]
    second = three.wait_leader(*left)
    third = next(i for i in left if i != second)
    waits.wait_for("it is tried", lambda: said.exists() and f"{second} {first}" in said.read_text(), 60)
    assert ask(three, second, "c", Command="REELECT_LEADER")[0] == "7"
    waits.wait_for("the third leads", lambda: three.leader_of(third) == third, 60)
    waits.wait_for("it tries, too", lambda: f"{third} {first}" in said.read_text(), 60)
    assert f"{third} {second}" not in said.read_text()
    assert len(list(tmp_path.glob("up.*"))) == 1, "nothing is taken before"
    may.touch()
    waits.wait_for("then it is", lambda: len(list(tmp_path.glob("up.*"))) == 2, 60)


def test_a_dead_primary_does_not_move_the_lead(trio, cluster):  # noqa: F811
    """One pgpool has clients and meets the loss; the others, with no connection at all, would try five times more. They are told, and it goes on leading."""
    three = cluster([n.address for n in trio.nodes], **{**QUICK, "health_check_period": 5, "sr_check_period": 5, "health_check_max_retries": 5,
                    "health_check_retry_delay": 5},
                    failover_on_backend_error=True, failover_wait=120, connection_cache=False, **CALM).start()
    leader = three.wait_leader(0, 1, 2)
    wait_settled(three, trio.at, 0, 1, 2)
    three.wait_events(f"the primary is node {trio.at}", 0, 1, 2)
    with Wire(three.pools[leader].address, seconds=120) as client:
        client.login("postgres", "postgres")
        client.simple("create table written (n int)")
        trio.primary.stop(signal.SIGQUIT)
        waits.wait_for("there is a new primary", lambda: primary_of(three, leader) not in (None, trio.at), 100)
    logs = "\n".join(pool.log() for pool in three.pools)
    assert "2 of 3 pgpools do not reach it" in logs or "3 of 3 pgpools do not reach it" in logs
    assert "the lead goes to" not in logs
