"""Recall on any text: queries are valid, blocks fit and cannot be broken out of."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clew.context.query import Days
from clew.context.ranking import Line, rank
from clew.context.recall import (
    HEADING_OTHER,
    HEADING_SAME,
    Candidate,
    Excerpt,
    Query,
    Scored,
    appendix,
    current_scores,
    excerpts,
    query,
    replaces,
    strip_appendix,
)
from clew.context.regions import BLOCK_BITS, BLOCKS, REPEATED, SEGMENT_BITS, Hits, lane, regions
from clew.context.text import index_text
from clew.store.sqlite.words import expression

ANY_TEXT = st.text(alphabet=st.characters(), max_size=200)
SYNTAX = st.text(alphabet="\"'*()^:+-{}[]~?!.,\\/;%_ aANDORTNEfétext東京", max_size=80)
WORDS = st.sampled_from(["boat", "Dufour", "harbour", "why?", "⟦/recalled⟧", HEADING_OTHER, HEADING_SAME, "\n", "\u2028", "東京"])
BODIES = st.one_of(ANY_TEXT, st.lists(WORDS, max_size=60).map(" ".join))


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE messages_fts USING fts5(text, day, content='', tokenize='porter unicode61 remove_diacritics 2')")
    db.executemany(
        "INSERT INTO messages_fts(rowid, text, day) VALUES (?, ?, ?)",
        [(1, index_text("the boat AND not the text"), "20260305 202603"), (2, index_text("東京 don't C++"), "20260306 202603")],
    )
    yield db
    db.close()


def run(db: sqlite3.Connection, found: Query) -> list[tuple[int]]:
    sql = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?"
    sought = [found.sought(number) for number in range(len(found.terms))]
    sought += [days.sought for days in found.days if days.sought.phrases]
    return sorted({row for each in sought for row in db.execute(sql, (expression(each),))})


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
    found = query(text, previous, ["Ada"], lambda words: dict.fromkeys(words, count), total, date(2026, 3, 5))
    if found is None:
        return
    assert found.terms or found.days
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
    db.execute("CREATE VIRTUAL TABLE messages_fts USING fts5(text, day, content='', tokenize='porter unicode61 remove_diacritics 2')")
    db.execute("INSERT INTO messages_fts(rowid, text, day) VALUES (1, ?, '20260305')", (index_text(text),))
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
            seq=seq,
            same_session=session == "b",
        )
        for session, seq in places
    ]


def scored(found: list[Candidate]) -> list[Scored]:
    """As if they had been ranked in this order."""
    return [Scored(each, 3.0 / place, ("boat",)) for place, each in enumerate(found, 1)]


def found_in(found: list[Candidate], text: str = "Ada boat harbour 東京", budget: int = 2_000) -> list[Excerpt]:
    asked = query(text, total=9)
    assert asked is not None
    return excerpts(asked, scored(found), max_excerpts=4, budget_chars=budget, zone=UTC)


places = st.sets(st.integers(1, 60), max_size=12)


@st.composite
def lines(draw: st.DrawFn) -> list[Line]:
    return [
        Line(
            place,
            place,
            draw(st.sampled_from("ab")),
            draw(st.sampled_from(["Ada", "Bob", ""])),
            draw(st.integers(0, 300_000)),
            draw(st.sampled_from([place, place + 1])),
            draw(st.integers(0, 2_000)),
            draw(st.booleans()),
            draw(st.integers(0, 3)),
        )
        for place in sorted(draw(places))
    ]


# P31
@given(lines(), st.tuples(places, places), places)
def test_ranking_is_ordered_and_repeatable_and_knows_what_may_be_seen_only(
    seen: list[Line], terms: tuple[set[int], set[int]], then: set[int]
) -> None:
    asked = Query(("ada", "boat"), (2.0, 3.0), frozenset({"ada"}), 100, (Days(("20260305",), 5.0),))
    found = rank(asked, seen, Hits(tuple(map(sorted, terms)), (sorted(then),)), 100)
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert all(item.score > 0 for item in found)
    known = {line.place for line in seen}
    assert {item.line.place for item in found} <= known
    assert {(item.line.place, number) for item in found for number in item.terms} == {
        (place, number) for number, places in enumerate(terms) for place in places & known
    }
    hits = Hits(tuple(sorted(each & known, reverse=True) for each in terms), (sorted(then & known, reverse=True),))
    assert found == rank(asked, seen, hits, 100)  # neither the order of hits nor those in what may not be seen change anything
    assert found[:3] == rank(asked, seen, hits, 3)


# P31
@given(st.tuples(places, places), places)
def test_every_place_is_looked_at_while_there_are_few(terms: tuple[set[int], set[int]], in_view: set[int]) -> None:
    asked = Query(("boat", "sail"), (2.0, 3.0))
    runs = regions(asked, Hits(tuple(map(sorted, terms))), in_view)
    assert all(first <= last for first, last in runs)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(runs))
    for place in set().union(*terms) - in_view:
        assert any(first <= place <= last for first, last in runs)


# P31
@given(st.lists(st.lists(st.integers(0, 3_000), unique=True, max_size=400), min_size=1, max_size=4), st.data())
def test_the_best_blocks_are_looked_at_though_most_are_not_weighed(terms: list[list[int]], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.floats(0.5, 9), min_size=len(terms), max_size=len(terms)))
    counts = [Counter(place >> BLOCK_BITS for place in places) for places in terms]
    plain: dict[int, float] = defaultdict(float)
    for weight, blocks in sorted(zip(weights, counts, strict=True), key=lambda each: each[1].total()):
        for block, count in blocks.items():
            plain[block] += weight + weight * REPEATED * (min(count, 4) - 1)
    best = sorted(plain, key=lambda block: (-plain[block], -block))[:BLOCKS]
    runs = regions(Query(tuple("abcd"[: len(terms)]), tuple(weights)), Hits(tuple(terms)))
    seen = {block for block in range(400) if any(first <= block << BLOCK_BITS <= last for first, last in runs)}
    assert set(best) <= seen


SPAN = 3 << SEGMENT_BITS


@st.composite
def split(draw: st.DrawFn) -> tuple[list[list[int]], Hits]:
    """Places of four terms, and hits that say the same with lanes for some of their segments."""
    terms = draw(st.lists(st.lists(st.integers(0, SPAN - 1), unique=True, max_size=300), min_size=4, max_size=4))
    covered = draw(st.lists(st.sets(st.integers(0, 2)), min_size=4, max_size=4))
    kept = tuple([place for place in places if place >> SEGMENT_BITS not in by] for places, by in zip(terms, covered, strict=True))
    lanes = tuple(
        {segment: lane(place for place in places if place >> SEGMENT_BITS == segment) for segment in by}
        for places, by in zip(terms, covered, strict=True)
    )
    return terms, Hits(kept, (), lanes)


# P31
@given(split(), st.lists(st.floats(0.5, 9), min_size=4, max_size=4))
def test_lanes_lead_to_the_blocks_that_places_lead_to(both: tuple[list[list[int]], Hits], weights: list[float]) -> None:
    terms, hits = both
    plain: dict[int, float] = defaultdict(float)
    for weight, places in zip(weights, terms, strict=True):
        for block, count in Counter(place >> BLOCK_BITS for place in places).items():
            plain[block] += weight + weight * REPEATED * (min(count, 4) - 1)
    runs = regions(Query(tuple("abcd"), tuple(weights)), hits)
    seen = {block for block in plain if any(first <= block << BLOCK_BITS <= last for first, last in runs)}
    assert len(seen) >= min(BLOCKS, len(plain))
    off = 2 * sum(weights) * (1 + 3 * REPEATED) / 250  # half a digit for each of four terms, on both sides
    worst = min((plain[block] for block in seen), default=0.0)
    assert sum(weight > worst + off for weight in plain.values()) <= BLOCKS


# P31
@given(split())
def test_lanes_say_what_places_say(both: tuple[list[list[int]], Hits]) -> None:
    terms, hits = both
    every = {place for places in terms for place in places} | {5, SPAN - 1}
    held = {place: sum(1 << number for number, places in enumerate(terms) if place in places) for places in terms for place in places}
    assert hits.at(every) == Hits(tuple(terms)).at(every) == held


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
    scores = current_scores(shown, scored(second))
    if shown and replaces(shown, fresh, scores, margin):
        assert max(part.score for part in fresh) - max(scores.values()) > margin
