# SPDX-License-Identifier: PostgreSQL
"""test_pool_commit: the link dies when its server has said COMMIT and not yet ReadyForQuery. The client was told that
its transaction is over: it is, what that SET holds, and no error follows for what was done.
"""
from pooling_house import login, states

from pgt import fake as fakes
from pgt.wire import SYNC, bind, execute, parse, query

ENDS = {"simple": lambda word: [query(word)],
        "extended": lambda word: [parse(word), bind(), execute(), SYNC],
        "more_in_front": lambda word: [parse("select 1"), bind(), execute(), parse(word), bind(), execute(), SYNC],
        "more_behind": lambda word: [query(word), query("select 1")]}
TAGS = {"commit": "COMMIT", "rollback": "ROLLBACK"}


def test_link_dies_behind_commit(fake, start_pool):
    texts: list[str] = []

    def script(conn):
        """A polite server that goes when it has said that a transaction with the word "die" in it is over."""
        conn.greet()
        parsed, doomed = "", False
        while True:
            kind, body = conn.read()
            text = body.decode("utf-8", "replace")
            doomed = doomed or "die" in text
            if kind == "X":
                return
            if kind == "Q":
                texts.append(text)
            if kind == "P":
                parsed = text.split("\0")[1]
            ends = text[:-1] if kind == "Q" else parsed if kind == "E" else ""
            if ends in TAGS and doomed:
                conn.send(fakes.complete(TAGS[ends]))
                return
            conn.send(conn.answer(kind, body))

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    for how, messages in ENDS.items():
        for word in TAGS:
            c.simple("begin")
            c.simple("set work_mem to die")
            c.send(*messages(word))
            found = c.ready()
            assert states(found) == [], (how, word)
            assert [m.body for m in found if m.type == "C"][-1] == TAGS[word].encode() + b"\0", (how, word)
            assert found[-1].body == b"I", (how, word)
            if how == "more_behind":
                assert states(c.ready()) in ([], ["08006"])
            texts.clear()
            assert not states(c.simple("select 2"))
            assert any("work_mem" in text for text in texts) == (word == "commit"), (how, word, texts)
            c.simple("reset work_mem")
    c.bye()
