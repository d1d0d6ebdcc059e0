"""The newest lines of the log, kept in memory for whoever looks on. They come redacted: they are what stands on stderr."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

LINES = 2000
CHARACTERS = 2 * 2**20
"""What is kept: so many lines, or as many as have these characters together."""
LONGEST = 4000
"""Characters of one value; a traceback is the longest."""
MOST_VALUES = 40
"""Values of one line."""

Level = Literal["debug", "info", "warning", "error", "critical"]
LEVELS: tuple[Level, ...] = get_args(Level)
_OWN = ("event", "level", "ts", "logger")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log. number: counts from 1 as long as the process lives. at: ISO 8601, UTC. values: its other fields, as text."""

    number: int
    at: str
    level: str
    event: str
    logger: str
    values: tuple[tuple[str, str], ...]

    def value(self, name: str) -> str:
        """A field's text, empty where it has none of that name."""
        return next((text for key, text in self.values if key == name), "")

    @property
    def size(self) -> int:
        """Its characters."""
        return sum(len(key) + len(text) for key, text in (("", self.event), ("", self.logger), *self.values))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines are looked for. level: this one and graver ones. event: stands in the event's name. session: how its id begins.

    after: lines with a higher number; before: with a lower one, 0 for no bound.
    """

    level: Level = "debug"
    event: str = ""
    session: str = ""
    after: int = 0
    before: int = 0

    def has(self, line: Line) -> bool:
        graver = LEVELS.index(line.level) >= LEVELS.index(self.level) if line.level in LEVELS else True
        return graver and self.event.lower() in line.event.lower() and line.value("session").startswith(self.session)


class Ring:
    """Keeps the newest lines. Written under the lock of the log's handler, from any thread."""

    def __init__(self) -> None:
        self.newest = 0
        """The number of the newest line, 0 before the first."""
        self._lines: deque[Line] = deque()
        self._size = 0

    def keep(self, event: Mapping[str, Any]) -> None:
        """Take a line in, as it is about to be written; the oldest go where it has no room."""
        rest = ((key, value) for key, value in event.items() if key not in _OWN)
        values = tuple((_text(key), _text(value)) for key, value in islice(rest, MOST_VALUES))
        name, level, at, logger = (_text(event.get(key, "")) for key in _OWN)
        self.newest += 1
        line = Line(self.newest, at, level, name, logger, values)
        self._lines.append(line)
        self._size += line.size
        while len(self._lines) > LINES or self._size > CHARACTERS:
            self._size -= self._lines.popleft().size

    def lines(self, wanted: Wanted, limit: int) -> list[Line]:
        """The newest lines that are wanted, the newest first."""
        return list(islice(self._found(wanted), limit))

    def _found(self, wanted: Wanted) -> Iterator[Line]:
        for line in reversed(self._copied()):
            if line.number <= wanted.after:
                return
            if (not wanted.before or line.number < wanted.before) and wanted.has(line):
                yield line

    def _copied(self) -> tuple[Line, ...]:
        while True:
            try:
                return tuple(self._lines)
            except RuntimeError:  # another thread logged in between
                continue


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


recent = Ring()
"""Of this process."""
