# SPDX-License-Identifier: PostgreSQL
"""test_hba_live: what lines of pool_hba.conf mean, seen from clients: one server and one pgpool, whose rules are replaced and
reloaded for each question. pgpool runs in a mount namespace with an /etc/hosts of its own, where that is permitted."""
import os
import pwd
import shutil
import socket
import subprocess
from dataclasses import dataclass

import pytest

import auth_house as house
from pgt import certs, proxy
from pgt.tls import TlsWire, client_context
from pgt.waits import wait_for
from pgt.wire import Address, Wire

HOSTS = "127.0.0.1 app.house.example\n::1 localhost\n"
ME = pwd.getpwuid(os.getuid()).pw_name
IDENT = f'os {ME} ann\ndn "O=House,CN=Cid" cid\ndn "/^O=House,CN=(.*)[.]ops$" \\1\n'


@dataclass
class From(Address):
    """The address, dialled from another one of this machine."""
    source: str = "127.0.0.1"

    def connect(self, seconds: float = 10.0, rcvbuf: int = 0):
        sock = socket.socket()
        sock.settimeout(seconds)
        sock.bind((self.source, 0))
        sock.connect((self.host, self.port))
        return sock


def may_unshare() -> bool:
    return shutil.which("unshare") is not None and \
        subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


class Lab:
    def __init__(self):
        self.pg = house.start_server()
        for name in ("ann", "bob", "cid"):
            house.make_user(self.pg, name, "trust")
        self.ca = certs.Authority()
        pair = self.ca.issue()
        self.own_hosts = may_unshare()
        self.count = 0
        launch = house.start_daemon
        house.start_daemon = self.launch
        try:
            self.pool = house.start_auth_pool(
                [self.pg.address], hba="host all all all reject\n", ident=IDENT, passwd="looker:looker_pw\n", auth_user="looker",
                auth_dbname="postgres", num_init_children=1, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key, ssl_ca_cert=self.ca.cert)
        finally:
            house.start_daemon = launch

    def launch(self, pool, _key) -> None:
        command = [proxy.pgpool_bin(), "-n", "-f", str(pool.conf_path)]
        if self.own_hosts:
            house.put(pool.home / "hosts", HOSTS)
            (pool.home / "hosts").chmod(0o644)
            command = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(pool.home / "hosts"), *command]
        pool.launch(command)

    def rules(self, text: str) -> None:
        """The rules, and a line by which one sees that they hold."""
        self.count += 1
        house.put(self.pool.home / "pool_hba.conf", f"host seen{self.count} all all trust\n{text}")
        self.pool.reload()
        wait_for("the rules hold", lambda: self.passes("boss", f"seen{self.count}"))

    def passes(self, user: str, database: str = "postgres", address=None, wire=None) -> bool:
        """Does pgpool let the client pass? What the server says then is another matter."""
        with wire() if wire is not None else Wire(address or self.pool.address) as w:
            last = w.login(user, database)[-1]
            if last.type == "E" and last.text in ("client authentication failed", f'CERT authentication failed for user "{user}"',
                                                  f'peer authentication failed for user "{user}"'):
                return False
            return True

    def over_tls(self, pair=None):
        ctx = client_context()
        if pair is not None:
            ctx.load_cert_chain(pair.cert, pair.key)
        return lambda: TlsWire(self.pool.address, ctx=ctx)

    def stop(self) -> None:
        self.pool.stop()
        self.pg.stop()


@pytest.fixture(scope="module")
def lab():
    made = Lab()
    yield made
    made.stop()


def test_databases_and_users(lab):
    lab.rules('host sameuser ann all trust\nhost samerole bob all trust\nhost groups +srv_trust all trust\n'
              'host groups +srv_md5 all reject\nhost "/^app_[0-9]+$",listed "/^c.d$",boss all trust\nhost "sameuser" cid all trust\n')
    for user, database, want in (
            ("ann", "ann", True), ("ann", "bob", False), ("ann", "postgres", False),
            ("bob", "srv_trust", True), ("bob", "bob", True), ("bob", "srv_md5", False),
            ("cid", "groups", True), ("boss", "groups", False), ("looker", "groups", False),
            ("cid", "app_12", True), ("cid", "app_x", False), ("cid", "my_app_1", False), ("cid", "listed", True), ("boss", "app_1", True),
            ("ann", "app_1", False), ("cid", "sameuser", True), ("cid", "cid", False)):
        assert lab.passes(user, database) == want, (user, database)


def test_addresses(lab):
    other = From(lab.pool.address.host, lab.pool.address.port, "127.0.0.2")
    lab.rules("host all ann samehost trust\nhost all bob samenet trust\nhost all cid 127.0.0.0 255.255.255.254 trust\n"
              "host all boss 127.0.0.2/32 trust\nhost all looker 10.0.0.0/8 trust\nhostgssenc all looker all trust\n"
              "hostnogssenc all nosuch all trust\n")
    for user, here, there in (("ann", True, False), ("bob", True, True), ("cid", True, False), ("boss", False, True),
                              ("looker", False, False), ("nosuch", True, True)):
        assert lab.passes(user) == here, user
        assert lab.passes(user, address=other) == there, (user, "from 127.0.0.2")


def test_files(lab):
    home = lab.pool.home
    (home / "rules.d" / "sub").mkdir(parents=True)
    for name, text in {"rules.d/20-second.conf": "host all ann all trust\nhost all bob all trust\n",
                       "rules.d/10-first.conf": "host refused ann all reject\n",
                       "rules.d/30-not.txt": "host all cid all trust\n", "rules.d/.40-hidden.conf": "host all cid all trust\n",
                       "deep.conf": "include_if_exists more.conf\n", "more.conf": "host deep cid all trust\n",
                       "people": "ann # and\n\"bob\", @others\n", "others": "+srv_password\n", "places": "one two,three\n"}.items():
        house.put(home / name, text)
    lab.rules("host @places @people all trust\nhost named all all reject\ninclude_dir rules.d\ninclude deep.conf\n"
              "include_if_exists nowhere.conf\nhost all all all reject\n")
    for user, database, want in (
            ("ann", "one", True), ("bob", "three", True), ("cid", "two", False), ("ann", "named", False), ("ann", "refused", False),
            ("bob", "refused", True), ("ann", "other", True), ("cid", "other", False), ("cid", "deep", True), ("boss", "deep", False)):
        assert lab.passes(user, database) == want, (user, database)


def test_hosts(lab):
    if not lab.own_hosts:
        pytest.skip("an /etc/hosts of its own needs a mount namespace, which is not permitted here")
    lab.rules("host all ann app.house.example trust\nhost all bob .house.example trust\nhost all cid .example.com trust\n"
              "host all boss house.example trust\nhost all looker localhost trust\n")
    for user, want in (("ann", True), ("bob", True), ("cid", False), ("boss", False), ("looker", False)):
        assert lab.passes(user) == want, user


def test_tls_and_certificates(lab):
    lab.rules("hostssl all ann all trust\nhostnossl all bob all trust\nhostssl all cid all cert clientname=DN map=dn\n"
              "hostssl all boss all cert clientname=DN\n")
    in_house = lab.ca.issue("Cid", subject="/CN=Cid/O=House")
    outside = lab.ca.issue("Cid", subject="/CN=Cid/O=Elsewhere")
    by_map = lab.ca.issue("cid.ops", subject="/CN=cid.ops/O=House")
    for what, user, wire, want in (
            ("TLS", "ann", lab.over_tls(), True), ("in clear", "ann", None, False), ("TLS", "bob", lab.over_tls(), False),
            ("in clear", "bob", None, True), ("the DN of the map", "cid", lab.over_tls(in_house), True),
            ("another O", "cid", lab.over_tls(outside), False), ("the map's expression", "cid", lab.over_tls(by_map), True),
            ("no certificate", "cid", lab.over_tls(), False), ("a DN that is no name", "boss", lab.over_tls(in_house), False)):
        assert lab.passes(user, wire=wire) == want, (what, user)


def test_peer(lab):
    lab.rules("local all ann peer map=os\nlocal all bob peer map=os\nlocal all cid reject\nhost all cid all trust\n")
    assert lab.passes("ann", address=lab.pool.socket)
    assert not lab.passes("bob", address=lab.pool.socket)
    assert not lab.passes("cid", address=lab.pool.socket) and lab.passes("cid")
