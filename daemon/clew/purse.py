"""Budgets that bind: each model call is looked at before it is made, and refused where it does not fit what is left."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from clew import costs
from clew.allowances import MICROS, Amount, Limit, Payer, Standing, refusing
from clew.clock import Time
from clew.config import Budget
from clew.config import Job as Entry
from clew.store import Job
from clew.store.records.spending import Wanted
from clew.store.sql import SqlStore
from clew.transport import Address

log = structlog.get_logger()

EXPECTED_OUTPUT = 1000
"""Tokens of an answer that are reserved at most: few are longer, and one that is exceeds its budget by the difference."""
HELD_FOR = 900.0
"""Seconds after which a reservation is void whose call left no row: the process died, or nobody knows what it came to."""
REMEMBERED = 10_000
"""Keys of what was said that a process keeps in mind."""
SMALLEST = Amount(1, 1)
"""What has to be left for a job to begin."""

Tell = Callable[[str, str, Address], Awaitable[None]]
"""Says a text at an address, once for each key."""
Warn = Callable[[str, str, Address | None], Awaitable[None]]
"""Tells the owner, once for each key: (key, text, where the same was said already)."""


class OverBudget(Exception):
    """A call does not fit a budget; its text says so to whoever asked for it."""

    def __init__(self, standing: Standing, wanted: Amount, payer: Payer) -> None:
        super().__init__(costs.refusal(standing, wanted, payer.zone, whole=payer.sees(standing.limit)))
        self.standing = standing
        self._wanted = wanted
        self.resets = costs.moment(standing.resets_at, payer.zone)

    @property
    def passes(self) -> bool:
        """Whether it fits when the budget has reset."""
        return self._wanted.of(self.standing.limit.unit) <= self.standing.limit.most

    @property
    def note(self) -> str:
        """For the row of a turn or a run."""
        return f"the budget {self.standing.limit.name} is used up until {self.resets}"


def limits_of(budgets: Mapping[str, Budget]) -> tuple[Limit, ...]:
    """The budgets of the config."""
    return tuple(
        Limit(
            name,
            each.per,
            each.every,
            "money" if each.money is not None else "tokens",
            round(each.money * MICROS) if each.money is not None else each.tokens or 0,
            frozenset(each.roles),
            frozenset(each.people),
            frozenset(each.chats),
        )
        for name, each in budgets.items()
    )


class Purse:
    """Keeps to the budgets of a config. tell: to the people; warn: to the owner. zone: IANA name of the owner's days."""

    def __init__(self, store: SqlStore, limits: Sequence[Limit], tell: Tell, warn: Warn, zone: str, time: Time) -> None:
        self.limits = tuple(limits)
        self._zone = zone
        self._store = store
        self._tell = tell
        self._warn = warn
        self._time = time
        self._said: set[str] = set()  # keys of what was logged or told by this process: the store is not asked again

    async def reserve(self, call: str, session: str, payer: str, amount: Amount, instead_of: str = "") -> None:
        """Reserve what a call (its id) may come to; with its row, the reservation goes. Raises OverBudget.

        instead_of: an earlier try that came to nothing.
        """
        now = self._time.wall()
        found = await self._store.spending.reserve(Wanted(call, session, payer, amount, now, now + HELD_FOR, instead_of), self.limits)
        address = Address.parse(found.payer.chat) if found.payer.chat else None
        if found.refused is not None:
            await self._reached(found.refused, amount, address)
            raise OverBudget(found.refused, amount, found.payer)
        for standing in found.standings:
            if standing.is_near(amount):
                await self._near(standing, address, found.payer)

    async def hindrance(self, session: str, payer: str, amount: Amount) -> OverBudget | None:
        """Why a call of this size would be refused now; nothing is reserved."""
        found = await self._store.spending.look(session, payer, self.limits, self._time.wall())
        refused = refusing(found.standings, amount)
        return OverBudget(refused, amount, found.payer) if refused else None

    async def hindrance_at(self, address: str, amount: Amount) -> OverBudget | None:
        """The same for what comes to an address."""
        found = await self._store.spending.look_at("", address, self.limits, self._time.wall())
        refused = refusing(found.standings, amount)
        return OverBudget(refused, amount, found.payer) if refused else None

    async def is_held_back(self, amount: Amount) -> bool:
        """Whether something that is nobody's in particular, and can wait, does not fit the budgets of everybody together."""
        found = await self._store.spending.look("", "", self.limits, self._time.wall())
        refused = refusing(found.standings, amount)
        if refused is not None:
            await self._reached(refused, amount, None)
        return refused is not None

    async def keeps_from(self, job: Job, entry: Entry) -> str:
        """Why a job that is due is not run, empty where it is: nothing is left of a budget, or a call was refused in its period already.
        That is said once in each period, where the job speaks."""
        if not self.limits or entry.prompt is None:
            return ""
        found = await self._store.spending.look_at(job.person or "", entry.deliver_to, self.limits, self._time.wall())
        standing = next((each for each in found.standings if each.closed or not each.takes(SMALLEST)), None)
        if standing is None:
            return ""
        over = OverBudget(standing, SMALLEST, found.payer)
        await self.tell_job(job.name, over, Address.parse(entry.deliver_to))
        return over.note

    async def tell_job(self, job: str, over: OverBudget, address: Address) -> None:
        """Say once in each period that a job does not run."""
        text = f"The scheduled job {job} does not run until {over.resets}. {over}"
        await self._tell(f"{_key(over.standing, 'job')}/{job}", text, address)

    async def _reached(self, standing: Standing, amount: Amount, address: Address | None) -> None:
        """Log, and tell the owner, that a budget is used up: once in its period."""
        key, limit = _key(standing, "reached"), standing.limit
        if key in self._said:
            return
        self._note(key)
        log.warning(
            "budget.reached",
            budget=limit.name,
            subject=standing.subject,
            period=standing.period,
            unit=limit.unit,
            spent=standing.used,
            planned=amount.of(limit.unit),
            most=limit.most,
        )
        await self._warn(key, f"A budget is used up. {costs.budget_line(standing, self._zone)}.", address)

    def _note(self, key: str) -> None:
        if len(self._said) >= REMEMBERED:
            self._said.clear()  # the store knows what people were told
        self._said.add(key)

    async def _near(self, standing: Standing, address: Address | None, payer: Payer) -> None:
        """Warn whoever spends a budget, and the owner, that it is nearly used up: once in its period."""
        key = _key(standing, "near")
        if key in self._said:
            return
        self._note(key)
        said = "A budget is nearly used up. {}.".format
        if address is not None:
            line = costs.budget_line(standing, payer.zone, whole=payer.sees(standing.limit))
            await self._tell(key, said(line), address)
        await self._warn(f"{key}/owner", said(costs.budget_line(standing, self._zone)), address)


def _key(standing: Standing, what: str) -> str:
    return f"budget/{what}/{standing.limit.name}/{standing.limit.most}/{standing.subject}/{standing.period}"
