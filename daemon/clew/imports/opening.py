"""The files of an export: one by itself, in a folder, or in a zip; bounded, however much a zip claims to hold."""

import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from clew.imports.conversation import ExportError

MOST_FILES = 100_000
"""Files that a folder or a zip may hold."""
MOST_BYTES = 16 * 2**30
"""Bytes of one file of an export, unpacked."""
FREE_BYTES, HIGHEST_RATIO = 64 * 2**20, 200
"""How many times its packed size a file of a zip may unpack to, once it is larger than that. Talk packs to a tenth of its size."""


class Stream(Protocol):
    """Bytes that are read from front to back."""

    def read(self, count: int) -> bytes:
        """At most so many; none at the end. Raises ExportError."""


class _Bounded:
    """A stream of `name` that may give `most` bytes."""

    def __init__(self, stream: IO[bytes], name: str, most: int) -> None:
        self._stream = stream
        self._name = name
        self._left = most

    def read(self, count: int) -> bytes:
        try:
            found = self._stream.read(min(count, self._left + 1))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise ExportError(f"{self._name} cannot be read ({error}).", hint="Is the file whole? Download it again.") from None
        self._left -= len(found)
        if self._left < 0:
            raise ExportError(f"{self._name} unpacks to more than talk does.", hint="Unpack it yourself, and look at what is in it.")
        return found


def streams(path: Path, wanted: str) -> Iterator[tuple[str, Stream]]:
    """(name, bytes) of each file of an export whose name, without folders, fits the pattern `wanted`; of a single file in any case.

    Raises ExportError where there is none.
    """
    fits = re.compile(wanted, re.IGNORECASE)
    if path.is_dir():
        names = [each for each in sorted(path.iterdir())[:MOST_FILES] if each.is_file() and fits.fullmatch(each.name)]
        for each in names:
            with _opened(each) as file:
                yield each.name, _Bounded(file, each.name, MOST_BYTES)
        found = bool(names)
    elif path.is_char_device() or path.is_block_device():
        raise ExportError(f"{path} is a device, no file.")  # it may never end
    elif _is_zip(path):
        found = yield from _unpacked(path, fits)
    else:
        with _opened(path) as file:
            yield path.name, _Bounded(file, path.name, MOST_BYTES)
        found = True
    if not found:
        raise ExportError(f"{path.name} holds none of the files of such an export.", hint="Is it the right file, and the right --from?")


def _is_zip(path: Path) -> bool:
    try:
        return zipfile.is_zipfile(path)
    except OSError as error:
        raise _unopened(path, error) from None


def _unpacked(path: Path, fits: re.Pattern[str]) -> Generator[tuple[str, Stream], None, bool]:
    """Returns whether there was any."""
    try:
        whole = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ExportError(f"{path.name} is a damaged zip ({error}).", hint="Is the file whole? Download it again.") from None
    with whole:
        if len(whole.infolist()) > MOST_FILES:
            raise ExportError(f"{path.name} holds more than {MOST_FILES:,} files.")
        inside = [each for each in whole.infolist() if not each.is_dir() and fits.fullmatch(PurePosixPath(each.filename).name)]
        for each in sorted(inside, key=lambda one: one.filename):
            most = min(MOST_BYTES, max(FREE_BYTES, HIGHEST_RATIO * each.compress_size))
            try:
                file = whole.open(each)
            except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
                raise ExportError(f"{each.filename} in {path.name} cannot be read ({error}).") from None
            with file:
                yield each.filename, _Bounded(file, each.filename, most)
    return bool(inside)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unopened(path, error) from None
    with file:
        yield file


def _unopened(path: Path, error: OSError) -> ExportError:
    return ExportError(f"{path} cannot be opened ({error.strerror}).")
