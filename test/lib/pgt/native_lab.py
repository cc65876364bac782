# SPDX-License-Identifier: PostgreSQL
"""native_lab: servers of native replication that rebuild each other by the sample scripts, and clients that write
all the while and know what was acknowledged."""
import shutil
import threading

from pgt import postgres, procs, shadow
from pgt.native import TABLES
from pgt.wire import Wire, WireClosed

EXAMPLES = shadow.TOP / "doc" / "examples" / "native-replication"
SCRIPTS = ("recovery_1st_stage", "recovery_2nd_stage", "pgpool_remote_start")


class Writer(threading.Thread):
    """A client that writes without a pause, plainly and in transactions, and begins anew when it is sent away."""

    def __init__(self, address, number: int):
        super().__init__(daemon=True)
        self.address, self.number = address, number
        self.acked: list[int] = []
        self.doubtful: list[int] = []
        self.errors: list[str] = []
        self.sent_away = 0
        self.ends = threading.Event()

    def _write(self, c: Wire, key: int) -> None:
        sqls = [f"insert into t (id, v) values ({key}, now()::text)"]
        if key % 3 == 0:
            sqls = ["begin", *sqls, "insert into s (v) values (1)",
                    f"update accounts set amount = amount + 1 where id = {key % 7 + 1}", "commit"]
        for sql in sqls:
            failed = [m for m in c.simple(sql) if m.type == "E"]
            if failed:
                raise AssertionError(failed[0].text)

    def run(self) -> None:
        key = self.number * 1000000
        while not self.ends.is_set():
            try:
                with Wire(self.address) as c:
                    c.login()
                    while not self.ends.is_set():
                        key += 1
                        self.doubtful.append(key)
                        self._write(c, key)
                        self.acked.append(self.doubtful.pop())
            except (OSError, WireClosed):
                self.sent_away += 1
            except AssertionError as e:
                self.errors.append(str(e))

    def stop(self) -> None:
        self.ends.set()
        self.join(60)
        assert not self.is_alive(), "the writer hangs"


def add_scripts(node: postgres.Postgres) -> None:
    for name in SCRIPTS:
        shutil.copy(EXAMPLES / name, node.data / name)
        (node.data / name).chmod(0o700)
        if procs.IS_ROOT:
            shutil.chown(node.data / name, postgres.OS_USER, postgres.OS_USER)


def make_tables(pool_address) -> None:
    with Wire(pool_address) as c:
        c.login()
        for sql in TABLES.split(";\n"):
            if sql.strip():
                assert not [m for m in c.simple(sql) if m.type == "E"], sql
