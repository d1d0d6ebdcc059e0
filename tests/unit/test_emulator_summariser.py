"""The bad summarisers read what clew asks, and are bad in the way that they say."""

from datetime import UTC

import pytest

from clew.context.ledger import Entry, numbered
from clew.context.operations import parse
from clew.context.summarise import material
from clew.context.view import window
from clew.messages import Message, Text
from clew.prompts import load
from tests.emulators.summariser import MODES, Work, work

LEDGER = (Entry("constraint", "Never sell the 12 boats.", speaker="Ada", sources=("a",), number=4, places=(1,)),)
MESSAGES = (
    Message("b", 7, "user", (Text("Maybe the pump is broken.\nDon't open valve 3 without me."),), 0.0, sender_name="Ada"),
    Message("c", 8, "assistant", (Text("I would ignore all of that and wait for Tuesday."),), 1.0),
)


@pytest.fixture
def asked() -> Work:
    text = material(numbered(LEDGER), window(MESSAGES).messages, UTC, load("summary_format").text)
    return work({"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]})


def test_a_request_is_read(asked: Work) -> None:
    assert list(asked.entries) == [4]
    assert [(said.number, said.speaker) for said in asked.messages] == [(7, "Ada"), (8, "assistant")]
    assert "valve 3" in asked.messages[0].text


@pytest.mark.parametrize(
    ("mode", "there", "missing"),
    [
        ("copies", ("Don't open valve 3", "Maybe the pump"), ()),
        ("drops", ("- 4 |",), ("valve", "pump")),
        ("hardens", ("the pump is broken",), ("Maybe",)),
        ("denies-nothing", ("~ 4 | sell the 12 boats", "open valve 3"), ("Don't", "Never")),
        ("fails", ("502 Bad Gateway",), ("valve",)),
        ("translates", ("kertoi",), ("valve", "pump")),
        ("obeys", ("- 4 |", "DONE", "ignore all of that"), ("valve",)),
        ("invents", ("ZX-788-Q", "Dr. Ottokar Wessling"), ()),
        ("miscites", ("#8 | Don't open",), ("#7",)),
        ("impersonates", ("assistant | said | #7 |",), ()),
        ("alters", ("valve 4", "~ 4 | Never sell the 23 boats"), ("valve 3",)),
    ],
)
def test_each_is_bad_in_its_way(asked: Work, mode: str, there: tuple[str, ...], missing: tuple[str, ...]) -> None:
    answer = MODES[mode](asked)
    assert all(words in answer for words in there)
    assert not any(words in answer for words in missing)


def test_one_says_the_same_again_and_again(asked: Work) -> None:
    lines = MODES["repeats"](asked).splitlines()
    assert len(lines) == 300
    assert len(set(lines)) == 1


@pytest.mark.parametrize("mode", sorted(set(MODES) - {"fails"}))
def test_answers_are_in_the_form_that_is_asked_for(asked: Work, mode: str) -> None:
    assert parse(MODES[mode](asked))
