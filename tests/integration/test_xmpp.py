"""The XMPP transport against prosody, with a host that remembers."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Delivery, Refused, Retry, Sent, Typing
from clew_transports.xmpp.transport import Settings, XmppTransport, plugin
from tests import prosody
from tests.integration.mqtt_harness import Inbox
from tests.integration.xmpp_harness import ROOM, Person
from tests.prosody import PASSWORD, Prosody
from tests.servers import find_program

pytestmark = pytest.mark.asyncio

CLEW, ADA = "clew@localhost", "ada@localhost"


@pytest.fixture
def server() -> Iterator[Prosody]:
    if find_program("prosody") is None:
        pytest.skip(prosody.MISSING)
    with tempfile.TemporaryDirectory() as folder:
        found = Prosody(Path(folder))
        found.register("clew", "ada", "bob")
        with found:
            yield found


def settings(server: Prosody, **more: Any) -> Settings:
    usual: dict[str, Any] = {"jid": CLEW, "password": SecretStr(PASSWORD), "host": "127.0.0.1", "port": server.port, "tls": False}
    return Settings(**usual | more)


@contextlib.asynccontextmanager
async def running(server: Prosody, inbox: Inbox, **more: Any) -> AsyncIterator[XmppTransport]:
    transport = XmppTransport("xmpp", settings(server, **more), first_pause=0.05, look_s=0.5)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(server: Prosody, inbox: Inbox | None = None, **more: Any) -> AsyncIterator[tuple[XmppTransport, Inbox]]:
    inbox = inbox or Inbox()
    before = len(inbox.reports)
    async with running(server, inbox, **more) as transport:
        await inbox.until(lambda: len(inbox.reports) > before and inbox.up)
        yield transport, inbox


def delivery(transport: XmppTransport, text: str, chat: str = ADA, **more: Any) -> Delivery:
    return Delivery("k3v9", Address("xmpp", chat), text, tuple(transport.parts(text)), 1.0, **more)


# In --------------------------------------------------------------------------------------------------------------


async def test_what_is_said_while_clew_is_off_is_read_once_and_in_order(server: Prosody) -> None:  # P42, BO-047
    inbox = Inbox()
    async with Person.here(server, "ada") as ada:
        ada.say(CLEW, "before the first start")
        async with connected(server, inbox):
            await inbox.until(lambda: inbox.texts == ["before the first start"])
            ada.say(CLEW, "while it is there")
            await inbox.until(lambda: len(inbox.rows) == 2)
        for number in range(60):
            ada.say(CLEW, f"message {number}")
        async with connected(server, inbox):
            await inbox.until(lambda: len(inbox.rows) == 62)
        assert inbox.texts[2:] == [f"message {number}" for number in range(60)]
        inbox.stored_cursor = None  # as if the store had come from a backup
        async with connected(server, inbox):
            ada.say(CLEW, "the end")
            await inbox.until(lambda: inbox.texts[-1] == "the end")
    assert len(inbox.rows) == 63
    last = list(inbox.rows.values())[-1]
    assert (last.address, last.identity, last.direct) == (Address("xmpp", ADA), f"xmpp:{ADA}", True)


async def test_what_is_not_stored_comes_again(server: Prosody) -> None:  # P42
    async with Person.here(server, "ada") as ada:
        async with connected(server) as (_, inbox):
            inbox.stuck = True
            ada.say(CLEW, "hello")
            await inbox.until(lambda: any(inbox.batches))
        inbox.stuck = False
        async with connected(server, inbox):
            await inbox.until(lambda: inbox.texts == ["hello"])


async def test_rooms_are_answered_where_clew_is_meant_and_people_are_their_accounts(server: Prosody) -> None:  # P46, BO-069
    inbox = Inbox()
    async with Person.here(server, "ada", ROOM) as ada, Person.here(server, "bob", ROOM) as bob:
        async with connected(server, inbox, rooms=(ROOM,), prefix="!"):
            for words in ("just talk", "clew: hello", "@clew are you there?", "what does clew say?", "!help", "clewless"):
                ada.say(ROOM, words)
            await inbox.until(lambda: len(inbox.rows) == 4)
            bob.say(ROOM, "clew: and me")
            await inbox.until(lambda: len(inbox.rows) == 5)
            assert inbox.texts == ["hello", "are you there?", "what does clew say?", "help", "and me"]
            assert {(row.identity, row.sender_name) for row in inbox.rows.values()} == {
                (f"xmpp:{ADA}", "ada"),
                ("xmpp:bob@localhost", "bob"),
            }
            assert {row.address for row in inbox.rows.values()} == {Address("xmpp", ROOM)}
        bob.say(ROOM, "clew: while it was off")
        bob.say(ROOM, "something else")
        async with connected(server, inbox, rooms=(ROOM,), prefix="!"):
            await inbox.until(lambda: inbox.texts[-1] == "while it was off")
            assert len(inbox.rows) == 6
            assert list(inbox.rows.values())[-1].identity == "xmpp:bob@localhost"


async def test_other_lines_are_kept_where_clew_listens(server: Prosody) -> None:
    async with Person.here(server, "ada", ROOM) as ada, connected(server, rooms=(ROOM,), groups="listen") as (_, inbox):
        ada.say(ROOM, "just talk")
        ada.say(ROOM, "clew: hello")
        await inbox.until(lambda: len(inbox.rows) == 2)
        assert [(row.kind, row.text) for row in inbox.rows.values()] == [("context", "just talk"), ("message", "hello")]


async def test_corrections_retractions_and_reactions(server: Prosody) -> None:  # BO-076
    async with Person.here(server, "ada") as ada, connected(server) as (_, inbox):
        ada.say(CLEW, "Buy milk", id="m1")
        ada.say(CLEW, "Buy oat milk", "<replace xmlns='urn:xmpp:message-correct:0' id='m1'/>", id="m2")
        ada.say(CLEW, "", "<retract xmlns='urn:xmpp:message-retract:1' id='m1'/>", id="m3")
        ada.say(CLEW, "", "<reactions xmlns='urn:xmpp:reactions:0' id='clew-k-1'><reaction>👍</reaction></reactions>", id="m4")
        ada.say(CLEW, "of nobody", "<replace xmlns='urn:xmpp:message-correct:0' id='x'/>", id="m5")
        ada.say(CLEW, "the end", id="m6")
        await inbox.until(lambda: "the end" in inbox.texts)
        said, edit, deletion, reaction, _ = inbox.rows.values()
        assert (edit.kind, edit.edits, edit.text) == ("edit", said.external_id, "Buy oat milk")
        assert (deletion.kind, deletion.edits) == ("delete", said.external_id)
        assert (reaction.kind, reaction.text, reaction.reply_to) == ("reaction", "👍", "clew-k-1")


async def test_a_server_that_goes_is_noticed_and_what_was_said_meanwhile_read(server: Prosody) -> None:  # P48
    inbox = Inbox()
    async with connected(server, inbox) as (transport, _):
        await asyncio.to_thread(server.stop)
        await inbox.until(lambda: not inbox.up)
        with pytest.raises(Retry):
            await transport.send(delivery(transport, "hello"))
        await asyncio.to_thread(server.start)
        await inbox.until(lambda: inbox.up)
        async with Person.here(server, "ada") as ada:
            ada.say(CLEW, "there you are")
            await inbox.until(lambda: inbox.texts == ["there you are"])


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_reply_arrives_styled_and_is_found_in_the_archive(server: Prosody) -> None:  # P43
    async with Person.here(server, "ada", ROOM) as ada, connected(server, rooms=(ROOM,)) as (transport, _):
        whole = delivery(transport, "**Yes** & <no> `x`\n\n> quoted\n\n" + "word " * 5000)
        assert len(whole.parts) == 2
        assert await transport.send(whole) == Sent("clew-k3v9-1", 1)
        await transport.hint(Address("xmpp", ADA), Typing())
        await ada.until(lambda: bool(ada.texts(CLEW) and ada.states))
        assert ada.texts(CLEW)[0].startswith("*Yes* & <no> `x`\n\n> quoted\n\nword word")
        now = replace(whole, ts=time.time())
        assert await transport.find(now) == Sent("clew-k3v9-1", 1)
        assert await transport.find(replace(now, sent=1)) is None
        await transport.send(delivery(transport, "to all", ROOM))
        await ada.until(lambda: ada.texts(f"{ROOM}/clew") == ["to all"])


async def test_whom_nobody_knows_is_refused(server: Prosody) -> None:  # P43
    async with connected(server) as (transport, _):
        with pytest.raises((Refused, Retry), match="the server says"):
            await transport.send(delivery(transport, "hello", "nobody@localhost"))
        with pytest.raises(Refused, match="must be a JID"):
            await transport.send(delivery(transport, "hello", "a b"))


# Setting up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"jid": "clew"}, {"jid": "a b@c"}, {"rooms": ("club",)}, {"nick": "a/b"}, {"port": 0}])
async def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)


async def test_the_doctor_sees_what_is_wrong(server: Prosody) -> None:
    async def texts(**more: Any) -> str:
        assert plugin.examine is not None
        return "; ".join(fault.text for fault in await plugin.examine("xmpp", settings(server, **more)))

    assert await texts() == ""
    assert "does not know the account" in await texts(password=SecretStr("wrong"))
    assert "no connection" in await texts(port=1)
