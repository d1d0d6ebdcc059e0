"""A thread that is compacted in the background, and what a person may say about it, with the daemon as it is shipped."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.acceptance.harness import Correspondent, Daemon, JsonObject, running, write_config
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import Reply
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio, pytest.mark.timeout(240)]

RULE = "Never water the garden at noon."


def is_summary(body: JsonObject) -> bool:
    return "<new_messages>" in last_user_text(body)


def script(body: JsonObject) -> Reply:
    return say("They spoke of the garden." if is_summary(body) else f"Noted: {last_user_text(body)[-40:]}")


async def clew(config: Path, *args: str) -> str:
    """What a command prints; it must succeed."""
    program = Path(sys.executable).with_name("clew")
    process = await asyncio.create_subprocess_exec(
        str(program), *args, "--config", str(config), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_a_quiet_thread_is_compacted_once_and_the_person_has_the_last_word(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P13 P21 P22 P24
    async with AnthropicEmulator(script=script) as model:
        compression = {"trigger_messages": 20, "keep_recent": 4, "quiet_after": "2s"}
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent={"compression": compression}, schedule=[])
        ada = Correspondent("ada")
        async with running(config) as daemon, ada.connected(mosquitto.port):
            await ada.ask("m0", RULE)
            assert "Pinned" in (await ada.ask("pin", "/pin #1"))["text"]
            for n in range(1, 6):
                await ada.ask(f"m{n}", f"The beans of row {n} need water.")
            await daemon.until(lambda: daemon.count("agent.compressed", trigger="quiet") == 1, "a compaction of the quiet thread")
            calls = len(model.calls)
            (session,) = json.loads(await clew(config, "session", "list", "--json"))
            assert await clew(config, "session", "verify") == f"{session['id']}: ok\n"
            await daemon.kill()
            await daemon.start()
            assert len(model.calls) == calls, "an idle clew calls no model"
            assert (await ada.ask("dropped", "/dropped"))["text"].startswith("The newest compaction put 8 messages into the summary:")
            await ada.ask("m6", "And the tomatoes?")
            asked = model.calls[-1].body
            assert RULE in "".join(block["text"] for block in asked["system"])
            assert "row 1 need" not in json.dumps(asked["messages"])
            assert (await ada.ask("undo", "/undo compaction"))["text"].startswith("Undone: 8 messages are in my view again")
            await ada.ask("m7", "And the peas?")
            assert "row 1 need" in json.dumps(model.calls[-1].body["messages"])
            (compaction,) = json.loads(await clew(config, "session", "compactions", session["id"], "--json"))
            assert (compaction["trigger"], compaction["undone_at"] is None) == ("quiet", False)
            await _redone(config, daemon, session["id"])


async def _redone(config: Path, daemon: Daemon, session: str) -> None:
    assert "went into the summary" in await clew(config, "session", "compact", session)
    assert "went into the summary" in await clew(config, "session", "redo", session, "--focus", "the peas")
    assert "compaction 3 of 3" in await clew(config, "session", "compactions", session, "3")
    assert await clew(config, "session", "verify", session) == f"{session}: ok\n"
    status, metrics = await daemon.page("/metrics")
    assert status == 200
    assert 'clew_compactions_total{outcome="done",trigger="command"} 2.0' in metrics
