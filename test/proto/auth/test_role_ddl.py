# SPDX-License-Identifier: PostgreSQL
"""test_role_ddl: DDL on roles and databases that passes through: a new session is that of the role as it is now, and
has the settings as they are now, whatever connections are kept, in all workers."""
import pytest

import auth_house as house
from pgt.waits import wait_for
from pgt.wire import SYNC, Wire, bind, execute, parse

HBA = "host d_trust all all trust\nhost all all all scram-sha-256\n"
MODES = pytest.mark.parametrize("mode", ["session", "transaction"])


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    for name in ("ddl_one", "ddl_two"):
        house.make_user(pg, name, "scram", "word")
    yield pg
    pg.stop()


@pytest.fixture
def pools(server):
    started = []

    def start(**conf):
        lines = "".join(f"{name}:{word}\n" for name, word in
                        (("ddl_one", "word"), ("ddl_two", "word"), ("ddl_new", "word"), ("boss", "boss_pw")))
        started.append(house.start_auth_pool([server.address], hba=HBA, passwd=lines, role_check_delay="1h",
                                             num_init_children=2, worker_fill=0, **conf))
        return started[-1]

    yield start
    for pool in started:
        pool.stop()


def enter(pool, user, database="postgres"):
    w = Wire(pool.address)
    found = w.login(user, database, "boss_pw" if user == "boss" else "word")
    assert found[-1].type == "Z", found[-1].fields
    w.told = dict(m.status() for m in found if m.type == "S")
    return w


def pids(server, user):
    return set(server.sessions(f"usename = '{user}'"))


def visit(pool, server, user, database="postgres"):
    """Leaves connections of the user in both workers."""
    crowd = [enter(pool, user, database) for _ in range(6)]
    for w in crowd:
        w.rows("begin")
        w.rows("select 1")
    for w in crowd:
        w.rows("commit")
        w.bye()
    wait_for("they are kept", lambda: len(pids(server, user)) >= 2)
    return pids(server, user)


def done(found):
    assert [m.fields for m in found if m.type == "E"] == []


def say(w, extended, *texts):
    for text in texts:
        if extended:
            w.send(parse(text, "said") + SYNC)
            done(w.ready())
            w.send(bind(name="said") + execute() + SYNC)
            done(w.ready())
            w.rows("deallocate said")
        else:
            done(w.simple(text))


@MODES
@pytest.mark.parametrize("extended", [False, True])
def test_dropped_and_made_again(server, pools, mode, extended):
    pool = pools(pool_mode=mode)
    boss = enter(pool, "boss")
    for drop in ("drop role ddl_one", "/* two */ DROP USER IF EXISTS ddl_nobody, \"ddl_one\"",
                 "alter role ddl_one rename to ddl_away"):
        old = visit(pool, server, "ddl_one")
        say(boss, extended, drop, "create role ddl_one login password 'word' in role srv_scram")
        for _ in range(6):
            w = enter(pool, "ddl_one")
            assert w.value("select session_user") == "ddl_one"
            assert int(w.value("select pg_backend_pid()")) not in old
            w.bye()
        wait_for("the old ones have gone", lambda old=old: not old & pids(server, "ddl_one"))
        server.rows("drop role if exists ddl_away")
    boss.bye()


@MODES
@pytest.mark.parametrize("extended", [False, True])
def test_settings_of_roles_and_databases(server, pools, mode, extended):
    pool = pools(pool_mode=mode)
    boss = enter(pool, "boss")
    texts = ("alter role ddl_one set {} = '{}'", "alter user ddl_one in database postgres set {} = '{}'",
             "alter database postgres set {} = '{}'", "alter role all set {} = '{}'")
    for i, text in enumerate(texts):
        for name, value in (("work_mem", f"{i + 3}MB"), ("TimeZone", f"Etc/GMT+{i + 3}")):
            visit(pool, server, "ddl_one")
            say(boss, extended, "alter role ddl_one reset all", "alter role ddl_one in database postgres reset all",
                "alter database postgres reset all", text.format(name, value))
            for _ in range(6):
                with enter(pool, "ddl_one") as w:
                    assert w.told.get(name, value) == value, (text, "as told at the login")
                    assert w.value(f"show {name}") == value, text
    say(boss, extended, "alter role all reset all", "alter database postgres reset all", "alter role ddl_one reset all")
    with enter(pool, "ddl_one") as w:
        assert w.value("show work_mem") == "4MB"
    boss.bye()


@MODES
def test_in_a_transaction(server, pools, mode):
    """What is opened between the statement and COMMIT has seen the old state."""
    pool = pools(pool_mode=mode)
    boss = enter(pool, "boss")
    for end, value in (("rollback", "4MB"), ("commit", "11MB")):
        visit(pool, server, "ddl_one")
        say(boss, False, "begin", "alter role ddl_one set work_mem = '11MB'", "select 1")
        visit(pool, server, "ddl_one")
        say(boss, False, end)
        for _ in range(6):
            with enter(pool, "ddl_one") as w:
                assert w.value("show work_mem") == value
    say(boss, False, "alter role ddl_one reset all")
    boss.bye()


@MODES
def test_who_may_not_closes_nothing(server, pools, mode):
    pool = pools(pool_mode=mode)
    kept = visit(pool, server, "ddl_one")
    with enter(pool, "ddl_two") as w:
        for text in ("alter role all set work_mem = '7MB'", "drop role ddl_one", "select 1/0; alter role all reset all",
                     "alter database postgres set work_mem = '7MB'", "alter role ddl_one nologin"):
            assert [m.type for m in w.simple(text)][-2:] == ["E", "Z"], text
    visit(pool, server, "ddl_two")
    assert kept <= pids(server, "ddl_one")


@MODES
def test_a_session_that_is_there_stays(server, pools, mode):
    pool = pools(pool_mode=mode)
    with enter(pool, "ddl_one") as w, enter(pool, "boss") as boss:
        done(w.simple("begin"))
        pid = w.value("select pg_backend_pid()")
        say(boss, False, "alter role ddl_one set work_mem = '9MB'")
        assert w.value("select pg_backend_pid()") == pid
        done(w.simple("commit"))
        assert w.value("select 1") == "1"
        say(boss, False, "alter role ddl_one reset all")


def test_who_may_not_takes_no_password_away(server):
    """Nobody knows of a statement that was only parsed whether it would be allowed: what opens servers for a session
    that is there stays known."""
    pool = house.start_auth_pool([server.address], hba="host all all all password\n", pool_mode="transaction",
                                 num_init_children=1)
    try:
        with enter(pool, "ddl_one") as w, enter(pool, "ddl_two") as other:
            assert w.value("select session_user") == "ddl_one"
            other.send(parse("drop role ddl_one", "never"), bind(name="never"), SYNC)
            done(other.ready())
            done(other.simple("select 1"))
            assert w.value("select session_user") == "ddl_one"
    finally:
        pool.stop()
