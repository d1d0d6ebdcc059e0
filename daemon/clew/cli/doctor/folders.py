"""Files and folders: who may read them, what is left over, whether the store is whole, when it was copied last."""

import asyncio
import os
import shlex
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from clew.cli.client import answers, socket_path
from clew.cli.doctor.findings import Bounded, Finding, Level
from clew.cli.reading import reading_any, store_path
from clew.config import Config
from clew.config.database import is_shared
from clew.data_dir import locked
from clew.errors import ClewError
from clew.store.backups import listed
from clew.store.sqlite.quick import looked

LITTLE_SPACE = 512 * 2**20
NO_SPACE = 64 * 2**20
"""Bytes free on the data folder's disk: below the first a warning, below the second a problem."""
LOOKED_S = 8.0
"""Seconds that a look at the whole store may take."""
MOST_FILES = 1000
"""Files of the data folder whose permissions are looked at."""
OLD_DAYS = 7.0
BACK_UP = "clew db backup --keep 14 FOLDER, each night (docs/operation.md, Backup)"
GRANTED = ("/run/secrets/", "/run/credentials/")
"""Where containers and systemd put secrets: who may read them is decided there."""


async def data_folder(config: Config) -> Sequence[Finding]:
    folder = config.data_dir
    if not folder.exists():
        return [Finding("warning", f"{folder} is not there yet", f"mkdir -p -m 700 {_quoted(folder)}", mend=lambda: _make(folder))]
    if not (folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)):
        return [Finding("problem", f"{folder} is no folder that this user may write to", f"ls -ld {_quoted(folder)}")]
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        mend = _closing(folder, 0o700)
        return [Finding("problem", f"{folder} is open to other users", f"chmod 700 {_quoted(folder)}", mend=mend)]
    return [Finding("ok", f"{folder} is writable, and closed to others")]


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def of_config(file: Path | None) -> Mapping[str, Bounded]:
    """The check of who may read the config in `file` and the secrets that it refers to."""
    return {"permissions": Bounded(partial(permissions, file=file))}


async def permissions(config: Config, file: Path | None = None) -> Sequence[Finding]:
    """Whether other users of this machine can read secrets, or what is said."""
    secret = [*sorted(config.secret_files), *([file] if file and _holds_secrets(config, file) else [])]
    found = [_open(path, "holds secrets") for path in secret if _is_exposed(path)]
    found += [_open(path, "holds what was said") for path in _data(config.data_dir) if _is_exposed(path)]
    if file and _is_writable_by_others(file):
        found.append(Finding("problem", f"{file} can be changed by others", f"chmod go-w {_quoted(file)}", mend=_closing(file, 0o600)))
    return found or [Finding("ok", "no secret and nothing that was said can be read by other users")]


def _holds_secrets(config: Config, file: Path) -> bool:
    text = file.read_text("utf-8", "replace")
    return any(secret in text for secret in config.secrets() if len(secret) >= 4)


def _data(folder: Path) -> Iterator[Path]:
    """The files in the data folder, as far as it can be read."""
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        return
    with os.scandir(folder) as entries:
        for _, entry in zip(range(MOST_FILES), entries, strict=False):
            if entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _is_exposed(path: Path) -> bool:
    """Whether any user of this machine can read a file."""
    whole = path.absolute()
    if str(whole).startswith(GRANTED):
        return False
    try:
        return bool(whole.stat().st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in whole.parents)
    except OSError:
        return False


def _is_writable_by_others(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IWOTH) and all(each.stat().st_mode & stat.S_IXOTH for each in path.absolute().parents)


def _open(path: Path, what: str) -> Finding:
    return Finding("problem", f"{path} {what}, and every user can read it", f"chmod 600 {_quoted(path)}", mend=_closing(path, 0o600))


def _closing(path: Path, mode: int) -> Callable[[], None] | None:
    """What closes a file to others, None where it is not this user's."""
    return partial(path.chmod, mode) if path.stat().st_uid == os.geteuid() else None


async def leftovers(config: Config) -> Sequence[Finding]:
    """A socket that nobody listens on, while nobody holds the folder."""
    path = socket_path(config)
    if not path.is_socket() or await answers(path):
        return [Finding("ok", "none")]
    try:
        with locked(config.data_dir):
            text = f"{path} is left from a daemon that was killed; the next start takes it away"
            return [Finding("warning", text, f"rm {_quoted(path)}", mend=partial(_take_away, config.data_dir, path))]
    except ClewError:
        return [Finding("warning", f"a process holds {config.data_dir} and does not answer at {path.name}", "clew status")]


def _take_away(folder: Path, path: Path) -> None:
    with locked(folder):
        path.unlink(missing_ok=True)


async def disk(config: Config) -> Sequence[Finding]:
    folder = next(each for each in (config.data_dir.absolute(), *config.data_dir.absolute().parents) if each.exists())
    free = shutil.disk_usage(folder).free
    level: Level = "problem" if free < NO_SPACE else "warning" if free < LITTLE_SPACE else "ok"
    return [Finding(level, f"{free / 2**30:,.1f} GiB are free at {folder}", f"df -h {_quoted(folder)}" if level != "ok" else "")]


async def store(config: Config) -> Sequence[Finding]:
    try:
        async with reading_any(config) as opened:
            if opened is None:
                return [Finding("ok", "nothing is stored yet")]
            await opened.probe()
            counts = await opened.counts(time.time())
    except ClewError as error:
        return [Finding("problem", error.message, error.hint or "clew db check")]
    if lost := counts["outbox_dead"] + counts["outbox_unknown"]:
        return [Finding("warning", f"{lost} replies could not be sent", "clew outbox list")]
    return [Finding("ok", f"{counts['sessions']:,} sessions, {counts['messages']:,} messages")]


async def integrity(config: Config) -> Sequence[Finding]:
    if is_shared(config.store):
        return [Finding("ok", "PostgreSQL looks after its own pages; `clew db check` compares the search index")]
    path = store_path(config)
    if not path.exists():
        return [Finding("ok", "nothing is stored yet")]
    faults = await asyncio.to_thread(looked, path, LOOKED_S)
    if faults is None:
        return [Finding("ok", f"not looked at to the end in {LOOKED_S:.0f} s; `clew db check` takes its time")]
    if faults:
        return [Finding("problem", f"the database is damaged: {'; '.join(faults)}", "docs/operation.md, Backup: bring the last one back")]
    return [Finding("ok", "SQLite finds no fault with pages and references; `clew db check` compares the search index too")]


async def backup(config: Config) -> Sequence[Finding]:
    """How old the newest backup is that is still there, as far as clew made it itself."""
    if is_shared(config.store):
        return [Finding("ok", "the database is pg_dump's to copy, which clew cannot see (docs/postgresql.md, Backup)")]
    if not store_path(config).exists():
        return [Finding("ok", "nothing is stored yet")]
    made = listed(config.data_dir)
    there = [each for each in made if Path(each.path).exists()]
    if not there:
        text = f"of {len(made)} backups that were made none is where it was put" if made else "clew knows of no backup"
        return [Finding("warning", text, BACK_UP)]
    newest = max(there, key=lambda each: each.made)
    days = (time.time() - newest.made) / 86_400
    text = f"the newest is {_days(days)} old: {newest.path}"
    found = [Finding("warning" if days > OLD_DAYS else "ok", text, BACK_UP if days > OLD_DAYS else "")]
    exposed = [Path(each.path) for each in there if _is_exposed(Path(each.path))]
    return [*found, *(_open(path, "holds what was said") for path in exposed)]


def _days(days: float) -> str:
    return f"{days * 24:.0f} hours" if days < 2 else f"{days:.0f} days"


CHECKS: Mapping[str, Bounded] = {
    "data folder": Bounded(data_folder),
    "leftovers": Bounded(leftovers),
    "disk": Bounded(disk),
    "store": Bounded(store),
    "integrity": Bounded(integrity, LOOKED_S + 10),
    "backup": Bounded(backup),
}
