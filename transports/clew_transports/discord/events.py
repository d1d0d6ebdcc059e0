"""Discord's events as messages. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clew.transport import Address, Attachment, Inbound
from clew_transports.buttons import ANSWERS, PRESSED
from clew_transports.discord.place import OTHER_SHAPE
from clew_transports.reading import READABLE, Malformed
from clew_transports.settings import Groups

SERVER = "server"
"""Key of `Inbound.context`: set where the message is not in a private chat, and a reply names it."""

_NO_WORDS = ("sticker_items", "poll")
_PRIVATE = 1
"""The type of a private chat; groups of friends have another one."""
_SAID = frozenset({0, 19})
"""Types of messages that people write: by themselves, and as a reply. The others tell of joins, pins and the like."""
_FORWARD = 1
"""The type of a `message_reference` to a message that is passed on."""
_VOICE = 1 << 13
"""Flag of a message that was spoken."""
LONGEST_NAME = 100
_COMPONENT = 3
"""The type of an interaction that is a button."""
_EMOJI = re.compile(r"<a?(:[A-Za-z0-9_]{2,32}:)[0-9]{1,20}>")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads events for the transport `name`, whose bot has the id `bot`.

    groups, prefix: which lines of servers are meant for it. roles: those that nobody else has.
    """

    name: str
    bot: str
    groups: Groups = "mention"
    prefix: str | None = None
    roles: frozenset[str] = frozenset()

    def read(self, kind: str, event: Any) -> list[Inbound]:
        """The messages in an event of the gateway that are for clew. Raises Malformed."""
        try:
            match kind:
                case "MESSAGE_CREATE":
                    return self._message(event, "guild_id" in event)
                case "MESSAGE_UPDATE":
                    return self._edit(event)
                case "MESSAGE_REACTION_ADD":
                    return self._reaction(event)
                case "INTERACTION_CREATE":
                    return self._pressed(event)
                case "MESSAGE_DELETE":
                    return self._deletions(event, [event["id"]])
                case "MESSAGE_DELETE_BULK":
                    return self._deletions(event, event["ids"])
            return []
        except OTHER_SHAPE:
            raise Malformed(f"a {kind} of another shape than Discord documents") from None

    def missed(self, message: Any, server: bool) -> list[Inbound]:
        """The message of a channel's history that is for clew; `server`: the channel is one of a server. Raises Malformed."""
        try:
            return self._message(message, server)
        except OTHER_SHAPE:
            raise Malformed("a message of another shape than Discord documents") from None

    def _edit(self, event: Mapping[str, Any]) -> list[Inbound]:
        """Discord updates messages by itself too, to show what is behind their links; a person's edit has a time."""
        edited = event.get("edited_timestamp")
        if not edited or "author" not in event:
            return []
        # The update that shows the links of an edit has the same time, but for the digits behind its milliseconds.
        return self._message(event, "guild_id" in event, edit=f"e{datetime.fromisoformat(edited).isoformat(timespec='milliseconds')}")

    def _deletions(self, event: Mapping[str, Any], numbers: Sequence[str]) -> list[Inbound]:
        """Discord does not say who deleted a message, nor whose it was."""
        address, direct = Address(self.name, str(int(event["channel_id"]))), "guild_id" not in event
        known = [f"{self.name}/{self.bot}/{int(number)}" for number in numbers]
        return [Inbound(f"{each}/deleted", address, "", "", direct=direct, kind="delete", edits=each) for each in known]

    def _reaction(self, event: Mapping[str, Any]) -> list[Inbound]:
        emoji, user, author = event["emoji"], str(int(event["user_id"])), event.get("message_author_id", self.bot)
        member = event.get("member") or {}
        if emoji.get("id") or user == self.bot or str(author) != self.bot or (member.get("user") or {}).get("bot"):
            return []
        number = int(event["message_id"])
        return [
            Inbound(
                external_id=f"{self.name}/{self.bot}/{number}/r{user}{emoji['name']}",
                address=Address(self.name, str(int(event["channel_id"]))),
                sender=user,
                text=str(emoji["name"]),
                direct="guild_id" not in event,
                kind="reaction",
                reply_to=str(number),
            )
        ]

    def _pressed(self, event: Mapping[str, Any]) -> list[Inbound]:
        """A button below a message of the bot's that somebody presses; other interactions are not clew's."""
        data = event.get("data") or {}
        if event["type"] != _COMPONENT or data.get("custom_id") not in ANSWERS or str(event["message"]["author"]["id"]) != self.bot:
            return []
        user = (event.get("member") or {}).get("user") or event["user"]
        number, press = int(event["message"]["id"]), int(event["id"])
        return [
            Inbound(
                external_id=f"{self.name}/{self.bot}/{number}/b{press}",
                address=Address(self.name, str(int(event["channel_id"]))),
                sender=str(int(user["id"])),
                text=str(data["custom_id"]),
                direct="guild_id" not in event,
                kind="reaction",
                reply_to=str(number),
                context={PRESSED: f"{press}/{event['token']}"},
            )
        ]

    def _message(self, message: Mapping[str, Any], server: bool, edit: str = "") -> list[Inbound]:
        author = message["author"]
        if author.get("bot") or author.get("system") or message.get("webhook_id") or message["type"] not in _SAID:
            return []
        number, direct = int(message["id"]), not server and _is_private(message)
        said, attachments = str(message.get("content") or ""), tuple(_attachments(message))
        is_meant = direct or self._is_meant(message, said)
        if not is_meant and not (self.groups == "listen" and said.strip()):
            return []
        text = _readable(self._addressed(said, direct) if is_meant else said, message) if said else _forwarded(message)
        unreadable = any(message.get(kind) for kind in _NO_WORDS)
        if not (text or attachments or unreadable):
            return []
        external_id = f"{self.name}/{self.bot}/{number}"
        answered = (message.get("message_reference") or {}).get("message_id") if message["type"] == 19 else None
        return [
            Inbound(
                external_id=f"{external_id}/{edit}" if edit else external_id,
                address=Address(self.name, str(int(message["channel_id"]))),
                sender=str(int(author["id"])),
                text=text,
                client_id=str(number),
                sender_name=_name(author, message.get("member") or {}),
                direct=direct,
                kind="edit" if edit else "message" if is_meant else "context",
                edits=external_id if edit else "",
                reply_to=str(int(answered)) if answered else None,
                sent_at=_time(message["edited_timestamp"] if edit else message["timestamp"]),
                refused="" if text or attachments else READABLE,
                attachments=attachments,
                context={} if direct else {SERVER: "1"},
            )
        ]

    def _is_meant(self, message: Mapping[str, Any], text: str) -> bool:
        """Whether a line in a server speaks to the bot. @everyone, @here and roles of others do not."""
        if self.groups == "all" or (self.prefix and text.startswith(self.prefix)):
            return True
        if any(str(each["id"]) == self.bot for each in message.get("mentions") or ()):
            return True
        if any(str(each) in self.roles for each in message.get("mention_roles") or ()):
            return True
        answered = message.get("referenced_message") if message["type"] == 19 else None
        return answered is not None and str(answered["author"]["id"]) == self.bot

    def _addressed(self, text: str, direct: bool) -> str:
        """`text` without what only says whom it is for."""
        if self.prefix and not direct and text.startswith(self.prefix):
            text = text.removeprefix(self.prefix).strip() or text
        own = "|".join([f"!?{self.bot}", *(f"&{role}" for role in self.roles)])
        return re.sub(rf"\A\s*<@(?:{own})>[\s,:]*(?=\S)", "", text)


def _readable(text: str, message: Mapping[str, Any]) -> str:
    """`text` with names in place of ids."""
    names = {str(each["id"]): _name(each, each.get("member") or {}) for each in message.get("mentions") or ()}
    text = re.sub(r"<@!?([0-9]{1,20})>", lambda match: f"@{names[match[1]]}" if match[1] in names else match[0], text)
    return _EMOJI.sub(r"\1", text)


def place_of(message: Any) -> tuple[int, str, bool]:
    """The number of a message, its channel, and whether that is a private chat. Raises Malformed."""
    try:
        return int(message["id"]), str(int(message["channel_id"])), "guild_id" not in message and _is_private(message)
    except OTHER_SHAPE:
        raise Malformed("a message of another shape than Discord documents") from None


def _is_private(message: Mapping[str, Any]) -> bool:
    return bool(message.get("channel_type", _PRIVATE) == _PRIVATE)


def _name(user: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """In one line, as the engine shows it."""
    return " ".join(str(member.get("nick") or user.get("global_name") or user.get("username") or user["id"]).split())[:LONGEST_NAME]


def _time(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _forwarded(message: Mapping[str, Any]) -> str:
    """The words of a message that somebody passes on, as a quotation."""
    lines = "\n".join(str(each.get("content") or "") for each in _passed_on(message)).strip().splitlines()
    return "\n".join(["Forwarded:", *(f"> {line}" for line in lines)]) if lines else ""


def _passed_on(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if (message.get("message_reference") or {}).get("type") != _FORWARD:
        return []
    return [each.get("message") or {} for each in message.get("message_snapshots") or ()]


def files(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What Discord tells of the files of a message, and of one that is passed on in it."""
    return [each for told in (message, *_passed_on(message)) for each in told.get("attachments") or ()]


def _attachments(message: Mapping[str, Any]) -> Iterator[Attachment]:
    """Files by where they are: their addresses expire after a day."""
    for each in files(message):
        name, mime = str(each.get("filename") or "file")[:200], str(each.get("content_type") or "application/octet-stream")[:100]
        ref = f"{int(message['channel_id'])}/{int(message['id'])}/{int(each['id'])}"
        yield Attachment(name, mime.partition(";")[0], int(each.get("size") or 0), ref, bool(int(message.get("flags") or 0) & _VOICE))
