# SPDX-License-Identifier: PostgreSQL
"""test_balance_bound: set_config() with parameters in sessions whose reads leave the primary."""
import pytest

from pgt.wire import SYNC, bind, execute, parse
from test_balance_tx import away, cluster, code, login, make, ok  # noqa: F401


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_set_config_with_parameters(cluster, make, mode):
    """By the values of the Bind it is one with literals, once it is executed: repeated where the reads go."""
    w = login(make(pool_mode=mode))
    value = "select current_setting('work_mem') from t"

    def is_told(size: str) -> bool:
        return away(cluster, w) and w.value(value) == size and w.value("show work_mem") == size

    def send(*parts: bytes, state=None) -> None:
        w.send(*parts)
        assert code(w.ready()) == state

    send(parse("select set_config('work_mem', $1, false)"), bind(["5MB"]), execute(), SYNC)
    assert is_told("5MB")
    send(parse("select set_config($1, $2, $3)", "s"), bind([b"work_mem", b"6MB", b"\0"], "", "s", (1,)), execute(), SYNC)
    assert is_told("6MB")
    ok(w, "begin")
    send(bind(["work_mem", "7MB", "f"], "", "s"), execute(), SYNC)
    ok(w, "rollback")
    assert is_told("6MB")
    send(bind(["work_mem", "8MB", "f"], "", "s"), SYNC)
    assert is_told("6MB"), "bound, but not executed"
    send(bind(["work_mem", "8MB", "f"], "", "s"), execute(), bind((), "", "nobody"), SYNC, state="26000")
    assert is_told("6MB")
    send(*(bind(["work_mem", f"{n}MB", "f"], "", "s") + execute() for n in (9, 10, 11)), SYNC)
    assert is_told("11MB")
    send(bind(["work_mem", "12MB", "f"], "a", "s"), bind(["work_mem", "13MB", "f"], "b", "s"), execute("b"), execute("a"), SYNC)
    assert w.value(value) == w.value("show work_mem") == "12MB"
    ok(w, "discard all")
    send(parse("select set_config($1, $2, $3)", "s"), SYNC)
    ok(w, "begin")
    send(bind(["work_mem", "14MB", "f"], "a", "s"), SYNC)
    send(execute("a"), SYNC)
    ok(w, "commit")
    assert is_told("14MB")
    send(bind(["work_mem", None, None], "", "s"), execute(), SYNC)
    assert is_told("4MB")
    whole = bind(["work_mem", "15MB", "f"], "", "s") + execute() + SYNC
    for at in range(1, len(whole), 5):
        w.send(whole[:at])
        assert w.is_quiet(0.02)
        send(whole[at:])
    assert is_told("15MB")
    send(parse("select set_config('work_mem', $1 || 'MB', false)"), bind(["16"]), execute(), SYNC)
    assert not away(cluster, w) and w.value(value) == "16MB", "what cannot be repeated keeps the reads"
    w.bye()


def test_home_on_a_standby(cluster, make):
    """In a read-only transaction that lives on a standby the call is made where the session is; what reads it sees it."""
    w = login(make())
    for end, left in (("commit", "7MB"), ("rollback", "5MB")):
        ok(w, "discard all", "set work_mem to '5MB'", "begin read only", "set work_mem to '6MB'")
        assert away(cluster, w)
        w.send(parse("select set_config($1, $2, $3)"), bind(["work_mem", "7MB", "f"]), execute(), SYNC)
        assert code(w.ready()) is None
        assert w.value("select current_setting('work_mem') from t") == w.value("show work_mem") == "7MB"
        ok(w, end)
        assert w.value("select current_setting('work_mem') from t") == w.value("show work_mem") == left
    w.bye()


def test_without_a_name_and_behind_a_query(cluster, make):
    """A portal that is gone makes nothing."""
    w = login(make())
    call = parse("select set_config('work_mem', $1, false)") + bind(["6MB"])
    for gone in ("select 1", "begin; rollback"):
        w.send(call, SYNC)
        w.ready()
        ok(w, gone)
        w.send(execute(), SYNC)
        assert code(w.ready()) == "34000"
        assert away(cluster, w) and w.value("select current_setting('work_mem') from t") == "4MB"
    w.send(call, bind((), "", "nobody"), execute(), SYNC)
    assert code(w.ready()) == "26000"
    assert away(cluster, w) and w.value("select current_setting('work_mem') from t") == "4MB"
    w.bye()
