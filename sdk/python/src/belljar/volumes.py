"""Volumes: storage that outlives sandboxes, and its files without a sandbox. `client.create(volumes=["data:/mnt/data"])` shows one in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, List, Optional, Union

from .file_models import FileInfo
from .files import MOST_ENTRIES, Mode, octal
from .model import Model
from .plan import AwaitingGroup, BlockingGroup, Feed, Plan, Verbs, stream, verb
from .quantities import Size, as_bytes
from .request import Body, Request, asking, at
from .transfer import LocalPath, Source, body_of, receive


@dataclass(frozen=True)
class VolumeHolder(Model):
    """A sandbox that has a volume."""

    sandbox: str
    mode: str


@dataclass(frozen=True)
class VolumeInfo(Model):
    """A volume. Those that are asked for by name also say what was written to them and who has them."""

    id: str
    name: str
    project: str
    size_bytes: int
    read_only: bool
    created_at: datetime
    origin: Optional[str] = None
    bucket: Optional[str] = None
    used_bytes: Optional[int] = None
    mounted_by: list[VolumeHolder] = field(default_factory=list[VolumeHolder])


class VolumeVerbs(Verbs):
    """What can be done with volumes. `which` is an id or a name."""

    @stream
    def list(self) -> Feed[VolumeInfo]:
        """The project's, by name."""
        yield from self._caller.pages(at("v1", "volumes"), {}, VolumeInfo, "volumes")

    @verb
    def create(self, name: str, *, size: Optional[Size] = None, bucket: Optional[str] = None) -> Plan[VolumeInfo]:
        """Makes one; or a name for a bucket that the operator set up."""
        body = {"name": name, "size_bytes": None if size is None else as_bytes("size", size), "bucket": bucket}
        return (yield from self._caller.fetch(asking("POST", at("v1", "volumes"), json=body), VolumeInfo))

    @verb
    def get(self, which: str) -> Plan[VolumeInfo]:
        """One of them, with what was written to it and who has it."""
        return (yield from self._caller.fetch(asking("GET", at("v1", "volumes", which)), VolumeInfo))

    @verb
    def clone(self, which: str, name: str, *, size: Optional[Size] = None, read_only: bool = False) -> Plan[VolumeInfo]:
        """A copy that goes its own way, in constant time; `read_only` keeps this state for ever."""
        body = {"name": name, "size_bytes": None if size is None else as_bytes("size", size), "read_only": read_only}
        return (yield from self._caller.fetch(asking("POST", at("v1", "volumes", which, "clones"), json=body), VolumeInfo))

    @verb
    def remove(self, which: str) -> Plan[None]:
        """Removes it with all it holds."""
        yield from self._caller.done(asking("DELETE", at("v1", "volumes", which)))

    def _files(self, method: str, which: str, verb: str = "", **more: Any) -> Request:
        return asking(method, at("v1", "volumes", which, "files", *([verb] if verb else [])), **more)

    def _write(self, which: str, path: str, body: Body, mode: Optional[Mode], parents: bool, exclusive: bool) -> Plan[FileInfo]:
        request = self._files(
            "PUT", which, query={"path": path, "mode": octal(mode), "parents": parents}, body=body,
            headers={"if-none-match": "*"} if exclusive else {},
        )
        return (yield from self._caller.fetch(request, FileInfo))

    @verb
    def read_file(self, which: str, path: str) -> Plan[bytes]:
        """A file's bytes. For large files: `download_file`."""
        answer = yield from self._caller.ask(self._files("GET", which, query={"path": path}))
        return answer.body

    @verb
    def write_file(
        self, which: str, path: str, data: Union[str, bytes], *, mode: Optional[Mode] = None, parents: bool = False, exclusive: bool = False,
    ) -> Plan[FileInfo]:
        """Writes a file, wholly or not at all."""
        return (yield from self._write(which, path, data.encode() if isinstance(data, str) else bytes(data), mode, parents, exclusive))

    @verb
    def upload_file(
        self, which: str, source: Source, path: str, *, mode: Optional[Mode] = None, parents: bool = False, exclusive: bool = False,
    ) -> Plan[FileInfo]:
        """A file of this machine as a file in the volume."""
        return (yield from self._write(which, path, body_of(source), mode, parents, exclusive))

    @verb
    def download_file(self, which: str, path: str, target: Union[LocalPath, BinaryIO]) -> Plan[int]:
        """A file of the volume as a file on this machine."""
        return (yield from receive(self._caller, self._files("GET", which, query={"path": path}), target))

    @verb
    def list_files(self, which: str, path: str = "/", *, depth: int = 1, max_entries: int = MOST_ENTRIES) -> Plan[List[FileInfo]]:
        """What a directory of the volume holds."""
        query = {"path": path, "depth": depth, "max_entries": max_entries}
        return (yield from self._caller.fetch_all(self._files("GET", which, "list", query=query), FileInfo, "entries"))

    @verb
    def stat_file(self, which: str, path: str) -> Plan[FileInfo]:
        """What a path of the volume is."""
        return (yield from self._caller.fetch(self._files("GET", which, "stat", query={"path": path}), FileInfo))

    @verb
    def make_directory(
        self, which: str, path: str, *, mode: Optional[Mode] = None, uid: Optional[int] = None, gid: Optional[int] = None,
    ) -> Plan[FileInfo]:
        """Makes a directory in the volume."""
        body = {"path": path, "mode": octal(mode), "uid": uid, "gid": gid}
        return (yield from self._caller.fetch(self._files("POST", which, "mkdir", json=body), FileInfo))

    @verb
    def move_file(self, which: str, source: str, target: str) -> Plan[FileInfo]:
        """Gives something in the volume another path."""
        return (yield from self._caller.fetch(self._files("POST", which, "move", json={"from": source, "to": target}), FileInfo))

    @verb
    def change_file(
        self, which: str, path: str, *, mode: Optional[Mode] = None, uid: Optional[int] = None, gid: Optional[int] = None,
    ) -> Plan[FileInfo]:
        """Changes permissions or owner of something in the volume."""
        body = {"path": path, "mode": octal(mode), "uid": uid, "gid": gid}
        return (yield from self._caller.fetch(self._files("PATCH", which, json=body), FileInfo))

    @verb
    def remove_file(self, which: str, path: str) -> Plan[None]:
        """Removes a file of the volume, or a directory with all it holds."""
        yield from self._caller.done(self._files("DELETE", which, query={"path": path}))


class Volumes(VolumeVerbs, BlockingGroup):
    """Volumes."""


class AsyncVolumes(VolumeVerbs, AwaitingGroup):
    """Volumes."""
