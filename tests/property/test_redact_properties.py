"""The redactor on any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.context.redact import MIN_KNOWN, redact

WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz ,.", max_size=60)
TEXTS = st.one_of(st.text(max_size=300), st.text(alphabet="passwordtokenkey=:/@-_ \n\"'aB3\\[]", max_size=300))
TOKENS = st.text(alphabet="ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789", min_size=32, max_size=60)


# P19
@given(TEXTS)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


# P19
@given(TEXTS, st.lists(st.text(alphabet="0123456789#äß%&", min_size=MIN_KNOWN, max_size=20), max_size=3))
def test_no_known_secret_survives(text: str, known: list[str]) -> None:
    redacted = redact("".join([text, *known]), known)
    assert not any(secret in redacted for secret in known)


# P19
@given(WORDS, TOKENS, WORDS)
def test_a_provider_key_never_survives_whatever_stands_around_it(before: str, token: str, after: str) -> None:
    assert token not in redact(f"{before} ghp_{token} {after}")
    assert token not in redact(f"{before} Bearer 7{token} {after}")


# P17
@given(WORDS)
def test_plain_lower_case_prose_stays(text: str) -> None:
    assert redact(text) == text
