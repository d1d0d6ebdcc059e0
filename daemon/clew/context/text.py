"""Text as it comes in, as it is compared and as it is indexed.

The index column is tokenised by FTS5's `porter unicode61 remove_diacritics 2`. That tokenizer takes a run of Chinese or Thai for one
word and every mark for a gap, so the index text carries more than the message: overlapping pairs and single characters of such runs,
and identifiers both whole and in parts, behind the message's own words so that phrases stay whole.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from clew.context.redact import redact

INDEX_VERSION = 6
"""Changes whenever `index_text` or `tokens` gives different words, or the index is laid out otherwise; the store then builds it anew."""
SPOKEN_BY = "by:"
"""Stands in front of the words of a speaker's name where words are counted. No word of a text begins so."""
MAX_INDEX_CHARS = 200_000
"""Characters of a message that are indexed; above the default bound on a stored message."""
_LONGEST_KEY = 4_096
"""Characters behind those that are looked at too, so that no key is indexed by its beginning."""
MAX_WORD = 64
"""Characters of a word that count; the rest of a longer one (a base64 blob, one letter a million times) is dropped."""
STEMS = 8192
"""Words whose stem is remembered, about 200 bytes each: those that come often. A thread brings new names and numbers for ever."""

_UNWANTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_PIECE = re.compile(r".{1,1000}(?:\s|$)|.{1,1000}", re.DOTALL)
_UNSPACED = (
    "\u0900-\u0dff\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
"""A run of a script that has no spaces, joins particles on (Korean), or writes vowels as signs that FTS5 takes for gaps (of India)."""
WORD = re.compile(f"[^\\W_{_UNSPACED}]+")
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]{1,64}(?:[_-]{1,2}[^\W_]{1,64}){1,7}")
_CAMEL_WORD = re.compile(r"(?<![^\W_])[A-Za-z][A-Za-z0-9]{0,62}[a-z][A-Z][A-Za-z0-9]{0,62}")
_SIGNED = re.compile(r"(?<![^\W_])([a-z])(\+\+|#)(?!\w)")
_SIGN_NAMES = {"++": "plusplus", "#": "sharp"}
_UNWRITTEN = re.compile(  # points of Hebrew and Arabic; marks that no letter holds; what is not seen: soft hyphens, directions, variants
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u0300-\u036f\u00ad\u061c\u180b-\u180f\u200b\u200d-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_AROUND = "".join(map(chr, (0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF))) + "".join(
    sign for sign in map(chr, range(0x3001)) if sign.isspace()
)
_EMOJI = re.compile("[\u2600-\u27bf\u2b50-\u2b55\U0001f300-\U0001faff]")
_MARKER = re.compile(r"\[redacted(?:: [a-z ]{1,20})?\]")
_SUFFIXES = ("ations", "ation", "ingly", "edly", "ings", "ing", "ies", "ied", "ers", "es", "ed", "er", "ly", "s", "e", "y", "i")


def clean(text: str) -> str:
    """`text` without what no message should hold: control characters but newline and tab, lone surrogates, U+FFFE and U+FFFF.

    Line ends become newlines; everything else is kept as it was written. Never fails.
    """
    return _UNWANTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def first_word(text: str) -> tuple[str, str]:
    """(the first word, in lower case and of the usual width; what follows it). What is not seen around either is left out: keyboards and
    platforms put marks of direction around a line that runs the other way."""
    first, *rest = text.strip(_AROUND).split(maxsplit=1) or [""]
    return normalise(first.strip(_AROUND)[:MAX_WORD]), rest[0].strip(_AROUND) if rest else ""


def normalise(text: str) -> str:
    """`text` for comparing: compatibility forms folded (NFKC), case folded, without the points of Hebrew and Arabic, which few write.

    Marks that no letter holds (of `i̇`) and what is not seen do not count either, see NFKC_Casefold in https://unicode.org/reports/tr31/#R5.
    """
    if text.isascii():
        return text.lower()
    return _nfkc(_UNWRITTEN.sub("", _nfkc(text).casefold()))


def _nfkc(text: str) -> str:
    if len(text) <= 1000:
        return unicodedata.normalize("NFKC", text)
    # Normalising sorts runs of combining marks in quadratic time; pieces bound that.
    return "".join(unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(text))


def index_text(text: str) -> str:
    """The words under which a message is found: redacted, normalised and split, for the FTS5 column.

    The first `MAX_INDEX_CHARS` characters count, and of each word the first `MAX_WORD`.
    """
    source = _nfkc(_MARKER.sub(" ", redact(clean(text[: MAX_INDEX_CHARS + _LONGEST_KEY]))[:MAX_INDEX_CHARS]))
    plain = normalise(source)
    words = [word[:MAX_WORD] for word in WORD.findall(plain)]
    return "\n".join(part for part in (" ".join(words), " ".join(extra_words(source, plain) + emoji(plain))) if part)


def extra_words(source: str, plain: str) -> list[str]:
    """What a text is also found by: joined compounds, parts of camelCase, `C++` by name, pairs and characters of unspaced runs."""
    extra: list[str] = []
    if "-" in plain or "_" in plain:
        extra.extend(re.sub("[_-]", "", found)[:MAX_WORD] for found in _COMPOUND.findall(plain))
    if source != plain:  # letters that lost their case
        for found in _CAMEL_WORD.findall(source):
            extra.extend(part.lower() for part in _CAMEL.findall(found))
    if "++" in plain or "#" in plain:
        extra.extend(letter + _SIGN_NAMES[sign] for letter, sign in _SIGNED.findall(plain))
    for run in unspaced_runs(plain):
        extra.extend(pairs(run))
        extra.extend(letters(run))
    return extra


def unspaced_runs(plain: str) -> list[str]:
    """The runs of a text that `UNSPACED_RUN` describes; most texts are ASCII and have none."""
    return [] if plain.isascii() else UNSPACED_RUN.findall(plain)


def emoji(text: str) -> list[str]:
    """Words for the emoji of a text, which FTS5 takes for gaps."""
    return [] if text.isascii() else [f"emoji{ord(sign):x}" for sign in _EMOJI.findall(text)]


def letters(run: str) -> list[str]:
    """The characters of an unspaced run that count as letters or digits; vowel signs and tone marks do not."""
    return [c for c in run if c.isalnum()]


def pairs(run: str) -> list[str]:
    """The overlapping pairs of letters of an unspaced run, in order."""
    found = letters(run)
    return [a + b for a, b in pairwise(found)]


def telling_pairs(plain: str) -> set[str]:
    """The pairs of letters of a normalised text's unspaced runs that say something: those of hiragana alone are endings, as a rule."""
    return {pair for run in unspaced_runs(plain) for pair in pairs(run) if not all("\u3040" <= c <= "\u309f" for c in pair)}


def tokens(index_text: str) -> list[str]:
    """The words of an index text as the document-frequency table counts them, in order and with repetitions.

    Coarser than the index's own stemmer: words that it joins are joined here too, as a rule, so a count is rather too high than too low.
    """
    return [stem(word) for word in index_text.split()]


@lru_cache(maxsize=STEMS)
def stem(word: str) -> str:
    """The lightly stemmed form of one normalised word: no diacritics, common English endings cut."""
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    if not (word.isascii() and word.isalpha()):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word
