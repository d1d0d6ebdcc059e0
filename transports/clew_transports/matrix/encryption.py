"""Encrypted rooms: the keys of clew's session and of other people's, kept by matrix-nio, moved by calls of clew's own.

Imported where the extra `matrix` is installed, and nowhere else. Whatever the library fails at, of what others sent, costs that one event.
"""

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog
from nio.crypto import ENCRYPTION_ENABLED, Olm, decrypt_attachment
from nio.events.to_device import OlmEvent, RoomKeyEvent
from nio.exceptions import EncryptionError
from nio.responses import KeysClaimResponse, KeysQueryResponse, KeysUploadResponse, ToDeviceResponse
from nio.store import SqliteStore

from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.content import Content
from clew_transports.matrix.signing import key_file

MEGOLM = "m.megolm.v1.aes-sha2"
READABLE_TYPES = ("m.room.message", "m.reaction", "m.sticker")
"""Types that are taken out of an encrypted event. Who is in a room, and what is deleted, is never said there."""
MAX_TO_DEVICE = 1000
"""Messages between sessions that wait to be sent."""

log = structlog.get_logger()
logging.getLogger("nio").setLevel(logging.CRITICAL)  # it warns of what is normal, and names people


class ForeignSession(Exception):
    """The session was made by another client, which has its keys."""


class Encryption:
    """The keys of the session `device` of `user`, in a file of that name in `folder`, which its owner alone can read."""

    def __init__(self, name: str, folder: Path, user: str, device: str) -> None:
        if not ENCRYPTION_ENABLED:
            raise ImportError("vodozemac")
        path = folder / key_file(device)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
        self._name = name
        self.user, self.device = user, device
        self._olm: Any = Olm(user, device, SqliteStore(user, device, str(folder), database_name=path.name))
        self._lock = asyncio.Lock()

    def close(self) -> None:
        self._olm.store.database.close()

    @property
    def fingerprint(self) -> str:
        """By which people can tell that a session is this one, as clients show it."""
        key: str = self._olm.account.identity_keys["ed25519"]
        return " ".join(key[at : at + 4] for at in range(0, len(key), 4))

    def device_keys(self) -> dict[str, Any]:
        """What others are told of this session, signed by it."""
        keys: dict[str, str] = self._olm.account.identity_keys
        told = {
            "user_id": self.user,
            "device_id": self.device,
            "algorithms": ["m.olm.v1.curve25519-aes-sha2", MEGOLM],
            "keys": {f"{kind}:{self.device}": keys[kind] for kind in ("curve25519", "ed25519")},
        }
        return {**told, "signatures": {self.user: {f"ed25519:{self.device}": self._olm.sign_json(told)}}}

    async def check(self, api: Api) -> None:
        """Raises ForeignSession where the homeserver has other keys for this session, and what calls raise."""
        answer = await api.call("POST", "keys", "query", body={"device_keys": {self.user: [self.device]}})
        known = _mapping(_mapping(_mapping(answer.get("device_keys")).get(self.user)).get(self.device))
        key = _mapping(known.get("keys")).get(f"ed25519:{self.device}")
        if key is not None and key != self._olm.account.identity_keys["ed25519"]:
            raise ForeignSession

    def take(self, sync: Mapping[str, Any]) -> frozenset[str]:
        """Keep what an answer of /sync says to this session, on disk when this returns. Returns the rooms for which keys came."""
        counts = sync.get("device_one_time_keys_count")
        if isinstance(counts, dict):
            count = counts.get("signed_curve25519", 0)
            self._olm.uploaded_key_count = count if isinstance(count, int) else 0
        changed = _mapping(sync.get("device_lists")).get("changed")
        self._olm.users_for_key_query.update(self._olm.tracked_users.intersection(map(str, changed if isinstance(changed, list) else ())))
        events = _mapping(sync.get("to_device")).get("events")
        return frozenset(room for event in (events if isinstance(events, list) else ()) if (room := self._took(event)))

    async def keep_up(self, api: Api) -> None:
        """Do what is due: give the homeserver keys, ask for those of others, mend broken sessions.

        Raises Refusal, Unreached or Unanswered.
        """
        async with self._lock:
            if self._olm.should_upload_keys:
                await self._upload(api)
            await self._query(api)
            if self._olm.wedged_devices:
                await self._claim(api, self._olm.get_users_for_key_claiming())
                self._olm.wedged_devices.clear()
            for message in list(self._olm.outgoing_to_device_messages[:MAX_TO_DEVICE]):
                await self._to_device(api, message.type, message.as_dict())
                self._olm.handle_response(ToDeviceResponse(message))

    async def meet(self, api: Api, users: Collection[str]) -> None:
        """Learn the sessions of users whom it does not know yet. Raises Refusal, Unreached or Unanswered."""
        async with self._lock:
            self._olm.users_for_key_query.update(set(users) - self._olm.tracked_users)
            await self._query(api)

    async def encrypted(self, api: Api, room: str, members: Collection[str], kind: str, content: Content) -> Content:
        """The content of an m.room.encrypted event that only sessions of `members` can read. What it refers to stays readable.

        Raises Refusal, Unreached or Unanswered.
        """
        async with self._lock:
            self._olm.users_for_key_query.update(set(members) - self._olm.tracked_users)
            await self._query(api)
            session = self._olm.outbound_group_sessions.get(room)
            if session is None or session.expired or not session.shared or _readers(session) != self._sessions(members):
                await self._share(api, room, members)
            sealed: Content = self._olm.group_encrypt(room, {"type": kind, "content": content})
        return {**sealed, "m.relates_to": content["m.relates_to"]} if "m.relates_to" in content else sealed

    def decrypted(self, room: str, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """What stands in an encrypted event; None where its key, or the session that it is from, is not known (yet).

        It counts as somebody's only if the key came from a session of theirs, as their homeserver lists them.
        """
        try:
            return self._decrypted(room, event)
        except Exception as error:  # the library raises what it likes about what others made
            log.warning("inbox.rejected", transport=self._name, reason=f"an event cannot be decrypted ({type(error).__name__})")
            return None

    def _decrypted(self, room: str, event: Mapping[str, Any]) -> dict[str, Any] | None:
        content, sender = event["content"], event["sender"]
        session = self._group_session(room, content["session_id"]) if content.get("algorithm") == MEGOLM else None
        if session is None:
            return None
        device = self._olm.device_store.device_from_sender_key(sender, session.sender_key)
        if device is None or device.ed25519 != session.ed25519:
            self._olm.users_for_key_query.add(sender)
            return None
        text, index = session.decrypt(content["ciphertext"])
        of = SimpleNamespace(
            sender_key=session.sender_key,
            session_id=session.id,
            event_id=event["event_id"],
            server_timestamp=event["origin_server_ts"],
        )
        found = json.loads(text)
        if found["room_id"] != room or found["type"] not in READABLE_TYPES or not self._olm.message_index_ok(index, of):
            return None
        inner = {**found["content"]}
        if "m.relates_to" in content:
            inner["m.relates_to"] = content["m.relates_to"]
        return {**event, "type": found["type"], "content": inner}

    def _group_session(self, room: str, session_id: str) -> Any:
        return next((sessions[session_id] for sessions in self._olm.inbound_group_store[room].values() if session_id in sessions), None)

    def _took(self, event: Any) -> str:
        """Keep what one message to this session says. Returns the room whose key it has; empty for none."""
        if not isinstance(event, dict) or event.get("type") != "m.room.encrypted":
            return ""
        try:
            parsed = OlmEvent.from_dict(event)
            found = self._olm.handle_to_device_event(parsed) if isinstance(parsed, OlmEvent) else None
            return str(found.room_id) if isinstance(found, RoomKeyEvent) else ""
        except Exception as error:  # the library raises what it likes about what others made
            log.warning("inbox.rejected", transport=self._name, reason=f"a message of keys cannot be read ({type(error).__name__})")
            return ""

    async def _upload(self, api: Api) -> None:
        body = self._olm.share_keys()
        self._olm.save_account()  # before anybody can use a key of it
        if "device_keys" in body:
            body["device_keys"] = self.device_keys()
        try:
            answer = await api.call("POST", "keys", "upload", body=body)
        except Refusal as refusal:
            if refusal.lasts:  # it has others by these numbers, from before the store was put back: the next ones have others
                self._olm.mark_keys_as_published()
                self._olm.save_account()
            raise
        count = _mapping(answer.get("one_time_key_counts")).get("signed_curve25519", 0)
        self._olm.handle_response(KeysUploadResponse(0, count if isinstance(count, int) else 0))

    async def _query(self, api: Api) -> None:
        asked = sorted(self._olm.users_for_key_query)
        if not asked:
            return
        answer = await api.call("POST", "keys", "query", body={"device_keys": {user: [] for user in asked}})
        self._olm.users_for_key_query.difference_update(asked)
        told = _mapping(answer.get("device_keys"))
        self._olm.handle_response(KeysQueryResponse({user: _sound(user, _mapping(told.get(user))) for user in asked if user in told}, {}))

    async def _claim(self, api: Api, devices: Mapping[str, Collection[str]]) -> None:
        body = {user: dict.fromkeys(theirs, "signed_curve25519") for user, theirs in devices.items() if theirs}
        if not body:
            return
        answer = await api.call("POST", "keys", "claim", body={"one_time_keys": body})
        for user, theirs in _mapping(answer.get("one_time_keys")).items():
            for device, key in _mapping(theirs).items():
                try:
                    self._olm.handle_response(KeysClaimResponse({user: {device: key}}, {}))
                except Exception as error:  # the library raises what it likes about what others made
                    log.warning("inbox.rejected", transport=self._name, reason=f"a session's key is none ({type(error).__name__})")

    async def _share(self, api: Api, room: str, members: Collection[str]) -> None:
        """Make a new key for what clew says in a room, and give it to everybody's sessions."""
        await self._claim(api, self._olm.get_missing_sessions(list(members)))
        self._olm.create_outbound_group_session(room)
        session = self._olm.outbound_group_sessions[room]
        while True:
            given, messages = self._olm.share_group_session(
                room, list(members), ignore_missing_sessions=True, ignore_unverified_devices=True
            )
            if not given:
                break
            await self._to_device(api, "m.room.encrypted", messages)
            session.users_shared_with.update(given)
        session.mark_as_shared()

    def _sessions(self, members: Collection[str]) -> set[tuple[str, str]]:
        """Whose sessions are to read along, clew's own left out."""
        devices = ((user, device.id) for user in members for device in self._olm.device_store.active_user_devices(user))
        return {each for each in devices if each != (self.user, self.device)}

    async def _to_device(self, api: Api, kind: str, body: Mapping[str, Any]) -> None:
        await api.call("PUT", "sendToDevice", kind, secrets.token_hex(8), body=body)


def opened(held: Mapping[str, Any], data: bytes) -> bytes:
    """The bytes of an encrypted file. held: what its event says of it. Raises LookupError where they are not what was sent."""
    try:
        found: bytes = decrypt_attachment(data, held["key"]["k"], held["hashes"]["sha256"], held["iv"])
    except (EncryptionError, KeyError, TypeError, ValueError) as error:
        raise LookupError(f"a file cannot be decrypted ({type(error).__name__})") from None
    return found


def _readers(session: Any) -> set[tuple[str, str]]:
    """Sessions that have the key, and those that could not be given it."""
    return {each for each in session.users_shared_with | session.users_ignored if each}


def _sound(user: str, devices: Mapping[str, Any]) -> dict[str, Any]:
    """Of a user's sessions those that are told in the documented shape."""
    return {
        device: told
        for device, told in devices.items()
        if isinstance(told, dict)
        and (told.get("user_id"), told.get("device_id")) == (user, device)
        and all(isinstance(_mapping(told.get("keys")).get(f"{kind}:{device}"), str) for kind in ("ed25519", "curve25519"))
        and isinstance(told.get("signatures"), dict)
        and isinstance(told.get("unsigned", {}), dict)
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
