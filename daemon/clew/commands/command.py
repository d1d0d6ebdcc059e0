"""What a command is, what it works with, and what it says."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal
from zoneinfo import ZoneInfo

from clew.allowances import Limit
from clew.asking import Plan
from clew.compactor import Compactor
from clew.contents import Contents
from clew.meaning import Meaning
from clew.model_call import ModelCaller
from clew.providers import Provider
from clew.stopping import Stop
from clew.store import AnyEffect, Changed, Claim, PersonRole, Scope
from clew.store.sql import SqlStore
from clew.threads import Threads
from clew.transport import Address

LONGEST_LINE = 200
"""Characters of an entry in an answer."""
MOST_LINES = 20
"""Entries of one kind in an answer."""
QUOTED = 60
"""Characters of a message that an answer quotes."""

OWNERS: frozenset[PersonRole] = frozenset({"owner"})
MEMBERS: frozenset[PersonRole] = frozenset({"owner", "member"})
EVERYBODY: frozenset[PersonRole] = frozenset({"owner", "member", "guest"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says. new_session: the chat's next message begins a new session. effects: what takes place with the answer.
    changed: what becomes of who may by it."""

    text: str
    new_session: bool = False
    effects: tuple[AnyEffect, ...] = ()
    changed: tuple[Changed, ...] = ()


def _nowhere(address: Address) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Rooms:
    """What commands work with. zone: of people who have none of their own. plan: the parts of a reply. page: the address of the page
    where one logs in to it, else empty. unknown: what becomes of strangers. limits: budgets. served: where
    the page is for somebody at an address, else empty. stop: set when somebody stops the one
    that runs."""

    store: SqlStore
    compactor: Compactor
    threads: Threads
    providers: Sequence[Provider]
    caller: ModelCaller
    zone: str
    contents: Contents
    plan: Plan
    page: Callable[[], str]
    unknown: Literal["deny", "pair", "allow"] = "pair"
    meaning: Meaning | None = None
    limits: Sequence[Limit] = ()
    served: Callable[[Address], str] = _nowhere
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True, slots=True)
class Command:
    """A command. usage: how it is written; help: one line; run: None for one that never waits; roles: who may use it."""

    usage: str
    help: str
    run: Callable[[Rooms, Claim, str], Awaitable[Answer]] | None
    roles: frozenset[PersonRole] = EVERYBODY


def some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} more"]


def zone_of(rooms: Rooms, claim: Claim) -> ZoneInfo:
    return ZoneInfo((claim.direct and claim.person and claim.person.timezone) or rooms.zone)


async def scope_of(rooms: Rooms, claim: Claim) -> Scope:
    """What may be seen where a command is answered, but for what is in view."""
    compaction = (await rooms.store.view(claim.session)).compaction
    return await rooms.store.scope_for(session=(claim.session, str(claim.address), compaction.to_seq if compaction else 0))
