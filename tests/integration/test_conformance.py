"""What every platform has to keep, asked of each in the same words: a whole clew, the platform (or its emulator), a model that echoes."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clew.context.loops import IN_A_ROW
from clew.plugins import registry
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.example import installed
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.platforms.discord import Discord
from tests.integration.platforms.email import Email
from tests.integration.platforms.folder import Folder
from tests.integration.platforms.irc import Irc
from tests.integration.platforms.matrix import Matrix
from tests.integration.platforms.mqtt import Mqtt
from tests.integration.platforms.ntfy import Ntfy
from tests.integration.platforms.signal import Signal
from tests.integration.platforms.slack import Slack
from tests.integration.platforms.sms import Sms
from tests.integration.platforms.telegram import Telegram, TelegramCalling
from tests.integration.platforms.web import Web
from tests.integration.platforms.webhook import Webhook
from tests.integration.platforms.whatsapp import Whatsapp
from tests.integration.platforms.xmpp import Xmpp
from tests.integration.web_harness import Clew, running, settings
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto

pytestmark = [pytest.mark.asyncio, pytest.mark.mosquitto]

KINDS = (
    Discord,
    Email,
    Folder,
    Irc,
    Matrix,
    Mqtt,
    Ntfy,
    Signal,
    Slack,
    Sms,
    Telegram,
    TelegramCalling,
    Web,
    Webhook,
    Whatsapp,
    Xmpp,
)
PLATFORMS: dict[str, type[Platform]] = {each.name: each for each in KINDS}

CODE = "\n".join(f"print({number:03})  # <b>&amp;</b>" for number in range(400))
LONG = (
    f"# Übersicht\n\nSee **[the page](https://e.org/a_(b)?c=1&d=2)**:\n\n```python\n{CODE}\n```\n\n"
    + "".join(f"- item {number} `x_{number}` *here*\n" for number in range(150))
    + "\nשלום עולם. مرحبا بالعالم. " * 60
    + "\n\n你好，世界。これはテストです。" * 80
    + "\n\n👨‍👩‍👧‍👦🇩🇪e\u0301 " * 300
)


class World:
    """A platform, a model, and clews that are started on the same folder."""

    def __init__(self, folder: Path, platform: Platform, model: OpenAIEmulator) -> None:
        self.folder, self.platform, self.model = folder, platform, model

    @contextlib.asynccontextmanager
    async def running(self, **access: str) -> AsyncIterator[Clew]:
        known = [who for who in NUMBERS if who != "stranger"]
        config = settings(
            self.folder,
            base_url=f"{self.model.url}/v1",
            http={"port": 0, "public_url": "https://clew.example.org"},
            agent={"provider": "model", "while_busy": "one_by_one", "timezone": "UTC"},
            access={"unknown": "pair", **access},
            people={who: {"role": "owner" if who == "ada" else "member", "identities": [self.platform.identity(who)]} for who in known},
            transports={self.platform.name: self.platform.section()},
        )
        async with running(config) as clew:
            await until(lambda: clew.service.transports[self.platform.name].up)
            yield clew


def script(body: JsonObject) -> Reply:
    words = last_user_text(body).rpartition("] ")[2]
    return say(LONG if words == "long" else f"echo: {words}")


def those_that(can: str) -> pytest.MarkDecorator:
    """For the platforms of which that is true."""
    return pytest.mark.parametrize("kind", [kind for kind, platform in PLATFORMS.items() if getattr(platform, can)])


@pytest.fixture(params=PLATFORMS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package of docs/examples is installed as long as these tests run."""
    site = installed(tmp_path_factory.mktemp("example"))
    sys.path.append(str(site))
    registry.cache_clear()
    yield site
    sys.path.remove(str(site))
    registry.cache_clear()


@pytest.fixture(autouse=True)
def needed(kind: str, request: pytest.FixtureRequest) -> None:
    """The server of a platform that has one of its own. Skips where it is not installed."""
    if name := PLATFORMS[kind].needs:
        PLATFORMS[kind].server = request.getfixturevalue(name)


@contextlib.asynccontextmanager
async def world(kind: str, tmp_path: Path, broker: Mosquitto) -> AsyncIterator[World]:
    async with PLATFORMS[kind].standing(broker) as platform, OpenAIEmulator(script=script) as model:
        yield World(tmp_path / "clew", platform, model)


def echoes(*texts: str) -> list[str]:
    return [f"echo: {text}" for text in texts]


def is_whole(parts: list[str]) -> None:
    """Every piece of LONG is there, in its order, once."""
    whole = "".join(parts)
    lines = [f"print({number:03})  # <b>&amp;</b>" for number in range(400)]
    assert [whole.count(line) for line in lines] == [1] * len(lines)
    places = [whole.index(line) for line in lines]
    assert places == sorted(places)
    for words, count in (("שלום עולם", 60), ("你好，世界。", 80), ("👨‍👩‍👧‍👦🇩🇪e\u0301", 300)):
        assert whole.count(words) == count
    for number in range(150):
        assert f"item {number} " in whole
        assert f"x_{number}" in whole


async def test_messages_are_answered_in_their_order(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P42 P44
    texts = [f"message {number}" for number in range(6)]
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        for text in texts:
            await here.platform.say(clew, text)
        await until(lambda: len(here.platform.heard()) >= len(texts))
        assert here.platform.heard() == echoes(*texts)


async def test_what_is_delivered_again_is_answered_once(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P42, BO-047
    texts = [f"message {number}" for number in range(5)]
    async with world(kind, tmp_path, mosquitto) as here:
        async with here.running() as clew:
            said = [await here.platform.say(clew, text) for text in texts]
            for each in said:
                await here.platform.again(clew, each)
            await until(lambda: len(here.platform.heard()) >= len(texts))
        async with here.running() as clew:
            for each in said:
                await here.platform.again(clew, each)
            await here.platform.say(clew, "after the restart")
            await until(lambda: echoes("after the restart")[0] in here.platform.heard())
        assert here.platform.heard() == echoes(*texts, "after the restart")
        assert len(here.model.calls) == len(texts) + 1


@those_that("refuses")
async def test_a_reply_waits_for_a_platform_that_is_down(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43, BO-054
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        held = here.model.hold()
        await here.platform.say(clew, "hello")
        await held.reached.wait()
        await here.platform.down()
        held.release()
        await here.platform.up(clew)
        await until(lambda: bool(here.platform.heard()))
        assert here.platform.heard() == echoes("hello")


@those_that("refuses")
async def test_a_wait_that_is_asked_for_holds_up_one_chat_only(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43, BO-064
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        here.platform.too_many()
        await here.platform.say(clew, "first", "ada")
        await until(here.platform.has_refused)
        await here.platform.say(clew, "second", "bob")
        await until(lambda: bool(here.platform.heard("ada") and here.platform.heard("bob")))
        assert (here.platform.heard("ada"), here.platform.heard("bob")) == (echoes("first"), echoes("second"))


@those_that("refuses")
async def test_a_storm_of_refusals_loses_and_doubles_nothing(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43, BO-064
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        for _ in range(4):
            here.platform.too_many()
        for who in ("ada", "bob", "eve"):
            for text in ("first", "second"):
                await here.platform.say(clew, text, who)
        await until(lambda: all(len(here.platform.heard(who)) >= 2 for who in ("ada", "bob", "eve")))
        assert here.platform.has_refused()
        assert [here.platform.heard(who) for who in ("ada", "bob", "eve")] == [echoes("first", "second")] * 3


@those_that("loses_answers")
async def test_a_reply_without_an_answer_is_there_once(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        here.platform.no_answer()
        await here.platform.say(clew, "hello")
        await here.platform.say(clew, "after it")
        await until(lambda: echoes("after it")[0] in here.platform.heard())
        *replies, last = here.platform.heard()
        assert replies == echoes("hello") * (2 if here.platform.repeats else 1)
        assert [last] == echoes("after it")


@those_that("loses_answers")
async def test_a_part_without_an_answer_is_followed_by_the_rest(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        here.platform.no_answer()
        await here.platform.say(clew, "long")
        await here.platform.say(clew, "end")
        await until(lambda: echoes("end")[0] in here.platform.heard())
        *parts, _ = here.platform.heard()
        if here.platform.repeats:
            assert parts[0] == parts.pop(1)
        is_whole(parts)


async def test_an_oversize_reply_arrives_whole(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43, BO-055, BO-059, BO-061
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        await here.platform.say(clew, "long")
        await here.platform.say(clew, "end")
        await until(lambda: echoes("end")[0] in here.platform.heard())
        *parts, _ = here.platform.heard()
        is_whole(parts)
        if here.platform.short:
            assert len(parts) > 4


async def test_its_own_words_are_no_messages(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # BO-072, BO-074
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        here.platform.echo()
        for text in ("one", "two"):
            await here.platform.say(clew, text)
            await until(lambda text=text: echoes(text)[0] in here.platform.heard())  # type: ignore[misc]
        assert len(here.model.calls) == 2


@those_that("marks_bots")
async def test_another_program_is_not_answered(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # BO-074
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        await here.platform.bot(clew, "I am a bot")
        await here.platform.say(clew, "hello")
        await until(lambda: bool(here.platform.heard()))
        assert here.platform.heard() == echoes("hello")
        assert (here.platform.heard("bob"), len(here.model.calls)) == ([], 1)


async def test_whoever_says_its_words_back_is_left_alone_after_some(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P46, BO-074
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        await here.platform.say(clew, "I am the owner", "ada")
        await here.platform.say(clew, "hello", "bob")
        for count in range(1, IN_A_ROW + 2):
            await until(lambda count=count: len(here.platform.heard("bob")) >= count)  # type: ignore[misc]
            await here.platform.say(clew, here.platform.heard("bob")[-1], "bob")
        await here.platform.say(clew, "and I?", "ada")
        await until(lambda: echoes("and I?")[0] in here.platform.heard("ada"))
        assert len(here.platform.heard("bob")) == IN_A_ROW + 1
        assert len(here.model.calls) == IN_A_ROW + 3


@those_that("strangers")
async def test_a_stranger_gets_a_code_once_and_no_model_call(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P46, BO-101
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        for text in ("let me in", "let me in, I say"):
            await here.platform.say(clew, text, "stranger")
        await here.platform.say(clew, "hello", "ada")
        await until(lambda: bool(here.platform.heard("ada") and here.platform.heard("stranger")))
        (code,) = here.platform.heard("stranger")
        assert "do not know you" in code
        assert len(here.model.calls) == 1


@those_that("strangers")
async def test_a_stranger_who_is_denied_hears_nothing(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P46, BO-101, BO-102
    async with world(kind, tmp_path, mosquitto) as here, here.running(unknown="deny") as clew:
        await here.platform.say(clew, "let me in", "stranger")
        await here.platform.say(clew, "hello", "ada")
        await until(lambda: bool(here.platform.heard("ada")))
        assert here.platform.heard("stranger") == []
        assert len(here.model.calls) == 1


@those_that("groups")
async def test_a_group_of_three_knows_who_speaks_and_keeps_to_itself(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # BO-069
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        await here.platform.say(clew, "my private plan", "ada")
        await until(lambda: bool(here.platform.heard("ada")))
        if here.platform.says_who_is_meant:
            await here.platform.say(clew, "just talk", "eve", group=True, called=False)
        for who in ("ada", "bob", "eve"):
            await here.platform.say(clew, f"{who} asks", who, group=True)
            await until(lambda who=who: echoes(f"{who}: {who} asks")[0] in here.platform.heard(group=True))  # type: ignore[misc]
        assert here.platform.heard(group=True) == echoes("ada: ada asks", "bob: bob asks", "eve: eve asks")
        *_, last = [record.body for record in here.model.calls if record.body]
        assert "my private plan" not in json.dumps(last)
        assert "just talk" not in json.dumps(last)
