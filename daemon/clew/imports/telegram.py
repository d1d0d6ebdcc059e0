"""Telegram Desktop's export in JSON (result.json): one chat, or all of an account."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from clew.imports import conversation as made
from clew.imports.conversation import ODD, Conversation, ExportError, Said, Unreadable
from clew.imports.dividing import by_month
from clew.imports.opening import streams
from clew.imports.pulling import Pull
from clew.messages import Text

FILES = r"result\.json"
NAMED = 20
"""Names that are told to whoever has to say which of them is theirs."""
_DIRECT = frozenset({"personal_chat", "bot_chat"})
_LISTS = ("chats", "left_chats")


@dataclass(slots=True)
class _Chat:
    """What stands in front of a chat's messages. own: who the exporter is, by name or id, where that is known."""

    own: str | None
    name: str = ""
    kind: str = ""
    number: str = ""

    def is_mine(self, message: Mapping[str, Any]) -> bool | None:
        """Whether the exporter wrote a message; None where nothing says so."""
        sender, name = str(message.get("from_id") or ""), str(message.get("from") or "")
        if self.kind == "saved_messages":
            return True
        if self.own is not None:
            return self.own.casefold() in (sender.casefold(), sender.removeprefix("user"), name.casefold())
        return sender != f"user{self.number}" if self.kind in _DIRECT and sender else None


def read(path: Path, me: str | None, zone: ZoneInfo) -> Iterator[Conversation | Unreadable]:
    """me: the name, as the file has it, or the id of whoever exported it. Raises ExportError."""
    if me is not None and not any(_is_in(each) for each in _read(path, me, zone)):
        raise ExportError(f"Nothing in {path.name} was written by {me!r}.", hint="Give --me the name as the file has it.")
    return _read(path, me, zone)


def _is_in(found: Conversation | Unreadable) -> bool:
    """Whether the exporter wrote something in it."""
    return isinstance(found, Conversation) and any(each.mine for each in found.messages)


def _read(path: Path, me: str | None, zone: ZoneInfo) -> Iterator[Conversation | Unreadable]:
    for name, stream in streams(path, FILES):
        pull = Pull(name, stream)
        if pull.kind() != "{":
            raise ExportError(f"{name} is not the result.json of Telegram Desktop.", hint="Choose “Machine-readable JSON” there.")
        chat, is_export = _Chat(me), False
        for key in pull.members():
            if key == "personal_information" and me is None:
                chat.own = _own(pull.value())
            elif key in _LISTS:
                is_export = True
                yield from _chats(pull, chat.own, zone)
            elif key == "messages":
                is_export = True
                yield from _messages(pull, chat, zone)
            else:
                _note(chat, key, pull)
        if not is_export:
            raise ExportError(f"{name} is not the result.json of Telegram Desktop.", hint="Choose “Machine-readable JSON” there.")


def _own(told: Any) -> str | None:
    number = told.get("user_id") if isinstance(told, Mapping) else None
    return None if number is None else f"user{number}"


def _chats(pull: Pull, own: str | None, zone: ZoneInfo) -> Iterator[Conversation | Unreadable]:
    for key in pull.members():
        if key != "list":
            pull.skip()
            continue
        for _ in pull.items():
            chat = _Chat(own)
            for inner in pull.members():
                if inner == "messages":
                    yield from _messages(pull, chat, zone)
                else:
                    _note(chat, inner, pull)


def _note(chat: _Chat, key: str, pull: Pull) -> None:
    """What stands beside the messages, as far as it matters."""
    if key not in ("name", "type", "id"):
        pull.skip()
        return
    given = pull.value()
    match key:
        case "name":
            chat.name = made.line(given)
        case "type":
            chat.kind = str(given)
        case _:
            chat.number = str(given)


def _messages(pull: Pull, chat: _Chat, zone: ZoneInfo) -> Iterator[Conversation | Unreadable]:
    names, unknown = dict[str, None](), list[str]()
    title = chat.name or ("Saved messages" if chat.kind == "saved_messages" else "a chat")
    said = _said(pull, chat, zone, names, unknown)
    yield from by_month(chat.number or chat.name, title, said)
    if names:
        some = ", ".join(list(names)[:NAMED])
        yield Unreadable(title, f"nothing says which of these you are: {some}. Say it with --me NAME")
    elif unknown:
        yield Unreadable(title, f"{len(unknown)} of its messages are of an unknown shape ({unknown[0]})")


def _said(pull: Pull, chat: _Chat, zone: ZoneInfo, names: dict[str, None], unknown: list[str]) -> Iterator[Said]:
    """What was said in a chat. names: gets those who wrote in it, where it is not known whose export it is; then nothing is given."""
    at = 0.0
    for number, _ in enumerate(pull.items()):
        message = pull.value()
        try:
            if message.get("type") != "message":
                continue
            at = made.epoch(message.get("date_unixtime"), made.instant(message.get("date"), at, zone))
            if (mine := chat.is_mine(message)) is None:
                names.setdefault(made.line(message.get("from"), 100) or "a deleted account")
                continue
            name = "" if mine else made.line(message.get("from"), 100) or "Deleted account"
            if not names and (found := made.said(message.get("id", number), "user", [Text(_words(message))], at, name, mine=mine)):
                yield found
        except ODD as error:
            if len(unknown) < 1000:
                unknown.append(f"{type(error).__name__}: {error}")


def _words(message: Mapping[str, Any]) -> str:
    """A line for a file and for where it was passed on from, and the words."""
    pieces = []
    if source := message.get("forwarded_from"):
        pieces.append(f"[forwarded from {made.line(source, 100)}]")
    if emoji := message.get("sticker_emoji"):
        pieces.append(f"[sticker {made.line(emoji, 20)}]")
    elif "photo" in message:
        pieces.append("[photo]")
    elif "file" in message or "media_type" in message:
        kind = made.line(message.get("media_type"), 40).replace("_", " ") or "file"
        name = made.line(message.get("file_name"), 200)
        pieces.append(f"[{kind} {name}]" if name else f"[{kind}]")
    for kind in ("location_information", "contact_information", "poll"):
        if kind in message:
            pieces.append(f"[{kind.partition('_')[0]}]")
    pieces.append(_plain(message.get("text")))
    return "\n".join(each for each in pieces if each)


def _plain(given: Any) -> str:
    """A text, or pieces of one, of which those with markup are objects."""
    if isinstance(given, list):
        return made.text("".join(each if isinstance(each, str) else str(each.get("text", "")) for each in given))
    return made.text(given)
