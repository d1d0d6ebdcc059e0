"""Killed, stopped and cut off at the points that matter, each over a real broker: nothing is lost, nothing is doubled."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.harness import DEADLINE_S, Correspondent, Daemon, JsonObject, running, write_config
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import echo, last_user_text
from tests.emulators.server import Hold
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio]


@dataclass(frozen=True, slots=True)
class House:
    broker: Mosquitto
    model: AnthropicEmulator
    clew: Daemon
    ada: Correspondent

    def calls_answered(self, text: str) -> int:
        """Model calls for a message that were answered in full."""
        return sum(call.outcome == "answered" and asks(text)(call.body) for call in self.model.calls)


@contextlib.asynccontextmanager
async def opened(folder: Path, broker: Mosquitto) -> AsyncIterator[House]:
    async with AnthropicEmulator(script=echo) as model:
        config = write_config(folder, broker_port=broker.port, model_url=model.url, agent={}, schedule=[])
        async with running(config) as clew:
            yield House(broker, model, clew, Correspondent("ada"))


def asks(text: str) -> Callable[[JsonObject], bool]:
    return lambda body: text in last_user_text(body)


async def reached(hold: Hold) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await hold.reached.wait()


async def later(house: House) -> None:
    """A message sent last and answered last: what was going to be doubled has been by then."""
    await house.ada.ask("last", "and the last one")


def answers(house: House) -> list[tuple[str, str]]:
    """(message, its words in the reply) of all replies that came, in order."""
    return [(reply["in_reply_to"], reply["text"].rpartition("] ")[2]) for reply in house.ada.replies]


async def test_killed_while_the_model_is_asked_the_turn_is_resumed_and_answered_once(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42, P43
    async with opened(tmp_path, mosquitto) as house, house.ada.connected(mosquitto.port):
        hold = house.model.hold(asks("first words"))
        await house.ada.send("m1", "first words")
        await reached(hold)
        await house.clew.kill()
        await house.clew.start()
        await house.ada.reply_to("m1")
        await later(house)
        assert answers(house) == [("m1", "first words"), ("last", "and the last one")]
        assert house.clew.count("turn.started", resumed=True) == 1
        assert house.calls_answered("first words") == 1


async def test_what_is_sent_while_the_daemon_is_down_is_answered_once_when_it_is_back(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42
    async with opened(tmp_path, mosquitto) as house, house.ada.connected(mosquitto.port):
        await house.ada.ask("m1", "hello")
        await house.clew.kill()
        for number in (2, 3, 4):
            await house.ada.send(f"m{number}", f"number {number}")
        await house.clew.start()
        await house.ada.reply_to("m4")
        await later(house)
        expected = [("m1", "hello"), *((f"m{n}", f"number {n}") for n in (2, 3, 4)), ("last", "and the last one")]
        assert answers(house) == expected
        assert house.ada.repeats <= 1  # killed between the broker's acknowledgement and the note of it, the first reply is sent again


async def test_a_reply_that_is_due_while_the_broker_is_away_arrives_once_when_it_is_back(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P43
    async with opened(tmp_path, mosquitto) as house:
        hold = house.model.hold(asks("are you there"))
        async with house.ada.connected(mosquitto.port):
            await house.ada.send("m1", "are you there")
            await reached(hold)
        mosquitto.stop()
        await house.clew.until(lambda: house.clew.count("transport.disconnected", transport="mqtt") > 0, "the loss of the broker")
        hold.release()
        await house.clew.until(lambda: house.clew.count("turn.finished") == 1, "the reply stored")
        mosquitto.start()
        async with house.ada.connected(mosquitto.port):
            await house.ada.reply_to("m1")
            await later(house)
        assert answers(house) == [("m1", "are you there"), ("last", "and the last one")]
        assert house.ada.repeats == 0


async def test_a_reply_that_was_due_when_it_was_killed_is_sent_once_it_runs_again(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P43
    async with opened(tmp_path, mosquitto) as house:
        hold = house.model.hold(asks("are you there"))
        async with house.ada.connected(mosquitto.port):
            await house.ada.send("m1", "are you there")
            await reached(hold)
        mosquitto.stop()
        hold.release()
        await house.clew.until(lambda: house.clew.count("turn.finished") == 1, "the end of the turn")
        await house.clew.kill()
        mosquitto.start()
        await house.clew.start()
        async with house.ada.connected(mosquitto.port):
            await house.ada.reply_to("m1")
            await later(house)
        assert answers(house) == [("m1", "are you there"), ("last", "and the last one")]
        assert house.ada.repeats == 0
        assert len(house.model.calls) == 2


async def test_a_message_published_twice_is_one_turn(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42
    async with opened(tmp_path, mosquitto) as house, house.ada.connected(mosquitto.port):
        hold = house.model.hold(asks("say it once"))
        await house.ada.send("m1", "say it once")
        await reached(hold)
        await house.ada.send("m1", "say it once")  # while the turn runs
        await house.clew.until(lambda: house.clew.count("inbox.duplicate") == 1, "the first repeat")
        hold.release()
        await house.ada.reply_to("m1")
        await house.ada.send("m1", "say it once")  # after it was answered
        await later(house)
        assert answers(house) == [("m1", "say it once"), ("last", "and the last one")]
        assert house.ada.repeats == 0
        assert house.clew.count("inbox.duplicate") == 2
        assert house.clew.count("turn.started") == 2


async def test_asked_to_stop_while_the_model_speaks_it_delivers_first_and_says_goodbye(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P43
    async with opened(tmp_path, mosquitto) as house, house.ada.connected(mosquitto.port):
        hold = house.model.hold(asks("one more thing"))
        await house.ada.send("m1", "one more thing")
        await reached(hold)
        house.clew.signal(signal.SIGTERM)
        await house.clew.until(lambda: house.clew.count("daemon.stopping") == 1, "the word that it stops")
        assert house.ada.replies == []
        hold.release()
        assert await house.clew.ended() == 0
        await house.ada.reply_to("m1")
        await house.ada.until(lambda: house.ada.statuses[-1:] == ["offline"], "the retained status")
        await house.clew.start()
        await later(house)
        assert answers(house) == [("m1", "one more thing"), ("last", "and the last one")]
        assert house.clew.count("turn.started") == 2
