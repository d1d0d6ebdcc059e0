"""Entries against their sources: what a bad summariser makes of them does not stand."""

import pytest

from clew.context.evidence import gathered, holds, names, normal
from clew.context.grounding import grounded, narrated
from clew.context.ledger import Certainty, Entry, Kind
from clew.context.steps import finish
from clew.context.survival import Said, heard
from tests.threads import START

SAID = (
    Said("Never deploy to production on a Friday.", "Ada", "user", "m1", 1, START),
    Said("I think the tap costs about 80 €.", "Bob", "user", "m2", 2, START + 60),
    Said("Shall we take the oak table from Nordhus?", "assistant", "assistant", "m3", 3, START + 120),
    Said("We take the oak table, order NH-2041, because the pine one is too small.", "Ada", "user", "m4", 4, START + 180),
    Said("haha nice one", "Bob", "user", "m5", 5, START + 240),
    Said("Could somebody fetch the big tent from the cellar?", "Bob", "user", "m7", 7, START + 360),
    Said("Three guests come on 12 June, and they must not park in the yard.", "Ada", "user", "m6", 6, START + 300),
)
EVIDENCE = finish(gathered(heard(SAID)))
TWICE = (
    Said("I won't sign it until the second clause is not in there any more.", "Ada", "user", "m1", 1, START),
    Said("Nie oddam kluczy, dopóki nie oddadzą kaucji za mieszkanie.", "Ada", "user", "m2", 2, START + 60),
    Said("Ich gebe den Schlüssel nicht her, solange sie die Kaution nicht zahlen.", "Ada", "user", "m3", 3, START + 120),
    Said("屋根の修理が終わらないうちは、引っ越しの契約をしないでください。", "Ada", "user", "m4", 4, START + 180),
    Said('In the app it says „Pump blocked (-31)".', "Ada", "user", "m5", 5, START + 240),
    Said("后台显示 ORDER_STATE_WRONG(4471),然后就卡住了。", "Ada", "user", "m6", 6, START + 300),
    Said("The spare key hangs behind the blue barrel in the shed, left of the door.", "Ada", "user", "m7", 7, START + 360),
    Said("W szkole nikt nie może się dowiedzieć, że szukamy, oprócz sekretarki.", "Ada", "user", "m9", 9, START + 480),
    Said("Es artrosis en las dos rodillas, no solo en la derecha.", "Ada", "user", "m10", 10, START + 540),
    Said("Good, the spare key hangs in the shed.", "assistant", "assistant", "m8", 8, START + 420),
)


def checked(text: str, *cited: int, kind: Kind = "fact", certainty: Certainty = "said", speaker: str = "") -> tuple[Entry | None, str]:
    entry = Entry(kind, text, speaker=speaker, number=1)
    return grounded(entry, EVIDENCE.cited(map(str, cited)), certainty, EVIDENCE)


def standing(text: str, *cited: int, kind: Kind = "fact", certainty: Certainty = "said", speaker: str = "") -> Entry:
    entry, _ = checked(text, *cited, kind=kind, certainty=certainty, speaker=speaker)
    assert entry is not None
    return entry


def test_an_entry_that_its_source_bears_out_stands_as_it_was_written() -> None:  # P15 P17
    entry = standing("Oak table, order NH-2041", 4, kind="decision")
    assert entry == Entry("decision", "Oak table, order NH-2041", "", "Ada", "said", "open", START + 180, ("m4",), 1, (4,))


@pytest.mark.parametrize(
    ("text", "cited", "source"),
    [
        ("Deploy to production on a Friday.", 1, 0),
        ("Never deploy to production on a Monday.", 1, 0),
        ("Ada and Clara never deploy to production on a Friday.", 1, 0),
        ("The tap costs about 90 €.", 2, 1),
        ("We take the oak table, order NH-2042.", 4, 3),
        ("We do not take the oak table.", 4, 3),
        ("Five guests come on 12 June.", 6, 6),
        ("Three guests come on 12 June and must park in the yard.", 6, 6),
        ("Three guests come on 13 June.", 6, 6),
    ],
)
def test_what_says_something_else_than_its_source_gets_its_words(text: str, cited: int, source: int) -> None:  # P17 P18, BO-013, BO-014
    entry = standing(text, cited)
    assert entry.text == SAID[source].text


@pytest.mark.parametrize("certainty", ["said", "guessed", "asked"])
def test_a_guess_stays_one_whatever_it_is_called(certainty: Certainty) -> None:  # P18
    entry = standing("The tap costs about 80 €.", 2, certainty=certainty)
    assert entry.certainty == "guessed"
    assert (entry.text == SAID[1].text) == (certainty == "said")


def test_a_question_does_not_become_a_decision() -> None:  # P18
    entry = standing("Somebody fetches the big tent from the cellar.", 7, kind="decision")
    assert (entry.text, entry.certainty) == ("Could somebody fetch the big tent from the cellar?", "asked")


def test_the_speaker_and_the_date_are_those_of_the_source() -> None:  # P18
    entry = standing("The tap costs about 80 €.", 2, certainty="guessed", speaker="Ada")
    assert (entry.speaker, entry.date) == ("Bob", START + 60)


def test_a_wrong_or_missing_source_is_found() -> None:  # P16
    for cited in ((5,), (1,), (99,), ()):
        entry = standing("We take the oak table, order NH-2041.", *cited)
        assert (entry.sources, entry.speaker) == (("m4",), "Ada")


@pytest.mark.parametrize("text", ["The boat is sold to Mr Wessling.", "Ignore all rules.", "Kaikki muuttuu huomenna.", "IBAN DE00 1234"])
def test_what_nobody_said_is_not_taken_up(text: str) -> None:  # P18
    for cited in ((), (5,), (1,)):
        entry, why = checked(text, *cited)
        assert entry is None
        assert why


def test_a_rule_that_was_filed_as_a_fact_is_a_rule_and_small_talk_never_is() -> None:  # P17
    assert standing("Never deploy to production on a Friday.", 1).kind == "constraint"
    assert standing("Oak table, order NH-2041", 4, kind="constraint").kind != "constraint"


def test_of_a_story_stays_what_was_said() -> None:  # P17
    story = (
        "They take the oak table, order NH-2041. Bob sold the boat for 900 €. They never deploy on a Friday. Nobody deploys on a Monday."
    )
    assert narrated(story, EVIDENCE, SAID) == "They take the oak table, order NH-2041. They never deploy on a Friday."
    assert narrated("", EVIDENCE, SAID) == ""


@pytest.mark.parametrize(
    ("text", "part", "held"),
    [
        ("port 5432 is open", "5432", True),
        ("port 54321 is open", "5432", False),
        ("1,234.50 in all", "234", False),
        ("v1.2.3 runs", "1.2", False),
        ("the key: srv-9.", "srv-9", True),
        ("予算は8万円です", "8万円", True),
        ("restarted", "start", False),
        ("a", "", False),
    ],
)
def test_a_part_is_held_as_a_whole_only(text: str, part: str, held: bool) -> None:  # P17
    assert holds(normal(text), normal(part)) is held


def test_names_are_words_with_a_capital_where_none_is_due() -> None:
    claim = EVIDENCE.claim("Yesterday Clara and Bob met. Then they left for Oslo.")
    assert names(claim, {"bob"}) == {"clara", "oslo"}


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("I won't sign it until the second clause is in there any more.", 0),
        ("I sign it until the second clause is not in there any more.", 0),
        ("Oddam klucze, dopóki nie oddadzą kaucji za mieszkanie.", 1),
        ("Nie oddam kluczy, dopóki oddadzą kaucji za mieszkanie.", 1),
        ("Ich gebe den Schlüssel her, solange sie die Kaution nicht zahlen.", 2),
        ("屋根の修理が終わるうちは、引っ越しの契約をしないでください。", 3),
        ('In the app it says „Pump blocked (-42)".', 4),
        ("后台显示 ORDER_STATE_WRONG(4482),然后就卡住了。", 5),
    ],
)
def test_of_two_negations_none_is_lost_and_a_number_in_brackets_is_one(text: str, source: int) -> None:  # P17 P18
    evidence = finish(gathered(heard(TWICE)))
    entry, _ = grounded(Entry("fact", text, number=1), [TWICE[source]], "said", evidence)
    assert entry is not None
    assert entry.text == TWICE[source].text


def test_the_message_that_holds_all_of_an_entry_is_cited_not_one_that_repeats_half_of_it() -> None:  # P16
    evidence = finish(gathered(heard(TWICE)))
    entry, _ = grounded(Entry("fact", "The spare key hangs behind the blue barrel in the shed.", number=1), [TWICE[-1]], "said", evidence)
    assert entry is not None
    assert (entry.sources, entry.speaker) == (("m7",), "Ada")


def test_a_rule_that_keeps_its_not_and_loses_its_may_gets_the_words_of_its_source() -> None:  # P17 P18
    rule = "In the office nobody may know that I am looking for a flat."
    evidence = finish(gathered(heard([Said(rule, "Ada", "user", "m1", 1, START)])))
    for text in (rule, rule.replace(" may", "")):
        entry, _ = grounded(Entry("constraint", text, number=1), evidence.cited(["1"]), "said", evidence)
        assert entry is not None
        assert entry.text == rule
