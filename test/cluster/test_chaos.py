# SPDX-License-Identifier: PostgreSQL
"""test_chaos: whatever is done to the servers, to the wires between them and to pgpool's processes, with synchronous
replication no acknowledged write is lost, no write is accepted by two primaries, a session sees what it has written
and what it has seen never goes back (read_consistency = session), and every client ends served.

Once with relays between pgpool and the servers, once with each server on a host of its own, a network namespace,
behind a switch that loses and delays packets; there with synchronous_commit = remote_apply, read_consistency = global, and
clients that only read. $PGT_CHAOS_SECONDS (12) says for how long each, $PGT_CHAOS_SEED which
way (0: another one each time); $PGT_CHAOS_ASYNC leaves out synchronous replication, and then what is lost and what sessions see again is not checked;
with $PGT_CHAOS_SCRIPTS the sample scripts promote and follow. A failure prints the seed and all that was done.
"""
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from pgt import crowd, lan, postgres, procs, proxy, relay, shadow, waits

from recovery_lab import Cluster, Pcp, fake_ssh, statuses

SYNC = "ANY 1 (server0, server1, server2)"
SECONDS = float(os.environ.get("PGT_CHAOS_SECONDS", "12"))
SEED = int(os.environ.get("PGT_CHAOS_SEED", "20261129")) or random.SystemRandom().randrange(1, 1 << 30)
SETTLE_S = 120
ASYNC = "PGT_CHAOS_ASYNC" in os.environ
pytestmark = [
    pytest.mark.skipif(not postgres.is_installed() or shadow.pg_config() is None,
                       reason="postgresql-server-dev is not installed"),
    pytest.mark.skipif(proxy.pgpool_bin() is None, reason="PGPOOL_BIN does not name a program"),
    pytest.mark.timeout(300 + 4 * SECONDS)]


class Relays:
    """pgpool knows the servers by other addresses, with something in between."""

    def __init__(self, cluster: Cluster):
        self.them = [relay.Relay(f"127.0.0.{11 + i}", node.address) for i, node in enumerate(cluster.nodes)]
        self.addresses = [r.address for r in self.them]

    def hole(self, i: int) -> None:
        self.them[i].open.clear()

    def delay(self, i: int, seconds: float) -> None:
        self.them[i].delay_s = seconds

    def heal(self) -> None:
        for one in self.them:
            one.open.set()
            one.delay_s = 0

    def close(self) -> None:
        for one in self.them:
            one.close()


class Wires:
    """Every server has a host and a wire of its own."""

    def __init__(self, cluster: Cluster):
        assert cluster.wire is not None
        self.lan = cluster.wire
        self.addresses = [node.address for node in cluster.nodes]

    def hole(self, i: int) -> None:
        self.lan.hole(i + 1)

    def delay(self, i: int, seconds: float) -> None:
        self.lan.delay_s[i + 1] = seconds

    def lose(self, i: int, rate: float) -> None:
        self.lan.loss[i + 1] = rate

    def cut_off(self, i: int) -> None:
        """From pgpool only: the servers still hear each other."""
        self.lan.split(lan.OUTSIDE, i + 1)

    def split(self, i: int, k: int) -> None:
        self.lan.split(i + 1, k + 1)

    def heal(self) -> None:
        self.lan.heal()

    def close(self) -> None:
        pass


class Chaos:
    """One run: the deeds, chosen by a seed, and how to get back to a whole cluster after each."""

    def __init__(self, pool, cluster: Cluster, wires: Relays | Wires, seed: int):
        self.pool, self.cluster, self.wires = pool, cluster, wires
        self.pcp = Pcp(pool)
        self.random = random.Random(seed)
        self.told: list[str] = [f"seed {seed}"]
        self.began = time.monotonic()
        self.pace = threading.Event()

    def tell(self, text: str) -> None:
        self.told.append(f"{time.monotonic() - self.began:7.2f} s  {text}")

    # ---- what is known

    def primary(self) -> int | None:
        """The node that pgpool takes for the primary."""
        found = [i for i, (status, role) in enumerate(statuses(self.pool)) if role == "primary" and status in ("up", "waiting")]
        return found[0] if found else None

    def is_whole(self) -> bool:
        now = statuses(self.pool)
        roles = [role for status, role in now if status == "up"]
        if len(roles) != 3 or roles.count("primary") != 1:
            return False
        primary = [role for _, role in now].index("primary")
        return self.cluster.streaming(primary) == 2

    def settle(self) -> None:
        """Brings lost nodes back as an operator would, then waits until all three are there."""
        end = waits.deadline(SETTLE_S)
        while not self.is_whole():
            assert waits.now() < end, f"the cluster does not become whole: {statuses(self.pool)}"
            primary = self.primary()
            if primary is not None:
                for i in range(3):
                    if i != primary:
                        self.bring_back(i)
            self.pace.wait(0.3)

    def bring_back(self, i: int) -> None:
        node = self.cluster.nodes[i]
        if not node.is_alive() and (node.data / "standby.signal").exists():
            self.tell(f"    start standby {i}")
            with_log = [str(shadow.make_shadow() / "pg_ctl"), "-D", str(node.data), "-l", str(node.data / "again.log"),
                        "-W", "start"]
            command, user = node.entered(with_log)
            procs.run(command, user=user, cwd="/")
            self.pace.wait(1)
            return
        status = statuses(self.pool)[i][0]
        lagging = node.is_alive() and status in ("down", "quarantine") and node.ask("select pg_is_in_recovery()") == "f"
        if (not node.is_alive() and status == "down") or lagging:
            done = self.pcp.run("recovery_node", str(i))
            self.tell(f"    recover node {i}: {done.returncode} {done.stderr.strip()[:160]}")
        elif status == "down":
            self.pcp.run("attach_node", str(i))

    # ---- deeds

    def standby(self) -> int:
        primary = self.primary()
        return self.random.choice([i for i in range(3) if i != primary])

    def kill_primary(self) -> None:
        primary = self.primary()
        if primary is not None:
            self.tell(f"kill the primary, node {primary}")
            self.cluster.nodes[primary].kill()

    def kill_standby(self) -> None:
        i = self.standby()
        self.tell(f"kill standby {i}")
        self.cluster.nodes[i].kill()

    def restart_standby(self) -> None:
        i = self.standby()
        self.tell(f"stop standby {i}")
        self.cluster.nodes[i].end(signal.SIGINT)

    def freeze(self, i: int, seconds: float) -> None:
        pid = self.cluster.nodes[i].pid()
        if pid is None:
            return
        pids = [pid, *procs.children(pid)]
        for one in pids:
            stop_or_go(one, signal.SIGSTOP)
        self.pace.wait(seconds)
        for one in pids:
            stop_or_go(one, signal.SIGCONT)

    def freeze_standby(self) -> None:
        i, seconds = self.standby(), self.random.uniform(0.2, 2)
        self.tell(f"freeze standby {i} for {seconds:.1f} s")
        self.freeze(i, seconds)

    def freeze_primary(self) -> None:
        primary, seconds = self.primary(), self.random.uniform(0.1, 1)
        if primary is not None:
            self.tell(f"freeze the primary, node {primary}, for {seconds:.1f} s")
            self.freeze(primary, seconds)

    def black_hole(self) -> None:
        """Nobody hears anything of a node any more."""
        i, seconds = self.random.randrange(3), self.random.choice([0.5, 1.5, 8])
        self.tell(f"black hole before node {i} for {seconds} s")
        self.wires.hole(i)
        self.pace.wait(seconds)
        self.wires.heal()

    def latency(self) -> None:
        i, delay = self.random.randrange(3), self.random.choice([0.02, 0.1, 0.3])
        self.tell(f"node {i} answers {delay} s late, for 3 s")
        self.wires.delay(i, delay)
        self.pace.wait(3)
        self.wires.heal()

    def loss(self) -> None:
        i, rate = self.random.randrange(3), self.random.choice([0.01, 0.05, 0.2])
        self.tell(f"{rate:.0%} of the packets of node {i} are lost, for 3 s")
        self.wires.lose(i, rate)
        self.pace.wait(3)
        self.wires.heal()

    def cut_off(self) -> None:
        i, seconds = self.random.randrange(3), self.random.choice([1.5, 6])
        self.tell(f"node {i} is cut off from pgpool, not from the others, for {seconds} s")
        self.wires.cut_off(i)
        self.pace.wait(seconds)
        self.wires.heal()

    def split(self) -> None:
        i, k = self.random.sample(range(3), 2)
        self.tell(f"nodes {i} and {k} do not hear each other for 5 s")
        self.wires.split(i, k)
        self.pace.wait(5)
        self.wires.heal()

    def terminate_sessions(self) -> None:
        i = self.random.randrange(3)
        n = self.cluster.nodes[i].ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = "
                                      "'client backend' and pid <> pg_backend_pid() and random() < 0.5", "-")
        self.tell(f"terminate {n} sessions of node {i}")

    def detach_and_attach(self) -> None:
        i = self.standby()
        first, second = self.pcp.run("detach_node", str(i)), self.pcp.run("attach_node", str(i))
        self.tell(f"detach and attach standby {i}: {first.returncode} {second.returncode}")

    def switch_over(self) -> None:
        i = self.standby()
        done = self.pcp.run("promote_node", "-s", str(i))
        self.tell(f"switch over to node {i}: {done.returncode} {done.stderr.strip()[:160]}")

    def kill_worker(self) -> None:
        titles = ("pcp", "health", "control", "monitor", "logger")
        self.kill_process("a worker", lambda title: not any(word in title for word in titles))

    def kill_monitor(self) -> None:
        self.kill_process("the monitor", lambda title: "health" in title or "monitor" in title)

    def kill_control(self) -> None:
        self.kill_process("the control process", lambda title: "pcp" in title or "control" in title)

    def kill_process(self, name: str, is_it) -> None:
        """A process of pgpool, told by its title."""
        found = waits.wait_for(f"{name} is there", lambda: [
            p for p in procs.children(self.pool.daemon.pid) if is_it(procs.command_line(p).lower())])
        pid = self.random.choice(found)
        self.tell(f"kill {name}, pid {pid}")
        stop_or_go(pid, signal.SIGKILL)

    def go(self, seconds: float) -> None:
        deeds = [self.kill_primary, self.kill_standby, self.restart_standby, self.freeze_standby, self.freeze_primary,
                 self.terminate_sessions, self.detach_and_attach, self.switch_over, self.kill_worker, self.kill_monitor,
                 self.kill_control, self.black_hole, self.latency]
        if isinstance(self.wires, Wires):
            deeds += [self.loss, self.cut_off, self.split]
        self.random.shuffle(deeds)
        done = 0
        while time.monotonic() < self.began + seconds or done < 3:
            deeds[done % len(deeds)]()
            done += 1
            self.pace.wait(self.random.uniform(0.2, 1.5))
            self.settle()
            self.tell("whole again")


def stop_or_go(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


@pytest.fixture(params=["relays", "namespaces"])
def cluster(request, monkeypatch):
    # A host that is gone says nothing: its standbys are to notice sooner than after a minute.
    conf = {"synchronous_standby_names": "" if ASYNC else SYNC, "synchronous_commit": "on" if request.param == "relays" else "remote_apply", "wal_receiver_timeout": "3s",
            "wal_sender_timeout": "3s", "wal_retrieve_retry_interval": "1s"}
    if request.param == "relays":
        monkeypatch.setenv("PGPOOL_SSH", str(fake_ssh()))
        it = Cluster(3, **conf)
        yield it
        it.end()
        return
    if lan.why_not():
        pytest.skip(lan.why_not())
    wire = lan.Lan(3, SEED)
    shell = lan.Shell(wire, postgres.OS_USER)
    monkeypatch.setenv("PGPOOL_SSH", str(shell.program))
    try:
        it = Cluster(3, wire, **conf)
        yield it
        wire.heal()
        it.end()
    finally:
        shell.close()
        wire.close()


@pytest.fixture
def wires(cluster):
    them = Relays(cluster) if cluster.wire is None else Wires(cluster)
    yield them
    them.close()


def check(cluster: Cluster, chaos: Chaos, load: crowd.Crowd, ended: float) -> None:
    done = load.acknowledged()
    primary = chaos.primary()
    assert primary is not None
    have = {int(row[0]) for row in cluster.nodes[primary].rows("select id from crowd")}
    lost = [d for d in done if d.id not in have]
    assert ASYNC or not lost, f"{len(lost)} of {len(done)} acknowledged writes are lost, the first one {lost[0]}"
    assert crowd.two_primaries(done) == ""
    wrong = [text for teller in [*load.tellers, *load.watchers] for text in teller.wrong]
    assert ASYNC or not wrong, f"{len(wrong)} reads went back, the first one: {wrong[0]}"
    for client in load.everybody():
        assert client.tally.done and client.tally.done[-1].ended > ended, f"a client was not served at the end: {client.tally.failed[-3:]}"


def kinds(failed: list[crowd.Failed]) -> str:
    """What went wrong how often."""
    count: dict[str, int] = {}
    for f in failed:
        count[f.text[:70]] = count.get(f.text[:70], 0) + 1
    return "; ".join(f"{n} x {text}" for text, n in sorted(count.items(), key=lambda one: -one[1]))


def by_scripts(pcp_port: int, monkeypatch) -> dict[str, object]:
    """Settings with which the sample scripts do what auto_promote does, and what these need."""
    tools = procs.folder("tools")
    tools.chmod(0o755)
    for name in ("attach_node", "detach_node", "recovery_node"):
        (tools / f"pcp_{name}").symlink_to(Path(proxy.pgpool_bin() or "").resolve().parent / "pcp")
    (tools / "pcppass").write_text("*:*:op:secret\n", encoding="ascii")
    (tools / "pcppass").chmod(0o600)
    for name, value in {"PGBIN": shadow.make_shadow(), "PCPPASSFILE": tools / "pcppass", "PGPOOL_PCP_USER": "op",
                        "PGPOOL_PCP_PORT": pcp_port, "PATH": f"{tools}:{os.environ['PATH']}"}.items():
        monkeypatch.setenv(name, str(value))
    home = shadow.TOP / "doc" / "examples" / "three-hosts"
    return {"failover_command": f"{home}/failover.sh %d %h %p %D %m %H %M %P %r %R %N %S",
            "follow_primary_command": f"{home}/follow_primary.sh %d %h %p %D %m %H %M %P %r %R", "auto_promote": False}


def test_chaos(cluster, wires, start_pool, monkeypatch):
    conf = cluster.pool_conf(auto_promote=True, load_balance_mode=True, health_check_max_retries=0, auto_failback_interval=1, health_check_timeout=3,
                             read_consistency="session" if cluster.wire is None else "global", connect_timeout=2000,
                             pool_mode=os.environ.get("PGT_CHAOS_POOL_MODE", "session"))
    if "PGT_CHAOS_SCRIPTS" in os.environ:
        conf |= by_scripts(conf["pcp_port"], monkeypatch)
    pool = start_pool(*wires.addresses, **conf)
    chaos = Chaos(pool, cluster, wires, SEED)
    cluster.nodes[0].rows(crowd.TABLE)
    chaos.settle()
    load = crowd.Crowd(pool.address, writers=4, readers=3, pause_s=0.02, tellers=2,
                       watchers=0 if cluster.wire is None else 2)
    load.start()
    try:
        chaos.go(SECONDS)
        ended = time.monotonic()
        waits.wait_for("every client is served", lambda: all(
            c.tally.done and c.tally.done[-1].ended > ended for c in load.everybody()), 60)
        load.stop()
        check(cluster, chaos, load, ended)
    except BaseException:
        for client in load.everybody():
            client.ending.set()
        print("\n".join(chaos.told))
        for node in cluster.nodes:
            print(node.last_words())
        raise
    print("\n".join(chaos.told))
    print(f"{len(load.acknowledged())} writes acknowledged, {sum(t.nreads for t in load.tellers)} reads of what was written, "
          f"{sum(w.nreads for w in load.watchers)} of what others wrote, {sum(w.nstandby for w in load.watchers)} of them on standbys; "
          f"writes failed: {kinds(load.errors(load.writers + load.tellers))}; reads failed: {kinds(load.errors(load.readers))}")
