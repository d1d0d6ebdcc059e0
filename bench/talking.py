"""People who write over MQTT and wait for the replies."""

import asyncio
import json
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiomqtt

from bench.processes import Measured
from bench.words import sentence
from tests.servers import Mosquitto

PATIENCE = 300.0
"""Seconds that a reply may take."""
NO_DELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
"""A small packet behind another one leaves at once: without it, forty milliseconds of each reply would be TCP's."""
SETTINGS = (
    "max_inflight_messages 0\nmax_queued_messages 0\nset_tcp_nodelay true\nautosave_on_changes false\nautosave_interval 0\nlog_type error"
)
"""A broker that lets many messages be on their way at once, and leaves the disk to who is measured."""
FLOOR = "receive, commit, publish"


class Talk:
    """What people at one broker say, and what is answered. Each name is a person with a chat. unasked: what came that answers nobody."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client
        self._numbers = count(1)
        self._run = uuid4().hex[:8]
        self._open: dict[str, asyncio.Future[float]] = {}
        self.unasked = 0

    async def turn(self, name: str = "ada") -> float:
        """Say something, and wait for the reply. Returns the seconds that it took."""
        number = next(self._numbers)
        identifier = f"{self._run}-{number}"
        self._open[identifier] = answered = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        said = json.dumps({"id": identifier, "text": sentence(number)})
        await self._client.publish(f"chat/v1/clew/in/{name}", said, qos=1)
        async with asyncio.timeout(PATIENCE):
            at: float = await answered
        return at - began

    async def listen(self) -> None:
        """Until cancelled."""
        async for message in self._client.messages:
            at = time.perf_counter()
            answered = self._open.pop(json.loads(bytes(message.payload)).get("in_reply_to", ""), None)
            self.unasked += answered is None
            if answered is not None and not answered.done():
                answered.set_result(at)


@asynccontextmanager
async def talking(port: int, *, daemon: bool) -> AsyncIterator[Talk]:
    """A talk over the broker at `port`. daemon: wait until clew says that it listens; the floor is ready when it says so itself."""
    async with aiomqtt.Client(
        "127.0.0.1",
        port,
        protocol=aiomqtt.ProtocolVersion.V5,
        identifier="talker",
        max_queued_outgoing_messages=0,
        max_inflight_messages=2000,
        socket_options=NO_DELAY,
        timeout=PATIENCE,
    ) as client:
        client.pending_calls_threshold = 10_000  # it would complain of many
        if daemon:
            await client.subscribe("chat/v1/clew/status", qos=1)
            async for message in client.messages:
                if message.payload == b"online":
                    break
        await client.subscribe("chat/v1/clew/out/#", qos=1)
        talk = Talk(client)
        listening = asyncio.create_task(talk.listen())
        try:
            yield talk
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


@contextmanager
def stopped(process: Measured) -> Iterator[Measured]:
    """A process that is stopped at the end."""
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def broker(folder: Path) -> Iterator[Mosquitto]:
    """A broker of its own, in `folder`, for one measurement: it keeps for clew what is said while clew is away, and the next one to start
    would have all of that to answer."""
    with Mosquitto(Path(tempfile.mkdtemp(dir=folder)), settings=SETTINGS) as server:
        yield server


def names(number: int) -> tuple[str, ...]:
    """So many people, the first of them ada."""
    return ("ada", *(f"p{each}" for each in range(1, number)))


def write_config(folder: Path, port: int | None, people: Iterable[str] = ("ada",), **settings: Any) -> Path:
    """A config for people at the broker at `port`, None for none. settings: sections that differ from this."""
    config: dict[str, Any] = {
        "data_dir": str(folder / "data"),
        "http": {"port": 0},
        "log": {"level": "warning", "format": "json"},
        "providers": {"none": {"kind": "offline"}},
        "people": {name: {"role": "member", "identities": [f"mqtt:{name}"]} for name in people},
        "transports": {"mqtt": {"enabled": port is not None, **({"port": port} if port else {})}},
        **settings,
    }
    path = folder / "clew.yaml"
    path.write_text(json.dumps(config, indent=1))
    return path


def floor(port: int, folder: Path) -> Measured:
    """The floor, running at the broker."""
    return Measured("-m", "bench.floor", str(port), str(folder / "floor.db"), ready="floor is ready")


def clew(config: Path, *, reply_s: float = 0.0, summary_s: float = 0.0) -> Measured:
    """clew with a model that takes so long, running."""
    command = ("-m", "bench.daemon", str(config), str(summary_s), str(reply_s))
    return Measured(*command, ready="clew is ready")


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least this share of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
