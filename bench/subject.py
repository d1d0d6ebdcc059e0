"""What a file of the bench measures, and what it is given to do so."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from bench.seeding import Stores


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of what is measured.

    messages: in one person's thread; chats: that are talked in; turns: of each measurement of replies; seconds: that a load lasts;
    arrivals: messages that are accepted; found: messages of the stores in which is searched; questions: that are asked of each; many:
    turns after which memory is read; days: of made-up chat, by its seed.
    """

    messages: tuple[int, ...] = (0, 100, 10_000, 100_000, 1_000_000)
    chats: tuple[int, ...] = (1, 10, 100, 1_000)
    turns: int = 300
    seconds: float = 10.0
    arrivals: int = 4_000
    found: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    questions: int = 100
    many: int = 5_000
    days: int = 14
    seed: int = 1


SMALL = Sizes((0, 100, 2_000), (1, 10), 40, 3.0, 400, (2_000, 10_000), 30, 200, 2)
"""To see that everything works, in a few minutes."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the bench. folder: for what it needs, removed at the end."""

    folder: Path
    sizes: Sizes
    stores: Stores

    def made(self, name: str) -> Path:
        """A folder of its own for a measurement."""
        path = self.folder / name
        path.mkdir(parents=True)
        return path


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of the figures whose point names it. x, y: what the axes say."""

    name: str
    title: str
    x: str
    y: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What `python -m bench NAME` measures. method: how, in Markdown; sizes: how much of it, in words."""

    name: str
    title: str
    method: str
    measure: Callable[[Run], Awaitable[Sequence[Figure]]]
    sizes: Callable[[Sizes], str]
    plots: tuple[Plot, ...] = ()
