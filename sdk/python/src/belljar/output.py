"""A process's output, whole and once, whatever happens to the connection: every reading begins at the byte where the last one ended. What was given before is not
given twice, and what is no longer kept is told as a gap and never left out in silence.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from typing import Optional

from .asking import Caller
from .errors import BadAnswer, BelljarError, refusal
from .lines import Line, LineReader, cut_short
from .plan import Feed, Give
from .process_models import Event, Exit, Gap, Omitted, Output
from .request import Request, asking, at

# The server says something every 15 s, if only that it is there.
LONGEST_SILENCE = 60.0


class Position:
    """How far both streams were read."""

    def __init__(self, stdout: int = 0, stderr: int = 0) -> None:
        self.next = {"stdout": stdout, "stderr": stderr}

    def take(self, event: Event) -> Optional[Event]:
        """Moves on over an event; gives what of it is new."""
        if isinstance(event, Exit):
            return event
        known = self.next[event.stream]
        if event.end <= known:
            return None
        self.next[event.stream] = event.end
        if isinstance(event, Gap):
            return replace(event, start=known)
        if event.offset < known:
            return replace(event, offset=known, data=event.data[known - event.offset :])
        return event


def event_of(line: Line, url: str) -> Optional[Event]:
    """What a line tells of the output; `None` if nothing."""
    kind = line.get("type")
    try:
        if kind == "data":
            text = line.get("text")
            data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else base64.b64decode(line.get("base64") or "", validate=True)
            return Output(_stream(line), int(line["offset"]), data)
        if kind == "gap":
            return Gap(_stream(line), int(line["from"]), int(line["to"]))
        if kind == "exit":
            exit = Exit.from_json({name: line.get(name) for name in ("exit_code", "signal", "cause")})
            if exit.exit_code is None and exit.signal is None:
                raise ValueError("an end with neither code nor signal")
            return exit
        if kind == "error":
            raise refusal(line["problem"])
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise BadAnswer(url, f"a line of output makes no sense: {error}") from error
    return None


def _stream(line: Line) -> str:
    stream = line["stream"]
    if stream not in ("stdout", "stderr"):
        raise ValueError("a stream of another name")
    return str(stream)


def reading_from(sandbox: str, process: str, position: Position) -> Request:
    """Asks for the output from here on."""
    path = at("v1", "sandboxes", sandbox, "processes", process, "output")
    return asking("GET", path, query=dict(position.next), silence=LONGEST_SILENCE)


def follow(caller: Caller, sandbox: str, process: str, position: Position, begun: Optional[LineReader] = None) -> Feed[Event]:
    """The output from this position on, through lost connections and restarts of the server, to the end of the process. `begun` is a reading that is open."""
    patience, lines = caller.patience(), begun
    while True:
        try:
            if lines is None:
                lines = yield from caller.lines_once(reading_from(sandbox, process, position))
            line = yield from lines.next()
            if line is None:
                raise cut_short(caller.url)
            patience.answered()
            event = event_of(line, caller.url)
        except BelljarError as error:
            if lines is not None:
                yield from lines.close()
                lines = None
            yield from caller.bear(patience, reading_from(sandbox, process, position), error)
            continue
        event = None if event is None else position.take(event)
        if event is not None:
            yield Give(event)
        if isinstance(event, Exit):
            yield from lines.close()
            return


class Gathered:
    """What one stream wrote, up to so many bytes: of more, the first and the last half. Memory does not grow with what comes."""

    def __init__(self, most: int) -> None:
        self._first = most - most // 2
        self._last = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._begin: Optional[int] = None
        self._seen = 0
        self._lost: Optional[Omitted] = None

    def take(self, event: Event) -> None:
        """One more piece, or a gap."""
        if isinstance(event, Exit):
            return
        if self._begin is None:
            self._begin = event.start if isinstance(event, Gap) else event.offset
        self._seen = event.end
        if isinstance(event, Gap):
            # What follows cannot stand right behind what came before: all after the first half is missing up to here.
            self._tail.clear()
            self._lose()
            return
        data = event.data
        if self._lost is None and not self._tail:
            room = self._first - len(self._head)
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._last + 65536:
            self._shorten()

    def finish(self) -> tuple[bytes, Optional[Omitted]]:
        """The bytes, and which are missing between the first and the last."""
        self._shorten()
        return bytes(self._head + self._tail), self._lost

    def _shorten(self) -> None:
        too_many = len(self._tail) - self._last
        if too_many > 0:
            del self._tail[:too_many]
            self._lose()

    def _lose(self) -> None:
        """Everything between the first half and what is kept of the last."""
        self._lost = Omitted((self._begin or 0) + len(self._head), self._seen - len(self._tail))
