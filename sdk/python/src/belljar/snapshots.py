"""Snapshots: find, remove, make sandboxes from them, carry them to other servers. `sandbox.snapshot(name)` takes one, `client.create(snapshot=…)` begins with one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Optional, Union

from .making import seconds_or_none
from .model import Model
from .plan import AwaitingGroup, BlockingGroup, Feed, Plan, Verbs, stream, verb
from .quantities import Duration
from .request import asking, at
from .sandbox_models import SnapshotInfo
from .transfer import LocalPath, Source, body_of, receive


@dataclass(frozen=True)
class PushedSnapshot(Model):
    """A snapshot that other servers can pull."""

    name: str
    snapshot: str
    kind: str
    bytes: int
    sha256: str


class SnapshotVerbs(Verbs):
    """What can be done with snapshots. `which` is an id or a name; a name means the newest that has it."""

    @stream
    def list(self, *, sandbox: Optional[str] = None, name: Optional[str] = None) -> Feed[SnapshotInfo]:
        """The project's, newest first."""
        yield from self._caller.pages(at("v1", "snapshots"), {"sandbox": sandbox, "name": name}, SnapshotInfo, "snapshots")

    @verb
    def get(self, which: str) -> Plan[SnapshotInfo]:
        """One of them."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "snapshots", which)), SnapshotInfo))

    @verb
    def remove(self, which: str) -> Plan[None]:
        """Removes it. What was made from it does not need it."""
        yield from self._caller.done(asking("DELETE", at("v1", "snapshots", which)))

    @verb
    def download(self, which: str, target: Union[LocalPath, BinaryIO]) -> Plan[int]:
        """It as one file on this machine, which is as secret as the sandbox was; says how many bytes it has."""
        return (yield from receive(self._caller, asking("GET", at("v1", "snapshots", which, "file")), target))

    @verb
    def upload(self, source: Source, *, name: Optional[str] = None, expires_in: Optional[Duration] = None) -> Plan[SnapshotInfo]:
        """Takes in a file that `download` made, here or on another server."""
        query = {"name": name, "expires_in_seconds": seconds_or_none("expires_in", expires_in)}
        request = asking("POST", at("v1", "snapshot-imports"), query=query, body=body_of(source))
        return (yield from self._caller.fetch(request, SnapshotInfo))

    @verb
    def push(self, which: str) -> Plan[PushedSnapshot]:
        """Puts it where other servers can pull it."""
        return (yield from self._caller.fetch(asking("POST", at("v1", "snapshots", which, "push")), PushedSnapshot))

    @verb
    def pull(self, name: str, *, rename: Optional[str] = None, expires_in: Optional[Duration] = None) -> Plan[SnapshotInfo]:
        """Takes in what was pushed."""
        body = {"name": name, "rename": rename, "expires_in_seconds": seconds_or_none("expires_in", expires_in)}
        return (yield from self._caller.fetch(asking("POST", at("v1", "snapshot-pulls"), json=body), SnapshotInfo))


class Snapshots(SnapshotVerbs, BlockingGroup):
    """Snapshots."""


class AsyncSnapshots(SnapshotVerbs, AwaitingGroup):
    """Snapshots."""
