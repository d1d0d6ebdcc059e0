"""A call that needs a yes, asked for over a real broker and in the chat page, through kill -9."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.acceptance import stamp
from tests.acceptance.harness import Correspondent, Daemon, JsonObject, running, write_config
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.server import Answer, Reply
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio]


def sealing(body: JsonObject) -> Answer:
    last = body["messages"][-1]
    content = last["content"] if isinstance(last["content"], list) else []
    result = next((part for part in content if part["type"] == "tool_result"), None)
    if result is not None:
        return Reply([{"type": "text", "text": json.dumps(result["content"])}])
    return Reply([{"type": "tool_use", "id": "toolu_1", "name": "seal", "input": {"call": "letter"}}], "tool_use")


async def killed(clew: Daemon) -> None:
    await clew.kill()
    await clew.start()


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_a_question_over_mqtt_outlives_kill_9_before_and_behind_its_answer(
    tmp_path: Path, mosquitto: Mosquitto, answer: str
) -> None:  # P42, P48
    environment = stamp.installed(tmp_path)
    async with AnthropicEmulator(script=sealing) as model:
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent={}, schedule=[])
        ada, bob = Correspondent("ada"), Correspondent("bob")
        async with running(config, environment) as clew, ada.connected(mosquitto.port), bob.connected(mosquitto.port):
            asked = await ada.ask("m1", "seal the letter")
            assert '- call: "letter"' in asked["text"]
            assert asked["answers"] == []
            await killed(clew)
            await bob.send("b1", "yes")  # his own business
            await bob.until(lambda: bool(bob.replies), "a question of his own")
            assert stamp.stamps(tmp_path) == []
            await ada.send("m2", answer)
            await clew.until(lambda: clew.count("approval.answered") == 1, "the answer")
            await killed(clew)
            reply = await ada.reply_to("m2")
            assert reply["answers"] == ["m1", "m2"]
            assert ("stamped letter" in reply["text"]) == (answer == "yes") or "unknown" in reply["text"]
            assert stamp.stamps(tmp_path).count("letter") <= (answer == "yes")
            assert clew.count("approval.asked", person="ada") == 1


async def test_killed_while_a_question_is_open_it_is_asked_once_and_answered_with_its_code(tmp_path: Path, mosquitto: Mosquitto) -> None:
    environment = stamp.installed(tmp_path)
    async with AnthropicEmulator(script=sealing) as model:
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent={}, schedule=[])
        ada = Correspondent("ada")
        async with running(config, environment) as clew, ada.connected(mosquitto.port):
            asked = await ada.ask("m1", "seal the letter")
            for _ in range(3):
                await killed(clew)
            code = asked["text"].rpartition("[")[2].rstrip("]")
            reply = await ada.ask("m2", f"yes {code}")
            assert "stamped letter" in reply["text"]
            assert stamp.stamps(tmp_path) == ["letter"]
            assert len(ada.to("m1")) == 1
            await asyncio.wait_for(clew.terminate(), 60)
