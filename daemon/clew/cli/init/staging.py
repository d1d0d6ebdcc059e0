"""A config and its secrets in a folder of their own, until all of it takes its place at once."""

import errno
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from clew.cli.init.draft import Draft, rendered
from clew.cli.options import settings
from clew.config import Config
from clew.errors import ClewError, ConfigError

ENDS = (signal.SIGHUP, signal.SIGTERM)
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""What disks say that have no hard links."""


class Staging:
    """target: where the config is to be. Its secrets go to `<name>.secrets` beside it."""

    def __init__(self, target: Path, folder: Path) -> None:
        self.target = target
        self._folder = folder
        self._staged = folder / target.name
        self._secrets = f"{target.stem}.secrets"

    @property
    def secrets(self) -> Path:
        """The folder of the secrets, where it will be."""
        return self.target.parent / self._secrets

    def load(self, draft: Draft) -> Config:
        """`draft` as clew will read it. Raises ConfigError, as if the config were in its place."""
        shutil.rmtree(self._folder / self._secrets, ignore_errors=True)
        files = {name: f"{self._secrets}/{self._free(name)}" for name in draft.secrets()}
        for name, text in draft.secrets().items():
            self._write(self._folder / files[name], f"{text}\n")
        self._staged.unlink(missing_ok=True)
        self._write(self._staged, rendered(draft, files))
        try:
            return settings(self._staged)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(self._staged), str(self.target)), hint=error.hint) from None

    def take_place(self) -> None:
        """Put what was loaded last where it belongs, or nothing of it. A config that is there keeps its words under another name."""
        made: list[Path] = []
        old: Path | None = None
        try:
            self._made(self.target.parent, made)
            staged = self._folder / self._secrets
            if staged.is_dir():
                self._made(self.secrets, made)
                for each in staged.iterdir():
                    _placed(each, self.secrets / each.name)
                    made.append(self.secrets / each.name)
            if self.target.exists():
                old = self.target.replace(_unused(self.target.with_name(f"{self.target.name}.old")))
            _placed(self._staged, self.target)
        except BaseException as error:
            if old:
                old.replace(self.target)
            for path in reversed(made):
                path.rmdir() if path.is_dir() else path.unlink()
            if isinstance(error, OSError):
                raise ClewError(f"{self.target}: nothing could be written ({error.strerror}).") from None
            raise

    def _made(self, folder: Path, made: list[Path]) -> None:
        if not folder.exists():
            self._made(folder.parent, made)
            folder.mkdir(mode=0o700)
            made.append(folder)

    def _free(self, name: str) -> str:
        """A file's name that is not taken among the secrets that are in place already."""
        return _unused(self.secrets / name).name

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _placed(staged: Path, target: Path) -> None:
    """Raises FileExistsError where something is there: it has come meanwhile."""
    try:
        os.link(staged, target)
    except OSError as error:
        if error.errno not in NO_LINKS or target.exists():
            raise
        staged.replace(target)


def _unused(path: Path) -> Path:
    """`path`, or one like it with a number where that is taken."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in range(2, 10_000))
    return next(each for each in (path, *numbered) if not each.exists())


@contextmanager
def staging(target: Path) -> Iterator[Staging]:
    """A folder on the same disk as `target`, which is gone afterwards, whatever happens."""
    whole = target.absolute()
    near = next(each for each in whole.parents if each.exists())
    try:
        folder = tempfile.mkdtemp(prefix=".clew-init-", dir=near)
    except OSError as error:
        raise ClewError(f"{near}: nothing can be written there ({error.strerror}).", hint="Name another place with --config.") from None
    before = {number: signal.signal(number, _interrupt) for number in ENDS}
    try:
        yield Staging(target, Path(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """A terminal that is closed, or a polite kill, ends it like Ctrl-C: with nothing left."""
    raise KeyboardInterrupt
