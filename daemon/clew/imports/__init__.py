"""Exports of other programs, read as conversations: one file per format."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from clew.imports import chatgpt, claude, hermes, openclaw, telegram, whatsapp
from clew.imports.conversation import Conversation, Unreadable
from clew.imports.dividing import divided

Format = Literal["chatgpt", "claude", "hermes", "openclaw", "telegram", "whatsapp"]
FORMATS: tuple[Format, ...] = get_args(Format)


def conversations(kind: Format, path: Path, me: str | None, zone: ZoneInfo) -> Iterator[Conversation | Unreadable]:
    """What an export holds, in its order, each no larger than can be stored at once.

    me: the name of whose export it is, where the file does not say which of the names that is. zone: of times without one. Raises
    ExportError where the file is no such export.
    """
    talks = {"chatgpt": chatgpt.read, "claude": claude.read, "hermes": hermes.read, "openclaw": openclaw.read}
    chats = {"telegram": telegram.read, "whatsapp": whatsapp.read}
    for each in talks[kind](path) if kind in talks else chats[kind](path, me, zone):
        if isinstance(each, Unreadable):
            yield each
        else:
            yield from divided(each)
