"""What is tried again, and for how long. A restart of the server takes seconds; whoever asks holds on that long and no longer, and only with what cannot be done
twice by it: requests that certainly had no effect, and those that the server knows again because they read, end something for good, or carry a key, an id or an
offset.
"""

from __future__ import annotations

import random
import time
from typing import Callable

from .errors import BelljarError, Busy, Refused, Unreachable
from .request import OpenBody, Request

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
# The server was there and its sandbox is not reached for the moment, or something between here and there says that the server is away.
PASSING = frozenset({"guest_lost", "gateway"})


def had_no_effect(error: BelljarError) -> bool:
    """Whether what was asked for was certainly not done."""
    return isinstance(error, Busy) or (isinstance(error, Unreachable) and not error.maybe_done)


def is_passing(error: BelljarError) -> bool:
    """Whether the same request may well be answered in a moment."""
    return isinstance(error, (Busy, Unreachable)) or (isinstance(error, Refused) and error.code in PASSING)


def may_repeat(request: Request, error: BelljarError) -> bool:
    """Whether the request may be sent again after this."""
    if isinstance(request.body, OpenBody):
        # What was read of it is gone; before there is a connection, nothing is read.
        return isinstance(error, Unreachable) and not error.maybe_done
    return had_no_effect(error) or (request.repeatable and is_passing(error))


class Patience:
    """Counts for how long in a row something did not work."""

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random) -> None:
        self._limit = limit
        self._clock = clock
        self._chance = chance
        self._since = clock()
        self._pause = 0.0

    def answered(self) -> None:
        """It worked."""
        self._pause = 0.0

    def bear(self, error: BelljarError) -> float:
        """How long to wait before the next attempt; raises the error if that would be too long. Never earlier than the server asked for."""
        now = self._clock()
        if not self._pause:
            self._since = now
        self._pause = min(self._pause * 2, LONGEST_PAUSE) if self._pause else FIRST_PAUSE
        # Not all at once, when many wait for the same server.
        wait = self._pause * (1 + self._chance() / 4)
        if isinstance(error, Refused) and error.retry_after:
            wait = max(wait, error.retry_after)
        if now + wait - self._since > self._limit:
            raise error
        return wait
