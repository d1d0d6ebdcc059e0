"""How a compaction revises the ledger."""

from clew.context.ledger import Entry, Ledger, to_json
from clew.context.revision import Change, Report, revise
from tests.threads import START, numbered

KEY = "sk-ant-api03-" + "a1B2" * 8


def test_an_answer_that_is_no_list_becomes_the_narrative_with_its_sources_and_date() -> None:  # P15 P16
    ledger, report = revise((), numbered(3).window(), "  They said hello.\n")
    assert ledger == (Entry("narrative", "They said hello.", date=START + 180, sources=("m1", "m2", "m3"), number=1, places=(1, 2, 3)),)
    assert report == Report(added=(Change(1, "narrative", "They said hello.", ("m1", "m2", "m3")),))


def test_credentials_in_an_answer_reach_neither_ledger_nor_report() -> None:  # P19
    for answer in (f"The key is {KEY}.", f"+ fact | Ada | said | #1 | The key is {KEY}."):
        ledger, report = revise((), numbered(1).window(), answer)
        assert KEY not in to_json(ledger) + repr(report)
    ledger, report = revise((), numbered(1).window(), "It is hunter2hunter2.", ["hunter2hunter2"])
    assert "hunter2" not in to_json(ledger) + repr(report)


LEDGER: Ledger = (
    Entry("task", "Book the ferry.", speaker="Ada", date=START, sources=("m1",), number=4, places=(1,)),
    Entry("fact", "The cat is called Mo.", speaker="Ada", date=START, sources=("m1",), number=7, places=(1,)),
    Entry("fact", "It rained.", speaker="Ada", date=START, sources=("m1",), number=9, places=(1,)),
)


def test_operations_touch_the_entries_that_they_name_and_no_others() -> None:  # P15 P21
    answer = """x 4 | done | #2
- 9 | small talk
+ preference | Ada | said | #3 | message 3 | because it is short
~ 99 | nobody
=
7 | fact | ? | said | #1 | x"""
    ledger, report = revise(LEDGER, numbered(3).window(), answer)
    assert ledger[1] == LEDGER[1]
    assert [(entry.number, entry.kind, entry.status, entry.places) for entry in ledger] == [
        (4, "task", "done", (1, 2)),
        (7, "fact", "open", (1,)),
        (10, "preference", "open", (3,)),
    ]
    assert (ledger[2].text, ledger[2].reason, ledger[2].date) == ("message 3", "it is short", START + 180)
    assert report == Report(
        kept=(Change(7, "fact", "The cat is called Mo.", ("m1",)),),
        added=(Change(10, "preference", "message 3", ("m3",)),),
        changed=(Change(4, "task", "Book the ferry.", ("m1", "m2")),),
        dropped=(Change(9, "fact", "It rained.", ("m1",), why="small talk"),),
    )


def test_an_amended_entry_says_what_it_said_before() -> None:  # P21
    ledger, report = revise(LEDGER[:1], numbered(3).window(), "~ 4 | Book the ferry to message 3. | #3")
    assert [entry.text for entry in ledger] == ["Book the ferry to message 3."]
    assert report.changed == (Change(4, "task", "Book the ferry to message 3.", ("m1", "m3"), before="Book the ferry."),)


def test_numbers_are_not_given_twice_in_one_revision() -> None:  # P15
    ledger, _ = revise(LEDGER, numbered(3).window(), "- 9\n+ fact | Ada | said | #3 | message 3\n+ fact | Ada | said | #1 | message 1")
    assert [entry.number for entry in ledger] == [4, 7, 10, 11]
