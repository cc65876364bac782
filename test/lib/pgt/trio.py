# SPDX-License-Identifier: PostgreSQL
"""trio: a primary and two streaming standbys."""
import signal

from pgt import postgres, procs, waits


def make_standby(primary: postgres.Postgres, name: str) -> postgres.Postgres:
    """A streaming standby of `primary`, started. Both began as the same copy, so no backup is needed."""
    home = procs.folder("standby", postgres.OS_USER)
    postgres.copy_template(home / "data")
    pg = postgres.Postgres(home / "data", procs.free_port())
    follow(pg, primary, name)
    pg.start()
    return pg


def follow(pg: postgres.Postgres, primary: postgres.Postgres, name: str, **conf: str) -> None:
    """Writes settings that make `pg` a standby of `primary`."""
    pg.write_conf({"primary_conninfo": f"host=127.0.0.1 port={primary.port} user=postgres "
                                       f"application_name={name}", "cluster_name": name, **conf})
    (pg.data / "standby.signal").touch()


# With synchronous_commit = off what is written ends before the last commit. Where the next record will begin is
# behind the header of its page, if there is one; what was replayed ends in front of it.
END_OF_WAL = """select x - case when x % pg_size_bytes(current_setting('wal_segment_size')) = 40 then 40
                     when x % 8192 = 24 then 24 else 0 end from pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') x"""


def wait_replayed(primary: postgres.Postgres, *standbys: postgres.Postgres) -> None:
    """They show all that was committed up to now, by anybody."""
    at = primary.value(END_OF_WAL)
    for one in standbys:
        waits.wait_for("it has replayed", lambda one=one: one.value(
            f"select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') >= {at}") == "t", 60)


class Trio:
    """A primary at place `at` of three, the others its standbys."""

    def __init__(self, at: int):
        self.at = at
        self.primary = postgres.start_postgres({"wal_keep_size": "64MB"}, roles=False)
        self.nodes = [self.primary if i == at else make_standby(self.primary, f"node{i}") for i in range(3)]
        self.standbys = [i for i in range(3) if i != at]

    def keep_in_step(self) -> None:
        """What is committed from now on can be read on the standbys at once."""
        self.primary.rows("alter system set synchronous_standby_names = '2 (*)'")
        self.primary.rows("alter system set synchronous_commit = 'remote_apply'")
        self.primary.reload()
        # The checkpointer is who has commits wait, as soon as it has read that; it does so before a checkpoint.
        self.primary.rows("checkpoint")

    def promote(self, new: int) -> None:
        """Somebody fails over to node `new` while the primary lives: nobody follows that any more, or it would be an accident."""
        for i in self.standbys:
            if i != new:
                self.nodes[i].stop()
        self.nodes[new].rows("select pg_promote()")

    def stop(self) -> None:
        for node in self.nodes:
            node.stop(signal.SIGQUIT)
