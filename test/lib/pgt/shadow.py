# SPDX-License-Identifier: PostgreSQL
"""shadow: the installed PostgreSQL once more in a scratch folder, with our extensions in it.

The servers' programs find their libraries and their share folder beside themselves, so a copy of the
programs with links to the rest is a whole installation, and the one of the system stays as it is.
"""
import os
import shutil
import subprocess
from pathlib import Path

from pgt import postgres, procs

TOP = Path(__file__).resolve().parents[3]
EXTENSIONS = ("pgpool_recovery", "pgpool_adm")
_made: Path | None = None


def pg_config() -> str | None:
    """The pg_config of the servers' version that can build extensions; None: it is not installed."""
    for path in (postgres.bindir() / "pg_config", Path("/usr/bin/pg_config")):
        if not path.exists():
            continue
        pgxs = Path(ask(str(path), "--pgxs"))
        if pgxs.exists() and Path(ask(str(path), "--bindir")) == postgres.bindir():
            return str(path)
    return None


def ask(config: str, what: str) -> str:
    return subprocess.run([config, what], capture_output=True, text=True, check=True).stdout.strip()


def mirror(source: Path, target: Path) -> None:
    """A folder of links to what `source` holds; programs are copied, for they look where they are."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.name == "bin":
            shutil.copytree(entry, target / "bin", symlinks=False)
        elif entry.is_dir() and entry.name in ("lib", "extension", "bitcode"):
            mirror(entry, target / entry.name)
        else:
            (target / entry.name).symlink_to(entry.resolve())


def build(config: str, name: str, root: Path) -> Path:
    """Builds an extension out of the source tree and installs it under `root`; its build folder."""
    home = procs.folder("build-" + name)
    make = ["make", "-C", str(home), "-f", str(TOP / "sql" / name / "Makefile"), f"PG_CONFIG={config}",
            "with_llvm=no", "COPT=-Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Werror"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    procs.run([*make, "all"], env=env)
    procs.run([*make, "install", f"DESTDIR={root}"], env=env)
    return home


def make_shadow() -> Path:
    """The bin folder of the copy; made once per run."""
    global _made
    if _made is None:
        config = pg_config()
        assert config is not None, "postgresql-server-dev is not installed"
        root = procs.folder("shadow")
        bins = Path(ask(config, "--bindir"))
        share = Path(ask(config, "--sharedir"))
        mirror(bins.parent, root / str(bins.parent).lstrip("/"))
        mirror(share, root / str(share).lstrip("/"))
        for name in EXTENSIONS:
            build(config, name, root)
        _made = root / str(bins).lstrip("/")
    return _made
