# SPDX-License-Identifier: PostgreSQL
"""waits: waiting for a condition with a deadline; there is no other way to wait in a test."""
import os
import threading
import time
from typing import Callable, TypeVar

T = TypeVar("T")

# Sanitizers and busy machines make everything slower; deadlines only, never a pace.
SCALE = float(os.environ.get("PGT_TIMEOUT_SCALE", "1"))
_POLL = threading.Event()


def now() -> float:
    return time.monotonic()


def deadline(seconds: float) -> float:
    """The moment `seconds` from now, stretched by PGT_TIMEOUT_SCALE."""
    return now() + seconds * SCALE


def wait_for(what: str, condition: Callable[[], T], seconds: float = 60.0) -> T:
    """Polls until `condition` returns something true, and returns it. Less often the longer it takes: most conditions ask a
    server, by a connection of their own."""
    began, end = now(), deadline(seconds)
    while True:
        is_last = now() >= end  # a look that began in time and took long, on a machine that is busy, is not the last one
        value = condition()
        if value:
            return value
        if is_last:
            raise AssertionError(f"waited {seconds * SCALE:.1f} s in vain until {what}")
        _POLL.wait(min(max(0.01, (now() - began) / 10), 0.05))


def holds_for(what: str, condition: Callable[[], bool], seconds: float) -> None:
    """Asserts that `condition` stays true for the whole time."""
    end = now() + seconds
    while now() < end:
        assert condition(), f"did not hold: {what}"
        _POLL.wait(0.03)
