"""Restarts at arbitrary moments: each message is answered once, and each chat keeps its order."""

import asyncio
import random
from pathlib import Path

import pytest

from clew import service
from tests.databases import BOTH
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import DEADLINE_S, calling, engine

pytestmark = BOTH

CHATS = ("ada", "bob", "eve")


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(4))
async def test_every_message_is_answered_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:  # P2, P42, P43, P44, P48, BO-047, BO-052, BO-095
    monkeypatch.setattr(service, "GRACE", 0.0)
    chance = random.Random(seed)
    script = calling(("current_time", {}), then="")

    def replies(body: JsonObject) -> Reply:
        asked = last_user_text(body).rpartition("] ")[2]
        if body["messages"][-1]["role"] == "tool" or "plain" in asked:
            return say(f"re {asked}")
        answer = script(body)
        assert isinstance(answer, Reply)
        return answer

    async with engine(tmp_path, replies) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        desk = world.desk
        messages = [desk.message(f"{chance.choice(('plain', 'timed'))} {n}", CHATS[n % 3]) for n in range(30)]
        for start in range(0, 30, 10):
            async with world.running():
                desk_host = world.service.host("desk")
                await desk_host.accept(messages[: start + 10])  # all that came before is delivered again
                for _ in range(chance.randrange(400)):
                    await asyncio.sleep(0)
        async with world.running():
            async with asyncio.timeout(DEADLINE_S * 3):
                await world.idle()
            for chat in CHATS:
                assert await world.store.verify_session(await world.session(chat)) == []
                expected = [message for message in messages if message.address.chat == chat]
                sent = [delivery for delivery in desk.sent if delivery.address.chat == chat]
                assert [delivery.answers for delivery in sent] == [(message.client_id,) for message in expected]
                assert [delivery.text for delivery in sent] == [f"re {message.text}" for message in expected]
                rows = await world.transcript(chat)
                assert [row.text for row in rows if row.role == "user"] == [message.text for message in expected]
                answered = [row.text for row in rows if row.role == "assistant" and row.text]
                assert answered == [f"re {message.text}" for message in expected]
            assert await world.store.check() == []
        assert {record.status for record in world.model.calls} <= {200, None}
