"""Figures as pictures: small SVGs that follow the reader's light or dark theme."""

from collections.abc import Sequence
from html import escape

from bench.figures import Figure
from bench.subject import Plot

WIDTH, HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 166, 44, 52
_LINES = 5
"""Lines of the grid above the axis, at most."""
_STYLE = """<style>
 svg { background: #fff; color: #222; font: 12px sans-serif }
 text { fill: currentColor } .grid { stroke: #ddd } .title { font-size: 14px }
 .s0 { stroke: #0b6e99 } .s1 { stroke: #c0392b } .s2 { stroke: #5b8c2a } .s3 { stroke: #8e44ad }
 .line { fill: none; stroke-width: 2 }
 .s1.line { stroke-dasharray: 7 3 } .s2.line { stroke-dasharray: 2 3 } .s3.line { stroke-dasharray: 10 3 2 3 }
 .dot { fill: #fff; stroke-width: 2 }
 @media (prefers-color-scheme: dark) {
  svg { background: #161b22; color: #e6edf3 } .grid { stroke: #30363d } .dot { fill: #161b22 }
  .s0 { stroke: #4fb3e0 } .s1 { stroke: #ff7b6b } .s2 { stroke: #9ccc65 } .s3 { stroke: #c792ea }
 }
</style>"""


def svg(plot: Plot, figures: Sequence[Figure]) -> str:
    """The figures that have a point in the plot, a line for each series; their places on the x axis are in order, not to scale."""
    points = [(figure.point, figure.value) for figure in figures if figure.point and figure.point.plot == plot.name]
    places = sorted({point.x for point, _ in points})
    top, step = _scale(max((value for _, value in points), default=1.0))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(plot.title)}</title>",
        _STYLE,
        f'<text class="title" x="{_LEFT}" y="24">{escape(plot.title)}</text>',
        *_grid(plot, places, top, step),
    ]
    for number, series in enumerate(dict.fromkeys(point.series for point, _ in points)):
        there = sorted((places.index(point.x), value) for point, value in points if point.series == series)
        parts += _line(number, series, [(_x(place, len(places)), _y(value, top)) for place, value in there])
    return "\n".join([*parts, "</svg>", ""])


def _scale(largest: float) -> tuple[float, float]:
    """(where the y axis ends, from line to line): steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** len(str(int(largest))) / 100 if largest >= 1 else 0.01
    step = next(power * factor for factor in (1, 2, 5, 10, 20, 50, 100) if power * factor * _LINES >= largest)
    count = next(count for count in range(1, _LINES + 1) if count * step >= largest)
    return count * step, step


def _x(place: int, places: int) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * (place + 0.5) / places, 1)


def _y(value: float, top: float) -> float:
    return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - value / top), 1)


def _grid(plot: Plot, places: Sequence[float], top: float, step: float) -> list[str]:
    parts = []
    for line in range(round(top / step) + 1):
        y = _y(line * step, top)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{line * step:.6g}</text>')
    for number, place in enumerate(places):
        parts.append(f'<text x="{_x(number, len(places))}" y="{HEIGHT - _BOTTOM + 20}" text-anchor="middle">{place:,.10g}</text>')
    parts.append(f'<text x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(plot.x)}</text>')
    parts.append(f'<text x="{_LEFT - 8}" y="{_TOP - 12}" text-anchor="end">{escape(plot.y)}</text>')
    return parts


def _line(number: int, series: str, points: Sequence[tuple[float, float]]) -> list[str]:
    x, y = WIDTH - _RIGHT + 14, _TOP + 8 + number * 22
    return [
        f'<polyline class="s{number} line" points="{" ".join(f"{x},{y}" for x, y in points)}"/>',
        *(f'<circle class="s{number} dot" cx="{x}" cy="{y}" r="3.5"/>' for x, y in points),
        f'<line class="s{number} line" x1="{x}" x2="{x + 24}" y1="{y}" y2="{y}"/>',
        f'<text x="{x + 30}" y="{y + 4}">{escape(series)}</text>',
    ]
