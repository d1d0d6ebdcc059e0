"""What may become one line in the view, and in which order. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clew.context.prompt import block_tokens
from clew.context.stopwords import LANGUAGES
from clew.context.text import WORD, normalise, telling_pairs
from clew.context.view import Rendered, short_result, short_text, shown_result
from clew.messages import File, Message, Text, ToolCall, ToolResult

FROM_CHARS = 1_000
"""Characters from which on a result, or words beside calls, are worth a line in their place (about 300 tokens; the line has 40)."""
READ_CHARS = 20_000
"""Characters of a text that are looked at for the words by which later messages may refer to it."""
_LONG_WORD = 4
_COMMON: frozenset[str] = frozenset().union(*LANGUAGES)


@dataclass(frozen=True, slots=True)
class Shortening:
    """A row that may be shortened.

    row: its id. index: the rendered message it stands in. saved: estimated tokens that it gives back. references: later messages of
    people and the model that use a word which this row brought into the thread.
    """

    row: str
    index: int
    saved: int
    size: int
    references: int


def shortenings(messages: Sequence[Rendered], shortened: Collection[str], pinned: Collection[str], turn: str = "") -> list[Shortening]:
    """All that may be shortened, in the order in which it should be: the least referred to, then the largest, then the oldest.

    Results count once the model has answered to them, words beside calls once their turn has ended. turn: the one that runs. The time is
    linear in the characters of the window.
    """
    read = max((index for index, message in enumerate(messages) if message.kind == "assistant"), default=-1)
    found = [
        (index, row)
        for index, message in enumerate(messages[: read + 1])
        for row in message.rows
        if row.id not in shortened and row.id not in pinned and _long(message, row, turn)
    ]
    if not found:
        return []
    references = _references(messages, found)
    made = [Shortening(row.id, index, _saved(row), _size(row), references[row.id]) for index, row in found]
    return sorted((each for each in made if each.saved > 0), key=lambda each: (each.references, -each.size, each.index))


def _long(message: Rendered, row: Message, turn: str) -> bool:
    if row.role == "tool":
        return _size(row) >= FROM_CHARS
    return message.kind == "assistant" and bool(row.calls) and row.turn != turn and _size(row) >= FROM_CHARS


def _size(row: Message) -> int:
    """Characters that would be left out."""
    return len(row.text) if row.role == "assistant" else sum(len(shown_result(row, result).text) for result in row.results)


def _saved(row: Message) -> int:
    if row.role == "tool":
        return sum(block_tokens(shown_result(row, each)) - block_tokens(short_result(row, each)) for each in row.results)
    return sum(block_tokens(each) - block_tokens(short_text(row, each)) for each in row.blocks if isinstance(each, Text))


def _references(messages: Sequence[Rendered], found: Sequence[tuple[int, Message]]) -> dict[str, int]:
    """By row: how many later messages use one of the words that the row is the first to use in the window."""
    ends = {row.id: index for index, row in found}
    brought: dict[str, str] = {}  # word → the row that brought it, empty for any other
    counts = dict.fromkeys(ends, 0)
    for message in messages:
        for row in message.rows:
            words = _words(row)
            if message.kind != "results":
                for referred in {brought[word] for word in words if brought.get(word)} | (ends.keys() & words):
                    counts[referred] += 1
            owner = row.id if row.id in ends else ""
            for word in words:
                brought.setdefault(word, owner)
    return counts


def _words(row: Message) -> set[str]:
    """The words of a row that say something: names, numbers, and words of some length that no language uses all the time."""
    plain = normalise("\n".join(_text(block) for block in row.blocks)[:READ_CHARS])
    words = set(WORD.findall(plain))
    return telling_pairs(plain) | {word for word in words - _COMMON if len(word) >= _LONG_WORD or not word.isalpha()}


def _text(block: object) -> str:
    match block:
        case Text(text) | ToolResult(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case File():
            return block.words
    return ""
