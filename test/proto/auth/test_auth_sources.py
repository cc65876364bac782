# SPDX-License-Identifier: PostgreSQL
"""test_auth_sources: where secrets come from: auth_query (followed at once, cached, asked once by many),
pool_passwd (encrypted, mapped, read again), and what readers and shared links are opened with."""
import hashlib
import re
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

import auth_house as house
from pgt import proxy
from pgt.fake import complete, data_row
from pgt.waits import wait_for
from pgt.wire import Wire, message, startup

SCRAM_ALL = "host all all all scram-sha-256\n"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server({"log_statement": "all", "log_connections": "on"})
    yield pg
    pg.stop()


def ask_query(server, pools, **conf):
    return pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n",
                 **{"auth_user": "looker", "auth_dbname": "postgres", **conf})


def come(pool, user, password=None, database="postgres"):
    return house.try_login(pool.address, user, database, f"{user}_pw" if password is None else password)[0]


def test_role_made_in_the_server_is_enough(server, pools):
    pool = ask_query(server, pools)
    assert come(pool, "fresh_role", "first") == "28P01"
    house.make_user(server, "fresh_role", "scram", "first")
    wait_for("the negative answer is out of date", lambda: come(pool, "fresh_role", "first") == "in")


@pytest.mark.parametrize("expire", [0, "1s", "1h"])
def test_changed_password_is_followed(server, pools, expire):
    """The old one never passes longer than auth_query_expire, the new one passes after one failure."""
    pool = ask_query(server, pools, auth_query_expire=expire, num_init_children=1)
    house.make_user(server, "changer", "scram", "old")
    assert come(pool, "changer", "old") == "in"
    server.rows("alter role changer password 'new'")
    if expire == 0:
        assert come(pool, "changer", "new") == "in"
    else:
        wait_for("the new password passes", lambda: come(pool, "changer", "new") == "in")
    assert come(pool, "changer", "old") == "28P01"
    assert come(pool, "changer", "new") == "in"


def test_password_rotated_while_links_are_pooled(server, pools):
    """T61: idle links were opened with the old password: they help nobody who does not know the new one."""
    pool = ask_query(server, pools, auth_query_expire=0)
    house.make_user(server, "rotated", "scram", "old")
    held = []
    for _ in range(5):
        w = Wire(pool.address)
        assert w.login("rotated", "postgres", "old")[-1].type == "Z"
        held.append(w)
    for w in held[1:]:
        w.bye()
    server.rows("alter role rotated password 'new'")
    assert come(pool, "rotated", "old") == "28P01"
    assert come(pool, "rotated", "new") == "in"
    assert held[0].value("select 1") == "1", "who is in stays in"
    held[0].bye()


def test_a_name_in_another_encoding(server, pools):
    """PostgreSQL looks for it byte by byte, finds nobody, and asks for a password all the same."""
    pool = ask_query(server, pools)
    told = []
    for address in (server.address, pool.address):
        with Wire(address) as w:
            w.send(startup([("user", b"m\xfcller"), ("database", "postgres")]))
            found = w.authenticate("", "secret")[-1]
            told.append((found.fields["S"], found.sqlstate))
    assert told == [("FATAL", "28P01")] * 2
    assert "invalid byte sequence" not in pool.log()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_changed_password_on_every_worker(server, pools, mode):
    """Three workers with idle connections of the user: each lets the new password in and the old one out, from the next login on."""
    pool = ask_query(server, pools, num_init_children=3, worker_fill=0, pool_mode=mode)
    house.make_user(server, "everywhere", "scram", "pw0")

    def crowd(password: str) -> set[str]:
        """Nine at once, so that each worker has some."""
        wires = [Wire(pool.address) for _ in range(9)]
        try:
            return {w.login("everywhere", "postgres", password)[-1].type for w in wires}
        finally:
            for w in wires:
                w.bye()

    assert crowd("pw0") == {"Z"}
    for i in range(1, 5):
        server.rows(f"alter role everywhere password 'pw{i}'")
        order = [(f"pw{i}", "Z"), (f"pw{i - 1}", "E")]
        for password, end in order if i % 2 else reversed(order):
            assert crowd(password) == {end}, (i, password)
    with Wire(pool.address) as w:
        assert w.login("everywhere", "postgres", "pw4")[-1].type == "Z"
        served = [int(row[2]) for row in w.rows("show pool_processes")]
        w.bye()
    assert len(served) == 3 and min(served) >= 9, served


def test_many_ask_once(server, pools):
    """50 clients at once, one look-up per worker at most while an answer is fresh."""
    pool = ask_query(server, pools, auth_query_expire="1h", num_init_children=2)
    house.make_user(server, "herd", "scram")
    before = server.log().count("pgpool_user_lookup($1)")
    results = []
    threads = [threading.Thread(target=lambda: results.append(come(pool, "herd"))) for _ in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == ["in"] * 50
    asked = server.log().count("pgpool_user_lookup($1)") - before
    assert 1 <= asked <= 4, asked  # the statement may be logged with Parse and Execute


def look_ups(server) -> int:
    """Executions: the statement stays on the connection under a name."""
    return len(re.findall(r"execute pgp_\w+: SELECT rolname, rolpassword FROM pgpool_user_lookup\(\$1\)", server.log()))


def test_negative_answers_are_cached(server, pools):
    """A failure by an answer that was kept drops it, so that a role made meanwhile comes in: every second login asks."""
    pool = ask_query(server, pools, auth_query_expire="1h", num_init_children=1)
    before = look_ups(server)
    for _ in range(6):
        assert come(pool, "nobody_here", "x") == "28P01"
    assert look_ups(server) - before == 3


@pytest.mark.slow
def test_strangers_break_no_living_session(server, pools):
    """More names than all that a worker remembers, of each of whom the first message of SCRAM alone: who has logged in goes on, though
    each server connection has to be opened anew with what the login gave away."""
    pool = ask_query(server, pools, pool_mode="transaction", num_init_children=1, log_client_limit=1)
    house.make_user(server, "living", "scram")
    first = b"n,,n=,r=nonce"
    asks = message("p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first)
    with Wire(pool.address) as w:
        assert w.login("living", "postgres", "living_pw")[-1].type == "Z"
        for crowd in range(42):
            strangers = [Wire(pool.address) for _ in range(100)]
            for i, stranger in enumerate(strangers):
                stranger.send_startup(f"stranger_{crowd}_{i}", "postgres")
            for stranger in strangers:
                assert stranger.read().type == "R"
                stranger.send(asks)
            for stranger in strangers:
                assert stranger.read().type == "R", "a salt: it was looked up"
                stranger.reset()
        for _ in range(3):
            server.end_sessions("usename = 'living'")
            assert w.value("select session_user") == "living"


def test_a_strangers_wrong_password_breaks_no_living_session(server, pools):
    """An answer that somebody has failed by is asked for anew at the next login; md5, which is all that opens the server, stays."""
    house.make_user(server, "heir", "md5")
    pool = pools([server.address], hba="host all all all md5\n", passwd="looker:looker_pw\n", auth_user="looker",
                 auth_dbname="postgres", auth_query_expire="1h", num_init_children=1, pool_mode="transaction")
    with Wire(pool.address, seconds=30) as w:
        assert w.login("heir", "postgres", "heir_pw")[-1].type == "Z"
        assert come(pool, "heir", "wrong") == "28P01"
        server.end_sessions("usename = 'heir'")
        assert w.value("select 1") == "1"


def test_those_who_ask_at_once_share_an_answer(server, pools):
    """Also when no answer is kept."""
    pool = pools([server.address], hba=SCRAM_ALL, passwd="boss:boss_pw\n", auth_user="boss", auth_dbname="postgres", num_init_children=1,
                 auth_query="select rolname, rolpassword from pg_authid, pg_sleep(0.5) where rolname = $1::text")
    house.make_user(server, "flock", "scram")
    results = []
    threads = [threading.Thread(target=lambda: results.append(come(pool, "flock"))) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == ["in"] * 20
    assert 1 <= server.log().count("pg_sleep(0.5)") <= 6


def test_order_of_sources(server, pools):
    """The servers' word goes before that of the file, which speaks for those of whom they know nothing, and for auth_user."""
    for name in ("twice", "shared", "app_owner"):
        house.make_user(server, name, "scram")
    house.make_user(server, "old_style", "md5")
    server.rows("create role bare_role login in role srv_trust")
    passwd = ("looker:looker_pw\ntwice:stale\nalice:alice_pw:app_owner:app_owner_pw\nshared:stale:app_owner:app_owner_pw\n"
              "old_style:old_style_pw\nbare_role:stale\n")
    # One worker: another one could not ask once looker's password is another.
    pool = pools([server.address], hba=SCRAM_ALL, passwd=passwd, auth_user="looker", auth_dbname="postgres", auth_query_expire=0,
                 num_init_children=1)
    for _ in range(2):  # without and with an idle connection
        assert come(pool, "twice") == "in"
        assert come(pool, "twice", "stale") == "28P01"
        assert house.try_login(pool.address, "alice", "postgres", "alice_pw")[:2] == ("in", "app_owner"), "no role of the servers"
        assert come(pool, "alice", "app_owner_pw") == "28P01"
        assert house.try_login(pool.address, "shared", "postgres", "shared_pw")[:2] == ("in", "app_owner"), "the map holds"
        assert come(pool, "shared", "stale") == "28P01"
        assert come(pool, "looker", "looker_pw") == "in"
        assert come(pool, "old_style") == "in", "the same password, readable: good for SCRAM"
        assert come(pool, "bare_role", "stale") == "28P01", "the role has no password: the servers have spoken"
    server.rows("alter role looker password 'another'; alter role old_style password 'newer'; alter role twice password 'newer'")
    try:
        assert come(pool, "old_style") == "28P01"
        assert come(pool, "twice", "newer") == "in"
    finally:
        server.rows("alter role looker password 'looker_pw'")


def test_servers_that_cannot_be_asked(server, pools):
    """Who is in pool_passwd comes in by it, all others hear that nobody can say: test_unsure.py."""
    for name in ("known", "unfiled"):
        house.make_user(server, name, "scram")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\nknown:known_pw\n", auth_user="looker",
                 auth_dbname="postgres", auth_query="select nonsense($1::text)")
    assert come(pool, "known") == "in"
    assert come(pool, "known", "guess") == "57P03"
    assert come(pool, "unfiled") == "57P03"


@pytest.mark.parametrize("user", ["patient", "stranger"])
def test_client_is_asked_while_the_servers_are(server, pools, user):
    """How long is waited for a server that does not answer: test_unsure.py."""
    house.make_user(server, "patient", "scram")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\npatient:patient_pw\n", auth_user="looker", num_init_children=1,
                 auth_dbname="postgres", auth_query="select $1::text, 'x' from pg_sleep(100)")
    with Wire(pool.address) as w:
        w.send_startup(user, "postgres")
        assert w.read().type == "R"
        wait_for("the server is asked, and has not answered", lambda: server.sessions("query like '%pg_sleep(100)%' and state = 'active'"))


@pytest.mark.parametrize("query, right", [
    ("select rolname, rolpassword from pg_authid where rolname = $1", "in"),
    ("select 'other', rolpassword from pg_authid where rolname = $1", "28P01"),  # about somebody else
    ("select rolname, rolpassword from pg_authid where $1 <> ''", "28P01"),    # many rows
    ("select rolname from pg_authid where rolname = $1", "28P01"),              # one column
    ("select $1, 'asked_pw'", "in"),                                            # a plain password
    ("select $1, null", "28P01"),
    ("select nonsense($1)", "57P03"),
])
def test_query_of_the_administrator(server, pools, query, right):
    house.make_user(server, "asked", "scram")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="boss:boss_pw\n", auth_user="boss",
                 auth_dbname="postgres", auth_query=query.replace("$1", "$1::text"))
    assert come(pool, "asked", "wrong") == ("57P03" if right == "57P03" else "28P01")
    wait_for("the right password", lambda: come(pool, "asked") == right)
    assert come(pool, "asked", "wrong") == ("57P03" if right == "57P03" else "28P01")


def test_catalogue_without_the_function(server, pools):
    server.rows("create database bare")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="boss:boss_pw\nlooker:looker_pw\n", auth_user="boss",
                 auth_dbname="bare")
    house.make_user(server, "by_catalogue", "scram")
    assert come(pool, "by_catalogue") == "in"
    poor = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n", auth_user="looker",
                 auth_dbname="bare")
    assert come(poor, "by_catalogue") == "57P03"
    assert "Create the function pgpool_user_lookup" in poor.log()
    told = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n", auth_user="looker",
                 auth_query="select rolname, rolpassword from pg_authid where rolname = $1::text")
    assert come(told, "by_catalogue") == "57P03"
    assert "That role may not do what auth_query says" in told.log() and "or set auth_query" not in told.log()


def test_looker_without_password_is_said(server, pools):
    pool = pools([server.address], hba=SCRAM_ALL, passwd="", auth_user="looker", auth_dbname="postgres")
    assert come(pool, "boss") == "57P03"
    assert "nothing in pool_passwd answers it" in pool.log()


def test_who_asks_is_judged_by_the_file_from_its_first_entry_on(server, pools):
    """Servers are not asked about auth_user then; what they said before is no answer, however often nobody fails by it."""
    server.rows("alter role postgres password 'old'")
    try:
        pool = pools([server.address], hba=SCRAM_ALL, passwd="somebody:else\n", auth_user="postgres", auth_dbname="postgres",
                     num_init_children=1)
        assert come(pool, "postgres", "old") == "in"
        house.put(pool.home / "pool_passwd", "postgres:new\n")
        wait_for("the old password is refused", lambda: come(pool, "postgres", "old") == "28P01")
        assert come(pool, "postgres", "new") == "in"
    finally:
        server.rows("alter role postgres password null")


def test_passwd_is_read_again_when_it_changes(server, pools):
    house.make_user(server, "filed", "md5")  # a login by SCRAM cannot be left to such a server
    pool = pools([server.address], hba=SCRAM_ALL, passwd="")
    assert come(pool, "filed") == "28P01"
    house.put(pool.home / "pool_passwd", "filed:filed_pw\n")
    wait_for("the new entry is used", lambda: come(pool, "filed") == "in")
    house.put(pool.home / "pool_passwd", "filed:TEXTother\n")
    wait_for("the changed entry is used", lambda: come(pool, "filed") == "28P01")
    (pool.home / "pool_passwd").unlink()
    wait_for("the entry is gone with the file", lambda: come(pool, "filed", "other") == "28P01")


@pytest.mark.parametrize("form", ["aes", "gcm"])
def test_encrypted_entries(server, pools, form):
    """What pg_enc writes opens both legs, towards every kind of server; with another key nothing."""
    program = Path(proxy.pgpool_bin()).parent / "pg_enc"
    for method in house.METHODS:
        house.make_user(server, f"enc_{method}", method)
    for key in ("the key", "not the key"):
        pool = pools([server.address], hba=SCRAM_ALL, key=key)
        right_key = pool.home / "right"
        house.put(right_key, "the key\n")
        for method in house.METHODS:
            subprocess.run([program, "-m", "-f", pool.conf_path, "-k", right_key, "-u", f"enc_{method}",
                            *(["--format=gcm"] if form == "gcm" else []), f"enc_{method}_pw"],
                           check=True, capture_output=True)
        for method in house.METHODS:
            want = "in" if key == "the key" else "28P01"  # once the entries are read: an empty file leaves it to the server
            wait_for(f"{method} with {key}", lambda m=method, w=want: come(pool, f"enc_{m}") == w)
            assert come(pool, f"enc_{method}", "wrong") == "28P01"


def test_mapped_user(server, pools):
    """alice:pw:server_user:server_pw: the servers see the other user; alice's own password stays hers."""
    house.make_user(server, "app_owner", "scram", "app_secret")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="alice:alice_pw:app_owner:app_secret\n"
                                                         "bob:bob_pw:app_owner:app_secret\n")
    for who in ("alice", "bob"):
        got = house.try_login(pool.address, who, "postgres", f"{who}_pw")
        assert got[:2] == ("in", "app_owner"), got
        assert come(pool, who, "app_secret") == "28P01"
    assert come(pool, "app_owner", "alice_pw") == "28P01"
    assert come(pool, "alice", "bob_pw") == "28P01"


def test_md5_entry_never_passes_scram(server, pools):
    user = "only_md5"
    house.make_user(server, user, "md5")
    digest = hashlib.md5(f"{user}_pw{user}".encode()).hexdigest()
    pool = pools([server.address], hba=f"host all all all md5\n", passwd=f"{user}:md5{digest}\n")
    assert come(pool, user) == "in"
    assert come(pool, user, "x") == "28P01"
    assert come(pool, user, f"md5{digest}") == "28P01", "the stored form is not the password"


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_shared_links_open_by_keys_alone(server, pools, mode):
    """No password is anywhere: links are opened later, in the middle of sessions, with what the client's
    SCRAM proof gave away; every link of the server is closed between statements."""
    pool = ask_query(server, pools, pool_mode=mode, num_init_children=2)
    house.make_user(server, "keyed", "scram")
    wires = []
    for _ in range(4):
        w = Wire(pool.address)
        assert w.login("keyed", "postgres", "keyed_pw")[-1].type == "Z"
        wires.append(w)
    if mode != "session":
        for _ in range(5):
            server.end_sessions("usename = 'keyed'")
            for w in wires:
                assert w.value("select session_user") == "keyed"
    for w in wires:
        w.bye()


@pytest.fixture(scope="module")
def twin(server):
    """A standby."""
    pg = house.start_standby(server)
    yield pg
    pg.stop()


@pytest.mark.parametrize("source, mode", [("query", "session"), ("query", "transaction"), ("plain", "session"),
                                          ("plain", "transaction"), ("relay", "session"), ("learned", "session")])
def test_reads_go_to_a_second_server_that_asks(server, twin, pools, source, mode):
    """The login opens one server; the reader on the other logs in by itself, if anything is known."""
    secret = house.make_user(server, "reader", "scram")
    wait_for("the standby has the new secret", lambda: twin.value(
        "select max(rolpassword) from pg_authid where rolname = 'reader'") == secret)
    conf = {"load_balance_mode": True, "backend_weight0": 0, "pool_mode": mode,
            "num_init_children": 1, "sr_check_period": 1, "sr_check_user": "postgres", "sr_check_database": "postgres"}
    if source == "query":
        pool = pools([server.address, twin.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n", auth_user="looker",
                     auth_dbname="postgres", **conf)
    elif source == "plain":
        pool = pools([server.address, twin.address], hba=SCRAM_ALL, passwd="reader:reader_pw\n", **conf)
    else:
        pool = pools([server.address, twin.address], auth_learn_keys=source == "learned", **conf)

    def ports():
        with Wire(pool.address) as w:
            assert w.login("reader", "postgres", "reader_pw")[-1].type == "Z"
            found = {w.value("select current_setting('port')") for _ in range(3)}
            w.bye()
        return found

    if source == "relay":
        assert ports() == {str(server.port)}
    else:
        wait_for("reads reach the second server", lambda: str(twin.port) in ports())


@pytest.mark.parametrize("method", ["password", "md5", "scram"])
def test_clear_text_when_allowed(server, pools, method):
    """enable_pool_hba = off, nothing known: the client says its password, the server judges, and the next link
    is opened with it."""
    user = house.make_user(server, f"clear_{method}", method) and f"clear_{method}"
    pool = pools([server.address], allow_clear_text_frontend_auth=True, pool_mode="transaction", num_init_children=1)
    for _ in range(2):
        assert house.try_login(pool.address, user, "postgres", "wrong") == ("28P01", f'password authentication failed '
                                                                            f'for user "{user}"', "3")
        assert house.try_login(pool.address, user, "postgres", f"{user}_pw") == ("in", user, "3,0")
    with Wire(pool.address) as w:
        assert w.login(user, "postgres", f"{user}_pw")[-1].type == "Z"
        server.end_sessions(f"usename = '{user}'")
        assert w.value("select session_user") == user, "a link was opened without asking the client again"


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("change, wanted", [
    ("alter role pooled nologin", "28000"), ("alter role pooled valid until '2001-01-01'", "28P01"), ("drop role pooled", "28000")])
def test_role_that_may_not_log_in_any_more(server, pools, change, wanted, mode):
    """pool_passwd knows nothing of it and the idle link was opened before: sr_check_user is asked, as PostgreSQL would at a login."""
    house.make_user(server, "pooled", "scram")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="pooled:pooled_pw\n", sr_check_user="looker", sr_check_password="looker_pw",
                 num_init_children=1, pool_mode=mode)
    assert come(pool, "pooled") == "in"
    assert come(pool, "pooled", "guess") == "28P01"
    server.rows(change)
    wait_for("the change is seen", lambda: house.try_login(pool.address, "pooled", "postgres", "pooled_pw", ask=False)[0] != "in")
    assert come(pool, "pooled") == wanted
    if change.startswith("drop"):
        house.make_user(server, "pooled", "scram")
    server.rows("alter role pooled login valid until 'infinity'")
    wait_for("it is there again", lambda: come(pool, "pooled") == "in")


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_new_role_of_the_name_gets_no_old_connection(server, pools, mode):
    """The role is dropped, and known to be, while a client of it has its connection, and made anew before that is free: who comes then
    is the new one, for whom that connection knows no name."""
    house.make_user(server, "twofold", "scram")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="twofold:twofold_pw\n", sr_check_user="looker", sr_check_password="looker_pw",
                 num_init_children=1, pool_mode=mode)
    with Wire(pool.address) as w:
        assert w.login("twofold", "postgres", "twofold_pw")[-1].type == "Z"
        w.rows("begin")
        old = w.value("select pg_backend_pid()")
        since = time.monotonic()  # what was told at this login is believed for a second: the next one asks
        wait_for("a second is over", lambda: time.monotonic() > since + 1.1)
        server.rows("drop role twofold")
        wait_for("it is known to be gone", lambda: house.try_login(pool.address, "twofold", "postgres", "twofold_pw", ask=False)[0] != "in")
        house.make_user(server, "twofold", "scram")
        wait_for("it is there again", lambda: house.try_login(pool.address, "twofold", "postgres", "twofold_pw", ask=False)[0] == "in")
        w.rows("rollback")
        w.bye()
    for _ in range(3):
        with Wire(pool.address) as w:
            assert w.login("twofold", "postgres", "twofold_pw")[-1].type == "Z"
            assert w.value("select session_user") == "twofold"
            assert w.value("select pg_backend_pid()") != old
            w.bye()


def test_expiry_is_of_passwords(server, pools):
    """A server that asks for none lets an expired role in; a locked one it does not."""
    house.make_user(server, "trusted", "trust")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="trusted:trusted_pw\n", sr_check_user="looker", sr_check_password="looker_pw",
                 num_init_children=1)
    assert come(pool, "trusted") == "in"
    server.rows("alter role trusted valid until '2001-01-01'")
    for _ in range(3):
        assert come(pool, "trusted") == "in"
    server.rows("alter role trusted nologin")
    wait_for("the lock is seen", lambda: come(pool, "trusted") == "28000")


def test_nobody_to_ask_keeps_nobody_out(server, pools):
    house.make_user(server, "alone", "scram")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="alone:alone_pw\n", sr_check_user="no_such_role",
                 sr_check_password="x", num_init_children=1)
    for _ in range(3):
        assert come(pool, "alone") == "in"
    assert come(pool, "alone", "guess") == "28P01"


@pytest.mark.parametrize("change, wanted", [("nologin", "28000"), ("valid until '2001-01-01'", "28P01")])
def test_who_was_locked_stays_out_when_nobody_can_be_asked(pools, change, wanted):
    pg = house.start_server()
    try:
        house.make_user(pg, "locked", "scram")
        pool = pools([pg.address], hba=SCRAM_ALL, passwd="locked:locked_pw\n", sr_check_user="looker", sr_check_password="looker_pw",
                     num_init_children=1, pool_mode="transaction")
        assert come(pool, "locked") == "in"
        pg.rows(f"alter role locked {change}")
        wait_for("the lock is seen", lambda: come(pool, "locked") == wanted)
    finally:
        pg.stop()
    gone = time.monotonic()
    while time.monotonic() < gone + 1.5:  # what was said is believed for a second
        assert house.try_login(pool.address, "locked", "postgres", "locked_pw", ask=False)[0] in (wanted, "08001")


def test_an_answer_that_makes_no_sense_keeps_nobody_out(fake, pools):
    """Something that is no PostgreSQL: the log says so, not that the role is locked."""
    def nonsense(conn):
        conn.greet()
        for kind, body in conn.messages():
            conn.send(data_row("1") + complete("SELECT 1") if kind == "E" else conn.answer(kind, body))
    pool = pools([fake(nonsense, "looker").address], hba=SCRAM_ALL, passwd="alone:alone_pw\nlooker:looker_pw\n", sr_check_user="looker",
                 sr_check_password="looker_pw", num_init_children=1)
    for _ in range(3):
        assert come(pool, "alone") == "in"
    wait_for("the log says what it is", lambda: 'answered something else than was asked about role "alone"' in pool.log())
    assert come(pool, "alone", "guess") == "28P01"


@pytest.mark.parametrize("seconds", [0, pytest.param(31, marks=pytest.mark.slow)], ids=["fresh", "old"])
def test_in_while_all_links_are_in_use(server, pools, seconds):
    """Who has shown its password needs no link to be let in, in any worker; what was said long ago is better than
    to wait until one is free."""
    house.make_user(server, "greeted", "scram")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="greeted:greeted_pw\n", pool_mode="transaction",
                 default_pool_size=1, worker_fill=0)
    clients = []
    for i in range(6):
        w = Wire(pool.address)
        assert w.login("greeted", password="greeted_pw", application_name=f"c{i}")[-1].type == "Z"
        clients.append(w)
        if i == 0:
            w.simple("begin")
            w.simple("select 1")
            began = time.monotonic()
            wait_for("it is old", lambda: time.monotonic() - began > seconds, seconds + 10)
    assert all(w.status == {**clients[0].status, "application_name": f"c{i}"} for i, w in enumerate(clients))
    clients[0].simple("commit")
    assert [w.value("show application_name") for w in clients] == [f"c{i}" for i in range(6)]
    for w in clients:
        w.bye()


@pytest.mark.slow
def test_no_operator_by_what_was_said_long_ago(server, pools):
    """Who was a superuser when others logged in, and is let in without a connection, is none by that."""
    house.make_user(server, "greeted", "scram")
    server.rows("alter role greeted superuser")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="greeted:greeted_pw\n", pool_mode="transaction",
                 default_pool_size=1, worker_fill=0)
    clients = []
    for i in range(4):
        w = Wire(pool.address)
        assert w.login("greeted", password="greeted_pw", application_name=f"c{i}")[-1].type == "Z"
        clients.append(w)
        if i == 0:
            w.simple("begin")
            w.simple("select 1")
            began = time.monotonic()
            wait_for("it is old", lambda: time.monotonic() - began > 31, 40)
            server.rows("alter role greeted nosuperuser")
    said = {next(m.sqlstate for m in w.simple("pgpool resume") if m.type == "E") for w in clients}
    assert said == {"55000", "42501"}  # in the worker that has asked: nothing is paused; in the other one: you may not
    for w in clients:
        w.bye()
