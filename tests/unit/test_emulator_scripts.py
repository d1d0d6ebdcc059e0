"""The ready scripts answer requests of both providers."""

from typing import Any

import pytest

from tests.emulators import scripts
from tests.emulators.server import Reply

ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "find her"}, {"type": "text", "text": "recalled notes"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "found"}]},
]
OPENAI: list[dict[str, Any]] = [
    {"role": "user", "content": "find her"},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "tool", "tool_call_id": "a", "content": "found"},
]


def body(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"messages": messages}


@pytest.mark.parametrize("messages", [ANTHROPIC, OPENAI])
def test_echoes_the_newest_words_of_the_user(messages: list[dict[str, Any]]) -> None:
    assert scripts.echo(body(messages)) == scripts.say("answer to: find her")


@pytest.mark.parametrize("messages", [ANTHROPIC, OPENAI])
def test_calls_the_tool_once_a_request(messages: list[dict[str, Any]]) -> None:
    script = scripts.calls_tool("look", {"q": 1}, when=lambda asked: "find" in scripts.last_user_text(asked))
    first, second = script(body(messages[:1])), script(body(messages[:1]))
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert (first.stop_reason, first.content[0]["input"]) == ("tool_use", {"q": 1})
    assert first.content[0]["id"] != second.content[0]["id"]
    assert script(body(messages)) == scripts.say("answer to: find her")
    assert script(body([{"role": "user", "content": "hello"}])) == scripts.say("answer to: hello")


def test_numbers_its_replies() -> None:
    script = scripts.numbered("part")
    assert [script(body(OPENAI)) for _ in range(2)] == [scripts.say("part 1"), scripts.say("part 2")]


def test_summarises_what_the_test_recognises() -> None:
    script = scripts.summarises(lambda asked: len(asked["messages"]) > 1, lambda asked: scripts.say("in short"))
    assert script(body(OPENAI)) == scripts.say("in short")
    assert script(body(OPENAI[:1])) == scripts.say("answer to: find her")
