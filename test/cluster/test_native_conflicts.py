# SPDX-License-Identifier: PostgreSQL
"""Native replication: many clients who want the same rows in any order, who deadlock, wait, give up and cancel: all nodes end equal.
PGT_SECONDS and PGT_SEED as elsewhere."""
import os
import random
import threading
import time

import pytest

from pgt import wire as w
from pgt.native import one

SECONDS = int(os.environ.get("PGT_SECONDS", "600"))
ROWS = 12
# Who loses a conflict is told so; 57014: a cancel or a time-out of its own.
LOST = {"40P01", "40001", "55P03", "57014", "23505"}
# A row that was inserted in this moment: the main node has it, another one not yet, or the other way round. It is undone on all.
DELETES = "delete from t "
TOTAL = "select sum(amount) from accounts"


def transfer(rnd):
    a, b = rnd.sample(range(1, ROWS + 1), 2)
    n = rnd.randrange(1, 9)
    return ["begin", f"update accounts set amount = amount - {n} where id = {a}",
            f"update accounts set amount = amount + {n} where id = {b}", rnd.choice(["commit", "commit", "rollback"])]


def locking(rnd):
    ids = ",".join(str(i) for i in rnd.sample(range(1, ROWS + 1), 3))
    order = rnd.choice(["asc", "desc"])
    return ["begin", f"select amount from accounts where id in ({ids}) order by id {order} for update",
            f"update accounts set amount = amount where id in ({ids})", "insert into q (v) values (1)", "commit"]


def numbers(rnd):
    return [f"insert into q (v) select {rnd.randrange(100)} from generate_series(1, {rnd.randrange(1, 4)})"]


def keys(rnd):
    k = rnd.randrange(40)
    return [rnd.choice([f"insert into t (id, v) values ({k}, now()::text)", f"{DELETES}where id = {k}",
                        f"insert into t (id) values ({k}) on conflict (id) do update set v = clock_timestamp()::text"])]


def quick(rnd):
    """It gives up before it has its rows."""
    return ["begin", f"set local lock_timeout = '{rnd.randrange(1, 20)}ms'", *transfer(rnd)[1:3], "commit"]


def ext(c, sql):
    c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC)
    return c.ready(seconds=90)


class Crowd:
    def __init__(self, it, clients, seconds, seed):
        self.it, self.seed, self.until = it, seed, time.monotonic() + seconds
        self.done, self.lost, self.errors = [0] * clients, {}, []
        self.threads = [threading.Thread(target=self.lives, args=(k,)) for k in range(clients)]

    def lives(self, k):
        rnd = random.Random(f"{self.seed} {k}")
        try:
            with self.it.client() as c:
                while (time.monotonic() < self.until or self.done[k] == 0) and not self.errors:
                    self.works(c, rnd)
                    self.done[k] += 1
        except Exception as e:  # told by whoever waits for the threads
            self.errors.append(repr(e))

    def works(self, c, rnd):
        for sql in rnd.choice([transfer, transfer, locking, numbers, keys, quick])(rnd):
            got = ext(c, sql) if rnd.random() < 0.3 else c.simple(sql, seconds=90)
            bad = [m for m in got if m.type == "E"]
            if not bad:
                continue
            assert bad[0].sqlstate in LOST or (bad[0].sqlstate == "XX001" and sql.startswith(DELETES)), (sql, bad[0].text)
            self.lost[bad[0].sqlstate] = self.lost.get(bad[0].sqlstate, 0) + 1
            if got[-1].body == b"E":
                one(c, "rollback")
            return

    def run(self):
        for t in self.threads:
            t.start()
        for t in self.threads:
            t.join()
        assert not self.errors, self.errors[:3]
        assert min(self.done) > 0


@pytest.mark.parametrize("clients, seconds", [
    (16, 2), pytest.param(64, SECONDS, marks=[pytest.mark.slow, pytest.mark.timeout(SECONDS + 300)])])
def test_all_end_equal(pair, clients, seconds):
    it = pair(3, num_init_children=2, log_min_messages="warning", conf_of_nodes={"log_statement": "none", "deadlock_timeout": "200ms"})
    crowd = Crowd(it, clients, seconds, seed := os.environ.get("PGT_SEED", "1"))
    crowd.run()
    print(f"seed {seed}: {sum(crowd.done)} transactions, lost {crowd.lost}")
    assert it.equal() and it.nodes[2].value(TOTAL) == "2000"
    assert [r[3] for r in it.status()] == ["up"] * 3
    if seconds > 60:
        assert crowd.lost.get("40P01"), "no deadlock was seen"


def shares(rnd):
    return rnd.choice([["insert into a (v) values (1)"], ["insert into b (v) values (2), (3)"], ["select nextval('shared')"],
                       ["begin", "select nextval('shared'::regclass)", "insert into a (v) values (4)", "commit"],
                       ["insert into b (v) select i from generate_series(1, 3) i"], ["insert into same (v) values (5)"]])


class Sharers(Crowd):
    def works(self, c, rnd):
        for sql in shares(rnd):
            got = ext(c, sql) if rnd.random() < 0.5 else c.simple(sql, seconds=90)
            bad = [m for m in got if m.type == "E"]
            assert not bad or bad[0].sqlstate == "40P01", (sql, bad[0].text)
            if bad:
                if got[-1].body == b"E":
                    one(c, "rollback")
                return


def test_a_sequence_of_several_tables(pair):
    """Who takes its numbers at the same time, by whichever table or none, takes the same ones on all nodes."""
    it = pair(2, num_init_children=2, log_min_messages="warning", conf_of_nodes={"log_statement": "none", "deadlock_timeout": "200ms"})
    with it.client() as c:
        one(c, "create sequence shared; create table a (id int primary key default nextval('shared'), v int); "
               "create table b (id int primary key default nextval('shared'), v int); "
               "create table same (id int generated by default as identity, v int)")
    Sharers(it, 12, 3, os.environ.get("PGT_SEED", "1")).run()
    assert it.equal(tables=("a", "b", "same"))
    assert len({n.value("select last_value from shared") for n in it.nodes}) == 1
    with it.client() as c:
        one(c, "set my.x = '1'; /*NO INSERT LOCK*/ insert into a (v) values (1)")
        assert [m.type for m in ext(c, "select nextval('shared')")] == ["1", "2", "D", "C", "Z"]
        c.send(w.parse("select nextval($1)"), w.bind(["shared"]), w.execute(), w.SYNC)
        assert [m.text for m in c.ready() if m.type == "N"] == ['the result of "nextval" may differ between nodes']
        assert it.equal(tables=("a", "b", "same"))
