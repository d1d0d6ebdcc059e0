"""What the run of a job asks, and what its end says to whom. Pure."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from clew.store import Claim, Outcome
from clew.timetable import ON_TIME, pause, span

SILENT = "[silent]"
"""What a reply begins with that is stored and not sent."""


def asked(prompt: str, job: str, due: float, now: float, zone: str) -> str:
    """The user message of a run. due, now: seconds since the epoch; zone: the job's."""
    late = "It runs late. " if now - due > ON_TIME else ""
    return (
        f"{prompt}\n\n(The job {job} runs by its schedule; it was due at {stamp(due, zone)}. {late}"
        f"If there is nothing that is worth a message, answer {SILENT} and nothing else.)"
    )


def stamp(at: float, zone: str) -> str:
    """A time as people read it, with its offset and zone: 2027-01-15 09:00 +01:00 Europe/Berlin."""
    local = datetime.fromtimestamp(at, ZoneInfo(zone))
    return f"{local:%Y-%m-%d %H:%M} {local.isoformat()[-6:]} {zone}"


def ending(claim: Claim, outcome: Outcome, text: str) -> tuple[Outcome, str]:
    """(how a run ended, what its chat is told of it: empty for nothing).

    A job that fails says so once, and again only when it has worked in between. A run marks no place at which its thread may be cut.
    """
    outcome = replace(outcome, boundary=None)
    if outcome.state == "failed":
        return outcome, "" if claim.failures else failure(claim, text)
    if outcome.state == "done" and text.lstrip().lower().startswith(SILENT):
        return replace(outcome, run="silent"), ""
    return outcome, text


def failure(claim: Claim, why: str) -> str:
    """The words for the first failure in a row."""
    rests = span(pause(1))
    return (
        f"The scheduled job {claim.items[-1].job} failed. {why} It stays on its schedule, but rests for {rests} now, and longer with each"
        " further failure; I say no more of it until it works again."
    )
