"""Words and meaning joined."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.nearness import joined
from clew.context.query import Query
from clew.context.ranking import Candidate, Scored

ASKED = Query(terms=("boat",), weights=(3.0,), words=frozenset({"boat", "ada"}), total=100)


def found(number: int, score: float, *, session: str = "s", seq: int | None = None, speaker: str = "Bob", text: str = "words") -> Scored:
    place = number * 10 if seq is None else seq
    return Scored(Candidate(f"m{number}", session, "desk:ada", speaker, "user", 0.0, text, place), score, ("boat",))


scores = st.lists(st.floats(0.01, 3.0), min_size=1, max_size=30).map(lambda found: sorted(found, reverse=True))
cosines = st.floats(-1.0, 1.0)


@given(scores, st.dictionaries(st.integers(0, 40).map(lambda number: f"m{number}"), cosines), st.integers(1, 40))
def test_it_ranks_what_was_found_and_nothing_else(given_scores: list[float], nearness: dict[str, float], limit: int) -> None:  # P33
    scored = [found(number, score, seq=number) for number, score in enumerate(given_scores)]
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
    assert joined(ASKED, scored, {}, limit) == scored[:limit]
    assert joined(ASKED, scored, {each.candidate.id: -0.5 for each in scored}, limit) == scored[:limit]


@given(scores, st.data())
def test_what_is_nearer_does_not_come_later(given_scores: list[float], data: st.DataObject) -> None:
    scored = [found(number, score) for number, score in enumerate(given_scores)]
    nearness = {each.candidate.id: data.draw(st.floats(0.0, 0.5)) for each in scored}
    one = data.draw(st.sampled_from(scored)).candidate.id
    before = [each.candidate.id for each in joined(ASKED, scored, nearness, 99)].index(one)
    after = [each.candidate.id for each in joined(ASKED, scored, {**nearness, one: 1.0}, 99)].index(one)
    assert after <= before


def order(*scored: Scored, **nearness: float) -> list[str]:
    return [each.candidate.id for each in joined(ASKED, scored, nearness, 99)]


def test_an_answer_gains_by_what_was_asked_in_front_of_it() -> None:
    scored = (found(1, 1.0), found(2, 0.9, seq=21), found(3, 0.9, seq=30), found(4, 0.2, seq=20))
    assert order(*scored, m1=0.0, m2=0.0, m3=0.0, m4=1.0) == ["m2", "m1", "m3", "m4"]


def test_speakers_who_are_named_count_more_and_questions_less() -> None:
    scored = (found(1, 1.0, text="Where?"), found(2, 1.0), found(3, 1.0, speaker="Ada Byron"))
    assert order(*scored, m1=0.5, m2=0.5, m3=0.5) == ["m3", "m2", "m1"]
