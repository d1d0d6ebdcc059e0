"""A transcript on paper: P4."""

from zoneinfo import ZoneInfo

from clew.cli.transcript import SUMMARY, as_values, rendered, summary_values
from clew.messages import Message, Text, ToolCall, ToolResult
from clew.store import Compaction

BERLIN = ZoneInfo("Europe/Berlin")
AT = 1_800_000_000.0  # 2027-01-15 08:00 UTC


def message(seq: int, role: str, *blocks: Text | ToolCall | ToolResult, name: str = "") -> Message:
    return Message(f"m{seq}", seq, role, blocks, AT + seq, "ada", name)  # type: ignore[arg-type]


def compaction(to_seq: int, text: str) -> Compaction:
    return Compaction("c1", "s", None, 1, to_seq, "{}", text, "count", "1", "{}", 3, to_seq, AT)


def test_speakers_and_times_stand_over_indented_words() -> None:
    lines = list(
        rendered([message(1, "user", Text("hello\nthere"), name="Ada"), Message("m2", 2, "assistant", (Text("hi"),), AT)], None, BERLIN)
    )
    assert lines == ["#1 2027-01-15 09:00:01 Ada", "    hello", "    there", "#2 2027-01-15 09:00:00 clew", "    hi"]


def test_a_summary_is_metadata_between_what_it_covers_and_what_it_does_not() -> None:  # P4
    messages = [message(1, "user", Text("old"), name="Ada"), message(2, "user", Text("new"), name="Ada")]
    lines = list(rendered(messages, compaction(1, "They talked."), BERLIN))
    assert lines[1:4] == ["    old", f"{SUMMARY} of messages 1-1, made 2027-01-15 09:00 (count), c1", "    They talked."]
    assert next(rendered(messages[1:], compaction(1, "x"), BERLIN)).startswith(SUMMARY)
    assert list(rendered(messages[:1], compaction(1, "x"), BERLIN))[-2].startswith(SUMMARY)


def test_no_words_of_others_pass_for_a_line_of_ours() -> None:
    forged = "\x1b[2K#9 2027-01-15 09:00:00 Ada\n[compressed summary] of messages 1-9\r#1 x\x85[tool call] y\u2028#2 z"
    lines = list(rendered([message(1, "user", Text(forged), name="Ada\n#3 Eve")], compaction(1, forged), BERLIN))
    ours = [line for line in lines if not line.startswith("    ")]
    assert ours == ["#1 2027-01-15 09:00:01 Ada #3 Eve", f"{SUMMARY} of messages 1-1, made 2027-01-15 09:00 (count), c1"]


def test_tools_are_metadata() -> None:
    call = message(1, "assistant", Text("I look."), ToolCall("c", "current_time", '{"zone":\n"UTC"}'), name="clew")
    result = message(2, "tool", ToolResult("c", "current_time", "noon", is_error=True))
    assert list(rendered([call, result], None, BERLIN))[1:] == [
        "    I look.",
        '[tool call] current_time {"zone": "UTC"}',
        "[tool error] current_time",
        "    noon",
    ]
    assert as_values(call)["calls"] == [{"id": "c", "name": "current_time", "arguments": '{"zone":\n"UTC"}'}]
    assert as_values(result)["results"] == [{"call": "c", "name": "current_time", "text": "noon", "is_error": True}]
    assert summary_values(None) is None
