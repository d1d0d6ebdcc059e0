"""Who searches, and what was found."""

from collections.abc import Callable
from dataclasses import dataclass

from clew.context.query import Frequencies, Query
from clew.context.ranking import Candidate, Scored


@dataclass(frozen=True, slots=True)
class Scope:
    """Who is asking. Made by `Store.scope_for` only; there is no search without one.

    chats: (chat, from, until) of every chat, and the span of time in it, whose words may be seen; None: the operator sees all.
    session: the session that asks, None outside of one. after_seq: its own messages behind this one are in view and not found.
    base: (the session that it goes on from, the last row of it in view).
    """

    chats: tuple[tuple[int, float, float], ...] | None
    session: str | None = None
    after_seq: int = 0
    base: tuple[str, int] | None = None


Ask = Callable[[Frequencies, int], Query | None]
"""Makes a query of (in how many messages words stand, how many messages there are)."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search gave: the query asked (None: there was nothing to ask), what answers it best first, and which of the messages
    asked about may be seen."""

    query: Query | None
    scored: tuple[Scored, ...]
    visible: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recalled:
    """An excerpt that was considered for a turn, and why. message: the best of those that it quotes. shown: it stood in the prompt."""

    message: str
    score: float
    why: tuple[str, ...]
    shown: bool
    quoted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quote:
    """An excerpt that was considered for a turn, by its best message. score: a share of the weight of all that was asked for, 0 for one
    that was there already and has nothing to do with it. why: the terms that it holds. shown: it stood in the prompt."""

    message: Candidate
    score: float
    why: tuple[str, ...]
    shown: bool


@dataclass(frozen=True, slots=True)
class RecalledFor:
    """What recall gave a turn. asked: what was said. at: when, seconds since the epoch. hidden: quotes that may not be seen (any
    more)."""

    turn: str
    asked: str
    at: float
    quotes: tuple[Quote, ...]
    hidden: int = 0
