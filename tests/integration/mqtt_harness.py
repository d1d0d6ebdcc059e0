"""What the MQTT tests share: a host that remembers, a transport that runs, and people who talk to it.

As a program, `python -m tests.integration.mqtt_harness PORT [FILE]`, it is a clew to be killed: it stores what comes in
FILE, an SQLite database, and prints a line for each commit; without FILE it is about to store a message and never does.
"""

import asyncio
import contextlib
import json
import shutil
import sqlite3
import sys
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from clew.transport import Address, Cursor, Delivery, Inbound, Receipt
from clew_transports.mqtt.transport import MqttTransport, Settings

ROOT = Path(__file__).parents[2]
DEADLINE_S = 20.0
FIRST_PAUSE_S = 0.02


class Inbox:
    """A host that stores in memory what it accepts, by external id, and answers nothing by itself."""

    def __init__(self) -> None:
        self.rows: dict[str, Inbound] = {}
        self.batches: list[list[Inbound]] = []
        self.duplicates: list[str] = []
        self.stored_cursor: str | None = None
        self.reports: list[tuple[bool, str]] = []
        self.people: set[str] = set()
        self.place: Path | None = None
        self.stuck = False
        self.public = ""
        self._changed = asyncio.Event()

    async def accept(self, batch: Sequence[Inbound], cursor: Cursor | None = None) -> list[Receipt]:
        if self.stuck:
            self.batches.append(list(batch))
            self._changed.set()
            await asyncio.Event().wait()
        if cursor is not None:
            self.stored_cursor = cursor if isinstance(cursor, str) else cursor(self.stored_cursor)
        receipts = [self._store(inbound) for inbound in batch]
        self.batches.append(list(batch))
        self._changed.set()
        return receipts

    def _store(self, inbound: Inbound) -> Receipt:
        if inbound.external_id in self.rows:
            self.duplicates.append(inbound.external_id)
            return Receipt(inbound.external_id, "duplicate")
        self.rows[inbound.external_id] = inbound
        return Receipt(inbound.external_id, "refused" if inbound.refused else "stored", inbound.refused)

    async def cursor(self) -> str | None:
        return self.stored_cursor

    def folder(self) -> Path:
        if self.place is None:
            self.place = Path(tempfile.mkdtemp(prefix="inbox"))
            weakref.finalize(self, shutil.rmtree, self.place, ignore_errors=True)
        return self.place

    async def known(self, sender: str) -> bool:
        return sender in self.people

    def webhook(self) -> str:
        return self.public

    def report(self, up: bool, detail: str = "") -> None:
        self.reports.append((up, detail))
        self._changed.set()

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.rows.values() if not inbound.refused]

    @property
    def up(self) -> bool:
        return bool(self.reports) and self.reports[-1][0]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; what the host has seen is the error's text if it never does."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"rows {self.rows}\nreports {self.reports}") from None


def settings(port: int, **more: Any) -> Settings:
    return Settings(port=port, bot="clew", **more)


@contextlib.asynccontextmanager
async def running(port: int, inbox: Inbox, **more: Any) -> AsyncIterator[MqttTransport]:
    """A connected transport; it is stopped gracefully at the end."""
    transport = MqttTransport("mqtt", settings(port, **more), first_pause=FIRST_PAUSE_S)
    seen = len(inbox.reports)
    task = asyncio.create_task(transport.run(inbox))
    try:
        await inbox.until(lambda: task.done() or any(up for up, _ in inbox.reports[seen:]))
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def person(port: int, name: str = "ada", **more: Any) -> AsyncIterator[aiomqtt.Client]:
    """An MQTT 5 client that reads its own `out/` and `ev/` and the bot's status."""
    async with aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5, **more) as client:
        for topic in (f"chat/v1/clew/out/{name}/#", f"chat/v1/clew/ev/{name}/#", "chat/v1/clew/status"):
            await client.subscribe(topic, qos=1)
        yield client


async def heard(client: aiomqtt.Client, wanted: Callable[[aiomqtt.Message], bool]) -> aiomqtt.Message:
    """The next message that is `wanted`; others are skipped."""
    async with asyncio.timeout(DEADLINE_S):
        async for message in client.messages:
            if wanted(message):
                return message
    raise AssertionError("the client's stream of messages ended")


def on(topic: str) -> Callable[[aiomqtt.Message], bool]:
    return lambda message: str(message.topic) == topic


def publishing(**values: Any) -> Properties:
    """MQTT 5 properties of a publish, by their names in paho."""
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(properties, name, value)
    return properties


def answer_to(inbound: Inbound, text: str, transport: MqttTransport) -> Delivery:
    return Delivery(
        id=f"reply-to-{inbound.client_id}",
        address=inbound.address,
        text=text,
        parts=tuple(transport.parts(text)),
        ts=1_800_000_000.25,
        in_reply_to=inbound.client_id,
        answers=(inbound.client_id,),
        context=inbound.context,
    )


def delivery(chat: str, text: str = "hello", thread: str | None = None) -> Delivery:
    transport = MqttTransport("mqtt", settings(1))
    nobody = Inbound(external_id="x", address=Address("mqtt", chat, thread), sender=chat, text="", client_id="q1")
    return replace(answer_to(nobody, text, transport), context={})


def payload(message: aiomqtt.Message) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(message.payload)
    return found


class Disk(Inbox):
    """A host that commits rows and cursor to an SQLite file, and says so."""

    def __init__(self, path: Path, public: str = "") -> None:
        super().__init__()
        self.public = public
        self._db = sqlite3.connect(path)
        self._db.execute("CREATE TABLE IF NOT EXISTS inbox (id TEXT PRIMARY KEY, text TEXT)")
        self._db.execute("CREATE TABLE IF NOT EXISTS cursors (one INTEGER PRIMARY KEY, cursor TEXT)")

    async def accept(self, batch: Sequence[Inbound], cursor: Cursor | None = None) -> list[Receipt]:
        with self._db:
            for inbound in batch:
                values = (inbound.external_id, inbound.text)
                self._db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", values)
            if cursor is not None:
                value = cursor if isinstance(cursor, str) else cursor(await self.cursor())
                self._db.execute("INSERT OR REPLACE INTO cursors VALUES (1, ?)", (value,))
        print("stored", flush=True)
        return [Receipt(inbound.external_id, "stored") for inbound in batch]

    async def cursor(self) -> str | None:
        row = self._db.execute("SELECT cursor FROM cursors").fetchone()
        return row[0] if row else None

    def texts_stored(self) -> list[str]:
        return [text for (text,) in self._db.execute("SELECT text FROM inbox ORDER BY rowid")]

    def close(self) -> None:
        self._db.close()


@contextlib.asynccontextmanager
async def process(port: int, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """This module as a program, killed at the end if it still runs."""
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.integration.mqtt_harness", str(port), *arguments),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT}/daemon:{ROOT}/transports"},
    )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.communicate()


async def line(of: asyncio.subprocess.Process) -> bytes:
    """The next line that the program prints."""
    assert of.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        return await of.stdout.readline()


class Relay:
    """A wire between a client and a broker that can go dead without a sign, or break under a certain payload."""

    def __init__(self, broker_port: int, *, breaks_under: bytes = b"\0 never \0") -> None:
        self._broker_port = broker_port
        self._breaks_under = breaks_under
        self._connections: set[asyncio.Task[None]] = set()
        self.broken = False
        self.dead = False

    @contextlib.asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._connect, "127.0.0.1", port):
            yield
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._broker_port)
        for source, target in ((reader, broker_writer), (broker_reader, writer)):
            task = asyncio.create_task(self._forward(source, target, (writer, broker_writer)))
            self._connections.add(task)

    async def _forward(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, ends: tuple[asyncio.StreamWriter, ...]) -> None:
        try:
            while data := await source.read(65536):
                if self._breaks_under in data:
                    self.broken = True
                    break
                if not self.dead:
                    target.write(data)
        finally:
            for writer in ends:
                writer.close()


async def _serve(port: int, path: str | None) -> None:
    inbox = Disk(Path(path)) if path else Inbox()
    inbox.stuck = path is None
    async with running(port, inbox):
        print("connected", flush=True)
        if inbox.stuck:
            await inbox.until(lambda: bool(inbox.batches))
            print("storing", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
