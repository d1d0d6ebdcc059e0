"""The rolling summary as a list of entries: what they hold, how the model reads them, how they are stored. Pure."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal, get_args

from clew.context.redact import redact
from clew.messages import Message

Kind = Literal[
    "goal",
    "request",
    "task",
    "constraint",
    "decision",
    "question",
    "fact",
    "identifier",
    "preference",
    "correction",
    "outcome",
    "error",
    "promise",
    "next_step",
    "narrative",
]
Certainty = Literal["said", "guessed", "hypothetical", "asked"]

KINDS: frozenset[str] = frozenset(get_args(Kind))
CERTAINTIES: frozenset[str] = frozenset(get_args(Certainty))
ACTIVE: frozenset[str] = frozenset({"open", "in progress", "blocked"})
"""Every other status means that an entry is closed."""

NOBODY: frozenset[str] = frozenset({"", "assistant", "tool"})
"""Speakers that are no person."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECTIONS: tuple[tuple[str, frozenset[str]], ...] = (
    ("Goal", frozenset({"goal"})),
    ("Active requests", frozenset({"request", "task"})),
    ("Constraints", frozenset({"constraint"})),
    ("Decisions", frozenset({"decision"})),
    ("Done", frozenset()),
    ("In progress", frozenset()),
    ("Blocked", frozenset()),
    ("Open questions", frozenset({"question"})),
    ("Facts and identifiers", frozenset({"fact", "identifier"})),
    ("Preferences", frozenset({"preference"})),
    ("Corrections", frozenset({"correction"})),
    ("Tool outcomes", frozenset({"outcome"})),
    ("Unresolved errors", frozenset({"error"})),
    ("Promises", frozenset({"promise"})),
    ("Next steps", frozenset({"next_step"})),
    ("In short", frozenset({"narrative"})),
)
SECTIONS = tuple(title for title, _ in _SECTIONS)
"""The headings, in their order."""
_PLACE = {kind: title for title, kinds in _SECTIONS for kind in kinds}
_NAME_MARKS = re.compile(r"[\s|#:]+")
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """Something the thread must not forget.

    text: one line, in the words of whoever said it. date: seconds since the epoch, UTC. sources: ids of the messages it stands on;
    places: their positions in the session, by which the summary names them (empty where they are not known). number: what the
    summariser calls it by; it stays the same for the life of the entry.
    """

    kind: Kind
    text: str
    reason: str = ""
    speaker: str = ""
    certainty: Certainty = "said"
    status: str = "open"
    date: float = 0.0
    sources: tuple[str, ...] = ()
    number: int = 0
    places: tuple[int, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether nothing is to be done about it any more."""
        return self.status not in ACTIVE


Ledger = tuple[Entry, ...]


def section(entry: Entry) -> str:
    """The heading under which an entry stands: by its kind, or by its status where that says more."""
    if entry.kind == "narrative":
        return _PLACE[entry.kind]
    if entry.closed:
        return "Done"
    return {"in progress": "In progress", "blocked": "Blocked"}.get(entry.status, _PLACE[entry.kind])


def render(
    ledger: Ledger, held: Sequence[Message] = (), known: Collection[str] = (), *, zone: tzinfo = UTC, year: int | None = None
) -> str:
    """The ledger as the model reads it: a Markdown section for each heading in use, in a fixed order; in a section, the ledger's order.

    Where one person alone speaks, a first line names them and the entries need not. held: pinned messages, which stand behind it
    word for word, redacted, in place of their entries, indented so that no line of theirs passes for an entry. known: secrets of this
    installation. zone: where its days begin. year: the year that goes without saying, None: every date names its own.
    """
    person = only_person(ledger)
    by_title: dict[str, list[str]] = {title: [] for title, _ in _SECTIONS}
    for entry in ledger:
        if not any((message.id,) == entry.sources and entry.text in message.text for message in held):
            by_title[section(entry)].append(line(entry, zone, year, person))
    parts = [said_by(person)] if person else []
    parts += ["\n".join([f"## {title}", *(f"- {each}" for each in lines)]) for title, lines in by_title.items() if lines]
    if held:
        lines = [f"- {message.sender_name or message.role}: {_indented(redact(message.text, known))}" for message in held]
        parts.append("\n".join(["Pinned messages, word for word:", *lines]))
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"  {each}" if number and each else each for number, each in enumerate(text.splitlines()))


def only_person(ledger: Ledger) -> str:
    """The one person whose words stand in the ledger, empty if there are none or several."""
    people = {entry.speaker for entry in ledger} - NOBODY
    return people.pop() if len(people) == 1 else ""


def said_by(person: str) -> str:
    """The line that names the only person."""
    return f"Said by {name(person)} unless another is named."


def line(entry: Entry, zone: tzinfo = UTC, year: int | None = None, person: str = "") -> str:
    """One entry as the model reads it: `Ada guessed 28 May #57: text (because reason)`; what is not known is left out.

    A closed entry says how, unless it is plainly done; a certainty of `said` and the speaker `person` go without saying.
    """
    head = [name(entry.speaker) if entry.speaker != person else ""]
    if entry.certainty != "said":
        head.append(entry.certainty)
    if entry.closed and entry.status != "done":
        head.append(f"({entry.status})")
    head += [day(entry.date, zone, year) if entry.date else "", references(entry)]
    words = " ".join(filter(None, head))
    text = f"{entry.text} (because {entry.reason})" if entry.reason else entry.text
    return f"{words}: {text}" if words else text


def numbered(ledger: Ledger) -> str:
    """The ledger as the summariser reads it: `12 | kind | speaker | certainty | #57 | text | because reason | status`, one entry a line."""
    return "\n".join(map(_numbered, ledger))


def _numbered(entry: Entry) -> str:
    parts = [str(entry.number), entry.kind, name(entry.speaker) or "?", entry.certainty, references(entry) or "?", entry.text]
    if entry.reason:
        parts.append(f"because {entry.reason}")
    if entry.status != "open":
        parts.append(entry.status)
    return " | ".join(parts)


def references(entry: Entry) -> str:
    """Its sources in short: `#57,61,70-74`, positions in the session; ids where the positions are not known."""
    if entry.places:
        return f"#{','.join(_spans(entry.places))}"
    return f"#{','.join(entry.sources)}" if entry.sources else ""


def _spans(places: Sequence[int]) -> Iterator[str]:
    ordered = sorted(set(places))
    start = 0
    for index in range(1, len(ordered) + 1):
        if index < len(ordered) and ordered[index] == ordered[index - 1] + 1:
            continue
        run = ordered[start:index]
        yield from [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
        start = index


def day(at: float, zone: tzinfo, year: int | None) -> str:
    """`28 May`, with its year unless that is `year`."""
    local = datetime.fromtimestamp(at, zone)
    short = f"{local.day} {_MONTHS[local.month - 1]}"
    return short if local.year == year else f"{short} {local.year}"


def name(speaker: str) -> str:
    """A speaker's name without what would end the head of a line."""
    return _NAME_MARKS.sub(" ", speaker).strip()[:_LONGEST_NAME].strip()


def to_json(ledger: Ledger) -> str:
    return json.dumps([asdict(entry) for entry in ledger], ensure_ascii=False)


def from_json(text: str) -> Ledger:
    """The inverse of `to_json`. Entries of older ledgers, which had no number, get the next free ones.

    Raises ValueError for anything that is no ledger.
    """
    items = json.loads(text)
    if not isinstance(items, list) or not all(isinstance(item, dict) and isinstance(item.get("text"), str) for item in items):
        raise ValueError("a ledger is a list of entries")
    return with_numbers(tuple(map(_entry, items)))


def with_numbers(ledger: Ledger) -> Ledger:
    """The ledger with a number of its own for each entry that has none."""
    free = next_number(ledger)
    numbered: list[Entry] = []
    for entry in ledger:
        numbered.append(entry if entry.number else replace(entry, number=free))
        free += not entry.number
    return tuple(numbered)


def next_number(ledger: Ledger) -> int:
    return max((entry.number for entry in ledger), default=0) + 1


_FIELDS = frozenset(field.name for field in fields(Entry))


def _entry(item: dict[str, Any]) -> Entry:
    known = {name: value for name, value in item.items() if name in _FIELDS}
    known["kind"] = known["kind"] if known.get("kind") in KINDS else "fact"
    known["certainty"] = known["certainty"] if known.get("certainty") in CERTAINTIES else "said"
    return Entry(**{**known, "sources": tuple(known.get("sources", ())), "places": tuple(known.get("places", ()))})
