# SPDX-License-Identifier: PostgreSQL
"""test_startup: startup packets good and bad: T14 of the catalogue, and malformed messages after it."""
import os
import struct
import threading

import pytest

from pgt import waits
from pgt.diff import differential
from pgt.fake import error, ready
from pgt.wire import (GSSENC_CODE, PROTO_3_0, PROTO_3_2, SSL_CODE, Wire, WireClosed, cancel, cancel_request,
                      cstr, message, query, request_code, startup)

USER = {"user": "postgres", "database": "postgres"}


def packet(code: int, body: bytes = b"", length: int | None = None) -> bytes:
    size = len(body) + 8 if length is None else length
    return struct.pack("!II", size & 0xFFFFFFFF, code) + body


REFUSED = {
    "no_user": startup({"database": "postgres"}),
    "empty": packet(PROTO_3_0, b"\0"),
    "no_terminator": packet(PROTO_3_0, cstr("user") + cstr("postgres")),
    "odd_words": packet(PROTO_3_0, cstr("user") + cstr("postgres") + cstr("database") + b"\0"),
    "garbage_after_end": packet(PROTO_3_0, cstr("user") + cstr("postgres") + b"\0" + b"more"),
    "unknown_parameter": startup({**USER, "no_such_setting": "1"}),
    "bad_value": startup({**USER, "work_mem": "many"}),
    "bad_options": startup({**USER, "options": "-c no_such=1"}),
    "bad_switch": startup({**USER, "options": "-Q"}),
    "bad_encoding": startup({**USER, "client_encoding": "klingon"}),
    "no_database": startup({"user": "postgres", "database": "no_such_db"}),
    "no_role": startup({"user": "no_such_role", "database": "postgres"}),
    "nologin": startup({"user": "nologin_user", "database": "postgres"}),
    "reject_by_hba": startup({"user": "nohba_user", "database": "postgres"}),
    "reject_database": startup({"user": "postgres", "database": "nohba_db"}),
    "long_user": startup({"user": "u" * 100, "database": "postgres"}),
    "long_database": startup({"user": "postgres", "database": "d" * 100}),
    "superuser_setting": startup({"user": "trust_user", "database": "postgres", "log_statement": "all"}),
}


@differential()
@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_t14_refused_startup(t, raw):
    """The text, the SQLSTATE and the end are the server's."""
    c = t.open()
    c.send(raw)
    c.eof()


# Refused by us before a server is asked. PostgreSQL closes without a word on most of these; a
# well-formed ErrorResponse first is as good. What counts: it ends, at once, and says nothing else.
BROKEN = {
    "protocol_2_0": (packet(2 << 16, b"\0" * 288), "0A000"),
    "protocol_1_0": (packet(1 << 16, b"\0" * 20), "0A000"),
    "protocol_4_0": (packet(4 << 16, cstr("user") + cstr("postgres") + b"\0"), "0A000"),
    "length_zero": (packet(PROTO_3_0, b"", 0), "08P01"), "length_four": (packet(PROTO_3_0, b"", 4), "08P01"),
    "length_seven": (packet(PROTO_3_0, b"", 7), "08P01"), "length_minus_one": (packet(PROTO_3_0, b"", -1), "08P01"),
    "length_huge": (packet(PROTO_3_0, b"", 0x7FFFFFFF), "08P01"),
    "length_min_int": (packet(PROTO_3_0, b"", -0x80000000), "08P01"),
    "length_10005": (packet(PROTO_3_0, b"x", 10005), "08P01"), "http": (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
}


def assert_refused(found, sqlstate: str) -> None:
    """Nothing, or one FATAL ErrorResponse with that SQLSTATE."""
    assert [m.type for m in found] in ([], ["E"]), found
    if found:
        assert (found[0].fields["S"], found[0].sqlstate) == ("FATAL", sqlstate), found[0].fields


@pytest.mark.parametrize("chunk", [0, 1], ids=["whole", "bytes"])
@pytest.mark.parametrize("raw,sqlstate", BROKEN.values(), ids=BROKEN.keys())
def test_t14_broken_startup(pgpool, raw, sqlstate, chunk):
    w = Wire(pgpool.address, chunk=chunk)
    try:
        w.send(raw)
    except WireClosed:
        pass
    assert_refused(w.read_eof(), sqlstate)


@differential(chunks=(0,))
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8])
def test_t14_truncated_then_closed(t, count):
    """A packet that ends too early: the connection ends without a word or with the server's."""
    c = t.open()
    c.send(startup(USER)[:count])
    c.wire.half_close()
    c.eof()


@differential()
@pytest.mark.parametrize("count", [0, 1, 2, 5, 10, 20, 50, 100])
def test_t14_many_options(t, count):
    """0..100 settings, all honoured."""
    c = t.open()
    extra = [(f"my.setting_{i}", f"value {i}") for i in range(count)]
    c.send(startup([*USER.items(), *extra]))
    c.ready()
    if count:
        c.simple(f"show my.setting_0; show my.setting_{count - 1}")
    c.simple("select count(*) from pg_settings where name like 'my.setting%'")


@differential()
@pytest.mark.parametrize("options", [
    "-c work_mem=5MB", "-cwork_mem=5MB", "--work_mem=5MB", "--work-mem=5MB -c DateStyle=German",
    "-c application_name=with\\ blank", "-c search_path=a,b -c geqo=off", "  -c   work_mem=6MB  ", "-B", "-e",
    "-c work_mem=5MB -c work_mem=7MB", "-c my.a=\\\\"])
def test_options(t, options):
    c = t.open()
    c.send(startup({**USER, "options": options}))
    c.until("Z", "E")
    if c.lines[-1].startswith("Z"):
        c.simple("show work_mem; show datestyle; show search_path; show geqo; show application_name")
    else:
        c.eof()


@differential()
@pytest.mark.parametrize("params", [
    {"application_name": "app \t x"}, {"DateStyle": "SQL, DMY", "TimeZone": "Asia/Kolkata"},
    {"client_encoding": "utf-8"}, {"client_encoding": "utf8"}, {"client_encoding": "'utf8'"},
    {"client_encoding": "UNICODE"}, {"client_encoding": "latin1"}, {"client_encoding": "SQL_ASCII"},
    {"datestyle": "iso"}, {"statement_timeout": "1234"}, {"search_path": "pg_catalog"},
    {"default_transaction_isolation": "serializable"}, {"role": "trust_user"}, {"extra_float_digits": "3"},
    {"work_mem": "5MB", "options": "-c work_mem=6MB"}, {"application_name": ""},
    {"default_transaction_read_only": "on"}], ids=lambda p: "_".join(f"{k}={v}" for k, v in p.items()).replace(" ", ""))
def test_startup_parameters(t, params):
    """Honoured, and reported as the server spells them."""
    c = t.open()
    c.send(startup({**USER, **params}))
    c.until("Z", "E")
    c.simple("; ".join(f"show {name}" for name in params if name != "options"))


@differential()
@pytest.mark.parametrize("reset", ["reset all", "discard all"])
def test_startup_parameters_survive_reset(t, reset):
    """What was given at startup is the session's default, also on a link that others used before."""
    t.connect("before").simple("set work_mem = '9MB'")
    t.conns["before"].end()
    c = t.connect(application_name="mine", DateStyle="SQL, DMY", work_mem="5MB")
    c.simple("set work_mem = '6MB'")
    c.simple(reset)
    c.simple("show application_name; show datestyle; show work_mem")


@differential()
def test_database_defaults_to_user(t):
    c = t.open()
    c.send(startup({"user": "postgres"}))
    c.ready()
    c.simple("select current_database(), current_user")


@differential()
def test_options_of_the_role_and_database(t):
    """ALTER ROLE ... SET and ALTER DATABASE ... SET show in ParameterStatus and in the session."""
    t.direct("alter role other_user set timezone = 'America/Lima'")
    t.direct("alter role other_user in database other_db set datestyle = 'German'")
    c = t.connect(user="other_user", database="other_db")
    c.simple("show timezone; show datestyle")
    d = t.connect("d", user="other_user", TimeZone="Asia/Tokyo")
    d.simple("show timezone; show datestyle")
    t.direct("alter role other_user reset all")
    t.direct("alter role other_user in database other_db reset all")


@pytest.mark.parametrize("codes", [[SSL_CODE], [GSSENC_CODE], [SSL_CODE, GSSENC_CODE], [GSSENC_CODE, SSL_CODE]],
                         ids=["ssl", "gss", "ssl_gss", "gss_ssl"])
def test_encryption_requests_refused(pgpool, codes):
    """Without TLS the answer is N, and the plain startup follows on the same connection."""
    with Wire(pgpool.address) as w:
        for code in codes:
            w.send(request_code(code))
            assert w.take(1) == b"N"
        assert w.login()[-1].type == "Z"
        assert w.value("select 42") == "42"


@pytest.mark.parametrize("code, minor", [(SSL_CODE, 5679), (GSSENC_CODE, 5680)], ids=["ssl", "gss"])
def test_same_encryption_request_twice(pgpool, code, minor):
    w = Wire(pgpool.address)
    w.send(request_code(code))
    assert w.take(1) == b"N"
    w.send(request_code(code))
    found = w.read_eof()
    assert_refused(found, "0A000")
    assert found[0].text == f"unsupported frontend protocol 1234.{minor}: server supports 3.0 to 3.2"


# ---- protocol 3.2 and newer

@pytest.mark.session_mode  # elsewhere it is us with whom the protocol is agreed on
@differential()
@pytest.mark.parametrize("minor", [0, 2, 3, 9999])
@pytest.mark.parametrize("options", [{}, {"_pq_.one": "1", "_pq_.two": "x"}], ids=["plain", "unknown_options"])
def test_t14_protocol_minor(t, minor, options):
    """NegotiateProtocolVersion as the server sends it."""
    c = t.open()
    c.send(startup({**USER, **options}, PROTO_3_0 + minor))
    c.ready()
    c.simple("select 42")


@pytest.mark.parametrize("size", [4, 32, 255, 256])
@pytest.mark.parametrize("version", [PROTO_3_0, PROTO_3_2])
def test_t14_long_cancel_keys(fake, start_pool, version, size):
    """A server with keys of any length: the client gets one of its own, and its cancel arrives there
    with the server's."""
    key = bytes(i % 256 for i in range(size))
    release = threading.Event()

    def script(conn):
        conn.greet(key=key)
        while True:
            kind, body = conn.read()
            if kind == "X":
                return
            if kind == "Q" and b"wait" in body:
                release.wait(10)
                conn.send(error("57014", "canceling statement due to user request"), ready())
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address)
    with Wire(pool.address) as w:
        assert w.login("fake", "fake", version=version)[-1].type == "Z"
        assert len(w.key) == 4 if version == PROTO_3_0 else 4 <= len(w.key) <= 256
        assert w.key != key
        w.send(query("select wait"))
        waits.wait_for("the query arrives", lambda: any("Q" in c.seen for c in server.links()))
        cancel(pool.address, w.pid, w.key)
        waits.wait_for("the cancel arrives", lambda: server.cancels)
        release.set()
        assert [m.sqlstate for m in w.ready() if m.type == "E"] == ["57014"]
    link = server.links()[0]
    assert set(server.cancels) == {(link.pid, key)}


@pytest.mark.session_mode
def test_t14_keys_fit_the_client_that_comes_second(fake, start_pool):
    """A link that somebody opened in protocol 3.2 is lent to a client of 3.0, whose key has four bytes: drivers take a longer one for
    a broken connection."""
    server = fake()
    pool = start_pool(server.address, num_init_children=1, default_pool_size=1)  # the next one waits until it is clean
    for version in (PROTO_3_2, PROTO_3_0, PROTO_3_2):
        with Wire(pool.address) as w:
            assert w.login("fake", "fake", version=version)[-1].type == "Z"
            assert len(w.key) == 4 if version == PROTO_3_0 else len(w.key) > 4
    assert len(server.links()) == 1


@pytest.mark.parametrize("size", [0, 1, 3, 5, 8, 32, 255, 256, 257, 300])
def test_t14_cancel_keys_of_any_length(pgpool, size):
    """A cancel request with a key that is nobody's: closed, without a word when the length is right."""
    answer = cancel(pgpool.address, 4711, os.urandom(size))
    assert answer == b"" or (answer[:1] == b"E" and not 4 <= size <= 256)
    with Wire(pgpool.address) as w:
        w.login()
        assert w.value("select 1") == "1"


# ---- malformed messages after login

BAD_AFTER = {
    "query_without_nul": message("Q", b"select 1"), "empty_query_body": message("Q"),
    "query_garbage_behind": message("Q", b"select 1\0more"), "sync_with_body": message("S", b"x"),
    "parse_cut": message("P", b"name"), "bind_cut": message("B", b"\0\0\0\1"),
    "bind_negative": message("B", b"\0\0\0\0" + struct.pack("!Hi", 1, -2)), "describe_kind": message("D", b"Xname\0"),
    "describe_empty": message("D"), "close_kind": message("C", b"Xname\0"), "execute_cut": message("E", b"\0\0"),
    "unknown_type": message("!", b"x"), "zero_type": b"\0\0\0\0\4", "password_now": message("p", b"x\0"),
    "copy_data_now": message("d", b"x") + query("select 1"), "copy_done_now": message("c") + query("select 1"),
    "copy_fail_now": message("f", b"x\0") + query("select 1"), "function_cut": message("F", b"\0\0"),
    "parse_types_cut": message("P", b"\0select 1\0" + struct.pack("!HI", 5, 23)),
    "server_message": message("R", b"\0\0\0\0"),
}


@differential()
@pytest.mark.parametrize("raw", BAD_AFTER.values(), ids=BAD_AFTER.keys())
def test_t14_malformed_message(t, raw):
    c = t.connect()
    c.send(raw, message("S"))
    c.settle()


@pytest.mark.parametrize("length", [0, 3, -1, -0x80000000])
@pytest.mark.parametrize("kind", [b"Q", b"P", b"S", b"d", b"X"])
def test_t14_impossible_length(pgpool, kind, length):
    """The connection ends, with or without a word; other sessions go on."""
    with Wire(pgpool.address) as other, Wire(pgpool.address) as w:
        other.login()
        w.login()
        w.send(kind + struct.pack("!i", length) + b"x")
        assert_refused(w.read_eof(), "08P01")
        assert other.value("select 1") == "1"


@differential(chunks=(0,))
def test_t14_error_behind_open_replies(t):
    """Replies to what came before a fatal message are delivered before its error."""
    c = t.connect()
    c.send(query("select pg_sleep(0.05)"), query("select 2"), b"!\0\0\0\4")
    c.eof()


@differential(chunks=(0,))
@pytest.mark.parametrize("length", [1000, 0x10000000, 0x3FFFFFFF])
def test_t14_message_never_completed(t, length):
    """A header that promises more than comes, then the end."""
    c = t.connect()
    c.send(b"Q" + struct.pack("!I", length) + b"select")
    c.wire.half_close()
    c.eof()


@pytest.mark.parametrize("raw", [b"", b"\0", b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\xff" * 64,
                                 cancel_request(0, b"")[:9]], ids=["none", "nul", "http", "tls", "ff", "cut_cancel"])
def test_garbage_and_gone(pgpool, raw):
    """Nothing that a stranger sends disturbs others, and no connection of his stays."""
    with Wire(pgpool.address) as w:
        w.login()
        for _ in range(20):
            stranger = Wire(pgpool.address)
            if raw:
                stranger.send(raw)
            stranger.sock.close()
        assert w.value("select 1") == "1"


def test_random_bytes(pgpool):
    """Seeded noise before and after login."""
    import random
    rng = random.Random(20261121)
    for i in range(60):
        noise = rng.randbytes(rng.randrange(1, 300))
        with Wire(pgpool.address, seconds=20) as w:
            if i % 2:
                assert w.login()[-1].type == "Z"
            w.send(noise)
            w.half_close()
            w.read_eof_raw()
    with Wire(pgpool.address) as w:
        w.login()
        assert w.value("select 'alive'") == "alive"
