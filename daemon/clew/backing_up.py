"""Backups that a running daemon is asked for: one at a time, beside everything else, the newest ones kept."""

import asyncio
import threading
from pathlib import Path

import structlog

from clew.clock import Time
from clew.config.database import FILE, is_shared
from clew.errors import ClewError, UsageError
from clew.progress import Progress, Work
from clew.store import backups

log = structlog.get_logger()

FOLDER = "backups"
"""Beside the database."""
KEPT = 7
"""Backups that stay in it."""


class Stopped(Exception):
    """The process ends in the middle of a copy."""


class BackingUp:
    """Makes a backup for each `begin`. database: the file. where: `store` of the config."""

    def __init__(self, database: Path, progress: Progress, time: Time, where: str = FILE) -> None:
        self._database = database
        self._where = where
        self._progress = progress
        self._time = time
        self._wanted = asyncio.Event()
        self._ending = threading.Event()

    @property
    def folder(self) -> Path:
        return self._database.parent / FOLDER

    async def listed(self) -> list[backups.Backup]:
        """The backups that were made of this database by clew, the newest first, also those that are gone meanwhile."""
        return (await asyncio.to_thread(backups.listed, self._database.parent))[::-1]

    def begin(self) -> None:
        """Ask for a backup. Raises UsageError where one is being made, or the database is copied by its own tools."""
        if is_shared(self._where):
            command = backups.by_hand(self._where, Path("clew.dump"))
            raise UsageError("A store in PostgreSQL is copied by PostgreSQL's own tools.", hint=f"{command} (docs/postgresql.md, Backup)")
        if self._wanted.is_set():
            raise UsageError("A backup is being made already.")
        self._wanted.set()

    async def run(self) -> None:
        try:
            while True:
                await self._wanted.wait()
                try:
                    with self._progress.of("backup", "pages") as work:
                        await asyncio.to_thread(self._make, work)
                except (ClewError, OSError) as error:
                    log.warning("backup.failed", err=error.told if isinstance(error, ClewError) else str(error))
                self._wanted.clear()
        finally:
            self._ending.set()  # a copy that goes on in its thread

    def _make(self, work: Work) -> None:
        def tell(done: int, of: int) -> None:
            if self._ending.is_set():
                raise Stopped
            work.at(done, of)

        self.folder.mkdir(mode=0o700, exist_ok=True)
        made = backups.make(self._database, self.folder, self._time.wall(), tell)
        backups.note(self._database.parent, made)
        gone = backups.rotate(self.folder, KEPT, Path(made.path))
        log.info("backup.made", path=made.path, bytes=made.size, files=made.files, removed=len(gone))
