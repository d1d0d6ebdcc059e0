"""Events of Matrix' rooms as messages, and what has to be remembered between two answers of /sync. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

from clew.transport import Address, Attachment, Inbound
from clew_transports.reading import READABLE, Malformed
from clew_transports.settings import Groups

SENDER = "sender"
"""Key of `Inbound.context`: who wrote it, who is mentioned in the reply."""
TIMELINE = ("m.room.message", "m.room.encrypted", "m.room.redaction", "m.room.member", "m.room.encryption", "m.reaction", "m.sticker")
"""Types of events that are asked for."""
MAX_UNREAD = 100
"""Encrypted events whose keys are waited for."""
MAX_INVITES = 100
"""Invitations that are remembered until the one who invites is known."""
MAX_ID = 255
"""Bytes of an id (the specification, "Common identifier format")."""

_ROOM = re.compile(r"![^\s/]{1,254}")
_EVENT = re.compile(r"\$[^\s]{1,254}")
_USER = re.compile(r"@[^\s:]{0,254}:[^\s]{1,254}")
_FILES = {"m.image": "image/jpeg", "m.file": "application/octet-stream", "m.audio": "audio/ogg", "m.video": "video/mp4"}
"""Kinds of messages that are files, and their type where none is given."""
_VOICE = ("org.matrix.msc3245.voice", "org.matrix.msc3245.voice.v2", "m.voice")
"""What says that a sound was spoken to be heard as a message."""
_SILENT = ("m.notice", "m.server_notice", "m.key.verification.request")
"""Kinds of messages that are no person's words."""
_FALLBACK = re.compile(r"\A> (?:\* )?<[^>\n]{1,300}>[^\n]*\n(?:>[^\n]*\n)*\n?")
"""What older clients put in front of a reply: the words that are answered."""
_REPLY_HTML = re.compile(r"<mx-reply>.*?</mx-reply>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Me:
    """Who clew is on Matrix. name: as it is shown in rooms, empty for none. device: the name of its session."""

    id: str
    name: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """How far `user`'s events are read: all up to `since` is stored. device: the name of this session, where clew signs in by itself.

    invites: room → who invites, as long as clew has not joined. unread: (room, event) of encrypted events whose key has not come.
    """

    user: str = ""
    since: str | None = None
    device: str = ""
    invites: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()

    @classmethod
    def load(cls, cursor: str | None) -> Self:
        """From what an earlier process stored. A cursor that is none of ours counts as none."""
        try:
            stored = json.loads(cursor or "")
            since = stored["since"]
            invites = {str(room): str(sender) for room, sender in stored["invites"].items()}
            unread = tuple((str(room), str(event)) for room, event in stored.get("unread", ()))
            return cls(str(stored["user"]), None if since is None else str(since), str(stored["device"]), invites, unread)
        except (ValueError, TypeError, AttributeError, KeyError):
            return cls()

    def __str__(self) -> str:
        stored = {"user": self.user, "since": self.since, "device": self.device, "invites": dict(self.invites), "unread": self.unread}
        return json.dumps(stored, separators=(",", ":"), ensure_ascii=False)

    def behind(self, sync: "Sync", unread: Sequence[tuple[str, str]] = ()) -> Self:
        """The place behind an answer of /sync, where these events stay unread."""
        left = {room: sender for room, sender in self.invites.items() if room not in sync.joined and room not in sync.left}
        invites = list({**left, **sync.invites}.items())[-MAX_INVITES:]
        return replace(self, since=sync.next, invites=dict(invites), unread=tuple(unread)[-MAX_UNREAD:])


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is new in a room. before: where what is missing in front of the events is found; empty where nothing is missing."""

    events: Sequence[Any]
    before: str = ""


@dataclass(frozen=True, slots=True)
class Sync:
    """An answer of /sync. invites: room → who invites."""

    next: str
    joined: Mapping[str, Timeline]
    invites: Mapping[str, str]
    left: frozenset[str]

    @classmethod
    def of(cls, answer: Mapping[str, Any], me: str) -> Self:
        """Raises Malformed where it has no `next_batch`. Rooms of another shape are passed over."""
        following = answer.get("next_batch")
        if not isinstance(following, str) or not following:
            raise Malformed("the homeserver's answer to /sync is none")
        rooms = _mapping(answer.get("rooms"))
        joined = {room: _timeline(each) for room, each in _mapping(rooms.get("join")).items() if is_room(room)}
        invited = ((room, _inviter(each, me)) for room, each in _mapping(rooms.get("invite")).items() if is_room(room))
        left = frozenset(_mapping(rooms.get("leave")))
        return cls(following, joined, {room: sender for room, sender in invited if sender}, left)

    @property
    def is_empty(self) -> bool:
        return not (self.joined or self.invites or self.left)


@dataclass(frozen=True, slots=True)
class Room:
    """members: user id → shown name, of those who joined or are invited; None: it is not known who."""

    members: Mapping[str, str] | None = None

    @property
    def direct(self) -> bool:
        """A chat of one person with clew. Where it is not known who reads along, it is none."""
        return self.members is not None and len(self.members) == 2


def is_room(room: str) -> bool:
    return _ROOM.fullmatch(room) is not None and len(room.encode()) <= MAX_ID


_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a letter, which no id can hold, and nothing can store."""


def is_event(event: str) -> bool:
    return _EVENT.fullmatch(event) is not None and len(event.encode("utf-8", "replace")) <= MAX_ID and not _SURROGATE.search(event)


def membership(event: Any, user: str) -> tuple[str, str]:
    """(the membership that an event gives `user`, the one before); empty where it gives none."""
    if not isinstance(event, dict) or event.get("type") != "m.room.member" or event.get("state_key") != user:
        return "", ""
    before = _mapping(_mapping(event.get("unsigned")).get("prev_content")).get("membership")
    return str(_mapping(event.get("content")).get("membership", "")), str(before or "")


def since_asked_in(events: Sequence[Any], me: str) -> tuple[Sequence[Any], bool]:
    """The events that came after clew was invited to a room or, uninvited, joined it; and whether there was such a moment."""
    for number in range(len(events) - 1, -1, -1):
        now, before = membership(events[number], me)
        if now == "invite" or (now == "join" and before not in ("join", "invite")):
            return events[number + 1 :], True
    return events, False


def has_joined(events: Sequence[Any], me: str) -> bool:
    """Whether clew came into the room within these events."""
    changes = [membership(event, me) for event in events]
    return any(now == "join" and before != "join" for now, before in changes)


def redacted(event: Any) -> str:
    """The id of the event that this one deletes; empty for none."""
    if _mapping(event).get("type") != "m.room.redaction":
        return ""
    gone = _mapping(event.get("content")).get("redacts") or event.get("redacts")
    return gone if isinstance(gone, str) and is_event(gone) else ""


def replied_to(event: Any) -> str:
    """The id of the event that this one is a reply to, as people mean it; empty for none."""
    relation = _mapping(_mapping(_mapping(event).get("content")).get("m.relates_to"))
    if relation.get("rel_type") == "m.thread" and relation.get("is_falling_back"):
        return ""
    answered = _mapping(relation.get("m.in_reply_to")).get("event_id")
    return answered if isinstance(answered, str) and is_event(answered) else ""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the events of rooms for the transport `name`, which is `me` there. groups, prefix: which lines of groups are meant for it."""

    name: str
    me: Me
    groups: Groups = "mention"
    prefix: str | None = None

    def read(self, event: Any, room_id: str, room: Room, *, to_me: bool = False) -> Inbound | None:
        """The message in an event, None if it is nobody's or not for clew. to_me: it is a reply to something of clew's.

        Raises Malformed.
        """
        try:
            sender, identifier, content = str(event["sender"]), str(event["event_id"]), event["content"]
            if not _USER.fullmatch(sender) or not is_event(identifier) or not isinstance(content, dict):
                raise Malformed("an event with ids that are none")
            if sender == self.me.id or "state_key" in event or "redacted_because" in _mapping(event.get("unsigned")):
                return None
            found = Inbound(
                external_id=self._external(identifier),
                address=Address(self.name, room_id),
                sender=sender,
                text="",
                client_id=identifier,
                sender_name=(room.members or {}).get(sender) or sender[1:].partition(":")[0],
                direct=room.direct,
                sent_at=float(event["origin_server_ts"]) / 1000,
                context={SENDER: sender},
            )
            match event["type"]:
                case "m.reaction":
                    return _reaction(found, content)
                case "m.room.redaction":
                    gone = redacted(event)
                    return replace(found, kind="delete", edits=self._external(gone)) if gone else None
                case "m.sticker":
                    return replace(found, refused=READABLE) if room.direct else None
                case "m.room.message":
                    return self._message(found, content, to_me)
            return None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise Malformed("an event of a shape that is not documented") from None

    def _external(self, event: str) -> str:
        return f"{self.name}/{self.me.id}/{event}"

    def _message(self, found: Inbound, content: Mapping[str, Any], to_me: bool) -> Inbound | None:
        relation = _mapping(content.get("m.relates_to"))
        if relation.get("rel_type") == "m.replace":
            edited = str(relation["event_id"])
            if not is_event(edited) or (inner := self._message(found, content["m.new_content"], to_me)) is None or inner.refused:
                return None
            return replace(inner, kind="edit", edits=self._external(edited))
        kind = content.get("msgtype")
        if not isinstance(kind, str) or kind in _SILENT:
            return None
        answered = replied_to({"content": content})
        attachment = _attachment(content) if kind in _FILES else None
        text = _words(content, kind, answered)
        is_meant = found.direct or to_me or self._is_meant(content, text)
        if not is_meant and not (self.groups == "listen" and kind in ("m.text", "m.emote") and text.strip()):
            return None
        thread = relation.get("event_id") if relation.get("rel_type") == "m.thread" else None
        return replace(
            found,
            address=replace(found.address, thread=thread if isinstance(thread, str) and is_event(thread) else None),
            kind="message" if is_meant else "context",
            text=self._addressed(text, found.direct) if is_meant else text,
            reply_to=answered or None,
            attachments=(attachment,) if attachment else (),
            refused="" if attachment or kind in ("m.text", "m.emote") else READABLE,
        )

    def _is_meant(self, content: Mapping[str, Any], text: str) -> bool:
        """Whether a line of a group speaks to clew. Clients that tell whom a line mentions are believed."""
        if self.groups == "all" or (self.prefix and text.startswith(self.prefix)):
            return True
        if isinstance(told := content.get("m.mentions"), dict) and self.me.id in (told.get("user_ids") or ()):
            return True
        if self._called(text) is not None:
            return True
        if isinstance(told, dict):
            return False
        shown = content.get("formatted_body")
        linked = _REPLY_HTML.sub("", shown) if isinstance(shown, str) else ""
        return any(f"https://matrix.to/#/{user}" in linked for user in (self.me.id, self.me.id.replace("@", "%40").replace(":", "%3A")))

    def _called(self, text: str) -> str | None:
        """What is said behind clew's name at the head of `text`; None where it is not there."""
        called = _call(self.me).match(text)
        return text[called.end() :] if called else None

    def _addressed(self, text: str, direct: bool) -> str:
        """`text` without what only says whom it is for."""
        if self.prefix and not direct and text.startswith(self.prefix):
            return text.removeprefix(self.prefix).strip() or text
        return (self._called(text) or "").strip() or text


@cache
def _call(me: Me) -> re.Pattern[str]:
    """clew's name in front of a line: with a colon or comma behind it, an @ in front of it, or as an id."""
    names = "|".join(map(re.escape, sorted({name for name in (me.name, me.id[1:].partition(":")[0]) if name}, key=len, reverse=True)))
    return re.compile(rf"\s*(?:{re.escape(me.id)}[,:]*|@?(?:{names})[,:]+|@(?:{names}))(?:\s+|\Z)", re.IGNORECASE)


def _reaction(found: Inbound, content: Mapping[str, Any]) -> Inbound | None:
    relation = content["m.relates_to"]
    if relation["rel_type"] != "m.annotation" or not is_event(str(relation["event_id"])):
        return None
    return replace(found, kind="reaction", text=str(relation["key"]), reply_to=str(relation["event_id"]))


def _words(content: Mapping[str, Any], kind: str, answered: str) -> str:
    """What a person wrote: of a file its caption, of a reply not the words that it answers."""
    body = content.get("body")
    if not isinstance(body, str):
        raise Malformed("a message without a body")
    if kind in _FILES:
        return body if isinstance(name := content.get("filename"), str) and name != body else ""
    return _FALLBACK.sub("", body) if answered else body


def _attachment(content: Mapping[str, Any]) -> Attachment | None:
    """`ref` is the address of the file or, where it is encrypted, the JSON that says where it is and how it is read."""
    info = _mapping(content.get("info"))
    held = content.get("file")
    ref = json.dumps(held, separators=(",", ":")) if isinstance(held, dict) else content.get("url")
    if not isinstance(ref, str) or len(ref) > 4096:
        return None
    size = info.get("size")
    name = str(content.get("filename") or content.get("body") or "file")
    mime = str(info.get("mimetype") or _FILES[str(content["msgtype"])])
    spoken = any(key in content for key in _VOICE)
    return Attachment(name[:200], mime[:100], size if isinstance(size, int) and 0 <= size < 2**53 else 0, ref, spoken)


def _timeline(room: Any) -> Timeline:
    timeline = _mapping(_mapping(room).get("timeline"))
    events, before = timeline.get("events"), timeline.get("prev_batch")
    missing = bool(timeline.get("limited")) and isinstance(before, str)
    return Timeline(events if isinstance(events, list) else [], str(before) if missing else "")


def _inviter(room: Any, me: str) -> str:
    events = _mapping(_mapping(room).get("invite_state")).get("events")
    senders = [str(event.get("sender", "")) for event in _objects(events) if membership(event, me)[0] == "invite"]
    return senders[-1] if senders and _USER.fullmatch(senders[-1]) else ""


def _objects(values: Any) -> Iterator[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
