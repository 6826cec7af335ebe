"""Text that came out of a sandbox, made fit to be shown. What a program inside wrote may hold terminal escapes and invisible characters that change how a
line looks; data is passed on as it is, but what this package puts into a message or a `repr` is escaped first.
"""

from __future__ import annotations

from typing import Union

MOST_SHOWN = 400


def escape(text: Union[str, bytes]) -> str:
    """The same with every control, invisible and undecodable character written so that it can be seen."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return "".join(character if character.isprintable() and character != "\\" else _written(character) for character in text)


def _written(character: str) -> str:
    return "\\\\" if character == "\\" else repr(character)[1:-1]


def shown(text: Union[str, bytes], most: int = MOST_SHOWN) -> str:
    """For a `repr`: quoted, escaped, and cut where it is long. What is left out is said."""
    if len(text) <= most:
        return repr(text)
    return f"{text[:most]!r}… ({len(text)} in all)"


def last_words(text: bytes, most: int = MOST_SHOWN) -> str:
    """The end of an output, on one line."""
    return escape(text[-most:].decode("utf-8", "replace").strip())
