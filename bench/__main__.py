"""`python -m bench [SUBJECT …]`: measure, show, and keep the figures in bench/results.json, docs/performance.md and its pictures.

`--small`: smaller sizes, and nothing is kept. `--check`: compare with what is kept and end with 1 where a ratio is worse; what is worse is
measured once more before that is said. `--turns N`: turns after which memory is read. `--days N`: of made-up chat. `--seed N`: another
chat than that of 1, of which nothing is kept. `--page`: nothing is measured, and the page is written from what is kept.
"""

import argparse
import asyncio
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench import machine, page
from bench.checking import compared, regressions
from bench.figures import Figure, Result, merged, read, written
from bench.seeding import Stores
from bench.subject import SMALL, Run, Sizes, Subject
from bench.subjects import NAMES, SUBJECTS
from clew.context.redact import redact
from clew.logging import setup

RESULTS = machine.ROOT / "bench" / "results.json"


async def measured(subject: Subject, sizes: Sizes, stores: Stores, folder: Path) -> Result:
    """What a subject comes to, here and now."""
    began = time.monotonic()
    figures = await subject.measure(Run(folder, sizes, stores))
    return Result(
        subject=subject.name,
        method=subject.method,
        sizes=subject.sizes(sizes),
        machine=machine.machine(),
        python=machine.python(),
        sqlite=machine.sqlite(),
        commit=machine.commit(),
        date=datetime.now(UTC).date().isoformat(),
        seconds=round(time.monotonic() - began),
        figures=tuple(figure.rounded() for figure in figures),
    )


def line(figure: Figure) -> str:
    """A figure in one line of the table."""
    ratio = f"{figure.ratio:9.2f} x {figure.against.name}" if figure.against and figure.ratio is not None else ""
    verdict = {None: "", True: "met", False: "MISSED"}[figure.met]
    return f"  {figure.name:72} {page.value(figure):>16} {ratio:40} {verdict}".rstrip()


async def results(subjects: Sequence[Subject], sizes: Sizes, keep: bool) -> dict[str, Result]:
    """Measure subjects one after the other, and keep what is done. What fails is told, and is not in the results."""
    found: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as root:
        stores = Stores(Path(root) / "stores")
        for number, subject in enumerate(subjects):
            try:
                found[subject.name] = result = await measured(subject, sizes, stores, Path(root) / str(number))
            except Exception:
                print(f"{subject.title}: not measured", flush=True)
                traceback.print_exc()
                continue
            print("\n".join([f"{subject.title} ({result.seconds:.0f} s)", *map(line, result.figures)]), flush=True)
            if keep:
                _keep(found)
    return found


def _keep(found: dict[str, Result]) -> None:
    everything = merged(NAMES, read(RESULTS), found)
    RESULTS.write_text(written(everything), "utf-8")
    page.write(machine.ROOT, page.files(SUBJECTS, everything))


async def check(subjects: Sequence[Subject], sizes: Sizes) -> int:
    """1 where a ratio is worse than the one that is kept, in two measurements."""
    kept, new = read(RESULTS), await results(subjects, sizes, keep=False)
    worse = regressions(kept, new)
    if again := [subject for subject in subjects if subject.name in {each.subject for each in worse}]:
        print("Measured once more: " + ", ".join(subject.title for subject in again), flush=True)
        worse_again = {(each.subject, each.name) for each in regressions(kept, await results(again, sizes, keep=False))}
        worse = [each for each in worse if (each.subject, each.name) in worse_again]
    print(f"{compared(kept, new)} ratios compared, {len(worse)} worse by more than a tenth")
    print("\n".join(map(str, worse)))
    return int(bool(worse) or len(new) < len(subjects))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure what clew costs.")
    parser.add_argument("subject", nargs="*", help=f"all of them if none is named: {', '.join(NAMES)}")
    parser.add_argument("--small", action="store_true", help="smaller sizes; nothing is kept")
    parser.add_argument("--check", action="store_true", help="compare with what is kept; nothing is kept")
    parser.add_argument("--turns", type=int, metavar="N", help="turns after which memory is read")
    parser.add_argument("--days", type=int, metavar="N", help="days of made-up chat")
    parser.add_argument("--seed", type=int, metavar="N", help="another chat; nothing is kept")
    parser.add_argument("--page", action="store_true", help="write the page from what is kept, and measure nothing")
    asked = parser.parse_args()
    if unknown := set(asked.subject) - set(NAMES):
        parser.error(f"there is no subject {min(unknown)}; there are {', '.join(NAMES)}")
    setup("warning", "console", redact)
    if asked.page:
        _keep({})
        return 0
    subjects = [subject for subject in SUBJECTS if not asked.subject or subject.name in asked.subject]
    sizes = SMALL if asked.small else Sizes()
    given = {"many": asked.turns, "days": asked.days, "seed": asked.seed}
    sizes = replace(sizes, **{name: value for name, value in given.items() if value is not None})
    if asked.check:
        return asyncio.run(check(subjects, sizes))
    found = asyncio.run(results(subjects, sizes, keep=not asked.small and asked.seed is None))
    missed = [figure for result in found.values() for figure in result.missed]
    print(f"{sum(result.targets for result in found.values()) - len(missed)} targets met, {len(missed)} missed")
    return int(len(found) < len(subjects))


if __name__ == "__main__":
    sys.exit(main())
