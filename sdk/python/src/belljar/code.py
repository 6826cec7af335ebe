"""Code that keeps its state: each run finds what the runs before it defined, in the language's own context or in one that was made."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .code_models import CodeError, CodeEvent, CodeResult, ContextInfo, Execution
from .errors import CodeFailed, refusal
from .lines import Line, cut_short
from .plan import Awaiting, Blocking, Feed, Give, Plan, Verbs, stream, verb
from .quantities import Duration, as_seconds
from .request import Request, asking, at

LONGEST_SILENCE = 60.0


class RunsCode(Verbs):
    """Something in which code runs."""

    _sandbox: str

    def _request(self, code: str, env: Optional[Mapping[str, str]], timeout: Optional[Duration], where: Mapping[str, Any], **more: Any) -> Request:
        body = {"code": code, "env": dict(env or {}), "timeout_seconds": None if timeout is None else as_seconds("timeout", timeout), **where}
        return asking("POST", at("v1", "sandboxes", self._sandbox, "code"), json=body, **more)

    def _run(self, request: Request, check: bool) -> Plan[Execution]:
        execution = yield from self._caller.fetch(request, Execution)
        if check and not execution.ok:
            raise CodeFailed(execution)
        return execution

    def _follow(self, request: Request) -> Feed[CodeEvent]:
        lines = yield from self._caller.lines(request)
        while True:
            line = yield from lines.next()
            if line is None:
                raise cut_short(self._caller.url)
            if line["type"] == "end":
                return
            if line["type"] == "failed":
                raise refusal(line["problem"])
            event = self._event(line)
            if event is not None:
                yield Give(event)

    def _event(self, line: Line) -> Optional[CodeEvent]:
        kind = str(line["type"])
        if kind in ("stdout", "stderr"):
            return CodeEvent(kind, text=str(line["text"]))
        if kind == "result":
            return CodeEvent(kind, result=self._caller.read(CodeResult, line))
        if kind == "error":
            return CodeEvent(kind, error=self._caller.read(CodeError, line))
        if kind == "lost":
            return CodeEvent(kind, text=str(line["message"]))
        return CodeEvent(kind, count=line.get("count")) if kind == "began" else None


class ContextVerbs(RunsCode):
    """What can be done in a context that was made."""

    info: ContextInfo

    @property
    def id(self) -> str:
        """Its name."""
        return self.info.id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, language={self.info.language!r}, sandbox={self._sandbox!r})"

    def _path(self, *more: str) -> str:
        return at("v1", "sandboxes", self._sandbox, "code", "contexts", self.id, *more)

    @verb
    def run(
        self, code: str, *, env: Optional[Mapping[str, str]] = None, timeout: Optional[Duration] = None, check: bool = False,
    ) -> Plan[Execution]:
        """Runs code; it finds what ran here before."""
        return (yield from self._run(self._request(code, env, timeout, {"context": self.id}), check))

    @stream
    def stream(self, code: str, *, env: Optional[Mapping[str, str]] = None, timeout: Optional[Duration] = None) -> Feed[CodeEvent]:
        """The same, as it comes. Whoever reads no further interrupts it."""
        yield from self._follow(self._request(code, env, timeout, {"context": self.id}, silence=LONGEST_SILENCE))

    @verb
    def restart(self) -> Plan[None]:
        """All it remembered is gone."""
        yield from self._caller.done(asking("POST", self._path("restart")))

    @verb
    def interrupt(self) -> Plan[None]:
        """As Ctrl-C does: what runs in it gets an error; what was remembered stays."""
        yield from self._caller.done(asking("POST", self._path("interrupt")))

    @verb
    def remove(self) -> Plan[None]:
        """Removes it; what runs in it ends."""
        yield from self._caller.done(asking("DELETE", self._path()))


class Context(ContextVerbs, Blocking):
    """A context."""

    def __init__(self, owner: Blocking, sandbox: str, info: ContextInfo) -> None:
        self._as(owner)
        self._sandbox, self.info = sandbox, info


class AsyncContext(ContextVerbs, Awaiting):
    """A context."""

    def __init__(self, owner: Awaiting, sandbox: str, info: ContextInfo) -> None:
        self._as(owner)
        self._sandbox, self.info = sandbox, info
