"""Files of messages: fetched once their sender is known, stored, read, and only then is the message taken up.

A message is committed as soon as it arrives, and waits for its files in its chat's lane; other chats do not. Every try is counted before it
begins and every result is stored, so that a process that dies at any moment goes on where it was, and nothing is tried for ever.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, replace

import structlog

from clew.bills import Bills, Seller
from clew.clock import Time
from clew.context.files import IMAGES, PDF, SHOWN_CHARS
from clew.context.sniffing import sniffed
from clew.context.text import clean
from clew.documents import MEDIA_TYPES, Refused
from clew.documents.reading import Reader
from clew.errors import StoreError
from clew.messages import File
from clew.store.files import Waiting
from clew.store.files.door import TooLarge
from clew.store.sql import SqlStore
from clew.supervise import unless_lasting
from clew.transcribers import NotTranscribed, Recording, Transcriber, words
from clew.transport import Transport

log = structlog.get_logger()

TRIES = 6
"""Tries to fetch a file, and to read it: with the waits between them a minute and a half, or as long as each of them takes."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the second try, thrice as many before each that follows, up to the longest."""
PATIENCE = 120.0
"""Seconds that one try to fetch a file may take."""
SIDE_BY_SIDE = {"waiting": 8, "fetched": 4}
"""Files that are fetched, and read, at the same time."""
OF_ONE_CHAT = 2
"""Those of one address among them, so that it leaves places to others."""
LOOK = 30.0
"""Seconds between looks when nothing was reported."""
AT_A_LOOK = 200
TEXT_CHARS = 200_000
"""Characters of a file's text that are kept: as many as are indexed of a message."""

GONE = "it is not there any more"
NOT_FETCHED = f"it could not be fetched in {TRIES} tries"
NOT_READ = f"it could not be read in {TRIES} tries"
SILENT = "nothing could be understood in it"
DEAF = "I cannot listen to it, since no transcriber is set up"


def _wait(attempt: int) -> float:
    return min(FIRST_WAIT * 3.0 ** (attempt - 1), LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class Means:
    """What files are fetched and read with; it changes with the config. most_bytes: of one file. transcriber: None where there is none.
    seller: who is paid for what it hears, None where nobody is."""

    reader: Reader
    most_bytes: int
    transcriber: Transcriber | None = None
    seller: Seller | None = None


class Attaching:
    """Fetches and reads files. transports: by name. elsewhere: those whose files another daemon sees to."""

    def __init__(
        self,
        store: SqlStore,
        transports: Mapping[str, Transport],
        means: Callable[[], Means],
        time: Time,
        bills: Bills,
        elsewhere: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self._elsewhere = elsewhere
        self._bills = bills
        self._store = store
        self._files = store.files
        self._transports = transports
        self._means = means
        self._time = time
        self._tasks: dict[str, tuple[asyncio.Task[None], Waiting]] = {}

    async def run(self) -> None:
        """Until cancelled; what is under way then is gone on with at the next start."""
        try:
            while True:
                seen, wait = self._files.news.version, LOOK
                with unless_lasting():
                    wait = await self._start_due()
                await self._files.news.wait(seen, wait)
        finally:
            tasks = [task for task, _ in self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start_due(self) -> float:
        """Begin what can be begun. Returns how many seconds may pass until the next look."""
        now = self._time.wall()
        found, later = await self._files.due(now, AT_A_LOOK, OF_ONE_CHAT, self._elsewhere())
        stages = Counter(each.state for _, each in self._tasks.values())
        chats = Counter(each.address for _, each in self._tasks.values())
        for file in found:
            if file.id in self._tasks or stages[file.state] == SIDE_BY_SIDE[file.state] or chats[file.address] == OF_ONE_CHAT:
                continue
            stages[file.state] += 1
            chats[file.address] += 1
            task = asyncio.create_task(self._go_on(file), name=f"file.{file.id}")
            self._tasks[file.id] = (task, file)
            task.add_done_callback(lambda ended, file=file: self._ended(ended, file))  # type: ignore[misc]
        return LOOK if later is None else min(max(later - now, 0.05), LOOK)

    def _ended(self, task: asyncio.Task[None], file: Waiting) -> None:
        del self._tasks[file.id]
        if not task.cancelled() and (error := task.exception()):
            log.error("attachment.failed", file=file.id, err=f"{type(error).__name__}: {error}")
        self._files.news.tell()

    async def _go_on(self, file: Waiting) -> None:
        """The next try at what is to be done with a file."""
        logger = log.bind(transport=file.transport, address=file.address, file=file.id)
        with unless_lasting():
            if file.attempts >= TRIES:  # the last one brought the process down
                await self._fail(file, NOT_FETCHED if file.state == "waiting" else NOT_READ)
                return
            await self._files.begin(file, self._time.wall() + _wait(file.attempts + 1))
            try:
                await (self._fetch(file) if file.state == "waiting" else self._read(file))
            except StoreError:
                raise
            except (LookupError, TooLarge, Refused) as error:
                await self._fail(file, _why(error))
            except TimeoutError as error:
                await self._again(file, error, logger)
            except OSError as error:
                logger.warning("attachment.delayed", err=f"{type(error).__name__}: {error}")  # this disk, which a person has to mend
                await self._files.spare(file, self._time.wall() + LONGEST_WAIT)
            except Exception as error:
                await self._again(file, error, logger)

    async def _again(self, file: Waiting, error: Exception, logger: structlog.stdlib.BoundLogger) -> None:
        logger.warning("attachment.retry", attempt=file.attempts + 1, err=f"{type(error).__name__}: {error}")
        if file.attempts + 1 >= TRIES:
            await self._fail(file, NOT_FETCHED if file.state == "waiting" else NOT_READ)

    async def _fail(self, file: Waiting, why: str) -> None:
        await self._settle(file, File(file.hash, file.name, file.mime, file.size, fault=why))

    async def _fetch(self, file: Waiting) -> None:
        transport = self._transports.get(file.transport)
        if transport is None:  # it is turned off in the config, and may be turned on again
            await self._files.spare(file, self._time.wall() + LONGEST_WAIT)
            return
        async with asyncio.timeout(PATIENCE):
            await self._files.take(file, _pieces(transport, file.ref), self._means().most_bytes, self._time.wall)
        log.info("attachment.fetched", transport=file.transport, address=file.address, file=file.id)

    async def _read(self, file: Waiting) -> None:
        body = await self._files.read(file.hash)
        if body is None:
            raise LookupError(file.hash)
        found = await asyncio.to_thread(sniffed, body, file.name)
        block = File(file.hash, file.name, found.mime, len(body), width=found.width, height=found.height)
        if found.mime.startswith("audio/") or (file.voice and found.mime.startswith("video/")):
            await self._listen(file, block, body)
            return
        if found.mime not in IMAGES:
            block = await self._with_text(block, body)
        await self._settle(file, block)

    async def _listen(self, file: Waiting, block: File, body: bytes) -> None:
        """Settle a recording with what is said in it: the words of whoever sent it, or the text of a file."""
        said, fault = "", DEAF
        means = self._means()
        if means.transcriber is not None and means.seller and (over := await self._bills.keeps_from_listening(means.seller, file.address)):
            fault = f"I do not listen to it now. {over}".rstrip(".")
        elif means.transcriber is not None:
            started = self._time.wall()
            try:
                heard = await means.transcriber.transcribe(Recording(body, block.mime))
                said, fault = words(clean(heard)), SILENT
                if means.seller:
                    await self._bills.pay_for_recording(means.seller, file.address, heard, started)
            except NotTranscribed as why:
                fault = str(why)
        if not said:
            await self._settle(file, replace(block, fault=fault))
        elif file.voice:
            await self._settle(file, block, said)
        else:
            await self._settle(file, replace(block, text=said, shown=min(len(said), SHOWN_CHARS)))

    async def _settle(self, file: Waiting, block: File, said: str = "") -> None:
        if block.fault:
            log.warning("attachment.failed", transport=file.transport, address=file.address, file=file.id, err=block.fault)
        await self._files.settle(file, block, said)

    async def _with_text(self, file: File, body: bytes) -> File:
        """The file with what can be read of it, where it is something to read."""
        kind = MEDIA_TYPES.get(file.mime) or ("text" if file.mime.startswith("text/") or file.mime == "application/json" else None)
        if kind is None:
            return file
        try:
            contents = await self._means().reader.read("text" if kind == "markdown" else kind, body)
        except Refused as refused:
            pages = await asyncio.to_thread(_pages, body) if file.mime == PDF else 0
            return replace(file, pages=pages) if pages else replace(file, fault=_why(refused))
        text = clean("\n\n".join(section.text for section in contents.sections))
        if len(text) > TEXT_CHARS:
            text = f"{text[:TEXT_CHARS]}\n[The file goes on; its first {TEXT_CHARS:,} characters are kept here.]"
        return replace(file, text=text, shown=min(len(text), SHOWN_CHARS))


class NotGiven(Exception):
    """A platform failed to give a file."""


async def _pieces(transport: Transport, ref: str) -> AsyncIterator[bytes]:
    """The bytes of a file. Raises LookupError where there is none, NotGiven for anything else that goes wrong: a failure of a connection is
    an OSError as one of the disk is."""
    try:
        async for piece in transport.fetch(ref):
            yield piece
    except LookupError:
        raise
    except Exception as error:
        raise NotGiven(f"{type(error).__name__}: {error}") from error


def _pages(body: bytes) -> int:
    """Pages of a PDF, as far as they can be counted without reading it."""
    return body.count(b"/Type /Page") + body.count(b"/Type/Page") - body.count(b"/Type /Pages") - body.count(b"/Type/Pages")


def _why(error: Exception) -> str:
    match error:
        case TooLarge(args=(most,)):
            return f"it is larger than {most:,} bytes, the most I take"
        case Refused():
            return error.told.rstrip(".")
    return GONE
