"""What the server tells, as typed things. Each is a frozen dataclass with the names of the API; what a newer server adds is left out, what an older one lacks
takes its default, and what must be there and is not is an error that names it.
"""

from __future__ import annotations

import dataclasses
import functools
from datetime import datetime, timezone
from typing import Any, Callable, TypeVar, Union, get_args, get_origin, get_type_hints

M = TypeVar("M", bound="Model")


class Model:
    """One thing as the server tells it."""

    @classmethod
    def from_json(cls: type[M], data: Any) -> M:
        """Reads it; `ValueError` names what is wrong."""
        if not isinstance(data, dict):
            raise ValueError(f"{cls.__name__} is not an object")
        values: dict[str, Any] = {}
        kind: Any = cls
        for name, is_required, read in _readers(kind):
            if name in data:
                values[name] = read(data[name])
            elif is_required:
                raise ValueError(f"{cls.__name__} has no {name}")
        return cls(**values)


@functools.lru_cache(maxsize=None)
def _readers(cls: Any) -> list[tuple[str, bool, Callable[[Any], Any]]]:
    hints = get_type_hints(cls)
    missing = dataclasses.MISSING
    return [
        (each.name, each.default is missing and each.default_factory is missing, _reader(hints[each.name], f"{cls.__name__}.{each.name}"))
        for each in dataclasses.fields(cls) if each.init
    ]


def _reader(hint: Any, where: str) -> Callable[[Any], Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Union:
        (inner,) = [each for each in arguments if each is not type(None)]
        read = _reader(inner, where)
        return lambda value: None if value is None else read(value)
    if origin is list:
        read = _reader(arguments[0], where)
        return lambda value: [read(each) for each in _is(list, value, where)]
    if origin is dict:
        read = _reader(arguments[1], where)
        return lambda value: {name: read(each) for name, each in _is(dict, value, where).items()}
    if hint is Any:
        return lambda value: value
    if hint is datetime:
        return lambda value: moment(_is(str, value, where))
    if hint is float:
        return lambda value: float(_is((int, float), value, where))
    if isinstance(hint, type) and issubclass(hint, Model):
        return hint.from_json
    return lambda value: _is(hint, value, where)


def _is(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{where} is of another kind")
    return value


def moment(text: str) -> datetime:
    """A time as RFC 3339 writes it, to the microsecond."""
    text = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    if "." in text:
        whole, rest = text.split(".", 1)
        digits = len(rest) - len(rest.lstrip("0123456789"))
        text = f"{whole}.{rest[:digits][:6]:0<6}{rest[digits:]}"
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)
