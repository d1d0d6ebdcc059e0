"""Recall on any text: queries are valid, blocks fit and cannot be broken out of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clew.context.recall import (
    HEADING_OTHER,
    HEADING_SAME,
    Candidate,
    Excerpt,
    Query,
    appendix,
    current_scores,
    excerpts,
    query,
    rank,
    replaces,
    strip_appendix,
)
from clew.context.text import index_text

ANY_TEXT = st.text(alphabet=st.characters(), max_size=200)
SYNTAX = st.text(alphabet="\"'*()^:+-{}[]~?!.,\\/;%_ aANDORTNEfétext東京", max_size=80)
WORDS = st.sampled_from(["boat", "Dufour", "harbour", "why?", "⟦/recalled⟧", HEADING_OTHER, HEADING_SAME, "\n", "\u2028", "東京"])
BODIES = st.one_of(ANY_TEXT, st.lists(WORDS, max_size=60).map(" ".join))


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE messages_fts USING fts5(text, scope, content='', tokenize='porter unicode61 remove_diacritics 2')")
    db.executemany(
        "INSERT INTO messages_fts(rowid, text, scope) VALUES (?, ?, ?)",
        [(1, index_text("the boat AND not the text"), "p1"), (2, index_text("東京 don't C++"), "p2")],
    )
    yield db
    db.close()


def run(db: sqlite3.Connection, found: Query) -> list[tuple[int]]:
    sql = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY bm25(messages_fts, 1.0, 0.0)"
    return db.execute(sql, (f'scope:("p1" OR "p2") AND text:({found.match})',)).fetchall()


# P35
@settings(max_examples=2_000)
@given(st.one_of(ANY_TEXT, SYNTAX), st.lists(SYNTAX, max_size=2), st.sampled_from([0, 100, 1_000_000]), st.integers(0, 9_000))
@example("don't", [], 0, 0)
@example("a* b", [], 1_000_000, 6_000)
@example("AND", [], 0, 0)
@example("OR NOT AND NEAR", [], 0, 0)
@example('NEAR("a" b, 5)', [], 0, 0)
@example("(open bracket", [], 0, 0)
@example('"unclosed quote', [], 0, 0)
@example('say ""double"" now', [], 0, 0)
@example("text: col:umn {scope}: x", [], 0, 0)
@example("C++ https://a.b/c?d=e&f#g -minus ^caret + plus", [], 1_000_000, 6_000)
@example("👩\u200d👩\u200d👧 🎉", ["what?"], 0, 0)
@example("\x00nul\ud800 \ufffe", [], 0, 0)
def test_any_text_is_a_valid_query(index: sqlite3.Connection, text: str, previous: list[str], total: int, count: int) -> None:
    found = query(text, previous, ["Ada"], lambda word: count, total)
    if found is None:
        return
    assert found.terms
    assert len(found.weights) == len(found.terms)
    assert all(weight > 0 for weight in found.weights)
    run(index, found)


# P20, P35
@given(st.text(alphabet=st.characters(whitelist_categories=["Lu", "Ll", "Lo", "Nd"], max_codepoint=0x30FF), min_size=3, max_size=20))
def test_what_was_written_is_found_by_writing_it_again(text: str) -> None:
    found = query(text)
    if found is None:
        return
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE messages_fts USING fts5(text, scope, content='', tokenize='porter unicode61 remove_diacritics 2')")
    db.execute("INSERT INTO messages_fts(rowid, text, scope) VALUES (1, ?, 'p1')", (index_text(text),))
    hits = run(db, found)
    db.close()
    if any(c.isascii() for term in found.terms for c in term):
        assert hits == [(1,)]


@st.composite
def messages(draw: st.DrawFn) -> list[Candidate]:
    places = draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), unique=True, max_size=10))
    return [
        Candidate(
            id=f"{session}{seq}",
            session=session,
            chat=draw(st.sampled_from(["mqtt:ada", "⟦x\ny"])),
            speaker=draw(st.sampled_from(["Ada", "", "Eve⟧\n" + HEADING_SAME])),
            role="user",
            at=draw(st.integers(-(10**12), 10**12)) / 10,
            text=draw(BODIES),
            rank=-draw(st.integers(0, 400)) / 10,
            seq=seq,
            same_session=session == "b",
        )
        for session, seq in places
    ]


def found_in(found: list[Candidate], text: str = "Ada boat harbour 東京", budget: int = 2_000) -> list[Excerpt]:
    asked = query(text, total=9)
    assert asked is not None
    return excerpts(asked, rank(asked, found[::2], found[1::2]), max_excerpts=4, budget_chars=budget, zone=UTC)


# P31
@given(messages())
def test_ranking_is_ordered_and_repeatable(found: list[Candidate]) -> None:
    asked = query("Ada boat harbour")
    assert asked is not None
    scored = rank(asked, found[::2], found[1::2])
    assert scored == rank(asked, found[::2], {(near.session, near.seq): near for near in found[1::2]})
    assert scored == rank(asked, found[::2][::-1], found[1::2][::-1])
    assert [item.score for item in scored] == sorted((item.score for item in scored), reverse=True)
    assert all(item.score > 0 for item in scored)
    assert {item.candidate.id for item in scored} <= {message.id for message in found}


# P32
@given(messages(), st.integers(0, 1_500))
def test_block_never_exceeds_its_budget_and_holds_every_excerpt_cut_for_it(found: list[Candidate], budget: int) -> None:
    cut = found_in(found, budget=budget)
    block = appendix(cut, budget_chars=budget)
    assert len(block) <= budget
    assert all(part.heading in block and part.text in block for part in cut)
    assert len(cut) <= 4
    for smaller in (0, budget // 3, budget - 1):
        assert len(appendix(found_in(found), budget_chars=smaller)) <= max(0, smaller)


# P34
@given(messages())
def test_nothing_recalled_breaks_out_of_its_fence(found: list[Candidate]) -> None:
    block = appendix(found_in(found), budget_chars=2_000)
    frames = block.count("⟦/recalled⟧")
    assert block.count("⟦") == block.count("⟧") == 2 * frames
    assert block.count(HEADING_OTHER) + block.count(HEADING_SAME) == frames
    for line in block.splitlines():
        assert line.startswith(("> ", "[", "⟦")) or line in (HEADING_OTHER, HEADING_SAME)


# P34
@given(messages(), st.text(alphabet="abc \n.", max_size=20), st.text(alphabet="abc \n.", max_size=20))
def test_an_echoed_block_goes_and_the_rest_stays(found: list[Candidate], before: str, after: str) -> None:
    block = appendix(found_in(found), budget_chars=2_000)
    assert strip_appendix(f"{before}\n{block}\n{after}") == (f"{before}\n{after}" if block else f"{before}\n\n{after}")


@given(ANY_TEXT)
def test_stripping_leaves_other_text_alone(text: str) -> None:
    assert strip_appendix(text) == text


# P29
@given(messages(), st.floats(0, 2))
def test_contained_or_empty_results_never_replace(found: list[Candidate], margin: float) -> None:
    shown = found_in(found)
    assert not replaces(shown, [], {}, margin)
    if shown:
        assert not replaces(shown, shown[:1], {}, margin)


# P29
@given(messages(), messages(), st.floats(0, 2))
def test_a_replacement_beats_every_shown_excerpt(first: list[Candidate], second: list[Candidate], margin: float) -> None:
    shown, fresh = found_in(first), found_in(second)
    asked = query("Ada boat harbour 東京", total=9)
    assert asked is not None
    scores = current_scores(shown, rank(asked, second))
    if shown and replaces(shown, fresh, scores, margin):
        assert max(part.score for part in fresh) > max(scores.values()) + margin
