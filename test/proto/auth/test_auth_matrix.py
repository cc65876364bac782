# SPDX-License-Identifier: PostgreSQL
"""test_auth_matrix: {where the secret is known} x {rule for clients} x {what the server asks} x {state of the
user} x {password} x {no link, idle link of that user, opened before the user was locked, expired or dropped}. What must hold is said here once more in words of
its own, not taken from the program's table: a wrong password passes only where an administrator wrote
"trust"; a right one passes wherever somebody can check it and something opens the server. Then the same, smaller, where a directory
or a certificate judges."""
import itertools

import pytest

import auth_house as house
import ldap_house
from pgt import certs
from pgt.tls import TlsWire, client_context
from pgt.wire import Wire, WireClosed

SOURCES = ("none", "plain", "md5", "verifier", "query", "both")  # "both": auth_query, and a file with other passwords
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
        self.direct = Wire(self.pg.socket)
        assert self.direct.login()[-1].type == "Z"
        self.pools = {}
        self.ca = certs.Authority()
        self.made: list[certs.Pair] = []

    def pairs(self) -> list[certs.Pair]:
        """Of pgpool, of the client who may come, and of another one."""
        if not self.made:
            self.made = [self.ca.issue(name) for name in ("localhost", "holder", "somebody")]
        return self.made

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
            conf = {"auth_user": "looker", "auth_query_expire": 0} if source in ("query", "both") else {"auth_relay": "on" if source == "none" else "auto"}
            self.pools[source, rule] = house.start_auth_pool(
                [self.pg.address], hba=None if rule == "mirror" else house.hba_by_database(),
                passwd=self.passwd(source), num_init_children=1, role_check_delay="1ms", **conf)
        return self.pools[source, rule]

    def stop(self):
        for pool in self.pools.values():
            pool.stop()
        self.direct.bye()
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
    if state == "locked" or (state == "expired" and method != "trust"):
        return False  # an idle link was opened before that, and is asked about its role
    if is_pooled:
        return True
    return server_is_opened(source, rule, method)


def set_state(lab, user: str, state: str) -> None:
    lab.direct.rows("select pg_sleep(0.01)")  # role_check_delay is over behind it
    if state == "locked":
        lab.direct.rows(f"alter role {user} nologin")
    elif state == "expired":
        lab.direct.rows(f"alter role {user} valid until '2001-01-01'")
    elif state == "unknown":
        lab.direct.rows(f"drop role if exists {user}")


def unset_state(lab, user: str, method: str) -> None:
    """The role is there again, with the very verifier that is written in pool_passwd."""
    lab.direct.rows(f"do $$ begin if not exists (select from pg_roles where rolname = '{user}') then "
                    f"create role {user} in role srv_{method}; end if; end $$; "
                    f"alter role {user} login password '{lab.stored[user]}' valid until 'infinity'")


def drop_links(lab, user: str) -> None:
    if lab.direct.rows(f"select from pg_stat_activity where usename = '{user}'"):
        lab.pg.end_sessions(f"usename = '{user}'")


def fill_pool(lab, pool, source, rule, method, user, database) -> bool:
    """Leaves an idle link of the user behind; False when no client can come in that way."""
    if not expect_in(source, rule, method, "ok", "right", False):
        return False
    got = house.try_login(pool.address, user, database, f"{user}_pw")
    if rule == "mirror" and got[0] != "in":  # as the role was asked while it was not there
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
        if is_pooled:
            unset_state(lab, user, method)
        drop_links(lab, user)
        if is_pooled and not fill_pool(lab, pool, source, rule, method, user, database):
            continue
        set_state(lab, user, state)
        # A pool mode that relays opens a link for each client: the idle one is not used then.
        uses_idle = is_pooled and not (source == "none" and rule != "trust" and
                                       not (rule == "mirror" and method == "trust"))
        for password in ("stale" if source == "both" else "wrong", "right", "empty", "other"):
            want = expect_in(source, rule, method, state, password, uses_idle)
            got = house.try_login(pool.address, user, database, words[password])
            if uses_idle and not want and got[0] == "in":  # a connection whose login was under way in front of the change speaks for the role once
                got = house.try_login(pool.address, user, database, words[password])
            if (got[0] == "in") != want or (want and got[1] != user):
                wrong.append((password, "idle link" if is_pooled else "no link", "expected in" if want else
                              "expected out", got))
    unset_state(lab, user, method)
    assert not wrong, wrong


# ---- judges that are neither pgpool nor the server

class Others:
    """A pgpool with one rule by which a directory, or the TLS library, judges."""

    def __init__(self, lab, rule: str, source: str):
        self.rule = rule
        self.directory = ldap_house.Directory({f"uid={user},dc=x": f"{user}_pw" for user in lab.stored})
        pair, holder, somebody = lab.pairs()
        self.right, self.wrong = (client_context(pair=pair) for pair in (holder, somebody))
        ldap = f'ldap ldapserver=127.0.0.1 ldapport={self.directory.port} ldapprefix="uid=" ldapsuffix=",dc=x"'
        line = {"ldap": f"host all all all {ldap}", "both": f"host all all all {ldap} backend_use_passwd=1",
                "cert": "hostssl all all all cert map=m"}[rule]
        conf = {"auth_user": "looker", "auth_dbname": "postgres"} if source == "query" else {}
        self.pool = house.start_auth_pool(
            [lab.pg.address], hba=line + "\n", ident="m holder all\n", passwd="looker:looker_pw\n", num_init_children=1, role_check_delay="1ms", default_pool_size=1, ssl=True,
            ssl_cert=pair.cert, ssl_key=pair.key, ssl_ca_cert=lab.ca.cert, backend_ssl_mode0="disable", **conf)

    def come(self, user: str, is_right: bool) -> bool:
        ctx = self.right if is_right else self.wrong
        w = TlsWire(self.pool.address, ctx=ctx) if self.rule == "cert" else Wire(self.pool.address)
        try:
            if w.login(user, "d_trust", f"{user}_pw" if is_right else "nope")[-1].type != "Z":
                return False
            return w.value("select session_user") == user
        except WireClosed:
            return False
        finally:
            w.bye()

    def stop(self) -> None:
        self.directory.close()
        self.pool.stop()


def expect_other(rule: str, source: str, method: str, state: str, is_pooled: bool) -> bool:
    """Of one who showed the right thing."""
    if state == "unknown":
        return False
    if state == "locked" or (state == "expired" and method != "trust"):
        return False
    # A password of the directory's opens whatever asks for one; an md5 that was looked up opens md5.
    return is_pooled or method == "trust" or rule == "both" or (method == "md5" and source == "query")


def all_users(lab, *statements: str) -> None:
    """Once more the same for every user, on one connection: {user} and {method}, {secret}."""
    sql = [text.format(user=user_of(method, state), method=method, secret=lab.stored[user_of(method, state)])
           for method, state in itertools.product(house.METHODS, STATES) for text in statements]
    lab.pg.rows("; ".join(sql))


@pytest.mark.parametrize("source", ["none", "query"])
@pytest.mark.parametrize("rule", ["ldap", "both", "cert"])
def test_other_judges(lab, rule, source):
    wrong = []
    others = Others(lab, rule, source)
    try:
        for is_pooled in (False, True):
            all_users(lab, "do $$ begin if to_regrole('{user}') is null then create role {user} in role srv_{method}; end if; end $$",
                      "alter role {user} login password '{secret}' valid until 'infinity'")
            lab.pg.end_sessions("usename like 'u@_%' escape '@'")
            cells = [(method, state) for method, state in itertools.product(house.METHODS, STATES)
                     if not is_pooled or expect_other(rule, source, method, "ok", False)]
            if is_pooled:
                assert all(others.come(user_of(*cell), True) for cell in cells), "could not fill the pool"
            lab.pg.rows("; ".join(f"alter role {user_of(m, 'locked')} nologin; drop role {user_of(m, 'unknown')}; "
                                  f"alter role {user_of(m, 'expired')} valid until '2001-01-01'" for m in house.METHODS))
            for (method, state), is_right in itertools.product(cells, (False, True)):
                want = is_right and expect_other(rule, source, method, state, is_pooled)
                if others.come(user_of(method, state), is_right) != want:
                    wrong.append((method, state, "idle link" if is_pooled else "no link", is_right, f"expected {want}"))
    finally:
        others.stop()
    assert not wrong, wrong
