"""The console's pages of what is spent: by day, by thread and by turn, with charts, budgets, and what the prompt cache did."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew import costs
from clew.allowances import MICROS, Standing, period
from clew.context import cache_ledger
from clew.costs import Turn
from clew.store import Compaction, SessionRow
from clew.store.records.spending import SpendingKind, Sums
from clew.web.auth import Caller
from clew.web.charts import Chart, chart
from clew.web.console.frame import Frame
from clew.web.wire import checked

SPEND = "/console/spend"
SPEND_THREAD = "/console/spend/thread"
TURNS = 60
"""Newest turns of a thread that its page shows."""
THREADS = 20
"""Threads, those used last, whose sums the first page shows."""
PEOPLE = 20
"""People, those who spent most this month, whose budgets it shows."""
DAYS = (7, 30, 90)

_Subject = Annotated[str, Field(max_length=512)]


class SpendQuery(BaseModel):
    """days: up to today. person, chat: of one of them alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: Literal["7", "30", "90"] = "30"
    person: _Subject = ""
    chat: _Subject = ""


class ThreadQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(min_length=1, max_length=64)]


@dataclass(frozen=True, slots=True)
class Line:
    """A day or a turn. name: as a row has it; at: seconds since the epoch, None for a day; turn: None for a day."""

    name: str
    sums: Sums
    turn: Turn | None = None
    compacted: bool = False

    @property
    def share(self) -> float:
        return costs.share(self.sums.usage)

    @property
    def seconds(self) -> float:
        """Of an average call for a reply."""
        return self.sums.reply_ms / self.sums.replies / 1000 if self.sums.replies else 0.0

    @property
    def price(self) -> str:
        return costs.price(self.sums)

    @property
    def cache(self) -> str:
        return cache_ledger.told(self.turn.reading) if self.turn and self.turn.reading else ""


@dataclass(frozen=True, slots=True)
class Charts:
    tokens: Chart
    cost: Chart
    seconds: Chart
    share: Chart


class Spend:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._store = frame.store

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, SPEND, self.spend)
        self._frame.get(app, SPEND_THREAD, self.thread)

    async def spend(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = checked(SpendQuery, request.query)
        service, now = self._frame.service, self._frame.now
        question = costs.Question(person=asked.person, chat=asked.chat)
        kind: SpendingKind = "person" if asked.person else "chat" if asked.chat else "all"
        subject = asked.person or asked.chat
        days = days_up_to(now, service.zone, int(asked.days))
        found = await self._store.spending.periods(kind, subject, days[0], days[-1])
        lines = [Line(day, found.get(day, Sums())) for day in days]
        answer = await costs.answer(self._store, question, service.zone, service.purse.limits, now)
        return await self._frame.drawn(
            request,
            "spend.html",
            asked=asked,
            choices=DAYS,
            accounts=answer.accounts,
            budgets=[*answer.budgets, *([] if subject else await self._of_people(now))],
            parts=answer.parts,
            lines=lines,
            charts=charts(lines),
            threads=[] if subject else await self._threads(),
            amount=costs.amount,
            budget_line=lambda each: costs.budget_line(each, service.zone),
            price=costs.price,
            money=money,
        )

    async def thread(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        row = await self._store.find_session(checked(ThreadQuery, request.query).id)
        calls = await self._store.spending.calls(row.id, costs.LEDGER_CALLS)
        turns = costs.turns(calls)[:TURNS][::-1]
        lines = lines_of(turns, await self._store.compactions(row.id), self._frame.service.zone)
        together = await self._store.spending.session_sums(row.id)
        return await self._frame.drawn(
            request,
            "spend_thread.html",
            row=row,
            lines=lines,
            charts=charts(lines),
            together=costs.amount(together),
            outside=[each for each in costs.explained(calls) if not each.call.turn],
            price=lambda call: costs.price(costs.sums_of(call)),
            money=money,
        )

    async def _of_people(self, now: float) -> list[Standing]:
        """The budgets per person of those who spent something this month."""
        service = self._frame.service
        if not any(limit.per == "person" for limit in service.purse.limits):
            return []
        spent = await self._store.spending.subjects("person", period(now, service.zone, "month"))
        found = [await self._store.spending.look_at(person, "", service.purse.limits, now) for person in list(spent)[:PEOPLE]]
        return [standing for each in found for standing in each.standings if standing.limit.per == "person"]

    async def _threads(self) -> list[tuple[SessionRow, Sums]]:
        rows = await self._store.sessions(None, THREADS)
        return [(row, await self._store.spending.session_sums(row.id)) for row in rows]


def days_up_to(now: float, zone: str, count: int) -> list[str]:
    """The `count` days up to today, the oldest first."""
    today = datetime.fromtimestamp(now, ZoneInfo(zone)).date()
    return [f"{today - timedelta(days=back):%Y-%m-%d}" for back in reversed(range(count))]


def lines_of(turns: Sequence[Turn], compactions: Sequence[Compaction], zone: str) -> list[Line]:
    """Turns, the oldest first, each with whether a compaction stands in front of its end that none before it had."""
    made = [each.created for each in compactions if each.undone_at is None]
    lines, since = [], turns[0].at if turns else 0.0
    for turn in turns:
        ended = max(each.call.ended for each in turn.calls)
        name = f"{datetime.fromtimestamp(turn.at, ZoneInfo(zone)):%Y-%m-%d %H:%M}"
        lines.append(Line(name, turn.sums, turn, any(since < at <= ended for at in made)))
        since = ended
    return lines


def charts(lines: Sequence[Line]) -> Charts:
    """Tokens by what became of them, cost in dollars, seconds of a reply, and the part of prompts that was read from the cache."""
    usages = [line.sums.usage for line in lines]
    tokens = [(each.cache_read, each.cache_write, each.input, each.output) for each in usages]
    marks = [number for number, line in enumerate(lines) if line.compacted]
    return Charts(
        chart(tokens, [f"{line.name}: {line.sums.tokens:,} tokens{', compacted' * line.compacted}" for line in lines], marks=marks),
        chart([(line.sums.micros / MICROS,) for line in lines], [f"{line.name}: {line.price}" for line in lines]),
        chart([(line.seconds,) for line in lines], [f"{line.name}: {line.seconds:.1f} s" for line in lines]),
        chart([(line.share,) for line in lines], [f"{line.name}: {line.share:.0%}" for line in lines], most=1.0),
    )


def money(dollars: float) -> str:
    return costs.money(round(dollars * MICROS))
