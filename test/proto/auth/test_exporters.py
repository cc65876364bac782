# SPDX-License-Identifier: PostgreSQL
"""test_exporters: programs that read SHOW for Prometheus: Debian's prometheus-pgbouncer-exporter is run; of
pgpool2_exporter, prometheus-community's pgbouncer_exporter and Spreaker's prometheus-pgbouncer-exporter (2.1, PyPI) what they ask and
how they read the answers."""
import os
import re
import shutil
from decimal import Decimal

import psycopg
import psycopg.rows
import pytest

import auth_house as house
from pgt import procs, waits, web
from pgt.wire import Wire

EXPORTER = shutil.which("prometheus-pgbouncer-exporter")
BOUNCER_METRICS = (
    "databases users pools free_clients used_clients login_clients free_servers used_servers dns_names dns_zones "
    "dns_queries dns_pending requests_total received_bytes_total sent_bytes_total query_microseconds_total "
    "active_clients waiting_clients pool_size reserve_pool").split()
# Of pgpool2_exporter: what it asks for, the labels it takes, and the columns it reads as numbers.
NODE = ("hostname", "port", "role")
POOL_METRICS = {
    "pool_nodes": (NODE, "select_cnt replication_delay"),
    "pool_backend_stats": (NODE, "select_cnt insert_cnt update_cnt delete_cnt ddl_cnt other_cnt panic_cnt fatal_cnt error_cnt"),
    "pool_health_check_stats": (NODE, "total_count success_count fail_count skip_count retry_count average_retry_count "
                                      "max_retry_count max_duration min_duration average_duration"),
    "pool_processes": (("pool_pid", "database", "username"), ""),
    "pool_pools": (("pool_pid", "pool_id", "backend_id", "database", "username"), ""),
    "pool_cache": ((), "cache_hit_ratio num_hash_entries used_hash_entries num_cache_entries used_cache_entries_size "
                       "free_cache_entries_size"),
}


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    yield pg
    pg.stop()


@pytest.fixture
def pool(server):
    it = house.start_auth_pool([server.address], passwd="boss:boss_pw\n", memory_cache_enabled="on",
                               memqcache_total_size="4MB", memqcache_max_num_cache=1000, memqcache_cache_block_size="1MB",
                               health_check_period=1, health_check_user="postgres",
                               stats_users="boss")
    yield it
    it.stop()


def samples(text: str) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for name, labels, value in re.findall(r"^(pgbouncer_\w+)(\{[^}]*\})? (\S+)$", text, re.M):
        found.setdefault(name.removeprefix("pgbouncer_"), []).append((labels, float(value)))
    return found


@pytest.mark.skipif(EXPORTER is None, reason="prometheus-pgbouncer-exporter is not installed")
def test_pgbouncers_exporter(pool):
    port = procs.free_port()
    client = Wire(pool.address, seconds=20)
    client.login("boss", "postgres", "boss_pw")
    for _ in range(3):
        client.simple("select 1")
    daemon = procs.Daemon([EXPORTER, "--host", "127.0.0.1", "--port", str(port), "--pgbouncer-host", "127.0.0.1",
                           "--pgbouncer-port", str(pool.port), "--pgbouncer-user", "boss"],
                          pool.home / "exporter.log", env={**os.environ, "PGPASSWORD": "boss_pw"})
    try:
        def is_seen() -> bool:
            """A worker tells what it has counted from time to time."""
            found = samples(web.ask(port, "/metrics").text)
            assert set(BOUNCER_METRICS) <= set(found), set(BOUNCER_METRICS) - set(found)
            return (dict(found["requests_total"]).get('{database="postgres"}', 0) >= 3
                    and dict(found["active_clients"]).get('{database="postgres",user="boss"}') == 1)

        web.wait_status(port, "/metrics", 200)
        waits.wait_for("three statements of one client", is_seen)
    finally:
        daemon.kill()
        client.bye()


# Of prometheus-community's pgbouncer_exporter: what it asks for, the labels it takes, and the columns it reads as numbers.
COMMUNITY = {
    "stats_totals": ("database", "query_count query_time bytes_received bytes_sent wait_time xact_count xact_time client_parse_count "
                                 "server_parse_count bind_count"),
    "pools": ("database user", "cl_active cl_active_cancel_req cl_waiting cl_waiting_cancel_req sv_active sv_active_cancel "
                               "sv_being_canceled sv_idle sv_used sv_tested sv_login maxwait"),
    "databases": ("name host port database force_user pool_mode", "pool_size reserve_pool max_connections current_connections paused disabled"),
}


def labels_differ(rows: list[dict], labels: list[str]) -> bool:
    """Two samples of one name with the same labels, and a registry of Prometheus gives no answer at all."""
    return len({tuple(row[name] for name in labels) for row in rows}) == len(rows)


def test_pgbouncer_exporter_of_the_community(pool):
    """In the virtual database, by the simple protocol, columns by name; of LISTS and CONFIG rows by name. Labels are texts and numbers."""
    with Wire(pool.address, seconds=20) as client:
        client.login("boss", "postgres", "boss_pw")
        client.simple("select 1")
        with psycopg.connect(f"host=127.0.0.1 port={pool.port} user=boss password=boss_pw dbname=pgbouncer", autocommit=True) as conn:
            def ask(report: str) -> tuple[list[str], list[tuple]]:
                cursor = psycopg.ClientCursor(conn)
                cursor.execute(f"SHOW {report};")
                return [column.name for column in cursor.description], cursor.fetchall()
            for report, (labels, figures) in COMMUNITY.items():
                names, rows = ask(report)
                assert {*labels.split(), *figures.split()} <= set(names) and rows, report
                found = [dict(zip(names, row)) for row in rows]
                for cells in found:
                    assert all(isinstance(cells[name], (int, Decimal)) and cells[name] >= 0 for name in figures.split()), (report, cells)
                    assert all(isinstance(cells[name], (int, str)) for name in labels.split()), (report, cells)
                assert labels_differ(found, labels.split()), report
            names, rows = ask("LISTS")
            assert names == ["list", "items"] and all(isinstance(items, int) for _, items in rows)
            assert {"databases", "users", "pools", "used_clients", "used_servers", "dns_names"} <= {name for name, _ in rows}
            names, rows = ask("CONFIG")
            assert len(names) == 4
            settings = {row[0]: row[1] for row in rows}
            assert settings["max_client_conn"].isdigit() and settings["max_user_connections"].isdigit()
            assert ask("VERSION")[0] == ["version"] and ask("STATS")[1]


# Of Spreaker's: what it asks for, the labels it takes, and the columns that it shows.
SPREAKER = {
    "STATS": ("database", "total_requests total_xact_count total_query_count total_xact_time total_wait_time total_query_time total_received total_sent"),
    "POOLS": ("database user", "cl_active cl_waiting sv_active sv_idle sv_used sv_tested sv_login"),
    "DATABASES": ("name database", "pool_size reserve_pool current_connections max_connections"),
}


def test_exporter_of_spreaker(pool):
    """It computes with two columns, adding what its driver makes of them; a text there, and it shows nothing but that all is down."""
    with Wire(pool.address, seconds=20) as client:
        client.login("boss", "postgres", "boss_pw")
        client.simple("select 1")
        with psycopg.connect(f"host=127.0.0.1 port={pool.port} user=boss password=boss_pw dbname=pgbouncer", autocommit=True) as conn:
            def ask(report: str) -> list[dict]:
                cursor = psycopg.ClientCursor(conn, row_factory=psycopg.rows.dict_row)
                return cursor.execute(f"SHOW {report}").fetchall()
            for report, (labels, figures) in SPREAKER.items():
                rows = ask(report)
                assert rows and labels_differ(rows, labels.split()), report
                assert all(float(row[name]) >= 0 for row in rows for name in figures.split()), report
            assert all(row["maxwait"] + row["maxwait_us"] / 1000000.0 == 0 for row in ask("POOLS"))
            settings = {row["key"]: row["value"] for row in ask("CONFIG")}
            assert int(settings["max_client_conn"]) > 0 and int(settings["max_user_connections"]) >= 0


def test_pgpool2_exporter(pool):
    """It asks by the simple protocol, finds columns by name and reads figures as Go does."""
    with psycopg.connect(f"host=127.0.0.1 port={pool.port} user=boss password=boss_pw dbname=postgres", autocommit=True) as conn:
        for report, (labels, figures) in POOL_METRICS.items():
            cursor = psycopg.ClientCursor(conn)
            cursor.execute(f"SHOW {report};")
            names = [column.name for column in cursor.description]
            assert {*labels, *figures.split()} <= set(names), report
            rows = [dict(zip(names, row)) for row in cursor.fetchall()]
            assert rows, report
            assert labels_differ(rows, list(labels)) or not figures, report
            for row in rows:
                assert all(re.fullmatch(r"-?\d+(\.\d+)?|-?nan", row[name]) for name in figures.split()), (report, row)
                assert row.get("status") in ("up", "waiting", None) or not labels == NODE, row
        cursor.execute("SHOW POOL_VERSION;")
        assert [column.name for column in cursor.description] == ["pool_version"]
        assert re.match(r"(\d+)(\.\d+)(\.\d+)?", cursor.fetchone()[0])
