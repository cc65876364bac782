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
