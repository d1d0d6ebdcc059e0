"""What the MQTT tests share: a host that remembers, a transport that runs, and people who talk to it.

Run as a program it is a clew that is about to store a message and never does: `python -m tests.integration.mqtt_harness PORT`.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from clew.transport import Address, Delivery, Inbound, Receipt
from clew_transports.mqtt import MqttTransport, Settings

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
        self.stuck = False
        self._changed = asyncio.Event()

    async def accept(self, batch: Sequence[Inbound], cursor: str | None = None) -> list[Receipt]:
        if self.stuck:
            self.batches.append(list(batch))
            self._changed.set()
            await asyncio.Event().wait()
        self.stored_cursor = cursor
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


async def _never_store(port: int) -> None:
    inbox = Inbox()
    inbox.stuck = True
    async with running(port, inbox):
        print("connected", flush=True)
        await inbox.until(lambda: bool(inbox.batches))
        print("storing", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_never_store(int(sys.argv[1])))
