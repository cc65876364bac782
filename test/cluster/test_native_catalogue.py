# SPDX-License-Identifier: PostgreSQL
"""Native replication: what the catalogue says is each node's own, numbers of objects above all. It is asked on the main node, so that
a client that asks by a number that it was told (psql's \\d, pg_dump, drivers) gets an answer, whatever the other nodes have."""
import shutil
import subprocess

import psycopg
import pytest
from pgt import postgres
from pgt import wire as w
from pgt.native import one

HALVES = [False, True]


@pytest.fixture
def apart(pair):
    """Nodes whose catalogues have other numbers."""
    def make(**conf):
        it = pair(**conf)
        it.nodes[1].value("select lo_unlink(lo_creat(-1)) from generate_series(1, 100)")
        with it.client() as c:
            one(c, "create table numbered (id serial primary key, v int)")
            one(c, "create function dumped() returns trigger language plpgsql as 'begin return new; end'")
            one(c, "create trigger fires before insert on numbered for each row execute function dumped()")
        got = [n.value("select oid from pg_proc where proname = 'dumped'") for n in it.nodes]
        assert got[0] != got[1]
        return it
    return make


def run(it, program, *args):
    address = it.pool.address
    done = subprocess.run([str(postgres.client(program)), "-h", address.host, "-p", str(address.port), "-U", "postgres", *args],
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == 0 and b"ERROR" not in done.stderr, done.stderr.decode()[-2000:]
    return done.stdout


@pytest.mark.parametrize("everywhere", HALVES, ids=["one", "replicate_select"])
def test_numbers_are_those_of_the_main_node(apart, everywhere):
    it = apart(replicate_select=everywhere)
    oid = it.nodes[0].value("select oid from pg_proc where proname = 'dumped'").encode()
    for _ in range(6):
        with it.client() as c:  # reads of other sessions go to another node
            assert c.rows("select oid from pg_proc where proname = 'dumped'") == [[oid]]
            assert c.rows("select oid from pg_catalog.pg_proc where proname = 'dumped'") == [[oid]]
            c.send(w.parse("select oid from pg_proc where proname = $1"), w.bind(["dumped"]), w.execute(), w.SYNC)
            assert [m.row() for m in c.ready() if m.type == "D"] == [[oid]]
            assert c.rows(f"select proname from pg_proc where oid = {oid.decode()}") == [[b"dumped"]]


@pytest.mark.parametrize("everywhere", HALVES, ids=["one", "replicate_select"])
@pytest.mark.parametrize("sql", ["select 'numbered'::regclass::oid", "select to_regclass('numbered')::oid", "select cast('numbered' as RegClass)::int8",
                                 "select 'dumped()'::regprocedure::oid"])
def test_numbers_by_name_are_those_of_the_main_node(apart, sql, everywhere):
    """No table of the catalogue is named there."""
    it = apart(replicate_select=everywhere)
    want = it.nodes[0].rows(sql)
    assert want != it.nodes[1].rows(sql)
    for _ in range(6):
        with it.client() as c:
            for _ in range(2):
                assert c.rows(sql) == want
                c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC)
                assert [m.row() for m in c.ready() if m.type == "D"] == want


@pytest.mark.parametrize("everywhere", HALVES, ids=["one", "replicate_select"])
def test_psql_describes(apart, everywhere):
    """Some of its questions call functions that PostgreSQL calls volatile: pg_partition_ancestors, pg_table_size."""
    it = apart(replicate_select=everywhere)
    for _ in range(2):
        assert b"fires" in run(it, "psql", "-c", r"\d numbered", "postgres")
        assert b"fires" in run(it, "psql", "-c", r"\d+ numbered", "postgres")
        assert b"numbered" in run(it, "psql", "-c", r"\dt+", "postgres")
        assert b"postgres" in run(it, "psql", "-c", r"\l+", "postgres")


def test_who_else_is_connected(apart):
    """Each node has other sessions: nobody compares how many."""
    it = apart()
    with it.client() as c, psycopg.connect(f"host=127.0.0.1 port={it.nodes[1].address.port} user=postgres dbname=postgres") as beside:
        beside.execute("select 1")
        got = [n.value("select count(*) from pg_stat_activity where backend_type = 'client backend'") for n in it.nodes]
        assert int(got[1]) > int(got[0])
        pids = c.rows("select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
        assert [str(beside.info.backend_pid).encode()] not in pids


def test_execute_of_a_read_is_that_read(apart):
    """As pg_dump does: it asks by EXECUTE."""
    it = apart()
    with it.client() as c:
        oid = c.rows("select oid from pg_proc where proname = 'dumped'")[0][0].decode()
        one(c, "prepare p (oid) as select proname from pg_proc where oid = $1")
        assert c.rows(f"execute p ('{oid}')") == [[b"dumped"]]
        one(c, "begin")
        one(c, "insert into t (id) values (1)")
        assert c.rows(f"execute p ('{oid}')") == [[b"dumped"]]
        assert c.rows("select count(*) from t") == [[b"1"]], "the transaction goes on"
        one(c, "commit")
        # Arguments that do something do it everywhere, and so does what calls what does something.
        one(c, "prepare r (int) as select count(*) from t where id <> $1; execute r (nextval('q_id_seq')::int)")
        one(c, "prepare s (int) as select setval('s_id_seq', $1); execute s (77)")
        it.equal()
        assert [n.value("select last_value from s_id_seq") for n in it.nodes] == ["77", "77"]
        assert [n.value("select is_called from q_id_seq") for n in it.nodes] == ["t", "t"]


def test_pg_dump(apart, tmp_path):
    """Also by several connections, which take over the snapshot of the first: that is the main node's."""
    it = apart()
    assert b"FUNCTION public.dumped()" in run(it, "pg_dump", "postgres")
    run(it, "pg_dump", "-Fd", "-j", "2", "-f", str(tmp_path / "dump"), "postgres")
    run(it, "psql", "-c", "create database other", "postgres")
    run(it, "pg_restore", "-j", "2", "-d", "other", str(tmp_path / "dump"))
    got = [n.rows("select count(*) from accounts", "other") for n in it.nodes]
    assert got == [[[b"20"]]] * 2
    shutil.rmtree(tmp_path / "dump")
