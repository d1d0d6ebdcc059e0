"""How a window that has grown too large comes down to its target."""

from clew.context.compression import Cut, Plan, Sizes, token_plan
from clew.context.shortening import Shortening
from clew.context.tokens import window
from clew.context.view import Rendered
from tests.threads import Thread, numbered

BOUNDS = window(32_768)
"""W 30,768, T 21,538, target 15,384, hard limit 28,672."""


def shortened(index: int, saved: int = 900) -> Shortening:
    return Shortening(f"r{index}", index, saved, 4000, 0)


def plan(messages: tuple[Rendered, ...], sizes: Sizes, *shortenable: Shortening, turn: int | None = None) -> Plan | None:
    return token_plan(messages, sizes, shortenable, BOUNDS, turn, "tokens")


def alike(messages: tuple[Rendered, ...], each: int) -> Sizes:
    return Sizes(3000, 500, 1500, (each,) * len(messages))


def test_it_is_cut_to_its_target_and_the_newest_stay_as_far_as_they_fit() -> None:  # P9
    messages = numbered(20).window()
    # Beside 3,000 of the rest and 1,500 for the new summary, ten messages of 1,000 fit into 15,384.
    assert plan(messages, alike(messages, 1000)) == Plan((), Cut(10, 10, "tokens"), 14_500)
    # keep_recent or not: of messages of 6,000 one fits.
    assert plan(messages[:6], alike(messages[:6], 6000)) == Plan((), Cut(5, 5, "tokens"), 10_500)


def test_the_cheap_way_comes_first_and_stops_at_the_target() -> None:  # P10
    messages = numbered(20).window()
    found = plan(messages, alike(messages, 1000), *(shortened(index) for index in (7, 2, 11, 4, 13, 15, 1, 3, 5, 9, 17, 19)))
    # 23,500 less ten times 900: the first ten in the order that was given, and no cut.
    assert found == Plan(("r7", "r2", "r11", "r4", "r13", "r15", "r1", "r3", "r5", "r9"), None, 14_500)


def test_what_goes_into_the_summary_is_not_shortened_and_what_stays_counts_as_shortened() -> None:  # P9 P10
    messages = numbered(20).window()
    assert plan(messages, alike(messages, 1000), shortened(3), shortened(15)) == Plan(("r15",), Cut(9, 9, "tokens"), 14_600)


def test_what_cannot_be_compacted_gets_a_quarter_of_the_rest_beside_it() -> None:  # P9
    thread = numbered(20)
    asked = thread.user("a long job")
    messages = thread.window()
    found = plan(messages, Sizes(3000, 500, 1500, (*(300,) * 20, 12_000)), turn=asked.seq)
    # 16,500 cannot be compacted: the target is 16,500 + (21,538 - 16,500) / 4 = 17,759, and four messages of 300 fit.
    assert found == Plan((), Cut(16, 16, "tokens"), 17_700)


def test_the_running_turn_stays_whole_and_its_answered_results_may_be_shortened() -> None:  # P9 P10 P12
    thread = numbered(2)
    asked = thread.user("a long job")
    thread.round("c1")
    thread.round("c2")
    messages = thread.window()
    sizes = Sizes(3000, 500, 1500, (200, 200, 200, 50, 9000, 50, 9000))
    found = plan(messages, sizes, shortened(4, 8900), turn=asked.seq)
    assert found == Plan(("r4",), None, 13_300)
    # Without it nothing but the two old messages can go, which frees too little.
    assert plan(messages, sizes, turn=asked.seq) is None


def test_what_would_free_little_is_left_until_the_request_does_not_fit() -> None:  # P9
    thread = numbered(4)
    asked = thread.user("a long job")
    messages = thread.window()
    assert plan(messages, Sizes(3000, 500, 600, (*(200,) * 4, 18_500)), turn=asked.seq) is None
    full = plan(messages, Sizes(3000, 500, 600, (*(200,) * 4, 24_500)), turn=asked.seq)
    assert full == Plan((), Cut(4, 4, "tokens"), 28_100)


def test_nothing_to_do_is_no_plan() -> None:  # P9
    thread = Thread()
    asked = thread.user("a long job")
    assert plan(thread.window(), Sizes(3000, 0, 600, (30_000,)), turn=asked.seq) is None
