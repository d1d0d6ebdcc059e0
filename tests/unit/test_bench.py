"""The bench: what it compares, keeps and writes. What it measures is no matter of these tests."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import accepting, finding, page, seeding, weighing
from bench.__main__ import RESULTS
from bench.checking import Regression, compared, regressions
from bench.figures import Against, Figure, Point, Result, at_least_times, at_most, at_most_times, merged, read, written
from bench.plots import svg
from bench.subject import SMALL, Plot, Run, Subject
from bench.subjects import NAMES, SUBJECTS
from bench.talking import quantile
from clew.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]


def result(*figures: Figure, subject: str = "replying", commit: str = "c1") -> Result:
    return Result(subject, "How.", "10 turns", "a machine", "CPython 3.11", "3.40", commit, "2027-01-15", 3.0, figures)


def figure(value: float, floor: float | None = 1.0, **more: object) -> Figure:
    return replace(Figure("a turn", value, "ms", Against("floor", floor) if floor is not None else None), **more)  # type: ignore[arg-type]


def test_a_figure_meets_its_targets_or_not() -> None:
    assert figure(3.0).met is None
    assert figure(3.0, 1.0, targets=(at_most(3.0), at_most_times(3.0))).met is True
    assert figure(3.0, 1.0, targets=(at_most(3.0), at_most_times(2.9))).met is False
    assert figure(3.0, 1.0, targets=(at_least_times(3.1),)).met is False
    assert figure(3.0, 0.0, targets=(at_most_times(100.0),)).met is False  # nothing to compare with


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    kept = {"replying": result(figure(3.0, 1.0, targets=(at_most(5.0),), point=Point("plot", "off", 100), more=True), figure(1.0, None))}
    (tmp_path / "results.json").write_text(written(kept))
    assert read(tmp_path / "results.json") == kept
    assert read(tmp_path / "none.json") == {}


def test_a_run_of_some_subjects_leaves_the_others() -> None:
    old = {name: result(subject=name, commit="old") for name in ("a", "b", "gone")}
    kept = merged(("b", "c", "a"), old, {"a": result(subject="a", commit="new")})
    assert {name: each.commit for name, each in kept.items()} == {"b": "old", "a": "new"}
    assert list(kept) == ["b", "a"]


@pytest.mark.parametrize(
    ("before", "now", "worse"),
    [
        (figure(4.0), figure(4.4), False),  # within a tenth
        (figure(4.0), figure(4.41), True),
        (figure(4.0), figure(2.0), False),  # better
        (figure(4.0), figure(40.0, 10.0), False),  # another machine: the ratio is the same
        (figure(4.0, more=True), figure(3.59, more=True), True),
        (figure(4.0, more=True), figure(5.0, more=True), False),
        (figure(4.0), figure(9.0, steady=False), False),
        (figure(4.0, None), figure(9.0, None), False),  # no ratio
        (figure(4.0, name="of another size"), figure(9.0), False),
    ],
)
def test_a_regression_is_a_ratio_that_is_worse_by_more_than_a_tenth(before: Figure, now: Figure, worse: bool) -> None:
    found = regressions({"replying": result(before)}, {"replying": result(now)})
    assert found == ([Regression("replying", "a turn", before.ratio or 0, now.ratio or 0)] if worse else [])


def test_what_has_no_stored_ratio_is_not_compared() -> None:
    assert compared({}, {"replying": result(figure(4.0))}) == 0
    assert compared({"replying": result(figure(4.0))}, {"replying": result(figure(9.0))}) == 1
    assert regressions({}, {"replying": result(figure(4.0))}) == []


async def nothing(_: Run) -> Sequence[Figure]:
    return ()


SUBJECT = Subject("replying", "A reply", "How.", nothing, lambda _: "", (Plot("of-turns", "Turns & floors", "chats", "ms"),))


def test_the_page_says_what_was_missed() -> None:
    figures = (
        figure(3.0, targets=(at_most(3.5), at_most_times(4.0))),
        figure(4.5, name="a long turn", targets=(at_most_times(4.0),)),
        figure(1234.5, None, name="a start", steady=False),
    )
    text = page.files([SUBJECT], {"replying": result(*figures)})[page.PAGE]
    assert "Of 2 figures that have a target, 1 meet it" in text
    assert "- A reply: a long turn: 4.50 ms (4.50 × floor), and the target is at most 4 ×" in text
    assert "| a turn | 3.00 ms | floor: 1.00 ms | 3.00 | at most 3.5 ms and at most 4 × | met |" in text
    assert "| a long turn | 4.50 ms | floor: 1.00 ms | 4.50 | at most 4 × | **missed** |" in text
    assert "| a start | 1,234 ms |  |  |  |  |" in text
    assert "a machine; CPython 3.11, SQLite 3.40; commit c1, 2027-01-15; 10 turns; in 3 s." in text


def test_a_picture_has_a_line_for_each_series() -> None:
    points = [(series, x, value) for series, factor in (("off", 1), ("on", 2)) for x, value in ((1, 3.1 * factor), (1000, 4.0 * factor))]
    figures = [figure(value, name=f"{series} {x}", point=Point("of-turns", series, x)) for series, x, value in points]
    drawn = ElementTree.fromstring(svg(SUBJECT.plots[0], [*figures, figure(900.0)]))
    space = "{http://www.w3.org/2000/svg}"
    lines = [line.get("points", "").split() for line in drawn.iter(f"{space}polyline")]
    assert [len(line) for line in lines] == [2, 2]
    words = [text.text for text in drawn.iter(f"{space}text")]
    assert {"Turns & floors", "off", "on", "1", "1,000", "chats", "ms", "0", "8"} <= set(words)
    assert "prefers-color-scheme: dark" in (drawn.findtext(f"{space}style") or "")
    heights = [float(point.partition(",")[2]) for line in lines for point in line]
    assert heights == sorted(heights, reverse=True)  # what is more stands higher


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_quantile_is_the_value_that_so_many_do_not_exceed(share: float, value: int) -> None:
    assert quantile(list(range(100, 0, -1)), share) == value


def test_the_page_is_made_of_the_stored_results() -> None:
    for name, text in page.files(SUBJECTS, read(RESULTS)).items():
        assert (ROOT / name).read_text("utf-8") == text, f"{name}: run `python -m bench --page`"
    drawn = {path.name for path in (ROOT / page.PICTURES).glob("*")}
    assert drawn == {f"{plot.name}.svg" for subject in SUBJECTS if subject.name in read(RESULTS) for plot in subject.plots}


def test_each_stored_result_says_where_and_how_it_was_taken() -> None:
    kept = json.loads(RESULTS.read_text("utf-8"))
    assert [each["subject"] for each in kept] == [name for name in NAMES if name in {each["subject"] for each in kept}]
    for each in kept:
        assert all(each[key] for key in ("method", "sizes", "machine", "python", "sqlite", "commit", "figures"))
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", each["date"])
        assert len({figure["name"] for figure in each["figures"]}) == len(each["figures"])  # a ratio is found again by it


@pytest.mark.asyncio
async def test_a_store_in_bulk_is_as_clew_writes_it(tmp_path: Path) -> None:
    await seeding.seed(tmp_path / "two", 18_000, ("ada", "bob"))
    store = await SqliteStore.open(tmp_path / "two" / "data" / "clew.db", 1.0)
    try:
        assert await store.check() == []
        assert not await store.make_lanes()  # those that are due are there
    finally:
        await store.close()


@pytest.mark.asyncio
async def test_a_subject_is_measured(tmp_path: Path) -> None:
    sizes = replace(SMALL, found=(400,), questions=4)
    figures = await finding.subject.measure(Run(tmp_path, sizes, seeding.Stores(tmp_path / "stores")))
    assert {each.name for each in figures} >= {"search among 400 messages: CPU at the median", "indexes of 400 messages"}
    assert all(each.value > 0 and each.ratio for each in figures)


@pytest.mark.asyncio
async def test_what_arrives_is_stored_beside_plain_commits(tmp_path: Path) -> None:
    figures = await accepting.subject.measure(Run(tmp_path, replace(SMALL, arrivals=400), seeding.Stores(tmp_path / "stores")))
    assert [each.name for each in figures] == ["stored from 1 sender", "stored from 50 senders at once"]
    assert all(each.value > 0 and each.ratio and each.more and each.targets for each in figures)


def test_what_is_installed_is_what_a_package_requires() -> None:
    required = weighing.required(["clew"])
    assert {"aiohttp", "yarl", "anthropic", "pydantic-core"} <= required
    assert not {"clew", "pytest", "matrix-nio", "slixmpp"} & required  # extras are not brought
