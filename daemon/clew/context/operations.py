"""The summariser's answer, line by line: what it wants added to the ledger, amended, closed and dropped. Pure.

    + kind | speaker | certainty | #source,#source | text | because reason
    ~ number | new text | #source
    x number | done | #source
    - number | why
    =                      (nothing changes)

Small models decorate such lines, forget fields and talk around them, so everything that can be understood is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.context.ledger import CERTAINTIES, KINDS, Certainty, Kind

Verb = Literal["add", "amend", "close", "drop", "keep"]

NOTHING = "="
"""The answer of a summariser that has nothing to change."""
MAX_CHARS = 100_000
"""Characters of an answer that are read; more is no summary."""
MAX_OPERATIONS = 400
_NEAR = 20
"""A line that says the same as one of so many before it is the stammering of a small model."""

_DECORATION = "*_`> \t"
_BULLET = re.compile(r"\A(?:[-*•·>]|\d{1,3}[.)])\s+(?=[*_`]*(?:\+|~|[x×]\s*#?\d|[-–—]\s*#?\d|(?:add|amend|close|drop)\b))", re.IGNORECASE)
_SIGNED = re.compile(
    r"\A[*_`]*(?P<sign>\+|~|[x×✗✓](?=[*_`\s|]*#?\d)|[-–—](?=[*_`\s|]*#?\d)"
    r"|(?:add|new|amend|change|update|close|resolve|drop|remove|delete|keep)\b)[*_`:\s|]*(?P<rest>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_VERBS: dict[str, Verb] = {
    **dict.fromkeys(("+", "add", "new"), "add"),
    **dict.fromkeys(("~", "amend", "change", "update"), "amend"),
    **dict.fromkeys(("x", "×", "✗", "✓", "close", "resolve"), "close"),
    **dict.fromkeys(("-", "–", "—", "drop", "remove", "delete"), "drop"),
    "keep": "keep",
}
_NUMBER = re.compile(r"\A#?(\d{1,9})(?=[*_`]*\s*(?:[|:]|\Z))[*_`\s|:]*")
_RESTATED = re.compile(r"\A(\d{1,9})\s*\|")
_SOURCES = re.compile(r"\A[\[(]?#[a-z0-9]{1,40}(?:[-–—,;\s]{1,3}#?[a-z0-9]{1,40})*[\])]?\Z", re.IGNORECASE)
_BARE_SOURCES = re.compile(r"\A[\[(]?\d{1,9}(?:[-–—,;\s]{1,3}\d{1,9})*[\])]?\Z")
_SOURCE = re.compile(r"#?([a-z0-9]{1,40})", re.IGNORECASE)
_SPAN = re.compile(r"#?(\d{1,9})\s*[-–—]\s*#?(\d{1,9})\Z")
_LONGEST_SPAN = 50
_REASON = re.compile(r"\A(?:because|reason|why)\b[:\s]*", re.IGNORECASE)
_LONGEST_STATUS = 24
_LONGEST_SPEAKER = 60

_KIND_NAMES: dict[str, Kind] = {
    "todo": "task",
    "action": "task",
    "action item": "task",
    "open task": "task",
    "open request": "request",
    "active request": "request",
    "rule": "constraint",
    "restriction": "constraint",
    "requirement": "constraint",
    "prohibition": "constraint",
    "open question": "question",
    "id": "identifier",
    "note": "fact",
    "info": "fact",
    "information": "fact",
    "tool outcome": "outcome",
    "result": "outcome",
    "problem": "error",
    "unresolved error": "error",
    "issue": "error",
    "commitment": "promise",
    "next": "next_step",
    "next step": "next_step",
    "summary": "narrative",
}
_CERTAINTY_NAMES: dict[str, Certainty] = {
    "stated": "said",
    "certain": "said",
    "guess": "guessed",
    "assumed": "guessed",
    "uncertain": "guessed",
    "hypothesis": "hypothetical",
    "question": "asked",
}
_STATUS_NAMES = {
    "open": "open",
    "active": "open",
    "in progress": "in progress",
    "in_progress": "in progress",
    "ongoing": "in progress",
    "blocked": "blocked",
    "waiting": "blocked",
    "done": "done",
    "closed": "done",
    "resolved": "done",
    "finished": "done",
    "completed": "done",
    "answered": "answered",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "lifted": "lifted",
    "corrected": "corrected",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of the answer. Empty fields were not given; `sources` are positions or ids as they were written."""

    verb: Verb
    number: int = 0
    kind: Kind | Literal[""] = ""
    text: str = ""
    reason: str = ""
    speaker: str = ""
    certainty: Certainty | Literal[""] = ""
    status: str = ""
    sources: tuple[str, ...] = ()


def parse(answer: str) -> list[Operation]:
    """The operations in an answer, in order; empty if there is none in it. Never fails."""
    found: list[Operation] = []
    whole = answer if len(answer) <= MAX_CHARS else answer[:MAX_CHARS].rpartition("\n")[0]
    for line in whole.splitlines():
        if (operation := _operation(line)) is not None and operation not in found[-_NEAR:]:
            found.append(operation)
            if len(found) == MAX_OPERATIONS:
                break
    return found


def _operation(line: str) -> Operation | None:
    line = _BULLET.sub("", line.strip().strip("|").strip("`> \t"))
    if line.startswith("**") and line.endswith("**") and line.count("**") == 2:
        line = line[2:-2]
    if line == NOTHING:
        return Operation("keep")
    if restated := _RESTATED.match(line):
        return _numbered("keep", int(restated[1]), line[restated.end() :])
    signed = _SIGNED.match(line)
    if signed is None:
        return None
    verb, rest = _VERBS[signed["sign"].lower()], signed["rest"]
    if verb == "add":
        return _added(rest)
    number = _NUMBER.match(rest)
    return _numbered(verb, int(number[1]), rest[number.end() :]) if number else None


def _added(rest: str) -> Operation | None:
    fields = _fields(rest)
    if len(fields) < 2:
        return None
    operation = _described("add", 0, fields)
    return operation if operation.text else None


def _numbered(verb: Verb, number: int, rest: str) -> Operation:
    fields = _fields(rest)
    if verb == "drop" and len(fields) >= 3 and _kind(fields[0]):
        verb = "keep"  # an entry of the list that was shown, with a bullet in front of it
    if verb in ("amend", "keep"):
        return _described(verb, number, fields)
    sources, words = _parted(fields)
    status = _STATUS_NAMES.get(words[0].lower(), words[0].lower()) if words and len(words[0]) <= _LONGEST_STATUS else ""
    if verb == "close":
        return Operation("close", number, status=status if status and status not in ("open", "in progress") else "done", sources=sources)
    return Operation("drop", number, reason=" ".join(words), sources=sources)


def _described(verb: Verb, number: int, fields: Sequence[str]) -> Operation:
    """An operation that holds an entry's fields, in their order or as far as they were given."""
    marked = any(map(_SOURCES.match, fields))
    rest = list(fields) if marked else [*_marked(fields[:-1]), *fields[-1:]]  # the last one is the text, be it a number
    kind = _kind(rest[0]) if len(rest) > 1 else ""
    if kind:
        rest.pop(0)
    speaker, certainty, sources = "", "", ()  # type: tuple[str, Certainty | Literal[""], tuple[str, ...]]
    unnamed: list[str] = []
    while len(rest) > 1 and not (certainty and sources):
        field = rest[0]
        if not certainty and (found := _certainty(field)):
            certainty = found
        elif not sources and (cited := _sources(field)):
            sources = cited
        elif not sources and len(field) <= _LONGEST_SPEAKER and _more_to_come(rest[1:]):
            unnamed.append("" if field in ("?", "-") else field)
        elif field.strip() in ("", "?", "-"):
            pass
        else:
            break
        rest.pop(0)
    if unnamed:
        speaker = unnamed[-1]
    reason, status = "", ""
    while len(rest) > 1:
        last = rest[-1]
        if not reason and _REASON.match(last):
            reason = _REASON.sub("", last)
        elif not status and last.lower() in _STATUS_NAMES:
            status = _STATUS_NAMES[last.lower()]
        elif not sources and (cited := _sources(last)):
            sources = cited
        elif last:
            break
        rest.pop()
    return Operation(verb, number, kind, _plain("|".join(rest)), _plain(reason), _plain(speaker), certainty, status, sources)


def _more_to_come(fields: Sequence[str]) -> bool:
    """Whether a certainty or sources stand in front of a text that follows: what comes before them is a kind or a speaker."""
    return any(_certainty(field) or _sources(field) for field in fields[:3][: len(fields) - 1])


def _parted(fields: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """(the sources, the words) of what stands behind a number."""
    sources: tuple[str, ...] = ()
    words = []
    for field in _marked(fields):
        if cited := _sources(field):
            sources += cited
        elif field:
            words.append(_plain(field))
    return sources, words


def _fields(text: str) -> list[str]:
    return [field.strip() for field in text.strip().strip("｜|").replace("｜", "|").split("|")]


def _marked(fields: Sequence[str]) -> list[str]:
    """The fields, with the mark of a source in front of bare numbers where no field has it."""
    if any(map(_SOURCES.match, fields)):
        return list(fields)
    return [f"#{field.strip('[]()')}" if _BARE_SOURCES.match(field) else field for field in fields]


def _kind(field: str) -> Kind | Literal[""]:
    word = field.strip(_DECORATION + ":[]()").lower().replace("-", " ")
    for form in (word, word.replace(" ", "_"), word.removesuffix("s"), word.removesuffix("s").replace(" ", "_")):
        if form in KINDS:
            return form  # type: ignore[return-value]
        if form in _KIND_NAMES:
            return _KIND_NAMES[form]
    return ""


def _certainty(field: str) -> Certainty | Literal[""]:
    word = field.strip(_DECORATION + "[]()").lower()
    return word if word in CERTAINTIES else _CERTAINTY_NAMES.get(word, "")  # type: ignore[return-value]


def _sources(field: str) -> tuple[str, ...]:
    return tuple(_cited(field)) if _SOURCES.match(field) else ()


def _cited(field: str) -> Iterator[str]:
    for part in re.split(r"[,;]|\s+(?=#)|(?<=\w)\s+(?=\d)", field.strip(" []()")):
        if span := _SPAN.match(part.strip()):
            first, last = int(span[1]), int(span[2])
            yield from map(str, range(first, min(last, first + _LONGEST_SPAN) + 1))
        elif source := _SOURCE.search(part):
            yield source[1]


def _plain(text: str) -> str:
    """One line without the marks that stood around it."""
    text = " ".join(text.split())
    for mark in ("**", "__", "`"):
        if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark) and text.count(mark) == 2:
            text = text[len(mark) : -len(mark)].strip()
    return text
