"""Whether a ratio has become worse than the one that is stored."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.figures import Figure, Results

TOLERANCE = 0.1
"""The part of a ratio by which it may be worse."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A ratio that is worse than before."""

    subject: str
    name: str
    before: float
    now: float

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}: {self.before:.3g} before, {self.now:.3g} now"


def regressions(before: Results, now: Results) -> list[Regression]:
    """The steady ratios that are worse by more than `TOLERANCE`, of figures that both have: those of other sizes have other names."""
    return [
        Regression(subject, name, old, new)
        for subject, name, figure, old, new in _ratios(before, now)
        if (new < old * (1 - TOLERANCE) if figure.more else new > old * (1 + TOLERANCE))
    ]


def compared(before: Results, now: Results) -> int:
    """How many ratios can be compared."""
    return len(list(_ratios(before, now)))


def _ratios(before: Results, now: Results) -> Iterator[tuple[str, str, Figure, float, float]]:
    for subject, result in now.items():
        known = {figure.name: figure for figure in before[subject].figures} if subject in before else {}
        for figure in result.figures:
            old, new = known[figure.name].ratio if figure.name in known else None, figure.ratio
            if figure.steady and old is not None and new is not None:
                yield subject, figure.name, figure, old, new
