# SPDX-License-Identifier: PostgreSQL
"""test_console: the virtual database pgpool, and under the name pgbouncer: somebody can always look, whatever servers,
limits and orders do; who gets in; what is answered there."""
import asyncio
import hashlib
import os
import re
import signal
import socket
import struct
import subprocess
from pathlib import Path

import asyncpg
import psycopg
import pytest

import auth_house as house
from pgt import postgres, procs
from pgt.waits import SCALE, wait_for
from pgt.wire import SYNC, Address, Wire, WireClosed, bind, close, describe, execute, message, parse, query, startup

MD5_LINE = f"op:{hashlib.md5(b'op_pw').hexdigest().upper()}\n"
TOP = Path(__file__).resolve().parents[3]
# password: verifier_pw
VERIFIED = "verifier_pw"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    yield pg
    pg.stop()


@pytest.fixture
def pools():
    started = []

    def start(backends=(), pcp=MD5_LINE, **kwargs):
        pool = house.start_auth_pool([*backends] or [Address("127.0.0.1", procs.free_port())], **kwargs)
        house.put(pool.home / "pcp.conf", pcp)
        started.append(pool)
        return pool

    yield start
    for pool in started:
        pool.stop()


def enter(pool, user="op", password="op_pw", database="pgpool", address=None) -> Wire:
    w = Wire(address or pool.address, seconds=20)
    found = w.login(user, database, password)
    assert found[-1].type == "Z", found[-1].fields
    return w


def refused(pool, user, password, database="pgpool", **kwargs) -> tuple[str, str, str]:
    with Wire(pool.address, seconds=20) as w:
        last = w.login(user, database, password, **kwargs)[-1]
        assert last.type == "E", last
        return last.sqlstate, last.text, last.fields.get("H", "")


def asked(found) -> list[int]:
    return [int.from_bytes(m.body[:4], "big") for m in found if m.type == "R"]


def error(found):
    bad = [m for m in found if m.type == "E"]
    assert len(bad) == 1, found
    return bad[0]


def tag(found) -> str:
    return next(m.body.rstrip(b"\0").decode() for m in found if m.type == "C")


# ---- always

@pytest.mark.parametrize("database", ["pgpool", "pgbouncer"])
def test_all_servers_are_down(pools, database):
    pool = pools()
    w = enter(pool, database=database)
    assert [r[3] for r in w.rows("show pool_nodes")] and len(w.rows("SHOW POOL_PROCESSES")) == 2
    w.send(parse("show pool_nodes"), describe(), bind(), describe("", "P"), execute(), SYNC)
    assert [m.type for m in w.ready()] == ["1", "t", "T", "2", "T", "D", "C", "Z"]
    mine = [r for r in w.rows("show pool_clients") if b"op" in r and database.encode() in r]
    assert len(mine) == 1
    w.bye()


def test_no_limit_but_its_own(server, pools):
    """max_clients is full, so is reserved_admin: 53300; a place that was left, or whose worker died, is free again."""
    pool = pools([server.address], max_clients=2, reserved_admin=2)
    held = [enter(pool, "boss", "boss_pw", "postgres") for _ in range(2)]
    assert refused(pool, "boss", "boss_pw", "postgres")[0] == "53300"
    looking = [enter(pool), enter(pool)]
    assert refused(pool, "op", "op_pw")[0] == "53300"
    looking[0].bye()
    wait_for("a place is free", lambda: house.try_login(pool.address, "op", "pgpool", "op_pw", ask=False)[0] == "in")
    for row in looking[1].rows("show pool_processes"):
        os.kill(int(row[0]), signal.SIGKILL)
    wait_for("both places are free", lambda: both_enter(pool))
    for w in held:
        w.reset()


def both_enter(pool) -> bool:
    entered = []
    for _ in range(2):
        w = Wire(pool.address, seconds=20)
        try:
            entered.append(w.login("op", "pgpool", "op_pw")[-1].type == "Z" and w)
        except (OSError, WireClosed):  # a worker that dies takes those along whom it has accepted
            entered.append(False)
    for w in entered:
        if w:
            w.bye()
    return all(entered)


def test_paused(server, pools):
    """Who paused everything and left is not needed: anybody of the operators comes in and resumes."""
    pool = pools([server.address], pool_mode="transaction", passwd="boss:boss_pw\n")
    app = enter(pool, "boss", "boss_pw", "postgres")
    w = enter(pool)
    assert tag(w.simple("PGPOOL PAUSE")) == "PAUSE"
    w.bye()
    app.send(query("select 7"))
    w = enter(pool, database="pgbouncer")
    wait_for("somebody waits", lambda: [r for r in w.rows("show pool_queue") if b"paused" in r])
    assert tag(w.simple("resume")) == "RESUME"
    assert [m.row() for m in app.ready() if m.type == "D"] == [[b"7"]]
    app.bye()


def test_pause_waits_here_as_well(server, pools):
    """An order that waits parks what comes behind it; a client in session mode is in the way until it leaves."""
    pool = pools([server.address])
    app = enter(pool, "boss", "boss_pw", "postgres")
    w = enter(pool)
    w.send(query("pause"), query("select 1"))
    assert w.is_quiet(0.3)
    app.bye()
    assert tag(w.ready()) == "PAUSE"
    assert [m.row() for m in w.ready() if m.type == "D"] == [[b"1"]]
    assert tag(w.simple("resume")) == "RESUME"


def test_drain_leaves_those_who_look(server, pools):
    house.make_user(server, "drained", "scram")
    pool = pools([server.address], admin_users="op2", passwd="op2:op2_pw\ndrained:drained_pw\n")
    w, other = enter(pool), enter(pool, "op2", "op2_pw")
    assert tag(w.simple("drain")) == "DRAIN"
    assert refused(pool, "drained", "drained_pw", "postgres")[0] == "57P03"
    assert len(other.rows("show pool_orders")) == 1
    enter(pool).bye()
    assert tag(w.simple("resume")) == "RESUME"


# ---- who

def test_users_of_pcp_conf(pools):
    pool = pools()
    with Wire(pool.address) as w:
        assert asked(w.login("op", "pgpool", "op_pw")) == [3, 0]
    for user, password in (("op", "wrong"), ("nobody", "op_pw")):
        state, text, hint = refused(pool, user, password)
        assert state == "28P01" and "admin_users, stats_users and pcp.conf" in hint, text
    house.put(pool.home / "pcp.conf", "other:" + MD5_LINE.split(":")[1])
    assert refused(pool, "op", "op_pw")[0] == "28P01"


def test_verifier_in_pcp_conf(server, pools):
    verifier = house.make_user(server, "verified", "scram", VERIFIED)
    pool = pools(pcp=f"op:{verifier}\n")
    with Wire(pool.address) as w:
        assert asked(w.login("op", "pgpool", VERIFIED)) == [10, 11, 12, 0]
    assert refused(pool, "op", "wrong")[0] == "28P01"


def test_strangers_look_like_users_of_pcp_conf(pools):
    """Which kind of line they would have, and with how many iterations, is as in the file, and always the same."""
    pool = pools()
    strangers = [f"stranger_{i}" for i in range(28)]  # of one kind all by chance: once in a hundred million runs

    def look(user: str) -> tuple:
        with Wire(pool.address, seconds=20) as w:
            w.send_startup(user, "pgpool")
            asked_for = w.read()
            if asked_for.body[:4] != bytes((0, 0, 0, 10)):
                return asked_for.body[3], ""
            first = b"n,,n=,r=abcdefgh"
            w.send(message("p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first))
            return 10, w.read().body[4:].split(b",")[2].decode()

    assert {look(s) for s in strangers} == {(3, "")}
    made = subprocess.run([Path(os.environ["PGPOOL_BIN"]).parent / "pg_md5", "--scram", VERIFIED], capture_output=True, text=True,
                          timeout=60, check=True).stdout.strip()
    house.put(pool.home / "pcp.conf", "op:" + made.replace("$4096:", "$5000:") + "\n")
    assert {look(s) for s in [*strangers, "op"]} == {(10, "i=5000")}
    house.put(pool.home / "pcp.conf", MD5_LINE + "other:" + made + "\n")
    seen = [[look(s) for s in strangers] for _ in range(2)]
    assert seen[0] == seen[1] and set(seen[0]) == {(3, ""), (10, "i=4096")}


@pytest.mark.parametrize("method", ["scram-sha-256", "md5"])
def test_md5_in_pcp_conf_needs_clear_text(pools, method):
    """Where the rule asks otherwise this is said; a line for passwords lets it through."""
    rule = f"host all all all {method}\n"
    pool = pools(hba=rule)
    state, text, hint = refused(pool, "op", "op_pw")
    assert state == "28000" and "clear text" in text and "pool_hba.conf" in hint
    house.put(pool.home / "pool_hba.conf", "host pgpool op all password\n" + rule)
    pool.reload()
    wait_for("the new rule holds",
             lambda: house.try_login(pool.address, "op", "pgpool", "op_pw", ask=False)[0] == "in")


def test_rules_without_passwords(pools):
    """reject and cert mean those of pcp.conf as well, and trust lets in by name only whom the settings name."""
    pool = pools(hba="host pgbouncer all all reject\nhost all all all trust\n", admin_users="chief")
    assert refused(pool, "op", "op_pw", "pgbouncer")[0] == "28000"
    with Wire(pool.address) as w:
        assert asked(w.login("chief", "pgpool")) == [0]
    with Wire(pool.address) as w:
        assert asked(w.login("op", "pgpool", "op_pw")) == [3, 0], "a name is no proof"
    assert refused(pool, "op", "")[0] in ("28P01", "08P01")
    assert refused(pool, "somebody", "x")[0] == "28P01"


@pytest.mark.parametrize("hba", [None, "host all all all scram-sha-256\n"])
def test_admins_and_those_who_look(pools, hba):
    pool = pools(hba=hba, passwd="chief:chief_pw\nlook:look_pw\napp:app_pw\n",
                 admin_users="postgres, chief", stats_users="look")
    chief, look = enter(pool, "chief", "chief_pw"), enter(pool, "look", "look_pw")
    assert tag(chief.simple("pgpool reconnect")) == "RECONNECT"
    bad = error(look.simple("pgpool reconnect"))
    assert bad.sqlstate == "42501"
    assert len(look.rows("show pool_nodes")) == 1
    assert refused(pool, "app", "app_pw")[0] == ("28P01" if hba is None else "28000")
    assert refused(pool, "chief", "wrong")[0] == "28P01"
    assert refused(pool, "postgres", "")[0] in ("28P01", "08P01", "28000")


@pytest.mark.parametrize("method", ["scram", "md5"])
def test_what_auth_query_said_last_opens_this(pools, method):
    """Then the server dies, and its last word judges; a stranger's wrong passwords do not put it in doubt."""
    pg = house.start_server()
    house.make_user(pg, "known", method)
    pool = pools([pg.address], hba="host all all all md5\n", passwd="looker:looker_pw\n", auth_user="looker",
                 auth_dbname="postgres", admin_users="known", num_init_children=1)
    enter(pool, "known", "known_pw", "postgres").bye()
    pg.stop()
    for _ in range(2):
        enter(pool, "known", "known_pw").bye()
        assert refused(pool, "known", "wrong")[0] == "28P01"
    assert refused(pool, "known", "wrong", "postgres")[0] == "57P03"
    enter(pool, "known", "known_pw").bye()


def test_what_opened_servers_does_not_open_this(server, pools):
    """The server judged the password: a later one, or that the role is gone, would not be known here."""
    house.make_user(server, "heard", "scram")
    pool = pools([server.address], hba="host all all all password\n", auth_relay="on", admin_users="heard", num_init_children=1)
    enter(pool, "heard", "heard_pw", "postgres").bye()
    assert refused(pool, "heard", "heard_pw")[0] == "28P01"


def test_who_left_the_file_is_out(server, pools):
    """What was learned while pool_passwd judged a user does not judge when the user's entry is gone."""
    house.make_user(server, "leaver", "scram")
    pool = pools([server.address], hba="host all all all password\n", passwd="leaver:leaver_pw\nlooker:looker_pw\n",
                 admin_users="leaver", num_init_children=1)
    enter(pool, "leaver", "leaver_pw", "postgres").bye()
    enter(pool, "leaver", "leaver_pw").bye()
    house.put(pool.home / "pool_passwd", "looker:looker_pw\n")
    pool.reload()
    wait_for("the entry is gone", lambda: house.try_login(pool.address, "leaver", "postgres", "leaver_pw")[0] == "28P01")
    assert refused(pool, "leaver", "leaver_pw")[0] == "28P01"


def test_auth_query_of_ones_own_runs_where_there_is_a_database(server, pools):
    """The client's database, where such a query runs, is none of any server here."""
    house.make_user(server, "asked_for", "scram")
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="looker:looker_pw\n", auth_user="looker",
                 auth_query="select rolname, rolpassword from pgpool_user_lookup($1)", admin_users="asked_for")
    enter(pool, "asked_for", "asked_for_pw").bye()


# ---- which

def test_a_real_database_of_that_name(server, pools):
    """pools.conf decides, or reserved_admin = 0."""
    server.rows("create database pgpool")
    pool = pools([server.address], reserved_admin=0)
    w = enter(pool, "boss", "boss_pw")
    assert w.value("select current_database()") == "pgpool"
    w.bye()
    pool = pools([server.address])
    house.put(pool.home / "pools.conf", "[database pgpool]\npool_size = 5\n")
    pool.reload()
    wait_for("the name is the real one's", lambda: house.try_login(pool.address, "boss", "pgpool", "boss_pw")[0] == "in")
    enter(pool, database="pgbouncer").bye()


# ---- what

def test_what_drivers_say(pools):
    w = enter(pools())
    assert [m.type for m in w.simple("")] == ["I", "Z"]
    assert [m.type for m in w.simple(" -- ping\n ; ")] == ["I", "Z"]
    assert w.value("select 1") == "1"
    found = w.simple("set extra_float_digits = 3")
    assert [m.type for m in found] == ["N", "C", "Z"] and tag(found) == "SET"
    assert tag(w.simple("DISCARD ALL")) == "DISCARD ALL"
    assert w.value("show transaction isolation level") == "read committed"
    assert w.value("show Server_Version").endswith("/pgpool")
    assert w.value("pgpool show port") == str(w.address.port)
    for sql in ("select now()", "select 1; select 2", "show pool_nodes; show pool_pools", "insert into t values (1)",
                "begin; drop table t", "show clients_of_mine"):
        bad = error(w.simple(sql))
        assert bad.sqlstate == "0A000" and "SHOW POOL_NODES" in bad.fields["H"], sql
    assert error(w.simple("pgpool nonsense")).sqlstate == "42601"
    assert error(w.simple("pgpool explain select 1")).sqlstate == "0A000"


def test_transactions_by_name(pools):
    w = enter(pools())
    status = lambda found: found[-1].body
    assert status(w.simple("begin isolation level serializable")) == b"T"
    assert status(w.simple("show pool_version")) == b"T"
    assert status(w.simple("select x")) == b"E"
    assert error(w.simple("show pool_version")).sqlstate == "25P02"
    found = w.simple("commit")
    assert tag(found) == "ROLLBACK" and status(found) == b"I"
    assert status(w.simple("start transaction")) == b"T" and tag(w.simple("commit")) == "COMMIT"


def test_extended(pools):
    """Errors skip to the Sync; a portal gives its rows in parts; what is not there is an error; Flush needs no Sync."""
    w = enter(pools())
    w.send(parse("select now()", "a"), describe("a"), bind((), "", "a"), execute(), SYNC)
    found = w.ready()
    assert [m.type for m in found] == ["1", "E", "Z"] and error(found).sqlstate == "0A000"
    w.send(bind((), "", "none"), execute(), SYNC, execute("none"), SYNC, close("none"), SYNC, SYNC)
    assert [m.type for m in w.ready(4)] == ["E", "Z", "E", "Z", "3", "Z", "Z"]
    w.send(parse("show pool_processes", "p"), message("H"))
    assert w.read().type == "1"
    w.send(bind((), "c", "p"), execute("c", 1), execute("c", 5), SYNC)
    assert [m.type for m in w.ready()] == ["2", "D", "s", "D", "C", "Z"]
    w.send(parse(""), describe(), bind(), execute(), SYNC)
    assert [m.type for m in w.ready()] == ["1", "t", "n", "2", "I", "Z"]
    w.send(message("F", b"\0\0\0\1\0\0\0\0\0\0"))
    assert error(w.ready()).sqlstate == "0A000"
    w.send(parse("begin"), bind(), execute(), parse("show pool_version"), bind(), execute(), SYNC)
    assert w.ready()[-1].body == b"T"


def test_every_report_in_both_protocols(pools):
    """All that SHOW knows, and what PGPOOL shows and sets, with no server there at all."""
    names = re.findall(r'^REPORT_BEGIN\(\w+, \w+, "(\w+)"', (TOP / "include" / "admin" / "reports.def").read_text(encoding="utf-8"), re.M)
    assert len(names) > 20
    w = enter(pools())
    for sql in (*(f"show {name}" for name in names), "pgpool show all", "pgpool show backend", "pgpool show port", "pgpool show health_check",
                "pgpool set client_idle_limit = 300", "pgpool reset client_idle_limit", "pgpool reset statements"):
        simple = w.simple(sql)
        assert [m.type for m in simple][-2:] == ["C", "Z"], (sql, simple[0].fields)
        w.send(parse(sql, "s") + describe("s") + bind(name="s") + describe("", "P") + execute() + close("s") + SYNC)
        found = w.ready()
        assert not [m.fields for m in found if m.type == "E"], sql
        columns = [m.body for m in found if m.type == "T"]
        assert columns == [m.body for m in simple if m.type == "T"] * 2, sql
        assert [m.type for m in found][-3:] == ["C", "3", "Z"], sql
    w.bye()


@pytest.mark.parametrize("text", [message("Q", b"x" * 200000), b"Q\0\0\0\3", message("y")])
def test_what_is_no_message(pools, text):
    w = enter(pools())
    w.send(text)
    assert error(w.read_eof()).sqlstate == "08P01"


def test_in_pieces(pools):
    w = enter(pools())
    for byte in query("show pool_version") + parse("select 1") + bind() + execute() + SYNC:
        w.send(bytes([byte]))
    assert [m.type for m in w.ready(2)] == ["T", "D", "C", "Z", "1", "2", "D", "C", "Z"]


def test_pgbouncers_reports(server, pools):
    """As its clients and exporters ask for them; a server does not know them."""
    pool = pools([server.address])
    c = enter(pool, "boss", "boss_pw", "postgres")
    assert c.value("select 1") == "1"
    with psycopg.connect(f"host=127.0.0.1 port={pool.port} user=op password=op_pw dbname=pgbouncer", autocommit=True,
                         row_factory=psycopg.rows.dict_row) as conn:
        show = lambda name: conn.execute(f"SHOW {name};").fetchall()
        assert show("version")[0]["version"].startswith("pgpool ")
        mine = [r for r in show("pools") if r["user"] == "boss"]
        assert [(r["database"], r["cl_active"], r["sv_active"], r["sv_login"]) for r in mine] == [("postgres", 1, 1, 0)]
        used = [r for r in show("databases") if r["name"] == "postgres"]
        assert [(r["port"], r["paused"]) for r in used] == [(server.address.port, 0)]
        assert {(r["user"], r["database"]) for r in show("clients")} == {("boss", "postgres"), ("op", "pgbouncer")}
        assert [r["remote_pid"] for r in show("servers")] == [int(c.value("select pg_backend_pid()"))]
        wait_for("the statements are counted", lambda: [
            r for r in show("stats") if r["database"] == "postgres" and int(r["total_query_count"]) >= 2])
        lists = {r["list"]: r["items"] for r in show("lists")}
        assert lists["used_clients"] == 2 and lists["used_servers"] == 1
        assert {r["key"]: r["value"] for r in show("config")}["listen_port"] == str(pool.port)
        assert {r["name"] for r in show("users")} == {"boss", "op"}
        assert error(c.simple("show pools")).sqlstate == "42704"
        victim = [r["id"] for r in show("clients") if r["user"] == "boss"]
        conn.execute(f"KILL_CLIENT {victim[0]}")
        assert error(c.read_eof()).sqlstate == "57P01"


def test_reload(server, pools):
    """For those who may administer, and here alone."""
    pool = pools([server.address], passwd="look:look_pw\nboss:boss_pw\n", stats_users="look")
    w = enter(pool)
    assert w.value("pgpool show log_client_limit") == "100"
    pool.write_conf(log_client_limit=77)
    found = w.simple("RELOAD;")
    assert [m.type for m in found] == ["N", "C", "Z"] and tag(found) == "RELOAD"
    wait_for("the settings are new", lambda: w.value("pgpool show log_client_limit") == "77")
    assert error(enter(pool, "look", "look_pw").simple("RELOAD")).sqlstate == "42501"
    bad = error(enter(pool, "boss", "boss_pw", "postgres").simple("pgpool reload"))
    assert (bad.sqlstate, bad.text) == ("42501", "RELOAD is an order of pgpool's own database")


def test_who_has_hung_up_is_no_client_of_a_unix_socket(server, pools):
    """A socket that was reset has no address any more, but what came before is still read: a line for local clients is not its."""
    if not Path("/proc/net/if_inet6").exists() or f"{1:032x}" not in Path("/proc/net/if_inet6").read_text(encoding="ascii"):
        pytest.skip("this machine has no ::1")
    pool = pools([server.address], hba="local all all trust\nhost all all all reject\n", listen_addresses="127.0.0.1,::1",
                 num_init_children=1, admin_users="op")
    enter(pool, address=pool.socket).bye()
    children = procs.children(pool.daemon.pid)
    for pid in children:
        procs.stand_still(pid)
    gone = socket.create_connection(("::1", pool.port), 5)
    gone.sendall(startup({"user": "op", "database": "pgpool"}) + query("DISABLE postgres"))
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    for pid in children:
        procs.go_on(pid)
    wait_for("it was looked at", lambda: 'of user "op" failed' in pool.log() or "disabled by" in pool.log())
    assert "disabled by" not in pool.log()


def test_pgbouncers_orders(server, pools):
    """DISABLE lets nobody in and leaves those who are here, KILL sends them away and pauses, WAIT_CLOSE waits for RECONNECT."""
    pool = pools([server.address])
    w = enter(pool)
    here = enter(pool, "boss", "boss_pw", "postgres")
    assert tag(w.simple("DISABLE postgres;")) == "DISABLE"
    assert refused(pool, "boss", "boss_pw", "postgres")[0] == "57P03"
    assert here.value("select 1") == "1"
    assert [r[0] for r in w.rows("show databases") if r[-2] == b"1"] == [b"postgres"]
    assert error(w.simple("disable postgres")).sqlstate == "55000"
    assert error(w.simple("resume postgres")).sqlstate == "55000", "it is not paused"
    assert error(w.simple("disable")).sqlstate == "42601"
    assert tag(w.simple("ENABLE postgres")) == "ENABLE"
    assert error(w.simple("enable postgres")).sqlstate == "55000"
    there = enter(pool, "boss", "boss_pw", "postgres")
    assert tag(w.simple("RECONNECT")) == "RECONNECT"
    here.bye()
    w.send(query("WAIT_CLOSE"))
    assert w.is_quiet(0.3), "a connection that was replaced is lent still"
    there.bye()
    assert tag(w.ready()) == "WAIT_CLOSE"
    victims = [enter(pool, "boss", "boss_pw", "postgres") for _ in range(3)]
    assert tag(w.simple("KILL postgres")) == "KILL"
    assert [error(v.read_eof()).sqlstate for v in victims] == ["57P01"] * 3
    assert [(r[0], r[1]) for r in w.rows("show pool_orders")if r[1] == b"true"] == [(b"postgres", b"true")]
    wait_for("no server connection is left", lambda: w.rows("show pool_links") == [])
    assert tag(w.simple("RESUME postgres")) == "RESUME"
    assert enter(pool, "boss", "boss_pw", "postgres").value("select 1") == "1"
    for what in ("SUSPEND", "SHUTDOWN WAIT_FOR_SERVERS", "SET default_pool_size = 5", "SHOW FDS"):
        assert error(w.simple(what)).sqlstate == "0A000", what
    assert tag(w.simple("set extra_float_digits = 3")) == "SET", "drivers say so"


@pytest.mark.parametrize("how", ["SHUTDOWN", "SHUTDOWN WAIT_FOR_CLIENTS"])
def test_shutdown(server, pools, how):
    pool = pools([server.address])
    w = enter(pool)
    c = enter(pool, "boss", "boss_pw", "postgres")
    assert error(c.simple(f"pgpool {how}")).sqlstate == "42501", "only here"
    assert tag(w.simple(how)) == "SHUTDOWN"
    if how == "SHUTDOWN":
        assert error(c.read_eof()).sqlstate == "57P01"
    else:
        assert c.value("select 1") == "1"
        c.bye()
        w.bye()
    wait_for("it has stopped", lambda: not pool.daemon.is_running())


def test_drivers(pools):
    pool = pools()
    dsn = f"host=127.0.0.1 port={pool.port} user=op password=op_pw dbname=pgpool"
    with psycopg.connect(dsn) as conn:
        for _ in range(7):  # from the fifth on it is prepared
            assert len(conn.execute("show pool_processes").fetchall()) == 2
        conn.commit()
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            conn.execute("select now()")
        conn.rollback()
        assert conn.execute("select 1").fetchone() == ("1",)

    async def fetch():
        conn = await asyncpg.connect(host="127.0.0.1", port=pool.port, user="op", password="op_pw", database="pgpool")
        rows = await conn.fetch("show pool_nodes")
        await conn.close()
        return rows

    assert len(asyncio.run(asyncio.wait_for(fetch(), 60 * SCALE))) == 1
    out = subprocess.run([postgres.bindir() / "psql", "-XAtc", "show pool_version", dsn], capture_output=True, text=True,
                         timeout=60 * SCALE, check=True)
    assert out.stdout.count("\n") == 1 and out.stderr == ""
