"""Documents: what is put in and what comes back. Who may see which is decided in `index`, in the query that finds it."""

from dataclasses import dataclass
from typing import Literal

from clew.context.documents import Passage

MOST_DOCUMENTS = 10_000
"""Documents of one scope."""
MOST_CHUNKS = 10_000
"""Pieces of one document."""
PIECE = 200
"""Pieces that one transaction takes in or lets go, so that nobody waits long for the writer."""

Origin = Literal["hand", "config"]


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to take in.

    source: absolute path or URL. name: what it is cited by. hash: of its bytes, `size` many. stamp: of a watched file, how it was seen
    last; origin: `config` for those.
    """

    source: str
    name: str
    title: str
    kind: str
    hash: str
    size: int
    origin: Origin = "hand"
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is there. scope: whose it is, as in `user:ada` or `project:garden`. added, updated: seconds since the epoch, UTC."""

    id: str
    scope: str
    source: str
    name: str
    title: str
    kind: str
    origin: Origin
    hash: str
    size: int
    stamp: str
    chunks: int
    added: float
    updated: float


@dataclass(frozen=True, slots=True)
class Looked:
    """What the index gave for a query's terms.

    total: pieces that may be seen. counts: of each term, in how many of them it stands, at most `index.MOST_PLACES`. lexical: the best
    pieces by the index, best first; nearest: those of them that were asked for by meaning, in that order. passages: all of these, by id;
    holding: of each the numbers of the terms that it holds. visible: which of the pieces asked about may be seen.
    """

    total: int
    counts: tuple[int, ...]
    lexical: tuple[int, ...]
    nearest: tuple[int, ...]
    passages: dict[int, Passage]
    holding: dict[int, tuple[int, ...]]
    visible: frozenset[int]
