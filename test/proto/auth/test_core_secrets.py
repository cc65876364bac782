# SPDX-License-Identifier: PostgreSQL
"""test_core_secrets: what a core dump of any of our processes would hold: no password, no key.

The pages are read as the kernel would write them: mappings that are marked "dd" (MADV_DONTDUMP) are left out.
"""
import base64
import hashlib
import hmac
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import auth_house as house
from pgt import certs, procs, proxy
from pgt.tls import TlsWire, client_context
from pgt.waits import wait_for
from pgt.wire import Wire, message, startup

pytestmark = pytest.mark.skipif(proxy.has_sanitizers(), reason="under AddressSanitizer the heap is another one, in a "
                                "memory of terabytes: no core of it is written, nor could it be read")
KEY = "key of the file of passwords"


def dumped(pid: int) -> list[tuple[str, bytes]]:
    """The memory of a process that a core dump would show, mapping by mapping."""
    found = []
    text = Path(f"/proc/{pid}/smaps").read_text(encoding="ascii", errors="replace")
    parts = re.split(r"^([0-9a-f]+-[0-9a-f]+ .*)$", text, flags=re.M)[1:]
    with open(f"/proc/{pid}/mem", "rb") as mem:
        for head, facts in zip(parts[::2], parts[1::2]):
            span, mode, _, _, inode, *name = head.split(None, 5)
            flags = re.search(r"^VmFlags:(.*)$", facts, re.M).group(1).split()
            if "dd" in flags or "r" not in mode or "[v" in "".join(name) or (inode != "0" and "w" not in mode):
                continue
            begin, end = (int(x, 16) for x in span.split("-"))
            mem.seek(begin)
            found.append((head, mem.read(end - begin)))
    assert any("[stack]" in head for head, _ in found) and any("[heap]" in head for head, _ in found)
    return found


def look(pool, needles: dict[str, bytes]) -> list[str]:
    """Where any of the needles is found. A process stands still while it is read: what it maps would change meanwhile."""
    seen = []
    for pid in pool.pids():
        who = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        procs.stand_still(pid)
        try:
            pages = dumped(pid)
        finally:
            procs.go_on(pid)
        for head, data in pages:
            for name, needle in needles.items():
                at = data.find(needle)
                if at != -1:
                    seen.append(f"{name} in {who} at +{at:#x} of {head}: {data[max(0, at - 24):at + len(needle) + 8]!r}")
    return seen


def client_key(verifier: str, secret: str) -> bytes:
    iterations, salt = re.match(r"SCRAM-SHA-256\$(\d+):([^$]+)\$", verifier).groups()
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), base64.b64decode(salt), int(iterations))
    return hmac.digest(salted, b"Client Key", "sha256")


def numbers_of(key: Path, *names: str) -> dict[str, bytes]:
    """The numbers of a private key, as they stand in a file and as OpenSSL computes with them."""
    text = certs.openssl("pkey", "-in", key, "-noout", "-text")
    found = {}
    for name in names:
        hexed = re.search(rf"^{name}:\n((?:\s+[0-9a-f:]+\n)+)", text, re.M).group(1)
        number = bytes.fromhex(re.sub(r"[\s:]", "", hexed)).lstrip(b"\0")
        found |= {f"{name}, from its head": number[:16], f"{name}, from its end": number[::-1][:16]}
    return found


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    yield pg
    pg.stop()


@pytest.fixture(scope="module")
def authority():
    return certs.Authority()


def enter(wire, user, secret):
    found = wire.login(user, "postgres", secret)
    assert found[-1].type == "Z", found[-1]
    assert wire.value("select current_user") == user
    return wire


def in_pieces(address, user: str, secret: str) -> Wire:
    """The password comes byte by byte."""
    w = Wire(address)
    w.send(startup({"user": user, "database": "postgres"}))
    w.read_until("R")
    for byte in message("p", secret.encode() + b"\0"):
        w.send(bytes([byte]))
    w.ready()
    return w


def encrypted(user: str, secret: str, fmt: str) -> str:
    program = Path(house.proxy.pgpool_bin()).parent / "pg_enc"
    done = subprocess.run([program, "-K", KEY, f"--format={fmt}", "-u", user, secret], capture_output=True, text=True,
                          check=True, timeout=60)
    return re.search(r"pool_passwd string: (\S+)", done.stdout).group(1)


@pytest.mark.parametrize("kind", ["ec", "rsa"])
def test_dumps_hold_no_secret(server, authority, kind):
    """Every way a secret comes in: files, settings, clients in clear and by SCRAM, answers of auth_query, PCP, TLS."""
    users = {"core_clear": "password", "core_md5": "md5", "core_scram": "scram", "core_pass": "scram", "core_aes": "md5",
             "core_gcm": "password", "core_text": "scram"}
    stored = {user: house.make_user(server, user, method) for user, method in users.items()}
    pair = authority.issue(key=kind, passphrase="phrase of the key")
    pair.key.chmod(0o600)
    admin = hashlib.md5(b"admin_secret").hexdigest()
    pool = house.start_auth_pool(
        [server.address], key=KEY,
        hba="hostssl all core_clear all password\nhost all core_gcm all password\nhost all core_md5,core_aes all md5\n"
            "host all all all scram-sha-256\n",
        passwd=f"looker:looker_pw\ncore_text:TEXTcore_text_pw\ncore_md5:{stored['core_md5']}\ncore_clear:core_clear_pw\n"
               f"core_aes:{encrypted('core_aes', 'core_aes_pw', 'aes')}\ncore_gcm:{encrypted('core_gcm', 'core_gcm_pw', 'gcm')}\n",
        auth_user="looker", auth_dbname="postgres", ssl=True, ssl_cert=pair.cert, ssl_key=pair.key,
        ssl_passphrase_command="echo phrase of the key", num_init_children=1, pcp_listen_addresses="127.0.0.1",
        recovery_password="recovery_secret", sr_check_user="boss", sr_check_password="boss_pw", sr_check_period=0)
    (pool.home / "pcp.conf").write_text(f"op:{admin}\n", encoding="ascii")
    try:
        held = [enter(TlsWire(pool.address, ctx=client_context(authority.cert)), "core_clear", "core_clear_pw")]
        held += [enter(Wire(pool.address), user, f"{user}_pw") for user in users if user != "core_clear"]
        held.append(in_pieces(pool.address, "core_gcm", "core_gcm_pw"))
        for user in users:
            again = house.try_login(pool.address, user, "postgres", "guess" * 3)
            assert again[0] != "in"
        pcp_login(pool)
        needles = {f"password of {user}": f"{user}_pw".encode() for user in users}
        needles |= {f"md5 of {user}": stored[user][3:].encode() for user in ("core_md5", "core_aes")}
        needles |= {f"ClientKey of {user}": client_key(stored[user], f"{user}_pw") for user in ("core_scram", "core_pass", "core_text")}
        needles |= {"pgpoolkey": KEY.encode(), "passphrase": b"phrase of the key", "password of looker": b"looker_pw",
                    "setting": b"recovery_secret", "password of boss": b"boss_pw", "pcp": admin.encode(),
                    "wrong password": b"guessguessguess"}
        needles |= numbers_of(Path(unlocked(pair.key)), *(["priv"] if kind == "ec" else ["privateExponent", "prime1", "prime2"]))
        assert look(pool, needles) == []
        assert look(pool, {"what is no secret": b"core_scram"}), "the dump is looked at"
        pool.reload()
        wait_for("the reload", lambda: "reload" in pool.log().lower())
        assert look(pool, needles) == []
        for w in held:
            w.bye()
        assert look(pool, needles) == []
    finally:
        pool.stop()


def unlocked(key: Path) -> Path:
    out = key.with_suffix(".open")
    certs.openssl("pkey", "-in", key, "-passin", "pass:phrase of the key", "-out", out)
    return out


def pcp_login(pool):
    (pool.home / "pcppass").write_text("*:*:*:admin_secret\n", encoding="ascii")
    (pool.home / "pcppass").chmod(0o600)
    done = subprocess.run([Path(house.proxy.pgpool_bin()).parent / "pcp", "node_count", "-h", "127.0.0.1", "-p",
                           str(pool.conf["pcp_port"]), "-U", "op", "-w"], capture_output=True, text=True, timeout=60,
                          check=False, env={"PCPPASSFILE": str(pool.home / "pcppass")})
    assert done.stdout == "1\n", done


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_a_real_core_holds_no_password(server):
    """A debugger's core file leaves out what the kernel would leave out: there is no password in it."""
    house.make_user(server, "core_real", "password")
    pool = house.start_auth_pool([server.address], hba="host all all all password\n", passwd="core_real:core_real_pw\n",
                                 num_init_children=1)
    try:
        held = enter(Wire(pool.address), "core_real", "core_real_pw")
        titles = wait_for("the worker's title tells of it", lambda: [
            pid for pid in pool.pids() if re.search(rb"core_real|pgpool: worker", Path(f"/proc/{pid}/cmdline").read_bytes())])
        worker = titles[0]  # titles are written ten times a second at most
        core = procs.folder("core") / "core"
        subprocess.run(["gdb", "-q", "-batch", "-p", str(worker), "-ex", f"generate-core-file {core}"], capture_output=True,
                       timeout=120, check=True)
        data = core.read_bytes()
        assert b"core_real" in data and b"core_real_pw" not in data
        core.unlink()
        held.bye()
    finally:
        pool.stop()
