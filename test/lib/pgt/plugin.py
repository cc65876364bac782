# SPDX-License-Identifier: PostgreSQL
"""plugin: pytest options and fixtures of the harness."""
import os
import signal
import sys

import pytest

from pgt import postgres, proxy, waits
from pgt.diff import Oracle
from pgt.fake import FakeServer, serve

VIAS = ("pgpool", "postgres", "pgbouncer", "pgpool2")


def pytest_addoption(parser):
    parser.addoption("--via", choices=VIAS, default=os.environ.get("PGT_VIA", "pgpool"),
                     help="what the oracle's second run goes through (postgres: the harness itself)")
    parser.addoption("--slow", action="store_true", help="also tests that need minutes or gigabytes")


def pytest_configure(config):
    # A run that is told to end still ends what it started (atexit).
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    config.addinivalue_line("markers", "oracle: compares with a direct run against PostgreSQL")
    config.addinivalue_line("markers", "slow: needs minutes or gigabytes, run with --slow")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        skip = pytest.mark.skip(reason="slow: run with --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)
    if config.getoption("--via") != "pgpool":
        skip = pytest.mark.skip(reason="--via: only the oracle's tests")
        for item in items:
            if "oracle" not in item.keywords:
                item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the end of each proxy's log."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for value in getattr(item, "funcargs", {}).values():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, proxy.Proxy):
                    report.sections.append((f"end of {one.kind}'s log", one.log()[-4000:]))


@pytest.fixture(scope="session")
def pg():
    """One PostgreSQL server for the run, with the accounts of postgres.ROLES."""
    if not postgres.is_installed():
        pytest.skip("no PostgreSQL server is installed")
    server = postgres.start_postgres()
    yield server
    server.stop()


def need_pgpool() -> None:
    if proxy.pgpool_bin() is None:
        pytest.skip("PGPOOL_BIN does not name a program")


@pytest.fixture(scope="session")
def shared_pgpool(pg):
    """One pgpool with default settings for all tests that need no others."""
    need_pgpool()
    pool = proxy.start_pgpool([pg.address])
    yield pool
    pool.stop()


@pytest.fixture
def pgpool(shared_pgpool):
    """The shared pgpool; afterwards it must have the same processes and nothing alarming in its log."""
    before = shared_pgpool.pids()
    yield shared_pgpool
    shared_pgpool.check_log()
    assert shared_pgpool.pids() == before, "a process of pgpool ended during the test"


@pytest.fixture
def start_pool(request):
    """Makes pgpools with settings of the test's own: start_pool(backends, **conf)."""
    need_pgpool()
    pools: list[proxy.Pgpool] = []

    def start(*backends, **conf):
        pools.append(proxy.start_pgpool(list(backends), conf))
        return pools[-1]

    start.pools = pools
    request.node.funcargs["pools_of_test"] = pools
    yield start
    for pool in pools:
        pool.stop()


@pytest.fixture(scope="session")
def peer(pg, request):
    via = request.config.getoption("--via")
    peer = proxy.start_peer(via, pg.address)
    yield peer
    peer.stop()


@pytest.fixture
def oracle(pg, request):
    """Compares a direct run with one through --via."""
    via = request.config.getoption("--via")
    if via == "postgres":
        return Oracle(pg, pg.address)
    if via == "pgpool":
        return Oracle(pg, request.getfixturevalue("pgpool").address)
    return Oracle(pg, request.getfixturevalue("peer").address)


@pytest.fixture
def fake():
    """Starts fake servers: fake(script)."""
    servers: list[FakeServer] = []

    def start(script=serve, user="fake"):
        servers.append(FakeServer(script, user))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def wait_for():
    return waits.wait_for
