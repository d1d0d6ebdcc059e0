"""Columns that may be damaged: one bad row must not keep the others from being read."""

import json
from typing import TypeVar

T = TypeVar("T")


def readable(text: str, instead: T) -> T:
    """What `text` holds, `instead` where that cannot be read or is of another kind."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return instead
    return value if type(value) is type(instead) else instead
