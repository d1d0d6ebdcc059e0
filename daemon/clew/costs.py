"""What model calls cost, and what the prompt cache did, in words for people: the chat, the console, the API and the command line say the
same, from here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from clew.allowances import MICROS, Amount, Limit, Standing, period
from clew.context import cache_ledger
from clew.context.cache_ledger import Reading
from clew.messages import Usage
from clew.store import ModelCall
from clew.store.records.spending import SpendingKind, Sums
from clew.store.sql import SqlStore

LEDGER_CALLS = 200
"""Newest calls of a session in which a turn's, and the one before it, are looked for."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A call with what came of its provider's cache; None for one that was not for a reply, or failed."""

    call: ModelCall
    reading: Reading | None


@dataclass(frozen=True, slots=True)
class Turn:
    """The calls of one turn, oldest first, together. reading: of its first call that fell short, else of its last."""

    id: str
    at: float
    calls: tuple[Explained, ...]
    sums: Sums
    reading: Reading | None


@dataclass(frozen=True, slots=True)
class Account:
    """What was spent. label: on what, as `this conversation`."""

    label: str
    sums: Sums


@dataclass(frozen=True, slots=True)
class Report:
    """What `/cost` says: the newest turn of a session, accounts, budgets. zone: IANA name in which times are told. everybody: whoever asks
    may see what everybody together spent."""

    turn: Turn | None
    accounts: tuple[Account, ...]
    budgets: tuple[Standing, ...]
    zone: str
    everybody: bool = False


# Reading ---------------------------------------------------------------------------------------------------------


def explained(calls: Sequence[ModelCall]) -> list[Explained]:
    """Calls of a session, newest first, each with what came of the cache."""
    facts = [_facts(call) for call in calls]
    answered = [call.purpose == "reply" and not call.error for call in calls]
    told = []
    for number, call in enumerate(calls):
        earlier = [facts[at] for at in range(number + 1, len(calls)) if answered[at]]
        told.append(Explained(call, cache_ledger.explain(facts[number], earlier) if answered[number] else None))
    return told


def _facts(call: ModelCall) -> cache_ledger.Call:
    return cache_ledger.Call(call.provider, call.model, call.started, call.usage, call.segments, call.ttl, call.held)


def turns(calls: Sequence[ModelCall]) -> list[Turn]:
    """Calls of a session, newest first, by their turns, the newest first. Those outside of any turn are left out."""
    found: dict[str, list[Explained]] = {}
    for each in explained(calls):
        if each.call.turn:
            found.setdefault(each.call.turn, []).insert(0, each)
    return [_turn(identifier, tuple(its)) for identifier, its in found.items()]


def _turn(identifier: str, calls: tuple[Explained, ...]) -> Turn:
    readings = [each.reading for each in calls if each.reading]
    short = next((reading for reading in readings if reading.state == "short"), None)
    together = sum((sums_of(each.call) for each in calls), Sums())
    return Turn(identifier, calls[0].call.started, calls, together, short or (readings[-1] if readings else None))


def sums_of(call: ModelCall) -> Sums:
    """One call as a sum of calls."""
    usage = call.usage
    tokens = usage.prompt + usage.output
    replied = call.purpose == "reply" and not call.error
    return Sums(
        1,
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        round((call.cost or 0.0) * MICROS),
        tokens if call.cost is None else 0,
        int(replied),
        round((call.ended - call.started) * 1000) if replied else 0,
    )


async def newest_turn(store: SqlStore, session: str) -> Turn | None:
    """The newest turn of a session that called a model."""
    return next(iter(turns(await store.spending.calls(session, LEDGER_CALLS))), None)


async def report(
    store: SqlStore,
    *,
    session: str,
    person: str,
    direct: bool,
    zones: tuple[str, str],
    everybody: bool,
    limits: Sequence[Limit],
    now: float,
) -> Report:
    """What stands in an answer to `person` in a session. direct: nobody else reads it; in a group nothing is told that is the person's
    alone. zones: theirs, and that of the house. everybody: they may see what all of clew cost."""
    zone, house = zones
    found = await store.spending.look(session, person, limits, now)
    accounts = [Account("this conversation", await store.spending.session_sums(session))]
    if not direct:
        accounts += await _lately(store, "chat", found.payer.chat, "this chat", found.payer.chat_zone, now)
    elif person:
        accounts += await _lately(store, "person", person, "you", zone, now)
    accounts += await _lately(store, "all", "", "everybody", house, now) if everybody else []
    standings = tuple(each for each in found.standings if direct or each.limit.per != "person")
    return Report(await newest_turn(store, session), tuple(accounts), standings, zone, everybody)


async def _lately(store: SqlStore, kind: SpendingKind, subject: str, who: str, zone: str, now: float) -> list[Account]:
    """What somebody spent today and this month."""
    keys = [(kind, subject, period(now, zone, "day")), (kind, subject, period(now, zone, "month"))]
    found = await store.spending.sums(keys)
    return [Account(f"{who}, {when}", found[key]) for when, key in zip(("today", "this month"), keys, strict=True)]


@dataclass(frozen=True, slots=True)
class Question:
    """What an operator asks: of whom (one of session, person, chat; none of them for all), and when (a day or month; else both of now)."""

    session: str = ""
    person: str = ""
    chat: str = ""
    period: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """turns: of a session, the newest first. parts: by heading, who or what spent how much of it."""

    accounts: tuple[Account, ...]
    budgets: tuple[Standing, ...]
    turns: tuple[Turn, ...]
    parts: Mapping[str, Mapping[str, Sums]]
    zone: str


async def answer(store: SqlStore, asked: Question, zone: str, limits: Sequence[Limit], now: float) -> Answer:
    """What was spent, and how budgets stand. zone: IANA name of the operator's days. Raises NotFound or UsageError for a session."""
    if asked.session:
        row = await store.find_session(asked.session)
        made = turns(await store.spending.calls(row.id, LEDGER_CALLS))
        sums = await store.spending.session_sums(row.id)
        standings = (await store.spending.look(row.id, "", limits, now)).standings
        return Answer((Account(f"session {row.id}", sums),), tuple(standings), tuple(made), {}, zone)
    kind: SpendingKind = "person" if asked.person else "chat" if asked.chat else "all"
    subject = asked.person or asked.chat
    found = await store.spending.look_at(asked.person, asked.chat, limits, now)
    theirs = {"person": found.payer.zone, "chat": found.payer.chat_zone, "all": zone}[kind]
    if asked.period:
        key = (kind, subject, asked.period)
        accounts = [Account(f"{subject or 'everybody'}, {asked.period}", (await store.spending.sums([key]))[key])]
    else:
        accounts = await _lately(store, kind, subject, subject or "everybody", theirs, now)
    parts: dict[str, Mapping[str, Sums]] = {}
    if kind == "all":
        when = asked.period or period(now, zone, "month")
        kinds: tuple[tuple[str, SpendingKind], ...] = (("by person", "person"), ("by model", "model"), ("by purpose", "purpose"))
        parts = {f"{heading}, {when}": await store.spending.subjects(each, when) for heading, each in kinds}
    return Answer(tuple(accounts), tuple(found.standings), (), parts, zone)


async def lately_told(store: SqlStore, zone: str, limits: Sequence[Limit], now: float) -> dict[str, str]:
    """What everybody spent today and this month, and how the budgets of all together stand, by name."""
    accounts = await _lately(store, "all", "", "everybody", zone, now)
    told = {when: amount(each.sums) for when, each in zip(("today", "this_month"), accounts, strict=True)}
    standings = (await store.spending.look_at("", "", limits, now)).standings if limits else ()
    return told | {f"budget {each.limit.name}": budget_line(each, zone) for each in standings}


# Words -----------------------------------------------------------------------------------------------------------


def lines(told: Report) -> list[str]:
    """A report, one fact a line."""
    said = [_of_turn(told.turn), cache_line(told.turn)] if told.turn else ["No model was called here yet."]
    said += [f"{_upper(each.label)}: {amount(each.sums)}" for each in told.accounts]
    return said + [budget_line(each, told.zone, whole=told.everybody or each.limit.per != "all") for each in told.budgets]


def answer_lines(told: Answer) -> list[str]:
    """An answer, one fact a line."""
    said = [f"{_upper(each.label)}: {amount(each.sums)}" for each in told.accounts]
    for heading, its in told.parts.items():
        said += [f"{_upper(heading)}:"] if its else []
        said += [f"  {subject or 'nobody in particular'}: {amount(sums)}" for subject, sums in its.items()]
    said += [turn_line(each, told.zone) for each in told.turns]
    return said + [budget_line(each, told.zone) for each in told.budgets]


def turn_line(turn: Turn, zone: str) -> str:
    """A turn with its time, what it took, and what the cache did."""
    cache = f". Prompt cache: {cache_ledger.told(turn.reading)}" if turn.reading else ""
    return f"{datetime.fromtimestamp(turn.at, ZoneInfo(zone)):%Y-%m-%d %H:%M} turn {turn.id}: {amount(turn.sums)}{cache}"


def _of_turn(turn: Turn) -> str:
    return f"Last turn: {amount(turn.sums)}"


def cache_line(turn: Turn) -> str:
    """What the prompt cache did for a turn."""
    return f"Prompt cache: {cache_ledger.told(turn.reading) if turn.reading else 'the call failed'}"


def amount(sums: Sums) -> str:
    """What calls took: `3 calls, 12,400 tokens in (88% from the cache), 310 out, $0.0123`."""
    if not sums.calls:
        return "nothing"
    usage = sums.usage
    calls = f"{sums.calls:,} call{'s' * (sums.calls != 1)}"
    cached = f" ({share(usage):.0%} from the cache, {usage.cache_write:,} written to it)" if usage.cache_read or usage.cache_write else ""
    return f"{calls}, {usage.prompt:,} tokens in{cached}, {usage.output:,} out, {price(sums)}"


def share(usage: Usage) -> float:
    """The part of a prompt that was read from the cache."""
    return usage.cache_read / usage.prompt if usage.prompt else 0.0


def price(sums: Sums) -> str:
    """What calls cost, with what of them has no price."""
    if not sums.unpriced:
        return money(sums.micros)
    if sums.unpriced == sums.tokens:
        return "no price known"
    return f"{money(sums.micros)} and {sums.unpriced:,} tokens of models without a price"


def money(micros: int) -> str:
    """Dollars, to the cent where that says it all or from ten cents on, else to a hundredth of one."""
    dollars = micros / MICROS
    return f"${dollars:,.2f}" if dollars >= 0.1 or micros % 10_000 == 0 else f"${dollars:.4f}"


def quantity(limit: Limit, count: int) -> str:
    return f"{count:,} tokens" if limit.unit == "tokens" else money(count)


def portion(limit: Limit, count: int) -> str:
    """So much of all of a limit."""
    return f"{count:,} of {limit.most:,} tokens" if limit.unit == "tokens" else f"{money(count)} of {money(limit.most)}"


def budget_line(standing: Standing, zone: str, *, whole: bool = True) -> str:
    """A budget, what is left of it, and when it resets. whole: with amounts, not its share alone."""
    limit = standing.limit
    used = f"{standing.used / limit.most:.0%}" if limit.most else "100%"
    if whole:
        used = f"{portion(limit, standing.used)} used ({used}), {quantity(limit, standing.left)} left"
    else:
        used += " used"
    line = f"Budget {limit.name} ({whose(standing)}, {_when(standing)}): {used}; it resets {moment(standing.resets_at, zone)}"
    if whole and limit.unit == "money" and standing.spent.unpriced:
        line += f". Not in it: {standing.spent.unpriced:,} tokens of models without a price"
    return line


def refusal(standing: Standing, wanted: Amount, zone: str, *, whole: bool = True) -> str:
    """Why a call is not made, and when it may be, to whoever asked for it. whole: with amounts."""
    limit = standing.limit
    named = {"person": "your budget", "chat": "the budget of this chat", "all": "the budget of everybody here"}[limit.per]
    named += " for today" if limit.every == "day" else " for this month"
    resets = f"It resets {moment(standing.resets_at, zone)}."
    about = f" about {quantity(limit, wanted.of(limit.unit))}" if whole else " more"
    if standing.left and wanted.of(limit.unit) <= limit.most:
        left = f": {portion(limit, standing.left)} are left" if whole else ""
        return f"{_upper(named)} is nearly used up{left}, and this would take{about}. {resets}"
    if standing.left:
        most = f", {quantity(limit, limit.most)}" if whole else ""
        return f"This would take{f'{about}, more' if whole else about} than all of {named}{most}. /new begins a shorter conversation."
    return f"{_upper(named)} is used up{f': {portion(limit, standing.used)}' if whole else ''}. {resets}"


def whose(standing: Standing) -> str:
    """Whose budget it is."""
    return "everybody together" if standing.limit.per == "all" else standing.subject


def _when(standing: Standing) -> str:
    return "today" if standing.limit.every == "day" else "this month"


def moment(at: float, zone: str) -> str:
    """A time in its zone: Tue 1 Dec 2026 at 00:00 (Europe/Berlin)."""
    there = datetime.fromtimestamp(at, ZoneInfo(zone))
    return f"{there:%a} {there.day} {there:%b} {there.year} at {there:%H:%M} ({zone})"


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


# Values ----------------------------------------------------------------------------------------------------------


def sums_values(sums: Sums) -> dict[str, Any]:
    """Sums for JSON. cost: dollars of what has a price; seconds: of an average call for a reply."""
    return {
        "calls": sums.calls,
        "input": sums.input,
        "output": sums.output,
        "cache_read": sums.cache_read,
        "cache_write": sums.cache_write,
        "cost": sums.micros / MICROS,
        "unpriced_tokens": sums.unpriced,
        "replies": sums.replies,
        "reply_seconds": round(sums.reply_ms / sums.replies / 1000, 3) if sums.replies else None,
    }


def standing_values(standing: Standing) -> dict[str, Any]:
    """A budget for JSON; money in dollars."""
    limit = standing.limit
    unit = 1 if limit.unit == "tokens" else MICROS
    return {
        "budget": limit.name,
        "per": limit.per,
        "every": limit.every,
        "unit": limit.unit,
        "subject": standing.subject,
        "period": standing.period,
        "most": limit.most / unit,
        "used": standing.used / unit,
        "reserved": standing.reserved.of(limit.unit) / unit,
        "left": standing.left / unit,
        "unpriced_tokens": standing.spent.unpriced,
        "resets_at": standing.resets_at,
    }


def turn_values(turn: Turn) -> dict[str, Any]:
    return {"turn": turn.id, "at": turn.at, **sums_values(turn.sums), "cache": reading_values(turn.reading)}


def reading_values(reading: Reading | None) -> Mapping[str, Any] | None:
    if reading is None:
        return None
    return {
        "state": reading.state,
        "expected": reading.expected,
        "reported": reading.reported,
        "segment": reading.segment,
        "why": reading.why,
        "told": cache_ledger.told(reading),
    }


def answer_values(told: Answer) -> dict[str, Any]:
    """An answer for JSON, with its lines."""
    return {
        "accounts": [{"label": each.label, **sums_values(each.sums)} for each in told.accounts],
        "budgets": [standing_values(each) for each in told.budgets],
        "turns": [turn_values(each) for each in told.turns],
        "parts": {
            heading: [{"subject": subject, **sums_values(sums)} for subject, sums in its.items()] for heading, its in told.parts.items()
        },
        "timezone": told.zone,
        "lines": answer_lines(told),
    }
