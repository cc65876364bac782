# SPDX-License-Identifier: PostgreSQL
"""pcp_tool: a PCP tool of ours, run on a pgpool."""
import hashlib
import os
import subprocess
from pathlib import Path

from pgt import waits
from pgt.proxy import pgpool_bin


def pcp(pool, name: str, *args: str) -> subprocess.Popen:
    """A tool of ours, by PCP's socket."""
    for path, text in (("pcp.conf", f"op:{hashlib.md5(b'secret').hexdigest()}\n"), ("pcppass", "*:*:op:secret\n")):
        if not (pool.home / path).exists() or (pool.home / path).read_text(encoding="ascii") != text:
            (pool.home / path).write_text(text, encoding="ascii")  # not while another tool logs in by it
        (pool.home / path).chmod(0o600)
    return subprocess.Popen([Path(pgpool_bin()).parent / "pcp", name, "-h", str(pool.home), "-p", str(pool.conf["pcp_port"]), "-U", "op",
                             "-w", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PCPPASSFILE": str(pool.home / "pcppass")})


def said(tool: subprocess.Popen) -> tuple[int, str]:
    out = tool.communicate(timeout=30 * waits.SCALE)
    return tool.returncode, out[0] + out[1]
