# SPDX-License-Identifier: PostgreSQL
"""test_review_auth: ways to a session, or to somebody's pooled link, without a proof of who one is."""
import pytest

import auth_house as house
import ldap_house
from pgt.waits import wait_for
from pgt.wire import Wire, message, query

SCRAM_ALL = "host all all all scram-sha-256\n"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    yield pg
    pg.stop()


def come(pool, user, password, database="postgres", **params):
    return house.try_login(pool.address, user, database, password, **params)[0]


def stay(pool, user, password, database="postgres") -> Wire:
    w = Wire(pool.address, seconds=20)
    found = w.login(user, database, password)
    assert found[-1].type == "Z", found[-1].fields
    return w


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("method", ["scram", "md5", "password"])
def test_trust_for_replication_is_no_trust_for_sessions(server, pools, mode, method):
    """pg_hba.conf lets everybody replicate unasked; the server's word on that link is not about others."""
    house.make_user(server, "walker", method)
    server.rows("alter role walker replication")
    pool = pools([server.address], num_init_children=1, pool_mode=mode)
    assert come(pool, "walker", "walker_pw") == "in", "and leaves a pooled link"
    assert come(pool, "walker", "", ask=False, replication="true") == "in"
    assert come(pool, "walker", "wrong") == "28P01"


def test_answers_of_one_database_are_not_believed_in_another(server, pools):
    """Without auth_dbname the look-up runs in the client's data base, whose owner makes the answer."""
    house.make_user(server, "victim", "scram")
    house.make_user(server, "mallory", "scram")
    forged = house.make_user(server, "forger", "scram", "forged")
    server.rows("create database evil owner mallory")
    server.rows("create function pgpool_user_lookup(wanted text, out rolname text, out rolpassword text) "
                f"language sql as $$ select wanted, '{forged}'::text $$", "evil")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n", auth_user="looker",
                 auth_query="SELECT rolname, rolpassword FROM pgpool_user_lookup($1)",
                 auth_query_expire="1h", num_init_children=1)
    owner = stay(pool, "victim", "victim_pw")
    come(pool, "victim", "wrong", ask=False)
    with Wire(pool.address) as w:
        w.send_startup("victim", "evil")
        assert w.read().type == "R", "looked up, and asked; more is not needed"
    owner.bye()
    assert come(pool, "victim", "forged") == "28P01"
    assert come(pool, "victim", "victim_pw") == "in"


def test_a_database_that_cannot_be_asked_says_nothing_about_others(server, pools):
    """What fails in a data base of the client's choice changes nothing for who is looked up in the next one."""
    house.make_user(server, "filed", "scram")
    server.rows("create database trap")
    server.rows("create function pgpool_user_lookup(wanted text, out rolname text, out rolpassword text) language sql as "
                "$$ select pg_sleep(0.5); select pg_terminate_backend(pg_backend_pid()); select wanted, '' $$", "trap")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n", auth_user="looker",
                 auth_query="SELECT rolname, rolpassword FROM pgpool_user_lookup($1)", num_init_children=1)
    assert come(pool, "filed", "filed_pw") == "in", "and leaves a pooled link"
    assert come(pool, "anybody", "x", "trap", ask=False) == "57P03"
    assert come(pool, "filed", "last_year", ask=False) == "28P01"
    assert come(pool, "filed", "filed_pw") == "in"


def test_own_look_up_asks_where_clients_own_nothing(server, pools):
    """The built-in look-up does not run in a data base of the client's choice."""
    house.make_user(server, "victim2", "scram")
    house.make_user(server, "mallory2", "scram")
    forged = house.make_user(server, "forger2", "scram", "forged")
    server.rows("create database evil2 owner mallory2")
    server.rows("create function pgpool_user_lookup(wanted text, out rolname text, out rolpassword text) "
                f"language sql as $$ select wanted, '{forged}'::text $$", "evil2")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n", auth_user="looker",
                 num_init_children=1)
    assert come(pool, "victim2", "victim2_pw", "evil2") == "in", "and leaves a pooled link"
    come(pool, "victim2", "wrong", "evil2", ask=False)
    assert come(pool, "victim2", "forged", "evil2") == "28P01"


def test_many_hung_logins_at_a_directory_delay_no_password(server, pools):
    """More of them than there are threads: whoever can reach the port can do that."""
    house.make_user(server, "own", "trust")
    d = ldap_house.Directory({"uid=ann,dc=x": "secret"})
    d.go.clear()
    rule = f'host all ann all ldap ldapserver=127.0.0.1 ldapport={d.port} ldapprefix="uid=" ldapsuffix=",dc=x"\n'
    pool = pools([server.address], hba=rule + "host all own all password\n", passwd="own:own_pw\n",
                 num_init_children=1)
    waiting = []
    try:
        for _ in range(140):
            w = Wire(pool.address, seconds=20)
            waiting.append(w)
            w.send_startup("ann", "postgres")
            assert w.read().type == "R"
            w.send(message("p", b"secret\0"))
        wait_for("the threads are busy", lambda: d.waiting >= 128)
        assert come(pool, "own", "own_pw") == "in"
        assert come(pool, "own", "wrong") == "28P01"
    finally:
        d.go.set()
        for w in waiting:
            w.bye()
        d.close()


def test_longer_name_is_the_name_that_the_server_takes(server, pools):
    """PostgreSQL cuts names at 63 bytes: the line for the user counts for what is left."""
    name = "u" * 63
    server.rows(f"create role {name} login in role srv_trust")
    pool = pools([server.address], hba=f"host all {name} all reject\nhost all all all trust\n")
    assert come(pool, name, "") == "28000"
    assert come(pool, name + "x", "") == "28000"


BALANCED = {"load_balance_mode": True, "backend_weight1": 0, "num_init_children": 1, "sr_check_period": 1,
            "sr_check_user": "postgres", "health_check_period": 1, "health_check_user": "postgres",
            "failover_wait": "20s"}


@pytest.fixture
def standby(server):
    pg = house.start_standby(server)
    yield pg
    pg.stop()


@pytest.fixture
def lost(server):
    """The primary is stopped by the test."""
    yield server
    if server.daemon is None:
        server.start()


def test_session_that_outlives_its_link_proves_itself_again(server, standby, pools):
    """The new link is logged in with what the client proved; no idle one is at hand."""
    house.make_user(server, "drifter", "scram")
    pool = pools([server.address, standby.address], hba=SCRAM_ALL, passwd="drifter:drifter_pw\n", **BALANCED)
    w = stay(pool, "drifter", "drifter_pw")
    before = w.value("select pg_backend_pid()")
    server.end_process(before)
    assert w.value("select session_user") == "drifter"
    assert w.value("select pg_backend_pid()") != before
    w.bye()


def test_trust_of_one_server_is_not_that_of_the_next(lost, standby, pools):
    """Let in unasked by the first primary: a link of the next one, for which somebody gave a password, is not his."""
    house.make_user(lost, "hopper", "trust", "hopper_pw")
    (standby.data / "pg_hba.conf").write_text(
        "local all all trust\nhost all postgres all trust\nhost all all all scram-sha-256\n", encoding="utf-8")
    standby.reload()
    pool = pools([lost.address, standby.address], **BALANCED)
    idle = stay(pool, "hopper", "")
    assert idle.value("select session_user") == "hopper"
    lost.stop()
    standby.rows("select pg_promote()")
    wait_for("the new primary takes the right password", lambda: come(pool, "hopper", "hopper_pw") == "in")
    assert come(pool, "hopper", "wrong") == "28P01"
    idle.send(query("select session_user"))
    assert [m.sqlstate or m.type for m in idle.ready()] == ["08001", "Z"], "it got a link without a proof"
