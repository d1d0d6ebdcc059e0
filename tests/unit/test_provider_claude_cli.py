import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clew.context.rules import mended
from clew.messages import Text, Thinking, ToolCall, ToolResult
from clew.providers import Began, Delta, PromptMessage, Provider, ProviderError, Request, SystemBlock, ToolSpec
from clew.providers.claude_cli import DEFAULT_LIMITS, ClaudeCli, Settings, command, environment, plugin
from clew.providers.claude_wire import CLOSING, HISTORY, NO_SYSTEM, NO_TOOLS, Reply, asked, parsed


def ask(*texts: str, system: str = "base", tools: tuple[ToolSpec, ...] = ()) -> Request:
    messages = tuple(PromptMessage("assistant" if n % 2 else "user", (Text(text),)) for n, text in enumerate(texts))
    return Request((SystemBlock("base", system),), messages, tools)


def texts(line: bytes) -> list[str]:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return [block["text"] for block in json.loads(line)["message"]["content"]]


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
NAMES = ("event", "message", "delta", "usage", "type", "text", "result", "is_error", "error", "rate_limit_info", "status", "resetsAt")
KINDS = ("stream_event", "assistant", "rate_limit_event", "result", "message_start", "content_block_delta", "rejected")
LINES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(KINDS) | JSON | st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4))


@given(st.lists(LINES, max_size=6))
def test_no_line_does_harm(lines: list[dict[str, Any]]) -> None:
    reply = Reply("m")
    for line in lines:
        reply.feed(line)
    assert isinstance(reply.failed(0.0), ProviderError | None)
    reply.done()
    reply.limits()


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=6))
def test_what_was_said_cannot_break_out_of_its_line(said: list[str]) -> None:
    said = [*said, "newest"] if len(said) % 2 == 0 else said
    first, *rest = texts(asked(ask(*said)).whole)
    if len(said) == 1:
        assert (len(first), rest) == (len(said[0]), [CLOSING])
        return
    heading, *records = first.split("\n")
    assert heading == HISTORY
    assert [next(iter(json.loads(record))) for record in records] == [("user", "assistant")[n % 2] for n in range(len(said) - 1)]
    assert rest[-1] == CLOSING


@pytest.mark.parametrize("text", ["/clear", "@/etc/passwd", 'look at @"/etc/pass wd"', "x", "!ls"])
def test_the_last_block_is_never_what_somebody_said(text: str) -> None:
    question = asked(ask("before", "answer", text))
    assert texts(question.newest) == [text, CLOSING]
    assert texts(question.whole)[-1] == CLOSING
    assert not CLOSING.startswith("/")
    assert "@" not in CLOSING


def test_a_key_names_all_that_was_said_before() -> None:
    question = asked(ask("one"))
    assert asked(ask("one", "yes", "two")).key == question.key_after("yes")
    assert asked(ask("one", "yes", "three")).key == question.key_after("yes")
    for other in (ask("one", "no", "two"), ask("1", "yes", "two"), ask("one", "yes", "two", system="other"), ask("two")):
        assert asked(other).key != question.key_after("yes")


def test_recall_in_a_message_is_sent_and_not_part_of_the_key() -> None:
    recalled = Request(ask("x").system, (PromptMessage("user", (Text("one"), Text("notes")), recall=1),))
    question = asked(recalled)
    assert texts(question.newest) == ["one", "notes", CLOSING]
    assert question.key_after("yes") == asked(ask("one", "yes", "two")).key


def test_a_system_prompt_is_never_empty_and_tells_of_no_tools() -> None:
    assert asked(ask("x", system=" \n")).system == NO_SYSTEM
    assert asked(ask("x", tools=(ToolSpec("t", "", "{}"),))).system == f"base\n\n{NO_TOOLS}"


def test_blank_rows_and_thinking_are_left_out() -> None:  # BO-113, BO-115
    blank = PromptMessage("assistant", (Text(" "), Thinking("anthropic/x", "{}"), ToolCall("a", "t", "{}")))
    request = Request((), (*ask("hi").messages, blank, PromptMessage("user", (ToolResult("a", "t", "\ud800"),))))
    assert texts(asked(mended(request)[0]).newest) == ['{"tool_result": "t", "text": "�"}', CLOSING]
    assert "thinking" not in str(texts(asked(mended(request)[0]).whole))


def event(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": type, **fields}}


def delta(text: str) -> dict[str, Any]:
    return event("content_block_delta", delta={"type": "text_delta", "text": text})


START = event("message_start", message={"model": "m1", "usage": {}})


def test_a_text_that_the_result_does_not_hold_is_replaced() -> None:
    reply = Reply("m")
    assert isinstance(reply.feed(START)[0], Began)
    assert reply.feed(delta("half")) == [Delta("half")]
    reply.feed({"type": "result", "result": "the whole"})
    assert reply.text == "the whole"


def test_the_last_of_several_texts_is_not_all() -> None:
    reply = Reply("m")
    for line in (START, delta("one"), delta("two"), {"type": "result", "result": "two"}):
        reply.feed(line)
    assert reply.text == "onetwo"


def test_stray_words_are_passed_over() -> None:
    assert [parsed(line) for line in (b"Warning: x", b"[1]", b'{"a": 1}', b"\xff", b"[" * 100_000)] == [{}, {}, {"a": 1}, {}, {}]


@pytest.mark.parametrize(
    ("usage", "window"),
    [
        ({"m": {"contextWindow": 1_000_000, "maxOutputTokens": 64_000}, "other": {"contextWindow": 5}}, 1_000_000),
        ({"m[1m]": {"contextWindow": 1_000_000}}, 1_000_000),
        ({"a": {"contextWindow": 1}, "b": {"contextWindow": 2}}, None),
        ({"m": {"contextWindow": None}}, None),
        (None, None),
    ],
)
def test_the_window_is_what_the_result_tells(usage: Any, window: int | None) -> None:
    reply = Reply("m")
    reply.feed({"type": "result", "modelUsage": usage})
    limits = reply.limits()
    assert (limits.window if limits else None) == window


def test_the_environment_of_a_process_is_short() -> None:
    given_env = {"PATH": "/bin", "HOME": "/home/ada", "LC_ALL": "C", "XDG_CONFIG_HOME": "/x", "CLAUDE_CODE_OAUTH_TOKEN": "t"}
    hidden = {
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_AUTH_TOKEN": "k",
        "ANTHROPIC_MODEL": "m",
        "OPENAI_API_KEY": "k",
        "CREDENTIALS_DIRECTORY": "/c",
    }
    made = environment({**given_env, **hidden, "CLAUDE_CODE_MAX_RETRIES": "10"})
    assert given_env.items() <= made.items()
    assert not hidden.keys() & made.keys()
    assert made["CLAUDE_CODE_MAX_RETRIES"] == "1"


def test_the_command_line_switches_everything_off() -> None:
    line = command("/usr/bin/claude", "opus", Path("/tmp/x/system.txt"))
    assert line[:2] == ["/usr/bin/claude", "-p"]
    pairs = {name: line[line.index(name) + 1] for name in ("--tools", "--setting-sources", "--model", "--system-prompt-file")}
    assert pairs == {"--tools": "", "--setting-sources": "", "--model": "opus", "--system-prompt-file": "/tmp/x/system.txt"}
    assert {"--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence", "--verbose"} <= set(line)


@pytest.mark.asyncio
async def test_settings_are_strict() -> None:
    provider: Provider = plugin.build("sub", Settings())
    assert isinstance(provider, ClaudeCli)
    assert (provider.name, provider.kind, provider.model, provider.max_tokens) == ("sub", "claude_cli", "sonnet", "auto")
    assert (provider.cache_ttl, provider.configured, await provider.limits()) == (None, True, DEFAULT_LIMITS)
    for wrong in (
        {"api_key": "k"},
        {"model": "--dangerously"},
        {"model": "a b"},
        {"executable": "-x"},
        {"executable": ""},
        {"max_tokens": 5},
    ):
        with pytest.raises(ValidationError):
            Settings.model_validate(wrong)
