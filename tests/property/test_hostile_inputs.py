"""Whatever comes from outside: each parser answers or says its documented error, in work and memory that grow with the input alone.

CLEW_FUZZ_EXAMPLES: inputs in all, 4,000 by default; `make soak` takes 100,000.
"""

import asyncio
import io
import json
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiohttp import web
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from clew import access, fetching
from clew.config import Job, yaml
from clew.context import contract, extract, operations, quoting, recall, redact, revision, survival, text, tokens, view
from clew.context.chunks import chunks
from clew.documents import Refused
from clew.documents.markdown import markdown
from clew.documents.reading import decoded
from clew.errors import ConfigError, UsageError
from clew.imports import pulling
from clew.imports import whatsapp as whatsapp_chat
from clew.imports.conversation import ExportError
from clew.inbox import is_command
from clew.messages import Text as Words
from clew.messages import blocks_from_json, readable_blocks
from clew.providers import (
    PromptMessage,
    Provider,
    ProviderError,
    Request,
    SystemBlock,
    anthropic,
    claude_wire,
    offline,
    ollama,
    openai,
    wire,
)
from clew.providers.failures import Answer, failure, retry_after
from clew.providers.overflow import overflow_in
from clew.store import links
from clew.store.imports import check
from clew.store.opening import open_store
from clew.timetable import upcoming
from clew.transport import Address
from clew.web import auth, chat
from clew.web.chat import chat_id
from clew.web.wire import Problem
from clew_transports.discord import events as discord_events
from clew_transports.discord import markdown as discord_markdown
from clew_transports.discord import place as discord_place
from clew_transports.matrix import events as matrix_events
from clew_transports.matrix import html as matrix_html
from clew_transports.matrix import rooms as matrix_rooms
from clew_transports.mqtt import payload as mqtt_payload
from clew_transports.mqtt.payload import Ignored, Packet, Topics
from clew_transports.reading import Malformed
from clew_transports.signature import Forged
from clew_transports.slack import events as slack_events
from clew_transports.slack import mrkdwn
from clew_transports.slack.place import Place as SlackPlace
from clew_transports.telegram import html as telegram_html
from clew_transports.telegram.updates import Bot, Place, Reader
from clew_transports.text import split
from clew_transports.webhook import message as webhook_message
from clew_transports.webhook.origin import origin
from clew_transports.webhook.signature import CLEW
from tests.databases import BOTH, databases

PROPERTIES = 7
EXAMPLES = int(os.environ.get("CLEW_FUZZ_EXAMPLES", "4000"))
MESSAGE_BYTES = 128 * 1024
"""The longest message, as the config has it by default."""
CORPUS = Path(__file__).parents[1] / "corpus" / "hostile.txt"
TOPICS = Topics("clew")

share = settings(
    max_examples=max(EXAMPLES // PROPERTIES, 50),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # making a failing response smaller takes minutes
)


@dataclass(frozen=True, slots=True)
class Parser:
    """A function of any text, the errors that it may raise, and the bytes that its door lets through."""

    of: Callable[[str], object]
    errors: tuple[type[Exception], ...] = ()
    bound: int = MESSAGE_BYTES

    def run(self, given: str) -> None:
        with suppress(*self.errors):
            self.of(given)


def packet(given: str) -> object:
    raw = given.encode("utf-8", "surrogatepass")
    return mqtt_payload.read(Packet("chat/v1/clew/in/ada", raw[: mqtt_payload.MAX_PAYLOAD_BYTES], len(raw)), TOPICS, "mqtt", "made", 0.0)


def topic(given: str) -> object:
    return mqtt_payload.read(Packet(given, b"Hi", 2, response_topic=given, id=given), TOPICS, "mqtt", "made", 0.0)


def update(given: str) -> object:
    try:
        data = json.loads(given)
    except (ValueError, RecursionError):  # the API's own reader, which says so
        return None
    return Reader("telegram", Bot(1, "ClewTestBot")).read(data, Place())


def of_whatsapp(given: str) -> object:
    """A chat of WhatsApp's export, whose lines begin as its lines do."""
    lines = [f"12/31/23, 9:41 PM - Ada: {given}", *given.split("\n")]
    whatsapp_chat._surveyed(iter(lines))
    return list(whatsapp_chat._said(iter(lines), "mdy", "Ada", ZoneInfo("UTC")))


def pulled(given: str) -> None:
    """An export in JSON, passed over element by element."""
    pulling.Pull("x", io.BytesIO(given.encode("utf-8", "surrogatepass"))).skip()


def of_discord(given: str) -> object:
    """Taken for each kind of event: those that are malformed as another are counted as read."""
    try:
        data = json.loads(given)
    except (ValueError, RecursionError):  # the gateway's own reader, which says so
        return None
    reader, found = discord_events.Reader("discord", "1", "all"), []
    for kind in ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "MESSAGE_REACTION_ADD", "READY"):
        with suppress(Malformed):
            found += reader.read(kind, data)
    with suppress(Malformed):
        discord_events.place_of(data)
    return found


def of_matrix(given: str) -> object:
    try:
        data = json.loads(given)
    except (ValueError, RecursionError):  # the API's own reader, which says so
        return None
    reader = matrix_events.Reader("matrix", matrix_events.Me("@clew:x", "Clew"))
    room = matrix_events.Room(matrix_rooms.members(data if isinstance(data, list) else [data]))
    event = {"sender": "@ada:x", "event_id": "$1", "origin_server_ts": 1, "type": "m.room.message", "content": data}
    found = [reader.read(data, "!a:x", room), reader.read(event, "!a:x", room), matrix_events.replied_to(data)]
    return found, matrix_events.Sync.of(data if isinstance(data, dict) else {}, "@clew:x")


def line_of_matrix(given: str) -> tuple[object, str, matrix_events.Room]:
    content = {"msgtype": "m.text", "body": given, "formatted_body": given, "m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}}
    event = {"sender": "@ada:x", "event_id": "$1", "origin_server_ts": 1, "type": "m.room.message", "content": content}
    return event, "!a:x", matrix_events.Room()


def webhook(given: str) -> object:
    return webhook_message.read(given.encode("utf-8", "surrogatepass"), "webhook", frozenset())


def imported(given: str) -> object:
    try:
        data = json.loads(given)
    except (ValueError, RecursionError):  # the API's own reader, which says so
        return None
    return check(data)


def cron(given: str) -> object:
    job = Job.model_validate({"name": "x", "cron": given, "prompt": "x", "deliver_to": "mqtt:ada"})
    return list(islice(upcoming(job, 1_800_000_000.0, "Europe/Berlin"), 5))


def at(given: str) -> object:
    job = Job.model_validate({"name": "x", "at": given, "prompt": "x", "deliver_to": "mqtt:ada"})
    return list(upcoming(job, 0.0, "Europe/Berlin"))


def lines(given: str) -> object:
    reply = claude_wire.Reply("m")
    for line in given.encode("utf-8", "replace").splitlines():
        reply.feed(claude_wire.parsed(line))
    return reply.failed(0.0) or reply.done()


def of_slack(given: str) -> object:
    try:
        data = json.loads(given)
    except (ValueError, RecursionError):  # the door's own reader, which says so
        return None
    event = slack_events.of_payload(data, "T0WORK")
    reader, place = slack_events.Reader("slack", slack_events.Bot("T0WORK", "U0CLEW", "B0CLEW")), SlackPlace("x", "1.000000", "2.000000")
    return event and reader.read(event, place, dict.fromkeys(slack_events.people_in(event), "Ada"))


def place_of_slack(given: str) -> object:
    place = SlackPlace.load(given)
    assert SlackPlace.load(str(place)) == place
    return place.bot and (place.before(600), place.read("3.000000").met("C1").joined("C1", "3.000000"))


PARSERS: Mapping[str, Parser] = {
    "an MQTT payload": Parser(packet, bound=mqtt_payload.MAX_PAYLOAD_BYTES),
    "an MQTT topic": Parser(topic, (Ignored,), 65_535),
    "an update of Telegram": Parser(update, (Malformed,)),
    "events of Matrix": Parser(of_matrix, (Malformed,)),
    "a line of Matrix": Parser(lambda s: matrix_events.Reader("m", matrix_events.Me("@clew:x", "Clew")).read(*line_of_matrix(s))),
    "a model's Markdown on Matrix": Parser(matrix_html.words, bound=matrix_html.LIMIT),
    "an event of Slack": Parser(of_slack, (Malformed,), 2**20),
    "a message of Slack": Parser(lambda s: mrkdwn.words(s, {}), bound=40_000),
    "a model's Markdown on Slack": Parser(mrkdwn.rendered, bound=mrkdwn.LIMIT),
    "where clew is in Slack": Parser(place_of_slack),
    "a chat of WhatsApp's export": Parser(of_whatsapp),
    "an export in JSON": Parser(pulled, (ExportError,)),
    "an event of Discord": Parser(of_discord, bound=2**24),
    "a place in Discord": Parser(lambda s: str(discord_place.Place.load(s))),
    "a model's Markdown, for Discord": Parser(discord_markdown.rendered, bound=discord_markdown.LIMIT),
    "a model's Markdown": Parser(telegram_html.rendered, bound=telegram_html.LIMIT),
    "a webhook's body": Parser(webhook, (Malformed,)),
    "a webhook's reply_url": Parser(origin, (ValueError,)),
    "a webhook's headers": Parser(lambda s: CLEW.stated([s], [s], 0.0), (Forged,), 8192),
    "a frame of the chat page": Parser(lambda s: chat.parse(s, MESSAGE_BYTES), (chat.Unusable,), chat.frame_limit(MESSAGE_BYTES)),
    "an export": Parser(imported, (UsageError,)),
    "the config": Parser(lambda s: yaml.parse(s.encode("utf-8", "surrogatepass"), "x"), (ConfigError,), yaml.MAX_BYTES),
    "stored blocks": Parser(blocks_from_json, (ValueError,)),
    "damaged blocks": Parser(readable_blocks),
    "an address": Parser(Address.parse, (ValueError,)),
    "a cron expression": Parser(cron, (ValidationError,)),
    "the time of a job": Parser(at, (ValidationError,)),
    "a command": Parser(is_command),
    "a query": Parser(recall.query),
    "an echoed recall block": Parser(recall.strip_appendix),
    "a copied time head": Parser(view.strip_head),
    "the redactor": Parser(lambda s: redact.redact(s, ["hunter2!", "é" * 9])),
    "what no message may hold": Parser(text.clean),
    "the index text": Parser(lambda s: text.tokens(text.index_text(s))),
    "the token estimate": Parser(tokens.estimate),
    "a reply's parts": Parser(lambda s: [split(s, 100, unit) for unit in ("characters", "utf16", "bytes")]),
    "a summariser's answer": Parser(operations.parse),
    "a summariser's prompt": Parser(offline.parse),
    "the arguments of a call": Parser(lambda s: (wire.arguments(s), wire.arguments_text(s))),
    "the name of a model": Parser(lambda s: (anthropic.known_limits(s), ollama.listed({"models": [{"name": s}]}, s))),
    "a Host header": Parser(auth.bare_host, bound=8192),
    "a login cookie": Parser(access.hashed, bound=8192),
    "a peer": Parser(auth.network, bound=8192),
    "a link code": Parser(links.read),
    "what stands behind /access": Parser(access.parse, (UsageError,)),
    "a token": Parser(lambda s: auth.same_token(s, "the token"), bound=8192),
    "the name of a chat": Parser(chat_id, (Problem,), 8192),
    "a summary": Parser(lambda s: contract.refusal(s)),
    "an extract": Parser(lambda s: extract.extract((), survival.heard([survival.Said(s)]), 500)),
    "a revision": Parser(lambda s: revision.revise((), survival.heard([survival.Said(s, "Ada", "user", "m1", 1)]), s)),
    "an error's words": Parser(lambda s: (overflow_in(s), failure(Answer(400, s), 0.0))),
    "a Retry-After": Parser(lambda s: retry_after({"retry-after": s, "retry-after-ms": s, "x-ratelimit-reset": s}, 0.0)),
    "what claude prints": Parser(lines),
    "a document": Parser(lambda s: chunks(markdown(s).sections)),
    "the bytes of a text": Parser(lambda s: decoded(s.encode("utf-8", "surrogatepass")), (Refused,)),
    "the address of a page": Parser(fetching.parsed, (fetching.NotFetched,), 4096),
    "a passage": Parser(lambda s: quoting.harmless_lines(s)),
}

SEEDS = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
"""Pieces of text that a parser may trip over, and that, repeated, may cost it more than they should."""

pieces = st.sampled_from(SEEDS) | st.text(st.characters(), max_size=12)
texts = st.one_of(
    st.text(st.characters(), max_size=300),
    st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")),
    st.lists(pieces, max_size=30).map("".join),
    st.tuples(pieces, st.integers(1, 200), pieces).map(lambda each: each[0] * each[1] + each[2]),
)


@share
@given(st.sampled_from(sorted(PARSERS)), texts)
def test_any_text_is_taken_or_refused_as_documented(name: str, given: str) -> None:  # P42, P49, BO-126
    PARSERS[name].run(given)


# JSON of nearly the right shape -------------------------------------------------------------------------------------

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20) | st.sampled_from([10**400, -1, 2**63])
)
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3), max_leaves=6
)


def damaged(sound: Any) -> st.SearchStrategy[Any]:
    """`sound` as it is, or with one part of it missing or replaced, at any depth."""
    here = st.just(sound) | junk
    if isinstance(sound, dict) and sound:
        keys = st.sampled_from(sorted(sound))
        without = keys.map(lambda key: {name: value for name, value in sound.items() if name != key})
        inside = keys.flatmap(lambda key: damaged(sound[key]).map(lambda value: {**sound, key: value}))
        more = st.tuples(st.text(max_size=8), junk).map(lambda pair: {**sound, pair[0]: pair[1]})
        return st.one_of(inside, inside, without, more, here)
    if isinstance(sound, list) and sound:
        places = st.integers(0, len(sound) - 1)
        inside_list = places.flatmap(lambda n: damaged(sound[n]).map(lambda value: [*sound[:n], value, *sound[n + 1 :]]))
        return st.one_of(inside_list, inside_list, st.just([*sound, *sound]), here)
    return here


SENT = {
    "id": "m1",
    "text": "Hi",
    "reply_to": "m0",
    "sender": {"name": "Ada"},
    "attachments": [{"name": "a", "mime": "a/b", "data": "aGk="}],
}
CALLED = {"id": "m1", "chat": "kitchen", "sender": "ada", "text": "Hi", "reply_url": "http://127.0.0.1:9000"}
BLOCKS = [
    {"kind": "text", "text": "Hi"},
    {"kind": "call", "id": "c", "name": "t", "arguments": "{}"},
    {"kind": "result", "call_id": "c", "name": "t", "text": "x", "is_error": False},
    {"kind": "thinking", "provider": "p", "data": "{}"},
]
MESSAGE = {"id": "abc", "seq": 1, "role": "user", "blocks": BLOCKS, "sender": "ada", "sender_name": "Ada", "turn": "t", "metadata": {}}
EXPORT: dict[str, Any] = {
    "clew": 1,
    "session": {"id": "abc", "address": "web:local", "direct": True, "title": "", "created": 1.0},
    "messages": [{**MESSAGE, "at": 1.0, "address": "web:local"}],
    "compactions": [{"id": "c", "session": "abc", "parent": None, "from_seq": 1, "to_seq": 1, "created": 1.0, "undone_at": None}],
    "pins": [{"message": "abc"}],
    "model_calls": [{"id": "x"}],
}
SAID = {
    "type": "message",
    "user": "U0ADA",
    "text": "<@U0CLEW> hi &amp; <https://e.org|x> <!here>",
    "ts": "1700000000.000100",
    "thread_ts": "1690000000.000100",
    "channel": "C0CLUB",
    "files": [{"id": "F1", "name": "a", "mimetype": "a/b", "size": 9}],
}
CHANGED = {"type": "message", "channel": "D0ADA", "previous_message": SAID}
TOLD = [
    SAID,
    {**CHANGED, "subtype": "message_changed", "message": {**SAID, "text": "<@U0CLEW> ho", "edited": {"ts": "2.0"}}},
    {**CHANGED, "subtype": "message_deleted", "deleted_ts": "1.000100"},
    {
        "type": "reaction_added",
        "user": "U1",
        "reaction": "+1",
        "item": {"type": "message", "channel": "D1", "ts": "1.1"},
        "event_ts": "2.1",
    },
]
TOLD_BY = {"type": "event_callback", "team_id": "T0WORK", "authorizations": [{"team_id": "T0WORK"}]}
ON_DISCORD: dict[str, Any] = {
    "id": "1",
    "ids": ["1", "2"],
    "type": 19,
    "channel_id": "2",
    "guild_id": "3",
    "channel_type": 0,
    "author": {"id": "4", "username": "ada", "global_name": "Ada"},
    "member": {"nick": "A", "user": {"id": "4"}},
    "content": "<@1> hi <@5> <:x:1>",
    "timestamp": "2027-01-15T08:00:00+00:00",
    "edited_timestamp": "2027-01-15T08:00:01.5+00:00",
    "mentions": [{"id": "5", "username": "bob", "member": {"nick": "B"}}],
    "message_reference": {"type": 0, "message_id": "6"},
    "referenced_message": {"author": {"id": "1"}},
    "message_snapshots": [{"message": {"content": "old"}}],
    "attachments": [{"id": "7", "filename": "a.png", "content_type": "image/png", "size": 5}],
    "sticker_items": [{"id": "8"}],
    "emoji": {"id": None, "name": "x"},
    "user_id": "4",
    "message_id": "1",
    "message_author_id": "1",
}
SHAPES: Mapping[str, Any] = {
    "an event of Discord": ON_DISCORD,
    "a place in Discord": json.loads(str(discord_place.Place("1", "s", "wss://g", 5, 6, frozenset({"7"}), ("8",), ("9",)))),
    "an MQTT payload": SENT,
    "a webhook's body": CALLED,
    "a frame of the chat page": {"type": "message", "id": "m1", "text": "Hi"},
    "where clew is in Slack": ["T0WORK/U0CLEW", "1.000000", "2.000000", ["C0CLUB"], ["C0CLUB/1.000100"]],
    "stored blocks": BLOCKS,
    "damaged blocks": BLOCKS,
    "an export": EXPORT,
}


@share
@given(st.sampled_from(sorted(SHAPES)).flatmap(lambda name: st.tuples(st.just(name), damaged(SHAPES[name]))))
def test_json_that_is_nearly_right_is_taken_or_refused_as_documented(case: tuple[str, Any]) -> None:  # P42, P49
    name, value = case
    PARSERS[name].run(json.dumps(value))


@share
@given(st.sampled_from(TOLD).flatmap(damaged))
def test_events_of_slack_that_are_nearly_right_are_read_or_refused(event: Any) -> None:  # P42, BO-076
    PARSERS["an event of Slack"].run(json.dumps({**TOLD_BY, "event": event}))


class Shelf:
    """A store, and the loop that it lives on."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.store = self.runner.run(open_store(databases.store(folder), folder, 1.0))

    def take(self, data: Any) -> None:
        """Import a session and delete it again. Whatever is raised but UsageError gets out."""
        with suppress(UsageError):
            session = self.runner.run(self.store.import_session(data, 1.0))
            assert self.runner.run(self.store.export_session(session))["session"]["id"] == session
            self.runner.run(self.store.delete_session(session))

    def close(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()


@pytest.fixture
def shelf(database: str, tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    yield made
    assert made.runner.run(made.store.check()) == []
    made.close()


@BOTH
@share
@given(damaged(EXPORT))
@example({**EXPORT, "model_calls": [{"id": 2**70}]})
@example({**EXPORT, "messages": [{**EXPORT["messages"][0], "metadata": {"a": "\ud800"}}]})
def test_any_export_is_imported_whole_or_refused(shelf: Shelf, data: Any) -> None:  # P49
    shelf.take(json.loads(json.dumps(data)))


# Responses of models ------------------------------------------------------------------------------------------------

USAGE = {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 1}
ANTHROPIC_EVENTS: list[Any] = [
    {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "usage": USAGE},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c", "name": "t", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{"}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    {"type": "ping"},
]
CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
OPENAI_EVENTS: list[Any] = [
    {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": None}]},
    {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [CALL]}, "finish_reason": None}]},
    {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"id": "x", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}},
    {"error": {"message": "slow down", "type": "rate_limit", "code": 429}},
]
OLLAMA_LINES: list[Any] = [
    {"model": "m", "message": {"role": "assistant", "content": "Hi", "tool_calls": [{"function": {"name": "t", "arguments": {"a": 1}}}]}},
    {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 3},
    {"error": "out of memory"},
]
CLAUDE_LINES: list[Any] = [
    *({"type": "stream_event", "event": event} for event in ANTHROPIC_EVENTS),
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Hi"}]}, "error": "rate_limit"},
    {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 5}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "Hi", "modelUsage": {"m": {"contextWindow": 9}}},
]


def streams(events: list[Any]) -> st.SearchStrategy[list[Any]]:
    """The events in order, all but some of them damaged; or any of them in any order."""
    ordered = st.tuples(*[st.just([each]) | damaged(each).map(lambda value: [value]) | st.just([]) for each in events])
    return ordered.map(lambda some: [each for part in some for each in part]) | st.lists(
        st.sampled_from(events).flatmap(damaged), max_size=8
    )


@share
@given(streams(CLAUDE_LINES), st.floats(0, 4e9))
@example([{"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 10**400}}, CLAUDE_LINES[-1]], 1.0)
def test_any_lines_of_claude_are_an_answer_or_an_error(given: list[Any], now: float) -> None:
    reply = claude_wire.Reply("m")
    for each in given:
        reply.feed(claude_wire.parsed(json.dumps(each).encode()))
    reply.limits()
    assert isinstance(reply.failed(now), ProviderError | None)
    reply.done().blocks  # noqa: B018 - it can be told


@share
@given(streams(OLLAMA_LINES))
def test_any_lines_of_ollama_are_an_answer_or_an_error(given: list[Any]) -> None:
    reply = ollama.Reply("m")
    with suppress(ProviderError):
        for each in given:
            if isinstance(each, dict):
                reply.feed(json.loads(json.dumps(each)))
    stored(reply.done())


def stored(done: Any) -> None:
    """A response that can be kept: what it says is text, and its usage is counted."""
    json.dumps([[getattr(block, name) for name in block.__slots__] for block in done.blocks], ensure_ascii=False).encode()
    assert all(isinstance(getattr(done.usage, name), int) for name in ("input", "output", "cache_read", "cache_write"))


class Endpoint:
    """A model's server that sends any bytes one likes, and clew's clients of it, on a loop of their own."""

    def __init__(self) -> None:
        self.body = b""
        self.kind = ""
        self.runner = asyncio.Runner()
        self._server: web.AppRunner | None = None
        self.clients: dict[str, Provider] = {}

    def __enter__(self) -> "Endpoint":
        self.runner.run(self._start())
        return self

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._server = web.AppRunner(app, access_log=None)
        await self._server.setup()
        site = web.TCPSite(self._server, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{self._server.addresses[0][1]}"
        self.clients = {
            "anthropic": anthropic.Anthropic("a", anthropic.Settings(api_key=SecretStr("sk-a-key"), base_url=url, context_window=9000)),
            "openai": openai.OpenAI("o", openai.Settings(base_url=f"{url}/v1", model="m", context_window=9000)),
            "ollama": ollama.Ollama("l", ollama.Settings(base_url=url, model="m", context_window=9000)),
        }

    async def _answer(self, request: web.Request) -> web.Response:
        return web.Response(body=self.body, headers={"content-type": self.kind})

    def __exit__(self, *exc: object) -> None:
        self.runner.run(self._stop())
        self.runner.close()

    async def _stop(self) -> None:
        for client in self.clients.values():
            await client.close()
        if self._server is not None:
            await self._server.cleanup()

    def ask(self, provider: str, body: bytes, kind: str) -> None:
        """One response of these bytes. Whatever is raised but ProviderError gets out."""
        self.body, self.kind = body, kind
        with suppress(ProviderError):
            self.runner.run(self._ask(self.clients[provider]))

    async def _ask(self, client: Provider) -> None:
        request = Request((SystemBlock("base", "You are brief."),), (PromptMessage("user", (Words("Hi"),)),))
        async for event in client.stream(request):
            if hasattr(event, "blocks"):
                stored(event)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as made:
        yield made


def sse(events: list[Any]) -> bytes:
    named = [(f"event: {each['type']}\n" if isinstance(each, dict) and isinstance(each.get("type"), str) else "") for each in events]
    frames = [f"{name}data: {json.dumps(each)}\n\n" for name, each in zip(named, events, strict=True)]
    return "".join(frames).encode("utf-8", "replace")


def ndjson(events: list[Any]) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in events).encode()


bodies = st.one_of(
    st.tuples(st.just("anthropic"), streams(ANTHROPIC_EVENTS).map(sse), st.just("text/event-stream")),
    st.tuples(st.just("openai"), streams(OPENAI_EVENTS).map(lambda some: sse(some) + b"data: [DONE]\n\n"), st.just("text/event-stream")),
    st.tuples(st.just("ollama"), streams(OLLAMA_LINES).map(ndjson), st.just("application/x-ndjson")),
    st.tuples(
        st.sampled_from(["anthropic", "openai", "ollama"]),
        texts.map(lambda some: some.encode("utf-8", "replace")),
        st.sampled_from(["text/event-stream", "application/json", "text/html"]),
    ),
)


@share
@given(bodies)
def test_any_response_is_an_answer_or_a_provider_error(endpoint: Endpoint, given: tuple[str, bytes, str]) -> None:  # P46
    endpoint.ask(*given)


# Work and memory ----------------------------------------------------------------------------------------------------

STEEP = 9.0
"""Four times the input may cost at most this many times the work; what is quadratic costs sixteen times as much."""
CHEAP_S = 0.05
"""CPU seconds below which a parser's growth is not looked at."""


LONGEST = 2**20 if EXAMPLES > 50_000 else 2**14
"""Characters of the longest input; the long form takes all that a parser's door lets through."""


def work(parser: Parser, given: str) -> float:
    """CPU seconds of this thread: another process cannot add to it."""
    costs = []
    for _ in range(2):
        began = time.thread_time()
        parser.run(given)
        costs.append(time.thread_time() - began)
    return min(costs)


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_work_grows_no_faster_than_the_input(name: str) -> None:  # P49
    parser = PARSERS[name]
    for seed in SEEDS:
        size = min(parser.bound, LONGEST)
        whole = (seed * size)[:size]
        if (cost := work(parser, whole)) > CHEAP_S:
            ratio = cost / work(parser, whole[: len(whole) // 4])
            assert ratio < STEEP, f"{seed!r}: four times the input took {ratio:.1f} times the work ({cost:.2f} s of CPU)"


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_memory_is_bounded_by_the_input(name: str) -> None:  # P49
    parser, size = PARSERS[name], 4096
    for seed in SEEDS[::3]:
        whole = (seed * size)[: min(size, parser.bound)]
        tracemalloc.start()
        try:
            parser.run(whole)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 2**20 + 500 * size, f"{seed!r}: {peak} bytes for {size} characters"
