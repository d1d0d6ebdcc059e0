"""Texts in sentences."""

import pytest

from clew.context.sentences import LONGEST_SENTENCE, sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Dr. Ito pays 3.50 for v1.2.3, e.g. at noon. Really?  Yes!", ["Dr. Ito pays 3.50 for v1.2.3, e.g. at noon.", "Really?", "Yes!"]),
        ("one\n\ntwo lines", ["one", "two lines"]),
        ("東京です。大阪です。", ["東京です。", "大阪です。"]),
        ("Am 5. Mai im 3. Stock, ok. Zimmer 12. Komm nie.", ["Am 5. Mai im 3. Stock, ok.", "Zimmer 12.", "Komm nie."]),
        ("Le 14. juillet. Oui.", ["Le 14. juillet.", "Oui."]),
        ("Don't. I mean it.", ["Don't.", "I mean it."]),
        ('It says "Door is open. Shut it." Then it beeps.', ['It says "Door is open. Shut it."', "Then it beeps."]),
        ("Dort steht „Zu spät. Abbruch“. Schade.", ["Dort steht „Zu spät. Abbruch“.", "Schade."]),
        ("画面に「失敗。再起動」と出ました。はい。", ["画面に「失敗。再起動」と出ました。", "はい。"]),
        ('A 3" pipe. A 5" one.', ['A 3" pipe.', 'A 5" one.']),
        (" \n\t ", []),
    ],
)
def test_they_end_where_sentences_end(text: str, parts: list[str]) -> None:
    assert list(sentences(text)) == parts


def test_a_run_without_end_is_parted_at_a_space() -> None:
    pieces = list(sentences("word " * 1000))
    assert all(len(piece) <= LONGEST_SENTENCE for piece in pieces)
    assert " ".join(pieces).split() == ["word"] * 1000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "It may be cancelled within fourteen days. We must not\nrefund the costs unless the parcel was\ndamaged.\nmilk",
            ["It may be cancelled within fourteen days.", "We must not refund the costs unless the parcel was damaged.", "milk"],
        ),
        ("Never deploy to production\non Fridays.", ["Never deploy to production on Fridays."]),
        ("Er wird auf keinen Fall vor dem Ablauf der\nFrist gekündigt.", ["Er wird auf keinen Fall vor dem Ablauf der Frist gekündigt."]),
        ("milk\neggs\nbread", ["milk", "eggs", "bread"]),
        (
            "This is what we need for the\n1. roof\n2. floor\n- and the door",
            ["This is what we need for the", "1. roof", "2. floor", "- and the door"],
        ),
        ("Two things are left to do\n\nnever on a Friday", ["Two things are left to do", "never on a Friday"]),
        ("This is done now.\nand this is not", ["This is done now.", "and this is not"]),
    ],
)
def test_a_line_broken_inside_a_sentence_is_one_with_the_next(text: str, told: list[str]) -> None:  # P17, P18
    assert list(sentences(text)) == told
