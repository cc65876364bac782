# SPDX-License-Identifier: PostgreSQL
"""test_refusals: who does not get in is told what a server would tell, and the log says who it was, from where and why."""
import os
import re
import struct

import pytest

import auth_house as house
from pgt import procs, waits
from pgt.fake import error
from pgt.wire import Address, Wire

HBA = "host all stranger all reject\nhost all nobody all trust\nhost all known all scram-sha-256\nhost all all all trust\n"

POOL_CONF = {"num_init_children": 1}


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    house.make_user(pg, "known", "scram")
    house.make_user(pg, "open", "trust")
    yield pg
    pg.stop()


def last(address, user, password="", database="postgres"):
    with Wire(address) as w:
        w.send_startup(user, database)
        return w.authenticate(user, password)[-1]


def test_no_start_up_packet(server, pools):
    """A length that cannot be one: the connection is closed without a word, and the log says whose it was."""
    pool = pools([server.address], hba=HBA)
    for i, raw in enumerate((struct.pack("!I", 0), struct.pack("!I", 7), struct.pack("!I", 20000), b"GET / HTTP/1.1\r\n\r\n")):
        for address in (server.address, pool.address):
            with Wire(address) as w:
                w.send(raw)
                assert w.read_eof_raw() == b"", (raw, address)
        waits.wait_for("the log says it", lambda i=i: pool.log().count(
            'connection refused: invalid length of startup packet (user "", database "", host 127.0.0.1)') == i + 1)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_long_refusal_of_a_server(fake, pools, mode):
    for code in ("28000", "3D000", "XX000"):
        server = fake(lambda conn, code=code: conn.send(error(code, f"no room for {code} " + "x" * 200000, "FATAL")))
        pool = pools([server.address], hba=HBA, pool_mode=mode)
        found = last(pool.address, "fake")
        assert (found.sqlstate, found.fields["S"]) == (code, "FATAL"), found.fields["M"][:100]
        assert found.text.startswith(f"no room for {code} xxx")


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_an_unknown_role(server, pools, mode):
    pool = pools([server.address], hba=HBA, passwd="boss:boss_pw\n", pool_mode=mode, sr_check_user="boss",
                 sr_check_password="boss_pw")
    for _ in range(2):
        found = last(pool.address, "nobody")
        assert (found.sqlstate, found.text) == ("28000", 'role "nobody" does not exist')


def test_each_refusal_has_its_line(server, pools):
    pool = pools([server.address], hba=HBA, passwd="known:known_pw\n", max_db_connections=0)

    def said(line):
        waits.wait_for(f"the log says {line}", lambda: line in pool.log())

    assert last(pool.address, "known", "wrong").sqlstate == "28P01"
    said('authentication of user "known" failed')
    said('database "postgres", host 127.0.0.1')
    assert last(pool.address, "stranger", database="d_md5").type == "E"
    said('"stranger"')
    said('database "d_md5", host 127.0.0.1')
    found = last(pool.address, "open", database="not_there")
    assert found.sqlstate == "3D000"
    said('connection refused: database "not_there" does not exist (user "open", database "not_there", host 127.0.0.1)')
    pool.stop()
    pool = pools([server.address], hba=HBA, max_clients=1, reserved_connections=0, max_user_client_connections=1)
    with Wire(pool.address) as w:
        assert w.login("open", "postgres")[-1].type == "Z"
        assert last(pool.address, "open", database="d_md5").sqlstate == "53300"
        said('(user "open", database "d_md5", host 127.0.0.1)')


def test_a_database_that_is_not_there_where_users_are_looked_up_in_it(server, pools):
    """It is not the user who could not be looked up, and nothing that is known of the user goes."""
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="looker:looker_pw\n", auth_user="looker")
    for _ in range(2):
        found = last(pool.address, "known", "known_pw", "nodb")
        assert (found.sqlstate, found.text) == ("3D000", 'database "nodb" does not exist')
    assert "is forgotten" not in pool.log()
    assert last(pool.address, "known", "known_pw").type == "Z"


def test_an_entry_that_is_not_the_servers(server, pools):
    """Nobody but pgpool can know that it is the entry which is wrong: the log says what to ask."""
    pool = pools([server.address], hba="host all all all scram-sha-256\n", passwd="known:of_last_year\n")
    assert last(pool.address, "known", "of_last_year").sqlstate == "28P01"
    waits.wait_for("the log says it", lambda: re.search(
        r'node 0 refuses user "known" \(SQLSTATE 28P01\)[^\n]*\n[^\n]*HINT: [^\n]*pool_passwd[^\n]*pgpool --check-auth', pool.log()))


def test_no_server_is_left(pools):
    """The client is told that no restart is needed, the log which server it was, and why."""
    node = Address("127.0.0.1", procs.free_port())
    pool = pools([node], health_check_period=1, sr_check_period=1, health_check_max_retries=0)
    waits.wait_for("it is down", lambda: re.search(
        rf"WARNING:  health check failed on node 0[^\n]*\n[^\n]*DETAIL: [^\n]*{node.port}[^\n]*Connection refused", pool.log()))
    found = last(pool.address, "known")
    assert found.fields["D"].startswith("all backend nodes are down")
    assert "by itself" in found.fields["H"] and "restart" not in found.fields["H"]


def test_a_name_that_is_none(server, pools):
    pool = pools([server.address, Address("no.such.host.invalid", 5432)], health_check_period=1, sr_check_period=1)
    waits.wait_for("the log says which", lambda: re.search(
        r'node 1 could not be asked[^\n]*\n[^\n]*DETAIL: [^\n]*"no\.such\.host\.invalid"[^\n]*\n[^\n]*HINT: [^\n]*name', pool.log()))


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_root_is_warned_of(server, pools):
    log = pools([server.address], hba=HBA).log()
    assert "WARNING:  pgpool runs as root" in log and "HINT:  Start it as a user of its own" in log
