# SPDX-License-Identifier: PostgreSQL
"""test_check_auth: pgpool --check-auth names the leg that fails, and its verdict is what a login then finds."""
import subprocess

import pytest

import auth_house as house
from pgt import procs, proxy


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    for method in house.METHODS:
        house.make_user(pg, f"c_{method}", method)
    yield pg
    pg.stop()


@pytest.fixture
def pools():
    started = []

    def start(*args, **kwargs):
        started.append(house.start_auth_pool(*args, **kwargs))
        return started[-1]

    yield start
    for pool in started:
        pool.stop()


def check(pool, user, database="postgres"):
    got = subprocess.run([proxy.pgpool_bin(), "-f", pool.conf_path, "--check-auth", user, "-d", database],
                         capture_output=True, text=True, timeout=60, check=False)
    assert "_pw" not in got.stdout + got.stderr, "no secret is printed"
    return got.returncode, got.stdout


@pytest.mark.parametrize("method", house.METHODS)
@pytest.mark.parametrize("rule", ["trust", "password", "md5", "scram-sha-256"])
@pytest.mark.parametrize("source", ["none", "plain", "query"])
def test_verdict_is_what_happens(server, pools, source, rule, method):
    user = f"c_{method}"
    passwd = {"none": "", "plain": f"{user}:{user}_pw\n", "query": "looker:looker_pw\n"}[source]
    conf = {"auth_user": "looker", "auth_dbname": "postgres"} if source == "query" else {}
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
