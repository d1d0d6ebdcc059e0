"""Text functions on any text."""

from __future__ import annotations

import sqlite3
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from clew.context.text import clean, index_text, normalise, tokens

ANY_TEXT = st.text(alphabet=st.characters(), max_size=400)


# P49
@given(ANY_TEXT)
def test_clean_text_can_be_stored_and_stays_the_same(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned
    assert not any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t" for c in cleaned)


# P49
@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")))
def test_clean_changes_nothing_else(text: str) -> None:
    assert clean(text) == text


@given(ANY_TEXT)
def test_normalise_is_one_form(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


# P20
@given(ANY_TEXT)
def test_every_word_of_the_index_text_is_found_by_the_index(text: str) -> None:
    words = index_text(text)
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2')")
    db.execute("INSERT INTO f(rowid, text) VALUES (1, ?)", (words,))
    for word in set(words.split()):
        if any(c.isascii() and c.isalnum() for c in word):
            assert db.execute("SELECT count(*) FROM f WHERE f MATCH ?", (f'"{word}"',)).fetchone() == (1,)
    db.close()


@given(ANY_TEXT)
def test_tokens_are_counted_word_by_word(text: str) -> None:
    words = index_text(text)
    assert len(tokens(words)) == len(words.split())
    assert all(token and not token.isspace() for token in tokens(words))
