"""How a compaction revises the rolling summary."""

from clew.context.ledger import Entry, Ledger, Report, from_json, render, revise, to_json
from clew.messages import Message, Text
from tests.threads import START, numbered

DECISION = Entry("decision", "Use SQLite.", "One file is enough.", "Ada", "said", "done", START, ("m1", "m2"))
NARRATIVE = Entry("narrative", "They chose a store.", date=START, sources=("m1", "m2"))
KEY = "sk-ant-api03-" + "a1B2" * 8


def test_the_answer_becomes_the_narrative_with_its_sources_and_date() -> None:  # P15 P16
    messages = numbered(3).window()
    ledger, report = revise((), messages, "  They said hello.\n")
    assert ledger == (Entry("narrative", "They said hello.", date=START + 180, sources=("m1", "m2", "m3")),)
    assert report == Report(added=("They said hello.",))


def test_a_revision_takes_the_place_of_the_narrative_and_stands_on_the_new_messages() -> None:  # P15 P21, BO-011, BO-012
    ledger, report = revise((NARRATIVE, DECISION), numbered(3).window()[2:], "They chose SQLite.")
    assert [entry.kind for entry in ledger] == ["decision", "narrative"]
    assert ledger[1].text == "They chose SQLite."
    assert ledger[1].sources == ("m3",)
    assert report == Report(changed=("They chose SQLite.",), dropped=("They chose a store.",))


def test_what_is_no_narrative_stays_byte_for_byte() -> None:  # P15
    before: Ledger = (DECISION, NARRATIVE)
    for number in range(5):
        after, _ = revise(before, numbered(2).window(), f"Revision {number}.")
        assert to_json((DECISION,))[1:-1] in to_json(after)
        before = after
    assert render(before) == "Use SQLite.\n\nRevision 4."


def test_credentials_are_carried_neither_by_the_answer_nor_by_held_messages() -> None:  # P19
    ledger, report = revise((), numbered(1).window(), f"The key is {KEY}.")
    held = Message("m9", 9, "user", (Text(f"Pin this: {KEY}"),), START, sender_name="Ada")
    assert KEY not in render(ledger, [held]) + to_json(ledger) + repr(report)


def test_held_messages_stand_behind_the_summary_word_for_word() -> None:  # P13
    held = [
        Message("m1", 1, "user", (Text("Never post to the finance room unless I say go."),), START, sender_name="Ada"),
        Message("m2", 2, "assistant", (Text("Understood."),), START),
    ]
    assert render((NARRATIVE,), held) == (
        "They chose a store.\n\nPinned messages, word for word:\n"
        "- Ada: Never post to the finance room unless I say go.\n- assistant: Understood."
    )


def test_a_ledger_is_stored_and_read_back_equal() -> None:  # P2 P15
    ledger: Ledger = (DECISION, NARRATIVE, Entry("fact", "Zoë's „Weg“ 漢字 🙂"))
    assert from_json(to_json(ledger)) == ledger
    assert from_json("[]") == ()
