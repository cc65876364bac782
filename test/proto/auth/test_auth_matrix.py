# SPDX-License-Identifier: PostgreSQL
"""test_auth_matrix: {where the secret is known} x {rule for clients} x {what the server asks} x {state of the
user} x {password} x {no link, idle link of that user}. What must hold is said here once more in words of
its own, not taken from the program's table: a wrong password passes only where an administrator wrote
"trust"; a right one passes wherever somebody can check it and something opens the server."""
import itertools

import pytest

import auth_house as house

SOURCES = ("none", "plain", "md5", "verifier", "query", "both")  # both: auth_query, and a file with other passwords
RULES = ("trust", "reject", "password", "md5", "scram", "mirror")
STATES = ("ok", "locked", "expired", "unknown")


def user_of(method: str, state: str) -> str:
    return f"u_{method}_{state}"


class Lab:
    """One server; pgpools that are started when first asked for."""

    def __init__(self):
        self.pg = house.start_server()
        self.stored = {}
        for method, state in itertools.product(house.METHODS, STATES):
            self.stored[user_of(method, state)] = house.make_user(self.pg, user_of(method, state), method)
        self.pools = {}

    def passwd(self, source: str) -> str:
        lines = ["looker:looker_pw"]
        for user, secret in self.stored.items():
            if source == "plain":
                lines.append(f"{user}:{user}_pw")
            elif source == "both":
                lines.append(f"{user}:{user}_stale")
            elif source == "md5":
                digest = self.pg.value(f"select 'md5' || md5('{user}_pw' || '{user}')")
                lines.append(f"{user}:{digest}")
            elif source == "verifier" and secret.startswith("SCRAM"):
                lines.append(f"{user}:{secret}")
            elif source == "verifier":  # the server has an md5: another verifier of the same password
                self.pg.rows("drop role if exists twin")
                twin = house.make_user(self.pg, "twin", "scram", f"{user}_pw")
                lines.append(f"{user}:{twin}")
        return "\n".join(lines) + "\n"

    def pool(self, source: str, rule: str):
        """A pgpool of its own for each rule: what one client showed is remembered for the next."""
        if (source, rule) not in self.pools:
            conf = {"auth_user": "looker", "auth_query_expire": 0} if source in ("query", "both") else {}
            self.pools[source, rule] = house.start_auth_pool(
                [self.pg.address], hba=None if rule == "mirror" else house.hba_by_database(),
                passwd=self.passwd(source), num_init_children=1, **conf)
        return self.pools[source, rule]

    def stop(self):
        for pool in self.pools.values():
            pool.stop()
        self.pg.stop()


@pytest.fixture(scope="module")
def lab():
    made = Lab()
    yield made
    made.stop()


def kind_stored(source: str, method: str) -> str:
    if source in ("query", "both"):
        return "md5" if method == "md5" else "verifier"
    return source


def client_is_checked(source: str, rule: str, method: str) -> bool:
    """Can anybody tell a right password from a wrong one?"""
    kind = kind_stored(source, method)
    if rule == "mirror":
        rule = {"scram": "scram", "md5": "only md5", "password": "password"}[method]
        if kind == "none":
            return True  # the server itself
    if rule == "password":
        return kind != "none" or method != "trust"
    if rule == "md5":
        return kind != "none" or method in ("md5", "scram")
    if rule == "only md5":
        return kind in ("plain", "md5")
    return kind in ("plain", "verifier") or (kind == "none" and method == "scram")


def server_is_opened(source: str, rule: str, method: str) -> bool:
    """After the client passed: does what we hold open the server?"""
    kind = kind_stored(source, method)
    if method == "trust" or kind == "plain":
        return True
    if source == "both" and rule == "trust":
        return False  # nobody was looked up, and what the file says is out of date
    if kind == "none":
        return rule != "trust"  # the client's own answer went there
    if rule == "password" or (rule == "mirror" and method == "password"):
        return True  # the client said the password itself
    if method == "password":
        return False
    if method == "md5":
        return kind == "md5"
    return kind == "verifier" and rule != "trust"  # the keys come with the client's proof


def expect_in(source: str, rule: str, method: str, state: str, password: str, is_pooled: bool) -> bool:
    is_asked = source in ("query", "both")
    checked_by_query = is_asked and rule not in ("trust", "reject") and \
        not (rule == "mirror" and method == "trust")
    if rule == "reject" or state == "unknown":
        return False
    trusts = rule == "trust" or (rule == "mirror" and method == "trust")
    if not trusts and (password != "right" or not client_is_checked(source, rule, method)):
        return False
    if state != "ok" and checked_by_query:
        return False
    # What the server does not see it cannot refuse: an idle link was opened before the user was locked. With auth_user
    # there is somebody to ask.
    is_seen = not is_pooled or is_asked
    if state == "locked" and is_seen:
        return False
    if state == "expired" and method != "trust" and is_seen:
        return False
    if is_pooled:
        return True
    return server_is_opened(source, rule, method)


def set_state(pg, user: str, state: str) -> None:
    if state == "locked":
        pg.rows(f"alter role {user} nologin")
    elif state == "expired":
        pg.rows(f"alter role {user} valid until '2001-01-01'")
    elif state == "unknown":
        pg.rows(f"drop role if exists {user}")


def unset_state(lab, user: str, method: str) -> None:
    """The role is there again, with the very verifier that is written in pool_passwd."""
    pg = lab.pg
    pg.rows(f"do $$ begin if not exists (select from pg_roles where rolname = '{user}') then "
            f"create role {user} in role srv_{method}; end if; end $$")
    pg.rows(f"alter role {user} login password '{lab.stored[user]}' valid until 'infinity'")


def drop_links(pg, user: str) -> None:
    pg.rows(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = '{user}'")


def fill_pool(lab, pool, source, rule, method, user, database) -> bool:
    """Leaves an idle link of the user behind; False when no client can come in that way."""
    if not expect_in(source, rule, method, "ok", "right", False):
        return False
    got = house.try_login(pool.address, user, database, f"{user}_pw")
    assert got[:2] == ("in", user), f"could not fill the pool: {got}"
    return True


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("method", house.METHODS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("source", SOURCES)
def test_cell(lab, source, rule, method, state):
    """Four passwords without a link, then four with an idle one."""
    user, database = user_of(method, state), f"d_{rule}"
    pool = lab.pool(source, rule)
    words = {"right": f"{user}_pw", "wrong": "nope", "empty": "", "other": "looker_pw", "stale": f"{user}_stale"}
    unset_state(lab, user, method)
    wrong = []
    for is_pooled in (False, True):
        unset_state(lab, user, method)
        drop_links(lab.pg, user)
        if is_pooled and (state == "unknown" or not fill_pool(lab, pool, source, rule, method, user, database)):
            continue
        set_state(lab.pg, user, state)
        # A pool mode that relays opens a link for each client: the idle one is not used then.
        uses_idle = is_pooled and not (source == "none" and rule != "trust" and
                                       not (rule == "mirror" and method == "trust"))
        for password in ("stale" if source == "both" else "wrong", "right", "empty", "other"):
            want = expect_in(source, rule, method, state, password, uses_idle)
            got = house.try_login(pool.address, user, database, words[password])
            if (got[0] == "in") != want or (want and got[1] != user):
                wrong.append((password, "idle link" if is_pooled else "no link", "expected in" if want else
                              "expected out", got))
    unset_state(lab, user, method)
    assert not wrong, wrong
