# SPDX-License-Identifier: PostgreSQL
"""TLS towards servers: who gets it, what is checked, what happens when it fails."""
import errno
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from pgt import certs, postgres, procs, waits
from pgt.fake import FakeServer
from pgt.pcp_tool import pcp, said
from pgt.tls import TlsFakeServer, TlsWire, client_context, server_context
from pgt.wire import SSL_CODE, Address, Wire, cancel, message, query

from test_admin_orders import report
from test_pool_limits import Load, watch, workers

HBA = """\
local all all trust
host all postgres all trust
hostssl all only_ssl all trust
hostnossl all only_plain all trust
hostssl all ann all cert
hostssl all bob all trust clientcert=verify-ca
host all either all trust
host all secret all scram-sha-256
"""
USERS = ("only_ssl", "only_plain", "ann", "bob", "either")


@pytest.fixture(scope="module")
def ca():
    return certs.Authority()


def files_for(server: postgres.Postgres, pair: certs.Pair, ca_cert) -> dict[str, str]:
    """Copies what the server reads to where its user may read it."""
    owner = server.data.stat().st_uid
    certs.give(pair.cert, server.data / "server.crt", 0o644, owner)
    certs.give(pair.key, server.data / "server.key", 0o600, owner)
    certs.give(ca_cert, server.data / "root.crt", 0o644, owner)
    return {"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl_ca_file": "root.crt"}


@pytest.fixture(scope="module")
def ssl_pg(ca):
    """A server with TLS whose certificate is for localhost and 127.0.0.1."""
    server = postgres.start_postgres(roles=False)
    for user in USERS:
        server.rows(f"create role {user} login")
    server.rows("create role secret login password 'secret_pw'")
    server.stop()
    server.write_conf(files_for(server, ca.issue(), ca.cert), HBA)
    server.start()
    yield server
    server.stop()


def login(pool, user: str = "either") -> tuple[str, str]:
    """("t" or "f" of the server's own pg_stat_ssl, "") or ("", the error)."""
    w = Wire(pool.address)
    last = w.login(user, "postgres")[-1]
    if last.type == "E":
        return "", last.fields["M"]
    with w:
        return w.value("select ssl from pg_stat_ssl where pid = pg_backend_pid()"), ""


def kernel_offers_tls() -> bool:
    """A socket that is not connected cannot have it, but the module is looked for first."""
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, 31, b"tls\0")
        except OSError as e:
            return e.errno == errno.ENOTCONN
    return True


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_in_the_kernel_or_not(ssl_pg, ca, start_pool, version):
    """ssl_ktls changes nothing that a client sees; without a kernel that has TLS it says so."""
    pair = ca.issue()
    pool = start_pool(ssl_pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, backend_ssl_mode0="require",
                      ssl_ktls=True)
    offered = kernel_offers_tls()
    to_client = {"both"} if version == ssl.TLSVersion.TLSv1_2 else {"sends", "both"}
    with TlsWire(pool.address, ctx=client_context(version=version)) as w:
        assert w.login("either", "postgres")[-1].type == "Z"
        text = "0123456789" * 300000
        assert w.value(f"select '{text}'") == text
        assert w.value("select ssl from pg_stat_ssl where pid = pg_backend_pid()") == "t"
        for report, does in (("pool_clients", to_client), ("pool_links", {"sends", "both"})):
            rows = [m.row()[-1].decode() for m in w.simple(f"show {report}") if m.type == "D"]
            assert rows and rows[0] in (does if offered else {""})
        w.send(query("select pg_sleep(0.01)") + query(f"select length('{text}')"))
        assert [m.row()[0] for m in w.ready(2) if m.type == "D"][-1] == str(len(text)).encode()
    assert ("ssl_ktls is on, but the kernel offers no TLS" in pool.log()) != offered


# ---- modes

@pytest.mark.parametrize("mode, user, want", [
    ("disable", "either", "f"), ("disable", "only_ssl", None), ("disable", "only_plain", "f"),
    ("allow", "either", "f"), ("allow", "only_ssl", "t"), ("allow", "only_plain", "f"),
    ("prefer", "either", "t"), ("prefer", "only_ssl", "t"), ("prefer", "only_plain", "f"),
    ("require", "either", "t"), ("require", "only_ssl", "t"), ("require", "only_plain", None),
    ("verify-ca", "either", "t"), ("verify-full", "either", "t")])
def test_modes_with_tls(ssl_pg, ca, start_pool, mode, user, want):
    pair = ca.issue()
    more = {"backend_ssl_ca_cert0": ca.cert} if mode.startswith("verify") else {}
    pool = start_pool(ssl_pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, backend_ssl_mode0=mode, **more)
    is_tls, error = login(pool, user)
    if want is None:
        assert "no pg_hba.conf entry" in error
    else:
        assert (is_tls, error) == (want, "")


@pytest.mark.parametrize("mode, works", [("disable", True), ("allow", True), ("prefer", True), ("require", False)])
def test_modes_without_tls(pg, ca, start_pool, mode, works):
    pair = ca.issue()
    pool = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, backend_ssl_mode0=mode)
    is_tls, error = login(pool, "trust_user")
    assert (is_tls, error) == ("f", "") if works else "does not support TLS" in error


def test_off_means_off_but_for_require(ssl_pg, start_pool):
    """ssl = off: prefer is plain as in pgpool-II; who requires TLS gets it."""
    assert login(start_pool(ssl_pg.address)) == ("f", "")
    assert login(start_pool(ssl_pg.address, backend_ssl_mode0="require")) == ("t", "")


def test_unix_socket_is_plain(ssl_pg, start_pool):
    pool = start_pool(ssl_pg.socket, backend_ssl_mode0="require")
    with Wire(pool.address) as w:
        assert w.login("postgres", "postgres")[-1].type == "Z"


def test_relayed_login(ssl_pg, start_pool):
    """Scram relayed over a TLS link, and the password is still right or wrong."""
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require")
    with Wire(pool.address) as w:
        assert w.login("secret", "postgres", "secret_pw")[-1].type == "Z"
    with Wire(pool.address) as w:
        assert w.login("secret", "postgres", "wrong")[-1].fields["C"] == "28P01"


# ---- whose certificate

@pytest.mark.parametrize("mode, san, host, works", [
    ("verify-ca", "DNS:other.example", "localhost", True),
    ("verify-full", "DNS:other.example", "localhost", False),
    ("verify-full", "DNS:localhost", "localhost", True),
    ("verify-full", "DNS:*.localhost", "localhost", False),
    ("verify-full", "IP:127.0.0.1", "127.0.0.1", True),
    ("verify-full", "DNS:localhost", "127.0.0.1", False),
    ("verify-full", "IP:127.0.0.2", "127.0.0.1", False),
    ("verify-full", "", "localhost", True)])
def test_names(ca, start_pool, mode, san, host, works):
    server = TlsFakeServer(server_context(ca.issue("localhost", san)))
    try:
        pool = start_pool(Address(host, server.address.port), backend_ssl_mode0=mode, backend_ssl_ca_cert0=ca.cert)
        with Wire(pool.address) as w:
            last = w.login("fake", "postgres")[-1]
        assert last.type == ("Z" if works else "E"), last
        if not works:
            assert "certificate verify failed" in last.fields["M"], last.fields
        assert server.in_clear == 0
    finally:
        server.close()


@pytest.mark.parametrize("mode", ["prefer", "require", "verify-ca", "verify-full"])
@pytest.mark.parametrize("what", ["other CA", "expired", "revoked"])
def test_bad_certificates(ca, start_pool, mode, what):
    """Refused in every mode once a CA is known, and never answered by going on in clear."""
    issuer = certs.Authority("other CA") if what == "other CA" else ca
    pair = issuer.issue(expired=what == "expired")
    own = ca.issue()
    more = {"backend_ssl_crl_file0": ca.revoke(pair)} if what == "revoked" else {}
    server = TlsFakeServer(server_context(pair))
    try:
        pool = start_pool(server.address, ssl=True, ssl_cert=own.cert, ssl_key=own.key, backend_ssl_mode0=mode,
                          backend_ssl_ca_cert0=ca.cert, **more)
        with Wire(pool.address) as w:
            last = w.login("fake", "postgres")[-1]
        assert last.type == "E" and "certificate verify failed" in last.fields["M"]
        assert server.in_clear == 0
    finally:
        server.close()


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
def test_a_check_against_no_authority_in_pools_conf(ca, start_pool, mode):
    """Who asks for a check gets one, or is told that there is nothing to check against; never a connection unchecked."""
    server = TlsFakeServer(server_context(certs.Authority("anybody").issue("somewhere.example")))
    try:
        pool = start_pool(server.address)
        (pool.home / "pools.conf").write_text(
            f"[database shop]\nhost = localhost\nport = {server.address.port}\nbackend_ssl_mode = {mode}\n", encoding="utf-8")
        status, told = said(pcp(pool, "reload_config"))
        if status == 0:
            with Wire(pool.address) as w:
                assert w.login("fake", "shop")[-1].type == "E", "it is not known who this is"
        assert status != 0 and "against no certificate" in told, told
    finally:
        server.close()


def test_a_reload_that_asks_for_a_check_by_a_file_that_is_not_there(ca, start_pool, tmp_path):
    """What was in use before checked nothing: it does not stay in use under a mode that promises a check."""
    server = TlsFakeServer(server_context(certs.Authority("anybody").issue("somewhere.example")))
    try:
        pool = start_pool(server.address, num_init_children=1, backend_ssl_mode0="require")
        with Wire(pool.address) as w:
            assert w.login("fake", "one")[-1].type == "Z"
        pool.write_conf(backend_ssl_mode0="verify-full", backend_ssl_ca_cert0=tmp_path / "none")
        assert said(pcp(pool, "reload_config"))[0] == 0
        waits.wait_for("it is read", lambda: "could not load root certificate file" in pool.log())
        with Wire(pool.address) as w:
            assert w.login("fake", "two")[-1].type == "E", "it is not known who this is"
    finally:
        server.close()


def test_scram_is_not_passed_on_with_tls_on_both_sides(ssl_pg, ca, start_pool):
    """The server would call it an attack: the client is told what helps. With TLS on one side alone it is passed on."""
    pair = ca.issue()
    pool = start_pool(ssl_pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, backend_ssl_mode0="require")
    for mode, works in (("require", False), ("disable", True)):
        done = subprocess.run(["psql", "-AtX", "-c", "select ssl from pg_stat_ssl where pid = pg_backend_pid()",
                               f"host={pool.address.host} port={pool.address.port} user=secret dbname=postgres sslmode={mode}"],
                              env={**os.environ, "PGPASSWORD": "secret_pw"}, capture_output=True, text=True, check=False, timeout=60)
        if works:
            assert done.stdout == "t\n"
        else:
            assert "is not passed on" in done.stderr and "auth_query" in done.stderr


def test_a_reload_to_a_stricter_mode_lends_nothing_old(ssl_pg, start_pool):
    """A connection in the clear that is kept is nobody's under a mode that promises TLS."""
    pool = start_pool(ssl_pg.address, num_init_children=1, pool_mode="transaction", backend_ssl_mode0="disable")
    is_tls = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
    with Wire(pool.address) as w:
        w.login("either", "postgres")
        assert w.value(is_tls) == "f"
        pool.reload(backend_ssl_mode0="require")
        waits.wait_for("connections have TLS", lambda: w.value(is_tls) == "t")


def test_a_stricter_mode_holds_for_what_another_worker_hands_over(ssl_pg, start_pool):
    """A connection in the clear of a worker that has not read the new settings yet goes to the one where somebody waits, who has."""
    pool = start_pool(ssl_pg.address, pool_mode="transaction", default_pool_size=1, backend_ssl_mode0="disable")
    clients = {f"c{i}": Wire(pool.address) for i in range(6)}
    for name, w in clients.items():
        w.login("either", "postgres", application_name=name)
    asks = clients["c0"]

    def column(name: str) -> dict[str, str]:
        return {r["application_name"]: r[name] for r in report(asks, "pool_clients")}

    at = column("pid")
    by_worker = sorted(([n for n in at if at[n] == pid] for pid in set(at.values())), key=len)
    assert len(by_worker) == 2, at
    first, (_, second) = by_worker[0][0], by_worker[1][:2]
    asks = clients[by_worker[1][0]]
    other = int(at[first])
    with Wire(ssl_pg.socket) as holder:
        holder.login()
        holder.rows("select pg_advisory_lock(300)")
        clients[first].send(query("select pg_advisory_xact_lock(300)"))
        waits.wait_for("it runs", lambda: ssl_pg.sessions("wait_event = 'advisory'"))
        procs.stand_still(other)
        try:
            clients[second].send(query("select ssl from pg_stat_ssl where pid = pg_backend_pid()"))
            waits.wait_for("it waits", lambda: column("state").get(second) == "waiting")
            holder.rows("select pg_advisory_unlock(300)")
            waits.wait_for("the server has answered", lambda: not ssl_pg.sessions("state = 'active'"))
            pool.reload(backend_ssl_mode0="require")
            waits.wait_for("new settings", lambda: asks.value("pgpool show backend_ssl_mode0") == "require")
        finally:
            procs.go_on(other)
    assert [m.row() for m in clients[second].ready() if m.type == "D"] == [[b"t"]]
    assert clients[first].ready()[-1].type == "Z"


def test_common_ca(ca, start_pool):
    """ssl_ca_cert holds for servers too when the server has none of its own."""
    good, bad = TlsFakeServer(server_context(ca.issue())), \
        TlsFakeServer(server_context(certs.Authority("other CA").issue()))
    own = ca.issue()
    try:
        for server, works in ((good, True), (bad, False)):
            pool = start_pool(server.address, ssl=True, ssl_cert=own.cert, ssl_key=own.key, ssl_ca_cert=ca.cert)
            with Wire(pool.address) as w:
                assert (w.login("fake", "postgres")[-1].type == "Z") == works
    finally:
        good.close()
        bad.close()


def test_client_certificate(ssl_pg, ca, start_pool):
    """Ours, shown to the server: the one of ann lets ann in, and is enough for bob."""
    ann, wrong = ca.issue("ann", ""), certs.Authority("other CA").issue("ann", "")
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require", backend_ssl_cert0=ann.cert,
                      backend_ssl_key0=ann.key)
    assert login(pool, "ann") == ("t", "")
    assert login(pool, "bob") == ("t", "")
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require", backend_ssl_cert0=wrong.cert,
                      backend_ssl_key0=wrong.key)
    assert login(pool, "either")[0] == ""
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require")
    assert "certificate" in login(pool, "ann")[1]


def test_own_ciphers_and_version(ssl_pg, start_pool):
    """Of the leg to this server; those of clients are others."""
    def limit(word):
        ssl_pg.rows(f"alter system {word}")
        ssl_pg.reload()
        waits.wait_for("the server's setting", lambda: ssl_pg.value("show ssl_max_protocol_version") == ("TLSv1.2" if "1.2" in word else ""))

    limit("set ssl_max_protocol_version = 'TLSv1.2'")
    try:
        pool = start_pool(ssl_pg.address, backend_ssl_mode0="require", backend_ssl_ciphers0="ECDHE-ECDSA-CHACHA20-POLY1305",
                          ssl_ciphers="ECDHE-ECDSA-AES128-SHA", backend_ssl_min_protocol_version0="TLSv1.2", num_init_children=1)
        with Wire(pool.address) as w:
            assert w.login("either", "postgres")[-1].type == "Z"
            found = w.value("select version || ' ' || cipher from pg_stat_ssl where pid = pg_backend_pid()")
            assert found == "TLSv1.2 ECDHE-ECDSA-CHACHA20-POLY1305"
        pool.reload(backend_ssl_min_protocol_version0="TLSv1.3")
        waits.wait_for("new connections ask for more", lambda: "protocol version" in login(pool, "bob")[1], 10)
    finally:
        limit("reset ssl_max_protocol_version")


# ---- how it begins

@pytest.mark.parametrize("mode", ["require", "verify-full"])
def test_direct(pg, ca, start_pool, mode):
    """Without asking: our own pgpool is a server that knows it."""
    pair = ca.issue()
    server = start_pool(pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key)
    pool = start_pool(Address("localhost", server.port), backend_ssl_mode0=mode, backend_ssl_negotiation0="direct",
                      backend_ssl_ca_cert0=ca.cert)
    with Wire(pool.address) as w:
        assert w.login("trust_user", "postgres")[-1].type == "Z"
        assert w.value("select 42") == "42"


def test_direct_to_who_does_not_know_it(ssl_pg, start_pool):
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require", backend_ssl_negotiation0="direct")
    assert login(pool)[0] == ("t" if postgres.major() >= 17 else "")


class OneAnswer:
    """Takes connections, reads the request, says `answer`, and keeps what comes next."""

    def __init__(self, answer: bytes):
        self.answer = answer
        self.got: list[bytes] = []
        self.nasked = 0
        self.listener = socket.create_server(("127.0.0.1", procs.free_port()))
        self.address = Address("127.0.0.1", self.listener.getsockname()[1])
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            sock.settimeout(30 * waits.SCALE)
            try:
                first = sock.recv(8)
                if len(first) == 8 and struct.unpack("!II", first)[1] == SSL_CODE:
                    self.nasked += 1
                    if self.answer:
                        sock.sendall(self.answer)
                    self.got.append(sock.recv(4096))
                else:
                    self.got.append(first)
            except OSError:
                pass

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


ERROR = message("E", b"SFATAL\0C53300\0Msent by somebody in between\0\0")


@pytest.mark.parametrize("mode", ["prefer", "require"])
@pytest.mark.parametrize("answer, says", [
    (ERROR, "answered the request for TLS"), (b"X", "answered the request for TLS"),
    (b"S" + message("R", b"\0\0\0\0") + message("Z", b"I"), "TLS with node 0 failed")],
    ids=["error", "junk", "injected"])
def test_what_comes_before_tls_is_not_believed(ca, start_pool, mode, answer, says):
    """CVE-2021-23222 and CVE-2024-10977: one byte counts; errors and answers in clear are not passed on."""
    own = ca.issue()
    server = OneAnswer(answer)
    try:
        pool = start_pool(server.address, ssl=True, ssl_cert=own.cert, ssl_key=own.key, backend_ssl_mode0=mode)
        with Wire(pool.address, seconds=20) as w:
            last = w.login("fake", "postgres")[-1]
        assert last.type == "E" and "somebody in between" not in last.fields["M"]
        assert last.fields["C"].startswith("08") and (says in last.fields["M"] or mode == "prefer"), last.fields
        startup_packets = [g for g in server.got if b"user\0fake" in g]
        assert not startup_packets or (mode == "prefer" and answer[:1] == b"S")
    finally:
        server.close()


def test_a_silent_server(ca, start_pool):
    server = OneAnswer(b"")
    try:
        pool = start_pool(server.address, backend_ssl_mode0="require", connect_timeout=1000)
        with Wire(pool.address) as w:
            last = w.login("fake", "postgres")[-1]
        assert last.type == "E" and "did not answer the request for TLS in time" in last.fields["M"]
    finally:
        server.close()


def test_the_client_leaves_during_the_handshake(ca, start_pool):
    """The half-made link goes with it, and others are served."""
    server = OneAnswer(b"")
    try:
        pool = start_pool(server.address, backend_ssl_mode0="require", connect_timeout=0)
        w = Wire(pool.address)
        w.send_startup("fake", "postgres")
        waits.wait_for("the request for TLS is out", lambda: server.nasked == 1)
        w.reset()
        waits.wait_for("the connection to the server is closed", lambda: b"" in server.got)
    finally:
        server.close()


# ---- a link like any other

class Splitter:
    """Passes bytes on between a client and `target`, one at a time towards the client."""

    def __init__(self, target: Address, limit: int = 3000):
        self.target, self.limit = target, limit
        self.listener = socket.create_server(("127.0.0.1", procs.free_port()))
        self.address = Address("127.0.0.1", self.listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            other = self.target.connect(60)
            threading.Thread(target=self._pass, args=(sock, other, 0), daemon=True).start()
            threading.Thread(target=self._pass, args=(other, sock, self.limit), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket, split: int) -> None:
        try:
            while data := source.recv(65536):
                for i in range(min(split, len(data))):
                    target.sendall(data[i:i + 1])
                target.sendall(data[min(split, len(data)):])
                split = max(0, split - len(data))
        except OSError:
            pass
        finally:
            for sock in (source, target):
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_bytes_one_by_one(ssl_pg, start_pool):
    splitter = Splitter(ssl_pg.address)
    try:
        pool = start_pool(splitter.address, backend_ssl_mode0="require")
        with Wire(pool.address) as w:
            assert w.login("either", "postgres")[-1].type == "Z"
            assert w.value("select repeat('x', 100000)") == "x" * 100000
    finally:
        splitter.close()


def test_copy_through_two_tls_legs(ssl_pg, ca, start_pool):
    """16 MB each way, encrypted on both sides."""
    pair = ca.issue()
    pool = start_pool(ssl_pg.address, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, backend_ssl_mode0="require")
    line = b"y" * 8000 + b"\n"
    with TlsWire(pool.address, seconds=60) as w:
        w.login("either", "postgres")
        assert w.value("select ssl from pg_stat_ssl where pid = pg_backend_pid()") == "t"
        w.simple("create temp table t(a text)")
        w.send(query("copy t from stdin"))
        w.read_until("G")
        for _ in range(2000):
            w.send(message("d", line))
        w.send(message("c"))
        assert w.ready()[-1].type == "Z"
        w.send(query("copy t to stdout"))
        assert sum(len(m.body) for m in w.ready() if m.type == "d") == 2000 * len(line)


def test_slow_client_of_a_tls_link(ssl_pg, start_pool):
    """The link is not read while the client is not."""
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require")
    before = pool.memory_kb()
    w = Wire(pool.address, rcvbuf=4096, seconds=60)
    w.login("either", "postgres")
    w.send(query("select repeat('x', 10000) from generate_series(1, 5000)"))
    with Wire(pool.address) as other:
        other.login("either", "postgres")
        for _ in range(200):
            assert other.value("select 42") == "42"
    assert pool.memory_kb() - before < 30_000 or procs.is_sanitized()
    assert sum(1 for m in w.ready() if m.type == "D") == 5000
    w.bye()


@pytest.mark.parametrize("mode", ["disable", "require"])
def test_cancel_goes_the_same_way(ca, start_pool, mode):
    """The server's cancel key travels in TLS when the link does."""
    release = threading.Event()

    def script(conn) -> None:
        conn.greet()
        conn.read()
        release.wait(20 * waits.SCALE)
        conn.send(conn.answer("Q", b"select 1\0"))
        serve_rest(conn)
    server = TlsFakeServer(server_context(ca.issue()), script)
    if mode == "disable":
        server.close()
        server = FakeServer(script)
    try:
        pool = start_pool(server.address, backend_ssl_mode0=mode)
        with Wire(pool.address) as w:
            w.login("fake", "postgres")
            w.send(query("select pg_sleep(30)"))
            waits.wait_for("the query is there", lambda: any("Q" in c.seen for c in server.links()))
            cancel(pool.address, w.pid, w.key)
            waits.wait_for("the cancel is there", lambda: server.cancels)
            if mode == "require":
                assert set(server.cancels_in_tls) == {True}
            release.set()
            w.ready()
    finally:
        release.set()
        server.close()


def serve_rest(conn) -> None:
    while True:
        kind, body = conn.read()
        if kind == "X":
            return
        conn.send(conn.answer(kind, body))


def test_tls_links_do_not_travel(ssl_pg, start_pool):
    """Two workers, room for one connection: the worker that has none gets the room, not the link."""
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require", max_backend_connections=1)
    pids = set()
    for _ in range(300):
        with Wire(pool.address) as w:
            assert w.login("either", "postgres")[-1].type == "Z"
            assert w.value("select ssl from pg_stat_ssl where pid = pg_backend_pid()") == "t"
            pids.add(w.pid)
        if len(pids) > 5:
            break
    assert len(pids) > 5, "all clients came to one worker"
    waits.wait_for("those that made room have gone", lambda: len(ssl_pg.sessions("usename = 'either'")) <= 1)
    assert "malformed" not in pool.log()


def test_tls_places_change_workers(ssl_pg, start_pool):
    """24 clients of two workers on three encrypted connections, and a worker is killed: nobody starves, and never are there
    more than three."""
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require", default_pool_size=3, pool_mode="transaction",
                      server_connect_limit=2)
    load = Load(pool, [("either", "postgres")] * 24, is_rough=True)
    assert watch(ssl_pg, "usename = 'either'", load) <= 3
    waits.wait_for("all three are in use", lambda: len(ssl_pg.sessions("usename = 'either'")) == 3, 20)
    victim = workers(pool)[0]
    os.kill(victim, signal.SIGKILL)
    waits.wait_for("two workers run", lambda: victim not in (now := workers(pool)) and len(now) == 2, 20)
    more = Load(pool, [("either", "postgres")] * 10)
    assert watch(ssl_pg, "usename = 'either'", more, 10) <= 3
    more.finish()
    load.finish()
    with Wire(pool.address) as w:
        assert w.login("either", "postgres")[-1].type == "Z"
        waits.wait_for("the counts are the truth", lambda: {
            (r["used"], r["waiting"]) for r in report(w, "pool_limits") if r["name"] == "max_backend_connections"
        } == {(str(len(ssl_pg.sessions("usename = 'either'"))), "0")}, 10)


def test_reload_changes_the_mode(ssl_pg, ca, start_pool):
    """New links follow the reload; unusable files keep what was in use, and say so."""
    pool = start_pool(ssl_pg.address, backend_ssl_mode0="require", connection_cache=False)
    assert login(pool) == ("t", "")
    pool.reload(backend_ssl_mode0="disable")
    waits.wait_for("new links are plain", lambda: login(pool) == ("f", ""))
    pool.reload(backend_ssl_mode0="verify-full", backend_ssl_ca_cert0=ca.cert)
    waits.wait_for("new links are encrypted", lambda: login(pool) == ("t", ""))
    pool.reload(backend_ssl_ca_cert0=ca.dir / "index.txt")
    waits.wait_for("the log says so", lambda: "What was in use before stays in use" in pool.log())
    assert login(pool) == ("t", "")


@pytest.mark.parametrize("conf, says", [
    ({"backend_ssl_mode0": "verify-full"}, "asks for a check against no certificate"),
    ({"backend_ssl_negotiation0": "direct"}, "has no way back to no TLS"),
    ({"backend_ssl_cert0": "x.crt"}, "only one of backend_ssl_cert0 and backend_ssl_key0"),
    ({"backend_ssl_ciphers0": "HIGH"}, "what else pgpool asks by libpq know no backend_ssl_ciphers0"),
    ({"backend_ssl_mode0": "require", "backend_ssl_crl_file0": "x.crl"}, "certificates are not checked")])
def test_settings_that_contradict(pg, start_pool, conf, says):
    pool = start_pool(pg.address)
    pool.reload(**conf)
    waits.wait_for(f"the log says {says!r}", lambda: says in pool.log())
    with Wire(pool.address) as w:
        assert w.login("trust_user", "postgres")[-1].type == "Z"


def test_the_monitor_verifies_too(ssl_pg, ca, start_pool):
    """Its checks use the same mode and authority, also by a name relative to pgpool.conf."""
    pool = start_pool(ssl_pg.address)
    certs.give(ca.cert, pool.home / "ca.crt", 0o644)
    pool.reload(backend_ssl_mode0="verify-full", backend_ssl_ca_cert0="ca.crt", health_check_period=1000,
                health_check_user="either", health_check_database="postgres")

    def seen() -> bool:
        return bool(ssl_pg.rows("select 1 from pg_stat_activity join pg_stat_ssl using (pid) "
                                "where usename = 'either' and ssl and application_name like '%monitor%'"))
    waits.wait_for("the monitor's connection is encrypted", seen, 20)
    waits.wait_for("the workers have the settings, too", lambda: login(pool) == ("t", ""))
