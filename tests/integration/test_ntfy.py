"""The ntfy transport against the emulated server, with a host that remembers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Attachment, Delivery, Refused, Retry, Sent, Unknown
from clew_transports.ntfy.events import ENCODED
from clew_transports.ntfy.transport import LIMIT, NtfyTransport, Settings, plugin
from tests.emulators import listening, ntfy
from tests.emulators.ntfy import TOKEN, NtfyEmulator
from tests.integration.mqtt_harness import Inbox

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def server() -> AsyncIterator[NtfyEmulator]:
    async with NtfyEmulator() as emulator:
        yield emulator


def built(server: NtfyEmulator, *, silent_s: float = 20.0, answer_s: float = 20.0, **more: Any) -> NtfyTransport:
    settings = Settings(**{"base_url": server.url, "topics": {"ada": "to-ada", "bob": "to-bob"}} | more)
    return NtfyTransport("ntfy", settings, first_pause=0.02, silent_s=silent_s, answer_s=answer_s)


@contextlib.asynccontextmanager
async def running(transport: NtfyTransport, inbox: Inbox) -> AsyncIterator[NtfyTransport]:
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(server: NtfyEmulator, **more: Any) -> AsyncIterator[tuple[NtfyTransport, Inbox]]:
    inbox = Inbox()
    async with running(built(server, **more), inbox) as transport:
        await inbox.until(lambda: inbox.up)
        yield transport, inbox


def delivery(transport: NtfyTransport, text: str, chat: str = "ada", **more: Any) -> Delivery:
    return Delivery("k3v9", Address("ntfy", chat), text, tuple(transport.parts(text)), 1_800_000_000.0, **more)


# In --------------------------------------------------------------------------------------------------------------


async def test_what_waited_before_the_first_start_comes_in_order(server: NtfyEmulator) -> None:  # P42, BO-053
    for number in range(6):
        await server.say("ada", f"message {number}")
    await server.say("somebody-else", "not for clew")
    async with connected(server) as (_, inbox):
        await inbox.until(lambda: len(inbox.rows) == 6)
        assert inbox.texts == [f"message {number}" for number in range(6)]
        first = next(iter(inbox.rows.values()))
        assert (first.external_id, first.address, first.identity, first.direct) == (
            "ntfy/ada/m000000001",
            Address("ntfy", "ada"),
            "ntfy:ada",
            True,
        )


async def test_a_restart_goes_on_behind_what_is_stored(server: NtfyEmulator) -> None:  # P42, BO-047
    inbox = Inbox()
    await server.say("ada", "one")
    async with running(built(server), inbox):
        await inbox.until(lambda: len(inbox.rows) == 1)
    await server.say("bob", "two")
    async with running(built(server), inbox):
        await inbox.until(lambda: len(inbox.rows) == 2)
    assert server.sinces == ["all", "m000000001"]
    inbox.stored_cursor = "an id that the cache has forgotten"
    async with running(built(server), inbox):
        await inbox.until(lambda: len(inbox.duplicates) == 2)
    assert inbox.texts == ["one", "two"]


async def test_nothing_counts_as_read_before_it_is_stored(server: NtfyEmulator) -> None:  # P42
    inbox = Inbox()
    inbox.stuck = True
    await server.say("ada", "hello")
    async with running(built(server), inbox):
        await inbox.until(lambda: bool(inbox.batches))
    assert inbox.stored_cursor is None
    inbox.stuck = False
    async with running(built(server), inbox):
        await inbox.until(lambda: inbox.texts == ["hello"])


async def test_a_stream_that_breaks_or_falls_silent_is_opened_again_behind_the_last_message(server: NtfyEmulator) -> None:  # P42, BO-054
    async with connected(server, silent_s=0.3) as (_, inbox):
        await server.say("ada", "one")
        await inbox.until(lambda: inbox.texts == ["one"])
        await server.cut()
        await inbox.until(lambda: not inbox.up)
        await server.say("ada", "two")
        await inbox.until(lambda: inbox.texts == ["one", "two"])
        opened = len(server.sinces)
        await inbox.until(lambda: len(server.sinces) > opened + 1)  # nothing was said for a while, twice
        assert inbox.duplicates == []


async def test_an_update_is_an_edit_and_a_deletion_one(server: NtfyEmulator) -> None:  # BO-076
    async with connected(server) as (_, inbox):
        first = await server.say("ada", "Buy milk")
        await server.say("ada", "Buy oat milk", sequence_id=first["id"])
        await server.say("ada", "", event="message_delete", sequence_id=first["id"])
        await inbox.until(lambda: len(inbox.rows) == 3)
        said, edit, deletion = inbox.rows.values()
        assert (said.kind, edit.kind, edit.edits, edit.text) == ("message", "edit", said.external_id, "Buy oat milk")
        assert (deletion.kind, deletion.edits) == ("delete", said.external_id)


async def test_titles_files_and_what_is_no_text(server: NtfyEmulator) -> None:
    server.files["plan.txt"] = b"the plan"
    async with connected(server) as (transport, inbox):
        await server.say("ada", "the words", title="A title")
        await server.say("ada", "AAECAw==", encoding="base64")
        file = {"name": "plan.txt", "type": "text/plain", "size": 8, "url": f"{server.url}/file/plan.txt"}
        await server.say("ada", "You received a file: plan.txt", attachment=file)
        await server.say("ada", "and elsewhere", attachment={"name": "x", "url": "http://127.0.0.1:1/x"})
        await inbox.until(lambda: len(inbox.rows) == 4)
        titled, encoded, filed, elsewhere = inbox.rows.values()
        assert (titled.text, encoded.refused) == ("A title\nthe words", ENCODED)
        assert filed.attachments == (Attachment("plan.txt", "text/plain", 8, f"{server.url}/file/plan.txt"),)
        assert [piece async for piece in transport.fetch(filed.attachments[0].ref)] == [b"the plan"]
        with pytest.raises(LookupError, match="not on the ntfy server"):
            [piece async for piece in transport.fetch(elsewhere.attachments[0].ref)]


async def test_what_is_no_event_is_passed_over(server: NtfyEmulator) -> None:
    async with connected(server) as (_, inbox):
        await server.give({"event": "message", "topic": "ada", "id": "x", "time": "never"})
        await server.give({"event": "message", "topic": "ada", "id": "y"})
        await server.say("ada", "x" * 2_000_000)
        await server.say("ada", "still here")
        await inbox.until(lambda: inbox.texts == ["still here"])


async def test_a_token_that_may_not_read_is_said(server: NtfyEmulator) -> None:  # P48
    server.closed = {"ada", "to-ada"}
    inbox = Inbox()
    async with running(built(server), inbox):
        await inbox.until(lambda: bool(inbox.reports) and "may not read" in inbox.reports[-1][1])
        assert not inbox.up
    async with running(built(server, token=SecretStr(TOKEN)), inbox):
        await inbox.until(lambda: inbox.up)


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_reply_goes_to_the_other_topic_part_by_part(server: NtfyEmulator) -> None:  # P43, BO-055
    async with connected(server) as (transport, _):
        text = "äö" * 3000
        whole = delivery(transport, text)
        while whole.sent < len(whole.parts):
            upto = (await transport.send(whole)).upto
            assert upto == whole.sent + 1
            whole = replace(whole, sent=upto)
        assert "".join(server.texts("to-ada")) == text
        assert all(len(each["message"].encode()) <= LIMIT for each in server.messages)
        assert {each["content_type"] for each in server.messages} == {"text/markdown"}


async def test_any_other_topic_is_notified(server: NtfyEmulator) -> None:
    async with connected(server, topics={}) as (transport, _):
        assert await transport.send(delivery(transport, "The door is open.", "alerts")) == Sent("m000000001", 1)
        assert server.texts("alerts") == ["The door is open."]
        with pytest.raises(Refused, match="must be a topic"):
            await transport.send(delivery(transport, "x", "../etc"))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (ntfy.too_many(7), Retry),
        (ntfy.refuses(507, "cannot store"), Retry),
        (ntfy.refuses(403, "forbidden"), Retry),
        (ntfy.refuses(400, "invalid request"), Refused),
        (listening.drops, Unknown),
    ],
)
async def test_failures_are_told_apart(server: NtfyEmulator, fault: listening.Fault, expected: type[Exception]) -> None:  # P43, BO-064
    async with connected(server) as (transport, _):
        server.next.append(fault)
        with pytest.raises(expected) as caught:
            await transport.send(delivery(transport, "hello"))
        assert getattr(caught.value, "after", None) == (7 if fault.__qualname__.startswith("too_many") else None)
        assert server.messages == []


async def test_nobody_listening_is_nothing_sent(server: NtfyEmulator) -> None:  # P43
    async with connected(server) as (transport, _):
        await server.down()
        with pytest.raises(Retry, match="no connection to ntfy"):
            await transport.send(delivery(transport, "hello"))


async def test_a_part_without_an_answer_is_looked_for(server: NtfyEmulator) -> None:  # P43
    async with connected(server) as (transport, _):
        whole = delivery(transport, "x" * 6000)
        server.next.append(listening.does_and_drops)
        with pytest.raises(Unknown):
            await transport.send(whole)
        assert await transport.find(whole) == Sent("m000000001", 1)
        assert await transport.find(replace(whole, sent=1)) is None


# Setting up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"topics": {"ada": "ada"}},
        {"topics": {"ada": "bob", "bob": "ada"}},
        {"topics": {"a/b": "c"}},
        {"topics": {"ada": ""}},
        {"token": SecretStr("tk\nX: y")},
        {"base_url": "ntfy.sh"},
    ],
)
async def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**settings)


async def test_the_doctor_sees_what_is_wrong(server: NtfyEmulator) -> None:
    assert plugin.examine is not None

    async def texts(**more: Any) -> list[str]:
        assert plugin.examine is not None
        settings = Settings(**{"base_url": server.url, "topics": {"ada": "to-ada"}} | more)
        return [fault.text for fault in await plugin.examine("ntfy", settings)]

    assert await texts() == ["ada: whoever knows its name can read it, and write as its owner"]
    server.closed = {"ada"}
    assert await texts() == ["ada: ntfy answered 403: the token is not known, or may not read these topics"]
    assert await texts(token=SecretStr(TOKEN)) == []
    await server.down()
    assert "no connection to ntfy" in (await texts())[0]
