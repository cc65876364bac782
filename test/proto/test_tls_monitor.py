# SPDX-License-Identifier: PostgreSQL
"""TLS of the monitor's checks: libpq speaks it, but what it does is what links do."""
import ssl

import pytest

from pgt import certs, waits
from pgt.fake import FakeServer, error, serve
from pgt.tls import TlsFakeServer, server_context
from pgt.wire import message

CHECKS = {"health_check_period": 1000, "sr_check_period": 0, "health_check_user": "watcher",
          "health_check_password": "watcher_pw"}


@pytest.fixture(scope="module")
def ca():
    return certs.Authority()


@pytest.fixture
def start(start_pool, ca):
    """A pool with TLS, whose checks come each second; there is no client."""
    own = ca.issue()

    def go(server, **conf):
        return start_pool(server.address, ssl=True, ssl_cert=own.cert, ssl_key=own.key, **{**CHECKS, **conf})
    return go


def logins(server: FakeServer) -> list[str]:
    return [c.params["user"] for c in server.conns if c.params]


@pytest.mark.parametrize("mode", ["prefer", "require"])
@pytest.mark.parametrize("what", ["other CA", "revoked"])
def test_a_certificate_that_does_not_verify(ca, start, mode, what):
    """No login follows, neither in clear nor to whom the certificate belongs."""
    issuer = certs.Authority("other CA") if what == "other CA" else ca
    pair = issuer.issue()
    more = {"backend_ssl_crl_file0": ca.revoke(pair)} if what == "revoked" else {}
    server = TlsFakeServer(server_context(pair))
    try:
        start(server, backend_ssl_mode0=mode, backend_ssl_ca_cert0=ca.cert, **more)
        waits.wait_for("three checks failed", lambda: len(server.errors) >= 3, 20)
        assert server.in_clear == 0 and not logins(server)
    finally:
        server.close()


@pytest.mark.parametrize("what", ["no TLS", "no common cipher"])
def test_a_server_that_cannot(ca, start, what):
    """Has no certificate to be judged: prefer goes on in clear, as links do."""
    ctx = server_context(ca.issue())
    ctx.maximum_version = ssl.TLSVersion.TLSv1_2
    ctx.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")  # the key is none of RSA
    server = FakeServer() if what == "no TLS" else TlsFakeServer(ctx)
    try:
        start(server, backend_ssl_mode0="prefer", backend_ssl_ca_cert0=ca.cert)
        waits.wait_for("a check in clear", lambda: "watcher" in logins(server) or getattr(server, "in_clear", 0) > 0, 20)
    finally:
        server.close()


def refuse(state: str):
    """Asks for a password, and does not like it."""
    def script(conn) -> None:
        conn.send(message("R", b"\0\0\0\3"))
        conn.read()
        conn.send(error(state, "no", "FATAL"))
    return script


def refuse_at_once(conn) -> None:
    conn.send(error("28000", "no pg_hba.conf entry for this", "FATAL"))


@pytest.mark.parametrize("script, falls_back", [
    (refuse("28P01"), False), (refuse("28000"), False), (refuse_at_once, True), (serve, False)],
    ids=["wrong password", "refused", "no line", "welcome"])
@pytest.mark.parametrize("known", [True, False], ids=["ca", "no ca"])
def test_what_a_server_says_in_tls(ca, start, known, script, falls_back):
    """A password that was wrong in TLS is not tried in clear; where there is no line for TLS there may be another one."""
    server = TlsFakeServer(server_context(ca.issue()), script, "watcher")
    try:
        start(server, backend_ssl_mode0="prefer", **({"backend_ssl_ca_cert0": ca.cert} if known else {}))
        waits.wait_for("three checks came", lambda: len(logins(server)) >= 3, 20)
        if falls_back:
            waits.wait_for("the other way", lambda: server.in_clear > 0)
        assert (server.in_clear > 0) == falls_back
    finally:
        server.close()


# ---- a folder of authorities: libpq knows none, so it gets a file of what is in it

@pytest.mark.parametrize("mode", ["prefer", "require", "verify-ca", "verify-full"])
def test_folder_of_authorities(ca, start, mode):
    """Who is signed by one of them is asked, a stranger learns not even the name of the user."""
    other = certs.Authority("other CA")
    friend, stranger = TlsFakeServer(server_context(ca.issue())), TlsFakeServer(server_context(other.issue()))
    folder = certs.folder_of(certs.Authority("third CA"), ca)
    certs.give(other.cert, folder / "unnamed.pem", 0o644)  # OpenSSL finds neither this one
    certs.give(other.cert, folder / "deadbeef.0", 0o644)  # nor this one by the name of its subject
    (folder / "0badcafe.0").write_text("junk", encoding="ascii")
    try:
        pool = start(friend, backend_ssl_mode0=mode, ssl_ca_cert_dir=folder,
                     backend_hostname1=stranger.address.host, backend_port1=stranger.address.port,
                     backend_ssl_mode1=mode, health_check_max_retries=0)
        waits.wait_for("the friend is asked", lambda: "watcher" in logins(friend), 20)
        waits.wait_for("three checks of the stranger failed", lambda: len(stranger.errors) >= 3, 20)
        assert stranger.in_clear == 0 and not logins(stranger)
        waits.wait_for("the log says why", lambda: "certificate verify failed" in pool.log())
        [made] = pool.home.glob("pgpool_ca.*.pem")
        assert made.stat().st_mode & 0o777 == 0o600
    finally:
        friend.close()
        stranger.close()


def test_folder_and_file_of_authorities(ca, start):
    """Whoever is in either is believed, as by links."""
    in_file = certs.Authority("in the file")
    servers = [TlsFakeServer(server_context(a.issue())) for a in (ca, in_file)]
    try:
        start(servers[0], backend_ssl_mode0="verify-full", ssl_ca_cert=in_file.cert, ssl_ca_cert_dir=certs.folder_of(ca),
              backend_hostname1=servers[1].address.host, backend_port1=servers[1].address.port,
              backend_ssl_mode1="verify-full")
        for server in servers:
            waits.wait_for("it is asked", lambda s=server: "watcher" in logins(s), 20)
    finally:
        for server in servers:
            server.close()


def test_an_empty_folder_and_a_foreign_file(ca, start):
    """Nobody is believed where there is nobody to believe, or where others may write."""
    server = TlsFakeServer(server_context(ca.issue()))
    try:
        pool = start(server, backend_ssl_mode0="require", ssl_ca_cert_dir=certs.folder_of())
        waits.wait_for("the log says why", lambda: "root certificate file" in pool.log(), 20)
        [made] = pool.home.glob("pgpool_ca.*.pem")
        assert made.read_text(encoding="ascii") == "" and not logins(server)
        made.chmod(0o666)  # first: with what is written then it would be good enough
        made.write_text(ca.cert.read_text(encoding="ascii"), encoding="ascii")
        pool.reload(health_check_user0="later")
        waits.wait_for("it is made anew", lambda: made.read_text(encoding="ascii") == "" and made.stat().st_mode & 0o777 == 0o600, 20)
        assert not logins(server)
    finally:
        server.close()


def test_stricter_after_a_reload(ca, start):
    """The next check keeps to the new settings."""
    server = TlsFakeServer(server_context(certs.Authority("other CA").issue()))
    try:
        pool = start(server, backend_ssl_mode0="require")
        waits.wait_for("it is asked", lambda: "watcher" in logins(server), 20)
        pool.reload(backend_ssl_mode0="verify-full", ssl_ca_cert_dir=certs.folder_of(ca))
        waits.wait_for("a check failed", lambda: len(server.errors) >= 1, 20)
        before = len(logins(server))
        waits.wait_for("three more failed", lambda: len(server.errors) >= 4, 20)
        assert len(logins(server)) == before
    finally:
        server.close()


def test_oldest_version(ca, start):
    """backend_ssl_min_protocol_version holds for checks too."""
    ctx = server_context(ca.issue())
    ctx.maximum_version = ssl.TLSVersion.TLSv1_2
    server = TlsFakeServer(ctx)
    try:
        start(server, backend_ssl_mode0="require", backend_ssl_min_protocol_version0="TLSv1.3")
        waits.wait_for("three checks failed", lambda: len(server.errors) >= 3, 20)
        assert not logins(server)
    finally:
        server.close()


def test_no_tls_where_it_is_required(ca, start):
    """No user's name goes to a server that has none."""
    server = FakeServer()
    try:
        pool = start(server, backend_ssl_mode0="require", ssl_ca_cert_dir=certs.folder_of(ca))
        waits.wait_for("the log says why", lambda: "server does not support SSL" in pool.log(), 20)
        assert not logins(server)
    finally:
        server.close()
