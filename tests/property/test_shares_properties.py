"""Whatever tools answer, what is shown of one message's results fits, and nothing of them is lost."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.prompt import block_tokens
from clew.context.shares import LEAST_CHARS, LINE_TOKENS, affordable, fitted
from clew.context.tokens import TOOL_PROMPT_TOKENS, estimate
from clew.context.view import ends
from clew.messages import ToolResult
from clew.request import ToolSpec
from tests.threads import Thread

texts = st.builds(lambda piece, times: piece * times, st.text("ab 漢🙂\n{}1", min_size=1, max_size=20), st.integers(1, 400))


@given(st.lists(texts, min_size=1, max_size=6), st.integers(300, 5000), st.floats(0.5, 4))
def test_results_are_cut_to_their_share_and_stay_whole(said: list[str], limit: int, ratio: float) -> None:  # P9
    results = [ToolResult(f"c{number}", "find", text) for number, text in enumerate(said)]
    made = fitted(results, limit, ratio)
    assert [(each.call_id, each.text) for each in made] == [(each.call_id, each.text) for each in results]
    shown = [each.text if each.shown is None else "".join(ends(each.text, each.shown)) for each in made]
    least = sum(estimate(text[:LEAST_CHARS]) + LINE_TOKENS for text in shown)
    frames = sum(block_tokens(each) - estimate(each.text) for each in results)
    assert ratio * sum(map(estimate, shown)) <= max(limit, ratio * (least + frames))
    if all(each.shown is None for each in made):
        return
    largest = max(estimate(text) for text in shown)
    for each, text in zip(made, shown, strict=True):  # nobody is cut who takes less than another still may
        assert each.shown is None or each.shown <= LEAST_CHARS or 4 * estimate(text) + 4 * LINE_TOKENS >= largest


named = st.tuples(st.sampled_from(["a", "b", "session_open", "current_time", "fetch_url"]), st.integers(0, 400))


@given(st.lists(named, unique_by=lambda each: each[0]), st.integers(0, 3000))
def test_tools_are_left_out_only_while_they_do_not_fit(tools: list[tuple[str, int]], limit: int) -> None:  # P9
    specs = [ToolSpec(name, "word " * size, "{}") for name, size in tools]
    kept = affordable(specs, "", limit)
    assert [each for each in specs if each in kept] == list(kept)
    taken = TOOL_PROMPT_TOKENS + sum(estimate(each.name) + estimate(each.description) + estimate(each.schema) for each in kept)
    assert taken <= limit or {each.name for each in kept} <= {"session_open"}


def test_a_thread_with_cut_results_is_sound() -> None:  # P11
    thread = Thread()
    thread.user("look")
    thread.calls("c1", "c2")
    for each in fitted([ToolResult("c1", "find", "x" * 9000), ToolResult("c2", "find", "y" * 9000)], 1000):
        thread._add("tool", (each,))
    assert [message.kind for message in thread.window()] == ["user", "assistant", "results"]
