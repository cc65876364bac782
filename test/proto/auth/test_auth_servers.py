# SPDX-License-Identifier: PostgreSQL
"""test_auth_servers: servers that ask for what nobody can give, skip steps, or break off in the middle of a
login: the client is told, nothing hangs, and a client that did not prove itself gets no session."""
import base64
import hashlib
import hmac
import os
import struct
import subprocess
import threading

import pytest

import auth_house as house
from pgt import proxy, waits
from pgt.fake import auth_ok, error, key_data, parameter, ready
from pgt.wire import Wire, message

SESSION = parameter("server_version", "15.1") + key_data(4711, b"\1\2\3\4") + ready()

POOL_CONF = {"num_init_children": 1}


def auth(code: int, rest: bytes = b"") -> bytes:
    return message("R", struct.pack("!I", code) + rest)


SAYS = {
    "gssapi": auth(7),
    "sspi": auth(9),
    "kerberos": auth(2),
    "unknown code": auth(99),
    "short": message("R", b"\0\0"),
    "md5 without salt": auth(5),
    "scram without scram": auth(10, b"OTHER\0\0"),
    "hangs up": None,
    "refuses": error("55000", "not today", "FATAL"),
    "nonsense": message("D", b"\0\0"),
    "session at once": SESSION,
    "continues nothing": auth(11, b"r=x"),
}


@pytest.mark.parametrize("passwd", ["", "fake:fake_pw\n"], ids=["unknown", "stored"])
@pytest.mark.parametrize("rule", [None, "password", "md5", "scram-sha-256", "trust"])
@pytest.mark.parametrize("what", SAYS)
def test_server_asks_for_the_impossible(fake, pools, what, rule, passwd):
    says = SAYS[what]
    if what == "scram without scram" and not passwd and rule in (None, "md5", "scram-sha-256"):
        pytest.skip("relayed: it is for the client to end it")

    def script(conn):
        if says is None:
            return
        conn.send(says)
        while True:
            conn.read()

    server = fake(script)
    pool = pools([server.address], hba=rule and f"host all all all {rule}\n", passwd=passwd)
    for password in ("fake_pw", "wrong"):
        with Wire(pool.address) as w:
            w.send_startup("fake", "postgres")
            found = w.authenticate("fake", password)
        assert found[-1].type == "E" and found[-1].fields["S"] == "FATAL", found


@pytest.mark.parametrize("rule", ["password", "md5", "scram-sha-256"])
def test_server_that_trusts_opens_nothing(fake, pools, rule):
    """The server lets everybody in; the rule wants a proof; nobody has it."""
    server = fake()
    pool = pools([server.address], hba=f"host all all all {rule}\n", passwd="")
    for _ in range(3):
        assert house.try_login(pool.address, "fake", "postgres", "x", ask=False)[0] == "28P01"


def test_server_that_does_not_prove_itself(fake, pools):
    """Ok before the end of SCRAM: somebody who knows no verifier is taken for the server."""
    def script(conn):
        conn.send(auth(10, b"SCRAM-SHA-256\0\0"))
        conn.read()
        conn.send(auth_ok(), SESSION)
        while True:
            conn.read()

    server = fake(script)
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="fake:fake_pw\n")
    with Wire(pool.address) as w:
        w.send_startup("fake", "postgres")
        found = w.authenticate("fake", "fake_pw")
    assert found[-1].type == "E" and "before it proved" in found[-1].text


def test_iterations_of_a_server_stop_nobody(request):
    """A verifier with 1,000,000 iterations: who derives the keys for it keeps no other client of the worker waiting."""
    pg = house.start_server()
    request.addfinalizer(pg.stop)
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", b"costly_pw", salt, 1000000)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    parts = [base64.b64encode(x).decode() for x in (salt, stored, hmac.digest(salted, b"Server Key", "sha256"))]
    names = [f"costly{i}" for i in range(5)]
    house.make_user(pg, "busy", "trust")
    pool = house.start_auth_pool([pg.address], hba="host all all all password\n", num_init_children=1,
                                 passwd="busy:busy_pw\n" + "".join(f"{name}:costly_pw\n" for name in names))
    request.addfinalizer(pool.stop)
    busy = Wire(pool.address)
    assert busy.login("busy", "postgres", "busy_pw")[-1].type == "Z"

    def round_of(name: str) -> tuple[int, float, float]:
        """How often the other client was answered while this one came in, the longest time of that, and how long it took."""
        with Wire(pg.socket, seconds=100) as w:  # the server tries whether it is the empty password
            w.login()
            w.rows(f"create role {name} login password 'SCRAM-SHA-256$1000000:{parts[0]}${parts[1]}:{parts[2]}'")
        came = []
        guest = threading.Thread(target=lambda: came.append(house.try_login(pool.address, name, "postgres", "costly_pw")[0]))
        begin = waits.now()
        guest.start()
        longest = answered = 0
        while guest.is_alive():
            at = waits.now()
            assert busy.value("select 1") == "1"
            longest = max(longest, waits.now() - at)
            answered += 1
        took = waits.now() - begin
        guest.join()
        assert came == ["in"]
        return answered, longest, took

    seen = []
    for name in names:  # a machine that is busy may keep anybody waiting, but not each time
        seen.append(round_of(name))
        if seen[-1][0] > 10 and seen[-1][1] < seen[-1][2] / 2:
            break
    else:
        pytest.fail(f"answered, the longest wait, all of it: {seen}")
    assert house.try_login(pool.address, names[0], "postgres", "guess")[0] == "28P01"
    busy.bye()


ASKS = {"password": auth(3), "md5": auth(5, b"salt"), "scram-sha-256": auth(10, b"SCRAM-SHA-256\0\0"),
        "none": auth_ok() + SESSION}


@pytest.mark.parametrize("required, given", [
    ("auto", {"md5", "scram-sha-256", "none"}),
    ("", {"md5", "scram-sha-256", "none"}),
    ("password", {"password"}),
    ("scram-sha-256", {"scram-sha-256"}),
    ("md5, scram-sha-256", {"md5", "scram-sha-256"}),
    ("!password,!none", {"md5", "scram-sha-256"}),
    ("!scram-sha-256", {"password", "md5", "none"}),
])
def test_what_a_server_may_ask_for(fake, pools, required, given):
    """Who is in a server's place asks for the clear text; without TLS it is not given unless the file says so, or the client
    has sent it like that."""
    asks = {}

    def script(conn):
        conn.send(ASKS[asks["now"]])
        asks["heard"] = conn.read()
        if asks["now"] != "none":
            conn.send(error("28P01", "no matter", "FATAL"))
            return
        while True:
            conn.read()

    server = fake(script)
    for passwd, rule in (("fake:TEXTfake_pw\n", "scram-sha-256"), ("", "password")):
        unless_told = {"md5"} if passwd and required in ("auto", "") else set()  # the line says SCRAM
        pool = pools([server.address], hba=f"host all all all {rule}\n", passwd=passwd, backend_require_auth=required)
        for method in ASKS:
            asks.clear()
            asks["now"] = method
            with Wire(pool.address) as w:
                w.send_startup("fake", "postgres")
                found = w.authenticate("fake", "fake_pw")
                if method == "none" and "none" in given:
                    assert (found[-1].type == "Z") == bool(passwd), "nobody has judged who is not known"
                    continue
                assert found[-1].type == "E" and found[-1].fields["S"] == "FATAL"
            may = method in given - unless_told or (method == "password" and required in ("auto", "") and not passwd)
            assert (asks.get("heard", ("",))[0] == "p") == may, (method, found[-1].fields)
            assert b"fake_pw" not in asks.get("heard", ("", b""))[1] or method == "password"
            if method not in given - unless_told and passwd:
                assert found[-1].sqlstate == "28000" and "node 0" in found[-1].text, found[-1].fields


def test_require_auth_is_checked(fake, pools):
    pool = pools([fake(lambda conn: None).address], hba="host all all all trust\n")
    for value, what in (("md5,!none", "mixes"), ("auto,md5", "mixes"), ("rot13", "invalid value")):
        pool.write_conf(backend_require_auth=value)
        done = subprocess.run([proxy.pgpool_bin(), "--check-config", "-f", str(pool.conf_path)], capture_output=True,
                              text=True, check=False)
        assert done.returncode != 0 and what in done.stdout + done.stderr, done


@pytest.mark.parametrize("rule, secret, given", [
    ("scram-sha-256", "plain", set()),
    ("md5", "plain", {"md5"}),
    ("password", "plain", {"md5", "password"}),
    ("trust", "plain", {"md5"}),
    (None, "plain", {"md5", "password"}),
    ("password", "verifier", set()),
    ("md5", "md5", {"md5"}),
])
def test_where_scram_is_due_a_server_is_given_nothing_less(fake, pools, rule, secret, given):
    """What pool_hba.conf or the secret's kind says: who takes a server's place and asks for md5 or the clear text gets neither."""
    asks = {}

    def script(conn):
        conn.send(ASKS[asks["now"]])
        asks["heard"] = conn.read()
        conn.send(error("28P01", "no matter", "FATAL"))

    server = fake(script)
    text = {"plain": "TEXTfake_pw", "md5": "md5" + hashlib.md5(b"fake_pwfake").hexdigest(), "verifier": verifier_of("fake_pw")}
    pool = pools([server.address], hba=rule and f"host all all all {rule}\n", passwd=f"fake:{text[secret]}\n",
                 backend_require_auth="auto")
    for method in ("md5", "password"):
        asks.clear()
        asks["now"] = method
        with Wire(pool.address) as w:
            w.send_startup("fake", "postgres")
            last = w.authenticate("fake", "fake_pw")[-1]
        assert last.type == "E" and last.fields["S"] == "FATAL", last
        assert (asks.get("heard", ("",))[0] == "p") == (method in given), (method, last.fields)
        if rule == "scram-sha-256" or secret == "verifier":
            assert last.sqlstate == "28000" and "node 0" in last.text and '"fake"' in last.text and f'"{method}"' in last.text
            assert f"backend_require_auth = 'scram-sha-256,{method}'" in last.fields["H"], last.fields


def verifier_of(password: str) -> str:
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 4096)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    parts = [base64.b64encode(x).decode() for x in (salt, stored, hmac.digest(salted, b"Server Key", "sha256"))]
    return f"SCRAM-SHA-256$4096:{parts[0]}${parts[1]}:{parts[2]}"


def test_who_was_logged_in_by_scram_is_not_by_md5(request):
    """The secret is a plain one and no line says anything: what its server has once asked for is not given for less."""
    pg = house.start_server()
    request.addfinalizer(pg.stop)
    house.make_user(pg, "ann", "scram")
    settings = {"hba": "host all all all trust\n", "passwd": "ann:TEXTann_pw\n", "num_init_children": 1}
    pool = house.start_auth_pool([pg.address], backend_require_auth="auto", **settings)
    request.addfinalizer(pool.stop)
    with Wire(pool.address) as w:
        assert w.login("ann", "postgres")[-1].type == "Z"
    house.make_user(pg, "ann", "md5")
    with Wire(pool.address) as w:
        w.send_startup("ann", "template1")
        last = w.authenticate("ann", "")[-1]
    assert last.type == "E" and last.sqlstate == "28000" and "'scram-sha-256,md5'" in last.fields["H"], last.fields
    pool.reload(backend_require_auth="scram-sha-256,md5")
    waits.wait_for("the setting is obeyed", lambda: house.try_login(pool.address, "ann", "template1", "", ask=False)[0] == "in")


def test_look_ups_answer_by_the_kind_of_their_own_secret(request):
    """The line of a client says nothing of auth_user: an md5 server is answered for it, and not for the client."""
    pg = house.start_server()
    request.addfinalizer(pg.stop)
    house.make_user(pg, "asker", "md5")
    pg.rows("grant pg_read_all_data to asker; alter role asker superuser")
    house.make_user(pg, "ben", "scram")
    pool = house.start_auth_pool([pg.address], hba="host all all all scram-sha-256\n", passwd="asker:TEXTasker_pw\n",
                                 backend_require_auth="auto", auth_user="asker",
                                 auth_query="select rolname, rolpassword from pg_authid where rolname = $1")
    request.addfinalizer(pool.stop)
    assert house.try_login(pool.address, "ben", "postgres", "ben_pw")[0] == "in"
    assert house.try_login(pool.address, "ben", "postgres", "wrong")[0] == "28P01"
    with Wire(pool.address) as w:
        w.send_startup("asker", "template1")
        last = w.authenticate("asker", "asker_pw")[-1]
    assert last.type == "E" and last.sqlstate == "28000", last.fields
