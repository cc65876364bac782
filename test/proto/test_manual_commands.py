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
BUILD = Path(os.environ.get("PGPOOL_BUILD", Path(PGPOOL).parent))
# reference-settings.md is made from the table of settings.
CHAPTERS = sorted(p.name for p in (TOP / "doc" / "user").glob("*.md") if p.name != "reference-settings.md")


def blocks(chapter: str) -> list[list[str]]:
    text = (TOP / "doc" / "user" / chapter).read_text(encoding="utf-8")
    return [b.strip("\n").splitlines() for b in re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)]


def settings() -> list:
    found = [(c, b) for c in CHAPTERS for b in blocks(c) if re.match(r"\w+ = ", b[0])]
    assert len(found) >= 20
    return [pytest.param("\n".join(b), id=f"{c}-{n}") for n, (c, b) in enumerate(found)]


def commands() -> list[str]:
    found = {line for c in CHAPTERS for b in blocks(c) for line in b if re.match(r"(SHOW|PGPOOL) ", line)}
    assert len(found) >= 15
    return sorted(found)


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_the_first_hour_is_the_same_in_every_language(language):
    """What is typed, chapter by chapter, and what is named in the text: who reads it in another language gets no less."""
    def words(chapter: str) -> set[str]:
        text = (TOP / "doc" / "user" / chapter).read_text(encoding="utf-8")
        return set(re.findall(r"`([A-Z][A-Z_ ]+|[a-z_]+(?: = [a-z]+)?)`|\(([a-z-]+\.md)\)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)))
    other = f"quick-start-{language}.md"
    assert blocks(other) == blocks("quick-start.md")
    missing = {"".join(w) for w in words("quick-start.md") - words(other)}
    assert missing == {"quick-start-ja.md", "quick-start-zh.md"}, missing


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
    assert "not built" not in said and "unrecognized" not in said, said
    if "backend_hostname" in text:  # a recipe that is typed as it stands has its servers
        assert "there is no server" not in said, said


PGPOOL2_SAMPLE = Path("/usr/share/doc/pgpool2/examples/pgpool.conf.sample")


@pytest.mark.skipif(not PGPOOL2_SAMPLE.exists(), reason="pgpool-II's sample is not here (Debian: pgpool2)")
def test_a_file_of_pgpool2(folder):
    """As who comes from pgpool-II is told to do: its file is read, with every setting that its sample has, and says what has no effect."""
    shown = re.findall(r"^#?([a-z_0-9]+) = ('[^']*'|\S+)", PGPOOL2_SAMPLE.read_text(encoding="utf-8"), re.M)
    assert len(shown) > 150
    left = ("unix_socket_directories", "socket_dir", "pcp_socket_dir", "wd_ipc_socket_dir", "work_dir", "logdir", "memqcache_oiddir")
    test_settings(folder, "".join(f"{name} = {value}\n" for name, value in shown if name not in left) + f"wd_ipc_socket_dir = '{folder}'\n")


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


PROGRAM = r"(pgpool top|pgpool|pcp_\w+|wd_cli|pg_enc|pg_md5|pgpool_setup|watchdog_setup)"


def typed() -> set[tuple[str, str, str]]:
    """(program, arguments, chapter) of all that the manual tells to type, in blocks and within sentences."""
    found = set()
    for chapter in CHAPTERS:
        text = (TOP / "doc" / "user" / chapter).read_text(encoding="utf-8")
        outside = re.sub(r"^```\w*\n(.*?)^```", "", text, flags=re.S | re.M)
        lines = [line for b in blocks(chapter) for line in b] + re.findall(r"`([^`]+)`", outside)
        for line in lines:
            match = re.match(rf"\s*(?:\$ )?{PROGRAM}(?= |\n|$)(.*)", line, re.S)
            if match and not match[1].startswith("pcp_") or match and (TOP / "doc/man" / f"{match[1]}.1").exists():
                found.add((match[1], match[2].split(" # ")[0], chapter))
    return found


def test_options(tmp_path):
    """Whatever option the manual names is in the help of its program."""
    helps: dict[str, str] = {}
    for program, _, _ in typed():
        name, *words = program.split(" ")
        at = TOP / "src/bin" / name / name if name.endswith("_setup") else BUILD / name
        if name.startswith("pcp_"):
            at = tmp_path / name
            if not at.exists():
                at.symlink_to(BUILD / "pcp")
        done = subprocess.run([at, *words, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        helps[program] = done.stdout
    assert len(helps) > 20
    seen, wrong = 0, []
    for program, arguments, chapter in typed():
        for word in re.findall(r"(?<!\S)-{1,2}[A-Za-z][\w-]*", arguments):
            seen += 1
            if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", helps[program]):
                wrong.append(f"{chapter}: {program}{arguments}")
    assert seen > 60
    assert not wrong, "\n".join(wrong)


def test_named_reports_exist(pg, start_pool):
    """What sentences call SHOW POOL_... is one."""
    named = {m for c in CHAPTERS for m in re.findall(r"SHOW (POOL_[A-Z_]+)", (TOP / "doc/user" / c).read_text(encoding="utf-8"))}
    assert len(named) > 25
    pool = start_pool(pg.address, num_init_children=1)
    with Wire(pool.address, seconds=20) as w:
        w.login(user="postgres")
        assert not [(name, m.fields) for name in sorted(named) for m in w.simple(f"SHOW {name}") if m.type == "E"]


def test_every_reason_to_wait_is_in_the_table():
    """What SHOW POOL_QUEUE may say has a row of the how-to, with what to do."""
    (listed,) = re.findall(r"#define WAIT_REASONS\(X\)(.*?)\n\n", (TOP / "include/ipc/rows.h").read_text(encoding="utf-8"), re.S)
    reasons = re.findall(r'"([a-z ]+)"', listed)
    assert len(reasons) > 10
    rows = re.findall(r"^\| (.*?) \| .+ \| .+ \|$", (TOP / "doc/user/how-to.md").read_text(encoding="utf-8"), re.M)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert set(reasons) <= named, set(reasons) - named


def test_pools_conf(folder):
    """The file of pools that the manual shows."""
    (block,) = [b for b in blocks("pools-conf.md") if any(line.startswith("[") for line in b)]
    (folder / "pools.conf").write_text("\n".join(block) + "\n", encoding="utf-8")
    try:
        test_settings(folder, "pools_file = 'pools.conf'\nbackend_hostname0 = 'db0'\nbackend_port0 = 5432\n")
    finally:
        (folder / "pools.conf").unlink()


def test_rules_of_authentication(folder):
    """Lines of pool_hba.conf that the manual shows are taken."""
    shown = [b for c in CHAPTERS for b in blocks(c) if re.match(r"(local|host\w*) +all ", b[0])]
    assert shown
    own = (folder / "pool_hba.conf").read_text(encoding="ascii")
    try:
        for lines in shown:
            (folder / "pool_hba.conf").write_text("\n".join(lines) + "\n", encoding="ascii")
            test_settings(folder, "enable_pool_hba = on\nbackend_hostname0 = 'db0'\nbackend_port0 = 5432\nssl = on\n"
                          "ssl_cert = 'server.crt'\nssl_key = 'server.key'\n")
    finally:
        (folder / "pool_hba.conf").write_text(own, encoding="ascii")


def test_sql_of_the_manual(pg):
    """Functions and roles that it has people make on their servers; the second round of a chapter finds them there already."""
    statements = [sql for c in CHAPTERS for b in blocks(c) if re.match(r"(CREATE|SELECT) (ROLE|FUNCTION|rolname)|create role", b[0])
                  for sql in re.split(r";\n(?!.*\$\$;)", "\n".join(b) + "\n") if sql.strip()]
    assert len(statements) >= 3
    with Wire(pg.address, seconds=20) as w:
        w.login(user="postgres")
        w.simple("begin")
        for sql in statements:
            assert not [m.fields for m in w.simple(sql) if m.type == "E"], sql
        w.simple("rollback")


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
    for file in [f for name in CLIENT_SEES for f in (TOP / "src/core" / name).rglob("*.c")]:
        for call, rest in calls(file.read_text(encoding="utf-8"), "err_set|err_set_fatal|err_set_errno"):
            if re.search(r'"(?:%.\*s|%s|%s: %s|%s: %s \(%s\))"|text\b', call):
                continue  # words of the server, or of a caller
            seen += 1
            if "err_hint" not in rest and not has_row(call, rows):
                bare.append(f"{file.name}: {call[:140]}")
    assert seen > 100
    assert not bare, "\n".join(bare)


NO_NODE = {"the client has gone": "it is about a client", "the server connection of this transaction was lost": "its DETAIL is what the link had said",
           "connection to server was lost": "a login that is passed on: SHOW POOL_NODES is the next step"}


def test_errors_about_servers_name_them():
    """Whoever is told that a server cannot be reached, or was lost, is told which."""
    seen, bare = 0, []
    for file in [f for name in ("backend", "session", "login", "native") for f in (TOP / "src/core" / name).rglob("*.c")]:
        for call, rest in calls(file.read_text(encoding="utf-8"), "err_set|err_set_fatal|err_set_errno|link_fail_text|client_end_text"):
            if re.search(r'"08(001|006)"', call):
                seen += 1
                text = re.findall(r'"((?:[^"\\]|\\.)*)"', call)[1]
                if text not in NO_NODE and "node" not in text and "%s" not in text and "node %d" not in rest:
                    bare.append(f"{file.name}: {text}")
    assert seen > 15
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
