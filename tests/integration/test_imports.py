"""Conversations of other programs brought into a clew that runs: whose they become, what finds them, what happens the second time."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio

from clew.cli.importing import body_of
from clew.imports import Format, conversations
from clew.imports.conversation import Conversation
from clew.transport import Address, Inbound
from tests import exports
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import say
from tests.integration.engine import system_text
from tests.integration.web_harness import Clew, running, settings
from tests.integration.webhook_harness import until
from tests.unit.test_cli import CLEW

pytestmark = pytest.mark.asyncio

PEOPLE = {"ada": {"role": "owner", "identities": ["web:local"]}, "bob": {"role": "member", "identities": ["web:bob"]}}


@pytest_asyncio.fixture
async def model() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=lambda body: say("an answer")) as emulator:
        yield emulator


@pytest_asyncio.fixture
async def clew(tmp_path: Path, model: OpenAIEmulator) -> AsyncIterator[Clew]:
    async with running(
        settings(tmp_path, base_url=f"{model.url}/v1", people=PEOPLE, agent={"provider": "model", "timezone": "UTC"})
    ) as found:
        yield found


async def cli(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command line beside this clew."""
    process = await asyncio.create_subprocess_exec(
        *(*CLEW, *arguments, "--config", str(folder / "clew.yaml")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def imported(folder: Path, kind: str, file: Path, *more: str) -> dict[str, Any]:
    code, out, err = await cli(folder, "session", "import", str(file), "--from", kind, "--json", *more)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


async def test_a_first_look_writes_nothing(tmp_path: Path, clew: Clew) -> None:
    path = exports.zipped(tmp_path / "export.zip", conversations__json=[exports.chatgpt(*exports.BOILER, current="a2")])
    code, out, _ = await cli(tmp_path, "session", "import", str(path), "--from", "chatgpt", "--dry-run")
    assert (code, out) == (0, "1 conversation, 6 messages, from 2023-11-14 to 2023-11-14.\n")
    assert await clew.service.store.sessions() == []


async def test_what_was_imported_is_a_session_and_is_recalled_by_its_person_alone(  # P33, P37
    tmp_path: Path, clew: Clew, model: OpenAIEmulator
) -> None:
    path = exports.zipped(tmp_path / "export.zip", conversations__json=[exports.chatgpt(*exports.BOILER, current="a2")])
    report = await imported(tmp_path, "chatgpt", path)
    assert (report["conversations"], report["messages"], report["written"]) == (1, 6, 6)
    assert report["first"] == "2023-11-14T22:13:21+00:00"
    assert report["outcomes"] == {"new": 1, "grown": 0, "here": 0, "changed": 0}
    (session,) = await clew.service.store.sessions()
    assert (session.title, session.address, session.messages) == ("The boiler", "import:ada/chatgpt", 6)
    assert await clew.service.store.verify_session(session.id) == []
    rows = await clew.service.store.transcript(session.id)
    assert [(row.role, row.sender, row.at) for row in rows][:2] == [("user", "ada", 1_700_000_001.0), ("assistant", "", 1_700_000_003.0)]
    assert not model.calls  # nothing was compacted, and nobody was asked
    code, out, _ = await cli(tmp_path, "session", "search", "boiler pressure", "--person", "ada")
    assert (code, "Between 1.2 and 1.8 bar" in out or "boiler" in out) == (0, True)
    assert (await cli(tmp_path, "session", "search", "boiler pressure", "--person", "bob"))[0] == 3
    asked = 0
    for chat, knows in (("local", True), ("bob", False)):
        await clew.service.host("web").accept([message(chat, "Which pressure did the boiler need?")])
        await until(partial(more_than, model, asked))
        asked = len(model.calls)
        assert ("import:ada/chatgpt" in system_text(model.calls[-1].body)) is knows


def more_than(model: OpenAIEmulator, count: int) -> bool:
    return len(model.calls) > count


def message(chat: str, text: str) -> Inbound:
    return Inbound(f"web/{chat}/1", Address("web", chat), chat, text, client_id="1")


async def test_imported_again_it_is_passed_over_and_what_was_said_since_is_added(tmp_path: Path, clew: Clew) -> None:
    short = exports.written(tmp_path / "conversations.json", [exports.chatgpt(*exports.BOILER, current="a1")])
    assert (await imported(tmp_path, "chatgpt", short))["written"] == 2
    assert (await imported(tmp_path, "chatgpt", short))["outcomes"]["here"] == 1
    long = exports.written(tmp_path / "conversations.json", [exports.chatgpt(*exports.BOILER, current="a2")])
    report = await imported(tmp_path, "chatgpt", long)
    assert (report["outcomes"]["grown"], report["written"]) == (1, 4)
    other = exports.written(tmp_path / "conversations.json", [exports.chatgpt(*exports.BOILER, current="a0")])
    assert (await imported(tmp_path, "chatgpt", other))["outcomes"]["changed"] == 1
    (session,) = await clew.service.store.sessions()
    assert session.messages == 6
    for_bob = await imported(tmp_path, "chatgpt", long, "--person", "bob")
    assert for_bob["outcomes"]["new"] == 1
    assert {each.address for each in await clew.service.store.sessions()} == {"import:ada/chatgpt", "import:bob/chatgpt"}


@pytest.mark.parametrize(
    ("kind", "sessions", "messages"),
    [("claude", 1, 4), ("hermes", 1, 4), ("openclaw", 1, 4), ("telegram", 3, 5), ("whatsapp", 3, 5)],
)
async def test_each_format_comes_in(tmp_path: Path, clew: Clew, kind: Format, sessions: int, messages: int) -> None:
    match kind:
        case "claude":
            path = exports.written(tmp_path / "conversations.json", [exports.CLAUDE])
        case "hermes":
            path = exports.hermes_database(tmp_path / "state.db", exports.HERMES)
        case "openclaw":
            path = exports.jsonl(tmp_path / "b7300bff.jsonl", *exports.OPENCLAW)
        case "telegram":
            path = exports.written(tmp_path / "result.json", exports.TELEGRAM_ALL)
        case _:
            path = exports.written(tmp_path / "WhatsApp Chat with Bob.txt", exports.WHATSAPP_ANDROID)
    for whole in conversations(kind, path, None, ZoneInfo("UTC")):
        assert isinstance(whole, Conversation)
        answer = await clew.ask_locally("POST", "/api/v1/imports", body_of(kind, None, whole))
        assert answer[1]["messages"] == len(whole.messages)
    found = await clew.service.store.sessions()
    assert (len(found), sum(each.messages for each in found)) == (sessions, messages)
    for each in await clew.service.store.sessions():
        assert await clew.service.store.verify_session(each.id) == []
        for row in await clew.service.store.transcript(each.id):
            assert row.sender == ("" if row.role != "user" else f"{kind}:{row.sender_name}" if row.sender_name else "ada")
        exported = await clew.service.store.export_session(each.id)
        assert len(exported["messages"]) == each.messages


async def test_what_cannot_be_read_is_told_and_the_rest_comes_in(tmp_path: Path, clew: Clew) -> None:
    odd: list[Any] = [{"title": "odd\x1b[2J", "id": "x", "mapping": 3}, exports.chatgpt(*exports.BOILER, current="a1")]
    path = exports.written(tmp_path / "conversations.json", odd)
    code, out, err = await cli(tmp_path, "session", "import", str(path), "--from", "chatgpt")
    assert code == 1
    assert "conversation 1 'odd[2J'" in err
    assert "\x1b" not in err
    assert "could not be read. The others were brought in." in err
    assert "1 new" in out
    assert len(await clew.service.store.sessions()) == 1


async def test_the_api_takes_whole_conversations_of_known_people_alone(clew: Clew) -> None:
    said = {"key": "1", "role": "user", "blocks": [{"kind": "text", "text": "hello"}], "at": 1.0}
    body: dict[str, Any] = {"source": "claude", "key": "k", "messages": [said]}
    assert (await clew.post("/api/v1/imports", body))[0] == 200
    wrong: tuple[dict[str, Any], ...] = (
        {"source": "icq"},
        {"messages": []},
        {"messages": [said] * 2001},
        {"messages": [said | {"at": -1}]},
        {"messages": [said | {"role": "system"}]},
        {"messages": [said | {"blocks": [{"kind": "text"}]}]},
        {"messages": [said, said | {"blocks": [{"kind": "?"}]}]},
        {"person": "nobody"},
        {"more": 1},
    )
    for each in wrong:
        status, answer = await clew.post("/api/v1/imports", body | {"key": "other"} | each)
        assert status in (400, 404, 422), (each, answer)
    assert [each.messages for each in await clew.service.store.sessions()] == [1]


async def test_what_was_brought_in_for_somebody_goes_when_they_are_erased(tmp_path: Path, clew: Clew) -> None:
    path = exports.written(tmp_path / "conversations.json", [exports.CLAUDE])
    (whole,) = conversations("claude", path, None, ZoneInfo("UTC"))
    assert isinstance(whole, Conversation)
    for person in ("ada", "bob"):
        assert (await clew.post("/api/v1/imports", body_of("claude", person, whole)))[1]["outcome"] == "new"
    status, erasure = await clew.post("/api/v1/people/bob/erase", {"wait": 60})
    assert (status, erasure["what"]) == (200, "person")
    assert [each.address for each in await clew.service.store.sessions()] == ["import:ada/claude"]
    assert await clew.service.store.sessions("import:bob/claude") == []
