"""Who is who, as the config and the owner have it."""

import sqlite3
from collections.abc import Mapping, Sequence

from clew.store import AccessRequest, Job, Person, jobs, people
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

        def all_of_it(db: sqlite3.Connection) -> None:
            before = note_scopes.machines_owner(db)
            people.sync(db, configured, local, now)
            note_scopes.hand_over(db, before, owner.id if owner else None)
            documents.hand_over(db, before, owner.id if owner else None)
            jobs.sync(db, entries, now)
            note_scopes.sync_projects(db, projects)

        await self._db.write(all_of_it)

    async def person_at(self, identity: str, now: float, *, local: bool) -> str:
        """The person behind an identity; one of this machine's users is the owner. Raises NotFound."""
        return await self._db.write(people.person_at, identity, now, local=local)

    async def is_known(self, identity: str) -> bool:
        return await self._db.read(people.find, identity) is not None

    async def access_requests(self, state: str | None = None) -> list[AccessRequest]:
        return await self._db.read(people.requests, state)

    async def answer_access(self, key: str, approve: bool, role: str, now: float) -> AccessRequest:
        """Raises NotFound or UsageError."""
        return await self._db.write(people.answer, key, approve, role, now)
