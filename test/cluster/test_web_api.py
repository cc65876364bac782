# SPDX-License-Identifier: PostgreSQL
"""test_web_api: every SHOW report as JSON."""
import base64
import hashlib
import re
from contextlib import ExitStack
from pathlib import Path

from pgt import procs, waits, web
from pgt.wire import Wire

INCLUDE = Path(__file__).parents[2] / "include" / "admin"
KINDS = {"integer": int, "real": (int, float), "boolean": bool, "time": str, "text": str}
OP = {"Authorization": "Basic " + base64.b64encode(b"op:secret").decode()}
LOOKER = {"Authorization": "Basic " + base64.b64encode(b"looker:secret").decode()}


def web_pool(start_pool, *backends, **conf):
    pool = start_pool(*backends, **{"http_port": procs.free_port(), "http_listen_addresses": "127.0.0.1",
                                    "sr_check_user": "postgres", "health_check_user": "postgres",
                                    "sr_check_period": 1, "health_check_period": 1, **conf})
    pool.web = pool.conf["http_port"]
    digest = hashlib.md5(b"secret").hexdigest()
    (pool.home / "pcp.conf").write_text(f"op:{digest}\nlooker:{digest}\n", encoding="ascii")
    web.wait_status(pool.web, "/livez", 200)
    return pool


def get(pool, name: str, **headers: str):
    answer = web.ask(pool.web, "/api/v1/" + name, **(headers or OP))
    assert answer.status == 200, answer
    assert answer.headers["content-type"].startswith("application/json")
    return answer.json()


def shown(w: Wire, report: str) -> list[list[str]]:
    return [[c.decode() for c in m.row()] for m in w.simple(f"show {report}") if m.type == "D"]


def test_all_reports(pg, start_pool):
    """The index names every report of the table; each has the columns, and the types, that it says."""
    pool = web_pool(start_pool, pg.address)
    in_table = re.findall(r'^REPORT_BEGIN\(\w+, \w+, "(\w+)"', (INCLUDE / "reports.def").read_text(encoding="utf-8"), re.M)
    reports = get(pool, "")["reports"]
    assert [r["name"] for r in reports] == in_table
    with Wire(pool.address) as w:
        w.login(user="postgres")
        w.simple("select 1")
        for report in reports:
            assert report["description"] and all(c["description"] for c in report["columns"])
            found = get(pool, report["name"])
            assert get(pool, report["name"].removeprefix("pool_"))["report"] == report["name"]
            for row in found["rows"]:
                assert list(row) == [c["name"] for c in report["columns"]]
                for column in report["columns"]:
                    cell = row[column["name"]]
                    assert cell is None or isinstance(cell, KINDS[column["type"]]) or \
                        report["name"] in ("pool_status", "pool_nodes"), (report["name"], column, cell)
                    assert not (cell is None and column["type"] == "text")


def test_same_as_sql(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    with Wire(pool.address) as w:
        w.login(user="postgres")
        def is_same(report: str) -> bool:
            rows = [[None if c == "" else c for c in row] for row in shown(w, report)]
            return rows == [[None if v in (None, "") else str(v) for v in row.values()] for row in get(pool, report)["rows"]]
        for report in ("pool_version", "pool_limits", "pool_orders"):
            waits.wait_for(f"{report} says the same", lambda r=report: is_same(r))


def test_types_are_of_columns_that_exist():
    columns = set(re.findall(r'^COLUMN\("(\w+)"', (INCLUDE / "reports.def").read_text(encoding="utf-8"), re.M))
    typed = re.findall(r'^COLUMN_TYPE\("(\w+)"', (INCLUDE / "column_types.def").read_text(encoding="utf-8"), re.M)
    assert len(typed) == len(set(typed)) and set(typed) <= columns


def test_strangers_get_nothing(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    for path in ("", "pool_nodes", "health", "settings", "nothing"):
        answer = web.ask(pool.web, "/api/v1/" + path)
        assert answer.status == 401 and b"{" not in answer.body
        # A browser is not to ask in its own way.
        assert "www-authenticate" not in answer.headers
    assert web.ask(pool.web, "/api/v1/nothing", **OP).status == 404


def test_who_sees_statements(pg, start_pool):
    """Texts of others are for operators, as in SHOW."""
    pool = web_pool(start_pool, pg.address, http_operators="op")
    with Wire(pool.address) as w:
        w.login(user="postgres")
        w.simple("select 'my secret'")

        def statements(headers):
            return [row["statement"] for row in get(pool, "pool_clients", **headers)["rows"]]
        waits.wait_for("the operator sees it", lambda: statements(OP) == ["select 'my secret'"])
        assert statements(LOOKER) == ["<insufficient privilege>"]
        (pool.home / "pcp.conf").write_text(f"postgres:{hashlib.md5(b'secret').hexdigest()}\n", encoding="ascii")
        same_name = {"Authorization": "Basic " + base64.b64encode(b"postgres:secret").decode()}
        assert statements(same_name) == ["<insufficient privilege>"], "users of pcp.conf are not those of servers"


def test_search_and_limit(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    with ExitStack() as stack:
        for i in range(5):
            stack.enter_context(Wire(pool.address)).login(user="postgres", application_name=f"app{i}")
        found = waits.wait_for("five are here", lambda: (
            lambda f: f if f["total"] == 5 else None)(get(pool, "clients?limit=2")))
        assert len(found["rows"]) == 2
        found = get(pool, "clients?q=app3")
        assert [row["application_name"] for row in found["rows"]] == ["app3"]


def test_odd_bytes(pg, start_pool):
    """What clients say about themselves may hold anything; the answer is JSON all the same."""
    pool = web_pool(start_pool, pg.address)
    with Wire(pool.address) as w:
        w.login(user="postgres", application_name='"\\\n\x01</script>\u3042')
        rows = waits.wait_for("it is there", lambda: [r for r in get(pool, "clients")["rows"] if r["user"] == "postgres"])
        assert rows[0]["application_name"].startswith('"\\')


def test_settings_hide_secrets(pg, start_pool):
    pool = web_pool(start_pool, pg.address, sr_check_password="verysecret", max_clients=77)
    answer = get(pool, "settings")
    rows = {row["name"]: row for row in answer["rows"]}
    assert rows["max_clients"]["value"] == "77" and rows["max_clients"]["changed"]
    assert rows["max_clients"]["default"] != "77" and rows["max_clients"]["taken_up"] == "restart"
    assert not rows["pcp_old_node_info"]["changed"]
    assert rows["backend_port0"]["value"] == str(pg.port)
    assert "verysecret" not in str(answer)


def test_health(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    answer = waits.wait_for("all is well", lambda: (
        lambda h: h if h["level"] == "good" else None)(get(pool, "health")))
    assert answer["troubles"][0]["en"].startswith("All is well: 1 of 1 servers")
    assert "1 / 1" in answer["troubles"][0]["ja"]
