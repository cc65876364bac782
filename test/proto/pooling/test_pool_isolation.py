# SPDX-License-Identifier: PostgreSQL
"""test_pool_isolation: properties under random schedules, many clients on two links and two workers. Each client
sees its own settings and its own statements, whatever the others do; a reply reaches who asked, in order, once.

The seed is in the test's name and fails the same way again as far as schedules of processes allow.
"""
import random
import select

import pytest
from pooling_house import login, states

from pgt import waits
from pgt.wire import SYNC, Wire, WireClosed, bind, cancel, close, execute, parse, pg, query

SEEDS = (1, 2, 3)
NAMES = ("work_mem", "search_path", "TimeZone", "my.own", "application_name", "statement_timeout", "role")


def pool_of_two(start_pool, pg_server):
    return start_pool(pg_server.address, num_init_children=2, pool_mode="transaction", pool_test_rotate=True,
                      max_backend_connections=2, query_wait_timeout=60)


def value_of(rng: random.Random, name: str, client: int) -> str:
    """A value no other client sets, as the server shows it: 3072kB it would call 3MB."""
    return {"work_mem": f"{2049 + client * 50 + 2 * rng.randrange(24)}kB", "search_path": f"only_{client}_{rng.randrange(9)}",
            "TimeZone": f"<C{rng.randrange(9)}>{'+' if client % 2 else '-'}{1 + client % 11:02}:{10 + rng.randrange(40)}",
            "my.own": f"client {client} {rng.randrange(99)}", "application_name": f"app {client} {rng.randrange(9)}",
            "statement_timeout": f"{100001 + client * 10 + rng.randrange(9)}ms", "role": rng.choice(("trust_user", "other_user", "none"))}[name]


SEE = "select " + ", ".join(f"coalesce(current_setting('{n}', true), '')" for n in NAMES)


class Model:
    """A client and what PostgreSQL's rules say it must see: a stack of states, one for the session and one for
    each open transaction or savepoint."""

    def __init__(self, wire: Wire, number: int, rng: random.Random):
        self.wire = wire
        self.number = number
        self.rng = rng
        self.start = self.see()
        self.stack = [dict(self.start)]
        self.local: list[dict[str, str]] = [{}]
        self.history: list[str] = []

    def see(self) -> dict[str, str]:
        return dict(zip(NAMES, (v.decode() for v in self.wire.rows(SEE)[0])))

    def run(self, sql: str, fails: bool = False) -> None:
        self.history.append(sql)
        if self.rng.random() < 0.5:
            found = self.wire.simple(sql)
        else:
            self.wire.send(pg(sql), SYNC)
            found = self.wire.ready()
        assert bool(states(found)) == fails, (self.history[-12:], [m.fields for m in found if m.type == "E"])

    def set_one(self, local: bool) -> None:
        name = self.rng.choice(NAMES)
        value = value_of(self.rng, name, self.number)
        scope = "local " if local else ""
        how = self.rng.random()
        if how < 0.25:
            self.bind_one(name, value, local)
        elif how < 0.45:
            self.run(f"select set_config('{name}', '{value}', {'true' if local else 'false'})")
        elif name in ("search_path", "role"):
            self.run(f"set {scope}{name} = {value}")
        else:
            self.run(f"set {scope}{name} = '{value}'")
        if local:
            self.local[-1][name] = value
        else:
            self.stack[-1][name] = value
            self.local[-1].pop(name, None)

    def bind_one(self, name: str, value: str, local: bool) -> None:
        """Prepared once, or not at all, bound with other values and not executed besides."""
        self.history.append(f"bound: {name} {value} {local}")
        flag = self.rng.choice((b"\1" if local else b"\0", "true" if local else "false"))
        formats = (0, self.rng.randrange(2), 1 if isinstance(flag, bytes) else 0)
        made = parse("select set_config($1, $2, $3)", "sc") if self.rng.random() < 0.5 else b""
        self.wire.send(made or parse("select set_config($1, $2, $3)"),
                       bind([name, "not executed", flag], "p", "sc" if made else "", formats),
                       bind([name, value, flag], "", "sc" if made else "", formats), execute(), close("p", "P"), close("sc"), SYNC)
        assert not states(self.wire.ready()), self.history[-12:]

    def expected(self) -> dict[str, str]:
        return {**self.stack[-1], **self.local[-1]}

    def check(self) -> None:
        if self.rng.random() < 0.5:
            seen = self.see()
        else:
            self.wire.send(pg(SEE), SYNC)
            seen = dict(zip(NAMES, (v.decode() for v in next(m.row() for m in self.wire.ready() if m.type == "D"))))
        assert seen == self.expected(), (self.number, self.history[-12:])

    def step(self) -> None:
        getattr(self, self.rng.choice(OUTSIDE if len(self.stack) == 1 else INSIDE))()

    # outside of a transaction
    def do_set(self) -> None:
        self.set_one(False)

    def do_reset(self) -> None:
        name = self.rng.choice([n for n in NAMES if n != "my.own"])
        self.run(f"reset {name}")
        self.stack[-1][name] = self.start[name]
        self.local[-1].pop(name, None)

    def do_reset_all(self) -> None:
        self.run("reset all")
        # RESET ALL leaves the role alone
        self.stack[-1] = {**self.start, "role": self.stack[-1]["role"]}
        self.local[-1] = {k: v for k, v in self.local[-1].items() if k == "role"}

    def do_discard(self) -> None:
        self.run("discard all")
        self.stack[-1] = dict(self.start)

    def do_failed_set(self) -> None:
        name = self.rng.choice(("work_mem", "TimeZone"))
        self.run(f"set my.own = 'lost'; set {name} = 'nonsense'", fails=True)

    def do_begin(self) -> None:
        self.run("begin")
        self.stack.append(dict(self.stack[-1]))
        self.local.append({})

    # inside
    def do_set_local(self) -> None:
        self.set_one(True)

    def do_savepoint(self) -> None:
        if len(self.stack) < 5:
            self.run(f"savepoint s{len(self.stack)}")
            self.stack.append(dict(self.stack[-1]))
            self.local.append(dict(self.local[-1]))

    def do_release(self) -> None:
        if len(self.stack) > 2:
            top, local = self.stack.pop(), self.local.pop()
            self.run(f"release s{len(self.stack)}")
            self.stack[-1], self.local[-1] = top, local

    def do_rollback_to(self) -> None:
        if len(self.stack) > 2:
            if self.rng.random() < 0.4:
                self.run("select 1/0", fails=True)
            self.run(f"rollback to s{len(self.stack) - 1}")
            self.stack[-1], self.local[-1] = dict(self.stack[-2]), dict(self.local[-2])

    def do_end(self) -> None:
        ok = self.rng.random() < 0.5
        if not ok and self.rng.random() < 0.3:
            self.run("selec", fails=True)
        self.run("commit" if ok else "rollback")
        top = self.stack[-1]
        self.stack = [top if ok else self.stack[0]]
        self.local = [{}]


OUTSIDE = ("check", "check", "do_set", "do_set", "do_reset", "do_reset_all", "do_discard", "do_failed_set", "do_begin")
INSIDE = ("check", "do_set", "do_set_local", "do_savepoint", "do_release", "do_rollback_to", "do_end", "do_end")


def random_work(address_of, seed: int, clients: int, steps: int, open_at_once: int) -> None:
    """Steps of random clients. At most `open_at_once` hold a transaction: with more, all would wait for all."""
    rng = random.Random(seed)
    models = [Model(address_of(i), i, rng) for i in range(clients)]
    for _ in range(steps):
        busy = [m for m in models if len(m.stack) > 1]
        rng.choice(busy if len(busy) >= open_at_once else models).step()
    for m in models:
        if len(m.stack) > 1:
            m.do_end()
    for m in models:
        m.check()
        m.wire.bye()


def session_of(address, number: int) -> Wire:
    w = Wire(address, seconds=20)
    params = {"application_name": f"started {number}"} if number % 2 else {"options": f"-c work_mem={700 + number}kB"}
    assert w.login(**params)[-1].type == "Z"
    return w


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_is_right(pg, seed):
    """Directly, where each client has a server process of its own."""
    random_work(lambda i: session_of(pg.address, i), seed, 6, 600, 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_sees_its_own(pg, start_pool, seed):
    """All clients share two links, and each sees what is its own by the model."""
    pool = pool_of_two(start_pool, pg)
    random_work(lambda i: session_of(pool.address, i), seed, 12, 1200, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_each_sees_its_own_long(pg, start_pool, seed):
    pool = pool_of_two(start_pool, pg)
    random_work(lambda i: session_of(pool.address, i), seed, 30, 8000, 1)


# ---- a reply reaches who asked

class Asker:
    """A client with requests under way. Each request carries a token; `due` says what must come, in order."""

    def __init__(self, pool, number: int, rng: random.Random):
        self.pool = pool
        self.number = number
        self.rng = rng
        self.count = 0
        self.due: list[tuple[str, str]] = []
        self.wire = login(pool)
        self.started = waits.now()
        self.seen: list[str] = []

    def token(self) -> str:
        self.count += 1
        return f"client {self.number} request {self.count} of {id(self.wire)}"

    def ask(self) -> None:
        t = self.token()
        sleep = "pg_sleep(0.002)" if self.rng.random() < 0.2 else "1"
        kind = self.rng.randrange(7)
        ok = ("row", t)
        if kind == 0:
            self.put(query(f"select '{t}', {sleep}"), ok)
        elif kind == 1:
            self.put(pg(f"select '{t}', {sleep}") + SYNC, ok)
        elif kind == 2:
            self.put(pg("select $1::text", [t]) + SYNC, ok)
        elif kind == 3:
            self.put(parse("select $1::text || $2", "tok") + bind([t[:5], t[5:]], name="tok") + execute() + close("tok") + SYNC, ok)
        elif kind == 4:
            self.put(query(f"do $$ begin raise exception '{t}'; end $$"), ("error", t))
        elif kind == 5:
            self.put(query("begin") + query(f"select '{t}', repeat('{t}', {self.rng.randrange(3000)})") + query("commit"), ok, 3)
        else:
            self.put(pg(f"select '{t}'") + pg("select 1/0") + SYNC, ok)

    def put(self, data: bytes, due: tuple[str, str], readies: int = 1) -> None:
        self.due += [("ready", "")] * (readies - 1) if readies == 1 else []
        if readies == 3:
            self.due += [("ready", ""), due, ("ready", ""), ("ready", "")]
        else:
            self.due += [due, ("ready", "")]
        self.started = waits.now()
        self.wire.send(data)

    def read(self) -> None:
        """Takes what has arrived; every row and error must be this client's next."""
        while self.whole_message():
            m = self.wire.read()
            self.seen.append(f"{m.type} {m.sqlstate}" if m.type == "E" else m.type)
            if m.type == "Z":
                assert self.due and self.due[0][0] == "ready", (self.number, " ".join(self.seen[-12:]), self.due[:3])
                self.due.pop(0)
            elif m.type == "D":
                value = m.row()[0].decode()
                assert self.due and self.due[0] == ("row", value), (self.number, value, self.due[:3])
                self.due.pop(0)
            elif m.type == "E":
                self.error(m)

    def error(self, m) -> None:
        # Cancelled: the rest of this request does not come, the transaction around it is failed, and a Close that
        # was skipped has left its statement.
        if m.sqlstate in ("57014", "25P02", "42P05"):
            while self.due and self.due[0][0] != "ready":
                self.due.pop(0)
        elif m.sqlstate == "P0001":
            assert self.due and self.due[0] == ("error", m.text), (self.number, m.text, self.due[:3])
            self.due.pop(0)
        else:
            assert m.sqlstate == "22012", m.fields

    def whole_message(self) -> bool:
        if not self.wire.eof and select.select([self.wire.sock], [], [], 0)[0]:
            self.wire._receive()
        buf = self.wire.inbuf
        return len(buf) >= 5 and len(buf) >= 1 + int.from_bytes(buf[1:5], "big")

    def vanish(self) -> None:
        if self.rng.random() < 0.5:
            self.wire.reset()
        else:
            self.wire.sock.close()
        self.wire = login(self.pool)
        self.due = []

    def is_stuck(self) -> bool:
        return bool(self.due) and waits.now() - self.started > 20 * waits.SCALE


def ask_around(pool, seed: int, clients: int, rounds: int, disturb: float) -> None:
    rng = random.Random(seed)
    askers = [Asker(pool, i, rng) for i in range(clients)]
    try:
        for _ in range(rounds):
            a = rng.choice(askers)
            if len(a.due) < 12:
                a.ask()
            if rng.random() < disturb:
                other = rng.choice(askers)
                rng.choice((other.vanish, lambda o=other: cancel(pool.address, o.wire.pid, o.wire.key)))()
            for one in askers:
                one.read()
                assert not one.is_stuck(), f"client {one.number} waits for {one.due[:3]}"

        def all_answered() -> bool:
            for one in askers:
                one.read()
            return not any(one.due for one in askers)

        waits.wait_for("everybody has what it asked for", all_answered)
    except WireClosed as e:
        raise AssertionError(f"a client was cut off: {e}") from e
    for one in askers:
        assert one.wire.value("select 'last word'") == "last word"
        one.wire.bye()


@pytest.mark.parametrize("disturb", [0.0, 0.05], ids=["calm", "cancels_and_vanishing"])
@pytest.mark.parametrize("seed", SEEDS)
def test_replies_reach_who_asked(pg, start_pool, seed, disturb):
    ask_around(pool_of_two(start_pool, pg), seed, 20, 1500, disturb)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 210))
def test_replies_reach_who_asked_long(pg, start_pool, seed):
    ask_around(pool_of_two(start_pool, pg), seed, 60, 20000, 0.03)


def test_kill_links_while_asking(pg, start_pool):
    """Server processes are ended again and again under load: errors, but never another's reply."""
    pool = pool_of_two(start_pool, pg)
    rng = random.Random(5)
    askers = [LosingAsker(pool, i, rng) for i in range(10)]
    for turn in range(600):
        a = rng.choice(askers)
        if len(a.due) < 6:
            a.ask()
        if turn % 60 == 59:
            pg.rows("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' "
                    "and pid <> pg_backend_pid()")
        for one in askers:
            one.read()
            assert not one.is_stuck(), f"client {one.number} waits for {one.due[:3]}"

    def all_answered() -> bool:
        for one in askers:
            one.read()
        return not any(one.due for one in askers)

    waits.wait_for("everybody has an answer", all_answered)
    for one in askers:
        one.wire.bye()


class LosingAsker(Asker):
    """Requests may fail because their link died; inside BEGIN .. COMMIT the rest then fails too."""

    def ask(self) -> None:
        t = self.token()
        self.put(query(f"select '{t}', pg_sleep(0.001)") if self.rng.random() < 0.5 else pg("select $1::text", [t]) + SYNC, ("row", t))

    def error(self, m) -> None:
        assert m.sqlstate in ("57P01", "08006", "25P02"), m.fields
        while self.due and self.due[0][0] != "ready":
            self.due.pop(0)
