# SPDX-License-Identifier: PostgreSQL
"""test_balance_log: sessions that set something for each request go on reading from standbys."""
import random

import pytest

from test_balance_tx import away, cluster, code, login, make, ok  # noqa: F401

FORMS = ["set app.tenant = '{}'", "SET App.Tenant TO '{}'", "select set_config('app.tenant', '{}', false)"]


@pytest.mark.parametrize("form", FORMS)
def test_a_setting_per_request(cluster, make, form):
    """More text than the log may have, of which the last entry counts."""
    w = login(make())
    ok(w, "set work_mem = '5MB'")
    for i in range(300):
        ok(w, form.format(f"customer {i:04}"))
        if i % 60 == 0:
            assert away(cluster, w)
            assert w.value("select current_setting('app.tenant') from t") == f"customer {i:04}"
    assert away(cluster, w)
    assert w.value("select current_setting('app.tenant') from t") == "customer 0299"
    assert w.value("select current_setting('work_mem') from t") == "5MB"
    w.bye()


def test_what_others_need_stays(cluster, make):
    """Entries whose order matters are repeated in order, whatever was taken out between them."""
    w = login(make())
    for i in range(20):
        ok(w, f"set app.a = '{i}'")
        ok(w, "set search_path = public, pg_catalog")
        ok(w, f"set \"app\".a = '{i + 1}'")
        ok(w, f"set app.b to '{i}'; set app.a = '{i + 2}'")
        ok(w, "reset app.b")
        ok(w, f"set statement_timeout = {10000 + i}")
        ok(w, f"set app.c = 'x; set app.a = 0 {i}'")
    assert away(cluster, w)
    assert code(w.simple("select current_setting('app.b') from t")) == "42704", "known-gaps.md: of a link that never had it"
    for name in ("app.a", "app.c", "search_path", "statement_timeout"):
        assert w.value(f"select current_setting('{name}') from t") == w.value(f"show {name}")
    w.bye()


@pytest.mark.parametrize("seed", range(6))
def test_each_reader_sees_the_last(cluster, make, seed):
    """At any moment, in transactions that end either way, on either standby and with links that are given back."""
    rnd = random.Random(seed)
    w = login(make(statement_level_load_balance=True))
    want = {"app.a": "", "app.b": "", "lock_timeout": "0"}
    for name in ("app.a", "app.b"):
        ok(w, f"set {name} = ''")
    for i in range(150):
        name = rnd.choice(sorted(want))
        value = f"{i + 1}s" if name == "lock_timeout" else f"{name} {i} " + "x" * rnd.randrange(200)
        form = rnd.choice(["set {} = '{}'", "set {} to '{}'", "select set_config('{}', '{}', false)"])
        if rnd.random() < 0.3:
            ends = rnd.choice(["commit", "rollback"])
            for text in ("begin", form.format(name, value), ends):
                ok(w, text)
            want[name] = want[name] if ends == "rollback" else value
        else:
            ok(w, form.format(name, value))
            want[name] = value
        if rnd.random() < 0.05:
            ok(w, "discard all")
            want = {"app.a": "", "app.b": "", "lock_timeout": "0"}
        for look in rnd.sample(sorted(want), rnd.randrange(3)):
            found = w.value(f"select current_setting('{look}', true) from t")
            assert (found or "") in (want[look], {"60s": "1min", "120s": "2min"}.get(want[look], want[look])), (i, look)
    assert away(cluster, w)
    w.bye()
