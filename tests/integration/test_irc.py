"""The IRC transport against real servers, and against an emulated one with services where it is about accounts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Delivery, Refused, Retry, Unknown
from clew_transports.irc.transport import LOG_IN, IrcTransport, Settings, plugin
from tests import ircd
from tests.emulators.irc import IrcEmulator
from tests.integration.mqtt_harness import Inbox
from tests.ircd import Ircd, Kind, Person

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=["ngircd", "inspircd"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    kind: Kind = request.param
    if why := ircd.missing(kind):
        pytest.skip(why)
    folder = tmp_path / kind
    folder.mkdir()
    for each in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        each.chmod(0o755)  # inspircd runs as a user of its own
    with Ircd(kind, folder) as running_server:
        yield running_server


@pytest_asyncio.fixture
async def network() -> AsyncIterator[IrcEmulator]:
    async with IrcEmulator() as emulator:
        yield emulator


@contextlib.asynccontextmanager
async def running(port: int, inbox: Inbox, *, answer_s: float = 20.0, silent_s: float = 20.0, **more: Any) -> AsyncIterator[IrcTransport]:
    usual: dict[str, Any] = {"host": "127.0.0.1", "port": port, "tls": False, "channels": ("#club",), "line_every": "0s"}
    transport = IrcTransport("irc", Settings(**usual | more), first_pause=0.05, answer_s=answer_s, silent_s=silent_s)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(port: int, **more: Any) -> AsyncIterator[tuple[IrcTransport, Inbox]]:
    inbox = Inbox()
    async with running(port, inbox, **more) as transport:
        await inbox.until(lambda: inbox.up)
        yield transport, inbox


def delivery(transport: IrcTransport, text: str, chat: str = "ada", **more: Any) -> Delivery:
    return Delivery("k3v9", Address("irc", chat), text, tuple(transport.parts(text)), 1.0, **more)


async def sent(transport: IrcTransport, whole: Delivery) -> None:
    while whole.sent < len(whole.parts):
        whole = replace(whole, sent=(await transport.send(whole)).upto or 0)


# Real servers ----------------------------------------------------------------------------------------------------


async def test_private_words_and_what_is_said_to_clew_in_a_channel(server: Ircd) -> None:  # P42, BO-069
    async with (
        connected(server.port, trust_nicks=True, prefix="!") as (_, inbox),
        Person.here(server.port, "ada", "#club") as ada,
        Person.here(server.port, "Bob_1") as bob,
    ):
        ada.say("clew", "hello in \x02private\x0f \x0304,01now\x03")
        ada.say("#club", "just talk of a clewless day")
        for words in ("clew: hello", "CLEW, are you there?", "@clew yes", "what does clew think?", "!help", "\x01ACTION waves at clew\x01"):
            ada.say("#club", words)
        ada.say("clew", "\x01VERSION\x01")
        bob.say("clew", "I am Bob")
        await inbox.until(lambda: len(inbox.rows) == 8)
        rows = list(inbox.rows.values())
        by_ada = [row.text for row in rows if row.sender == "ada"]
        assert by_ada == ["hello in private now", "hello", "are you there?", "yes", "what does clew think?", "help", "waves at clew"]
        assert {(str(row.address), row.direct) for row in rows} == {("irc:ada", True), ("irc:#club", False), ("irc:bob_1", True)}


async def test_what_is_not_for_clew_is_kept_where_the_config_says_so(server: Ircd) -> None:  # BO-069
    async with (
        connected(server.port, trust_nicks=True, groups="listen") as (_, inbox),
        Person.here(server.port, "ada", "#club") as ada,
    ):
        for words in ("lunch?", "\x01VERSION\x01", "clew: what is this?"):
            ada.say("#club", words)
        await inbox.until(lambda: len(inbox.rows) == 2)
        assert [(row.kind, row.text) for row in inbox.rows.values()] == [("context", "lunch?"), ("message", "what is this?")]


async def test_a_long_reply_arrives_whole_and_no_line_is_cut(server: Ircd) -> None:  # P43, BO-055, BO-056
    text = "**Plan**\n\n" + "\n".join(f"{number}. item äöü 你好 " + "x" * 80 for number in range(30)) + "\n\n" + "你" * 500
    async with connected(server.port, trust_nicks=True) as (transport, _), Person.here(server.port, "ada", "#club") as ada:
        for chat in ("ada", "#club"):
            await sent(transport, delivery(transport, text, chat))
            assert all(len(f":clew!~clew@127.0.0.1 PRIVMSG {chat} :{line}".encode()) <= 510 for line in ada.texts(chat))
            await ada.until(lambda chat=chat: "".join(ada.texts(chat)).count("你") == 530)
            assert [line.split(".")[0] for line in ada.texts(chat) if "item" in line] == [str(number) for number in range(30)]


async def test_words_of_the_model_are_no_commands(server: Ircd) -> None:
    async with connected(server.port, trust_nicks=True) as (transport, _), Person.here(server.port, "ada") as ada:
        await sent(transport, delivery(transport, "a\r\nQUIT :gone\n\x01VERSION\x01\n\x02b\x00c"))
        await ada.until(lambda: len(ada.heard) == 4)
        assert ada.texts() == ["a", "QUIT :gone", "VERSION", "b\ufffdc"]


async def test_whom_nobody_knows_is_tried_later(server: Ircd) -> None:  # P43
    async with connected(server.port, trust_nicks=True) as (transport, _):
        with pytest.raises(Retry, match="ada is not there"):
            await transport.send(delivery(transport, "hello"))
        with pytest.raises(Retry, match=r"#other (takes nothing|is not there)"):
            await transport.send(delivery(transport, "hello", "#other"))
        with pytest.raises(Refused, match="a channel"):
            await transport.send(delivery(transport, "hello", "a b"))


async def test_a_server_that_goes_is_noticed_and_a_nickname_in_use_replaced(server: Ircd) -> None:  # P48
    async with Person.here(server.port, "clew"), connected(server.port, trust_nicks=True) as (transport, inbox):
        assert inbox.reports[-1] == (True, "clew_")
        server.stop()
        await inbox.until(lambda: not inbox.up)
        with pytest.raises(Retry):
            await transport.send(delivery(transport, "hello"))
        server.start()
        await inbox.until(lambda: inbox.reports[-1] == (True, "clew"))


# A network with services -----------------------------------------------------------------------------------------


async def test_people_are_their_accounts_whatever_they_call_themselves(network: IrcEmulator) -> None:  # P46, BO-101
    async with connected(network.port, account="clew", password=SecretStr("the secret")) as (transport, inbox):
        network.named("ada_on_her_phone", "ada")
        network.named("ada", "")
        network.speak("ada_on_her_phone", "clew", "it is me", account="ada")
        network.speak("ada", "clew", "it is me, I say")
        network.speak("ada", "#club", "clew: it is me, I say")
        network.speak("rss", "#club", "clew: news", account="rss", tags="bot")
        network.speak("bob", "#club", "clew: and me", account="bob")
        await inbox.until(lambda: len(inbox.rows) == 2)
        first, second = inbox.rows.values()
        assert (first.identity, first.address, first.sender_name) == ("irc:ada", Address("irc", "ada"), "ada_on_her_phone")
        assert (first.external_id, first.sent_at, second.identity) == ("irc/m1", 1_796_032_800.0, "irc:bob")
        await transport.send(delivery(transport, "hello", context={"nick": "ada_on_her_phone"}))
        with pytest.raises(Retry, match="nobody who is logged in as ada"):
            await transport.send(delivery(transport, "a secret"))
        said = [line for line in network.lines if line.startswith(("PRIVMSG", "NOTICE"))]
        assert said == [f"NOTICE ada :{LOG_IN}", "PRIVMSG ada_on_her_phone :hello"]


async def test_a_wrong_password_is_said(network: IrcEmulator) -> None:  # P48
    inbox = Inbox()
    async with running(network.port, inbox, account="clew", password=SecretStr("x" * 400)):
        await inbox.until(lambda: bool(inbox.reports))
        assert inbox.reports[0] == (False, "the server does not know the account or its password")


async def test_a_server_that_says_nothing_any_more_is_left(network: IrcEmulator) -> None:  # P43, P48
    async with connected(network.port, trust_nicks=True, silent_s=0.2, answer_s=0.5) as (transport, inbox):
        network.silent = True
        with pytest.raises(Unknown):
            await transport.send(delivery(transport, "hello"))
        await inbox.until(lambda: not inbox.up)
        network.silent = False
        await inbox.until(lambda: inbox.up)


# Setting up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"nick": "1a"}, {"channels": ("club",)}, {"channels": ("#a,#b",)}, {"port": 0}, {"line_every": "2"}])
async def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)


async def test_the_doctor_sees_what_is_wrong(network: IrcEmulator) -> None:
    async def texts(port: int = network.port, **more: Any) -> str:
        assert plugin.examine is not None
        usual: dict[str, Any] = {"host": "127.0.0.1", "port": port, "tls": False}
        settings = Settings(**usual | more)
        return "; ".join(fault.text for fault in await plugin.examine("irc", settings))

    assert await texts() == ""
    assert "whoever takes a nickname" in await texts(trust_nicks=True)
    assert "does not know the account" in await texts(account="clew", password=SecretStr("x"))
    assert "no connection" in await texts(port=1)
