"""The wire to the broker: a dead peer is noticed and mended, health tells the truth, two daemons with one identity are told apart."""

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.acceptance.harness import DEADLINE_S, PROGRAM, Correspondent, Daemon, running, write_config
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import say
from tests.integration.mqtt_harness import Relay
from tests.servers import Mosquitto, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio]

KEEPALIVE_S = 2
LOOK_S = 0.1


def configured(folder: Path, broker_port: int, model_url: str) -> Path:
    """A config whose connection asks for a sign of life every two seconds; the broker is given up after twice that."""
    folder.mkdir(exist_ok=True)
    path = write_config(folder, broker_port=broker_port, model_url=model_url, agent={}, schedule=[])
    config = json.loads(path.read_text())
    config["transports"]["mqtt"]["keepalive"] = f"{KEEPALIVE_S}s"
    path.write_text(json.dumps(config))
    return path


@contextlib.asynccontextmanager
async def daemon(folder: Path, broker_port: int) -> AsyncIterator[Daemon]:
    async with (
        AnthropicEmulator(script=lambda body: say("All right.")) as model,
        running(configured(folder, broker_port, model.url)) as clew,
    ):
        yield clew


def doctor(config: Path) -> str:
    ran = subprocess.run([PROGRAM, "doctor", "--config", config], capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


async def until(told: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not await told():
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise AssertionError(f"not within {DEADLINE_S} s: {what}") from None


async def healthy(clew: Daemon) -> bool:
    """What health says of the connection, told the same by both pages."""
    status, words = await clew.page("/readyz")
    _, metrics = await clew.page("/metrics")
    up = 'clew_transport_up{transport="mqtt"} 1.0' in metrics
    assert up or 'clew_transport_up{transport="mqtt"} 0.0' in metrics
    assert status == 200 or "mqtt" in words
    return status == 200 and up


async def ill(clew: Daemon) -> bool:
    """That both pages say so."""
    status, words = await clew.page("/readyz")
    _, metrics = await clew.page("/metrics")
    return status == 503 and "mqtt" in words and 'clew_transport_up{transport="mqtt"} 0.0' in metrics


async def test_a_dead_peer_is_noticed_told_and_mended(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48, BO-091, BO-092
    port = free_port()
    relay = Relay(mosquitto.port)
    async with relay.listening(port), daemon(tmp_path, port) as clew, Correspondent("ada").connected(mosquitto.port) as ada:
        await ada.ask("m1", "hello")
        assert await healthy(clew)
        relay.dead = True  # no connection breaks: nothing is said any more
        await until(lambda: ill(clew), "health that tells of the dead connection")
        assert (await clew.page("/healthz"))[0] == 200
        await ada.send("m2", "in the meantime")
        relay.dead = False
        await ada.reply_to("m2")
        await ada.ask("m3", "and now")
        await until(lambda: healthy(clew), "health that tells of the new connection")
        assert clew.count("daemon.ready") == 1


async def test_every_restart_of_the_broker_is_told_and_survived(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48, BO-092
    async with daemon(tmp_path, mosquitto.port) as clew:
        for round_ in range(2):
            mosquitto.stop()
            await until(lambda: ill(clew), "health that tells of the missing broker")
            assert "a daemon runs and is not ready: mqtt: " in await asyncio.to_thread(doctor, tmp_path / "clew.yaml")
            mosquitto.start()
            await until(lambda: healthy(clew), "health that tells of the new connection")
            async with Correspondent("ada").connected(mosquitto.port) as ada:
                await ada.ask(f"m{round_}", "hello")


async def test_two_daemons_with_one_identity_are_told_and_answer_once(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48, BO-093
    async with daemon(tmp_path / "one", mosquitto.port) as one, daemon(tmp_path / "two", mosquitto.port) as two:
        both = (one, two)

        async def told() -> bool:
            return any(
                "does a second clew run" in str(line.get("detail")) for clew in both for line in clew.events("transport.disconnected")
            )

        await until(told, "words about the other daemon")
        assert await two.terminate() == 0
        await until(lambda: healthy(one), "the connection of the one that is left")
        async with Correspondent("ada").connected(mosquitto.port) as ada:
            await ada.ask("m1", "who is there?")
            await ada.ask("m2", "and still?")
            assert len(ada.replies) == 2
        losses = one.count("transport.disconnected", transport="mqtt")
        assert losses <= 10, f"{losses} reconnections: it does not back off"


async def test_what_is_no_http_is_refused_and_fills_no_log(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48
    async with daemon(tmp_path, mosquitto.port) as clew:
        before = len(clew.log)
        host, port = clew.said[-1].rpartition("//")[2].strip().rstrip("/").split(":")
        for sent in (b"GET /\xff HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n: nothing\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            assert b" 400 " in await reader.readline()
            writer.close()
        assert (await clew.page("/healthz"))[0] == 200
        assert clew.plain == []
        assert [line for line in clew.log[before:] if line["level"] in ("warning", "error")] == []
