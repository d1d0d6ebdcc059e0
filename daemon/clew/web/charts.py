"""Charts as shapes for an inline SVG: bars of one width, stacked where they have parts. Pure; a template draws them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

HEIGHT = 100.0
"""Units of a chart from its floor to its top. Its width is one unit for each bar; the page stretches both."""
GAP = 0.08
"""Part of a bar's place that is left free on each side."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a chart. part: which part of the bar it is, from 0."""

    x: float
    y: float
    width: float
    height: float
    part: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar with what is said of it."""

    boxes: tuple[Box, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """bars: from left to right. most: the value at the top. marks: where something happened, between two bars."""

    bars: tuple[Bar, ...]
    most: float
    marks: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        return max(len(self.bars), 1)


def chart(values: Sequence[Sequence[float]], labels: Sequence[str], *, most: float | None = None, marks: Collection[int] = ()) -> Chart:
    """A chart of bars, each of parts that stand on each other; negative ones count as nothing.

    most: the value at the top, the greatest bar's without one; what is higher is cut there. marks: bars in front of which something
    happened. Raises ValueError unless there is a label for each bar.
    """
    top = most if most is not None else max((sum(max(part, 0.0) for part in parts) for parts in values), default=0.0)
    bars = tuple(Bar(_boxes(number, parts, top), label) for number, (parts, label) in enumerate(zip(values, labels, strict=True)))
    return Chart(bars, top, tuple(float(each) for each in sorted(set(marks)) if 0 <= each < len(bars)))


def _boxes(number: int, parts: Sequence[float], top: float) -> tuple[Box, ...]:
    boxes, floor = [], 0.0
    for part, value in enumerate(parts):
        height = min(HEIGHT * max(value, 0.0) / top, HEIGHT - floor) if top > 0 else 0.0
        if height > 0:
            boxes.append(Box(round(number + GAP, 3), round(HEIGHT - floor - height, 3), round(1 - 2 * GAP, 3), round(height, 3), part))
            floor += height
    return tuple(boxes)
