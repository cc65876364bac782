# SPDX-License-Identifier: PostgreSQL
"""test_every_rule: the rules of every_rule.txt, with one, two and three servers, the primary first, last and in the
middle of the file, which may leave numbers out; in session and in transaction mode, and once more in raw mode and in
logical replication. Where a statement would go is asked of PGPOOL EXPLAIN; where it ran, of the
server (its port) or of notice_per_node_statement. One cluster and one pgpool for each arrangement serve all rules: a
group's settings are loaded, and its sessions are new."""
import re
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pgt import procs, waits
from pgt.proxy import start_pgpool
from pgt.wire import SYNC, Wire, WireClosed, bind, execute, message, parse, query
from test_monitor import Trio, column, show

HERE = Path(__file__).parent
MODES = {"session": "postgres", "transaction": "shared"}  # pool mode, and the user who has it
PORT = "inet_server_port()"
BEHIND = "standby behind: "
SCHEMA = """\
create role shared superuser login; create table t as select 7 as a; create table w (a int); create table dep (a int);
create table dep2 (a int); create table scratch (a int); create unlogged table u (a int); create sequence sq;
create schema s1; create table s1.t2 as select 8 as a; create schema calm; create schema wild;
create function f_stable() returns int language sql stable as 'select 1';
create function f_vol() returns int language sql volatile as 'select 1';
create function f_sets() returns text language sql volatile as $$ select set_config('my.own', 'x', false) $$;
create function f_over(int) returns int language sql stable as 'select 1';
create function f_over(int, int) returns int language sql volatile as 'select 2';
create function calm.which() returns text language sql stable as $$ select 'calm' $$;
create function wild.which() returns text language sql volatile as $$ select 'wild' $$;
create function op_vol(int, int) returns int language sql volatile as 'select 1';
create operator <#!> (leftarg = int, rightarg = int, function = op_vol);
create procedure pr() language sql as 'select 1';
create view v_vol as select nextval('sq') as n; create view v_deep as select n from v_vol;
create table part (a int) partition by range (a);
create table part1 partition of part for values from (0) to (9); create unlogged table part2 partition of part default;
create function f_def(a int, b bigint default nextval('sq')) returns int language sql stable as 'select 1';
create view v_def as select f_def(1) from t; create view v_seq as select is_called from sq;
create table kept as select 7 as a; alter table kept enable row level security;
create policy p on kept using (nextval('sq') > 0);
create function f_check(int) returns bool language sql volatile as 'select true';
create domain d_vol as int check (f_check(value)); create table "row" (a int); insert into "row" values (1);
create function of_row("row") returns int language sql volatile as 'select 1';
create view v_catalog as select relname from pg_class; create view v_unlogged as select * from u;
"""


@dataclass
class Group:
    name: str
    settings: dict[str, str] = field(default_factory=dict)
    rules: list[tuple[str, dict[str, str], list[str]]] = field(default_factory=list)


def read_groups() -> list[Group]:
    found: list[Group] = []
    for line in (HERE / "every_rule.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found.append(Group(line[1:-1]))
        elif line.startswith("- "):
            words = line[2:].split(" @")
            found[-1].rules.append((words[0], dict(w.split("=") for w in words[1:]), []))
        elif line.startswith("  "):
            found[-1].rules[-1][2].append(line.strip())
        elif line and not line.startswith("#"):
            name, value = line.split(" = ", 1)
            found[-1].settings[name] = value
    return found


GROUPS = read_groups()
TEXT = re.findall(r'ROUTE_REASON\((\w+),\s*"([^"]*)"\)',
                  (HERE.parents[1] / "src/../include/route/reasons.def").read_text(encoding="utf-8"))
REASONS = dict(TEXT)


def own_name(layout: str) -> str:
    """What names of tables and the like of one arrangement end in."""
    return layout.lower().replace(".", "_")


class Place:
    """A pgpool that knows some of the cluster's servers, in some order: P the primary, A and B the standbys, a dot a
    number that is left out."""
    kind = "streaming_replication"

    def __init__(self, cluster: Trio, layout: str, home: Path, **conf):
        nodes = dict(zip("PAB", [cluster.primary, *[cluster.nodes[i] for i in cluster.standbys]]))
        self.layout = layout
        self.order = layout.replace(".", "")
        self.kind = conf.get("backend_clustering_mode", self.kind)
        self.ports = {who: nodes[who].port for who in self.order}
        hosts = {f"backend_{name}{n}": getattr(nodes[who].address, key) for n, who in enumerate(layout) if who != "."
                 for name, key in (("hostname", "host"), ("port", "port"))}
        self.base = {
            "load_balance_mode": True, "num_init_children": 1, "notice_per_node_statement": True, "sr_check_period": 1,
            "health_check_period": 0, "delay_threshold": 0, "pools_file": home / "pools.conf",
            "replication_delay_source_cmd": home / "delay.sh", "client_idle_limit": 10000,
            "read_consistency_wait": 10000, **hosts, **conf}
        self.pool = start_pgpool([], {**self.base, **self.weights("0 1 1")})
        self.initial = dict(self.pool.conf)
        self.loads = 10000
        self.began = time.monotonic()

    def be_young(self) -> None:
        """Some rules hold in the first minute alone."""
        if time.monotonic() - self.began > 30:
            self.pool.stop()
            self.pool.start()
            self.began = time.monotonic()
            waits.wait_for("roles are known", self.settled, 60)

    def weights(self, text: str) -> dict:
        share = dict(zip("PAB", text.split()))
        return {f"backend_weight{n}": share[who] for n, who in enumerate(self.layout) if who != "."}

    def settled(self) -> bool:
        names = {"raw": ("main", "replica"), "logical_replication": ("main", "replica")}
        roles = names.get(self.kind, ("primary", "standby"))
        return column(self.pool, "role") == [roles[who != "P"] for who in self.order]

    def fill(self, text: str) -> str:
        a = max(self.layout.find("A"), 0)
        b = self.layout.find("B")
        return (text.replace("{a}", str(a)).replace("{b}", str(a if b < 0 else b)).replace("{port}", PORT)
                .replace("{own}", own_name(self.layout)))

    def load(self, **settings) -> None:
        """Loads the file with these settings and the first ones; new sessions have them."""
        self.loads += 1 if self.loads % 60 < 59 else 2  # not a whole number of minutes
        weight = settings.pop("weight", "0 1 1")
        self.pool.conf = dict(self.initial)
        self.pool.reload(client_idle_limit=self.loads, **self.weights(weight),
                         **{k: self.fill(v) for k, v in settings.items()})

        def is_loaded() -> bool:
            with Wire(self.pool.address, seconds=20) as w:
                w.login(user="postgres")
                return str(self.loads) in w.value("pgpool show client_idle_limit")
        waits.wait_for(f"{settings} are loaded", is_loaded)

    def login(self, mode: str, app: str = "rules") -> Wire:
        wire = Wire(self.pool.address, seconds=20)
        assert wire.login(user=MODES[mode], database="postgres", application_name=app)[-1].type == "Z"
        return wire

    def servers(self, role: str, mode: str) -> str:
        """The servers that a role of every_rule.txt allows."""
        if "/" in role:
            role = role.split("/")[len(self.order) - 1]
        if role == "t":
            role = "s"
        if len(self.order) == 1 or role == "p" or self.kind == "raw":
            return "P"
        return {"s": "AB", "a": "A", "b": "B"}[role]


@pytest.fixture(scope="module")
def cluster():
    it = Trio(0)
    it.primary.rows("begin;" + SCHEMA + "commit")
    for order in [*ORDERS, *OTHER_MODES.values()]:
        for mode in MODES:
            it.primary.rows(f"create table fresh_{mode}_{own_name(order)} as select 1 as a")
    for i in it.standbys:
        waits.wait_for("it has all tables", lambda i=i: it.nodes[i].value(
            f"select to_regclass('fresh_{mode}_{own_name(order)}') is not null") == "t", 60)
    it.keep_in_step()
    yield it
    it.stop()


ORDERS = ["P", "PA", "AP", "PAB", "ABP", "A..PB"]
OTHER_MODES = {"raw": "P.A", "logical_replication": "A.PB"}


@pytest.fixture(scope="module")
def home(cluster):
    """Of two standbys, A says by replication_delay_source_cmd that it lags."""
    home = procs.folder("rules")
    slow = cluster.nodes[cluster.standbys[0]].port
    (home / "delay.sh").write_text(f"#!/bin/sh\nfor n in \"$@\"; do case $n in *:{slow}) echo 5000;; *) echo 10;; esac; "
                                   "done\n", encoding="utf-8")
    (home / "delay.sh").chmod(0o755)
    (home / "pools.conf").write_text("[user shared]\npool_mode = transaction\n", encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def places(cluster, home):
    made: dict[str, Place] = {}
    try:
        for order in ORDERS:
            made[order] = Place(cluster, order, home)
        for order, place in made.items():
            waits.wait_for(f"{order}: roles are known", place.settled, 60)
            if "A" in order:
                waits.wait_for(f"{order}: the lag is told", lambda place=place, order=order: column(
                    place.pool, "replication_delay")[place.order.find("A")].startswith("5.0"), 60)
        yield made
    finally:
        for place in made.values():
            place.pool.stop()


@pytest.fixture(scope="module")
def behind(cluster, places):
    """A does not replay any more, and the primary has written since."""
    slow = cluster.nodes[cluster.standbys[0]]
    slow.rows("select pg_wal_replay_pause()")
    with Wire(cluster.primary.socket) as w:
        w.login()
        w.rows("set synchronous_commit = local")
        w.rows("insert into scratch select g from generate_series(1, 5000) g")
    for place in places.values():
        place.initial["replication_delay_source_cmd"] = ""
        place.load()
    for order, place in places.items():
        if "A" in order:
            waits.wait_for(f"{order}: the lag is seen", lambda place=place, order=order: int(show(place.pool)[
                place.order.find("A")]["replication_delay"].split()[0].split(".")[0]) > 200000, 60)


def one_line(line: str) -> tuple[str, str, str, str, str | None]:
    """Role, reason, SQLSTATE, statement, value."""
    head, sql = line.split("|", 1)
    words = head.split()
    code = next((w[1:] for w in words if w.startswith("!")), "")
    reason = next((w for w in words[1:] if not w.startswith("!")), "")
    sql, _, value = sql.strip().partition(" => ")
    return words[0], reason, code, re.sub("^~+", lambda m: " " * len(m.group()), sql), value or None


def node_of(found) -> list[int]:
    return [int(m.fields["M"].split()[3]) for m in found if m.type == "N" and m.fields["M"].startswith("DB node id: ")]


class Run:
    """The lines of one rule in one session."""

    def __init__(self, place: Place, mode: str, app: str):
        self.place, self.mode = place, mode
        self.wire = place.login(mode, app)
        self.wrong: list[str] = []
        self.written = ""

    def say(self, how: str, sql: str, what: str) -> None:
        self.wrong.append(f"{self.place.order} {self.mode} {how}: {sql}: {what}")

    def explain(self, sql: str, role: str, reason: str) -> None:
        found = self.wire.simple("pgpool explain " + sql)
        if not any(m.type == "D" for m in found):
            return self.say("explain", sql, next(m for m in found if m.type == "E").fields["M"])
        row = [(v or b"").decode() for v in next(m for m in found if m.type == "D").row()]
        allowed = self.place.servers(role, self.mode)
        where = self.place.layout[int(row[0])]
        if where not in allowed or row[1] != ("primary" if where == "P" else "standby"):
            self.say("explain", sql, f"{where} ({row[1]}) instead of {allowed}: {row[3]}")
        if len(self.place.order) == 1 or not reason or self.place.kind == "raw":
            return
        wanted = reason.split("/")
        if row[3] != REASONS[wanted[min(len(self.place.order) - 2, len(wanted) - 1)]]:
            self.say("explain", sql, f"reason: {row[3]}")

    def check(self, how: str, sql: str, found, role: str, code: str, value: str | None) -> None:
        got = next((m.fields["C"] for m in found if m.type == "E"), "")
        if got != code and not (code == "0A000" and self.place.servers(role, self.mode) == "P") and not (
                code == "42P01" and "none" in self.place.pool.conf.get("check_temp_table", "")
                and self.place.servers(role, self.mode) == "P"):
            self.say(how, sql, f"SQLSTATE {got}")
        if role == "-":
            return
        allowed = self.place.servers(role, self.mode)
        rows = [m.row() for m in found if m.type == "D"]
        told = (rows[0] or [b""])[0] if rows else b""
        where = next((who for who, port in self.place.ports.items() if str(port).encode() == told), "")
        where = where or ",".join({self.place.layout[n] for n in node_of(found)}) or "nobody says where"
        if where not in tuple(allowed):
            self.say(how, sql, f"ran on {where} instead of {allowed}")
        if value is not None and rows and (rows[0][1] or b"").decode() != value:
            self.say(how, sql, f"value {rows[0][1]!r}")

    def line(self, line: str) -> None:
        role, reason, code, sql, value = one_line(line)
        sql = self.place.fill(sql).replace("{mode}", self.mode)
        mode, _, role = role.rpartition(":")
        if mode not in ("", self.mode):
            return
        if reason == "WRITE":
            self.written = sql
        if reason == "TABLE_WRITTEN_LATELY":
            self.in_time(lambda: self.ask(line, role, reason, code, sql, value))
        else:
            self.ask(line, role, reason, code, sql, value)

    def in_time(self, ask) -> None:
        """Where no lag is measured a mark lasts 100 ms: what was asked later than that says nothing."""
        for _ in range(20):
            known, begin = len(self.wrong), waits.now()
            self.wire.simple(self.written)
            ask()
            if len(self.wrong) == known or waits.now() - begin < 0.1:
                return
            del self.wrong[known:]

    def ask(self, line: str, role: str, reason: str, code: str, sql: str, value: str | None) -> None:
        if role[0] not in "-~":
            self.explain(sql, role, reason)
        role = role.lstrip("~")
        if "from stdin" in sql:
            self.wire.send(query(sql) + message("c"))
            found = self.wire.ready()
        else:
            found = self.wire.simple(sql)
        self.check("simple", sql, found, role, code, value)
        if "{port}" in line and not sql.startswith(("prepare", "declare")):
            self.wire.send(parse(sql) + bind() + execute() + SYNC)
            self.check("extended", sql, self.wire.ready(), role, code, value)


def group_faults(place: Place, group: Group) -> list[str]:
    if group.settings.get("track_table_mutation_cold_start_duration", "0") != "0":
        place.be_young()
    place.load(**group.settings)
    wrong = []
    for name, attributes, lines in group.rules:
        for mode in MODES:
            run = Run(place, mode, attributes.get("app", "rules"))
            try:
                for line in lines:
                    run.line(line)
            finally:
                run.wire.bye()
            wrong += [f"{name}: {w}" for w in run.wrong]
    return wrong


def ask_group(place: Place, group: Group) -> None:
    if len(place.order) == 1 and "{a}" in str(group.settings):
        pytest.skip("there is no standby")
    wrong = group_faults(place, group)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("group", [g for g in GROUPS if not g.name.startswith(BEHIND)], ids=lambda g: g.name)
def test_rule(places, group, order):
    ask_group(places[order], group)


def where(place: Place, found) -> str:
    """The server whose port is the answer."""
    assert [m.fields for m in found if m.type == "E"] == []
    port = int(next(m for m in found if m.type == "D").row()[0] or 0)
    return next(who for who, p in place.ports.items() if p == port)


READ = f"select {PORT} from t"
WRITE = f"insert into w values (0) returning {PORT}"


@pytest.mark.parametrize("order", ORDERS)
def test_shares(places, order):
    """What one session's statements and many sessions get of each server, by weights and ratios."""
    place = places[order]
    every = {who: 40 // len(place.order) for who in place.order}
    place.load(weight="1 1 1", statement_level_load_balance="on")
    for mode in MODES:
        with place.login(mode) as wire:
            got = []
            for n in range(40):
                if n % 2:
                    wire.send(parse(READ) + bind() + execute() + SYNC)
                got.append(where(place, wire.ready() if n % 2 else wire.simple(READ)))
            assert all(abs(got.count(who) - n) <= 2 for who, n in every.items()), (mode, "".join(got))
    place.load(weight="1 1 1")
    got = []
    for _ in range(40):
        with place.login("transaction") as wire:
            got.append(where(place, wire.simple(READ)))
    assert all(abs(got.count(who) - n) <= 2 for who, n in every.items()), got
    place.load(app_name_redirect_preference_list="half:standby(0.5)")
    got = []
    for n in range(40):
        with place.login("session" if n % 2 else "transaction", "half") as wire:
            got.append(where(place, wire.simple(READ)))
    assert got.count("P") == (40 if len(order) == 1 else 20), got


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", ORDERS)
def test_extended_sequences(places, order, mode):
    """Named statements, strictest message of a sequence, pipelines, portals."""
    place = places[order]
    place.load()
    away = "P" if len(order) == 1 else "AB"

    def rows(wire: Wire) -> list[str]:
        """The servers that answered up to the next Sync."""
        found = wire.ready()
        assert [m.fields for m in found if m.type == "E"] == []
        ports = {str(p).encode(): who for who, p in place.ports.items()}
        return [ports[m.row()[0] or b""] for m in found if m.type == "D"]

    with place.login(mode) as wire:
        wire.simple(READ)
        wire.send(parse(READ, "r") + parse(WRITE, "w") + SYNC)
        assert rows(wire) == []
        for name in ("r", "w", "r", "r", "w"):
            wire.send(bind(name=name) + execute() + SYNC)
            assert rows(wire)[0] in (away if name == "r" else "P"), name
        wire.send(bind(name="r") + execute() + bind(name="w") + execute() + SYNC)
        assert rows(wire) == ["P", "P"], "one sequence is one transaction"
        wire.send(b"".join(bind(name=name) + execute() + SYNC for name in "rrwrw"))
        got = [rows(wire)[0] for _ in "rrwrw"]
        assert got[0] in away and got[1] in away and got[2] == got[4] == "P" and got[3] in away + "P", got
        for size in (3000, 20000):  # 18 and 120 kB
            long = f"{READ} where a in (7, " + ", ".join(map(str, range(size))) + ")"
            assert where(place, wire.simple(long)) in away
            wire.send(parse(long) + bind() + execute() + SYNC)
            assert rows(wire)[0] in away
            wire.send(parse(long, "long") + SYNC)
            wire.ready()
            wire.send(bind(name="long") + execute() + SYNC)
            assert rows(wire)[0] in away
            wire.send(message("C", b"Slong\0") + SYNC)
            wire.ready()
        wire.simple("begin read only")
        wire.send(bind(name="r", portal="p") + execute("p", 1) + SYNC)
        first = rows(wire)
        assert first[0] in away
        wire.send(execute("p", 1) + SYNC)
        wire.ready()
        assert where(place, wire.simple(READ)) == first[0]
        wire.simple("commit")
        wire.send(parse("select nextval('sq') from t", "v") + bind(name="v") + execute() + SYNC)
        assert [m.type for m in wire.ready() if m.type in "DE"] == ["D"]
        wire.send(message("C", b"Sr\0") + parse(WRITE, "r") + bind(name="r") + execute() + SYNC)
        assert rows(wire) == ["P"], "the name means something else now"


@pytest.mark.parametrize("order", ["P", "AP", "PAB", "ABP"])
def test_load_balance_mode_off(places, cluster, home, order):
    """Everything on the primary, and PGPOOL EXPLAIN says why."""
    place = Place(cluster, order, home, load_balance_mode=False)
    try:
        waits.wait_for("roles are known", place.settled, 60)
        for mode in MODES:
            with place.login(mode) as wire:
                for sql in (READ, WRITE, f"select {PORT} from pg_class limit 1"):
                    assert where(place, wire.simple(sql)) == "P", sql
                    wire.send(parse(sql) + bind() + execute() + SYNC)
                    assert where(place, wire.ready()) == "P", sql
                row = wire.rows("pgpool explain " + READ)[0]
                assert row[:2] == [str(place.layout.index("P")).encode(), b"primary"]
                wire.simple("begin read only")
                assert where(place, wire.simple(READ)) == "P"
                wire.simple("commit")
    finally:
        place.pool.stop()


@pytest.mark.parametrize("clustering", OTHER_MODES)
def test_other_clustering_modes(cluster, home, clustering):
    """Raw mode: the first server gets everything, whatever the rule. Logical replication: all rules but those on lag."""
    layout = OTHER_MODES[clustering]
    flag = {f"backend_flag{layout.index('P')}": "ALWAYS_PRIMARY"} if clustering != "raw" else {}
    place = Place(cluster, layout, home, backend_clustering_mode=clustering, **flag)
    try:
        waits.wait_for("roles are known", place.settled, 60)
        wrong = []
        for group in GROUPS:
            if group.name.startswith(("lag", BEHIND)):
                continue
            wrong += [f"{group.name}: {w}" for w in group_faults(place, group)]
        assert not wrong, "\n".join(wrong)
        place.load(delay_threshold_by_time="1", app_name_redirect_preference_list="toa:{a}")
        with place.login("session", "toa") as wire:
            assert where(place, wire.simple(READ)) == ("P" if clustering == "raw" else "A"), "lag is not looked at"
    finally:
        place.pool.stop()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("group", [g for g in GROUPS if g.name.startswith(BEHIND)], ids=lambda g: g.name)
def test_rule_while_a_standby_is_behind(places, behind, group, order):
    ask_group(places[order], group)


def read_on(wire: Wire, gone: threading.Event, faults: list[str]) -> None:
    """Reads and reads, and twenty times more when the server is gone. Only what had shown a row may fail."""
    left = 20
    while left > 0 and not faults:
        left -= gone.is_set()
        try:
            wire.send(query(READ))
            both = [wire.ready()]
            wire.send(bind(name="r") + execute() + SYNC)
            both.append(wire.ready())
        except (OSError, WireClosed) as reason:
            faults.append(repr(reason))
            return
        for found in both:
            kinds = [m.type for m in found if m.type in "DE"]
            faults += [str(m.fields) for m in found if m.type == "E" and kinds[0] != "D"]
            faults += ["no answer"] if not kinds else []


def test_a_standby_is_killed_in_mid_run(places, cluster):
    """The last test of this file: A is not started again. No session that read there notices."""
    cluster.nodes[cluster.standbys[0]].rows("select pg_wal_replay_resume()")
    cluster.primary.rows("alter system reset synchronous_standby_names")
    cluster.primary.reload()
    wires = []
    for place in places.values():
        if "A" in place.order:
            place.load(app_name_redirect_preference_list="toa:{a}")
            wires += [(place, place.login(mode, "toa")) for mode in MODES for _ in range(2)]
    for place, wire in wires:
        assert where(place, wire.simple(READ)) == "A"
        wire.send(parse(READ, "r") + SYNC)
        wire.ready()
    gone = threading.Event()
    faults: list[str] = []
    busy = [threading.Thread(target=read_on, args=(wire, gone, faults)) for _, wire in wires]
    for thread in busy:
        thread.start()
    cluster.nodes[cluster.standbys[0]].stop(signal.SIGQUIT)
    gone.set()
    for thread in busy:
        thread.join()
    assert not faults, "\n".join(faults)
    for _ in range(3):
        for place, wire in wires:
            left = set(place.order) - {"A"}
            assert where(place, wire.simple(READ)) in left
            wire.send(bind(name="r") + execute() + SYNC)
            assert where(place, wire.ready()) in left
            wire.simple("begin read only")
            assert where(place, wire.simple(READ)) in left
            wire.simple("commit")
            assert where(place, wire.simple(WRITE)) == "P"
    for place, wire in wires:
        wire.bye()
    for place in places.values():
        if "A" in place.order:
            waits.wait_for("it is known to be down", lambda place=place: column(
                place.pool, "status")[place.order.index("A")] == "down", 60)
