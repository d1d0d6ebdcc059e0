"""Signal's styles for any Markdown, and its envelopes for any JSON."""

import base64
import contextlib

from hypothesis import given
from hypothesis import strategies as st

from clew_transports.reading import Malformed
from clew_transports.signal.envelopes import Reader, receiver, safe
from clew_transports.signal.styles import rendered
from clew_transports.signal.styles import size as bytes_of
from clew_transports.text import measure, parts

MARKDOWN = st.text(alphabet=st.sampled_from(list("ab *_~`>#-|[]()\n1.äß👩‍🔬你")), max_size=300)
KEYS = (
    "envelope",
    "dataMessage",
    "editMessage",
    "timestamp",
    "message",
    "source",
    "sourceUuid",
    "groupInfo",
    "groupId",
    "mentions",
    "start",
)
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


@given(MARKDOWN)
def test_styles_lie_within_the_text(markdown: str) -> None:  # BO-061
    text, styles = rendered(markdown)
    for each in styles:
        start, length, _ = each.split(":")
        assert 0 <= int(start) < int(start) + int(length) <= measure(text, "utf16")
    for letter in "abäß你":
        assert text.count(letter) >= markdown.count(letter)


@given(st.lists(MARKDOWN, min_size=1, max_size=40).map("\n\n".join))
def test_parts_fit_after_they_are_rendered(markdown: str) -> None:  # BO-055
    for part in parts(markdown, 300, "bytes", bytes_of):
        assert len(rendered(part.text)[0].encode()) <= 300


@given(JSON)
def test_any_notification_is_read_or_refused(told: object) -> None:
    for params in ({"result": told}, {"envelope": told}, {"envelope": {"dataMessage": told, "timestamp": 1, "source": "x"}}):
        with contextlib.suppress(Malformed):
            Reader("signal", "+15550001111").read(params)


@given(st.binary(min_size=16, max_size=64))
def test_a_group_is_found_again_by_its_address(number: bytes) -> None:

    group = base64.b64encode(number).decode()
    assert "/" not in safe(group)
    assert receiver(safe(group)) == {"groupId": group}
