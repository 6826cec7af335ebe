"""What code in a context gives: text, pictures, tables and errors, in several formats each."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any, Optional

from .model import Model
from .untrusted import shown


@dataclass(frozen=True)
class CodeResult(Model):
    """One thing that code showed, by MIME type: text and pictures as strings (pictures in base64), data as JSON."""

    # Whether it is the value of the last expression, and not merely shown on the way.
    main: bool
    formats: dict[str, Any]

    def _text(self, kind: str) -> Optional[str]:
        value = self.formats.get(kind)
        return value if isinstance(value, str) else None

    def _bytes(self, kind: str) -> Optional[bytes]:
        text = self._text(kind)
        try:
            return None if text is None else base64.b64decode(text)
        except binascii.Error:
            return None

    @property
    def text(self) -> Optional[str]:
        """As plain text."""
        return self._text("text/plain")

    @property
    def html(self) -> Optional[str]:
        """As HTML: a model wrote it, so show it where it can do nothing."""
        return self._text("text/html")

    @property
    def markdown(self) -> Optional[str]:
        """As Markdown."""
        return self._text("text/markdown")

    @property
    def svg(self) -> Optional[str]:
        """As a drawing."""
        return self._text("image/svg+xml")

    @property
    def png(self) -> Optional[bytes]:
        """As a picture."""
        return self._bytes("image/png")

    @property
    def jpeg(self) -> Optional[bytes]:
        """As a picture."""
        return self._bytes("image/jpeg")

    @property
    def pdf(self) -> Optional[bytes]:
        """As a page."""
        return self._bytes("application/pdf")

    @property
    def json(self) -> Any:
        """As data."""
        return self.formats.get("application/json")

    @property
    def table(self) -> Any:
        """A data frame as columns."""
        return self.formats.get("application/vnd.belljar.data+json")

    @property
    def chart(self) -> Any:
        """The numbers behind a figure."""
        return self.formats.get("application/vnd.belljar.chart+json")

    def __repr__(self) -> str:
        text = "" if self.text is None else f", text={shown(self.text)}"
        return f"CodeResult(main={self.main}, formats={sorted(self.formats)!r:.400}{text})"


@dataclass(frozen=True)
class CodeError(Model):
    """How code failed."""

    name: str
    value: str
    traceback: list[str] = field(default_factory=list[str])

    def __repr__(self) -> str:
        return f"CodeError(name={shown(self.name)}, value={shown(self.value)})"


@dataclass(frozen=True)
class Execution(Model):
    """What running code gave."""

    stdout: str
    stderr: str
    results: list[CodeResult]
    count: Optional[int] = None
    error: Optional[CodeError] = None
    # The kernel died, and with it what the context remembered; in words.
    lost: Optional[str] = None
    # Something was left out, because all together was too much for one answer; a stream leaves nothing out.
    truncated: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ran to its end."""
        return self.error is None and self.lost is None

    @property
    def main(self) -> Optional[CodeResult]:
        """The value of the last expression."""
        return next((each for each in self.results if each.main), None)

    @property
    def text(self) -> Optional[str]:
        """That value as text."""
        return None if self.main is None else self.main.text

    @property
    def pictures(self) -> list[bytes]:
        """Every picture among the results."""
        return [picture for each in self.results for picture in (each.png or each.jpeg,) if picture is not None]

    def __repr__(self) -> str:
        how = "" if self.ok else f", error={self.error!r}" if self.error else f", lost={shown(self.lost or '')}"
        return f"Execution(text={shown(self.text or '')}, stdout={shown(self.stdout)}, results={len(self.results)}{how})"


@dataclass(frozen=True)
class CodeEvent(Model):
    """What code gives as it comes: `began`, `stdout`, `stderr`, `result`, `error` or `lost`, with what belongs to it."""

    type: str
    text: str = ""
    count: Optional[int] = None
    result: Optional[CodeResult] = None
    error: Optional[CodeError] = None

    def __repr__(self) -> str:
        belongs = f", {self.result!r}" if self.result else f", {self.error!r}" if self.error else f", text={shown(self.text)}" if self.text else ""
        return f"CodeEvent({self.type!r}{belongs})"


@dataclass(frozen=True)
class ContextInfo(Model):
    """A context: a language, a directory, and everything that was run in it."""

    id: str
    language: str
    cwd: str
