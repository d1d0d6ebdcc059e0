from clew.context.tokens import estimate
from clew.providers.extract import NOTHING, Said, extract, score, sentences

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
    said = []
    for index, fact in enumerate(FACTS):
        said += [Said(f"{CHATTER[index % 5].rstrip('.')}. {fact} So it goes.", "Ada", f"m{index}")]
        said += [Said(CHATTER[(index + turn) % 5], "clew", by_model=True) for turn in range(4)]
    return said


def test_facts_of_a_long_thread_survive_word_for_word() -> None:  # P20
    summary = extract(thread(), (), 700)
    assert [fact for fact in FACTS if fact not in summary] == []
    assert estimate(summary) <= 700
    assert "haha nice" not in summary


def test_sentences_name_their_speaker_and_source() -> None:
    assert extract([Said("The code is 4711.", "Ada", "7")], (), 100) == "+ fact | Ada | said | #7 | The code is 4711."
    assert extract([Said("The code is 4711.")], (), 100) == "+ fact | ? | said | ? | The code is 4711."


def test_what_is_known_is_not_said_twice() -> None:
    said = [Said("The code is 4711. The code is 4711. Order 7 is cancelled.", "Ada", "abc")]
    assert extract(said, ["3 | fact | Ada | said | #1 | The code is 4711."], 200) == "+ fact | Ada | said | #abc | Order 7 is cancelled."


def test_a_thread_of_small_talk_still_gives_a_summary() -> None:
    assert "thanks" in extract([Said("thanks"), Said("ok")], (), 100)
    assert extract([], (), 100) == NOTHING
    assert extract([Said(" \n ")], (), 100) == NOTHING


def test_negations_numbers_and_decisions_weigh_more_than_talk() -> None:
    talk = score("That sounds lovely to me.")
    for fact in FACTS:
        assert score(fact) > talk
    assert score("Is the code 4711?") < score("The code is 4711.")


def test_sentences_are_parted_at_their_ends_only() -> None:
    text = "Dr. Ito pays 3.50 for v1.2.3, e.g. at noon. Really?  Yes!\nnext line\n\n東京です。大阪です。"
    assert list(sentences(text)) == [
        "Dr. Ito pays 3.50 for v1.2.3, e.g. at noon.",
        "Really?",
        "Yes!",
        "next line",
        "東京です。",
        "大阪です。",
    ]
