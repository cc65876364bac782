# SPDX-License-Identifier: PostgreSQL
"""crowd: writers, readers and idle sessions that go on whatever happens, and write down what they saw:
what was acknowledged and when, every error, every gap."""
import threading
import time
from dataclasses import dataclass, field

from pgt.wire import Address, Wire, WireClosed, WireTimeout

TABLE = """create table if not exists crowd (id bigint primary key, port int not null, timeline text not null,
 at timestamptz not null default clock_timestamp())"""
WRITE = ("insert into crowd (id, port, timeline) values ({id}, current_setting('port')::int, "
         "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)) returning port, timeline")
READ = "select count(*), current_setting('port') from crowd where id = {id}"
IDS_PER_WRITER = 10_000_000
RETRY_S = 0.02


@dataclass
class Done:
    """One statement that was acknowledged."""
    id: int
    begun: float
    ended: float
    port: str
    timeline: str


@dataclass
class Failed:
    at: float
    text: str
    is_lost: bool  # the connection is gone


@dataclass
class Tally:
    done: list[Done] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    refused: int = 0  # connections that could not be made


class Client(threading.Thread):
    """Runs one statement after the other; opens a new connection when the old one is gone."""

    def __init__(self, address: Address, number: int, pause_s: float, seconds: float):
        super().__init__(daemon=True)
        self.address, self.number, self.pause_s, self.seconds = address, number, pause_s, seconds
        self.tally = Tally()
        self.ending = threading.Event()
        self.wire: Wire | None = None
        self.count = 0

    def statement(self) -> tuple[int, str]:
        raise NotImplementedError

    def _connect(self) -> bool:
        wire = None
        try:
            wire = Wire(self.address, seconds=self.seconds)
            if wire.login()[-1].type == "Z":
                self.wire = wire
                return True
        except (OSError, WireClosed, WireTimeout):
            pass
        if wire is not None:
            wire.bye()
        self.tally.refused += 1
        return False

    def _fail(self, text: str, is_lost: bool) -> None:
        self.tally.failed.append(Failed(time.monotonic(), text, is_lost))
        if is_lost and self.wire is not None:
            self.wire.sock.close()
            self.wire = None

    def _run_one(self) -> None:
        assert self.wire is not None
        number, sql = self.statement()
        begun = time.monotonic()
        try:
            found = self.wire.simple(sql)
        except (OSError, WireClosed, WireTimeout) as e:
            self._fail(f"{type(e).__name__}: {e}", True)
            return
        errors = [m for m in found if m.type == "E"]
        if errors:
            fields = errors[0].fields
            self._fail(f"{fields.get('C')} {fields.get('M')}", False)
            return
        row = [("" if v is None else v.decode()) for m in found if m.type == "D" for v in m.row()]
        self.tally.done.append(Done(number, begun, time.monotonic(), *self.look(row)))

    def look(self, row: list[str]) -> tuple[str, str]:
        raise NotImplementedError

    def run(self) -> None:
        while not self.ending.is_set():
            if self.wire is None and not self._connect():
                self.ending.wait(RETRY_S)
                continue
            self._run_one()
            self.ending.wait(self.pause_s)
        if self.wire is not None:
            self.wire.bye()


class Writer(Client):
    def statement(self) -> tuple[int, str]:
        self.count += 1
        number = self.number * IDS_PER_WRITER + self.count
        return number, WRITE.format(id=number)

    def look(self, row: list[str]) -> tuple[str, str]:
        return row[0], row[1]


class Reader(Client):
    """Reads a row that may or may not be there: any answer is one."""

    def statement(self) -> tuple[int, str]:
        self.count += 1
        return self.count, READ.format(id=self.count)

    def look(self, row: list[str]) -> tuple[str, str]:
        return row[1], ""


class Teller(Client):
    """Writes a row and reads how many it wrote, in turn: a session sees what it has written, and what it has seen
    never goes back. `wrong` says where that did not hold."""

    def __init__(self, *args):
        super().__init__(*args)
        self.least = 0  # what this session must see
        self.is_write = False
        self.nreads = 0
        self.wrong: list[str] = []

    def _connect(self) -> bool:
        self.least = 0
        return super()._connect()

    def statement(self) -> tuple[int, str]:
        self.is_write = not self.is_write
        low = self.number * IDS_PER_WRITER
        if not self.is_write:
            return low, f"select count(*), current_setting('port') from crowd where id > {low} and id <= {low + self.count}"
        self.count += 1
        return low + self.count, WRITE.format(id=low + self.count)

    def look(self, row: list[str]) -> tuple[str, str]:
        if self.is_write:
            self.least += 1
            return row[0], row[1]
        seen = int(row[0])
        self.nreads += 1
        if seen < self.least:
            self.wrong.append(f"teller {self.number} saw {seen} rows at port {row[1]}, and must see {self.least}")
        self.least = max(self.least, seen)
        return row[1], ""


class Watcher(Client):
    """Only reads, where it is sent to (read_consistency = global): it sees all that was acknowledged to anybody before, and
    what it saw on a standby does not go back on another one. (The primary may lack a moment longer what a standby shows
    already: there it waits for the acknowledgement of the standby.) `wrong` says where that did not hold."""

    def __init__(self, *args):
        super().__init__(*args)
        self.watched: list[Client] = []
        self.floor = self.least = self.nreads = self.nstandby = 0
        self.wrong: list[str] = []

    def statement(self) -> tuple[int, str]:
        self.floor = sum(len(w.tally.done) for w in self.watched)
        self.count += 1
        return self.count, (f"select count(*), current_setting('port'), current_setting('in_hot_standby') from crowd "
                            f"where id < {100 * IDS_PER_WRITER}")

    def look(self, row: list[str]) -> tuple[str, str]:
        seen, least = int(row[0]), self.least if row[2] == "on" else 0
        self.nreads += 1
        if seen < max(self.floor, least):
            self.wrong.append(f"watcher {self.number} saw {seen} rows at port {row[1]}; {self.floor} were acknowledged, "
                              f"it had seen {least}")
        if row[2] == "on":
            self.nstandby += 1
            self.least = max(self.least, seen)
        return row[1], ""


class Crowd:
    def __init__(self, address: Address, writers: int = 4, readers: int = 4, idle: int = 0, pause_s: float = 0.005,
                 seconds: float = 30, tellers: int = 0, watchers: int = 0):
        self.address = address
        self.watchers = [Watcher(address, 200 + i, pause_s, seconds) for i in range(watchers)]
        self.tellers = [Teller(address, 100 + i, pause_s, seconds) for i in range(tellers)]
        self.writers = [Writer(address, i + 1, pause_s, seconds) for i in range(writers)]
        self.readers = [Reader(address, i + 1, pause_s, seconds) for i in range(readers)]
        for watcher in self.watchers:
            watcher.watched = [*self.writers]
        self.idle: list[Wire] = []
        for _ in range(idle):
            wire = Wire(address, seconds=seconds)
            assert wire.login()[-1].type == "Z"
            assert wire.rows("select 1") == [[b"1"]]
            self.idle.append(wire)

    def everybody(self) -> list[Client]:
        return [*self.writers, *self.readers, *self.tellers, *self.watchers]

    def start(self) -> None:
        for client in self.everybody():
            client.start()

    def stop(self) -> None:
        for client in self.everybody():
            client.ending.set()
        for client in self.everybody():
            client.join(120)
            assert not client.is_alive(), "a client hangs"

    def idle_alive(self) -> int:
        """How many idle sessions still answer, on the connection they have."""
        alive = 0
        for wire in self.idle:
            try:
                alive += wire.rows("select 1") == [[b"1"]]
            except (OSError, WireClosed, WireTimeout, AssertionError):
                pass
            wire.bye()
        return alive

    def acknowledged(self) -> list[Done]:
        return sorted((d for w in self.writers + self.tellers for d in w.tally.done if d.timeline), key=lambda d: d.ended)

    def errors(self, clients: list[Client]) -> list[Failed]:
        return sorted((f for c in clients for f in c.tally.failed), key=lambda f: f.at)


def longest_gap(done: list[Done], since: float, until: float) -> float:
    """The longest time without an answer between two moments."""
    moments = [since, *(d.ended for d in done if since < d.ended < until), until]
    return max(b - a for a, b in zip(moments, moments[1:]))


def two_primaries(done: list[Done]) -> str:
    """Why the acknowledged writes cannot come from one primary after the other; "" when they can."""
    port_of: dict[str, str] = {}
    for d in done:
        if port_of.setdefault(d.timeline, d.port) != d.port:
            return f"timeline {d.timeline} was written by ports {port_of[d.timeline]} and {d.port}"
    first_of: dict[str, float] = {}
    for d in done:
        first_of[d.timeline] = min(first_of.get(d.timeline, d.ended), d.ended)
    for d in done:
        for timeline, at in first_of.items():
            # It was begun after a newer timeline had already acknowledged something.
            if int(timeline, 16) > int(d.timeline, 16) and d.begun > at:
                return f"id {d.id} went to timeline {d.timeline}, {d.begun - at:.3f} s after timeline {timeline} had begun"
    return ""
