"""Blocks in their order, and markers where they belong."""

from datetime import UTC

import pytest

from clew.context.cache_ledger import first_change
from clew.context.prompt import (
    DEFAULT_PROMPT,
    OPENING,
    Covered,
    Marks,
    Parts,
    Placement,
    base_prompt,
    is_cheaper,
    layout,
    mark,
    prefixes,
    read_tokens,
    request_tokens,
    segments,
)
from clew.context.tokens import TOOL_PROMPT_TOKENS, estimate
from clew.context.view import Rendered, head
from clew.messages import Text, ToolResult
from clew.request import PromptMessage, Request, ToolSpec
from tests.threads import numbered

HEAD = head(UTC, "", direct=True)
LINE = "[9 messages between then and now were compacted.]"


def parts(
    messages: tuple[Rendered, ...] = (),
    *,
    base: str = "Be kind.",
    notes: str = "",
    summary: str = "",
    recall: str = "",
    tools: tuple[ToolSpec, ...] = (),
    placement: Placement = "system",
) -> Parts:
    return Parts(base, messages or numbered(1).window(), HEAD, tools, notes, summary, LINE, recall, placement)


def request(made: Parts) -> Request:
    return layout(made, max_tokens=100, ttl="1h", cache_key="s1")


def marked(made: Parts, *earlier: Parts) -> Marks:
    """The request with its markers, the newest blocks of `earlier` requests being cached."""
    cached = {prefix.hash for each in earlier for label, prefix in marked(each).marked}
    sent = request(made)
    return mark(sent, prefixes(sent), cached)


def labels(marks: Marks) -> list[tuple[str, str, tuple[int, int]]]:
    return [(label, prefix.segment, prefix.place) for label, prefix in marks.marked]


def test_all_parts_stand_in_their_order_each_behind_one_blank_line() -> None:  # P27
    sent = request(parts(notes="Ada gardens.", summary="They talked.", recall="Previously"))
    assert [block.kind for block in sent.system] == ["base", "notes", "summary", "recall"]
    assert sent.system_text == (f"Be kind.\n\nAda gardens.\n\nSummary of the conversation so far:\nThey talked.\n\n{LINE}\n\nPreviously")


def test_with_nothing_to_add_the_base_goes_through_untouched() -> None:  # P27
    sent = request(parts(base="  Be kind.\n\n"))
    assert [block.text for block in sent.system] == ["  Be kind.\n\n"]
    assert sent.system_text == "  Be kind.\n\n"


def test_a_base_that_ends_its_line_is_followed_by_one_blank_line_too() -> None:  # P27
    assert request(parts(base="Be kind.\n", notes="Ada gardens.")).system_text == "Be kind.\n\nAda gardens."


def test_a_configured_base_is_taken_as_written_and_the_default_names_the_zone() -> None:  # P13 P27
    assert base_prompt("Answer in French.", "Europe/Berlin") == "Answer in French."
    assert base_prompt("", "Europe/Berlin") == f"{DEFAULT_PROMPT} Times are in the zone Europe/Berlin."


def test_the_line_about_what_was_compacted_ends_the_summary_in_front_of_a_users_text() -> None:  # P16
    sent = request(parts(numbered(3).window(), summary="They talked."))
    assert sent.system[-1].text.endswith(f"They talked.\n\n{LINE}")
    assert len(sent.messages) == 3


def test_the_line_is_a_users_message_where_the_first_kept_message_is_none() -> None:  # P16
    sent = request(parts(numbered(4).window()[1:], summary="They talked."))
    assert not sent.system[-1].text.endswith(LINE)
    assert (sent.messages[0].role, sent.messages[0].blocks) == ("user", (Text(LINE),))
    assert [each.role for each in sent.messages[1:]] == ["assistant", "user", "assistant"]


def test_without_a_summary_there_is_no_such_line() -> None:  # P16
    sent = request(parts(numbered(4).window()[1:]))
    assert LINE not in repr(sent)
    assert (sent.messages[0].role, sent.messages[0].blocks) == ("user", (Text(OPENING),)), "providers want the user's words first"


def test_the_line_says_how_many_messages_and_how_to_open_them() -> None:  # P16
    line = Covered(53, 0.0, 86_400.0).line(UTC)
    assert line.startswith("[53 messages between 1970-01-01 00:00 and 1970-01-02 00:00 were compacted")
    assert "session_open" in line


def test_each_users_message_has_its_own_time_in_front() -> None:  # P29, BO-028
    sent = request(parts(numbered(3).window()))
    assert [message.blocks[0] for message in sent.messages] == [
        Text("[Thu 2026-05-28 20:27 +00:00] message 1"),
        Text("message 2"),
        Text("[Thu 2026-05-28 20:29 +00:00] message 3"),
    ]


def test_recall_in_the_message_stands_behind_the_newest_users_text() -> None:  # P29 P31
    thread = numbered(2)
    thread.user("and now?")
    thread.round("c1", "c2")
    sent = request(parts(thread.window(), recall="Previously", placement="message"))
    assert sent.system_text == "Be kind."
    assert sent.messages[2].blocks[-1] == Text("Previously")
    assert sent.messages[2].recall == 1
    assert [each.recall for each in sent.messages] == [None, None, 1, None, None]
    assert all(isinstance(block, ToolResult) for block in sent.messages[-1].blocks)


def test_tools_are_sorted_by_name() -> None:  # P29, BO-029
    tools = tuple(ToolSpec(name, "does", "{}") for name in ("b", "c", "a"))
    assert [tool.name for tool in request(parts(tools=tools)).tools] == ["a", "b", "c"]
    assert request(parts(tools=tools)) == request(parts(tools=tools[::-1]))


def test_the_first_request_marks_the_base_and_the_newest_block() -> None:  # P28
    assert labels(marked(parts())) == [("M1", "base", (0, 0)), ("M4", "messages", (0, 0))]


def test_the_summary_has_a_marker_of_its_own_and_notes_one_where_there_is_none() -> None:  # P28
    assert labels(marked(parts(notes="n", summary="s")))[1] == ("M2", "summary", (2, 0))
    assert labels(marked(parts(notes="n")))[1] == ("M2", "notes", (1, 0))


def test_the_deepest_cached_block_is_marked_in_front_of_the_newest() -> None:  # P28
    first, second = parts(numbered(1).window()), parts(numbered(3).window())
    assert labels(marked(second, first)) == [("M1", "base", (0, 0)), ("M3", "messages", (0, 0)), ("M4", "messages", (2, 0))]
    third = parts(numbered(5).window())
    assert labels(marked(third, first, second))[1] == ("M3", "messages", (2, 0))


def test_the_same_words_of_somebody_else_are_another_prefix() -> None:  # P28
    by_user, by_model = (Request((), (PromptMessage(role, (Text("yes"),)),)) for role in ("user", "assistant"))
    assert prefixes(by_user)[0].hash != prefixes(by_model)[0].hash
    assert prefixes(by_user, account="a")[0].hash != prefixes(by_user, account="b")[0].hash


def test_a_request_sent_again_has_one_marker_on_its_newest_block() -> None:  # P28
    assert labels(marked(parts(), parts())) == [("M1", "base", (0, 0)), ("M3", "messages", (0, 0))]


def test_recall_is_never_marked() -> None:  # P28 P29
    marks = marked(parts(recall="Previously", placement="message"))
    assert marks.request.messages[0].marked == (0,)
    marks = marked(parts(recall="Previously", summary="s"))
    assert [(block.kind, block.marked) for block in marks.request.system] == [("base", True), ("summary", True), ("recall", False)]


def test_what_nothing_will_go_on_from_is_not_marked() -> None:  # P28
    sent, longer = request(parts()), request(parts(numbered(3).window()))
    cached = {prefix.hash for prefix in prefixes(sent)}
    marks = mark(longer, prefixes(longer), cached, end=False)
    assert labels(marks) == [("M1", "base", (0, 0)), ("M3", "messages", (0, 0))]


def test_what_is_read_from_the_cache_counts_a_tenth() -> None:  # P15
    sent, longer = request(parts()), request(parts(numbered(3).window()))
    held, words = prefixes(sent), [block.text for message in sent.messages for block in message.blocks if isinstance(block, Text)]
    read = sum(map(estimate, [sent.system[0].text, "user", "text", *words]))
    assert read_tokens(prefixes(longer), {held[-1].hash}) == read
    assert [(name, tokens) for name, _, tokens in segments(held)] == [
        ("base", estimate(sent.system[0].text)),
        ("messages", read - estimate(sent.system[0].text)),
    ]
    assert read_tokens(prefixes(longer), {"something else"}) == 0
    assert is_cheaper(1000, 900, than=191)
    assert not is_cheaper(1000, 900, than=190)


def test_in_a_tool_loop_the_last_result_is_marked() -> None:  # P28
    thread = numbered(1)
    thread.round("c1", "c2", "c3")
    marks = marked(parts(thread.window()))
    assert marks.request.messages[-1].marked == (2,)


@pytest.mark.parametrize(
    ("changed", "segment"),
    [
        (parts(base="Be brief.", summary="s"), "base"),
        (parts(notes="n", summary="s"), "notes"),
        (parts(summary="other"), "summary"),
        (parts(summary="s", recall="Previously"), "recall"),
        (parts(numbered(3).window(), summary="s"), ""),
    ],
)
def test_the_first_segment_that_changed_is_named(changed: Parts, segment: str) -> None:  # P30
    before = segments(prefixes(request(parts(summary="s"))))
    assert first_change(before, segments(prefixes(request(changed)))) == segment


def test_everything_sent_is_counted() -> None:  # P9
    plain = request_tokens(request(parts()))
    for more in (parts(notes="n" * 50), parts(summary="s" * 50), parts(recall="r" * 50), parts(numbered(3).window())):
        assert request_tokens(request(more)) > plain
    assert request_tokens(request(parts(tools=(ToolSpec("a", "does", "{}"),)))) > plain + TOOL_PROMPT_TOKENS
