# SPDX-License-Identifier: PostgreSQL
"""test_auth: logins that the server decides, seen through the proxy; a pooled link changes nothing."""
import pytest

from pgt.diff import differential
from pgt.wire import Wire, query

USERS = ["trust_user", "plain_user", "md5_user", "scram_user"]
PASSWORDS = {"right": None, "wrong": "nope", "empty": "", "other_user": "plain_user_pw "}


def password_of(user: str, which: str) -> str:
    return f"{user}_pw" if PASSWORDS[which] is None else PASSWORDS[which]


@pytest.mark.session_mode  # elsewhere the password has to be known to pgpool: pool_passwd
@differential()
@pytest.mark.parametrize("which", PASSWORDS)
@pytest.mark.parametrize("user", [*USERS, "no_such_user", "nologin_user", "nohba_user"])
def test_login(t, user, which):
    """Challenge, verdict, text and SQLSTATE are PostgreSQL's."""
    c = t.open()
    found = c.login(user=user, database="postgres", password=password_of(user, which))
    if found[-1].type == "Z":
        c.simple("select current_user, session_user")
    else:
        c.eof()


@pytest.mark.session_mode
@differential(chunks=(0,))
@pytest.mark.parametrize("database", ["no_such_db", "nohba_db", "other_db", "template0"])
@pytest.mark.parametrize("user", ["trust_user", "scram_user"])
def test_login_to_database(t, user, database):
    c = t.open()
    found = c.login(user=user, database=database, password=f"{user}_pw")
    if found[-1].type == "Z":
        c.simple("select current_database()")
    else:
        c.eof()


@differential(chunks=(0,))
@pytest.mark.parametrize("user", ["plain_user", "md5_user", "scram_user"])
def test_pooled_link_asks_again(t, user):
    """Right, wrong, right, empty, right: each login is judged by itself."""
    for i, which in enumerate(("right", "wrong", "right", "empty", "right", "wrong")):
        c = t.open(f"c{i}")
        found = c.login(user=user, database="postgres", password=password_of(user, which))
        if found[-1].type == "Z":
            c.simple("select current_user")
            c.end()
        else:
            c.eof()


@pytest.mark.parametrize("user", ["plain_user", "md5_user", "scram_user"])
def test_wrong_password_never_gets_a_pooled_link(pg, pgpool, user):
    """With idle links of that user in the pool, 30 wrong logins get nothing, and a right one works."""
    held = []
    for _ in range(4):
        w = Wire(pgpool.address)
        assert w.login(user, "postgres", f"{user}_pw")[-1].type == "Z"
        held.append(w)
    for w in held:
        w.bye()
    for i in range(30):
        with Wire(pgpool.address) as w:
            last = w.login(user, "postgres", ["", "x", f"{user}_p", f"{user}_pww"][i % 4])[-1]
            assert (last.type, last.sqlstate) == ("E", "28P01")
    with Wire(pgpool.address) as w:
        assert w.login(user, "postgres", f"{user}_pw")[-1].type == "Z"
        assert w.value("select current_user") == user


def test_nothing_is_kept_that_nobody_may_have(pg, pgpool, wait_for):
    """A server connection whose login was relayed goes with its client: the next one needs one of its own making."""
    for user in ("md5_user", "scram_user", "trust_user"):
        with Wire(pgpool.address) as w:
            assert w.login(user, "postgres", f"{user}_pw")[-1].type == "Z"
            w.send(query("begin"))
            w.ready()
    wait_for("only what can be used is kept", lambda: not pg.sessions("usename in ('md5_user', 'scram_user')"))
    assert pg.sessions("usename = 'trust_user'")


def test_password_changed_while_links_are_pooled(pg, pgpool):
    """The old password is dead at once, also when pooled links of it exist."""
    pg.rows("set password_encryption='scram-sha-256'; drop role if exists rotated; "
            "create role rotated login password 'one'")
    hba = (pg.data / "pg_hba.conf")
    text = hba.read_text(encoding="utf-8")
    if "rotated" not in text:
        hba.write_text("host all rotated all scram-sha-256\n" + text, encoding="utf-8")
        pg.reload()
    for _ in range(3):
        with Wire(pgpool.address) as w:
            assert w.login("rotated", "postgres", "one")[-1].type == "Z"
    pg.rows("set password_encryption='scram-sha-256'; alter role rotated password 'two'")
    for _ in range(6):
        with Wire(pgpool.address) as w:
            assert w.login("rotated", "postgres", "one")[-1].sqlstate == "28P01"
    with Wire(pgpool.address) as w:
        assert w.login("rotated", "postgres", "two")[-1].type == "Z"


@pytest.mark.parametrize("when", ["startup", "challenge", "half"])
def test_client_leaves_during_login(pg, pgpool, wait_for, when):
    """No server connection stays behind in the login."""
    before = len(pg.sessions())
    for _ in range(10):
        w = Wire(pgpool.address)
        if when == "half":
            w.send(b"\0\0\0\x40\0\3\0\0user")
        else:
            w.send_startup("scram_user", "postgres")
        if when == "challenge":
            w.read_until("R")
        w.reset()
    wait_for("the logins are gone", lambda: not pg.logins())
    wait_for("no pile of links", lambda: len(pg.sessions()) <= before + 3)


def test_users_do_not_share_links(pg, pgpool):
    """After one user's session, another's runs under its own name with its own rights."""
    for user in ("trust_user", "other_user", "trust_user", "other_user"):
        with Wire(pgpool.address) as w:
            w.login(user, "postgres")
            assert w.rows("select current_user, session_user, current_setting('is_superuser')") == [
                [user.encode(), user.encode(), b"off"]]


def test_no_password_in_the_log(pgpool):
    for user in ("plain_user", "md5_user", "scram_user"):
        for password in (f"{user}_pw", "S3cret-and-wrong"):
            with Wire(pgpool.address) as w:
                w.login(user, "postgres", password)
    assert "S3cret" not in pgpool.log() and "user_pw" not in pgpool.log()
