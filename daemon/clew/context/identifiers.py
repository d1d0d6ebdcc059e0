"""Exact identifiers in a text: what is worth nothing once a character of it is lost. Pure.

Paths, URLs, addresses, ids, hashes, versions, money, quantities, dates, times, quoted words, numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.context.phrases import LARGE_NUMBERS, MONTHS, NUMBERS, UNITS, fold, is_common, is_number
from clew.context.phrases import words as folded_words

Kind = Literal["url", "email", "path", "id", "version", "money", "date", "time", "quantity", "quote", "number", "word", "name"]

STRONG: frozenset[Kind] = frozenset({"url", "email", "path", "id", "version", "money"})
"""Kinds that hardly ever stand in small talk."""
MAX_IDENTIFIERS = 40
"""Identifiers of one sentence that count."""

_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff9f"
_RUN = re.compile(rf"[^\s{_CJK}]+|[{_CJK}]+")
_OUTSIDE = "\"'“”„«»‹›‘’`()[]{}<>,;:!?…*_|"
_BRACKET = re.compile(r"(?<=\w)\((?=[+-]?\d)")
"""A bracket that begins a number right behind a word."""
_CLOSING = frozenset(_OUTSIDE)
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S+\Z|www\.\S+\.\S+\Z", re.IGNORECASE)
_EMAIL = re.compile(r"(?:mailto:)?[\w.+-]+@[\w-]+(?:\.[\w-]+)+\Z")
_PATH = re.compile(
    r"(?:~|\.{1,2})?/[\w.~-]+(?:/[\w.@~+-]*)*/?\Z|[A-Za-z]:\\\S+\Z|[\w.-]+(?:/[\w.-]+){2,}/?\Z"
    r"|(?=\S*[A-Za-z])(?=\S*[\d_.-])\w[\w.-]*/\w[\w./-]*\Z"
)
_VERSION = re.compile(r"v?\d+\.\d+(?:\.\d+)+(?:[-+.]?[a-z0-9]+)*\Z|v\d+(?:\.\d+)*\Z", re.IGNORECASE)
_MONEY_SIGN = "€$£¥₽₹₩"
_MONEY = re.compile(rf"[{_MONEY_SIGN}]\d[\d.,'’]*[kKmM]?\Z|\d[\d.,'’]*[kKmM]?[{_MONEY_SIGN}]\Z|(?:EUR|USD|CHF|GBP)\d[\d.,']*\Z")
_CURRENCIES = """eur euro euros usd dollar dollars gbp pounds chf franken francs pln zl zlotych rub рублеи рубля руб jpy yen cny yuan reais
    pesos kr sek"""
_MONEY_WORDS = frozenset(_CURRENCIES.split()) | set(_MONEY_SIGN)
_CURRENCY_CODES = frozenset({"EUR", "USD", "GBP", "CHF", "PLN", "JPY", "CNY", "RMB"})
_TIME = re.compile(r"\d{1,2}[:.h]\d\d(?::\d\d)?(?:[ap]m|h|uhr)?\Z|\d{1,2}(?:[ap]\.?m\.?|h|uhr)\Z", re.IGNORECASE)
_TIME_WORDS = frozenset(["am", "pm", "a.m", "p.m", "uhr", "h", "o'clock", "oclock", "heures"])
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:T\S+)?\Z|\d{1,2}[./]\d{1,2}[./](?:\d{2,4})?\Z|\d{1,2}/\d{1,2}\Z|\d{4}/\d\d?/\d\d?\Z")
_DAY = re.compile(r"(?:\d{1,2})(?:st|nd|rd|th|er|º|ª|\.)?\Z")
_LONGEST_PHONE = 6
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_QUANTITY = re.compile(r"[<>~±≈]?\d[\d.,]*(?:%|°C|°F|°|‰|km/h|[kmcµ]?m²?|[kmµ]?g|[mcd]?l|[kMGT]i?B|[kMG]?Hz|[kMm]?W|kWh|m?[sV]|min|x|px)\Z")
_MEASURES = "% °c °f ° km m cm mm kg g mg l ml cl kb mb gb tb mib gib kwh kw w v hz mhz ghz km/h m² m2 ha px dpi mbit gbit ms s min std"
_UNIT_SIGNS = frozenset(_MEASURES.split())
_RATIO = re.compile(r"[a-zµ%€$°]{1,5}/[a-z0-9²³]{1,5}\Z")
_NUMBER = re.compile(r"[+-]?#?\d[\d.,:/'’-]*\Z")
_CLOCK = {
    "half": ("past", ""),
    "quarter": ("past", "to"),
    "halb": ("",),
    "viertel": ("vor", "nach", ""),
    "kwart": ("voor", "over"),
}
"""Words in front of a spoken time, and those between it and the number, if any."""
_CODE = re.compile(
    r"[\w.$-]+\(\)|[\w-]+\.[a-z][a-z0-9]{1,4}\Z|\w+(?:-\w+){2,}\Z|\S+@\S+:\S+\Z|--?[a-z][\w-]+(?:=\S+)?\Z"
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z|\w+(?:_\w+)+\Z|\w+::\w[\w:]*\Z",
    re.ASCII,
)
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+(?::\d+)?(?:/\S*)?\Z", re.IGNORECASE)
_HANDLE = re.compile(r"[@#][\w-]*[A-Za-z][\w:.-]*\Z")
_MIXED = re.compile(r"(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]+\Z")
_CAMEL = re.compile(r"[a-z]+[a-z0-9]*[A-Z]\w*\Z|[A-Z][a-z]+(?:[A-Z][a-z0-9]+)+\Z")
_ORDINAL = re.compile(r"\d{1,3}(?:st|nd|rd|th|er|e|ème|º|ª|te|ten|ter|de)\Z", re.IGNORECASE)
_ABBREVIATED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?\Z")
_QUOTED = re.compile(
    r"“([^”\n]{2,160})”|„([^“”\"\n]{2,160})[“”\"]|«\s?([^»\n]{2,160}?)\s?»|\"([^\"\n]{2,160})\"|`([^`\n]{1,160})`|「([^」\n]{1,160})」|『([^』\n]{1,160})』|《([^》\n]{1,160})》"
    r"|(?<![\w])'([^'\n]{2,80})'(?![\w])"
)
_NAMED = re.compile(
    r"\b(?:called|named|titled|heißt|heißen|genannt|namens|appelée?s?|nommée?s?|s['’]appelle|llamad[oa]s?|se llama|chiamat[oaie]|si chiama"
    r"|chamad[oa]s?|se chama|genaamd|heet|nazywa się|называется),?:?\s*\Z",
    re.IGNORECASE,
)
"""What stands in front of the name of something in quotation marks."""
_QUOTE_MARKS = frozenset("“„«\"`「『《'")
_SPECIAL = re.compile(r"[/@\\_#$]|[a-z][A-Z]|\w\.\w|\(\)|--\w|[A-Z]{2}|-\w+-\w")
"""What plain prose in ASCII has none of."""
_CJK_NUMBER = re.compile(
    r"(?:\d{2,4}年)?\d{1,2}月\d{1,2}[日号]|\d{2,4}年(?:\d{1,2}月)?|\d{1,2}[点點时時](?:\d{1,2}分|半)?"
    r"|[¥￥]?\d[\d,.]*\s?(?:万|萬|千|百|亿|億)?(?:元|円|块|塊|欧元|美元|人民币|％|%|人|个|個|センチ|ミリ|メートル|キロ|グラム|リットル|パーセント|ページ|番地|番線|番|丁目|号室|公里|公斤|分钟|分鐘|小时|小時|天|週|周|台|本|件|号|號|歳|岁|回|階|楼)?"
)


_CJK_MONEY = frozenset("块塊元圆円角")
_CJK_MEASURES = frozenset("亩畝斤公里米单單")
_CJK_NUMERAL = re.compile(
    "(?!千万[别別不勿要])[〇零一二三四五六七八九十百千万亿兩两]{2,}(?:[点點][〇零一二三四五六七八九]+)?[块塊元圆円角分亩畝个個单單斤公里米天年月日号號人次件盒箱罐瓶层層楼岁歲歳度度]?"
    "|[二三四五六七八九十两兩](?:[块塊元円角亩畝单單斤米件盒箱罐瓶层層楼岁歲歳度](?:[一二三四五六七八九半](?:[分角毛])?)?)"
)


@dataclass(frozen=True, slots=True)
class Identifier:
    """`text` as it stands in the sentence, single spaces between its words."""

    text: str
    kind: Kind

    @property
    def strong(self) -> bool:
        return self.kind in STRONG


def identifiers(sentence: str) -> list[Identifier]:
    """The identifiers of a sentence, in order, each once. Linear in its length; never fails."""
    found: dict[str, Identifier] = {}
    for text, kind in (*_quoted(sentence), *_in_runs(sentence), *_in_words(sentence)):
        if kind != "number" or not any(text in longer for longer in found):
            found.setdefault(text, Identifier(text, kind))
        if len(found) == MAX_IDENTIFIERS:
            break
    return list(found.values())


def _quoted(sentence: str) -> Iterator[tuple[str, Kind]]:
    if not _QUOTE_MARKS.isdisjoint(sentence):
        for match in _QUOTED.finditer(sentence):
            text = " ".join((match[match.lastindex or 0]).split())
            if text and not text.isspace():
                yield text, "id" if _NAMED.search(sentence[: match.start()]) else "quote"


def _in_runs(sentence: str) -> Iterator[tuple[str, Kind]]:
    if sentence.isascii() and not any(map(str.isdigit, sentence)) and not _SPECIAL.search(sentence):
        return
    if any("\u2e80" <= c <= "\uffef" for c in sentence):
        yield from _cjk_numbers(sentence)
    runs = _RUN.findall(_BRACKET.sub(" (", sentence) if "(" in sentence else sentence)
    cores = list(map(_core, runs))
    at = 0
    while at < len(runs):
        kind, used = _judged(cores, at)
        if kind:
            yield " ".join([*runs[at : at + used - 1], cores[at + used - 1]]).strip(_OUTSIDE).rstrip("."), kind
        at += used


def _core(run: str) -> str:
    """A run without the signs around it, with the dot at its end."""
    core = run.strip(_OUTSIDE)
    inner = core.rstrip(".")
    return inner.rstrip(_OUTSIDE) if inner[-1:] in _CLOSING else core


Judged = tuple[Kind | None, int]
"""(kind of the identifier that begins at a run, None for a plain word; runs in it)."""


def _judged(cores: Sequence[str], at: int) -> Judged:
    core = cores[at].rstrip(".")
    if core.isalpha() and (core.islower() or core[1:].islower() or len(core) == 1):
        return _month_first(cores, at) if at + 1 < len(cores) and cores[at + 1][:1].isdigit() else (None, 1)
    if not core:
        return None, 1
    if core[0].isdigit() or core[0] in _MONEY_SIGN or core[0] in "+-#<>~±≈" or core in _CURRENCY_CODES:
        kind, used = _number(cores, at)
        if kind:
            return kind, used
    return _named(core), 1


def _number(cores: Sequence[str], at: int) -> Judged:
    core = cores[at].rstrip(".")
    after = [fold(word).rstrip(".") for word in cores[at + 1 : at + 3]]
    first, second = (*after, "", "")[:2]
    if _MONEY.match(core):
        return "money", 1
    if core in _MONEY_SIGN or core in _CURRENCY_CODES:
        return ("money", 2) if _NUMBER.match(first) else (None, 1)
    if _DATE.match(cores[at]) or _DATE.match(core):
        return "date", 1
    if _VERSION.match(core):
        return "version", 1
    if core.startswith(("+", "00")) and (used := _numbers_behind(cores, at)) > 1:
        return "id", used
    if _DAY.match(cores[at]):
        if first in MONTHS:
            return "date", 3 if _YEAR.match(second) else 2
        if first in ("de", "of") and second in MONTHS:
            return "date", 3
    if _TIME.match(core):
        return "time", 1
    if _NUMBER.match(core):
        return _counted(cores, at, first)
    if _QUANTITY.match(core):
        return "quantity", 1
    return ("number", 1) if _ORDINAL.match(core) else (None, 1)


def _counted(cores: Sequence[str], at: int, unit: str) -> Judged:
    """A plain number by what stands behind it."""
    if unit in _TIME_WORDS:
        return "time", 2
    if unit in _MONEY_WORDS:
        return "money", 2
    if unit in UNITS or unit in _UNIT_SIGNS or _RATIO.match(unit):
        return "quantity", 2
    if at == 0 and len(cores[0]) <= 3 and cores[0].endswith("."):
        return None, 1  # the number of a list item
    return "number", 1


def _numbers_behind(cores: Sequence[str], at: int) -> int:
    """How many numbers follow each other, as those of a telephone number do."""
    used = 0
    while used < _LONGEST_PHONE and at + used < len(cores) and _NUMBER.match(cores[at + used].rstrip(".")):
        used += 1
    return used


def _month_first(cores: Sequence[str], at: int) -> Judged:
    """`May 5`, `May 5th, 2026`."""
    if fold(cores[at]).rstrip(".") in MONTHS and _DAY.match(cores[at + 1].rstrip(".")):
        return "date", 3 if len(cores) > at + 2 and _YEAR.match(cores[at + 2].rstrip(".")) else 2
    return None, 1


def _named(core: str) -> Kind | None:
    """The kind of one run that is no number; None for a plain word."""
    if "://" in core or core.startswith("www."):
        return "url" if _URL.match(core) else None
    if _VERSION.match(core):
        return "version"
    if "@" in core and _EMAIL.match(core):
        return "email"
    if ("/" in core or "\\" in core) and _PATH.match(core):
        return "path"
    if _ABBREVIATED.match(core):
        return None
    if "." in core and _HOST.match(core) and not core.endswith("...") and _dotted(core):
        return "id"
    if _HANDLE.match(core) or (_CODE.match(core) and not _hyphened(core)):
        return "id"
    if core.isalnum() and core.isalpha():
        if core.isascii() and _CAMEL.match(core):
            return "name" if core[0].isupper() else "id"
        return None
    return "id" if _MIXED.match(core) and not _ORDINAL.match(core) else None


def _hyphened(core: str) -> bool:
    """Whether a run is made of ordinary words, as `day-to-day` is."""
    parts = core.lower().split("-")
    return len(parts) > 2 and any(is_common(part) or is_number(part) for part in parts)


def _dotted(core: str) -> bool:
    """Whether the part behind the last dot may be the end of a name; `done.Next` is a sentence without its space."""
    last = core.partition("/")[0].partition(":")[0].rpartition(".")[2]
    return last.islower() or last.isdigit()


def _in_words(sentence: str) -> Iterator[tuple[str, Kind]]:
    """Numbers that are written out, where there is more to them than a small count: `fourteen`, `six forty-five`."""
    if NUMBERS.isdisjoint(folded_words(sentence)):
        return
    words = sentence.split()
    numbers = [_written_out(word) for word in words]
    at = 0
    while at < len(words):
        if used := _clock(words, numbers, at):
            yield " ".join(words[at : at + used]).strip(_OUTSIDE).rstrip("."), "time"
            at += used
            continue
        while at + used < len(words) and numbers[at + used]:
            used += 1
        if used > 1 or (used and numbers[at] > 1):
            yield " ".join(words[at : at + used]).strip(_OUTSIDE).rstrip("."), "word"
        at += max(used, 1)


def _clock(words: Sequence[str], numbers: Sequence[int], at: int) -> int:
    """Words of a time of day that begins here and is spoken, as `half past eight` or `halb acht`; 0 for none."""
    between = _CLOCK.get(fold(words[at]))
    if between is None:
        return 0
    used = 2 if at + 1 < len(words) and fold(words[at + 1]) in between else 1
    return used + 1 if (used == 2 or "" in between) and at + used < len(words) and numbers[at + used] else 0


def _written_out(word: str) -> int:
    """0 for no number, 1 for a small one, 2 for others."""
    if word[:1].isdigit() or len(word) < 3:
        return 0
    parts = fold(word.strip(_OUTSIDE).rstrip(".")).split("-")
    if not all(map(is_number, parts)):
        return 0
    return 2 if len(parts) > 1 or parts[0] in LARGE_NUMBERS else 1


def _numeral(text: str) -> Kind:
    """The kind of a number in Chinese characters: money and measures are as exact as in digits, what is counted is told in passing."""
    if not _CJK_MONEY.isdisjoint(text):
        return "money"
    return "quantity" if len(text) > 2 and not _CJK_MEASURES.isdisjoint(text) else "word"


def _cjk_numbers(sentence: str) -> Iterator[tuple[str, Kind]]:
    for match in _CJK_NUMERAL.finditer(sentence):
        yield match[0], _numeral(match[0])
    for match in _CJK_NUMBER.finditer(unicodedata.normalize("NFKC", sentence) if max(sentence) >= "０" else sentence):
        text = match[0].strip()
        if any(map(str.isdigit, text)) and not text.replace(",", "").replace(".", "").isdigit():
            yield text, "date" if re.search("[年月日号]", text) else "money" if re.search("[元円块塊¥￥]", text) else "quantity"
