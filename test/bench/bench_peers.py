# SPDX-License-Identifier: PostgreSQL
"""bench_peers: PostgreSQL and the proxies that are compared, with equivalent settings.

Every proxy: the same pool mode and size, trust authentication, TCP over loopback on both sides, room for more
clients than any run opens, no logging of connections, no health checks that do work.
"""

import os
import re
import shutil
import signal
import subprocess

from bench_base import (BenchError, accepts, drop_root, end_process, free_port, postgres_bin, tail,
                        tree_cpu_us, tree_pss_bytes, wait_until)

USER = "bench"
DATABASE = "bench"
TITLES = {"ours": "pgpool", "ours1": "pgpool, 1 worker", "ours2": "pgpool, 2 workers",
          "pgbouncer": "PgBouncer", "pgbouncer_pair": "2 PgBouncers",
          "pgbouncer_standbys": "PgBouncer over the standbys", "pgpool2": "pgpool-II", "floor": "floor",
          "floor_standbys": "floor over the standbys", "direct": "direct"}


def client_env():
    """Environment of the load generator: nothing but what is measured goes over the wire."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return {**keep, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable", "PGCONNECT_TIMEOUT": "10"}


class Postgres:
    """The server behind all peers, with its standbys if there are any. The load uses role `bench`
    (trust, loopback); the superuser is reached by its own Unix user only."""

    def __init__(self, scratch, max_connections, scale, nodes=1, **options):
        self.scratch, self.scale = scratch, scale
        self.options = options  # of the server, further ones
        self.max_connections = max_connections
        self.bin = postgres_bin()
        # One port, so that PgBouncer can be told several of them: it has a list of hosts, not of ports.
        self.port = free_port()
        self.nodes = [(f"127.0.0.{n + 1}", self.port) for n in range(nodes)]
        self.pids = {}  # by node

    def _as_server(self, argv):
        done = subprocess.run(drop_root() + argv, cwd=self.scratch.run, text=True, check=False,
                              capture_output=True)
        if done.returncode != 0:
            raise BenchError(f"{os.path.basename(argv[0])}: {done.stderr.strip()[-600:]}")
        return done.stdout.strip()

    def _psql(self, text, node=0, database="postgres"):
        return self._as_server(
            [f"{self.bin}/psql", "-XAtq", "-h", self._sockets(node), "-p", str(self.port), "-d", database, "-c", text])

    def _says(self, text, node):
        try:
            return self._psql(text, node)
        except BenchError:  # it accepts connections before it is ready
            return None

    def sessions(self):
        """How many sessions all nodes have had so far; always 0 before PostgreSQL 14."""
        text = "SELECT coalesce(sum((to_jsonb(d) ->> 'sessions')::bigint), 0) FROM pg_stat_database d"
        return sum(int(self._psql(text, node)) for node in range(len(self.nodes)))

    def _data(self, node):
        return os.path.join(self.scratch.run, f"data{node}")

    def _sockets(self, node):
        return os.path.join(self.scratch.run, f"sockets{node}")

    def _run(self, node):
        self.scratch.make_dir("run/" + os.path.basename(self._sockets(node)))
        options = {
            "hba_file": self.hba, "port": self.port, "listen_addresses": self.nodes[node][0],
            "unix_socket_directories": self._sockets(node), "fsync": "off",
            "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off",
            "shared_buffers": "256MB", "max_wal_size": "4GB", "ssl": "off", "jit": "off",
            "max_connections": self.max_connections, "superuser_reserved_connections": 3, **self.options,
        }
        argv = [f"{self.bin}/postgres", "-D", self._data(node)]
        for name, value in options.items():
            argv += ["-c", f"{name}={value}"]
        name = f"postgres{node}"
        proc = self.scratch.spawn(name, argv)
        self.pids[node] = proc.pid
        try:
            wait_until(name, 30, lambda: self._says("SELECT 1", node) == "1", proc)
        except BenchError as e:
            raise BenchError(f"{e}\n{tail(self.scratch.log_path(name))}") from None

    def _add_standby(self, node):
        self._as_server([f"{self.bin}/pg_basebackup", "-h", self._sockets(0), "-p", str(self.port),
                         "-D", self._data(node), "-c", "fast", "-R", "--no-sync"])
        self._run(node)
        at = self._psql("SELECT pg_current_wal_lsn()")
        wait_until(f"standby {node}", 30, lambda: self._says(
            f"SELECT pg_last_wal_replay_lsn() >= '{at}'", node) == "t")

    def reads(self):
        """Of the table that `pgbench -S` reads, one each, by node; nobody else reads it. Servers tell late, see
        bench_load.shares."""
        sql = "SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'"
        return [int(self._psql(sql, node, DATABASE)) for node in range(len(self.nodes))]

    def start(self):
        self._as_server([f"{self.bin}/initdb", "-D", self._data(0), "--encoding=UTF8",
                         "--locale=C.UTF-8", "--auth=peer", "--no-sync"])
        self.hba = self.scratch.write(
            "pg_hba.conf", f"local all all peer\nlocal replication all peer\n"
            f"host {DATABASE} {USER} 127.0.0.0/8 trust\nhost postgres {USER} 127.0.0.0/8 trust\n")
        self._run(0)
        self._psql(f"CREATE ROLE {USER} LOGIN IN ROLE pg_monitor")
        self._psql(f"CREATE DATABASE {DATABASE} OWNER {USER}")
        subprocess.run(
            [f"{self.bin}/pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-i", "-q",
             "-s", str(self.scale), DATABASE], check=True, capture_output=True, env=client_env())
        self._psql("CHECKPOINT")
        for node in range(1, len(self.nodes)):
            self._add_standby(node)

    def let_follow(self):
        """The load's role may follow the changes, as the query cache's invalidator does."""
        self._psql(f"ALTER ROLE {USER} REPLICATION")

    def version(self):
        return "PostgreSQL " + self._psql("SHOW server_version")


class Peer:
    """One way to the server. `pid` is the root of its processes, None for the direct way."""

    name = ""

    def __init__(self, scratch, server_port, clients, pool_mode="session", tag="", pool_size=0):
        """`pool_size` 0: a server connection for every client."""
        self.scratch, self.server_port = scratch, server_port
        self.clients, self.pool_mode = clients, pool_mode
        self.pool_size = pool_size or clients + 10
        self.standbys = []  # more nodes, (host, port), for those that balance
        self.reads_on_standbys = False  # all of them: the primary has no weight
        self.tag = f"{self.name}{tag}"
        self.port = free_port()
        self.command = None
        self.proc = None

    @property
    def pid(self):
        return self.proc.pid if self.proc else None

    def argv(self):
        raise NotImplementedError

    def version(self):
        return TITLES[self.name]

    def start(self):
        self.command = self.command or self.argv()
        self.proc = self.scratch.spawn(self.tag, self.command, stop_signal=self.stop_signal())
        try:
            wait_until(self.tag, 30, lambda: accepts(self.port), self.proc)
        except BenchError as e:
            raise BenchError(f"{e}\n{tail(self.scratch.log_path(self.tag))}") from None

    def start_again(self):
        """Where its memory lies, and with it what a transaction costs, is another than before."""
        if self.proc:
            self.stop()
            self.start()

    def stop(self):
        end_process(self.proc, self.stop_signal())

    def stop_signal(self):
        return signal.SIGINT

    def nodes_conf(self):
        """pgpool's and pgpool-II's settings of the nodes: one, or a balanced cluster."""
        primary = 0 if self.reads_on_standbys else 1
        lines = [self.node_conf(0, "127.0.0.1", self.server_port, primary, "ALWAYS_PRIMARY|DISALLOW_TO_FAILOVER")]
        lines += [self.node_conf(n, host, port, 1, "DISALLOW_TO_FAILOVER")
                  for n, (host, port) in enumerate(self.standbys, 1)]
        return "".join(lines) + f"""
load_balance_mode = {"on" if self.standbys else "off"}
health_check_period = 0
sr_check_period = {10 if self.reads_on_standbys else 0}
sr_check_user = '{USER}'
"""

    @staticmethod
    def node_conf(node, host, port, weight, flag):
        return f"""
backend_hostname{node} = '{host}'
backend_port{node} = {port}
backend_weight{node} = {weight}
backend_flag{node} = '{flag}'
"""

    def cpu_us(self):
        return tree_cpu_us(self.pid) if self.pid else 0

    def pss_bytes(self):
        return tree_pss_bytes(self.pid) if self.pid else 0


class Direct(Peer):
    name = "direct"

    def start(self):
        self.port = self.server_port


class PgBouncer(Peer):
    name = "pgbouncer"
    processes = 1  # on one port, which have the pool's connections between them

    def hosts(self):
        return "127.0.0.1"

    def argv(self):
        users = self.scratch.write(f"{self.tag}.users", f'"{USER}" ""\n')
        conf = self.scratch.write(f"{self.tag}.ini", f"""
[databases]
* = host={self.hosts()} port={self.server_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
so_reuseport = {int(self.processes > 1)}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = {self.pool_mode}
max_client_conn = {self.clients * 3 + 200}
default_pool_size = {self.pool_size // self.processes}
ignore_startup_parameters = extra_float_digits
{"max_prepared_statements = 200" if self.pool_mode == "transaction" and self.follows_prepared() else ""}
log_connections = 0
log_disconnections = 0
""")
        return [find_program("pgbouncer"), conf]

    def version(self):
        return first_line([find_program("pgbouncer"), "--version"])

    def follows_prepared(self):
        """max_prepared_statements came with 1.21."""
        found = re.search(r"(\d+)\.(\d+)", self.version())
        return found is not None and (int(found[1]), int(found[2])) >= (1, 21)


class PgBouncerPair(PgBouncer):
    """What its users run for two processors: what two workers of ours are."""

    name = "pgbouncer_pair"
    processes = 2

    def start(self):
        super().start()
        self.other = self.scratch.spawn(self.tag, self.command, stop_signal=self.stop_signal())
        wait_until(self.tag, 30, lambda: listeners(self.port) == self.processes, self.other)

    def stop(self):
        end_process(self.other, self.stop_signal())
        super().stop()

    def cpu_us(self):
        return super().cpu_us() + tree_cpu_us(self.other.pid)

    def pss_bytes(self):
        return super().pss_bytes() + tree_pss_bytes(self.other.pid)


class PgBouncerStandbys(PgBouncer):
    """It routes nothing here either, but its connections go to the standbys in turn: the same servers
    work as behind one that balances."""

    name = "pgbouncer_standbys"

    def hosts(self):
        return ",".join(host for host, _ in self.standbys) or super().hosts()


class Pgpool2(Peer):
    name = "pgpool2"

    def argv(self):
        folder = self.scratch.make_dir(f"{self.tag}.d")
        conf = self.scratch.write(f"{self.tag}.conf", f"""
backend_clustering_mode = 'streaming_replication'
listen_addresses = '127.0.0.1'
port = {self.port}
socket_dir = '{folder}'
unix_socket_directories = '{folder}'
pcp_listen_addresses = ''
pcp_port = {free_port()}
pcp_socket_dir = '{folder}'
wd_ipc_socket_dir = '{folder}'
pid_file_name = '{folder}/pgpool.pid'
logdir = '{folder}'
work_dir = '{folder}'
{self.nodes_conf()}
num_init_children = {self.clients + 5}
max_pool = 1
child_life_time = 0
connection_cache = on
reset_query_list = 'ABORT; DISCARD ALL'
memory_cache_enabled = off
enable_pool_hba = off
pool_passwd = ''
""")
        return [find_program("pgpool"), "-n", "-f", conf]

    def version(self):
        return first_line([find_program("pgpool"), "-v"])


class Ours(Peer):
    name = "ours"
    workers = 0  # one per processor
    program = None
    settings = ""  # further lines of pgpool.conf

    def argv(self):
        folder = self.scratch.make_dir(f"{self.tag}.d")
        conf = self.scratch.write(f"{self.tag}.conf", f"""
backend_clustering_mode = 'streaming_replication'
listen_addresses = '127.0.0.1'
port = {self.port}
unix_socket_directories = '{folder}'
pcp_listen_addresses = 'localhost'
pcp_port = {free_port()}
pcp_socket_dir = '{folder}'
pid_file_name = '{folder}/pgpool.pid'
work_dir = '{folder}'
{self.nodes_conf()}
pool_mode = {self.pool_mode}
max_clients = {self.clients * 3 + 200}
max_backend_connections = {self.pool_size}
num_init_children = {self.workers}
query_wait_notify = 0
default_pool_size = {self.pool_size}
{self.settings}
""")
        return [self.program, "-n", "-f", conf]

    def version(self):
        return "ours: " + first_line([self.program, "--version"])


class Ours1(Ours):
    name = "ours1"
    workers = 1


class Ours2(Ours):
    name = "ours2"
    workers = 2


class Floor(Peer):
    """A relay that does nothing a pooler must do (test/bench/floor): what the kernel asks for. `make relay_floor`
    first. One server, sessions or transactions, no prepared statements that outlive a transaction."""

    name = "floor"

    def argv(self):
        program = os.path.join(os.path.dirname(Ours.program), "relay_floor")
        if not os.access(program, os.X_OK):
            raise BenchError(f"no {program}: make relay_floor")
        servers = self.pool_size if self.pool_mode == "transaction" else self.clients
        mode = ["transaction"] if self.pool_mode == "transaction" else []
        return [program, str(self.port), self.hosts(), str(self.server_port), USER, DATABASE, str(servers), *mode]

    def hosts(self):
        return "127.0.0.1"


class FloorStandbys(Floor):
    """Its connections go to the standbys in turn, as those of PgBouncerStandbys."""

    name = "floor_standbys"

    def hosts(self):
        return ",".join(host for host, _ in self.standbys) or super().hosts()


PEERS = {cls.name: cls for cls in (Ours, Ours1, Ours2, PgBouncer, PgBouncerPair, PgBouncerStandbys, Pgpool2, Floor,
                                   FloorStandbys, Direct)}


def listeners(port):
    """How many sockets listen on a port of 127.0.0.1."""
    with open("/proc/net/tcp") as file:
        return sum(line.split()[1:4:2] == [f"0100007F:{port:04X}", "0A"] for line in file)


def find_program(name):
    # Debian keeps these in sbin, which a user's PATH may lack.
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
    if path is None:
        raise BenchError(f"{name} is not installed (dev/install bench)")
    return path


def first_line(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return ((done.stdout or done.stderr).strip().splitlines() or ["unknown version"])[0]
