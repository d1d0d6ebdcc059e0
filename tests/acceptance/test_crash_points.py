"""One turn with a tool call, killed at each of its points in turn: each write, commit, request, call, acknowledgement and send.

The points are found by a run that is not killed. After a restart without faults, what is stored and what was received must be what that
run left behind; where the kill fell between a call and the note of its result, they must say that its outcome is unknown.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from clew.tool_calls import INTERRUPTED
from tests.acceptance import stamp
from tests.acceptance.clients import Client, MqttClient, TelegramClient, WebClient, WebhookClient, online
from tests.acceptance.harness import DEADLINE_S
from tests.acceptance.kills import Daemons, at_each, read
from tests.databases import databases
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import last_is_tool_result
from tests.emulators.server import JsonObject, Reply
from tests.emulators.telegram import TOKEN, TelegramEmulator
from tests.integration.engine import plugged
from tests.integration.web_harness import running
from tests.integration.webhook_harness import SECRET, Receiver, receiving, until
from tests.servers import Mosquitto, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio, pytest.mark.timeout(300)]

Rows = Callable[[str], list[Any]]
THREAD = "FROM messages ORDER BY session, seq"
NUMBERED = re.compile(r"toolu_\d+")
END = {"mqtt": "committed settle", "webhook": "committed settle", "telegram": "committed settle", "web": "committed finish"}
"""The last point of a turn: the reply is noted as sent, or stored where that counts as sent."""
KINDS = [*(("sqlite", kind) for kind in ("mqtt", "web", "webhook", "telegram")), ("postgresql", "mqtt"), ("postgresql", "webhook")]
AT_LEAST = {"mqtt": 36, "webhook": 36, "telegram": 36, "web": 30}
"""Points of a start and a turn at which a daemon is killed."""
AT_LEAST_AGAIN = 20
"""Those of the start and the turn that follow a kill behind the call."""
EFFECT = "after call 1"
"""The call took effect, and nothing says so yet."""


class Model:
    """Calls the tool, then says what came of it."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, body: JsonObject) -> Reply:
        self.calls += 1
        if last_is_tool_result(body):
            (result,) = body["messages"][-1]["content"]
            return Reply([{"type": "text", "text": f"It came to: {text_of(result['content'])}"}])
        identifier = f"toolu_{self.calls:05d}"
        text = {"type": "text", "text": "One moment."}
        return Reply([text, {"type": "tool_use", "id": identifier, "name": "stamp", "input": {"call": identifier}}], "tool_use")


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@dataclass(frozen=True, slots=True)
class State:
    """What a turn leaves behind. Ids of calls are left out, they differ from run to run."""

    transcript: tuple[tuple[str, str], ...]
    inbox: tuple[tuple[str, str], ...]
    turns: tuple[tuple[str, str], ...]
    calls: tuple[tuple[str, str], ...]
    outbox: tuple[tuple[str, str, int], ...]
    received: tuple[tuple[str, str], ...]


def expected(client: Client, *, interrupted: bool) -> State:
    """The end of the turn, written down by hand."""
    ((identifier, asked),) = client.texts.items()
    result = INTERRUPTED if interrupted else "stamped toolu"
    reply = f"It came to: {result}"
    return State(
        transcript=(("user", asked), ("assistant", "One moment."), ("assistant", "stamp"), ("tool", result), ("assistant", reply)),
        inbox=((identifier, "answered"),),
        turns=(("message", "done"),),
        calls=(("stamp", "interrupted" if interrupted else "done"),),
        outbox=(("sent", reply, 0),),
        received=((identifier, reply),),
    )


def found(rows: Rows, client: Client) -> State:
    """What the store has, by `rows`, and the client."""
    return State(
        transcript=tuple((role, words(each)) for role, blocks in rows(f"SELECT role, blocks {THREAD}") for each in json.loads(blocks)),
        inbox=tuple(rows("SELECT client_id, state FROM inbox")),
        turns=tuple(rows("SELECT kind, state FROM turns")),
        calls=tuple(rows("SELECT name, state FROM tool_calls")),
        outbox=tuple(
            # That a reply may have come twice is noted for a platform which drops no repeats.
            (state, bare(text), 0 if isinstance(client, TelegramClient) else repeated)
            for state, text, repeated in rows("SELECT state, text, repeated FROM outbox")
        ),
        received=tuple((each["in_reply_to"], bare(each["text"])) for each in client.replies.values()),
    )


def words(block: JsonObject) -> str:
    return block["name"] if block["kind"] == "call" else bare(block["text"])


def bare(text: str) -> str:
    return NUMBERED.sub("toolu", text)


@dataclass(slots=True)
class House:
    """What stands around the daemons: a broker, a receiver of replies, a model, clients of one transport."""

    folder: Path
    kind: str
    broker: Mosquitto
    receiver: Receiver
    telegram: TelegramEmulator
    http: aiohttp.ClientSession
    emulator: AnthropicEmulator
    model: Model
    daemons: Daemons
    monkeypatch: pytest.MonkeyPatch
    numbers: Iterator[int] = field(default_factory=count)

    def client(self, name: str, port: int) -> Client:
        if self.kind == "mqtt":
            return MqttClient(name, self.broker.port, lambda: None)
        if self.kind == "web":
            return WebClient(name, self.http, [f"http://127.0.0.1:{port}"], lambda: None)
        if self.kind == "telegram":
            self.telegram.forget()
            return TelegramClient(name, self.telegram, lambda: None)
        return WebhookClient(name, self.http, [f"http://127.0.0.1:{port}"], self.receiver, lambda: None)

    def config(self, folder: Path, name: str, port: int, store: str = "") -> Path:
        folder.mkdir()
        model = {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": self.emulator.url}
        values = {
            "data_dir": str(folder / "data"),
            "store": store or databases.store(folder / "data"),
            "http": {"port": port},
            "log": {"level": "info", "format": "json"},
            "providers": {"claude": model},
            "agent": {"provider": "claude", "timezone": "UTC", "approver": {"mode": "allow"}},
            "people": {name: {"role": "owner", "identities": [self.identity(name)]}},
            "transports": {
                "mqtt": {"enabled": self.kind == "mqtt", "host": "127.0.0.1", "port": self.broker.port},
                "telegram": {"enabled": self.kind == "telegram", "token": TOKEN, "base_url": self.telegram.url},
                "webhook": {"enabled": self.kind == "webhook", "secret": SECRET, "reply_hosts": [self.receiver.url]},
            },
        }
        path = folder / "clew.yaml"
        path.write_text(json.dumps(values))
        return path

    def identity(self, name: str) -> str:
        if self.kind == "web":
            return "web:local"
        return f"{self.kind}:{TelegramClient.number(name) if self.kind == 'telegram' else name}"

    async def killed_at(self, at: str = "", then: str | None = None) -> list[str]:
        """Run the turn, killed at a point (empty: not at all), then restart and compare. Returns the points that were passed.

        then: the restart is itself killed at a point of its own (empty: it is not), and followed by another; its points are returned.
        """
        number = next(self.numbers)
        folder, name, port = self.folder / f"{self.kind}{number}", f"ada{number}", free_port()
        path, client = self.config(folder, name, port), self.client(name, port)
        self.model.calls = 0
        async with online([client]), asyncio.TaskGroup() as group:
            saying = group.create_task(client.say("Please stamp this."))
            if self.kind == "mqtt":
                await saying  # a broker has it before the daemon starts; a caller of the webhook tries until there is one
            passed = await self.daemons.run(folder, path, at, END[self.kind])
            again = await self.daemons.run(folder, path, then, END[self.kind]) if then is not None else None
            await self._restarted(folder, path, client)
        self._check(folder, client, at if at in passed else "", passed, twice=bool(then))
        return passed if again is None else again

    async def _restarted(self, folder: Path, path: Path, client: Client) -> None:
        self.monkeypatch.setenv(stamp.FILE, str(folder / "stamps"))
        async with running(read(path)) as clew:
            await client.until(lambda: bool(client.replies), "the reply")
            store = clew.service.store
            async with asyncio.timeout(DEADLINE_S):
                seen = store.version
                while (await store.counts(0.0))["outbox_pending"]:
                    seen = await store.changed(seen, DEADLINE_S)
            (session,) = await store.sessions()
            assert await store.verify_session(session.id) == []
            assert await store.check() == []

    def _check(self, folder: Path, client: Client, at: str, passed: Sequence[str], *, twice: bool) -> None:
        where = f"killed at {at or 'nothing'}"
        interrupted = "committed record 1" in passed and "committed record 2" not in passed
        assert found(partial(databases.rows, folder / "data"), client) == expected(client, interrupted=interrupted), where
        effects = stamp.stamps(folder)
        assert len(effects) <= 1 if interrupted else len(effects) == 1, where
        assert client.differing == [], where
        assert client.repeats == 0 or twice or (at and "before send 1" in passed[:-1]), where
        assert self.model.calls == 2 if "committed finish 1" in passed else 2 <= self.model.calls <= 3 + twice, where


@contextlib.asynccontextmanager
async def house(folder: Path, kind: str, broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    environment, model = stamp.installed(folder), Model()
    async with (
        receiving() as receiver,
        TelegramEmulator() as telegram,
        aiohttp.ClientSession() as http,
        AnthropicEmulator(script=model) as emulator,
        Daemons.ready(environment) as daemons,
    ):
        yield House(folder, kind, broker, receiver, telegram, http, emulator, model, daemons, monkeypatch)


@pytest.fixture
def stamping() -> Iterator[None]:
    """The tool that daemons have of an installed package, for those in this process."""
    with plugged("clew.tools", "stamp", stamp.tool):
        yield


async def subscribed(house: House) -> None:
    """Let a broker know the daemon once, so that it keeps what is said while there is none."""
    path = house.config(house.folder / "first", "nobody", free_port())
    async with running(read(path)) as clew:
        await until(lambda: clew.service.transports[house.kind].up)


@pytest.mark.usefixtures("stamping")
@pytest.mark.parametrize(("database", "kind"), KINDS, indirect=["database"])
async def test_killed_at_any_point_the_turn_ends_as_if_it_had_not_been(
    kind: str, tmp_path: Path, mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    # P42 P43 P48
    async with house(tmp_path, kind, mosquitto, monkeypatch) as home:
        await subscribed(home)
        points = await home.killed_at()
        print("\n".join(points))
        await at_each(points, home.killed_at, AT_LEAST[kind])


@pytest.mark.usefixtures("stamping")
async def test_killed_again_at_any_point_of_the_restart_it_ends_so_too(
    tmp_path: Path, mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    # P42 P43 P48
    async with house(tmp_path, "mqtt", mosquitto, monkeypatch) as home:
        await subscribed(home)
        await at_each(await home.killed_at(EFFECT, ""), partial(home.killed_at, EFFECT), AT_LEAST_AGAIN)
