# SPDX-License-Identifier: PostgreSQL
"""test_import_pgbouncer: pgpool --import-pgbouncer: what it writes, what it says, and a client of the imported pgpool."""
import os
import stat
import subprocess
from pathlib import Path

import pytest

from pgt import procs, proxy
from pgt.wire import Address, Wire

# Every setting of PgBouncer 1.25's [pgbouncer].
SETTINGS = """admin_users stats_users application_name_add_host auth_dbname auth_file auth_hba_file auth_ident_file
auth_ldap_options auth_query auth_type auth_user autodb_idle_timeout cancel_wait_timeout client_idle_timeout
client_login_timeout client_tls_sslmode client_tls_ca_file client_tls_cert_file client_tls_key_file client_tls_protocols
client_tls_ciphers client_tls13_ciphers client_tls_dheparams client_tls_ecdhcurve conffile default_pool_size disable_pqexec
dns_max_ttl dns_nxdomain_ttl dns_zone_check_period idle_transaction_timeout ignore_startup_parameters job_name service_name
listen_addr listen_backlog listen_port log_connections log_disconnections log_pooler_errors log_stats logfile
login_notify_message max_client_conn max_db_client_connections max_db_connections max_packet_size max_prepared_statements
max_user_client_connections max_user_connections min_pool_size peer_id pidfile pkt_buf pool_idle_timeout pool_mode
query_timeout query_wait_notify query_wait_timeout reserve_pool_size reserve_pool_timeout resolv_conf sbuf_loopcnt
scram_iterations server_check_delay server_check_query server_connect_timeout server_fast_close server_idle_timeout
server_lifetime server_login_retry server_reset_query server_reset_query_always server_round_robin server_tls_sslmode
server_tls_ca_file server_tls_cert_file server_tls_key_file server_tls_protocols server_tls_ciphers server_tls13_ciphers
so_reuseport stats_period suspend_timeout syslog syslog_facility syslog_ident tcp_defer_accept tcp_keepalive tcp_keepcnt
tcp_keepidle tcp_keepintvl tcp_socket_buffer tcp_user_timeout track_extra_parameters transaction_timeout unix_socket_dir
unix_socket_group unix_socket_mode user verbose""".split()
VERIFIER = ("SCRAM-SHA-256$4096:cGVwcGVycGVwcGVycGVwcA==$K8EoLN6FLGJOj6kHCMhC0oBqnZOxjRgLRO+u6PNVFvI=:"
            "kJ+uRzT7EdrYhvXIrJnGpZbfOdu1w3PjEKUcA3NbsOE=")


class Import:
    """One run: the ini beside its other files, what it made, what it said."""

    def __init__(self, folder: Path, ini: str, **files: str):
        folder.mkdir(parents=True, exist_ok=True)
        self.out = folder / "out"
        self.out.mkdir(exist_ok=True)
        (folder / "pgbouncer.ini").write_text(ini, encoding="utf-8")
        for name, text in files.items():
            (folder / name.replace("_txt", ".txt").replace("_ini", ".ini")).write_text(text, encoding="utf-8")
        self.run = subprocess.run([proxy.pgpool_bin(), "--import-pgbouncer", folder / "pgbouncer.ini", "--into", self.out],
                                  capture_output=True, text=True, check=False)
        self.said = self.run.stdout.splitlines()

    def text(self, name: str) -> str:
        return (self.out / name).read_text(encoding="utf-8")

    def settings(self) -> dict[str, str]:
        found = {}
        for line in self.text("pgpool.conf").splitlines():
            if line and line[0] != "#":
                name, value = line.split(" = ", 1)
                assert name not in found, f"{name} is said twice"
                found[name] = value
        return found

    def about(self, what: str) -> str:
        lines = [line for line in self.said if f": {what}" in line]
        assert lines, (what, self.said)
        return "\n".join(lines)

    def check(self) -> None:
        """--check-config finds no error in what was made, as it is."""
        assert self.run.returncode == 0, self.run.stderr
        done = subprocess.run([proxy.pgpool_bin(), "--check-config", "-f", self.out / "pgpool.conf"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stderr and "unknown" not in done.stderr, done.stderr


def test_settings_databases_users(tmp_path):
    ran = Import(tmp_path, f"""; a comment
# another one
[databases]
shop = host=127.0.0.1 port=5433 dbname='the shop' pool_size=7 pool_mode=session connect_query='select 1'
"odd ""na""me" = host=127.0.0.1 auth_query='select a, b from f($1) where x = ''y'''
reports = host=10.1.2.3 port=6000 user=rep password='a:b''c' max_db_connections=0 min_pool_size=2
* = host=127.0.0.1 port=5433 reserve_pool=3

[users]
slow = pool_mode=session query_timeout=1.5 client_idle_timeout=9

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {procs.free_port()}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = userlist.txt
pool_mode = transaction
max_client_conn = 1000
query_timeout = 2.5
query_wait_timeout = 30
server_reset_query = DISCARD ALL
ignore_startup_parameters = extra_float_digits
pidfile = /run/pgbouncer.pid
listen_port_typo = 1
%include more.ini
""", userlist_txt=f'"plain" "p:w"\n"hashed" "md5{"0a" * 16}"\n; gone\n"ver""y" "{VERIFIER}"\n"bad\n', more_ini="min_pool_size = 1\n")
    ran.check()
    found = ran.settings()
    assert found["pool_mode"] == "'transaction'" and found["max_clients"] == "1000"
    assert found["query_timeout"] == "2500ms" and found["query_wait_timeout"] == "30s"
    assert found["default_pool_size"] == "20" and found["min_pool_size"] == "1"
    assert found["backend_hostname0"] == "'127.0.0.1'" and found["backend_port0"] == "5433"
    assert found["reset_query_list"] == "'ABORT;DISCARD ALL'"
    pools = {part.splitlines()[0].rstrip("]"): part for part in ran.text("pools.conf").split("\n[")[1:]}
    assert "dbname = 'the shop'" in pools['database "shop"'] and "host" not in pools['database "shop"']
    assert "pool_size = 7" in pools['database "shop"'] and "pool_mode = 'session'" in pools['database "shop"']
    odd = pools['database "odd ""na""me"']
    assert "port = 5432" in odd and "x = ''y''" in odd, "another port is another server"
    assert "host = '10.1.2.3'\nport = 6000" in pools['database "reports"'] and "user = 'rep'" in pools['database "reports"']
    assert "reserve_pool_size = 3" in pools['database "*"']
    assert "query_timeout = 1500ms" in pools['user "slow"']
    assert ran.text("pool_passwd").splitlines() == [
        r"plain:TEXTp\:w", "hashed:md5" + "0a" * 16, f'ver"y:{VERIFIER}', r"rep:TEXTa\:b'c"]
    assert stat.S_IMODE(os.stat(ran.out / "pool_passwd").st_mode) == 0o600
    assert "local all all scram-sha-256" in ran.text("pool_hba.conf")
    for name in ("[databases] shop connect_query", "[users] slow client_idle_timeout", "ignore_startup_parameters",
                 "pidfile", "listen_port_typo"):
        assert "not taken over: " in ran.about(name), name
    assert "more.ini:1: min_pool_size -> min_pool_size = 1" in ran.run.stdout
    assert "userlist.txt:5 is no" in ran.run.stdout
    for secret in ("p:w", VERIFIER, "a:b", "0a0a"):
        assert secret not in ran.run.stdout + ran.run.stderr


def test_every_setting_is_named(tmp_path):
    """Each is taken over, or its line says why not; none is unknown."""
    for name in SETTINGS:
        value = {"auth_type": "md5", "pool_mode": "session", "listen_port": "7000"}.get(name, "1")
        if name.endswith(("auth_file", "_hba_file", "_ident_file")):
            value = ""
        ran = Import(tmp_path / name, f"[databases]\n* = host=a\n[pgbouncer]\n{name} = {value}\n")
        assert (ran.out / "pgpool.conf").exists(), ran.run.stderr
        if name in ("auth_file", "auth_ident_file"):
            continue
        assert "known here" not in ran.about(name), name


def test_a_pool_mode_that_is_none(tmp_path):
    """It is left out, and said so, in each place where one may stand; the others are in."""
    ran = Import(tmp_path, "[databases]\n* = host=a pool_mode=Statement\nb = host=a pool_mode=query\n"
                           "[users]\nu = pool_mode=txn\n[pgbouncer]\npool_mode = sessions\n")
    ran.check()
    for where, said in (("pool_mode", '"sessions" cannot be the value of pool_mode'), ("[databases] b pool_mode", '"query" cannot be its value'),
                        ("[users] u pool_mode", '"txn" cannot be its value')):
        assert f"not taken over: {said}" in ran.about(where)
    assert "pool_mode" not in ran.settings() and ran.text("pools.conf").count("pool_mode") == 1


def test_listed_databases_only(tmp_path):
    """Without * nobody gets into another database of the server; a list of hosts becomes several servers."""
    ran = Import(tmp_path, "[databases]\na = host=h1,h2 port=5432\nb = host=h1,h2 port=5432 pool_size=1\nc = host=h3,h4\n"
                 "a = host=h1,h2\n[pgbouncer]\nauth_type = trust\nlisten_addr = *\nunix_socket_dir =\n")
    ran.check()
    found = ran.settings()
    assert (found["backend_hostname0"], found["backend_hostname1"]) == ("'h1'", "'h2'")
    rules = [line.split()[1] for line in ran.text("pool_hba.conf").splitlines() if line[0] != "#"]
    assert sorted(set(rules)) == ['"a"', '"b"', '"c"', '"pgbouncer"', '"pgpool"']
    assert "a later line" in ran.about("[databases] a")
    assert "h3,h4" in ran.about("[databases] c host")


def test_query_without_a_user_for_all(tmp_path):
    """pgpool.conf would refuse it; the databases with a user of their own have it."""
    ran = Import(tmp_path, "[databases]\na = host=h auth_user=asker\nb = host=h\n[pgbouncer]\nlisten_addr = *\nunix_socket_dir =\n"
                 "auth_query = select n, s from f($1)\n")
    ran.check()
    assert "auth_query" not in ran.settings()
    pools = ran.text("pools.conf").split("\n[")
    assert "auth_query = 'select n, s from f($1)'" in pools[1] and "auth_query" not in pools[2]


def test_rules_of_its_own(tmp_path):
    ran = Import(tmp_path, "[databases]\n* = host=127.0.0.1\n[pgbouncer]\nlisten_addr = *\nunix_socket_dir =\nauth_type = hba\n"
                 "auth_hba_file = hba.txt\n", hba_txt="host all ann 10.0.0.0/8 md5\n")
    ran.check()
    assert "host all ann 10.0.0.0/8 md5" in ran.text("pool_hba.conf")


def test_rules_of_its_own_open_no_other_database(tmp_path):
    """"all" in PgBouncer's rules are the databases that it knows; a certificate that it asks for is not forgotten."""
    ran = Import(tmp_path, '[databases]\napp = host=127.0.0.1\n"odd ""na""me-x" = host=127.0.0.1\n[pgbouncer]\nlisten_addr = *\n'
                 "unix_socket_dir =\nauth_type = hba\nauth_hba_file = hba.txt\nclient_tls_sslmode = verify-ca\n"
                 "client_tls_cert_file = c\nclient_tls_key_file = k\n", hba_txt="host all all 0.0.0.0/0 trust\n")
    assert "clientcert=verify-ca" in ran.about("client_tls_sslmode: not taken over")
    conf = ran.out / "pgpool.conf"
    conf.write_text(conf.read_text(encoding="utf-8").replace("ssl = on", "ssl = off"), encoding="utf-8")
    for database, lets_in in (("app", True), ('odd "na"me-x', True), ("pgpool", True), ("pgbouncer", True),
                              ("postgres", False), ("appx", False), ("xapp", False), ("template1", False)):
        said = subprocess.run([proxy.pgpool_bin(), "-f", conf, "--check-auth=ann", "-d", database],
                              capture_output=True, text=True, check=False).stdout
        assert ("pool_hba.conf says reject" not in said) == lets_in, (database, said)


@pytest.mark.parametrize("rules", ["auth_type = md5\n", "auth_type = hba\nauth_hba_file = hba.txt\n"])
def test_what_is_left_out_is_not_looked_for_on_another_server(tmp_path, rules):
    ran = Import(tmp_path, "[databases]\n* = host=127.0.0.1\nfar = host=@hidden\nodd = host 10.0.0.1\n[pgbouncer]\nlisten_addr = *\n"
                 f"unix_socket_dir =\n{rules}", hba_txt="host all all 0.0.0.0/0 md5\nlocal all all md5\n")
    for database, lets_in in (("far", False), ("odd", False), ("other", True)):
        said = subprocess.run([proxy.pgpool_bin(), "-f", ran.out / "pgpool.conf", "--check-auth=ann", "-d", database],
                              capture_output=True, text=True, check=False).stdout
        assert ("pool_hba.conf says reject" not in said) == lets_in, (database, said)


def test_trust_is_for_users_that_are_known(tmp_path):
    """PgBouncer's trust lets nobody in whom its users' file does not name, unless it looks users up."""
    ini = "[databases]\n* = host=127.0.0.1\n[pgbouncer]\nlisten_addr = *\nunix_socket_dir =\nauth_type = trust\nauth_file = u.txt\n"
    users = '"ann" "x"\n"b""b" ""\n'
    ran = Import(tmp_path / "file", ini, u_txt=users)
    assert 'host all "ann","b""b" all trust' in ran.text("pool_hba.conf").splitlines()
    ran = Import(tmp_path / "query", ini + "auth_user = looker\n", u_txt=users)
    assert "host all all all trust" in ran.text("pool_hba.conf").splitlines()
    assert "by any name" in ran.about("auth_type: not taken over")


@pytest.mark.parametrize("ini, why", [
    ("[databases]\n", "no database"),
    ("pool_mode = session\n", "no line of pgbouncer.ini"),
    ("[databases]\n* = host=@abstract\n", "cannot connect"),
    ("[databases]\n* = host=a\n[pgbouncer]\nauth_type = magic\n", "no equivalent"),
    ("[databases]\n* = host=a\n[pgbouncer]\nauth_file = not_there.txt\n", "not_there.txt"),
    ("%include pgbouncer.ini\n", "too deep"),
])
def test_refused_whole(tmp_path, ini, why):
    ran = Import(tmp_path, ini)
    assert ran.run.returncode == 1 and why in ran.run.stderr, ran.run.stderr
    assert not list(ran.out.iterdir())


def test_out_of_range(tmp_path):
    """What PgBouncer allows and pgpool does not is said, with the line to mend."""
    ran = Import(tmp_path, "[databases]\n* = host=a\n[pgbouncer]\nlisten_port = 80\n")
    assert ran.run.returncode == 1 and "pgpool.conf:" in ran.run.stderr and "port" in ran.run.stderr
    assert "port = 80" in ran.text("pgpool.conf")


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "pools.conf").write_text("mine", encoding="utf-8")
    ran = Import(tmp_path, "[databases]\n* = host=a\n")
    assert ran.run.returncode == 1 and "pools.conf\" exists" in ran.run.stderr
    assert [path.name for path in ran.out.iterdir()] == ["pools.conf"] and ran.text("pools.conf") == "mine"


class Imported(proxy.Pgpool):
    """A pgpool with the files of an import."""
    def __init__(self, ran: Import, port: int):
        super().__init__(ran.out, port)
        self.conf = {"num_init_children": 2}

    @property
    def conf_path(self) -> Path:
        return self.home / "live.conf"


def test_live(pg, tmp_path):
    """An application logs in with the password of the users' file, into databases that are called otherwise."""
    port = procs.free_port()
    ran = Import(tmp_path, f"""[databases]
shop = host=127.0.0.1 port={pg.port} dbname=postgres
fixed = host=127.0.0.1 port={pg.port} dbname=other_db user=md5_user password=md5_user_pw
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir = {tmp_path}
auth_type = md5
auth_file = userlist.txt
pool_mode = transaction
admin_users = scram_user
""", userlist_txt='"scram_user" "scram_user_pw"\n')
    assert ran.run.returncode == 0, ran.run.stderr
    pool = Imported(ran, port)
    pool.conf_path.write_text(ran.text("pgpool.conf") + f"num_init_children = 2\npcp_port = {procs.free_port()}\n"
                              f"pcp_socket_dir = ''\npid_file_name = '{ran.out}/pid'\nwork_dir = '{ran.out}'\n", encoding="utf-8")
    pool.start()
    try:
        for database, want in (("shop", "postgres scram_user"), ("fixed", "other_db md5_user")):
            for address in (Address("127.0.0.1", port), Address(str(tmp_path), port)):
                with Wire(address) as w:
                    assert w.login("scram_user", database, "scram_user_pw")[-1].type == "Z", pool.log()[-2000:]
                    assert w.value("select current_database() || ' ' || current_user") == want
        for user, database, password in (("scram_user", "shop", "wrong"), ("scram_user", "postgres", "scram_user_pw")):
            with Wire(pool.address) as w:
                assert w.login(user, database, password)[-1].type == "E", (database, password)
        with Wire(pool.address) as w:
            assert w.login("scram_user", "pgbouncer", "scram_user_pw")[-1].type == "Z"
    finally:
        pool.stop()
