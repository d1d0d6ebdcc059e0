"""Whatever a request is made of, it is sent as every provider takes it. The emulators' rules are the independent judge."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from clew.context.prompt import OPENING, Parts, layout, mark, prefixes
from clew.context.rules import NOTHING, mended
from clew.context.view import LOST, window
from clew.messages import Block, Message, Text, Thinking, ToolCall, ToolResult
from clew.providers import PromptMessage, Request, SystemBlock
from clew.providers import anthropic as anthropic_api
from clew.providers import ollama as ollama_api
from clew.providers import openai as openai_api
from tests.emulators import anthropic_rules, openai_rules
from tests.emulators.anthropic_models import find_model
from tests.threads import damaged, sound

MODEL = "claude-sonnet-5-5"
BASE = (SystemBlock("base", "You are brief.", marked=True),)

ids = st.sampled_from(["a", "b", "a_2", "a_3", "", "ü/1", "x" * 50]) | st.text(st.characters(), max_size=4)
names = st.sampled_from(["find", "find", "functions.find", "", "f" * 200, "find me"])
words = st.sampled_from(["word", "word", "", " ", "\n\t"]) | st.text(st.characters(), max_size=6)
thinking = st.sampled_from(['{"type": "thinking", "thinking": "", "signature": "s"}', "[]", "{", "[" * 100_000])
texts = st.builds(Text, words)
calls = st.builds(ToolCall, ids, names, st.sampled_from(["{}", "{", "[1]", ""]))
results = st.builds(ToolResult, ids, names, words, st.booleans())
any_block: st.SearchStrategy[Block] = texts | calls | results | st.builds(Thinking, st.just(f"anthropic/{MODEL}"), thinking)


@st.composite
def messages(draw: st.DrawFn) -> PromptMessage:
    role: Any = draw(st.sampled_from(["user", "assistant"]))
    usual = calls | texts if role == "assistant" else results | texts
    blocks = tuple(draw(st.lists(usual | usual | any_block, max_size=4)))
    marked = tuple(sorted(draw(st.sets(st.integers(0, len(blocks) - 1), max_size=2)))) if blocks else ()
    recall = draw(st.none() | st.integers(0, len(blocks) - 1)) if blocks else None
    return PromptMessage(role, blocks, marked, recall)


@st.composite
def nearly_sound(draw: st.DrawFn) -> tuple[PromptMessage, ...]:
    """Exchanges with calls and their results, in which up to three things are wrong."""
    made: list[PromptMessage] = [PromptMessage("user", (Text("hello"),))]
    for number in range(draw(st.integers(0, 3))):
        asked = [draw(st.sampled_from([f"c{number}", f"c{number}", "c", "c_2"])), *([f"d{number}"] if draw(st.booleans()) else [])]
        made.append(PromptMessage("assistant", tuple(ToolCall(each, "find", "{}") for each in asked), marked=(0,)))
        made.append(PromptMessage("user", tuple(ToolResult(each, "find", f"found {each}") for each in draw(st.permutations(asked)))))
        made.append(PromptMessage("assistant", (Text("there"),)))
        made.append(PromptMessage("user", (Text("thanks"), Text("> recalled")), recall=1))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(made) - 1))
        blocks, to = list(made[at].blocks), draw(st.integers(0, len(made) - 1))
        if not blocks:
            continue
        match draw(st.sampled_from(["drop", "repeat", "move", "name", "blank", "front", "role"])):
            case "drop":
                blocks.pop()
            case "repeat":
                blocks.append(blocks[0])
            case "move" if to != at:
                made[to] = replace(made[to], blocks=(*made[to].blocks, blocks.pop(0)))
            case "name" if isinstance(blocks[0], ToolCall):
                blocks[0] = replace(blocks[0], name=draw(names))
            case "blank":
                blocks.append(Text(draw(st.sampled_from(["", " "]))))
            case "front":
                blocks.insert(0, Text("well"))
            case "role":
                made[at] = replace(made[at], role="user" if made[at].role == "assistant" else "assistant")
        made[at] = replace(made[at], blocks=tuple(blocks), marked=made[at].marked if blocks else (), recall=None)
    return tuple(made)


any_messages = st.lists(messages(), max_size=8).map(tuple) | nearly_sound()


def rounds(*asked: tuple[str, ...]) -> list[PromptMessage]:
    """Calls under these ids, each round with its results."""
    made = []
    for each in asked:
        made.append(PromptMessage("assistant", tuple(ToolCall(call_id, "find", "{}") for call_id in each)))
        made.append(PromptMessage("user", tuple(ToolResult(call_id, "find", "x") for call_id in each)))
    return made


def judge(request: Request) -> None:
    """Raises what a provider would say against it."""
    model = find_model(MODEL)
    assert model is not None
    body = anthropic_api.payload(request, MODEL)
    anthropic_rules.check_shape(body, {"anthropic-version": "2023-06-01"}, model, counting=False)
    anthropic_rules.check_end(body, model, total=1, window=10_000, counting=False)
    openai_rules.check(openai_api.payload(request, "m", official=True))
    json.dumps([body, ollama_api.payload(request, "m", 8192)], ensure_ascii=False, allow_nan=False).encode()


def blocks_of(messages: tuple[PromptMessage, ...], kind: type[Any]) -> list[Any]:
    return [block for message in messages for block in message.blocks if isinstance(block, kind)]


@given(any_messages)
@example(())
@example((PromptMessage("assistant", (ToolCall("a", "find", "{}"),)),))
@example((PromptMessage("user", (ToolResult("a", "find", "x"),)), PromptMessage("assistant", (ToolCall("a", "find", "{}"),))))
@example((PromptMessage("user", (Text("hi"),)), *rounds(("a", "a"))))
@example((PromptMessage("user", (Text("hi"),)), *rounds(("a",), ("a", "a_2"))))
def test_any_request_is_sent_as_providers_take_it(given: tuple[PromptMessage, ...]) -> None:
    # P11, P6, BO-001, BO-003, BO-004, BO-113, BO-115
    request, repairs = mended(Request(BASE, given, cache_ttl="1h"))
    judge(request)
    assert bool(repairs) == (request.messages != given)
    again, nothing = mended(request)
    assert again is request
    assert nothing == ()


@given(any_messages)
def test_no_word_is_lost_and_no_result_is_given_to_another_call(given: tuple[PromptMessage, ...]) -> None:  # P11, P6
    sent = mended(Request(BASE, given))[0].messages
    said = Counter(block.text for message in given for block in message.blocks if isinstance(block, Text) and block.text.strip())
    shown = Counter(block.text for block in blocks_of(sent, Text))
    assert shown - said <= Counter([OPENING, NOTHING, NOTHING])
    assert said <= shown
    came = Counter(result.text for result in blocks_of(given, ToolResult)) + Counter({LOST: len(blocks_of(sent, ToolResult))})
    assert Counter(result.text for result in blocks_of(sent, ToolResult)) <= came


def test_the_first_of_two_results_counts_and_one_in_the_wrong_message_is_moved() -> None:  # P11
    given = (
        PromptMessage("user", (Text("hello"),)),
        PromptMessage("assistant", (ToolCall("a", "find", "{}"), ToolCall("b", "find", "{}"))),
        PromptMessage("user", (ToolResult("a", "find", "first"), Text("well?"), ToolResult("a", "find", "second")), marked=(1,)),
        PromptMessage("user", (Text("and?"), ToolResult("b", "find", "late")), marked=(1,)),
    )
    request, repairs = mended(Request(BASE, given))
    assert request.messages[2:] == (
        PromptMessage("user", (ToolResult("a", "find", "first"), ToolResult("b", "find", "late"), Text("well?")), marked=(1, 2)),
        PromptMessage("user", (Text("and?"),)),
    )
    assert repairs == ("a result 'a' without its call",)


@given(any_messages, any_messages)
def test_a_longer_thread_keeps_the_bytes_of_its_beginning(start: tuple[PromptMessage, ...], more: tuple[PromptMessage, ...]) -> None:
    # P29
    closed = (*start, PromptMessage("assistant", (Text("answer"),)), PromptMessage("user", (Text("next"),)))
    short, _ = mended(Request(BASE, closed))
    long, _ = mended(Request(BASE, (*closed, PromptMessage("assistant", (Text("and"),)), *more)))
    assert long.messages[: len(short.messages)] == short.messages


@given(any_messages)
def test_a_mark_stays_with_its_block(given: tuple[PromptMessage, ...]) -> None:  # P28
    numbered = tuple(
        replace(
            message, blocks=tuple(Text(f"{n}.{i}") if isinstance(b, Text) and b.text.strip() else b for i, b in enumerate(message.blocks))
        )
        for n, message in enumerate(given)
    )

    def marked(messages: tuple[PromptMessage, ...]) -> set[str]:
        pairs = [(message, index) for message in messages for index in message.marked]
        return {block.text for message, index in pairs if isinstance(block := message.blocks[index], Text) and block.text.strip()}

    def recalled(messages: tuple[PromptMessage, ...]) -> set[str]:
        found = [message.blocks[message.recall] for message in messages if message.recall is not None]
        return {block.text for block in found if isinstance(block, Text) and block.text.strip()}

    sent = mended(Request(BASE, numbered))[0].messages
    assert marked(sent) == marked(numbered)
    assert recalled(sent) == recalled(numbered)


@given(sound(), st.sampled_from(["system", "message"]), st.sampled_from(["", "They talked."]))
def test_what_clew_writes_needs_no_mending(rows: list[Message], placement: Any, summary: str) -> None:  # P29
    asked = [*rows, Message("now", len(rows) + 1, "user", (Text("and now?"),), 1.0)]
    for first in range(len(asked)):
        shown = [each for each in window(asked).messages if each.last_seq > first]
        if shown and shown[0].kind == "results":
            continue  # no cut falls there
        parts = Parts("Be brief.", tuple(shown), lambda row: "[now]", covered_line="[2 messages]", recall="> x")
        request = layout(replace(parts, summary=summary, placement=placement), max_tokens=9, ttl="1h", cache_key="s")
        marked = mark(request, prefixes(request), ()).request
        assert mended(marked) == (marked, ())
        assert mended(marked)[0] is marked
        judge(marked)


@given(damaged())
def test_rows_that_were_damaged_are_sent_as_providers_take_them(rows: list[Message]) -> None:  # P6, P11, BO-004
    shown = window(rows, "t1").messages
    request = layout(Parts("Be brief.", shown, lambda row: "[now]"), max_tokens=9, ttl="1h", cache_key="s")
    judge(mended(request)[0])
