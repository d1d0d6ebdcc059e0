"""The drift as a picture: survival over successive compactions, as SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from clew.evaluation.key import CATEGORIES

TOP_TENTH = 0.9
"""The lowest share that the picture shows, unless something is below it."""
WIDTH, HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 44, 48
_COLOURS = ("#0b6e99", "#c0392b", "#5b8c2a", "#8e44ad", "#d68910", "#34495e")
_DASHES = ("", "7 3", "2 3", "10 3 2 3", "4 4", "1 3")
_PLURALS = {
    "identifier": "identifiers",
    "constraint": "constraints",
    "decision": "decisions",
    "task": "open tasks",
    "correction": "corrections",
    "certainty": "guesses",
}


def plot(measured: Mapping[str, Any]) -> str:
    """An SVG picture of the figures that `figures` gives."""
    after = measured["after"]
    series = [(name, [after[count]["survival"][name]["share"] for count in after]) for name in CATEGORIES]
    shares = [share for _, values in series for share in values if share is not None]
    low = min(int(min(shares, default=1.0) * 10) / 10, TOP_TENTH)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
        ' font-family="sans-serif" font-size="12" fill="#222">',
        f"<title>{escape(_title(measured))}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">{escape(_title(measured))}</text>',
        *_grid(len(after), low),
    ]
    for place, (name, values) in enumerate(series):
        parts += _line(place, _PLURALS[name], values, len(after), low)
    return "\n".join([*parts, "</svg>", ""])


def _title(measured: Mapping[str, Any]) -> str:
    return f"What survives in the summary: {len(measured['threads'])} threads, summarised by {measured['model'] or measured['provider']}"


def _x(count: float, most: int) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * (count - 1) / max(most - 1, 1), 1)


def _y(share: float, low: float) -> float:
    return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - share) / (1 - low), 1)


def _grid(most: int, low: float) -> list[str]:
    parts = []
    steps = 5 if low == TOP_TENTH else round((1 - low) * 10)
    for step in range(steps + 1):
        share = low + (1 - low) * step / steps
        y = _y(share, low)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{share * 100:.0f} %</text>')
    for count in sorted({1, *range(5, most + 1, 5), most}):
        parts.append(f'<text x="{_x(count, most)}" y="{HEIGHT - _BOTTOM + 20}" text-anchor="middle">{count}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">compactions</text>')
    return parts


def _line(place: int, name: str, values: Sequence[float | None], most: int, low: float) -> list[str]:
    colour, dash = _COLOURS[place], _DASHES[place]
    points = " ".join(f"{_x(count, most)},{_y(share, low)}" for count, share in enumerate(values, 1) if share is not None)
    stroke = f'stroke="{colour}" stroke-width="2" fill="none"' + (f' stroke-dasharray="{dash}"' if dash else "")
    y, x = _TOP + 8 + place * 22, WIDTH - _RIGHT + 14
    return [
        f'<polyline points="{points}" {stroke}/>',
        f'<line x1="{x}" x2="{x + 24}" y1="{y}" y2="{y}" {stroke}/>',
        f'<text x="{x + 30}" y="{y + 4}">{escape(name)}</text>',
    ]
