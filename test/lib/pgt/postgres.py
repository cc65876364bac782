# SPDX-License-Identifier: PostgreSQL
"""postgres: real PostgreSQL servers in scratch folders, as user postgres when we are root."""
import fcntl
import functools
import glob
import os
import re
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

from pgt import late, procs, waits
from pgt.wire import Address, Wire, WireClosed, WireTimeout

OS_USER = "postgres"
HBA = """\
local all  all                    trust
host  all  plain_user  all        password
host  all  md5_user    all        md5
host  all  scram_user  all        scram-sha-256
host  all  nohba_user  all        reject
host  nohba_db all     all        reject
host  replication all  all        trust
host  all  all         all        trust
"""
# Accounts by the method that pg_hba.conf gives them; the password is the name with _pw.
ROLES = """\
set password_encryption = 'scram-sha-256';
create role scram_user login password 'scram_user_pw';
create role plain_user login password 'plain_user_pw';
create role nologin_user password 'nologin_user_pw';
create role trust_user login;
create role other_user login;
create role nohba_user login;
set password_encryption = 'md5';
create role md5_user login password 'md5_user_pw';
"""
BASE_CONF = {
    "listen_addresses": "127.0.0.1", "fsync": "off", "full_page_writes": "off", "max_connections": "200",
    "shared_buffers": "16MB", "logging_collector": "off", "log_line_prefix": "%m [%p] ",
    "max_prepared_transactions": "5", "autovacuum": "off", "wal_level": "replica",
    "timezone": "UTC", "log_timezone": "UTC", "synchronous_commit": "off", "password_encryption": "scram-sha-256",
}


def bindir() -> Path:
    """Newest PostgreSQL server programs, or $PGT_PG_BINDIR."""
    if "PGT_PG_BINDIR" in os.environ:
        return Path(os.environ["PGT_PG_BINDIR"])
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    if not found:
        raise FileNotFoundError("no PostgreSQL server programs under /usr/lib/postgresql")
    newest = max(found, key=lambda p: float(re.findall(r"postgresql/([\d.]+)/", p)[0]))
    return Path(newest).parent


def client(name: str) -> Path:
    """A client program: of the same version where there is one, else Debian's."""
    own = bindir() / name
    return own if own.exists() else Path("/usr/bin") / name


@functools.cache
def major() -> int:
    """Of the server programs that tests start."""
    return int(re.findall(r"\) (\d+)", procs.run([str(bindir() / "postgres"), "--version"]))[0])


def is_installed() -> bool:
    try:
        return (bindir() / "initdb").exists()
    except FileNotFoundError:
        return False


def copy_template(data: Path) -> None:
    """A fresh data folder. Its template0 is one for all servers, by links: nobody can connect to it, so nothing is ever written
    there, and it is a third of the files."""
    cache = template()
    procs.run(["cp", "-a", str(cache / "data"), str(data)])
    procs.run(["cp", "-al", str(cache / "template0"), str(data / "base" / os.readlink(cache / "number"))])


@functools.cache
def _program_version(bins: Path) -> str:
    version = procs.run([str(bins / "postgres"), "--version"]).strip().replace(" ", "_")
    return re.sub(r"[^\w.]", "", version)


def template() -> Path:
    """What initdb made, one folder per version and user, kept between runs."""
    cache = Path(os.environ.get("PGT_SCRATCH", "/tmp")) / f"pgt-template2-{os.geteuid()}-{_program_version(bindir())}"
    cache.mkdir(mode=0o755, exist_ok=True)
    assert cache.stat().st_uid == os.geteuid(), f"{cache} belongs to somebody else"
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "done").exists():
            _make_template(cache)
    return cache


def _make_template(cache: Path) -> None:
    for left in ("data", "template0"):
        shutil.rmtree(cache / left, ignore_errors=True)
    (cache / "number").unlink(missing_ok=True)
    made = procs.folder("initdb", OS_USER)
    procs.run([str(bindir() / "initdb"), "-D", str(made / "data"), "-U", "postgres", "-A", "trust",
               "-N", "-E", "UTF8", "--locale=C.UTF-8"], user=OS_USER, cwd="/")
    # Databases are made in this order: template1, template0, postgres.
    template0 = sorted(int(folder.name) for folder in (made / "data" / "base").iterdir())[1]
    shutil.move(str(made / "data" / "base" / str(template0)), str(cache / "template0"))
    shutil.move(str(made / "data"), str(cache / "data"))
    (cache / "number").symlink_to(str(template0))
    (cache / "done").touch()


running: dict[int, "Postgres"] = {}  # by port


def let_go(port: int) -> None:
    """Gives the processes of a server that is ours a moment to notice that their clients have gone: a test begins without
    sessions, locks and temporary tables of the one before it. Who runs a long statement may take longer, and does."""
    if port in running:
        end = waits.deadline(2)
        waits.wait_for("they have gone, or it took too long", lambda: waits.now() > end or not procs.hung_up(port))


@dataclass
class Postgres:
    """A running server. `address` is TCP, `socket` the unix one."""
    data: Path
    port: int
    daemon: procs.Daemon | None = None
    conf: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port)

    @property
    def socket(self) -> Address:
        return Address(str(self.data.parent), self.port)

    def write_conf(self, conf: dict[str, str], hba: str = HBA) -> None:
        self.conf = {**BASE_CONF, "port": str(self.port), "unix_socket_directories": str(self.data.parent), **conf}
        text = "".join(f"{k} = '{v}'\n" for k, v in self.conf.items())
        (self.data / "postgresql.auto.conf").write_text(text, encoding="utf-8")
        (self.data / "pg_hba.conf").write_text(hba, encoding="utf-8")

    def entered(self, command: list[str]) -> tuple[list[str], str | None]:
        """A command as it is to be started where the server lives, and the account to start it as."""
        return command, OS_USER

    def start(self) -> None:
        command, user = self.entered([str(bindir() / "postgres"), "-D", str(self.data)])
        env = {**os.environ, **late.linger_env} if late.linger_env else None
        self.daemon = procs.Daemon(command, self.data.parent / "postgres.log", user, env)
        waits.wait_for(f"PostgreSQL on port {self.port} answers", self._answers, 60)
        running[self.port] = self

    def _answers(self) -> bool:
        assert self.daemon is not None
        assert self.daemon.is_running(), f"PostgreSQL ended:\n{self.daemon.log()[-3000:]}"
        try:
            with Wire(self.address) as w:
                return w.login()[-1].type == "Z"
        except (OSError, WireClosed, WireTimeout):
            return False

    def stop(self, how: int = signal.SIGINT) -> None:
        running.pop(self.port, None)
        if self.daemon is not None:
            # Those of a first process that was killed end when they notice, and until then nobody can start the server again.
            left = procs.children(self.daemon.pid) if how == signal.SIGKILL else []
            self.daemon.signal(how)
            self.daemon.wait_exit(60)
            self.daemon = None
            waits.wait_for("its processes end", lambda: not any("postgres" in procs.command_line(pid) for pid in left), 60)

    def log(self) -> str:
        return (self.data.parent / "postgres.log").read_text(encoding="utf-8", errors="replace")

    def rows(self, sql: str, database: str = "postgres") -> list[list[bytes | None]]:
        """Runs SQL on a connection of its own, direct, as superuser."""
        with Wire(self.socket, seconds=60) as w:  # on a busy disk a data base or a promotion takes its time
            assert w.login(database=database)[-1].type == "Z"
            return w.rows(sql)

    def value(self, sql: str, database: str = "postgres") -> str:
        raw = self.rows(sql, database)[0][0]
        return "" if raw is None else raw.decode()

    def end_process(self, *pids: int | str) -> None:
        """Ends server processes, and waits until they have gone and whoever was connected to them has closed its side: what is
        sent before it has heard of it may get the server's last words (57P01) as its answer."""
        those = f"pid in ({', '.join(str(pid) for pid in pids) or 'null'})"
        ports = {int(r[0] or 0) for r in self.rows(f"select client_port from pg_stat_activity where {those}")}
        ends = procs.open_ends(self.port, ports)
        self.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where {those}")
        waits.wait_for("they have ended", lambda: self.value(f"select count(*) from pg_stat_activity where {those}") == "0")
        waits.wait_for("the other side has closed, too", lambda: not ends & procs.open_ends(self.port, ports))

    def reload(self) -> None:
        """Has the settings and pg_hba.conf read again, and waits until all has been told to and new connections begin with them:
        the first process does it when it is its turn, and it alone can tell a new one when it did."""
        asked = "select pg_conf_load_time()"
        before = self.value(asked)
        self.rows("select pg_reload_conf()")
        waits.wait_for("the settings are read again", lambda: self.value(asked) != before)
        self.value(asked)  # who asked may have been told before the others were

    def logins(self) -> list[int]:
        """Server processes that still wait for a client's password."""
        assert self.daemon is not None
        return [pid for pid in procs.children(self.daemon.pid) if "authentication" in procs.command_line(pid)]

    def sessions(self, where: str = "true") -> list[int]:
        """Pids of client backends other than the one that asks."""
        sql = ("select pid from pg_stat_activity where backend_type = 'client backend' "
               f"and pid <> pg_backend_pid() and ({where})")
        return sorted(int(r[0] or 0) for r in self.rows(sql))

    def held(self, where: str = "true") -> list[int]:
        """As sessions(), without those whose client has closed its end: they have yet to notice, and are no matter of who did so."""
        found = self.rows("select pid, client_port from pg_stat_activity where backend_type = 'client backend' "
                          f"and pid <> pg_backend_pid() and ({where})")
        gone = procs.hung_up(self.port)
        return sorted(int(pid or 0) for pid, port in found if int(port or 0) not in gone)

    def end_sessions(self, where: str = "true") -> None:
        """As end_process, of all client backends but the one that asks."""
        if found := self.sessions(where):
            self.end_process(*found)


def start_postgres(conf: dict[str, str] | None = None, hba: str = HBA, roles: bool = True) -> Postgres:
    """A fresh server on a free port with the accounts of ROLES."""
    home = procs.folder("postgres", OS_USER)
    copy_template(home / "data")
    pg = Postgres(home / "data", procs.free_port())
    pg.write_conf(conf or {}, hba)
    pg.start()
    if roles:
        for sql in ROLES.split(";\n"):
            if sql.strip():
                pg.rows(sql)
        pg.rows("create database nohba_db")
        pg.rows("create database other_db")
    return pg
