"""A summary without a model: the same statements that a summary has to keep, as the lines of an answer. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Iterator

from clew.context import phrases
from clew.context.evidence import Claim, Evidence, gathered, sources
from clew.context.ledger import Entry, Ledger
from clew.context.operations import NOTHING
from clew.context.steps import Steps, finish
from clew.context.survival import Heard, Statement
from clew.context.tokens import estimate
from clew.context.verdicts import finishes

LEAST_WEIGHT = 4
"""Of a statement that is worth a line where there is room."""


def extract(ledger: Ledger, heard: Heard, room: int) -> str:
    """`extracting`, all at once."""
    return finish(extracting(ledger, heard, room))


def extracting(ledger: Ledger, heard: Heard, room: int) -> Steps[str]:
    """What the messages add to the ledger and what they close in it, as the lines of an answer of at most `room` tokens (estimated).

    The weightiest statements, in the order in which they were said; `=` if there is nothing to say.
    """
    evidence = yield from gathered(heard)
    known = {entry.text.casefold() for entry in ledger}
    lines = list(_closing(ledger, evidence))
    room -= sum(estimate(f"{line}\n") for line in lines)
    chosen: list[tuple[int, str]] = []
    said: set[str] = set(known)
    for place, statement in sorted(enumerate(heard.statements), key=lambda each: (-each[1].weight, -each[0])):
        yield
        line = _added(statement)
        cost = estimate(f"{line}\n")
        if statement.weight < LEAST_WEIGHT and chosen:
            break
        if cost <= room and statement.text.casefold() not in said:
            said.add(statement.text.casefold())
            chosen.append((place, line))
            room -= cost
    return "\n".join([*lines, *(line for _, line in sorted(chosen))]) or NOTHING


def _closing(ledger: Ledger, evidence: Evidence) -> Iterator[str]:
    done = [each for each in evidence.statements if each.does & (phrases.DONE | phrases.CORRECTION)]
    for entry in ledger:
        if entry.closed or entry.kind == "narrative" or not done:
            continue
        claim = evidence.claim(entry.text)
        if (by := next((each for each in done if _ends(entry, claim, each)), None)) is not None:
            status = "done" if by.does & phrases.DONE else "corrected"
            yield f"x {entry.number} | {status} | {_references(by)}"


def _ends(entry: Entry, was: Claim, statement: Statement) -> bool:
    """Whether a statement finishes what is to be done, or gives another value to what an entry says."""
    if entry.kind in ("task", "request", "next_step", "promise", "error"):
        return finishes(entry, was, statement)
    if entry.kind not in ("fact", "identifier") or not statement.does & phrases.CORRECTION:
        return False
    old, new = ({identifier.kind for identifier in each.identifiers} for each in (was, statement))
    fresh = {each.text for each in statement.identifiers} - {each.text for each in was.identifiers}
    return bool(old & new) and bool(fresh) and 2 * len(was.stems & statement.stems) >= len(was.stems) and finishes(entry, was, statement)


def _added(statement: Statement) -> str:
    fields = (statement.kind, statement.said.speaker or "?", statement.certainty, _references(statement) or "?", statement.text)
    return f"+ {' | '.join(fields)}"


def _references(statement: Statement) -> str:
    return ",".join(f"#{each.place or each.id}" for each in sources(statement) if each.place or each.id)
