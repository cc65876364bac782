# SPDX-License-Identifier: PostgreSQL
"""TLS with clients: how it begins, what is refused, who is let in, and that it is a stream like any other."""
import hashlib
import os
import ssl
import subprocess
import threading
from contextlib import ExitStack

import psycopg
import pytest

from pgt import certs, procs, waits
from pgt.proxy import conf_text, pgpool_bin
from pgt.tls import ALPN, TlsWire, client_context, der_of, half_open, shown_cert, tls_socket
from pgt.wire import GSSENC_CODE, SSL_CODE, Wire, WireClosed, cancel_request, message, query, request_code, startup

USER = {"user": "trust_user", "database": "postgres"}


@pytest.fixture(scope="module")
def ca():
    return certs.Authority()


@pytest.fixture(scope="module")
def pair(ca):
    return ca.issue()


@pytest.fixture
def tls_pool(pg, pair, start_pool):
    return start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key)


def dsn(pool, **more) -> str:
    words = {"host": "localhost", "port": pool.port, "user": "trust_user", "dbname": "postgres", **more}
    return " ".join(f"{k}={v}" for k, v in words.items())


def refused(w: Wire) -> dict[str, str]:
    found = w.read_eof()
    assert [m.type for m in found] == ["E"], found
    return found[0].fields


# ---- how it begins

@pytest.mark.parametrize("mode, uses", [("disable", False), ("allow", False), ("prefer", True), ("require", True),
                                        ("verify-ca", True), ("verify-full", True)])
def test_libpq_modes(tls_pool, ca, mode, uses):
    with psycopg.connect(dsn(tls_pool, sslmode=mode, sslrootcert=ca.cert)) as conn:
        assert conn.execute("select 42").fetchone() == (42,)
        assert bool(conn.pgconn.ssl_in_use) == uses


def test_the_answer_to_the_question_for_tls_is_in_the_log(pg, pair, start_pool):
    """Scripts look for pgpool-II's line."""
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, log_min_messages="debug1")
    psycopg.connect(dsn(pool, sslmode="require")).close()
    waits.wait_for("its line", lambda: "DEBUG:  client->server SSL response: S\n" in pool.log())


def test_libpq_direct(tls_pool, ca):
    with psycopg.connect(dsn(tls_pool, sslmode="verify-full", sslrootcert=ca.cert, sslnegotiation="direct")) as conn:
        assert conn.execute("select 42").fetchone() == (42,)
        assert conn.pgconn.ssl_in_use


@pytest.mark.parametrize("direct", [False, True], ids=["asked", "direct"])
@pytest.mark.parametrize("chunk", [1, 7])
def test_bytes_one_by_one(tls_pool, direct, chunk):
    """The handshake and everything after it in small pieces."""
    ctx = client_context(alpn=(ALPN,))
    with TlsWire(tls_pool.address, ctx=ctx, direct=direct, raw_chunk=chunk) as w:
        assert w.tls.selected_alpn_protocol() == ALPN
        assert w.login(**USER)[-1].type == "Z"
        assert w.value("select repeat('x', 40000)") == "x" * 40000


@pytest.mark.parametrize("version, settings, ok", [
    (ssl.TLSVersion.TLSv1_2, {}, True), (ssl.TLSVersion.TLSv1_3, {}, True),
    (ssl.TLSVersion.TLSv1_2, {"ssl_min_protocol_version": "TLSv1.3"}, False),
    (ssl.TLSVersion.TLSv1_3, {"ssl_max_protocol_version": "TLSv1.2"}, False)])
def test_versions(pg, pair, start_pool, version, settings, ok):
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, **settings)
    if ok:
        with TlsWire(pool.address, ctx=client_context(version=version)) as w:
            assert w.login(**USER)[-1].type == "Z"
            assert w.tls.version() == version.name.replace("_", ".")
    else:
        with pytest.raises((ssl.SSLError, WireClosed)):
            TlsWire(pool.address, ctx=client_context(version=version))
        waits.wait_for("the log says why", lambda: "could not accept SSL connection" in pool.log())


def test_ciphers_and_order(pg, pair, start_pool):
    """Ours come first with ssl_prefer_server_ciphers, the client's without."""
    ours = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"
    for prefer, want in ((True, "ECDHE-ECDSA-AES256-GCM-SHA384"), (False, "ECDHE-ECDSA-AES128-GCM-SHA256")):
        pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, ssl_ciphers=ours,
                          ssl_prefer_server_ciphers=prefer)
        ctx = client_context(version=ssl.TLSVersion.TLSv1_2)
        ctx.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384")
        with TlsWire(pool.address, ctx=ctx) as w:
            assert w.tls.cipher()[0] == want
        ctx.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")
        with pytest.raises((ssl.SSLError, WireClosed)):
            TlsWire(pool.address, ctx=ctx)


def handshake(pool, *args: str) -> str:
    """What the openssl program says of a handshake; "" when there is none."""
    done = subprocess.run(["openssl", "s_client", "-starttls", "postgres", "-connect", f"127.0.0.1:{pool.port}", *args],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=20 * waits.SCALE)
    return "" if "no peer certificate available" in done.stdout else done.stdout


def test_what_is_negotiated(pg, ca, start_pool):
    """Every rule of the settings is in effect, and others are after a reload."""
    rsa = ca.issue(key="rsa")
    own = ca.dir / "dh3072.pem"
    certs.openssl("genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe3072", "-out", own)
    small, large, dhe = "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES256-GCM-SHA384"
    pool = start_pool(pg.address, num_init_children=1, ssl=True, ssl_cert=rsa.cert, ssl_key=rsa.key,
                      ssl_ecdh_curve="secp384r1", ssl_ciphers=f"{small}:{large}:{dhe}",
                      ssl_prefer_server_ciphers=True, ssl_dh_params_file=own)
    old = ("-tls1_2", "-cipher")
    assert "Server Temp Key: ECDH, secp384r1, 384 bits" in handshake(pool, "-tls1_3")
    assert "Server Temp Key: ECDH, secp384r1, 384 bits" in handshake(pool, *old, large)
    assert handshake(pool, "-tls1_3", "-groups", "X25519") == ""
    assert "Server Temp Key: DH, 3072 bits" in handshake(pool, *old, dhe)
    assert f"Cipher is {small}\n" in handshake(pool, *old, f"{large}:{small}")
    assert handshake(pool, *old, "ECDHE-RSA-CHACHA20-POLY1305") == ""
    assert handshake(pool, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0") == ""
    pool.reload(ssl_ecdh_curve="X25519:secp384r1", ssl_prefer_server_ciphers=False, ssl_dh_params_file="",
                ssl_min_protocol_version="TLSv1.1", ssl_max_protocol_version="TLSv1.2",
                ssl_ciphers="ALL:@SECLEVEL=0")
    waits.wait_for("the worker has the new rules", lambda: handshake(pool, "-tls1_3") == "")
    assert "Server Temp Key: X25519, 253 bits" in handshake(pool, *old, large)
    assert "Server Temp Key: ECDH, secp384r1, 384 bits" in handshake(pool, *old, large, "-groups", "secp384r1")
    assert "Server Temp Key: DH, 2048 bits" in handshake(pool, *old, dhe)
    assert f"Cipher is {large}\n" in handshake(pool, *old, f"{large}:{small}")
    assert "Cipher is ECDHE-RSA-CHACHA20-POLY1305" in handshake(pool, *old, "ECDHE-RSA-CHACHA20-POLY1305")
    assert "Protocol  : TLSv1.1" in handshake(pool, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")


def test_dh_parameters(pg, ca, start_pool):
    """A DHE cipher works with built-in parameters and with a file of one's own."""
    rsa = ca.issue(key="rsa")
    params = ca.dir / "dh.pem"
    certs.openssl("genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "dh_rfc5114:2", "-out", params)
    for more in ({}, {"ssl_dh_params_file": params}):
        pool = start_pool(pg.address, ssl=True, ssl_cert=rsa.cert, ssl_key=rsa.key, **more)
        ctx = client_context(version=ssl.TLSVersion.TLSv1_2)
        ctx.set_ciphers("DHE-RSA-AES256-GCM-SHA384")
        with TlsWire(pool.address, ctx=ctx) as w:
            assert w.login(**USER)[-1].type == "Z"


def test_off_and_unix(pg, tls_pool, start_pool):
    plain = start_pool(pg.address)
    for address in (plain.address, tls_pool.socket):
        with Wire(address) as w:
            w.send(request_code(SSL_CODE))
            assert w.take(1) == b"N"
            assert w.login(**USER)[-1].type == "Z"


# ---- what is refused

@pytest.mark.parametrize("code", [SSL_CODE, GSSENC_CODE], ids=["ssl", "gss"])
@pytest.mark.parametrize("with_tls", [False, True], ids=["off", "on"])
def test_bytes_behind_the_request(pg, pair, start_pool, code, with_tls):
    """CVE-2021-23214: what follows the request in the same piece was not encrypted."""
    more = {"ssl": True, "ssl_cert": pair.cert, "ssl_key": pair.key} if with_tls else {}
    pool = start_pool(pg.address, **more)
    for behind in (startup(USER), b"\x16", query("drop table t")):
        w = Wire(pool.address)
        w.send(request_code(code) + behind)
        fields = refused(w)
        assert fields["C"] == "08P01" and "unencrypted data after" in fields["M"]


def test_plain_after_s(tls_pool):
    """Said yes to TLS, a client goes on in clear: nothing of it is read as a startup packet."""
    w = Wire(tls_pool.address)
    w.send(request_code(SSL_CODE))
    assert w.take(1) == b"S"
    w.send(startup(USER))
    answer = w.read_eof_raw()
    assert answer[:1] in (b"", b"\x15"), answer  # nothing, or a TLS alert
    waits.wait_for("the log says why", lambda: "could not accept SSL connection" in tls_pool.log())


@pytest.mark.parametrize("names", [(), ("http/1.1",)], ids=["none", "other"])
def test_direct_needs_alpn(tls_pool, names):
    ctx = client_context(alpn=names)
    with pytest.raises((ssl.SSLError, WireClosed)):
        w = TlsWire(tls_pool.address, ctx=ctx, direct=True)
        w.login(**USER)
    waits.wait_for("the log says why", lambda: "could not accept SSL connection" in tls_pool.log())


def test_wrong_alpn_after_request(tls_pool):
    with pytest.raises((ssl.SSLError, WireClosed)):
        w = TlsWire(tls_pool.address, ctx=client_context(alpn=("http/1.1",)))
        w.login(**USER)


@pytest.mark.parametrize("code", [SSL_CODE, GSSENC_CODE], ids=["ssl", "gss"])
@pytest.mark.parametrize("direct", [False, True], ids=["asked", "direct"])
def test_request_inside_tls(tls_pool, code, direct):
    w = TlsWire(tls_pool.address, ctx=client_context(alpn=(ALPN,)), direct=direct)
    w.send(request_code(code))
    assert refused(w)["C"] == "0A000"


def test_direct_only_at_the_very_beginning(tls_pool):
    w = Wire(tls_pool.address)
    w.send(request_code(GSSENC_CODE))
    assert w.take(1) == b"N"
    w.send(b"\x16\x03\x01\x00\x05hello")
    assert w.read_eof_raw() == b"", "its length is none of a start-up packet: closed without a word, as by PostgreSQL"


def test_direct_when_off(pgpool):
    with pytest.raises((ssl.SSLError, WireClosed)):
        TlsWire(pgpool.address, ctx=client_context(alpn=(ALPN,)), direct=True)


def s_client(pool, *args: str, send: bytes = b"") -> str:
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{pool.port}", "-starttls", "postgres", *args]
    done = subprocess.run(command, input=send, capture_output=True, timeout=20 * waits.SCALE, check=False)
    return (done.stdout + done.stderr).decode(errors="replace")


def test_renegotiation_is_refused(tls_pool):
    out = s_client(tls_pool, "-tls1_2", send=b"R\n")
    assert "RENEGOTIATING" in out
    assert "no renegotiation" in out or "unexpected" in out, out
    with TlsWire(tls_pool.address) as w:
        assert w.login(**USER)[-1].type == "Z"


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_no_session_is_resumed(tls_pool, tmp_path, version):
    saved = tmp_path / "session"
    first = s_client(tls_pool, version, "-sess_out", str(saved))
    assert "TLS session ticket:" not in first
    if saved.exists():
        assert "Reused" not in s_client(tls_pool, version, "-sess_in", str(saved))


# ---- certificates of clients

def try_cert(pool, pair) -> str:
    """"Z" when the client gets in, else "refused"."""
    try:
        with TlsWire(pool.address, ctx=client_context(pair=pair)) as w:
            return w.login(**USER)[-1].type
    except (ssl.SSLError, WireClosed):
        return "refused"


def test_client_certificates(pg, pair, ca, start_pool):
    other = certs.Authority("other CA")
    good, gone, old = ca.issue("ann"), ca.issue("bob"), ca.issue("eve", expired=True)
    crl = ca.revoke(gone)
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, ssl_ca_cert=ca.cert,
                      ssl_crl_file=crl)
    assert try_cert(pool, None) == "Z"  # it is hba's matter whether one is needed
    assert try_cert(pool, good) == "Z"
    for bad, why in ((gone, "certificate revoked"), (old, "certificate has expired"),
                     (other.issue("ann"), "unable to get local issuer certificate")):
        assert try_cert(pool, bad) == "refused"
        waits.wait_for(f"the log says {why!r}", lambda w=why: w in pool.log())


def test_folder_of_authorities(pg, pair, ca, start_pool):
    folder = procs.folder("cadir")
    certs.give(ca.cert, folder / "one.pem", 0o644)
    certs.openssl("rehash", folder)
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, ssl_ca_cert_dir=folder)
    assert try_cert(pool, ca.issue("ann")) == "Z"
    assert try_cert(pool, certs.Authority("other CA").issue("ann")) == "refused"


# ---- files that are no good stop the start

def fatal_of(pg, **conf) -> str:
    """What the program says when it does not start."""
    home = procs.folder("nostart")
    base = {"listen_addresses": "127.0.0.1", "port": procs.free_port(), "unix_socket_directories": home,
            "pcp_listen_addresses": "", "pcp_port": procs.free_port(), "pcp_socket_dir": home,
            "wd_ipc_socket_dir": home, "pid_file_name": home / "pgpool.pid", "work_dir": home,
            "num_init_children": 1, "backend_hostname0": pg.address.host, "backend_port0": pg.address.port}
    (home / "pgpool.conf").write_text(conf_text({**base, **conf}), encoding="utf-8")
    done = subprocess.run([pgpool_bin(), "-n", "-f", str(home / "pgpool.conf")], capture_output=True,
                          timeout=20 * waits.SCALE, check=False)
    assert done.returncode != 0
    return (done.stdout + done.stderr).decode()


def test_bad_files_stop_the_start(pg, pair, ca, tmp_path):
    if pgpool_bin() is None:
        pytest.skip("PGPOOL_BIN does not name a program")
    other = ca.issue()
    loose = certs.give(pair.key, tmp_path / "loose.key", 0o644)
    junk = tmp_path / "junk.pem"
    junk.write_text("junk", encoding="ascii")
    far = tmp_path / "pools.conf"
    far.write_text("[database far]\nhost = localhost\nbackend_ssl_mode = verify-full\n", encoding="ascii")
    good = {"ssl": True, "ssl_cert": pair.cert, "ssl_key": pair.key}
    locked = ca.issue(passphrase="secret")
    for change, says in (
            ({"ssl": False, "pools_file": far, "ssl_ca_cert": junk}, "could not load root certificate file"),
            ({"ssl_cert": tmp_path / "none.pem"}, "could not load certificate file"),
            ({"ssl_cert": junk}, "could not load certificate file"),
            ({"ssl_key": tmp_path / "none.pem"}, "could not access private key file"),
            ({"ssl_key": loose}, "has group or world access"),
            ({"ssl_key": other.key}, "key values mismatch"),
            ({"ssl_cert": locked.cert, "ssl_key": locked.key}, "needs a passphrase"),
            ({"ssl_cert": locked.cert, "ssl_key": locked.key, "ssl_passphrase_command": "echo wrong"},
             "could not load private key file"),
            ({"ssl_ca_cert": junk}, "could not load root certificate file"),
            ({"ssl_ca_cert_dir": tmp_path / "none"}, "could not use root certificate folder"),
            ({"ssl_ca_cert": ca.cert, "ssl_crl_file": junk}, "could not load certificate revocation list"),
            ({"ssl_ciphers": "NOSUCH"}, "could not set the cipher list"),
            ({"ssl_ecdh_curve": "nosuch"}, "ECDH: unrecognized curve name"),
            ({"ssl_dh_params_file": junk}, "could not load DH parameters file"),
            ({"backend_ssl_mode0": "require", "backend_ssl_cert0": junk, "backend_ssl_key0": pair.key},
             "TLS towards node 0: could not load certificate file")):
        text = fatal_of(pg, **{**good, **change})
        assert says in text, f"{change}: {text}"


def test_passphrase_command(pg, ca, start_pool, tmp_path):
    """The command runs when the workers start; reloads need it no more."""
    locked = ca.issue(passphrase="open sesame")
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n", encoding="ascii")
    pool = start_pool(pg.address, ssl=True, ssl_cert=locked.cert, ssl_key=locked.key,
                      ssl_passphrase_command=f"test -n \"%p\" && cat {secret}")
    assert try_cert(pool, None) == "Z"
    secret.unlink()
    again = ca.issue(passphrase="open sesame")
    pool.reload(ssl_cert=again.cert, ssl_key=again.key)
    waits.wait_for("the new certificate is shown", lambda: shown_cert(pool.address) == der_of(again))


def test_a_passphrase_that_was_wrong_is_not_kept(pg, ca, pair, start_pool):
    """Who corrects ssl_passphrase_command behind a reload that failed finds the new certificate in use."""
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, num_init_children=1)
    locked = ca.issue(passphrase="open sesame")
    pool.reload(ssl_cert=locked.cert, ssl_key=locked.key, ssl_passphrase_command="echo wrong")
    waits.wait_for("it is told", lambda: "could not load private key file" in pool.log())
    pool.reload(ssl_passphrase_command="echo open sesame")
    waits.wait_for("the new certificate is shown", lambda: shown_cert(pool.address) == der_of(locked))


# ---- a stream like any other

def wait_until_asleep(pg) -> None:
    waits.wait_for("the statement runs", lambda: pg.sessions("state = 'active' and query like '%pg_sleep(30)'"))


def test_cancel(pg, tls_pool, ca):
    """libpq's cancel comes with TLS, one in clear works too; each ends the right statement."""
    with psycopg.connect(dsn(tls_pool, sslmode="verify-full", sslrootcert=ca.cert)) as conn:
        def cancel() -> None:
            wait_until_asleep(pg)
            conn.cancel_safe(timeout=10)
        helper = threading.Thread(target=cancel)
        helper.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("select pg_sleep(30)")
        helper.join()
        conn.rollback()
        assert conn.execute("select 42").fetchone() == (42,)
    with TlsWire(tls_pool.address) as w, Wire(tls_pool.address) as other:
        w.login(**USER)
        w.send(query("select pg_sleep(30)"))
        wait_until_asleep(pg)
        other.send(cancel_request(w.pid, w.key))
        found = w.ready()
        assert [m.fields["C"] for m in found if m.type == "E"] == ["57014"]


def test_cancel_waits_until_it_is_delivered(pg, tls_pool):
    """The connection of a cancel ends with "close notify", and the statement is over soon after."""
    with TlsWire(tls_pool.address) as w:
        w.login(**USER)
        w.send(query("select pg_sleep(30)"))
        wait_until_asleep(pg)
        c = TlsWire(tls_pool.address)
        c.send(cancel_request(w.pid, w.key))
        assert c.read_eof_raw() == b"" and c.got_goodbye
        assert [m.fields["C"] for m in w.ready() if m.type == "E"] == ["57014"]


def test_wrong_cancel_key(tls_pool):
    c = TlsWire(tls_pool.address)
    c.send(cancel_request(12345, b"\1\2\3\4"))
    assert c.read_eof_raw() == b"" and c.got_goodbye


def test_goodbye(tls_pool):
    """The end of a session is said in TLS."""
    w = TlsWire(tls_pool.address)
    w.login(**USER)
    w.send(message("X"))
    assert w.read_eof_raw() == b"" and w.got_goodbye


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_copy_both_ways(tls_pool, version):
    """48 MB in, the same 48 MB out."""
    line = os.urandom(3000).hex().encode() + b"\n"
    rows = 8000
    with TlsWire(tls_pool.address, ctx=client_context(version=version), seconds=60) as w:
        w.login(**USER)
        w.simple("create temp table t(a text)")
        w.send(query("copy t from stdin"))
        w.read_until("G")
        want = hashlib.sha256()
        for i in range(rows):
            data = b"%d:" % i + line
            want.update(data)
            w.send(message("d", data))
        w.send(message("c"))
        assert w.ready()[-1].type == "Z"
        w.send(query("copy t to stdout"))
        got = hashlib.sha256()
        while (msg := w.read()).type != "Z":
            if msg.type == "d":
                got.update(msg.body)
        assert got.digest() == want.digest()


def test_back_pressure(tls_pool):
    """A client that does not read: its worker holds a little, not everything."""
    before = tls_pool.memory_kb()
    w = TlsWire(tls_pool.address, rcvbuf=4096, seconds=60)
    w.login(**USER)
    w.send(query("select repeat('x', 1000) from generate_series(1, 100000)"))
    with TlsWire(tls_pool.address) as other:  # meanwhile others are served
        other.login(**USER)
        for _ in range(200):
            assert other.value("select 42") == "42"
    assert tls_pool.memory_kb() - before < 30_000 or procs.is_sanitized()
    assert sum(1 for m in w.ready() if m.type == "D") == 100_000
    w.bye()


def test_pipeline_of_small_messages(tls_pool):
    """Thousands of small requests in few records, answers in order."""
    with TlsWire(tls_pool.address, seconds=60) as w:
        w.login(**USER)
        w.send(b"".join(query(f"select {i}") for i in range(3000)))
        found = w.ready(3000)
        assert [int(m.row()[0]) for m in found if m.type == "D"] == list(range(3000))


# ---- many of them

def settled_kb(pool) -> int:
    """Its own memory once that stands still: processes that have just begun still take some."""
    seen = []

    def stands_still() -> bool:
        seen.append(pool.memory_kb("RssAnon"))
        return len(seen) > 5 and len(set(seen[-5:])) == 1
    waits.wait_for("its memory stands still", stands_still)
    return seen[-1]


def test_half_open_handshakes(pg, pair, start_pool):
    """2,000 that never finish: others are served, they cost little, and they are sent away in time."""
    hello = client_hello()
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, authentication_timeout=8,
                      max_clients=5000)
    for _ in range(8):
        serves(pool.address)  # all processes are there, and have served
    before = settled_kb(pool)

    def ended(sock) -> bool:
        sock.settimeout(30 * waits.SCALE)
        try:
            return sock.recv(1) in (b"", b"\x15")
        except ConnectionResetError:
            return True
    with ExitStack() as socks:
        silent = [socks.enter_context(half_open(pool.address)) for _ in range(1000)]
        cost_silent = (pool.memory_kb("RssAnon") - before) / 1000
        begun = [socks.enter_context(half_open(pool.address, hello[:40])) for _ in range(1000)]
        cost_begun = (pool.memory_kb("RssAnon") - before) / 1000 - cost_silent
        serves(pool.address)
        if not procs.is_sanitized():
            assert cost_silent < 4, f"{cost_silent} kB for each that is silent"
            assert cost_begun < 64, f"{cost_begun} kB for each that has begun"
        assert all(ended(sock) for sock in silent + begun)


def serves(address) -> None:
    """A blocking client logs in and gets an answer."""
    with tls_socket(address) as sock:
        for ask in (startup(USER), query("select 6 * 7")):
            sock.sendall(ask)
            got = b""
            while not got.endswith(b"Z\0\0\0\5I"):
                piece = sock.recv(65536)
                assert piece, got
                got += piece
        assert b"42" in got


def client_hello() -> bytes:
    inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context().wrap_bio(inside, outside, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outside.read()


def test_slow_handshake_delays_nobody(tls_pool):
    """Between two bytes of a slow client others log in and work."""
    hello = client_hello()
    slow = half_open(tls_pool.address)
    step = len(hello) // 20
    for at in range(0, len(hello), step):
        slow.sendall(hello[at:at + step])
        with TlsWire(tls_pool.address) as w:
            w.login(**USER)
            assert w.value("select 42") == "42"
    assert slow.recv(1) == b"\x16"  # and the slow one gets its answer
    slow.close()


def test_idle_clients_are_cheap(pg, pair, start_pool):
    """An idle TLS client owns no buffer of 16 kB."""
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, max_clients=5000)
    ctx = client_context()
    with ExitStack() as socks:
        for _ in range(20):
            socks.enter_context(tls_socket(pool.address, ctx))
        before = pool.memory_kb("RssAnon")
        for _ in range(500):
            socks.enter_context(tls_socket(pool.address, ctx))
        cost = (pool.memory_kb("RssAnon") - before) / 500
    assert cost < 20 or procs.is_sanitized(), f"{cost} kB per idle TLS client"


@pytest.mark.parametrize("version, text", [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")])
def test_pool_clients_shows_version_and_cipher(pg, start_pool, version, text):
    ca = certs.Authority()
    pair = ca.issue()
    pair.key.chmod(0o600)
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key)
    with TlsWire(pool.address, ctx=client_context(ca.cert, version=version)) as w, Wire(pool.address) as plain:
        assert w.login("trust_user", "postgres")[-1].type == "Z"
        assert plain.login("other_user", "postgres")[-1].type == "Z"
        found = plain.simple("show pool_clients")
        names = columns_of(found[0])
        rows = [dict(zip(names, m.row())) for m in found if m.type == "D"]
        shown = {row["user"]: (row["tls_version"], row["tls_cipher"]) for row in rows}
        assert {"tls_version", "tls_cipher", "ktls"} <= set(names)
        assert shown[b"trust_user"] == (text.encode(), w.tls.cipher()[0].encode())
        assert shown[b"other_user"] == (b"", b"")


def columns_of(description) -> list[str]:
    """Names in a RowDescription."""
    names, rest = [], description.body[2:]
    while rest:
        name, rest = rest.split(b"\0", 1)
        names.append(name.decode())
        rest = rest[18:]
    return names
