# SPDX-License-Identifier: PostgreSQL
"""test_web_metrics: /metrics, who may read it, and what Grafana and Prometheus are given for it."""
import base64
import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from pgt import certs, procs, waits, web
from pgt.wire import Wire, query, startup

PROMTOOL = shutil.which("promtool")
GRAFANA = Path(__file__).parents[2] / "doc" / "grafana"
WATCHED = {"health_check_period": 1, "sr_check_period": 1, "sr_check_user": "postgres", "health_check_user": "postgres"}
SAMPLE = re.compile(r'^([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[0-9.e+-]+)$')
TYPES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


@pytest.fixture
def pool(pg, start_pool):
    return web_pool(start_pool, pg.address)


def web_pool(start_pool, *backends, **conf):
    pool = start_pool(*backends, **{"http_port": procs.free_port(), "http_listen_addresses": "127.0.0.1",
                                    "http_metrics_open": True, **WATCHED, **conf})
    pool.web = pool.conf["http_port"]
    web.wait_status(pool.web, "/livez", 200)
    return pool


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def parse(text: str, openmetrics: bool) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by name; the rules of the format are asserted."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    family, kind, seen = "", "", set()
    lines = text.split("\n")
    assert lines.pop() == ""
    if openmetrics:
        assert lines.pop() == "# EOF"
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in seen, f"{family} comes twice"
            seen.add(family)
            if not openmetrics and kind == "counter":
                assert family.endswith("_total")
                family = family.removesuffix("_total")
        elif line.startswith("# HELP "):
            assert len(line.split(" ", 3)[3]) > 0
        elif line.startswith("# UNIT "):
            assert openmetrics and family.endswith(line.split(" ")[3])
        else:
            match = SAMPLE.match(line)
            assert match, line
            name, labels, value = match.groups()
            assert name in [family + end for end in TYPES[kind]], (name, family, kind)
            pairs = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels or ""))
            found.setdefault(name, []).append((pairs, float(value)))
    for name, samples in found.items():
        keys = [tuple(sorted(labels.items())) for labels, _ in samples]
        assert len(keys) == len(set(keys)), f"{name} has a sample twice"
    return found


def scrape(pool, openmetrics: bool = True, **headers):
    accept = "application/openmetrics-text; version=1.0.0,text/plain;q=0.5" if openmetrics else "text/plain"
    answer = web.ask(pool.web, "/metrics", Accept=accept, **headers)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(
        "application/openmetrics-text" if openmetrics else "text/plain; version=0.0.4")
    return parse(answer.text, openmetrics)


def value(found, name: str, **labels: str) -> float:
    hits = [v for have, v in found.get(name, []) if labels.items() <= have.items()]
    assert len(hits) == 1, (name, labels, found.get(name))
    return hits[0]


def test_both_forms(pool):
    with Wire(pool.address) as w:  # whose pool is there each time
        w.login()
        w.simple("select 1")
        waits.wait_for("it is counted", lambda: "pgpool_query_seconds_sum" in scrape(pool))
        waits.wait_for("the primary is known", lambda: value(scrape(pool), "pgpool_node_primary", node="0") == 1)
        waits.wait_for("there are the same names", lambda: set(scrape(pool)) == set(scrape(pool, openmetrics=False)))
        new = scrape(pool)
    assert value(new, "pgpool_processes", role="worker") == 2
    assert value(new, "pgpool_process_resident_bytes", role="web") > 100000
    assert value(new, "pgpool_ready") == 1


def test_figures_move(pool):
    with Wire(pool.address) as w:
        w.login(user="postgres", database="other_db")
        for _ in range(7):
            w.simple("select 1")
        found = waits.wait_for("the statements are counted", lambda: (
            lambda f: f if value(f, "pgpool_database_queries_total", database="other_db") >= 7 and
            value(f, "pgpool_query_seconds_count", database="other_db") >= 7 and
            value(f, "pgpool_node_statements_total", node="0", kind="select") >= 7 and
            value(f, "pgpool_clients", state="idle") == 1 else None)(scrape(pool)))
        assert value(found, "pgpool_query_seconds_bucket", database="other_db", le="+Inf") == \
            value(found, "pgpool_query_seconds_count", database="other_db")
        assert value(found, "pgpool_database_logins_total", database="other_db") == 1
        assert value(found, "pgpool_pool_clients", database="other_db", user="postgres", state="idle") == 1
        assert value(found, "pgpool_clients", state="idle") == 1
        buckets = [v for have, v in found["pgpool_query_seconds_bucket"] if have["database"] == "other_db"]
        assert buckets == sorted(buckets)
        found = waits.wait_for("the transactions are counted", lambda: (
            lambda f: f if value(f, "pgpool_transaction_seconds_count", database="other_db") == 7 and
            value(f, "pgpool_node_transaction_seconds_count", node="0") >= 7 else None)(scrape(pool)))
        for sql in ("begin", "select 1", "select pg_sleep(0.1)", "commit"):
            w.simple(sql)
        for name, of in (("pgpool_transaction_seconds", {"database": "other_db"}), ("pgpool_node_transaction_seconds", {"node": "0"})):
            before = [value(found, f"{name}_{what}", **of) for what in ("count", "sum")]
            now = waits.wait_for("the transaction is counted", lambda name=name, of=of, n=before[0]: (
                lambda f: f if value(f, f"{name}_count", **of) > n else None)(scrape(pool)))
            assert value(now, f"{name}_count", **of) == before[0] + 1 and value(now, f"{name}_sum", **of) >= before[1] + 0.1


def test_stalls(pool):
    """How long event loops kept their clients waiting, for each worker."""
    text = web.ask(pool.web, "/metrics").text
    for name in ("pgpool_loop_stalls_total", "pgpool_loop_stall_seconds_total", "pgpool_loop_stall_max_seconds"):
        values = re.findall(rf'^{name}{{worker="(\d+)"}} ([0-9.e+-]+)$', text, re.M)
        assert values and all(float(v) >= 0 for _, v in values), name


def test_turns(pool):
    """Turns of event loops that take less than a stall are measured, too."""
    def turns(what: str) -> float:
        return sum(v for _, v in scrape(pool)[f"pgpool_loop_turn_seconds_{what}"])
    before = turns("count")
    with Wire(pool.address) as w:
        w.login(user="postgres")
        waits.wait_for("turns are counted", lambda: [w.simple("select 1") for _ in range(100)] and turns("count") > before + 2)
    found = scrape(pool)
    short = sum(v for have, v in found["pgpool_loop_turn_seconds_bucket"] if have["le"] == "0.005")
    assert 0 < short and turns("sum") > 0


def test_orders(pool):
    """What operators hold back, for each database."""
    with Wire(pool.address) as w:
        w.login(user="postgres")
        for order, word in (("pause", "pause"), ("drain", "drain"), ("disable", "disable")):
            w.simple(f"pgpool {word} other_db")
            waits.wait_for(f"{order} is told", lambda o=order: value(scrape(pool), "pgpool_orders", database="other_db", order=o) == 1)
            w.simple(f"pgpool {'enable' if word == 'disable' else 'resume'} other_db")
        waits.wait_for("nothing is held back", lambda: {v for _, v in scrape(pool)["pgpool_orders"]} == {0})


def test_waiting(pg, start_pool):
    """Who waits, why and for how long."""
    pool = web_pool(start_pool, pg.address, max_backend_connections=1, pool_mode="transaction")
    with Wire(pool.address) as one, Wire(pool.address) as two:
        one.login()
        two.login()
        one.simple("begin")
        one.simple("select 1")  # a begin alone holds nothing
        two.send(query("select 1"))
        waits.wait_for("one waits, and that is told", lambda: (
            lambda f: [v for have, v in f["pgpool_clients_waiting"] if v] == [1] and value(f, "pgpool_clients_waiting", reason="node limit") == 1 and
            value(f, "pgpool_longest_wait_seconds") > 0)(scrape(pool)))
        one.simple("commit")
        two.ready()


def test_names_with_odd_characters(pg, start_pool):
    """Names of databases become labels: quotes and line ends must not break out."""
    pool = web_pool(start_pool, pg.address)
    name = 'a"b\\c'
    with Wire(pg.address) as w:
        w.login(user="postgres")
        w.simple('create database "a""b\\c"')
    with Wire(pool.address) as w:
        w.login(user="postgres", database=name)
        w.simple("select 1")
        found = waits.wait_for("it is told", lambda: (lambda f: f if any(
            have["database"] == 'a\\"b\\\\c' for have, _ in f.get("pgpool_database_queries_total", [])) else None)(scrape(pool)))
        assert found


def test_strangers(pg, start_pool):
    pool = web_pool(start_pool, pg.address, http_metrics_open=False)
    (pool.home / "pcp.conf").write_text(f"op:{hashlib.md5(b'secret').hexdigest()}\n", encoding="ascii")
    answer = web.ask(pool.web, "/metrics")
    assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Basic")
    assert "pgpool_" not in answer.text
    assert web.ask(pool.web, "/metrics", Authorization=basic("op", "secret")).status == 200
    assert web.ask(pool.web, "/metrics", Authorization=basic("op", "wrong")).status == 401
    assert web.ask(pool.web, "/metrics", Authorization=basic("nobody", "secret")).status == 401
    assert web.ask(pool.web, "/metrics", Authorization="Basic !!!").status == 401
    found = scrape(pool, Authorization=basic("op", "secret"))
    assert value(found, "pgpool_auth_failures_total") == 2


def test_guessing_is_slowed(pg, start_pool):
    pool = web_pool(start_pool, pg.address, http_metrics_open=False)
    (pool.home / "pcp.conf").write_text(f"op:{hashlib.md5(b'secret').hexdigest()}\n", encoding="ascii")
    said = [web.ask(pool.web, "/metrics", Authorization=basic("op", "wrong")).status for _ in range(11)]
    assert said[0] == 401 and said[-1] == 429
    assert web.ask(pool.web, "/metrics", Authorization=basic("op", "secret")).status == 429
    assert web.ask(pool.web, "/readyz").status in (200, 503)


def test_scram_user(pg, start_pool):
    pool = web_pool(start_pool, pg.address, http_metrics_open=False)
    with Wire(pg.address) as w:
        w.login(user="postgres")
        rows = w.simple("select rolpassword from pg_authid where rolname = 'scram_user'")
    verifier = [m.row()[0] for m in rows if m.type == "D"][0].decode()
    (pool.home / "pcp.conf").write_text(f"op:{verifier}\n", encoding="ascii")
    assert web.ask(pool.web, "/metrics", Authorization=basic("op", "scram_user_pw")).status == 200
    assert web.ask(pool.web, "/metrics", Authorization=basic("op", "scram_user")).status == 401


# What pgpool2_exporter's manual lists and what it says about itself.
PGPOOL2_NAMES = ["pgpool2_up", "pgpool2_backend_used", *("pgpool2_" + name for name in (
    "frontend_total frontend_used frontend_used_ratio pool_nodes_status pool_nodes_replication_delay pool_nodes_select_cnt "
    "pool_cache_cache_hit_ratio pool_cache_num_cache_entries pool_cache_num_hash_entries pool_cache_used_hash_entries "
    "pool_backend_stats_select_cnt pool_backend_stats_insert_cnt pool_backend_stats_update_cnt pool_backend_stats_delete_cnt "
    "pool_backend_stats_ddl_cnt pool_backend_stats_other_cnt pool_backend_stats_panic_cnt pool_backend_stats_fatal_cnt "
    "pool_backend_stats_error_cnt pool_health_check_stats_total_count pool_health_check_stats_success_count "
    "pool_health_check_stats_fail_count pool_health_check_stats_skip_count pool_health_check_stats_retry_count "
    "pool_health_check_stats_average_retry_count pool_health_check_stats_max_retry_count pool_health_check_stats_max_duration "
    "pool_health_check_stats_min_duration pool_health_check_stats_average_duration").split())]
# Of prometheus-community's pgbouncer_exporter, and of Debian's prometheus-pgbouncer-exporter (which test_exporters.py runs).
BOUNCER_NAMES = ["pgbouncer_" + name for name in (
    "up version_info config_max_client_connections config_max_user_connections databases_pool_size databases_reserve_pool "
    "databases_max_connections databases_current_connections databases_paused databases_disabled stats_queries_pooled_total "
    "stats_queries_duration_seconds_total stats_received_bytes_total stats_queries_total stats_sent_bytes_total "
    "stats_client_wait_seconds_total stats_sql_transactions_pooled_total stats_server_in_transaction_seconds_total "
    "stats_client_parses_total stats_server_parses_total stats_binds_total pools_client_active_connections "
    "pools_client_active_cancel_connections pools_client_waiting_connections pools_client_waiting_cancel_connections "
    "pools_server_active_connections pools_server_active_cancel_connections pools_server_being_canceled_connections "
    "pools_server_idle_connections pools_server_used_connections pools_server_testing_connections pools_server_login_connections "
    "pools_client_maxwait_seconds databases users pools free_clients used_clients login_clients free_servers used_servers "
    "cached_dns_names cached_dns_zones in_flight_dns_queries dns_names dns_zones dns_queries dns_pending requests_total "
    "received_bytes_total sent_bytes_total query_microseconds_total active_clients waiting_clients pool_size reserve_pool").split()]


def test_other_names(pg, start_pool):
    """http_metrics_names adds names and takes none away; none that a dashboard for those exporters asks for is missing."""
    pool = web_pool(start_pool, pg.address, memory_cache_enabled=True, memqcache_total_size="8MB", memqcache_max_num_cache=1000)
    ours = set(scrape(pool))
    assert not [n for n in ours if not n.startswith("pgpool_")]
    with Wire(pool.address) as w:
        w.login(user="postgres")
        w.simple("select 1")
        for names, prefixes in (("pgpool2_exporter", {"pgpool2"}), ("pgbouncer_exporter", {"pgbouncer"}),
                                ("all", {"pgpool2", "pgbouncer"})):
            pool.reload(http_metrics_names=names)
            waits.wait_for(f"{names} is in use", lambda p=prefixes: {
                n.split("_")[0] for n in scrape(pool)} == {"pgpool"} | p)
            assert ours <= set(scrape(pool))
        found = scrape(pool)
    newest = [name.replace("stats_", "stats_totals_") for name in BOUNCER_NAMES if "_stats_" in name and name != "pgbouncer_stats_queries_total"]
    for name in (*PGPOOL2_NAMES, *BOUNCER_NAMES, *newest):
        assert name in found, name
    assert value(found, "pgbouncer_requests_total", database="postgres") >= 1
    assert value(found, "pgbouncer_active_clients", database="postgres", user="postgres") == 1
    assert value(found, "pgbouncer_config_max_client_connections") == value(found, "pgpool_clients_limit")
    assert value(found, "pgbouncer_used_clients") == 1 and value(found, "pgbouncer_databases") >= 1
    (connections,) = [v for have, v in found["pgbouncer_databases_current_connections"] if have["name"] == "postgres" and have["port"] == str(pg.port)]
    assert connections >= 1
    assert found["pgbouncer_pool_size"][0][0].keys() == {"database"}
    assert found["pgbouncer_version_info"][0][0]["version"].startswith("pgpool ")
    assert found["pgpool2_pool_nodes_status"][0][0].keys() == {"hostname", "port", "role"}
    assert found["pgbouncer_pools_client_active_connections"][0][0].keys() == {"database", "user"}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\bpgpool_[a-z_]+\b", text))


NOT_FIGURES = {"node_id", "node", "port", "pgpool_id", "pgpool_port", "wd_port", "select_cnt", "replication_delay", "total_count", "average_retry_count"}


def test_figures_of_reports(pool):
    """Every figure of the reports of servers, limits, streams and the watchdog is a metric; the others have theirs in web_metrics.c."""
    (pool.home / "pcp.conf").write_text(f"op:{hashlib.md5(b'secret').hexdigest()}\n", encoding="ascii")
    with Wire(pool.address) as one, Wire(pool.address) as two:  # limits of a user in two databases: no sample twice
        for w, database in ((one, "postgres"), (two, "other_db")):
            w.login(user="postgres", database=database)
            w.simple("select 1")
        found = scrape(pool)
    assert len(found["pgpool_limit_used"]) > 6
    assert ({"name": "max_clients"}.items() <= dict(found["pgpool_limit_allowed"][0][0]).items()) and found["pgpool_limit_allowed"][0][1] == 10000
    lines = (GRAFANA.parents[1] / "src/process/web/web_metrics.def").read_text(encoding="utf-8")
    have = set(re.findall(r'^WEB_METRIC\((\w+), "(\w+)"', lines, re.M))
    index = web.ask(pool.web, "/api/v1/", Authorization=basic("op", "secret")).json()["reports"]
    seen = 0
    for report in index:
        symbol = report["name"].removeprefix("pool_").upper()
        for column in report["columns"] if any(symbol == r for r, _ in have) else ():
            if column["type"] in ("integer", "real", "boolean") and column["name"] not in NOT_FIGURES | {"load_balance_node", "witness", "local"}:
                seen += 1
                assert (symbol, column["name"]) in have, (symbol, column["name"])
    assert seen > 25


def test_dashboard_and_alerts(pg, start_pool):
    """Every metric that they name exists, and every label that they group by."""
    pair = certs.Authority().issue()
    pool = web_pool(start_pool, pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key)
    board = json.loads((GRAFANA / "pgpool.json").read_text(encoding="utf-8"))
    exprs = [t["expr"] for p in board["panels"] for t in p.get("targets", ())]
    exprs += [v["query"] for v in board["templating"]["list"]] + [a["expr"] for a in board["annotations"]["list"]]
    rules = (GRAFANA / "pgpool-alerts.yaml").read_text(encoding="utf-8")
    alerts = re.findall(r"^ +expr: (.*)$", rules, re.M)
    assert len(exprs) > 20 and len(alerts) > 8
    named = {name for expr in exprs + alerts for name in names_in(expr)}
    found: dict = {}

    def missing() -> set[str]:
        found.update(scrape(pool))
        return named - set(found)
    with Wire(pool.address) as w:
        w.login()
        w.simple("select 1")
        with contextlib.suppress(AssertionError):
            waits.wait_for("there are figures", lambda: not missing(), 20)
        assert not missing()
    for expr in exprs + alerts:
        for name in names_in(expr):
            labels = set(re.findall(r"by \(([a-z_, ]+)\)", expr))
            for group in labels:
                for label in group.split(", "):
                    assert label in ("job", "instance") or any(label in have for have, _ in found[name]) or \
                        any(label in have for n in names_in(expr) for have, _ in found[n]), (label, expr)
    for expr in exprs:
        assert expr.count("(") == expr.count(")") and expr.count("{") == expr.count("}")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_takes_all_of_it(pool, tmp_path):
    """The rules, the questions of the dashboard, and the names of our metrics, by Prometheus' own judge."""
    def judge(*args, text: str | None = None) -> None:
        done = subprocess.run([PROMTOOL, "check", *args], input=text, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    judge("rules", GRAFANA / "pgpool-alerts.yaml")
    board = json.loads((GRAFANA / "pgpool.json").read_text(encoding="utf-8"))
    asked = [t["expr"] for p in board["panels"] for t in p.get("targets", ())] + [a["expr"] for a in board["annotations"]["list"]]
    filled = [re.sub(r"\$\{?\w+\}?", "x", re.sub(r"\$__\w+", "5m", expr)) for expr in asked]
    rules = "".join(f"  - record: asked{i}\n    expr: {json.dumps(expr)}\n" for i, expr in enumerate(filled))
    (tmp_path / "board.yaml").write_text("groups:\n- name: board\n  rules:\n" + rules, encoding="utf-8")
    judge("rules", tmp_path / "board.yaml")
    judge("metrics", text=web.ask(pool.web, "/metrics").text)


def cpu_s(pid: int) -> float:
    """Processor time of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_cost_of_a_scrape(pg, start_pool):
    """With ten thousand clients a scrape takes no more than 20 ms of processor time."""
    wanted, scrapes = 10000, 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted + 1000:
        pytest.skip(f"{hard} descriptors are too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        pool = web_pool(start_pool, pg.address, pool_mode="transaction", max_clients=wanted + 100, log_connections=False)
        with contextlib.ExitStack() as stack:
            for _ in range(wanted):
                sock = stack.enter_context(pool.address.connect(60))  # Wire is for fewer: it asks select()
                sock.sendall(startup({"user": "postgres", "database": "postgres"}))
                said = b""
                while not said.endswith(b"Z\0\0\0\x05I"):
                    said += sock.recv(4096)
            assert value(scrape(pool), "pgpool_clients", state="idle") == wanted
            web_pid = next(p for p in pool.pids() if b"HTTP" in Path(f"/proc/{p}/cmdline").read_bytes())
            rounds = []
            for _ in range(3):
                before = cpu_s(web_pid)
                for _ in range(scrapes):
                    assert web.ask(pool.web, "/metrics").status == 200
                rounds.append((cpu_s(web_pid) - before) / scrapes)
            print(f"a scrape with {wanted} clients: {min(rounds) * 1000:.2f} ms of processor time, the best of {rounds}")
            assert min(rounds) <= 0.020
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
