"""How a compaction revises the rolling summary: from the summariser's answer to the next ledger. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from clew.context import contract
from clew.context.evidence import Claim, Evidence, gathered
from clew.context.grounding import grounded, narrated
from clew.context.ledger import Entry, Ledger, line, next_number, only_person, said_by
from clew.context.operations import Operation, parse
from clew.context.redact import redact
from clew.context.steps import Steps, finish
from clew.context.survival import Heard, Said, hearing, said
from clew.context.tokens import estimate
from clew.context.verdicts import amended, closed, droppable
from clew.context.view import Rendered

NO_ROOM = "no room"
"""Why an entry left that nobody asked to drop."""
GLIMPSE = 80
"""Characters that stand for messages in which nothing is worth a line."""
NARRATIVE_SHARE = 4
"""A narrative takes at most one part in so many of the summary."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one entry. text: what it says now, or said last; before: what it said earlier, where that differs; why: in words.

    number: 0 where it never stood in the ledger.
    """

    number: int
    kind: str
    text: str
    sources: tuple[str, ...]
    before: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a revision did, entry by entry. dropped: what left the summary, or had to be in it and found no room. refused: what the
    summariser wanted and the messages do not bear out."""

    kept: tuple[Change, ...] = ()
    added: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    dropped: tuple[Change, ...] = ()
    refused: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """How large a summary may be. tokens: estimated, held messages aside; zone and year: of the dates in its lines, see `ledger.render`."""

    tokens: int = 1500
    zone: tzinfo = UTC
    year: int | None = None

    def cost(self, entry: Entry, person: str = "") -> int:
        """Tokens of an entry's line. person: whose name goes without saying."""
        return estimate(f"- {line(entry, self.zone, self.year, person)}\n")


USUAL_SIZE = Size()


def hear(demoted: Sequence[Rendered], known: Collection[str] = ()) -> Steps[Heard]:
    """What was said in rendered messages. known: secrets of this installation, which are left out."""
    return hearing(said(row, known) for message in demoted for row in message.rows)


def revise(ledger: Ledger, heard: Heard, answer: str, known: Collection[str] = (), *, size: Size = USUAL_SIZE) -> tuple[Ledger, Report]:
    """The ledger after the summariser answered to the newly demoted messages, and what was done to it.

    The answer is read as operations on the ledger, and carried out as far as the messages bear them out; entries that it does not name
    stay as they are. An answer without any is one narrative, which takes the place of the previous one. Then what must survive and is
    missing is added, and what finds no room leaves, see `contract`. `known`: secrets of this installation, which it must not hold.
    """
    return finish(revising(ledger, heard, answer, known, size=size))


def revising(
    ledger: Ledger, heard: Heard, answer: str, known: Collection[str] = (), *, size: Size = USUAL_SIZE
) -> Steps[tuple[Ledger, Report]]:
    """`revise` in steps of at most a few milliseconds each."""
    text = redact(answer.strip(), known)
    draft = _Draft(ledger, (yield from gathered(heard)))
    operations = parse(text)
    for each in operations:
        draft.carry_out(each)
        yield
    if not operations:
        draft.narrate(text, heard.said, size)
        yield
    revised = yield from contract.enforced(draft.entries, draft.fresh, draft.free, draft.claims, draft.evidence)
    now = max((each.at for each in heard.said), default=0.0)
    weights = {number: contract.binding(entry, now, revised.weights.get(number)) for number, entry in revised.entries.items()}
    entries, weights = contract.joined(revised.entries, revised.entries.keys() - {entry.number for entry in ledger}, weights)
    fits = _fitted(entries or _glimpse(heard.said, size), size, lambda entry: weights.get(entry.number, 0))
    yield
    return _numbered(ledger, fits.kept), draft.report(fits)


def _glimpse(conversation: Sequence[Said], size: Size) -> Ledger:
    """Where nothing in these messages is worth a line, the beginning of the first that has words: no summary is empty."""
    first = next((each for each in conversation if each.text.strip()), None)
    if first is None:
        return ()
    text = " ".join(first.text.split())[:GLIMPSE]
    entry = _standing(Entry("narrative", text, speaker=first.speaker, number=1), [first])
    while text and size.cost(entry) > size.tokens // 2:
        text = text[: len(text) // 2]
        entry = replace(entry, text=f"{text}…")
    return (entry,) if text else ()


def _fitted(entries: Ledger, size: Size, weight: Callable[[Entry], int]) -> contract.Fitted:
    person = only_person(entries)
    fits = contract.fitted(entries, _beside(person, size), lambda entry: size.cost(entry, person), weight)
    if person or not (left := only_person(fits.kept)):
        return fits
    return contract.fitted(entries, _beside(left, size), size.cost, weight)  # others left: the line that names who stays takes room


def _beside(person: str, size: Size) -> int:
    """Tokens for the entries beside the line that says whose they are. person: empty where there is none."""
    return size.tokens - (estimate(f"{said_by(person)}\n") if person else 0)


class _Draft:
    """A ledger while it is revised. fresh: the numbers of entries that the summariser added."""

    def __init__(self, ledger: Ledger, evidence: Evidence) -> None:
        self.before = ledger
        self.evidence = evidence
        self.entries = {entry.number: entry for entry in ledger}
        self.claims: dict[int, Claim] = {entry.number: evidence.claim(entry.text) for entry in ledger}
        self.free = next_number(ledger)
        self.fresh: list[int] = []
        self.why: dict[int, str] = {}
        self.refused: list[Change] = []

    def carry_out(self, each: Operation) -> None:
        cited = self.evidence.cited(each.sources)
        if each.verb == "add":
            self._add(each, cited)
        elif each.number in self.entries and each.verb != "keep":
            self._change(self.entries[each.number], each, cited)

    def _add(self, each: Operation, cited: Sequence[Said]) -> None:
        wanted = Entry(each.kind or "fact", each.text, each.reason, each.speaker, status=each.status or "open", number=self.free)
        entry, why = grounded(wanted, cited, each.certainty, self.evidence)
        if why and (entry is None or entry.text != wanted.text):
            self.refused.append(_change(replace(wanted, number=0), why=why))
        if entry is not None and not self._known(entry):
            self._new(entry)

    def _known(self, entry: Entry) -> bool:
        return any(entry.text == each.text and entry.certainty == each.certainty and not each.closed for each in self.entries.values())

    def _change(self, entry: Entry, each: Operation, cited: Sequence[Said]) -> None:
        was, changed, why = self.claims[entry.number], entry, ""  # type: tuple[Claim, Entry | None, str]
        if each.verb == "drop":
            if droppable(entry, was, contract.must(entry), cited, self.evidence):
                del self.entries[entry.number]
                self.why[entry.number] = each.reason
                return
            changed, why = None, "it has to survive"
        elif each.verb == "close":
            changed, why = closed(entry, was, each.status, cited, self.evidence)
        elif each.text:
            changed, why = amended(entry, was, each.text, cited, self.evidence)
        if changed is None:
            self.refused.append(_change(replace(entry, text=each.text or entry.text), entry, f"{each.verb}: {why}"))
        else:
            self._put(_standing(changed, cited))

    def narrate(self, text: str, conversation: Sequence[Said], size: Size) -> None:
        """Take an answer that is no list for what it is; the one before it goes."""
        for entry in [each for each in self.before if each.kind == "narrative"]:
            del self.entries[entry.number]
            self.why[entry.number] = "another one took its place"
        entry = _standing(Entry("narrative", narrated(text, self.evidence, conversation), number=self.free), conversation)
        if entry.text != " ".join(text.split()):
            self.refused.append(_change(replace(entry, number=0, text=text), why="not all of it stands in the messages"))
        if entry.text and size.cost(entry) * NARRATIVE_SHARE <= size.tokens:
            self._new(entry)

    def _new(self, entry: Entry) -> None:
        self._put(entry)
        self.fresh.append(entry.number)
        self.free += 1

    def _put(self, entry: Entry) -> None:
        self.entries[entry.number] = entry
        self.claims[entry.number] = self.evidence.claim(f"{entry.text} {entry.reason}".strip())

    def report(self, fits: contract.Fitted) -> Report:
        numbers = {entry.number for entry in self.before}
        for entry in fits.left:
            self.why.setdefault(entry.number, NO_ROOM)
        report = compare(self.before, _numbered(self.before, fits.kept), self.why)
        missed = tuple(_change(replace(entry, number=0), why=NO_ROOM) for entry in fits.left if entry.number not in numbers)
        return replace(report, dropped=(*report.dropped, *missed), refused=tuple(self.refused))


def compare(before: Ledger, after: Ledger, why: Mapping[int, str] = {}) -> Report:
    """What differs between two revisions of a ledger; `why`: reasons by the number of an entry."""
    old, new = ({entry.number: entry for entry in each} for each in (before, after))
    both = [(old[entry.number], entry) for entry in after if entry.number in old]
    return Report(
        kept=tuple(_change(now) for was, now in both if was == now),
        added=tuple(_change(entry) for entry in after if entry.number not in old),
        changed=tuple(_change(now, was, why.get(now.number, "")) for was, now in both if was != now),
        dropped=tuple(_change(entry, why=why.get(entry.number, "")) for entry in before if entry.number not in new),
    )


def in_all(before: Ledger, after: Ledger, reports: Iterable[Report]) -> Report:
    """The report of revisions that followed each other, from the ledger before the first to the one after the last."""
    reports = list(reports)
    why = {change.number: change.why for each in reports for change in (*each.changed, *each.dropped) if change.number}
    numbers = {entry.number for entry in before}
    missed = [change for each in reports for change in each.dropped if change.number not in numbers]
    refused = tuple(change for each in reports for change in each.refused)
    report = compare(before, after, why)
    return replace(report, dropped=(*report.dropped, *missed), refused=refused)


def _change(entry: Entry, before: Entry | None = None, why: str = "") -> Change:
    earlier = before.text if before is not None and before.text != entry.text else ""
    return Change(entry.number, entry.kind, entry.text, entry.sources, earlier, why)


def _standing(entry: Entry, cited: Sequence[Said]) -> Entry:
    """The entry with these messages among its sources; its date is that of the newest."""
    if not cited:
        return entry
    sources = tuple(dict.fromkeys((*entry.sources, *(each.id for each in cited))))
    places = tuple(dict.fromkeys((*entry.places, *(each.place for each in cited)))) if len(entry.places) == len(entry.sources) else ()
    return replace(entry, sources=sources, places=places, date=max(each.at for each in cited))


def _numbered(before: Ledger, kept: Iterable[Entry]) -> Ledger:
    """The entries, new ones numbered on from those of the ledger before: what found no room takes none."""
    known = {entry.number for entry in before}
    free = next_number(before)
    numbered: list[Entry] = []
    for entry in kept:
        numbered.append(entry if entry.number in known else replace(entry, number=free))
        free += entry.number not in known
    return tuple(numbered)
