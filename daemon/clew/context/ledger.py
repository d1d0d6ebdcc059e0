"""The rolling summary as entries, and how a compaction revises it. Pure."""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from clew.context.redact import redact
from clew.context.view import Rendered
from clew.messages import Message

Certainty = Literal["said", "guessed", "hypothetical", "asked"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something the thread must not forget. `sources`: ids of the messages it stands on; `date`: seconds since the epoch, UTC."""

    kind: str
    text: str
    reason: str = ""
    speaker: str = ""
    certainty: Certainty = "said"
    status: str = "open"
    date: float = 0.0
    sources: tuple[str, ...] = ()


Ledger = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a revision did: entries added, changed and dropped, in words."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def revise(ledger: Ledger, demoted: Sequence[Rendered], answer: str, known: Collection[str] = ()) -> tuple[Ledger, Report]:
    """The ledger after the summariser answered to the newly demoted messages.

    The answer is one narrative that takes the place of the previous one; its sources are the new
    messages; those of earlier revisions stand in the compactions before it. `known`: secrets of this installation, which it must not
    hold.
    """
    text = redact(answer.strip(), known)
    rows = [row for message in demoted for row in message.rows]
    before = next((entry for entry in ledger if entry.kind == "narrative"), None)
    sources = tuple(dict.fromkeys(row.id for row in rows))
    entry = Entry("narrative", text, date=max((row.at for row in rows), default=0.0), sources=sources)
    others = tuple(each for each in ledger if each.kind != "narrative")
    report = Report(changed=(text,), dropped=(before.text,)) if before else Report(added=(text,))
    return (*others, entry), report


def render(ledger: Ledger, held: Sequence[Message] = (), known: Collection[str] = ()) -> str:
    """The ledger as the model reads it, the held messages verbatim (redacted) behind it."""
    parts = [entry.text for entry in ledger]
    if held:
        lines = [f"- {message.sender_name or message.role}: {redact(message.text, known)}" for message in held]
        parts.append("\n".join(["Pinned messages, word for word:", *lines]))
    return "\n\n".join(parts)


def to_json(ledger: Ledger) -> str:
    return json.dumps([asdict(entry) for entry in ledger], ensure_ascii=False)


def from_json(text: str) -> Ledger:
    return tuple(_entry(item) for item in json.loads(text))


def _entry(item: dict[str, Any]) -> Entry:
    return Entry(**{**item, "sources": tuple(item["sources"])})
