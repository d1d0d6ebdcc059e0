"""What may be spent: periods of the calendar, limits, and whether a model call fits what is left. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Literal
from zoneinfo import ZoneInfo

Per = Literal["person", "chat", "all"]
Every = Literal["day", "month"]
Unit = Literal["tokens", "money"]

EVERY: tuple[Every, ...] = ("day", "month")
WARN_SHARE = 0.8
"""Part of a limit at which its people are warned."""
MICROS = 1_000_000
"""Money is counted in millionths of a dollar: whole numbers, so that sums are exact."""


def period(at: float, zone: str, every: Every) -> str:
    """The day or month that `at` (seconds since the epoch) falls in by the calendar of an IANA zone: 2026-11-30, 2026-11."""
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):{'%Y-%m-%d' if every == 'day' else '%Y-%m'}}"


def resets_at(at: float, zone: str, every: Every) -> float:
    """When the period after that of `at` begins, seconds since the epoch. A midnight that the clocks leave out is where they land."""
    today = datetime.fromtimestamp(at, ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    # Adding days to an aware datetime moves the calendar; the offset is looked up for the new date.
    following = today + timedelta(days=1) if every == "day" else (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    return following.timestamp()


@dataclass(frozen=True, slots=True)
class Amount:
    """Something spent. tokens: read, written and cached, of every model; micros: millionths of a dollar; unpriced: those of `tokens` whose
    model has no price."""

    tokens: int = 0
    micros: int = 0
    unpriced: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.micros + other.micros, self.unpriced + other.unpriced)

    def of(self, unit: Unit) -> int:
        return self.tokens if unit == "tokens" else self.micros


@dataclass(frozen=True, slots=True)
class Payer:
    """On whose account a call is made. person, chat: empty where there is none; zone, chat_zone: IANA names by whose midnight their
    periods end; role: None for nobody; direct: nobody else reads what is said there."""

    person: str
    role: str | None
    chat: str
    zone: str
    chat_zone: str
    house_zone: str
    direct: bool = False

    def sees(self, limit: "Limit") -> bool:
        """Whether the amounts of a limit are told where it refuses: in a group nobody's own, what everybody spends to an owner alone."""
        return limit.per == "chat" or (self.direct and (limit.per == "person" or self.role == "owner"))


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget of the config. most: tokens, or millionths of a dollar. roles, people, chats: whose it is, empty for everybody's."""

    name: str
    per: Per
    every: Every
    unit: Unit
    most: int
    roles: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()
    chats: frozenset[str] = frozenset()

    def subject(self, payer: Payer) -> str | None:
        """The person or chat of `payer` that this is counted for, empty for all together; None where it is not theirs."""
        if self.per == "all":
            return ""
        if self.per == "chat":
            return payer.chat if payer.chat and (not self.chats or payer.chat in self.chats) else None
        named = (not self.people or payer.person in self.people) and (not self.roles or payer.role in self.roles)
        return payer.person if payer.person and named else None

    def zone(self, payer: Payer) -> str:
        return {"person": payer.zone, "chat": payer.chat_zone, "all": payer.house_zone}[self.per]

    @property
    def _exactness(self) -> int:
        return 2 if self.people or self.chats else 1 if self.roles else 0


def applying(limits: Iterable[Limit], payer: Payer) -> list[tuple[Limit, str]]:
    """The limits that bind a payer, with their subjects. Of those that count the same (per, every, unit) only the most exact bind: one
    that names the person or chat before one that names a role, and that before one for everybody."""
    found = [(limit, subject) for limit in limits if (subject := limit.subject(payer)) is not None]
    best: dict[tuple[Per, Every, Unit], int] = {}
    for limit, _ in found:
        kind = (limit.per, limit.every, limit.unit)
        best[kind] = max(best.get(kind, 0), limit._exactness)
    return [(limit, subject) for limit, subject in found if limit._exactness == best[limit.per, limit.every, limit.unit]]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a limit stands for one subject in the period of now. reserved: for calls that are being made; resets_at: seconds since the
    epoch; closed: a call was refused in this period,
    when it was nearly used up."""

    limit: Limit
    subject: str
    period: str
    resets_at: float
    spent: Amount
    reserved: Amount
    closed: bool = False

    @property
    def used(self) -> int:
        return (self.spent + self.reserved).of(self.limit.unit)

    @property
    def left(self) -> int:
        return max(self.limit.most - self.used, 0)

    def takes(self, wanted: Amount) -> bool:
        """Whether a call of this estimated size fits. One that costs nothing of what is counted always does."""
        more = wanted.of(self.limit.unit)
        return more == 0 or self.used + more <= self.limit.most

    def is_near(self, wanted: Amount) -> bool:
        """Whether so much of it is used, with a call of this estimated size, that its people are warned."""
        more = wanted.of(self.limit.unit)
        return more > 0 and self.used + more >= WARN_SHARE * self.limit.most

    @property
    def is_nearly_used(self) -> bool:
        """The same of what is used already."""
        return self.used >= WARN_SHARE * self.limit.most


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts as large as their weights; the parts are `total` together, and equal where all weights are 0."""
    weights = weights if any(weights) else [1] * len(weights)
    ends = [total * each // sum(weights) for each in accumulate(weights)]
    return [end - before for before, end in zip([0, *ends], ends, strict=False)]


def refusing(standings: Sequence[Standing], wanted: Amount) -> Standing | None:
    """Of the limits that a call does not fit the one that resets last: when that has reset, so have the others."""
    return max((each for each in standings if not each.takes(wanted)), key=lambda each: each.resets_at, default=None)
