"""Which backups were made, and how many of them are kept."""

import json
import re
import shlex
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from clew.config.database import with_options
from clew.store.sqlite.backup import Tell, backup, copied_files, files_beside

LIST = "backups.jsonl"
"""The file beside the database that names them, one JSON object a line, the newest last."""
MOST = 1000
"""Backups that the list names."""
OURS = re.compile(r"clew-\d{8}T\d{6}Z\.db")
"""Names that `named` gives: nothing else in the folder is ever taken away."""


@dataclass(frozen=True, slots=True)
class Backup:
    """path: absolute. made: seconds since the epoch. size: bytes of the database's copy. files: files of messages beside it."""

    path: str
    made: float
    size: int
    files: int


def by_hand(where: str, target: Path) -> str:
    """The command that copies a PostgreSQL database, which is for its own tools to do. where: `store` of the config."""
    return f"pg_dump --format=custom --file={shlex.quote(str(target))} {shlex.quote(with_options(where))}"


def make(source: Path, target: Path, now: float, tell: Tell = lambda done, of: None) -> Backup:
    """Copy the database `source` with the files of messages to `target`, a new file or a folder that is there, and check the copy.

    now: seconds since the epoch. Raises StoreError.
    """
    folder = target if target.is_dir() else None
    path = (named(folder, now) if folder else target).absolute()
    earlier = newest(folder) if folder else None
    size = backup(source, path, tell)
    return Backup(str(path), now, size, copied_files(source, path, earlier))


def named(folder: Path, now: float) -> Path:
    """Where a backup that is made now lies in a folder of backups."""
    return folder / time.strftime("clew-%Y%m%dT%H%M%SZ.db", time.gmtime(now))


def listed(data_dir: Path) -> list[Backup]:
    """The backups that were made of the database in `data_dir`, the newest last, also those that are gone meanwhile."""
    try:
        lines = (data_dir / LIST).read_text().splitlines()
    except OSError:
        return []
    return [each for each in map(_parsed, lines) if each]


def note(data_dir: Path, made: Backup) -> None:
    """Add to the list. Raises OSError."""
    kept = [each for each in listed(data_dir) if each.path != made.path][1 - MOST :]
    path = data_dir / LIST
    new = path.with_name(f"{LIST}.new")
    new.touch(0o600)
    new.write_text("".join(f"{json.dumps(asdict(each))}\n" for each in [*kept, made]))
    new.replace(path)


def newest(folder: Path) -> Path | None:
    """The newest backup in a folder."""
    return max(_ours(folder), default=None)


def rotate(folder: Path, keep: int, made: Path) -> list[Path]:
    """Take away all but the newest `keep` backups of a folder, with their files. Returns those that went. Raises OSError.

    made: the newest, that of now. One with a later name was made while the clock was wrong: it goes before all others.
    """
    gone = sorted(_ours(folder), key=lambda path: (path.name <= made.name, path.name))[:-keep]
    for path in gone:
        shutil.rmtree(files_beside(path), ignore_errors=True)
        path.unlink()
    return gone


def _ours(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if OURS.fullmatch(path.name) and path.is_file() and not path.is_symlink()]


def _parsed(line: str) -> Backup | None:
    try:
        return Backup(**json.loads(line))
    except (ValueError, TypeError):
        return None
