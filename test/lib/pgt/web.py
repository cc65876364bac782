# SPDX-License-Identifier: PostgreSQL
"""web: a client of pgpool's HTTP side."""
import http.client
import json
import ssl
from dataclasses import dataclass

from pgt import waits


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


def ask(port: int, path: str, method: str = "GET", body: bytes | str | None = None, tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1", **headers: str) -> Answer:
    """One request on a connection of its own. Underlines in names of headers become hyphens."""
    seconds = 30 * waits.SCALE
    conn = (http.client.HTTPSConnection(host, port, timeout=seconds, context=tls) if tls
            else http.client.HTTPConnection(host, port, timeout=seconds))
    try:
        conn.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        got = conn.getresponse()
        return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
    finally:
        conn.close()


def wait_status(port: int, path: str, status: int, seconds: float = 30) -> Answer:
    def asked() -> Answer | None:
        try:
            answer = ask(port, path)
        except OSError:
            return None
        return answer if answer.status == status else None
    return waits.wait_for(f"{path} says {status}", asked, seconds)
