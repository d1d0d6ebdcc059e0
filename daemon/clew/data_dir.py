"""The folder that holds all that clew keeps, of one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.errors import ClewError


def made(path: Path) -> Path:
    """The folder, made where it is not there yet. Raises ClewError."""
    folder = path.expanduser()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ClewError(f"{folder}: the data directory cannot be made ({error.strerror}).", hint="Set data_dir in the config.") from None
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process. Raises ClewError where another one does."""
    try:
        handle = os.open(folder / "clew.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ClewError(f"{folder}: the data directory cannot be written ({error.strerror}).", hint="Check its owner.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise ClewError(f"{folder}: another clew uses this data directory.", hint="Stop it first, or choose another data_dir.") from None
    try:
        yield
    finally:
        os.close(handle)
