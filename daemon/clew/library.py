"""Documents taken in: read, cut, stored; and the watched folders they come from by themselves."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import structlog

from clew.clock import Time
from clew.context.chunks import chunks
from clew.documents import MEDIA_TYPES, SUFFIXES, Kind, Refused, folders
from clew.documents.reading import Reader
from clew.errors import ClewError
from clew.fetching import Fetched, Fetcher, parsed
from clew.progress import Progress
from clew.store.documents import MOST_CHUNKS, Document, NewDocument, Origin
from clew.store.notes import Where
from clew.store.sql import SqlStore

log = structlog.get_logger()

READING = 1
"""Changes with what is read of a document, so that one that is added again is read again."""
LONGEST_NAME = 200
LOOK_EVERY = 30.0
"""Seconds between two looks at the watched folders."""
MOST_AT_A_LOOK = 50
"""Documents that are read at one look; the others come with the next, which is due at once."""


@dataclass(frozen=True, slots=True)
class Added:
    """A document that was taken in, or was there already as it is."""

    document: Document
    state: Literal["added", "changed", "unchanged"]


class Library:
    """Takes documents in. most_bytes: of one document."""

    def __init__(self, store: SqlStore, reader: Reader, fetcher: Fetcher, most_bytes: int, time: Time) -> None:
        self._store = store
        self._reader = reader
        self._fetcher = fetcher
        self.most_bytes = most_bytes
        self._time = time

    async def add_url(self, scope: str, url: str) -> Added:
        """Fetch what stands at a public address of the web, and take it in. Raises ClewError."""
        source = str(parsed(url))
        fetched = await self._fetcher.fetch(source, self.most_bytes)
        parts = urlsplit(fetched.url)
        name = f"{parts.hostname}{unquote(parts.path).rstrip('/')}"
        return await self._add(scope, source, name, kind_of_page(fetched), fetched.body, fetched.charset)

    async def add_file(self, scope: str, path: Path, body: bytes, origin: Origin = "hand", stamp: str = "") -> Added:
        """Take in a file's bytes. path: absolute, where it is. Raises Refused or UsageError."""
        if len(body) > self.most_bytes:
            raise folders.too_large(self.most_bytes)
        return await self._add(scope, str(path), path.name, kind_of_file(path, body), body, "", origin, stamp)

    async def _add(
        self, scope: str, source: str, name: str, kind: Kind, body: bytes, encoding: str, origin: Origin = "hand", stamp: str = ""
    ) -> Added:
        digest = await asyncio.to_thread(lambda: hashlib.sha256(f"{READING}/{kind}/".encode() + body).hexdigest())
        there = await self._store.documents.there(scope, source)
        if there is not None and there.hash == digest and there.origin == origin:
            if stamp != there.stamp:
                await self._store.documents.stamp(there.id, stamp)
            return Added(there, "unchanged")
        contents = await self._reader.read(kind, body, encoding)
        pieces = await asyncio.to_thread(chunks, contents.sections)
        if len(pieces) > MOST_CHUNKS:
            raise Refused(f"it comes to more than {MOST_CHUNKS:,} pieces.", hint="Cut it in parts.")
        new = NewDocument(source, name[:LONGEST_NAME], contents.title, kind, digest, len(body), origin, stamp)
        document = await self._store.documents.put(scope, new, pieces, self._time.wall())
        log.info("document.added", document=document.id, kind=kind, pieces=len(pieces), bytes=len(body))
        return Added(document, "changed" if there else "added")


def kind_of_file(path: Path, body: bytes) -> Kind:
    """What a file is: by the end of its name, else a PDF by its first bytes, else text."""
    return SUFFIXES.get(path.suffix.lower()) or ("pdf" if body.startswith(b"%PDF-") else "text")


def kind_of_page(fetched: Fetched) -> Kind:
    """What a page of the web is: by its media type, else by the end of its path. Raises Refused."""
    if (kind := MEDIA_TYPES.get(fetched.media_type)) is not None:
        return kind
    suffix = SUFFIXES.get(Path(urlsplit(fetched.url).path).suffix.lower())
    if fetched.media_type.startswith("text/"):
        return suffix if suffix == "markdown" else "text"
    if suffix is None or fetched.media_type not in ("application/octet-stream", "binary/octet-stream", "application/zip"):
        raise Refused(f"{fetched.media_type} is no document that can be read.", hint="Markdown, text, HTML, PDF and DOCX are.")
    return suffix


class Watch:
    """Keeps what stands in the watched files and folders documents of `owner`. paths: as the config has them."""

    def __init__(self, store: SqlStore, library: Library, owner: str, paths: Sequence[str], time: Time, progress: Progress) -> None:
        self._store = store
        self._library = library
        self._owner = owner
        self._roots = [Path(path).expanduser() for path in paths]
        self._time = time
        self._progress = progress
        self._looked = -LOOK_EVERY
        self._told: dict[str, str] = {}
        self._why: dict[str, str] = {}

    @property
    def refused(self) -> list[tuple[str, str]]:
        """(path, why) of what was not taken in at the last look, by path."""
        return sorted(self._why.items())

    def due(self) -> bool:
        """Whether it is time to look again."""
        return self._time.steady() - self._looked >= LOOK_EVERY

    async def look(self) -> None:
        """Take in what is new or has changed, and let go what is there no more.

        What cannot be read stays as it was read before, and its reason is logged once; so do the documents of a folder that is gone as a
        whole, which may be on a disk that is not there just now.
        """
        self._looked = self._time.steady()
        scope = await self._store.documents.scope(Where(person=self._owner), "user")
        known = {each.source: each for each in await self._store.documents.of_config(scope)}
        if not self._roots and not known:
            return
        seen: dict[str, tuple[Path, str]] = {}
        unreadable = []
        for root in self._roots:
            try:
                for file in await asyncio.to_thread(_files, root):
                    seen[str(file.path)] = (root, file.stamp)
                self._taken(str(root))
            except (Refused, OSError) as error:
                unreadable.append(root)
                self._tell(str(root), "", error)
        for path in [path for path in self._told if path not in seen and Path(path) not in unreadable]:
            self._taken(path)
        new = [path for path, (_, stamp) in seen.items() if self._is_new(path, stamp, known.get(path))]
        if new:
            with self._progress.of("watched folders", "documents", len(new)) as work:
                for count, path in enumerate(new[:MOST_AT_A_LOOK], 1):
                    await self._take_in(scope, Path(path), *seen[path])
                    work.at(count)
        if len(new) > MOST_AT_A_LOOK:
            self._looked = -LOOK_EVERY
        gone = [each.id for source, each in known.items() if source not in seen and not _is_below(Path(source), unreadable)]
        if gone:
            await self._store.documents.remove(gone)
            log.info("documents.removed", documents=len(gone))

    def _is_new(self, path: str, stamp: str, known: Document | None) -> bool:
        return self._told.get(path) != stamp and (known is None or known.stamp != stamp)

    async def _take_in(self, scope: str, path: Path, root: Path, stamp: str) -> None:
        try:
            within = root if root.is_dir() else None
            body, stamp = await asyncio.to_thread(folders.content, path, self._library.most_bytes, within)
            await self._library.add_file(scope, path, body, "config", stamp)
            self._taken(str(path))
        except (ClewError, OSError) as error:
            self._tell(str(path), stamp, error)

    def _taken(self, path: str) -> None:
        """Nothing is wrong with it any more."""
        self._told.pop(path, None)
        self._why.pop(path, None)

    def _tell(self, path: str, stamp: str, error: ClewError | OSError) -> None:
        if self._told.get(path) != stamp:
            self._told[path] = stamp
            self._why[path] = why = error.told if isinstance(error, ClewError) else error.strerror or str(error)
            log.warning("document.refused", path=path, why=why)


def _files(root: Path) -> list[folders.File]:
    if root.is_dir():
        return folders.files(root)
    path = root.resolve(strict=True)
    return [folders.File(path, folders.stamp_of(path.stat()))]


def _is_below(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root.resolve()) for root in roots)
