"""Words and meaning joined."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.nearness import DAY, FAR, IN_FRONT, Nearness, joined, neighbours
from clew.context.query import Query
from clew.context.ranking import Candidate, Scored

ASKED = Query(terms=("boat",), weights=(3.0,), words=frozenset({"boat", "ada"}), total=100)


def found(number: int, score: float, *, session: str = "s", seq: int | None = None, speaker: str = "Bob", text: str = "words") -> Scored:
    place = number * 10 if seq is None else seq
    return Scored(Candidate(f"m{number}", session, "desk:ada", speaker, "user", 0.0, text, place), score, ("boat",))


scores = st.lists(st.floats(0.01, 3.0), min_size=1, max_size=30).map(lambda found: sorted(found, reverse=True))
cosines = st.floats(-1.0, 1.0)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Scored], Nearness]:
    """Messages of a few sessions, and cosines for some of them and of their neighbours."""
    seqs = draw(st.lists(st.tuples(st.sampled_from("st"), st.integers(0, 20)), min_size=1, max_size=30, unique=True))
    falling = sorted(draw(st.lists(st.floats(0.01, 3.0), min_size=len(seqs), max_size=len(seqs))), reverse=True)
    scored = [
        found(number, score, session=session, seq=seq) for number, (score, (session, seq)) in enumerate(zip(falling, seqs, strict=True))
    ]
    asked = draw(st.dictionaries(st.sampled_from([each.candidate.id for each in scored]), cosines))
    return scored, Nearness(asked, {pair: draw(cosines) for pair in neighbours(scored) if asked.keys() >= set(pair)})


@given(situations(), st.integers(1, 40))
def test_it_ranks_what_was_found_and_nothing_else(situation: tuple[list[Scored], Nearness], limit: int) -> None:  # P33
    scored, nearness = situation
    ranked = joined(ASKED, scored, nearness, limit)
    assert len(ranked) == min(limit, len(scored))
    assert len({each.candidate.id for each in ranked}) == len(ranked)
    assert {each.candidate for each in ranked} <= {each.candidate for each in scored}
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)
    assert abs(ranked[0].score - scored[0].score) < 1e-9
    assert joined(ASKED, scored, nearness, limit) == ranked


@given(scores, st.integers(1, 40))
def test_without_vectors_it_is_as_it_was(given_scores: list[float], limit: int) -> None:
    scored = [found(number, score) for number, score in enumerate(given_scores)]
    assert joined(ASKED, scored, Nearness(), limit) == scored[:limit]
    assert joined(ASKED, scored, Nearness({each.candidate.id: -0.5 for each in scored}), limit) == scored[:limit]


@given(scores, st.data())
def test_what_is_nearer_does_not_come_later(given_scores: list[float], data: st.DataObject) -> None:
    scored = [found(number, score) for number, score in enumerate(given_scores)]
    nearness = {each.candidate.id: data.draw(st.floats(0.0, 0.5)) for each in scored}
    one = data.draw(st.sampled_from(scored)).candidate.id
    before = [each.candidate.id for each in joined(ASKED, scored, Nearness(nearness), 99)].index(one)
    after = [each.candidate.id for each in joined(ASKED, scored, Nearness({**nearness, one: 1.0}), 99)].index(one)
    assert after <= before


@given(st.lists(st.floats(0.0, 1.0), min_size=FAR, max_size=2 * FAR - 1), st.floats(0.1, 0.8), st.data())
def test_what_all_texts_of_a_model_have_in_common_says_nothing(nearer: list[float], common: float, data: st.DataObject) -> None:
    scored = [found(number, 1.0 / (number + 1), seq=number) for number in range(len(nearer))]
    asked = {each.candidate.id: cosine for each, cosine in zip(scored, [0.0, *nearer[1:]], strict=True)}
    between = {pair: data.draw(cosines) for pair in neighbours(scored)}
    lifted = Nearness(
        {each: common + (1 - common) * cosine for each, cosine in asked.items()},
        {pair: common + (1 - common) * cosine for pair, cosine in between.items()},
    )
    apart = joined(ASKED, scored, Nearness(asked, between), 99)
    crowded = joined(ASKED, scored, lifted, 99)
    expected = {each.candidate.id: each.score for each in apart}
    assert {each.candidate.id: each.score for each in crowded} == pytest.approx(expected, abs=1e-6)


@given(situations())
def test_only_messages_close_in_front_of_one_in_its_session_are_compared_with_it(situation: tuple[list[Scored], Nearness]) -> None:  # P33
    by_id = {each.candidate.id: each.candidate for each in situation[0]}
    pairs = neighbours(situation[0])
    assert len(set(pairs)) == len(pairs) <= len(IN_FRONT) * len(by_id)
    for one, other in pairs:
        assert by_id[one].session == by_id[other].session
        assert 1 <= by_id[one].seq - by_id[other].seq <= len(IN_FRONT)


def order(*scored: Scored, between: dict[tuple[str, str], float] | None = None, **nearness: float) -> list[str]:
    return [each.candidate.id for each in joined(ASKED, scored, Nearness(nearness, between or {}), 99)]


def test_an_answer_gains_by_what_was_asked_in_front_of_it() -> None:
    scored = (found(1, 1.0), found(2, 0.9, seq=21), found(3, 0.9, seq=30), found(4, 0.2, seq=20))
    assert neighbours(scored) == [("m2", "m4")]
    assert order(*scored, m1=0.0, m2=0.0, m3=0.0, m4=1.0) == ["m2", "m1", "m3", "m4"]


def test_what_says_the_same_as_the_message_in_front_of_it_gains_less() -> None:
    scored = (found(1, 1.0, seq=11), found(2, 1.0, seq=21), found(3, 0.1, seq=10), found(4, 0.1, seq=20))
    alike = {("m1", "m3"): 0.9, ("m2", "m4"): 0.1}
    assert order(*scored, between=alike, m1=0.5, m2=0.5, m3=0.4, m4=0.4)[:2] == ["m2", "m1"]


def test_what_was_said_on_the_day_of_something_near_gains() -> None:
    scored = (found(1, 1.0), found(2, 0.95, session="t"), found(3, 0.8, session="t"))
    assert order(*scored, m1=0.2, m2=0.2, m3=0.9) == ["m3", "m2", "m1"]
    apart = replace(scored[2], candidate=replace(scored[2].candidate, at=DAY * 1.0))
    assert order(scored[0], scored[1], apart, m1=0.2, m2=0.2, m3=0.9) == ["m3", "m1", "m2"]


def test_speakers_who_are_named_count_more_and_questions_less() -> None:
    scored = (found(1, 1.0, text="Where?"), found(2, 1.0), found(3, 1.0, speaker="Ada Byron"))
    assert order(*scored, m1=0.5, m2=0.5, m3=0.5) == ["m3", "m2", "m1"]
