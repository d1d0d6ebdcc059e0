"""What the acceptance tests share: clew as a process of its own, people at MQTT clients, and waiting with a deadline."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

JsonObject = dict[str, Any]

DEADLINE_S = 60.0
"""Seconds after which a test gives up waiting; nothing is measured by it."""
SESSION_EXPIRY_S = 3600
LONGEST_LINE = 2**20
STATUS = "chat/v1/clew/status"
PROGRAM = Path(sys.executable).with_name("clew")


class Watched:
    """Something that changes now and then, and can be waited for."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def _tell(self) -> None:
        self._changed.set()

    async def until(self, condition: Callable[[], bool], what: str, within: float = DEADLINE_S) -> None:
        """Wait until `condition` holds; `what` and the state are the error's text if it never does. within: seconds."""
        try:
            async with asyncio.timeout(within):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {within} s: {what}\n{self}") from None


def write_config(folder: Path, *, broker_port: int, model_url: str, agent: Mapping[str, Any], schedule: list[JsonObject]) -> Path:
    """A `clew.yaml` in `folder` (JSON is YAML) with two people, Ada and Bob, at one broker and one Anthropic endpoint."""
    config = {
        "data_dir": str(folder / "data"),
        "http": {"host": "127.0.0.1", "port": 0},
        "log": {"level": "info", "format": "json"},
        "providers": {"claude": {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": model_url}},
        "agent": {"provider": "claude", "timezone": "Europe/Berlin", **agent},
        "people": {
            "ada": {"role": "owner", "timezone": "Europe/Berlin", "identities": ["mqtt:ada"]},
            "bob": {"role": "member", "timezone": "America/New_York", "identities": ["mqtt:bob"]},
        },
        "transports": {"mqtt": {"enabled": True, "host": "127.0.0.1", "port": broker_port}},
        "schedule": schedule,
    }
    path = folder / "clew.yaml"
    path.write_text(json.dumps(config, indent=1))
    return path


class Daemon(Watched):
    """`clew run` on one config, started and stopped as often as a test likes. `log`: lines of all its starts. transport: the one whose
    connection a start waits for, empty for none."""

    def __init__(self, config: Path, environment: Mapping[str, str] | None = None, transport: str = "mqtt") -> None:
        super().__init__()
        self._transport = transport
        self.config = config
        self._environment = environment or {}
        self._process: asyncio.subprocess.Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self.log: list[JsonObject] = []
        self.plain: list[str] = []
        self.said: list[str] = []

    def __str__(self) -> str:
        loud = [line for line in self.log if line.get("level") in ("warning", "error")]
        return "\n".join(map(str, [*self.said, *self.plain[-40:], *loud[-20:], "…", *self.log[-20:]]))

    async def start(self) -> None:
        """Start it, and return when it says that it is ready."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CLEW_", "ANTHROPIC_", "NOTIFY_"))}
        self._process = process = await asyncio.create_subprocess_exec(
            *(str(PROGRAM), "run", "--config", str(self.config)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env={**environment, **self._environment},
        )
        assert process.stdout is not None
        assert process.stderr is not None
        seen, connected = len(self.said), self.count("transport.connected", transport=self._transport)
        self._readers = [
            asyncio.create_task(self._read(process.stdout, self._hear)),
            asyncio.create_task(self._read(process.stderr, self._note)),
        ]
        for reader in self._readers:
            reader.add_done_callback(lambda _: self._tell())
        await self.until(lambda: len(self.said) > seen or self._readers[0].done(), "the ready line")
        assert len(self.said) > seen, f"clew ended before it was ready\n{self}"
        if self._transport:
            await self.until(lambda: self.count("transport.connected", transport=self._transport) > connected, "a connection")

    async def _read(self, stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
        async for line in stream:
            take(line.decode())
            self._tell()

    def _hear(self, line: str) -> None:
        self.said.append(line)

    def _note(self, line: str) -> None:
        try:
            self.log.append(json.loads(line))
        except ValueError:
            self.plain.append(line)

    def events(self, event: str, **fields: object) -> list[JsonObject]:
        """Log lines of this event that have these fields."""
        return [line for line in self.log if line.get("event") == event and fields.items() <= line.items()]

    def count(self, event: str, **fields: object) -> int:
        return len(self.events(event, **fields))

    async def page(self, path: str) -> tuple[int, str]:
        """Status and words of a page of the daemon."""
        url = self.said[-1].rpartition(" ")[2].strip().rstrip("/")
        async with aiohttp.ClientSession() as session, session.get(f"{url}{path}") as answer:
            return answer.status, await answer.text()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait until it is gone and all its output is read. Returns the exit code."""
        assert self._process is not None
        async with asyncio.timeout(DEADLINE_S):
            code = await self._process.wait()
            await asyncio.gather(*self._readers)
        self._process = None
        return code

    async def terminate(self) -> int:
        self.signal(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.ended()


@contextlib.asynccontextmanager
async def running(config: Path, environment: Mapping[str, str] | None = None, transport: str = "mqtt") -> AsyncIterator[Daemon]:
    """A started daemon, killed at the end if a test has left it running."""
    daemon = Daemon(config, environment, transport)
    try:
        await daemon.start()
        yield daemon
    finally:
        if daemon._process is not None:
            with contextlib.suppress(ProcessLookupError):
                daemon._process.kill()
            await daemon.ended()


class Correspondent(Watched):
    """A person at an MQTT 5 client whose session outlasts its connections.

    `replies`: what came on `out/`, in order. MQTT delivers at least once: a reply whose `id` and everything else was there before is
    dropped, as every client has to, and counted in `repeats`.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.replies: list[JsonObject] = []
        self.repeats = 0
        self.statuses: list[str] = []
        self._client: aiomqtt.Client | None = None

    def __str__(self) -> str:
        return f"{self.name}: {len(self.replies)} replies, the last {self.replies[-3:]}"

    @contextlib.asynccontextmanager
    async def connected(self, port: int) -> AsyncIterator["Correspondent"]:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_EXPIRY_S
        async with aiomqtt.Client(
            "127.0.0.1", port, identifier=self.name, protocol=aiomqtt.ProtocolVersion.V5, clean_start=False, properties=properties
        ) as client:
            await client.subscribe(f"chat/v1/clew/out/{self.name}/#", qos=1)
            await client.subscribe(STATUS, qos=1)
            self._client = client
            reader = asyncio.create_task(self._collect(client))
            try:
                yield self
            finally:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
                self._client = None

    async def _collect(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            assert isinstance(message.payload, bytes)
            if str(message.topic) == STATUS:
                self.statuses.append(message.payload.decode())
            elif (reply := json.loads(message.payload)) in self.replies:
                self.repeats += 1
            else:
                self.replies.append(reply)
            self._tell()

    async def send(self, identifier: str, text: str) -> None:
        """Publish a message; it is the broker's when this returns."""
        assert self._client is not None
        await self._client.publish(f"chat/v1/clew/in/{self.name}", json.dumps({"id": identifier, "text": text}), qos=1)

    def to(self, identifier: str) -> list[JsonObject]:
        return [reply for reply in self.replies if reply["in_reply_to"] == identifier]

    async def reply_to(self, identifier: str) -> JsonObject:
        """The reply to a message, waited for."""
        await self.until(lambda: bool(self.to(identifier)), f"a reply to {identifier}")
        return self.to(identifier)[0]

    async def ask(self, identifier: str, text: str) -> JsonObject:
        await self.send(identifier, text)
        return await self.reply_to(identifier)
