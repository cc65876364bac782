# SPDX-License-Identifier: PostgreSQL
"""test_completion: what bash offers behind a program's name is what the program takes: every option of its table, in the help and completed;
and each program has a manual page."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PGPOOL_BIN", "")).parent
SCRIPT = TOP / "packaging" / "completion" / "pgpool.bash"
PCP = re.search(r"^PCP_NAMES = (.*?)(?<!\\)$", (TOP / "src/bin/pcp/module.am").read_text(encoding="utf-8"), re.S | re.M)
PCP_TOOLS = ["pcp_" + name for name in PCP[1].replace("\\\n", " ").split()]
SETUPS = ["pgpool_setup", "watchdog_setup"]
SOURCES = {"pgpool": "pgpool/pgpool_opts.c", "pg_md5": "pg_md5/pg_md5.c", "pg_enc": "pg_enc/pg_enc.c", "wd_cli": "wd_cli/wd_cli.c",
           "pgpool top": "pgpool_top/pgpool_top.c"}
PROGRAMS = [*SOURCES, *PCP_TOOLS, *SETUPS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All programs under the names that they are installed by."""
    at = tmp_path_factory.mktemp("bin")
    for name in ("pgpool", "pgpool-top", "pg_md5", "pg_enc", "wd_cli"):
        if (BUILD / name).exists():
            (at / name).symlink_to(BUILD / name)
    for name in PCP_TOOLS:
        (at / name).symlink_to(BUILD / "pcp")
    for name in SETUPS:
        shutil.copy(TOP / "src/bin" / name / name, at / name)
    return at


def offered(folder: Path, *words: str) -> set[str]:
    """What is offered for the last of the words."""
    text = f"""source '{SCRIPT}'
shopt -s extglob
COMP_WORDS=({' '.join(f"'{w}'" for w in words)})
COMP_CWORD={len(words) - 1}
_pgpool
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, check=True, timeout=60, cwd=folder,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    assert "rror" not in done.stderr, done.stderr
    return set(done.stdout.split())


def options_of(program: str) -> set[str]:
    """Those that its source has in a table."""
    if program in SETUPS:
        text = (TOP / "src/bin" / program / program).read_text(encoding="utf-8")
        return {"--help", *re.findall(r"^\s+(-[\w-]+)\)", text, re.M)}
    file = SOURCES.get(program)
    if file is None:
        return {"--help", "--host", "--port", "--username", "--json"}
    found = re.findall(r'\{"([a-z-]+)", (?:no|required|optional)_argument', (TOP / "src/bin" / file).read_text(encoding="utf-8"))
    return {"--" + name for name in found}


@pytest.mark.parametrize("program", PROGRAMS)
def test_options(folder, program):
    if program == "pgpool top" and not (folder / "pgpool-top").exists():
        pytest.skip("pgpool was built without ncurses: no pgpool top")
    found = offered(folder, *program.split(), "-")
    wanted = options_of(program)
    assert len(wanted) >= 4
    assert found >= wanted, wanted - found
    assert offered(folder, *program.split(), "--he") == {"--help"}


ZSH = shutil.which("zsh")
# What compadd would offer is printed; words that do not fit what is typed are zsh's to leave out.
IN_ZSH = """compadd() { [[ $1 == -- ]] && shift; print -l -- "$@"; }
_files() { print -- FILES; }
compset() { }
complete_words() { local -a words; words=("$@"); local CURRENT=$#words; source "$SCRIPT"; }
for line in "${(f)LINES_TO_TRY}"; do
    print -- "= $line"
    if [[ $line == *' -' || $line == *= ]]; then complete_words ${(s: :)line}; else complete_words ${(s: :)line} ''; fi
done
"""


@pytest.mark.skipif(ZSH is None, reason="zsh is not installed")
def test_zsh(folder):
    """What its file says, read by zsh: the same options, files and words."""
    programs = [p for p in PROGRAMS if p != "pgpool top" or (folder / "pgpool-top").exists()]
    lines = [f"{program} -" for program in programs] + ["pgpool -m", "pgpool -f", "wd_cli -I", "pgpool --describe", "pg_enc --format="]
    done = subprocess.run([ZSH, "-f", "-c", IN_ZSH], capture_output=True, text=True, check=True, timeout=120, cwd=folder,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "LINES_TO_TRY": "\n".join(lines),
                               "SCRIPT": str(SCRIPT.with_name("_pgpool"))})
    assert done.stderr == ""
    found = {part.split("\n", 1)[0]: set(part.split("\n")[1:]) for part in re.split(r"^= ", done.stdout, flags=re.M)[1:]}
    for program in programs:
        assert found[f"{program} -"] >= options_of(program), (program, options_of(program) - found[f"{program} -"])
    assert found["pgpool -m"] >= {"smart", "fast", "immediate"} and "FILES" in found["pgpool -f"]
    assert found["pg_enc --format="] == {"aes", "gcm", "scram", ""}
    assert found["wd_cli -I"] >= {"DEAD", "ALIVE"} and found["pgpool --describe"] >= {"sample", "man", "roff", "json"}


def test_words(folder):
    assert offered(folder, "pgpool", "") == {"stop", "reload", "top"}
    assert offered(folder, "pgpool", "-m", "f") == {"fast"}
    assert offered(folder, "pgpool", "--describe", "") == {"sample", "man", "roff", "json"}
    assert offered(folder, "wd_cli", "-I", "D") == {"DEAD"}
    assert offered(folder, "pg_enc", "--format", "g") == {"gcm"}
    assert offered(folder, "pg_enc", "--format", "=") == {"aes", "gcm", "scram"} and offered(folder, "pg_enc", "--format", "=", "g") == {"gcm"}
    (folder / "a.conf").touch()
    assert "a.conf" in offered(folder, "pgpool", "-f", "a.c")
    if (folder / "pgpool-top").exists():
        views = re.findall(r"TOP_VIEW\('.', \"(\w+)\"", (TOP / "src/bin/pgpool_top/top_views.def").read_text(encoding="utf-8"))
        assert offered(folder, "pgpool", "top", "") == set(views)
        assert offered(folder, "pgpool", "top", "s") == {v for v in views if v.startswith("s")}


def test_both_shells_know_all_programs():
    for name, what in (("pgpool.bash", r"^complete -F _pgpool (.*)\Z"), ("_pgpool", r"^#compdef (.*?)$")):
        text = (TOP / "packaging/completion" / name).read_text(encoding="utf-8").replace("\\\n", " ")
        named = re.search(what, text, re.S | re.M)[1].split()
        assert sorted(named) == sorted(p for p in PROGRAMS if " " not in p), name


def test_each_has_a_page():
    pages = {p.name for p in (TOP / "doc/man").iterdir()}
    assert {p.split()[0] + ".1" for p in PROGRAMS} | {"pgpool.conf.5", "pools.conf.5", "pool_hba.conf.5", "pcp.1"} == pages
    installed = (TOP / "doc/module.am").read_text(encoding="utf-8")
    assert not [p for p in pages if f"doc/man/{p}" not in installed]
    listed = (TOP / "doc/man/pgpool.1").read_text(encoding="utf-8")
    assert "pgpool top" in listed
