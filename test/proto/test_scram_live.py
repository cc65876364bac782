# SPDX-License-Identifier: PostgreSQL
"""SCRAM with real peers: psql proves itself to our server role with nothing but the verifier out of
pg_authid, and our client role logs in to PostgreSQL with the keys that psql's proof gave away. No
password is anywhere between the two. The program is scram_gate (test/unit/auth)."""
import os
import shutil
import subprocess

import pytest

from pgt import postgres

GATE = os.path.join(os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd(), "scram_gate")

pytestmark = [
    pytest.mark.skipif(not os.access(GATE, os.X_OK), reason="scram_gate is not built"),
    pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed"),
]
PASSWORDS = ["geheim", "with 'quotes' and , = commas", "p\u00e4ssw\u00f6rd", "a\u0308 decomposed",
             "\u2168\ufb01 \u00ad\u3000", "\u0627\u0031 raw", "\U0001f600", "x" * 900]


@pytest.fixture(scope="module")
def server():
    if not postgres.is_installed():
        pytest.skip("no PostgreSQL server is installed")
    made = postgres.start_postgres(hba="local all all trust\nhost all postgres all trust\n"
                                       "host all all all scram-sha-256\n", roles=False)
    yield made
    made.stop()


def set_password(server, user, password):
    quoted = password.replace("'", "''")
    server.rows(f"drop role if exists {user}")
    server.rows(f"create role {user} login password '{quoted}'")
    return server.value(f"select rolpassword from pg_authid where rolname = '{user}'")


def through_gate(server, verifier, user, password):
    """Runs psql through the gate; returns (exit code of psql, its output, exit code of the gate)."""
    gate = subprocess.Popen([GATE, str(server.port), verifier], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    try:
        port = gate.stdout.readline().strip()
        env = {**os.environ, "PGPASSWORD": password, "PGSSLMODE": "disable",
               "PGGSSENCMODE": "disable", "PGCONNECT_TIMEOUT": "20"}
        psql = subprocess.run(["psql", "-h", "127.0.0.1", "-p", port, "-U", user, "-d", "postgres",
                               "-XqAtc", "select current_user"], env=env, capture_output=True,
                              text=True, timeout=60, check=False)
        return psql.returncode, psql.stdout.strip() + psql.stderr, gate.wait(30)
    finally:
        gate.kill()
        gate.communicate()


@pytest.mark.parametrize("password", PASSWORDS, ids=ascii)
def test_pass_through(server, password):
    verifier = set_password(server, "walker", password)
    code, text, gate = through_gate(server, verifier, "walker", password)
    assert (code, text, gate) == (0, "walker", 0)


@pytest.mark.parametrize("password", ["geheiM", "geheim ", "x"])
def test_wrong_password_is_denied(server, password):
    verifier = set_password(server, "walker", "geheim")
    code, text, gate = through_gate(server, verifier, "walker", password)
    assert code == 2 and "password authentication failed" in text
    assert gate == 1


def test_keys_are_stale_after_a_change(server):
    """A password that is set again has another salt: the keys open nothing, and that is noticed."""
    verifier = set_password(server, "walker", "geheim")
    assert set_password(server, "walker", "geheim") != verifier
    code, _, gate = through_gate(server, verifier, "walker", "geheim")
    assert code == 2 and gate == 2
