"""Calls of models and tools, and the prefixes that providers hold."""

from dataclasses import dataclass
from typing import Literal

from clew.messages import Usage


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model, as it went. `segments`: (kind, hash, estimated tokens) of the prefix; `marks`: labels of its cache markers.

    estimated: tokens that the request was taken for, 0 where its reported size is to teach nothing. cost: dollars, None without a price.
    held: tokens of its prompt that the provider held by our own record, and ttl: seconds for which it holds what was marked; None without
    markers. turn: of the session, empty outside of any; set on rows that are read.
    """

    id: str
    purpose: str
    payer: str
    provider: str
    model: str
    usage: Usage
    started: float
    first_byte: float | None
    ended: float
    error: str = ""
    segments: tuple[tuple[str, str, int], ...] = ()
    marks: tuple[str, ...] = ()
    compaction: str | None = None
    estimated: int = 0
    cost: float | None = None
    held: int | None = None
    ttl: float | None = None
    turn: str = ""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A prefix a provider holds. `tokens`: about as its model counts them; `expires`: seconds since the epoch, `ttl`: seconds."""

    provider: str
    model: str
    hash: str
    tokens: int
    ttl: float
    expires: float


@dataclass(frozen=True, slots=True)
class ToolState:
    call_id: str
    name: str
    arguments: str
    state: Literal["proposed", "waiting", "denied", "started", "done", "interrupted"]
    at: float
