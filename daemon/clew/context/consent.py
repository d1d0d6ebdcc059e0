"""Asking a person for a yes, and reading what they answer. Pure."""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.messages import ToolCall

QUESTION_CODE = 4
"""Characters of a question's id by which it is named."""
LONGEST_VALUE = 1_000
LONGEST_QUESTION = 3_000
"""Characters of one argument, and of all of them, in a question."""

_YES = (
    "yes, y, yeah, yep, sure, ok, okay, go ahead, do it, yes please, yes sure, yes do it, ok do it, ok go ahead, approve, approved, allow,"
    " allowed, ja, jo, jawohl, klar, gerne,"
    " ja bitte, mach das, in ordnung, oui, d'accord, vas-y, sí, si, claro, vale, dale, adelante, sim, pode, sì, certo, va bene, ja graag,"
    " tak, jasne, да, так, ано, ano, jasně, evet, olur, tamam, igen, kyllä, joo, ναι, כן, نعم, हाँ, हां, ya, vâng, có, はい, うん,"
    " いいよ, いいです, 是, 是的, 好, 好的, 可以, 行, 네, 예, 응, 좋아, 👍, ✅, 👌"
)
_NO = (
    "no, n, nope, nah, never, stop, don't, do not, better not, no thanks, not now, cancel, deny, denied, nein, ne, nee, nö, lieber nicht,"
    " auf keinen fall, non, surtout pas, não, no gracias, nej, nei, nie, нет, ні, не, hayır, nem, ei, όχι, לא, لا, नहीं, tidak, không,"
    " いいえ, だめ, やめて, 不, 不行, 不要, 不用, 아니, 아니요, 아뇨, 안돼, 👎, ❌, 🚫"
)
_ALWAYS = (
    "always, yes always, always allow, immer, ja immer, toujours, oui toujours, siempre, sí siempre, sempre, sim sempre, sì sempre, altijd,"
    " ja altijd, zawsze, всегда, да всегда, завжди, vždy, her zaman, いつも, 总是, 一直, 항상"
)
_GAPS = re.compile(r"[.,!?;:。、！？\"“”„()\[\]\s]+")
_LOOKS = re.compile("[\ufe0f\U0001f3fb-\U0001f3ff]")
"""Behind an emoji: that it is drawn as one, and the colour of its skin."""


def _plain(text: str) -> str:
    words = _LOOKS.sub("", unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    return " ".join(_GAPS.sub(" ", words).split())


Kind = Literal["yes", "no", "always"]
_PHRASES: tuple[tuple[Kind, str], ...] = (("yes", _YES), ("always", _ALWAYS), ("no", _NO))
_SAID: dict[str, Kind] = {_plain(phrase): kind for kind, phrases in _PHRASES for phrase in phrases.split(",")}
LONGEST_ANSWER = 60
"""Characters of a message that may be an answer."""
_CODE = re.compile(r"(?P<words>.+) (?P<code>[a-z2-7]{4})")


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody answered. code: of the question that they name, empty for none."""

    kind: Kind
    code: str = ""


def read_answer(text: str) -> Answer | None:
    """A message that is nothing but a yes or a no, in the common languages, perhaps with a question's code behind it; else None."""
    if len(text) > LONGEST_ANSWER:
        return None
    plain = _plain(text)
    if kind := _SAID.get(plain):
        return Answer(kind)
    coded = _CODE.fullmatch(plain)
    if coded and (kind := _SAID.get(coded["words"])):
        return Answer(kind, coded["code"])
    return None


def read_reaction(text: str) -> Kind | None:
    """An emoji that is a plain yes or no, or the word of a button; else None. No emoji means always."""
    said = read_answer(text)
    return said.kind if said is not None and not said.code else None


def question(calls: Sequence[ToolCall], code: str, lasts: str, behalf: str = "") -> str:
    """What a person is asked before `calls` are run, in Markdown: each tool with all its arguments, as code, so that no platform takes a
    link or other markup in them for such. (No line of them can end it: each begins otherwise.)

    lasts: how long the question is open, in words. behalf: who or what wants it, where that is not the person who is asked.
    """
    names = ", ".join(dict.fromkeys(call.name for call in calls))
    first = f"{behalf} needs your yes. May I call {names}?" if behalf else f"May I call {names}?"
    wanted = [line for call in calls for line in (f"{call.name}:", *_arguments(call.arguments))]
    text = "\n".join(wanted)
    if len(text) > LONGEST_QUESTION:
        text = f"{text[:LONGEST_QUESTION]}\n[… {len(text) - LONGEST_QUESTION:,} more characters, which you do not see here]"
    how = (
        f"Reply yes or no. “Always” is a yes for each later call of {names} there too."
        if behalf
        else (f"Reply yes or no. “Always” is a yes for each later call of {names} in this chat too.")
    )
    return f"{first}\n\n```\n{text}\n```\n\n{how} Without an answer within {lasts} it is a no. [{code}]"


def _arguments(arguments: str) -> list[str]:
    values = json.loads(arguments or "{}")
    return [f"- {_shown(name, 100)}: {_value(value)}" for name, value in values.items()] or ["- no arguments"]


def _value(value: object) -> str:
    return _shown(json.dumps(value, ensure_ascii=False), LONGEST_VALUE)


def _shown(text: str, limit: int) -> str:
    """On one line, with nothing in it that hides or turns round what stands beside it."""
    plain = "".join(char if unicodedata.category(char)[0] != "C" and char not in "\u2028\u2029" else f"\\u{ord(char):04x}" for char in text)
    return plain if len(plain) <= limit else f"{plain[:limit]} [… {len(plain) - limit:,} more characters, which you do not see here]"
