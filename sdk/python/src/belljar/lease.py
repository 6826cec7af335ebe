"""Leases that are renewed while their sandboxes are in use. A sandbox that somebody made for the time being lives on a short lease: as long as whoever made it is there
and has not let go of it, the lease is renewed; when they die, nobody renews it, and it ends by itself. So nothing is left behind, whatever happens here.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass
from typing import Callable, Optional, Protocol

from .asking import Caller
from .errors import BelljarError, Ended, NotFound
from .plan import Alarm, Doze, Plan
from .request import Request, asking, at

# A sandbox whose maker died ends this soon.
SHORT_LEASE = 120
# Three attempts before it would end.
RENEWED_AFTER = 1 / 3
SOON = 1 / 20


class Performer(Protocol):
    """Who can carry out plans beside everything else."""

    def alarm(self) -> Alarm: ...
    def beside(self, plan: Plan[None]) -> None: ...


@dataclass
class Renewal:
    """A lease to renew."""

    owner: weakref.ref[object]
    seconds: int
    due: float


class Renewals:
    """Whose leases are renewed, and when. Whoever is no longer held by anybody is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[str, Renewal] = {}
        self._is_kept = False

    def add(self, sandbox: str, owner: object, seconds: int) -> bool:
        """Renews this one from now on; says whether somebody has to begin with it."""
        with self._lock:
            self._held[sandbox] = Renewal(weakref.ref(owner), seconds, self._clock() + seconds * RENEWED_AFTER)
            begins, self._is_kept = not self._is_kept, True
            return begins

    def remove(self, sandbox: str) -> None:
        """Renews it no more."""
        with self._lock:
            self._held.pop(sandbox, None)

    def clear(self) -> None:
        """Renews none any more."""
        with self._lock:
            self._held.clear()

    def wait(self) -> Optional[float]:
        """Until the next one is due; `None` if there is none, and then nobody keeps them any more."""
        with self._lock:
            self._held = {sandbox: each for sandbox, each in self._held.items() if each.owner() is not None}
            if not self._held:
                self._is_kept = False
                return None
            return max(0.0, min(each.due for each in self._held.values()) - self._clock())

    def due(self) -> list[tuple[str, int]]:
        """Those whose time has come, with how long their leases are."""
        with self._lock:
            return [(sandbox, each.seconds) for sandbox, each in self._held.items() if each.due <= self._clock()]

    def renewed(self, sandbox: str, share: float) -> None:
        """It is due again after this share of its lease."""
        with self._lock:
            if sandbox in self._held:
                self._held[sandbox].due = self._clock() + self._held[sandbox].seconds * share


def lease_request(sandbox: str, seconds: int, at_least: bool) -> Request:
    """It ends so long from now; with `at_least`, never sooner than it would have."""
    body = {"seconds": seconds, "at_least": at_least}
    # One that shortens could take back what somebody else set in between.
    return asking("POST", at("v1", "sandboxes", sandbox, "lease"), json=body, repeatable=at_least, silence=30.0)


def keep(caller: Caller, renewals: Renewals, alarm: Alarm) -> Plan[None]:
    """Renews what is due, for as long as there is something. A failure is tried again soon; a sandbox that is gone is let go, and whoever uses it is told."""
    while True:
        wait = renewals.wait()
        if wait is None:
            return
        yield Doze(wait, alarm)
        for sandbox, seconds in renewals.due():
            try:
                yield from caller.once(lease_request(sandbox, seconds, at_least=True))
                renewals.renewed(sandbox, RENEWED_AFTER)
            except (Ended, NotFound):
                renewals.remove(sandbox)
            except BelljarError:
                renewals.renewed(sandbox, SOON)


class Leases:
    """Holds sandboxes of one client."""

    def __init__(self, caller: Caller, performer: Performer) -> None:
        self._caller = caller
        self._performer = performer
        self._renewals = Renewals()
        self._alarm: Optional[Alarm] = None

    def hold(self, sandbox: str, owner: object, seconds: int) -> None:
        """Renews this one as long as its owner is there."""
        if self._alarm is None:
            self._alarm = self._performer.alarm()
        if self._renewals.add(sandbox, owner, seconds):
            self._performer.beside(keep(self._caller, self._renewals, self._alarm))
        else:
            self._alarm.set()

    def let_go(self, sandbox: str) -> None:
        """Renews this one no more."""
        self._renewals.remove(sandbox)
        if self._alarm is not None:
            self._alarm.set()

    def let_go_of_all(self) -> None:
        """Renews none any more."""
        self._renewals.clear()
        if self._alarm is not None:
            self._alarm.set()
