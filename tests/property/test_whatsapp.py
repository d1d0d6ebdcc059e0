"""WhatsApp's marks for any Markdown, its notifications for any JSON, its signature for any bytes."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from clew_transports.text import parts
from clew_transports.whatsapp.dialect import LIMIT, rendered, size
from clew_transports.whatsapp.messages import is_signed, read
from tests.emulators.whatsapp import signature

MARKDOWN = st.text(alphabet=st.sampled_from(list("ab *_~`>#-|[]()\n1.äß👩‍🔬你")), max_size=300)
KEYS = ("entry", "changes", "field", "value", "messages", "metadata", "phone_number_id", "type", "text", "body", "from", "id", "statuses")
JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(["messages", "text", "1", "image", "sent", ""]) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


@given(MARKDOWN)
def test_fences_are_closed_and_words_stay(markdown: str) -> None:  # BO-059
    text = rendered(markdown)
    assert text.count("```") % 2 == 0
    for letter in "abäß你":
        assert text.count(letter) >= markdown.count(letter)


@given(st.lists(MARKDOWN, min_size=1, max_size=40).map("\n\n".join))
def test_parts_fit_after_they_are_rendered(markdown: str) -> None:  # BO-055
    for part in parts(markdown, 300, size=size):
        assert len(rendered(part.text)) <= 300 <= LIMIT


@given(st.text(alphabet=st.sampled_from(list("ab *_~`")), max_size=60))
def test_marks_of_the_words_are_no_marks(words: str) -> None:  # BO-061
    escaped = re.sub(r"([*_~`\\])", r"\\\1", words)
    text = rendered(escaped)
    assert not re.search(r"(?<![\w\u2060])[*_~`](?=\S)", text)


@given(JSON, st.text(max_size=5))
def test_any_notification_is_read_or_passed_over(told: object, number: str) -> None:
    news = read(json.dumps(told).encode(), "whatsapp", number)
    assert all(each.external_id.startswith("whatsapp/") for each in news.messages)
    read(json.dumps({"entry": [{"changes": [{"field": "messages", "value": told}]}]}).encode(), "whatsapp", number)


@given(st.binary(max_size=200), st.binary(max_size=200), st.text(max_size=80))
def test_nothing_but_the_signature_is_one(body: bytes, other: bytes, stated: str) -> None:  # P46, BO-066
    right = signature(body, "secret")
    assert is_signed(right, "secret", body)
    assert not is_signed(right, "another", body)
    assert body == other or not is_signed(right, "secret", other)
    assert stated == right or not is_signed(stated, "secret", body)
