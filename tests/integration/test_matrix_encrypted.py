"""Encrypted rooms of Matrix: a real synapse, and people whose client is matrix-nio's own."""

import asyncio
import contextlib
import json
import stat
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
import vodozemac
from aiohttp import web
from nio import AsyncClient, AsyncClientConfig, MegolmEvent, RoomMessageText
from nio.crypto import encrypt_attachment
from pydantic import SecretStr

from clew.transport import Address, Preview, Refused
from clew_transports.matrix.events import Place
from clew_transports.matrix.outgoing import ENCRYPTED
from clew_transports.matrix.transport import FOREIGN
from tests.emulators.matrix import Forward, Gateway
from tests.integration.matrix_harness import DEADLINE_S, PASSWORD, Someone, people
from tests.integration.mqtt_harness import Inbox
from tests.integration.test_matrix import connected, delivery, encryption, running, sent
from tests.synapse import Synapse

pytestmark = pytest.mark.asyncio


class Phone:
    """A client that encrypts. heard: (sender, text) of what it could read, in order; unread: events that it could not."""

    def __init__(self, server: Synapse, whose: Someone, device: str, folder: Path) -> None:
        config = AsyncClientConfig(encryption_enabled=True, store_sync_tokens=False)
        self.client = AsyncClient(server.url, whose.id, device_id=device, store_path=str(folder), config=config)
        self.client.restore_login(whose.id, device, whose.token)
        self.client.add_event_callback(self._heard, RoomMessageText)
        self.client.add_event_callback(self._unread, MegolmEvent)
        self.heard: list[tuple[str, str]] = []
        self.sources: list[dict[str, Any]] = []
        self.unread: list[MegolmEvent] = []
        self._changed = asyncio.Event()

    async def _heard(self, room: Any, event: RoomMessageText) -> None:
        self.heard.append((event.sender, event.body))
        self.sources.append(event.source)
        self._changed.set()

    async def _unread(self, room: Any, event: MegolmEvent) -> None:
        self.unread.append(event)
        self._changed.set()

    async def say(self, room: str, text: str, **more: Any) -> str:
        content = {"msgtype": "m.text", "body": text, **more}
        answer = await self.client.room_send(room, "m.room.message", content, ignore_unverified_devices=True)
        return str(answer.event_id)

    async def until(self, condition: Callable[[], Any]) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"heard {self.heard}, unread {self.unread}") from None

    async def knows(self, room: str, user: str, device: str) -> None:
        """Wait until it has seen a session of somebody's in a room: from then on it encrypts for it."""
        async with asyncio.timeout(DEADLINE_S):
            while user not in getattr(self.client.rooms.get(room), "users", ()) or device not in self.client.device_store[user]:
                await self.client.synced.wait()
                await asyncio.sleep(0.01)  # nio tells no more than that an answer came


@contextlib.asynccontextmanager
async def phone(server: Synapse, whose: Someone, folder: Path) -> AsyncIterator[Phone]:
    """With a session of its own for whoever registered it."""
    device = (await whose.call("GET", "account", "whoami"))["device_id"]
    held = Phone(server, whose, device, folder)
    task = asyncio.create_task(held.client.sync_forever(timeout=5000, full_state=True))
    try:
        yield held
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await held.client.close()


def device_of(inbox: Inbox) -> str:
    return Place.load(inbox.stored_cursor).device


def signing_in(clew: Someone) -> dict[str, Any]:
    return {"user": clew.id, "password": SecretStr(PASSWORD), "invites": "anyone"}


def said_in(seen_by: Someone, room: str, whose: Someone) -> list[dict[str, Any]]:
    """What somebody said in a room, as it stands on the homeserver."""
    events = seen_by.events.get(room, ())
    return [event for event in events if event["sender"] == whose.id and event["type"] in ("m.room.encrypted", "m.room.message")]


async def secret_room(ada: Someone, clew: Someone, *others: Someone) -> str:
    return await ada.room(clew, *others, initial_state=[encryption()])


async def test_what_is_said_in_an_encrypted_room_is_read_and_answered(homeserver: Synapse, tmp_path: Path) -> None:  # P42 P43
    async with people(homeserver, "clew", "ada") as (clew, ada), phone(homeserver, ada, tmp_path) as hers:
        inbox = Inbox()
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)) as (transport, _):
            room = await secret_room(ada, clew)
            await hers.knows(room, clew.id, device_of(inbox))
            question = await hers.say(room, "can you read this?")
            await inbox.until(lambda: inbox.texts == ["can you read this?"])
            (row,) = inbox.rows.values()
            assert (row.direct, row.sender, row.client_id) == (True, ada.id, question)
            ref = await transport.hint(Address("matrix", room), Preview("t", "**y", "**y", id="k3v9"))
            await hers.until(lambda: (clew.id, "**y") in hers.heard)
            await sent(transport, delivery(transport, "**yes**, " * 4000, room, preview_ref=ref))
            await sent(transport, replace(delivery(transport, "and a thread", room, question), id="k3v8"))
            await hers.until(lambda: (clew.id, "and a thread") in hers.heard)
            new = [source["content"]["m.new_content"] for source in hers.sources if "m.new_content" in source["content"]]
            assert new[0]["body"].startswith("yes, yes")
            assert new[0]["formatted_body"].startswith("<b>yes</b>")
            assert [source["content"]["m.relates_to"]["event_id"] for source in hers.sources[-1:]] == [question]
            said = await ada.until(lambda: len(found := said_in(ada, room, clew)) > 3 and found)
            assert {event["type"] for event in said} == {"m.room.encrypted"}
            assert {event["content"]["algorithm"] for event in said} == {"m.megolm.v1.aes-sha2"}
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)) as (transport, _):
            await hers.say(room, "and after a restart?")
            await inbox.until(lambda: len(inbox.rows) == 2)
            await sent(transport, replace(delivery(transport, "yes, still", room), id="k3v7"))
            await hers.until(lambda: (clew.id, "yes, still") in hers.heard)
        assert hers.unread == []


async def test_a_death_before_the_commit_loses_no_key(homeserver: Synapse, tmp_path: Path) -> None:  # P42
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), phone(homeserver, ada, tmp_path) as hers:
        inbox = Inbox()
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
            room = await secret_room(ada, clew)
            await hers.knows(room, clew.id, device_of(inbox))
            await hers.say(room, "one")
            await inbox.until(lambda: inbox.texts == ["one"])
        inbox.stuck = True
        hers.client.invalidate_outbound_session(room)
        await hers.say(room, "two")  # under a new key, which is taken and then comes again
        async with running(homeserver.url, clew, inbox, **signing_in(clew)):
            await inbox.until(lambda: bool(inbox.batches and inbox.batches[-1]))
        inbox.stuck = False
        async with running(homeserver.url, clew, inbox, **signing_in(clew)):
            await inbox.until(lambda: inbox.texts == ["one", "two"])
        assert inbox.duplicates == []


async def test_keys_that_left_before_a_death_can_be_used(homeserver: Synapse, tmp_path: Path) -> None:  # P42
    async with (
        people(homeserver, "clew", "ada", watching=False) as (clew, ada),
        phone(homeserver, ada, tmp_path) as hers,
        Gateway(homeserver.url) as gateway,
    ):
        inbox, uploaded = Inbox(), asyncio.Event()

        async def silent_after_the_upload(request: web.Request, forward: Forward) -> web.StreamResponse:
            answer = await forward()
            if not request.path.endswith("/keys/upload"):
                gateway.next["keys"].append(silent_after_the_upload)
                return answer
            uploaded.set()
            await asyncio.Event().wait()
            raise AssertionError

        gateway.next["keys"].append(silent_after_the_upload)
        async with running(gateway.url, clew, inbox, **signing_in(clew)):
            async with asyncio.timeout(DEADLINE_S):
                await uploaded.wait()
        room = await secret_room(ada, clew)
        async with connected(gateway.url, clew, inbox, **signing_in(clew)):
            await hers.knows(room, clew.id, device_of(inbox))
            await hers.say(room, "with a key of then")
            await inbox.until(lambda: inbox.texts == ["with a key of then"])


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_cannot_be_read_yet_is_read_when_its_key_comes(homeserver: Synapse, tmp_path: Path, restarted: bool) -> None:  # P42
    async with (
        people(homeserver, "clew", "ada", watching=False) as (clew, ada),
        phone(homeserver, ada, tmp_path) as hers,
        Gateway(homeserver.url) as gateway,
    ):
        inbox, held = Inbox(), asyncio.Event()
        kept: list[Any] = []

        async def without_keys(request: web.Request, forward: Forward) -> web.StreamResponse:
            """Messages between sessions come late."""
            answer = await forward()
            assert isinstance(answer.body, bytes)
            body = json.loads(answer.body)
            kept.extend(body.get("to_device", {}).pop("events", []))
            if held.is_set() and kept:
                body["to_device"] = {"events": list(kept)}
                kept.clear()
            else:
                gateway.next["sync"].append(without_keys)
            return web.json_response(body)

        async with connected(gateway.url, clew, inbox, **signing_in(clew)):
            room = await secret_room(ada, clew)
            await hers.knows(room, clew.id, device_of(inbox))
        gateway.next["sync"].append(without_keys)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(running(gateway.url, clew, inbox, **signing_in(clew)))
            event = await hers.say(room, "hello")
            await inbox.until(lambda: event in (inbox.stored_cursor or ""))
            assert inbox.rows == {}
            if restarted:
                await stack.aclose()
                gateway.next["sync"].clear()
                gateway.next["sync"].append(without_keys)
                held.set()
                await stack.enter_async_context(running(gateway.url, clew, inbox, **signing_in(clew)))
            held.set()
            await ada.say(room, "in the clear, so that there is an answer")
            await inbox.until(lambda: "hello" in inbox.texts)
            await inbox.until(lambda: Place.load(inbox.stored_cursor).unread == ())


async def test_keys_are_for_the_owner_alone_and_a_lost_store_makes_a_new_session(homeserver: Synapse, tmp_path: Path) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), phone(homeserver, ada, tmp_path) as hers:
        inbox = Inbox()
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
            room = await secret_room(ada, clew)
            before = device_of(inbox)
            await hers.knows(room, clew.id, before)
            files = list(inbox.folder().iterdir())
            assert {path.name for path in files} == {f"{before}.keys", "identity.keys"}
            assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        (inbox.folder() / f"{before}.keys").unlink()
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
            assert device_of(inbox) != before
            await hers.knows(room, clew.id, device_of(inbox))
            await hers.say(room, "do you know me?")
            await inbox.until(lambda: inbox.texts == ["do you know me?"])


async def test_the_session_is_confirmed_by_the_account(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", watching=False) as (clew,):
        inbox = Inbox()
        for _ in range(2):
            async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
                told = await clew.call("POST", "keys", "query", body={"device_keys": {clew.id: []}})
                keys = told["self_signing_keys"][clew.id]["keys"]
                (name, key), device = next(iter(keys.items())), dict(told["device_keys"][clew.id][device_of(inbox)])
                signature = device.pop("signatures")[clew.id][name]
                device.pop("unsigned", None)
                signed = json.dumps(device, separators=(",", ":"), sort_keys=True).encode()
                public = vodozemac.Ed25519PublicKey.from_base64(key)
                public.verify_signature(signed, vodozemac.Ed25519Signature.from_base64(signature))
                assert any(f"key {device['keys'][f'ed25519:{device_of(inbox)}'][:4]}" in detail for _, detail in inbox.reports)


async def test_a_homeserver_that_takes_no_keys_has_plain_rooms_all_the_same(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await ada.room(clew)
        await clew.join(room)

        async def refused(request: web.Request, forward: Forward) -> web.StreamResponse:
            gateway.next["keys"].append(refused)
            return web.json_response({"errcode": "M_UNRECOGNIZED", "error": "no keys here"}, status=404)

        gateway.next["keys"].append(refused)
        with structlog.testing.capture_logs() as logs:
            async with connected(gateway.url, clew) as (transport, inbox):
                await ada.say(room, "in the clear")
                await inbox.until(lambda: inbox.texts == ["in the clear"])
                await sent(transport, delivery(transport, "and so is this", room))
        assert any("M_UNRECOGNIZED" in each["reason"] for each in logs if each["event"] == "transport.limited")


async def test_one_time_keys_by_numbers_that_are_taken_are_left(homeserver: Synapse, tmp_path: Path) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), phone(homeserver, ada, tmp_path) as hers:
        inbox = Inbox()
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
            room = await secret_room(ada, clew)
            device = device_of(inbox)
            await hers.knows(room, clew.id, device)
        before = (inbox.folder() / f"{device}.keys").read_bytes()
        for number in range(3):
            async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
                hers.client.invalidate_outbound_session(room)
                await hers.say(room, f"number {number}")
                await inbox.until(lambda number=number: f"number {number}" in inbox.texts)  # type: ignore[misc]
        # A key is claimed and made again, then the store is put back.
        await ada.call("POST", "keys", "claim", body={"one_time_keys": {clew.id: {device: "signed_curve25519"}}})
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
            await hers.say(room, "one more")
            await inbox.until(lambda: "one more" in inbox.texts)
        (inbox.folder() / f"{device}.keys").write_bytes(before)
        await ada.call("POST", "keys", "claim", body={"one_time_keys": {clew.id: {device: "signed_curve25519"}}})
        plain = await ada.room(clew)
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)):
            await ada.say(plain, "still there?")
            await inbox.until(lambda: "still there?" in inbox.texts)


async def test_a_key_is_changed_when_somebody_comes_or_goes(homeserver: Synapse, tmp_path: Path) -> None:
    async with (
        people(homeserver, "clew", "ada", "bob") as (clew, ada, bob),
        phone(homeserver, ada, tmp_path / "..") as hers,
        phone(homeserver, bob, tmp_path) as his,
    ):
        inbox = Inbox()
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)) as (transport, _):
            room = await secret_room(ada, clew)
            await hers.knows(room, clew.id, device_of(inbox))
            for number, change in enumerate(("none", "none", "bob comes", "none", "bob goes")):
                if change == "bob comes":
                    await ada.invite(room, bob)
                    await bob.join(room)
                elif change == "bob goes":
                    await bob.call("POST", "rooms", room, "leave", body={})
                await hers.say(room, f"{clew.name}: turn {number}")
                await inbox.until(lambda number=number: len(inbox.rows) == number + 1)  # type: ignore[misc]
                await sent(transport, replace(delivery(transport, f"answer {number}", room), id=f"d{number}"))
                await hers.until(lambda number=number: (clew.id, f"answer {number}") in hers.heard)  # type: ignore[misc]
                if number in (2, 3):
                    await his.until(lambda number=number: (clew.id, f"answer {number}") in his.heard)  # type: ignore[misc]
            events = await ada.until(lambda: len(found := said_in(ada, room, clew)) == 5 and found)
            first, second, third, fourth, fifth = (event["content"]["session_id"] for event in events)
            assert first == second != third == fourth != fifth
            assert (clew.id, "answer 0") not in his.heard
            assert (clew.id, "answer 4") not in his.heard


async def test_nobody_speaks_as_another_and_nonsense_is_passed_over(homeserver: Synapse, tmp_path: Path) -> None:  # P42, BO-076
    async with people(homeserver, "clew", "ada", "eve") as (clew, ada, eve), phone(homeserver, ada, tmp_path) as hers:
        inbox = Inbox()
        async with connected(homeserver.url, clew, inbox, groups="all", **signing_in(clew)):
            room = await secret_room(ada, clew, eve)
            await eve.join(room)
            await hers.knows(room, clew.id, device_of(inbox))
            original = await hers.say(room, "transfer the money")
            await inbox.until(lambda: len(inbox.rows) == 1)
            await eve.until(lambda: original in [each["event_id"] for each in eve.events.get(room, ())])
            (copied,) = [each["content"] for each in eve.events[room] if each["event_id"] == original]
            for content in (copied, {**copied, "ciphertext": "AwgA"}, {**copied, "session_id": 7}, {"algorithm": "x"}, {}):
                await eve.send(room, content, "m.room.encrypted")
            nonsense = {"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "x", "ciphertext": {"x": {"type": 0, "body": "AwgA"}}}
            for number, content in enumerate((nonsense, {**nonsense, "ciphertext": 7}, {}, {"algorithm": 7})):
                messages = {clew.id: {device_of(inbox): content}}
                await eve.call("PUT", "sendToDevice", "m.room.encrypted", f"n{number}", body={"messages": messages})
            await hers.say(room, "thank you")
            await inbox.until(lambda: len(inbox.rows) == 2)
        await eve.send(room, copied, "m.room.encrypted")  # which messages were there already is not known after a start
        async with connected(homeserver.url, clew, inbox, groups="all", **signing_in(clew)):
            await hers.say(room, "that is all")
            await inbox.until(lambda: len(inbox.rows) == 3)
            texts = ["transfer the money", "thank you", "that is all"]
            assert [(row.sender, row.text) for row in inbox.rows.values()] == [(ada.id, text) for text in texts]
            assert not any(not up for up, _ in inbox.reports)


async def test_an_encrypted_file_comes_with_its_bytes(homeserver: Synapse, tmp_path: Path) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), phone(homeserver, ada, tmp_path) as hers:
        inbox, data = Inbox(), b"\x89PNG" * 10_000
        sealed, keys = encrypt_attachment(data)
        async with connected(homeserver.url, clew, inbox, **signing_in(clew)) as (transport, _):
            room = await secret_room(ada, clew)
            await hers.knows(room, clew.id, device_of(inbox))
            for _ in range(2):
                held = {**keys, "url": await ada.upload(sealed), "mimetype": "image/png"}
                await hers.say(room, "a.png", msgtype="m.image", file=held, info={"mimetype": "image/png", "size": len(data)})
                sealed = sealed[:-1]  # the second one is damaged
            await inbox.until(lambda: len(inbox.rows) == 2)
            good, bad = (row.attachments[0] for row in inbox.rows.values())
            assert (good.name, good.mime, good.size) == ("a.png", "image/png", len(data))
            assert b"".join([piece async for piece in transport.fetch(good.ref)]) == data
            for ref in (bad.ref, "{}", '{"url": "mxc://x/y"}'):
                with pytest.raises(LookupError):
                    [piece async for piece in transport.fetch(ref)]


async def test_without_the_extra_it_is_told_and_nothing_is_said(homeserver: Synapse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nio", None)
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room, plain = await secret_room(ada, clew), await ada.room(clew)
        for each in (room, plain):
            await clew.join(each)
        async with connected(homeserver.url, clew) as (transport, inbox):
            with structlog.testing.capture_logs() as logs:
                for _ in range(2):
                    await ada.send(room, {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"}, "m.room.encrypted")
                await ada.say(plain, "in the clear")
                await inbox.until(lambda: inbox.texts == ["in the clear"])
            assert [each["reason"] for each in logs if each["event"] == "inbox.rejected"] == [ENCRYPTED]
            with pytest.raises(Refused, match="pip install"):
                await transport.send(delivery(transport, "hello", room))
            with pytest.raises(LookupError, match="pip install"):
                [piece async for piece in transport.fetch('{"url": "mxc://x/y"}')]


async def test_the_keys_of_another_client_are_left_alone(homeserver: Synapse, tmp_path: Path) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), phone(homeserver, clew, tmp_path) as other:
        room = await ada.room(clew)
        await clew.join(room)
        async with asyncio.timeout(DEADLINE_S):
            while not other.client.olm.account.shared:
                await other.client.synced.wait()
        with structlog.testing.capture_logs() as logs:
            async with connected(homeserver.url, clew) as (_, inbox):
                await ada.say(room, "in the clear")
                await inbox.until(lambda: inbox.texts == ["in the clear"])
        assert [each["reason"] for each in logs if each["event"] == "transport.limited"] == [FOREIGN]
        told = await clew.call("POST", "keys", "query", body={"device_keys": {clew.id: []}})
        ours = other.client.olm.account.identity_keys["ed25519"]
        assert [each["keys"][f"ed25519:{name}"] for name, each in told["device_keys"][clew.id].items()] == [ours]
