"""What the unit relies on: ready, alive and stopping are told to the service manager, and a stop delivers what was taken in."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.harness import DEADLINE_S, Correspondent, running, write_config
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import echo
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
        async with asyncio.timeout(DEADLINE_S):
            while assignment not in self.heard:
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
