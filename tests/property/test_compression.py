"""A cut is sound wherever it falls."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.boundaries import boundary_cut
from clew.context.compression import Cut, Trigger, chunks, count_cut, cut_at, fitting_cut
from clew.context.view import Rendered, window
from clew.messages import Message, Text
from tests.threads import START, damaged, sound

any_rows = sound() | damaged()


def turn_of(rows: list[Message], share: float) -> int | None:
    """The row of a user message, or None."""
    users = [row.seq for row in rows if row.role == "user"]
    return users[int(share * len(users))] if users and share < 1 else None


shares = st.floats(0, 1)


def check(messages: tuple[Rendered, ...], rows: list[Message], cut: Cut | None, turn: int | None) -> None:
    if cut is None:
        return
    old, kept = messages[: cut.index], messages[cut.index :]
    assert old, "a cut that demotes nothing is no firing"
    assert cut.to_seq == old[-1].last_seq
    # No pair is parted: what is kept begins with no results, and what is old ends with no calls.
    assert not kept or kept[0].kind != "results"
    if turn is not None:
        assert all(message.first_seq < turn for message in old)
    # The window that is computed from the rows behind the cut is what was kept.
    again = window([row for row in rows if row.seq > cut.to_seq]).messages
    assert [(m.kind, len(m.blocks)) for m in again] == [(m.kind, len(m.blocks)) for m in kept]


@given(any_rows, st.integers(-3, 30), shares, st.sampled_from(["count", "limit", "command", "quiet"]))
def test_no_cut_parts_a_pair_or_enters_the_running_turn(rows: list[Message], index: int, share: float, trigger: Trigger) -> None:
    # P6 P11 P12
    messages = window(rows).messages
    turn = turn_of(rows, share)
    check(messages, rows, cut_at(messages, index, turn, trigger), turn)


@given(any_rows, st.integers(1, 12), st.integers(1, 12), shares)
def test_below_the_mark_nothing_and_above_it_keep_recent_where_that_is_possible(
    rows: list[Message], mark: int, keep: int, share: float
) -> None:  # P8 P11 P13
    messages = window(rows).messages
    turn = turn_of(rows, share)
    cut = count_cut(messages, mark, keep, turn)
    if len(messages) < mark:
        assert cut is None
        return
    check(messages, rows, cut, turn)
    wanted = len(messages) - keep
    bound = next((i for i, m in enumerate(messages) if turn is not None and m.first_seq >= turn), len(messages))
    if cut is None:
        assert min(wanted, bound) <= 0
    elif wanted <= bound and messages[wanted].kind != "results":
        assert len(messages) - cut.index == keep
    elif wanted <= bound:
        assert len(messages) - cut.index == keep - 1
    else:
        assert cut.index == bound


@given(any_rows, st.integers(-100, 200), shares, st.data())
def test_the_token_cut_fits_or_holds_the_running_turn_alone(
    rows: list[Message], room: int, share: float, data: st.DataObject
) -> None:  # P9 P12
    messages = window(rows).messages
    turn = turn_of(rows, share)
    sizes = data.draw(st.lists(st.integers(1, 50), min_size=len(messages), max_size=len(messages)))
    cut = fitting_cut(messages, sizes, room, turn, "tokens")
    check(messages, rows, cut, turn)
    kept = cut.index if cut else 0
    bound = next((i for i, m in enumerate(messages) if turn is not None and m.first_seq >= turn), len(messages))
    assert sum(sizes[kept:]) <= room or kept == bound
    if cut is not None and kept < bound:
        # One more would not have fitted, or it was the call of a result that went.
        assert sum(sizes[kept - 1 :]) > room or messages[kept - 1].kind == "results"


@given(st.lists(st.integers(0, 20), max_size=20), st.integers(1, 40))
def test_parts_are_consecutive_complete_and_as_large_as_fits(sizes: list[int], capacity: int) -> None:  # P14
    spans = chunks(sizes, capacity)
    assert [index for start, end in spans for index in range(start, end)] == list(range(len(sizes)))
    assert all(sum(sizes[start:end]) <= capacity or end - start == 1 for start, end in spans)
    assert all(sum(sizes[start : end + 1]) > capacity for start, end in spans[:-1])


@given(st.integers(2, 40), st.data(), st.integers(10, 150))
def test_the_window_of_a_plain_thread_never_outgrows_the_mark(mark: int, data: st.DataObject, exchanges: int) -> None:  # P8 P26
    keep = data.draw(st.integers(1, mark - 1))
    start, fired, rows = 0, 0, 0
    for _ in range(exchanges):
        rows += 1
        messages = window([Message(f"m{n}", n, "user" if n % 2 else "assistant", (Text("x"),), START) for n in range(start + 1, rows + 1)])
        cut = count_cut(messages.messages, mark, keep, rows)
        assert (cut is not None) == (len(messages) >= mark)
        if cut is not None:
            assert len(messages) <= mark + 1
            assert len(messages) - cut.index == keep
            start, fired = cut.to_seq, fired + 1
        rows += 1
    assert fired > 0 or 2 * exchanges - 1 < mark


@given(any_rows, st.integers(0, 30), st.integers(2, 60), st.data(), shares)
def test_a_boundary_cut_is_sound_lies_at_its_place_and_spares_the_newest(
    rows: list[Message], seq: int, mark: int, data: st.DataObject, share: float
) -> None:  # P11 P12 P13 P22
    keep = data.draw(st.integers(1, mark - 1))
    messages = window(rows).messages
    turn = turn_of(rows, share)
    cut = boundary_cut(messages, [10] * len(messages), seq, mark, keep, 1, turn, "topic")
    check(messages, rows, cut, turn)
    if cut is not None:
        moved = cut.index < len(messages) and messages[cut.index - 1].kind == "results"
        assert len(messages) - cut.index >= keep - moved
        assert cut.to_seq <= seq or moved
