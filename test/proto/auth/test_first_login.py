# SPDX-License-Identifier: PostgreSQL
"""test_first_login: the time of a login, the first of a name in a worker or a later one, does not tell who has an entry in pool_passwd.
Iterations are made so many that what costs them cannot be overlooked on any machine."""
import base64
import hashlib
import hmac
import re
import time
from pathlib import Path

import auth_house as house
from pgt import postgres, procs, proxy
from pgt.scram import Conversation
from pgt.waits import wait_for
from pgt.wire import Wire, message

ITERATIONS = 150_000
A_LOT = 0.012  # so many take more on any machine; nothing else here does, if it is tried often enough


def verifier(password: str) -> str:
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt" * 4, ITERATIONS)
    keys = [hmac.new(salted, what, "sha256").digest() for what in (b"Client Key", b"Server Key")]
    stored, served, salt = (base64.b64encode(raw).decode() for raw in (hashlib.sha256(keys[0]).digest(), keys[1], b"salt" * 4))
    return f"SCRAM-SHA-256${ITERATIONS}:{salt}${stored}:{served}"


def seconds_until_salt(pool, user: str) -> float:
    """From the first SCRAM message to the server's. Nobody answers that."""
    with Wire(pool.address, seconds=20) as w:
        w.send_startup(user, "postgres")
        asked = w.read()
        assert asked.type == "R"
        first = Conversation(user, "x").answer(asked.body)
        assert first is not None
        began = time.perf_counter()
        w.send(message("p", first))
        found = w.read()
        assert (found.type, found.body[:4]) == ("R", (11).to_bytes(4, "big")), found
        return time.perf_counter() - began


def is_quick(pool, user: str) -> bool:
    """Once in many tries: on a busy machine anything may take long."""
    return any(seconds_until_salt(pool, user) < A_LOT for _ in range(60))


def test_first_login_of_all_names_takes_the_same():
    server = postgres.start_postgres(hba="local all all trust\nhost all postgres all trust\nhost all all all scram-sha-256\n", roles=False)
    server.rows("create role looker superuser login password 'looker_pw'")
    server.rows(f"create role strong login password '{verifier('strong_pw')}'")
    server.rows(f"create role strange login password '{verifier('strange_pw')}'")
    pool = house.start_auth_pool([server.address], hba="host all all all scram-sha-256\n", num_init_children=1, auth_user="looker",
                                 auth_dbname="postgres", passwd="looker:TEXTlooker_pw\nann:TEXTann_pw\nbob:TEXTbob_pw\n")
    try:
        assert house.try_login(pool.address, "strong", "postgres", "strong_pw")[0] == "in"  # so many iterations are usual
        names = {"ann": "in pool_passwd", "strange": "in the servers", "nobody": "nowhere", "bob": "in pool_passwd", "noone": "nowhere"}
        first = {name: seconds_until_salt(pool, name) for name in names}
        assert {name: where for name, where in names.items() if first[name] < A_LOT} == {}, first
        assert {name: where for name, where in names.items() if not is_quick(pool, name)} == {}
    finally:
        pool.stop()
        server.stop()


OPENING = 0.025  # 200,000 rounds take more on any machine


def encrypted(password: str, folder) -> str:
    """What pg_enc makes of it, the key being \"the key\"."""
    program = proxy.pgpool_bin()
    assert program is not None
    (folder / "key").write_text("the key\n", encoding="ascii")
    (folder / "key").chmod(0o600)
    found = procs.run([str(Path(program).parent / "pg_enc"), "--format=gcm", "-k", str(folder / "key"), password])
    return re.findall(r"GCM\S+", found)[0]


def seconds_to_salt(pool, user: str) -> float:
    """From the connection on."""
    began = time.perf_counter()
    seconds_until_salt(pool, user)
    return time.perf_counter() - began


def test_encrypted_entries_are_opened_behind_the_reading():
    """Meanwhile the first login of any name costs what opening an entry does; later nobody's does."""
    server = postgres.start_postgres(hba="local all all trust\nhost all postgres all trust\nhost all all all scram-sha-256\n", roles=False)
    pool = house.start_auth_pool([server.address], hba="host all all all scram-sha-256\n", num_init_children=1, key="the key",
                                 passwd="left:secret\n")
    names = (f"early{i}" for i in range(5000))
    seen = []
    try:
        for turn in range(5):  # all are open soon: who is held up meanwhile sees nothing
            entry = encrypted("secret", procs.folder("gcm"))
            house.put(pool.home / "pool_passwd", f"left{turn}:secret\n" + "".join(f"user{turn}_{i}:{entry}\n" for i in range(20)))
            wait_for("the file is read", lambda: seconds_to_salt(pool, next(names)) > 0 and pool.log().count("21 users") > turn)
            seen.append({name: seconds_to_salt(pool, name) for name in (f"user{turn}_19", f"nobody{turn}", f"user{turn}_18", f"left{turn}")})
            if min(seen[-1].values()) > OPENING:
                break
        assert min(seen[-1].values()) > OPENING, seen
        for name in seen[-1]:
            wait_for(f"{name} is answered at once", lambda name=name: seconds_to_salt(pool, name) < OPENING, 60)
    finally:
        pool.stop()
        server.stop()
