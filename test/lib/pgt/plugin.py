# SPDX-License-Identifier: PostgreSQL
"""plugin: pytest options and fixtures of the harness."""
import os
import signal

import pytest

from pgt import late, native, noise, postgres, procs, proxy, waits, wire
from pgt.diff import Oracle
from pgt.fake import FakeServer, serve

VIAS = ("pgpool", "postgres", "pgbouncer", "pgpool2")
MODES = ("session", "transaction", "statement")


def pytest_addoption(parser):
    parser.addoption("--via", choices=VIAS, default=os.environ.get("PGT_VIA", "pgpool"),
                     help="what the oracle's second run goes through (postgres: the harness itself)")
    parser.addoption("--pool-mode", choices=MODES, default=os.environ.get("PGT_POOL_MODE", "session"),
                     help="of the shared pgpool and of pgbouncer; but session: links forced to change")
    parser.addoption("--set", action="append", default=[], metavar="NAME=VALUE",
                     help="a setting for each pgpool whose test does not give it")
    parser.addoption("--late", type=int, default=0, metavar="N", help="pgpool's processes are scheduled late, one time in N")
    parser.addoption("--few", type=int, default=0, metavar="N", help="pgpool reads a few bytes only, one time in N")
    parser.addoption("--linger", type=int, default=0, metavar="MS", help="server processes notice so late that they are to end")
    parser.addoption("--slow", action="store_true", help="also tests that need minutes or gigabytes")


def pytest_configure(config):
    # A run that is told to end still ends what it started (atexit), and begins no other test.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("told to end", 143))
    proxy.extra_conf.update(word.split("=", 1) for word in config.getoption("--set"))
    if config.getoption("--late") or config.getoption("--few"):
        late.put_in_front(config.getoption("--late"), config.getoption("--few"))
    if config.getoption("--linger"):
        late.have_servers_linger(config.getoption("--linger"))
    config.addinivalue_line("markers", "oracle: compares with a direct run against PostgreSQL")
    config.addinivalue_line("markers", "session_mode: about what only session mode promises")
    config.addinivalue_line("markers", "slow: needs minutes or gigabytes, run with --slow")


def once_for_all_modes(items) -> list:
    """Of the tests that differ in the pool mode and in nothing else the first one: PostgreSQL has no pool mode."""
    first = {}
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        ids = item.callspec.id.split("-") if params else []
        rest = tuple(word for word in ids if word != params.get("pool_mode"))
        first.setdefault((item.path, getattr(item, "originalname", item.name), rest), item)
    return list(first.values())


def pytest_collection_modifyitems(config, items):
    if config.getoption("--via") == "postgres":
        kept = once_for_all_modes(items)
        config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
        items[:] = kept
    if not config.getoption("--slow"):
        # Byte by byte is tried where it may matter: where links change.
        twice = [i for i in items if hasattr(i, "callspec") and i.callspec.params.get("chunk") == 1
                 and i.callspec.params.get("pool_mode") == "session"]
        if twice:
            config.hook.pytest_deselected(items=twice)
            items[:] = [i for i in items if i not in set(twice)]
    if not config.getoption("--slow"):
        skip = pytest.mark.skip(reason="slow: run with --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)
    if config.getoption("--pool-mode") != "session":
        skip = pytest.mark.skip(reason="session mode's promise: server process id, what outlives a transaction")
        for item in items:
            if "session_mode" in item.keywords:
                item.add_marker(skip)
    if config.getoption("--via") != "pgpool":
        skip = pytest.mark.skip(reason="--via: only the oracle's tests")
        for item in items:
            if "oracle" not in item.keywords:
                item.add_marker(skip)


def what_it_does(one: proxy.Proxy) -> str:
    """Who waits for what in a pgpool that did not answer in time, as far as it still says."""
    said = []
    try:
        with wire.Wire(one.address, seconds=2) as w:
            w.login()
            for what in ("pool_clients", "pool_links", "pool_queue"):
                found = w.simple(f"show {what}")
                said += [what, *("  " + str([v if v is None else v.decode() for v in m.row()]) for m in found if m.type == "D")]
    except (wire.WireTimeout, wire.WireClosed, OSError) as e:
        said.append(f"it does not say: {e}")
    return "\n".join(said)


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
                    if call.excinfo.errisinstance(wire.WireTimeout) and isinstance(one, proxy.Pgpool):
                        report.sections.append(("what it does", what_it_does(one)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Servers of a file are not started again behind it."""
    yield
    if nextitem is None or nextitem.path != item.path:
        procs.drop_stopped()


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


@pytest.fixture
def pool_mode(request) -> str:
    """Of the shared pgpool that a test gets; a test may parametrize it."""
    return request.config.getoption("--pool-mode")


@pytest.fixture(scope="session")
def shared_pools(pg):
    """One pgpool for each pool mode, made when first asked for: all settings default, but that links are
    forced to change where a client may change them, and clients of the harness's own leave theirs on
    them (noise)."""
    need_pgpool()
    pools: dict[str, proxy.Pgpool] = {}

    def get(mode: str) -> proxy.Pgpool:
        if mode not in pools:
            conf = {} if mode == "session" else {"pool_mode": mode, "pool_test_rotate": True}
            pools[mode] = proxy.start_pgpool([pg.address], conf)
        return pools[mode]

    yield get
    for pool in pools.values():
        pool.stop()


@pytest.fixture
def pgpool(shared_pools, pool_mode):
    """The shared pgpool; afterwards it must have the same processes and nothing alarming in its log."""
    shared_pgpool = shared_pools(pool_mode)
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
def peers(pg, request):
    """The peer that --via names, one for each pool mode."""
    started: dict[str, proxy.Proxy] = {}

    def get(mode: str) -> proxy.Proxy:
        if mode not in started:
            started[mode] = proxy.start_peer(request.config.getoption("--via"), pg.address, mode)
        return started[mode]

    yield get
    for peer in started.values():
        peer.stop()


@pytest.fixture(scope="session")
def noises():
    """The noise at each proxy of this run."""
    made: dict[int, noise.Noise] = {}

    def at(pool: proxy.Proxy) -> noise.Noise:
        if pool.port not in made:
            made[pool.port] = noise.Noise(pool.address)
        return made[pool.port]

    yield at
    for one in made.values():
        one.bye()


@pytest.fixture
def oracle(pg, request, pool_mode, noises):
    """Compares a direct run with one through --via."""
    via = request.config.getoption("--via")
    if via == "postgres":
        return Oracle(pg, pg.address, moves=pool_mode != "session")
    name = "pgpool" if via == "pgpool" else "peers"
    found = request.getfixturevalue(name)
    pool = found if via == "pgpool" else found(pool_mode)
    if pool_mode != "transaction":
        return Oracle(pg, pool.address, moves=pool_mode != "session",
                      no_blocks=pool_mode == "statement" and via == "pgpool")
    return Oracle(pg, pool.address, moves=True, before=noises(pool).stir)


@pytest.fixture
def fake():
    """Starts fake servers: fake(script)."""
    servers: list[FakeServer] = []

    def start(script=serve, user="fake", address=None):
        servers.append(FakeServer(script, user, address))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def wait_for():
    return waits.wait_for


@pytest.fixture
def pair(start_pool):
    """Makes servers of native replication behind a pgpool: pair(2, **conf)."""
    made = []

    def make(count=2, **conf):
        made.append(native.Nodes(count, start_pool, **conf))
        return made[-1]

    yield make
    for it in made:
        it.stop()
