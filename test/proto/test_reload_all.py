# SPDX-License-Identifier: PostgreSQL
"""test_reload_all: T84 of the catalogue: every setting that a reload can change is another one after it, in every
process; every other one is refused by name and stays."""
import json
import re
import subprocess

from pgt import waits
from pgt.proxy import pgpool_bin
from pgt.wire import Wire

# What "another valid value" is where adding one or a letter makes none.
OTHERS = {
    "backend_require_auth": "scram-sha-256,none",
    "reset_query_list": "ABORT; DISCARD ALL; SELECT 1", "server_check_query": "select 1", "log_destination": "stderr,syslog",
    "log_file_mode": "0640", "unix_socket_permissions": "0770",
    "ssl_ciphers": "HIGH", "ssl_ecdh_curve": "prime256v1",
    "lobj_lock_table": "public.locks", "pool_mode": "transaction",
    "primary_routing_query_pattern_list": "locks", "dml_adaptive_object_relationship_list": "t_1:t_2",
    "user_redirect_preference_list": "u:primary", "database_redirect_preference_list": "d:primary",
    "app_name_redirect_preference_list": "a:primary", "memqcache_expire_list": "t:5", "log_line_prefix": "%m: %a pid %p! ",
}
# What would keep the client of this test from asking: checked elsewhere.
ELSEWHERE = {
    "enable_pool_hba": "auth", "allow_clear_text_frontend_auth": "auth", "auth_query": "auth", "auth_user": "auth",
    "pools_file": "test_pools_conf", "write_function_list": "not beside read_function_list", "max_clients": "test_limits",
}


def other_value(p: dict) -> object:
    """Another value that the setting may have."""
    name, kind, old = p["name"], p["type"], p["default"]
    if name in OTHERS:
        return OTHERS[name]
    if kind == "boolean":
        return "off" if old == "on" else "on"
    if kind == "one of a list":
        return next(v["text"] for v in p["values"] if v["text"] != old and v["built"] or v is p["values"][-1])
    if kind in ("whole number", "number", "time", "size"):
        number, unit = re.fullmatch(r"(-?[\d.]+)(\D*)", old).groups()
        # No limit and no time-out that this test's clients would meet.
        step = 1 if kind == "number" or old != "0" else 1000 if kind == "time" else 30
        more = float(number) + (step if float(number) + step <= float(p["max"]) else -1)
        return f"{more:.12g}{unit}"
    return "changed"


def shown(w: Wire) -> dict[str, str]:
    return {r[0].decode(): (r[1] or b"").decode() for r in w.rows("pgpool show all")}


def test_every_setting_is_reloaded_or_refused(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=2, worker_fill=0, backend_data_directory0="/nowhere")
    described = subprocess.run([pgpool_bin(), "--describe=json"], capture_output=True, check=True, timeout=30).stdout
    table = {p["name"]: p for p in json.loads(described) if not p["per"] and p["type"] != "file name"
             and p["name"] != "replication_mode"  # kept for old files, not in SHOW
             and p["name"] not in pool.conf and p["name"] not in ELSEWHERE}
    old = Wire(pool.address)
    old.login()
    before = shown(old)
    assert len(table) > 150
    pool.reload(**{name: other_value(p) for name, p in table.items()})
    log = waits.wait_for("it is loaded or refused", lambda: ("generation 2 is in use" in pool.log()
                                                            or "was not reloaded" in pool.log()) and pool.log())
    assert "was not reloaded" not in log, [line for line in log.splitlines() if "ERROR" in line]
    refused = set(re.findall(r'parameter "(\w+)" cannot be changed without restarting', log))
    assert refused == {name for name, p in table.items() if p["context"] == "restart"}
    visible = {name for name, p in table.items() if not p["secret"]}
    fresh = [Wire(pool.address) for _ in range(4)]  # by turns in both workers
    for w in fresh:
        assert (last := w.login()[-1]).type == "Z", last.fields
    for w in (old, *fresh):
        waits.wait_for("its worker has it", lambda w=w: shown(w)["log_line_prefix"] != before["log_line_prefix"])
        now = shown(w)
        assert {name for name in table if now[name] != before[name]} == visible - refused
        w.bye()
