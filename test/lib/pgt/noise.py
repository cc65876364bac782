# SPDX-License-Identifier: PostgreSQL
"""noise: other clients of the same user and database, each with state of its own, who used the links
last: whatever a link keeps of them is there for the scenario to trip over.

Each has another value of every setting that scenarios look at, and prepared statements under the names
that scenarios use but with another text. Three transactions at once need three links; so three links are
in three strange states when a scenario begins.
"""
from pgt.wire import SYNC, Address, Wire, WireClosed, bind, execute, parse

OTHERS = (
    {"application_name": "noise one", "work_mem": "91MB", "search_path": "pg_catalog", "TimeZone": "Asia/Tokyo",
     "DateStyle": "German", "IntervalStyle": "iso_8601", "client_encoding": "LATIN1", "my.own": "noise one",
     "extra_float_digits": "0", "bytea_output": "escape", "standard_conforming_strings": "off"},
    {"application_name": "noise two", "work_mem": "92MB", "search_path": "information_schema, pg_temp",
     "TimeZone": "Europe/Paris", "DateStyle": "SQL, DMY", "statement_timeout": "77s", "my.own": "noise two",
     "default_transaction_isolation": "serializable", "lock_timeout": "66s"},
    {"application_name": "", "work_mem": "93MB", "TimeZone": "America/New_York", "my.own": "noise three",
     "default_transaction_read_only": "on", "client_min_messages": "error", "my.noise": "there"},
)
NAMES = ("s", "s1", "st", "a", "q", "x", "p", "twice", "w", "w2")
ROLES = ("trust_user", None, "other_user")


class Noise:
    """The three clients. They live as long as the proxy. What goes wrong for themselves is kept in `lost`
    (a test of its own looks at it) and does not fail whoever asked for the noise."""

    def __init__(self, address: Address):
        self.clients = [Wire(address) for _ in OTHERS]
        self.lost: list[str] = []
        try:
            for client, settings, role in zip(self.clients, OTHERS, ROLES):
                self._settle_in(client, settings, role)
        except (AssertionError, WireClosed) as e:
            self._give_up(e)

    @staticmethod
    def _settle_in(client: Wire, settings: dict[str, str], role: str | None) -> None:
        login = client.login()
        assert login[-1].type == "Z", login[-1].fields
        for name, value in settings.items():
            client.rows(f"set {name} = {value}" if name == "search_path" else f"set {name} = '{value}'")
        if role is not None:
            client.rows(f"set role {role}")
        for name in NAMES:
            client.send(parse(f"select 'noise of {settings['application_name']}' as {name}", name), SYNC)
            client.ready()

    def _give_up(self, why: Exception) -> None:
        self.lost.append(f"{type(why).__name__}: {why}")
        self.bye()
        self.clients = []

    def stir(self) -> None:
        """Puts the three states on three links: the transactions overlap, and use what they own."""
        try:
            for client in self.clients:
                client.rows("begin")
            for client, settings in zip(self.clients, OTHERS):
                self._use(client, settings)
            for client in self.clients:
                client.simple("commit")
        except (AssertionError, WireClosed) as e:
            self._give_up(e)

    def _use(self, client: Wire, settings: dict[str, str]) -> None:
        got = client.value("show work_mem")
        if got != settings["work_mem"]:
            self.lost.append(f"work_mem is {got}, not {settings['work_mem']}")
        client.send(*(bind(name=name) + execute() for name in NAMES), SYNC)
        found = client.ready()
        mine = f"noise of {settings['application_name']}".encode()
        self.lost += [str(m.fields) for m in found if m.type == "E"]
        self.lost += [f"a row of another: {m.row()}" for m in found if m.type == "D" and m.row() != [mine]]

    def bye(self) -> None:
        for client in self.clients:
            client.bye()
