"""The contract of a compaction: what must survive stands in the summary, word for word and within its size. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clew.context.evidence import Claim, Evidence, holds, normal, sources
from clew.context.grounding import BINDING, word_for_word
from clew.context.ledger import Entry, Kind, section
from clew.context.steps import Steps
from clew.context.survival import OPENING, Statement, weight_of
from clew.context.tokens import estimate
from clew.context.weighing import MUST

SHORT_SUMMARY = 400
"""Tokens up to which a summary may be longer than what it replaces (promise 17)."""
STEP = 10
"""Statements that are looked at in one step."""
LONGEST_LINE = 300
"""Characters of several statements that share a line."""
COVERED = 0.75
"""Of a statement's content words, the part that an entry shares which stands for it, beside its identifiers and all that binds."""

_ERROR = re.compile(
    r"\A\s*(?:"
    r"<!doctype html|<html|"
    r"(?:api |http |internal server |unexpected |connection |upstream connect )?error\s*(?::|\d|or disconnect|\Z)|"
    r"(?:http(?:/[\d.]+)? )?(?:5\d\d|429)\b[ :-]*(?:internal|bad gateway|service|gateway|too many|overloaded|server error|\Z)|"
    r"(?:(?:i'm |i am )?sorry\b.{0,40})?"
    r"\bi(?:'m| am)? (?:sorry|unable to|can(?:no|')t (?:help|assist|comply|summari[sz]e|do that|provide))|"
    r"prompt is too long|not logged in|invalid api key|you've hit your)",
    re.IGNORECASE | re.DOTALL,
)


def _is_json_object(text: str) -> bool:
    """An API's error, most often: a summary is lines of text."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def refusal(answer: str) -> str:
    """Why a summariser's answer is none, in words; empty if it may be one."""
    if not answer.strip():
        return "the summary is empty"
    return "the summary is an error text" if _ERROR.match(answer) or _is_json_object(answer) else ""


def room(budget: int, replaced: str) -> int:
    """Tokens of a summary that takes the place of `replaced`: the budget, and beyond `SHORT_SUMMARY` never more than it had."""
    return min(budget, max(SHORT_SUMMARY, estimate(replaced)))


class Index:
    """Entries by their sources and by their words, for asking whether one of them says something already."""

    def __init__(self, entries: Iterable[Entry], claims: Mapping[int, Claim]) -> None:
        self._entries: dict[int, Entry] = {}
        self._texts: dict[int, str] = {}
        self._claims = dict(claims)
        self._by_source: dict[str, list[int]] = defaultdict(list)
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        for entry in entries:
            self.put(entry, claims[entry.number])

    def put(self, entry: Entry, claim: Claim) -> None:
        """Add an entry, or give the one with its number another text."""
        number = entry.number
        self._entries[number], self._claims[number], self._texts[number] = entry, claim, normal(claim.text)
        for source in entry.sources:
            self._by_source[source].append(number)
        for stem in claim.stems:
            self._by_stem[stem].append(number)

    def covers(self, statement: Statement) -> bool:
        """Whether an entry says what a statement says, as surely and as bindingly, with every identifier in it."""
        text = normal(statement.text)
        near = {number for source in sources(statement) for number in self._by_source.get(source.id, ())}
        if any(holds(self._texts[number], text) for number in near):
            return True
        counts: Counter[int] = Counter(number for stem in statement.stems for number in set(self._by_stem.get(stem, ())))
        least = max(1.0, COVERED * len(statement.stems))
        return any(self._says(number, statement) for number, count in counts.items() if count >= least)

    def _says(self, number: int, statement: Statement) -> bool:
        entry, claim, text = self._entries[number], self._claims[number], self._texts[number]
        if entry.certainty != statement.certainty or (claim.does ^ statement.does) & BINDING:
            return False
        if entry.closed and statement.said.id not in entry.sources:
            return False
        whole = {normal(each.text) for each in claim.identifiers}
        return all(normal(each.text) in whole if each.strong else holds(text, normal(each.text)) for each in statement.identifiers)

    def misrendered(self, statement: Statement, among: Iterable[int]) -> Entry | None:
        """Of these entries, one that stands on the statement's message and says less than half something else."""
        cited = {number for source in sources(statement) for number in self._by_source.get(source.id, ())}
        for number in among:
            stems = self._claims[number].stems
            if number in cited and stems and 2 * len(stems & statement.stems) >= len(stems) and self._entries[number].kind != "narrative":
                return self._entries[number]
        return None


@dataclass(frozen=True, slots=True)
class Enforced:
    """Entries by number, and the weights of those that came from the messages as they are."""

    entries: Mapping[int, Entry]
    weights: Mapping[int, int]


def enforced(
    entries: Mapping[int, Entry], fresh: Sequence[int], free: int, claims: Mapping[int, Claim], evidence: Evidence
) -> Steps[Enforced]:
    """The entries with everything that must survive: what none of them says is added from its source, or takes the place of a rendering.

    fresh: numbers of the entries that the summariser added; free: the next number.
    """
    index = Index(entries.values(), claims)
    unsettled = list(fresh)
    result, weights = dict(entries), dict[int, int]()
    for place, statement in enumerate(evidence.statements):
        if place % STEP == 0:
            yield
        if not statement.must or index.covers(statement):
            continue
        before = index.misrendered(statement, unsettled)
        if before is not None:
            unsettled.remove(before.number)
            entry = word_for_word(before, statement)
        else:
            entry = entry_of(statement, free)
            free += 1
        result[entry.number] = entry
        weights[entry.number] = max(statement.weight, weights.get(entry.number, 0))
        index.put(entry, evidence.claim(entry.text))
    return Enforced(result, weights)


def joined(entries: Mapping[int, Entry], fresh: Container[int], weights: Mapping[int, int]) -> tuple[tuple[Entry, ...], dict[int, int]]:
    """The entries, those new ones that must survive and stand on one message in one line where they may share it: a line's head is dear.

    fresh: the numbers of new entries. weights: how much each binds, by its number; in those returned a line binds as its weightiest part.
    """
    result: list[Entry] = []
    bound = dict(weights)
    open_line = False
    for entry in entries.values():
        new = entry.number in fresh and weights[entry.number] >= MUST
        if new and open_line and _share(result[-1], entry):
            last = result.pop()
            bound[last.number] = max(bound[last.number], weights[entry.number])
            entry = replace(last, kind=entry.kind if last.kind == "fact" else last.kind, text=f"{last.text} {entry.text}")
        result.append(entry)
        open_line = new
    return tuple(result), bound


def _share(last: Entry, entry: Entry) -> bool:
    """Whether two entries may share a line: of one message, kind and certainty. A fact goes with everything."""
    if len(last.text) + len(entry.text) >= LONGEST_LINE or last.reason or "narrative" in (last.kind, entry.kind):
        return False
    if last.kind != entry.kind and "fact" not in (last.kind, entry.kind):
        return False
    return (last.sources, last.certainty, last.speaker, last.status) == (entry.sources, entry.certainty, entry.speaker, entry.status)


def entry_of(statement: Statement, number: int) -> Entry:
    """A statement as an entry."""
    blank = Entry(statement.kind, "", number=number)
    return replace(word_for_word(blank, statement), kind=statement.kind)


# What leaves first -----------------------------------------------------------------------------------------------

BINDING_KINDS: frozenset[Kind] = frozenset(
    {
        "constraint",
        "correction",
        "goal",
        "task",
        "request",
        "decision",
        "next_step",
        "promise",
        "error",
        "preference",
        "question",
        "identifier",
    }
)
"""Kinds that have to survive whatever their words say: the summariser may know better. Which of them leave first is told by the words."""
GOAL = 24
"""What a goal that was told at the beginning weighs more."""
FADING, MOST_FADED = 2 * 86_400.0, 20
"""Seconds in which a guess or an error loses a point, and how many it loses at most."""
LEAST = 12
"""What an entry of such a kind weighs at least."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Entries that stay and entries that leave, both in their order."""

    kept: tuple[Entry, ...]
    left: tuple[Entry, ...]


def fitted(entries: Sequence[Entry], budget: int, cost: Callable[[Entry], int], weight: Callable[[Entry], int]) -> Fitted:
    """The entries that fit into `budget` tokens: what binds most stays, of what binds alike the newer.

    cost: tokens of an entry's line; headings count too. weight: how much an entry binds, see `binding`.
    """
    kept: set[int] = set()
    titles: set[str] = set()
    total = 0
    for entry in sorted(entries, key=lambda each: (weight(each), each.date, each.number), reverse=True):
        title = section(entry)
        needed = cost(entry) + (0 if title in titles else estimate(f"## {title}\n"))
        if total + needed > budget:
            continue
        total += needed
        kept.add(entry.number)
        titles.add(title)
    return Fitted(tuple(entry for entry in entries if entry.number in kept), tuple(entry for entry in entries if entry.number not in kept))


def binding(entry: Entry, now: float, weight: int | None = None) -> int:
    """How long an entry stays when there is not enough room.

    The narrative leaves first, then what is closed. now: seconds since the epoch; what was to be by then binds less. weight: of its
    words, None where it is not known yet.
    """
    if entry.kind == "narrative":
        return 0
    if entry.closed:
        return 1
    if weight is not None:
        return weight
    weight = weight_of(entry.text, entry.speaker, entry.date, now)
    weight = max(weight, LEAST) if entry.kind in BINDING_KINDS else weight
    return weight + _aim(entry, now) - _faded(entry, now)


def _aim(entry: Entry, now: float) -> int:
    """What the goal of a session weighs more than its words, as long as its day has not come: by themselves they do not tell it."""
    if entry.kind != "goal" or not entry.places or entry.places[0] > OPENING:
        return 0
    then, today = (weight_of(entry.text, entry.speaker, entry.date, at) for at in (entry.date, now))
    return GOAL if today >= then else 0


def _faded(entry: Entry, now: float) -> int:
    """What a guess or an error has lost of its weight since: it was settled by now, more often than not."""
    settles = entry.kind == "error" or entry.certainty == "guessed"
    return min(int((now - entry.date) / FADING), MOST_FADED) if settles else 0


def must(entry: Entry) -> bool:
    """Whether an entry has to survive."""
    open_and_told = entry.kind != "narrative" and not entry.closed
    return open_and_told and (entry.kind in BINDING_KINDS or weight_of(entry.text, entry.speaker, entry.date, entry.date) >= MUST)
