# SPDX-License-Identifier: PostgreSQL
"""test_review_doors: what one database says about a name, or another user's password, opens nothing else; names of clients are not
taken for questions of ours."""
import pytest

import auth_house as house
from pgt import procs
from pgt.wire import Wire

HOME = "postgres"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    house.make_user(pg, "chief", "scram")
    house.make_user(pg, "svc", "scram")
    house.make_user(pg, "victim", "scram")
    pg.rows("create role asker superuser login password 'asker_pw' in role srv_scram")
    verifier = house.make_user(pg, "tenant", "scram", "mine")
    for name, secret in (("of_the_tenant", "mine"), ("made_by_the_tenant", verifier)):
        pg.rows(f"create function {name}(wanted text, out n text, out p text) language sql as $$ select wanted, '{secret}'::text $$",
                "d_scram")
    yield pg
    pg.stop()


@pytest.fixture
def pools():
    started = []

    def start(backends, sections="", **kwargs):
        path = procs.folder("pools") / "pools.conf"
        path.write_text(sections, encoding="utf-8")
        started.append(house.start_auth_pool(backends, num_init_children=1, pools_file=path, **kwargs))
        return started[-1]

    yield start
    for pool in started:
        pool.stop()


def last(pool, user: str, database: str, password: str):
    with Wire(pool.address, seconds=20) as w:
        return w.login(user, database, password)[-1]


@pytest.mark.parametrize("rule", ["password", "md5", "scram-sha-256"])
@pytest.mark.parametrize("known", ["wrong", "mine"])
def test_what_one_database_says_of_an_administrator(server, pools, rule, known):
    """The owner of a database with a look-up of its own says what password the administrator has: there, and nowhere else."""
    pool = pools([server.address], "[database d_scram]\nauth_user = looker\nauth_query = 'select * from of_the_tenant($1)'\nuser = svc\n",
                 hba=f"host all all all {rule}\n", passwd="looker:looker_pw\nsvc:svc_pw\n", admin_users="chief")
    assert (last(pool, "chief", "d_scram", known).type == "Z") == (known == "mine")
    assert last(pool, "chief", "pgpool", "mine").type == "E"


@pytest.mark.parametrize("function", ["of_the_tenant", "made_by_the_tenant"])
@pytest.mark.parametrize("rule", ["password", "md5", "scram-sha-256"])
@pytest.mark.parametrize("known_by", ["file", "login"])
def test_what_one_database_says_of_a_superuser(server, pools, function, rule, known_by):
    """Its owner says what password the superuser has there: with what pgpool knows of the superuser no connection is opened for
    whoever shows that."""
    passwd = "asker:asker_pw\n" + ("boss:boss_pw\n" if known_by == "file" else "")
    pool = pools([server.address], f"[database d_scram]\nauth_query = 'select * from {function}($1)'\n"
                 "[database home]\ndbname = postgres\nauth_dbname = postgres\nauth_query = 'select rolname, rolpassword from pg_authid where rolname = $1'\n",
                 hba=f"host all all all {rule}\n", passwd=passwd, auth_user="asker")
    if known_by == "login":
        assert last(pool, "boss", "home", "boss_pw").type == "Z"
    for _ in range(2):
        with Wire(pool.address, seconds=20) as w:
            if w.login("boss", "d_scram", "mine")[-1].type == "Z":
                assert w.value("select session_user") != "boss"


def test_the_password_of_the_user_of_a_database_is_not_the_clients(server, pools):
    """All clients of the database are svc at the server, which judges by svc's password: whatever they call themselves."""
    pool = pools([server.address], f"[database shop]\ndbname = {HOME}\nuser = svc\n", hba="host all all all password\n",
                 admin_users="chief")
    assert last(pool, "chief", "shop", "svc_pw").type == "Z"
    assert last(pool, "chief", "pgpool", "svc_pw").type == "E"


def test_a_database_named_as_a_question_of_ours(server, pools):
    """samerole asks whether the user is in a role that is named as the database: a stranger's answers are about nothing else."""
    pool = pools([server.address], hba="host samerole all all scram-sha-256\nhost all all all scram-sha-256\n",
                 passwd="victim:victim_pw\n", sr_check_user="boss", sr_check_password="boss_pw", auth_query_expire="1h")
    for name in ("\1can log in", "\1is not expired"):
        assert last(pool, "victim", name, "wrong").type == "E"
    assert last(pool, "victim", HOME, "victim_pw").type == "Z"
