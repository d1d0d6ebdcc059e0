"""What the tests of the store share: a file, arrivals, claims, and words put into it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from clew.config import Limits
from clew.context.query import query
from clew.inbox import decider
from clew.messages import Message, Text
from clew.store import Claim, Found, NewMessage, Outcome, Person, Reply, Scope, Step, Verdict
from clew.store.changes import Neighbours
from clew.store.opening import open_store
from clew.store.sql import SqlStore
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound, Part, Receipt
from tests.databases import databases

NOW = 1_800_000_000.0
"""Seconds since the epoch, UTC: 2027-01-15 08:00."""
LEASE = 60.0
FOR_EVER = 1e9
"""Seconds by the database's own clock."""
CODE = "CODE2345"
PEOPLE: Mapping[str, Person] = {name: Person(name, "member", None, (f"desk:{name}",)) for name in ("ada", "bob", "eve")}
DECIDE = decider("pair", Limits(), lambda: CODE)


@asynccontextmanager
async def opened(folder: Path, *, people: Mapping[str, Person] = PEOPLE) -> AsyncIterator[SqlStore]:
    """The store in `folder`, with people."""
    store = await open_store(databases.store(folder), folder, NOW)
    store.shared = False  # there is one alone, which needs no lease
    try:
        if store.shared and not await store.leases.listing():
            await store.leases.join("me", FOR_EVER, frozenset(), NOW)
        await store.sync(people, None, await store.jobs(), NOW)
        yield store
    finally:
        await store.close()


class Clock:
    """A clock that stands still until it is moved. moved: told where it stands."""

    def __init__(self, at: float = NOW, moved: Callable[[float], object] = lambda at: None) -> None:
        self._at = at
        self.moved = moved

    def __call__(self) -> float:
        return self._at

    @property
    def at(self) -> float:
        return self._at

    @at.setter
    def at(self, at: float) -> None:
        self._at = at
        self.moved(at)


async def beside(folder: Path, clock: Clock, neighbours: Neighbours) -> SqlStore:
    """One more store on the database of a folder, whose clock is `clock`."""
    if databases.kind == "sqlite":
        return await SqliteStore.open(folder / "clew.db", NOW, neighbours=neighbours, clock=clock)
    clock.moved = lambda at: databases.altered(folder, f"UPDATE clock SET at = {at!r}")
    where = databases.store(folder, clock=True)
    clock.at = clock.at
    return await open_store(where, folder, NOW)


@asynccontextmanager
async def side_by_side(folder: Path, clock: Clock, count: int = 2) -> AsyncIterator[list[SqlStore]]:
    """Stores on one database, as several daemons have them. clock: the database's."""
    neighbours = Neighbours()
    async with AsyncExitStack() as stack:
        stores: list[SqlStore] = []
        for _ in range(count):
            store = await beside(folder, clock, neighbours)
            stack.push_async_callback(store.close)
            stores.append(store)
        await stores[0].sync(PEOPLE, None, await stores[0].jobs(), NOW)
        yield stores


def inbound(identifier: str, text: str = "hello", chat: str = "ada", *, sender: str = "", direct: bool = True, **more: Any) -> Inbound:
    name, _, thread = chat.partition("/")
    address = Address("desk", name, thread or None)
    return Inbound(f"desk/{identifier}", address, sender or name, text, client_id=identifier, direct=direct, **more)


async def accept(store: SqlStore, *items: Inbound, cursor: str | None = None, now: float = NOW) -> list[Receipt]:
    receipts, _ = await store.accept("desk", items, cursor, now, DECIDE)
    return receipts


async def claim(store: SqlStore, now: float = NOW, *, owner: str = "me", merging: frozenset[str] = frozenset()) -> Claim:
    """The next turn; there must be one."""
    claimed = await store.claim_turn(owner, now, LEASE, merging)
    assert claimed is not None
    return claimed


def reply(text: str = "yes", chat: str = "ada", *, instant: bool = False) -> Reply:
    return Reply(Address("desk", chat), text, (Part(text),), instant=instant)


async def turn(store: SqlStore, identifier: str, text: str, answer: str, chat: str = "ada", **more: Any) -> Claim:
    """One whole turn: what was said, and what was answered."""
    now = more.pop("now", NOW)
    await accept(store, inbound(identifier, text, chat, **more), now=now)
    claimed = await claim(store, now)
    step = Step(messages=(NewMessage("assistant", (Text(answer),), now),))
    await store.finish(claimed, Outcome("done", step), [reply(answer, chat)], now)
    return claimed


async def find(store: SqlStore, scope: Scope, text: str, limit: int = 100) -> Found:
    return await store.search(scope, lambda frequency, total: query(text, (), (), frequency, total), limit)


async def found(store: SqlStore, text: str, scope: Scope | None = None) -> set[str]:
    """Ids of the messages that hold words of `text`; everything is searched where no scope is given."""
    return holding(await find(store, scope or await store.scope_for(operator=True), text))


def holding(found: Found) -> set[str]:
    """Ids of what was found, without what merely stands beside it."""
    return {each.candidate.id for each in found.scored if each.why}


async def said(store: SqlStore, session: str) -> list[Message]:
    return list(await store.transcript(session))


def allow(kind: Any = "message") -> Any:
    """A policy that takes everything."""
    return lambda item, sender: Verdict(kind=kind)
