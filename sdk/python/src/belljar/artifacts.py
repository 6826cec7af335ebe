"""Files that were taken out of sandboxes to be kept: find, fetch, remove. `sandbox.keep_file(path)` makes one."""

from __future__ import annotations

from typing import BinaryIO, Optional, Union

from .artifact_models import ArtifactInfo
from .plan import AwaitingGroup, BlockingGroup, Feed, Plan, Verbs, stream, verb
from .request import asking, at
from .transfer import LocalPath, receive


class ArtifactVerbs(Verbs):
    """What can be done with artifacts."""

    @stream
    def list(self, *, sandbox: Optional[str] = None) -> Feed[ArtifactInfo]:
        """The project's, newest first."""
        yield from self._caller.pages(at("v1", "artifacts"), {"sandbox": sandbox}, ArtifactInfo, "artifacts")

    @verb
    def get(self, id: str) -> Plan[ArtifactInfo]:
        """One of them."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "artifacts", id)), ArtifactInfo))

    @verb
    def read(self, id: str) -> Plan[bytes]:
        """Its bytes. For large ones: `download`."""
        answer = yield from self._caller.ask(asking("GET", at("v1", "artifacts", id, "content")))
        return answer.body

    @verb
    def download(self, id: str, target: Union[LocalPath, BinaryIO]) -> Plan[int]:
        """Its bytes as a file on this machine; says how many it had."""
        return (yield from receive(self._caller, asking("GET", at("v1", "artifacts", id, "content")), target))

    @verb
    def remove(self, id: str) -> Plan[None]:
        """Removes it."""
        yield from self._caller.done(asking("DELETE", at("v1", "artifacts", id)))


class Artifacts(ArtifactVerbs, BlockingGroup):
    """Artifacts."""


class AsyncArtifacts(ArtifactVerbs, AwaitingGroup):
    """Artifacts."""
