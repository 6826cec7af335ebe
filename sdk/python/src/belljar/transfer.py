"""Files of any size, up and down, in constant memory: they are never held, only passed on. A download is seen under its name when all of it is there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import IO, Any, BinaryIO, Optional, Union

from .asking import Caller
from .errors import Misuse
from .lines import cut_short
from .plan import Local, Plan, Read
from .request import Body, FileBody, OpenBody, Request

LocalPath = Union[str, "os.PathLike[str]"]
Source = Union[LocalPath, BinaryIO]

# Written to the disk in pieces of this size.
TOGETHER = 1 << 20


def body_of(source: Source) -> Body:
    """What is to be sent: a file by its path can be sent again, an open one cannot."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if not path.is_file():
            raise Misuse("source", "a file on this machine", os.fspath(source))
        return FileBody(path)
    return OpenBody(source)


def receive(caller: Caller, request: Request, target: Union[LocalPath, BinaryIO]) -> Plan[int]:
    """Writes the answer's body to a file, and says how many bytes it had."""
    if not isinstance(target, (str, os.PathLike)):
        return (yield from _pass_on(caller, request, target))
    path = Path(target)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file: IO[Any] = yield Local(lambda: beside.open("xb"))
    try:
        try:
            size = yield from _pass_on(caller, request, file)
        finally:
            file.close()
        yield Local(lambda: os.replace(beside, path))
        return size
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _pass_on(caller: Caller, request: Request, file: IO[Any]) -> Plan[int]:
    reading = yield from caller.open(request)
    promised, size, ready = _length(reading.headers.get("content-length")), 0, bytearray()
    while True:
        piece: bytes = yield Read(reading)
        ready += piece
        if ready and (len(ready) >= TOGETHER or not piece):
            size += len(ready)
            yield Local(_writing(file, bytes(ready)))
            ready.clear()
        if not piece:
            break
    if promised is not None and size != promised:
        raise cut_short(caller.url)
    return size


def _writing(file: IO[Any], data: bytes) -> Any:
    return lambda: file.write(data)


def _length(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.isdigit() else None
