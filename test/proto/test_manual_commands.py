# SPDX-License-Identifier: PostgreSQL
"""test_manual_commands: what the recipes of the manual tell people to type is taken: settings, SHOW and PGPOOL commands, options."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from pgt import procs
from pgt.wire import Wire

TOP = Path(__file__).resolve().parents[2]
PGPOOL = os.environ["PGPOOL_BIN"]
CHAPTERS = ["how-to.md", "errors.md", "quick-start-ja.md", "quick-start-zh.md", "quick-start.md"]


def blocks(chapter: str) -> list[list[str]]:
    text = (TOP / "doc" / "user" / chapter).read_text(encoding="utf-8")
    return [b.strip("\n").splitlines() for b in re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)]


def settings() -> list:
    found = [(c, b) for c in CHAPTERS for b in blocks(c) if re.match(r"\w+ = ", b[0])]
    assert len(found) >= 10
    return [pytest.param("\n".join(b), id=f"{c}-{n}") for n, (c, b) in enumerate(found)]


def commands() -> list[str]:
    found = {line for c in CHAPTERS for b in blocks(c) for line in b if re.match(r"(SHOW|PGPOOL) ", line)}
    assert len(found) >= 12
    return sorted(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With the certificates that the recipes name."""
    at = tmp_path_factory.mktemp("conf")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=db1", "-keyout", at / "server.key", "-out", at / "server.crt"], check=True, capture_output=True)
    (at / "server.key").chmod(0o600)
    (at / "ca.crt").write_bytes((at / "server.crt").read_bytes())
    for name in ("pool_hba.conf", "pool_passwd", "pcp.conf"):
        (at / name).write_text("local all all trust\n" if "hba" in name else "", encoding="ascii")
    (at / "pgpool_node_id").write_text("0\n", encoding="ascii")
    return at


@pytest.mark.parametrize("text", settings())
def test_settings(folder, text):
    own = f"pid_file_name = '{folder}/pgpool.pid'\nunix_socket_directories = '{folder}'\npcp_socket_dir = '{folder}'\nwork_dir = '{folder}'\n"
    own += f"port = {procs.free_port()}\npcp_port = {procs.free_port()}\n"  # the usual ones may be in use here
    text = "\n".join(line for line in text.splitlines() if not re.match(r"(pid_file_name|port|pcp_port)\b", line))
    (folder / "pgpool.conf").write_text(own + text + "\n", encoding="utf-8")
    done = subprocess.run([PGPOOL, "--check-config", "-f", folder / "pgpool.conf"], capture_output=True, text=True, check=False, timeout=60)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "not built" not in said, said


def test_commands(pg, start_pool):
    """In a session; each is taken by pgpool, and not by the server, which knows none of them."""
    pool = start_pool(pg.address, num_init_children=1)
    for command in commands():
        with Wire(pool.address, seconds=20) as w:
            w.login()
            found = w.simple(command)
            if command.startswith("PGPOOL RESUME"):
                assert [m.sqlstate for m in found if m.type == "E"] in ([], ["55000"]), command
            elif command.startswith(("PGPOOL PAUSE", "PGPOOL DRAIN")):
                assert [m.type for m in found][-2:] == ["C", "Z"], command
                w.simple("PGPOOL RESUME")
            else:
                assert not [m.fields for m in found if m.type == "E"], command


def test_options():
    """Options of pgpool that the chapters name are in its own help."""
    text = subprocess.run([PGPOOL, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    named = {word for c in CHAPTERS for b in blocks(c) for line in b if line.startswith("pgpool ") for word in line.split() if word.startswith("-")}
    assert named >= {"--check-config", "-f", "-n"}
    assert not [word for word in named if word not in text]


def test_errors_exist():
    """What the table of errors quotes is said somewhere in the source, in a file that has its SQLSTATE, too."""
    texts = [re.sub(r'"\s*\n\s*"', "", p.read_text(encoding="utf-8")) for end in ("src/**/*.[ch]", "include/**/*.h", "**/*.def") for p in TOP.glob(end)]
    rows = re.findall(r"^\| (?:(\w{5}) \| )?`([^`]+)`.*?\| (.*) \| .* \|$", (TOP / "doc/user/errors.md").read_text(encoding="utf-8"), re.M)
    assert len(rows) >= 100
    for state, begins, cause in rows:
        assert cause.strip(), f"{begins}: why?"
        found = [t for t in texts if begins.replace('"', '\\"').rstrip() in t]
        assert found, begins
        assert not state or any(f'"{state}"' in t for t in found), (state, begins)


def calls(text: str, names: str):
    """Calls of these functions with what follows them up to the end of the block: (arguments, rest)."""
    for m in re.finditer(rf"\b(?:{names})\(", text):
        end, depth = m.end(), 1
        while depth:
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        yield re.sub(r'"\s*\n\s*"', "", text[m.start():end]), re.split(r"\n\s*\}|\berr_set", text[end:end + 400])[0]


def rows_of_errors() -> list[str]:
    return re.findall(r"^\| (?:\w{5} \| )?`([^`]+)`", (TOP / "doc/user/errors.md").read_text(encoding="utf-8"), re.M)


def has_row(said: str, rows: list[str]) -> bool:
    """A row quotes a part of the text that stands in no other."""
    texts = re.findall(r'"((?:[^"\\]|\\.)*)"', said)
    return any(row.replace('"', '\\"').rstrip() in text for row in rows if len(row) > SHORT for text in texts)


def test_warnings_have_a_next_step():
    """Whatever the log says at WARNING and above has a HINT, or a row of errors.md with the next step."""
    rows, bare, seen = rows_of_errors(), [], 0
    for file in (TOP / "src").glob("**/*.c"):
        if "src/bin" in str(file) or file.name == "assert.c":
            continue
        for call, _ in calls(file.read_text(encoding="utf-8"), "log_at|log_caused|log_at_detail|log_caused_detail"):
            if not re.search(r"LVL_(WARNING|ERROR|FATAL)\b", call) or "%s:%u: %s" in call:
                continue  # the latter: an error's text behind its place in a file
            seen += 1
            hint = re.match(r"log_\w+_detail\(.*?,\s*(?:NULL|\"(?:[^\"\\\\]|\\\\.)*\"|[^,\"]+?(?:\([^()]*\))?[^,\"]*),\s*(NULL\b)?", call, re.S)
            if (hint is None or hint[1]) and not has_row(call, rows):
                bare.append(f"{file.name}: {call[:140]}")
    assert seen > 80
    assert not bare, "\n".join(bare)


SHORT = 11  # `node ` stands in many texts
CLIENT_SEES = ("session", "login", "backend", "auth", "route", "admin")


def test_errors_have_a_next_step():
    """What clients are told by the modules that serve them has a HINT, or a row of errors.md with the next step."""
    rows, bare, seen = rows_of_errors(), [], 0
    for file in [f for name in CLIENT_SEES for f in (TOP / "src/core" / name).glob("*.c")]:
        for call, rest in calls(file.read_text(encoding="utf-8"), "err_set|err_set_fatal|err_set_errno"):
            if re.search(r'"(?:%.\*s|%s|%s: %s|%s: %s \(%s\))"|text\b', call):
                continue  # words of the server, or of a caller
            seen += 1
            if "err_hint" not in rest and not has_row(call, rows):
                bare.append(f"{file.name}: {call[:140]}")
    assert seen > 100
    assert not bare, "\n".join(bare)


def test_man_pages_exist():
    """Every program, every name of pcp, and the files of settings have one that is installed."""
    made = "".join(p.read_text(encoding="utf-8") for p in TOP.glob("src/bin/**/module.am")).replace("\\\n", " ")
    programs = re.findall(r"^(?:bin_PROGRAMS \+?=|dist_bin_SCRIPTS \+?=)(.*)$", made, re.M)
    names = {Path(word).name for line in programs for word in line.split()}
    names |= {f"pcp_{name}" for name in re.search(r"^PCP_NAMES =(.*)$", made, re.M).group(1).split()}
    assert len(names) > 20
    installed = (TOP / "doc/module.am").read_text(encoding="utf-8")
    for page in [f"{name}.1" for name in names] + ["pgpool.conf.5", "pools.conf.5", "pool_hba.conf.5"]:
        text = (TOP / "doc/man" / page).read_text(encoding="utf-8")
        assert re.search(r"^\.TH ", text, re.M) and f"doc/man/{page}" in installed, page
