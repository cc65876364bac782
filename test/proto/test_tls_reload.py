# SPDX-License-Identifier: PostgreSQL
"""New certificates by reload, under load: nobody is dropped, new clients see the new one, a bad one changes
nothing."""
import base64
import hashlib
import os
import re
import signal
import ssl
import subprocess
import threading
import time

import pytest

from pgt import certs, postgres, procs, proxy, waits, web
from pgt.tls import TlsWire, client_context, der_of, shown_cert
from pgt.wire import SSL_CODE, Wire, request_code

USER = {"user": "trust_user", "database": "postgres"}
RELOADS = 400


@pytest.fixture(scope="module")
def ca():
    return certs.Authority()


class Load:
    """pgbench again and again until it is told to end; every run must be without failures."""

    def __init__(self, pool, *args: str, env: dict[str, str]):
        self.command = [str(postgres.client("pgbench")), "-n", "-h", "localhost", "-p", str(pool.port), "-U",
                        "trust_user", "-f", "-", "-T", "3", *args, "postgres"]
        self.env = env
        self.outputs: list[str] = []
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.ending.is_set():
            done = subprocess.run(self.command, input="select 42;\n", env=self.env, text=True, check=False,
                                  capture_output=True, timeout=60 * waits.SCALE)
            self.outputs.append(f"{done.returncode}\n{done.stdout}{done.stderr}")

    def end(self) -> None:
        self.ending.set()
        self.thread.join(90 * waits.SCALE)
        assert not self.thread.is_alive() and self.outputs
        for out in self.outputs:
            assert out.startswith("0\n") and "number of failed transactions: 0 " in out, out


def test_many_reloads_under_load(pg, ca, start_pool):
    """Two certificates in turn, while sessions work and others come and go, all of them verifying."""
    pairs = [ca.issue(), ca.issue()]
    pool = start_pool(pg.address, ssl=True, ssl_cert=pairs[0].cert, ssl_key=pairs[0].key)
    env = {"PATH": "/usr/bin:/bin", "PGSSLMODE": "verify-full", "PGSSLROOTCERT": str(ca.cert), "HOME": "/nonexistent"}
    stays = TlsWire(pool.address, ctx=client_context(ca.cert))
    stays.login(**USER)
    steady = Load(pool, "-c", "4", env=env)
    coming = Load(pool, "-c", "4", "-C", env=env)
    memory = 0
    for i in range(1, RELOADS + 1):
        pair = pairs[i % 2]
        pool.reload(ssl_cert=pair.cert, ssl_key=pair.key)
        waits.wait_for(f"reload {i} is taken", lambda n=i: f"configuration generation {n + 1} is in use" in tail(pool))
        if i == 100:
            memory = pool.memory_kb()
        assert stays.value("select 42") == "42"
    waits.wait_for("new clients see the last one", lambda: shown_cert(pool.address) == der_of(pairs[RELOADS % 2]))
    steady.end()
    coming.end()
    assert stays.value("select 42") == "42"
    stays.bye()
    assert pool.memory_kb() < memory * 1.3 + 4000 or procs.is_sanitized()
    assert "stays in use" not in pool.log()


def tail(pool) -> str:
    with open(pool.home / "proxy.log", "rb") as f:
        f.seek(0, 2)
        f.seek(max(0, f.tell() - 4096))
        return f.read().decode(errors="replace")


def test_an_expired_certificate_is_told(pg, ca, start_pool):
    """It is used, for it is for the client to judge: whoever starts pgpool, asks for a check or reloads hears of it."""
    good, late = ca.issue(), ca.issue(expired=True)
    told = "TLS with clients: the certificate has expired at 2020-02-01 00:00:00 GMT"
    pool = start_pool(pg.address, ssl=True, ssl_cert=late.cert, ssl_key=late.key)
    assert f"WARNING:  {told}" in pool.log() and shown_cert(pool.address) == der_of(late)

    def ask(*order):
        done = subprocess.run([proxy.pgpool_bin(), "-f", str(pool.conf_path), *order], capture_output=True, text=True,
                              timeout=60 * waits.SCALE, check=False)
        assert done.returncode == 0, done
        return done.stderr
    assert f"warning: {told}" in ask("--check-config") and told in ask("reload")
    pool.write_conf(ssl_cert=good.cert, ssl_key=good.key)
    assert "expired" not in ask("--check-config") + ask("reload")


def test_a_certificate_that_will_expire_is_told_while_pgpool_runs(pg, ca, start_pool):
    """From 14 days before: in the log, among the events, in /metrics and in the console's first sentence; and when it has."""
    days, now = 14 * 86400, int(time.time())
    enters, near, own = ca.issue(until=now + days + 25), ca.issue(until=now + 25), ca.issue()
    pool = start_pool(pg.address, ssl=True, ssl_cert=enters.cert, ssl_key=enters.key, backend_ssl_cert0=own.cert, backend_ssl_key0=own.key,
                      http_port=procs.free_port(), http_listen_addresses="127.0.0.1", http_metrics_open=True,
                      sr_check_user="postgres", sr_check_period=1, health_check_user="postgres", health_check_period=1)
    port = pool.conf["http_port"]
    (pool.home / "pcp.conf").write_text(f"op:{hashlib.md5(b'secret').hexdigest()}\n", encoding="ascii")
    web.wait_status(port, "/livez", 200)

    def expires(setting: str) -> float:
        return float(re.search(r'^pgpool_certificate_expires_seconds\{setting="%s"\} (\S+)$' % setting,
                               web.ask(port, "/metrics").text, re.M)[1])

    def sentences() -> str:
        answer = web.ask(port, "/api/v1/health", Authorization="Basic " + base64.b64encode(b"op:secret").decode())
        return answer.json()["troubles"][0]["en"]

    def told(text: str) -> bool:
        return f'the certificate of ssl_cert, "{enters.cert}", {text}' in pool.log()
    is_told = told("expires at")
    assert not is_told or time.time() >= now + 25, "it is told of too early"
    assert expires("ssl_cert") == now + days + 25 and expires("backend_ssl_cert0") > now + days
    waits.wait_for("it is told of while pgpool runs", lambda: told("expires at"), 60)
    when = time.strftime("%Y-%m-%d %H:%M:%S GMT", time.gmtime(now + days + 25))
    assert told(f"expires at {when}\n") and "certificate of backend_ssl_cert0" not in pool.log()
    waits.wait_for("the console begins with it", lambda: f"expires at {when}. Renew it and reload." in sentences())
    with Wire(pool.address) as w:
        w.login(**USER)
        events = w.rows("show pool_events")
        assert [b"certificate", f"the certificate of ssl_cert expires at {when}".encode()] in [r[2:4] for r in events], events
    pool.reload(ssl_cert=near.cert, ssl_key=near.key)
    waits.wait_for("the other one has expired", lambda: f'"{near.cert}", has expired at' in pool.log(), 60)
    waits.wait_for("the console says so", lambda: "The certificate of ssl_cert" in sentences() and "has expired at" in sentences(), 60)
    assert expires("ssl_cert") == now + 25
    pool.reload(ssl_cert=own.cert, ssl_key=own.key)
    waits.wait_for("all is well", lambda: "All is well" in sentences(), 60)


def test_an_alert_of_expiry_hints_at_ssl_cert(pg, ca, start_pool):
    late = ca.issue(expired=True)
    pool = start_pool(pg.address, ssl=True, ssl_cert=late.cert, ssl_key=late.key)
    with pytest.raises(ssl.SSLCertVerificationError):
        with TlsWire(pool.address, ctx=client_context(ca.cert)) as w:
            w.login(**USER)
    waits.wait_for("the log has a hint", lambda: "clients are shown ssl_cert, servers backend_ssl_cert. Renew it and reload." in pool.log())


def test_bad_certificates_change_nothing(pg, ca, start_pool, tmp_path):
    good, other, late = ca.issue(), ca.issue(), ca.issue(expired=True)
    junk = tmp_path / "junk.pem"
    junk.write_text("junk", encoding="ascii")
    loose = certs.give(other.key, tmp_path / "loose.key", 0o644)
    pool = start_pool(pg.address, ssl=True, ssl_cert=good.cert, ssl_key=good.key)
    with TlsWire(pool.address) as stays:
        stays.login(**USER)
        for cert, key, says in ((junk, good.key, "could not load certificate file"),
                                (other.cert, good.key, "key values mismatch"),
                                (other.cert, junk, "junk.pem"), (other.cert, loose, "has group or world access"),
                                (tmp_path / "none.crt", good.key, "none.crt")):
            pool.reload(ssl_cert=cert, ssl_key=key)
            waits.wait_for(f"the log says {says!r}", lambda s=says: s in pool.log())
            assert shown_cert(pool.address) == der_of(good)
            assert stays.value("select 42") == "42"
        assert "What was in use before stays in use" in pool.log()
        # An expired one is for the client to judge: it is shown.
        pool.reload(ssl_cert=late.cert, ssl_key=late.key)
        waits.wait_for("it is shown", lambda: shown_cert(pool.address) == der_of(late))
        pool.reload(ssl_cert=other.cert, ssl_key=other.key)
        waits.wait_for("the good one is shown", lambda: shown_cert(pool.address) == der_of(other))


def test_replaced_files(pg, ca, start_pool, tmp_path):
    """Files that get other contents under their names are read at a reload."""
    one, two = ca.issue(), ca.issue()
    cert = certs.give(one.cert, tmp_path / "server.crt", 0o644)
    key = certs.give(one.key, tmp_path / "server.key")
    pool = start_pool(pg.address, ssl=True, ssl_cert=cert, ssl_key=key)
    assert shown_cert(pool.address) == der_of(one)
    certs.give(two.cert, cert, 0o644)
    certs.give(two.key, key)
    assert shown_cert(pool.address) == der_of(one)
    pool.reload()
    waits.wait_for("the new one is shown", lambda: shown_cert(pool.address) == der_of(two))


def test_reload_of_revocation(pg, ca, start_pool):
    """A client's certificate is revoked: the next reload shuts it out, its running session goes on."""
    own, ann = ca.issue(), ca.issue("ann")
    crl = ca.revoke()
    pool = start_pool(pg.address, ssl=True, ssl_cert=own.cert, ssl_key=own.key, ssl_ca_cert=ca.cert, ssl_crl_file=crl)
    ctx = client_context(pair=ann)

    def enters() -> bool:
        try:
            with TlsWire(pool.address, ctx=ctx) as w:
                return w.login(**USER)[-1].type == "Z"
        except Exception:
            return False
    with TlsWire(pool.address, ctx=ctx) as stays:
        stays.login(**USER)
        assert enters()
        ca.revoke(ann)
        assert enters()
        pool.reload()
        waits.wait_for("ann is shut out", lambda: not enters())
        assert stays.value("select 42") == "42"


def test_a_new_worker_without_certificate(pg, ca, start_pool, tmp_path):
    """The files are broken when a crashed worker is replaced: it says no to TLS by an error, never by N; a
    reload with good files mends it."""
    pair = ca.issue()
    cert = certs.give(pair.cert, tmp_path / "server.crt", 0o644)
    pool = start_pool(pg.address, ssl=True, ssl_cert=cert, ssl_key=pair.key, num_init_children=1)
    worker = waits.wait_for("it rests", lambda: next(
        (pid for pid in pool.pids() if "wait for connection request" in procs.command_line(pid)
         and "PCP" not in procs.command_line(pid)), None))
    cert.write_text("junk", encoding="ascii")
    os.kill(worker, signal.SIGKILL)
    waits.wait_for("the new worker says what is wrong",
                   lambda: "Clients that ask for TLS are refused until a reload" in pool.log())
    with Wire(pool.address) as w:
        w.send(request_code(SSL_CODE))
        assert [m.fields["C"] for m in w.read_eof()] == ["58000"]
    with Wire(pool.address) as w:
        assert w.login(**USER)[-1].type == "Z"
    certs.give(pair.cert, cert, 0o644)
    pool.reload()

    def shown() -> bool:
        try:
            return shown_cert(pool.address) == der_of(pair)
        except AssertionError:
            return False
    waits.wait_for("TLS works again", shown)
