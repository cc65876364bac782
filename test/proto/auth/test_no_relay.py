# SPDX-License-Identifier: PostgreSQL
"""test_no_relay: from outside nobody can tell who is in pool_passwd, unless auth_relay is on."""
import base64
import hashlib
import hmac

import auth_house as house
import pytest

from pgt.scram import Conversation
from pgt.waits import wait_for
from pgt.wire import Wire, message

ITERATIONS = 5000


def verifier(password: str) -> str:
    salt = b"0123456789abcdef"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored, served = (hmac.new(salted, what, "sha256").digest() for what in (b"Client Key", b"Server Key"))
    return f"SCRAM-SHA-256${ITERATIONS}:{base64.b64encode(salt).decode()}${base64.b64encode(hashlib.sha256(stored).digest()).decode()}" \
           f":{base64.b64encode(served).decode()}"


ANN = verifier("ann_pw")


@pytest.fixture(scope="module")
def server():
    pg = house.start_server({"log_connections": "on"})
    for name in ("ann", "bob"):
        house.make_user(pg, name, "scram")
    pg.rows(f"alter role ann password '{ANN}'")
    yield pg
    pg.stop()


def talk(pool, user: str) -> list:
    """What is heard up to the refusal of a wrong password; what has to be different each time is left out."""
    heard = []
    conversation = Conversation(user, "guess")
    with Wire(pool.address, seconds=20) as w:
        w.send_startup(user, "postgres")
        while True:
            found = w.read()
            if found.type == "E":
                return heard + [(found.fields["C"], found.fields["M"].replace(user, "?"))]
            kind = int.from_bytes(found.body[:4], "big")
            text = found.body[4:].decode("latin-1")
            heard.append((kind, text if kind == 10 else text.split(",i=")[1:], len(text)))
            answer = message("p", b"md5" + b"0" * 32 + b"\0") if kind == 5 else message("p", conversation.answer(found.body) or b"")
            w.send(answer)


@pytest.mark.parametrize("method", ["scram-sha-256", "md5", "password"])
@pytest.mark.parametrize("entry", ["verifier", "plain"])
def test_nobody_is_told_from_others(server, method, entry):
    """ann is in the file and in the server, bob in the server alone, nobody nowhere."""
    secret = ANN if entry == "verifier" else "TEXTann_pw"
    pool = house.start_auth_pool([server.address], hba=f"host all all all {method}\n", passwd=f"ann:{secret}\n", num_init_children=1,
                                 auth_relay="off" if entry == "verifier" else "auto")
    try:
        came = house.try_login(pool.address, "ann", "postgres", "ann_pw")
        assert came[0] == "in", came
        heard = {user: talk(pool, user) for user in ("ann", "bob", "nobody")}
        assert heard["bob"] == heard["ann"] and heard["nobody"] == heard["ann"], heard
        assert heard["ann"][-1][0] == "28P01"
        assert house.try_login(pool.address, "bob", "postgres", "bob_pw")[0] == "28P01"
    finally:
        pool.stop()


def opened(server) -> int:
    return server.log().count("connection received")


def talk_and_count(server, pool, user: str) -> tuple:
    before = opened(server)
    return talk(pool, user), opened(server) - before


def test_nobody_is_told_from_others_where_the_server_asks(server):
    """enable_pool_hba = off: words as above, and a connection to see what the server asks for each name's first login, none later."""
    pool = house.start_auth_pool([server.address], passwd=f"ann:{ANN}\nleft:{ANN}\n", num_init_children=1)
    try:
        assert house.try_login(pool.address, "left", "postgres", "guess")[0] == "28P01"
        for wanted in (1, 0):
            heard = {user: talk_and_count(server, pool, user) for user in ("ann", "bob", "nobody")}
            assert heard["bob"] == heard["ann"] and heard["nobody"] == heard["ann"], heard
            assert heard["ann"][0][-1][0] == "28P01" and heard["ann"][1] == wanted, heard
        assert house.try_login(pool.address, "ann", "postgres", "ann_pw")[0] == "in"
        assert house.try_login(pool.address, "bob", "postgres", "bob_pw")[0] == "28P01"
        log = pool.log()
        assert "auth_relay" in log[log.index('of user "bob" failed'):]
        pool.reload(auth_relay=True)
        wait_for("the server judges", lambda: house.try_login(pool.address, "bob", "postgres", "bob_pw")[0] == "in")
    finally:
        pool.stop()


@pytest.mark.parametrize("hba", [None, "host all all all scram-sha-256\n"])
def test_entries_of_our_own_judge_nobody(server, hba):
    """They are there for health checks: the server judges all clients, by its own questions."""
    pool = house.start_auth_pool([server.address], hba=hba, passwd="ann:TEXTann_pw\n", sr_check_user="ann")
    try:
        for user in ("ann", "bob"):
            assert house.try_login(pool.address, user, "postgres", f"{user}_pw")[0] == "in"
            before = opened(server)
            assert house.try_login(pool.address, user, "postgres", "guess")[0] == "28P01"
            assert opened(server) > before, "the server has refused"
    finally:
        pool.stop()
