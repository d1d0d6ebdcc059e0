"""The verbs of files. A file is in its place before a row names it, and goes when no row does any more."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from clew.messages import File
from clew.store.changes import Changes
from clew.store.connection import Connection
from clew.store.database import Database
from clew.store.files import Kept, Waiting, verbs
from clew.store.files.folder import FOLDER, Folder, Writing

T = TypeVar("T")

MOST_EXPORTED = 128 * 2**20
"""Bytes of files in one export: in base64 two thirds of the longest that is read back."""
PIECE = 2**20
"""Bytes that are written at once."""


class TooLarge(Exception):
    """There is more of it than may be stored. `args`: the bound, bytes."""


class FilesDoor:
    """Files that came with messages. news: there may be one to fetch. settled: tells that a message may have all of its files."""

    def __init__(self, database: Database, path: Path, settled: Callable[[], None]) -> None:
        self._db = database
        self._settled = settled
        self.folder = Folder(path.with_name(FOLDER))
        self.news = Changes("files")
        self._placing = asyncio.Lock()  # a file that no row names yet looks like one that none names any more

    async def due(self, now: float, limit: int, of_one: int, left_out: Collection[str] = ()) -> tuple[list[Waiting], float | None]:
        """(files that can be gone on with, so many of one address at most; when the next one can). left_out: transports."""
        return await self._db.read(verbs.due, now, limit, of_one, left_out)

    async def begin(self, file: Waiting, again_at: float) -> None:
        """Count a try before it begins. again_at: when the next one may."""
        await self._db.write(verbs.begin, file.id, again_at)

    async def spare(self, file: Waiting, again_at: float) -> None:
        """Do not count the try that was begun: it failed for a reason of this machine."""
        await self._db.write(verbs.spare, file.id, again_at)

    async def take(self, file: Waiting, pieces: AsyncIterator[bytes], most: int, now: Callable[[], float]) -> None:
        """Store the bytes of a file. Raises TooLarge above `most` bytes, OSError where the disk does not take them."""
        await self._stored(pieces, most, lambda writing: partial(verbs.took, of=file.id, digest=writing.hash, size=writing.size, now=now()))

    async def upload(self, address: str, name: str, mime: str, pieces: AsyncIterator[bytes], most: int, now: float) -> str:
        """Store a file that is about to be sent at an address. Returns its id. Raises TooLarge, OSError."""
        return await self._stored(
            pieces,
            most,
            lambda writing: partial(verbs.upload, address=address, name=name, mime=mime, size=writing.size, digest=writing.hash, now=now),
        )

    async def _stored(self, pieces: AsyncIterator[bytes], most: int, note: Callable[[Writing], Callable[[Connection], T]]) -> T:
        writing = await asyncio.to_thread(self.folder.writing)
        with writing:
            held = bytearray()
            async for piece in pieces:
                held += piece
                if writing.size + len(held) > most:
                    raise TooLarge(most)
                if len(held) >= PIECE:
                    await asyncio.to_thread(writing.add, bytes(held))
                    held.clear()
            await asyncio.to_thread(writing.add, bytes(held))
            await asyncio.to_thread(writing.sync)
            async with self._placing:
                await asyncio.to_thread(writing.keep)
                return await self._noted(writing.hash, note(writing))

    async def _noted(self, digest: str, note: Callable[[Connection], T]) -> T:
        """Write the row of a file that is in its place."""
        return await self._db.write(note)

    def placing(self) -> asyncio.Lock:
        """Held while files are put in their places whose rows follow."""
        return self._placing

    async def put(self, body: bytes | None) -> None:
        """Store bytes whose row follows, see `placing`."""
        if body is not None:
            await asyncio.to_thread(self.folder.put, body)

    async def exported(self, session: str) -> list[dict[str, Any]]:
        """The files of a session as plain values, their bytes in base64: the newest, at most `MOST_EXPORTED` of them all."""
        rows = await self._db.read(verbs.of_session, session)
        left = MOST_EXPORTED
        for row in reversed(rows):
            left -= row["size"]
            body = await self.read(row["hash"]) if left >= 0 else None
            row["data"] = None if body is None else (await asyncio.to_thread(base64.b64encode, body)).decode("ascii")
        return rows

    async def settle(self, file: Waiting, block: File, words: str = "") -> None:
        """Say what its message holds of a file, and what was said in it."""
        await self._db.write(verbs.settle, file.id, block, words)
        self._settled()

    async def read(self, digest: str) -> bytes | None:
        """The bytes of a file; None where they are not there, or damaged."""
        return await asyncio.to_thread(self.folder.read, digest)

    async def path(self, digest: str) -> Path | None:
        """Where the bytes of a file lie; None where they are not there."""
        place = self.folder.place(digest)
        return place if await asyncio.to_thread(place.is_file) else None

    async def at(self, address: str, identifier: str) -> Kept | None:
        """A file that was sent at an address."""
        return await self._db.read(verbs.at, address, identifier)

    async def uploaded(self, address: str, identifiers: tuple[str, ...]) -> list[Kept]:
        """Of these the uploads at an address that were not sent yet."""
        return await self._db.read(verbs.uploaded, address, identifiers)

    async def refuse(self, session: str, provider: str, model: str, hashes: frozenset[str]) -> None:
        """Note files that a model did not take."""
        await self._db.write(verbs.refuse, session, provider, model, hashes)

    async def prepare(self) -> None:
        """At a start: what an earlier process left is taken away."""
        await asyncio.to_thread(self.folder.tidy)
        await self.sweep()

    async def sweep(self, uploads_before: float | None = None) -> int:
        """Take away the files that nobody holds any more; uploads that came before this time are let go first. Returns how many."""
        if uploads_before is not None:
            await self._db.write(verbs.expire_uploads, uploads_before)
        async with self._placing:
            return await self._remove(await asyncio.to_thread(lambda: list(self.folder.hashes())))

    async def _remove(self, hashes: list[str]) -> int:
        if not hashes:
            return 0
        orphans = set(hashes) - await self._db.read(verbs.wanted)
        for each in orphans:
            await asyncio.to_thread(self.folder.remove, each)
        return len(orphans)

    async def check(self) -> list[str]:
        """What is wrong with the files, in words."""
        wanted = await self._db.read(verbs.wanted)
        found = await self._held()
        damaged = [digest for digest in sorted(wanted & found) if await self.read(digest) is None]
        return [
            f"{len(hashes)} file{'s' if len(hashes) > 1 else ''} {what}, for instance {self.folder.place(hashes[0])}"
            for hashes, what in (
                (sorted(wanted - found), "of messages are missing"),
                (damaged, "of messages are damaged"),
            )
            if hashes
        ]

    async def _held(self) -> set[str]:
        """The hashes of all files that are kept."""
        return set(await asyncio.to_thread(lambda: list(self.folder.hashes())))
