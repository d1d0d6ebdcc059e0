"""The verbs of what was spent, one transaction each."""

from collections.abc import Sequence
from math import inf

from clew.allowances import Limit
from clew.store import ModelCall, model_calls, spending
from clew.store.database import Database
from clew.store.records.spending import Reserved, SpendingKind, Sums, Wanted


class SpendingDoor:
    """What was spent, and what may be. Every `now` is seconds since the epoch; a period is a day (2026-11-30) or a month (2026-11)."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def keep_zone(self, zone: str) -> None:
        """By whose midnight days end that are nobody's own; it holds for what is summed from now on."""
        await self._db.write_if(lambda db: (spending.house_zone(db) != zone, None), spending.keep_zone, zone)

    async def roll(self, most: int) -> None:
        """Take about so many calls into the sums."""
        await self._db.write_relaxed(spending.roll, most)

    async def reserve(self, wanted: Wanted, limits: Sequence[Limit]) -> Reserved:
        """Reserve what a call may come to, if it fits every limit that binds it. It survives a crash of the process, not a power cut."""
        return await self._db.write_relaxed(spending.reserve, wanted, limits)

    async def look(self, session: str, payer: str, limits: Sequence[Limit], now: float) -> Reserved:
        """How the limits stand that bind calls of a session; nothing is reserved."""
        return await self._db.read(spending.look, session, payer, limits, now)

    async def look_at(self, person: str, chat: str, limits: Sequence[Limit], now: float) -> Reserved:
        """The same for calls that `person` (empty: whose chat it is) has made at the address `chat`."""
        return await self._db.read(spending.look_at, person, chat, limits, now)

    async def sweep(self, now: float) -> None:
        """Forget what was said of periods that are long over."""
        await self._db.write_if(lambda db: (spending.sweepable(db, now), None), spending.sweep, now)

    async def sums(self, keys: Sequence[spending.Key]) -> dict[spending.Key, Sums]:
        return await self._db.read(spending.sums, keys)

    async def periods(self, kind: SpendingKind, subject: str, first: str, last: str) -> dict[str, Sums]:
        """What was spent in each period from `first` to `last`; those without a call are left out."""
        return await self._db.read(spending.periods, kind, subject, first, last)

    async def subjects(self, kind: SpendingKind, period: str) -> dict[str, Sums]:
        """Who or what spent something in a period, the most first."""
        return await self._db.read(spending.subjects, kind, period)

    async def note(self, calls: Sequence[tuple[str, ModelCall]]) -> None:
        """Write down calls outside of any turn, each for a session (empty: for none)."""
        await self._db.write_relaxed(model_calls.note_some, calls)

    async def session_at(self, address: str) -> str:
        """The session that a message at an address would join, empty where there is none yet."""
        return await self._db.read(model_calls.session_at, address)

    async def calls(self, session: str, limit: int, until: float = inf) -> list[ModelCall]:
        """The newest calls of a session that had begun by `until` (seconds since the epoch), the newest first."""
        return await self._db.read(model_calls.of_session, session, limit, until)

    async def session_sums(self, session: str) -> Sums:
        """All that a session's calls took."""
        return await self._db.read(spending.of_session, session)
