"""A daemon in a room of Matrix, killed where a message or a reply is on its way: between a real synapse and clew.

Whatever the kill met, each message is answered once and in order. In an encrypted room the keys are on their way too.
"""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.acceptance.harness import Daemon
from tests.emulators import matrix
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.matrix import Forward, Gateway
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.integration.matrix_harness import DEADLINE_S, PASSWORD, Someone, people
from tests.integration.test_matrix import encryption
from tests.integration.test_matrix_encrypted import Phone, phone
from tests.servers import free_port
from tests.synapse import Synapse

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio, pytest.mark.timeout(300)]

PLAIN = {
    "a message is on its way": ("sync", True),
    "it is stored, and the homeserver does not know": ("sync", False),
    "the reply leaves": ("send", False),
    "the reply is there, and clew does not know": ("send", True),
}
KEYS = {"the reply's key leaves": ("sendToDevice", False), "the key is there, and clew does not know": ("sendToDevice", True)}


def echo(body: JsonObject) -> Reply:
    return say(f"echo: {last_user_text(body).rpartition('] ')[2]}")


def kills(daemon: Daemon, reached: asyncio.Event, *, done: bool) -> matrix.Fault:
    """SIGKILL, before or after what the request asks for is done."""

    async def fault(request: web.Request, forward: Forward) -> web.StreamResponse:
        if done:
            await forward()
        daemon.signal(signal.SIGKILL)
        reached.set()
        return web.Response(status=500)

    return fault


def config(folder: Path, model: str, homeserver: str, user: str, ada: str) -> Path:
    values = {
        "data_dir": str(folder / "data"),
        "http": {"port": free_port()},
        "log": {"level": "info", "format": "json"},
        "providers": {"claude": {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": model}},
        "agent": {"provider": "claude", "timezone": "UTC", "while_busy": "one_by_one"},
        "people": {"ada": {"role": "owner", "identities": [f"matrix:{ada}"]}},
        "transports": {"matrix": {"enabled": True, "base_url": homeserver, "user": user, "password": PASSWORD}},
    }
    path = folder / "clew.yaml"
    path.write_text(json.dumps(values))
    return path


@contextlib.asynccontextmanager
async def ended(daemon: Daemon) -> AsyncIterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(AssertionError, ProcessLookupError):
            await daemon.kill()


@pytest.mark.parametrize("encrypted", [False, True])
async def test_killed_on_the_way_each_message_is_answered_once(homeserver: Synapse, tmp_path: Path, encrypted: bool) -> None:  # P42 P43
    async with (
        people(homeserver, "clew", "ada") as (clew, ada),
        Gateway(homeserver.url) as gateway,
        AnthropicEmulator(script=echo) as model,
        phone(homeserver, ada, tmp_path) as hers,
    ):
        path = config(tmp_path, model.url, gateway.url, clew.id, ada.id)
        daemon = Daemon(path, transport="matrix")
        async with ended(daemon):
            await daemon.start()
            room = await ada.room(clew, initial_state=[encryption()] if encrypted else [])
            if encrypted:
                await hers.knows(room, clew.id, await session(clew))
            await answered(hers, room, "the first", clew.id)
            said = ["the first"]
            for point, (what, done) in (PLAIN | (KEYS if encrypted else {})).items():
                if what == "sendToDevice":  # the first reply of a process has a key of its own
                    await daemon.kill()
                    await daemon.start()
                reached = asyncio.Event()
                gateway.next[what].append(kills(daemon, reached, done=done))
                if (what, done) == ("sync", True):  # the poll that is to bring it has to come behind the one that waits
                    await ada.send(room, {"msgtype": "m.notice", "body": "nothing"})
                    await gateway.until(lambda: not gateway.next["sync"])
                await hers.say(room, point)
                async with asyncio.timeout(DEADLINE_S):
                    await reached.wait()
                await daemon.ended()
                await daemon.start()
                await hers.until(lambda point=point: f"echo: {point}" in replies(hers, clew.id))  # type: ignore[misc]
                said.append(point)
            await answered(hers, room, "the last", clew.id)
            assert replies(hers, clew.id) == [f"echo: {each}" for each in [*said, "the last"]]
            assert hers.unread == []


async def session(clew: Someone) -> str:
    """The name of the session that the daemon has made."""
    devices = (await clew.call("GET", "devices"))["devices"]
    return next(str(each["device_id"]) for each in devices if each["device_id"].startswith("CLEW"))


async def answered(phone: Phone, room: str, text: str, by: str) -> None:
    await phone.say(room, text)
    await phone.until(lambda: f"echo: {text}" in replies(phone, by))


def replies(phone: Phone, whose: str) -> list[str]:
    """What somebody said, in order; of an edited message its last words."""
    found: dict[str, str] = {}
    for source in phone.sources:
        if source["sender"] == whose:
            relation = source["content"].get("m.relates_to", {})
            edits = relation.get("rel_type") == "m.replace"
            content = source["content"]["m.new_content"] if edits else source["content"]
            found[relation["event_id"] if edits else source["event_id"]] = content["body"]
    return list(found.values())
