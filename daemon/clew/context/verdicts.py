"""What a summariser may do to an entry of the ledger: by its own word little, with a message that bears it out whatever that says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clew.context import phrases
from clew.context.evidence import Claim, Evidence, nearest_of
from clew.context.grounding import BINDING, differs, fault
from clew.context.ledger import Entry
from clew.context.survival import Said, Statement

_TO_DO = frozenset({"task", "request", "next_step", "promise", "error", "question", "goal"})
_CHANGES = phrases.CORRECTION | phrases.OBJECTION | phrases.DECISION | phrases.DONE


def amended(entry: Entry, was: Claim, text: str, cited: Sequence[Said], evidence: Evidence) -> tuple[Entry | None, str]:
    """The entry with a new text, or why not. was: its text until now, which counts as proven.

    What is added has to stand in the messages that are cited. What is left out or bound otherwise needs one that is about the entry
    and takes back, decides or finishes something.
    """
    if not cited:
        return None, "it names no new message"
    claim = evidence.claim(text)
    if wrong := fault(claim, cited, evidence, f"{entry.text} {entry.reason} {entry.speaker}"):
        return None, wrong
    source = nearest_of(claim, evidence.of(cited))
    if source is None:
        return None, "the message it names says nothing of it"
    lost = [each.text for each in was.identifiers if each.text not in {other.text for other in claim.identifiers}]
    rebound = (was.does ^ claim.does) & BINDING or claim.denials < was.denials or 4 * len(was.stems & claim.stems) < 3 * len(was.stems)
    if (lost or rebound) and not supersedes(was, source):
        return None, "it loses what still holds"
    if (was.does ^ claim.does) & BINDING and differs(claim, [source]):
        return None, "the message it names binds otherwise"
    told = replace(entry, text=text)
    return (replace(told, speaker=source.said.speaker, certainty=source.certainty) if lost or rebound else told), ""


def closed(entry: Entry, was: Claim, status: str, cited: Sequence[Said], evidence: Evidence) -> tuple[Entry | None, str]:
    """The entry with a closing status, or why not."""
    if any(finishes(entry, was, each) for each in evidence.of(cited)):
        return replace(entry, status=status), ""
    return None, "no message that it names says so"


def droppable(entry: Entry, was: Claim, must: bool, cited: Sequence[Said], evidence: Evidence) -> bool:
    """Whether the entry may go: it need not survive, it is closed, or a message takes it back."""
    return not must or entry.closed or entry.kind == "narrative" or any(supersedes(was, each) for each in evidence.of(cited))


def finishes(entry: Entry, was: Claim, statement: Statement) -> bool:
    """Whether a statement says that there is nothing more to do about an entry."""
    if statement.certainty != "said" or statement.said.id in entry.sources:
        return False
    if entry.kind not in _TO_DO:
        return supersedes(was, statement)
    if statement.does & (phrases.PROMISE | phrases.OPEN | phrases.NEGATION):
        return False
    shared = len(was.stems & statement.stems)
    if entry.kind == "question":
        return shared >= _most(was, 2) and not statement.does & phrases.TASK
    return bool(statement.does & phrases.DONE) and shared >= _most(was, 2)


def supersedes(was: Claim, statement: Statement) -> bool:
    """Whether a statement of somebody takes back or replaces what an entry says."""
    if statement.certainty != "said" or statement.said.role == "tool" or not statement.does & _CHANGES:
        return False
    if statement.does & phrases.PROHIBITION and was.does & phrases.PROHIBITION:
        return False  # a reminder of it
    return len(was.stems & statement.stems) >= _most(was, 2)


def _most(was: Claim, least: int) -> int:
    """Content words that have to be shared: so many, or half of them where that is less."""
    return max(1, min(least, (len(was.stems) + 1) // 2))
