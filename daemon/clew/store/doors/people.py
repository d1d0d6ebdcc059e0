"""Who is who, as the config and the owner have it."""

from collections.abc import Mapping, Sequence

from clew.store import (
    AccessEffect,
    AccessRequest,
    Changed,
    Job,
    Known,
    Person,
    Reply,
    access,
    jobs,
    links,
    merging,
    outbox,
    people,
    spending,
)
from clew.store.connection import Connection
from clew.store.documents import verbs as documents
from clew.store.doors.opened import Opened
from clew.store.notes import scopes as note_scopes


class PeopleDoor(Opened):
    """Who is who, as the config and the owner have it."""

    async def sync(
        self,
        configured: Mapping[str, Person],
        local: Person | None,
        entries: Sequence[Job],
        now: float,
        projects: Mapping[str, str] = {},
    ) -> None:
        """Take over who and what is in the config: all of it or nothing. local: the owner of the machine, where none is configured.

        projects: the project of each chat that is named in one, by its address.
        """

        owner = local or next((person for person in configured.values() if person.role == "owner"), None)

        def all_of_it(db: Connection) -> None:
            before = note_scopes.machines_owner(db)
            for former, renamed in merging.renamed(db, configured):
                people.add(db, renamed, "config", now)
                merging.merge(db, former, renamed.id)
            for gone in people.gone(db, configured):
                access.revoke(db, gone, now)
            same = merging.claimed(db, configured.values())
            people.sync(db, configured, local, now)
            for former, person in same:
                merging.merge(db, former, person)
            note_scopes.hand_over(db, before, owner.id if owner else None)
            documents.hand_over(db, before, owner.id if owner else None)
            if before and owner and before != owner.id:
                spending.hand_over(db, before, owner.id)
            jobs.sync(db, entries, now)
            note_scopes.sync_projects(db, projects)

        await self._db.write(all_of_it)

    async def person_at(self, identity: str, now: float, *, local: bool) -> str:
        """The person behind an identity; one of this machine's users is the owner. Raises NotFound."""
        return await self._db.write(people.person_at, identity, now, local=local)

    async def is_known(self, identity: str) -> bool:
        return await self._db.read(people.find, identity) is not None

    async def people(self) -> list[Known]:
        """Everybody who may talk to clew, owners first."""
        return await self._db.read(access.listing)

    async def known(self, key: str) -> Known:
        """The person with this id, name or identity. Raises NotFound."""
        return await self._db.read(access.person, key)

    async def access_requests(self, state: str | None = None, now: float = 0.0) -> list[AccessRequest]:
        """Requests, the oldest first, without those that have expired by `now`."""
        return await self._db.read(access.requests, state, now)

    async def plan_access(self, effect: AccessEffect, now: float) -> Changed:
        """What a change of who may would come to. Raises NotFound or UsageError."""
        return await self._db.read(access.plan, effect, now)

    async def change_access(self, effect: AccessEffect, now: float) -> Changed:
        """Make a change of who may. Raises NotFound or UsageError."""
        changed = await self._db.write(access.take, effect, now)
        self._notify(self.arrivals, self.stops, *(self.deliveries[notice.address.transport] for notice in effect.notices))
        self._told(effect.notices)
        return changed

    async def answer_access(self, key: str, approve: bool, role: str, now: float) -> AccessRequest:
        """Raises NotFound or UsageError."""
        return await self._db.write(access.answer, key, approve, role, now)

    async def stopping(self) -> list[str]:
        """Turns that run and that somebody has stopped."""
        return await self._db.read(access.stopping)

    async def tell_of_request(self, identity: str, reply: Reply, now: float, window: float, most: int) -> bool:
        """Tell the owner that somebody asks to be let in: once, and of at most so many in so many seconds. Returns whether it is told."""

        def tell(db: Connection) -> bool:
            if not access.announced(db, identity, now, window, most):
                return False
            outbox.put(db, reply, session="", turn="", now=now)
            return True

        told = await self._db.write(tell)
        self._notify(*([self.deliveries[reply.address.transport]] if told else []))
        self._told((reply,) if told else ())
        return told

    async def linking_rests(self, now: float) -> bool:
        """Whether so many guesses at codes were made that none is taken."""
        return await self._db.read(links.resting, now)
