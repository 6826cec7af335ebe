"""What is asked of a server: one request, and the answer to it. Plain data, so that everything about it can be decided without a connection."""

from __future__ import annotations

import base64
import json as json_text
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Mapping, Optional, Sequence, Union, cast
from urllib.parse import quote

from .errors import Misuse

LINES = "application/x-ndjson"
MOST_OF_AN_ANSWER = 256 << 20

# In a body: this field is to be `null`, which is something else than to leave it out.
NULL: Any = object()

GuestPath = Union[str, bytes]
Query = Mapping[str, Union[None, str, int, float, bool, Sequence[str]]]


@dataclass(frozen=True)
class FileBody:
    """A file of this machine as the body of a request, read as it is sent. It can be sent again."""

    path: Path


@dataclass(frozen=True)
class OpenBody:
    """Something that is being read as the body of a request: it can be sent once."""

    file: BinaryIO


Body = Union[None, bytes, FileBody, OpenBody]


@dataclass(frozen=True)
class Request:
    """One request."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Body = None
    # Sent twice it does what it does once, whatever happened in between: it reads, ends something for good, or carries a key, an id or an offset by which the
    # server knows it again.
    repeatable: bool = False
    # The longest time in which nothing may come; None for as long as it takes.
    silence: Optional[float] = None


@dataclass(frozen=True)
class Answer:
    """What came back. For an answer that is read piece by piece, `body` is empty."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def is_yes(self) -> bool:
        """Whether it was done."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON; `ValueError` if it is none."""
        return json_text.loads(self.body) if self.body else None


def at(*pieces: object) -> str:
    """A path below the server's address. No piece can lead elsewhere."""
    for piece in pieces:
        if str(piece) in ("", ".", ".."):
            raise Misuse("id", "a name", piece)
    return "/" + "/".join(quote(str(piece), safe="") for piece in pieces)


def asking(
    method: str, path: str, *, json: Any = None, query: Optional[Query] = None, headers: Optional[Mapping[str, str]] = None,
    body: Body = None, repeatable: bool = False, silence: Optional[float] = None,
) -> Request:
    """Puts a request together; what is `None` in the query or at the top of the JSON is left out."""
    sent = dict(headers or {})
    if json is not None:
        body = json_text.dumps(without_none(json)).encode()
        sent["content-type"] = "application/json"
    elif body is not None:
        sent.setdefault("content-type", "application/octet-stream")
    return Request(method, path, _flat(query or {}), sent, body, repeatable or method in ("GET", "HEAD"), silence)


def without_none(fields: Any) -> Any:
    """A mapping without those that are not set; `NULL` is set, to nothing."""
    if not isinstance(fields, Mapping):
        return fields
    named = cast("Mapping[str, Any]", fields)
    return {name: None if value is NULL else value for name, value in named.items() if value is not None}


def _flat(query: Query) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if isinstance(value, bool):
            pairs += [(name, "true")] if value else []
        elif isinstance(value, (str, int, float)):
            pairs.append((name, str(value)))
        elif value is not None:
            pairs += [(name, item) for item in value]
    return pairs


def path_fields(path: GuestPath, name: str = "path") -> dict[str, str]:
    """A path in a sandbox: bytes that are not UTF-8 travel as base64."""
    if isinstance(path, str):
        return {name: path}
    try:
        return {name: path.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(path).decode()}
