# SPDX-License-Identifier: PostgreSQL
"""test_hba_grammar: which lines of pg_hba.conf are right, by PostgreSQL's own word (pg_hba_file_rules), and by ours. The lines are made
by chance of parts that are right and parts that are not."""
import random
import re
import subprocess

import auth_house as house
from pgt import certs, postgres, procs, proxy

KINDS = ["local", "host", "hostssl", "hostnossl", "hostgssenc", "hostnogssenc"]
ODD_KINDS = ["Host", "hosts", '"host"', 'h"os"t', "local,host"]
NAMES = ["all", "sameuser", "samerole", "samegroup", "replication", "db1", "+grp", "a,b"]
ODD_NAMES = ['"all"', '"+grp"', 'a"b c"d', '"a""b"', '""', "a, b", "a ,b", '"a,b",c', "ALL", "x#y", '"x#y"', "a,,b", '"open', "a'b", "+", "-",
             "a=b", '"a"b', '""""', "a\vb", "a\fb", "a\\b", '"@f"', "@", "a,"]
ADDRESSES = ["all", "samehost", "samenet", "127.0.0.1/32", "10.1.2.3/8", "::1/128", "fe80::/10", "10.0.0.0 255.0.255.0", "host.example.com",
             ".example.com"]
ODD_ADDRESSES = ['"all"', "::1 ffff:ffff::", "::1 255.0.0.0", "127.0.0.1", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/", "127.0.0.1/8x", "::1/129",
                 "host.example.com/8", "*", "1.2.3", "1.2.3/8", "0x7f.1/8", "256.1.1.1/8", "::ffff:1.2.3.4/96", "fe80::1%lo/64", "[::1]/128",
                 '"samehost"', '"127.0.0.1/32"', "all,samenet", '127.0.0.1 "255.255.255.255"', "127.0.0.1 all", "1/8", "ALL", "127.0.0.1/0x10",
                 "10.0.0.0/8/8", "1.2.3.4 host", "01.02.03.04/8", "/8", "127.0.0.1/ 8"]
METHODS = {"trust": [], "reject": [], "md5": [], "password": ["clientcert=verify-ca", "clientname=DN"], "scram-sha-256": ["clientcert=verify-full"],
           "peer": ["map=m"], "cert": ["map=m", "clientname=CN", "clientcert=verify-full"], "pam": ["pamservice=s", "pam_use_hostname=1"],
           "ldap ldapserver=h": ["ldapprefix=cn=", 'ldapsuffix=", dc=x"', "ldapbasedn=dc=x", "ldapbinddn=b", "ldapsearchattribute=uid", "ldaptls=1",
                                 '"ldapsearchfilter=(|(a=b)(c=d))"', "ldapport=7", "ldapscheme=ldaps"],
           "ldap ldapurl=ldap://h/dc=x?uid?one?(a=b)": ["ldapbinddn=b", "ldapbindpasswd=p"], "ldap": ["ldapbasedn=dc=x"]}
ODD_METHODS = ["Trust", '"trust"', 'tr"us"t', "trust,md5", "crypt", "scram", "none", ""]
ODD_OPTIONS = ["map", "=x", "clientcert=maybe", "clientname=cn", "ldapport=0", "ldapport=x", "ldapurl=http://h/x", "ldapurl=ldap://h/x?uid?foo", "ldapurl=ldap://h/x?uid?SUBTREE", "ldapurl=URL:LDAP://h/x", "ldapurl=ldap://h:7x/y",
               '"ldapurl=ldap://h/x?uid,cn?sub?(a=b)"', '"ldapurl=<ldaps://[::1]:7/x>"', "ldapurl=ldapi://h/x", "ldapurl=ldap://h/x???(a=b)?x=y", "ldapurl=ldap:///x", "bogus=1",
               "Map=x", "hostssl", "pamservice=s", "map=m", "map=a,clientcert=verify-ca", "#x", "clientcert=verify-ca"]


def make_line(rng: random.Random) -> str:
    """One line, or several joined by backslashes; most have one thing wrong with them at most."""
    odd = rng.choice([None, None, "kind", "name", "name", "address", "address", "method", "option", "short"])

    def pick(what, good, bad):
        return rng.choice(bad if odd == what else good)

    kind = pick("kind", KINDS, ODD_KINDS)
    method = pick("method", [m for m in METHODS if m != "cert" or kind == "hostssl"], ODD_METHODS)
    if method == "peer" and kind != "local" and rng.random() < 0.8:
        kind = "local"
    words = [kind, rng.choice(NAMES), pick("name", NAMES, ODD_NAMES)]
    if kind != "local":
        words.append(pick("address", ADDRESSES, ODD_ADDRESSES))
    words.append(method)
    words += rng.sample(METHODS.get(method, []), min(len(METHODS.get(method, [])), rng.randrange(3)))
    if odd == "option":
        words.append(rng.choice(ODD_OPTIONS))
    if odd == "short":
        del words[rng.randrange(1, len(words)):]
    return "".join(word + rng.choice([" "] * 5 + ["\t", " \\\n "]) for word in words)


def test_same_lines_are_right(tmp_path):
    """What differs by intention is not among the parts: methods that we have not, values that PostgreSQL takes for another one in
    silence (ldaptls=2), host names that are none (a:b)."""
    rng = random.Random(2503)
    folder = procs.folder("grammar", postgres.OS_USER)
    pair = certs.Authority().issue()
    certs.give(pair.cert, folder / "server.crt", 0o644, folder.stat().st_uid)
    certs.give(pair.key, folder / "server.key", 0o600, folder.stat().st_uid)
    lines = [make_line(rng) for _ in range(1500)]
    text = "\n".join(lines) + "\n"
    starts = {sum(line.count("\n") + 1 for line in lines[:i]) + 1: line for i, line in enumerate(lines)}
    pg = postgres.start_postgres({"ssl": "on", "ssl_cert_file": str(folder / "server.crt"), "ssl_key_file": str(folder / "server.key")}, roles=False)
    try:
        (pg.data / "pg_hba.conf").write_text(text, encoding="utf-8")
        rows = pg.rows("select line_number from pg_hba_file_rules where error is null and type is not null")
    finally:
        pg.stop()
    theirs = {int(row[0]) for row in rows}
    house.put(tmp_path / "pool_hba.conf", text)
    (tmp_path / "pgpool.conf").write_text("enable_pool_hba = on\nbackend_hostname0 = 'localhost'\nbackend_port0 = 5432\n", encoding="ascii")
    done = subprocess.run([proxy.pgpool_bin(), "--check-config", "-f", str(tmp_path / "pgpool.conf")], capture_output=True, text=True, check=False)
    ours = set(starts) - {int(n) for n in re.findall(r"pool_hba\.conf:(\d+):", done.stderr)}
    assert 300 < len(theirs) < 1300, "the lines are too good, or too bad"
    assert [starts[n] for n in sorted(theirs - ours)] == [], "PostgreSQL takes them, we do not"
    assert [starts[n] for n in sorted(ours - theirs)] == [], "we take them, PostgreSQL does not"
