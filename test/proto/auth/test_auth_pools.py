# SPDX-License-Identifier: PostgreSQL
"""test_auth_pools: data bases of pools.conf with a look-up of their own, on servers of their own, with TLS towards them.

The same name is another person on another server: nothing that proves or opens the one may prove or open the other."""
import math
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

import auth_house as house
from pgt import certs, procs
from pgt.pcp_tool import pcp, said
from pgt.waits import now, wait_for
from pgt.wire import query

SCRAM_ALL = "host all all all scram-sha-256\n"


def make_server(**conf):
    pg = house.start_server({"log_statement": "all", **conf})
    pg.rows("create table asked (who text)")
    return pg


@pytest.fixture(scope="module")
def authority():
    return certs.Authority()


@pytest.fixture(scope="module")
def near():
    pg = make_server()
    yield pg
    pg.stop()


@pytest.fixture(scope="module")
def far(authority):
    """Another server, which speaks TLS."""
    pair = authority.issue()
    home = procs.folder("far-tls", house.postgres.OS_USER)
    for name, path in (("cert", pair.cert), ("key", pair.key)):
        shutil.copy(path, home / name)
        shutil.chown(home / name, house.postgres.OS_USER)
        (home / name).chmod(0o600)
    pg = make_server(ssl="on", ssl_cert_file=str(home / "cert"), ssl_key_file=str(home / "key"))
    pg.rows("create database over_there")
    pg.rows(house.LOOK_UP, "over_there")
    yield pg
    pg.stop()


@pytest.fixture
def pools(near):
    started = []

    def start(text: str, **conf):
        path = procs.folder("pools") / "pools.conf"
        path.write_text(text, encoding="utf-8")
        passwd = "looker:looker_pw\nboss:boss_pw\n"
        started.append(house.start_auth_pool([near.address], hba=SCRAM_ALL, passwd=passwd,
                                             **{"num_init_children": 1, "pools_file": path, **conf}))
        return started[-1]

    yield start
    for pool in started:
        pool.stop()


def come(pool, user, secret, database="postgres"):
    return house.try_login(pool.address, user, database, secret)[0]


def place(server, **more) -> str:
    values = {"host": "127.0.0.1", "port": server.port, **more}
    return "".join(f"{name} = '{str(value)}'\n" for name, value in values.items())


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_the_same_name_on_two_servers(near, far, pools, mode):
    house.make_user(near, "twin", "scram", "near_pw")
    house.make_user(far, "twin", "scram", "far_pw")
    pool = pools("[database far_db]\n" + place(far, dbname="postgres"), auth_user="looker", pool_mode=mode, auth_query_expire="1h")
    for _ in range(3):
        assert come(pool, "twin", "near_pw") == "in"
        assert come(pool, "twin", "far_pw", "far_db") == "in"
        assert come(pool, "twin", "far_pw") == "28P01"
        assert come(pool, "twin", "near_pw", "far_db") == "28P01"
    far.rows("alter role twin password 'later_pw'")
    wait_for("the new password of the far one", lambda: come(pool, "twin", "later_pw", "far_db") == "in")
    assert come(pool, "twin", "far_pw", "far_db") == "28P01"
    assert come(pool, "twin", "near_pw") == "in"


def test_auth_user_of_one_database(near, far, pools):
    """Without auth_user in pgpool.conf nobody is looked up but here."""
    house.make_user(near, "single", "scram", "single_pw")
    house.make_user(far, "single", "scram", "single_pw")
    before = len(near.log())
    pool = pools("[database far_db]\n" + place(far, dbname="postgres", auth_user="looker"))
    assert come(pool, "single", "single_pw", "far_db") == "in"
    assert come(pool, "single", "guess", "far_db") == "28P01"
    assert come(pool, "single", "guess") == "28P01"
    assert "pgpool_user_lookup" not in near.log()[before:], "elsewhere the server is asked by the client itself"


def test_auth_query_of_one_database(near, pools):
    near.rows("create or replace function own_lookup(who text, out text, out text) returns setof record language sql "
              "security definer as $$ select rolname::text, rolpassword from pg_authid where rolname = who and who = 'chosen' $$")
    house.make_user(near, "chosen", "scram")
    house.make_user(near, "others", "scram")
    pool = pools("[database d_scram]\nauth_query = 'select * from own_lookup($1)'\nauth_dbname = 'postgres'\n", auth_user="looker",
                 auth_dbname="postgres")
    assert come(pool, "chosen", "chosen_pw", "d_scram") == "in"
    assert come(pool, "others", "others_pw", "d_scram") == "28P01"
    assert come(pool, "others", "others_pw") == "in"
    assert come(pool, "others", "others_pw", "d_scram") == "28P01", "the answer for another data base is none for this"
    assert come(pool, "chosen", "chosen_pw") == "in"


def test_auth_dbname_may_be_elsewhere(near, far, pools):
    """As in PgBouncer it names a data base of the pooler's, wherever that is."""
    house.make_user(near, "guest", "scram", "near_guest")
    house.make_user(far, "guest", "scram", "far_guest")
    near.rows("drop table if exists t")
    pool = pools("[database d_scram]\nauth_dbname = 'directory'\n[database directory]\n" + place(far, dbname="over_there"),
                 auth_user="looker")
    assert come(pool, "guest", "near_guest", "d_scram") == "28P01", "the directory says otherwise"
    assert come(pool, "guest", "near_guest") == "in"


def test_check_config_says_nothing(far, pools):
    pool = pools("[database far_db]\n" + place(far, dbname="postgres", auth_user="looker", auth_dbname="far_db",
                                               auth_query="select 1"))
    assert "no effect" not in pool.log()


@pytest.mark.parametrize("mode, ssl, want", [
    ("disable", True, "f"), ("prefer", True, "t"), ("require", False, "t"), ("verify-ca", False, "t"), ("verify-full", False, "t"),
    (None, True, "t"), (None, False, "f")])
def test_tls_to_a_server_of_its_own(far, authority, pools, mode, ssl, want):
    house.make_user(far, "crypt", "scram")
    pair = authority.issue()
    pair.key.chmod(0o600)
    more = {} if mode is None else {"backend_ssl_mode": mode}
    pool = pools("[database far_db]\n" + place(far, dbname="postgres", auth_user="looker", **more), ssl_ca_cert=authority.cert,
                 **({"ssl": True, "ssl_cert": pair.cert, "ssl_key": pair.key} if ssl else {}))
    w = house.Wire(pool.address)
    assert w.login("crypt", "far_db", "crypt_pw")[-1].type == "Z"
    assert w.value("select ssl from pg_stat_ssl where pid = pg_backend_pid()") == want
    w.bye()


def test_tls_that_does_not_verify(near, far, authority, pools):
    house.make_user(far, "crypt", "scram")
    text = place(far, dbname="postgres", auth_user="looker")
    other = certs.Authority("other CA")
    pool = pools("[database far_db]\n" + text + "backend_ssl_mode = 'verify-ca'\n", ssl_ca_cert=other.cert)
    assert come(pool, "crypt", "crypt_pw", "far_db") not in ("in", "28P01")
    assert "certificate verify failed" in pool.log()
    clear = pools("[database near_db]\n" + place(near, dbname="postgres", auth_user="looker", backend_ssl_mode="require"))
    house.make_user(near, "crypt", "scram")
    assert come(clear, "crypt", "crypt_pw", "near_db") not in ("in", "28P01")
    assert "does not support TLS" in clear.log()


def move(pool, text: str) -> None:
    pool.conf["pools_file"].write_text(text, encoding="utf-8")
    assert said(pcp(pool, "reload_config"))[0] == 0


def test_the_common_user_moves(near, far, pools):
    """The user of a section logs in at the new place with what pool_passwd has. Without that line, who came as that user
    stays where it is, and new clients come as themselves."""
    at = {server.port: "[database shop]\n" + place(server, dbname="postgres") for server in (near, far)}
    pool = pools(at[near.port] + "user = looker\n", pool_mode="transaction")
    w = house.Wire(pool.address)
    assert w.login("boss", "shop", "boss_pw")[-1].type == "Z"
    who = "select current_user || current_setting('port')"
    assert w.value(who) == f"looker{near.port}"
    move(pool, at[far.port] + "user = looker\n")
    assert w.value(who) == f"looker{far.port}"
    move(pool, at[near.port])
    assert w.value(who) == f"looker{far.port}"
    new = house.Wire(pool.address)
    assert new.login("boss", "shop", "boss_pw")[-1].type == "Z"
    assert new.value(who) == f"boss{near.port}"
    w.bye()
    new.bye()


def test_what_was_proved_opens_nothing_where_it_moves(near, far, pools):
    """A name whose secret was learned of the old server is not let in at the new one by that, and never by another's."""
    house.make_user(near, "mover", "scram", "near_pw")
    house.make_user(far, "mover", "scram", "far_pw")
    at = {server.port: "[database shop]\n" + place(server, dbname="postgres", auth_user="looker") for server in (near, far)}
    pool = pools(at[near.port], pool_mode="transaction")
    w = house.Wire(pool.address, seconds=20)
    assert w.login("mover", "shop", "near_pw")[-1].type == "Z"
    assert w.value("select current_setting('port')") == str(near.port)
    move(pool, at[far.port])
    assert come(pool, "mover", "far_pw", "shop") == "in"
    w.send(query("select current_setting('port')"))
    found = w.read_until("Z", "E")
    assert [m.sqlstate for m in found if m.type != "Z"] == ["08001"], "the far one's connection was lent to the near one's user"
    assert come(pool, "mover", "near_pw", "shop") == "28P01"
    w.reset()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_who_waits_at_his_login_has_proved_nothing_elsewhere(near, far, pools, mode):
    """What he said was compared with what the old server knows. The new one's user of that name is another person, whose
    keys are known by the time that his turn comes."""
    house.make_user(near, "sitter", "scram", "near_pw")
    house.make_user(far, "sitter", "scram", "far_pw")
    at = {server.port: "[database shop]\n" + place(server, dbname="postgres", auth_user="looker") for server in (near, far)}
    pool = pools(at[near.port], pool_mode=mode)
    admin = house.Wire(pool.address)
    assert admin.login("boss", "postgres", "boss_pw")[-1].type == "Z"
    assert come(pool, "sitter", "near_pw", "shop") == "in"
    assert [m.type for m in admin.simple("pgpool pause shop")] == ["C", "Z"]

    def waiting() -> int:
        return sum(int(m.row()[3]) for m in admin.simple("show pool_queue") if m.type == "D")

    def enter(password: str, size: str):
        w = house.Wire(pool.address, seconds=20)
        w.send_startup("sitter", "shop", options=f"-c work_mem={size}")
        found = w.authenticate("sitter", password)
        return w, [m.sqlstate for m in found if m.type in "ZE"]

    with ThreadPoolExecutor(2) as crowd:
        late = crowd.submit(enter, "near_pw", "3MB")
        wait_for("it waits", lambda: waiting() == 1)
        move(pool, at[far.port])
        theirs = crowd.submit(enter, "far_pw", "4MB")
        wait_for("the other one waits", lambda: waiting() == (1 if late.done() else 2))
        admin.simple("pgpool resume shop")
        told = [late.result(20), theirs.result(20)]
    assert [states for _, states in told] == [["08001"], [""]], "the near one's user is in at the far one"
    assert told[1][0].value("select current_setting('port')") == str(far.port)
    assert come(pool, "sitter", "near_pw", "shop") == "28P01"
    for w in (admin, told[0][0], told[1][0]):
        w.bye()


def test_who_is_looked_up_while_it_moves(near, far, pools):
    """The new server is asked then: the right password is not a wrong one because a reload came."""
    house.make_user(near, "asked_for", "scram", "near_pw")
    house.make_user(far, "asked_for", "scram", "far_pw")
    for server in (near, far):
        server.rows("create or replace function held_lookup(who text, out text, out text) returns setof record language sql "
                    "security definer as $$ select pg_advisory_xact_lock_shared(7); select rolname::text, rolpassword "
                    "from pg_authid where rolname = who $$")
    at = {server.port: "[database shop]\n" + place(server, dbname="postgres", auth_user="looker",
                                                   auth_query="select * from held_lookup($1)") for server in (near, far)}
    pool = pools(at[near.port])
    assert come(pool, "asked_for", "near_pw", "shop") == "in"
    with house.Wire(near.address) as holder, ThreadPoolExecutor(2) as crowd:
        assert holder.login()[-1].type == "Z"
        holder.rows("select pg_advisory_lock(7)")
        told = [crowd.submit(come, pool, "asked_for", password, "shop") for password in ("far_pw", "near_pw")]
        wait_for("the old server is asked", lambda: near.sessions("wait_event = 'advisory'"))
        move(pool, at[far.port])
        holder.rows("select pg_advisory_unlock(7)")
        assert [t.result(20) for t in told] == ["in", "28P01"]


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_who_paused_all_may_come_back(near, far, pools, mode):
    """By a new session, of any worker, which has no server connection and needs none for commands of ours. Not a namesake of
    another server, nor who is no superuser."""
    pool = pools("[database far_db]\n" + place(far, dbname="postgres"), num_init_children=2, worker_fill=0, pool_mode=mode)

    def enter(user, password, database="postgres"):
        w = house.Wire(pool.address)
        assert w.login(user, database, password)[-1].type == "Z"
        return w

    def rows(w, sql):
        found = w.simple(sql)
        assert found[-1].type == "Z", found
        return [[(v or b"").decode() for v in m.row()] for m in found if m.type == "D"]

    admin = enter("boss", "boss_pw")
    assert admin.simple("pgpool pause")[-1].type == "Z"
    admin.bye()
    with ThreadPoolExecutor(2) as crowd:
        others = [crowd.submit(enter, *who) for who in (("looker", "looker_pw", "d_scram"), ("boss", "boss_pw", "far_db"))]
        again = [enter("boss", "boss_pw", database) for database in ("postgres", "d_trust", "postgres", "d_md5") * 2]
        for w in again:
            assert [r[1] for r in rows(w, "show pool_orders")] == ["true"]
            assert w.status["is_superuser"] == "on"
        wait_for("the others wait", lambda: sum(int(r[3]) for r in rows(again[0], "show pool_queue")) == 2)
        clients = rows(again[0], "show pool_clients")
        assert len({r[1] for r in clients if r[2] == "boss" and r[7] != "waiting"}) == 2, "both workers"
        again[1].send(query("select current_database()"))
        assert again[1].is_quiet(0.2), "what needs a server waits"
        assert again[0].simple("pgpool resume")[0].body.startswith(b"RESUME")
        assert [m.row()[0] for m in again[1].ready() if m.type == "D"] == [b"d_trust"]
        assert again[0].value("select current_user") == "boss"
        for w in (*again, *(o.result(20) for o in others)):
            w.bye()


def test_warm_when_the_password_is_known(near, far, pools):
    """min_pool_size of a database with `user`: why it is not kept is in the log, and tried with one connection at a time."""
    house.make_user(far, "keeper", "scram", "right_pw")
    began = now()
    pool = pools("[database far_db]\n" + place(far, dbname="postgres", user="keeper", min_pool_size=3), num_init_children=2)
    cannot = 'min_pool_size of database "far_db" cannot be kept: user "keeper" cannot log in'
    wait_for("nobody knows its password", lambda: pool.log().count(cannot) >= 2)
    house.put(pool.home / "pool_passwd", "keeper:wrong_pw\n")
    pool.reload()
    wait_for("the server says why", lambda: 'password authentication failed for user "keeper"' in pool.log())
    said = [line for line in pool.log().splitlines() if cannot in line]
    # Each worker waits twice as long each time, from a second on; the reload begins that anew.
    assert len(said) <= 2 * (math.log2(now() - began + 1) + 3), said
    house.put(pool.home / "pool_passwd", "keeper:right_pw\n")
    pool.reload()
    wait_for("it is warm", lambda: len(far.sessions("usename = 'keeper'")) == 3)
