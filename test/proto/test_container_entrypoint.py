# SPDX-License-Identifier: PostgreSQL
"""The container's entrypoint: the environment becomes files that pgpool takes."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from pgt import procs, waits
from pgt.wire import Address, Wire

ENTRYPOINT = Path(__file__).parents[2] / "packaging/container/entrypoint"
BASE = {"PGPOOL_BACKEND_NODES": "0:pg-0:5432,1:[fd00::2]:5433:2,2:pg-2"}


@pytest.fixture
def folder():
    return procs.folder("entrypoint")


def run(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The entrypoint with this environment; `true` in place of pgpool."""
    return subprocess.run([str(ENTRYPOINT), "true"], env={"PATH": os.environ["PATH"], "PGPOOL_CONF_DIR": str(folder),
                                                          "PGPOOL_RUN_DIR": str(folder), "PGPOOL_WORK_DIR": str(folder), **env},
                          capture_output=True, text=True, check=False)


def settings(folder: Path) -> dict[str, str]:
    lines = (folder / "pgpool.conf").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def test_pgpool_takes_what_is_written(folder):
    done = run(folder, **BASE, PGPOOL_POSTGRES_USERNAME="app", PGPOOL_POSTGRES_PASSWORD="it's: a \\ word",
               PGPOOL_SR_CHECK_USER="o'check", PGPOOL_SR_CHECK_PASSWORD="sr'pw", PGPOOL_NUM_INIT_CHILDREN="4",
               PGPOOL_ENABLE_LOAD_BALANCING="yes", PGPOOL_POOL_MODE="transaction", PGPOOL_ADMIN_USERNAME="admin",
               PGPOOL_ADMIN_PASSWORD="x")
    assert done.returncode == 0 and done.stderr == ""
    checked = subprocess.run([os.environ["PGPOOL_BIN"], "--check-config", "-f", str(folder / "pgpool.conf")],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and "0 warnings" in checked.stderr, checked.stderr
    found = settings(folder)
    assert found["backend_hostname1"] == "'fd00::2'" and found["backend_port1"] == "'5433'" and found["backend_weight1"] == "'2'"
    assert found["backend_port2"] == "'5432'" and found["sr_check_user"] == "'o''check'" and found["load_balance_mode"] == "on"
    assert (folder / "pool_passwd").read_text(encoding="utf-8") == "app:TEXTit's\\: a \\\\ word\n"
    # pcp.conf has the md5 digest of the password alone.
    assert (folder / "pcp.conf").read_text(encoding="utf-8") == "admin:9dd4e461268c8034f5c8564e155c67a6\n"


def test_secrets_are_nobody_elses(folder):
    assert run(folder, **BASE, PGPOOL_POSTGRES_USERNAME="app", PGPOOL_POSTGRES_PASSWORD="x").returncode == 0
    assert {f.name: oct(f.stat().st_mode & 0o77) for f in folder.iterdir() if f.stat().st_mode & 0o77} == {}


def test_password_from_a_file(folder):
    secret = procs.folder("secret") / "password"
    secret.write_text("from a file", encoding="utf-8")
    assert run(folder, **BASE, PGPOOL_SR_CHECK_USER="c", PGPOOL_SR_CHECK_PASSWORD_FILE=str(secret)).stderr == ""
    assert settings(folder)["sr_check_password"] == "'from a file'"


def test_any_value_from_a_file(folder):
    at = procs.folder("values")
    (at / "nodes").write_text("0:pg-0:5432;1:pg-1:5432\n", encoding="utf-8")
    (at / "user").write_text("checker\n", encoding="utf-8")
    done = run(folder, PGPOOL_BACKEND_NODES_FILE=str(at / "nodes"), PGPOOL_SR_CHECK_USER_FILE=str(at / "user"), PGPOOL_SR_CHECK_PASSWORD="pw",
               PGPOOL_POSTGRES_PASSWORD="x")
    assert done.returncode == 0 and done.stderr == ""
    found = settings(folder)
    assert found["backend_hostname1"] == "'pg-1'" and found["sr_check_user"] == "'checker'"
    # As in Bitnami's image: health checks log in as the others do, and the administrator is postgres.
    assert found["health_check_user"] == "'checker'" and found["health_check_password"] == "'pw'"
    assert (folder / "pool_passwd").read_text(encoding="utf-8") == "postgres:TEXTx\n"
    (folder / "pgpool.conf").unlink()
    missing = run(folder, **BASE, PGPOOL_SR_CHECK_USER_FILE=str(at / "nothing"))
    assert missing.returncode == 1 and "PGPOOL_SR_CHECK_USER_FILE" in missing.stderr and "cannot be read" in missing.stderr


def test_every_name_is_a_setting(folder):
    """Each is written as a setting that pgpool has; those that are not are looked at by name."""
    script = ENTRYPOINT.read_text(encoding="utf-8")
    tables = [re.search(rf"^{table}='\n(.*?)^'", script, re.S | re.M)[1] for table in ("values", "switches")]
    pairs = [line.split() for table in tables for line in table.splitlines()]
    assert len(pairs) > 40
    shown = subprocess.run([os.environ["PGPOOL_BIN"], "--describe-config"], capture_output=True, text=True, check=False)
    sample = (Path(__file__).parents[2] / "pgpool.conf.sample").read_text(encoding="utf-8") + shown.stdout
    unknown = [setting for setting, _ in pairs if not re.search(rf"^#?{setting} = ", sample, re.M)]
    assert unknown == ["black_function_list"], "an older name of write_function_list's counterpart"


def test_what_is_not_known_is_said(folder):
    done = run(folder, **BASE, PGPOOL_NO_SUCH_THING="1")
    assert done.returncode == 0 and "PGPOOL_NO_SUCH_THING is not known" in done.stderr


# What Bitnami's image reads (libpgpool.sh), but for names of its own folders.
BITNAMI = ("ENABLE_POOL_HBA ENABLE_POOL_PASSWD USER_CONF_FILE USER_HBA_FILE PASSWD_FILE DAEMON_USER DAEMON_GROUP PORT_NUMBER BACKEND_NODES "
           "SR_CHECK_USER SR_CHECK_PERIOD SR_CHECK_DATABASE SR_CHECK_PASSWORD POSTGRES_USERNAME POSTGRES_PASSWORD ADMIN_USERNAME ADMIN_PASSWORD "
           "ENABLE_LDAP TIMEOUT ENABLE_LOG_CONNECTIONS ENABLE_LOG_HOSTNAME ENABLE_LOG_PCP_PROCESSES ENABLE_LOG_PER_NODE_STATEMENT "
           "ENABLE_LOAD_BALANCING ENABLE_STATEMENT_LOAD_BALANCING DISABLE_LOAD_BALANCE_ON_WRITE NUM_INIT_CHILDREN RESERVED_CONNECTIONS MAX_POOL "
           "CHILD_MAX_CONNECTIONS CHILD_LIFE_TIME CONNECTION_LIFE_TIME CLIENT_IDLE_LIMIT HEALTH_CHECK_USER HEALTH_CHECK_PASSWORD "
           "HEALTH_CHECK_PERIOD HEALTH_CHECK_TIMEOUT HEALTH_CHECK_MAX_RETRIES HEALTH_CHECK_RETRY_DELAY CONNECT_TIMEOUT HEALTH_CHECK_PSQL_TIMEOUT "
           "POSTGRES_CUSTOM_USERS POSTGRES_CUSTOM_PASSWORDS AUTO_FAILBACK BACKEND_APPLICATION_NAMES AUTHENTICATION_METHOD AES_KEY "
           "FAILOVER_ON_BACKEND_SHUTDOWN FAILOVER_ON_BACKEND_ERROR DISCARD_STATUS ENABLE_TLS TLS_CERT_FILE TLS_KEY_FILE TLS_CA_FILE "
           "TLS_PREFER_SERVER_CIPHERS LOG_LINE_PREFIX CLIENT_MIN_MESSAGES ADMIN_PASSWORD_FILE POSTGRES_PASSWORD_FILE SR_CHECK_PASSWORD_FILE "
           "HEALTH_CHECK_PASSWORD_FILE").split()


def test_bitnamis_names(folder):
    """All of them are known, with the values that its manual gives them."""
    done = run(folder, **BASE, **{f"PGPOOL_{name}": "" for name in BITNAMI if name != "BACKEND_NODES"})
    assert done.returncode == 0 and done.stderr == ""
    (folder / "pgpool.conf").unlink()
    done = run(folder, **BASE, PGPOOL_ENABLE_LDAP="no", PGPOOL_PASSWD_FILE="pool_passwd", PGPOOL_AUTO_FAILBACK="no", PGPOOL_DISCARD_STATUS="yes")
    assert done.returncode == 0 and done.stderr == "" and "auto_failback = off" in (folder / "pgpool.conf").read_text(encoding="utf-8")


@pytest.mark.parametrize("env, says", [
    ({**BASE, "PGPOOL_ENABLE_LDAP": "yes"}, "PGPOOL_USER_HBA_FILE a file with a rule"),
    ({}, "PGPOOL_BACKEND_NODES is needed"),
    ({"PGPOOL_BACKEND_NODES": "pg-0:5432"}, "is not NUMBER:HOST:PORT"),
    ({**BASE, "PGPOOL_ENABLE_TLS": "perhaps"}, "neither yes nor no"),
    ({**BASE, "PGPOOL_SR_CHECK_USER": "a\nport = 1"}, "line break"),
    ({**BASE, "PGPOOL_POSTGRES_CUSTOM_USERS": "a,b", "PGPOOL_POSTGRES_CUSTOM_PASSWORDS": "x"}, "as many"),
    ({**BASE, "PGPOOL_POSTGRES_USERNAME": "app"}, "app has no password"),
    ({**BASE, "PGPOOL_POSTGRES_CUSTOM_USERS": "a,b", "PGPOOL_POSTGRES_CUSTOM_PASSWORDS": ",x"}, "a has no password"),
    ({**BASE, "PGPOOL_ADMIN_USERNAME": "admin"}, "PGPOOL_ADMIN_PASSWORD are needed together"),
    ({**BASE, "PGPOOL_ADMIN_USERNAME": "admin", "PGPOOL_ADMIN_PASSWORD": ""}, "PGPOOL_ADMIN_PASSWORD are needed together"),
    ({**BASE, "PGPOOL_ADMIN_PASSWORD": "x"}, "PGPOOL_ADMIN_PASSWORD are needed together"),
    ({**BASE, "PGPOOL_ADMIN_USERNAME": "a:b", "PGPOOL_ADMIN_PASSWORD": "x"}, "cannot be written to pcp.conf"),
    ({**BASE, "PGPOOL_SR_CHECK_USER": "a", "PGPOOL_SR_CHECK_PASSWORD": "pw\\"}, "backslash at its end"),
    ({**BASE, "PGPOOL_SR_CHECK_USER": "a", "PGPOOL_SR_CHECK_PASSWORD": "p\\'w"}, "backslash at its end or in front of a quote"),
])
def test_a_mistake_stops_it(folder, env, says):
    done = run(folder, **env)
    assert done.returncode != 0 and says in done.stderr
    assert not (folder / "pgpool.conf").exists()


def check_config(folder: Path) -> str:
    done = subprocess.run([os.environ["PGPOOL_BIN"], "--check-config", "-f", str(folder / "pgpool.conf")], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_variables_of_services_are_not_settings(folder):
    """Kubernetes tells later containers of each Service: one called pgpool, pgpool-http or pgpool-admin would be taken for our settings,
    and a pod that is started anew would not come up."""
    links = {}
    for name, port in (("PGPOOL", 5432), ("PGPOOL_HTTP", 9719), ("PGPOOL_ADMIN", 9898)):
        links |= {f"{name}_PORT": f"tcp://10.0.0.1:{port}", f"{name}_SERVICE_HOST": "10.0.0.1", f"{name}_SERVICE_PORT": str(port),
                  f"{name}_SERVICE_PORT_POSTGRESQL": str(port), f"{name}_PORT_{port}_TCP": f"tcp://10.0.0.1:{port}",
                  f"{name}_PORT_{port}_TCP_PROTO": "tcp", f"{name}_PORT_{port}_TCP_PORT": str(port), f"{name}_PORT_{port}_TCP_ADDR": "10.0.0.1"}
    done = run(folder, **BASE, **links)
    assert done.returncode == 0 and done.stderr == ""
    found = settings(folder)
    assert found["port"] == "'5432'" and "http_port" not in found


@pytest.mark.parametrize("given, wanted", [
    ({}, None),
    ({"PGPOOL_POSTGRES_PASSWORD": "x"}, "on"),
    ({"PGPOOL_USER_HBA_FILE": "rules"}, "on"),
    ({"PGPOOL_AUTHENTICATION_METHOD": "reject"}, "on"),
    ({"PGPOOL_USER_HBA_FILE": "rules", "PGPOOL_ENABLE_POOL_HBA": "no"}, "off"),
])
def test_rules_that_are_given_hold(folder, given, wanted):
    """Without a user with a password, too: rules that nobody looks at keep nobody out."""
    rules = procs.folder("rules") / "pool_hba.conf"
    rules.write_text("host all chief all reject\nhost all all all scram-sha-256\n", encoding="ascii")
    done = run(folder, **BASE, **{name: str(rules) if value == "rules" else value for name, value in given.items()})
    assert done.returncode == 0 and done.stderr == ""
    assert settings(folder).get("enable_pool_hba") == wanted
    check_config(folder)


def test_an_own_pgpool_conf_is_left_alone(folder):
    (folder / "pgpool.conf").write_text("# mine\n", encoding="utf-8")
    assert run(folder).returncode == 0
    assert [f.name for f in folder.iterdir()] == ["pgpool.conf"]


def may_unshare() -> bool:
    return subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_unshare(), reason="no PID namespace may be made here")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_is_process_1_and_stops(pg, folder, how):
    """As in a container: pgpool takes the place of the script, and signals have their effect though it is process 1."""
    more = folder / "more.conf"
    more.write_text(f"pcp_port = {procs.free_port()}\npcp_listen_addresses = ''\n", encoding="ascii")
    port = procs.free_port()
    log = folder / "log"
    with open(log, "wb") as out, subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", str(ENTRYPOINT), "pgpool"], stdout=out, stderr=subprocess.STDOUT,
            env={"PATH": f"{Path(os.environ['PGPOOL_BIN']).parent}:{os.environ['PATH']}", "PGPOOL_CONF_DIR": str(folder),
                 "PGPOOL_RUN_DIR": str(folder), "PGPOOL_WORK_DIR": str(folder), "PGPOOL_PORT": str(port), "PGPOOL_LISTEN_ADDRESSES": "127.0.0.1",
                 "PGPOOL_USER_CONF_FILE": str(more), "PGPOOL_NUM_INIT_CHILDREN": "1",
                 "PGPOOL_BACKEND_NODES": f"0:{pg.address.host}:{pg.address.port}"}) as outer:
        try:
            def client() -> Wire | None:
                try:
                    w = Wire(Address("127.0.0.1", port), seconds=30)
                    w.login()
                    return w
                except OSError:
                    return None
            w = waits.wait_for("pgpool answers", client, 30)
            inner = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text(encoding="ascii"))
            assert b"pgpool" in Path(f"/proc/{inner}/cmdline").read_bytes()
            assert re.search(rb"^NSpid:.*\t1$", Path(f"/proc/{inner}/status").read_bytes(), re.M)
            if how == signal.SIGTERM:
                w.bye()  # a smart stop would wait for it
            os.kill(inner, how)
            if how == signal.SIGINT:
                assert [m.sqlstate for m in w.read_eof() if m.type == "E"] == ["57P01"]
            assert outer.wait(30 * waits.SCALE) == 0, log.read_text(encoding="utf-8")
        finally:
            outer.kill()
