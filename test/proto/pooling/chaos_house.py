# SPDX-License-Identifier: PostgreSQL
"""chaos_house: a pgpool in transaction mode, its clients (chaos_client), and all that may befall them: cancel requests, links
and workers and servers that are killed, operators' orders, reloads, columns that change.

What must hold: no message carries another client's mark; each answer is what PostgreSQL would say in a state that may be so
(chaos_model); who was not meant hears of nothing; nobody waits for ever; what was acknowledged is written once; nothing is
left behind.
"""
import contextlib
import os
import random
import signal
import threading

from chaos_client import LOST, MARK, Client

from pgt import procs, waits
from pgt.tls import TlsWire
from pgt.wire import Wire, WireClosed, WireTimeout, cancel, query

TABLES = """
drop table if exists chaos_n, chaos_w, chaos_c;
create table chaos_n(who text primary key, n int) with (fillfactor = 50);
create table chaos_w(who text, k text);
create index on chaos_w(who);
create table chaos_c(a int, b text);
insert into chaos_c values (1, 'one');
grant other_user to trust_user;
grant all on chaos_n, chaos_w, chaos_c to public;
insert into chaos_n select 'mk' || c || 's' || s, 0 from generate_series(0, {clients}) c, generate_series(1, {sessions}) s
"""
SESSIONS = 300
KILLS = {"terminate", "crash", "worker", "workers"}


class House:
    """`every` names what befalls it, with the seconds between."""

    def __init__(self, pool, server, seed: int, clients: int, vanishing: float = 0.01, is_tls: bool = False,
                 timeouts: tuple[str, ...] = (), idle: float = 0.1, reloads: dict | None = None, **every: float):
        self.pool, self.server, self.seed, self.every = pool, server, seed, every
        self.vanishing, self.is_tls, self.timeouts, self.idle = vanishing, is_tls, timeouts, idle
        self.reloads = reloads or {}
        self.cancels = "cancel" in every
        self.kills = bool(KILLS & set(every))
        self.excused = (LOST if self.kills else ()) + (("0A000",) if "columns" in every else ())
        self.refused = (*LOST, "57P03") if self.kills or "drain" in every else ()
        self.killed_workers = 0
        self.ending = threading.Event()
        self.rng = random.Random(seed)
        self.done: dict[str, int] = {}
        self.trouble = ""
        for sql in TABLES.format(clients=clients, sessions=SESSIONS).split(";\n"):
            server.rows(sql)
        self.clients = [Client(self, i) for i in range(clients)]

    def wire(self, rng: random.Random) -> Wire:
        kind = TlsWire if self.is_tls and rng.random() < 0.3 else Wire
        return kind(self.pool.address, seconds=40)

    def can_end(self, client: Client, farewell: str) -> bool:
        """May this client's session end so?"""
        if farewell == "":  # with its worker, or when its link died in the midst of a message of its own
            return self.killed_workers > client.killed or bool({"terminate", "crash"} & set(self.every))
        if farewell == "57P01" and (("drain" in self.every and not client.is_super) or ("kill_client" in self.every and client.is_hit)):
            return True
        return farewell in self.timeouts or (self.kills and farewell in LOST)

    # ---- what befalls

    def cancel(self) -> None:
        """Of one that may be cancelled; and of sessions that are over, which may hit nobody."""
        c = self.rng.choice([c for c in self.clients if c.is_hit])
        w = c.wire
        if w is not None and w.pid and self.rng.random() < 0.8:
            self.ask_for(w.pid, w.key)
        c = self.rng.choice(self.clients)
        if len(c.old_keys) > 1:
            self.ask_for(*self.rng.choice(c.old_keys[:-1]))

    def ask_for(self, pid: int, key: bytes) -> None:
        with contextlib.suppress(OSError):
            cancel(self.pool.address, pid, key)

    def links(self) -> list[int]:
        return self.server.sessions("client_addr is not null")

    def terminate(self) -> None:
        pids = self.links()
        if pids:
            self.server.rows(f"select pg_terminate_backend({self.rng.choice(pids)})")

    def crash(self) -> None:
        """A server process dies, and all others with it."""
        pids = self.links()
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(pids), signal.SIGKILL)

    def worker_pids(self) -> list[int]:
        others = ("pgpool -n", "monitor", "PCP")
        return [p for p in self.pool.pids() if (line := procs.command_line(p)) and not any(o in line for o in others)]

    def worker(self) -> None:
        pids = self.worker_pids()
        if pids:
            self.kill(self.rng.choice(pids))

    def workers(self) -> None:
        for pid in self.worker_pids():
            self.kill(pid)

    def kill(self, pid: int) -> None:
        self.killed_workers += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.killed_workers += 1  # whoever came meanwhile

    def admin(self) -> Wire:
        w = Wire(self.pool.address, seconds=20)
        if w.login(application_name="operator")[-1].type != "Z":
            raise WireClosed("not let in")
        return w

    def order(self, sql: str) -> list:
        with self.admin() as w:
            return w.simple(sql)

    def pause(self) -> None:
        """The order is given, and taken back by another one; whoever dies meanwhile."""
        with self.admin() as w, self.admin() as other:
            where = self.rng.choice(("", " postgres"))
            w.send(query("pgpool pause" + where))
            self.ending.wait(self.rng.random() * 0.05)
            other.simple("pgpool resume" + where)
            w.ready()

    def drain(self) -> None:
        with self.admin() as w, self.admin() as other:
            w.send(query("pgpool drain"))
            self.ending.wait(self.rng.random() * 0.05)
            other.simple("pgpool resume")

    def reconnect(self) -> None:
        self.order("pgpool reconnect")

    def kill_client(self) -> None:
        with self.admin() as w:
            found = [(m.row()[0], MARK.search(m.body)) for m in w.simple("show pool_clients") if m.type == "D"]
            hit = [i.decode() for i, mark in found if i and mark and int(mark.group(1)) % 2 == 0]
            if hit:
                w.simple(f"pgpool kill client {self.rng.choice(hit)}")

    def reload(self) -> None:
        self.pool.reload(**{k: self.rng.choice(v) for k, v in self.reloads.items()})

    def columns(self) -> None:
        self.server.rows("set lock_timeout = 200; " + self.rng.choice((
            "alter table chaos_c add column if not exists c int", "alter table chaos_c drop column if exists c",
            "alter table chaos_c drop column if exists b", "alter table chaos_c add column if not exists b text default 'two'",
            "alter table chaos_c alter column a type bigint", "alter table chaos_c alter column a type int")))

    def disturb(self, what: str) -> None:
        pause = random.Random(f"{self.seed} {what}")
        while not self.ending.wait(self.every[what] * 2 * pause.random()):
            try:
                getattr(self, what)()
                self.done[what] = self.done.get(what, 0) + 1
            except (OSError, WireClosed, AssertionError) as e:
                if isinstance(e, WireTimeout) or not (self.kills or what in ("columns", "pause", "drain")):
                    self.trouble = f"{what}: {e!r}" + self.what_goes_on()
                    self.ending.set()
                self.done[what + " failed"] = self.done.get(what + " failed", 0) + 1

    # ---- all of it

    def what_goes_on(self) -> str:
        told = [""]
        with contextlib.suppress(OSError, AssertionError, WireClosed):
            told.append("pg: " + repr(self.server.rows("select pid, state, wait_event, left(query, 60) from pg_stat_activity "
                                                       "where backend_type = 'client backend'")))
        for what in ("POOL_CLIENTS", "POOL_LINKS", "POOL_QUEUE", "POOL_LIMITS"):
            try:
                told.append(what + ": " + "\n    ".join(repr(m.row()) for m in self.order(f"show {what}") if m.type == "D"))
            except (OSError, WireTimeout, WireClosed) as e:
                told.append(f"{what}: {e!r}")
        return "\n  ".join(told) + "\n" + self.pool.log()[-3000:]

    def resume(self) -> bool:
        try:
            self.order("pgpool resume")
            self.order("pgpool resume postgres")
            return True
        except (OSError, WireClosed):
            return False

    def run(self, seconds: float) -> str:
        """A line of figures; fails when anything was not as it must be."""
        threads = [threading.Thread(target=self.disturb, args=(what,), daemon=True) for what in self.every]
        for t in (*self.clients, *threads):
            t.start()
        self.ending.wait(seconds)
        self.ending.set()
        for t in threads:
            t.join(60)
        waits.wait_for("nobody is held", self.resume)
        for c in self.clients:
            c.join(90)
        trouble = [c.trouble for c in self.clients if c.trouble] + ([self.trouble] if self.trouble else [])
        trouble += [f"client {c.number} does not end" for c in self.clients if c.is_alive()]
        assert not trouble, "\n".join(trouble)
        self.check_rest()
        self.check_writes()
        return (f"{sum(c.segments for c in self.clients)} answers, {sum(c.errors for c in self.clients)} errors, "
                f"{sum(c.session for c in self.clients)} sessions, {self.done}")

    def check_rest(self) -> None:
        waits.wait_for("nothing is open", lambda: not self.server.sessions("state not in ('idle')"))
        with self.admin() as w:
            def is_alone() -> bool:
                clients = [m for m in w.simple("show pool_clients") if m.type == "D"]
                waiting = [m for m in w.simple("show pool_queue") if m.type == "D"]
                return len(clients) == 1 and not waiting
            waits.wait_for("all clients are gone", is_alone)

    def check_writes(self) -> None:
        n = {r[0].decode(): int(r[1]) for r in self.server.rows("select who, n from chaos_n where n > 0")}
        m = {r[0].decode(): int(r[1]) for r in self.server.rows("select who, count(*) from chaos_w group by who")}
        for c in self.clients:
            for me, (least_n, most_n, least_m, most_m) in c.written.items():
                found = n.get(me, 0), m.get(me, 0)
                assert least_n <= found[0] <= most_n and least_m <= found[1] <= most_m, (
                    f"{me}: {found[0]} updates of {least_n} to {most_n}, {found[1]} rows of {least_m} to {most_m}")
