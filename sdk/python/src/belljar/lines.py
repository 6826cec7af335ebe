"""Answers that go on: one JSON value a line (NDJSON), put together from pieces that end anywhere."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Mapping, Optional, cast

from .errors import BadAnswer, Unreachable
from .plan import Close, Plan, Read, Reading

# The server's own longest line is a piece of a code's result.
MOST_OF_A_LINE = 20 << 20

Line = Mapping[str, Any]


class LineDecoder:
    """Pieces in, lines out. Empty lines, which keep a quiet connection alive, are left out."""

    def __init__(self, url: str, most: int = MOST_OF_A_LINE) -> None:
        self._url = url
        self._most = most
        self._begun: list[bytes] = []
        self._length = 0

    def feed(self, piece: bytes) -> list[Line]:
        """The lines that are complete with this piece."""
        *ended, begun = piece.split(b"\n")
        lines: list[Line] = []
        for text in ended:
            self._keep(text)
            whole, self._begun, self._length = b"".join(self._begun).strip(), [], 0
            if whole:
                lines.append(self._parsed(whole))
        self._keep(begun)
        return lines

    @property
    def is_between_lines(self) -> bool:
        """Whether an end here cuts nothing short."""
        return not b"".join(self._begun).strip()

    def _keep(self, text: bytes) -> None:
        self._length += len(text)
        if self._length > self._most:
            raise BadAnswer(self._url, f"a line has more than {self._most} bytes")
        self._begun.append(text)

    def _parsed(self, text: bytes) -> Line:
        try:
            line: Any = json.loads(text)
        except ValueError as error:
            raise BadAnswer(self._url, f"a line is no JSON: {error}") from error
        if not isinstance(line, dict):
            raise BadAnswer(self._url, "a line is no JSON object")
        return cast(Line, line)


class LineReader:
    """The lines of one answer, as they come."""

    def __init__(self, url: str, reading: Reading) -> None:
        self._url = url
        self._reading = reading
        self._decoder = LineDecoder(url)
        self._ready: deque[Line] = deque()

    def next(self) -> Plan[Optional[Line]]:
        """The next line; `None` at the end."""
        while not self._ready:
            piece: bytes = yield Read(self._reading)
            if not piece:
                if self._decoder.is_between_lines:
                    return None
                raise cut_short(self._url)
            self._ready.extend(self._decoder.feed(piece))
        return self._ready.popleft()

    def close(self) -> Plan[None]:
        """Reads no further."""
        yield Close(self._reading)


def cut_short(url: str) -> Unreachable:
    """The answer ended before it was complete."""
    return Unreachable(url, "it went away in the middle of its answer", maybe_done=True)
