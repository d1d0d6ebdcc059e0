"""The folder of files: named by the SHA-256 of their bytes, written whole or not at all."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from clew.errors import StoreError

FOLDER = "files"
"""Its name, beside the database."""
HASH = re.compile(r"[0-9a-f]{64}")
UNFINISHED = "unfinished-"
"""What the names of files begin with that are being written."""


class Folder:
    """Files below `path`, which is made when the first comes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, digest: str) -> Path:
        """Where the file with this hash lies. Raises ValueError for anything that is none."""
        if not HASH.fullmatch(digest):
            raise ValueError("not a hash")
        return self.path / digest[:2] / digest

    def writing(self) -> "Writing":
        """A new file. Raises OSError."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        return Writing(self)

    def put(self, body: bytes) -> None:
        """Store these bytes. Raises OSError."""
        with self.writing() as writing:
            writing.add(body)
            writing.sync()
            writing.keep()

    def link(self, other: "Folder", digest: str) -> bool:
        """Share a file of another folder. False where the disk cannot. Raises OSError."""
        place = self.place(digest)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            place.hardlink_to(other.place(digest))
        except OSError:
            return False
        for folder in (place.parent, self.path, self.path.parent):
            _sync_folder(folder)
        return True

    def read(self, digest: str) -> bytes | None:
        """Its bytes; None where it is not there, or is another than its name says."""
        try:
            body = self.place(digest).read_bytes()
        except OSError:
            return None
        return body if hashlib.sha256(body).hexdigest() == digest else None

    def hashes(self) -> Iterator[str]:
        """Of all files that lie here."""
        for path in sorted(self.path.glob("??/*")):
            if HASH.fullmatch(path.name):
                yield path.name

    def remove(self, digest: str) -> None:
        self.place(digest).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Take away what an earlier process did not finish."""
        for path in self.path.glob(f"{UNFINISHED}*"):
            path.unlink(missing_ok=True)


def copied(wanted: Iterable[str], origin: Folder, copy: Folder, earlier: Folder | None = None) -> int:
    """Copy the files with these hashes that are not in `copy` yet. Returns how many hashes they are. Raises StoreError where a file is
    missing, damaged or cannot be written.

    earlier: a folder on the disk of `copy`. What lies in that one already takes no room again: a file never changes once it has a name.
    """
    lost = count = 0
    for digest in wanted:
        count += 1
        body = origin.read(digest)
        if body is None:
            lost += 1
            continue
        try:
            if copy.read(digest) != body and not (earlier and earlier.read(digest) == body and copy.link(earlier, digest)):
                copy.put(body)
        except OSError as error:
            raise StoreError(f"{copy.path}: {error.strerror}.", hint="The files of messages are not all copied.") from None
    if lost:
        raise StoreError(f"{lost} files of messages are missing or damaged.", hint="All others are copied. `clew db check` names them.")
    return count


class Writing:
    """A file that is being written; `keep` gives it its place, leaving the block without it takes it away. size: bytes so far."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        handle, path = tempfile.mkstemp(prefix=UNFINISHED, dir=folder.path)  # 0600
        self._handle, self._path = handle, Path(path)
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def hash(self) -> str:
        return self._digest.hexdigest()

    def add(self, piece: bytes) -> None:
        view = memoryview(piece)
        while view:
            view = view[os.write(self._handle, view) :]
        self._digest.update(piece)
        self.size += len(piece)

    def sync(self) -> None:
        """Let the disk have it all."""
        os.fsync(self._handle)

    def keep(self) -> None:
        """Give it its place, for good."""
        place = self._folder.place(self.hash)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        self._path.replace(place)
        for folder in (place.parent, self._folder.path, self._folder.path.parent):
            _sync_folder(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._handle)
        self._path.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
