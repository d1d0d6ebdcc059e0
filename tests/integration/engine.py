"""What the engine's tests share: a scripted platform, a model behind a socket, a clock that is set, a service on a real file."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, SecretStr

from clew.assembly import people_of
from clew.clock import Time
from clew.config import Agent, Config, Person, ProviderSection, TransportSection
from clew.messages import Block, Message, Text, ToolCall, ToolResult, blocks_to_json
from clew.plugins import Plugin, registry
from clew.providers import anthropic, openai
from clew.recall import RecallProvider
from clew.service import Service
from clew.store.opening import open_store
from clew.store.sql import SqlStore
from clew.store.sqlite.database import SqliteDatabase
from clew.tools import Tool, ToolContext
from clew.transport import Address, Capabilities, Delivery, Host, Inbound, Part, Preview, Receipt, Route, Sent, Typing
from tests.databases import databases
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo
from tests.emulators.server import Answer, JsonObject, Reply, Script

DEADLINE_S = 20.0
START = 1_800_000_000.0
"""Seconds since the epoch at which a settable clock begins: 2027-01-15 08:00 UTC."""
SUMMARY = "They asked and answered, as before."
PEOPLE = {name: Person(role="member", identities=(f"desk:{name}",)) for name in ("ada", "bob", "eve")}


class Clock:
    """A wall clock that stands still until it is moved, by a hundredth of a second for each look."""

    def __init__(self, at: float = START) -> None:
        self.at = at

    def __call__(self) -> float:
        self.at += 0.01
        return self.at


class NoSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Desk:
    """A chat platform: it hands in what people say and keeps what it is asked to send.

    faults: exceptions that the next sends for a chat raise. refusing: a send for these chats waits until they are taken out. files: what
    it gives for a ref, once the events in `withheld` are set and the exceptions in `losses` are raised; fetched: refs that were asked for.
    """

    def __init__(self, capabilities: Capabilities = Capabilities()) -> None:  # noqa: B008 - frozen
        self.capabilities = capabilities
        self.sent: list[Delivery] = []
        self.tries: list[Delivery] = []
        self.faults: dict[str, list[Exception]] = {}
        self.stuck: dict[str, asyncio.Event] = {}
        self.known: dict[str, Sent] = {}
        self.files: dict[str, bytes] = {}
        self.losses: dict[str, list[Exception]] = {}
        self.withheld: dict[str, asyncio.Event] = {}
        self.fetched: list[str] = []
        self.hints: list[Typing | Preview] = []
        self._host: Host | None = None
        self._changed = asyncio.Condition()
        self._numbers = 0

    async def run(self, host: Host) -> None:
        self._host = host
        host.report(True)
        await self._tell()
        await asyncio.Event().wait()

    def parts(self, text: str) -> list[Part]:
        pieces = text.split("\n---\n")
        return [Part(piece, index, len(pieces)) for index, piece in enumerate(pieces, 1)]

    async def send(self, delivery: Delivery) -> Sent:
        self.tries.append(delivery)
        await self._tell()
        chat = str(delivery.address)
        if chat in self.stuck:
            await self.stuck[chat].wait()
        if self.faults.get(chat):
            raise self.faults[chat].pop(0)
        self.sent.append(delivery)
        await self._tell()
        return Sent(f"ref-{delivery.id}")

    async def find(self, delivery: Delivery) -> Sent | None:
        return self.known.get(str(delivery.address))

    async def hint(self, to: Address, event: Typing | Preview) -> str | None:
        self.hints.append(event)
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        self.fetched.append(ref)
        await self._tell()
        if ref in self.withheld:
            await self.withheld[ref].wait()
        if self.losses.get(ref):
            raise self.losses[ref].pop(0)
        body = self.files[ref]
        for at in range(0, len(body), 1000):
            yield body[at : at + 1000]

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # What tests do -----------------------------------------------------------------------------------------------

    async def host(self) -> Host:
        await self.until(lambda: self._host is not None)
        assert self._host is not None
        return self._host

    def message(self, text: str, chat: str = "ada", *, sender: str = "", client_id: str = "", direct: bool = True, **more: Any) -> Inbound:
        self._numbers += 1
        known = client_id or f"m{self._numbers}"
        name, _, thread = chat.partition("/")
        address = Address("desk", name, thread or None)
        return Inbound(f"desk/{chat}/{known}", address, sender or name, text, client_id=known, direct=direct, **more)

    async def accept(self, *messages: Inbound, cursor: str | None = None) -> list[Receipt]:
        return await (await self.host()).accept(messages, cursor)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is looked at whenever something is sent."""
        try:
            async with asyncio.timeout(DEADLINE_S), self._changed:
                await self._changed.wait_for(condition)
        except TimeoutError:
            raise AssertionError(f"sent: {[(str(d.address), d.text) for d in self.sent]}") from None

    def answers(self, message: Inbound) -> list[Delivery]:
        return [delivery for delivery in self.sent if message.client_id in delivery.answers]

    async def ask(self, text: str, chat: str = "ada", **more: Any) -> str:
        """Say something and wait for the answer; its text."""
        message = self.message(text, chat, **more)
        await self.accept(message)
        await self.until(lambda: bool(self.answers(message)))
        return self.answers(message)[0].text


def is_summary(body: JsonObject) -> bool:
    """Whether a request is for the summariser."""
    return "<new_messages>" in words_of(body["messages"][-1])


def chat_script(replies: Script, summary: Script | str = SUMMARY) -> Script:
    """Replies by one script, summaries by another (or the same text each time)."""

    def script(body: JsonObject) -> Any:
        if not is_summary(body):
            return replies(body)
        return Reply([{"type": "text", "text": summary}]) if isinstance(summary, str) else summary(body)

    return script


def calling(*calls: tuple[str, JsonObject], then: str = "done", text: str = "") -> Script:
    """Call these tools at once when a person has spoken, then answer `then`."""
    rounds = 0

    def script(body: JsonObject) -> Answer:
        nonlocal rounds
        last = body["messages"][-1]
        if last["role"] == "tool" or (isinstance(last["content"], list) and any(part["type"] == "tool_result" for part in last["content"])):
            return Reply([{"type": "text", "text": then}])
        rounds += 1
        content: list[JsonObject] = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": f"c{rounds}_{n}", "name": name, "input": args} for n, (name, args) in enumerate(calls)]
        return Reply(content, "tool_use")

    return script


def system_text(body: JsonObject) -> str:
    """The system prompt of a request of either emulator, as one text."""
    if "system" in body:
        return "".join(part["text"] for part in body["system"])
    return "\n".join(message["content"] for message in body["messages"] if message["role"] == "system")


def spoken(body: JsonObject) -> list[JsonObject]:
    """The messages of a request without the system prompt."""
    return [message for message in body["messages"] if message["role"] != "system"]


def words_of(message: JsonObject) -> str:
    """The text of one message of a request."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


class Shelf(BaseModel):
    """Arguments of the test tools."""

    model_config = ConfigDict(extra="forbid", strict=True)
    note: str = ""


def tool(name: str, run: Callable[[ToolContext, str], Any], *, idempotent: bool = False) -> Tool:
    """A tool whose one argument is a note."""

    async def call(context: ToolContext, arguments: BaseModel) -> str:
        answer: str = await run(context, Shelf.model_validate(arguments.model_dump()).note)
        return answer

    return Tool(name, f"The tool {name}.", Shelf, call, idempotent=idempotent)


def context_of(chat: str = "ada", session: str = "") -> ToolContext:
    """On behalf of whom a tool runs, outside of a turn."""
    person = people_of(Config(people=PEOPLE))[0][chat]
    return ToolContext(session, "", f"desk:{chat}", person, 0, UTC, "UTC", START)


@dataclass
class World:
    """Everything around a service: the file, the platform, the model. `running` starts a service in it, as often as is wanted."""

    folder: Path
    desk: Desk
    model: OpenAIEmulator | AnthropicEmulator
    config: Config
    clock: Callable[[], float] | None = None
    service: Service = field(init=False)

    @asynccontextmanager
    async def running(self, *, remote: bool = True) -> AsyncIterator["World"]:
        time = Time(wall=self.clock) if self.clock else None
        async with Service.open(self.config, remote=remote, time=time) as service:
            self.service = service
            yield self

    @property
    def store(self) -> SqlStore:
        return self.service.store

    @property
    def database(self) -> SqliteDatabase:
        """The database of a store that is one file."""
        assert isinstance(self.store._db, SqliteDatabase)
        return self.store._db

    @asynccontextmanager
    async def file(self) -> AsyncIterator[SqlStore]:
        """The store while no service runs."""
        store = await open_store(self.config.store, self.folder, START)
        try:
            yield store
        finally:
            await store.close()

    def agent(self, **more: Any) -> None:
        """Change settings of `agent`."""
        self.config = self.config.model_copy(update={"agent": self.config.agent.model_copy(update=more)})

    def compression(self, **more: Any) -> None:
        self.agent(compression=self.config.agent.compression.model_copy(update=more))

    @property
    def replies(self) -> list[JsonObject]:
        """Bodies of the model calls that were for replies."""
        return [record.body for record in self.model.calls if record.body and not is_summary(record.body)]

    @property
    def summaries(self) -> list[JsonObject]:
        return [record.body for record in self.model.calls if record.body and is_summary(record.body)]

    async def session(self, chat: str = "ada") -> str:
        found = await self.store.current_session(f"desk:{chat}")
        assert found is not None
        return found

    async def transcript(self, chat: str = "ada") -> tuple[Message, ...]:
        return await self.store.transcript(await self.session(chat))

    async def idle(self) -> None:
        """Wait until no turn runs and nothing waits."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                seen = self.store.version
                counts = await self.store.counts(0.0)
                if not (counts["inbox_new"] or counts["turns_running"] or counts["outbox_pending"]):
                    return
                await self.store.changed(seen, DEADLINE_S)

    async def seed(self, *messages: tuple[str, Sequence[Block]], chat: str = "ada", session: str = "seeded234567") -> str:
        """Put a session with these messages (role, blocks) at a direct chat, as an import does, and let the chat join it."""
        await seed(self.store, messages, chat=chat, session=session, at=(self.clock or Clock())() - 86_400)
        return session


async def seed(store: SqlStore, messages: Sequence[tuple[str, Sequence[Block]]], *, chat: str, session: str, at: float) -> None:
    rows = [
        {
            "id": f"{session[:6]}{number:06d}",
            "seq": number,
            "role": role,
            "blocks": json.loads(blocks_to_json(blocks)),
            "sender": chat if role == "user" else "",
            "sender_name": "",
            "turn": f"turn{number}",
            "metadata": {},
            "at": at + number,
            "address": f"desk:{chat}",
        }
        for number, (role, blocks) in enumerate(messages, 1)
    ]
    data = {
        "clew": 1,
        "session": {"id": session, "address": f"desk:{chat}", "direct": True, "title": "", "created": at},
        "messages": rows,
        "compactions": [],
        "pins": [],
        "model_calls": [],
    }
    await store.import_session(data, at)
    await store.join_chat(Inbound("", Address("desk", chat), chat, ""), chat, session, at)


def user(text: str) -> tuple[str, tuple[Block, ...]]:
    return "user", (Text(text),)


def assistant(text: str) -> tuple[str, tuple[Block, ...]]:
    return "assistant", (Text(text),)


def called(*ids: str, name: str = "current_time") -> tuple[str, tuple[Block, ...]]:
    return "assistant", tuple(ToolCall(each, name, "{}") for each in ids)


def result(call_id: str, text: str = "noon", name: str = "current_time") -> tuple[str, tuple[Block, ...]]:
    return "tool", (ToolResult(call_id, name, text),)


def exchanges(count: int, first: int = 1) -> list[tuple[str, tuple[Block, ...]]]:
    """`count` questions with their answers."""
    return [each for n in range(first, first + count) for each in (user(f"question {n}"), assistant(f"answer {n}"))]


@asynccontextmanager
async def engine(
    folder: Path,
    replies: Script = echo,
    *,
    summary: Script | str = SUMMARY,
    tools: Sequence[Tool] = (),
    recall: RecallProvider | None = None,
    provider: Literal["openai", "anthropic"] = "openai",
    window: int | None = 200_000,
    clock: Callable[[], float] | None = None,
    capabilities: Capabilities = Capabilities(),  # noqa: B008 - frozen
    emulated_window: int | None = None,
    desk: Desk | None = None,
    **emulated: Any,
) -> AsyncIterator[World]:
    """A world in which no service runs yet.

    emulated: settings of the model's server. window: tokens, what the config says of the model; emulated_window: the tokens (words)
    that its server takes.
    """
    desk = desk or Desk(capabilities)
    script = chat_script(replies, summary)
    kind = OpenAIEmulator if provider == "openai" else AnthropicEmulator
    async with kind(script=script, window=emulated_window, **emulated) as model:
        with ExitStack() as stack:
            stack.enter_context(plugged("clew.transports", "desk", desk))
            for each in tools:
                stack.enter_context(plugged("clew.tools", each.name, each))
            if recall is not None:
                stack.enter_context(plugged("clew.recall", "other", recall))
            yield World(folder, desk, model, config_for(folder, model, window=window), clock)


@contextmanager
def plugged(group: str, name: str, built: object) -> Iterator[None]:
    """What an installed package's entry point does: a plug-in of `group` that builds `built`."""
    registry(group)[name] = Plugin(name, NoSettings, lambda section, settings: built)
    try:
        yield
    finally:
        del registry(group)[name]


def config_for(
    folder: Path, model: OpenAIEmulator | AnthropicEmulator, *, window: int | None = 200_000, providers: Mapping[str, ProviderSection] = {}
) -> Config:
    """A config with one model, one platform and three people."""
    if isinstance(model, OpenAIEmulator):
        local = openai_section(model, window=window)
    else:
        settings = anthropic.Settings(api_key=SecretStr("sk-ant-a-test-key-0123456789"), base_url=model.url, context_window=window)
        local = ProviderSection(kind="anthropic", name="local", settings=settings)
    return Config(
        data_dir=folder,
        store=databases.store(folder),
        providers={"local": local, **providers},
        agent=Agent(provider="local", timezone="UTC"),
        people=PEOPLE,
        transports={"desk": TransportSection(kind="desk", name="desk", enabled=True, settings=NoSettings())},
    )


def openai_section(model: OpenAIEmulator, name: str = "local", *, window: int | None = 200_000, key: str | None = None) -> ProviderSection:
    secret = None if key is None else SecretStr(key)
    settings = openai.Settings(base_url=model.base_url, model="any", context_window=window, api_key=secret)
    return ProviderSection(kind="openai", name=name, settings=settings)
