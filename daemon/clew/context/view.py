"""From rows to the messages a model sees: grouped, repaired, headed. Pure, so that a restart changes no byte."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Literal

from clew.messages import Block, File, Message, Text, Thinking, ToolCall, ToolResult

Kind = Literal["user", "assistant", "results"]

LOST = "The result of this call was lost. Its outcome is unknown."
"""What stands in for the result of a call that has none."""
TAIL_FROM = 1_000
"""Characters of a result from which on its end is shown too: a quarter of what is shown."""
NOT_TO_CLEW = ", to the group and not to you"
"""Behind the name of whoever wrote a line that nobody asked clew about."""
MAX_NAME = 60
"""Characters of a tool's name in a line that stands for its result."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """One message as it is counted and sent: a user's, the model's, or all results of one message's calls.

    rows: the transcript rows in it. blocks: what is sent, without heads.
    """

    kind: Kind
    rows: tuple[Message, ...]
    blocks: tuple[Block, ...]

    @property
    def first_seq(self) -> int:
        return self.rows[0].seq

    @property
    def last_seq(self) -> int:
        return self.rows[-1].seq


@dataclass(frozen=True, slots=True)
class _Made:
    """What a window was made of. turn: None where it would be the same in any. used: ids of calls in it."""

    rows: tuple[Message, ...]
    turn: str | None
    shortened: frozenset[str]
    used: frozenset[str]


@dataclass(frozen=True, slots=True)
class Window:
    """The rendered messages behind the summary. `repairs`: what was wrong with the rows, in words, empty as a rule.

    made: what it was made of, where another may go on from it.
    """

    messages: tuple[Rendered, ...]
    repairs: tuple[str, ...] = ()
    made: _Made | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.messages)


def window(rows: Sequence[Message], turn: str = "", shortened: Collection[str] = (), before: Window | None = None) -> Window:
    """Group `rows` (in order) into rendered messages.

    Every call comes out with exactly one result right behind it: results of one message of calls are one message, in call order;
    a missing one is stubbed, one without its call is left out, an id used twice is made unique. Blank text is left out.
    Thinking is kept for the running `turn` only. shortened: ids of rows whose results, or words beside calls, are one line.
    before: a window that this one may go on from, so that only new rows are looked at; it changes nothing in the result.
    """
    rows, shortened = tuple(rows), frozenset(shortened)
    builder = _Builder(turn, shortened)
    done = builder.go_on(before, rows) if before is not None else 0
    for row in rows[done:]:
        builder.add(row)
    made = builder.made(rows)
    builder.close()
    return Window(tuple(builder.messages), tuple(builder.repairs), made)


def ends(text: str, shown: int) -> tuple[str, str]:
    """What is shown of a text that is too long, `shown` characters in all: its beginning and, where that is worth it, its end."""
    tail = shown // 4 if shown >= TAIL_FROM else 0
    return text[: shown - tail], text[len(text) - tail :]


def shown_result(row: Message, result: ToolResult) -> ToolResult:
    """A result as far as it is shown: of a longer one its beginning, a line that says how the rest is opened, and its end."""
    if result.shown is None:
        return result
    left = len(result.text) - result.shown
    head, tail = ends(result.text, result.shown)
    line = f'[… {left:,} more characters left out here; session_open with id "{row.id}", around 0 and offset {len(head)} shows them.]'
    return replace(result, text="\n".join(filter(None, (head, line, tail))), shown=None)


def short_result(row: Message, result: ToolResult) -> ToolResult:
    """What stands for a result of a shortened row: one line that says what answered, how long, and how it is opened."""
    name = " ".join(result.name.split())[:MAX_NAME]
    line = f"[{name} {'failed, saying' if result.is_error else 'answered'} {len(result.text):,} characters{_opened(row)}"
    return replace(result, text=line, shown=None) if len(line) < len(result.text) else shown_result(row, result)


def short_text(row: Message, words: Text) -> Text:
    """The same for words beside calls."""
    line = f"[{len(words.text):,} characters{_opened(row)}"
    return Text(line) if len(line) < len(words.text) else words


def _opened(row: Message) -> str:
    return f' left out here; session_open with id "{row.id}" and around 0 shows them.]'


class _Builder:
    def __init__(self, turn: str, shortened: frozenset[str]) -> None:
        self.messages: list[Rendered] = []
        self.repairs: list[str] = []
        self._turn = turn
        self._shortened = shortened
        self._used: set[str] = set()
        self._open: tuple[Message, dict[str, str]] | None = None  # a message with calls, and the ids they are sent under
        self._results: list[Message] = []
        self._thinks = False

    def go_on(self, before: Window, rows: tuple[Message, ...]) -> int:
        """Take over what `before` has of `rows`, if it is the same here. Returns of how many rows."""
        made = before.made
        if made is None or made.turn not in (None, self._turn) or made.shortened != self._shortened:
            return 0
        if made.rows != rows[: len(made.rows)]:
            return 0
        self.messages, self.repairs = list(before.messages), list(before.repairs)
        self._used.update(made.used)
        self._thinks = made.turn is not None
        return len(made.rows)

    def made(self, rows: tuple[Message, ...]) -> _Made | None:
        """What another window may go on from: nothing, where results of the last row may follow."""
        return None if self._open else _Made(rows, self._turn if self._thinks else None, self._shortened, frozenset(self._used))

    def add(self, row: Message) -> None:
        match row.blocks:
            case (Text(words),) if row.role != "tool" and not row.damaged:  # nearly every row
                self.close()
                if words and not words.isspace():
                    self.messages.append(Rendered("user" if row.role == "user" else "assistant", (row,), row.blocks))
                return
        if row.damaged:
            self.repairs.append(f"message {row.id}: {'a part of it' if row.blocks else 'it'} cannot be read")
        if row.role == "tool":
            self._add_result(row)
            return
        self.close()
        blocks = tuple(self._kept(row))
        if row.role == "assistant" and row.calls:
            names = {call_id: self._unique(call_id, row.seq) for call_id in dict.fromkeys(call.id for call in row.calls)}
            self._open = (row, names)
            blocks = tuple(replace(b, id=names[b.id]) if isinstance(b, ToolCall) else b for b in blocks)
        if blocks and not all(isinstance(block, Thinking) for block in blocks):
            self.messages.append(Rendered("user" if row.role == "user" else "assistant", (row,), blocks))

    def _add_result(self, row: Message) -> None:
        names = self._open[1] if self._open else {}
        taken = {result.call_id for earlier in self._results for result in earlier.results}
        if any(result.call_id in names and result.call_id not in taken for result in row.results):
            self._results.append(row)
        else:
            self.repairs.append(f"message {row.id}: a result without its call")

    def close(self) -> None:
        if self._open is None:
            return
        row, names = self._open
        found = {
            result.call_id: (short_result if each.id in self._shortened else shown_result)(each, result)
            for each in self._results
            for result in each.results
        }
        blocks = []
        for call_id, sent_as in names.items():
            result = found.get(call_id)
            if result is None:
                self.repairs.append(f"message {row.id}: a call without its result")
                name = next(call.name for call in row.calls if call.id == call_id)
                result = ToolResult(call_id, name, LOST, is_error=True)
            blocks.append(replace(result, call_id=sent_as))
        self.messages.append(Rendered("results", tuple(self._results) or (row,), tuple(blocks)))
        self._open, self._results = None, []

    def _kept(self, row: Message) -> Iterator[Block]:
        seen: set[str] = set()
        for block in row.blocks:
            if isinstance(block, Text) and not block.text.strip():
                continue
            if not _may_hold(row, block):
                self.repairs.append(f"message {row.id}: a block that its role cannot hold")
                continue
            if isinstance(block, Thinking):
                self._thinks = True
                if row.turn != self._turn:
                    continue
            if isinstance(block, ToolCall):
                if block.id in seen:
                    self.repairs.append(f"message {row.id}: two calls with one id")
                    continue
                seen.add(block.id)
            yield short_text(row, block) if isinstance(block, Text) and row.calls and row.id in self._shortened else block

    def _unique(self, call_id: str, seq: int) -> str:
        name = call_id
        while name in self._used:
            name = f"{name}_{seq}"
        self._used.add(name)
        return name


def _may_hold(row: Message, block: Block) -> bool:
    if isinstance(block, File):
        return row.role == "user"
    return isinstance(block, Text) or (row.role == "assistant" and not isinstance(block, ToolResult))


Head = Callable[[Message], str]


@lru_cache(maxsize=256)
def head(zone: tzinfo, zone_name: str, *, direct: bool) -> Head:
    """The short line in front of a user message: its own stored time in `zone` and, in groups, who wrote it, and whether to the others.

    zone_name: stands in each head where the base prompt does not name the zone, empty otherwise. The same for the same arguments.
    """

    def of(message: Message) -> str:
        stamp = _stamp(message.at, zone, zone_name)
        name = message.sender_name or message.sender
        if direct or not name:
            return stamp
        return f"{stamp} {name}{NOT_TO_CLEW}:" if message.overheard else f"{stamp} {name}:"

    return of


@lru_cache(maxsize=4096)
def _stamp(at: float, zone: tzinfo, zone_name: str) -> str:
    local = datetime.fromtimestamp(at, zone)
    offset = local.strftime("%z")
    tail = f" {zone_name}" if zone_name else ""
    return f"[{local:%a %Y-%m-%d %H:%M} {offset[:3]}:{offset[3:5]}{tail}]"


_HEAD = re.compile(r"\A(?:\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d[^\]\n]{0,60}\]\s*)+")


def strip_head(text: str) -> str:
    """A reply without the time head that a model may copy from the messages it reads."""
    return _HEAD.sub("", text)
