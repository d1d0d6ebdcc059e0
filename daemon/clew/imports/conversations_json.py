"""conversations.json, which the exports of ChatGPT and Claude both have: a list, each conversation in a form of its program's own."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.imports.conversation import ODD, Conversation, ExportError, Unreadable, line
from clew.imports.opening import streams
from clew.imports.pulling import Pull

FILES = r"conversations(-[0-9]+)?\.json"


def conversations(
    path: Path, program: str, title: str, conversation: Callable[[Any], Conversation | None]
) -> Iterator[Conversation | Unreadable]:
    """One after the other. title: the key under which theirs stands. conversation: makes one of its JSON, None where nothing was said in
    it. Raises ExportError."""
    for name, stream in streams(path, FILES):
        pull = Pull(name, stream)
        if pull.kind() != "[":
            raise ExportError(f"{name} is not the list of conversations of {program}'s export.", hint="Is it the right --from?")
        for number, _ in enumerate(pull.items(), 1):
            told = pull.value()
            try:
                if (found := conversation(told)) is not None:
                    yield found
            except ODD as error:
                called = line(told.get(title)) if isinstance(told, Mapping) else ""
                yield Unreadable(f"conversation {number} {called!r}", f"it is of an unknown shape ({type(error).__name__}: {error})")
