"""Messages are text files that people move into a folder; replies are files too.

`in/<who>/*.txt` is what somebody says, `taken/` what is read and perhaps not stored yet, `out/<who>/<time>-<id>.txt` what clew
answers.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from clew.config import Duration, Needed
from clew.plugins import Ask, Fault, Plugin, Setup
from clew.transport import Address, Capabilities, Delivery, Host, Inbound, Part, Preview, PreviewRef, Refused, Retry, Route, Sent, Typing
from clew_transports.settings import Section

WHO = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A person's folder, which is a chat as well."""
MAX_BYTES = 64 * 1024
"""The longest message."""
AT_ONCE = 100
"""Messages that are stored in one commit."""


class Settings(Section):
    """path: the folder with `in` and `out`. every: seconds between two looks into it."""

    path: Annotated[str, Needed()] = ""
    every: Annotated[Duration, Field(ge=0.01, le=3600.0)] = 1.0


def unreachable(to: Address) -> str:
    """Why nothing can be written to `to`; empty where it can."""
    return "" if WHO.fullmatch(to.chat) and to.thread is None else "a chat is named by 1 to 64 of A-Z a-z 0-9 _ -, without a thread"


class FolderTransport:
    """`name` is the section's name in the config and the first part of its addresses."""

    # A reply that is written twice is the same file: the receiver drops repeats, and nothing has to be asked.
    capabilities = Capabilities(markup="markdown", idempotent_send=True, unreachable=unreachable)

    def __init__(self, name: str, settings: Settings) -> None:
        self._name = name
        self._every = settings.every
        self._in, self._taken, self._out = (Path(settings.path) / each for each in ("in", "taken", "out"))

    async def run(self, host: Host) -> None:
        """See `Transport.run`: look, store, and only then let go of the files."""
        while True:
            full = False
            try:
                full = await self._look(host) == AT_ONCE
                host.report(True, str(self._in))
            except OSError as error:
                host.report(False, str(error))
            if not full:
                await asyncio.sleep(self._every)

    async def _look(self, host: Host) -> int:
        """Returns how many messages were stored."""
        files = await asyncio.to_thread(self._take)
        if files:
            await host.accept(await asyncio.to_thread(self._messages, files))
            await asyncio.to_thread(_remove, files)
        return len(files)

    def _take(self) -> list[Path]:
        """Files that are clew's own now, the oldest first; those of a run that was killed before they were stored, or removed, too.

        One that is moved is taken once, and keeps the name by which a repeat is known, whatever is put in its old place.
        """
        self._taken.mkdir(mode=0o700, exist_ok=True)
        for who, file in sorted(self._waiting(), key=lambda each: each[1].stat(follow_symlinks=False).st_mtime_ns):
            os.rename(file, self._taken / f"{time.time_ns():020}.{who}.txt")
        return [Path(each) for each in sorted(os.scandir(self._taken), key=lambda each: each.name)[:AT_ONCE]]

    def _waiting(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        for folder in os.scandir(self._in):
            if WHO.fullmatch(folder.name) and folder.is_dir(follow_symlinks=False):
                for file in os.scandir(folder):
                    if file.name.endswith(".txt") and not file.is_dir(follow_symlinks=False):
                        yield folder.name, file

    def _messages(self, files: Sequence[Path]) -> list[Inbound]:
        return [self._message(each) for each in files]

    def _message(self, file: Path) -> Inbound:
        """What is in a taken file. One that cannot be read as text becomes a message that is refused, with the reason as the answer."""
        who = file.name.split(".")[1]
        text, refused = "", ""
        try:
            text = _text(file)
        except ValueError as why:
            refused = str(why)
        return Inbound(f"{self._name}/{file.name}", Address(self._name, who), who, text, refused=refused)

    def parts(self, text: str) -> list[Part]:
        return [Part(text)]

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`. Nobody sees half a reply: it is written beside its place and moved."""
        if why := unreachable(delivery.address):
            raise Refused(why)
        try:
            await asyncio.to_thread(_write, self._out / delivery.address.chat, _named(delivery), delivery.text)
        except OSError as error:  # a full disk, a folder that is gone: both may be mended
            raise Retry(str(error)) from None
        return Sent(delivery.id)

    async def find(self, delivery: Delivery) -> Sent | None:
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        raise LookupError(ref)
        yield b""


def _text(file: Path) -> str:
    """The words in `file`. Raises ValueError with what its author is told."""
    if file.is_symlink() or not file.is_file():  # the folder of somebody else is not to be read through a link
        raise ValueError("That is no file.")
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"That is longer than {MAX_BYTES:,} bytes.")
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise ValueError("That is no text in UTF-8.") from None
    if not text:
        raise ValueError("That is empty.")
    return text


def _named(delivery: Delivery) -> str:
    """The same whenever it is sent again; in their order, sorted by name."""
    return f"{datetime.fromtimestamp(delivery.ts, UTC):%Y%m%dT%H%M%S.%f}-{delivery.id}.txt"


def _remove(files: Sequence[Path]) -> None:
    for each in files:
        each.unlink()


def _write(folder: Path, name: str, text: str) -> None:
    """`text` in `folder/name`, on the disk when this returns."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{name}.new"  # matches no pattern by which replies are looked for
    with new.open("w", encoding="utf-8") as opened:
        opened.write(f"{text}\n")
        opened.flush()
        os.fsync(opened.fileno())
    new.replace(folder / name)
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _build(name: str, settings: Settings) -> FolderTransport:
    return FolderTransport(name, settings)


async def _examine(name: str, settings: Settings) -> Sequence[Fault]:
    """What `clew doctor` tells of the section."""
    for each in ("", "in"):
        folder = Path(settings.path) / each
        if not folder.is_dir():
            return (Fault(f"{folder} is no folder", f"mkdir -p {Path(settings.path) / 'in'}"),)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return (Fault(f"clew may not read and write {folder}", f"chown {os.geteuid()} {folder}"),)
    return ()


def _sender(settings: Settings, text: str) -> str:
    """Whoever a file's folder is named for."""
    if not WHO.fullmatch(text):
        raise ValueError("must stand the name of a folder: 1 to 64 of A-Z a-z 0-9 _ -")
    return text


def _first(settings: Settings, sender: str) -> str:
    return f"mv message.txt {Path(settings.path) / 'in' / (sender or 'ada')}/"


SETUP = Setup("files in a folder", (Ask("path", "The folder, with a folder named in"),), _first, "Your own folder's name")
plugin = Plugin("folder", Settings, _build, _examine, sender=_sender, setup=SETUP)
