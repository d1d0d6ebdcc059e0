"""What a small window can afford: results of one message, and tools."""

from collections.abc import Sequence
from dataclasses import replace

from clew.context.prompt import block_tokens
from clew.context.shares import LEFT_OUT_FIRST, affordable, fitted
from clew.context.view import window
from clew.messages import Message, ToolResult, blocks_from_json, blocks_to_json
from clew.request import ToolSpec
from tests.threads import Thread


def results(*sizes: int) -> list[ToolResult]:
    return [ToolResult(f"c{number}", "find", "word " * size) for number, size in enumerate(sizes)]


def test_results_that_fit_together_stay_as_they_are() -> None:  # P9
    found = results(100, 200, 300)
    assert fitted(found, sum(map(block_tokens, found))) == tuple(found)


def test_the_longest_are_cut_to_the_same_share_and_their_text_stays() -> None:  # P9, BO-025
    found = results(10, 5000, 8000)
    made = fitted(found, 4000)
    assert made[0] == found[0]
    assert [each.text for each in made] == [each.text for each in found]
    one, other = made[1].shown, made[2].shown
    assert one is not None
    assert other is not None
    assert abs(one - other) < 0.05 * one
    shown = window(rows_of(made)).messages[-1]
    assert sum(map(block_tokens, shown.blocks)) <= 4000


def test_a_model_that_counts_more_sees_less() -> None:  # P9
    (plain,), (dense,) = fitted(results(8000), 2000), fitted(results(8000), 2000, ratio=2.0)
    assert plain.shown is not None
    assert dense.shown is not None
    assert dense.shown < 0.6 * plain.shown


def test_of_an_error_the_beginning_is_shown() -> None:  # BO-027
    (made,) = fitted([ToolResult("c", "find", "E42 conflict: " + "x" * 50_000, is_error=True)], 500)
    assert made.is_error
    (block,) = window(rows_of([made])).messages[-1].blocks
    assert isinstance(block, ToolResult)
    assert block.text.startswith("E42 conflict: ")
    assert block.is_error


def test_the_line_behind_a_cut_result_says_how_the_rest_is_opened() -> None:  # P20, BO-025
    (made,) = fitted([ToolResult("c", "find", "a" * 30_000)], 1000)
    rows = rows_of([made])
    (block,) = window(rows).messages[-1].blocks
    assert isinstance(block, ToolResult)
    first, line, end = block.text.split("\n")
    assert made.shown == len(first) + len(end)
    assert len(end) == made.shown // 4
    assert line == (
        f'[… {30_000 - len(first) - len(end):,} more characters left out here; session_open with id "{rows[-1].id}", around 0'
        f" and offset {len(first)} shows them.]"
    )


def rows_of(made: Sequence[ToolResult]) -> list[Message]:
    thread = Thread()
    thread.user("look")
    thread.calls(*(each.call_id for each in made))
    for each in made:
        thread._add("tool", (each,))
    return thread.rows


def test_what_is_shown_of_a_result_that_was_cut_before_is_cut_again() -> None:  # P9
    cut = replace(results(8000)[0], shown=20_000)
    assert fitted([cut], 10_000) == (cut,)
    (made,) = fitted([cut], 1000)
    assert made.shown is not None
    assert made.shown < 5000


def test_how_much_is_shown_is_stored_with_the_result() -> None:  # P1, P2
    (made,) = fitted(results(8000), 1000)
    assert blocks_from_json(blocks_to_json([made])) == (made,)
    assert '"shown"' not in blocks_to_json(results(1))


def spec(name: str, size: int = 100) -> ToolSpec:
    return ToolSpec(name, "word " * size, "{}")


def names(limit: int, *tools: ToolSpec) -> list[str]:
    return [tool.name for tool in affordable(tools, "base " * 100, limit)]


def test_tools_that_fit_are_all_there() -> None:  # P9
    assert names(10_000, spec("b"), spec("current_time"), spec("session_open")) == ["b", "current_time", "session_open"]


def test_strangers_are_left_out_first_then_clews_own_in_the_stated_order_and_never_the_way_back() -> None:  # P9, P20
    tools = [spec(name) for name in ("zeta__run", "alpha__run", *LEFT_OUT_FIRST, "session_open", "session_search")]
    gone: list[str] = []
    for limit in range(5000, 0, -25):
        kept = names(limit, *tools)
        gone += [tool.name for tool in tools if tool.name not in kept and tool.name not in gone]
    assert gone == ["zeta__run", "alpha__run", *LEFT_OUT_FIRST]
    assert names(0, *tools) == ["session_open", "session_search"]
