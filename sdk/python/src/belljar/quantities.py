"""Sizes, times and numbers of cores as people write them: `"2GiB"`, `"90s"`, `0.5`. The units are those of the command line, so that what works there works
here; bare numbers are bytes and seconds.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Optional, Union

from .errors import Misuse

Size = Union[int, str]
Duration = Union[float, str, timedelta]

_SIZES = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
for _power, _letter in enumerate("KMGT", 1):
    _SIZES[_letter] = _SIZES[_letter.lower()] = _SIZES[f"{_letter}iB"] = 1024**_power
_TIMES = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def as_bytes(field: str, size: Size) -> int:
    """Bytes."""
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    match = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    if match is None or match[2] not in _SIZES:
        raise Misuse(field, 'bytes, as in 1000000, "512MiB" or "2GiB"', size)
    factor = _SIZES[match[2]]
    return int(match[1]) * factor if match[1].isdigit() else int(float(match[1]) * factor)


def as_seconds(field: str, time: Duration) -> float:
    """Seconds."""
    if isinstance(time, timedelta):
        time = time.total_seconds()
    if isinstance(time, (int, float)) and not isinstance(time, bool) and 0 <= time < float("inf"):
        return float(time)
    seconds = _sum_of_parts(time.strip()) if isinstance(time, str) else None
    if seconds is None:
        raise Misuse(field, 'a time, as in 90, "90s", "5m", "1.5h" or "7d"', time)
    return seconds


def _sum_of_parts(text: str) -> Optional[float]:
    """Numbers that each have a unit, the larger units first; or one number without."""
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    seconds, at, larger = 0.0, 0, float("inf")
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or _TIMES[part[2]] >= larger:
            return None
        larger = _TIMES[part[2]]
        seconds, at = seconds + float(part[1]) * larger, part.end()
    return seconds if at else None


def whole_seconds(field: str, time: Duration) -> int:
    """Seconds, rounded up: what is asked for is not cut short."""
    seconds = as_seconds(field, time)
    return int(seconds) + (seconds > int(seconds))


def as_millis(field: str, cores: Union[int, float, str]) -> int:
    """Thousandths of a core."""
    try:
        millis = round(float(cores) * 1000)
    except (TypeError, ValueError, OverflowError):
        millis = 0
    if millis <= 0:
        raise Misuse(field, "a number of cores, as in 1, 0.5 or 2.25", cores)
    return millis
