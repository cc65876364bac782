# SPDX-License-Identifier: PostgreSQL
"""test_no_relay: auth_relay = off: from outside nobody can tell who is in pool_passwd."""
import base64
import hashlib
import hmac

import auth_house as house
import pytest

from pgt.scram import Conversation
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
    pg = house.start_server()
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
    pool = house.start_auth_pool([server.address], hba=f"host all all all {method}\n", passwd=f"ann:{secret}\n", auth_relay=False,
                                 num_init_children=1)
    try:
        came = house.try_login(pool.address, "ann", "postgres", "ann_pw")
        assert came[0] == "in", came
        heard = {user: talk(pool, user) for user in ("ann", "bob", "nobody")}
        assert heard["bob"] == heard["ann"] and heard["nobody"] == heard["ann"], heard
        assert heard["ann"][-1][0] == "28P01"
        assert house.try_login(pool.address, "bob", "postgres", "bob_pw")[0] == "28P01"
    finally:
        pool.stop()
