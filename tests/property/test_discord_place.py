"""How far Discord's events are read, over any course of them."""

from hypothesis import given
from hypothesis import strategies as st

from clew_transports.discord.place import MARGIN_MS, MAX_DIRECTS, Place, snowflake

ids = st.integers(0, 2**63 - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("seen"), ids),
        st.tuples(st.just("direct"), ids),
        st.tuples(st.just("behind"), st.integers(0, 10**6)),
        st.tuples(st.just("begun"), st.lists(st.integers(0, 5), max_size=4)),
        st.tuples(st.just("there"), st.integers(0, 5)),
        st.tuples(st.just("over"), st.none()),
    ),
    max_size=60,
)


def after(course: list[tuple[str, object]]) -> tuple[Place, int]:
    """The place behind these steps, and the highest id that was seen while nothing was still to be asked for."""
    place, whole = Place("1"), 0
    for step, value in course:
        match step, value:
            case "seen", int(number):
                whole = whole if place.awaited else max(whole, number)
                place = place.seen(number)
            case "direct", int(number):
                place = place.with_direct(str(number))
            case "behind", int(number):
                place = place.behind(number)
            case "begun", list(servers):
                place = place.with_session("s", "wss://gateway.discord.gg", [str(each) for each in servers])
            case "there", int(number):
                place = place.without(str(number))
            case "over", _:
                place = place.without_session()
    return place, whole


@given(steps)
def test_a_place_outlives_the_process(course: list[tuple[str, object]]) -> None:  # P42
    place, _ = after(course)
    assert Place.load(str(place)) == place
    assert len(place.directs) == len(set(place.directs)) <= MAX_DIRECTS


@given(steps)
def test_what_is_asked_for_begins_below_all_that_may_be_unread(course: list[tuple[str, object]]) -> None:  # P42
    place, whole = after(course)
    assert place.floor == whole
    assert place.since <= max(whole - (MARGIN_MS << 22), 0)


@given(st.one_of(st.none(), st.text(), st.sampled_from(["[]", "[1,2,3,4,5,6,7]", '["1","s","https://x",1,1,[],[]]', "{}", "null"])))
def test_what_is_no_place_of_ours_is_a_beginning(cursor: str | None) -> None:
    place = Place.load(cursor)
    assert (place.session, place.url) == ("", "")


def test_a_session_whose_address_is_none_is_lost_and_the_rest_is_not() -> None:
    place = Place("1", "s", "https://elsewhere.example/", 5, 6, frozenset({"7"}), ("8",))
    assert Place.load(str(place)) == Place("1", "", "", 5, 6, frozenset({"7"}), ("8",))


@given(st.floats(-1e15, 1e15))
def test_ids_grow_with_time_and_none_is_negative(ms: float) -> None:
    assert 0 <= snowflake(ms) <= snowflake(ms + 1.0)


def test_the_private_chats_that_were_silent_for_longest_are_forgotten_first() -> None:
    place = Place("1")
    for number in range(MAX_DIRECTS + 5):
        place = place.with_direct(str(number))
    assert (place.directs[0], place.directs[-1], len(place.directs)) == (str(MAX_DIRECTS + 4), "5", MAX_DIRECTS)
