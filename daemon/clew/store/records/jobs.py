"""Jobs, and what is done to them."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `spec` is its entry in the config, as JSON; `next_at` the one state of its clock.

    person: whose it is. failures: in a row. rests_until: instants before it are let pass.
    """

    name: str
    spec: str
    enabled: bool
    next_at: float | None
    origin: str = "config"
    person: str | None = None
    failures: int = 0
    rests_until: float | None = None


@dataclass(frozen=True, slots=True)
class JobEffect:
    """What somebody does to a job. person: only if it is theirs; for a new one, whose it is. spec, next_at: of one that begins anew; for
    `run`, next_at is now. An `update` from the spec `was` changes what it has: without spec or next_at these stay; enabled: None leaves
    the job on or off."""

    kind: Literal["add", "update", "remove", "enable", "disable", "run"]
    name: str
    person: str | None = None
    spec: str = ""
    next_at: float | None = None
    origin: Literal["cli", "chat", "api"] = "chat"
    was: str = ""
    enabled: bool | None = None
