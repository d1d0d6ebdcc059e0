"""The store on a database that speaks SQL: every verb is one transaction, run in one hop."""

from clew.errors import StoreError
from clew.store import copying, rebuilding, transcript
from clew.store.connection import Connection
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
from clew.store.port import Store


class SqlStore(
    TurnsDoor, ViewDoor, SearchDoor, DeliveryDoor, PeopleDoor, LoginsDoor, JobsDoor, SessionsDoor, PagesDoor, PrivacyDoor, HealthDoor, Store
):
    """All verbs. A database's own class opens it; `close` closes it (its connections live in threads)."""

    async def prepare(self, read_only: bool) -> None:
        """Bring the indexes up to date and load what is kept in memory. Raises StoreError where the store is a copy that is not whole."""
        if await self._db.read(copying.is_unfinished):
            raise StoreError("This store is a copy that was begun and is not whole.", hint="`clew db copy` goes on with it.", lasting=True)
        if not read_only:
            if not await self._db.read(self._index.is_current):
                await self.documents.rebuild()
                await self._db.write(self._rebuild_index)
            await self.notes.prepare()
            await self.documents.sweep()
            await self.files.prepare()
        await self.documents.look()
        await self._load_prefixes()

    def _rebuild_index(self, db: Connection) -> None:
        rebuilding.drop(db)
        transcript.rebuild(db)
        self._index.sign(db)

    async def close(self) -> None:
        await self._db.close()

    @property
    def commits(self) -> int:
        """Write transactions so far."""
        return self._db.commits
