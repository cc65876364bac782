# SPDX-License-Identifier: PostgreSQL
"""test_check_auth: pgpool --check-auth names the leg that fails, and its verdict is what a login then finds."""
import shutil
import subprocess
from pathlib import Path

import pytest

import auth_house as house
from pgt import certs, procs, proxy


SCRAM_ALL = "host all all all scram-sha-256\n"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    for method in house.METHODS:
        house.make_user(pg, f"c_{method}", method)
    yield pg
    pg.stop()


def check(pool, user, database="postgres"):
    got = subprocess.run([proxy.pgpool_bin(), "-f", pool.conf_path, "--check-auth", user, "-d", database],
                         capture_output=True, text=True, timeout=60, check=False)
    assert "_pw" not in got.stdout + got.stderr, "no secret is printed"
    return got.returncode, got.stdout


@pytest.mark.parametrize("method", house.METHODS)
@pytest.mark.parametrize("rule", ["trust", "password", "md5", "scram-sha-256"])
@pytest.mark.parametrize("source", ["none", "plain", "query"])
@pytest.mark.parametrize("required", ["all", "auto"])
def test_verdict_is_what_happens(server, pools, required, source, rule, method):
    if (required, method) == ("auto", "password"):
        pytest.skip("without TLS a password in clear text is not given, which the check does not look at")
    user = f"c_{method}"
    passwd = {"none": "", "plain": f"{user}:{user}_pw\n", "query": "looker:looker_pw\n"}[source]
    conf: dict[str, str] = {"auth_user": "looker", "auth_dbname": "postgres"} if source == "query" else {}
    if required == "auto":
        conf["backend_require_auth"] = required
    pool = pools([server.address], hba=f"host all all all {rule}\n", passwd=passwd, **conf)
    code, text = check(pool, user)
    got = house.try_login(pool.address, user, "postgres", f"{user}_pw")
    assert (code == 0) == (got[0] == "in"), f"{got}\n{text}"


def test_what_it_says(server, pools):
    pool = pools([server.address], hba="host other all all trust\nhost all c_scram all scram-sha-256\n",
                 passwd="c_scram:c_scram_pw\n")
    code, text = check(pool, "c_scram")
    assert code == 0 and "pool_passwd, line 1: a password that can be read" in text
    assert "line 2: scram-sha-256" in text and "asks for scram-sha-256" in text
    assert "nothing is in the way" in text
    code, text = check(pool, "nobody_at_all")
    assert 'no pool_hba.conf entry for host "127.0.0.1"' in text
    wrong = pools([server.address], hba="host all all all scram-sha-256\n", passwd="c_scram:other\n")
    code, text = check(wrong, "c_scram")
    assert code == 1 and "the password was tried and refused" in text
    assert text.endswith("\n1 problem\n")


def test_says_where_scram_is_due(server, pools):
    pool = pools([server.address], hba=SCRAM_ALL, passwd="c_md5:c_md5_pw\n", backend_require_auth="auto")
    code, text = check(pool, "c_md5")
    assert code == 1 and "asks for md5, and the client's line of pool_hba.conf says scram-sha-256" in text
    assert "backend_require_auth = 'scram-sha-256,md5'" in text
    pool.write_conf(backend_require_auth="scram-sha-256,md5")
    assert check(pool, "c_md5")[0] == 0


@pytest.fixture(scope="module")
def authority():
    return certs.Authority()


@pytest.fixture(scope="module")
def far(authority):
    """A server of pools.conf that speaks TLS, and to some users nothing else."""
    pair = authority.issue()
    home = procs.folder("far-tls", house.postgres.OS_USER)
    for name, path in (("cert", pair.cert), ("key", pair.key)):
        shutil.copy(path, home / name)
        shutil.chown(home / name, house.postgres.OS_USER)
        (home / name).chmod(0o600)
    hba = "local all all trust\nhost all postgres all trust\nhostssl all all all scram-sha-256\n"
    pg = house.postgres.start_postgres({"ssl": "on", "ssl_cert_file": str(home / "cert"), "ssl_key_file": str(home / "key")},
                                       hba=hba, roles=False)
    pg.rows("create role looker login password 'looker_pw'; create role far_app login password 'far_app_pw'")
    pg.rows("create database inside")
    pg.rows("create role far_ann login password 'far_ann_pw'; create role far_old login password 'x' valid until '2001-01-01'")
    pg.rows(house.LOOK_UP, "inside")
    yield pg
    pg.stop()


def test_values_of_a_database(server, far, authority, pools):
    """Server, TLS, database, user and look-up of pools.conf: the verdict is what a login finds, and the leg is named."""
    path = procs.folder("pools") / "pools.conf"
    place = f"host = '127.0.0.1'\nport = {far.port}\n"
    sections = {
        "good": place + "dbname = inside\nauth_user = looker\nauth_dbname = good\nbackend_ssl_mode = verify-full\n",
        "plain": place + "dbname = inside\nauth_user = looker\nauth_dbname = good\nbackend_ssl_mode = disable\n",
        "badname": place.replace("127.0.0.1", "localhost") + "dbname = inside\nauth_user = looker\nauth_dbname = good\n"
                   "backend_ssl_mode = verify-full\n",
        "nobase": place + "dbname = nowhere\nauth_user = looker\nauth_dbname = good\nbackend_ssl_mode = require\n",
        "asapp": place + "dbname = inside\nuser = far_app\nauth_user = looker\nauth_dbname = good\nbackend_ssl_mode = require\n",
        "asnone": place + "dbname = inside\nuser = far_old\nauth_user = looker\nauth_dbname = good\nbackend_ssl_mode = require\n",
        "stranger": place + "dbname = inside\nauth_user = nobody\nauth_dbname = good\nbackend_ssl_mode = require\n",
        "wrongquery": place + "dbname = inside\nauth_user = looker\nauth_dbname = good\nauth_query = 'select 1, 2, $1::text, x'\n"
                      "backend_ssl_mode = require\n",
    }
    path.write_text("".join(f"[database {name}]\n{text}" for name, text in sections.items()), encoding="utf-8")
    pool = pools([server.address], hba=SCRAM_ALL, passwd="looker:looker_pw\nfar_app:far_app_pw\n", pools_file=path,
                 ssl_ca_cert=authority.cert, num_init_children=1)
    for database, says in {
            "good": "nothing is in the way", "plain": "no encryption", "badname": "localhost", "nobase": '"nowhere" does not exist',
            "asapp": 'know the user as "far_app" (pools.conf), with a password that can be read',
            "asnone": 'know the user as "far_old" (pools.conf), with nothing', "stranger": 'cannot connect as "nobody" to database "good"',
            "wrongquery": "auth_query failed"}.items():
        code, text = check(pool, "far_ann", database)
        got = house.try_login(pool.address, "far_ann", database, "far_ann_pw", ask=False)
        assert (code == 0) == (got[0] == "in"), f"{database}: {got}\n{text}"
        assert says in text, f"{database}\n{text}"
    code, text = check(pool, "far_old", "good")
    assert code == 1 and "auth_query returns no password" in text
    code, text = check(pool, "far_app", "good")
    assert code == 0 and "an entry that judges no client" in text and "secret: auth_query: a SCRAM verifier" in text


@pytest.mark.parametrize("known_by", ["file", "folder"])
@pytest.mark.parametrize("mode", ["prefer", "require"])
def test_a_certificate_that_does_not_verify(far, authority, pools, mode, known_by):
    """Is what a login would fail of: it is not asked without TLS, nor does a password go out."""
    pair, other = authority.issue(), certs.Authority("other CA")
    pair.key.chmod(0o600)
    known = {"ssl_ca_cert": other.cert} if known_by == "file" else {"ssl_ca_cert_dir": certs.folder_of(other)}
    path = procs.folder("pools") / "pools.conf"
    path.write_text(f"[database good]\nhost = '127.0.0.1'\nport = {far.port}\ndbname = postgres\nauth_user = looker\n"
                    f"auth_dbname = good\nbackend_ssl_mode = {mode}\n", encoding="utf-8")
    before, files = far.log(), set(Path("/tmp").glob("pgpool_ca.check.*.pem"))
    pool = pools([far.address], hba=SCRAM_ALL, passwd="looker:looker_pw\n", pools_file=path, ssl=True, ssl_cert=pair.cert,
                 ssl_key=pair.key, **known)
    code, text = check(pool, "far_ann", "good")
    assert code == 1 and "certificate verify failed" in text, text
    assert set(Path("/tmp").glob("pgpool_ca.check.*.pem")) <= files
    assert "no encryption" not in far.log()[len(before):]


def test_role_of_the_file(server, pools):
    """pool_passwd does not know that a role is locked; who is asked at a login says so here, too."""
    for name in ("c_locked", "c_expired"):
        house.make_user(server, name, "scram")
    pool = pools([server.address], hba="host all +srv_scram all scram-sha-256\n", sr_check_user="looker", sr_check_password="looker_pw",
                 passwd="".join(f"{name}:{name}_pw\n" for name in ("c_locked", "c_expired")))
    assert check(pool, "c_locked")[0] == 0
    server.rows("alter role c_locked nologin; alter role c_expired valid until '2001-01-01'")
    code, text = check(pool, "c_locked")
    assert code == 1 and "not permitted to log in" in text
    code, text = check(pool, "c_expired")
    assert code == 1 and "its password has expired" in text


def test_broken_rules_stop_the_start(server):
    home = procs.folder("pgpool")
    house.put(home / "pool_hba.conf", "host all all all nonsense\nhost all\n")
    conf = {"listen_addresses": "127.0.0.1", "port": procs.free_port(), "unix_socket_directories": home,
            "pcp_socket_dir": home, "pid_file_name": home / "pid", "work_dir": home, "enable_pool_hba": True,
            "backend_hostname0": server.address.host, "backend_port0": server.address.port}
    (home / "pgpool.conf").write_text(proxy.conf_text(conf), encoding="utf-8")
    for command in (["-n"], ["--check-config"]):
        got = subprocess.run([proxy.pgpool_bin(), "-f", home / "pgpool.conf", *command], capture_output=True,
                             text=True, timeout=30, check=False)
        assert got.returncode != 0
        assert "pool_hba.conf:1:" in got.stderr and "pool_hba.conf:2:" in got.stderr
