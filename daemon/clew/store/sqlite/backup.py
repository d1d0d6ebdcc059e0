"""A copy of the whole file, made while others read and write it."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from clew.errors import StoreError
from clew.store.files import verbs
from clew.store.files.folder import FOLDER, Folder, copied
from clew.store.sqlite.connection import SqliteConnection

PAGES = 2000
"""Pages that are copied at once: some 8 MB."""

Tell = Callable[[int, int], object]
"""Told how many are done, and how many there are."""


def backup(source: Path, path: Path, tell: Tell = lambda done, of: None) -> int:
    """Copy a database, of an older clew too, to the new file `path`, which only its owner may read, and check the copy.

    The copy is what a reader sees now, in one file. Returns its size in bytes. Raises StoreError, and then leaves nothing at `path` that
    was not there. tell: told how many pages are copied, now and then; what it raises ends the copy.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise StoreError(f"{path} is there already.", hint="Nothing is overwritten: name a file that is not there yet.") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}.", hint="The backup needs a folder that this user may write to.") from None
    try:
        _copy(source, path, tell)
    except sqlite3.Error as error:
        path.unlink()
        hint = "Is there room on that disk? `clew db check` examines the source."
        raise StoreError(f"{path}: the backup failed ({error}).", hint=hint) from None
    except BaseException:
        path.unlink()
        raise
    return path.stat().st_size


def files_beside(path: Path) -> Path:
    """Where the files of messages lie that belong to the copy `path`."""
    return path.with_name(f"{path.name}.{FOLDER}")


def copied_files(source: Path, path: Path, earlier: Path | None = None) -> int:
    """Copy the files that the database copy `path` names from beside `source`. Returns how many. Raises StoreError where one is missing,
    damaged or cannot be written.

    earlier: another copy on the same disk. What lies beside that one already takes no room again: a file never changes once it has a name.
    """
    with closing(SqliteConnection(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        known = db.execute("SELECT 1 FROM pragma_table_info('attachments') WHERE name = 'hash'").fetchone()
        wanted = sorted(verbs.wanted(db)) if known else []
    return copied(wanted, Folder(source.with_name(FOLDER)), Folder(files_beside(path)), Folder(files_beside(earlier)) if earlier else None)


def _copy(source: Path, path: Path, tell: Tell) -> None:
    copy = sqlite3.connect(path, isolation_level=None)
    try:
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as db:
            db.execute("BEGIN")  # else each write of somebody else would begin the copy anew
            db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
            db.backup(copy, pages=PAGES, progress=lambda status, left, of: tell(of - left, of))
        copy.execute("PRAGMA journal_mode = DELETE")  # without a -wal file beside it
        wrong = [row[0] for row in copy.execute("PRAGMA integrity_check(1)") if row[0] != "ok"]
    finally:
        copy.close()
    if wrong:
        raise StoreError(f"{path}: the copy is damaged ({wrong[0]}).", hint="`clew db check` examines the source.")
