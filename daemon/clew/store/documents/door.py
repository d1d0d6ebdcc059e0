"""The verbs of the documents. Taking one in and letting it go are several short transactions, of which one counts."""

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from clew.context.chunks import Chunk
from clew.context.notes import ScopeKind
from clew.context.redact import redact
from clew.store.database import Database
from clew.store.documents import PIECE, Document, Looked, NewDocument, index, vectors, verbs
from clew.store.documents.vectors import Unembedded
from clew.store.indexing import Indexer
from clew.store.notes import Where

TAKING_IN = 3600.0
"""Seconds for which a document may be on its way in; one that is not whole by then was left half done."""


class DocumentsDoor:
    """Documents by where they are asked for; `where` None: the operator, who sees all. known: secrets of this installation.

    tell: says that something changed. empty: there are none, so that nobody need be asked.
    """

    def __init__(self, database: Database, index: Indexer, known: Collection[str], tell: Callable[[], None]) -> None:
        self._db = database
        self._index = index
        self._known = frozenset(known)
        self._tell = tell
        self._changing = asyncio.Lock()  # what is on its way in looks like what is on its way out
        self.empty = True

    async def look(self) -> None:
        """See whether there are any."""
        self.empty = not (self._db.shared or await self._db.read(verbs.any_there))  # others may have taken some in

    async def rebuild(self) -> None:
        """Build the index anew, without secrets that are known by now."""
        await self._db.write(verbs.redact, self._redacted)
        await self._db.write(index.rebuild)

    async def renew(self) -> None:
        """Build the index anew while others search and write."""
        last: int | None = 0
        while last is not None:
            last = await self._db.write_relaxed(index.renew, last)

    async def scope(self, where: Where, kind: ScopeKind) -> str:
        """The name of a scope. Raises UsageError where there is none of that kind."""
        return await self._db.read(verbs.scope_name, where, kind)

    async def put(self, scope: str, new: NewDocument, chunks: Sequence[Chunk], now: float) -> Document:
        """Take a document in, in the place of one that came from the same source. now: seconds since the epoch, UTC.

        Nobody sees it until it is whole; if it cannot be finished the old one stays. Raises UsageError where there are too many.
        """
        new = replace(new, name=self._redacted(new.name), title=self._redacted(new.title))
        prepared = await asyncio.to_thread(self._prepared, new, chunks)
        async with self._changing:
            number = await self._db.write(verbs.begin, scope, new, len(prepared), now)
            for start in range(0, len(prepared), PIECE):
                await self._db.write(verbs.fill, number, prepared[start : start + PIECE])
            document = await self._db.write(verbs.end, number)
            await self.sweep()
            self.empty = False
        self._tell()
        return document

    def _prepared(self, new: NewDocument, chunks: Sequence[Chunk]) -> list[verbs.Prepared]:
        found = []
        for chunk in chunks:
            piece = Chunk(self._redacted(chunk.place), self._redacted(chunk.text))
            found.append((piece, self._index(f"{new.name} {new.title} {piece.place}"), self._index(piece.text)))
        return found

    def _redacted(self, text: str) -> str:
        return redact(text, self._known)

    async def remove(self, identifiers: Collection[str]) -> None:
        """Let documents go: nothing of them is found any more when this returns."""
        async with self._changing:
            await self._db.write(verbs.remove, identifiers)
            await self.sweep()
            await self.look()

    async def sweep(self) -> None:
        """Take away the pieces of documents that nobody sees: those that were let go, and those that a crash left half done."""
        still = TAKING_IN if self._db.shared else -math.inf  # another process may be about to take it in
        while await self._db.write_if(lambda db: (verbs.any_hidden(db, still), False), verbs.sweep, still):
            pass

    async def stamp(self, identifier: str, seen_as: str) -> None:
        await self._db.write(verbs.stamp, identifier, seen_as)

    async def listing(self, where: Where | None, limit: int, skip: int = 0) -> list[Document]:
        return await self._db.read(verbs.listing, where, limit, skip)

    async def count(self) -> int:
        """How many there are."""
        return await self._db.read(verbs.count)

    async def of_config(self, scope: str) -> list[Document]:
        return await self._db.read(verbs.of_config, scope)

    async def there(self, scope: str, source: str) -> Document | None:
        return await self._db.read(verbs.there, scope, source)

    async def find(self, key: str) -> Document:
        """The document with this id, the beginning of one, or this source. Raises NotFound or UsageError."""
        return await self._db.read(verbs.find, key)

    async def below(self, folders: Collection[str]) -> list[Document]:
        """The documents whose files lie in one of these folders, or in a folder in it. folders: absolute paths."""
        return await self._db.read(verbs.below, folders)

    async def look_up(
        self, where: Where | None, terms: Sequence[str], limit: int, nearest: Sequence[int] = (), shown: Sequence[int] = ()
    ) -> Looked:
        """What the documents that may be seen from there have for a query's terms, see `index.look_up`."""
        return await self._db.read(lambda db: index.look_up(db, verbs.seen(db, where), terms, limit, nearest, shown))

    async def waiting(self, version: str, limit: int) -> tuple[Unembedded, ...]:
        """Pieces that lack a vector of a model; at most so many."""
        return () if self.empty else await self._db.read(vectors.waiting, version, limit)

    async def left(self, version: str) -> int:
        """How many pieces lack a vector of a model."""
        return 0 if self.empty else await self._db.read(vectors.left, version)

    async def embedded(self, version: str, found: Sequence[tuple[Unembedded, bytes]]) -> None:
        """Write vectors of pieces that waited for them."""
        await self._db.write_relaxed(vectors.add, version, found)

    async def nearest(self, where: Where | None, version: str, vector: bytes, limit: int, *, extension: bool) -> list[int]:
        """The pieces that may be seen from there whose vectors are nearest, best first. extension: sqlite-vec is loaded."""
        return await self._db.read(lambda db: vectors.nearest(db, verbs.seen(db, where), version, vector, limit, extension=extension))

    async def check(self) -> list[str]:
        """What is wrong with them, in words."""
        return [*await self._db.read(index.problems), *await self._db.read(vectors.problems)]
