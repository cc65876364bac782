# SPDX-License-Identifier: PostgreSQL
"""test_recovery_sql: the extensions for the servers: built by PGXS, their own regression tests against a
real server with a real pgpool in front of it."""
import os
import subprocess

import pytest

from pgt import postgres, procs, proxy, shadow, waits
from pgt.wire import Wire, WireClosed

from recovery_lab import write_pcp_conf

pytestmark = pytest.mark.skipif(not postgres.is_installed() or shadow.pg_config() is None,
                                reason="postgresql-server-dev is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of the copied installation that has the extensions."""
    before = os.environ.get("PGT_PG_BINDIR")
    os.environ["PGT_PG_BINDIR"] = str(shadow.make_shadow())
    try:
        archive = procs.folder("archive", postgres.OS_USER)
        it = postgres.start_postgres({"archive_mode": "on", "archive_command": f"cp %p {archive}/%f"},
                                     roles=False)
        it.archive = archive
    finally:
        if before is None:
            del os.environ["PGT_PG_BINDIR"]
        else:
            os.environ["PGT_PG_BINDIR"] = before
    yield it
    it.stop()


def installcheck(name: str, server, **env: str) -> None:
    """The extension's regression test, run as PGXS runs it."""
    home = procs.folder("check-" + name)
    config = shadow.pg_config()
    done = subprocess.run(
        ["make", "-C", str(home), "-f", str(shadow.TOP / "sql" / name / "Makefile"), f"PG_CONFIG={config}",
         "with_llvm=no", "installcheck"], text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL,
        env={**{k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PG"))}, "PGHOST": "127.0.0.1",
             "PGPORT": str(server.port), "PGUSER": "postgres", **env})
    diffs = home / "regression.diffs"
    if "PGT_KEEP_RESULTS" in os.environ:
        for out in (home / "results").glob("*.out"):
            (shadow.TOP / "sql" / name / "expected" / out.name).write_text(out.read_text(encoding="utf-8"),
                                                                           encoding="utf-8")
    assert done.returncode == 0, diffs.read_text(encoding="utf-8")[-6000:] if diffs.exists() else done.stdout + done.stderr


def test_pgpool_recovery(server):
    installcheck("pgpool_recovery", server)


def test_pgpool_adm(server):
    if proxy.pgpool_bin() is None:
        pytest.skip("PGPOOL_BIN does not name a program")
    port = procs.free_port()
    pool = proxy.start_pgpool([server.address], {
        "pcp_listen_addresses": "127.0.0.1", "pcp_port": port, "sr_check_period": 1, "health_check_period": 1,
        "sr_check_user": "postgres", "health_check_user": "postgres"})
    try:
        write_pcp_conf(pool.home)
        waits.wait_for("the node is probed", lambda: "primary node is 0" in pool.log())
        with Wire(pool.address) as client:
            assert client.login()[-1].type == "Z"
            installcheck("pgpool_adm", server, PGPOOL_PCP_HOST="127.0.0.1", PGPOOL_PCP_PORT=str(port),
                         PGPOOL_PCP_USER="op", PGPOOL_PCP_PASSWORD="secret")
    finally:
        pool.stop()


def test_switch_waits_for_the_archive(server):
    server.rows("create extension pgpool_recovery")
    server.rows("create table switched (n int)")
    server.rows("insert into switched values (1)")
    before = server.value("select pg_walfile_name(pg_current_wal_lsn())")
    at = server.value(f"select pgpool_switch_xlog('{server.archive}')")
    assert (server.archive / before).is_file()
    assert server.value(f"select pg_wal_lsn_diff(pg_current_wal_lsn(), '{at}') >= 0") == "t"
    server.rows("insert into switched values (2)")
    empty = procs.folder("empty", postgres.OS_USER)
    with pytest.raises(AssertionError, match="is not in"):
        server.rows(f"set pgpool.switch_timeout = '1s'; select pgpool_switch_xlog('{empty}')")


def order(server, what: str) -> None:
    """The server may end the session before it has answered."""
    try:
        assert server.value(f"select pgpool_pgctl('{what}', 'fast')") == "t"
    except WireClosed:
        pass


def test_pgctl_restarts_and_stops(server):
    server.rows("create extension if not exists pgpool_recovery")
    begun = server.value("select pg_postmaster_start_time()")
    order(server, "restart")

    def restarted() -> bool:
        try:
            return server.value("select pg_postmaster_start_time()") != begun
        except (OSError, AssertionError, WireClosed):
            return False
    waits.wait_for("the server is back", restarted, 60)
    order(server, "stop")
    waits.wait_for("the server is gone", lambda: not (server.data / "postmaster.pid").exists(), 60)
    server.daemon = None
