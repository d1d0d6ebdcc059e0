"""Durations (`500ms`, `30s`, `10m`, `36h`, `7d`) and sizes (`128KiB`, `2MiB`) as they are written in a config file."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

_DURATION = r"^([0-9]{1,9})(ms|s|m|h|d)$"
_SIZE = r"^([0-9]{1,9})(B|KiB|MiB|GiB)$"


def seconds(value: object, info: ValidationInfo) -> float:
    """Seconds meant by `value`, e.g. `10m` → 600.0. In code, not in a file, a float is seconds already."""
    if isinstance(value, float) and info.mode == "python":
        return value
    found = re.match(_DURATION, value, re.ASCII) if isinstance(value, str) else None
    if not found or value != found[0]:
        raise PydanticCustomError("duration", "must be a duration with its unit, such as 500ms, 30s, 10m, 36h or 7d")
    return int(found[1]) * SECONDS[found[2]]


def octets(value: object) -> int:
    """Bytes meant by `value`, e.g. `2MiB` → 2097152; a whole number is taken as bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = re.match(_SIZE, value, re.ASCII) if isinstance(value, str) else None
    if not found or value != found[0]:
        raise PydanticCustomError("size", "must be a size such as 128KiB or 2MiB")
    return int(found[1]) * BYTES[found[2]]


def duration_text(value: float) -> str:
    """`value` seconds as they are written, in the largest unit that fits, to the millisecond."""
    for unit in ("d", "h", "m", "s"):
        if value and value % SECONDS[unit] == 0:
            return f"{int(value / SECONDS[unit])}{unit}"
    return f"{round(value * 1000)}ms" if value else "0s"


def size_text(value: int) -> str:
    """`value` bytes as they are written, in the largest unit that fits."""
    for unit in ("GiB", "MiB", "KiB"):
        if value and value % BYTES[unit] == 0:
            return f"{value // BYTES[unit]}{unit}"
    return f"{value}B"


type_of_duration = {"type": "string", "pattern": _DURATION, "examples": ["30s", "10m", "36h", "7d"]}
type_of_size = {"anyOf": [{"type": "string", "pattern": _SIZE}, {"type": "integer", "minimum": 0}]}

Duration = Annotated[
    float,
    BeforeValidator(seconds),
    PlainSerializer(duration_text, return_type=str, when_used="json"),
    WithJsonSchema(type_of_duration),
]
"""Seconds as a float; written `500ms`, `30s`, `10m`, `36h`, `7d`."""

Size = Annotated[
    int,
    BeforeValidator(octets),
    PlainSerializer(size_text, return_type=str, when_used="json"),
    WithJsonSchema(type_of_size),
]
"""Bytes as an int; written `128KiB`, `2MiB` or as a plain number."""
