"""An SQLite file as it is copied from or into, see `clew.store.copying`."""

import time
from collections.abc import Mapping
from pathlib import Path

from clew.store.files.folder import FOLDER, Folder
from clew.store.indexing import Indexer
from clew.store.sqlite.connection import SqliteConnection
from clew.store.sqlite.database import SqliteDatabase, set_up


class SqliteSide:
    """Opened with `open`."""

    def __init__(self, db: SqliteConnection, folder: Folder) -> None:
        self.db = db
        self._folder = folder

    @classmethod
    async def open(cls, path: Path, now: float, index: Indexer) -> "SqliteSide":
        """The file at `path`, made or brought up to date. Raises StoreError."""
        database = await SqliteDatabase.open(path, now, index)
        await database.close()
        db = SqliteConnection(path, isolation_level=None, check_same_thread=False)
        set_up(db, index, time.time)
        db.execute("PRAGMA foreign_keys = OFF")  # a row may come in front of the one it names; what is not whole is not used
        db.execute("PRAGMA synchronous = FULL")
        side = cls(db, Folder(path.with_name(FOLDER)))
        side.begin()
        db.words("messages").drop_uncounted()  # what waits to be counted is not copied
        side.commit()
        return side

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.db.execute("COMMIT")

    def numbers(self) -> dict[str, int]:
        return dict(self.db.execute("SELECT name, seq FROM sqlite_sequence").fetchall())

    def count_on(self, numbers: Mapping[str, int]) -> None:
        for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'").fetchall():
            self.db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            self.db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, numbers.get(name, 0)))

    def hashes(self) -> set[str]:
        return set(self._folder.hashes())

    def body(self, digest: str) -> bytes | None:
        return self._folder.read(digest)

    def put(self, digest: str, body: bytes) -> None:
        self._folder.put(body)

    def close(self) -> None:
        self.db.close()
