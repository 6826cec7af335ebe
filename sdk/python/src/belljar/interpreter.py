"""The code interpreter of a sandbox: `sandbox.code("python", "1 + 1")`, and the contexts that it has."""

from __future__ import annotations

from typing import Generic, Mapping, Optional, TypeVar

from .code import LONGEST_SILENCE, AsyncContext, Context, RunsCode
from .code_models import CodeEvent, ContextInfo, Execution
from .plan import Awaiting, Blocking, Feed, Plan, stream, verb
from .quantities import Duration
from .request import asking, at

C = TypeVar("C")


class InterpreterVerbs(RunsCode, Generic[C]):
    """What can be done with code, besides contexts of one's own."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sandbox={self._sandbox!r})"

    def _context(self, info: ContextInfo) -> C:
        raise NotImplementedError

    @verb
    def __call__(
        self, language: str, code: str, *, env: Optional[Mapping[str, str]] = None, timeout: Optional[Duration] = None, check: bool = False,
    ) -> Plan[Execution]:
        """Runs code in the language's own context, which every sandbox has; it finds what ran there before."""
        return (yield from self._run(self._request(code, env, timeout, {"language": language}), check))

    @stream
    def stream(
        self, language: str, code: str, *, env: Optional[Mapping[str, str]] = None, timeout: Optional[Duration] = None,
    ) -> Feed[CodeEvent]:
        """The same, as it comes. Whoever reads no further interrupts it."""
        yield from self._follow(self._request(code, env, timeout, {"language": language}, silence=LONGEST_SILENCE))

    @verb
    def context(self, language: str = "python", *, cwd: Optional[str] = None) -> Plan[C]:
        """Makes a context of its own, which knows nothing of the others' variables."""
        path = at("v1", "sandboxes", self._sandbox, "code", "contexts")
        info = yield from self._caller.fetch(asking("POST", path, json={"language": language, "cwd": cwd}), ContextInfo)
        return self._context(info)

    @verb
    def contexts(self) -> Plan[list[C]]:
        """All contexts, oldest first."""
        path = at("v1", "sandboxes", self._sandbox, "code", "contexts")
        infos = yield from self._caller.fetch_all(asking("GET", path), ContextInfo, "contexts")
        return [self._context(info) for info in infos]


class Interpreter(InterpreterVerbs[Context], Blocking):
    """Runs code in a sandbox."""

    def __init__(self, owner: Blocking, sandbox: str) -> None:
        self._as(owner)
        self._sandbox = sandbox

    def _context(self, info: ContextInfo) -> Context:
        return Context(self, self._sandbox, info)


class AsyncInterpreter(InterpreterVerbs[AsyncContext], Awaiting):
    """Runs code in a sandbox."""

    def __init__(self, owner: Awaiting, sandbox: str) -> None:
        self._as(owner)
        self._sandbox = sandbox

    def _context(self, info: ContextInfo) -> AsyncContext:
        return AsyncContext(self, self._sandbox, info)
