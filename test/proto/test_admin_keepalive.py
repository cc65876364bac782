# SPDX-License-Identifier: PostgreSQL
"""test_admin_keepalive: tcp_keepalives_*: the kernel's own account of both legs."""
from pathlib import Path

from pgt import waits
from pgt.wire import Address

from test_admin_orders import login


def keepalive_seconds(port: int, remote: bool) -> list[float]:
    """Time until the next probe of the established connections to or from 127.0.0.1:port."""
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        local, peer, state, timer = fields[1], fields[2], fields[3], fields[5]
        which = peer if remote else local
        if state == "01" and int(which.split(":")[1], 16) == port and timer.split(":")[0] == "02":
            found.append(int(timer.split(":")[1], 16) / 100)
    return found


def soon(port: int, remote: bool, least: float, most: float) -> bool:
    """While bytes are on their way another timer runs: look more than once."""
    end = waits.deadline(1.0)
    while not any(least < s <= most for s in keepalive_seconds(port, remote)):
        if waits.now() > end:
            return False
    return True


def test_both_legs(pg, start_pool):
    """Clients and servers are probed after the time that is set; a reload changes it for new ones."""
    pool = start_pool(Address("127.0.0.1", pg.port), num_init_children=1, tcp_keepalives_idle=33)

    def both() -> bool:
        """Of new connections: what is left of the time goes by."""
        with login(pool) as w:
            assert w.value("select 1") == "1"
            if soon(pool.port, False, 25, 33) and soon(pg.port, True, 25, 33):
                return True
            w.simple("pgpool reconnect")
        return False

    waits.wait_for("both are probed", both)
    pool.reload(tcp_keepalives_idle=77)

    def follows() -> bool:
        with login(pool) as again:
            again.value("select 1")
            return soon(pool.port, False, 66, 77)

    waits.wait_for("new clients follow", follows)
    pool.reload(tcp_keepalives_idle=0)

    def default() -> bool:
        with login(pool) as again:
            again.value("select 1")
            return soon(pool.port, False, 100, 1e9)

    waits.wait_for("0 is the system's choice again", default)
