"""Transcripts for tests: written by hand, or any by Hypothesis, sound or damaged."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from clew.context.view import Rendered, window
from clew.messages import Block, Message, Text, Thinking, ToolCall, ToolResult

START = 1_780_000_000.0
"""2026-05-28, in seconds since the epoch."""


@dataclass
class Thread:
    """A transcript that grows; messages are a minute apart."""

    rows: list[Message] = field(default_factory=list)
    turn: str = ""

    def user(self, text: str, *, sender: str = "ada", at: float | None = None) -> Message:
        return self._add("user", (Text(text),), sender, at)

    def reply(self, text: str) -> Message:
        return self._add("assistant", (Text(text),))

    def calls(self, *ids: str, text: str = "", thinking: str = "", arguments: str = '{"q":"x"}') -> Message:
        """The model calls the tool `find` once for each id."""
        blocks: list[Block] = [Thinking("p", thinking)] if thinking else []
        blocks += [Text(text)] if text else []
        return self._add("assistant", (*blocks, *(ToolCall(each, "find", arguments) for each in ids)))

    def result(self, call_id: str, text: str = "found") -> Message:
        return self._add("tool", (ToolResult(call_id, "find", text),))

    def round(self, *ids: str, size: int = 1) -> None:
        """Calls and their results."""
        self.calls(*ids)
        for each in ids:
            self.result(each, " ".join([f"found-{each}"] * size))

    def exchange(self, text: str) -> None:
        self.user(text)
        self.reply(f"About {text}.")

    def _add(self, role: str, blocks: tuple[Block, ...], sender: str = "", at: float | None = None) -> Message:
        seq = len(self.rows) + 1
        name = sender.capitalize()
        when = START + 60 * seq if at is None else at
        row = Message(f"m{seq}", seq, role, blocks, when, sender, name, self.turn)  # type: ignore[arg-type]
        self.rows.append(row)
        return row

    def window(self) -> tuple[Rendered, ...]:
        return window(self.rows, self.turn).messages


def numbered(count: int) -> Thread:
    """`count` messages in plain alternation, the first a user's."""
    thread = Thread()
    for number in range(count):
        (thread.user if number % 2 == 0 else thread.reply)(f"message {number + 1}")
    return thread


_words = st.text("abc äß漢🙂\n", min_size=1, max_size=12).filter(str.strip)
_any_words = st.text(max_size=6) | st.sampled_from(["", " ", "\n", "word"])
_ids = st.sampled_from(["a", "b", "a_1", "a_2", "a_3", "b_2", ""])


@st.composite
def sound(draw: st.DrawFn, max_turns: int = 6) -> list[Message]:
    """A transcript as clew writes it: any number of turns, each with any number of rounds of calls; the last turn may be running."""
    thread = Thread()
    number = 0
    turns = draw(st.integers(0, max_turns))
    for turn in range(turns):
        for _ in range(draw(st.integers(1, 2))):
            thread.user(draw(_words))
        for count in draw(st.lists(st.integers(1, 3), max_size=3)):
            ids = [f"call{number + i}" for i in range(count)]
            number += count
            thread.calls(*ids, text=draw(st.sampled_from(["", "Looking."])))
            for each in draw(st.permutations(ids)):
                thread.result(each, draw(_any_words))
        if turn < turns - 1 or draw(st.booleans()):
            thread.reply(draw(_words))
    return thread.rows


def _blocks(role: str) -> st.SearchStrategy[tuple[Block, ...]]:
    text = st.builds(Text, _any_words)
    call = st.builds(ToolCall, _ids, st.just("find"), st.just("{}"))
    result = st.builds(ToolResult, _ids, st.just("find"), _any_words, st.booleans())
    thinking = st.builds(Thinking, st.just("p"), st.just('{"type":"thinking"}'))
    usual: dict[str, st.SearchStrategy[Block]] = {"user": text, "assistant": text | call | thinking, "tool": result}
    return st.lists(usual[role] | usual[role] | text | call | result, max_size=4).map(tuple)


@st.composite
def damaged(draw: st.DrawFn) -> list[Message]:
    """Any rows whatever: orphan results, dangling calls, ids used twice, blank texts, blocks in the wrong role."""
    rows = []
    for seq in range(1, draw(st.integers(0, 9)) + 1):
        role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool"]))
        rows.append(Message(f"m{seq}", seq, role, draw(_blocks(role)), START + seq, turn=draw(st.sampled_from(["", "t1"]))))  # type: ignore[arg-type]
    return rows


def as_rows(messages: Sequence[Rendered]) -> list[Message]:
    """Rows that hold what was rendered, one for each result: a transcript that needs no repair."""
    thread = Thread()
    for each in messages:
        kind = "tool" if each.kind == "results" else each.kind
        for blocks in [(block,) for block in each.blocks] if kind == "tool" else [each.blocks]:
            thread._add(kind, blocks)
    return thread.rows
