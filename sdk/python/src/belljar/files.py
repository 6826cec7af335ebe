"""Files in a sandbox. Paths are absolute or begin at the user's home; modes are octal, as `0o644` or `"0644"`."""

from __future__ import annotations

import base64
from typing import Any, BinaryIO, List, Optional, Union

from .errors import Invalid, NotFound, refusal
from .file_models import Change, FileInfo, Hit
from .lines import cut_short
from .plan import Awaiting, Blocking, Feed, Give, Plan, Ready, Verbs, stream, verb, watching
from .request import Body, GuestPath, Request, asking, at, path_fields
from .transfer import LocalPath, Source, body_of, receive

Mode = Union[int, str]
# The server's own limit.
MOST_ENTRIES = 100_000
LONGEST_SILENCE = 60.0


def octal(mode: Optional[Mode]) -> Optional[str]:
    """Permissions as text."""
    return f"{mode:04o}" if isinstance(mode, int) else mode


class FileVerbs(Verbs):
    """What can be done with a sandbox's files. `user` is who acts, with that user's rights; the template's user when left out."""

    _sandbox: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sandbox={self._sandbox!r})"

    def _ask(self, method: str, path: Union[None, GuestPath], verb: str = "", **more: Any) -> Request:
        pieces = ["v1", "sandboxes", self._sandbox, "files"] + ([verb] if verb else [])
        query = {**({} if path is None else path_fields(path)), **more.pop("query", {})}
        return asking(method, at(*pieces), query=query, **more)

    @verb
    def read(self, path: GuestPath, *, start: int = 0, length: Optional[int] = None, user: Optional[str] = None) -> Plan[bytes]:
        """A file's bytes; all of them, or `length` from `start` on. For large files: `download`."""
        if length == 0:
            return b""
        ranged = start > 0 or length is not None
        last = "" if length is None else start + length - 1
        headers = {"range": f"bytes={start}-{last}"} if ranged else {}
        try:
            answer = yield from self._caller.ask(self._ask("GET", path, query={"user": user}, headers=headers))
        except Invalid as error:
            # As with a slice: behind the end there is nothing.
            if error.code != "range_not_satisfiable":
                raise
            return b""
        return answer.body

    @verb
    def read_text(self, path: GuestPath, *, encoding: str = "utf-8", errors: str = "strict", user: Optional[str] = None) -> Plan[str]:
        """A file's text."""
        answer = yield from self._caller.ask(self._ask("GET", path, query={"user": user}))
        return answer.body.decode(encoding, errors)

    def _write(
        self, path: GuestPath, body: Body, user: Optional[str], mode: Optional[Mode], parents: bool, exclusive: bool, offset: Optional[int],
    ) -> Plan[FileInfo]:
        request = self._ask(
            "PUT", path, query={"user": user, "mode": octal(mode), "parents": parents, "offset": offset}, body=body,
            headers={"if-none-match": "*"} if exclusive else {},
        )
        return (yield from self._caller.fetch(request, FileInfo))

    @verb
    def write(
        self, path: GuestPath, data: Union[str, bytes], *, user: Optional[str] = None, mode: Optional[Mode] = None, parents: bool = False,
        exclusive: bool = False, offset: Optional[int] = None,
    ) -> Plan[FileInfo]:
        """Writes a file anew, or with `offset` into it. `parents` makes missing directories; `exclusive` leaves a file that is there alone."""
        body = data.encode() if isinstance(data, str) else bytes(data)
        return (yield from self._write(path, body, user, mode, parents, exclusive, offset))

    @verb
    def upload(
        self, source: Source, path: GuestPath, *, user: Optional[str] = None, mode: Optional[Mode] = None, parents: bool = False,
        exclusive: bool = False,
    ) -> Plan[FileInfo]:
        """A file of this machine, by its path or open for reading, as a file in the sandbox."""
        return (yield from self._write(path, body_of(source), user, mode, parents, exclusive, None))

    @verb
    def download(self, path: GuestPath, target: Union[LocalPath, BinaryIO], *, user: Optional[str] = None) -> Plan[int]:
        """A file of the sandbox as a file on this machine, or into one that is open for writing; says how many bytes it had."""
        return (yield from receive(self._caller, self._ask("GET", path, query={"user": user}), target))

    @verb
    def stat(self, path: GuestPath, *, user: Optional[str] = None) -> Plan[FileInfo]:
        """What a path is; of a link itself, not of what it points to."""
        return (yield from self._caller.fetch(self._ask("GET", path, "stat", query={"user": user}), FileInfo))

    @verb
    def exists(self, path: GuestPath, *, user: Optional[str] = None) -> Plan[bool]:
        """Whether something is there."""
        try:
            yield from self._caller.ask(self._ask("GET", path, "stat", query={"user": user}))
            return True
        except NotFound as error:
            if error.code != "file_not_found":
                raise
            return False

    @verb
    def list(
        self, path: GuestPath = ".", *, depth: int = 1, max_entries: int = MOST_ENTRIES, user: Optional[str] = None,
    ) -> Plan[List[FileInfo]]:
        """What a directory holds, down to `depth`; the user's home when none is named."""
        query = {"depth": depth, "max_entries": max_entries, "user": user}
        return (yield from self._caller.fetch_all(self._ask("GET", path, "list", query=query), FileInfo, "entries"))

    @verb
    def mkdir(self, path: GuestPath, *, user: Optional[str] = None) -> Plan[bool]:
        """Makes a directory with its parents; `False` if it was there."""
        data = yield from self._caller.json(self._ask("POST", None, "mkdir", json={**path_fields(path), "user": user}))
        return bool(data["created"])

    @verb
    def move(self, source: GuestPath, target: GuestPath, *, user: Optional[str] = None) -> Plan[FileInfo]:
        """Gives something another path; a file at the new one is replaced."""
        body = {**path_fields(source, "from"), **path_fields(target, "to"), "user": user}
        return (yield from self._caller.fetch(self._ask("POST", None, "move", json=body), FileInfo))

    @verb
    def remove(self, path: GuestPath, *, user: Optional[str] = None) -> Plan[None]:
        """Removes a file, or a directory with all it holds."""
        yield from self._caller.done(self._ask("DELETE", path, query={"user": user}))

    @verb
    def change(
        self, path: GuestPath, *, mode: Optional[Mode] = None, uid: Optional[int] = None, gid: Optional[int] = None, user: Optional[str] = None,
    ) -> Plan[FileInfo]:
        """Changes permissions or owner."""
        body = {**path_fields(path), "mode": octal(mode), "uid": uid, "gid": gid, "user": user}
        return (yield from self._caller.fetch(self._ask("PATCH", None, json=body), FileInfo))

    @verb
    def get_attribute(self, path: GuestPath, name: str, *, user: Optional[str] = None) -> Plan[bytes]:
        """An extended attribute."""
        data = yield from self._caller.json(self._ask("GET", path, "xattr", query={"name": name, "user": user}))
        return base64.b64decode(data["value_base64"])

    @verb
    def set_attribute(self, path: GuestPath, name: str, value: bytes, *, user: Optional[str] = None) -> Plan[None]:
        """Sets an extended attribute."""
        body = {"value_base64": base64.b64encode(value).decode()}
        yield from self._caller.done(self._ask("PUT", path, "xattr", query={"name": name, "user": user}, json=body))

    @verb
    def remove_attribute(self, path: GuestPath, name: str, *, user: Optional[str] = None) -> Plan[None]:
        """Removes an extended attribute."""
        yield from self._caller.done(self._ask("DELETE", path, "xattr", query={"name": name, "user": user}))

    @stream
    def search(
        self, path: Optional[GuestPath] = None, *, name: Optional[str] = None, content: Optional[str] = None, max_hits: int = 1000, user: Optional[str] = None,
    ) -> Feed[Hit]:
        """Files whose name matches a shell pattern, or lines that hold a text."""
        query = {"name": name, "content": content, "max_hits": max_hits, "user": user}
        lines = yield from self._caller.lines(self._ask("GET", path, "search", query=query, silence=LONGEST_SILENCE))
        while True:
            line = yield from lines.next()
            if line is None:
                raise cut_short(self._caller.url)
            if line["type"] == "hit":
                yield Give(self._caller.read(Hit, line))
            elif line["type"] == "done":
                return
            elif line["type"] == "error":
                raise refusal(line["problem"])

    @watching
    def watch(self, path: GuestPath, *, recursive: bool = False, user: Optional[str] = None) -> Feed[Change]:
        """What happens in a directory from now on. If the connection is lost, what happened meanwhile is not known: that is an error and not passed over."""
        query = {"recursive": recursive, "user": user}
        lines = yield from self._caller.lines(self._ask("GET", path, "watch", query=query, silence=LONGEST_SILENCE))
        while True:
            line = yield from lines.next()
            if line is None:
                raise cut_short(self._caller.url)
            if line["type"] == "watching":
                yield Ready()
            elif line["type"] == "event":
                yield Give(self._caller.read(Change, line))
            elif line["type"] == "error":
                raise refusal(line["problem"])


class Files(FileVerbs, Blocking):
    """The files of a sandbox."""

    def __init__(self, owner: Blocking, sandbox: str) -> None:
        self._as(owner)
        self._sandbox = sandbox


class AsyncFiles(FileVerbs, Awaiting):
    """The files of a sandbox."""

    def __init__(self, owner: Awaiting, sandbox: str) -> None:
        self._as(owner)
        self._sandbox = sandbox
