# SPDX-License-Identifier: PostgreSQL
"""test_web_probes: what load balancers and container managers ask over HTTP."""
import contextlib
import os
import re
import resource
import signal
import socket

import pytest

from pgt import certs, postgres, procs, waits, web
from pgt.proxy import pgpool_bin
from pgt.tls import client_context
from pgt.trio import Trio
from pgt.wire import Wire
from test_watchdog import cluster  # noqa: F401

WATCHED = {"health_check_period": 1, "health_check_max_retries": 0, "sr_check_period": 1, "sr_check_user": "postgres",
           "health_check_user": "postgres"}


def web_pool(start_pool, *backends, **conf):
    pool = start_pool(*backends, **{"http_port": procs.free_port(), "http_listen_addresses": "127.0.0.1", **WATCHED, **conf})
    pool.web = pool.conf["http_port"]
    return pool


def slot_pid(pool, title: str) -> int:
    """The process of `pool` with that title."""
    def found():
        return next((pid for pid in pool.pids() if title in procs.command_line(pid)), None)
    return waits.wait_for(f"a process is called {title}", found)


def test_one_server(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    assert web.ask(pool.web, "/livez").status == 200
    assert web.wait_status(pool.web, "/readyz", 200).text == "clients may log in\n"
    web.wait_status(pool.web, "/primary", 200)
    assert web.ask(pool.web, "/replica").status == 503
    assert web.ask(pool.web, "/leader").status == 200
    assert web.ask(pool.web, "/livez", "HEAD").body == b""
    assert web.ask(pool.web, "/livez", "POST", "x").status == 405
    assert web.ask(pool.web, "/nothing/../here").status == 404


def test_nothing_without_a_port(pg, start_pool):
    pool = start_pool(pg.address, http_port=0)
    assert not [pid for pid in pool.pids() if b"HTTP" in open(f"/proc/{pid}/cmdline", "rb").read()]


def test_only_this_machine_by_default(pg, start_pool):
    """Who listens on all addresses would answer at 127.0.0.2, too."""
    pool = start_pool(pg.address, http_port=procs.free_port())
    web.wait_status(pool.conf["http_port"], "/livez", 200)
    with pytest.raises(OSError):
        web.ask(pool.conf["http_port"], "/livez", host="127.0.0.2")
    open_pool = start_pool(pg.address, http_port=procs.free_port(), http_listen_addresses="*")
    web.wait_status(open_pool.conf["http_port"], "/livez", 200)
    assert web.ask(open_pool.conf["http_port"], "/livez", host="127.0.0.2").status == 200


def test_headers(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    headers = web.ask(pool.web, "/livez").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


def test_servers_go_and_come(start_pool):
    """No server: nobody can log in. No primary: reads only."""
    trio = Trio(1)
    try:
        pool = web_pool(start_pool, *[n.address for n in trio.nodes])
        for path in ("/readyz", "/primary", "/replica"):
            web.wait_status(pool.web, path, 200)
        trio.primary.stop(signal.SIGQUIT)
        assert "primary" in web.wait_status(pool.web, "/primary", 503).text
        assert web.ask(pool.web, "/readyz").status == 200
        web.wait_status(pool.web, "/replica", 200)
        for node in trio.standbys:
            trio.nodes[node].stop(signal.SIGQUIT)
        said = web.wait_status(pool.web, "/readyz", 503).text
        assert "No PostgreSQL server can be used, of 3" in said
        waits.wait_for("all causes are known", lambda: len(set(re.findall(r"DETAIL:  connection to server at .* port (\d+) failed", pool.log()))) == 3)
        for path in ("/readyz", "/primary", "/replica"):  # anybody may ask: they have addresses in them, and names of users
            assert web.ask(pool.web, path).text == "No PostgreSQL server can be used, of 3: nobody can log in.\n"
        assert web.ask(pool.web, "/livez").status == 200
        assert web.ask(pool.web, "/replica").status == 503
    finally:
        trio.stop()


def test_drain_is_not_ready(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    web.wait_status(pool.web, "/readyz", 200)
    with Wire(pool.address) as w:
        w.login(user="postgres")
        w.simple("pgpool drain")
        assert "drain" in web.wait_status(pool.web, "/readyz", 503).text
        w.simple("pgpool resume")
        web.wait_status(pool.web, "/readyz", 200)


def test_stopping_is_not_ready(pg, start_pool):
    """A smart stop waits for its client; meanwhile probes answer, and say no."""
    pool = web_pool(start_pool, pg.address)
    web.wait_status(pool.web, "/readyz", 200)
    with Wire(pool.address) as w:
        w.login()
        pool.daemon.signal(signal.SIGTERM)
        assert "stopping" in web.wait_status(pool.web, "/readyz", 503).text
        assert web.ask(pool.web, "/livez").status == 200
    pool.stop(signal.SIGTERM)


def test_full_is_not_ready(pg, start_pool):
    pool = web_pool(start_pool, pg.address, max_clients=2, reserved_connections=0)
    web.wait_status(pool.web, "/readyz", 200)
    with Wire(pool.address) as one, Wire(pool.address) as two:
        one.login()
        two.login()
        assert "max_clients" in web.wait_status(pool.web, "/readyz", 503).text
    web.wait_status(pool.web, "/readyz", 200)


def test_comes_back_after_a_crash(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    web.wait_status(pool.web, "/readyz", 200)
    pid = slot_pid(pool, "HTTP")
    os.kill(pid, signal.SIGKILL)
    waits.wait_for("another process answers HTTP", lambda: slot_pid(pool, "HTTP") != pid)
    web.wait_status(pool.web, "/readyz", 200)


def test_out_of_descriptors(pg, start_pool):
    """More connections than descriptors: it goes on, and does not spin."""
    pool = web_pool(start_pool, pg.address)
    web.wait_status(pool.web, "/livez", 200)
    pid = slot_pid(pool, "HTTP")
    used = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 4, used + 4))
    socks = [socket.create_connection(("127.0.0.1", pool.web)) for _ in range(20)]
    waits.wait_for("it says that it cannot accept", lambda: "could not accept an HTTP connection" in pool.log())
    for sock in socks:
        sock.close()
    web.wait_status(pool.web, "/livez", 200)
    # Each refusal is a line and a pause of 200 ms; a spinning process writes thousands.
    assert pool.log().count("could not accept an HTTP connection") < 1000


def ended(sock: socket.socket) -> bool:
    """Has the other side closed it by now?"""
    sock.settimeout(0)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
    except BlockingIOError:
        return False


def test_too_many_from_one_address(pg, start_pool):
    """The oldest go: whoever comes later is answered."""
    pool = web_pool(start_pool, pg.address)
    web.wait_status(pool.web, "/livez", 200)
    socks = [socket.create_connection(("127.0.0.1", pool.web)) for _ in range(80)]
    waits.wait_for("as many are left as may be", lambda: sum(map(ended, socks)) >= 16)
    assert web.ask(pool.web, "/livez").status == 200
    assert 16 <= sum(map(ended, socks)) <= 20, "nobody else goes"
    assert not ended(socks[-1])
    for sock in socks:
        sock.close()


@pytest.mark.slow
@pytest.mark.parametrize("https", [False, True])
def test_a_slow_stranger(pg, start_pool, https):
    """A byte now and then is no silence; a request has a limit as a whole, and so has the handshake in front of it."""
    pair = certs.Authority("one").issue("localhost")
    conf = {"http_ssl": True, "ssl_cert": pair.cert, "ssl_key": pair.key} if https else {}
    pool = start_pool(pg.address, http_port=procs.free_port(), **conf)
    at = ("127.0.0.1", pool.conf["http_port"])

    def listens() -> bool:
        try:
            socket.create_connection(at).close()
            return True
        except OSError:
            return False
    waits.wait_for("HTTP is served", listens)
    with socket.create_connection(at) as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01" if https else b"GET /livez HTTP/1.1\r\nX-Slow: ")

        def sent_one_more() -> bool:
            try:
                sock.settimeout(5)
                sock.sendall(b"x")
                return sock.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True
        waits.wait_for("the connection is ended", sent_one_more, 90)
    assert listens()


def test_long_requests(pg, start_pool):
    pool = web_pool(start_pool, pg.address)
    web.wait_status(pool.web, "/livez", 200)
    assert web.ask(pool.web, "/livez", "POST", b"x" * 70000).status == 413
    assert web.ask(pool.web, "/" + "x" * 60000).status in (404, 414, 431)
    assert web.ask(pool.web, "/livez").status == 200


def test_https(pg, start_pool):
    """With http_ssl there is HTTPS alone; another certificate comes with a reload, a bad one does not."""
    first, second = certs.Authority("one"), certs.Authority("two")
    pair, other = first.issue("localhost"), second.issue("localhost")
    pool = web_pool(start_pool, pg.address, http_ssl=True, ssl_cert=pair.cert, ssl_key=pair.key)
    tls = client_context(first.cert)

    def served(ctx) -> bool:
        try:
            return web.ask(pool.web, "/livez", tls=ctx, host="localhost").status == 200
        except OSError:
            return False
    waits.wait_for("HTTPS is served", lambda: served(tls))
    with pytest.raises(Exception):
        web.ask(pool.web, "/livez")
    pool.reload(ssl_cert=other.cert, ssl_key=other.key)
    waits.wait_for("the other certificate is served", lambda: served(client_context(second.cert)))
    pool.reload(ssl_key=pair.key)
    waits.wait_for("the bad pair is refused", lambda: "cannot be used for HTTPS" in pool.log())
    assert served(client_context(second.cert))


def test_https_needs_a_certificate(start_pool):
    home = procs.folder("conf")
    conf = home / "pgpool.conf"
    conf.write_text(f"http_port = {procs.free_port()}\nhttp_ssl = on\n", encoding="ascii")
    with pytest.raises(AssertionError, match="http_ssl is on, but there is no certificate"):
        procs.run([pgpool_bin(), "--check-config", "-f", str(conf)])


def test_leader_of_a_watchdog(cluster):  # noqa: F811
    """One of three says yes; without a majority nobody does."""
    ports = [procs.free_port() for _ in range(3)]
    it = cluster(http_port=ports, http_listen_addresses="127.0.0.1").start()
    it.wait_leader(0, 1, 2)

    def said() -> list[int]:
        with contextlib.suppress(OSError):
            return [web.ask(port, "/leader").status for port in ports]
        return []
    found = waits.wait_for("one says yes", lambda: (lambda f: f if sorted(f) == [200, 503, 503] else None)(said()))
    left, *gone = sorted(range(3), key=found.__getitem__)
    for i in gone:
        it.pools[i].stop()
    web.wait_status(ports[left], "/leader", 503, 60)
