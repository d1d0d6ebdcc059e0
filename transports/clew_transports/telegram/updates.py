"""Telegram's updates as messages, and what has to be remembered between two batches of them. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from clew.transport import Address, Attachment, Inbound
from clew_transports.buttons import PRESSED
from clew_transports.reading import READABLE, Malformed
from clew_transports.settings import Groups

CHAT = "chat"
"""Key of `Inbound.context`: the chat's own id at the time, by which its message ids are to be understood."""

MAX_MOVED = 1000
"""Groups that became supergroups, of which clew remembers where they were before."""

_UNREADABLE = ("sticker", "location", "contact", "poll", "venue", "dice", "game", "story", "checklist", "paid_media", "giveaway")
_FILES = {
    "document": "application/octet-stream",
    "audio": "audio/mpeg",
    "voice": "audio/ogg",
    "video": "video/mp4",
    "video_note": "video/mp4",
    "animation": "video/mp4",
}
"""Kinds of files in a message, and their type where none is given."""

_ENDINGS = {"audio": ".mp3", "voice": ".ogg", "video": ".mp4", "video_note": ".mp4", "animation": ".mp4"}
"""Of the names of those that have none."""


@dataclass(frozen=True, slots=True)
class Bot:
    """Who clew is on Telegram. sees_all: privacy mode is off, it gets every message of its groups."""

    id: int
    username: str
    sees_all: bool = False

    @classmethod
    def of(cls, user: Any) -> Self:
        """From getMe. Raises Malformed."""
        try:
            return cls(int(user["id"]), str(user["username"]), bool(user.get("can_read_all_group_messages")))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise Malformed("Telegram's answer to getMe is none") from None


@dataclass(frozen=True, slots=True)
class Place:
    """How far the updates of `bot` are read: `next` is the first id that is not stored yet.

    moved: supergroup → the group that it was before. A chat keeps the address under which it was met first. hook: where clew had Telegram
    call last; empty where it polls.
    """

    bot: int = 0
    next: int | None = None
    moved: Mapping[str, str] = field(default_factory=dict)
    hook: str = ""

    @classmethod
    def load(cls, cursor: str | None) -> Self:
        """From what an earlier process stored. A cursor that is none of ours counts as none."""
        try:
            bot, following, moved, *hook = json.loads(cursor or "")
            before = {str(new): str(old) for new, old in moved.items()}
            return cls(int(bot), None if following is None else int(following), before, str(hook[0]) if hook else "")
        except (ValueError, TypeError, AttributeError, OverflowError):
            return cls()

    def __str__(self) -> str:
        return json.dumps([self.bot, self.next, self.moved, *([self.hook] if self.hook else [])], separators=(",", ":"))

    def onto(self, stored: str | None) -> str:
        """As it is to be stored in the place of `stored`, in which another daemon may have noted moves meanwhile."""
        other = Place.load(stored)
        moved = {**other.moved, **self.moved} if other.bot == self.bot else self.moved
        return str(replace(self, moved=dict(list(moved.items())[-MAX_MOVED:])))

    def home(self, chat: int | str) -> str:
        """The chat part of the address of the chat that has this id now."""
        return self.moved.get(str(chat), str(chat))

    def current(self, home: str) -> str:
        """The id that the chat with this address has now."""
        return next((new for new, old in reversed(tuple(self.moved.items())) if old == home), home)

    def with_move(self, old: int | str, new: int | str) -> Self:
        moved = {**self.moved, str(new): self.home(old)}
        return replace(self, moved=dict(list(moved.items())[-MAX_MOVED:]))


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the updates of `bot` for the transport `name`. groups, prefix: which lines of groups are meant for it."""

    name: str
    bot: Bot
    groups: Groups = "mention"
    prefix: str | None = None

    def read(self, update: Any, place: Place) -> tuple[Inbound | None, Place]:
        """The message in `update`, None if it is nobody's or not for clew, and the place behind it. Raises Malformed."""
        try:
            following = int(update["update_id"]) + 1
            # Set, not raised: after a week of silence, or on another server, ids begin anew anywhere.
            place = replace(place, bot=self.bot.id, next=following)
            if reacted := update.get("message_reaction"):
                return self._reaction(reacted, place, following - 1), place
            if pressed := update.get("callback_query"):
                return self._pressed(pressed, place), place
            edited = update.get("edited_message")
            message = edited or update.get("message")
            if not message:
                return None, place
            chat = int(message["chat"]["id"])
            if "migrate_to_chat_id" in message:
                return None, place.with_move(chat, int(message["migrate_to_chat_id"]))
            if "migrate_from_chat_id" in message:
                return None, place.with_move(int(message["migrate_from_chat_id"]), chat)
            return self._message(message, place, f"e{following - 1}" if edited else ""), place
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise Malformed("an update of a shape that is not documented") from None

    def _reaction(self, reacted: Mapping[str, Any], place: Place, update: int) -> Inbound | None:
        """An emoji that a person puts on a message; Telegram does not say in which topic."""
        sender = reacted.get("user")
        before = [each.get("emoji") for each in reacted["old_reaction"]]
        new = [str(each["emoji"]) for each in reacted["new_reaction"] if each["type"] == "emoji" and each["emoji"] not in before]
        if not sender or sender["is_bot"] or not new:
            return None
        chat, number = int(reacted["chat"]["id"]), int(reacted["message_id"])
        return Inbound(
            external_id=f"{self.name}/{self.bot.id}/{chat}/{number}/r{update}",
            address=Address(self.name, place.home(chat)),
            sender=str(int(sender["id"])),
            text=new[-1],
            direct=reacted["chat"]["type"] == "private",
            kind="reaction",
            reply_to=str(number),
            sent_at=float(reacted["date"]),
        )

    def _pressed(self, pressed: Mapping[str, Any], place: Place) -> Inbound | None:
        """A button below a message of the bot's that somebody presses."""
        message = pressed.get("message")
        if not message or "data" not in pressed:
            return None
        chat, number = int(message["chat"]["id"]), int(message["message_id"])
        return Inbound(
            external_id=f"{self.name}/{self.bot.id}/{chat}/{number}/b{pressed['id']}",
            address=Address(self.name, place.home(chat)),
            sender=str(int(pressed["from"]["id"])),
            text=str(pressed["data"])[:64],
            direct=message["chat"]["type"] == "private",
            kind="reaction",
            reply_to=str(number),
            context={PRESSED: str(pressed["id"])},
        )

    def _message(self, message: Mapping[str, Any], place: Place, edit: str) -> Inbound | None:
        sender = message.get("from")
        if not sender or sender["is_bot"] or "sender_chat" in message:
            return None  # channels, anonymous administrators, other bots and this one
        chat, number, direct = int(message["chat"]["id"]), int(message["message_id"]), message["chat"]["type"] == "private"
        text = str(message.get("text") or message.get("caption") or "")
        attachments = tuple(_attachments(message))
        unreadable = any(kind in message for kind in _UNREADABLE)
        is_meant = direct or self._is_meant(message, text)
        if not (text or attachments or unreadable) or not (is_meant or self._is_kept(text)):
            return None
        external_id = f"{self.name}/{self.bot.id}/{chat}/{number}"
        thread = message.get("message_thread_id") if message.get("is_topic_message") else None
        answered = message.get("reply_to_message")
        return Inbound(
            external_id=f"{external_id}/{edit}" if edit else external_id,
            address=Address(self.name, place.home(chat), None if thread is None else str(int(thread))),
            sender=str(int(sender["id"])),
            text=self._addressed(text, direct) if is_meant else text,
            client_id=str(number),
            sender_name=" ".join(str(sender[key]) for key in ("first_name", "last_name") if sender.get(key)),
            direct=direct,
            kind="edit" if edit else "message" if is_meant else "context",
            edits=external_id if edit else "",
            reply_to=str(int(answered["message_id"])) if answered else None,
            sent_at=float(message.get("edit_date") or message["date"]),
            refused="" if text or attachments else READABLE,
            attachments=attachments,
            context={CHAT: str(chat)},
        )

    def _is_kept(self, text: str) -> bool:
        """Whether a line of a group that does not speak to the bot is kept: of what has no words there is nothing to keep."""
        return self.groups == "listen" and bool(text.strip())

    def _is_meant(self, message: Mapping[str, Any], text: str) -> bool:
        """Whether a line of a group speaks to the bot."""
        if self.groups == "all" or (self.prefix and text.startswith(self.prefix)):
            return True
        answered = message.get("reply_to_message")
        if answered and "forum_topic_created" not in answered and (answered.get("from") or {}).get("id") == self.bot.id:
            return True
        units = text.encode("utf-16-le")
        for entity in message.get("entities") or message.get("caption_entities") or ():
            start, end = 2 * int(entity["offset"]), 2 * (int(entity["offset"]) + int(entity["length"]))
            words = units[start:end].decode("utf-16-le", "replace").lower()
            match entity["type"]:
                case "mention" if words == f"@{self.bot.username.lower()}":
                    return True
                case "text_mention" if entity["user"]["id"] == self.bot.id:
                    return True
                case "bot_command" if words.endswith(f"@{self.bot.username.lower()}"):
                    return True
        return False

    def _addressed(self, text: str, direct: bool) -> str:
        """`text` without what only says whom it is for. `/start`, which Telegram sends for a new chat, asks for help."""
        if self.prefix and not direct and text.startswith(self.prefix):
            return text.removeprefix(self.prefix).strip() or text
        name = re.escape(self.bot.username)
        text = re.sub(rf"\A(/[A-Za-z_]+)@{name}\b", r"\1", text, flags=re.IGNORECASE)
        text = re.sub(rf"\A@{name}\b[\s,:]*(?=\S)", "", text, flags=re.IGNORECASE)
        return "/help" if direct and text.split(maxsplit=1)[:1] == ["/start"] else text


def _attachments(message: Mapping[str, Any]) -> Iterator[Attachment]:
    if photos := message.get("photo"):
        largest = max(photos, key=lambda photo: int(photo.get("file_size") or 0))
        yield Attachment("photo.jpg", "image/jpeg", int(largest.get("file_size") or 0), str(largest["file_id"]))
    for kind, mime in _FILES.items():
        if kind == "document" and "animation" in message:
            continue  # the same file, told twice for older clients
        if found := message.get(kind):
            name, declared = str(found.get("file_name") or f"{kind}{_ENDINGS.get(kind, '')}"), str(found.get("mime_type") or mime)
            size, spoken = int(found.get("file_size") or 0), kind in ("voice", "video_note")
            yield Attachment(name[:200], declared[:100], size, str(found["file_id"]), spoken)
