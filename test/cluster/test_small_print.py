# SPDX-License-Identifier: PostgreSQL
"""test_small_print: sentences about the cluster that have no other test: pgpool_status read by pgpool-II and written
by it, failover_on_backend_shutdown, backend_flag, a host name whose address changes."""
import shutil
import signal
import subprocess
from contextlib import ExitStack

import pytest

from pgt import postgres, procs, waits
from pgt.proxy import Pgpool2, conf_text, pgpool_bin
from pgt.wire import SYNC, Wire, bind, execute, parse
from test_monitor import PERIOD, Trio, column, logged_in, pool_for, show, wait_settled
from test_balance_rules import extended as by_extended
from test_pcp import Side

PEER_PATH = "/usr/sbin:/usr/bin"
needs_peer = pytest.mark.skipif(shutil.which("pcp_node_info", path=PEER_PATH) is None, reason="pgpool-II is not installed")


@pytest.fixture
def trio():
    it = Trio(0)
    yield it
    it.stop()


@pytest.fixture
def alone():
    """A server that a test may stop."""
    pg = postgres.start_postgres(roles=False)
    yield pg
    pg.stop(signal.SIGQUIT)


class PeerTrio(Pgpool2):
    """pgpool-II in front of a trio, with the pgpool_status it finds."""

    def begin(self, trio, words: str) -> Side:
        port = procs.free_port()
        conf = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.home, "socket_dir": self.home,
                "pcp_listen_addresses": "127.0.0.1", "pcp_port": port, "pcp_socket_dir": self.home, "wd_ipc_socket_dir": self.home,
                "pid_file_name": self.home / "pgpool.pid", "logdir": self.home, "work_dir": self.home,
                "backend_clustering_mode": "streaming_replication", "num_init_children": 4, "sr_check_user": "postgres",
                "sr_check_period": 1, "failover_on_backend_error": False, "health_check_period": 0}
        for i, node in enumerate(trio.nodes):
            conf |= {f"backend_hostname{i}": "127.0.0.1", f"backend_port{i}": node.port, f"backend_weight{i}": 1}
        side = Side(self.home, port)
        (self.home / "pgpool.conf").write_text(conf_text(conf), encoding="utf-8")
        (self.home / "pgpool_status").write_text(words, encoding="utf-8")
        shutil.chown(self.home / "pgpool_status", "postgres")
        self.launch([shutil.which("pgpool", path=PEER_PATH), "-n", "-f", str(self.home / "pgpool.conf"), "-F",
                     str(self.home / "pcp.conf")], "postgres")
        waits.wait_for("its PCP answers", lambda: side.peer("node_count").stdout == "3\n", 60)
        return side


def statuses(side: Side) -> list[str]:
    """Of each server; "" when pgpool-II does not say: each failback begins its PCP process anew."""
    said = [side.peer("node_info", "-n", str(i)).stdout.split() for i in range(3)]
    return [words[2] if len(words) > 2 else "" for words in said]


@needs_peer
def test_status_file_goes_both_ways(trio, start_pool):
    """Our file takes a node out of pgpool-II's use; what pgpool-II writes is read, and not believed unseen."""
    pool = pool_for(start_pool, trio, health_check_test=True)
    wait_settled(pool, 0)
    (pool.home / "backend_down_request").write_text("1\tdown\n", encoding="utf-8")
    ours = pool.home / "pgpool_status"
    waits.wait_for("our file says so", lambda: ours.exists() and ours.read_text(encoding="utf-8") == "up\ndown\nup\n")
    pool.stop()
    peer = PeerTrio(procs.folder("pgpool2", "postgres"), procs.free_port())
    try:
        side = peer.begin(trio, ours.read_text(encoding="utf-8"))
        found = statuses(side)
        assert found[1] == "3" and "" != found[0] != "3" and "" != found[2] != "3", found
        assert side.peer("attach_node", "1").returncode == 0
        waits.wait_for("it is attached", lambda: statuses(side)[1] not in ("3", ""), 60)
        waits.wait_for("that is detached", lambda: side.peer("detach_node", "2").returncode == 0)
        theirs = peer.home / "pgpool_status"
        waits.wait_for("their file says so", lambda: theirs.read_text(encoding="utf-8").split() == ["up", "up", "down"], 60)
    finally:
        peer.stop()
    home = procs.folder("work")
    shutil.copyfile(theirs, home / "pgpool_status")
    again = pool_for(start_pool, trio, work_dir=home)
    wait_settled(again, 0)
    waits.wait_for("the file says what is so", lambda: (home / "pgpool_status").read_text(encoding="utf-8") == "up\n" * 3)


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_drop_database_closes_its_free_links(alone, start_pool, mode, extended):
    """In every worker, and those to other databases stay."""
    for name in ("one", '"Two, with force"'):
        alone.rows(f"create database {name}")
    pool = start_pool(alone.address, pool_mode=mode, worker_fill=0)
    crowd = [Wire(pool.address) for _ in range(8)]
    for i, w in enumerate(crowd):
        assert w.login(database=("one", "Two, with force")[i % 2])[-1].type == "Z"
        w.rows("begin")
    for w in crowd:
        w.rows("commit")
        w.bye()
    gone(pool, "one", "Two, with force")
    with logged_in(pool) as w:
        w.rows("select 1")
        kept = set(alone.sessions("datname = 'one'"))
        assert kept and alone.sessions("datname = 'Two, with force'")
        text = 'drop database "Two, with force"'
        found = by_extended(w, text) if extended else w.simple(text)
        assert [m.type for m in found if m.type == "E"] == [], found
        assert set(alone.sessions("datname = 'one'")) >= kept, "one that was being opened may be there by now"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_what_needs_a_database_to_itself_closes_its_free_links(alone, start_pool, mode):
    """A copy of it (CREATE DATABASE copies template1 where it names no other), its new name, and its new place."""
    told = f"told_{mode}"
    alone.rows(f'create database "{told}"')
    pool = start_pool(alone.address, pool_mode=mode, num_init_children=2)
    with logged_in(pool) as w:
        for text, what in ((f"create database {told}_1", "template1"), (f"CREATE /* a */  DATABASE {told}_2 WITH TEMPLATE = '{told}'", told),
                           (f"create database {told}_3 template {told} encoding 'UTF8'", told),
                           (f"alter database {told} rename to {told}_4", told), (f"alter database {told}_4 set tablespace pg_default", f"{told}_4")):
            visit(pool, what, what)
            assert alone.sessions(f"datname = '{what}'")
            found = w.simple(text)
            assert [m.fields for m in found if m.type == "E"] == [], text
    for i in (1, 2, 3, 4):
        alone.rows(f"drop database {told}_{i} with (force)")


def gone(pool, *databases: str) -> None:
    """No client is there any more: who has said goodbye has its link until that is read."""
    waits.wait_for("they have gone", lambda: not [r for r in show(pool, "POOL_CLIENTS") if r["database"] in databases])


def visit_beside(pool, name: str) -> None:
    """As visit, while another client is there and stays."""
    with Wire(pool.address) as w:
        assert w.login(database=name)[-1].type == "Z"
        w.rows("begin")
        w.rows("commit")
    waits.wait_for("it has gone", lambda: len([r for r in show(pool, "POOL_CLIENTS") if r["database"] == name]) == 1)


def visit(pool, *databases: str) -> None:
    """Leaves a free link to each."""
    crowd = [Wire(pool.address) for _ in databases]
    for w, name in zip(crowd, databases):
        assert w.login(database=name)[-1].type == "Z"
        w.rows("begin")
    for w in crowd:
        w.rows("commit")
        w.bye()
    gone(pool, *databases)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_drop_database_however_it_is_said(alone, start_pool, mode):
    """Behind comments, in a string of several, prepared before, and while a link is being cleaned."""
    names = [f"dropped_{mode}_{i}" for i in range(5)]
    for name in names:
        alone.rows(f"create database {name}")
    pool = start_pool(alone.address, pool_mode=mode, reset_query_list="select pg_sleep(0.4);DISCARD ALL")

    def links(name: str) -> list[int]:
        return alone.sessions(f"datname = '{name}'")

    def dropped(found) -> None:
        assert [m.fields for m in found if m.type == "E"] == [], found
    with logged_in(pool) as w:
        visit(pool, names[0], names[4])
        kept = links(names[4])
        waits.wait_for("the links are free", lambda: set(alone.sessions("state = 'idle' and query like 'DISCARD%'"))
                       >= set(kept) or mode == "transaction")
        dropped(w.simple(f"/* a /* nested */ one */ -- and 'another'\n\tdrop database {names[0]}"))
        visit(pool, names[1])  # in session mode it is being cleaned now
        dropped(w.simple(f"DROP DATABASE {names[1]};"))
        w.send(parse(f"drop database if exists {names[2]}", "later") + SYNC)
        dropped(w.ready())
        visit(pool, names[2], names[2])
        w.send(bind(name="later") + execute() + SYNC)
        dropped(w.ready())
        # Refused: free links have gone all the same; one that was in use is used on.
        with Wire(pool.address) as user:
            user.login(database=names[3])
            user.rows("begin")
            in_use = user.rows("select pg_backend_pid()")
            visit_beside(pool, names[3])
            (refused,) = [m for m in w.simple(f"select 1; drop database {names[3]}") if m.type == "E"]
            assert refused.fields["C"] == "25001"
            user.rows("commit")
            assert user.rows("select pg_backend_pid()") == in_use
        if mode == "transaction":
            waits.wait_for("the others have gone", lambda: links(names[3]) == [int(in_use[0][0])])
        assert set(links(names[4])) >= set(kept)


def test_failover_on_backend_error(alone, start_pool):
    """A connection of a client's that broke and one failed probe are a loss with the setting, and only the first round of
    many without; the next probes are a long way off."""
    pools = [start_pool(alone.address, failover_on_backend_error=counts, health_check_period=60, health_check_max_retries=9,
                        health_check_retry_delay=60) for counts in (True, False)]
    for pool in pools:
        waits.wait_for("it is up", lambda pool=pool: column(pool, "status") == ["up"])
        assert "health check" not in pool.log()
    with logged_in(pools[0]) as one, logged_in(pools[1]) as other:
        one.rows("select 1")
        other.rows("select 1")
        alone.stop(signal.SIGKILL)
        waits.wait_for("it is lost", lambda: "health check failed on node 0" in pools[0].log())
        waits.wait_for("it is asked again", lambda: "health check retrying on DB node: 0 (round:1)" in pools[1].log())
    assert "retrying" not in pools[0].log() and "failed on node" not in pools[1].log()


@pytest.mark.parametrize("mode", ["session", "transaction", "free"])
@pytest.mark.parametrize("counts", [True, False], ids=["on", "off"])
def test_failover_on_backend_shutdown(alone, start_pool, counts, mode):
    """A server that is stopping still answers. It is lost at once with the setting, and not without; the end of a free link
    is enough to look. Ends of sessions alone are no loss."""
    ends = ("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' "
            "and pid <> pg_backend_pid()")
    said = "node 0 says that it is stopping: it is detached"
    pool = start_pool(alone.address, pool_mode="session" if mode == "session" else "transaction",
                      failover_on_backend_shutdown=counts, **PERIOD)
    waits.wait_for("it is up", lambda: column(pool, "status") == ["up"])
    with ExitStack() as stack, Wire(alone.socket) as guest, logged_in(pool) as early:
        assert guest.login()[-1].type == "Z"
        early.rows("select 1")
        guest.rows(ends)
        waits.holds_for("it is kept", lambda: column(pool, "status") == ["up"] and said not in pool.log(), 0.5)
        client = stack.enter_context(logged_in(pool))
        if mode == "transaction":
            client.simple("begin")
        client.rows("select 1")
        alone.daemon.signal(signal.SIGTERM)  # smart: who is there may stay

        def refuses() -> bool:
            with Wire(alone.socket) as late:
                return late.login()[-1].type == "E"
        waits.wait_for("it takes nobody new", refuses)
        guest.rows(ends)
        if counts:
            waits.wait_for("it is detached", lambda: said in pool.log())
        else:
            waits.holds_for("it is kept", lambda: said not in pool.log() and "health check failed" not in pool.log(), 3)


def told(pool) -> list[tuple[str, str, str]]:
    return [(e["node_id"], e["event"], e["actor"]) for e in show(pool, "POOL_EVENTS")]


def test_events_name_who(trio, start_pool):
    """What operators do and what happens by itself; a detach keeps who, when and why over a restart."""
    home = procs.folder("work")
    port = procs.free_port()
    names = {f"backend_application_name{i}": f"node{i}" for i in range(3)}
    pool = start_pool(*[n.address for n in trio.nodes[:2]], **PERIOD, **names, work_dir=home, auto_promote=True,
                      pcp_listen_addresses="127.0.0.1", pcp_port=port)
    pcp = Side(pool.home, port)
    waits.wait_for("two are up", lambda: column(pool, "status") == ["up"] * 2 and column(pool, "role") == ["primary", "standby"])
    pool.reload(backend_hostname2="127.0.0.1", backend_port2=trio.nodes[2].port, backend_weight2=1)
    wait_settled(pool, 0)
    pcp.ok("detach_node", "1")
    pcp.ok("attach_node", "1")
    wait_settled(pool, 0)
    op = "PCP user op"
    expected = [
        ("2", "standby", "monitor"), ("1", "detach", op), ("1", "failover", op), ("1", "failover_done", "monitor"),
        ("1", "attach", op), ("1", "failback", op), ("1", "failback_done", "monitor")]
    waits.wait_for("all is told", lambda: len(told(pool)) >= 2 + len(expected))
    assert told(pool)[2:] == expected
    pcp.ok("detach_node", "1")
    (when,) = waits.wait_for("it is told", lambda: {e["time"] for e in show(pool, "POOL_EVENTS")[9:10] if e["event"] == "detach"})
    pool.stop()
    (home / "pgpool_status.held").write_text((home / "pgpool_status.held").read_text().rstrip() + "\tnew disk\n")
    pool.start()
    waits.wait_for("it is known again", lambda: column(pool, "status") == ["up", "down", "up"] and column(pool, "role")[0] == "primary")
    first = show(pool, "POOL_EVENTS")[0]
    assert (first["time"], first["node_id"], first["event"], first["cause"], first["actor"]) == (when, "1", "detach", "new disk", op)
    pcp.ok("attach_node", "1")
    wait_settled(pool, 0)
    waits.wait_for("its failback is over", lambda: told(pool)[-1][1] == "failback_done")
    seen = len(told(pool))
    trio.nodes[0].stop(signal.SIGKILL)
    waits.wait_for("another is the primary", lambda: "primary" in column(pool, "role")[1:] and "failover_done" in
                   [e for _, e, _ in told(pool)[seen:]])
    new = str(column(pool, "role").index("primary"))
    for event in (("0", "down", "monitor"), ("0", "failover", "monitor"), (new, "promote", "monitor"), (new, "primary", "monitor"),
                  (new, "failover_done", "monitor")):
        waits.wait_for(f"{event} is told", lambda event=event: event in told(pool)[seen:])


def test_flag_disallow_to_failover(trio, start_pool):
    """A lost server that somebody else looks after stays in use; one with the default does not."""
    pool = pool_for(start_pool, trio, backend_flag1="DISALLOW_TO_FAILOVER", backend_flag2="ALLOW_TO_FAILOVER")
    wait_settled(pool, 0)
    for at in (1, 2):
        trio.nodes[at].stop(signal.SIGQUIT)
    said = "health check failed on node 1 but failover is disallowed for the node"
    waits.wait_for("it is told, and the other is lost", lambda: said in pool.log() and column(pool, "status")[2] == "down", 60)
    waits.holds_for("the flagged one stays", lambda: column(pool, "status") == ["up", "up", "down"], 3)
    assert pool.log().count(said) == 1
    for at in (1, 2):
        trio.nodes[at].start()
    wait_settled(pool, 0)


def test_flag_always_primary(trio, start_pool):
    """Whatever servers say of themselves, the flagged one is the primary, also when it is a standby."""
    pool = pool_for(start_pool, trio, backend_flag1="ALWAYS_PRIMARY")
    waits.wait_for("the flag counts", lambda: column(pool, "role")[1] == "primary")
    waits.holds_for("nobody else is", lambda: column(pool, "role").count("primary") == 1 and
                    column(pool, "role")[1] == "primary", 3)


def listening(pg: postgres.Postgres) -> None:
    """Starts a server that listens at 127.0.0.2."""
    command, user = pg.entered([str(postgres.bindir() / "postgres"), "-D", str(pg.data)])
    pg.daemon = procs.Daemon(command, pg.data.parent / "postgres.log", user)

    def answers() -> bool:
        try:
            with Wire(pg.socket) as w:
                return w.login()[-1].type == "Z"
        except OSError:
            return False
    waits.wait_for("the server at 127.0.0.2 answers", answers, 60)


def may_hide_hosts() -> bool:
    done = subprocess.run(["unshare", "-m", "mount", "--bind", "/etc/hosts", "/etc/hosts"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.skipif(not shutil.which("unshare") or not may_hide_hosts(), reason="mount namespaces are not permitted here")
def test_a_name_gets_another_address(start_pool, monkeypatch):
    """pgpool sees a hosts file of the test's own. Two servers share a port, at two addresses of the loopback."""
    home = procs.folder("names")
    hosts = home / "hosts"
    hosts.write_text("127.0.0.1 localhost moving.test\n", encoding="ascii")
    wrapper = home / "pgpool"
    wrapper.write_text("#!/bin/sh\nexec unshare -m sh -c 'hosts=$1; program=$2; shift 2; mount --bind \"$hosts\" /etc/hosts && "
                       f"exec \"$program\" \"$@\"' sh '{hosts}' '{pgpool_bin()}' \"$@\"\n", encoding="utf-8")
    wrapper.chmod(0o755)
    old = postgres.start_postgres(roles=False)
    later = procs.folder("later", postgres.OS_USER)
    postgres.copy_template(later / "data")
    new = postgres.Postgres(later / "data", old.port)
    new.write_conf({"listen_addresses": "127.0.0.2", "cluster_name": "later"})
    monkeypatch.setenv("PGPOOL_BIN", str(wrapper))
    pool = start_pool(old.address, backend_hostname0="moving.test", **PERIOD)
    try:
        waits.wait_for("it is up", lambda: column(pool, "status") == ["up"])
        with logged_in(pool) as client:
            assert client.value("show cluster_name") == ""
        # The name is not known for a while: whoever comes is told so, and the server is not lost by it.
        hosts.write_text("127.0.0.1 localhost\n", encoding="ascii")
        with Wire(pool.address, seconds=60) as late:
            refusal = late.login(user="plain_user")[-1]
            assert refusal.type == "E" and "moving.test" in refusal.text, refusal.fields
        waits.holds_for("it is up", lambda: "health check failed on node 0" not in pool.log(), 2)
        hosts.write_text("127.0.0.1 localhost moving.test\n", encoding="ascii")
        old.stop(signal.SIGQUIT)
        waits.wait_for("the loss is seen", lambda: "health check failed on node 0" in pool.log(), 60)
        listening(new)
        waits.holds_for("the old address is dead", lambda: "request auto failback" not in pool.log(), 2)
        hosts.write_text("127.0.0.1 localhost\n127.0.0.2 moving.test\n", encoding="ascii")
        waits.wait_for("it is used again", lambda: column(pool, "status") == ["up"], 60)
        with logged_in(pool) as client:
            assert client.value("show cluster_name") == "later"
        # A server that goes on answering is left, too, when its name is another's.
        old.start()
        hosts.write_text("127.0.0.1 localhost moving.test\n", encoding="ascii")
        waits.wait_for("the other one is asked", lambda: old.sessions("application_name = 'pgpool monitor'"), 60)
    finally:
        for pg in (old, new):
            pg.stop(signal.SIGQUIT)
