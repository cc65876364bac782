# SPDX-License-Identifier: PostgreSQL
"""Large objects in native replication: one number and one content on all nodes, by SQL, by the function call protocol, by libpq."""
import ctypes
import ctypes.util
import struct
import threading

import psycopg
import pytest
from pgt import wire as w
from pgt.native import OBJECTS, error_of, one

LO_CREAT, LO_CREATE, LO_OPEN, LO_CLOSE, LOREAD, LOWRITE, LO_LSEEK, LO_TELL, LO_UNLINK = 957, 715, 952, 953, 954, 955, 956, 958, 964
READ_WRITE = 0x60000


def i4(v):
    return struct.pack("!i", v)


def equal_objects(it, count, nodes=None):
    rows = it.everywhere(OBJECTS, nodes)
    assert all(r == rows[0] for r in rows), rows
    assert len(rows[0]) == count, rows[0]


def skew(it):
    """The nodes count oids from different numbers."""
    for i, node in enumerate(it.nodes):
        for _ in range(3 * i):
            node.rows("create type skew as (a int); drop type skew")


def call(c, oid, *args):
    c.send(w.function_call(oid, args))
    got = c.ready()
    assert [m.type for m in got] == ["V", "Z"], got
    n = struct.unpack("!i", got[0].body[:4])[0]
    return got[0].body[4:4 + n]


def number(c, oid, *args):
    return struct.unpack("!i", call(c, oid, *args))[0]


def test_by_sql(pair):
    it = pair(3)
    skew(it)
    with it.client() as c:
        one(c, "select lo_creat(-1)")
        one(c, "select lo_create(0), lo_from_bytea(0, 'abc')")
        one(c, "insert into accounts values (101, 1), (102, lo_from_bytea(0, 'in a row')::oid::int)")
        one(c, "update accounts set amount = lo_creat(-1)::int where id = 101")
        one(c, "select lo_create(12345)")
        equal_objects(it, 6)
        it.equal()
        error_of(c.simple("update accounts set amount = lo_creat(-1)::int where id < 3"))  # one number, two objects
        assert "lo_import of psql" in error_of(c.simple("select lo_import('/etc/hostname')")).text
        one(c, "begin")
        one(c, "select lo_creat(-1)")
        one(c, "rollback")
        equal_objects(it, 6)
        for value in ("0", "0", "4711", None):
            c.send(w.parse("select lo_from_bytea($1, $2::text::bytea)"), w.bind([value, "by parameter"]), w.execute(), w.SYNC)
            assert [m.type for m in c.ready()] == ["1", "2", "D", "C", "Z"]
        equal_objects(it, 9)
        one(c, "begin")
        oid = c.value("select lo_from_bytea(0, 'x')")
        fd = c.value(f"select lo_open({oid}, {READ_WRITE})")
        one(c, f"select lowrite({fd}, 'written'), lo_lseek({fd}, 2, 0)")
        assert c.value(f"select encode(loread({fd}, 3), 'escape')") == "itt"
        one(c, "commit")
        equal_objects(it, 10)


def test_by_function_calls(pair):
    it = pair()
    skew(it)
    with it.client() as c, it.client() as d:
        number(c, LO_CREAT, i4(-1))
        one(c, "begin")
        oid = number(c, LO_CREATE, i4(0))
        fd = number(c, LO_OPEN, i4(oid), i4(READ_WRITE))
        assert number(c, LOWRITE, i4(fd), b"some bytes") == 10
        assert number(d, LO_CREAT, i4(-1)) != oid
        assert number(c, LO_LSEEK, i4(fd), i4(5), i4(0)) == 5
        assert call(c, LOREAD, i4(fd), i4(100)) == b"bytes"
        assert number(c, LO_TELL, i4(fd)) == 10
        assert number(c, LO_CLOSE, i4(fd)) == 0
        c.send(w.function_call(LO_OPEN, [i4(99999), i4(READ_WRITE)]))
        got = c.ready()
        assert error_of(got).sqlstate == "42704" and got[-1].body == b"E"
        c.send(w.function_call(LO_CREAT, [i4(-1)]))
        assert error_of(c.ready()).sqlstate == "25P02"
        one(c, "rollback")
        c.send(w.function_call(LO_UNLINK, [i4(99999)]))
        got = c.ready()
        assert error_of(got).sqlstate == "42704" and got[-1].body == b"I"
        number(c, LO_CREATE, i4(777))
        number(c, LO_UNLINK, i4(777))
        equal_objects(it, 2)


def libpq():
    lib = ctypes.CDLL(ctypes.util.find_library("pq"))
    lib.PQconnectdb.restype = lib.PQexec.restype = ctypes.c_void_p
    lib.PQerrorMessage.restype = ctypes.c_char_p
    for name in ("PQstatus", "PQfinish", "PQerrorMessage"):
        getattr(lib, name).argtypes = [ctypes.c_void_p]
    lib.PQexec.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.PQclear.argtypes = [ctypes.c_void_p]
    lib.lo_import.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.lo_import.restype = ctypes.c_uint
    lib.lo_export.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p]
    return lib


@pytest.mark.skipif(ctypes.util.find_library("pq") is None, reason="no libpq")
def test_by_libpq(pair, tmp_path):
    it = pair(lobj_lock_table="accounts")
    skew(it)
    lib = libpq()
    address = it.pool.address
    conn = lib.PQconnectdb(f"host={address.host} port={address.port} user=postgres dbname=postgres".encode())
    assert lib.PQstatus(conn) == 0, lib.PQerrorMessage(conn)
    data = bytes(range(256)) * 500
    (tmp_path / "in").write_bytes(data)
    try:
        for end in (b"commit", b"rollback"):
            lib.PQclear(lib.PQexec(conn, b"begin"))
            oid = lib.lo_import(conn, str(tmp_path / "in").encode())
            assert oid > 0, lib.PQerrorMessage(conn)
            assert lib.lo_export(conn, oid, str(tmp_path / "out").encode()) == 1, lib.PQerrorMessage(conn)
            assert (tmp_path / "out").read_bytes() == data
            lib.PQclear(lib.PQexec(conn, end))
    finally:
        lib.PQfinish(conn)
    equal_objects(it, 1)
    assert "LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE" in it.nodes[0].log()


def test_many_at_once(pair):
    """psycopg, each in transactions of its own: some are rolled back, and some meet on the lock of lobj_lock_table."""
    it = pair(3)
    skew(it)
    address = it.pool.address

    def work(k):
        with psycopg.connect(host=address.host, port=address.port, user="postgres", dbname="postgres") as conn:
            for i in range(8):
                conn.execute("select lo_from_bytea(%s, %s)", [0, b"%d-%d" % (k, i)])
                conn.execute("select lo_put(lo_creat(-1), 0, %s)", [b"x%d-%d" % (k, i)])
                (conn.commit if i % 2 else conn.rollback)()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal_objects(it, 48)
