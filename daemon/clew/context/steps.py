"""Long work in small steps, so that whoever does it can let others have a turn in between. Pure."""

from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that pauses after each step and returns its result."""


def finish(steps: Steps[T], pause: Callable[[], None] | None = None) -> T:
    """Do all of it. pause: called between steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        if pause is not None:
            pause()
