"""Twilio's signature over any fields, and over anything that differs from them."""

import contextlib
import random

from hypothesis import given
from hypothesis import strategies as st

from clew_transports.reading import Malformed
from clew_transports.sms.messages import is_signed, of_list, of_post, signature

URL = "https://clew.example.org/webhooks/sms/?a=1"
FIELDS = st.lists(st.tuples(st.text(max_size=12), st.text(max_size=30)), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["messages", "direction", "to", "sid", "body"]), inner),
    max_leaves=12,
)


@given(FIELDS, st.randoms())
def test_what_is_signed_is_taken_in_any_order_and_with_any_port(fields: list[tuple[str, str]], dice: random.Random) -> None:
    shuffled = list(fields)
    dice.shuffle(shuffled)
    for url in (URL, URL.replace(".org/", ".org:443/")):
        assert is_signed(signature("token", url, fields), "token", URL, shuffled)


@given(FIELDS, FIELDS, st.text(max_size=40))
def test_nothing_else_is(fields: list[tuple[str, str]], others: list[tuple[str, str]], stated: str) -> None:  # P46, BO-066
    right = signature("token", URL, fields)
    if "".join(a + b for a, b in sorted(set(others))) != "".join(a + b for a, b in sorted(set(fields))):
        assert not is_signed(right, "token", URL, others)
    assert not is_signed(right, "another", URL, fields)
    assert not is_signed(right, "token", "https://clew.example.org/webhooks/other/", fields)
    assert not is_signed(right[:-2], "token", URL, fields)
    assert stated == right or not is_signed(stated, "token", URL, fields)


@given(FIELDS, JSON)
def test_readers_take_or_refuse(fields: list[tuple[str, str]], answer: object) -> None:
    with contextlib.suppress(Malformed):
        of_post(fields, "sms", "+15550001111")
    with contextlib.suppress(Malformed):
        of_list(answer, "sms", "+15550001111")
