"""The emulated prompt cache keeps the vendor's documented rules."""

from typing import Any

import pytest

from tests.emulators.anthropic_cache import Accounting, CacheStore, account, chain, flatten, resolve_markers
from tests.emulators.server import Rejected, words

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def text(size: int, name: str = "w", mark: dict[str, str] | None = None) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "text", "text": " ".join([name] * size)}
    return part if mark is None else {**part, "cache_control": mark}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def request(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [user(*parts)], **fields}


class Cache:
    """A store with the two steps of a call in one."""

    def __init__(self, minimum: int = 1) -> None:
        self.store = CacheStore()
        self.minimum = minimum

    def look(self, body: dict[str, Any], now: float = 0.0, workspace: str = "key") -> Accounting:
        blocks = flatten(body, words)
        markers = resolve_markers(blocks, body.get("cache_control"))
        hashes = chain(body, blocks, workspace)
        result = account(blocks, hashes, markers, self.store, now, minimum=self.minimum)
        assert result.read + result.created + result.input == result.total
        assert result.read <= result.longest_unexpired_prefix
        return result

    def call(self, body: dict[str, Any], now: float = 0.0, workspace: str = "key") -> Accounting:
        result = self.look(body, now, workspace)
        self.store.commit(result, now)
        return result


def numbered(count: int, *marked: int) -> list[dict[str, Any]]:
    """Blocks of ten tokens, counted from 1."""
    return [text(10, f"b{n}", MARK if n in marked else None) for n in range(1, count + 1)]


def test_reads_what_the_same_prompt_wrote() -> None:
    cache = Cache()
    first = cache.call(request(text(100, "a", MARK), text(5, "tail")))
    second = cache.call(request(text(100, "a", MARK), text(7, "other")))
    assert (first.read, first.created, first.input) == (0, 100, 5)
    assert (second.read, second.created, second.input) == (100, 0, 7)
    assert second.longest_unexpired_prefix == 100


def test_documented_growth_over_10_15_and_35_blocks() -> None:
    cache = Cache()
    assert cache.call(request(*numbered(10, 10))).created == 100
    second = cache.call(request(*numbered(15, 15)))
    assert (second.read, second.created) == (100, 50)
    third = cache.look(request(*numbered(35, 35)))
    assert (third.read, third.created) == (0, 350)
    assert third.longest_unexpired_prefix == 150
    rescued = cache.look(request(*numbered(35, 15, 35)))
    assert (rescued.read, rescued.created) == (150, 200)


@pytest.mark.parametrize(("marker", "read"), [(34, 150), (35, 0)])
def test_looks_back_over_twenty_blocks_the_marker_itself_the_first(marker: int, read: int) -> None:
    cache = Cache()
    cache.call(request(*numbered(15, 15)))
    assert cache.look(request(*numbered(marker, marker))).read == read


def test_a_marked_block_that_changes_is_written_each_time_and_never_read() -> None:
    cache = Cache()
    for turn in range(4):
        result = cache.call(request(text(50, "same"), text(10, f"clock{turn}", MARK)))
        assert (result.read, result.created) == (0, 60)


def test_automatic_marker_falls_into_the_same_trap() -> None:
    cache = Cache()
    for turn in range(3):
        body = request(text(50, "same"), text(10, f"clock{turn}"), cache_control=MARK)
        assert (cache.call(body).read, cache.look(body).read) == (0, 60)


def test_below_the_minimum_nothing_is_cached_and_nothing_said() -> None:
    cache = Cache(minimum=100)
    body = request(text(99, "a", MARK), text(5, "b"))
    for _ in range(2):
        result = cache.call(body)
        assert (result.read, result.created, result.input) == (0, 0, 104)
    assert cache.call(request(text(100, "a", MARK))).created == 100


def test_reading_refreshes_the_entry() -> None:
    cache = Cache()
    body = request(text(100, "a", MARK))
    cache.call(body, 0)
    assert cache.call(body, 299).read == 100
    assert cache.call(body, 598).read == 100


def test_an_entry_expires_after_five_minutes() -> None:
    cache = Cache()
    body = request(text(100, "a", MARK))
    cache.call(body, 0)
    late = cache.call(body, 301)
    assert (late.read, late.created, late.longest_unexpired_prefix) == (0, 100, 0)


def test_an_hour_marker_lasts_an_hour() -> None:
    cache = Cache()
    body = request(text(100, "a", HOUR))
    assert cache.call(body, 0).created_1h == 100
    assert cache.look(body, 3599).read == 100
    assert cache.look(body, 3601).read == 0


def test_a_marker_in_front_of_the_hit_is_refreshed_too() -> None:
    cache = Cache()
    base, tail = text(40, "base", MARK), text(60, "tail", MARK)
    cache.call(request(base, tail), 0)
    assert cache.call(request(base, tail), 200).read == 100
    assert cache.look(request(base), 400).read == 40


def test_an_expired_marker_in_front_of_the_hit_is_not_written_again() -> None:
    cache = Cache()
    base, tail = text(40, "base"), text(60, "tail", MARK)
    marked = {**base, "cache_control": MARK}
    cache.call(request(marked, tail), 0)
    assert cache.call(request(base, tail), 200).read == 100
    assert cache.call(request(marked, tail), 350).read == 100
    assert cache.look(request(marked), 360).read == 0


def test_mixed_lifetimes_are_billed_apart() -> None:
    cache = Cache()
    cache.call(request(text(10, "a", HOUR)))
    result = cache.call(request(text(10, "a", HOUR), text(20, "b", HOUR), text(40, "c", MARK), text(5, "d")))
    assert (result.read, result.created_1h, result.created_5m, result.input) == (10, 20, 40, 5)


def test_an_hour_marker_behind_a_short_one_is_refused() -> None:
    with pytest.raises(Rejected) as caught:
        Cache().look(request(text(1, "a", MARK), text(1, "b", HOUR)))
    assert caught.value.message == (
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
        "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    )


def test_another_model_or_workspace_reads_nothing() -> None:
    cache = Cache()
    body = request(text(100, "a", MARK))
    cache.call(body)
    assert cache.look({**body, "model": "claude-opus-5-5"}).read == 0
    assert cache.look(body, workspace="another key").read == 0
    assert cache.look(body).read == 100


TOOLS: list[dict[str, Any]] = [{"name": name, "description": "does it", "input_schema": {}} for name in ("one", "two")]
LEVELS: dict[str, Any] = {
    "tools": [TOOLS[0], {**TOOLS[1], "cache_control": MARK}],
    "system": [text(100, "base", MARK)],
}
TOOL_TOKENS = 8


def levels(**fields: Any) -> dict[str, Any]:
    return request(text(50, "said", MARK), **{**LEVELS, **fields})


def test_all_levels_are_read_again() -> None:
    cache = Cache()
    assert cache.call(levels()).created == TOOL_TOKENS + 150
    assert cache.look(levels()).read == TOOL_TOKENS + 150


def test_reordered_tools_lose_everything() -> None:
    cache = Cache()
    cache.call(levels())
    assert cache.look(levels(tools=[TOOLS[1], {**TOOLS[0], "cache_control": MARK}])).read == 0


def test_another_system_text_keeps_the_tools() -> None:
    cache = Cache()
    cache.call(levels())
    assert cache.look(levels(system=[text(100, "new", MARK)])).read == TOOL_TOKENS


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"thinking": {"type": "adaptive"}},
        {"output_config": {"effort": "low"}},
    ],
)
def test_call_settings_keep_tools_and_system_and_lose_messages(fields: dict[str, Any]) -> None:
    cache = Cache()
    cache.call(levels())
    assert cache.look(levels(**fields)).read == TOOL_TOKENS + 100


def test_speed_keeps_only_the_tools() -> None:
    cache = Cache()
    cache.call(levels())
    assert cache.look(levels(speed="fast")).read == TOOL_TOKENS


def test_the_first_image_loses_the_messages_once() -> None:
    cache = Cache()
    cache.call(levels())
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    pictured = {**levels(), "messages": [user(text(50, "said", MARK), image)]}
    assert cache.call(pictured).read == TOOL_TOKENS + 100
    assert cache.look(pictured).read == TOOL_TOKENS + 150


def test_an_image_inside_a_tool_result_counts_as_an_image() -> None:
    cache = Cache()
    cache.call(levels())
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [image]}
    assert cache.look({**levels(), "messages": [user(text(50, "said", MARK), result)]}).read == TOOL_TOKENS + 100


def test_an_edited_message_loses_what_follows_it() -> None:
    cache = Cache()
    cache.call(request(text(10, "a", MARK), text(10, "b", MARK), text(10, "c", MARK)))
    assert cache.look(request(text(10, "a"), text(10, "edited"), text(10, "c", MARK))).read == 10


def test_two_calls_in_flight_at_once_both_write() -> None:
    cache = Cache()
    body = request(text(100, "a", MARK))
    one, two = cache.look(body), cache.look(body)
    cache.store.commit(one, 0)
    cache.store.commit(two, 0)
    assert (one.created, two.created) == (100, 100)
    assert cache.look(body).read == 100


def test_a_block_behind_a_marked_one_may_vanish() -> None:
    cache = Cache()
    cache.call(request(text(10, "said", MARK), text(5, "recalled")))
    later = [user(text(10, "said")), {"role": "assistant", "content": "yes"}, user(text(10, "more", MARK))]
    assert cache.look({**request(), "messages": later}).read == 10


def test_role_is_part_of_a_block() -> None:
    cache = Cache()
    cache.call({**request(), "messages": [user(text(1)), {"role": "assistant", "content": [text(9, "a", MARK)]}]})
    assert cache.look({**request(), "messages": [user(text(1)), user(text(9, "a", MARK))]}).read == 0


def test_a_string_is_one_text_block() -> None:
    cache = Cache()
    cache.call(request(text(3, "a", MARK)))
    later = [{"role": "user", "content": "a a a"}, user(text(1, "b", MARK))]
    assert cache.look({**request(), "messages": later}).read == 3


def test_key_order_inside_tool_input_matters() -> None:
    def body(arguments: dict[str, Any]) -> dict[str, Any]:
        call = {"type": "tool_use", "id": "t", "name": "n", "input": arguments, "cache_control": MARK}
        return {**request(), "messages": [user(text(1)), {"role": "assistant", "content": [call]}]}

    cache = Cache()
    cache.call(body({"a": 1, "b": 2}))
    assert cache.look(body({"a": 1, "b": 2})).read > 0
    assert cache.look(body({"b": 2, "a": 1})).read == 0


def test_cleared_system_message_leaves_no_trace() -> None:
    scoped = {"role": "system", "content": "now it is noon", "clear_at": "next_user_message"}
    said = user(text(10, "said", MARK))
    answer = {"role": "assistant", "content": "yes"}
    cache = Cache()
    assert cache.call({**request(), "messages": [said, scoped]}).total == 14
    result = cache.look({**request(), "messages": [said, scoped, answer, user(text(10, "more", MARK))]})
    assert (result.read, result.total) == (10, 21)


def test_five_markers_are_refused() -> None:
    with pytest.raises(Rejected, match=r"^A maximum of 4 blocks with cache_control may be provided\. Found 5\.$"):
        Cache().look(request(*numbered(5, 1, 2, 3, 4, 5)))


def test_automatic_marker_counts_as_the_fifth() -> None:
    with pytest.raises(Rejected, match="Found 5"):
        Cache().look(request(*numbered(5, 1, 2, 3, 4), cache_control=MARK))


def test_automatic_marker_on_a_marked_block_changes_nothing() -> None:
    result = Cache().look(request(*numbered(4, 1, 2, 3, 4), cache_control=MARK))
    assert [index for index, _ in result.markers] == [0, 1, 2, 3]


def test_automatic_marker_of_another_lifetime_is_refused() -> None:
    with pytest.raises(Rejected):
        Cache().look(request(*numbered(2, 2), cache_control=HOUR))


def test_automatic_marker_steps_back_over_a_block_that_cannot_be_marked() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    messages = [user(text(10, "said")), {"role": "assistant", "content": [thought]}]
    result = Cache().look({**request(), "messages": messages, "cache_control": MARK})
    assert (result.markers, result.created) == (((0, "5m"),), 10)
