# SPDX-License-Identifier: PostgreSQL
"""Native replication: a write that chooses its rows by what they hold meets on all nodes what it met on the main one, whoever commits
in that moment (decisions/0034). PGT_SEED as elsewhere."""
import os
import signal

import pytest

from pgt import waits
from pgt import wire as w
from pgt.native import error_of, one

TAKES = "update jobs set who = 1 where who is null and waits()"
BY = {
    "simple": lambda c, sql: c.send(w.query(sql)),
    "extended": lambda c, sql: c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC),
    "transaction": lambda c, sql: (one(c, "begin"), c.send(w.query(sql))),
}


def lock_of(node, key):
    lock = w.Wire(node.address)
    lock.login()
    one(lock, f"select pg_advisory_lock({key})")
    return lock


def is_waiting(node):
    return lambda: node.rows("select 1 from pg_stat_activity where wait_event = 'advisory'")


def reasons(it):
    with it.client() as c:
        return sorted(r[-1].decode() for r in c.rows("show pool_queue"))


class Setting:
    """Job 1000 is committed on the main node, and on the other one when `late` goes; who takes jobs does so on the main node when
    `first` goes, by what it saw when it came."""

    def __init__(self, pair, **conf):
        self.it = pair(2, **conf)
        self.main, self.other = self.it.nodes
        with self.it.client() as c:
            one(c, "create table jobs (id int primary key, who int, n int default 0)")
            one(c, "insert into jobs values (5, 5)")
            one(c, f"create function waits() returns bool language plpgsql as $$ begin if current_setting('port') = '{self.main.port}' then "
                   "perform pg_advisory_xact_lock_shared(1); end if; return true; end $$")
            one(c, f"create function late() returns trigger language plpgsql as $$ begin if current_setting('port') = '{self.other.port}' then "
                   "perform pg_advisory_xact_lock_shared(2); end if; return null; end $$")
            one(c, "create constraint trigger late after insert on jobs deferrable initially deferred for each row "
                   "when (new.id = 1000) execute function late()")

    def commits(self, c):
        self.late = lock_of(self.other, 2)
        c.send(w.query("insert into jobs values (1000)"))
        waits.wait_for("it commits", is_waiting(self.other))

    def chooses(self, c, by="simple"):
        self.first = lock_of(self.main, 1)
        BY[by](c, TAKES)
        waits.wait_for("it has seen the job", is_waiting(self.main))

    def holds(self):
        return [[row[0] for row in rows] for rows in self.it.everywhere("select id || ' ' || coalesce(who, 0) from jobs where id >= 1000 order by id")]


def done(c, by, got):
    if by == "transaction":
        one(c, "commit")
    return [m.body for m in got if m.type == "C"]


def waits_behind(it):
    waits.wait_for("it waits for the commit", lambda: reasons(it) == ["snapshot"])


@pytest.mark.parametrize("by", BY)
def test_what_it_saw_is_there_before_it_comes(pair, by):
    """Else the other node has no such row, and it fails."""
    s = Setting(pair)
    with s.it.client() as a, s.it.client() as t:
        s.commits(a)
        s.chooses(t, by)
        s.first.bye()
        waits_behind(s.it)
        s.late.bye()
        assert done(t, by, t.ready(seconds=60)) == [b"UPDATE 1\0"]
        a.ready(seconds=60)
    assert s.holds() == [[b"1000 1"]] * 2


@pytest.mark.parametrize("by", BY)
def test_another_row_for_this_one(pair, by):
    """What came meanwhile makes up for it in number: they were equal, and the rows were not."""
    s = Setting(pair)
    with s.it.client() as a, s.it.client() as b, s.it.client() as t:
        one(b, "begin; insert into jobs values (1001)")
        s.commits(a)
        s.chooses(t, by)
        one(b, "commit")  # on all; not seen on the main node
        s.first.bye()
        waits_behind(s.it)
        s.late.bye()
        a.ready(seconds=60)
        got = t.ready(seconds=60)
        assert error_of(got).sqlstate == "XX001"
        if by == "transaction":
            one(t, "rollback")
    assert s.holds() == [[b"1000 0", b"1001 0"]] * 2


def test_what_is_known_by_its_key_waits_for_nobody(pair):
    s = Setting(pair)
    with s.it.client() as a, s.it.client() as t:
        s.commits(a)
        for sql in ("update jobs set n = n + 1 where id = 5", "delete from jobs where id = 6", "insert into t (id) values (1)"):
            one(t, sql)
        t.send(w.parse("update jobs set n = 7 where jobs.id = $1"), w.bind(["5"]), w.execute(), w.SYNC)
        assert [m.body for m in t.ready() if m.type == "C"] == [b"UPDATE 1\0"]
        s.late.bye()
        a.ready(seconds=60)
    assert s.it.equal(tables=("jobs", "t"))


def test_it_has_a_limit(pair):
    """Whose commit hangs may wait for who waits for it."""
    s = Setting(pair, replication_lock_timeout="1s")
    with s.it.client() as a, s.it.client() as t:
        s.commits(a)
        got = t.simple("update jobs set n = n + 1 where n >= 0 and id < 1000", seconds=60)
        assert [m.type for m in got] == ["N", "C", "Z"] and "takes long" in got[0].text
        s.late.bye()
        a.ready(seconds=60)
    assert s.it.equal(tables=("jobs",))


@pytest.mark.parametrize("by", BY)
def test_it_is_cancelled(pair, by):
    """Nothing of it is done anywhere, and its client goes on."""
    s = Setting(pair, replication_lock_timeout="300s")
    with s.it.client() as a, s.it.client() as t:
        s.commits(a)
        s.chooses(t, by)
        s.first.bye()
        waits_behind(s.it)
        w.cancel(s.it.pool.address, t.pid, t.key)
        got = t.ready(seconds=60)
        assert error_of(got).sqlstate == "57014" and "C" not in [m.type for m in got]
        if by == "transaction":
            assert got[-1].body == b"E"
            one(t, "rollback")
        s.late.bye()
        a.ready(seconds=60)
        one(t, "update jobs set n = n + 1 where id = 5")
    assert s.holds() == [[b"1000 0"]] * 2 and s.it.equal(tables=("jobs",))


def worker_of(it, c, mark):
    one(c, f"select {mark}")
    return int(it.pool.log().split(f'"select {mark}"')[-2].rsplit("child pid ", 1)[1].split(":")[0])


def of_both(it):
    """Two clients, each of another worker, and the workers."""
    found = {}
    while len(found) < 2:
        c = it.client()
        found.setdefault(worker_of(it, c, 7000 + len(found)), c)
    return found


@pytest.mark.parametrize("who", ["waits", "commits", "worker"])
def test_somebody_goes(pair, who):
    """The client that waits; the one that commits, which goes on without it; the worker of that one."""
    s = Setting(pair, num_init_children=2, replication_lock_timeout="300s")
    (worker, a), (_, t) = of_both(s.it).items()
    s.commits(a)
    t.send(w.query("update jobs set n = n + 1 where n >= 0 and id < 1000"))
    waits_behind(s.it)
    if who == "waits":
        t.reset()
        waits.wait_for("it is gone", lambda: reasons(s.it) == [])
        t = s.it.client()
        t.send(w.query("update jobs set n = n + 1 where n >= 0 and id < 1000"))
        waits_behind(s.it)
        s.late.bye()
    elif who == "commits":
        a.reset()
        s.late.bye()
    else:
        os.kill(worker, signal.SIGKILL)
    assert [m.type for m in t.ready(seconds=60)] == ["C", "Z"]
    if who == "worker":
        s.late.bye()
    assert [r[0] for r in s.it.everywhere("select n from jobs where id = 5")] == [[b"1"]] * 2
