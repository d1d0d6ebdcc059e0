"""How a compaction revises the rolling summary: from the summariser's answer to the next ledger. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from clew.context.ledger import Entry, Ledger, next_number
from clew.context.operations import Operation, parse
from clew.context.redact import redact
from clew.context.view import Rendered
from clew.messages import Message


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one entry. text: what it says now, or said last; before: what it said earlier, where that differs; why: in words."""

    number: int
    kind: str
    text: str
    sources: tuple[str, ...]
    before: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a revision did, entry by entry."""

    kept: tuple[Change, ...] = ()
    added: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    dropped: tuple[Change, ...] = ()


def revise(ledger: Ledger, demoted: Sequence[Rendered], answer: str, known: Collection[str] = ()) -> tuple[Ledger, Report]:
    """The ledger after the summariser answered to the newly demoted messages, and what was done to it.

    The answer is read as operations on the ledger; entries that it does not name stay as they are. An answer without any is one
    narrative, which takes the place of the previous one. `known`: secrets of this installation, which it must not hold.
    """
    rows = [row for message in demoted for row in message.rows]
    text = redact(answer.strip(), known)
    operations = parse(text)
    revised = _applied(ledger, operations, rows) if operations else _narrated(ledger, text, rows)
    why = {each.number: each.reason for each in operations if each.verb == "drop" and each.reason}
    return revised, compare(ledger, revised, why)


def compare(before: Ledger, after: Ledger, why: Mapping[int, str] = {}) -> Report:
    """What differs between two revisions of a ledger; `why`: reasons by the number of an entry."""
    old, new = ({entry.number: entry for entry in each} for each in (before, after))
    both = [(old[entry.number], entry) for entry in after if entry.number in old]
    return Report(
        kept=tuple(_change(now) for was, now in both if was == now),
        added=tuple(_change(entry, why=why) for entry in after if entry.number not in old),
        changed=tuple(_change(now, was, why=why) for was, now in both if was != now),
        dropped=tuple(_change(entry, why=why) for entry in before if entry.number not in new),
    )


def _change(entry: Entry, before: Entry | None = None, why: Mapping[int, str] = {}) -> Change:
    earlier = before.text if before is not None and before.text != entry.text else ""
    return Change(entry.number, entry.kind, entry.text, entry.sources, earlier, why.get(entry.number, ""))


def _narrated(ledger: Ledger, text: str, rows: Sequence[Message]) -> Ledger:
    others = tuple(each for each in ledger if each.kind != "narrative")
    return (*others, _standing(Entry("narrative", " ".join(text.split()), number=next_number(ledger)), rows))


def _applied(ledger: Ledger, operations: Sequence[Operation], rows: Sequence[Message]) -> Ledger:
    entries = {entry.number: entry for entry in ledger}
    free = next_number(ledger)
    for each in operations:
        cited = [row for row in rows if str(row.seq) in each.sources or row.id in each.sources]
        entry = entries.get(each.number)
        if each.verb == "add":
            entries[free] = _standing(_new(each, free), cited)
            free += 1
        elif entry is None or each.verb == "keep":
            continue
        elif each.verb == "drop":
            del entries[entry.number]
        elif each.verb == "close":
            entries[entry.number] = _standing(replace(entry, status=each.status), cited)
        else:
            changed = replace(entry, text=each.text or entry.text, reason=each.reason or entry.reason, status=each.status or entry.status)
            entries[entry.number] = _standing(changed, cited)
    return tuple(entries.values())


def _new(added: Operation, number: int) -> Entry:
    kind, certainty, status = added.kind or "fact", added.certainty or "said", added.status or "open"
    return Entry(kind, added.text, added.reason, added.speaker, certainty, status, number=number)


def _standing(entry: Entry, rows: Sequence[Message]) -> Entry:
    """The entry with these messages among its sources; its date is that of the newest."""
    if not rows:
        return entry
    sources = tuple(dict.fromkeys((*entry.sources, *(row.id for row in rows))))
    places = tuple(dict.fromkeys((*entry.places, *(row.seq for row in rows)))) if len(entry.places) == len(entry.sources) else ()
    return replace(entry, sources=sources, places=places, date=max(row.at for row in rows))
