"""Jobs, when they are due, and what became of their runs."""

from collections.abc import Sequence
from typing import Any

from clew.store import Job, JobEffect, jobs, runs
from clew.store.doors.opened import Opened
from clew.transport import Address


class JobsDoor(Opened):
    """Jobs, when they are due, and what became of their runs."""

    async def jobs(self) -> list[Job]:
        return await self._db.read(jobs.listing)

    async def job(self, name: str, person: str | None = None) -> Job:
        """A job by its name; person: theirs alone. Raises NotFound."""
        return await self._db.read(jobs.find, name, person)

    async def change_job(self, effect: JobEffect, now: float) -> None:
        """Raises NotFound or UsageError."""
        await self._db.write(jobs.take, effect, now)
        self._notify(self.jobs_changed, *([self.arrivals] if effect.kind == "run" else []))

    async def fire(
        self, job: str, instant: float, next_at: float | None, now: float, text: str, to: Address, runs_in: str = "chat"
    ) -> bool:
        fired = await self._db.write(jobs.fire, job, instant, next_at, now, text, to, runs_in)
        self._notify(self.arrivals)
        return fired

    async def job_runs(self, job: str) -> bool:
        """Whether a run of `job` waits or is going on."""
        return await self._db.read(jobs.runs, job)

    async def missed(self, job: str, instants: Sequence[float], next_at: float | None, now: float, note: str = "") -> None:
        await self._db.write(jobs.missed, job, instants, next_at, now, note)

    async def set_job_back(self, job: str, next_at: float) -> None:
        await self._db.write(jobs.set_back, job, next_at)

    async def job_history(self, job: str, limit: int) -> list[dict[str, Any]]:
        return await self._db.read(runs.history, job, limit)

    async def last_reply(self, job: str) -> str:
        """What the job's newest run that came to something said."""
        return await self._db.read(runs.last_reply, job)
