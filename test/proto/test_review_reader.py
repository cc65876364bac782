# SPDX-License-Identifier: PostgreSQL
"""test_review_reader: a standby that accepts and says nothing, or dies, and what waits meanwhile."""
import re
import socket
import sys
from pathlib import Path

import pytest

from pgt import fake as fakes
from pgt import procs, waits
from pgt.relay import CHUNK, Relay
from pgt.wire import SYNC, Address, Wire, bind, describe, execute, parse, query

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
from test_monitor import Trio, pool_for, wait_settled  # noqa: E402  pylint: disable=wrong-import-position

SLOW_READ = "select count(*) from t, generate_series(1, 8000000)"


@pytest.fixture(scope="module")
def cluster():
    it = Trio(0)
    it.keep_in_step()
    it.primary.rows("create table t(a int)")
    it.primary.rows("insert into t values (7)")
    yield it
    it.stop()


@pytest.fixture
def pool(cluster, start_pool):
    one = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=0,
                   backend_weight1=1, backend_weight2=0, connect_timeout=3000)
    wait_settled(one, 0)
    return one


def login(pool) -> Wire:
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    return w


def in_transaction(node) -> int:
    """The one session that is in a transaction; that of a client before it may have yet to end."""
    def one() -> int | None:
        found = node.sessions("state = 'idle in transaction'")
        return found[0] if len(found) == 1 else None
    return waits.wait_for("there is one", one)


def test_standby_that_is_silent(cluster, pool):
    """The postmaster is stopped: the kernel accepts, nobody answers. The read must be made elsewhere."""
    w = login(pool)
    node = cluster.nodes[1]
    procs.stand_still(node.daemon.pid)
    try:
        assert w.rows("select a from t") == [[b"7"]]
    finally:
        procs.go_on(node.daemon.pid)
        w.bye()


def test_notifications_while_a_read_runs_are_bounded(cluster, pool):
    """The read lasts as long as the test wants: its server process is stopped."""
    w = login(pool)
    w.simple("listen news")
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    reader, = cluster.nodes[1].held("query like 'select inet_server_port()%'")
    workers = pool.pids()
    before = {p: procs.memory_kb(p) for p in workers}
    procs.stand_still(reader)
    try:
        w.send(query("select count(*) from t"))
        for _ in range(12):
            cluster.primary.rows("select pg_notify('news', i || repeat('x', 7900)) from generate_series(1, 1000) i")
        grown = max(procs.memory_kb(p) - before[p] for p in workers)
    finally:
        procs.go_on(reader)
    found = w.ready(seconds=40)
    assert [m.type for m in found if m.type != "A"] == ["T", "D", "C", "Z"]
    w.bye()
    assert grown < 20000, f"{grown} kB"


def test_a_wake_while_the_standby_is_asked(cluster, start_pool):
    """The reader is being asked how far it has replayed when something else wakes the parked read (a notification in two
    pieces, the last words of the own server process), which by then need not wait: others know the answer. The end of our
    question was taken for that of the read; the next statement got an error, and then its answer as well."""
    pool = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=0, backend_weight1=1,
                    backend_weight2=0, read_consistency="session", read_consistency_wait=20000)
    wait_settled(pool, 0)
    read = "select a, inet_server_port() from t where a = 7"
    at_standby = [[b"7", str(cluster.nodes[1].port).encode()]]
    w, other = login(pool), login(pool)
    w.simple("listen wake")
    w.simple("set synchronous_commit = local")
    assert w.rows(read) == at_standby
    reader, = cluster.nodes[1].held("query like 'select a, inet_server_port()%'")
    cluster.nodes[1].rows("select pg_wal_replay_pause()")
    try:
        w.rows("insert into t values (8)")
        w.send(query(read))
        waits.wait_for("the standby is asked", lambda: cluster.nodes[1].sessions(f"pid = {reader} and query like 'WITH RECURSIVE%'"))
        procs.stand_still(reader)
        cluster.nodes[1].rows("select pg_wal_replay_resume()")
        other.rows("insert into t values (9)")
        assert other.rows(read) == at_standby
        cluster.primary.rows("select pg_notify('wake', i || repeat('x', 7900)) from generate_series(1, 60) i")
    finally:
        procs.go_on(reader)
        cluster.nodes[1].rows("select pg_wal_replay_resume()")
    found = w.ready()
    assert [m.row()[0] for m in found if m.type == "D"] == [b"7"], "at home, while half a notification is told"
    for _ in range(60 - sum(m.type == "A" for m in found)):
        w.read_until("A")
    assert w.rows("insert into t values (10) returning a") == [[b"10"]]
    assert w.rows("delete from t where a <> 7 returning 1") is not None
    w.bye()
    other.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_read_in_the_way_of_replay(cluster, start_pool, mode):
    """The standby cancels a read that holds a lock which replay wants: the client has seen nothing yet, and the primary
    answers. A read of a transaction is told."""
    pool = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=0, backend_weight1=1,
                    backend_weight2=0, pool_mode=mode, read_only_function_list="pg_sleep,pg_is_in_recovery,inet_server_port")
    wait_settled(pool, 0)
    read = "select inet_server_port(), pg_sleep(case when pg_is_in_recovery() then 30 else 0 end) from t where a = 7"
    standby = cluster.nodes[1]
    standby.rows("alter system set max_standby_streaming_delay = 0")
    standby.reload()
    w = login(pool)
    try:
        for messages in (query(read), parse(read) + bind() + execute() + SYNC):
            w.send(messages)
            waits.wait_for("it runs", lambda: standby.sessions("wait_event = 'PgSleep'"), 10)
            cluster.primary.rows("begin; lock table t in access exclusive mode; commit")
            assert [m.row()[0] for m in w.ready() if m.type == "D"] == [str(cluster.primary.port).encode()]
            w.bye()
            w = login(pool)  # a session that has met a conflict reads at home for a while
        w.simple("begin read only")
        w.send(query(read))
        waits.wait_for("it runs", lambda: standby.sessions("wait_event = 'PgSleep'"), 10)
        cluster.primary.rows("begin; lock table t in access exclusive mode; commit")
        assert [m.fields["C"] for m in w.ready() if m.type == "E"] == ["40001"]
        w.simple("rollback")
        assert w.value("select 2") == "2"
    finally:
        standby.rows("alter system reset max_standby_streaming_delay")
        standby.reload()
        w.bye()


def test_reader_dies_with_a_sync_behind(cluster, pool):
    """Whatever becomes of the read, the Sync behind it has its answer, too."""
    w = login(pool)
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    w.send(parse(SLOW_READ) + bind() + execute() + SYNC + SYNC)
    waits.wait_for("it runs", lambda: cluster.nodes[1].sessions("state = 'active'"))
    cluster.nodes[1].rows("select pg_terminate_backend(pid) from pg_stat_activity where state = 'active' "
                          "and pid <> pg_backend_pid() and backend_type = 'client backend'")
    w.ready(seconds=100)
    assert w.ready(seconds=20)[-1].type == "Z"
    assert w.value("select 'after'") == "after"
    w.bye()


def test_extended_read_is_made_again(cluster, pool):
    """The standby ends the session before it has sent a row: ParseComplete and BindComplete, which come in
    one packet with its last words, are no answer yet."""
    w = login(pool)
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    w.send(parse(SLOW_READ) + bind() + execute() + SYNC)
    waits.wait_for("it runs", lambda: cluster.nodes[1].sessions("state = 'active'"))
    cluster.nodes[1].rows("select pg_terminate_backend(pid) from pg_stat_activity where state = 'active' "
                          "and pid <> pg_backend_pid() and backend_type = 'client backend'")
    assert [m.type for m in w.ready(seconds=100)] == ["1", "2", "D", "C", "Z"]
    w.bye()


END_OF = {"simple": (query, ""),
          "extended": (lambda word: parse(word) + bind() + execute() + SYNC, "12"),
          "described": (lambda word: parse(word) + bind() + describe("", "P") + execute() + SYNC, "12n"),
          "new": (lambda word: parse(word, f"n {word}") + bind(name=f"n {word}") + execute() + SYNC, "12"),
          "more": (lambda word: parse(word) + bind() + execute() + parse("insert into behind values (8)") + bind() + execute()
                   + SYNC, "12")}


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_end_of_a_read_only_transaction_that_is_lost(cluster, start_pool, mode):
    """Its standby ends it between two statements. In all pool modes and both protocols COMMIT is an error, for nothing of
    it holds, and it is over then; who rolls back need not be told; all else fails, until the transaction is ended."""
    node = cluster.nodes[1]
    pool = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=0, backend_weight1=1,
                    backend_weight2=0, pool_mode=mode, virtual_begin=False)
    wait_settled(pool, 0)
    cluster.primary.rows("drop table if exists behind")
    cluster.primary.rows("create table behind(a int)")
    other = login(pool)
    inserted = 0

    def lost() -> Wire:
        """One that has not met the standby's end before: it would keep away from it for a while."""
        w = login(pool)
        seen = len(pool.log())
        w.simple("set work_mem = '5MB'")
        w.rows("begin read only")
        assert w.value("select inet_server_port() from t") == str(node.port)
        assert w.simple("set work_mem = '6MB'")[-1].body == b"T"
        pid = in_transaction(node)
        node.rows(f"select pg_terminate_backend({pid})")
        waits.wait_for("it is lost", lambda: "was lost with its standby" in pool.log()[seen:] if mode == "session" else
                       b"%d" % pid not in [row[9] for row in other.rows("show pool_clients")])
        return w

    for how, (say, front) in END_OF.items():
        for word in ("commit", "rollback"):
            w = lost()
            w.send(say(word))
            found = [m for m in w.ready() if m.type != "S"]
            types, errors = "".join(m.type for m in found), [m.fields["C"] for m in found if m.type == "E"]
            if word == "commit":
                assert (types, errors, found[-1].body) == (front + "EZ", ["08006"], b"I"), how
            elif how != "more":
                assert (types, found[-1].body) == (front + "CZ", b"I"), how
            else:
                inserted += errors == []
                assert errors in ([], ["08006"])
            if found[-1].body != b"I":
                w.rows("rollback")
            assert w.value("show work_mem") == "5MB", how
            if how == "new":
                w.send(bind(name=f"n {word}") + SYNC)
                assert [m.type for m in w.ready()] == ["2", "Z"]
            w.bye()
    for messages in (query("select 1"), parse("select 1") + bind() + execute() + SYNC,
                     parse("select 1") + bind() + execute() + parse("commit") + bind() + execute() + SYNC,
                     query("commit; select 1"), query("commit and chain"), parse("commit") + SYNC):
        w = lost()
        w.send(messages)
        found = w.ready()
        assert ([m.fields["C"] for m in found if m.type == "E"], found[-1].body) == (["08006"], b"E"), messages
        w.send(END_OF["extended"][0]("commit"))
        found = w.ready()
        assert ([m.body for m in found if m.type == "C"], found[-1].body) == ([b"ROLLBACK\0"], b"I"), messages
        assert w.value("show work_mem") == "5MB"
        w.bye()
    assert cluster.primary.value("select count(*) from behind") == str(inserted), "none behind an error"
    other.bye()


@pytest.mark.parametrize("how", ["simple", "extended", "new"])
def test_rollback_whose_standby_dies(cluster, pool, how):
    """It is an error, and the next one is done."""
    say, _ = END_OF[how]
    w = login(pool)
    w.rows("begin read only")
    assert w.value("select inet_server_port() from t where a = 7") == str(cluster.nodes[1].port)
    pid = in_transaction(cluster.nodes[1])
    procs.stand_still(pid)
    try:
        w.send(say("rollback"))
        assert w.is_quiet(0.2)
        cluster.nodes[1].rows(f"select pg_terminate_backend({pid})")
    finally:
        procs.go_on(pid)
    found = w.ready()
    assert ([m.fields["C"] for m in found if m.type == "E"], found[-1].body) in ((["57P01"], b"E"), (["08006"], b"E"))
    assert w.simple("rollback")[-1].body == b"I"
    assert w.value("select 2") == "2"
    w.bye()


def test_lines_about_a_server_connection_obey_the_session(cluster, pool):
    """PGPOOL SET log_min_messages also holds for what is said about the connections of the session. That nothing logs in to a
    standby is said of a user once an hour, and of each session by PGPOOL EXPLAIN and SHOW POOL_CLIENTS."""
    cluster.primary.rows("create role asked login password 'asked'; grant select on t to asked")
    node = cluster.nodes[1]
    hba = node.data / "pg_hba.conf"
    before = hba.read_text(encoding="utf-8")
    hba.write_text("host all asked all scram-sha-256\n" + before, encoding="utf-8")
    node.reload()

    def reason(w: Wire) -> str:
        return next(r for r in w.rows("show pool_clients") if b"show pool_clients" in r and (w is other) == (b"postgres" == r[2]))[-1].decode()

    other = Wire(pool.address, seconds=20)
    other.login()

    def reads(*settings: str) -> list[str]:
        seen = len(pool.log())
        w = Wire(pool.address, seconds=20)
        w.login(user="asked")
        assert reason(w) == ""
        for setting in settings:
            w.rows(f"pgpool set {setting}")
        assert w.rows("select a from t") == [[b"7"]]
        assert reason(w) == "nothing is known to log in to a standby with"
        node_id, role, _, why = w.rows("pgpool explain select a from t")[0][:4]
        assert (node_id, role) == (b"0", b"primary") and b"auth_query" in why
        assert not reason(other)
        w.bye()
        return [line for line in pool.log()[seen:].splitlines() if "reads of this session stay on node 0" in line]
    try:
        assert len(reads()) == 1 and not reads()
        assert len(reads("log_min_messages = 'debug1'")) == 1
        assert "could not log in" not in pool.log(), "that line says no more, at each session"
    finally:
        hba.write_text(before, encoding="utf-8")
        node.reload()


def test_who_keeps_a_connection_for_want_of_a_password_is_told_of_once(cluster, start_pool):
    """Transaction mode, a login that the server judged: of each user and database once an hour, not at each login."""
    cluster.primary.rows("create role kept login password 'kept'")
    node = cluster.nodes[0]
    hba = node.data / "pg_hba.conf"
    before = hba.read_text(encoding="utf-8")
    hba.write_text("host all kept all scram-sha-256\n" + before, encoding="utf-8")
    node.reload()
    pool = start_pool(node.address, pool_mode="transaction", auth_learn_keys="off")

    def logs_in(database: str) -> bool:
        with Wire(pool.address, seconds=20) as w:
            return w.login(user="kept", password="kept", database=database)[-1].type == "Z"
    try:
        waits.wait_for("the server asks", lambda: logs_in("postgres") and "keeps a server connection" in pool.log(), 20)
        assert all(logs_in(name) for name in ("postgres", "postgres", "template1"))
        waits.wait_for("the other database, too", lambda: pool.log().count('user "kept" keeps a server connection') == 2, 20)
    finally:
        hba.write_text(before, encoding="utf-8")
        node.reload()


def test_one_setting_lets_password_users_read_on_standbys(cluster, start_pool):
    """Servers that ask for passwords: reads stay on the primary, the log names the setting, and with that they leave. A wrong
    password is refused as before."""
    cluster.primary.rows("create role by_password login password 'by_password'; grant select on t to by_password")
    before = [(node, (node.data / "pg_hba.conf").read_text(encoding="utf-8")) for node in cluster.nodes]

    def port() -> str:
        w = Wire(pool.address, seconds=20)
        if w.login(user="by_password", password="by_password")[-1].type == "E":
            return "refused"  # it met the reload half way
        found = w.value("select inet_server_port() from t")
        w.bye()
        return found

    try:
        for node, text in before:
            (node.data / "pg_hba.conf").write_text("host all by_password all scram-sha-256\n" + text, encoding="utf-8")
            node.reload()
        pool = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=0,
                        backend_weight1=1, backend_weight2=0, connect_timeout=3000, sr_check_user="postgres",
                        auth_learn_keys=False)
        wait_settled(pool, 0)
        assert port() == str(cluster.nodes[0].port)
        assert "(auth_user = 'postgres' will do" in pool.log()
        pool.reload(auth_user="postgres")
        waits.wait_for("it reads on the standby", lambda: port() == str(cluster.nodes[1].port), 20)
        w = Wire(pool.address, seconds=20)
        assert [m.fields["C"] for m in w.login(user="by_password", password="wrong") if m.type == "E"] == ["28P01"]
    finally:
        for node, text in before:
            (node.data / "pg_hba.conf").write_text(text, encoding="utf-8")
            node.reload()


def idle_reader(cluster) -> bool:
    return bool(cluster.nodes[1].sessions("state = 'idle'")) and not cluster.nodes[1].sessions("state = 'active'")


def test_slow_client_of_a_reader(cluster, pool):
    """The last of an answer meets a full socket: the standby's connection is not forgotten when the client reads on."""
    w = Wire(Address(str(pool.home), pool.port), seconds=20)
    w.login()
    for kb in range(64, 640, 12):
        w.send(query(f"select repeat('x', {kb} * 1024) from t"))
        waits.wait_for("it is sent", lambda: idle_reader(cluster))
        assert [m.type for m in w.ready()] == ["T", "D", "C", "Z"]
        assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port), kb
    w.bye()


def sender_that_waits(node):
    """The process whose client reads no more: between two pieces of an answer it waits for a moment only."""
    seen = [node.sessions("wait_event = 'ClientWrite'") for _ in range(10)]
    return seen[0][0] if all(len(s) == 1 and s == seen[0] for s in seen) else None


def test_reader_dies_within_a_message(cluster, pool):
    """No word of ours is put into the row that the client is reading."""
    w = login(pool)
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    w.send(query("select repeat('x', 50000000) from t"))
    pid = waits.wait_for("it is being sent", lambda: sender_that_waits(cluster.nodes[1]))
    cluster.nodes[1].rows(f"select pg_terminate_backend({pid})")
    waits.wait_for("it is gone", lambda: not cluster.nodes[1].sessions(f"pid = {pid}"))
    end = b""
    w.sock.settimeout(10)
    while piece := w.sock.recv(1 << 20):
        end = (end + piece)[-1000:]
    assert set(end) == {ord("x")}
    w.sock.close()


def test_statement_that_a_reader_refuses(cluster, pool):
    """EXECUTE of a statement of the protocol, on a standby that cannot have it: an error, and not silence."""
    w = Wire(pool.address, seconds=20)
    w.login()
    cluster.nodes[1].rows("select pg_wal_replay_pause()")
    try:
        cluster.primary.rows("set synchronous_commit to local; create table late(a int)")
        w.send(parse("select a from late", "s"), SYNC)
        w.ready()
        found = w.simple("execute s")
        assert [m.sqlstate for m in found if m.type == "E"] in ([], ["26000"], ["42P01"])
        assert w.value("select 1") == "1"
    finally:
        cluster.nodes[1].rows("select pg_wal_replay_resume()")
    w.bye()
    cluster.primary.rows("drop table late")


def test_a_failed_parse_leaves_no_statement(cluster, pool):
    w = login(pool)
    w.simple("begin")
    assert [m.sqlstate for m in w.simple("select 1/0") if m.type == "E"] == ["22012"]
    w.simple("prepare p as select 1")
    w.send(parse("select 2", "s"), SYNC)
    assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["25P02"]
    w.simple("rollback")
    w.send(bind(name="s"), execute(), SYNC)
    assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["26000"]
    assert [m.sqlstate for m in w.simple("execute p") if m.type == "E"] == ["26000"]
    w.bye()


def test_settings_of_a_transaction_on_a_reader(cluster, pool):
    """The client is told of them; and of a transaction that failed on the primary nothing is begun anew there."""
    w = login(pool)
    w.rows("begin read only")
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    told = [m.status() for m in w.simple("set application_name to 'here'") if m.type == "S"]
    assert told == [("application_name", "here")]
    for wanted in ("26000", "25P02"):
        found = w.simple("execute nobody")
        assert [m.sqlstate for m in found if m.type == "E"] == [wanted]
        told += [m.status() for m in found if m.type == "S"]
    w.rows("rollback")
    assert told[1:] == [("application_name", "")]
    w.bye()


# Cut in its text, where its rest looks like a ParameterStatus.
NOTICE = fakes.notice("of nobody: " + "S" * 65)
CUT = NOTICE.index(b"SSSSSSSS")
NEWS = fakes.notification(1, "of_nobody", "")


class Adds(Relay):
    """Puts a notice into what the server says: in two pieces behind a refused write; and half of it behind a read
    and half in front of the next one's answer. A notification in two pieces in front of an answer."""

    def __init__(self, host: str, server: Address):
        self.rest = b""
        self.added = 0
        super().__init__(host, server)

    def _send(self, other: socket.socket, *pieces: bytes) -> None:
        for piece in pieces:
            other.sendall(piece)
            self.ending.wait(0.03)  # else they might be read as one, and the test would see nothing
        self.added += 1

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        try:
            data = one.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._close(one, other)
            return
        try:
            if b"C25006\0" in data:
                while b"Z\0\0\0\5" not in data:
                    data += one.recv(CHUNK)
                end = data.index(b"Z\0\0\0\5")
                self._send(other, data[:end], NOTICE[:CUT], NOTICE[CUT:], fakes.parameter("TimeZone", "Asia/Tokyo") + NOTICE,
                           data[end:])
            elif b"part of it" in data and b"Z\0\0\0\5" in data:
                self._send(other, self.rest + data + NOTICE[:CUT])
                self.rest = NOTICE[CUT:]
            elif b"with news" in data and b"Z\0\0\0\5" in data:
                self._send(other, self.rest + NEWS[:-4], NEWS[-4:] + data)
                self.rest = b""
            else:
                other.sendall(data)
        except OSError:
            self._close(one, other)


def test_half_a_notice_on_two_links(cluster, start_pool):
    """In session mode: behind a refused write, which is held back until somebody has looked for another primary; and on a
    standby between two reads."""
    relays = [Adds(f"127.0.0.{2 + i}", n.address) for i, n in enumerate(cluster.nodes)]
    pool = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=0, backend_weight1=1,
                    backend_weight2=0, sr_check_period=1, **{f"backend_hostname{i}": r.address.host for i, r in enumerate(relays)})
    try:
        cluster.primary.rows("create role looks login")
        cluster.primary.rows("alter role looks set default_transaction_read_only to on")
        cluster.primary.rows("grant all on t to looks")
        wait_settled(pool, 0)
        w = Wire(pool.address, seconds=20)
        assert w.login("looks")[-1].type == "Z"
        w.send(query("insert into t values (1)"))
        found = w.ready()
        types = "".join(m.type for m in found)
        assert re.fullmatch("[NS]*E[NS]*Z", types), types
        assert w.status["TimeZone"] == "Asia/Tokyo"
        assert {m.text for m in found if m.type == "N"} == {"of nobody: " + "S" * 65}
        for _ in range(4):
            w.send(query("select 'part of it' from t where a = 7"))
            assert "".join(m.type for m in w.ready()) == "TDCZ"
        assert relays[0].added >= 1 and relays[1].added >= 3
        before = relays[1].added
        w.send(query("select 'with news' from t where a = 7"))
        assert "".join(m.type for m in w.ready()).lstrip("A") == "TDCZ"
        assert relays[1].added > before
        w.bye()
    finally:
        pool.stop()
        for r in relays:
            r.close()
