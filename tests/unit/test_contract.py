"""What is never committed as a summary, what has to stand in it, and what leaves first."""

from dataclasses import replace

import pytest

from clew.context.contract import SHORT_SUMMARY, Index, binding, fitted, must, refusal, room
from clew.context.evidence import gathered
from clew.context.ledger import Entry, render
from clew.context.revision import NO_ROOM, Size, revise
from clew.context.steps import finish
from clew.context.survival import Said, heard
from clew.context.tokens import estimate
from tests.threads import START

LONG = "Ada asked for the plan of the garden. " * 200
DAY = 86_400.0


def said(*texts: str) -> list[Said]:
    return [Said(text, "Ada", "user", f"m{n}", n, START + n * 60) for n, text in enumerate(texts, 1)]


# The guard -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["", "  ", "\n\t\n"])
def test_an_empty_answer_is_refused(answer: str) -> None:  # P17
    assert refusal(answer) == "the summary is empty"


@pytest.mark.parametrize(
    "answer",
    [
        "<!DOCTYPE html><html>502",
        "<html><body>Bad Gateway",
        '{"type":"error","error":{"type":"overloaded_error"}}',
        '{ "error": "no such model" }',
        "Error: connection refused",
        "API Error: 529",
        "internal server error\n",
        "503 Service Unavailable",
        "429: too many requests",
        "I'm sorry, but I cannot do that.",
        "I can't help with that.",
        "Prompt is too long",
        "Invalid API key",
    ],
)
def test_an_error_text_is_refused(answer: str) -> None:  # P17
    assert refusal(answer) == "the summary is an error text"


@pytest.mark.parametrize(
    "answer",
    [
        "Ada saw the error `429: too many requests` and asked for a retry.",
        "Errors of the build were mended.",
        "5000 seeds were ordered.",
        "Goal: mend the HTTP error 503.",
        "+ error | Ada | said | #3 | Error: connection refused",
        "=",
    ],
)
def test_a_summary_about_errors_is_none(answer: str) -> None:  # P17
    assert refusal(answer) == ""


def test_a_summary_never_gets_longer_than_what_it_replaces_unless_it_is_short() -> None:  # P17
    assert estimate(LONG) > SHORT_SUMMARY
    assert room(1500, "one word") == SHORT_SUMMARY
    assert room(1500, LONG) == min(1500, estimate(LONG))
    assert room(300, LONG) == 300


# What has to stand in it -----------------------------------------------------------------------------------------

RULE = "Never deploy to production on a Friday."
FACT = "The host is db-7.example.org and listens on port 5432."


@pytest.mark.parametrize(
    ("entry", "covers"),
    [
        (Entry("constraint", RULE, sources=("m1",), number=1), True),
        (Entry("constraint", f"{RULE} It breaks the weekend.", sources=("m1",), number=1), True),
        (Entry("constraint", "Never deploy to production on Friday!", sources=("m9",), number=1), True),
        (Entry("constraint", "Deploy to production on a Friday.", sources=("m1",), number=1), False),
        (Entry("constraint", "Never deploy to production.", sources=("m1",), number=1), False),
        (Entry("constraint", RULE, certainty="guessed", sources=("m9",), number=1), False),
        (Entry("constraint", "Never deploy to production on Friday!", status="lifted", sources=("m9",), number=1), False),
        (Entry("fact", "The soup was lovely.", sources=("m1",), number=1), False),
    ],
)
def test_a_statement_is_covered_by_an_entry_that_says_the_same(entry: Entry, covers: bool) -> None:  # P17 P18
    evidence = finish(gathered(heard(said(RULE))))
    assert Index([entry], {1: evidence.claim(entry.text)}).covers(evidence.statements[0]) is covers


def test_every_identifier_has_to_be_there() -> None:  # P17, BO-014
    evidence = finish(gathered(heard(said(FACT))))
    for text, covers in ((FACT, True), (FACT.replace("5432", "5433"), False), (FACT.replace("db-7.example.org", "the database"), False)):
        entry = Entry("fact", text, sources=("m9",), number=1)
        assert Index([entry], {1: evidence.claim(text)}).covers(evidence.statements[0]) is covers


def test_what_the_summariser_leaves_out_is_added_from_the_source() -> None:  # P17, BO-013, BO-014
    ledger, report = revise((), heard(said("Hello there.", RULE, FACT, "lol nice")), "=")
    assert [(entry.kind, entry.text, entry.speaker, entry.sources) for entry in ledger] == [
        ("constraint", RULE, "Ada", ("m2",)),
        ("fact", FACT, "Ada", ("m3",)),
    ]
    assert [change.text for change in report.added] == [RULE, FACT]


def test_a_rendering_that_loses_something_gives_way_to_the_source() -> None:  # P17
    answer = "+ identifier | Ada | said | #2 | The host is db-7.example.org.\n+ constraint | Ada | said | #1 | No deploys on Fridays."
    ledger, _ = revise((), heard(said(RULE, FACT)), answer)
    assert sorted(entry.text for entry in ledger) == sorted([RULE, FACT])


def test_what_is_known_is_not_added_again() -> None:  # P15
    first, _ = revise((), heard(said(RULE, FACT)), "=")
    again = [Said(f"Remember: {RULE}", "Ada", "user", "m9", 9, START + DAY)]
    second, report = revise(first, heard(again), "=")
    assert second == first
    assert report.added == ()


def test_sentences_of_one_message_share_a_line_and_a_fact_goes_with_the_rule_about_it() -> None:  # P16
    ledger, _ = revise((), heard(said("The host is db-7.example.org. The port is 54321. Never restart it without asking me first.")), "=")
    assert [(entry.kind, entry.text) for entry in ledger] == [
        ("constraint", "The host is db-7.example.org. The port is 54321. Never restart it without asking me first."),
    ]


def test_what_differs_in_kind_certainty_or_message_does_not_share_a_line() -> None:  # P16 P18
    texts = (
        "Never ring the bell after nine. Please book the ferry to Bergen for the summer.",
        "I think the ferry costs about 80 €. The cabin is B-117.",
    )
    ledger, _ = revise((), heard(said(*texts)), "=")
    assert [(entry.kind, entry.certainty, entry.sources) for entry in ledger] == [
        ("constraint", "said", ("m1",)),
        ("task", "said", ("m1",)),
        ("fact", "guessed", ("m2",)),
        ("fact", "said", ("m2",)),
    ]


@pytest.mark.parametrize(
    ("entry", "statement"),
    [("Tag v5.19.0-rc1 is on main, for testing.", "v5.19.0 is out."), ("The code is QX-4471-B of the locker.", "The code is QX-4471.")],
)
def test_an_identifier_inside_a_longer_one_is_another_one(entry: str, statement: str) -> None:  # P17
    ledger, _ = revise((), heard(said(entry, statement)), "=")
    assert [each.text for each in ledger] == [entry, statement]


# What leaves first -----------------------------------------------------------------------------------------------

ENTRIES = (
    Entry("narrative", "They talked about the house.", date=START + 9, number=1),
    Entry("task", "Book the ferry to Bergen.", date=START + 9, status="done", number=2),
    Entry("fact", "The old code is QX-4471.", speaker="Ada", date=START, number=3),
    Entry("fact", "The new code is QX-9982.", speaker="Ada", date=START + 5, number=4),
    Entry("decision", "We decided to take the train because it is calmer.", speaker="Ada", date=START, number=5),
    Entry("task", "Remind me to renew the passport before the trip.", speaker="Ada", date=START, number=6),
    Entry("constraint", "Never ring the bell after nine without asking me.", speaker="Ada", date=START, number=7),
)


def test_narrative_and_closed_leave_first_then_what_binds_least_the_older_first() -> None:  # P17
    size, left = Size(), []
    total = estimate(render(ENTRIES)) + 40
    while total > 0:
        total -= 1
        for entry in fitted(ENTRIES, total, size.cost, lambda entry: binding(entry, START)).left:
            if entry.number not in left:
                left.append(entry.number)
    assert left[:2] == [1, 2]
    assert left.index(3) < left.index(4)
    assert left[-1] == 7


def test_an_appointment_that_is_over_leaves_before_one_that_is_not() -> None:  # P17
    soon = Entry("task", "Please remind me on 2 June to pay the rent.", speaker="Ada", date=START, number=1)
    assert binding(soon, START) > binding(soon, START + 30 * DAY)
    assert must(soon)


@pytest.mark.parametrize(
    ("settles", "entry"),
    [
        (True, Entry("fact", "I think the tap in the kitchen costs about 80 €.", speaker="Ada", certainty="guessed", date=START, number=1)),
        (True, Entry("error", "connection to db-7 refused", speaker="tool", date=START, number=1)),
        (False, Entry("fact", "The tap in the kitchen costs 80 €.", speaker="Ada", date=START, number=1)),
        (False, Entry("constraint", "Never ring the bell after nine without asking me.", speaker="Ada", date=START, number=1)),
    ],
)
def test_a_guess_and_an_error_bind_less_the_older_they_are(settles: bool, entry: Entry) -> None:  # P17
    weights = [binding(entry, START + days * DAY) for days in (0, 10, 300)]
    assert weights == sorted(weights, reverse=True)
    assert (weights[0] > weights[1] > weights[2]) is settles
    assert (weights[0] == weights[2]) is not settles


def test_the_kind_that_a_summariser_claims_does_not_decide_who_leaves() -> None:  # P17 P18
    chatter = Entry("constraint", "We sat outside for a long time.", speaker="Ada", date=START, number=1)
    rule = Entry("fact", "Never ring the bell after nine without asking me.", speaker="Ada", date=START, number=2)
    assert binding(chatter, START) < binding(rule, START)
    assert must(chatter)


def test_the_goal_weighs_more_than_its_words_until_its_day_has_come() -> None:  # P17 P18
    goal = Entry("goal", "All photos are to be at home before 2 June.", speaker="Ada", date=START, number=1, places=(2,))
    late = replace(goal, places=(90,))
    assert binding(goal, START) > binding(late, START)
    assert binding(goal, START + 30 * DAY) == binding(late, START + 30 * DAY)


def test_an_entry_that_is_too_long_for_the_room_left_does_not_keep_a_short_one_out() -> None:
    cost = {1: 10, 2: 30, 3: 10}
    entries = [Entry("fact", "x", number=number) for number in cost]
    room = 20 + estimate("## Facts and identifiers\n")
    fits = fitted(entries, room, lambda entry: cost[entry.number], lambda entry: 9 - entry.number)
    assert [entry.number for entry in fits.kept] == [1, 3]


def test_a_line_binds_as_its_weightiest_part() -> None:  # P17
    texts = [f"The code of locker {number} is QX-{4000 + number}." for number in range(60)]
    ledger, _ = revise((), heard(said(*texts, f"My number is 0664 118 70 25. {RULE}")), "=", size=Size(500))
    assert f"My number is 0664 118 70 25. {RULE}" in [entry.text for entry in ledger]


def test_what_leaves_is_listed_with_its_sources() -> None:  # P21
    texts = [f"The code of locker {number} is QX-{4000 + number}." for number in range(60)]
    ledger, report = revise((), heard(said(*texts, RULE)), "=", size=Size(500))
    assert estimate(render(ledger)) <= 500
    assert RULE in [entry.text for entry in ledger]
    kept = {entry.text for entry in ledger}
    assert {change.text for change in report.dropped} == set(texts) - kept
    assert all(change.why == NO_ROOM and change.sources and not change.number for change in report.dropped)
    assert max(entry.date for entry in ledger if entry.kind == "fact") == START + 60 * 60
