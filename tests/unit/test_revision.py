"""How a compaction revises the ledger."""

from collections.abc import Sequence

from clew.context.ledger import Entry, Ledger, render, to_json
from clew.context.revision import Change, Report, Size, hear, in_all, revise
from clew.context.steps import finish
from clew.context.survival import Heard
from clew.context.tokens import estimate
from tests.threads import START, Thread

KEY = "sk-ant-api03-" + "a1B2" * 8
DAY = 86_400.0


def told(*texts: str, known: Sequence[str] = ()) -> Heard:
    made = Thread()
    for text in texts:
        made.user(text)
    return finish(hear(made.window(), known))


def test_an_answer_that_is_no_list_becomes_the_narrative_with_its_sources_and_date() -> None:  # P15 P16
    ledger, report = revise((), told("We talked about the garden.", "And about the pond."), "  They talked about the garden.\n")
    assert ledger == (Entry("narrative", "They talked about the garden.", date=START + 120, sources=("m1", "m2"), number=1, places=(1, 2)),)
    assert report == Report(added=(Change(1, "narrative", "They talked about the garden.", ("m1", "m2")),))


def test_the_next_narrative_takes_its_place() -> None:  # P15 P21, BO-011
    ledger, _ = revise((), told("We talked about the garden."), "They talked about the garden.")
    ledger, report = revise(ledger, told("Now we talk about the pond."), "They talk about the pond.")
    assert [entry.text for entry in ledger] == ["They talk about the pond."]
    assert [(change.text, change.why) for change in report.dropped] == [("They talked about the garden.", "another one took its place")]


def test_a_summariser_that_returns_its_own_input_makes_no_nest() -> None:  # P15 P17, BO-011
    ledger: Ledger = ()
    sizes = []
    for round in range(6):
        messages = told(f"The code of locker {round} is QX-447{round}.", "The weather was lovely again today.")
        shown = "\n".join([f"{entry.number} | {entry.kind} | {entry.text}" for entry in ledger])
        ledger, _ = revise(
            ledger, messages, f"<current_summary>\n{shown}\n</current_summary>\n[#1 Ada] The code of locker {round} is QX-447{round}."
        )
        sizes.append(estimate(render(ledger)))
    assert [sum(f"QX-447{round}" in entry.text for entry in ledger if entry.kind != "narrative") for round in range(6)] == [1] * 6
    assert all(size <= Size().tokens for size in sizes)
    assert sum(entry.kind == "narrative" for entry in ledger) <= 1


def test_credentials_in_an_answer_reach_neither_ledger_nor_report() -> None:  # P19
    messages = told(f"The key is {KEY} and the word is hunter2hunter2.", known=["hunter2hunter2"])
    for answer in (f"The key is {KEY}.", f"+ fact | Ada | said | #1 | The key is {KEY}.", "=", "It is hunter2hunter2."):
        ledger, report = revise((), messages, answer, ["hunter2hunter2"])
        assert KEY not in to_json(ledger) + repr(report)
        assert "hunter2" not in to_json(ledger) + repr(report)


LEDGER: Ledger = (
    Entry("task", "Book the ferry to Bergen.", speaker="Ada", date=START, sources=("a1",), number=4, places=(1,)),
    Entry("fact", "The cat is called Mo.", speaker="Ada", date=START, sources=("a1",), number=7, places=(1,)),
    Entry("fact", "It rained.", speaker="Ada", date=START, sources=("a1",), number=9, places=(1,)),
)


def test_operations_touch_the_entries_that_they_name_and_no_others() -> None:  # P15 P21
    answer = """x 4 | done | #1
- 9 | small talk
+ preference | Ada | said | #2 | I like the small boats | because they are quiet
~ 99 | nobody
=
7 | fact | ? | said | #1 | x"""
    messages = told("The ferry to Bergen is booked.", "I like the small boats because they are quiet.")
    ledger, report = revise(LEDGER, messages, answer)
    assert ledger[1] == LEDGER[1]
    assert [(entry.number, entry.kind, entry.status, entry.sources) for entry in ledger] == [
        (4, "task", "done", ("a1", "m1")),
        (7, "fact", "open", ("a1",)),
        (10, "preference", "open", ("m2",)),
    ]
    assert (ledger[2].text, ledger[2].reason) == ("I like the small boats", "they are quiet")
    assert report == Report(
        kept=(Change(7, "fact", "The cat is called Mo.", ("a1",)),),
        added=(Change(10, "preference", "I like the small boats", ("m2",)),),
        changed=(Change(4, "task", "Book the ferry to Bergen.", ("a1", "m1")),),
        dropped=(Change(9, "fact", "It rained.", ("a1",), why="small talk"),),
    )


def test_no_summary_is_empty_where_something_was_said() -> None:  # P17
    for text in ("🙂" * 4000, "Hm.", "The soup was lovely."):
        ledger, _ = revise((), told(text), "=", size=Size(400))
        assert ledger
        assert ledger[0].text[0] == text[0]
        assert estimate(render(ledger)) <= 400
    assert revise((), told("  "), "=")[0] == ()


def test_numbers_are_not_given_twice_in_one_revision_and_go_to_none_that_finds_no_room() -> None:  # P15
    messages = told("The code of the locker is QX-4471.", *(f"The code of shelf {n} is QX-{n:04}." for n in range(40)))
    ledger, report = revise(LEDGER, messages, "- 9", size=Size(450))
    numbers = [entry.number for entry in ledger]
    assert numbers == sorted(set(numbers))
    assert [number for number in numbers if number > 9] == list(range(10, 10 + sum(number > 9 for number in numbers)))
    assert {change.number for change in report.dropped if change.why == "no room"} <= {0, 4, 7}


def test_revisions_in_a_row_are_told_as_one() -> None:  # P14 P21
    first = told("The code of the locker is QX-4471.")
    second = told("The ferry to Bergen is booked.", *(f"The code of shelf {n} is QX-{n:04}." for n in range(40)))
    middle, one = revise(LEDGER, first, "- 9 | small talk\n+ fact | Ada | said | #1 | The boat is sold.")
    last, two = revise(middle, second, "x 4 | done | #1", size=Size(450))
    report = in_all(LEDGER, last, [one, two])
    known = {entry.number for entry in LEDGER}
    assert sorted(change.number for change in (*report.kept, *report.changed, *report.dropped) if change.number in known) == sorted(known)
    assert {change.text for change in report.added} == {entry.text for entry in last if entry.number not in known}
    assert [change.text for change in report.refused] == ["The boat is sold."]
    kept = {entry.text for entry in last}
    assert all(change.text not in kept for change in report.dropped)


def test_the_line_that_names_who_stays_takes_room_too() -> None:  # P17
    rules = [Entry("constraint", "", speaker=name, number=n, certainty="asked") for n, name in enumerate(("Ada", "Bob", "Ada"), 1)]
    rules[2] = Entry("constraint", "", "Never deploy on Fridays, unless I say go.", "Ada", "asked", number=3)
    for tokens in range(20, 60):
        size = Size(tokens)
        revised, _ = revise(tuple(rules), told(), "=", size=size)
        assert estimate(render(revised, zone=size.zone, year=size.year)) <= tokens
