"""What every platform has to keep, asked of each in the same words: a whole clew, the platform (or its emulator), a model that echoes."""

import asyncio
import contextlib
import json
from abc import abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from tests.emulators import telegram
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.emulators.telegram import TOKEN, TelegramEmulator, person
from tests.integration.mqtt_harness import person as mqtt_person
from tests.integration.web_harness import Clew, running, settings
from tests.integration.webhook_harness import SECRET, Receiver, answers, message, receiving, until
from tests.integration.webhook_harness import say as post
from tests.servers import Mosquitto

pytestmark = [pytest.mark.asyncio, pytest.mark.mosquitto]

NUMBERS = {"ada": 11, "bob": 12, "eve": 13, "stranger": 99}
CODE = "\n".join(f"print({number:03})  # <b>&amp;</b>" for number in range(400))
LONG = (
    f"# Übersicht\n\nSee **[the page](https://e.org/a_(b)?c=1&d=2)**:\n\n```python\n{CODE}\n```\n\n"
    + "".join(f"- item {number} `x_{number}` *here*\n" for number in range(150))
    + "\nשלום עולם. مرحبا بالعالم. " * 60
    + "\n\n你好，世界。これはテストです。" * 80
    + "\n\n👨‍👩‍👧‍👦🇩🇪e\u0301 " * 300
)


class Platform:
    """A platform with people on it."""

    name: str

    @abstractmethod
    def section(self) -> JsonObject:
        """Its section in the config."""

    def identity(self, who: str) -> str:
        return f"{self.name}:{who}"

    @abstractmethod
    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        """Say something; what is returned can be delivered again."""

    @abstractmethod
    async def again(self, clew: Clew, said: Any) -> None:
        """Deliver what was said once more."""

    @abstractmethod
    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        """The texts that were sent to somebody, or to the group, in order, part by part."""

    async def down(self) -> None:
        """It takes no replies until `up`."""

    async def up(self, clew: Clew) -> None:
        """Called when a reply is due; it takes replies once it has refused one."""

    def too_many(self) -> None:
        """The next send is refused for a second."""

    def has_refused(self) -> bool:
        """Whether it has been."""
        return True


class Telegram(Platform):
    name, group = "telegram", -55

    def __init__(self, emulator: TelegramEmulator) -> None:
        self.emulator = emulator

    def section(self) -> JsonObject:
        return {"token": TOKEN, "base_url": self.emulator.url}

    def identity(self, who: str) -> str:
        return f"telegram:{NUMBERS[who]}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        words = f"@ClewTestBot {text}" if group and called else text
        return self.emulator.say(words, person(NUMBERS[who], who), self.group if group else None)

    async def again(self, clew: Clew, said: Any) -> None:
        self.emulator.give({"message": said})

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(self.group if group else NUMBERS[who])

    async def down(self) -> None:
        await self.emulator.down()

    async def up(self, clew: Clew) -> None:
        await until(lambda: not clew.service.transports[self.name].up)
        await self.emulator.up()

    def too_many(self) -> None:
        self.emulator.next["sendMessage"].append(telegram.too_many(1))

    def has_refused(self) -> bool:
        return not self.emulator.next["sendMessage"]


class Webhook(Platform):
    name = "webhook"

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self._number = 0
        self._refused = 0

    def section(self) -> JsonObject:
        return {"secret": SECRET, "reply_hosts": [self.receiver.url]}

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        chat = "club" if group else who
        self._number += 1
        fields = message(f"m{self._number}", text, chat=chat, sender=who, reply_url=f"{self.receiver.url}/{chat}")
        await self.again(clew, fields)
        return fields

    async def again(self, clew: Clew, said: Any) -> None:
        await post(clew, said)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        chat = "club" if group else who
        # Those that it refused are the first; what comes again has the same id.
        taken = self.receiver.calls[self._refused :]
        return list({call.body["id"]: call.body["text"] for call in taken if call.path == f"/{chat}"}.values())

    async def down(self) -> None:
        self.receiver.next.extend([answers(503, Retry_After="0")] * 3)
        self._refused = len(self.receiver.calls) + 3

    async def up(self, clew: Clew) -> None:
        await until(self.has_refused)

    def too_many(self) -> None:
        self.receiver.next.append(answers(429, Retry_After="1"))
        self._refused = len(self.receiver.calls) + 1

    def has_refused(self) -> bool:
        return not self.receiver.next


class Mqtt(Platform):
    name = "mqtt"

    def __init__(self, broker: Mosquitto, client: aiomqtt.Client) -> None:
        self.broker = broker
        self.client = client
        self.replies: dict[str, JsonObject] = {}
        self._number = 0

    def section(self) -> JsonObject:
        return {"host": "127.0.0.1", "port": self.broker.port}

    async def collect(self) -> None:
        with contextlib.suppress(aiomqtt.MqttError):
            async for each in self.client.messages:
                if "/out/" in str(each.topic) and isinstance(each.payload, bytes):
                    reply = json.loads(each.payload)
                    self.replies[reply["id"]] = {**reply, "to": str(each.topic).rpartition("/")[2]}

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        self._number += 1
        said = (f"chat/v1/clew/in/{who}", json.dumps({"id": f"m{self._number}", "text": text}))
        await self.again(clew, said)
        return said

    async def again(self, clew: Clew, said: Any) -> None:
        topic, payload = said
        await self.client.publish(topic, payload, qos=1)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return [each["text"] for each in self.replies.values() if each["to"] == who]


@contextlib.asynccontextmanager
async def standing(kind: str, broker: Mosquitto) -> AsyncIterator[Platform]:
    async with contextlib.AsyncExitStack() as stack:
        if kind == "telegram":
            yield Telegram(await stack.enter_async_context(TelegramEmulator()))
        elif kind == "webhook":
            yield Webhook(await stack.enter_async_context(receiving()))
        else:
            client = await stack.enter_async_context(mqtt_person(broker.port, "+"))
            mqtt = Mqtt(broker, client)
            reader = asyncio.create_task(mqtt.collect())
            try:
                yield mqtt
            finally:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)


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


@pytest.fixture(params=["mqtt", "webhook", "telegram"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.asynccontextmanager
async def world(kind: str, tmp_path: Path, broker: Mosquitto) -> AsyncIterator[World]:
    async with standing(kind, broker) as platform, OpenAIEmulator(script=script) as model:
        yield World(tmp_path / "clew", platform, model)


def echoes(*texts: str) -> list[str]:
    return [f"echo: {text}" for text in texts]


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


@pytest.mark.parametrize("kind", ["webhook", "telegram"])
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


@pytest.mark.parametrize("kind", ["webhook", "telegram"])
async def test_a_wait_that_is_asked_for_holds_up_one_chat_only(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43, BO-064
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        here.platform.too_many()
        await here.platform.say(clew, "first", "ada")
        await until(here.platform.has_refused)
        await here.platform.say(clew, "second", "bob")
        await until(lambda: bool(here.platform.heard("ada") and here.platform.heard("bob")))
        assert (here.platform.heard("ada"), here.platform.heard("bob")) == (echoes("first"), echoes("second"))


async def test_an_oversize_reply_arrives_whole(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43, BO-055, BO-059, BO-061
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        await here.platform.say(clew, "long")
        await here.platform.say(clew, "end")
        await until(lambda: echoes("end")[0] in here.platform.heard())
        *parts, _ = here.platform.heard()
        whole = "".join(parts)
        places = [whole.index(f"print({number:03})  # <b>&amp;</b>") for number in range(400)]
        assert places == sorted(places)
        for words, count in (("שלום עולם", 60), ("你好，世界。", 80), ("👨‍👩‍👧‍👦🇩🇪e\u0301", 300)):
            assert whole.count(words) == count
        for number in range(150):
            assert f"item {number} " in whole
            assert f"x_{number}" in whole
        if kind == "telegram":
            assert len(parts) > 4


async def test_its_own_words_are_no_messages(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # BO-072, BO-074
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        if isinstance(here.platform, Telegram):
            here.platform.emulator.echoes = True
        for text in ("one", "two"):
            await here.platform.say(clew, text)
            await until(lambda text=text: echoes(text)[0] in here.platform.heard())  # type: ignore[misc]
        assert len(here.model.calls) == 2


async def test_a_stranger_gets_a_code_once_and_no_model_call(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P46, BO-101
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        for text in ("let me in", "let me in, I say"):
            await here.platform.say(clew, text, "stranger")
        await here.platform.say(clew, "hello", "ada")
        await until(lambda: bool(here.platform.heard("ada") and here.platform.heard("stranger")))
        (code,) = here.platform.heard("stranger")
        assert "do not know you" in code
        assert len(here.model.calls) == 1


async def test_a_stranger_who_is_denied_hears_nothing(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P46, BO-101, BO-102
    async with world(kind, tmp_path, mosquitto) as here, here.running(unknown="deny") as clew:
        await here.platform.say(clew, "let me in", "stranger")
        await here.platform.say(clew, "hello", "ada")
        await until(lambda: bool(here.platform.heard("ada")))
        assert here.platform.heard("stranger") == []
        assert len(here.model.calls) == 1


@pytest.mark.parametrize("kind", ["webhook", "telegram"])
async def test_a_group_of_three_knows_who_speaks_and_keeps_to_itself(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # BO-069
    async with world(kind, tmp_path, mosquitto) as here, here.running() as clew:
        await here.platform.say(clew, "my private plan", "ada")
        await until(lambda: bool(here.platform.heard("ada")))
        if kind == "telegram":
            await here.platform.say(clew, "just talk", "eve", group=True, called=False)
        for who in ("ada", "bob", "eve"):
            await here.platform.say(clew, f"{who} asks", who, group=True)
            await until(lambda who=who: echoes(f"{who}: {who} asks")[0] in here.platform.heard(group=True))  # type: ignore[misc]
        assert here.platform.heard(group=True) == echoes("ada: ada asks", "bob: bob asks", "eve: eve asks")
        *_, last = [record.body for record in here.model.calls if record.body]
        assert "my private plan" not in json.dumps(last)
        assert "just talk" not in json.dumps(last)
