# SPDX-License-Identifier: PostgreSQL
"""test_unsure: auth_query is set and the servers cannot be asked: who is in pool_passwd comes in by it, and by the words and the time
of a refusal it cannot be told who is."""
import signal
import threading
import time

import auth_house as house
import pytest
from pgt.waits import wait_for

from test_no_relay import ANN, talk

NONSENSE = "select nonsense($1::text)"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    for name in ("ann", "bob"):
        house.make_user(pg, name, "scram")
    pg.rows(f"alter role ann password '{ANN}'")
    yield pg
    pg.stop()


def start(server, hba, passwd=f"ann:{ANN}\n", **conf):
    return house.start_auth_pool([server.address], hba=hba, passwd=f"looker:looker_pw\n{passwd}", num_init_children=1, auth_user="looker",
                                 auth_dbname="postgres", **conf)


def come(pool, user, password=None) -> str:
    return house.try_login(pool.address, user, "postgres", password or f"{user}_pw")[0]


@pytest.mark.parametrize("method", ["scram-sha-256", "md5", "password", None])
def test_words(server, method):
    """ann is in the file and in the server, bob in the server alone, nobody nowhere; looker is who asks."""
    pool = start(server, None if method is None else f"host all all all {method}\n", auth_query=NONSENSE)
    try:
        assert come(pool, "ann") == "in"
        heard = {user: talk(pool, user) for user in ("ann", "bob", "nobody", "looker")}
        assert heard["ann"][-1][0] == "57P03" and len(heard["ann"]) > 1, heard
        assert heard["bob"] == heard["ann"] and heard["nobody"] == heard["ann"], heard
        assert heard["looker"][-1] == heard["ann"][-1], heard
        assert come(pool, "ann") == "in"
        assert come(pool, "bob") == "57P03"
    finally:
        pool.stop()


def seconds_of(pool, user: str) -> float:
    began = time.monotonic()
    assert come(pool, user, "guess") == "57P03"
    return time.monotonic() - began


def test_time(server):
    """A server that does not answer is waited for once, and as long by all; then not much, and all again once it answers."""
    server.rows("create table if not exists gate(shut bool)")
    server.rows("truncate gate; insert into gate values (true); grant select on gate to looker")
    query = ("select rolname, rolpassword from pgpool_user_lookup($1::text),"
             " (select pg_sleep(case when exists (select from public.gate where shut) then 20 else 0 end)) as slept")
    pool = start(server, "host all all all scram-sha-256\n", auth_query=query)
    took = {}
    try:
        threads = [threading.Thread(target=lambda user=user: took.update({user: seconds_of(pool, user)})) for user in ("ann", "bob", "nobody")]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(took) == 3 and min(took.values()) >= 4.9 and max(took.values()) < 9, took
        seconds_of(pool, "nobody")  # the look-up that hung ends about now
        later = {user: seconds_of(pool, user) for user in ("ann", "bob", "nobody")}
        assert min(later.values()) >= 0.19 and max(later.values()) < 4, later
        assert come(pool, "ann") == "in"
        server.rows("update gate set shut = false; select pg_terminate_backend(pid) from pg_stat_activity where usename = 'looker'")
        wait_for("bob is looked up again", lambda: come(pool, "bob") == "in")
    finally:
        pool.stop()


def test_limit_of_failures(server):
    """Guesses are limited meanwhile, but who came with the right password is not kept out when it is over."""
    pool = start(server, "host all all all scram-sha-256\n", auth_query=NONSENSE, auth_failure_limit=3)
    try:
        assert [come(pool, user, "guess") for user in ("ann", "nobody", "bob")] == ["57P03"] * 3
        heard = [talk(pool, user) for user in ("ann", "nobody")]
        assert heard[0] == heard[1] and [m for m in heard[0] if m[0] == 11] == [], "no exchange any more"
        assert come(pool, "ann") == "57P03"
        pool.reload(auth_query="")
        wait_for("the servers are asked", lambda: come(pool, "bob") == "in")
        assert come(pool, "ann") == "in"
    finally:
        pool.stop()


def test_a_standby_is_asked(server):
    """The primary is killed: nobody who comes meanwhile is refused because it cannot be asked, for its standby knows as much."""
    primary = house.start_server()
    house.make_user(primary, "bob", "scram")
    standby = house.start_standby(primary)
    pool = None
    try:
        wait_for("the standby has bob", lambda: standby.rows("select 1 from pg_roles where rolname = 'bob'"))
        pool = house.start_auth_pool([primary.address, standby.address], hba="host all all all scram-sha-256\n", passwd="looker:looker_pw\n",
                                     num_init_children=1, auth_user="looker", auth_dbname="postgres", health_check_period=1,
                                     health_check_max_retries=2, health_check_retry_delay=1, sr_check_period=1,
                                     sr_check_user="boss", sr_check_password="boss_pw", health_check_user="boss",
                                     health_check_password="boss_pw", failover_wait=10)
        wait_for("the primary is known", lambda: come(pool, "bob") == "in")
        primary.stop(signal.SIGQUIT)
        until = time.monotonic() + 3
        came = []
        while time.monotonic() < until:
            came.append(house.try_login(pool.address, "bob", "postgres", "bob_pw", ask=False)[0])
        assert set(came) == {"in"}, came
        assert house.try_login(pool.address, "bob", "postgres", "guess", ask=False)[0] == "28P01"
    finally:
        if pool is not None:
            pool.stop()
        standby.stop()
        primary.stop()
