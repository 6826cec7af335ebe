"""How every request is made: sent, repeated where that is safe, and its answer or refusal read. Everything that has verbs asks through one `Caller`."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional, TypeVar, cast

from .errors import BadAnswer, BelljarError, Busy, Refused, ServerFault, Unreachable, refusal
from .lines import LineReader
from .model import Model
from .patience import Patience, may_repeat
from .plan import Feed, Give, Open, Plan, Reading, Send, Sleep
from .request import LINES, Answer, Query, Request, asking
from .settings import Settings

M = TypeVar("M", bound=Model)


class Caller:
    """Asks one server for one key."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Until the server has answered once, its address is as likely to be wrong as the server is to come back: then nobody waits.
        self._has_answered = False

    @property
    def url(self) -> str:
        """The server's address."""
        return self.settings.url

    def patience(self) -> Patience:
        """For something that goes on over several requests."""
        return Patience(self.settings.patience)

    def once(self, request: Request) -> Plan[Answer]:
        """Sends it once; a refusal is an error."""
        answer: Answer = yield Send(request)
        self._has_answered = True
        if not answer.is_yes:
            raise self.refused(answer)
        return answer

    def ask(self, request: Request) -> Plan[Answer]:
        """Sends it, and again where that is safe and may help."""
        patience = self.patience()
        while True:
            try:
                return (yield from self.once(request))
            except BelljarError as error:
                yield from self.bear(patience, request, error)

    def bear(self, patience: Patience, request: Request, error: BelljarError) -> Plan[None]:
        """Waits until it is time to try again; raises the error if that is no use."""
        if not may_repeat(request, error) or (isinstance(error, Unreachable) and not self._has_answered):
            raise error
        yield Sleep(patience.bear(error))

    def open_once(self, request: Request) -> Plan[Reading]:
        """Sends it once, and leaves the body to be read."""
        opened = yield Open(request)
        self._has_answered = True
        if isinstance(opened, Answer):
            raise self.refused(opened)
        reading: Reading = opened
        return reading

    def open(self, request: Request) -> Plan[Reading]:
        """Sends it, and again where that is safe, and leaves the body to be read."""
        patience = self.patience()
        while True:
            try:
                return (yield from self.open_once(request))
            except BelljarError as error:
                yield from self.bear(patience, request, error)

    def lines(self, request: Request) -> Plan[LineReader]:
        """Sends it, and gives the answer's lines."""
        reading = yield from self.open(in_lines(request))
        return LineReader(self.url, reading)

    def lines_once(self, request: Request) -> Plan[LineReader]:
        """The same without another attempt."""
        reading = yield from self.open_once(in_lines(request))
        return LineReader(self.url, reading)

    def json(self, request: Request) -> Plan[Any]:
        """The answer as JSON."""
        answer = yield from self.ask(request)
        try:
            return answer.json()
        except ValueError as error:
            raise BadAnswer(self.url, f"it is no JSON: {error}") from error

    def fetch(self, request: Request, kind: type[M]) -> Plan[M]:
        """The answer as one thing."""
        data = yield from self.json(request)
        return self.read(kind, data)

    def fetch_all(self, request: Request, kind: type[M], name: str) -> Plan[list[M]]:
        """The answer as the list of things that it has under this name."""
        data = yield from self.json(request)
        return [self.read(kind, item) for item in self._items(data, name)]

    def _items(self, data: Any, name: str) -> list[Any]:
        items: Any = cast("dict[str, Any]", data).get(name) if isinstance(data, dict) else None
        if not isinstance(items, list):
            raise BadAnswer(self.url, f"it has no list of {name}")
        return list(cast("Iterable[Any]", items))

    def pages(self, path: str, query: Query, kind: type[M], name: str) -> Feed[M]:
        """A long list, page by page."""
        cursor: Optional[str] = None
        while True:
            data = yield from self.json(asking("GET", path, query={**query, "cursor": cursor}))
            for item in self._items(data, name):
                yield Give(self.read(kind, item))
            cursor = data.get("next_cursor")
            if not cursor:
                return

    def done(self, request: Request) -> Plan[None]:
        """The answer has nothing in it that matters."""
        yield from self.ask(request)

    def read(self, kind: type[M], data: Any) -> M:
        """One thing from JSON."""
        try:
            return kind.from_json(data)
        except (TypeError, ValueError, KeyError) as error:
            raise BadAnswer(self.url, str(error)) from error

    def refused(self, answer: Answer) -> BelljarError:
        """What a refusal says."""
        retry_after = _seconds(answer.headers.get("retry-after"))
        try:
            body = answer.json()
        except ValueError:
            body = None
        if isinstance(body, dict) and "code" in body:
            return refusal(cast("Mapping[str, Any]", body), retry_after)
        if answer.status in (502, 503, 504):
            words = f"something between here and the server answered {answer.status}"
            kind: type[Refused] = Busy if retry_after and answer.status == 503 else ServerFault
            return kind("gateway", words, status=answer.status, retry_after=retry_after)
        return BadAnswer(self.url, f"{answer.status}, without a problem's body")


def in_lines(request: Request) -> Request:
    """The same request, answered in lines."""
    return Request(
        request.method, request.path, request.query, {**request.headers, "accept": LINES}, request.body, request.repeatable, request.silence,
    )


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return float(text) if text else None
    except ValueError:
        return None
