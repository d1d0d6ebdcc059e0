"""What is left of a summary when some of its messages are forgotten."""

import json

from hypothesis import given
from hypothesis import strategies as st

from clew.context.forgetting import ASKED, ENTRIES, silent, without
from clew.context.ledger import Entry, render

IDS = st.sampled_from("abcdef")
LEDGERS = st.lists(st.lists(IDS, max_size=3), max_size=8).map(
    lambda all_sources: tuple(
        Entry("fact", f"said in {''.join(sources)} {number}", sources=tuple(sources), number=number)
        for number, sources in enumerate(all_sources, 1)
    )
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(LEDGERS, st.sets(IDS))
def test_no_entry_is_left_that_may_stand_on_what_is_forgotten(ledger: tuple[Entry, ...], forgotten: set[str]) -> None:  # P17
    left = without(ledger, forgotten)
    assert [entry for entry in ledger if entry in left] == list(left)
    assert all(entry.sources and forgotten.isdisjoint(entry.sources) for entry in left)
    assert all(entry in left for entry in ledger if entry.sources and forgotten.isdisjoint(entry.sources))
    assert without(left, forgotten) == left
    assert all(entry.text in render(left) for entry in left)


@given(st.dictionaries(st.sampled_from([*ENTRIES, *ASKED, "total", "first_at"]), ANYTHING))
def test_a_report_keeps_its_figures_and_no_words(report: dict[str, object]) -> None:  # P21
    left = json.loads(silent(json.dumps(report)))
    assert left == {key: value for key, value in json.loads(json.dumps(report)).items() if key not in (*ENTRIES, *ASKED)}


@given(st.text() | ANYTHING.map(json.dumps))
def test_any_report_can_be_silenced(report: str) -> None:
    assert isinstance(json.loads(silent(report)), dict)
