"""Carries plans out and awaits each step: what `AsyncBelljar` and everything below it runs on, in asyncio. Nothing here knows what is asked."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, AsyncIterator, BinaryIO, Coroutine, Generator, Optional, TypeVar, Union

import httpx

from .errors import BadAnswer
from .plan import Alarm, Aside, Close, Doze, Effect, Feed, Give, Open, Plan, Read, Reading, Ready, Send, Sleep
from .request import MOST_OF_AN_ANSWER, Answer, FileBody, OpenBody, Request
from .settings import Settings
from .transport import PIECE, client_options, failure, sent, transport_options

T = TypeVar("T")


class AwaitingPerformer:
    """Input and output of one client, in one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # What nobody reads any more and nobody closed: where objects die, nothing can be awaited. It is closed at the next step.
        self.forsaken: deque[Reading] = deque()
        self._http = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(**transport_options(settings)), **client_options(settings))
        self._beside: set[asyncio.Task[None]] = set()

    async def run(self, plan: Plan[T]) -> T:
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
                    value = await self.perform(effect, held)
                except BaseException as raised:
                    error = raised
        finally:
            await self.let_go(held)

    def open(self, plan: Plan[T]) -> Opening[T]:
        """The same, for an `async with`."""
        return Opening(self.run(plan))

    def stream(self, feed: Feed[T]) -> AsyncStream[T]:
        """Carries a feed out as far as one asks for the next thing."""
        return AsyncStream(self, feed)

    def begin(self, feed: Feed[T]) -> Opening[AsyncStream[T]]:
        """The same, and what it is about has begun."""
        return Opening(AsyncStream(self, feed).begin())

    def alarm(self) -> Alarm:
        """Something that ends a `Doze`."""
        return asyncio.Event()

    def beside(self, plan: Plan[None]) -> None:
        """Carries a plan out beside everything else, as long as the loop runs."""
        task = asyncio.get_running_loop().create_task(self.run(plan))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self) -> None:
        """Ends what goes on beside, and closes its connections."""
        for task in list(self._beside):
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        await self._http.aclose()

    async def let_go(self, held: Union[list[Reading], deque[Reading]]) -> None:
        """Closes what is still being read."""
        while held:
            await held.pop().response.aclose()

    async def perform(self, effect: Effect, held: list[Reading]) -> Any:
        """One step."""
        await self.let_go(self.forsaken)
        if isinstance(effect, Send):
            return await self._whole(await self._open(effect.request))
        if isinstance(effect, Open):
            return await self._opened(effect.request, held)
        if isinstance(effect, Read):
            return await self._read(effect.reading)
        if isinstance(effect, Close):
            if effect.reading in held:
                held.remove(effect.reading)
            return await effect.reading.response.aclose()
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, Doze):
            return await _doze(effect)
        if isinstance(effect, Aside):
            return self.beside(effect.plan)
        return await asyncio.to_thread(effect.work)

    async def _open(self, request: Request) -> httpx.Response:
        try:
            return await self._http.send(sent(self._http, request, _content(request)), stream=True)
        except httpx.HTTPError as error:
            raise failure(self._settings, error, answered=False) from error

    async def _opened(self, request: Request, held: list[Reading]) -> Union[Reading, Answer]:
        response = await self._open(request)
        if not response.is_success:
            return await self._whole(response)
        reading = Reading(response.status_code, dict(response.headers), response, response.aiter_raw())
        held.append(reading)
        return reading

    async def _whole(self, response: httpx.Response) -> Answer:
        body = bytearray()
        try:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MOST_OF_AN_ANSWER:
                    raise BadAnswer(self._settings.url, f"it has more than {MOST_OF_AN_ANSWER} bytes, and a file of that size is for `download`")
        except httpx.HTTPError as error:
            raise failure(self._settings, error, answered=True) from error
        finally:
            await response.aclose()
        return Answer(response.status_code, dict(response.headers), bytes(body))

    async def _read(self, reading: Reading) -> bytes:
        try:
            piece: bytes = await reading.pieces.__anext__()
            return piece
        except StopAsyncIteration:
            return b""
        except httpx.HTTPError as error:
            raise failure(self._settings, error, answered=True) from error


async def _doze(doze: Doze) -> None:
    try:
        await asyncio.wait_for(doze.alarm.wait(), doze.seconds)
    except asyncio.TimeoutError:
        pass
    doze.alarm.clear()


def _content(request: Request) -> Union[None, bytes, AsyncIterator[bytes]]:
    if isinstance(request.body, FileBody):
        return _pieces_and_close(request.body.path.open("rb"))
    return _pieces(request.body.file) if isinstance(request.body, OpenBody) else request.body


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, PIECE):
        yield piece


async def _pieces_and_close(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        async for piece in _pieces(file):
            yield piece


class Opening(Coroutine[Any, Any, T]):
    """Something that is being made: `await` it, or use it at once in an `async with`."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._made: Any = None

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    async def __aenter__(self) -> T:
        self._made = await self._coroutine
        entered: T = await self._made.__aenter__()
        return entered

    async def __aexit__(self, *error: Any) -> None:
        await self._made.__aexit__(*error)


class AsyncStream(AsyncIterator[T]):
    """Many things, one after the other. Close it, or leave it in an `async with`, if you do not read to its end."""

    def __init__(self, performer: AwaitingPerformer, feed: Feed[T]) -> None:
        self._performer = performer
        self._feed: Optional[Feed[T]] = feed
        self._held: list[Reading] = []

    async def begin(self) -> AsyncStream[T]:
        """Goes on until what it is about has begun."""
        await self._advance()
        return self

    async def __anext__(self) -> T:
        while True:
            given = await self._advance()
            if isinstance(given, Give):
                item: T = given.item
                return item

    async def _advance(self) -> Union[Give[T], Ready]:
        if self._feed is None:
            raise StopAsyncIteration
        value, error = None, None
        try:
            while True:
                try:
                    effect = self._feed.send(value) if error is None else self._feed.throw(error)
                except StopIteration:
                    raise StopAsyncIteration from None
                if isinstance(effect, (Give, Ready)):
                    return effect
                value, error = None, None
                try:
                    value = await self._performer.perform(effect, self._held)
                except BaseException as raised:
                    error = raised
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Reads no further."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()
        await self._performer.let_go(self._held)

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._performer.forsaken.extend(self._held)
