"""Files that several daemons share: their bytes are rows of the database, the folder of each daemon holds what it had in hand."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from clew.store.connection import Connection
from clew.store.files.door import FilesDoor

T = TypeVar("T")

UNNAMED = 3600.0
"""Seconds that bytes stay which no row names yet: an import writes them in front of their rows."""


class SharedFilesDoor(FilesDoor):
    """The verbs of files, their bytes in the table `file_bodies` too, written with the row that names them."""

    async def put(self, body: bytes | None) -> None:
        await super().put(body)
        if body is not None:
            await self._db.write(put, hashlib.sha256(body).hexdigest(), body, time.time())

    async def read(self, digest: str) -> bytes | None:
        if (body := await super().read(digest)) is not None:
            return body
        body = await self._db.read(find, digest)
        if body is None:
            return None
        await asyncio.to_thread(self.folder.put, body)
        return body

    async def path(self, digest: str) -> Path | None:
        return self.folder.place(digest) if await self.read(digest) is not None else None

    async def sweep(self, uploads_before: float | None = None) -> int:
        gone = await super().sweep(uploads_before)
        return max(gone, await self._db.write(sweep, time.time() - UNNAMED))

    async def _noted(self, digest: str, note: Callable[[Connection], T]) -> T:
        body = await asyncio.to_thread(self.folder.read, digest)
        return await self._db.write(partial(_put_and_note, digest=digest, body=body or b"", note=note))

    async def _held(self) -> set[str]:
        return await self._db.read(hashes)


def put(db: Connection, digest: str, body: bytes, at: float) -> None:
    """Keep bytes. at: when, seconds since the epoch; 0 where the row that names them is written with them."""
    db.execute(
        "INSERT INTO file_bodies (hash, body, at) VALUES (?, ?, ?)"
        " ON CONFLICT (hash) DO UPDATE SET at = CASE WHEN file_bodies.at < excluded.at THEN file_bodies.at ELSE excluded.at END",
        (digest, body, at),
    )


def find(db: Connection, digest: str) -> bytes | None:
    """The bytes of a file; None where they are not there, or damaged."""
    row = db.execute("SELECT body FROM file_bodies WHERE hash = ?", (digest,)).fetchone()
    return row[0] if row and hashlib.sha256(row[0]).hexdigest() == digest else None


def hashes(db: Connection) -> set[str]:
    """Of all bytes that are kept."""
    return {digest for (digest,) in db.execute("SELECT hash FROM file_bodies")}


def sweep(db: Connection, before: float) -> int:
    """Take away the bytes that no row names, but those that came after `before` in front of their row. Returns how many."""
    gone = db.execute(
        "DELETE FROM file_bodies WHERE at < ? AND NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.hash = file_bodies.hash)",
        (before,),
    )
    return gone.rowcount


def _put_and_note(db: Connection, *, digest: str, body: bytes, note: Callable[[Connection], T]) -> T:
    put(db, digest, body, 0.0)
    return note(db)
