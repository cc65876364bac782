# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_setup: watchdog_setup makes pgpools that lead and follow in front of one cluster, and nothing is left running."""
import subprocess

import pytest

from pgt import procs, shadow, waits
from test_setup import Setup, pytestmark  # noqa: F401

WATCHDOG_SETUP = shadow.TOP / "src" / "bin" / "watchdog_setup" / "watchdog_setup"


@pytest.fixture
def setup():
    it = Setup()
    it.first = procs.free_ports(16)  # watchdog_setup counts on from it
    yield it
    it.end()


def make(setup, *args: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(WATCHDOG_SETUP), "-wp", str(setup.first), *args], cwd=setup.home, env=setup.env, text=True,
                          timeout=100 * waits.SCALE, capture_output=True, check=False, stdin=subprocess.DEVNULL)


def test_pgpools_that_lead_and_follow(setup):
    done = make(setup, "-wn", "3", "-n", "2", "--no-stop")
    assert done.returncode == 0, done.stdout + done.stderr
    for i in range(3):
        assert (setup.home / f"pgpool{i}/etc/pgpool_node_id").read_text(encoding="ascii") == f"{i}\n"
        waits.wait_for(f"pgpool {i} knows who leads", lambda i=i: setup.psql("show pool_watchdog", setup.first + 4 * i).count("LEADER") == 1
                       and setup.psql("show pool_watchdog", setup.first + 4 * i).count("STANDBY") == 2, 60)
        waits.wait_for("it serves clients", lambda i=i: setup.psql("select 1", setup.first + 4 * i) == "1")
    assert not (setup.home / "extra").exists()
    assert (setup.home / "pgpool0/data1").is_dir() and not (setup.home / "pgpool1/data0").exists()
    setup.script("shutdownall")
    setup.script("startall")
    waits.wait_for("they agree again", lambda: setup.psql("show pool_watchdog", setup.first + 8).count("LEADER") == 1, 60)


def test_what_is_refused(setup):
    for wrong in (["-wn", "0"], ["-wp", "99999"], ["-vip", "a b"], ["-x"]):
        done = make(setup, *wrong)
        assert done.returncode == 1 and (done.stderr or done.stdout), done
        assert not list(setup.home.iterdir())
