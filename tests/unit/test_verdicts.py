"""What a summariser may do to entries that are there."""

from collections.abc import Sequence

import pytest

from clew.context.evidence import gathered
from clew.context.ledger import Entry, Ledger
from clew.context.revision import Change, Report, revise
from clew.context.steps import finish
from clew.context.survival import Said, heard
from tests.threads import START

LEDGER: Ledger = (
    Entry("constraint", "Never deploy to production on a Friday.", speaker="Ada", date=START, sources=("a1",), number=1, places=(1,)),
    Entry("task", "Book the ferry to Bergen for the summer.", speaker="Ada", date=START, sources=("a2",), number=2, places=(2,)),
    Entry("fact", "The deadline of the tender is 5 May.", speaker="Ada", date=START, sources=("a3",), number=3, places=(3,)),
    Entry(
        "question",
        "Which hoster should carry the shop?",
        speaker="Ada",
        certainty="asked",
        date=START,
        sources=("a4",),
        number=4,
        places=(4,),
    ),
    Entry("fact", "It rained a little in the morning.", speaker="Ada", date=START, sources=("a5",), number=5, places=(5,)),
)


def after(answer: str, *said: str | tuple[str, str]) -> tuple[dict[int, Entry], Report]:
    """The entries of LEDGER after an answer to messages 11, 12, … (text, or role and text), and the report."""
    told = [each if isinstance(each, tuple) else ("user", each) for each in said]
    rows = [Said(text, "Ada" if role == "user" else role, role, f"b{n}", 10 + n, START + n) for n, (role, text) in enumerate(told, 1)]  # type: ignore[arg-type]
    ledger, report = revise(LEDGER, heard(rows), answer)
    return {entry.number: entry for entry in ledger if entry.number <= 5}, report


def refused(report: Report) -> Sequence[str]:
    return [change.why for change in report.refused]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("form", ["- {} | no longer matters", "- {} | #11", "x {} | done | #11", "x {} | done", "~ {} | Forget it. | #11"])
def test_nothing_that_has_to_survive_goes_by_the_summarisers_own_word(number: int, form: str) -> None:  # P17
    entries, report = after(form.format(number), "The soup was lovely and we sat outside.")
    assert entries[number] == LEDGER[number - 1]
    assert refused(report)


def test_what_need_not_survive_may_go() -> None:  # P15 P21
    entries, report = after("- 5 | the weather", "The soup was lovely.")
    assert 5 not in entries
    assert Change(5, "fact", "It rained a little in the morning.", ("a5",), why="the weather") in report.dropped


def test_a_task_is_closed_by_a_message_that_says_that_it_is_done() -> None:  # P16
    entries, _ = after("x 2 | done | #11", ("assistant", "The ferry to Bergen is booked."))
    assert (entries[2].status, entries[2].places) == ("done", (2, 11))
    entries, _ = after("x 2 | done | #11", "Don't forget the ferry to Bergen!")
    assert entries[2].status == "open"
    entries, _ = after("x 2 | done | #11", ("assistant", "I'll book the ferry to Bergen."))
    assert entries[2].status == "open"


def test_a_question_is_closed_by_what_answers_it() -> None:  # P16
    entries, _ = after("x 4 | answered | #11", "Hetzwerk is the hoster that carries the shop.")
    assert entries[4].status == "answered"
    entries, _ = after("x 4 | answered | #11", "Which hoster was it for the shop?")
    assert entries[4].status == "open"


def test_a_fact_is_amended_by_a_correction() -> None:  # P17 P18
    entries, report = after(
        "~ 3 | The deadline of the tender is 12 May. | #11", "Correction: the deadline of the tender is 12 May, not 5 May."
    )
    assert entries[3].text == "The deadline of the tender is 12 May."
    assert report.changed[0].before == "The deadline of the tender is 5 May."


def test_an_amendment_may_add_and_may_not_lose() -> None:  # P17
    entries, _ = after("~ 2 | Book the ferry to Bergen for the summer, four berths. | #11", "Take four berths on the ferry.")
    assert entries[2].text == "Book the ferry to Bergen for the summer, four berths."
    entries, report = after("~ 3 | The deadline of the tender is soon. | #11", "The tender is a lot of work.")
    assert entries[3] == LEDGER[2]
    assert "loses" in refused(report)[0]
    entries, report = after("~ 1 | Deploy to production on a Friday. | #11", "I deploy to production on a Friday, haha.")
    assert entries[1] == LEDGER[0]
    entries, report = after("~ 2 | Book the ferry to Oslo for the summer. | #11", "The ferry is nice.")
    assert entries[2] == LEDGER[1]


def test_a_rule_is_closed_when_it_is_taken_back_and_not_when_it_is_repeated() -> None:  # P18
    entries, _ = after("x 1 | lifted | #11", "From now on you can deploy to production on a Friday.")
    assert entries[1].status == "open"  # an order for the future is no end of another one by itself
    entries, _ = after("x 1 | lifted | #11", "Actually we decided to deploy to production on a Friday too.")
    assert entries[1].status == "lifted"
    entries, _ = after("x 1 | lifted | #11", "As decided: never deploy to production on a Friday.")
    assert entries[1].status == "open"


def test_numbers_that_are_not_there_are_nobody() -> None:
    entries, report = after("- 77 | gone\nx 78 | done\n~ 79 | new text", "The soup was lovely.")
    assert [*entries.values()] == list(LEDGER)
    assert report.refused == ()


def test_evidence_knows_messages_by_position_and_by_id() -> None:
    evidence = finish(gathered(heard([Said("Hello there.", "Ada", "user", "b1", 11, START)])))
    assert [each.id for each in evidence.cited(["11", "b1", "99"])] == ["b1"]
