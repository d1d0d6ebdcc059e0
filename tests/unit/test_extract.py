"""A summary without a model."""

from clew.context.extract import extract
from clew.context.ledger import Entry
from clew.context.operations import NOTHING, parse
from clew.context.survival import Said, heard
from clew.context.tokens import estimate
from tests.threads import START

FACTS = (
    "My daughter Mira is allergic to peanuts.",
    "We decided to call the boat Halcyon.",
    "The deploy key lives in /etc/clew/deploy.pem on srv-9.",
    "The budget for the kitchen is 4,200 euros.",
    "Please never restart the database during office hours.",
    "The dentist is on 14 January at 09:30.",
    "I do not want the newsletter any more.",
    "Set max_retries to 7 in config.yaml.",
    "The wifi is called Nordlicht.",
    "We moved the meeting from Tuesday to Thursday.",
    "Wir haben uns auf die blaue Farbe geeinigt.",
    "Er kommt nicht mit nach Hamburg.",
)
CHATTER = ("ok thanks", "Hmm, let me think about that for a bit.", "haha nice", "That sounds lovely to me.", "sure")


def thread() -> list[Said]:
    told = []
    for index, fact in enumerate(FACTS):
        place = 5 * index
        told.append(Said(f"{CHATTER[index % 5].rstrip('.')}. {fact} So it goes.", "Ada", "user", f"m{place}", place, START))
        told += [
            Said(CHATTER[(index + turn) % 5], "assistant", "assistant", f"m{place + turn}", place + turn, START) for turn in range(1, 5)
        ]
    return told


def test_facts_of_a_long_thread_survive_word_for_word() -> None:  # P20 P25
    answer = extract((), heard(thread()), 700)
    assert [fact for fact in FACTS if fact not in answer] == []
    assert estimate(answer) <= 700
    assert "haha nice" not in answer


def test_its_lines_are_those_that_a_summariser_is_asked_for() -> None:  # P25
    answer = extract((), heard([Said("Never ring the bell after nine.", "Ada", "user", "m7", 7, START)]), 100)
    assert answer == "+ constraint | Ada | said | #7 | Never ring the bell after nine."
    assert extract((), heard([Said("The code is QX-4471.")]), 100) == "+ fact | ? | said | ? | The code is QX-4471."


def test_the_weightiest_come_first_into_a_small_room_and_stand_in_their_order() -> None:
    answer = extract((), heard(thread()), 130)
    texts = [each.text for each in parse(answer)]
    assert "Please never restart the database during office hours." in texts
    assert [FACTS.index(text) for text in texts] == sorted(FACTS.index(text) for text in texts)
    assert estimate(answer) <= 130


def test_what_is_known_is_not_said_again() -> None:  # P15
    ledger = (Entry("fact", "The code is QX-4471.", number=1),)
    assert extract(ledger, heard([Said("The code is QX-4471. The code is QX-4471.")]), 200) == NOTHING


def test_it_closes_what_is_done_and_what_was_corrected() -> None:  # P16
    ledger = (
        Entry("task", "Book the ferry to Bergen.", sources=("a1",), number=1),
        Entry("task", "Renew the passport of Mira.", sources=("a2",), number=2),
        Entry("fact", "The deadline of the tender is 5 May.", sources=("a3",), number=3),
    )
    told = [
        Said("The ferry to Bergen is booked.", "assistant", "assistant", "m11", 11, START),
        Said("Correction: the deadline of the tender is 12 May.", "Ada", "user", "m12", 12, START),
    ]
    lines = extract(ledger, heard(told), 300).splitlines()
    assert lines[:2] == ["x 1 | done | #11", "x 3 | corrected | #12"]
    assert not any(line.startswith("x 2") for line in lines)


def test_small_talk_still_gives_a_summary_and_nothing_gives_none() -> None:
    assert "long time" in extract((), heard([Said("We sat outside for a long time.", "Ada")]), 100)
    assert extract((), heard([]), 100) == NOTHING
    assert extract((), heard([Said(" \n ")]), 100) == NOTHING
