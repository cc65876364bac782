# SPDX-License-Identifier: PostgreSQL
"""scram: the client's side of trust, password, md5 and SCRAM-SHA-256 authentication."""
import base64
import hashlib
import hmac
import os
import struct


def md5_answer(user: str, password: str, salt: bytes) -> bytes:
    inner = hashlib.md5((password + user).encode()).hexdigest()
    return b"md5" + hashlib.md5(inner.encode() + salt).hexdigest().encode() + b"\0"


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


class Conversation:
    """Answers the server's authentication messages for one login."""

    def __init__(self, user: str, password: str):
        self.user = user
        self.password = password
        self.nonce = base64.b64encode(os.urandom(18)).decode()
        self.first_bare = f"n=,r={self.nonce}"
        self.server_signature = b""

    def answer(self, body: bytes) -> bytes | None:
        """The body of the client's reply, None when there is nothing to reply."""
        code = struct.unpack_from("!I", body)[0]
        rest = body[4:]
        if code == 3:
            return self.password.encode() + b"\0"
        if code == 5:
            return md5_answer(self.user, self.password, rest)
        if code == 10:
            return self._first()
        if code == 11:
            return self._final(rest)
        if code == 12:
            wanted = b"v=" + base64.b64encode(self.server_signature)
            assert rest == wanted, "the server does not know the password"
        return None

    def _first(self) -> bytes:
        text = ("n,," + self.first_bare).encode()
        return b"SCRAM-SHA-256\0" + struct.pack("!i", len(text)) + text

    def _final(self, server_first: bytes) -> bytes:
        parts = dict(p.split("=", 1) for p in server_first.decode().split(","))
        assert parts["r"].startswith(self.nonce), "the server's nonce is not ours"
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), base64.b64decode(parts["s"]),
                                     int(parts["i"]))
        without_proof = f"c=biws,r={parts['r']}"
        signed = ",".join([self.first_bare, server_first.decode(), without_proof]).encode()
        client_key = _hmac(salted, b"Client Key")
        signature = _hmac(hashlib.sha256(client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature))
        self.server_signature = _hmac(_hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
