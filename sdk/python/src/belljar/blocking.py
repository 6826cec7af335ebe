"""Carries plans out and waits for each step: what `Belljar` and everything below it runs on. Nothing here knows what is asked."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, BinaryIO, Iterator, Optional, TypeVar, Union

import httpx

from .errors import BadAnswer
from .plan import Alarm, Aside, Close, Doze, Effect, Feed, Give, Open, Plan, Read, Reading, Ready, Send, Sleep
from .request import MOST_OF_AN_ANSWER, Answer, FileBody, OpenBody, Request
from .settings import Settings
from .transport import PIECE, client_options, failure, sent, transport_options

T = TypeVar("T")


class BlockingPerformer:
    """Input and output of one client. Threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # What nobody reads any more and nobody closed. It is closed at the next step: where objects die, locks may be held that closing would wait for.
        self.forsaken: deque[Reading] = deque()
        self._http = httpx.Client(transport=httpx.HTTPTransport(**transport_options(settings)), **client_options(settings))

    def run(self, plan: Plan[T]) -> T:
        """Carries a plan out to its end."""
        held: list[Reading] = []
        try:
            value, error = None, None
            while True:
                try:
                    effect = plan.send(value) if error is None else plan.throw(error)
                except StopIteration as end:
                    done: T = end.value
                    return done
                value, error = None, None
                try:
                    value = self.perform(effect, held)
                except BaseException as raised:
                    error = raised
        finally:
            self.let_go(held)

    open = run

    def stream(self, feed: Feed[T]) -> Stream[T]:
        """Carries a feed out as far as one asks for the next thing."""
        return Stream(self, feed)

    def begin(self, feed: Feed[T]) -> Stream[T]:
        """The same, and what it is about has begun."""
        stream = Stream(self, feed)
        stream.begin()
        return stream

    def alarm(self) -> Alarm:
        """Something that ends a `Doze`."""
        return threading.Event()

    def beside(self, plan: Plan[None]) -> None:
        """Carries a plan out beside everything else, as long as this program runs."""
        threading.Thread(target=self.run, args=(plan,), name="belljar", daemon=True).start()

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    def let_go(self, held: Union[list[Reading], deque[Reading]]) -> None:
        """Closes what is still being read."""
        while held:
            try:
                reading = held.pop()
            except IndexError:
                # Another thread was here first.
                return
            reading.response.close()

    def perform(self, effect: Effect, held: list[Reading]) -> Any:
        """One step."""
        self.let_go(self.forsaken)
        if isinstance(effect, Send):
            return self._whole(self._open(effect.request))
        if isinstance(effect, Open):
            return self._opened(effect.request, held)
        if isinstance(effect, Read):
            return self._read(effect.reading)
        if isinstance(effect, Close):
            if effect.reading in held:
                held.remove(effect.reading)
            return effect.reading.response.close()
        if isinstance(effect, Sleep):
            return time.sleep(effect.seconds)
        if isinstance(effect, Doze):
            effect.alarm.wait(effect.seconds)
            return effect.alarm.clear()
        if isinstance(effect, Aside):
            return self.beside(effect.plan)
        return effect.work()

    def _open(self, request: Request) -> httpx.Response:
        try:
            return self._http.send(sent(self._http, request, _content(request)), stream=True)
        except httpx.HTTPError as error:
            raise failure(self._settings, error, answered=False) from error

    def _opened(self, request: Request, held: list[Reading]) -> Union[Reading, Answer]:
        response = self._open(request)
        if not response.is_success:
            return self._whole(response)
        reading = Reading(response.status_code, dict(response.headers), response, response.iter_raw())
        held.append(reading)
        return reading

    def _whole(self, response: httpx.Response) -> Answer:
        body = bytearray()
        try:
            for piece in response.iter_raw():
                body += piece
                if len(body) > MOST_OF_AN_ANSWER:
                    raise BadAnswer(self._settings.url, f"it has more than {MOST_OF_AN_ANSWER} bytes, and a file of that size is for `download`")
        except httpx.HTTPError as error:
            raise failure(self._settings, error, answered=True) from error
        finally:
            response.close()
        return Answer(response.status_code, dict(response.headers), bytes(body))

    def _read(self, reading: Reading) -> bytes:
        try:
            piece: bytes = next(reading.pieces, b"")
            return piece
        except httpx.HTTPError as error:
            raise failure(self._settings, error, answered=True) from error


def _content(request: Request) -> Union[None, bytes, Iterator[bytes]]:
    if isinstance(request.body, FileBody):
        return _pieces_and_close(request.body.path.open("rb"))
    return _pieces(request.body.file) if isinstance(request.body, OpenBody) else request.body


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield piece


def _pieces_and_close(file: BinaryIO) -> Iterator[bytes]:
    with file:
        yield from _pieces(file)


class Stream(Iterator[T]):
    """Many things, one after the other. Close it, or leave it in a `with`, if you do not read to its end."""

    def __init__(self, performer: BlockingPerformer, feed: Feed[T]) -> None:
        self._performer = performer
        self._feed: Optional[Feed[T]] = feed
        self._held: list[Reading] = []

    def begin(self) -> None:
        """Goes on until what it is about has begun."""
        self._advance()

    def __next__(self) -> T:
        while True:
            given = self._advance()
            if isinstance(given, Give):
                item: T = given.item
                return item

    def _advance(self) -> Union[Give[T], Ready]:
        if self._feed is None:
            raise StopIteration
        value, error = None, None
        try:
            while True:
                effect = self._feed.send(value) if error is None else self._feed.throw(error)
                if isinstance(effect, (Give, Ready)):
                    return effect
                value, error = None, None
                try:
                    value = self._performer.perform(effect, self._held)
                except BaseException as raised:
                    error = raised
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Reads no further."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()
        self._performer.let_go(self._held)

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._performer.forsaken.extend(self._held)
