# SPDX-License-Identifier: PostgreSQL
"""recovery_lab: what the tests of recovery, set-up and chaos share."""
import hashlib
from pathlib import Path


def write_pcp_conf(home: Path, user: str = "op", password: str = "secret") -> None:
    """One user of PCP."""
    digest = hashlib.md5(password.encode()).hexdigest()
    (home / "pcp.conf").write_text(f"{user}:{digest}\n", encoding="ascii")
