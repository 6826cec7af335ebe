"""The audit log: who did what, in the order it was written, and whether it is as it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO, Mapping, Optional, Sequence, Union

from .model import Model
from .plan import AwaitingGroup, BlockingGroup, Feed, Give, Plan, Verbs, stream, verb
from .request import asking, at
from .transfer import LocalPath, receive

AuditEvent = Mapping[str, Any]
PAGE = 1000
LONGEST_WAIT = 30


@dataclass(frozen=True)
class AuditVerdict(Model):
    """Whether a log is as it was written."""

    whole: bool
    events: int
    faults: list[str] = field(default_factory=list[str])
    checkpoint: Optional[dict[str, Any]] = None


class AuditVerbs(Verbs):
    """What can be read of the log. `project` is the key's own when left out."""

    def _events(self, query: Mapping[str, Any], after: int, follow: bool) -> Feed[AuditEvent]:
        wait = LONGEST_WAIT if follow else 0
        while True:
            asked = {**query, "limit": PAGE, "wait_seconds": wait, **({} if "last" in query else {"after": after})}
            data = yield from self._caller.json(asking("GET", at("v1", "audit"), query=asked))
            for event in data["events"]:
                yield Give(event)
            after, query = data["next_after"], {name: value for name, value in query.items() if name != "last"}
            if not follow and not data["more"]:
                return

    @stream
    def events(
        self, *, sandbox: Optional[str] = None, kinds: Sequence[str] = (), since: Optional[str] = None, until: Optional[str] = None,
        after: int = 0, last: Optional[int] = None, follow: bool = False, project: Optional[str] = None,
    ) -> Feed[AuditEvent]:
        """Events, oldest first: all, those after a number, or the `last` so many. With `follow`, those that come as well, until you stop reading."""
        query = {"project": project, "sandbox": sandbox, "kinds": ",".join(kinds) or None, "since": since, "until": until}
        yield from self._events({**query, **({} if last is None else {"last": last})}, after, follow)

    @verb
    def verify(self, *, project: Optional[str] = None) -> Plan[AuditVerdict]:
        """Has the server check the log."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "audit", "verify"), query={"project": project}), AuditVerdict))

    @verb
    def export(self, target: Union[LocalPath, BinaryIO], *, project: Optional[str] = None) -> Plan[int]:
        """The log byte for byte, with a signed checkpoint, as a file on this machine."""
        return (yield from receive(self._caller, asking("GET", at("v1", "audit", "export"), query={"project": project}), target))


class Audit(AuditVerbs, BlockingGroup):
    """The audit log."""


class AsyncAudit(AuditVerbs, AwaitingGroup):
    """The audit log."""
