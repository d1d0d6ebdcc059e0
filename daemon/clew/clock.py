"""Time and ids, handed in as arguments so that tests can set them."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""

ID_LENGTH = 12
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_id() -> str:
    """12 random base32 characters (60 bits): an id that people see and type."""
    bits = secrets.randbits(5 * ID_LENGTH)
    return "".join(_ALPHABET[bits >> 5 * place & 31] for place in range(ID_LENGTH))


@dataclass(frozen=True, slots=True)
class Time:
    """The two clocks of a process. `wall` is what is stored; `steady` measures durations and never jumps."""

    wall: Clock = time.time
    steady: Clock = time.monotonic
