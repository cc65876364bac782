# SPDX-License-Identifier: PostgreSQL
"""certs: certificate authorities and certificates for tests, made with the openssl program."""
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pgt import procs

CA_CONF = """\
[ca]
default_ca = c
[c]
dir = {dir}
database = {dir}/index.txt
serial = {dir}/serial
crlnumber = {dir}/crlnumber
new_certs_dir = {dir}
certificate = {dir}/ca.crt
private_key = {dir}/ca.key
default_md = sha256
default_days = 30
default_crl_days = 30
policy = p
unique_subject = no
[p]
commonName = supplied
organizationName = optional
[server]
basicConstraints = CA:false
subjectAltName = {san}
[plain]
basicConstraints = CA:false
"""


def openssl(*args: object) -> str:
    return procs.run(["openssl", *map(str, args)])


@dataclass
class Pair:
    """A certificate and its key (PEM)."""
    cert: Path
    key: Path


class Authority:
    """A CA in a scratch folder of its own. Keys are on the P-256 curve unless RSA is asked for."""

    def __init__(self, name: str = "test CA"):
        self.dir = procs.folder("ca")
        (self.dir / "index.txt").touch()
        (self.dir / "serial").write_text("1000\n", encoding="ascii")
        (self.dir / "crlnumber").write_text("01\n", encoding="ascii")
        self.count = 0
        self._conf("DNS:localhost")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", self.dir / "ca.key", "-out", self.cert, "-days", "30", "-subj", f"/CN={name}")

    @property
    def cert(self) -> Path:
        return self.dir / "ca.crt"

    @property
    def crl(self) -> Path:
        return self.dir / "ca.crl"

    def _conf(self, san: str) -> None:
        (self.dir / "ca.cnf").write_text(CA_CONF.format(dir=self.dir, san=san), encoding="ascii")

    def issue(self, name: str = "localhost", san: str = "DNS:localhost,IP:127.0.0.1", key: str = "ec",
              expired: bool = False, passphrase: str = "", subject: str = "", until: float = 0) -> Pair:
        """A certificate; without `san` it has only its common name. `until`: when it expires, seconds since 1970."""
        self.count += 1
        stem = self.dir / f"{self.count}"
        pair = Pair(Path(f"{stem}.crt"), Path(f"{stem}.key"))
        kind = ["-newkey", "rsa:2048"] if key == "rsa" else \
            ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        lock = ["-passout", f"pass:{passphrase}"] if passphrase else ["-nodes"]
        openssl("req", "-new", *kind, *lock, "-keyout", pair.key, "-out", f"{stem}.csr",
                "-subj", subject or f"/CN={name}")
        self._conf(san or "DNS:unused")
        when = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"] if expired else []
        if until:
            when = ["-enddate", time.strftime("%Y%m%d%H%M%SZ", time.gmtime(until))]
        openssl("ca", "-batch", "-notext", "-config", self.dir / "ca.cnf", "-extensions",
                "server" if san else "plain", *when, "-in", f"{stem}.csr", "-out", pair.cert)
        pair.key.chmod(0o600)
        return pair

    def revoke(self, *pairs: Pair) -> Path:
        """Makes the list of revoked certificates anew."""
        for pair in pairs:
            openssl("ca", "-config", self.dir / "ca.cnf", "-revoke", pair.cert)
        openssl("ca", "-config", self.dir / "ca.cnf", "-gencrl", "-out", self.crl)
        return self.crl


def folder_of(*authorities: Authority) -> Path:
    """A folder for ssl_ca_cert_dir."""
    folder = procs.folder("cadir")
    for number, authority in enumerate(authorities):
        give(authority.cert, folder / f"{number}.pem", 0o644)
    openssl("rehash", folder)
    return folder


def give(source: Path, target: Path, mode: int = 0o600, owner: int | None = None) -> Path:
    """Copies a file for a server that runs as somebody else."""
    shutil.copy(source, target)
    target.chmod(mode)
    if owner is not None and os.geteuid() == 0:
        os.chown(target, owner, -1)
    return target


def offer_tls(server) -> None:
    """A PostgreSQL server that is running offers TLS from now on."""
    pair = Authority().issue()
    owner = server.data.stat().st_uid
    give(pair.cert, server.data / "server.crt", 0o644, owner)
    give(pair.key, server.data / "server.key", 0o600, owner)
    server.stop()
    server.write_conf({"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"})
    server.start()
