# SPDX-License-Identifier: PostgreSQL
"""test_login_notices: what a server says beside the login."""
import pytest

import auth_house as house
from pgt.wire import Wire

POOL_CONF = {"num_init_children": 1}


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    house.make_user(pg, "known", "scram")
    house.make_user(pg, "open", "trust")
    for user in ("known", "open"):
        pg.rows(f"alter role {user} set default_tablespace = 'gone'")
    yield pg
    pg.stop()


def notices(address, user, **params):
    """What is told before ReadyForQuery; each login is a session of its own."""
    with Wire(address) as w:
        found = w.login(user, "postgres", f"{user}_pw", **params)
        assert found[-1].type == "Z"
        w.bye()
    return [(m.fields["S"], m.sqlstate, m.text) for m in found if m.type == "N"]


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("user", ["known", "open"])
@pytest.mark.parametrize("hba", [None, "host all known all scram-sha-256\nhost all all all trust\n"], ids=["relay", "rules"])
def test_each_session_is_told(server, pools, mode, user, hba):
    """A setting of the role that cannot be used: a server says so at each login, to a session on a kept connection too.
    One connection serves all: a second one, opened for who wants errors alone, would have nothing to tell the next."""
    pool = pools([server.address], hba=hba, passwd="known:known_pw\n" if hba else "", pool_mode=mode, default_pool_size=1)
    wanted = [("WARNING", "22023", 'invalid value for parameter "default_tablespace": "gone"')]
    assert notices(server.address, user) == wanted
    for _ in range(3):
        assert notices(pool.address, user) == wanted
        assert notices(pool.address, user, application_name="some") == notices(server.address, user, application_name="some")
        assert notices(pool.address, user, client_min_messages="error") == []
