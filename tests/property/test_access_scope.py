"""Accounts come and go, are linked, given up and handed on; what somebody said in a direct chat is seen by nobody else."""

import asyncio
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clew.errors import NotFound, UsageError
from clew.store import AccessEffect, LinkCode, links
from clew.store.records.people import AccessKind
from clew.store.sql import SqlStore
from tests.databases import BOTH
from tests.unit.store_rows import NOW, PEOPLE, accept, find, holding, inbound, opened, turn

pytestmark = BOTH
CONFIGURED = ("ada",)
ACCOUNTS = (*CONFIGURED, "carol", "dora")
NEEDLE = "needle"


@dataclass(frozen=True)
class Say:
    account: str


@dataclass(frozen=True)
class Change:
    """What the owner does to an account."""

    kind: AccessKind
    account: str


@dataclass(frozen=True)
class Link:
    """Somebody gives the code of one account to another."""

    account: str
    to: str


@dataclass(frozen=True)
class Restart:
    """The config is taken over again."""


ANY = st.sampled_from(ACCOUNTS)
STEPS = st.lists(
    st.one_of(
        st.builds(Say, ANY),
        st.builds(Say, ANY),
        st.builds(Change, st.just("approve"), ANY),
        st.builds(Change, st.sampled_from(["remove", "deny", "unlink"]), ANY),
        st.builds(Link, ANY, ANY),
        st.just(Restart()),
    ),
    max_size=25,
)


class World:
    """A store, and who said what. Times grow with each step."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.authors: dict[str, str] = {}
        self.now = NOW

    async def do(self, step: object) -> None:
        self.now += 1.0
        match step:
            case Say(account):
                await self.say(account)
            case Change(kind, account):
                with suppress(NotFound, UsageError):
                    await self.store.change_access(AccessEffect(kind, f"desk:{account}"), self.now)
            case Link(account, to) if await self.store.is_known(f"desk:{to}"):
                person = (await self.store.known(f"desk:{to}")).id
                code = links.drawn()
                effect = LinkCode(links.hashed(code), person, f"desk:{to}", False, self.now + links.LASTS)
                await self.store._db.write(links.put, effect)
                await accept(self.store, inbound(f"link{self.now}", code, account), now=self.now)
            case Restart():
                people = {name: PEOPLE[name] for name in CONFIGURED}
                await self.store.sync(people, None, [], self.now)

    async def say(self, account: str) -> None:
        if not await self.store.is_known(f"desk:{account}"):
            return
        person = (await self.store.known(f"desk:{account}")).id
        before = {each.id for each in await self.store.sessions(f"desk:{account}", 1000)}
        claimed = await turn(self.store, f"say{self.now}", f"{NEEDLE} {len(self.authors)}", "yes", account, now=self.now)
        rows = await self.store.transcript(claimed.session)
        # A thread is gone on with by whoever it was begun by, and by nobody else.
        assert {self.authors.get(row.id, person) for row in rows} == {person}, (account, before)
        self.authors |= {row.id: person for row in rows}

    async def check(self) -> None:
        for known in await self.store.people():
            scopes = [await self.store.scope_for(person=known.id)]
            for each in known.identities:
                session = await self.store.current_session(each.identity)
                scopes += [await self.store.scope_for(session=(session, each.identity, 2**40))] if session else []
                for row in await self.store.sessions_for(each.identity, 1000):
                    said = await self.store.transcript(row.id)
                    assert {self.authors[message.id] for message in said} <= {known.id}
            for scope in scopes:
                seen = holding(await find(self.store, scope, NEEDLE))
                assert {self.authors[message] for message in seen} <= {known.id}
                for message in self.authors:
                    around = await self.store.around(scope, message, 2, 2)
                    assert {self.authors[each.id] for each in around} <= {known.id}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
@example([Change("approve", "carol"), Link("dora", "carol"), Say("dora"), Change("unlink", "dora"), Change("approve", "dora"), Say("dora")])
@example([Link("carol", "ada"), Say("carol"), Change("unlink", "carol"), Change("approve", "carol"), Restart(), Say("carol"), Say("ada")])
def test_nobody_sees_what_another_said_in_a_chat_that_changed_hands(steps: list[object]) -> None:  # P33
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with opened(Path(folder), people={name: PEOPLE[name] for name in CONFIGURED}) as store:
                world = World(store)
                for step in steps:
                    await world.do(step)
                await world.check()

    asyncio.run(run())


def test_whoever_is_let_in_again_has_their_own_again() -> None:  # P5, P33
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with opened(Path(folder), people={name: PEOPLE[name] for name in CONFIGURED}) as store:
                world = World(store)
                for step in (
                    Change("approve", "carol"),
                    Say("carol"),
                    Change("remove", "carol"),
                    Restart(),
                    Change("approve", "carol"),
                    Say("carol"),
                ):
                    await world.do(step)
                await world.check()
                assert len(await store.sessions("desk:carol", 9)) == 1
                assert len(holding(await find(store, await store.scope_for(person="desk:carol"), NEEDLE))) == 2

    asyncio.run(run())


def test_an_account_that_somebody_else_has_now_begins_with_nothing() -> None:  # P33
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with opened(Path(folder), people={name: PEOPLE[name] for name in CONFIGURED}) as store:
                world = World(store)
                steps = (
                    Change("approve", "carol"),
                    Link("dora", "carol"),
                    Say("dora"),
                    Change("remove", "carol"),
                    Restart(),
                    Change("approve", "dora"),
                    Restart(),
                    Say("dora"),
                )
                for step in steps:
                    await world.do(step)
                await world.check()
                assert sorted(world.authors.values()) == ["desk:carol", "desk:carol", "desk:dora", "desk:dora"]
                assert len(await store.sessions("desk:dora", 9)) == 1

    asyncio.run(run())
