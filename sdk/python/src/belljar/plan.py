"""Everything this package does is written once, as a plan: a generator that says which input and output it needs next, and is given what came of it. Whoever
carries plans out differs: `blocking.py` waits, `awaiting.py` awaits. Neither knows what a sandbox is, and no plan knows which of them it runs on.

```text
            ── Send(request) ─►
   plan                          performer (blocking or awaiting)  ── httpx ─►  server
            ◄─ Answer, or an error thrown ──
```

`@verb` makes of a plan a method that blocks in `Sandbox` and is a coroutine in `AsyncSandbox`; `@stream` the same for what gives many things, one after the
other; `@opening` for what is used in a `with`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Generator, Generic, Protocol, TypeVar, Union, overload

from .request import Request

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    from .asking import Caller
    from .awaiting import AsyncStream, AwaitingPerformer, Opening
    from .blocking import BlockingPerformer, Stream

    P = ParamSpec("P")
else:
    # Python 3.9 has no ParamSpec; when the program runs, any variable does.
    P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Sends a request and reads the answer whole: gives an `Answer`."""

    request: Request


@dataclass(frozen=True)
class Open:
    """Sends a request and leaves the body of a good answer to be read: gives a `Reading`."""

    request: Request


@dataclass(frozen=True)
class Read:
    """The next piece of a body: gives `bytes`, empty at its end."""

    reading: Reading


@dataclass(frozen=True)
class Close:
    """Reads no further."""

    reading: Reading


@dataclass(frozen=True)
class Sleep:
    """Waits."""

    seconds: float


class Alarm(Protocol):
    """What ends a `Doze` early."""

    def set(self) -> None: ...
    def clear(self) -> None: ...


@dataclass(frozen=True)
class Doze:
    """Waits, or until the alarm goes off."""

    seconds: float
    # The performer's own `Alarm`; each is waited for in its own way.
    alarm: Any


@dataclass(frozen=True)
class Aside:
    """Has another plan carried out meanwhile."""

    plan: Plan[None]


@dataclass(frozen=True)
class Local:
    """Work with this machine's files, which may take its time."""

    work: Callable[[], Any]


@dataclass(frozen=True)
class Give(Generic[T]):
    """One of the many things that a stream gives."""

    item: T


@dataclass(frozen=True)
class Ready:
    """What a stream is about has begun."""


@dataclass(eq=False)
class Reading:
    """An answer whose body is being read."""

    status: int
    headers: dict[str, str]
    # The performer's own: the response, and an iterator over its body.
    response: Any
    pieces: Any


Effect = Union[Send, Open, Read, Close, Sleep, Doze, Aside, Local]
Plan = Generator[Effect, Any, T]
Feed = Generator[Union[Effect, "Give[T]", Ready], Any, None]


def each(feed: Feed[T], take: Callable[[T], object]) -> Plan[None]:
    """Carries a feed out within a plan, and hands on what it gives."""
    value, error = None, None
    while True:
        try:
            effect = feed.send(value) if error is None else feed.throw(error)
        except StopIteration:
            return
        value, error = None, None
        if isinstance(effect, Give):
            take(effect.item)
        elif not isinstance(effect, Ready):
            try:
                value = yield effect
            except BaseException as raised:
                error = raised


class Verbs:
    """Whatever has verbs: who asks the server, and how."""

    _caller: Caller


class Blocking(Verbs):
    """Its verbs return when they are done."""

    _performer: BlockingPerformer

    def _as(self, owner: Blocking) -> None:
        # The owner is kept with it: a sandbox is in use as long as one of its files or processes is.
        self._caller, self._performer, self._owner = owner._caller, owner._performer, owner


class Awaiting(Verbs):
    """Its verbs are coroutines."""

    _performer: AwaitingPerformer

    def _as(self, owner: Awaiting) -> None:
        # The owner is kept with it: a sandbox is in use as long as one of its files or processes is.
        self._caller, self._performer, self._owner = owner._caller, owner._performer, owner


class BlockingGroup(Blocking):
    """Verbs that belong together, of whoever owns them."""

    def __init__(self, owner: Blocking) -> None:
        self._as(owner)


class AwaitingGroup(Awaiting):
    """Verbs that belong together, of whoever owns them."""

    def __init__(self, owner: Awaiting) -> None:
        self._as(owner)


class verb(Generic[P, T]):
    """A method from a plan."""

    def __init__(self, plan: Callable[Concatenate[Any, P], Plan[T]]) -> None:
        self.plan = plan
        _name(self, plan)

    @overload
    def __get__(self, instance: None, owner: Any) -> verb[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        return _bound(self.plan, instance, instance._performer.run)


class opening(Generic[P, T]):
    """A method whose result is used in a `with`, or in an `async with` without a further `await`."""

    def __init__(self, plan: Callable[Concatenate[Any, P], Plan[T]]) -> None:
        self.plan = plan
        _name(self, plan)

    @overload
    def __get__(self, instance: None, owner: Any) -> opening[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: Any) -> Callable[P, Opening[T]]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        return _bound(self.plan, instance, instance._performer.open)


class stream(Generic[P, T]):
    """A method that gives many things, read as one asks for the next."""

    def __init__(self, feed: Callable[Concatenate[Any, P], Feed[T]]) -> None:
        self.feed = feed
        _name(self, feed)

    @overload
    def __get__(self, instance: None, owner: Any) -> stream[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, Stream[T]]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: Any) -> Callable[P, AsyncStream[T]]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        return _bound(self.feed, instance, instance._performer.stream)


class watching(Generic[P, T]):
    """A stream that has begun when the method returns: what happens afterwards is in it."""

    def __init__(self, feed: Callable[Concatenate[Any, P], Feed[T]]) -> None:
        self.feed = feed
        _name(self, feed)

    @overload
    def __get__(self, instance: None, owner: Any) -> watching[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, Stream[T]]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: Any) -> Callable[P, Opening[AsyncStream[T]]]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        return _bound(self.feed, instance, instance._performer.begin)


def _name(method: Any, plan: Any) -> None:
    """So that `help` finds its words."""
    functools.update_wrapper(method, plan)


def _bound(plan: Any, instance: Any, carry_out: Callable[[Any], Any]) -> Any:
    def method(*arguments: Any, **named: Any) -> Any:
        return carry_out(plan(instance, *arguments, **named))

    _name(method, plan)
    # The arguments are shown without `self`.
    setattr(method, "__wrapped__", functools.partial(plan, instance))
    return method
