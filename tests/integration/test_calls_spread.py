"""Two whole clews on one database, whose platform calls the one that does not run its transport."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from clew.connections import ATTENDED
from clew.duties import TRANSPORT
from clew.store.changes import Neighbours
from clew.transport import Address
from clew_transports.slack.place import Place
from tests.databases import BOTH
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.emulators.slack import BOT_TOKEN, MENTION, SlackEmulator
from tests.emulators.slack_wire import SECRET, post
from tests.emulators.telegram import TOKEN, TelegramEmulator
from tests.integration.web_harness import Clew, running, settings
from tests.integration.webhook_harness import until
from tests.unit.store_rows import NOW, Clock, beside

pytestmark = [BOTH, pytest.mark.asyncio]

PUBLIC = "https://clew.example.org/"


def script(body: JsonObject) -> Reply:
    return say(f"echo: {last_user_text(body).rpartition('] ')[2]}")


@pytest_asyncio.fixture
async def model() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=script) as emulator:
        yield emulator


Open = Callable[[], Any]


@asynccontextmanager
async def daemons(folder: Path, model: OpenAIEmulator, name: str, section: dict[str, Any], sender: str) -> AsyncIterator[Open]:
    """What opens one more clew on the database."""
    neighbours, clock, count = Neighbours(), Clock(NOW), iter(range(9))

    @asynccontextmanager
    async def opened() -> AsyncIterator[Clew]:
        config = settings(
            folder / f"clew{next(count)}",
            base_url=f"{model.url}/v1",
            agent={"provider": "model", "while_busy": "one_by_one", "timezone": "UTC"},
            http={"port": 0, "public_url": PUBLIC},
            people={"ada": {"role": "owner", "identities": [sender]}},
            transports={name: section},
        )
        store = await beside(folder, clock, neighbours)
        try:
            async with running(config, store=store) as clew:
                yield clew
        finally:
            await store.close()

    yield opened


async def attends(clew: Clew, name: str) -> None:
    await until(lambda: clew.service.transports[name].detail == ATTENDED)
    assert not clew.service.membership.holds(f"{TRANSPORT}{name}")
    assert name not in clew.service.connections.here


async def test_telegram_may_call_any_daemon(tmp_path: Path, model: OpenAIEmulator) -> None:  # P42, P48
    async with AsyncExitStack() as left, TelegramEmulator() as platform:
        section = {"token": TOKEN, "base_url": platform.url, "mode": "webhook"}
        async with daemons(tmp_path, model, "telegram", section, "telegram:11") as opened, AsyncExitStack() as first:
            owner = await first.enter_async_context(opened())
            await until(lambda: owner.service.transports["telegram"].up)
            other = await left.enter_async_context(opened())
            await attends(other, "telegram")
            platform.reaches, platform.unheard = other.url, 1  # its answer gets lost, and Telegram calls again
            platform.say("one")
            await until(lambda: platform.texts(11) == ["echo: one"])
            await platform.until(lambda: platform.confirmed == 1)
            platform.reaches = owner.url
            platform.say("two")
            await until(lambda: platform.texts(11) == ["echo: one", "echo: two"])
            assert await other.service.readiness() == []
            await first.aclose()
            await other.service.membership.look()
            await until(lambda: other.service.transports["telegram"].up)
            platform.reaches = other.url
            platform.say("three")
            await until(lambda: platform.texts(11) == ["echo: one", "echo: two", "echo: three"])
        assert [method for method, _ in platform.calls].count("setWebhook") == 2  # whoever runs the transport, each once


async def test_a_move_that_one_daemon_hears_of_is_known_to_all(tmp_path: Path, model: OpenAIEmulator) -> None:  # P42
    async with AsyncExitStack() as left, TelegramEmulator() as platform:
        section = {"token": TOKEN, "base_url": platform.url, "mode": "webhook", "groups": "all"}
        async with daemons(tmp_path, model, "telegram", section, "telegram:11") as opened:
            owner = await left.enter_async_context(opened())
            await until(lambda: owner.service.transports["telegram"].up)
            other = await left.enter_async_context(opened())
            await attends(other, "telegram")
            platform.reaches = other.url
            platform.move(-5, -1005)
            platform.give({"message": {"message_id": 7, "chat": {"id": -5, "type": "group"}, "date": 1, "migrate_to_chat_id": -1005}})
            platform.say("here", chat=-1005)
            await platform.until(lambda: platform.confirmed == 2)
            platform.reaches = owner.url
            platform.say("and here", chat=-1005)
            await platform.until(lambda: platform.confirmed == 3)
            await until(lambda: platform.texts(-1005) == ["echo: Ada: here", "echo: Ada: and here"])
            assert await owner.service.latest_session(Address("telegram", "-5")) is not None
            assert await owner.service.latest_session(Address("telegram", "-1005")) is None


async def test_slack_may_call_any_daemon_and_all_know_the_threads_it_is_spoken_to_in(
    tmp_path: Path, model: OpenAIEmulator
) -> None:  # P42, P48
    async with AsyncExitStack() as left, SlackEmulator() as slack:
        slack.members |= {"C0CLUB"}
        section = {"bot_token": BOT_TOKEN, "signing_secret": SECRET, "base_url": slack.url}
        async with daemons(tmp_path, model, "slack", section, "slack:U0ADA") as opened, AsyncExitStack() as first:
            owner = await first.enter_async_context(opened())
            await until(lambda: owner.service.transports["slack"].up)
            other = await left.enter_async_context(opened())
            await attends(other, "slack")

            def event(text: str, **more: Any) -> JsonObject:
                ts = slack.say(text, channel="C0CLUB", told=False, **more)
                return {**slack._message("C0CLUB", ts), "channel": "C0CLUB", "event_ts": ts}

            async def called(clew: Clew, said: JsonObject) -> None:
                assert (await post(clew.http, f"{clew.url}/webhooks/slack", slack.payload(said)))[0] == 200

            asked = event(f"{MENTION} one")
            await called(other, asked)
            await called(owner, asked)  # offered again, to the next one
            answers = ["echo: ada: one"]
            await until(lambda: slack.texts("C0CLUB", asked["ts"]) == answers)
            for clew, text in ((owner, "two"), (other, "three")):  # nobody is called by name any more
                await called(clew, event(text, thread=asked["ts"]))
                answers.append(f"echo: ada: {text}")
                await until(lambda: slack.texts("C0CLUB", asked["ts"]) == answers)
            place = Place.load(await other.service.store.cursor("slack"))
            assert place.threads == (f"C0CLUB/{asked['ts']}",)
            event(f"{MENTION} never told")
            await first.aclose()
            await other.service.membership.look()
            await until(lambda: slack.texts("C0CLUB")[-1] == "echo: ada: never told")  # what was missed is read by whoever runs it
