# SPDX-License-Identifier: PostgreSQL
"""test_statement_log: log_statement and log_per_node_statement for the same messages, beside Debian's pgpool-II: the
same lines, in both pool modes."""
import re
import shutil

import pytest

from pgt import procs, proxy
from pgt.wire import SYNC, Wire, bind, close, describe, execute, message, parse

needs_pgpool2 = pytest.mark.skipif(shutil.which("pgpool", path="/usr/sbin") is None, reason="pgpool2 is not installed")


def speak(wire: Wire) -> None:
    """One client's messages, in the sequences that drivers send."""
    for sequence in (
            parse("select 1") + bind() + describe("", "P") + execute(),
            parse("select $1::int", "s1", [23]) + describe("s1"),
            bind([b"7"], name="s1") + execute(),
            bind([b"8"], portal="p1", name="s1") + execute("p1", 1) + execute("p1", 0) + close("p1", "P"),
            close("s1"),
            parse("select 2") + message("H") + bind() + execute(),
            parse("select $1", "big", [25]) + bind([b"x" * 300000], name="big") + execute(),
            parse("select nope") + bind() + execute()):
        wire.send(sequence + SYNC)
        wire.ready()
    wire.simple("select 3")
    wire.simple("begin")
    wire.send(parse("select 4") + bind() + execute() + SYNC)
    wire.ready()
    wire.simple("commit")


def statements(log: str) -> list[str]:
    """What was logged of statements, without our first SHOW and pgpool-II's questions of its own."""
    found = re.findall(r"LOG:  (?:DB node id: -?\d+ backend pid: \d+ )?statement: .*(?=\n)", log)
    own = ("version()", "pg_", "DISCARD ALL")  # the last comes after the client went: perhaps too late to be seen
    return [re.sub(r"pid: \d+", "pid: N", line) for line in found if not any(word in line for word in own)]


class Logging2(proxy.Pgpool2):
    """pgpool-II with statements logged."""

    def launch(self, command, user=None):
        path = self.home / "pgpool.conf"
        path.write_text(path.read_text(encoding="utf-8") + "log_statement = on\nlog_per_node_statement = on\n"
                        "backend_clustering_mode = streaming_replication\nsr_check_period = 0\nhealth_check_period = 0\n",
                        encoding="utf-8")
        super().launch(command, user)


@needs_pgpool2
def test_the_same_lines_as_pgpool2(pg, start_pool):
    theirs = Logging2(procs.folder("pgpool2", "postgres"), procs.free_port())
    theirs.start(pg.address)
    try:
        logs = {}
        for who in ("pgpool-II", "session", "transaction"):
            pool = theirs if who == "pgpool-II" else start_pool(
                pg.address, pool_mode=who, virtual_begin=False, log_statement=True, log_per_node_statement=True)
            with Wire(pool.address, seconds=20) as wire:
                assert wire.login()[-1].type == "Z"
                speak(wire)
                wire.bye()
            logs[who] = statements(pool.log())
    finally:
        theirs.stop()
    wanted = logs["pgpool-II"]
    assert "LOG:  DB node id: 0 backend pid: N statement: Execute: select $1::int" in wanted, wanted
    assert logs["session"] == wanted
    # A Close is answered by pgpool while no connection is free: there is no node then.
    assert [re.sub(r"id: -1 (.* C message)", r"id: 0 \1", line) for line in logs["transaction"]] == wanted


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_turned_on_and_off(pg, start_pool, mode):
    """PGPOOL SET in mid-session: what was parsed before has no text, and nothing is told when it is off again."""
    pool = start_pool(pg.address, pool_mode=mode)
    with Wire(pool.address, seconds=20) as wire:
        assert wire.login()[-1].type == "Z"

        def told(*messages: bytes) -> list[str]:
            wire.send(b"".join(messages) + SYNC)
            return [m.fields["M"] for m in wire.ready() if m.type == "N"]
        assert told(parse("select 5", "s5")) == []
        wire.simple("pgpool set notice_per_node_statement = on")
        node = "DB node id: 0 statement: "
        assert told(bind(name="s5"), execute()) == [node + "Bind: ", node + "Execute: "]
        assert told(parse("select 6", "s6")) == [node + "Parse: select 6"]
        assert told(bind(name="s6"), execute()) == [node + "Bind: select 6", node + "Execute: select 6"]
        wire.simple("pgpool set notice_per_node_statement = off")
        assert told(bind(name="s6"), execute()) == []
        wire.bye()


def test_what_is_answered_here(pg, start_pool):
    """virtual_begin: no server was told of BEGIN; when one is, there is a line that says which. By both protocols."""
    pool = start_pool(pg.address, pool_mode="transaction", log_statement=True, log_per_node_statement=True)
    with Wire(pool.address, seconds=20) as wire:
        assert wire.login()[-1].type == "Z"
        wire.simple("begin read write")
        wire.simple("rollback")
        wire.send(parse("start transaction", "b") + bind(name="b") + describe("", "P") + execute() + SYNC)
        wire.ready()
        wire.simple("select 7")
        wire.simple("commit")
        wire.simple("pgpool set notice_per_node_statement = on")
        wire.send(bind(name="b") + execute() + SYNC)
        assert [m.fields["M"] for m in wire.ready() if m.type == "N"] == [
            "DB node id: -1 statement: Bind: start transaction", "DB node id: -1 statement: Execute: start transaction"]
        wire.bye()
    none, home = "LOG:  DB node id: -1 backend pid: N ", "LOG:  DB node id: 0 backend pid: N "
    begun = [none + "statement: Bind: start transaction", "LOG:  statement: start transaction",
             none + "statement: Execute: start transaction"]
    assert statements(pool.log()) == [
        "LOG:  statement: begin read write", none + "statement: begin read write",
        "LOG:  statement: rollback", none + "statement: rollback",
        none + "statement: Parse: start transaction", begun[0], none + "statement: D message", *begun[1:],
        home + "statement: start transaction", "LOG:  statement: select 7", home + "statement: select 7",
        "LOG:  statement: commit", home + "statement: commit", *begun]
