"""What the unit relies on: ready, alive and stopping are told to the service manager, and a stop delivers what was taken in."""

import asyncio
import contextlib
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.harness import DEADLINE_S, PROGRAM, Correspondent, running, write_config
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import echo
from tests.integration.engine import chat_script, is_summary
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio]

MESSAGES = 12


class Manager:
    """A stand-in for systemd's end of NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        self.heard: list[str] = []

    async def until(self, assignment: str) -> None:
        await self._hear(lambda: assignment in self.heard)

    async def status(self) -> str:
        """The first words about what it does, waited for."""
        await self._hear(lambda: any(line.startswith("STATUS=") for line in self.heard))
        return next(line for line in self.heard if line.startswith("STATUS="))

    async def _hear(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not enough():
                datagram = await asyncio.get_running_loop().sock_recv(self._socket, 4096)
                self.heard += datagram.decode().splitlines()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    listening = Manager(tmp_path / "notify.sock")
    yield listening
    listening.close()


async def test_ready_alive_stopping_and_every_reply_delivered(tmp_path: Path, mosquitto: Mosquitto, manager: Manager) -> None:
    # P43, P48
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify.sock"), "WATCHDOG_USEC": "400000"}
    async with AnthropicEmulator(script=echo) as model:
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent={}, schedule=[])
        hold = model.hold()
        async with running(config, environment) as clew, Correspondent("ada").connected(mosquitto.port) as ada:
            await manager.until("READY=1")
            await manager.until("WATCHDOG=1")
            for number in range(MESSAGES):
                await ada.send(f"m{number}", f"message {number}")
            await clew.until(lambda: clew.count("inbox.accepted") == MESSAGES, "all messages taken in")
            async with asyncio.timeout(DEADLINE_S):
                await hold.reached.wait()
            stopping = asyncio.create_task(clew.terminate())
            await manager.until("STOPPING=1")
            hold.release()
            assert await stopping == 0
            assert [reply["in_reply_to"] for reply in ada.replies] == ["m0"]  # the turn that ran; the others are kept
            await clew.start()
            await ada.until(lambda: len(ada.replies) == MESSAGES, "a reply to every message")
            assert [reply["in_reply_to"] for reply in ada.replies] == [f"m{number}" for number in range(MESSAGES)]


async def test_a_changed_config_is_taken_over_while_it_runs_and_a_broken_one_is_not(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P48
    async with AnthropicEmulator(script=echo) as model:
        write = partial(write_config, tmp_path, broker_port=mosquitto.port, model_url=model.url, schedule=[])
        config = write(agent={})
        async with running(config) as clew, Correspondent("ada").connected(mosquitto.port) as ada:
            await ada.ask("m1", "before")
            config.write_text("agent: {system_promt: typo}\n")
            clew.signal(signal.SIGHUP)
            await clew.until(lambda: clew.count("config.refused") == 1, "the broken config refused")
            await ada.ask("m2", "still here")
            write(agent={"system_prompt": "You are brief."})
            clew.signal(signal.SIGHUP)
            await clew.until(lambda: clew.count("config.reloaded") == 1, "the new config taken over")
            await ada.ask("m3", "after")
            assert ["You are brief." in str(call.body["system"]) for call in model.calls] == [False, False, True]
            assert clew.count("transport.connected", transport="mqtt") == 1, "the connection stayed"


@pytest.mark.parametrize("asked", ["/compact", "the seventh"])
async def test_a_stop_in_a_compaction_leaves_none_by_halves_and_it_is_made_after_the_next_start(
    asked: str, tmp_path: Path, mosquitto: Mosquitto
) -> None:
    # P24, P25, P48, BO-095: what is waited for here is shorter than TimeoutStopSec in the unit
    async with AnthropicEmulator(script=chat_script(echo)) as model:
        compression = {"trigger_messages": 13, "keep_recent": 4}
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent={"compression": compression}, schedule=[])
        async with running(config) as clew, Correspondent("ada").connected(mosquitto.port) as ada:
            for number in range(6):
                await ada.ask(f"m{number}", f"message {number}")
            hold = model.hold(is_summary)
            await ada.send("asked", asked)
            async with asyncio.timeout(DEADLINE_S):
                await hold.reached.wait()
            assert await clew.terminate() == 0
            assert compactions(tmp_path) == 0
            hold.release()
            await clew.start()
            answer = await ada.reply_to("asked")
            assert answer["text"].startswith("Compacted: 8 messages") if asked == "/compact" else answer["text"].endswith(asked)
            assert compactions(tmp_path) == 1
            assert len((await ada.ask("after", "and now?"))["text"]) > 0
            assert await clew.terminate() == 0
            assert len(ada.to("asked")) == 1
        assert "Traceback" not in "".join(clew.plain)
    verified = subprocess.run([PROGRAM, "session", "verify", "--config", config], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr


async def test_stop_is_carried_out_while_a_compact_runs(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P24
    async with AnthropicEmulator(script=chat_script(echo)) as model:
        agent = {"compression": {"keep_recent": 4}}
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent=agent, schedule=[])
        async with running(config) as clew, Correspondent("ada").connected(mosquitto.port) as ada:
            for number in range(6):
                await ada.ask(f"m{number}", f"message {number}")
            hold = model.hold(is_summary)
            await ada.send("compact", "/compact")
            async with asyncio.timeout(DEADLINE_S):
                await hold.reached.wait()
            assert (await ada.ask("stop", "/stop"))["text"] == "Stopping."
            assert (await ada.reply_to("compact"))["text"] == "Stopped. The conversation is as it was."
            assert compactions(tmp_path) == 0
            hold.release()
            assert (await ada.ask("again", "/compact"))["text"].startswith("Compacted: 8 messages")
            assert await clew.terminate() == 0


def compactions(folder: Path) -> int:
    with contextlib.closing(sqlite3.connect(folder / "data" / "clew.db")) as db:
        return int(db.execute("SELECT count(*) FROM compactions").fetchone()[0])
