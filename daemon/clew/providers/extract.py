"""Summaries without a model: the sentences that carry facts, word for word. Pure and deterministic."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.context.tokens import estimate

NOTHING = "="
"""The answer of a summariser that has nothing to add."""
LONGEST_SENTENCE = 600
"""Characters of a sentence; a longer run of text is parted at a space."""
MAX_CHARS = 200_000
"""Characters of one message that are read."""

_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])")
_MOST_PARTS = 20
"""Abbreviations in one sentence that are believed."""
_LONGEST_ABBREVIATION = 8
_ABBREVIATED = re.compile(r"(?:\b(?:[A-Za-z]|e\.g|i\.e|z\.B|d\.h|bzw|ca|Dr|Mr|Mrs|Ms|Nr|No|St|vs|etc|usw|approx))\.$")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBER = re.compile(r"[0-9]+(?:[.,:/-][0-9]+)*")
_CAPITAL = re.compile(r"(?<=[\w,;:] )[^\W\d_a-z][\w-]+")
_IDENTIFIER = re.compile(r"`[^`\n]{1,100}`|\b\w+[_/@.-]\w[\w/@.-]*|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}[0-9-]*\b|\"[^\"\n]{2,80}\"")
_DECISION = re.compile(
    r"\b(?:decid|agree|chose|choose|settle|prefer|favou?rite|must|should|shall|will|won['’]t|always|deadline|due|promis|plan"
    r"|remember|remind|important|because|instead|called|named?|allerg|password|moved?|changed?|switch|cancel|confirm"
    r"|i am|i['’]m|my|our|we|todo|entschied|beschloss|beschlossen|vereinbar|einigt|lieber|lieblings|soll|muss|müssen|werde|immer"
    r"|wichtig|weil|stattdessen|heißt|heiße|termin|frist|merk|erinner|mein|unser)\w*",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|cannot|\w+n['’]t|nicht|nie|niemals|kein\w*|nichts|ohne"
    r"|ne|pas|jamais|sin|nunca|non|mai|não|niet|geen|не|нет|никогда)\b|不|没|ない|ません",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"\s*(?:ok(?:ay)?|thanks?(?: you)?|thx|hi|hello|hey|sure|great|nice|cool|lol|haha|danke|hallo|gut|super)\b[^\w]*(?:\w+\W*){0,3}\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """A message to be summarised. by_model: the model's own words, which weigh less than a person's."""

    text: str
    speaker: str = ""
    id: str = ""
    by_model: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    said: str
    text: str
    score: float
    place: int


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text`, unchanged but for the white space around and inside them."""
    for paragraph in text[:MAX_CHARS].splitlines():
        parts: list[str] = []
        for piece in _END.split(" ".join(paragraph.split())):
            parts.append(piece)
            if len(parts) == _MOST_PARTS or not _ABBREVIATED.search(piece[-_LONGEST_ABBREVIATION:]):
                yield from _pieces(" ".join(filter(None, parts)))
                parts = []
        yield from _pieces(" ".join(parts))


def _pieces(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST_SENTENCE:
        cut = sentence.rfind(" ", 1, LONGEST_SENTENCE) + 1 or LONGEST_SENTENCE
        yield sentence[:cut].strip()
        sentence = sentence[cut:]
    if sentence:
        yield sentence


def score(sentence: str) -> float:
    """How much a sentence looks like a fact: numbers, names, identifiers, decisions and negations count for it."""
    if _CHATTER.match(sentence):
        return 0.0
    words = len(_WORD.findall(sentence))
    points = (
        2.0 * min(len(_NUMBER.findall(sentence)), 3)
        + 1.0 * min(len(_CAPITAL.findall(sentence)), 3)
        + 1.5 * min(len(_IDENTIFIER.findall(sentence)), 3)
        + 1.5 * min(len(_DECISION.findall(sentence)), 2)
        + 2.0 * bool(_NEGATION.search(sentence))
    )
    if sentence.endswith(("?", "？")):
        points *= 0.5
    return points / (1.0 + max(0, words - 25) / 25)


def extract(messages: Sequence[Said], before: Sequence[str], max_tokens: int) -> str:
    """The best sentences, as lines that add them to the summary, in at most `max_tokens` tokens (estimated).

    before: lines of the current summary; what they hold is not added again. Sentences stand in the order in which they were said;
    none is cut, so that no negation is lost. `=` if there is nothing to say.
    """
    old = [line.casefold() for line in before]
    new = [line for line in _candidates(messages) if not any(line.said.casefold() in each for each in old)]
    return "\n".join(line.text for line in _best(new, max_tokens)) or NOTHING


def _candidates(messages: Sequence[Said]) -> list[_Line]:
    found: dict[str, _Line] = {}
    weighed: list[tuple[float, str, str]] = []
    for message in messages:
        weight = 0.6 if message.by_model else 1.0
        for sentence in sentences(message.text):
            line = f"+ fact | {message.speaker or '?'} | said | {f'#{message.id}' if message.id else '?'} | {sentence}"
            weighed.append((weight * score(sentence), sentence, line))
    worth = any(points > 0 for points, _, _ in weighed)
    for place, (points, sentence, text) in enumerate(weighed):
        if points > 0 or not worth:
            found.setdefault(sentence.casefold(), _Line(sentence, text, points, place))
    return list(found.values())


def _best(lines: Sequence[_Line], room: int) -> list[_Line]:
    """The lines of the highest score that fit into `room` tokens, the later of two equal ones, in their order."""
    kept: list[_Line] = []
    for line in sorted(lines, key=lambda each: (-each.score, -each.place)):
        if _cost(line) <= room:
            kept.append(line)
            room -= _cost(line)
    return sorted(kept, key=lambda each: each.place)


def _cost(line: _Line) -> int:
    return estimate(f"{line.text}\n")
