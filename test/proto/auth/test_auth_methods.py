# SPDX-License-Identifier: PostgreSQL
"""test_auth_methods: PAM, LDAP, certificates, peer; lines that need a look-up; files that are wrong; limits
and delays; a helper that hangs delays nobody else."""
import base64
import hashlib
import hmac
import os
import pwd
import re
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

import auth_house as house
import ldap_house
from pgt import certs, procs
from pgt.tls import TlsWire
from pgt.waits import wait_for
from pgt.wire import Wire, message, query

RULE_OK = "host all all all trust\n"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    for name in ("ann", "bob", "cid"):
        house.make_user(pg, name, "trust")
    yield pg
    pg.stop()


def come(address, user, password="", database="postgres"):
    return house.try_login(address, user, database, password)[0]


# ---- LDAP ----

@pytest.fixture
def directory():
    made = []

    def start(*args):
        made.append(ldap_house.Directory(*args))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_ldap_simple_bind(server, pools, directory):
    d = directory({"uid=ann,dc=x": "secret"})
    pool = pools([server.address], hba=f"host all all all ldap ldapserver=127.0.0.1 ldapport={d.port} "
                                       'ldapprefix="uid=" ldapsuffix=",dc=x"\n')
    assert come(pool.address, "ann", "secret") == "in"
    assert come(pool.address, "ann", "wrong") == "28000"
    assert come(pool.address, "ann", "") == "28P01"
    assert come(pool.address, "bob", "secret") == "28000"
    before = len(d.binds)
    assert come(pool.address, "ann,dc=y", "secret") == "28000"
    assert len(d.binds) == before, "a name with special characters is not even tried"


@pytest.mark.parametrize("how", ["ldapbasedn", "ldapurl", "filter"])
def test_ldap_search_and_bind(server, pools, directory, how):
    d = directory({"cn=Ann,dc=x": "secret", "cn=Two,dc=x": "secret", "cn=reader": "reader_pw"},
                  {"ann": ["cn=Ann,dc=x"], "bob": [], "cid": ["cn=Two,dc=x", "cn=Ann,dc=x"]})
    options = {
        "ldapbasedn": f'ldapserver=127.0.0.1 ldapport={d.port} ldapbasedn="dc=x" ldapsearchattribute=mail '
                      f'ldapbinddn="cn=reader" ldapbindpasswd=reader_pw',
        "ldapurl": f'ldapurl="ldap://127.0.0.1:{d.port}/dc=x?mail?sub"',
        "filter": f'ldapserver=127.0.0.1 ldapport={d.port} ldapbasedn="dc=x" ldapsearchfilter="(mail=$username)"',
    }[how]
    pool = pools([server.address], hba=f"host all all all ldap {options}\n")
    assert come(pool.address, "ann", "secret") == "in"
    assert come(pool.address, "ann", "wrong") == "28000"
    assert come(pool.address, "bob", "secret") == "28000", "no entry"
    assert come(pool.address, "cid", "secret") == "28000", "several entries"
    assert "mail=ann" in d.filters
    come(pool.address, "*", "secret")
    assert "mail=*" in d.filters, "an asterisk arrives as a character, not as a wildcard"


def test_ldap_over_tls(server, pools, monkeypatch):
    """ldaps and StartTLS, by options and by URL, binding and searching first: with a certificate of an authority that the
    library knows; any other is refused before a password is sent, and the log says why."""
    trusted, strange = certs.Authority("directory CA"), certs.Authority("strange CA")
    people, entries = {"uid=ann,dc=x": "secret", "cn=Ann,dc=x": "secret"}, {"ann": ["cn=Ann,dc=x"]}
    made = {(kind, later): ldap_house.Directory(people, entries, pair, later) for kind, pair in {
        "good": trusted.issue(), "strange": strange.issue(), "named": trusted.issue("elsewhere", "DNS:elsewhere")}.items()
        for later in (False, True)}

    def line(database: str, kind: str, later: bool, search: bool, url: bool = False) -> str:
        port = made[kind, later].port
        where = f"ldapserver=127.0.0.1 ldapport={port} " + ("ldaptls=1" if later else "ldapscheme=ldaps")
        if url:
            return f'host {database} all all ldap ldapurl="ldap{"" if later else "s"}://127.0.0.1:{port}/dc=x?uid?sub" ' \
                   + ("ldaptls=1" if later else "") + "\n"
        return f"host {database} all all ldap {where} " + ('ldapbasedn="dc=x"' if search else 'ldapprefix="uid=" ldapsuffix=",dc=x"') + "\n"

    monkeypatch.setenv("LDAPTLS_CACERT", str(trusted.cert))
    good = {f"g{i}": (later, search, url) for i, (later, search, url) in enumerate(
        (later, search, url) for later in (False, True) for search, url in ((False, False), (True, False), (True, True)))}
    bad = {f"b{i}": (kind, later) for i, (kind, later) in enumerate((k, t) for k in ("strange", "named") for t in (False, True))}
    pool = pools([server.address], hba="".join(line(name, "good", *how) for name, how in good.items()) +
                 "".join(line(name, kind, later, False) for name, (kind, later) in bad.items()))
    try:
        for name, how in good.items():  # 3D000: in, but there is no such database
            assert come(pool.address, "ann", "secret", name) == "3D000", how
            assert come(pool.address, "ann", "wrong", name) == "28000", how
        for name, how in bad.items():
            before = len(pool.log())
            assert come(pool.address, "ann", "secret", name) == "28000", how
            said = pool.log()[before:]
            assert "certificate is not of an authority" in said and ("could not start TLS" in said or "LDAP login" in said), said
        for (kind, _), d in made.items():
            assert d.in_clear == 0 and (kind == "good" or set(d.binds) <= {""}), kind  # "": asked why, as nobody
    finally:
        for d in made.values():
            d.close()


@pytest.mark.parametrize("options", ["ldapscheme=ldaps ldapbasedn=dc=x", "ldapurl=ldaps:///dc=x?uid?sub"])
def test_ldap_without_a_server(server, pools, options):
    """Nobody's default takes its place: a password would go there, perhaps without TLS."""
    pool = pools([server.address], hba=f"host all all all ldap {options}\n")
    assert come(pool.address, "ann", "secret") == "28000"
    wait_for("the log says why", lambda: "names no LDAP server" in pool.log())


def test_ldap_password_opens_the_server(server, pools, directory):
    house.make_user(server, "ldap_both", "scram", "secret")
    d = directory({"uid=ldap_both,dc=x": "secret"})
    rule = (f"host all all all ldap ldapserver=127.0.0.1 ldapport={d.port} "
            'ldapprefix="uid=" ldapsuffix=",dc=x"')
    assert come(pools([server.address], hba=rule + " backend_use_passwd=1\n").address, "ldap_both", "secret") == "in"
    assert come(pools([server.address], hba=rule + "\n").address, "ldap_both", "secret") == "28P01"


def test_hung_directory_delays_nobody(server, pools, directory):
    """40 logins hang at the directory; others come in, and in no more time; then the 40 go on."""
    d = directory({"uid=ann,dc=x": "secret"})
    pool = pools([server.address], num_init_children=1,
                 hba=f"host all ann all ldap ldapserver=127.0.0.1 ldapport={d.port} "
                     'ldapprefix="uid=" ldapsuffix=",dc=x"\n' + RULE_OK)
    d.go.clear()
    results = []
    threads = [threading.Thread(target=lambda: results.append(come(pool.address, "ann", "secret")))
               for _ in range(40)]
    for t in threads:
        t.start()
    wait_for("all of them hang", lambda: d.waiting == 40)
    for _ in range(20):
        assert come(pool.address, "bob") == "in"
    assert not results, "the directory is waited for until the test lets it go"
    d.go.set()
    for t in threads:
        t.join()
    assert results == ["in"] * 40


def test_hung_directory_ends_with_the_timeout(server, pools, directory):
    d = directory({})
    pool = pools([server.address], authentication_timeout="1s", num_init_children=1,
                 hba=f"host all all all ldap ldapserver=127.0.0.1 ldapport={d.port} "
                     'ldapprefix="uid=" ldapsuffix=",dc=x"\n')
    d.go.clear()
    assert come(pool.address, "ann", "secret") in ("57014", "28000")
    d.go.set()


# ---- PAM ----

@pytest.fixture
def pam_service(tmp_path_factory):
    """A service whose module asks a script: the password must be the user's name with _pam."""
    if not os.access("/etc/pam.d", os.W_OK) or not list(Path("/").glob("usr/lib/*/security/pam_exec.so")):
        pytest.skip("no right to add a PAM service, or no pam_exec")
    home = tmp_path_factory.mktemp("pam")
    script = home / "ask"
    script.write_text('#!/bin/sh\nread -r word\n[ -p "$0.hang" ] && read -r line < "$0.hang"\n'
                      '[ "$word" = "${PAM_USER}_pam" ]\n', encoding="ascii")
    script.chmod(0o755)
    path = Path(f"/etc/pam.d/pgt-{os.getpid()}")
    path.write_text(f"auth required pam_exec.so quiet expose_authtok {script}\naccount required pam_permit.so\n",
                    encoding="ascii")
    yield path.name, script
    path.unlink()


def test_pam(server, pools, pam_service):
    name, _ = pam_service
    pool = pools([server.address], hba=f"host all all all pam pamservice={name}\n")
    assert come(pool.address, "ann", "ann_pam") == "in"
    assert come(pool.address, "ann", "bob_pam") == "28000"
    assert come(pool.address, "bob", "bob_pam") == "in"
    house.make_user(server, "pam_user", "scram", "pam_user_pam")
    assert come(pool.address, "pam_user", "pam_user_pam") == "in", "the password opens the server, too"


def test_hung_pam_delays_nobody(server, pools, pam_service):
    name, script = pam_service
    pool = pools([server.address], num_init_children=1, hba=f"host all ann all pam pamservice={name}\n" + RULE_OK)
    fifo = Path(f"{script}.hang")
    os.mkfifo(fifo)
    result = []
    t = threading.Thread(target=lambda: result.append(come(pool.address, "ann", "ann_pam")))
    t.start()
    for _ in range(20):
        assert come(pool.address, "bob") == "in"
    assert not result
    with open(fifo, "w", encoding="ascii") as f:  # opens when the script reads
        f.write("go\n")
    t.join()
    assert result == ["in"]


# ---- certificates and peer ----

def by_psql(pool, user, pair=None, password="none", **more):
    """libpq's own login over TLS; returns "in" or what it says."""
    env = {**os.environ, "PGPASSWORD": password, "PGSSLMODE": "require", "PGGSSENCMODE": "disable",
           "PGCONNECT_TIMEOUT": "20", "PGSSLROOTCERT": "/nonexistent", "PGSSLCERT": "/nonexistent",
           "PGSSLKEY": "/nonexistent", **more}
    if pair is not None:
        env |= {"PGSSLCERT": str(pair.cert), "PGSSLKEY": str(pair.key)}
    got = subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(pool.port), "-U", user, "-d", "postgres", "-XqAtc",
                          "select session_user"], env=env, capture_output=True, text=True, timeout=60, check=False)
    return "in" if got.returncode == 0 and got.stdout.strip() else got.stderr


@pytest.fixture(scope="module")
def authority():
    return certs.Authority()


@pytest.fixture
def tls_pool(server, pools, authority):
    """A pgpool with TLS that asks clients for a certificate of the authority."""
    pair = authority.issue()

    def start(hba, **conf):
        return pools([server.address], hba=hba, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key,
                     ssl_ca_cert=authority.cert, **conf)

    return start


def test_certificate(tls_pool, authority):
    ann, other = authority.issue("ann"), authority.issue("ann@example.com")
    stranger = certs.Authority("strangers").issue("ann")
    pool = tls_pool("hostssl all all all cert\n")
    assert by_psql(pool, "ann", ann) == "in"
    assert 'LOG:  SSL certificate authentication for user "ann" with Pgpool-II is successful' in pool.log()
    assert 'CERT authentication failed for user "bob"' in by_psql(pool, "bob", ann)
    assert "client authentication failed" in by_psql(pool, "ann")
    assert by_psql(pool, "ann", stranger) != "in"
    assert by_psql(pool, "ann", authority.issue("Ann")) != "in", "two roles may differ in case alone"
    assert 'CERT authentication failed for user "ann"' in by_psql(pool, "ann", other)
    assert pool.log().count("with Pgpool-II is successful") == 1
    pool = tls_pool("hostssl all all all cert map=m\n", ident="m /^(.*)@example\\.com$ \\1\n")
    assert by_psql(pool, "ann", other) == "in"
    assert by_psql(pool, "bob", other) != "in"
    assert by_psql(pool, "ann", ann) != "in"


def test_certificate_besides_a_password(server, tls_pool, authority):
    house.make_user(server, "certain", "scram")
    right, wrong = authority.issue("certain"), authority.issue("ann")
    pool = tls_pool("hostssl all all all scram-sha-256 clientcert=verify-full\n", passwd="certain:certain_pw\n")
    assert by_psql(pool, "certain", right, "certain_pw") == "in"
    assert by_psql(pool, "certain", right, "nope") != "in"
    assert by_psql(pool, "certain", wrong, "certain_pw") != "in"
    assert by_psql(pool, "certain", None, "certain_pw") != "in"
    pool = tls_pool("hostssl all all all scram-sha-256 clientcert=verify-ca\n", passwd="certain:certain_pw\n")
    assert by_psql(pool, "certain", wrong, "certain_pw") == "in"
    assert by_psql(pool, "certain", None, "certain_pw") != "in"


def test_channel_binding(server, tls_pool):
    house.make_user(server, "binder", "scram")
    for passwd, conf in (("binder:binder_pw\n", {}),
                         ("looker:looker_pw\n", {"auth_user": "looker", "auth_dbname": "postgres"})):
        pool = tls_pool("hostssl all all all scram-sha-256\n", passwd=passwd, **conf)
        assert by_psql(pool, "binder", None, "binder_pw", PGCHANNELBINDING="require") == "in"
        assert by_psql(pool, "binder", None, "wrong", PGCHANNELBINDING="require") != "in"
        assert by_psql(pool, "binder", None, "binder_pw", PGCHANNELBINDING="disable") == "in"


def test_lines_about_tls(server, tls_pool):
    pool = tls_pool("hostssl all ann all trust\nhostnossl all bob all trust\n")
    assert by_psql(pool, "ann") == "in"
    assert come(pool.address, "ann") == "28000"
    assert come(pool.address, "bob") == "in"
    assert "SSL on" in by_psql(pool, "bob")


def peer_name() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def test_peer(server, pools):
    me = peer_name()
    pool = pools([server.address], hba="local all ann peer map=m\nlocal all all peer\n", ident=f"m {me} ann\n")
    if me != "postgres":
        house.make_user(server, me, "trust")
    assert come(pool.socket, me) == "in"
    assert come(pool.socket, "ann") == "in"
    assert come(pool.socket, "bob") == "28000"
    assert come(pool.address, "ann") == "28000", "no line for TCP"


# ---- questions ----

def test_members_of_roles(server, pools):
    server.rows("create role staff")
    server.rows("create role inner_staff")
    server.rows("grant staff to inner_staff")
    server.rows("grant inner_staff to ann")
    server.rows("create database staff")
    hba = "host staff all all reject\nhost all +staff all trust\nhost all all all reject\n"
    pool = pools([server.address], hba=hba, passwd="looker:looker_pw\n", auth_user="looker",
                 auth_dbname="postgres", auth_query_expire=0)
    assert come(pool.address, "ann") == "in", "a member of a member"
    assert come(pool.address, "bob") == "28000"
    assert come(pool.address, "boss") == "28000", "a superuser is no member"
    server.rows("grant staff to bob")
    assert come(pool.address, "bob") == "in"
    server.rows("revoke staff from bob")
    assert come(pool.address, "bob") == "28000"
    pool = pools([server.address], hba="host samerole all all trust\n", passwd="looker:looker_pw\n", auth_user="looker", auth_dbname="postgres")
    assert come(pool.address, "ann", database="staff") == "in"
    nobody = pools([server.address], hba=hba)
    assert come(nobody.address, "ann") == "28000", "who cannot be asked for does not pass"
    assert 'whether user "ann" is in role "staff"' in nobody.log()


def test_host_names(server, pools):
    pool = pools([server.address], hba="host all ann localhost trust\nhost all bob .nowhere.invalid trust\n")
    assert come(pool.address, "ann") == "in"
    assert come(pool.address, "bob") == "28000"


# ---- files ----

def test_no_line_fits(server, pools):
    pool = pools([server.address], hba="host other all all trust\n")
    with Wire(pool.address) as w:
        e = w.login("ann", "postgres")[-1]
    assert (e.sqlstate, e.text) == ("28000", "client authentication failed")
    assert e.fields["D"] == ('no pool_hba.conf entry for host "127.0.0.1", user "ann", database "postgres", '
                             "SSL off")


def test_broken_file_at_reload_changes_nothing(server, pools):
    # One worker: it answers, so it has read its rules; a second one might do so after the file was changed.
    pool = pools([server.address], hba="host all ann all trust\n", num_init_children=1)
    house.put(pool.home / "pool_hba.conf", "host all bob all trust\nhost all all 10.0.0.0/99 trust\nnonsense\n")
    pool.reload()
    wait_for("the file is found broken", lambda: "stay in use" in pool.log())
    assert "pool_hba.conf:2:" in pool.log() and "pool_hba.conf:3:" in pool.log(), "every mistake, with its line"
    assert re.search(r"WARNING:  .*stay in use\n.*HINT:  Correct", pool.log())
    assert come(pool.address, "ann") == "in" and come(pool.address, "bob") == "28000"
    assert "no client is let in" not in pool.log()
    for pid in procs.children(pool.daemon.pid):
        if not re.search("monitor|PCP|logger", procs.command_line(pid)):  # a worker
            os.kill(pid, signal.SIGKILL)
    wait_for("one that starts now has no rules, and says so", lambda: "no client is let in by this process" in pool.log())
    (pool.home / "pool_hba.conf").unlink()
    pool.reload()
    wait_for("none is there", lambda: "pool_hba.conf: could not open file" in pool.log())
    assert "pool_hba.conf:0:" not in pool.log(), "a file that is not there has no lines"
    house.put(pool.home / "pool_hba.conf", "host all bob all trust\n")
    pool.reload()
    wait_for("the new file counts", lambda: come(pool.address, "bob") == "in")
    assert come(pool.address, "ann") == "28000"


def test_rules_that_a_reload_wants_first_and_cannot_have(server, pools):
    """Nobody comes in then: whoever ordered it is told, and each worker says so, loudly."""
    pool = pools([server.address], num_init_children=2)
    house.put(pool.home / "pool_hba.conf", "nonsense\n")
    pool.write_conf(**{**pool.conf, "enable_pool_hba": True})
    done = subprocess.run([os.environ["PGPOOL_BIN"], "-f", str(pool.conf_path), "reload"], capture_output=True, text=True, check=False)
    assert "pool_hba.conf:1:" in done.stderr and "nobody is let in" in done.stderr, done.stderr
    wait_for("each says so", lambda: len(re.findall(r"WARNING:  .*no client is let in by this process", pool.log())) == 2)
    assert come(pool.address, "ann") == "28000"


# ---- limits ----

def test_failure_delay(server, pools):
    house.make_user(server, "slow", "scram")
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="slow:slow_pw\n",
                 auth_failure_delay="400ms", num_init_children=1)
    for user in ("slow", "unknown_user"):
        begin = time.monotonic()
        assert come(pool.address, user, "wrong") == "28P01"
        assert time.monotonic() - begin >= 0.35

    def delay_of_the_right_one() -> float:
        begin = time.monotonic()
        assert come(pool.address, "slow", "slow_pw") == "in"
        return time.monotonic() - begin

    wait_for("the right password is not made to wait", lambda: delay_of_the_right_one() < 0.35)


def test_failure_limit_counts_over_all_workers(server, pools):
    house.make_user(server, "limited", "scram")
    pool = pools([server.address], hba="host all all all scram-sha-256\nlocal all all scram-sha-256\n",
                 passwd="limited:limited_pw\n", auth_failure_limit=5, num_init_children=2)
    assert [come(pool.address, "limited", "wrong") for _ in range(5)] == ["28P01"] * 5
    with Wire(pool.address) as w:
        e = w.login("limited", "postgres", "limited_pw")[-1]
    assert (e.sqlstate, e.text) == ("28000", "too many failed logins from this address")
    assert come(pool.socket, "limited", "limited_pw") == "in", "another way in is not concerned"


def test_broken_off_exchanges_are_failures(server, pools):
    """Who leaves when asked for a password is psql; who leaves with the salt in hand has got something."""
    house.make_user(server, "limited", "scram")
    pool = pools([server.address], hba="host all all all scram-sha-256\nlocal all all scram-sha-256\n",
                 passwd="limited:limited_pw\n", auth_failure_limit=3, num_init_children=1)

    def leave(says_first):
        with Wire(pool.address) as w:
            w.send_startup("limited", "postgres")
            assert w.read().type == "R"
            if says_first:
                first = b"n,,n=,r=nonce"
                w.send(message("p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first))
                assert w.read().type == "R"

    for _ in range(6):
        leave(False)
    assert come(pool.address, "limited", "limited_pw") == "in"
    for _ in range(3):
        leave(True)
    wait_for("the limit", lambda: come(pool.address, "limited", "limited_pw") == "28000")
    assert pool.log().count("The client broke off the exchange.") == 3


def test_who_waits_at_the_prompt_is_no_better_off(server, pools):
    """Logins that were begun before the limit was reached have no further guess each."""
    house.make_user(server, "limited", "scram")
    pool = pools([server.address], hba="host all all all scram-sha-256\nlocal all all scram-sha-256\n",
                 passwd="limited:limited_pw\n", auth_failure_limit=3, num_init_children=1)
    with Wire(pool.address) as early:
        early.send_startup("limited", "postgres")
        assert early.read().type == "R"
        assert [come(pool.address, "limited", "wrong") for _ in range(3)] == ["28P01"] * 3
        first = b"n,,n=,r=nonce"
        early.send(message("p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first))
        e = early.read()
        assert (e.type, e.sqlstate, e.text) == ("E", "28000", "too many failed logins from this address")


def test_silent_client_meets_the_timeout(server, pools):
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="x:y\n",
                 authentication_timeout="1s", num_init_children=1)

    def told() -> list[str]:
        with Wire(pool.address) as w:
            w.send_startup("x", "postgres")
            return [m.sqlstate or m.type for m in w.read_eof()]

    # Where a process is held up for a second the end comes in front of the question.
    wait_for("it is asked, and sent away", lambda: told() == ["R", "57014"])


def test_unknown_user_looks_like_a_wrong_password(server, pools):
    """Messages and texts are the same, and so is a user's salt each time, also after a restart."""
    house.make_user(server, "known", "scram")
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="known:known_pw\nlooker:looker_pw\n",
                 auth_user="looker", auth_dbname="postgres")
    seen = {}
    for user in ("known", "unknown", "known", "unknown"):
        with Wire(pool.address) as w:
            found = w.login(user, "postgres", "wrong")
        first = found[1].body[4:].decode()
        salt = [p for p in first.split(",") if p.startswith(("s=", "i="))]
        shape = [m.type for m in found], found[-1].sqlstate, found[-1].text.replace(user, "U"), len(first)
        assert seen.setdefault(user, (salt, shape)) == (salt, shape)
        if len(seen) == 2 and user == "unknown":
            pool.stop()
            pool.start()
    assert seen["known"][1] == seen["unknown"][1]
    assert [len(x) for x in seen["known"][0]] == [len(x) for x in seen["unknown"][0]]


def test_unknown_user_is_asked_what_known_ones_are(server, pools):
    """With auth_query, whatever the line says: the same questions, and no connection to the server that would take its time."""
    house.make_user(server, "looked_up", "scram")
    pool = pools([server.address], hba=house.hba_by_database(), passwd="looker:looker_pw\n", auth_user="looker", auth_dbname="postgres",
                 num_init_children=1)
    for rule in ("password", "md5", "scram"):
        seen = {user: house.try_login(pool.address, user, f"d_{rule}", "guess") for user in ("looked_up", "not_there")}
        assert seen["looked_up"] == tuple(x.replace("not_there", "looked_up") for x in seen["not_there"]), rule
    with Wire(pool.address) as w:
        assert w.login("ann", "d_trust")[-1].type == "Z"
        links = [row for row in w.rows("show pool_pools") if "not_there" in row or "looked_up" in row]
        w.bye()
    assert not links, "nobody who has failed has opened one"


def scram_iterations(pool, user: str) -> str:
    with Wire(pool.address) as w:
        found = w.login(user, "d_scram", "guess")
    return next(p for p in found[1].body[4:].decode().split(",") if p.startswith("i="))


def test_stand_ins_look_like_most_users(server, pools):
    """Unknown users, and readable passwords of the file, have as many iterations as most verifiers; on an md5 line they are asked for
    md5 when most secrets are md5."""
    salted = hashlib.pbkdf2_hmac("sha256", b"slow_pw", b"0123456789abcdef", 9000)
    keys = [hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key")]
    stored = [base64.b64encode(x).decode() for x in (b"0123456789abcdef", hashlib.sha256(keys[0]).digest(), keys[1])]
    server.rows(f"create role rounds login password 'SCRAM-SHA-256$9000:{stored[0]}${stored[1]}:{stored[2]}'")
    house.make_user(server, "old_one", "md5")
    pool = pools([server.address], hba=house.hba_by_database(), passwd="looker:looker_pw\nreadable:x\n", auth_user="looker",
                 auth_dbname="postgres")
    assert [scram_iterations(pool, user) for user in ("not_there", "readable")] == ["i=4096"] * 2
    assert house.try_login(pool.address, "rounds", "d_scram", "slow_pw", ask=False)[0] == "in"
    assert [scram_iterations(pool, user) for user in ("rounds", "not_there", "readable")] == ["i=9000"] * 3
    assert house.try_login(pool.address, "not_there", "d_md5", "x")[2].startswith("10")
    for _ in range(4):
        assert house.try_login(pool.address, "old_one", "d_md5", "x")[2] == "5"
    assert house.try_login(pool.address, "not_there", "d_md5", "x")[2] == "5"
    assert house.try_login(pool.address, "old_one", "d_md5", "old_one_pw", ask=False)[0] == "in"


def test_messages_out_of_turn(server, pools):
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="known:known_pw\n")
    for early in (query("select 1"), message("p", b"x\0"), message("p", b"SCRAM-SHA-256\0\0\0\0\3n,,"),
                  message("p", b""), b"p\xff\xff\xff\xff"):
        with Wire(pool.address) as w:
            w.send_startup("known", "postgres")
            assert w.read().type == "R"
            w.send(early)
            found = w.read_eof()
            assert found[-1].type == "E" and found[-1].fields["S"] == "FATAL", found


def test_query_right_behind_the_password(server, pools):
    """What a client sends without waiting is answered when it is in, and not before."""
    pool = pools([server.address], hba="host all all all password\n", passwd="ann:ann_pw\n")
    with Wire(pool.address) as w:
        w.send_startup("ann", "postgres")
        assert w.read().type == "R"
        w.send(message("p", b"ann_pw\0"), query("select 42"))
        found = w.ready(2)
        assert [m.row()[0] for m in found if m.type == "D"] == [b"42"]
    with Wire(pool.address) as w:
        w.send_startup("ann", "postgres")
        assert w.read().type == "R"
        w.send(message("p", b"no\0"), query("select 42"))
        found = w.read_eof()
        assert not [m for m in found if m.type == "D"] and found[-1].sqlstate == "28P01"


def test_no_secret_is_shown(server, pools):
    """Not in the log, in a title, in SHOW or in what a client is told."""
    house.make_user(server, "discreet", "scram", "Hide-Me-Well")
    pool = pools([server.address], hba="host d_password all all password\nhost all all all scram-sha-256\n",
                 passwd="discreet:Hide-Me-Well\n", log_min_messages="debug5", log_connections=True, sr_check_user="looker",
                 sr_check_password="Hide-Me-Check", health_check_password="Hide-Me-Health", recovery_password="Hide-Me-Rec",
                 wd_authkey="Hide-Me-Key", ssl_passphrase_command="echo Hide-Me-Phrase")
    for database in ("d_password", "postgres"):
        assert come(pool.address, "discreet", "Hide-Me-Well", database) == "in"
        got = house.try_login(pool.address, "discreet", database, "Hide-Me-Wrong")
        assert got[0] == "28P01" and "Hide-Me" not in got[1]
    with Wire(pool.address) as w:
        assert w.login("discreet", "postgres", "Hide-Me-Well")[-1].type == "Z"
        for sql in ("pgpool show all", "show pool_status", "pgpool show sr_check_password", "pgpool show wd_authkey", "show pool_clients"):
            rows = w.rows(sql)
            assert rows and "Hide-Me" not in str(rows), sql
        w.bye()
    assert "Hide-Me" not in pool.log()
    assert subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout.count("Hide-Me") == 0


def test_file_of_passwords_that_others_read_is_complained_of(server, pools):
    pool = pools([server.address], hba=RULE_OK, passwd="ann:ann_pw\n", num_init_children=1)
    assert "pool_passwd" not in pool.log()
    (pool.home / "pool_passwd").write_text("ann:other_pw\n", encoding="ascii")
    (pool.home / "pool_passwd").chmod(0o644)
    pool.reload()
    wait_for("it is said", lambda: 'pool_passwd" has group or world access' in pool.log())


def test_clear_text_is_asked_for_only_where_nobody_listens(server, tls_pool):
    """With ssl on the password is asked for over TLS and on the Unix socket; in clear the server's own way is relayed."""
    house.make_user(server, "opened", "scram")
    pool = tls_pool(None, allow_clear_text_frontend_auth=True)
    assert house.try_login(pool.address, "opened", "postgres", "opened_pw") == ("in", "opened", "10,11,12,0")
    assert house.try_login(pool.socket, "opened", "postgres", "opened_pw")[2].startswith("3")
    with TlsWire(pool.address) as w:
        found = w.login("opened", "postgres", "opened_pw")
        assert found[-1].type == "Z" and int.from_bytes(found[0].body[:4], "big") == 3
        w.bye()
