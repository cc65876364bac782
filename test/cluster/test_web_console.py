# SPDX-License-Identifier: PostgreSQL
"""test_web_console: the console: what its server lets whom do, and its page in a headless Chromium.

PGT_PICTURES=FOLDER keeps a picture of every page, in light, dark, Japanese and on a phone."""
import contextlib
import hashlib
import json
import os
import re
import signal
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pgt import browser, procs, waits, web
from pgt.trio import Trio
from pgt.wire import Wire, query

PAGE = Path(__file__).parents[2] / "src" / "process" / "web" / "page"
TABS = ("now", "servers", "pools", "clients", "queries", "cache", "events", "log", "settings", "reports")
FORM = {"Content_Type": "application/x-www-form-urlencoded", "X_Pgpool_Console": "1"}
needs_browser = pytest.mark.skipif(browser.program() is None, reason="no Chromium is installed")


def console_pool(start_pool, *backends, **conf):
    pool = start_pool(*backends, **{
        "http_port": procs.free_port(), "http_listen_addresses": "127.0.0.1", "sr_check_user": "postgres",
        "health_check_user": "postgres", "sr_check_period": 1, "health_check_period": 1, "http_operators": "op", **conf})
    pool.web = pool.conf["http_port"]
    lines = [f"{user}:{hashlib.md5(password.encode()).hexdigest()}\n" for user, password in (("op", "secret"), ("looker", "glasses"))]
    (pool.home / "pcp.conf").write_text("".join(lines), encoding="ascii")
    web.wait_status(pool.web, "/livez", 200)
    waits.wait_for("who does what is ordered is there", lambda: any("monitor" in procs.command_line(pid) for pid in pool.pids()))
    return pool


class Login:
    """A session as the page has it."""

    def __init__(self, pool, user="op", password="secret"):
        self.pool = pool
        answer = web.ask(pool.web, "/api/v1/login", "POST", urlencode({"user": user, "password": password}), **FORM)
        assert answer.status == 200, answer
        self.cookie = answer.headers["set-cookie"]
        self.csrf = answer.json()["csrf"]
        self.role = answer.json()["role"]

    def headers(self) -> dict[str, str]:
        return {**FORM, "Cookie": self.cookie.split(";")[0], "X_CSRF_Token": self.csrf}

    def get(self, name: str) -> web.Answer:
        return web.ask(self.pool.web, "/api/v1/" + name, Cookie=self.cookie.split(";")[0])

    def do(self, name: str, **fields) -> web.Answer:
        return web.ask(self.pool.web, "/api/v1/do/" + name, "POST", urlencode(fields), **self.headers())

    def events(self) -> list[dict]:
        return self.get("events").json()["rows"]

    def wait_event(self, event: str) -> dict:
        return waits.wait_for(f"event {event}", lambda: next((e for e in self.events() if e["event"] == event), None), 60)


def test_session(pg, start_pool):
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert word in login.cookie
    assert login.cookie.startswith(f"pgpool_{pool.web}=")
    assert web.ask(pool.web, "/api/v1/nodes", Cookie=f"a=b;c; {login.cookie.split(';')[0]}; d=e").status == 200
    for strange in ("", ";", "=", f"pgpool_{pool.web}=", login.cookie.split(";")[0] + "0", login.cookie.split(";")[0][:-1]):
        assert web.ask(pool.web, "/api/v1/nodes", Cookie=strange).status == 401, strange
    assert login.role == "operator" and Login(pool, "looker", "glasses").role == "viewer"
    assert login.get("session").json()["user"] == "op"
    assert login.get("nodes").status == 200
    for left_out in ("Cookie", "X_CSRF_Token"):
        headers = {k: v for k, v in login.headers().items() if k != left_out}
        answer = web.ask(pool.web, "/api/v1/logout", "POST", "", **headers)
        assert answer.status == 403 and "set-cookie" not in answer.headers, left_out
    assert login.get("nodes").status == 200, "another site's page logs nobody out"
    assert web.ask(pool.web, "/api/v1/logout", "POST", "", **login.headers()).status == 200
    assert login.get("nodes").status == 401 and login.get("session").json()["user"] == ""


def test_scram_verifier(pg, start_pool):
    """A user of pcp.conf whose line is a verifier logs in with the password, and with nothing else."""
    pool = console_pool(start_pool, pg.address)
    with Wire(pg.address) as w:
        w.login(user="postgres")
        verifier = w.value("select rolpassword from pg_authid where rolname = 'scram_user'")
    (pool.home / "pcp.conf").write_text(f"op:{verifier}\n", encoding="ascii")
    assert Login(pool, "op", "scram_user_pw").do("reload").status == 200
    for password in ("scram_user", verifier):
        fields = urlencode({"user": "op", "password": password})
        assert web.ask(pool.web, "/api/v1/login", "POST", fields, **FORM).status == 401


def test_refused_logins(pg, start_pool):
    pool = console_pool(start_pool, pg.address)

    def status(fields: str, **headers) -> int:
        return web.ask(pool.web, "/api/v1/login", "POST", fields, **headers).status
    right = "user=op&password=secret"
    assert status(right) == 403, "another site's form can do this"
    for fields in ("", "user=op", "user=op&password=", "user=&password=secret", "user=op&password=%zz", "user=op%00&password=secret",
                   "user=op&password=" + "x" * 5000, "user=op&password=Secret"):
        assert status(fields, **FORM) == 401, fields
    assert status("user=%6Fp&password=s%65cret", **FORM) == 200
    statuses = [status("user=op&password=x", **FORM) for _ in range(10)]
    assert statuses[-1] == 429 and status(right, **FORM) == 429


def test_nobody_pushes_out_the_sessions_of_others(pg, start_pool):
    """Who logs in again and again loses sessions of his own."""
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    lookers = [Login(pool, "looker", "glasses") for _ in range(70)]
    assert login.get("session").json()["user"] == "op"
    assert login.do("reload").status == 200
    assert [one.get("session").json()["user"] for one in lookers[-8:]] == ["looker"] * 8
    assert lookers[0].get("session").json()["user"] == ""


def test_orders_need_all_of_it(pg, start_pool):
    """A cookie alone is not enough, nor is a viewer."""
    pool = console_pool(start_pool, pg.address)
    login, looker = Login(pool), Login(pool, "looker", "glasses")

    def status(headers: dict[str, str]) -> int:
        return web.ask(pool.web, "/api/v1/do/detach", "POST", "node=0", **headers).status
    whole = login.headers()
    for left_out in ("Cookie", "X_CSRF_Token"):
        assert status({k: v for k, v in whole.items() if k != left_out}) == 403, left_out
    assert status({**whole, "X_CSRF_Token": looker.csrf}) == 403
    assert status({**whole, "X_CSRF_Token": "0" * 48}) == 403
    assert status(looker.headers()) == 403
    assert status({"Authorization": "Basic b3A6c2VjcmV0"}) == 403, "browsers send it by themselves, too"
    assert web.ask(pool.web, "/api/v1/do/detach?node=0", **whole).status in (404, 405)
    assert login.get("nodes").json()["rows"][0]["status"] != "down"
    (pool.home / "pcp.conf").write_text("other:" + "0" * 32 + "\n", encoding="ascii")
    assert status(whole) == 403, "who is not in the file any more orders nothing"


@pytest.mark.parametrize("change", ["password", "gone"])
def test_session_ends_with_its_password(pg, start_pool, change):
    """Who found out a password does not stay when it is changed; sessions of others do."""
    pool = console_pool(start_pool, pg.address)
    login, looker = Login(pool), Login(pool, "looker", "glasses")
    assert login.get("nodes").status == looker.get("nodes").status == 200
    lines = (pool.home / "pcp.conf").read_text(encoding="ascii").splitlines(keepends=True)
    mine = {"password": f"op:{hashlib.md5(b'new').hexdigest()}\n", "gone": ""}[change]
    (pool.home / "pcp.conf").write_text(mine + lines[1], encoding="ascii")
    assert login.get("nodes").status == 401
    assert login.get("session").json()["user"] == ""
    assert login.do("reload").status == 403
    assert looker.get("nodes").status == 200
    if change == "password":
        assert Login(pool, "op", "new").do("reload").status == 200


def test_detach_and_attach(pg, start_pool):
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    waits.wait_for("it is up", lambda: login.get("nodes").json()["rows"][0]["status"] == "up")
    assert login.do("detach", node="0", why="a test").status == 200
    waits.wait_for("it is out", lambda: login.get("nodes").json()["rows"][0]["status"] == "down")
    event = login.wait_event("detach")
    assert event["actor"].startswith("HTTP user op, 127.0.0.1")
    waits.wait_for("it is a trouble", lambda: any("taken out by HTTP user op" in t["en"] for t in login.get("health").json()["troubles"]))
    assert web.wait_status(pool.web, "/readyz", 503)
    assert login.do("recover", node="0").status == 200
    refused = login.wait_event("refused")
    assert refused["node_id"] == 0 and "no primary to copy" in refused["cause"] and refused["actor"].startswith("HTTP user op")
    assert login.do("attach", node="0").status == 200
    waits.wait_for("it is up again", lambda: login.get("nodes").json()["rows"][0]["status"] == "up")
    assert login.wait_event("attach")["actor"].startswith("HTTP user op")


def test_wrong_orders(pg, start_pool):
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    for name, fields in (("detach", {"node": "7"}), ("detach", {"node": "x"}), ("detach", {}), ("attach", {"node": "-1"}),
                         ("recover", {"node": "0"}), ("recover", {"node": "7"}), ("kill", {"client": "999999"}), ("kill", {}), ("cancel", {"client": "0"})):
        answer = login.do(name, **fields)
        assert answer.status == 409 and answer.json()["error"], (name, fields)
    assert login.do("nothing").status == 404
    waits.wait_for("the primary is known", lambda: login.get("nodes").json()["rows"][0]["role"] == "primary")
    assert login.do("promote", node="0").status == 409


def test_kill_and_cancel(pg, start_pool):
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    with Wire(pool.address) as w, Wire(pool.address) as other:
        other.login(user="postgres", application_name="other")
        w.login(user="postgres", application_name="mine")

        def mine() -> dict:
            return next(c for c in login.get("clients").json()["rows"] if c["application_name"] == "mine")
        w.send(query("select pg_sleep(600)"))
        waits.wait_for("it runs", lambda: mine()["state"] == "active" and pg.sessions("wait_event = 'PgSleep'"))
        assert login.do("cancel", client=mine()["id"]).status == 200
        assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["57014"]
        assert login.wait_event("cancel")["actor"].startswith("HTTP user op")
        w.simple("select 1")
        assert login.do("kill", client=mine()["id"]).status == 200
        assert [m.sqlstate for m in w.read_eof() if m.type == "E"] == ["57P01"]
        assert login.wait_event("kill")["actor"].startswith("HTTP user op")
        other.simple("select 1")


def test_pause_and_resume(pg, start_pool):
    """The orders about pools, for all databases and for one: they hold, stand among the events, and end."""
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    assert login.do("pause", database="other_db").status == 200
    with Wire(pool.address) as w, Wire(pool.address) as paused:
        w.login(user="postgres")
        assert w.value("select 1") == "1", "another database goes on"
        paused.send_startup("postgres", "other_db")
        assert paused.is_quiet(0.3)
        assert login.wait_event("pause")["actor"].startswith("HTTP user op")
        assert login.get("orders").json()["rows"] == [{"database": "other_db", "paused": True, "draining": False, "reconnect_at": None, "disabled": False}]
        again = login.do("pause", database="other_db")
        assert again.status == 409 and "already" in again.json()["error"]
        assert login.do("resume").status == 409, "that of all databases is another order"
        assert login.do("resume", database="other_db").status == 200
        assert paused.authenticate("postgres", "")[-1].type == "Z"
    assert login.do("drain").status == 200
    with Wire(pool.address) as late:
        late.send_startup("postgres", "other_db")
        login.wait_event("drain")
        waits.wait_for("it is a trouble", lambda: login.get("health").json()["troubles"][0]["code"] == "drained")
        assert login.do("resume").status == 200
    assert login.do("reconnect").status == 200
    assert login.wait_event("reconnect")["text"] == "reconnect of all databases, as an operator ordered"
    assert Login(pool, "looker", "glasses").do("pause").status == 403
    assert login.get("orders").json()["rows"][0]["paused"] is False
    mine = {e["event"] for e in login.events() if e["actor"].startswith("HTTP user op, 127.0.0.1")}
    assert mine >= {"pause", "resume", "drain", "reconnect"}, mine


def test_what_was_done_is_not_refused(pg, start_pool):
    """Each time that the monitor is killed the next one is begun later: an order that needs none is carried out meanwhile, and is missing
    among the events alone."""
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)

    def monitor() -> int:
        return next((pid for pid in pool.pids() if "monitor" in procs.command_line(pid)), 0)
    for n in range(8):
        pid = waits.wait_for("there is a monitor", monitor)
        os.kill(pid, signal.SIGKILL)
        waits.wait_for("it has ended", lambda pid=pid: monitor() != pid)
        answer = login.do("resume" if n % 2 else "pause", database="other_db")
        assert answer.status == 200, answer
        assert any(r["paused"] for r in login.get("orders").json()["rows"]) is (n % 2 == 0)


def test_pause_is_waited_for(pg, start_pool):
    """That a pause is complete, or was ended before, stands among the events."""
    pool = console_pool(start_pool, pg.address, pool_mode="transaction")
    login = Login(pool)

    def told(text: str) -> list[str]:
        return [e["actor"] for e in login.events() if text in e["text"]]
    with Wire(pool.address) as w:
        w.login(user="postgres")
        w.simple("begin")
        w.simple("select 1")
        assert login.do("pause").status == 200
        login.wait_event("pause")
        assert not told("complete")
        assert login.do("resume").status == 200
        waits.wait_for("it was ended", lambda: told("pause of all databases was ended before it was complete"))
        assert login.do("pause", database="postgres").status == 200
        w.simple("commit")
        actors = waits.wait_for("it is complete", lambda: told('pause of database "postgres" is complete: no server connection is left'))
        assert actors[0].startswith("HTTP user op")
        assert login.do("resume", database="postgres").status == 200
        assert w.value("select 1") == "1"


def test_statements(pg, start_pool):
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    with Wire(pool.address) as w:
        w.login(user="postgres")
        w.simple("select 'private' as shown")

        def found() -> list[dict]:
            return [s for s in login.get("statements?q=shown").json()["rows"] if s["statement"] == "select $1 as shown"]
        waits.wait_for("it is counted", lambda: [(s["calls"], s["rows"]) for s in found()] == [(1, 1)])
        hidden = Login(pool, "looker", "glasses").get("statements").json()["rows"]
        assert {s["statement"] for s in hidden} == {"<insufficient privilege>"}
        assert Login(pool, "looker", "glasses").do("forget").status == 403
        assert login.do("forget").status == 200
        assert login.wait_event("reset")["actor"].startswith("HTTP user op")
        waits.wait_for("it is forgotten", lambda: found() == [])


def test_log(pg, start_pool, tmp_path):
    """Its end, from the collector's file, whole lines; for operators alone; no file but the collector's."""
    folder = tmp_path / "logs"
    pool = console_pool(start_pool, pg.address, logging_collector=True, log_directory=str(folder), log_statement=True)
    login = Login(pool)
    with Wire(pool.address) as w:
        w.login(user="postgres")
        for n in range(600):
            w.simple(f"select {n}, '{'x' * 200}'")
    (folder / "later").symlink_to("/etc/passwd")
    waits.wait_for("the last line", lambda: "select 599," in login.get("log").json().get("text", ""))
    text = login.get("log").json()["text"]
    assert len(text) <= 65536 and text.startswith("20") and "select 0," not in text and "root:" not in text
    assert Login(pool, "looker", "glasses").get("log").status == 403
    assert web.ask(pool.web, "/api/v1/log").status == 401


@pytest.mark.parametrize("pattern", ["pgpool-%Y-%m-%d_%H%M%S.log", "own [%a]-%-d%%.log", "pgpool.log"])
def test_logs_of_others_in_the_folder(pg, start_pool, tmp_path, pattern):
    """In /var/log/postgresql, say, the server's own log is written at the same time: it is not this one."""
    folder = tmp_path / "logs"
    pool = console_pool(start_pool, pg.address, logging_collector=True, log_directory=str(folder), log_filename=pattern)
    login = Login(pool)
    waits.wait_for("a file", lambda: "successfully started" in login.get("log").json().get("text", ""))
    for name in ("postgresql-15-main.log", "pgpool.log.1", "own.log"):
        (folder / name).write_text("the server's\n", encoding="ascii")
        os.utime(folder / name, (4e9, 4e9))
    assert "successfully started" in login.get("log").json()["text"]


def test_no_log_file(pg, start_pool):
    pool = console_pool(start_pool, pg.address)
    assert Login(pool).get("log").json() == {"collector": False}


def test_reload(pg, start_pool):
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    pool.write_conf(client_idle_limit=77)
    assert login.do("reload").status == 200

    def setting(name) -> dict:
        return next(s for s in login.get("settings").json()["rows"] if s["name"] == name)
    waits.wait_for("it is in use", lambda: setting("client_idle_limit")["value"] != setting("client_idle_limit")["default"])
    file, line = setting("client_idle_limit")["source"].rsplit(":", 1)
    assert Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1].startswith("client_idle_limit = ")
    assert setting("log_client_limit")["source"] == ""
    assert login.wait_event("reload")["actor"].startswith("HTTP user op")
    with open(pool.conf_path, "a", encoding="utf-8") as file:
        file.write("max_clients = nonsense\n")
    answer = login.do("reload")
    assert answer.status == 409 and "nonsense" in answer.json()["said"]
    pool.write_conf(enable_pool_hba=True)
    (pool.home / "pool_hba.conf").write_text("hots all all all trust\n", encoding="ascii")
    answer = login.do("reload")
    assert answer.status == 409 and 'pool_hba.conf:1: error: invalid connection type "hots"' in answer.json()["said"]


def test_promote(start_pool):
    trio = Trio(0)
    try:
        pool = console_pool(start_pool, *[n.address for n in trio.nodes], recovery_user="postgres")
        login = Login(pool)
        waits.wait_for("both follow", lambda: [n["replication_state"] for n in login.get("nodes").json()["rows"]].count("streaming") == 2, 60)
        tried = 0

        def is_primary() -> bool:
            """Orders it, and again when it was refused: a standby that is not as far as it must be yet."""
            nonlocal tried
            if [e["event"] for e in login.events()].count("refused") >= tried:
                assert login.do("promote", node="1").status in (200, 409)
                tried += 1
            return login.get("nodes").json()["rows"][1]["role"] == "primary"
        waits.wait_for("node 1 is the primary", is_primary, 60)
        assert any(e["actor"].startswith("HTTP user op") for e in login.events())
    finally:
        trio.stop()


def test_history(pg, start_pool):
    """Statements that were run while no page was open are in the charts."""
    pool = console_pool(start_pool, pg.address)
    with Wire(pool.address) as w:
        w.login(user="postgres")
        for _ in range(5):
            w.simple("select 1")
        login = Login(pool)

        def samples() -> list:
            return login.get("history?seconds=60&points=50").json()["samples"]
        waits.wait_for("they are kept", lambda: samples()[-1][4] >= 5 and samples()[-1][1] == 1)
    waits.wait_for("time goes on", lambda: len(samples()) >= 3)
    found = samples()
    assert all(a[0] <= b[0] and a[4] <= b[4] for a, b in zip(found, found[1:]))
    assert len(login.get("history?seconds=60&points=1").json()["samples"]) <= 60
    # A web process that dies takes none of it along.
    os.kill(next(p for p in pool.pids() if b"HTTP: wait" in Path(f"/proc/{p}/cmdline").read_bytes()), signal.SIGKILL)

    def is_back() -> bool:
        with contextlib.suppress(OSError):
            return web.ask(pool.web, "/livez").status == 200
        return False
    waits.wait_for("another web process answers", is_back, 60)
    login = Login(pool)
    assert samples()[0][0] <= found[0][0] + 1, "the charts begin anew"
    for strange in ("seconds=0", "seconds=-1&points=0", "seconds=99999999999999999999", "points=x"):
        assert login.get("history?" + strange).status == 200


def test_page_is_complete(pg, start_pool):
    """All that the page names is there, nothing comes from elsewhere, and the policy lets it work."""
    pool = console_pool(start_pool, pg.address)
    page = web.ask(pool.web, "/")
    assert page.headers["content-type"].startswith("text/html")
    for name in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
        assert web.ask(pool.web, "/" + name).status == 200, name
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8")
        assert web.ask(pool.web, "/" + file.name).body == text.encode()
        assert not re.findall(r"https?://(?!www\.w3\.org/)", text), file
        assert "innerHTML" not in text and "style=" not in text and "onclick=\"" not in text, file
    assert web.ask(pool.web, "/../pgpool.conf").status == 404
    assert web.ask(pool.web, "/%2e%2e/pcp.conf").status == 404


def test_words_in_both_languages():
    words = (PAGE / "words.js").read_text(encoding="utf-8")
    table = dict(re.findall(r'(\w+): \["((?:[^"\\]|\\.)*)", "', words))
    pairs = re.findall(r'\w+: \["((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\]', words)
    assert len(pairs) == len(table) > 80
    assert all(en.count("{}") == ja.count("{}") and en and ja for en, ja in pairs)
    code = (PAGE / "console.js").read_text(encoding="utf-8") + (PAGE / "charts.js").read_text(encoding="utf-8")
    for name in re.findall(r'\bword\("(\w+)"', code) + re.findall(r'data-word="(\w+)"', (PAGE / "console.html").read_text(encoding="utf-8")):
        assert name in table, name
    reasons = re.search(r"define PIN_REASONS\(X\)(.*?)\n\n", (PAGE.parents[3] / "include/ipc/rows.h").read_text(encoding="utf-8"), re.S)
    for reason in re.findall(r'X\(\w+, "(.+?)"\)', reasons.group(1)):
        assert "pin_" + reason.replace(" ", "_") in table, reason


@pytest.fixture
def page():
    one = browser.Browser()
    yield one
    one.stop()


def log_in(page, pool, user="op", password="secret") -> None:
    page.open(f"http://127.0.0.1:{pool.web}/")
    page.wait("document.querySelector('#user') !== null")
    page.type("#user", user)
    page.type("#password", password)
    page.press("Enter", 13)
    page.wait("document.body.dataset.page === 'now'")


def keep(page, name: str) -> None:
    folder = os.environ.get("PGT_PICTURES")
    if folder:
        page.picture(Path(folder) / f"{name}.png")


@needs_browser
def test_a_log_of_json_is_readable(pg, start_pool, page, tmp_path):
    pool = console_pool(start_pool, pg.address, logging_collector=True, log_directory=str(tmp_path / "logs"), log_destination="jsonlog",
                        log_statement=True)
    log_in(page, pool)
    with Wire(pool.address) as w:
        w.login(user="postgres")
        w.simple("select 'seen in the log'")
    page.js("location.hash = '#log'")
    page.wait("/LOG: .*seen in the log/.test((document.querySelector('#lines') || {}).textContent)")
    assert "{" not in page.js("document.querySelector('#lines div').textContent"), "each line is told as the other form has it"


@needs_browser
def test_pages(start_pool, page):
    """Every page, in light and dark, wide and on a phone, in both languages, without a complaint."""
    trio = Trio(0)
    try:
        pool = console_pool(start_pool, *[n.address for n in trio.nodes], load_balance_mode=True, pool_mode="transaction")
        page.look(1280, 900)
        page.open(f"http://127.0.0.1:{pool.web}/")
        page.wait("document.querySelector('#user') !== null")
        keep(page, "login")
        with Wire(pool.address) as w, Wire(pool.address) as idle:
            w.login(user="postgres", application_name="pgbench <b>&")
            idle.login(user="postgres", application_name="web shop")
            for i in range(200):
                w.simple(f"select {i}")
            idle.simple("begin")
            idle.simple("select 'in a transaction'")
            log_in(page, pool)
            page.wait("document.querySelector('#banner').className === 'good'")
            page.wait("document.querySelectorAll('svg.chart').length >= 5")
            for width, dark in ((1280, False), (1280, True), (390, False)):
                page.look(width, 900, dark)
                for tab in TABS:
                    page.js("location.hash = '#now'" if tab != "now" else "location.hash = '#events'")
                    page.js(f"location.hash = '#{tab}'")
                    page.wait(f"document.body.dataset.page === '{tab}' && document.querySelector('#main .card') !== null")
                    assert page.js("document.documentElement.scrollWidth <= window.innerWidth + 1"), (tab, width)
                    keep(page, f"{tab}-{width}{'-dark' if dark else ''}")
            page.look(1280, 900)
            page.click("#language")
            page.js("location.hash = '#now'")
            page.wait("document.documentElement.lang === 'ja' && document.body.dataset.page === 'now'")
            page.wait("document.querySelector('#sentence').textContent.startsWith('正常です')")
            keep(page, "now-ja")
        assert not page.complaints
    finally:
        trio.stop()


@needs_browser
def test_links_and_reports(pg, start_pool, page):
    """The connections under the clients; every report that there is, whether the page knows it or not; why there are no statements."""
    pool = console_pool(start_pool, pg.address, track_statements=False)
    page.look(1280, 900)
    with Wire(pool.address) as w:
        w.login(user="postgres", application_name="linked")
        w.simple("select 'on a link'")
        log_in(page, pool)
        page.js("location.hash = '#clients'")
        page.wait("document.body.dataset.page === 'clients' && document.querySelectorAll('#main table').length === 2")
        page.wait("document.querySelectorAll('#main table')[1].textContent.includes('on a link')")
        keep(page, "clients-links")
        page.js("location.hash = '#queries'")
        page.wait("document.body.dataset.page === 'queries' && document.querySelector('#main').textContent.includes('track_statements')")
        page.js("location.hash = '#reports'")
        page.wait("document.body.dataset.page === 'reports'")
        names = [r["name"] for r in Login(pool).get("").json()["reports"]]
        assert page.js("[...document.querySelectorAll('#report option')].map((o) => o.value)") == names
        for name in names:
            page.js(f"((r) => {{ r.value = '{name}'; r.dispatchEvent(new Event('change')); }})(document.querySelector('#report'))")
            page.wait(f"state.report === '{name}' && document.querySelector('#report').value === '{name}'")
        keep(page, "reports-last")
    assert not page.complaints


@needs_browser
def test_cache_page(pg, start_pool, page):
    """Which tables the query cache holds results of, and what a write made of them."""
    pg.rows("drop table if exists cached_here; create table cached_here as select 1 as a")
    pool = console_pool(start_pool, pg.address, memory_cache_enabled=True, memqcache_total_size="8MB",
                        memqcache_max_num_cache=1000, num_init_children=1)
    page.look(1280, 900)
    with Wire(pool.address) as w:
        w.login(user="postgres")

        def is_hit() -> bool:
            w.simple("select a from cached_here")
            rows = Login(pool).get("cache_tables").json()["rows"]
            return any(t["table_name"] == "cached_here" and t["hits"] > 0 for t in rows)
        waits.wait_for("a read is answered from the cache", is_hit, 60)
        w.simple("update cached_here set a = 2")
    log_in(page, pool)
    page.js("location.hash = '#cache'")
    page.wait("document.body.dataset.page === 'cache' && document.querySelector('#main').textContent.includes('cached_here')")
    keep(page, "cache-full")
    page.look(390, 900, True)
    page.js("location.hash = '#now'; location.hash = '#cache'")
    page.wait("document.querySelector('#main').textContent.includes('cached_here')")
    assert page.js("document.documentElement.scrollWidth <= window.innerWidth + 1")
    keep(page, "cache-full-390-dark")
    assert not page.complaints


@needs_browser
def test_order_by_keyboard(pg, start_pool, page):
    """Detach a server with the keyboard; the first screen then says what is wrong."""
    pool = console_pool(start_pool, pg.address)
    login = Login(pool)
    page.look(1280, 900)
    log_in(page, pool)
    page.js("location.hash = '#servers'")
    page.wait("document.querySelector('[data-order=detach]') !== null")
    page.js("document.querySelector('[data-order=detach]').focus()")
    page.press("Enter", 13)
    page.wait("document.querySelector('#ask').open")
    keep(page, "ask")
    page.type("#ask-why", "kernel update")
    page.js("document.querySelector('#ask-yes').focus()")
    page.press("Enter", 13)
    event = login.wait_event("detach")
    assert event["actor"].startswith("HTTP user op") and "kernel update" in json.dumps(event)
    page.js("location.hash = '#now'")
    page.wait("document.querySelector('#banner').className === 'alarm'")
    page.wait("(document.querySelector('#sentence') || {textContent: ''}).textContent.includes('nobody can log in')")
    keep(page, "alarm")


@needs_browser
def test_viewer_and_stranger(pg, start_pool, page):
    pool = console_pool(start_pool, pg.address)
    page.open(f"http://127.0.0.1:{pool.web}/#clients")
    page.wait("document.querySelector('#user') !== null")
    assert page.js("document.querySelector('#tabs').hidden && document.querySelectorAll('table').length === 0")
    log_in(page, pool, "looker", "glasses")
    page.js("location.hash = '#servers'")
    page.wait("document.body.dataset.page === 'servers'")
    assert page.js("document.querySelectorAll('[data-order]').length === 0")
