"""What of a conversation must survive a compaction, sentence by sentence, told by the words alone. Pure.

Constraints and refusals, corrections, decisions, open tasks and questions, promises, exact identifiers, errors, preferences; each
with its speaker and how sure they were. The words that tell them are in `phrases`, the identifiers in `identifiers`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from clew.context import clauses, languages, phrases, weighing
from clew.context.dates import passed
from clew.context.identifiers import Identifier, identifiers
from clew.context.ledger import Certainty, Kind
from clew.context.redact import redact
from clew.context.sentences import sentences
from clew.context.steps import Steps, finish
from clew.context.summarise import speaker
from clew.context.text import pairs
from clew.context.weighing import MUST
from clew.messages import Block, File, Message, Role, Text, ToolResult

MAX_CHARS = 20_000
"""Characters of one message that are looked through, half of them from each end."""
MAX_SENTENCES = 120
"""Sentences of one message that are looked at, from its beginning and its end."""
OPENING = 5
"""The first messages of a session, in which people say what it is for."""
STEP = 20
MAX_STATEMENTS = 40
"""Statements of one message that must survive, the weightiest."""
MAX_OUTCOMES = 2
"""The same of a tool's result."""
STEM = 5
"""Letters by which two forms of a word are told to be the same, their endings aside."""
_ENDINGS = ("ings", "ing", "ed", "es", "en", "s", "e")

_CHATTER = re.compile(
    r"\W*(?:ok(?:ay)?|thanks?(?: you)?|thx|hi|hello|hey|sure|great|nice|cool|lol|haha|yes|no|yep|nope|danke|hallo|gut|super|ja|nein|merci"
    r"|oui|non|gracias|sí|si|grazie|obrigad[oa]|sim|bedankt|dank je|dzięki|tak|спасибо|да|нет|хорошо|ок)\b[^\w]*(?:\w+\W*){0,2}\Z"
    r"|\W*(?:谢谢|谢了|好的|好吧|ありがとう(?:ございます)?|はい|了解です?)\W*\Z",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？]\W*\Z|か。?\Z|吗。?\Z|呢。?\Z")
_LONGEST_ANSWER = 5
"""Words of a reply that says nothing without the question before it."""
_ANSWER = phrases.DECISION << phrases.HINT
_LONGEST_JOINED = 240
"""Characters of two sentences that are one statement."""
_FRAGMENT = 2
"""Content words, its identifiers aside, up to which a sentence only gives the figure for the one before it."""
_FEW = 5
"""Content words of a sentence that gives the figures for what the one before it names."""
_RULE = phrases.PROHIBITION | phrases.DUTY | phrases.LIMITS
_ACKNOWLEDGEMENT = 8
"""Content words up to which a reply does not answer a request but takes note of it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message as far as the ledger is concerned. place: its position in the session. failed: the result of a tool that failed.
    overheard: a line of a group that was not for clew: it binds nobody here.
    """

    text: str
    speaker: str = ""
    role: Role = "user"
    id: str = ""
    place: int = 0
    at: float = 0.0
    failed: bool = False
    overheard: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence, word for word, and what it is. does: bits of `phrases`. stems: of its content words. also: a second source."""

    said: Said
    text: str
    does: int
    identifiers: tuple[Identifier, ...]
    stems: frozenset[str]
    certainty: Certainty
    kind: Kind = "fact"
    weight: int = 0
    also: Said | None = None

    @property
    def must(self) -> bool:
        return self.weight >= MUST


@dataclass(frozen=True, slots=True)
class Heard:
    """Messages in order, their statements in order, and the languages, as bits, that they are in."""

    said: tuple[Said, ...]
    statements: tuple[Statement, ...]
    languages: int


def said(row: Message, known: Collection[str] = ()) -> Said:
    """What was said in a message, redacted. known: secrets of this installation."""
    text = "\n".join(filter(None, map(_words, row.blocks)))
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS // 2]}\n{text[-MAX_CHARS // 2 :]}"
    failed = any(result.is_error for result in row.results)
    return Said(redact(text, known), speaker(row), row.role, row.id, row.seq, row.at, failed, row.overheard)


def _words(block: Block) -> str:
    match block:
        case Text(text) | ToolResult(text=text):
            return text
        case File():
            return block.line
    return ""


def heard(conversation: Iterable[Said]) -> Heard:
    """Every sentence that says something, weighed by how much it binds. Linear in the length of the texts."""
    return finish(hearing(conversation))


def hearing(conversation: Iterable[Said]) -> Steps[Heard]:
    """The same in steps of one message or `STEP` sentences each."""
    told: list[Said] = []
    texts: list[list[str]] = []
    counts: list[list[dict[int, int]]] = []
    for source in conversation:
        told.append(source)
        texts.append(_worth(source.text))
        counts.append([languages.counts(text) for text in texts[-1]])
        yield
    totals = [_added(each) for each in counts]
    usual = _spoken(totals)
    found: list[list[Statement]] = []
    for source, own, count, total in zip(told, texts, counts, totals, strict=True):
        within = languages.within(total, usual)
        found.append([])
        for place, text in enumerate(own):
            found[-1].append(_statement(source, text, within | languages.foreign(count[place], within)))
            if place % STEP == 0:
                yield
    joined = [_answering(found, place, each) for place, each in enumerate(told)]
    joined = [_joined(each) if source.role != "tool" else each for source, each in zip(told, joined, strict=True)]
    joined = [list(map(_aiming, each)) if _opens(source) else each for source, each in zip(told, joined, strict=True)]
    now = max((each.at for each in told), default=0.0)
    statements: list[Statement] = []
    for place in range(len(joined)):
        statements += _weightiest(_weighed(joined, place, now))
        yield
    return Heard(tuple(told), tuple(statements), usual)


def _worth(text: str) -> list[str]:
    found = [sentence for sentence in sentences(text) if not _CHATTER.match(sentence)]
    half = MAX_SENTENCES // 2
    return found if len(found) <= MAX_SENTENCES else [*found[:half], *found[-half:]]


def _added(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for count in counts:
        for bit, number in count.items():
            total[bit] = total.get(bit, 0) + number
    return total


def _spoken(counts: Iterable[Mapping[int, int]]) -> int:
    """The languages that a conversation is held in, as bits, from the counts of its messages."""
    total = _added(counts)
    most = max(total.values(), default=0)
    return sum(bit for bit, number in total.items() if 2 * number >= most) or phrases.ALL


def _statement(source: Said, text: str, within: int) -> Statement:
    does = clauses.read(text, within)
    asked = bool(_ASKED.search(text))
    certainty: Certainty = "asked" if asked else _certainty(does)
    return Statement(source, text, does, tuple(identifiers(text)), content(text), certainty)


def _certainty(does: int) -> Certainty:
    if does & phrases.HYPOTHETICAL or (does & phrases.CONDITION and does & phrases.CONDITIONAL):
        return "hypothetical"
    return "guessed" if does & phrases.HEDGE else "said"


def content(text: str) -> frozenset[str]:
    """The stems of the words that carry a text; pairs of characters where words are not parted."""
    unspaced = not text.isascii() and phrases.CJK.search(text) is not None
    words = phrases.words(text)
    if not unspaced:
        return frozenset(filter(None, map(_stem, words)))
    found = set()
    for word in words:
        found.update((pairs(word) or [word]) if phrases.CJK.search(word) else [_stem(word)])
    return frozenset(filter(None, found))


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """The stem of a folded word that carries something, empty for others."""
    if word.isdigit():
        return word
    if len(word) < 3 or phrases.is_common(word):
        return ""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word[: -len(ending)][:STEM]
    return word[:STEM]


def _weighed(found: Sequence[Sequence[Statement]], place: int, now: float) -> list[Statement]:
    return [_aged(_weigh(each, _answered(found, place, each)), now) for each in found[place]]


def _aged(each: Statement, now: float) -> Statement:
    vague, named = weighing.fades(each.does, each.kind, each.identifiers)
    if not (vague or named) or not passed(named, each.said.at, now, vague=vague):
        return each
    return replace(each, weight=int(each.weight * weighing.PASSED))


def _weigh(each: Statement, answered: bool) -> Statement:
    words = len(each.stems)
    kind, weight = weighing.weigh(each.text, each.does, each.identifiers, each.certainty, words, each.said.role, failed=each.said.failed)
    if answered and each.said.role == "user" and kind in ("question", "request", "task"):
        weight *= 0.5
    heavy = max(int(weight), min(words, 12))
    if each.said.overheard:
        heavy = min(heavy, MUST - 1)
    return Statement(each.said, each.text, each.does, each.identifiers, each.stems, each.certainty, kind, heavy, each.also)


def _weightiest(each: Sequence[Statement]) -> Sequence[Statement]:
    """All of them, at most so many of one message with the weight of what must survive."""
    most = MAX_OUTCOMES if each and each[0].said.role == "tool" else MAX_STATEMENTS
    must = sorted((place for place, statement in enumerate(each) if statement.must), key=lambda place: -each[place].weight)
    light = set(must[most:])
    return [replace(statement, weight=MUST - 1) if place in light else statement for place, statement in enumerate(each)]


def _opens(source: Said) -> bool:
    return source.role == "user" and 0 < source.place <= OPENING


def _aiming(each: Statement) -> Statement:
    """A statement at the beginning of a session: what is wanted, or is to be by a day, is what the session is for."""
    dated = each.does & phrases.DEADLINE or any(identifier.kind == "date" for identifier in each.identifiers)
    aims = each.certainty == "said" and (dated or phrases.does(each.does, phrases.GOAL))
    return replace(each, does=each.does | phrases.GOAL) if aims else each


# Sentences that belong together ----------------------------------------------------------------------------------


def _joined(own: Sequence[Statement]) -> list[Statement]:
    """The statements of a message, those that say nothing without the one before them joined with it."""
    found: list[Statement] = []
    for each in own:
        both = _both(found[-1], each) if found and _leans(each, found[-1]) else None
        if both is not None and both.text in " ".join(each.said.text.split()):  # nothing stood between them
            found[-1] = both
        else:
            found.append(each)
    return found


def _leans(each: Statement, before: Statement) -> bool:
    """Whether a sentence is the reason, the figure or the rule for what the one before it names."""
    if each.certainty != before.certainty or each.certainty == "asked" or len(before.text) + len(each.text) > _LONGEST_JOINED:
        return False
    if each.does & phrases.BECAUSE:
        return phrases.does(before.does, phrases.DECISION)
    if each.does & phrases.REFERS and (each.does & _RULE or (each.identifiers and len(each.stems) <= _FEW)):
        return True
    if before.does & _RULE and clauses.denies_only(each.text):
        return True
    if each.certainty != "said" and len(before.stems) <= _FRAGMENT:
        return True  # a bare guess and what it is about
    return bool(each.identifiers) and not each.does & _RULE and _only_figures(each) and not before.identifiers


def _only_figures(each: Statement) -> bool:
    figures = frozenset().union(*(content(identifier.text) for identifier in each.identifiers if identifier.kind not in ("quote", "name")))
    return bool(figures) and len(each.stems - figures) < _FRAGMENT


def _both(first: Statement, second: Statement) -> Statement:
    between = "" if first.text[-1:] in "。！？" else " "
    figures = dict.fromkeys((*first.identifiers, *second.identifiers))
    text = f"{first.text}{between}{second.text}"
    return replace(first, text=text, does=first.does | second.does, identifiers=tuple(figures), stems=first.stems | second.stems)


# Questions and answers -------------------------------------------------------------------------------------------


def _answered(found: Sequence[Sequence[Statement]], place: int, asked: Statement) -> bool:
    """Whether the assistant replied to the matter itself: what was only noted, put off or asked back is still open."""
    if asked.certainty != "asked" and not asked.does & phrases.TASK:
        return False
    reply = next((each for each in found[place + 1 : place + 4] if each and each[0].said.role != "tool"), ())
    if not reply or reply[0].said.role != "assistant" or any(each.does & (phrases.PROMISE | phrases.OPEN) for each in reply):
        return False
    stems = frozenset().union(*(each.stems for each in reply))
    return len(stems) > _ACKNOWLEDGEMENT and bool(stems & asked.stems) and not _later(asked)


def _later(asked: Statement) -> bool:
    """Whether a request names a time: it is not done by being answered."""
    return asked.certainty != "asked" and any(identifier.kind in ("date", "time") for identifier in asked.identifiers)


def _answering(found: Sequence[list[Statement]], place: int, source: Said) -> list[Statement]:
    """A person's few words in answer to a question, joined with that question where they choose from it or give a figure."""
    own = found[place]
    if source.role != "user" or place == 0 or len(own) != 1 or weighing.length(source.text) > _LONGEST_ANSWER:
        return own
    before = found[place - 1]
    if not before or before[-1].said.role != "assistant" or before[-1].certainty != "asked" or own[0].certainty == "asked":
        return own
    question, answer = before[-1], own[0]
    chosen = _ANSWER if question.stems & answer.stems else 0
    if not chosen and not answer.identifiers:
        return own
    text = f"{question.text} – {answer.text}"
    return [replace(answer, text=text, stems=question.stems | answer.stems, does=answer.does | chosen, also=question.said)]


def weight_of(text: str, speaker: str, at: float, now: float) -> int:
    """The weight of a text by itself, said by `speaker` at `at`, at the time `now` (seconds since the epoch)."""
    weight, vague, named = _worth_of(text, "assistant" if speaker == "assistant" else "tool" if speaker == "tool" else "user")
    if (vague or named) and passed(named, at, now, vague=vague):
        return int(weight * weighing.PASSED)
    return weight


def forget() -> None:
    """Forget the weights of texts that were asked for before."""
    _worth_of.cache_clear()


@lru_cache(maxsize=4096)
def _worth_of(text: str, role: Role) -> tuple[int, bool, tuple[str, ...]]:
    within = languages.within(languages.counts(text), phrases.ALL)
    source = Said(text, role=role)
    each = _weigh(_statement(source, text, within), answered=False)
    return each.weight, *weighing.fades(each.does, each.kind, each.identifiers)
