# SPDX-License-Identifier: PostgreSQL
"""test_learned_keys: users whose passwords pgpool does not know, judged by the server by SCRAM: what opens standbys for
their reads is found behind the login (auth_learn_keys), and the servers go on judging every login."""
import sys
from pathlib import Path

import pytest

from pgt import waits
from pgt.wire import Wire

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "cluster"))
from test_monitor import Trio, pool_for, wait_settled  # noqa: E402  pylint: disable=wrong-import-position

LOOK_UP = "SELECT rolname, rolpassword FROM pg_catalog.pg_authid"
NAMES = "eva", "adam"


@pytest.fixture(scope="module")
def trio():
    it = Trio(0)
    it.keep_in_step()
    it.primary.rows("create table t(a int); insert into t values (7); grant select on t to public")
    it.primary.rows("create role checker login; grant pg_monitor to checker")
    it.primary.rows("create role boss superuser login")
    it.primary.rows("alter role postgres set log_statement = 'all'; alter role checker set log_statement = 'all'")
    it.before = [(n.data / "pg_hba.conf").read_text(encoding="utf-8") for n in it.nodes]
    yield it
    it.stop()


def rule(trio, at: int, line: str) -> None:
    node = trio.nodes[at]
    (node.data / "pg_hba.conf").write_text(line + "\n" + trio.before[at], encoding="utf-8")
    node.reload()
    want = line.split()[-1]
    waits.wait_for("the server has its rules", lambda: node.value(
        "select auth_method from pg_hba_file_rules order by line_number limit 1") == want)


@pytest.fixture
def cluster(trio):
    for name in NAMES:
        trio.primary.rows(f"create role {name} login password '{name}'")
    for i in range(3):
        rule(trio, i, f"host all {','.join(NAMES)} all scram-sha-256")
    for node in trio.nodes[1:]:
        waits.wait_for("they are there", lambda node=node: node.value("select count(*) from pg_roles where rolname = 'adam'") == "1")
    yield trio
    for name in NAMES:
        trio.primary.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{name}'")
        trio.primary.rows(f"drop role if exists {name}")
    for node in trio.nodes[1:]:
        waits.wait_for("they have gone", lambda node=node: node.value("select count(*) from pg_roles where rolname = 'adam'") == "0")


@pytest.fixture
def pools(cluster, start_pool):
    def start(**conf):
        pool = pool_for(start_pool, cluster, **{"load_balance_mode": True, "num_init_children": 1, "backend_weight0": 0,
                                                "backend_weight1": 1, "backend_weight2": 0, "connect_timeout": 10000,
                                                "sr_check_user": "postgres", **conf})
        wait_settled(pool, 0)
        return pool
    return start


def enter(pool, user: str = "eva", password: str | None = None, database: str = "postgres") -> Wire:
    w = Wire(pool.address, seconds=30)
    found = w.login(user, database, user if password is None else password)
    assert found[-1].type == "Z", found[-1].fields
    return w


def refused(pool, user: str = "eva", password: str | None = None) -> str:
    with Wire(pool.address, seconds=30) as w:
        found = w.login(user, "postgres", user if password is None else password)
        return "in" if found[-1].type == "Z" else found[-1].sqlstate


def reads_at(trio, w: Wire) -> int:
    port = w.value("select inet_server_port() from t")
    return [str(n.port) for n in trio.nodes].index(port)


def later_reads_at(trio, pool, **who) -> int:
    w = enter(pool, **who)
    at = reads_at(trio, w)
    w.bye()
    return at


def learn(trio, pool, **who) -> None:
    waits.wait_for("reads leave", lambda: later_reads_at(trio, pool, **who) == 1)


def look_ups(trio, since: int = 0) -> int:
    return trio.primary.log()[since:].count(LOOK_UP)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_reads_leave_and_the_server_judges(cluster, pools, mode):
    """In the session that was the first, too, which in transaction mode is tied to its connection. A wrong password makes
    nobody look anything up."""
    pool = pools(pool_mode=mode)
    seen = len(cluster.primary.log())
    assert refused(pool, password="wrong") == "28P01"
    assert look_ups(cluster, seen) == 0
    w = enter(pool)
    if mode == "transaction":
        learn(cluster, pool)
        assert reads_at(cluster, w) == 0
        w.bye()
        w = enter(pool)
    waits.wait_for("it reads on the standby", lambda: reads_at(cluster, w) == 1)
    assert [later_reads_at(cluster, pool) for _ in range(3)] == [1, 1, 1]
    assert look_ups(cluster, seen) == 1, "what is known is not looked up"
    assert "reads of this session stay" not in pool.log()
    assert refused(pool, password="wrong") == "28P01"
    rule(cluster, 0, "host all eva all reject")
    assert refused(pool) == "28000", "a key lets nobody in"
    assert reads_at(cluster, w) == 1
    rule(cluster, 0, "host all eva,adam all scram-sha-256")
    assert refused(pool) == "in"
    w.bye()


@pytest.mark.parametrize("conf, leaves", [
    ({"auth_learn_keys": False}, False),
    ({"auth_relay": True}, False),
    ({"auth_relay": True, "auth_learn_keys": True}, True),
    ({"sr_check_user": "checker"}, False),
])
def test_where_nothing_is_learned(cluster, pools, conf, leaves):
    pool = pools(**conf)
    seen = len(cluster.primary.log())
    if leaves:
        learn(cluster, pool)
        return
    for user in (*NAMES, *NAMES):
        assert later_reads_at(cluster, pool, user=user) == 0
    asked = "sr_check_user" in conf
    assert look_ups(cluster, seen) == (1 if asked else 0), "who may not read it does not try again"
    assert pool.log().count("permission denied for table pg_authid") == (1 if asked else 0)
    w = enter(pool)
    waits.wait_for("that is said", lambda: reads_at(cluster, w) == 0 and "reads of this session stay on node 0" in pool.log())
    assert "(see auth_learn_keys)" in pool.log() and f"auth_user = '{conf.get('sr_check_user', 'postgres')}'" in pool.log()
    w.bye()


def test_a_changed_password(cluster, pools):
    """Behind our back, and the standby's connections have gone: no read fails, the old password opens nothing, the new one
    is learned."""
    pool = pools()
    learn(cluster, pool)
    w = enter(pool)
    cluster.primary.rows("alter role eva password 'other'")
    waits.wait_for("the standby knows", lambda: cluster.nodes[1].value("select pg_last_wal_replay_lsn()") >=
                   cluster.primary.value("select pg_current_wal_flush_lsn()"))
    cluster.nodes[1].rows("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'eva'")
    waits.wait_for("they are gone", lambda: not cluster.nodes[1].sessions("usename = 'eva'"))
    assert [reads_at(cluster, w) for _ in range(3)] == [0, 0, 0]
    w.bye()
    assert refused(pool) == "28P01"
    learn(cluster, pool, password="other")


def test_a_role_of_that_name(cluster, pools):
    """Dropped and made again, with the same secret: what the old role's client has shown opens nothing for the new one."""
    pool = pools()
    learn(cluster, pool)
    secret = cluster.primary.value("select rolpassword from pg_authid where rolname = 'eva'")
    pool.reload(auth_learn_keys=False)
    waits.wait_for("nobody is in", lambda: not cluster.primary.sessions("usename = 'eva' and state <> 'idle'"))
    boss = enter(pool, "boss")
    boss.rows("drop role eva")
    boss.rows(f"create role eva login password '{secret}'")
    boss.bye()
    waits.wait_for("the standby knows", lambda: cluster.nodes[1].value("select oid from pg_roles where rolname = 'eva'") ==
                   cluster.primary.value("select oid from pg_roles where rolname = 'eva'"))
    assert [later_reads_at(cluster, pool) for _ in range(3)] == [0, 0, 0]
    pool.reload(auth_learn_keys=True)
    learn(cluster, pool)


def test_the_virtual_database_is_not_opened_by_them(cluster, pools):
    """No server is asked there: a password that was changed, or a role that is gone, would go on opening it."""
    pool = pools(admin_users="eva")
    learn(cluster, pool)
    with Wire(pool.address, seconds=30) as w:
        assert w.login("eva", "pgpool", "eva")[-1].type == "E"
    assert later_reads_at(cluster, pool) == 1, "which they still are for"


def test_a_standby_with_rules_of_its_own(cluster, pools):
    rule(cluster, 1, "host all eva all reject")
    pool = pools()
    for _ in range(3):
        w = enter(pool)
        assert w.rows("select a from t") == [[b"7"]]
        assert reads_at(cluster, w) == 0
        w.bye()
    waits.wait_for("that is said", lambda: later_reads_at(cluster, pool) == 0 and
                   "node 1 refuses user \"eva\": reads of this session stay on node 0" in pool.log())
    rule(cluster, 1, "host all eva,adam all scram-sha-256")
    learn(cluster, pool)


def test_a_standby_that_lags(cluster, pools):
    """It has the password of before: reads are made on the primary, keys that it refuses are forgotten, and they are looked
    up once a second at most."""
    pool = pools()
    standby = cluster.nodes[1]
    standby.rows("select pg_wal_replay_pause()")
    try:
        cluster.primary.rows("set synchronous_commit to local; alter role eva password 'other'")
        seen = len(cluster.primary.log())
        begin = waits.now()
        for _ in range(30):
            w = enter(pool, password="other")
            assert w.rows("select a from t") == [[b"7"]]
            assert reads_at(cluster, w) == 0
            w.bye()
        assert 0 < look_ups(cluster, seen) <= waits.now() - begin + 1
    finally:
        standby.rows("select pg_wal_replay_resume()")
    learn(cluster, pool, password="other")
