# SPDX-License-Identifier: PostgreSQL
"""COPY FROM STDIN in native replication: the rows are on all nodes and equal, or on none."""
import signal
import subprocess
import threading

import psycopg
import pytest
from pgt import postgres, waits
from pgt import wire as w
from pgt.native import error_of, one


def copy(c, sql, *parts, end=None):
    """Runs a COPY, its data in the given pieces."""
    c.send(w.query(sql))
    got = c.read_until("G", "Z")
    if got[-1].type == "Z":
        return got
    c.send(*[w.copy_data(p) for p in parts], end or w.message("c"))
    return got + c.ready()


def fine(got):
    assert not [m for m in got if m.type == "E"], [m.text for m in got if m.type == "E"]
    return got


def test_rows_are_everywhere(pair):
    it = pair(3)
    with it.client() as c:
        got = fine(copy(c, "copy t (id, v, u) from stdin", b"1\ta\t\\N\n2\tb", b"\\\n\t\\N\n3\t\\N\t\\N\n"))
        assert [m.type for m in got] == ["G", "C", "Z"] and got[1].body == b"COPY 3\0" and got[-1].body == b"I"
        assert len({r[0][0] for r in it.everywhere("select string_agg(at::text, ',' order by id) from t")}) == 1
        assert it.nodes[2].value("select count(distinct at) from t") == "1", "it is filled in"
        fine(copy(c, "copy t (v, id, u) from stdin with (format csv, header)", b'v,id,u\n"x\ny",4,\n', b'"""",5,\nz,6,'))
        fine(copy(c, "copy q (v) from stdin", b"".join(b"%d\n" % i for i in range(500))))
        one(c, "begin")
        fine(copy(c, "copy t (id, u) from stdin", b"7\t\\N\n"))
        assert c.rows("select count(*) from t") == [[b"7"]]
        one(c, "rollback")
        got = copy(c, "select 1; copy t (id, u) from stdin; select 2", b"8\t\\N\n")
        assert [m.type for m in got] == ["T", "D", "C", "G", "C", "T", "D", "C", "Z"], got
        it.equal()
        assert [r[0][0] for r in it.everywhere("select count(*) from t")] == [b"7"] * 3


def test_copies_that_fail_leave_nothing(pair):
    it = pair()
    with it.client() as c:
        one(c, "insert into t (id) values (5)")
        assert error_of(copy(c, "copy t (id, u) from stdin", b"1\t\\N\n", b"x\t\\N\n")).sqlstate == "22P02"
        assert error_of(copy(c, "copy t (id, u) from stdin", b"1\t\\N\n5\t\\N\n")).sqlstate == "23505"
        assert error_of(copy(c, "copy t (id, u) from stdin", b"1\t\\N\n", end=w.copy_fail("no"))).sqlstate == "57014"
        assert error_of(copy(c, "copy nowhere from stdin")).sqlstate == "42P01"
        one(c, "begin")
        got = copy(c, "copy t (id, u) from stdin", b"5\t\\N\n")
        assert error_of(got).sqlstate == "23505" and got[-1].body == b"E"
        assert error_of(c.simple("select 1")).sqlstate == "25P02"
        one(c, "rollback")
        c.send(w.query("copy t (id, u) from stdin"), *[w.copy_data(b"x\t\\N\n")] * 9, w.message("c"))
        assert [m.type for m in c.ready()] == ["G", "E", "Z"]
        one(c, "insert into t (id) values (6)")
        it.equal()
        assert it.nodes[1].value("select count(*) from t") == "2"


def test_one_node_cannot_copy(pair):
    it = pair()
    with it.client() as c:
        it.nodes[1].rows("insert into accounts values (77, 1)")
        c.send(w.query("copy accounts from stdin"))
        c.read_until("G")
        c.send(w.copy_data(b"76\t1\n77\t1\n78\t1\n"), w.message("c"))
        assert "kind mismatch" in error_of(c.read_eof()).text
    assert it.nodes[0].value("select count(*) from accounts where id > 50") == "0"
    assert it.nodes[1].value("select count(*) from accounts where id > 50") == "1"
    with it.client() as c:
        it.nodes[1].rows("delete from accounts where id = 77; create table here (i int)")
        got = copy(c, "copy here from stdin", b"1\n")
        assert error_of(got).sqlstate == "42P01", "the main node has no such table"
        it.nodes[1].rows("drop table here")
        it.nodes[0].rows("create table here (i int)")
        c.send(w.query("copy here from stdin"))
        assert error_of(c.ready()).sqlstate == "42P01"
        one(c, "insert into q (v) values (1)")
        it.equal()


def test_what_cannot_be_filled_in(pair):
    it = pair(replication_nondeterministic="error")
    with it.client() as c:
        assert error_of(copy(c, "copy t (id) from stdin", b"1\n")).sqlstate == "0A000", "a uuid for each row"
        assert error_of(copy(c, "copy t (id, u) from stdin (format binary)")).sqlstate == "0A000"
        one(c, "create table b (i int, j int)")
        head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
        row = b"\0\2" + b"\0\0\0\4\0\0\0\5" * 2
        fine(copy(c, "copy b from stdin binary", head + row, row + b"\xff\xff"))
        c.send(w.parse("copy b from stdin"), w.bind(portal="p"), w.execute("p"), w.SYNC)
        assert error_of(c.ready()).sqlstate == "0A000"
        it.equal(tables=("t", "q", "b"))


def again(does):
    """What takes a number behind a COPY that was broken off may be told to do it again, once: other nodes had read more of its data."""
    got = does()
    if [m for m in got if m.type == "E"]:
        assert error_of(got).sqlstate == "40001"
        got = does()
    return got


def test_who_goes_amid_a_copy(pair):
    """The client, a node, a cancel: nothing of it stays."""
    it = pair(3)
    with it.client() as c:
        c.send(w.query("copy q (v) from stdin"))
        c.read_until("G")
        c.send(w.copy_data(b"1\n2\n"))
        c.reset()
    with it.client() as c:
        c.send(w.query("copy accounts (id) from stdin"))
        c.read_until("G")
        w.cancel(it.pool.address, c.pid, c.key)
        while c.is_quiet(0.05):  # a server looks for it when data comes
            c.send(w.copy_data(b"101\n"))
        assert error_of(c.ready()).sqlstate == "57014"
        assert not [m for m in again(lambda: c.simple("insert into q (v) values (5)")) if m.type == "E"]
        c.send(w.query("copy q (v) from stdin"))
        c.read_until("G")
        c.send(w.copy_data(b"1\n2\n"))
        it.nodes[2].stop(signal.SIGKILL)
        got = c.ready()
        assert error_of(got).sqlstate == "40000"
        waits.wait_for("node 2 is down", lambda: it.status()[2][3] == "down")
        fine(again(lambda: copy(c, "copy q (v) from stdin", b"7\n")))
    assert [n.value("select string_agg(v::text, ',' order by v) from q") for n in it.nodes[:2]] == ["5,7"] * 2
    it.equal(it.nodes[:2])


def run(it, program, *args, **kw):
    address = it.pool.address
    done = subprocess.run([str(postgres.client(program)), "-h", address.host, "-p", str(address.port), "-U", "postgres", *args],
                          capture_output=True, timeout=300, check=False, **kw)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


def test_programs(pair, tmp_path):
    """pgbench -i and its TPC-B, psql's \\copy, pg_dump and pg_restore, psycopg's copy."""
    it = pair(load_balance_mode=False)
    run(it, "pgbench", "-i", "-s", "2", "-q", "postgres")
    run(it, "pgbench", "-i", "-s", "1", "-q", "-I", "dtgvpf", "postgres")
    run(it, "pgbench", "-n", "-c", "4", "-t", "50", "postgres")
    run(it, "pgbench", "-n", "-c", "4", "-t", "30", "-M", "prepared", "postgres")
    tables = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")
    it.equal(tables=tables)
    assert it.nodes[1].value("select count(*) from pgbench_accounts") == "100000"
    assert it.nodes[1].value("select count(*) from pgbench_history") == "320"
    rows = tmp_path / "rows.csv"
    rows.write_text("".join(f"{i},\"a\n{i}\"\n" for i in range(20000)))
    run(it, "psql", "-c", f"\\copy t (id, v) from '{rows}' csv", "postgres")
    dump = tmp_path / "dump"
    run(it, "pg_dump", "-Fc", "-f", str(dump), "-t", "pgbench_*", "-t", "q", "postgres")
    run(it, "psql", "-c", "create database other", "postgres")
    run(it, "pg_restore", "-d", "other", str(dump))
    run(it, "pg_restore", "-d", "other", "--clean", "-j", "2", str(dump))
    run(it, "psql", "-c", "create table c (i int, j text, at timestamptz default now())", "other")
    address = it.pool.address
    with psycopg.connect(host=address.host, port=address.port, user="postgres", dbname="other") as conn:
        with conn.cursor().copy("copy c (i, j) from stdin") as rows:
            for i in range(1000):
                rows.write_row((i, f"x\n{i}"))
        with pytest.raises(psycopg.errors.BadCopyFileFormat), conn.transaction():
            with conn.cursor().copy("copy c (i, j) from stdin") as rows:
                rows.write(b"1\n")
    for table in ("pgbench_accounts", "q", "c"):
        got = [n.rows(f"select md5(string_agg(x::text, ',' order by x::text)), count(*) from {table} x", "other") for n in it.nodes]
        assert got[0] == got[1], table
    assert got[0][0][1] == b"1000"


def test_copies_and_inserts_count_alike(pair):
    it = pair(3)

    def work(k):
        with it.client() as c:
            for i in range(10):
                fine(copy(c, "copy q (v) from stdin", b"%d\n" % (1000 * k + i) * 20))
                one(c, f"insert into q (v) values ({k}), ({i})")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    rows = it.everywhere("select md5(string_agg(id || ' ' || v, ',' order by id)), count(*) from q")
    assert rows[0] == rows[1] == rows[2] and rows[0][0][1] == b"1320"


def copy_data(text):
    return w.message("d", text.encode())


@pytest.mark.parametrize("sync_first", [True, False], ids=["sync", "none"])
def test_copy_by_the_extended_protocol(pair, sync_first):
    """As tokio-postgres and others do: Parse, Bind, Execute, a Sync that the server ignores, data, CopyDone, Sync."""
    it = pair(3)
    early = w.SYNC if sync_first else b""
    with it.client() as c:
        def begin(sql, *front):
            c.send(*front, w.parse(sql), w.bind(), w.describe("", "P"), w.execute(), early or w.message("H"))
        begin("copy t (id, u) from stdin")
        assert [c.read().type for _ in range(4)] == ["1", "2", "n", "G"]
        c.send(copy_data("1\t\\N\n2"), copy_data("\t\\N\n"), w.message("c"), w.SYNC)
        got = c.ready()
        assert [m.type for m in got] == ["C", "Z"] and got[0].body == b"COPY 2\0" and got[-1].body == b"I"
        # All of it at once, among others, in a transaction; and a statement that was prepared before.
        c.send(w.parse("copy q (v) from stdin", "cp"), w.SYNC)
        c.ready()
        c.send(w.parse("begin"), w.bind(), w.execute(), w.parse("insert into t (id) values (3)"), w.bind(), w.execute(),
               w.bind(name="cp"), w.execute(), copy_data("7\n8\n"), w.message("c"),
               w.parse("commit"), w.bind(), w.execute(), w.SYNC)
        got = c.ready()
        assert [m.body for m in got if m.type == "C"] == [b"BEGIN\0", b"INSERT 0 1\0", b"COPY 2\0", b"COMMIT\0"], got
        # What fails is undone on all, and what follows is left out up to the Sync.
        begin("copy t (id, u) from stdin", w.parse("insert into t (id) values (50)") + w.bind() + w.execute())
        assert [c.read().type for _ in range(3 + 4)] == ["1", "2", "C", "1", "2", "n", "G"]
        c.send(copy_data("60\t\\N\n1\t\\N\n"), w.message("c"), w.parse("insert into t (id) values (51)"), w.bind(), w.execute(), w.SYNC)
        got = c.ready()
        assert error_of(got).sqlstate == "23505" and [m.type for m in got] == ["E", "Z"] and got[-1].body == b"I"
        begin("copy t (id, u) from stdin")
        assert [c.read().type for _ in range(4)] == ["1", "2", "n", "G"]
        c.send(copy_data("70\t\\N\n"), w.message("f", b"enough\0"), w.SYNC)
        assert error_of(c.ready()).sqlstate == "57014"
        begin("copy nowhere from stdin")
        assert error_of(c.ready() if sync_first else c.read_until("E")).sqlstate == "42P01"
        if not sync_first:
            c.send(w.SYNC)
            c.ready()
        assert c.value("select count(*) from t") == "3"
        it.equal()
    assert it.nodes[2].value("select string_agg(v::text, ',' order by id) from q") == "7,8"


def test_what_was_bound_in_front_of_a_copy(pair):
    """Its Execute is not taken for that of the COPY behind it; the question to the catalogue has closed the portal."""
    it = pair()
    with it.client() as c:
        c.send(w.parse("insert into q (v) values (7)"), w.bind(), w.message("H"))
        c.read_until("2")
        c.send(w.execute(), w.parse("insert into t (id, u) values (3, null)"), w.bind(portal="asks"), w.parse("copy t (id, u) from stdin"),
               w.bind(), w.execute(), copy_data("1\t\\N\n"), w.message("c"), w.SYNC)
        assert error_of(c.ready()).sqlstate == "34000"
        one(c, "insert into q (v) values (8)")
        assert it.equal() and it.nodes[1].value("select string_agg(v::text, ',') from q") == "8"


@pytest.mark.parametrize("begins", [False, True])
def test_the_main_node_alone_refuses_to_begin(pair, begins):
    """Another one would begin, and wait for data that nobody sends: it is not asked. Nothing has taken a number."""
    it = pair()
    with it.client() as c:
        one(c, "create role clerk login; grant insert, update on q to clerk; grant usage on q_id_seq to clerk")
    it.nodes[0].rows("revoke all on q from clerk")
    with it.client(user="clerk") as c:
        if begins:
            one(c, "begin")
        got = c.simple("copy q (v) from stdin")
        assert error_of(got).sqlstate == "42501" and got[-1].body == (b"E" if begins else b"I")
        if begins:
            one(c, "rollback")
        assert c.value("select 1") == "1"
    waits.wait_for("nobody is left in a COPY", lambda: not [n for n in it.nodes if n.rows("select 1 from pg_stat_activity where "
                   "state <> 'idle' and pid <> pg_backend_pid() and backend_type = 'client backend'")])
    it.nodes[0].rows("grant insert, update on q to clerk")
    with it.client(user="clerk") as c:
        fine(copy(c, "copy q (v) from stdin", b"1\n"))
    assert it.equal() and [r[3] for r in it.status()] == ["up", "up"]
