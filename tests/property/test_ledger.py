"""Any ledger, any answer: what is not named stays, and nothing raises."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.ledger import CERTAINTIES, KINDS, Entry, Ledger, from_json, numbered, render, to_json, with_numbers
from clew.context.operations import parse
from clew.context.revision import compare, revise
from tests.threads import Thread

words = st.text(st.characters(), max_size=20) | st.sampled_from(["Never on Fridays.", "a | b", "#7", "x 3", "+ fact", "because", ""])
entries = st.builds(
    Entry,
    kind=st.sampled_from(sorted(KINDS)),
    text=words,
    reason=words,
    speaker=words,
    certainty=st.sampled_from(sorted(CERTAINTIES)),
    status=st.sampled_from(["open", "done", "blocked", "in progress", "lifted"]),
    date=st.floats(0, 4e9),
    sources=st.lists(st.sampled_from(["m1", "m2", "abcdefghijkl"]), max_size=3).map(tuple),
    places=st.lists(st.integers(1, 99), max_size=4).map(tuple),
)
ledgers = st.lists(entries, max_size=8).map(lambda each: with_numbers(tuple(each)))
numbers = st.integers(0, 12)
lines = st.one_of(
    st.builds(
        "+ {} | {} | {} | #{} | {}".format, st.sampled_from(sorted(KINDS)), words, st.sampled_from(sorted(CERTAINTIES)), numbers, words
    ),
    st.builds("~ {} | {} | #{}".format, numbers, words, numbers),
    st.builds("x {} | done | #{}".format, numbers, numbers),
    st.builds("- {} | {}".format, numbers, words),
    st.text(st.characters(), max_size=30),
)
answers = st.lists(lines, max_size=8).map("\n".join) | st.text(st.characters(), max_size=200)


def thread() -> Thread:
    made = Thread()
    for text in ("Never on Fridays.", "The code is 4711, I think.", "a | b"):
        made.exchange(text)
    return made


@given(ledgers, answers)
def test_entries_that_are_not_named_stay_byte_for_byte_and_in_order(ledger: Ledger, answer: str) -> None:  # P15
    revised, _ = revise(ledger, thread().window(), answer)
    named = {operation.number for operation in parse(answer)} or {entry.number for entry in ledger if entry.kind == "narrative"}
    untouched = [entry for entry in ledger if entry.number not in named]
    assert [entry for entry in revised if entry in untouched] == untouched
    assert [to_json((entry,)) for entry in revised if entry in untouched] == [to_json((entry,)) for entry in untouched]
    order = [entry.number for entry in revised]
    assert order == sorted(order)
    assert len(set(order)) == len(order)


@given(ledgers)
def test_a_ledger_survives_being_stored(ledger: Ledger) -> None:  # P2
    assert from_json(to_json(ledger)) == ledger


@given(ledgers, st.none() | st.integers(1, 9999))
def test_any_ledger_is_rendered_and_any_rendering_parsed(ledger: Ledger, year: int | None) -> None:  # P16
    for text in (render(ledger, year=year), numbered(ledger)):
        parse(text)
        revise(ledger, thread().window(), text)


@given(st.lists(entries, max_size=5).map(lambda each: with_numbers(tuple(each))))
def test_a_ledger_shown_back_as_it_was_shown_changes_nothing(ledger: Ledger) -> None:  # P15
    plain = tuple(entry for entry in ledger if len((entry.text + entry.reason + entry.speaker).splitlines()) <= 1)
    assert plain == () or revise(plain, thread().window(), numbered(plain))[0] == plain


@given(ledgers, ledgers)
def test_a_report_accounts_for_every_entry(before: Ledger, after: Ledger) -> None:  # P21
    report = compare(before, after)
    assert sorted(each.number for each in (*report.kept, *report.changed, *report.dropped)) == [entry.number for entry in before]
    assert sorted(each.number for each in (*report.kept, *report.changed, *report.added)) == [entry.number for entry in after]
