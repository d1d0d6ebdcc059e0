"""WhatsApp's export of a chat: a text, or a zip with one.

Its lines begin with a date and a time as the telephone's language writes them, then a name; others go on with the message before. Lines
without a name, and on an iPhone those that begin with a mark, are WhatsApp's own.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

from clew.imports import conversation as made
from clew.imports.conversation import Conversation, ExportError, Said, Unreadable
from clew.imports.dividing import by_month
from clew.imports.opening import streams
from clew.imports.pulling import lines
from clew.messages import Text

FILES = r"(_chat|whatsapp.+)\.txt"
NAMED = 20
"""Names that are told to whoever has to say which of them is theirs."""
MARK = "\u200e"
_MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
_BEFORE_NOON, _AFTER_NOON = ("a", "上", "午前", "오전", "ص", "πμ"), ("p", "下", "午後", "오후", "م", "μμ")
_START = re.compile(
    rf"[{_MARKS}]{{0,9}}\[?(?P<date>\d{{1,4}}[./-]\s?\d{{1,2}}[./-]\s?\d{{1,4}})\.?[,،]?\s{{0,3}}(?:[^\W\d]{{1,4}}\.?\s{{1,3}})??"
    r"(?P<before>上午|下午|午前|午後|오전|오후)?\s{0,3}(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)"
    r"\s{0,3}(?P<half>[AaPp]\.?\s?[Mm]\.?|[صم]|[πμ]\.?μ\.?)?(?P<end>\]|\s-)\s(?P<rest>.*)",
    re.DOTALL,
)
"""Each of its parts is short, so that no line costs more than its length."""
_NAMED = re.compile(rf"[{_MARKS}]{{0,9}}~?\s?(?P<name>[^:\n]{{1,100}}): ?(?P<words>.*)", re.DOTALL)
_ATTACHED = re.compile(rf"[{_MARKS}]{{0,9}}<[^:<>\n]{{3,25}}: (?P<name>[^<>\n]{{1,200}})>")
_BESIDE = re.compile(rf"[{_MARKS}]{{0,9}}(?P<name>[^\n/]{{1,200}}\.[A-Za-z0-9]{{2,5}}) \([^()\n]{{4,40}}\)")
_OMITTED = re.compile(r"<[^<>\n]{3,40}>")
_LEFT_OUT = "omitted|weggelassen|ausgelassen|omitid[oa]|omiss?[ea]?|oculta|weggelaten|pominięt[oy]"
_OMITTED_HERE = re.compile(rf"{MARK}[^\n]{{3,40}}({_LEFT_OUT})", re.IGNORECASE)
_EDITED = re.compile(rf"\s?{MARK}?<This message was edited>\Z")
_DELETED = ("This message was deleted", "You deleted this message", "Diese Nachricht wurde gelöscht", "Du hast diese Nachricht gelöscht")
_TITLE = re.compile(r"whatsapp[ _-]chat[ _](?:- |with |mit |con |avec |com |met |med |z |с )?(?P<title>.+)", re.IGNORECASE)
_COPY = re.compile(r"\s?\([0-9]+\)\Z")


@dataclass(slots=True)
class _Survey:
    """What a first look at a chat tells: who wrote how often, and in which order a date's parts stand."""

    names: Counter[str] = field(default_factory=Counter)
    day_first: bool = False
    month_first: bool = False
    backwards: dict[str, int] = field(default_factory=lambda: {"dmy": 0, "mdy": 0})
    halves: bool = False
    slashes: bool = False

    @property
    def order(self) -> str:
        """`dmy` or `mdy`, for dates that do not begin with the year."""
        if self.day_first != self.month_first:
            return "dmy" if self.day_first else "mdy"
        if self.backwards["dmy"] != self.backwards["mdy"]:
            return min(self.backwards, key=lambda order: self.backwards[order])
        return "mdy" if self.slashes and self.halves else "dmy"


def read(path: Path, me: str | None, zone: ZoneInfo) -> Iterator[Conversation | Unreadable]:
    """me: the name of whoever exported it, as the file has it. zone: of its times. Raises ExportError."""
    surveys = {name: _surveyed(lines(name, stream)) for name, stream in streams(path, FILES)}
    for name, stream in streams(path, FILES):
        survey = surveys[name]
        if not survey.names:
            raise ExportError(f"{name} has no line of a WhatsApp chat.", hint="In the chat: More, Export chat; bring in what it gives.")
        title = _title(path, name) or ", ".join(sorted(survey.names))[: made.LONGEST_TITLE]
        own = _own(me, title, survey.names)
        if own is None:
            some = ", ".join(f"{each} ({count:,})" for each, count in survey.names.most_common(NAMED))
            yield Unreadable(title, f"nothing says which of these you are: {some}. Say it with --me NAME")
            continue
        yield from by_month(title, title, _said(lines(name, stream), survey.order, own, zone))


def _surveyed(given: Iterator[str]) -> _Survey:
    survey, before = _Survey(), dict[str, tuple[int, ...]]()
    for line in given:
        started = _START.match(line)
        named = started and _NAMED.fullmatch(started["rest"])
        if not started or not named or (named["words"].startswith(MARK) and not _media(named["words"])):
            continue
        survey.names[made.line(named["name"], 100)] += 1
        first, second, third = (int(each) for each in re.split(r"[./-]\s?", started["date"]))
        if first > 31:
            continue
        survey.day_first |= first > 12
        survey.month_first |= second > 12
        survey.halves |= bool(started["half"] or started["before"])
        survey.slashes |= "/" in started["date"]
        for order, date in (("dmy", (third, second, first)), ("mdy", (third, first, second))):
            survey.backwards[order] += date < before.get(order, date)
            before[order] = date
    return survey


def _title(path: Path, name: str) -> str:
    """What the chat is called, by the name of its text or of the zip; empty where neither tells."""
    for each in (PurePosixPath(name).stem, path.stem):
        if found := _TITLE.fullmatch(_COPY.sub("", each)):
            return made.line(found["title"])
    return ""


def _own(me: str | None, title: str, names: Counter[str]) -> str | None:
    """Which of the names is the exporter's: the one that was said, or the one that a chat of two is not called by."""
    if me is not None:
        return next((each for each in names if each.casefold() == me.casefold()), None)
    others = [each for each in names if each != title]
    return others[0] if len(others) == 1 and len(names) <= 2 else None


def _said(given: Iterator[str], order: str, own: str, zone: ZoneInfo) -> Iterator[Said]:
    at, equal = 0.0, Counter[str]()
    for stamp, name, words in _messages(given):
        local = _local(stamp, order)
        at = made.epoch(local.replace(tzinfo=zone).timestamp(), at) if local else at
        words = _readable(words)
        if not words:
            continue
        key = f"{local or ''}/{name}/{hashlib.sha256(words.encode('utf-8', 'replace')).hexdigest()[:16]}"
        equal[key] += 1
        found = made.said(f"{key}/{equal[key]}", "user", [Text(words)], at, "" if name == own else name, mine=name == own)
        if found:
            yield found
        if len(equal) > 10_000:  # equal messages of one minute stand together
            equal = Counter({key: equal[key]})


def _messages(given: Iterator[str]) -> Iterator[tuple[re.Match[str], str, str]]:
    """(what its first line begins with, who wrote it, its words) of each message."""
    begun: tuple[re.Match[str], str] | None = None
    words, size = list[str](), 0
    for line in given:
        started = _START.match(line)
        if started is None:
            if begun and size < made.LONGEST_TEXT:
                words.append(line)
                size += len(line)
            continue
        if begun:
            yield *begun, "\n".join(words)
        named = _NAMED.fullmatch(started["rest"])
        begun = (started, made.line(named["name"], 100)) if named else None
        words, size = [named["words"]] if named else [], 0
    if begun:
        yield *begun, "\n".join(words)


def _local(stamp: re.Match[str], order: str) -> datetime | None:
    """The time that a line begins with; None where it is none."""
    parts = [int(each) for each in re.split(r"[./-]\s?", stamp["date"])]
    hour, minute, second = [*(int(each) for each in re.split(r"[:.]", stamp["time"])), 0][:3]
    half = (stamp["half"] or stamp["before"] or "").lower().replace(".", "")
    if half.startswith(_AFTER_NOON):
        hour = hour % 12 + 12
    elif half.startswith(_BEFORE_NOON):
        hour %= 12
    if parts[0] > 31:
        year, month, day = parts
    else:
        day, month, year = parts if order == "dmy" else (parts[1], parts[0], parts[2])
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, second)
    except (ValueError, OverflowError):
        return None


def _media(words: str) -> str:
    """A line for a file that stands for itself; empty where it is none."""
    for pattern in (_ATTACHED, _BESIDE):
        if found := pattern.match(words):
            return f"[file {made.line(found['name'], 200)}]{words[found.end() :]}"
    first, newline, rest = words.partition("\n")
    if _OMITTED.fullmatch(first) or _OMITTED_HERE.fullmatch(first):
        return f"[media]{newline}{rest}"
    return ""


def _readable(words: str) -> str:
    """What somebody said, without what WhatsApp adds; empty where nobody did."""
    if media := _media(words):
        return made.text(media).strip()
    if words.startswith(MARK) or words.strip().rstrip(".") in _DELETED:
        return ""
    return made.text(_EDITED.sub("", words)).strip()
