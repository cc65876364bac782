# SPDX-License-Identifier: PostgreSQL
"""auth_house: servers whose users log in by every method, and pgpools with rule files of a test's own."""
from pathlib import Path

import pytest

from pgt import postgres, procs, proxy
from pgt.wire import Wire, WireClosed

METHODS = ("trust", "password", "md5", "scram")
HBA_OF = {"trust": "trust", "password": "password", "md5": "md5", "scram": "scram-sha-256"}
# The server's way with a user is that of the group it is in.
SERVER_HBA = "local all all trust\nlocal replication all trust\nhost replication all all trust\nhost all postgres all trust\n" + "".join(
    f"host all +srv_{m} all {HBA_OF[m]}\n" for m in METHODS) + (
    "host all looker all scram-sha-256\nhost all boss all scram-sha-256\nhost all all all scram-sha-256\n")
RULES = ("trust", "reject", "password", "md5", "scram")
LOOK_UP = """create function pgpool_user_lookup(wanted text, out rolname text, out rolpassword text)
returns setof record language sql security definer set search_path = pg_catalog as $$
select a.rolname::text, case when a.rolvaliduntil < now() then null else a.rolpassword end
from pg_authid a where a.rolname = wanted and a.rolcanlogin $$"""


def start_server(conf: dict[str, str] | None = None) -> postgres.Postgres:
    """A server with the groups srv_<method>, the looker-up and a database per rule."""
    pg = postgres.start_postgres(conf, hba=SERVER_HBA, roles=False)
    for m in METHODS:
        pg.rows(f"create role srv_{m}")
    pg.rows("create role looker login password 'looker_pw'")
    pg.rows("create role boss superuser login password 'boss_pw'")
    for rule in RULES:
        pg.rows(f"create database d_{rule}")
        pg.rows(LOOK_UP, f"d_{rule}")
    pg.rows("create database d_mirror")
    pg.rows(LOOK_UP, "d_mirror")
    pg.rows(LOOK_UP)
    return pg


def start_standby(pg: postgres.Postgres) -> postgres.Postgres:
    """A standby that streams from `pg`, with its roles and their verifiers."""
    if not (postgres.bindir() / "pg_basebackup").exists():
        pytest.skip("these server programs come without pg_basebackup")
    home = procs.folder("standby", postgres.OS_USER)
    procs.run([str(postgres.bindir() / "pg_basebackup"), "-D", str(home / "data"), "-c", "fast", "-X", "stream",
               "--no-sync", "-h", str(pg.data.parent), "-p", str(pg.port), "-U", "postgres"],
              user=postgres.OS_USER, cwd="/")
    made = postgres.Postgres(home / "data", procs.free_port())
    made.write_conf({"primary_conninfo": f"host=127.0.0.1 port={pg.port} user=postgres"}, SERVER_HBA)
    (home / "data" / "standby.signal").touch()
    made.start()
    return made


def make_user(pg: postgres.Postgres, name: str, method: str, password: str | None = None) -> str:
    """A user that the server asks by `method`; returns what pg_authid holds."""
    quoted = (password or f"{name}_pw").replace("'", "''")
    kind = "md5" if method == "md5" else "scram-sha-256"
    pg.rows(f"drop role if exists {name}")
    pg.rows(f"set password_encryption = '{kind}'; create role {name} login password '{quoted}' in role srv_{method}")
    return pg.value(f"select rolpassword from pg_authid where rolname = '{name}'")


def hba_by_database(*more: str) -> str:
    """The rule is chosen by the database: d_trust, d_md5, ..."""
    lines = [*more]
    for rule in RULES:
        lines.append(f"host d_{rule} all all {HBA_OF.get(rule, rule)}")
    return "\n".join(lines) + "\n"


def start_auth_pool(backends, hba: str | None = None, passwd: str | None = None, ident: str | None = None,
                    key: str | None = None, **conf) -> proxy.Pgpool:
    """A pgpool with the files given. The caller stops it."""
    home = procs.folder("pgpool")
    pool = proxy.Pgpool(home, procs.free_port())
    base = {
        "listen_addresses": "127.0.0.1", "port": pool.port, "unix_socket_directories": home,
        "pcp_listen_addresses": "", "pcp_port": procs.free_port(), "pcp_socket_dir": home,
        "wd_ipc_socket_dir": home, "pid_file_name": home / "pgpool.pid", "work_dir": home,
        "num_init_children": 2, "child_life_time": 0, "log_min_messages": "info",
        "backend_clustering_mode": "streaming_replication", "load_balance_mode": False,
        "health_check_period": 0, "sr_check_period": 0, "log_destination": "stderr",
        "backend_require_auth": "password,md5,scram-sha-256,none",  # passwords go over TCP without TLS here
    }
    for i, node in enumerate(backends):
        base |= {f"backend_hostname{i}": node.host, f"backend_port{i}": node.port, f"backend_weight{i}": 1}
    if hba is not None:
        put(home / "pool_hba.conf", hba)
        base["enable_pool_hba"] = True
    if ident is not None:
        put(home / "pg_ident.conf", ident)
    put(home / "pool_passwd", passwd or "")
    if key is not None:
        put(home / "key", key + "\n")
    pool.write_conf(**{**base, **conf})
    start_daemon(pool, home / "key" if key is not None else None)
    return pool


def start_daemon(pool: proxy.Pgpool, key: Path | None) -> None:
    if key is None:
        pool.start()
        return
    program = proxy.pgpool_bin()
    assert program is not None
    pool.launch([program, "-n", "-f", str(pool.conf_path), "-k", str(key)])


def put(path: Path, text: str) -> None:
    """Replaces a file as an administrator should: whole, and for the owner alone."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o600)
    fresh.rename(path)


def try_login(address, user: str, database: str, password: str, ask=True, **params) -> tuple[str, str, str]:
    """("in", user, what was asked) or (SQLSTATE, message, what was asked)."""
    w = Wire(address)
    try:
        found = w.login(user=user, database=database, password=password, **params)
        asked = ",".join(str(int.from_bytes(m.body[:4], "big")) for m in found if m.type == "R")
        if found[-1].type != "Z":
            return found[-1].sqlstate, found[-1].text, asked
        return "in", (w.value("select session_user") if ask else user), asked
    except WireClosed:
        return "closed", "", ""
    finally:
        w.bye()
