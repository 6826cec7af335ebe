"""Processes as the server tells them, and what they write."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Mapping, Optional, Union

from .model import Model
from .untrusted import shown


@dataclass(frozen=True)
class Exit(Model):
    """The end of a process: a code, or the number of the signal that ended it."""

    exit_code: Optional[int] = None
    signal: Optional[int] = None
    # `deadline`, `overflow` or `out-of-memory`, if it was ended for that.
    cause: Optional[str] = None

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0

    def __str__(self) -> str:
        how = f"exited with {self.exit_code}" if self.exit_code is not None else f"was ended by signal {self.signal}"
        return how + (f" ({self.cause})" if self.cause else "")


@dataclass(frozen=True)
class Output:
    """A piece of what a process wrote, and where it belongs. Whatever it says, it is data."""

    stream: str
    offset: int
    data: bytes

    @property
    def text(self) -> str:
        """As text; no character is cut in two by the server, and what is none is replaced."""
        return self.data.decode("utf-8", "replace")

    @property
    def end(self) -> int:
        """Where the next piece of the stream begins."""
        return self.offset + len(self.data)

    def __repr__(self) -> str:
        return f"Output(stream={self.stream!r}, offset={self.offset}, data={shown(self.data)})"


@dataclass(frozen=True)
class Gap:
    """Bytes that are no longer kept: from `start` up to `end`."""

    stream: str
    start: int
    end: int


Event = Union[Output, Gap, Exit]


@dataclass(frozen=True)
class Written(Model):
    """How much a process wrote; of a terminal, everything is `stdout`."""

    stdout: int
    stderr: int


@dataclass(frozen=True)
class ProcessInfo(Model):
    """A process."""

    id: str
    pid: int
    argv: list[str]
    user: str
    pty: bool
    started_at: datetime
    state: str
    written: Written
    stdin_offset: int
    tag: Optional[str] = None
    exit: Optional[Exit] = None


@dataclass(frozen=True)
class Omitted(Model):
    """Bytes that were left out. JSON's `from` is `start` here and `to` is `end`."""

    start: int
    end: int

    @classmethod
    def from_json(cls, data: Any) -> Omitted:
        return cls(start=data["from"], end=data["to"])


@dataclass(frozen=True)
class Cleaning(Model):
    """What was done to a stream to make it fit to be read."""

    bytes: int
    escapes: int
    masked: int
    invalid: int


@dataclass(frozen=True)
class Result:
    """A command that ended, and what it wrote."""

    exit: Exit
    stdout_bytes: bytes
    stderr_bytes: bytes
    stdout_omitted: Optional[Omitted] = None
    stderr_omitted: Optional[Omitted] = None
    stdout_cleaning: Optional[Cleaning] = None
    stderr_cleaning: Optional[Cleaning] = None
    process: str = ""

    @property
    def stdout(self) -> str:
        """Standard output as text; what is none is replaced."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text; what is none is replaced."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def exit_code(self) -> Optional[int]:
        """The code it exited with; `None` if a signal ended it."""
        return self.exit.exit_code

    @property
    def signal(self) -> Optional[int]:
        """The number of the signal that ended it."""
        return self.exit.signal

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.exit.ok

    @property
    def timed_out(self) -> bool:
        """Whether it was ended because its time was over."""
        return self.exit.cause == "deadline"

    @property
    def truncated(self) -> bool:
        """Whether something of its output is missing."""
        return self.stdout_omitted is not None or self.stderr_omitted is not None

    @property
    def how_it_ended(self) -> str:
        """In words."""
        return str(self.exit)

    def __repr__(self) -> str:
        return f"Result({self.exit}, stdout={shown(self.stdout)}, stderr={shown(self.stderr)})"


def omitted(data: Optional[Mapping[str, Any]]) -> Optional[Omitted]:
    """Of an answer."""
    return None if data is None else Omitted.from_json(data)
