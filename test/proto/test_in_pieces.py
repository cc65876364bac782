# SPDX-License-Identifier: PostgreSQL
"""test_in_pieces: what servers say between exchanges arrives cut at any byte, and its rest when something else runs: nobody
gets half a message, and what is a client's own is not lost behind something of ours."""
from pgt import fake as fakes
from pgt.wire import Wire, query

# Cut in its text, where its rest looks like a ParameterStatus.
NOTICE = fakes.notice("of nobody: SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS")
CUT = NOTICE.index(b"SSSSSSSS")


def login(pool, **who) -> Wire:
    w = Wire(pool.address, seconds=10)
    assert w.login(**who)[-1].type == "Z"
    return w


def test_half_a_notice_between_two_loans(fake, start_pool):
    """The server of a link that nobody has begins a notice; its rest comes in front of the next client's answer."""
    answer = fakes.one_row("1", "v") + fakes.ready()

    def script(conn):
        conn.greet()
        rest = b""
        while True:
            kind, body = conn.read()
            if kind == "X":
                return
            if kind == "Q" and b"ours" in body:
                conn.send(rest + answer + NOTICE[:CUT])
                rest = NOTICE[CUT:]
            else:
                conn.send(conn.answer(kind, body))

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    a, b = login(pool, user="fake"), login(pool, user="fake")
    for turn in range(6):
        w = (a, b)[turn % 2]
        w.send(query("select 'ours'"))
        found = w.ready()
        assert "".join(m.type for m in found) == "TDCZ" and found[1].row() == [b"1"]
    for w in (a, b):
        w.bye()


def test_a_notification_behind_something_of_ours(fake, start_pool):
    """It comes in front of the answer to what pgpool asks the server (what ties this session), whole or in pieces."""
    asked = []

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            said = b""
            if b"pg_listening_channels" in body:
                asked.append(body)
                said = fakes.notification(7, "pieces", f"{len(asked)}" + "S" * 100)
            conn.send(said + conn.answer(kind, body), chunk=7 * (len(asked) % 2))

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction")
    w = login(pool, user="fake")
    w.rows("listen pieces")
    for turn in range(1, 5):
        w.send(query("unlisten others"), query("select 1"))
        found = w.ready(2)
        assert "".join(m.type for m in found if m.type != "A") == "CZTDCZ"
        assert [m.body.count(b"S") for m in found if m.type == "A"] == [100], "".join(m.type for m in found)
        assert len(asked) == turn
    w.bye()
