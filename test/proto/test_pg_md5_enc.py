# SPDX-License-Identifier: PostgreSQL
"""pg_md5 and pg_enc as a user sees them: output, exit codes, and what lands in pool_passwd. Where
the programs of pgpool-II are installed, both get the same command lines and have to answer alike.

The programs are looked for beside $PGPOOL_BIN, else in the current folder."""
import os
import pty
import select
import shutil
import subprocess
import time

import pytest

BUILD = os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd()
OURS = {name: os.path.join(BUILD, name) for name in ("pg_md5", "pg_enc")}
THEIRS = {name: shutil.which(name, path="/usr/sbin:/usr/bin") for name in OURS}

pytestmark = pytest.mark.skipif(
    not all(os.access(p, os.X_OK) for p in OURS.values()), reason="programs are not built")
needs_theirs = pytest.mark.skipif(None in THEIRS.values(), reason="pgpool-II is not installed")


@pytest.fixture
def box(tmp_path):
    """A folder with a key, input files and a pgpool.conf."""
    (tmp_path / "key").write_text("thekey\n")
    (tmp_path / "key_crlf").write_bytes(b"thekey\r\n")
    (tmp_path / "key_blanks").write_text(" the key \nsecond line\n")
    (tmp_path / "key_long").write_text("0123456789" * 30 + "\n")
    for name in ("key", "key_crlf", "key_blanks", "key_long"):
        (tmp_path / name).chmod(0o600)
    (tmp_path / "pgpool.conf").write_text("pool_passwd = 'pool_passwd'\n")
    (tmp_path / "pairs").write_text(
        "u1:p1\nu2:p:2\n\nu3\n:nobody\nu4:\n%s:x\nu5:%s\n" % ("n" * 129, "p" * 129))
    (tmp_path / "good").write_text("u1:p1\nu2:p2\nu1:p3\n")
    return tmp_path


def run(program, args, cwd, env=None):
    e = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C"}
    e.update(env or {})
    return subprocess.run([program] + args, cwd=cwd, env=e, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)


def on_terminal(program, args, cwd, answers, env=None):
    """Runs on a pseudo terminal; an answer is typed when its prompt has been printed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        e = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C"}
        e.update(env or {})
        os.execve(program, [program] + args, e)
    out = b""
    typed = 0
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ready, _, _ = select.select([fd], [], [], 1.0)
        if not ready:
            continue
        try:
            piece = os.read(fd, 4096)
        except OSError:
            break
        if not piece:
            break
        out += piece
        if typed < len(answers) and out.count(b": ") > typed:
            os.write(fd, answers[typed].encode() + b"\n")
            typed += 1
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return out.decode(), os.waitstatus_to_exitcode(status)


SAME = [
    ("pg_md5", ["secret"]),
    ("pg_md5", [""]),
    ("pg_md5", ["a", "b"]),
    ("pg_md5", ["p\u00e4ss"]),
    ("pg_md5", ["x" * 128]),
    ("pg_md5", ["-i", "pairs"]),
    ("pg_md5", ["-i", "missing"]),
    ("pg_enc", ["-k", "key", "secret"]),
    ("pg_enc", ["-k", "key", ""]),
    ("pg_enc", ["-k", "key", "x" * 128]),
    ("pg_enc", ["-k", "key", "exactly sixteen!"]),
    ("pg_enc", ["-k", "key_crlf", "secret"]),
    ("pg_enc", ["-k", "key_blanks", "secret"]),
    ("pg_enc", ["-K", "mykey", "secret"]),
    ("pg_enc", ["-K", "0123456789" * 30, "secret"]),
    ("pg_enc", ["-k", "key_long", "secret"]),
    ("pg_enc", ["-k", "key", "-i", "pairs"]),
    ("pg_enc", ["-k", "key", "-i", "missing"]),
    ("pg_enc", ["-k", "key"]),
    ("pg_md5", ["-p"]),
]


@needs_theirs
@pytest.mark.parametrize("name,args", SAME, ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else v)
def test_same_as_pgpool(box, name, args):
    ours = run(OURS[name], args, box)
    theirs = run(THEIRS[name], args, box)
    assert ours.stdout == theirs.stdout
    assert ours.stderr == theirs.stderr
    assert ours.returncode == theirs.returncode


@needs_theirs
@pytest.mark.parametrize("name,args", [("pg_md5", ["--bogus"]), ("pg_md5", []),
                                       ("pg_md5", ["x" * 129]), ("pg_enc", ["--bogus"]),
                                       ("pg_enc", ["-k", "missing", "x"]),
                                       ("pg_enc", ["-k", "key", "x" * 129]),
                                       ("pg_enc", ["-h"]), ("pg_md5", ["--help"]),
                                       ("pg_md5", ["-m", "-f", "missing.conf", "x"])])
def test_same_exit_code(box, name, args):
    assert run(OURS[name], args, box).returncode == run(THEIRS[name], args, box).returncode


@needs_theirs
def test_same_pool_passwd(box, tmp_path_factory):
    """A series of stores gives the file that pgpool-II's programs make of it."""
    series = [("pg_md5", ["-m", "-u", "bob", "secret"]),
              ("pg_md5", ["-m", "-u", "eve", "secret"]),
              ("pg_enc", ["-m", "-k", "key", "-u", "bob", "other"]),
              ("pg_md5", ["-m", "-i", "good"]),
              ("pg_enc", ["-m", "-k", "key", "-i", "good"])]
    files = []
    for programs in (OURS, THEIRS):
        folder = tmp_path_factory.mktemp("same")
        for entry in box.iterdir():
            shutil.copy2(entry, folder / entry.name)
        for name, args in series:
            r = run(programs[name], ["-f", "pgpool.conf"] + args, folder)
            assert r.returncode == 0, r.stderr
        files.append((folder / "pool_passwd").read_text())
    assert files[0] == files[1]
    assert files[0].count("\n") == 4


def test_known_texts(box):
    """What pgpool-II's programs print and store is known without them at hand."""
    assert run(OURS["pg_md5"], ["secret"], box).stdout == "5ebe2294ecd0e0f08eab7690d2a6ee69\n"
    r = run(OURS["pg_enc"], ["-k", "key", "secret"], box)
    assert r.stdout == ("trying to read key from file key\n\njxddJAjYgkQUsTBNWr1WEg==\n"
                        "pool_passwd string: AESjxddJAjYgkQUsTBNWr1WEg==\n")
    run(OURS["pg_md5"], ["-m", "-f", "pgpool.conf", "-u", "postgres", "postgres"], box)
    assert (box / "pool_passwd").read_text() == "postgres:md53175bce1d3201d16594cebf9d7eb3f9d\n"


def test_all_at_once_lose_nobody(box):
    names = [f"u{i}" for i in range(24)]
    (box / "pool_passwd").write_text("".join(f"old{i}:{'x' * 40}\n" for i in range(2000)))
    (box / "pool_passwd").chmod(0o600)
    begun = [subprocess.Popen([OURS["pg_md5"], "-m", "-f", "pgpool.conf", "-u", name, "secret"], cwd=box,
                              stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": str(box)})
             for name in names]
    assert [p.wait(60) for p in begun] == [0] * len(names)
    there = [line.split(":")[0] for line in (box / "pool_passwd").read_text().splitlines()]
    assert sorted(there) == sorted(names + [f"old{i}" for i in range(2000)])


def test_setting_names_the_file(box):
    (box / "pgpool.conf").write_text("pool_passwd = 'users'\n")
    assert run(OURS["pg_md5"], ["-m", "-f", "pgpool.conf", "-u", "bob", "x"], box).returncode == 0
    assert (box / "users").read_text().startswith("bob:md5")
    assert not (box / "pool_passwd").exists()


def test_new_file_is_private_and_old_mode_stays(box):
    args = ["-m", "-f", "pgpool.conf", "-u", "bob", "x"]
    assert run(OURS["pg_md5"], args, box).returncode == 0
    assert (box / "pool_passwd").stat().st_mode & 0o777 == 0o600
    (box / "pool_passwd").chmod(0o640)
    assert run(OURS["pg_md5"], args, box).returncode == 0
    assert (box / "pool_passwd").stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in box.iterdir() if "pool_passwd" in p.name) == ["pool_passwd"]


def test_colon_in_user_is_escaped(box):
    for password in ("x", "y"):
        run(OURS["pg_md5"], ["-m", "-f", "pgpool.conf", "-u", "a:b", password], box)
    lines = (box / "pool_passwd").read_text().splitlines()
    assert len(lines) == 1 and lines[0].startswith("a\\:b:md5")


def test_key_file_order(box):
    """Option before $PGPOOLKEYFILE before ~/.pgpoolkey."""
    want = "AESjxddJAjYgkQUsTBNWr1WEg=="
    (box / ".pgpoolkey").write_text("homekey\n")
    (box / ".pgpoolkey").chmod(0o600)
    at_home = run(OURS["pg_enc"], ["secret"], box)
    assert at_home.returncode == 0 and want not in at_home.stdout
    by_env = run(OURS["pg_enc"], ["secret"], box, {"PGPOOLKEYFILE": "key"})
    assert want in by_env.stdout
    by_option = run(OURS["pg_enc"], ["-k", "key", "secret"], box, {"PGPOOLKEYFILE": "key_crlf"})
    assert want in by_option.stdout


def test_open_key_file_warns_and_works(box):
    (box / "key").chmod(0o644)
    r = run(OURS["pg_enc"], ["-k", "key", "secret"], box)
    assert r.returncode == 0
    assert 'pool key file "key" has group or world access' in r.stderr


def test_gcm_differs_each_time(box):
    texts = set()
    for _ in range(3):
        r = run(OURS["pg_enc"], ["--format=gcm", "-k", "key", "secret"], box)
        assert r.returncode == 0
        texts.add(r.stdout.splitlines()[-1])
    assert len(texts) == 3
    assert all(t.startswith("pool_passwd string: GCM") for t in texts)


def test_scram_needs_no_key(box):
    r = run(OURS["pg_enc"], ["--format=scram", "-m", "-f", "pgpool.conf", "-u", "bob", "x"], box)
    assert r.returncode == 0
    assert (box / "pool_passwd").read_text().startswith("bob:SCRAM-SHA-256$4096:")


def test_format_must_be_known(box):
    r = run(OURS["pg_enc"], ["--format=rot13", "-k", "key", "x"], box)
    assert r.returncode == 1 and "rot13" in r.stderr


def test_prompts(box):
    out, rc = on_terminal(OURS["pg_md5"], ["-p"], box, ["secret"])
    assert rc == 0
    assert out.replace("\r", "") == "password: \n5ebe2294ecd0e0f08eab7690d2a6ee69\n"
    out, rc = on_terminal(OURS["pg_enc"], ["-p", "-k", "key"], box, ["secret"])
    assert rc == 0 and out.startswith("db password: \r\n") and "AESjxddJAjYgkQ" in out
    out, rc = on_terminal(OURS["pg_enc"], ["-P", "secret"], box, ["thekey"])
    assert rc == 0 and "AESjxddJAjYgkQ" in out and "thekey" not in out
