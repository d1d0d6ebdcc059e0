"""Files as they are found in folders and read: ordinary files only, none outside of the folder, none too large."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clew.documents import SUFFIXES, Refused

MOST_FILES = 10_000
"""Files of one folder."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that may be a document. path: absolute. stamp: its size and time of change, by which a change is noticed."""

    path: Path
    stamp: str


def files(folder: Path) -> list[File]:
    """The documents in a folder and in those in it, by path.

    Hidden ones are left out, and so are files of other kinds and links that lead out of the folder. Raises Refused, OSError.
    """
    found = []
    for each in _found(folder.resolve(strict=True)):
        found.append(each)
        if len(found) > MOST_FILES:
            raise Refused(f"{folder} holds more than {MOST_FILES:,} documents.", hint="Name the folders in it that matter.")
    return sorted(found, key=lambda each: each.path)


def _found(root: Path) -> Iterator[File]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES or not _is_inside(path, root):
                continue
            try:
                found = path.stat()
            except OSError:
                continue  # it went just now, or is a link to nothing
            if stat.S_ISREG(found.st_mode):
                yield File(path, stamp_of(found))


def _is_inside(path: Path, root: Path) -> bool:
    return not path.is_symlink() or path.resolve().is_relative_to(root)


def stamp_of(found: os.stat_result) -> str:
    return f"{found.st_size}/{found.st_mtime_ns}"


def content(path: Path, most_bytes: int, within: Path | None = None) -> tuple[bytes, str]:
    """(what a file holds, its stamp). within: it must lie in this folder, whatever links lead to it. Raises Refused, OSError."""
    if not _is_utf8(str(path)):
        raise Refused("its name is not UTF-8.", hint="Rename it, and add it then.")
    target = path.resolve(strict=True)
    if within is not None and not target.is_relative_to(within.resolve(strict=True)):
        raise Refused("it is a link that leads out of its folder.")
    # No waiting at a pipe, and no link that took the file's place since.
    handle = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise Refused("it is no ordinary file.")
        if found.st_size > most_bytes:
            raise too_large(most_bytes)
        with os.fdopen(handle, "rb", closefd=False) as file:
            body = file.read(most_bytes + 1)
    finally:
        os.close(handle)
    if len(body) > most_bytes:
        raise too_large(most_bytes)
    return body, stamp_of(found)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def too_large(most: int) -> Refused:
    """Why a document of more than so many bytes is not taken."""
    return Refused(f"it is larger than {most / 2**20:,.1f} MiB.", hint="`limits.attachment_bytes` in the config is the bound.")
