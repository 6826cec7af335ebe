"""Why something was not done. One tree: whoever catches `BelljarError` catches everything, and each leaf is something that one acts on differently.

```text
BelljarError
├── NotConfigured          no key, or an address that is none: nothing was sent
├── Misuse                 an argument that cannot be sent; `field` names it
├── Unreachable            no answer; `maybe_done` says whether the request may have had an effect
├── BadAnswer              what answers is no Belljar server, or of another version
├── CommandFailed          `check=True` and the command failed; `result` has all of it
├── CodeFailed             `check=True` and the code failed; `execution` has all of it
└── Refused                the server said no, in its own words; `code` is stable
    ├── Invalid            a field of the request is wrong; `field` names it
    ├── Unauthorized  Forbidden
    ├── NotFound
    ├── Conflict           not in the present state
    │   ├── Ended          the sandbox is no more
    │   └── Exists
    ├── GuestRefused       the sandbox's own kernel or files said no
    ├── TooLarge  Unsupported
    ├── QuotaExceeded      a quota or a budget is used up
    ├── Busy               nothing was done; come back after `retry_after` seconds
    ├── PortClosed
    └── ServerFault        the server's log has more under `request_id`
```

Which class it is goes by the problem's `code`, then by its status, so that a code that is newer than this package still lands in the right place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional

from .untrusted import escape, last_words

if TYPE_CHECKING:
    from .code_models import Execution
    from .process_models import Result


class BelljarError(Exception):
    """Everything that this package raises."""


class NotConfigured(BelljarError):
    """It is not known which server to ask, or for whom."""


class Misuse(BelljarError, ValueError):
    """An argument that cannot be sent. Nothing was."""

    def __init__(self, field: str, expected: str, got: object) -> None:
        super().__init__(f"{field}: expected {expected}, got {escape(repr(got))}")
        self.field = field


class Unreachable(BelljarError):
    """There was no answer, or only half of one."""

    def __init__(self, url: str, why: str, *, maybe_done: bool) -> None:
        if maybe_done:
            advice = "the request may have had an effect: look before you repeat it"
        else:
            advice = "nothing was done; is the server running, and is BELLJAR_URL its address?"
        super().__init__(f"no answer from {escape(url)}: {escape(why)}; {advice}")
        self.url = url
        self.why = why
        self.maybe_done = maybe_done


class BadAnswer(BelljarError):
    """The answer makes no sense."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__(f"{escape(url)} gave an answer that makes no sense: {escape(detail)}; is it a Belljar server of about this version?")
        self.url = url


class CommandFailed(BelljarError):
    """A command that was checked ended with something else than 0."""

    def __init__(self, result: Result) -> None:
        words = last_words(result.stderr_bytes) or last_words(result.stdout_bytes)
        said = f"; it said last: {words}" if words else ""
        super().__init__(f"the command {result.how_it_ended}{said}")
        self.result = result


class CodeFailed(BelljarError):
    """Code that was checked failed."""

    def __init__(self, execution: Execution) -> None:
        why = execution.error
        what = f"{why.name}: {why.value}" if why else execution.lost or "it did not end"
        super().__init__(f"the code failed: {escape(what[:400])}")
        self.execution = execution


class Refused(BelljarError):
    """The server said no."""

    advice = ""

    def __init__(
        self, code: str, detail: str, *, status: int = 0, field: Optional[str] = None,
        retry_after: Optional[float] = None, request_id: Optional[str] = None,
    ) -> None:
        self.code = code
        self.detail = detail
        self.status = status
        self.field = field
        self.retry_after = retry_after
        self.request_id = request_id
        super().__init__(self._words())

    def _words(self) -> str:
        advice = self.advice.format(retry_after=f"{self.retry_after:g} s" if self.retry_after else "a moment")
        request = f" (request {escape(self.request_id)})" if self.request_id else ""
        return escape(self.detail) + (f"; {advice}" if advice else "") + request


class Invalid(Refused):
    """The request is wrong; nothing was changed."""


class Unauthorized(Refused):
    """No key, or one that is not valid here."""

    advice = 'on the server\'s machine, run: eval "$(belljar env)"'


class Forbidden(Refused):
    """The key lacks a scope."""

    advice = "use a key with that scope, or have one made with `belljar key add`"


class NotFound(Refused):
    """Not there, for this project."""


class Conflict(Refused):
    """Not in the present state."""


class Ended(Conflict):
    """The sandbox is no more."""

    advice = "make another one; a longer lease keeps one alive"


class Exists(Conflict):
    """It is there already."""


class GuestRefused(Refused):
    """The sandbox's own kernel or files said no."""


class TooLarge(Refused):
    """The body, or what is asked for, is too large."""


class Unsupported(Refused):
    """This host, template or class cannot do that."""


class QuotaExceeded(Refused):
    """A quota or a budget is used up."""

    advice = "end what is not needed, or have the limit raised"


class Busy(Refused):
    """Nothing was done; the same request may be answered later."""

    advice = "nothing was done; try again in {retry_after}"


class PortClosed(Refused):
    """Nothing listens on that port, or it does not speak HTTP."""


class ServerFault(Refused):
    """A fault on the server's side."""

    advice = "the server's log has more"


_BY_CODE: Mapping[str, type[Refused]] = {
    "sandbox_ended": Ended,
    "exists": Exists,
    "guest_refused": GuestRefused,
    "busy": Busy,
    "stopping": Busy,
    "starting": Busy,
    "rate_limited": Busy,
    "engine_unavailable": Busy,
    "audit_unavailable": Busy,
    "store_full": ServerFault,
    "blobs_full": ServerFault,
    "quota_exceeded": QuotaExceeded,
    "budget_exceeded": QuotaExceeded,
}

_BY_STATUS: Mapping[int, type[Refused]] = {
    400: Invalid, 401: Unauthorized, 403: Forbidden, 404: NotFound, 408: Busy, 409: Conflict, 413: TooLarge, 416: Invalid, 422: Unsupported,
    429: QuotaExceeded, 502: PortClosed,
}


def refusal(problem: Mapping[str, Any], retry_after: Optional[float] = None) -> Refused:
    """What a problem of the server's becomes."""
    status, code = problem.get("status"), problem.get("code")
    status = status if isinstance(status, int) else 0
    code = code if isinstance(code, str) else "unknown"
    wait = problem.get("retry_after")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (Invalid if 400 <= status < 500 else ServerFault)
    return kind(
        code, _text(problem.get("detail")) or f"the server refused with {status}", status=status, field=_text(problem.get("field")),
        retry_after=float(wait) if isinstance(wait, (int, float)) else retry_after, request_id=_text(problem.get("request_id")),
    )


def _text(value: object) -> Optional[str]:
    return value if isinstance(value, str) else None
