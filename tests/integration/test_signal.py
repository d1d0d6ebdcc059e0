"""The Signal transport against the emulated signal-cli, with a host that remembers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from pydantic import ValidationError

from clew.transport import Address, Attachment, Delivery, Refused, Retry, Sent, Typing, Unknown
from clew_transports.reading import READABLE
from clew_transports.signal.transport import RATE_S, Settings, SignalTransport, plugin
from tests.emulators import signal_cli
from tests.emulators.signal_cli import ACCOUNT, UUID, SignalCliEmulator
from tests.integration.mqtt_harness import Inbox
from tests.integration.platforms.signal import GROUP, uuid

pytestmark = pytest.mark.asyncio

ADA, BOB = uuid("ada"), uuid("bob")


@pytest_asyncio.fixture
async def daemon() -> AsyncIterator[SignalCliEmulator]:
    async with SignalCliEmulator() as emulator:
        yield emulator


def settings(daemon: SignalCliEmulator, **more: Any) -> Settings:
    usual: dict[str, Any] = {"port": daemon.port, "account": ACCOUNT}
    return Settings(**usual | more)


@contextlib.asynccontextmanager
async def running(daemon: SignalCliEmulator, inbox: Inbox, *, answer_s: float = 20.0, **more: Any) -> AsyncIterator[SignalTransport]:
    transport = SignalTransport("signal", settings(daemon, **more), first_pause=0.02, look_s=0.05, answer_s=answer_s)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(daemon: SignalCliEmulator, **more: Any) -> AsyncIterator[tuple[SignalTransport, Inbox]]:
    inbox = Inbox()
    async with running(daemon, inbox, **more) as transport:
        await inbox.until(lambda: inbox.up)
        yield transport, inbox


def delivery(transport: SignalTransport, text: str, chat: str = ADA, **more: Any) -> Delivery:
    return Delivery("k3v9", Address("signal", chat), text, tuple(transport.parts(text)), 1.0, **more)


# In --------------------------------------------------------------------------------------------------------------


async def test_what_waited_comes_in_order_once_clew_subscribes(daemon: SignalCliEmulator) -> None:  # P42, BO-053
    daemon.names[ADA] = "Ada"
    for number in range(5):
        daemon.say(f"message {number}", ADA)
    assert len(daemon.waiting) == 5
    async with connected(daemon) as (_, inbox):
        await inbox.until(lambda: len(inbox.rows) == 5)
        assert inbox.texts == [f"message {number}" for number in range(5)]
        first = next(iter(inbox.rows.values()))
        assert (first.external_id, first.address, first.identity, first.sender_name, first.direct) == (
            f"signal/{ACCOUNT}/{ADA}/1800000001000",
            Address("signal", ADA),
            f"signal:{ADA}",
            "Ada",
            True,
        )


async def test_the_next_message_is_taken_when_the_one_before_it_is_stored(daemon: SignalCliEmulator) -> None:  # P42
    inbox = Inbox()
    inbox.stuck = True
    async with running(daemon, inbox):
        for number in range(3):
            daemon.say(f"message {number}", ADA)
        await inbox.until(lambda: bool(inbox.batches))
        assert [each.text for batch in inbox.batches for each in batch] == ["message 0"]


async def test_groups_are_answered_where_clew_is_meant(daemon: SignalCliEmulator) -> None:  # BO-069
    own = {"uuid": UUID, "name": "clew", "start": 0, "length": 1}
    async with connected(daemon, prefix="!") as (_, inbox):
        daemon.say("just talk", ADA, GROUP)
        daemon.say("\ufffc, hello", ADA, GROUP, mentions=[own])
        daemon.say(
            "ask \ufffc and \ufffc", ADA, GROUP, mentions=[{**own, "start": 4}, {"uuid": BOB, "name": "Bob", "start": 10, "length": 1}]
        )
        daemon.say("yes", BOB, GROUP, quote={"id": 17, "authorUuid": UUID, "text": "?"})
        daemon.say("yes, Bob", ADA, GROUP, quote={"id": 18, "authorUuid": BOB, "text": "?"})
        daemon.say("! help", BOB, GROUP)
        daemon.say("hello in private", BOB)
        await inbox.until(lambda: len(inbox.rows) == 5)
        assert inbox.texts == ["hello", "ask @clew and @Bob", "yes", "help", "hello in private"]
        assert {str(row.address) for row in inbox.rows.values() if not row.direct} == {
            "signal:Xk9-abcDEF_ghiJKLmnoPQRstuVWXyz0123456789AB="
        }


async def test_what_is_not_for_clew_is_kept_where_the_config_says_so(daemon: SignalCliEmulator) -> None:  # BO-069
    async with connected(daemon, groups="listen", prefix="!") as (_, inbox):
        daemon.say("just talk", ADA, GROUP)
        daemon.say("! help", BOB, GROUP)
        await inbox.until(lambda: len(inbox.rows) == 2)
        assert [(row.kind, row.text, row.direct) for row in inbox.rows.values()] == [
            ("context", "just talk", False),
            ("message", "help", False),
        ]


async def test_edits_deletions_and_reactions(daemon: SignalCliEmulator) -> None:  # BO-076
    async with connected(daemon) as (_, inbox):
        said = daemon.say("Buy milk", ADA)
        edited = {"timestamp": 1, "message": "Buy oat milk"}
        daemon.give(daemon.envelope(ADA, editMessage={"targetSentTimestamp": said["timestamp"], "dataMessage": edited}))
        daemon.say("", ADA, remoteDelete={"timestamp": said["timestamp"]})
        thumb = {"emoji": "👍", "targetAuthor": ACCOUNT, "targetAuthorUuid": UUID, "targetSentTimestamp": 99, "isRemove": False}
        daemon.say("", ADA, reaction=thumb)
        daemon.say("", ADA, reaction=thumb | {"isRemove": True})
        daemon.say("", ADA, reaction=thumb | {"targetAuthor": None, "targetAuthorUuid": BOB})
        daemon.say("the end", ADA)
        await inbox.until(lambda: len(inbox.rows) == 5)
        first, edit, deletion, reaction, _ = inbox.rows.values()
        assert (edit.kind, edit.edits, edit.text) == ("edit", first.external_id, "Buy oat milk")
        assert (deletion.kind, deletion.edits) == ("delete", first.external_id)
        assert (reaction.kind, reaction.text, reaction.reply_to) == ("reaction", "👍", "99")


async def test_what_is_nobodys_message_is_passed_over(daemon: SignalCliEmulator) -> None:  # BO-072
    async with connected(daemon) as (_, inbox):
        daemon.give(daemon.envelope(UUID, dataMessage={"timestamp": 1, "message": "from another device of the account"}))
        daemon.give(daemon.envelope(ADA, receiptMessage={"isRead": True}))
        daemon.give(daemon.envelope(ADA, typingMessage={"action": "STARTED"}))
        daemon.give(daemon.envelope(ADA, syncMessage={"sentMessage": {"message": "x"}}))
        daemon.give({"timestamp": "never", "dataMessage": {"message": "x"}})
        daemon.say("", ADA, sticker={"packId": "x"})
        daemon.say("hello", ADA)
        await inbox.until(lambda: inbox.texts == ["hello"])
        assert [row.refused for row in inbox.rows.values()] == [READABLE, ""]


async def test_files_are_fetched_from_signal_cli(daemon: SignalCliEmulator) -> None:
    daemon.files["abc.jpg"] = b"the picture"
    async with connected(daemon) as (transport, inbox):
        daemon.say("look", ADA, attachments=[{"id": "abc.jpg", "contentType": "image/jpeg", "filename": "cat.jpg", "size": 11}])
        daemon.say("", ADA, attachments=[{"id": "gone", "contentType": "audio/aac", "size": 11}])
        await inbox.until(lambda: len(inbox.rows) == 2)
        picture, voice = inbox.rows.values()
        assert picture.attachments == (Attachment("cat.jpg", "image/jpeg", 11, f"{ADA} abc.jpg"),)
        assert voice.attachments[0].name == "voice"
        assert [piece async for piece in transport.fetch(picture.attachments[0].ref)] == [b"the picture"]
        with pytest.raises(LookupError):
            [piece async for piece in transport.fetch(voice.attachments[0].ref)]


async def test_a_daemon_that_goes_or_falls_silent_is_noticed(daemon: SignalCliEmulator, monkeypatch: pytest.MonkeyPatch) -> None:  # P48
    monkeypatch.setattr("clew_transports.signal.transport.LOOKED_S", 0.2)
    async with connected(daemon) as (_, inbox):
        await daemon.down()
        await inbox.until(lambda: not inbox.up)
        daemon.say("while it was away", ADA)
        await daemon.up()
        await inbox.until(lambda: inbox.up and inbox.texts == ["while it was away"])
        daemon.silent = True
        await inbox.until(lambda: not inbox.up)
        daemon.silent = False
        await inbox.until(lambda: inbox.up)


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_long_reply_comes_in_parts_with_styles(daemon: SignalCliEmulator) -> None:  # P43, BO-055
    async with connected(daemon) as (transport, _):
        reply = delivery(transport, "# Plän 👍\n\n" + "**strong** and `code` " * 300)
        while reply.sent < len(reply.parts):
            upto = (await transport.send(reply)).upto
            assert upto == reply.sent + 1
            reply = replace(reply, sent=upto)
        assert len(daemon.messages) > 2
        assert all(len(each["message"].encode()) <= 2000 for each in daemon.messages)
        assert daemon.messages[0]["message"].startswith("Plän 👍\n\nstrong and code")
        assert daemon.messages[0]["textStyle"][:3] == ["0:7:BOLD", "9:6:BOLD", "20:4:MONOSPACE"]


async def test_in_a_group_the_first_part_quotes_the_question(daemon: SignalCliEmulator) -> None:
    async with connected(daemon) as (transport, _):
        chat = "Xk9-abcDEF_ghiJKLmnoPQRstuVWXyz0123456789AB="
        whole = delivery(transport, "x " * 1500, chat, in_reply_to="1800000000000", context={"author": ADA})
        await transport.send(whole)
        await transport.send(replace(whole, sent=1))
        first, second = daemon.messages
        assert (first["groupId"], first["quoteTimestamp"], first["quoteAuthor"]) == (GROUP, 1_800_000_000_000, ADA)
        assert "quoteTimestamp" not in second


@pytest.mark.parametrize(
    ("fault", "expected", "after"),
    [
        (signal_cli.refuses(-5, "Rate limit", 7), Retry, 7),
        (signal_cli.refuses(-5, "Rate limit"), Retry, RATE_S),
        (signal_cli.refuses(-3, "IO error"), Retry, None),
        (signal_cli.refuses(-1, "Unregistered user"), Refused, None),
        (signal_cli.refuses(-4, "Untrusted identity"), Refused, None),
        (signal_cli.drops, Unknown, None),
        (signal_cli.does_and_drops, Unknown, None),
    ],
)
async def test_failures_are_told_apart(  # P43, BO-064
    daemon: SignalCliEmulator, fault: signal_cli.Fault, expected: type[Exception], after: float | None
) -> None:
    async with connected(daemon) as (transport, _):
        daemon.next.append(fault)
        with pytest.raises(expected) as caught:
            await transport.send(delivery(transport, "hello"))
        assert getattr(caught.value, "after", None) == after


async def test_nobody_listening_is_nothing_sent(daemon: SignalCliEmulator) -> None:  # P43
    async with connected(daemon) as (transport, inbox):
        await daemon.down()
        await inbox.until(lambda: not inbox.up)
        with pytest.raises(Retry, match="no connection to signal-cli"):
            await transport.send(delivery(transport, "hello"))
        with pytest.raises(Refused, match="must be a number"):
            await transport.send(delivery(transport, "hello", "ada"))


async def test_typing_is_shown(daemon: SignalCliEmulator) -> None:
    async with connected(daemon) as (transport, _):
        await transport.hint(Address("signal", ADA), Typing())
        await daemon.until(lambda: bool(daemon.typings))
        assert daemon.typings[0]["recipient"] == [ADA]
        assert await transport.find(delivery(transport, "x")) is None
        assert await transport.send(delivery(transport, " ")) == Sent(upto=1)


# Setting up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"account": "0555"}, {"port": 0}, {"groups": "none"}, {"prefix": ""}])
async def test_settings_that_cannot_be_are_refused(daemon: SignalCliEmulator, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(daemon, **wrong)


async def test_the_doctor_sees_what_is_wrong(daemon: SignalCliEmulator) -> None:
    async def texts(**more: Any) -> str:
        assert plugin.examine is not None
        return "; ".join(fault.text for fault in await plugin.examine("signal", settings(daemon, **more)))

    assert await texts() == ""
    assert "no account +15550009999" in await texts(account="+15550009999")
    await daemon.down()
    assert "no connection to signal-cli" in await texts()
