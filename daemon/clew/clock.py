"""Time and ids, handed in as arguments so that tests can set them."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""

ID_LENGTH = 12
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = tuple(map("".join, product(_BASE32, repeat=2)))

UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def new_id() -> str:
    """12 random base32 characters (60 bits): an id that people see and type."""
    bits = secrets.randbits(5 * ID_LENGTH)
    return "".join([_PAIRS[bits >> shift & 1023] for shift in range(0, 5 * ID_LENGTH, 10)])


@dataclass(frozen=True, slots=True)
class Time:
    """The two clocks of a process. `wall` is what is stored; `steady` measures durations and never jumps."""

    wall: Clock = time.time
    steady: Clock = time.monotonic


def span(seconds: float) -> str:
    """A length of time in its two largest units, such as `4 min` or `2 d 3 h`."""
    left = int(seconds)
    counts: list[str] = []
    for size, unit in UNITS:
        count, left = divmod(left, size)
        counts.append(f"{count} {unit}" if count else "")
    first = next((at for at, text in enumerate(counts) if text), None)
    return f"{left} s" if first is None else " ".join(filter(None, counts[first : first + 2]))
