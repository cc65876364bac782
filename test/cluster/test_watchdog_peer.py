# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_peer: the address of three pgpools whose leader is killed, or stopped by a signal, and of three of pgpool-II in the same
place: how long until another host answers, and whether the old one still does. Figures; ours has to be the only one that answers."""
import contextlib
import os
import shutil
import signal

import pytest

from pgt import ether, procs, waits
from watchdog_lab import V4, clusters

PEER = shutil.which("pgpool", path="/usr/sbin")
PEER_CONF = {
    "if_cmd_path": "/sbin", "if_up_cmd": "/sbin/ip addr add $_IP_$/24 dev eth0 label eth0:0", "if_down_cmd": "/sbin/ip addr del $_IP_$/24 dev eth0",
    "arping_path": "/usr/bin", "arping_cmd": "/usr/bin/arping -U $_IP_$ -w 1 -I eth0", "ping_path": "/bin", "wd_lifecheck_method": "heartbeat"}
ROUNDS = int(os.environ.get("PGT_ROUNDS", "10"))
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def start_peer(hosts: list[ether.Host], number: int) -> procs.Daemon:
    home = procs.folder("pgpool2")
    conf: dict[str, object] = {
        "listen_addresses": "*", "port": 9999, "socket_dir": home, "pcp_socket_dir": home, "wd_ipc_socket_dir": home, "pid_file_name": home / "pgpool.pid",
        "logdir": home, "work_dir": home, "num_init_children": 4, "backend_clustering_mode": "streaming_replication", "health_check_period": 0,
        "sr_check_period": 0, "backend_hostname0": "192.0.2.250", "backend_port0": 5432, "use_watchdog": "on", "delegate_IP": V4, "wd_authkey": "key", **PEER_CONF}
    for i, host in enumerate(hosts):
        conf |= {f"hostname{i}": host.address, f"wd_port{i}": 9000, f"pgpool_port{i}": 9999, f"heartbeat_hostname{i}": host.address, f"heartbeat_port{i}": 9694}
    (home / "pgpool.conf").write_text("".join(f"{name} = '{value}'\n" for name, value in conf.items()), encoding="ascii")
    (home / "pgpool_node_id").write_text(f"{number}\n", encoding="ascii")
    for name in ("pcp.conf", "pool_hba.conf"):
        (home / name).touch()
    return procs.Daemon([*hosts[number].enter(), str(PEER), "-n", "-f", str(home / "pgpool.conf"), "-F", str(home / "pcp.conf"), "-a",
                         str(home / "pool_hba.conf")], home / "log")


@pytest.fixture
def net():
    reason = ether.why_not()
    if reason:
        pytest.skip(reason)
    with contextlib.closing(ether.Ether(4)) as it:
        yield it


@pytest.mark.parametrize("how", SIGNALS)
@pytest.mark.parametrize("election_ms", [100, 500])
def test_ours(net, how, election_ms):
    with clusters(net) as make:
        c = make(wd_election_timeout=f"{election_ms}ms")
        began = waits.now()
        old = c.start()
        print(f"\nwd_election_timeout {election_ms} ms: first answer after {waits.now() - began:.2f} s")
        began = waits.now()
        c.members[old].signal(SIGNALS[how])
        new = c.wait_holder((old,))
        print(f"the leader is {how}: another answers after {c.first_answer(new, began) - began:.2f} s")
        waits.holds_for("the old one has it not", lambda: not c.hosts[old].has(V4), 3)
        assert c.history() == [old, new]


@pytest.mark.parametrize("election_ms", [100, 500])
def test_our_watchdog_alone(net, election_ms):
    """Its supervisor starts another one, which says that the address is not there."""
    with clusters(net) as make:
        c = make(wd_election_timeout=f"{election_ms}ms")
        c.start()
        seconds = []
        for _ in range(ROUNDS):
            _, after = c.kill_watchdog()
            seconds += [after] if after else []
        print(f"\nwd_election_timeout {election_ms} ms: the leader's watchdog alone is killed: another answers after "
              + ", ".join(f"{s:.2f}" for s in sorted(seconds)) + " s")
        assert seconds


@pytest.mark.skipif(PEER is None, reason="pgpool-II is not installed")
@pytest.mark.parametrize("how", SIGNALS)
def test_pgpool_ii(net, how):
    if not all(os.path.exists(p) for p in ("/bin/ping", "/usr/bin/arping")):
        pytest.skip("pgpool-II needs ping and arping")
    hosts = net.hosts[:3]
    began = waits.now()
    daemons = [start_peer(hosts, i) for i in range(3)]
    try:
        with contextlib.closing(ether.Asker(net.hosts[3], [V4])) as asker:
            waits.wait_for("somebody answers", lambda: asker.holders(V4), 60)
            print(f"\npgpool-II: first answer after {waits.now() - began:.2f} s")
            old = next(i for i, h in enumerate(hosts) if h.mac == asker.holders(V4)[0])
            began = waits.now()
            for pid in procs.session_pids(daemons[old].pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, SIGNALS[how])
            waits.wait_for("another answers", lambda: len(asker.holders(V4)) > 1, 90)
            print(f"the leader is {how}: another answers after {waits.now() - began:.2f} s, beside the old one: {hosts[old].has(V4)}")
    finally:
        for daemon in daemons:
            for pid in procs.session_pids(daemon.pid):
                with contextlib.suppress(ProcessLookupError):
                    procs.go_on(pid)
            daemon.kill()
