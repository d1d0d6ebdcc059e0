"""What is measured, as values: figures with what each is compared with, and the results of whole runs as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

DIGITS = 4
"""Significant digits that are kept of a value."""


@dataclass(frozen=True, slots=True)
class Against:
    """What a figure is compared with: a floor, a rival, or the same thing in other circumstances. In the figure's unit."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Target:
    """A bound of the value or of the ratio: at most, or at least."""

    of: Literal["value", "ratio"]
    how: Literal["most", "least"]
    bound: float


@dataclass(frozen=True, slots=True)
class Point:
    """Where a figure stands in a plot: in the series `series`, at `x`."""

    plot: str
    series: str
    x: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value. Its ratio is that to what it is compared with.

    more: whether a larger ratio is the better one. steady: False where the ratio differs by more than a tenth from run to run, as those of
    the slowest of some replies do: it is shown, and no regression is told from it.
    """

    name: str
    value: float
    unit: str
    against: Against | None = None
    targets: tuple[Target, ...] = ()
    more: bool = False
    steady: bool = True
    point: Point | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.against.value if self.against and self.against.value else None

    def meets(self, target: Target) -> bool:
        """Whether the figure keeps to a target. A target of a ratio that it does not have is missed."""
        value = self.value if target.of == "value" else self.ratio
        return value is not None and (value <= target.bound if target.how == "most" else value >= target.bound)

    @property
    def met(self) -> bool | None:
        """Whether all targets are met, None where there is none."""
        return all(map(self.meets, self.targets)) if self.targets else None

    def rounded(self) -> "Figure":
        """As it is stored."""
        against = replace(self.against, value=_rounded(self.against.value)) if self.against else None
        return replace(self, value=_rounded(self.value), against=against)


def at_most(bound: float) -> Target:
    return Target("value", "most", bound)


def at_most_times(bound: float) -> Target:
    return Target("ratio", "most", bound)


def at_least_times(bound: float) -> Target:
    return Target("ratio", "least", bound)


@dataclass(frozen=True, slots=True)
class Result:
    """What a subject came to, and where: all that has to be known to measure it again.

    method: how, in a paragraph; sizes: of what; seconds: how long it took; date: the day, UTC; commit: with `+` where files
    differed from it.
    """

    subject: str
    method: str
    sizes: str
    machine: str
    python: str
    sqlite: str
    commit: str
    date: str
    seconds: float
    figures: tuple[Figure, ...]

    @property
    def targets(self) -> int:
        return sum(figure.met is not None for figure in self.figures)

    @property
    def missed(self) -> tuple[Figure, ...]:
        return tuple(figure for figure in self.figures if figure.met is False)


Results = Mapping[str, Result]
"""By subject."""


def written(results: Results) -> str:
    """As JSON, which `read` reads."""
    return json.dumps([asdict(result) for result in results.values()], indent=1, ensure_ascii=False) + "\n"


def read(path: Path) -> dict[str, Result]:
    """The results in a file, none where there is no file."""
    if not path.exists():
        return {}
    return {result.subject: result for result in map(_result, json.loads(path.read_text("utf-8")))}


def merged(subjects: Sequence[str], stored: Results, new: Results) -> dict[str, Result]:
    """The newest result of each subject, in the order of `subjects`; of what is no subject any more, none."""
    newest = {**stored, **new}
    return {subject: newest[subject] for subject in subjects if subject in newest}


def _result(found: Mapping[str, Any]) -> Result:
    return Result(**{**found, "figures": tuple(map(_figure, found["figures"]))})


def _figure(found: Mapping[str, Any]) -> Figure:
    return Figure(
        **{
            **found,
            "against": Against(**found["against"]) if found["against"] else None,
            "targets": tuple(Target(**target) for target in found["targets"]),
            "point": Point(**found["point"]) if found["point"] else None,
        }
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
