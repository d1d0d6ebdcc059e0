"""The figures in docs/evaluation.md: measured by the program, written into the page, read from it again.

`python -m tests.evaluation_page --write` brings the page and its picture up to date; it takes some minutes.
"""

import asyncio
import logging
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import structlog

from clew.config import Compression
from clew.evaluation.figures import figures
from clew.evaluation.key import CATEGORIES
from clew.evaluation.plot import plot
from clew.evaluation.replay import replay
from clew.evaluation.transcript import shipped
from clew.plugins import registry
from clew.providers import Provider, openai
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.summariser import MODES, summariser

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evaluation.md"
PICTURE = ROOT / "docs" / "images" / "compaction-drift.svg"
OFFLINE = "offline"
COUNTS = ("1", "5", "20")
WAYS = {mode: (way.__doc__ or "").partition("\n")[0] for mode, way in MODES.items()}
COMPACTIONS = 20

_ROW = re.compile(r"^\| `([a-z-]+)` \| .*$", re.MULTILINE)
_SHARE = re.compile(r"(\d+(?:\.\d)?) %")


async def measure(mode: str, threads: Sequence[str] = ()) -> dict[str, Any]:
    """The figures of a summariser: `offline`, or one of the bad ones."""
    async with AsyncExitStack() as stack:
        provider = await _provider(mode, stack)
        runs = [await replay(each, provider, Compression(), COMPACTIONS) for each in shipped(threads)]
    return figures(runs, provider.name, mode, Compression().summary_tokens)


async def _provider(mode: str, stack: AsyncExitStack) -> Provider:
    if mode == OFFLINE:
        kind = registry("clew.providers")[OFFLINE]
        made: Provider = kind.build(OFFLINE, kind.Config())
    else:
        emulator = await stack.enter_async_context(OpenAIEmulator(script=summariser(mode)))
        made = openai.plugin.build("hostile", openai.Settings(base_url=emulator.base_url, model="any", context_window=200_000))
    await made.prepare()
    stack.push_async_callback(made.close)
    return made


def corpus_table() -> str:
    rows = [f"| {each.name} | {each.language} | {each.about} | {len(each.messages)} | {len(each.key)} |" for each in shipped()]
    return "\n".join(rows)


def figures_text(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The tables of the page, from the figures of each summariser."""
    offline = measured[OFFLINE]
    columns = [*(offline["passed"][count] for count in COUNTS), offline["final"]]
    parts = [
        "With `offline`, which has no model:",
        _table(
            ("survived", *(f"after {count}" for count in COUNTS), "in the end"),
            ((name, *(_cell(column["survival"][name]) for column in columns)) for name in (*CATEGORIES, "all")),
        ),
        _wrapped(_besides(offline)),
        "![Survival over successive compactions, by category](images/compaction-drift.svg)",
        _wrapped(
            "With summarisers that do their work badly, each in one way (`tests/emulators/summariser.py`), through the same compactor:"
            " the shares that survive in the end, and the faults."
        ),
        _table(
            ("summariser", *CATEGORIES, "all", *offline["faults"]), ((f"`{mode}`", *_in_the_end(each)) for mode, each in measured.items())
        ),
        _table(("summariser", "what it does"), ((f"`{mode}`", way) for mode, way in WAYS.items())),
    ]
    return "\n\n".join(parts)


def _besides(found: Mapping[str, Any]) -> str:
    last = [each["compactions"][-1] for each in found["threads"]]
    speaker, ratios = found["final"]["speaker"], [each["ratio"] * 100 for each in last]
    return (
        f"Speakers in the end: {speaker['right']} right, {speaker['wrong']} wrong, {speaker['untold']} not named. Faults: "
        f"{', '.join(f'{name} {count}' for name, count in found['faults'].items())}. In the end a summary has at most "
        f"{max(each['tokens'] for each in last):,} tokens, {min(ratios):.0f} to {max(ratios):.0f} % of what it stands for. "
        f"The {sum(len(each['compactions']) for each in found['threads'])} calls took "
        f"{sum(each['input_tokens'] for each in found['threads']):,} tokens in and "
        f"{sum(each['output_tokens'] for each in found['threads']):,} out."
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" if line[0] != "---" else f"|{'|'.join(line)}|" for line in lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 125, break_long_words=False, break_on_hyphens=False)


def _cell(found: Mapping[str, Any]) -> str:
    return f"{found['share'] * 100:.1f} % of {found['of']}" if found["of"] else "–"


def _in_the_end(found: Mapping[str, Any]) -> list[str]:
    shares = [found["final"]["survival"][name]["share"] for name in (*CATEGORIES, "all")]
    return ["–" if share is None else f"{share * 100:.1f} %" for share in shares] + [str(count) for count in found["faults"].values()]


def put(page: str, name: str, text: str) -> str:
    """The page with what stands between `<!-- name -->` and the next `<!-- end -->` replaced."""
    head, mark, rest = page.partition(f"<!-- {name} -->\n")
    if not mark:
        raise ValueError(f"there is no <!-- {name} --> in the page")
    return f"{head}{mark}{text}\n<!-- end -->{rest.partition('<!-- end -->')[2]}"


def published(page: str) -> dict[str, tuple[list[float], list[int]]]:
    """What the page says of each summariser: the shares in percent, and the faults."""
    found = {}
    for row in _ROW.finditer(page.partition("<!-- figures -->")[2]):
        cells = [cell.strip() for cell in row[0].strip("|").split("|")][1:]
        if shares := [float(match[1]) for cell in cells if (match := _SHARE.fullmatch(cell))]:
            found[row[1]] = (shares, [int(cell) for cell in cells if cell.isdigit()])
    return found


async def _all() -> dict[str, dict[str, Any]]:
    return {mode: await measure(mode) for mode in (OFFLINE, *MODES)}


def main(arguments: Sequence[str]) -> int:
    if arguments != ["--write"]:
        print(__doc__)
        return 2
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    measured = asyncio.run(_all())
    PAGE.write_text(put(put(PAGE.read_text("utf-8"), "corpus", corpus_table()), "figures", figures_text(measured)), "utf-8")
    PICTURE.write_text(plot(measured[OFFLINE]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
