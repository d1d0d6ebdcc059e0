"""What daemons on one database hold."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """A name and the daemon that holds it. epoch: how often it came to somebody. left: seconds, negative where it is over."""

    name: str
    owner: str
    epoch: int
    left: float


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What was taken back. daemons: whose lease was over. turns: how many were interrupted. unknown: sends whose outcome stays unknown."""

    daemons: tuple[str, ...]
    turns: int
    unknown: int
