"""How much of what must survive did, after one compaction of one thread."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.evaluation.invented import invented
from clew.evaluation.key import Item
from clew.evaluation.statement import Statement
from clew.evaluation.wording import NEGATION, holds, plain, satisfies, sentences, shared

Fate = Literal["kept", "listed", "lost"]
Told = Literal["right", "wrong", "untold"]
Fault = Literal["speaker", "certainty", "negation", "stale", "source", "invented"]
"""An entry that gives somebody else's name to what was said; a guess that became a fact, or the reverse; a rule without its "not";
what was done or corrected and stands there as if it were not; an entry that cites only messages that do not hold it; an entry with an
identifier, number, quoted name or negation that its sources do not hold."""
MOST = 0.6
"""The share of a rule's words that an entry repeats if it is the rule, less its "not"."""
FAULTS: tuple[Fault, ...] = ("speaker", "certainty", "negation", "stale", "source", "invented")
_HEDGED = ("guessed", "hypothetical")
_MODEL = frozenset({"assistant", "clew", "model", "tool"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one item. listed: it is not in the summary any more, but a report says that it was dropped. told: who said it."""

    item: Item
    fate: Fate
    told: Told


@dataclass(frozen=True, slots=True)
class Score:
    """One compaction's summary against the key: of the items behind the cut that still hold, what became of each; and the faults in it.

    faults: (which, the text of the entry or the id of the item).
    """

    verdicts: tuple[Verdict, ...]
    faults: tuple[tuple[Fault, str], ...]
    entries: int

    def count(self, fault: Fault) -> int:
        return sum(each == fault for each, _ in self.faults)


def score(
    key: Sequence[Item],
    found: Sequence[Statement],
    dropped: Sequence[str],
    texts: Mapping[int, str],
    speakers: Mapping[int, str],
    *,
    people: int,
) -> Score:
    """Score a summary.

    found: what it says. dropped: texts that the reports of this and earlier compactions list as dropped. texts: what was said in each
    message behind the cut (see `invented.said`). speakers: who wrote each of them. people: how many take part; where it is one, `user`
    names that one.
    """
    listed = [plain(text) for text in dropped]
    verdicts, faults = [], Counter[tuple[Fault, str]]()
    for item in key:
        if item.messages[0] not in texts:
            continue
        if item.until is not None and item.until in texts:
            if item.category == "task" and any(_open_task(each, item) for each in found):
                faults["stale", item.id] += 1
            continue
        carriers = _carriers(item, found)
        fate: Fate = "kept" if carriers else "listed" if any(satisfies(text, item.need) for text in listed) else "lost"
        named = {_told(each, item, speakers, people) for each in found if satisfies(each.words, item.need) and _cites(each, item)}
        told: Told = "wrong" if "wrong" in named else "right" if "right" in named else "untold"
        verdicts.append(Verdict(item, fate, told))
        faults.update((fault, item.id) for fault in _faults(item, found, carriers, told, texts))
    faults.update(("invented", each.text) for each in found if invented(each, texts))
    return Score(tuple(verdicts), tuple(faults), len(found))


def _carriers(item: Item, found: Sequence[Statement]) -> list[Statement]:
    """The statements in which an item survives as what it is; where its words are several sentences, these may be apart."""
    seen = [each for each in found if each.seen and not (each.closed and item.category in ("task", "constraint"))]
    if alone := [each for each in seen if _carries([each], item)]:
        return alone
    together = [each for each in seen if _cites(each, item)]
    return together if len(sentences(item.quote)) > 1 and _carries(together, item) else []


def _carries(together: Sequence[Statement], item: Item) -> bool:
    words = " ".join(each.words for each in together)
    return (
        satisfies(words, item.need)
        and satisfies(words, item.reason)
        and (item.category != "certainty" or any(_hedged(each, item) for each in together))
    )


def _hedged(statement: Statement, item: Item) -> bool:
    return statement.certainty in _HEDGED or any(holds(statement.words, each) for each in item.hedge)


def _cites(statement: Statement, item: Item) -> bool:
    return bool(statement.sources.intersection(item.messages))


def _grounded(statement: Statement, item: Item, texts: Mapping[int, str]) -> bool:
    """Whether what a statement cites holds the item: its own message, or another in which it was said again. Without sources all may."""
    if not statement.sources or _cites(statement, item):
        return True
    return satisfies(" ".join(texts.get(number, "") for number in statement.sources), item.need)


def _told(statement: Statement, item: Item, speakers: Mapping[int, str], people: int) -> Told:
    """Whether a statement that cites the item's message says who said it; where it cites others too, one of those who spoke will do."""
    name = plain(statement.speaker)
    if not name:
        return "untold"
    spoke = {plain(speakers[number]) for number in statement.sources if number in speakers}
    if people == 1 and spoke - _MODEL:
        spoke.add("user")
    return "right" if name in spoke else "wrong"


def _faults(item: Item, found: Sequence[Statement], carriers: Sequence[Statement], told: Told, texts: Mapping[int, str]) -> list[Fault]:
    faults: list[Fault] = ["speaker"] if told == "wrong" else []
    about = [each for each in found if _cites(each, item) and not each.closed]
    of_item = [each for each in about if satisfies(each.words, item.need)]
    if item.certainty is None:
        hardened = False
    elif item.certainty == "said":
        hardened = any(each.certainty in _HEDGED for each in of_item)
    else:
        hardened = any(each.certainty == "said" and not _hedged(each, item) for each in of_item)
    if hardened:
        faults.append("certainty")
    if item.category == "constraint" and any(_reversed(each, item) for each in about):
        faults.append("negation")
    if item.wrong and any(
        not each.closed and any(holds(each.words, wrong) for wrong in item.wrong) and not satisfies(each.words, item.need) for each in found
    ):
        faults.append("stale")
    if carriers and not any(_grounded(each, item, texts) for each in carriers):
        faults.append("source")
    return faults


def _reversed(statement: Statement, item: Item) -> bool:
    """Whether a statement says what a rule is about and leaves out its negation."""
    rest = [group for group in item.need if not any(NEGATION.search(each) for each in group)]
    about = bool(rest) and len(rest) < len(item.need) and satisfies(statement.words, rest)
    denies = satisfies(statement.words, item.need) or NEGATION.search(statement.words)
    return about and not denies and shared(item.quote, statement.words) >= MOST


def _open_task(statement: Statement, item: Item) -> bool:
    listed = statement.kind in ("task", "request") and not statement.closed
    return listed and _cites(statement, item) and satisfies(statement.words, item.need)
