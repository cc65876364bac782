# SPDX-License-Identifier: PostgreSQL
"""test_review_last_word: a server connection is cut between CommandComplete and ReadyForQuery. What is certain by then is
not followed by an error: a simple query is committed before its last CommandComplete, a COMMIT in both protocols, and a
read has nothing to commit. What is not certain is."""
import struct
import sys
from pathlib import Path

import pytest

from pgt import relay, waits
from pgt.wire import SYNC, Wire, bind, execute, parse, query

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
from test_monitor import PERIOD, Trio, wait_settled  # noqa: E402  pylint: disable=wrong-import-position

READY = b"Z\0\0\0\5"
COPY_REST = b"d\0\0\0\6x\n" + b"c\0\0\0\4"


class Shears(relay.Relay):
    """Cuts the connection in front of the ReadyForQuery that follows the armed tag."""

    tag = b""

    def _forward(self, one, other) -> None:
        try:
            data = one.recv(relay.CHUNK)
            needle = struct.pack("!cI", b"C", len(Shears.tag) + 5) + Shears.tag + b"\0" + READY
            at = data.find(needle) if Shears.tag else -1
            if at != -1:
                other.sendall(data[:at + len(needle) - len(READY)])
                Shears.tag = b""
            elif data:
                other.sendall(data)
                return
        except OSError:
            pass
        self._close(one, other)


@pytest.fixture(scope="module")
def cluster():
    it = Trio(0)
    it.keep_in_step()
    it.primary.rows("create table said(a int)")
    it.shears = [Shears("127.0.0.2", node.address) for node in it.nodes]
    yield it
    for one in it.shears:
        one.close()
    it.stop()


def kinds(found) -> list[str]:
    return [m.fields["C"] if m.type == "E" else m.type for m in found if m.type != "S"]


INSERT, READ = "insert into said values ({n})", "select {n} from (values (1),(2),(3),(4),(5),(6),(7)) as v(a)"
# tag, what is sent, what comes, the state told, rows that are there
CUTS = {
    "simple_write": (b"INSERT 0 1", query(INSERT), "C Z", "I", 1),
    "simple_read": (b"SELECT 7", query(READ), "T D D D D D D D C Z", "I", None),
    "simple_set": (b"SET", query("set work_mem = '7{n}kB'"), "C Z", "I", None),
    "string": (b"INSERT 0 1", query(f"select 1; {INSERT}"), "T D C C 08006 Z", "I", None),
    "extended_read": (b"SELECT 7", parse(READ) + bind() + execute() + SYNC, "1 2 D D D D D D D C Z", "I", None),
    "extended_write": (b"INSERT 0 1", parse(INSERT) + bind() + execute() + SYNC, "1 2 C 08006 Z", "I", None),
}
IN_TX = {
    "commit": (b"COMMIT", query("commit"), "C Z", "I", 1),
    "rollback": (b"ROLLBACK", query("rollback"), "C Z", "I", 0),
    "extended_commit": (b"COMMIT", parse("commit") + bind() + execute() + SYNC, "1 2 C Z", "I", 1),
    "write": (b"INSERT 0 1", query(INSERT), "C 08006 Z", "E", 0),
}


def check(cluster, w: Wire, n: int, name: str, cut) -> None:
    tag, message, wanted, status, rows = cut
    Shears.tag = tag
    w.send(message.replace(b"{n}", b"%d" % n))
    found = w.ready()
    assert kinds(found) == wanted.split(), name
    assert not Shears.tag, f"{name}: nothing was cut"
    assert found[-1].body.decode() == status, name
    if found[-1].body == b"E":
        w.rows("rollback")
    if rows is not None:
        assert int(cluster.primary.value(f"select count(*) from said where a = {n}")) == rows, name


def lost_while_it_is_restored(cluster, pool, w: Wire) -> None:
    """The new server connection dies, too, as it gets the session's settings: the next one serves."""
    for sql, wanted in (("insert into said values (2)", "C Z"), ("select 1", "08006 Z")):
        w.rows("set my.own = 'kept'")
        if wanted != "C Z":
            w.rows("begin")
        pid = w.value("select pg_backend_pid()")
        Shears.tag = b"SET"
        seen = len(pool.log())
        cluster.primary.rows(f"select pg_terminate_backend({pid})")
        waits.wait_for("pgpool knows", lambda: "goes on without its server connection" in pool.log()[seen:])
        assert kinds(w.simple(sql)) == wanted.split()
        if wanted != "C Z":
            assert kinds(w.simple("select 2")) == ["25P02", "Z"]
            w.rows("rollback")
        assert not Shears.tag, "nothing was cut"
        assert w.value("select current_setting('my.own')") == "kept"
    w.rows("begin")
    pid = w.value("select pg_backend_pid()")
    seen = len(pool.log())
    cluster.primary.rows(f"select pg_terminate_backend({pid})")
    waits.wait_for("pgpool knows", lambda: "goes on without its server connection" in pool.log()[seen:])
    message = bind(["x" * 100])
    w.send(message[:50])
    assert kinds(w.read_until("E")) == ["08006"], "told by the first part of a message"
    w.send(message[50:] + SYNC)
    assert kinds(w.ready()) == ["Z"]
    assert kinds(w.simple("select 2")) == ["25P02", "Z"]
    w.rows("rollback")
    w.rows("begin")
    pid = w.value("select pg_backend_pid()")
    seen = len(pool.log())
    cluster.primary.rows(f"select pg_terminate_backend({pid})")
    waits.wait_for("pgpool knows", lambda: "goes on without its server connection" in pool.log()[seen:])
    w.send(COPY_REST + query("select 3"))  # what is left of a COPY is not what the error is told to
    assert kinds(w.ready()) == ["08006", "Z"]
    w.rows("rollback")


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_cut_in_front_of_ready(cluster, start_pool, mode):
    names = {f"backend_application_name{i}": f"node{i}" for i in range(3)}
    pool = start_pool(*[one.address for one in cluster.shears], load_balance_mode=True, num_init_children=1, pool_mode=mode,
                      backend_weight0=0, backend_weight1=1, backend_weight2=0, **{**PERIOD, **names})
    wait_settled(pool, 0)
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    n = 100 if mode == "session" else 500
    for name, cut in CUTS.items():
        n += 1
        check(cluster, w, n, name, cut)
        if name == "simple_set":
            assert w.value("show work_mem") == f"7{n}kB"
    for name, cut in IN_TX.items():
        n += 1
        w.rows("begin")
        w.rows(f"set my.own = 'tx {n}'")
        if name != "write":
            w.rows(f"insert into said values ({n})")
        check(cluster, w, n, name, cut)
        assert (w.value("select current_setting('my.own', true)") == f"tx {n}") == (cut[0] == b"COMMIT"), name
        w.rows("reset my.own")
    if mode == "session":
        w.rows("begin")
        w.rows("insert into said values (90)")
        Shears.tag = b"COMMIT"
        w.send(query("commit") + query("insert into said values (91)"))
        assert [(kinds(found), found[-1].body) for found in (w.ready(), w.ready())] == \
            [(["C", "Z"], b"I"), (["08006", "Z"], b"I")]
        assert cluster.primary.value("select count(*) from said where a = 90") == "1"
        assert kinds(w.simple("insert into said values (92)")) == ["C", "Z"]
        # The end of a failed transaction, pipelined behind the error: whatever was set is undone, and it is over.
        w.rows("begin")
        w.rows("reset all")
        Shears.tag = b"ROLLBACK"
        w.send(*(parse(sql) + bind() + execute() + SYNC for sql in ("select 1 / a from (values (0)) as v(a)", "commit")))
        assert [(kinds(found)[-2:], found[-1].body) for found in (w.ready(), w.ready())] == \
            [(["22012", "Z"], b"E"), (["C", "Z"], b"I")]
        lost_while_it_is_restored(cluster, pool, w)
    w.bye()
    w = Wire(pool.address, seconds=20)  # one that does not avoid the standby
    assert w.login()[-1].type == "Z"
    if mode == "transaction":
        w.rows("begin")
        check(cluster, w, n + 1, "a read that left", (b"SELECT 7", query(READ), "T D D D D D D D C Z", "T", None))
        w.rows("insert into said values (1)")
        w.rows("commit")
    w.bye()


def test_single_server(pg, start_pool):
    """Without load balancing, what was read before the cut is judged by its text."""
    one = Shears("127.0.0.2", pg.address)
    pg.rows("drop table if exists said; create table said(a int)")
    pool = start_pool(one.address, num_init_children=1, pool_mode="transaction")
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"

    class Here:
        primary = pg
    for n, (name, cut) in enumerate(CUTS.items(), 900):
        check(Here, w, n, name, cut)
    # What all of this relies on: the commit comes in front of CommandComplete, or behind it.
    pg.rows("drop table if exists later; create table later(a int unique deferrable initially deferred)")
    late = "insert into later values (1), (1)"
    assert kinds(w.simple(late)) == ["23505", "Z"]
    w.send(parse(late), bind(), execute(), SYNC)
    assert kinds(w.ready()) == ["1", "2", "C", "23505", "Z"]
    w.bye()
    one.close()
