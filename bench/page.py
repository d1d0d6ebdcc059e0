"""docs/performance.md and its pictures, made of stored results alone."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import fill

from bench.figures import Figure, Result, Results, Target
from bench.plots import svg
from bench.subject import Subject

PAGE = "docs/performance.md"
PICTURES = "docs/images/performance"
WIDTH = 140
_HEAD = """\
# How fast clew is

<!-- Written by `make bench` from bench/results.json: what is changed here is lost. -->

`make bench` measures clew, and beside every figure what it is to be compared with: a floor (the least that has to be done), a rival, or
the same thing in other circumstances, taken in the same run. Times differ from machine to machine; ratios much less. Targets are stated
beside what was measured, met or not. `make bench ARGS="replying recall"` measures these subjects alone and leaves the figures of the
others as they are; `make bench-check` measures and fails where a ratio is worse than the stored one by more than a tenth. A ratio with ~
differs by more than that from run to run, and is not compared. The figures are in [bench/results.json](../bench/results.json) too.
"""


def files(subjects: Sequence[Subject], results: Results) -> dict[str, str]:
    """The text of each file, by its path in the repository."""
    drawn = {
        f"{PICTURES}/{plot.name}.svg": svg(plot, results[subject.name].figures)
        for subject in subjects
        if subject.name in results
        for plot in subject.plots
    }
    return {PAGE: _page(subjects, results), **drawn}


def write(root: Path, made: Mapping[str, str]) -> None:
    """Put the files where they belong."""
    for name, text in made.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _page(subjects: Sequence[Subject], results: Results) -> str:
    there = [subject for subject in subjects if subject.name in results]
    return "\n".join([_HEAD, *_verdict(there, results), *chain.from_iterable(_section(each, results[each.name]) for each in there)])


def _verdict(subjects: Sequence[Subject], results: Results) -> Iterator[str]:
    """How many targets are met, and which are not."""
    held = sum(results[subject.name].targets for subject in subjects)
    missed = [(subject, figure) for subject in subjects for figure in results[subject.name].missed]
    yield f"Of {held} figures that have a target, {held - len(missed)} meet it" + (", and these do not:\n" if missed else ".\n")
    for subject, figure in missed:
        yield f"- {subject.title}: {figure.name}: {_told(figure)}, and the target is {_targets(figure)}"
    if missed:
        yield ""


def _told(figure: Figure) -> str:
    return value(figure) + (f" ({figure.ratio:.2f} × {figure.against.name})" if figure.against and figure.ratio is not None else "")


def _section(subject: Subject, result: Result) -> Iterator[str]:
    yield f"## {subject.title}\n"
    yield fill(" ".join(result.method.split()), WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
    where = f"{result.machine}; {result.python}, SQLite {result.sqlite}; commit {result.commit}, {result.date}"
    yield fill(f"Measured on {where}; {result.sizes}; {_took(result)}.", WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
    yield "| figure | measured | beside | ratio | target | |\n|---|---:|---:|---:|---|---|"
    for figure in result.figures:
        yield f"| {' | '.join(_cells(figure))} |"
    yield ""
    for plot in subject.plots:
        if any(figure.point and figure.point.plot == plot.name for figure in result.figures):
            yield f"![{plot.title}](images/performance/{plot.name}.svg)\n"


def _cells(figure: Figure) -> tuple[str, ...]:
    beside = f"{figure.against.name}: {value(figure, figure.against.value)}" if figure.against else ""
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}" + ("" if figure.steady else " ~")
    return figure.name, value(figure), beside, ratio, _targets(figure), {None: "", True: "met", False: "**missed**"}[figure.met]


def _targets(figure: Figure) -> str:
    return " and ".join(_target(figure, target) for target in figure.targets)


def _target(figure: Figure, target: Target) -> str:
    unit = figure.unit if target.of == "value" else "×"
    return f"at {target.how} {target.bound:,g} {unit}".strip()


def value(figure: Figure, number: float | None = None) -> str:
    """The figure's value, or another one in its unit, for people."""
    shown = figure.value if number is None else number
    digits = 2 if abs(shown) < 10 else 1 if abs(shown) < 100 else 0
    return f"{shown:,.{digits}f} {figure.unit}".strip()


def _took(result: Result) -> str:
    return f"in {result.seconds / 60:.0f} min" if result.seconds >= 90 else f"in {result.seconds:.0f} s"
