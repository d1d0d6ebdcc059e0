"""The store on SQLite: every verb is one transaction, run in one hop."""

import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Self

from clew.store import rebuilding, transcript
from clew.store.database import Database
from clew.store.doors.delivery import DeliveryDoor
from clew.store.doors.health import HealthDoor
from clew.store.doors.jobs import JobsDoor
from clew.store.doors.logins import LoginsDoor
from clew.store.doors.pages import PagesDoor
from clew.store.doors.people import PeopleDoor
from clew.store.doors.privacy import PrivacyDoor
from clew.store.doors.search import SearchDoor
from clew.store.doors.sessions import SessionsDoor
from clew.store.doors.turns import TurnsDoor
from clew.store.doors.view import ViewDoor
from clew.store.indexing import Indexer
from clew.store.port import Store


class SqliteStore(
    TurnsDoor, ViewDoor, SearchDoor, DeliveryDoor, PeopleDoor, LoginsDoor, JobsDoor, SessionsDoor, PagesDoor, PrivacyDoor, HealthDoor, Store
):
    """One file. Open it with `open`, close it with `close` (its connections live in threads)."""

    @classmethod
    async def open(cls, path: Path, now: float, *, read_only: bool = False, known: Collection[str] = ()) -> Self:
        """Open and migrate. `known`: secrets of this installation, kept out of index and notes. Raises StoreError with what to do."""
        index = Indexer(known)
        store = cls(path, await Database.open(path, now, index, read_only=read_only), index, known)
        try:
            await store._prepare(read_only)
        except BaseException:
            await store.close()
            raise
        return store

    async def _prepare(self, read_only: bool) -> None:
        if not read_only:
            if not await self._db.read(self._index.is_current):
                await self.documents.rebuild()
                await self._db.write(self._rebuild_index)
            await self.notes.prepare()
            await self.documents.sweep()
            await self.files.prepare()
        await self.documents.look()
        await self._load_prefixes()

    def _rebuild_index(self, db: sqlite3.Connection) -> None:
        rebuilding.drop(db)
        transcript.rebuild(db)
        self._index.sign(db)

    async def close(self) -> None:
        await self._db.close()

    @property
    def commits(self) -> int:
        """Write transactions so far."""
        return self._db.commits
