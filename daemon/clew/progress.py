"""What takes long: how far it is, and how it ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal

from clew.clock import Time
from clew.errors import ClewError

MOST = 20
"""Kinds of work that are remembered; of those that have ended the one that ended first is forgotten first."""

State = Literal["running", "done", "failed"]


@dataclass(slots=True)
class Work:
    """Something that takes long. unit: what is counted, in the plural. of: how many there are, None where nobody knows.

    since, ended: seconds since the epoch, UTC; ended None while it runs. why: it failed, in words.
    """

    name: str
    unit: str
    since: float
    of: int | None = None
    done: int = 0
    state: State = "running"
    ended: float | None = None
    why: str = ""

    def at(self, done: int, of: int | None = None) -> None:
        """Say how far it is, and how many there are where that has changed."""
        self.done = done
        self.of = of if of is not None else self.of

    @property
    def told(self) -> str:
        """How far it is, in words: 1,200 of 5,000 messages."""
        return f"{self.done:,} {self.unit}" if self.of is None else f"{self.done:,} of {self.of:,} {self.unit}"


class Progress:
    """The long work of this process: of each name the newest. Lost with the process, which is where the work was done."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self._works: dict[str, Work] = {}

    @contextmanager
    def of(self, name: str, unit: str, of: int | None = None) -> Iterator[Work]:
        """Work that goes on as long as the block does, and has failed where that raises."""
        work = Work(name, unit, self._time.wall(), of)
        self._works.pop(name, None)
        self._works[name] = work
        self._forget()
        try:
            yield work
        except BaseException as error:
            work.state, work.why = "failed", _reason(error)
            raise
        else:
            work.state = "done"
        finally:
            work.ended = self._time.wall()

    def _forget(self) -> None:
        ended = [each for each in self._works.values() if each.ended is not None]
        for each in sorted(ended, key=lambda each: each.ended or 0)[: max(0, len(self._works) - MOST)]:
            del self._works[each.name]

    def as_values(self) -> dict[str, dict[str, object]]:
        """`works` by name, as plain values."""
        return {each.name: {key: value for key, value in asdict(each).items() if key != "name"} for each in self.works}

    @property
    def works(self) -> list[Work]:
        """What runs first, then the newest first."""
        return sorted(self._works.values(), key=lambda each: (each.state != "running", -each.since))


def _reason(error: BaseException) -> str:
    if isinstance(error, ClewError):
        return error.told
    if isinstance(error, Exception):
        return f"{type(error).__name__}: {error}"
    return "it was stopped"
