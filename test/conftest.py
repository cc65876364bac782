# SPDX-License-Identifier: PostgreSQL
"""conftest: makes the harness in test/lib known to every pytest run under test/."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "lib"))
pytest_plugins = ["pgt.plugin"]
