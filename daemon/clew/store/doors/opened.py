"""What the verbs of the store share."""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from clew.store import model_calls
from clew.store.changes import Changes
from clew.store.database import Database
from clew.store.documents.door import DocumentsDoor
from clew.store.doors.spending import SpendingDoor
from clew.store.files.door import FilesDoor
from clew.store.indexing import Indexer
from clew.store.notes.door import NotesDoor
from clew.store.prefix_cache import LIMIT, PrefixCache
from clew.store.vectors import Vectors
from clew.store.windows import Windows


class Opened:
    """A store that is open, with what its verbs share.

    arrivals: there may be a turn to claim. jobs_changed: somebody changed a job. deliveries: by transport, there may be something to send.
    notes, documents, files, vectors, spending: their verbs.
    """

    def __init__(self, path: Path, database: Database, index: Indexer, known: Collection[str] = ()) -> None:
        self._path = path
        self._db = database
        self._index = index
        self._known = frozenset(known)
        self.notes = NotesDoor(database, self._known)
        self.documents = DocumentsDoor(database, index, self._known, self._notify)
        self.vectors = Vectors(database)
        self.spending = SpendingDoor(database)
        self._prefixes = PrefixCache()
        self._windows = Windows()
        self._any = Changes()
        self.arrivals = Changes()
        self.files = FilesDoor(database, path, lambda: self._notify(self.arrivals))
        self.jobs_changed = Changes()
        self.deliveries = defaultdict[str, Changes](Changes)

    @property
    def version(self) -> int:
        """Grows with every change that somebody may wait for."""
        return self._any.version

    async def changed(self, seen: int, timeout: float) -> int:
        return await self._any.wait(seen, timeout)

    def _notify(self, *which: Changes) -> None:
        for changes in (*which, self._any):
            changes.tell()

    async def _load_prefixes(self) -> None:
        self._prefixes = prefixes = PrefixCache()
        if (entries := await self._db.read(model_calls.cache, LIMIT)) is not None:
            prefixes.load(entries)
