# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_orders: what operators order at one pgpool holds for all of them: pauses, emptied query caches; and who guesses passwords at one
of them is kept out by all."""
import contextlib

from pgt import waits
from pgt.wire import Wire
from test_monitor import show
from test_watchdog import Three, cluster  # noqa: F401


def order(three: Three, i: int, text: str) -> str:
    """The tag of a command, or the text of its error."""
    with Wire(three.pools[i].address, seconds=30) as w:
        w.login("postgres", "template1")
        found = w.simple(text)
        return next((m.body.rstrip(b"\0").decode() for m in found if m.type == "C"), "") or next(m.text for m in found if m.type == "E")


def paused(three: Three, i: int) -> list[str]:
    return sorted(r["database"] for r in show(three.pools[i], "POOL_ORDERS") if r["paused"] == "true")


def wait_paused(three: Three, wanted: list[str], *ids: int) -> None:
    for i in ids:
        waits.wait_for(f"pgpool {i} has paused {wanted}", lambda i=i: paused(three, i) == wanted, 60)


def test_a_pause_holds_for_all(cluster):  # noqa: F811
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    other = (leader + 1) % 3
    third = (leader + 2) % 3
    assert order(three, other, "PGPOOL PAUSE app") == "PAUSE"
    wait_paused(three, ["app"], 0, 1, 2)
    three.wait_events(f'database "app" was paused at pgpool {other}', 0, 1, 2)
    # Who comes back knows it, and so does the next leader.
    three.kill(third)
    three.start(third)
    wait_paused(three, ["app"], third)
    three.kill(leader)
    assert three.wait_leader(other, third) in (other, third)
    assert order(three, third, "PGPOOL PAUSE more") == "PAUSE"
    wait_paused(three, ["app", "more"], other, third)
    assert order(three, third, "PGPOOL RESUME app") == "RESUME"
    wait_paused(three, ["more"], other, third)
    # Who was away while it was resumed has kept nothing.
    three.start(leader)
    wait_paused(three, ["more"], leader)
    assert order(three, leader, "PGPOOL RESUME more") == "RESUME"
    wait_paused(three, [], 0, 1, 2)


def test_a_pause_while_nobody_leads(cluster):  # noqa: F811
    """It holds where it was ordered, and everywhere as soon as somebody leads."""
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    left = (leader + 1) % 3
    gone = [i for i in range(3) if i != left]
    for i in gone:
        three.kill(i)
    waits.wait_for("nobody leads", lambda: three.leader_of(left) is None, 60)
    assert order(three, left, "PGPOOL PAUSE app") == "PAUSE"
    three.start(*gone)
    wait_paused(three, ["app"], 0, 1, 2)
    assert order(three, gone[0], "PGPOOL RESUME app") == "RESUME"
    wait_paused(three, [], 0, 1, 2)


def test_a_drain_is_of_one_pgpool(cluster):  # noqa: F811
    """One pgpool is emptied for its restart: the others go on."""
    three = cluster().start()
    three.wait_voters(three.wait_leader(0, 1, 2), 3)
    assert order(three, 0, "PGPOOL DRAIN app") == "DRAIN"
    assert order(three, 0, "PGPOOL PAUSE app") == "PAUSE"
    wait_paused(three, ["app"], 0, 1, 2)
    assert [r["draining"] for r in show(three.pools[1], "POOL_ORDERS")] == ["false"]


def test_the_reason_of_a_detach_is_known_to_all(cluster):  # noqa: F811
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    other = (leader + 1) % 3
    three.sides[other].ok("detach_node", "-n", "0", "--why", "a new disk")
    for i in range(3):
        waits.wait_for("it is told", lambda i=i: "node 0 is detached by" in three.pools[i].log() and "a new disk" in three.pools[i].log(), 60)


def value(three: Three, i: int) -> str:
    with Wire(three.pools[i].address, seconds=30) as w:
        w.login("postgres", "postgres")
        return w.value("select n from kept_for_all")


def test_caches_are_emptied_everywhere(cluster, pg):  # noqa: F811
    pg.rows("drop table if exists kept_for_all")
    pg.rows("create table kept_for_all (n int)")
    pg.rows("insert into kept_for_all values (1)")
    three = cluster(memory_cache_enabled=True, memqcache_invalidation="statement", memqcache_total_size="8MB",
                    clear_memqcache_on_escalation=True).start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    other = (leader + 1) % 3

    for pool in three.pools:  # the first leader is one, too
        waits.wait_for("the change of the leader is heard of", lambda pool=pool: "query caches after a change of the leader" in pool.log(), 60)

    there = 1

    def is_kept() -> bool:
        """All have it in their caches, and it is not true any more; not where another one was elected meanwhile."""
        nonlocal there
        for i in range(3):
            waits.wait_for("the cache is on", lambda i=i: value(three, i) and any(
                r["database"] == "postgres" and r["state"] == "statement" for r in show(three.pools[i], "POOL_CACHE_STREAMS")), 60)
            for _ in range(4):
                value(three, i)
        if [value(three, i) for i in range(3)] != [str(there)] * 3:
            return False
        there += 1
        pg.rows(f"update kept_for_all set n = {there}")
        if [value(three, i) for i in range(3)] == [str(there - 1)] * 3:
            return True
        three.sides[other].ok("invalidate_query_cache")
        return False

    waits.wait_for("all have it in their caches", is_kept)
    three.sides[other].ok("invalidate_query_cache")
    for i in range(3):
        waits.wait_for(f"pgpool {i} asks anew", lambda i=i: value(three, i) == str(there), 60)
    waits.wait_for("all have it in their caches", is_kept)
    leader = three.wait_leader(0, 1, 2)
    left = [i for i in range(3) if i != leader]
    three.kill(leader)
    three.wait_leader(*left)
    for i in left:
        waits.wait_for(f"pgpool {i} asks anew", lambda i=i: value(three, i) == str(there), 60)


def come(three: Three, i: int, password: str) -> str:
    with Wire(three.pools[i].address, seconds=30) as w, contextlib.suppress(EOFError):
        last = w.login("limited", "postgres", password)[-1]
        return last.sqlstate if last.type == "E" else "in"


def test_who_guesses_at_one_is_kept_out_by_all(cluster):  # noqa: F811
    three = cluster(enable_pool_hba=True, auth_failure_limit=3)
    for pool in three.pools:
        (pool.home / "pool_hba.conf").write_text("host all limited all scram-sha-256\nhost all all all trust\nlocal all all trust\n", encoding="ascii")
        (pool.home / "pool_passwd").write_text("limited:TEXTlimited_pw\n", encoding="ascii")
        (pool.home / "pool_passwd").chmod(0o600)
    three.start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    other = (leader + 1) % 3
    assert [come(three, other, "wrong") for _ in range(2)] == ["28P01"] * 2
    assert come(three, leader, "wrong") == "28P01", "two are not yet too many"
    assert come(three, other, "wrong") == "28P01"
    for i in range(3):
        if i != other:
            waits.wait_for("it is told", lambda i=i: "too many logins from an address have failed" in three.pools[i].log())
        assert come(three, i, "limited_pw") == "28000"
