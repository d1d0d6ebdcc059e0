"""Runs in figures, and the picture of them."""

from xml.etree import ElementTree

from clew.evaluation.figures import figures
from clew.evaluation.key import Item
from clew.evaluation.plot import plot
from clew.evaluation.replay import Run, Snapshot
from clew.evaluation.score import Fate, Fault, Score, Verdict
from clew.evaluation.transcript import Transcript
from clew.messages import Message, Text, Usage

ITEMS = tuple(Item(name, "identifier", (number,), name, ((name,),), "Ada") for number, name in enumerate(("alpha", "beta"), 1))
SECRET = "the safe stands behind the curtain"


def snapshot(number: int, fates: dict[str, Fate], faults: tuple[tuple[Fault, str], ...] = ()) -> Snapshot:
    verdicts = tuple(Verdict(item, fates[item.id], "right") for item in ITEMS if item.id in fates)
    return Snapshot(number, number, 200, 50, 0.1, Usage(10, 5), Score(verdicts, faults, 3), SECRET, ("alpha",))


def run(*snapshots: Snapshot, fits: bool = True) -> Run:
    messages = (Message("1", 1, "user", (Text(SECRET),), 0.0),)
    return Run(Transcript("t", messages, ITEMS, "en", fits=fits), snapshots, 1, "summary-2")


SNAPSHOTS = (
    snapshot(1, {"alpha": "kept"}, (("stale", "alpha"),)),
    snapshot(2, {"alpha": "kept", "beta": "kept"}, (("stale", "alpha"), ("invented", SECRET))),
    snapshot(3, {"alpha": "listed", "beta": "lost"}),
)


def test_survival_is_counted_by_the_compactions_that_an_item_has_passed() -> None:  # P50
    measured = figures([run(*SNAPSHOTS)], "none", "offline", 1500)
    passed = {count: each["survival"]["all"] for count, each in measured["passed"].items()}
    assert [(passed[count]["of"], passed[count]["survived"]) for count in ("1", "2", "3")] == [(2, 2), (2, 1), (1, 0)]
    assert measured["final"]["survival"]["identifier"] == {"of": 2, "kept": 0, "listed": 1, "lost": 1, "survived": 0, "share": 0.0}
    assert measured["final"]["survival"]["task"]["share"] is None
    after = [measured["after"][count]["survival"]["all"] for count in ("1", "2", "3")]
    assert [(each["of"], each["survived"]) for each in after] == [(1, 1), (2, 2), (2, 0)]
    assert measured["prompt_version"] == "summary-2"


def test_what_a_report_lists_has_survived_where_a_thread_holds_more_than_fits() -> None:
    measured = figures([run(*SNAPSHOTS, fits=False)], "none", "offline", 1500)
    assert measured["final"]["survival"]["identifier"]["share"] == 0.5


def test_a_fault_counts_once_for_a_thread() -> None:
    measured = figures([run(*SNAPSHOTS)], "none", "offline", 1500)
    assert {name: count for name, count in measured["faults"].items() if count} == {"stale": 1, "invented": 1}
    thread = measured["threads"][0]
    assert thread["faults"] == measured["faults"]
    assert [each["faults"]["stale"] for each in thread["compactions"]] == [1, 1, 0]
    assert (thread["failed"], thread["input_tokens"], thread["output_tokens"]) == (1, 30, 15)
    assert thread["compactions"][0]["ratio"] == 0.25


def test_a_summary_over_its_budget_is_said() -> None:
    assert figures([run(*SNAPSHOTS)], "none", "offline", 50)["threads"][0]["within"]
    assert not figures([run(*SNAPSHOTS)], "none", "offline", 49)["threads"][0]["within"]


def test_the_figures_hold_nothing_of_what_was_said() -> None:  # P50
    assert SECRET not in str(figures([run(*SNAPSHOTS)], "none", "offline", 1500))


def test_the_picture_is_svg_with_a_line_for_each_category() -> None:
    picture = plot(figures([run(*SNAPSHOTS)], "none", "a <model> & more", 1500))
    tree = ElementTree.fromstring(picture)
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    lines = {each.get("points") for each in tree.iter("{http://www.w3.org/2000/svg}polyline")}
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}polyline"))) == 6
    top, bottom = 44.0, 352.0
    assert f"56,{top} 333.0,{top} 610,{bottom}" in {(points or "").replace("56.0", "56").replace("610.0", "610") for points in lines}
    assert SECRET not in picture


def test_the_picture_of_nothing_is_empty_but_whole() -> None:
    ElementTree.fromstring(plot(figures([run()], "none", "offline", 1500)))
