# SPDX-License-Identifier: PostgreSQL
"""conftest: where the drivers' tests run: 20 clients on two links that are forced to change, a link each, and both over
three servers, where reads go to two standbys that apply what is committed before COMMIT returns."""
import threading
from dataclasses import dataclass

import pytest

from pgt import plugin, proxy, waits
from pgt.trio import Trio
from pgt.wire import Wire

TWO_LINKS = {"pool_mode": "transaction", "pool_test_rotate": True, "max_backend_connections": 2,
             "query_wait_timeout": 180}
LINK_EACH = {"max_backend_connections": 24}
PRIMARY = 1  # of the three servers


@dataclass
class Place:
    conf: dict
    trio: Trio | None

    @property
    def has_readers(self) -> bool:
        """Sessions read on connections of their own to standbys, which parse a statement when it is first bound there: what its client
        was told of its columns before is not looked at (doc/internals/known-gaps.md)."""
        return self.trio is not None and "pool_mode" not in self.conf


@pytest.fixture(scope="module", autouse=True)
def left_behind():
    """The threads that this module has begun, and nobody before it, and that live."""
    before = set(threading.enumerate())
    return lambda: [t for t in threading.enumerate() if t not in before]


@pytest.fixture(scope="module", params=["transaction", "session", "transaction_three", "session_three"])
def place(request):
    conf = dict(TWO_LINKS) if request.param.startswith("transaction") else dict(LINK_EACH)
    if not request.param.endswith("three"):
        yield Place(conf, None)
        return
    it = Trio(PRIMARY)
    it.keep_in_step()
    it.primary.rows("create table drv_where as select 1 as a")
    conf |= {"load_balance_mode": True, "sr_check_period": 1, f"backend_weight{PRIMARY}": 0}
    yield Place(conf, it)
    it.stop()


@pytest.fixture(scope="module")
def pg(pg, place):
    """The server, or the primary."""
    return pg if place.trio is None else place.trio.primary


def reads_leave(pool, trio) -> bool:
    with Wire(pool.address, seconds=20) as w:
        return w.login()[-1].type == "Z" and int(w.value("select inet_server_port() from drv_where")) != trio.primary.port


@pytest.fixture(scope="module")
def pool(pg, place):
    plugin.need_pgpool()
    nodes = [pg] if place.trio is None else place.trio.nodes
    it = proxy.start_pgpool([n.address for n in nodes], place.conf)
    if place.trio is not None:
        waits.wait_for("reads are balanced", lambda: reads_leave(it, place.trio))
    yield it
    it.stop()
