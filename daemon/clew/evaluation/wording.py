"""Comparing words, numbers and names without the compactor's own rules, so that the measure does not flatter what it measures."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_SAME = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "–": "-", "—": "-", "\u00ad": None})
_LETTER = "0-9A-Za-z_À-ɏ"
_INFLECTED = re.compile(rf"[{_LETTER}]*[A-Za-zÀ-ɏ]{{5,}}\Z")
_WORD = re.compile(rf"[{_LETTER}]+|[^\W{_LETTER}]")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\d\.)\s+|(?<=[。！？])|\n+")

NEGATION = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|nor|without|cannot|nicht|nie|niemals|kein\w*|ohne|nichts|niemand|weder"
    r"|n'\w+|pas|jamais|rien|aucun\w*|sans|ne|no|nunca|jamás|nada|nadie|ning[uú]n\w*|tampoco|sin|ni"
    r"|nigdy|żad\w*|bez|nikt\w*|nic|ani)\b|n't\b"
    r"|ない|ません|ずに|なし|禁止|不|没|別|别|勿|无|未|非|莫",
    re.IGNORECASE,
)
"""A negation in one of the languages of the corpus."""


def plain(text: str) -> str:
    """`text` with one form of each character, quotation mark, dash and space, in lower case."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_SAME).casefold().split())


@lru_cache(maxsize=16_384)
def _pattern(wanted: str) -> re.Pattern[str]:
    words = plain(wanted)
    before = rf"(?<![{_LETTER}])" if re.match(rf"[{_LETTER}]", words) else ""
    after = rf"(?![{_LETTER}])" if re.search(rf"[{_LETTER}]\Z", words) else ""
    if re.match(r"\d", words):
        before += r"(?<!\d[.,:/])"
    if re.search(r"\d\Z", words):
        after += r"(?![.,:/]\d)"
    if _INFLECTED.match(words) and not NEGATION.fullmatch(words):
        after = ""  # "restart" is found in "restarting"
    return re.compile(before + re.escape(words) + after)


def holds(text: str, wanted: str) -> bool:
    """Whether `text` (as `plain` gives it) holds these words: whole ones, and numbers that go no further to either side."""
    return _pattern(wanted).search(text) is not None


def satisfies(text: str, need: Iterable[Iterable[str]]) -> bool:
    """Whether `text` (as `plain` gives it) holds one of each group."""
    return all(any(holds(text, each) for each in group) for group in need)


def sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def shared(quote: str, text: str) -> float:
    """The share of the words of `quote` (of its characters, where it has no Latin letters) that stand in `text`."""
    units = set(_WORD.findall(plain(quote)))
    there = set(_WORD.findall(plain(text)))
    return len(units & there) / len(units) if units else 0.0
