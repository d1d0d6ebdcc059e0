"""The corpus that ships with clew is what its page says: long chats in several languages, with keys that are true."""

import json
import re
from collections import Counter
from itertools import pairwise

import pytest

from clew.context.tokens import estimate
from clew.context.view import window
from clew.evaluation.key import CATEGORIES, Item
from clew.evaluation.transcript import Transcript, shipped
from clew.evaluation.wording import plain, satisfies, sentences
from clew.messages import Message

CORPUS = {each.name: each for each in shipped()}
BUDGET = 1500
"""Tokens of the default `summary_tokens`."""
OVERHEAD = 16
"""Tokens of an entry beside its text: bullet, speaker, date, sources."""
DAYS = 28

thread = pytest.mark.parametrize("name", sorted(CORPUS))


def text_of(message: Message) -> str:
    return message.text + "".join(f"{call.arguments}" for call in message.calls) + "".join(result.text for result in message.results)


def live(transcript: Transcript) -> list[Item]:
    return [item for item in transcript.key if item.until is None]


def test_there_are_enough_threads_and_languages() -> None:  # P50
    assert len(CORPUS) >= 12
    assert {each.language for each in CORPUS.values()} >= {"en", "de", "fr", "es", "pl", "ja", "zh"}
    assert any(len(each.speakers) > 1 for each in CORPUS.values())
    counts = Counter(item.category for each in CORPUS.values() for item in each.key)
    assert set(counts) == set(CATEGORIES)
    assert min(counts.values()) >= 25


@thread
def test_a_thread_is_long_and_goes_on_for_weeks(name: str) -> None:  # P50
    messages = CORPUS[name].messages
    assert len(messages) >= 300
    assert messages[-1].at - messages[0].at >= DAYS * 86_400
    assert all(earlier.at < later.at for earlier, later in pairwise(messages))
    assert window(messages).repairs == ()  # each call has its result
    assert {message.role for message in messages} >= {"user", "assistant"}


@thread
def test_no_sentence_is_said_twice(name: str) -> None:
    said = Counter(sentence for message in CORPUS[name].messages for sentence in sentences(message.text) if len(sentence) > 24)
    assert [sentence for sentence, count in said.items() if count > 1] == []


@thread
def test_a_key_is_true(name: str) -> None:  # P50
    transcript = CORPUS[name]
    by_number = {message.seq: message for message in transcript.messages}
    assert len({item.id for item in transcript.key}) == len(transcript.key)
    for item in transcript.key:
        message = by_number[item.messages[0]]
        assert item.quote in text_of(message), item.id
        spoken = {"user": message.sender_name, "assistant": "assistant", "tool": "tool"}[message.role]
        assert item.speaker == spoken, item.id
        words = plain(item.quote)
        assert satisfies(words, item.need), item.id
        assert satisfies(words, item.reason), item.id
        assert (item.category == "decision") == bool(item.reason), item.id
        assert (item.category == "correction") == bool(item.wrong), item.id
        assert (item.category == "certainty") == (item.certainty != "said"), item.id
        assert not item.hedge or any(satisfies(words, [[hedge]]) for hedge in item.hedge), item.id
        assert item.until is None or item.messages[0] < item.until <= len(transcript.messages), item.id


@thread
def test_what_must_survive_fits_a_summary(name: str) -> None:
    transcript = CORPUS[name]
    size = sum(estimate(item.quote) + OVERHEAD for item in live(transcript))
    assert size <= BUDGET
    assert len(live(transcript)) >= 15


def test_most_threads_say_that_they_fit() -> None:
    """The one full of figures holds more that counts as an identifier than a summary can."""
    assert [name for name, each in CORPUS.items() if not each.fits] == ["accounts"]


def test_the_key_speaks_of_nothing_that_is_a_secret() -> None:
    assert not re.search(r"password|api[_-]?key|BEGIN [A-Z ]*PRIVATE", json.dumps([i.quote for t in CORPUS.values() for i in t.key]))
