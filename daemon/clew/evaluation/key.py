"""What of a transcript must survive: written down by its author, or guessed from its text where nobody did."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from clew.errors import UsageError
from clew.evaluation.wording import NEGATION, sentences
from clew.messages import Message

Category = Literal["identifier", "constraint", "decision", "task", "correction", "certainty"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
Certainty = Literal["said", "guessed", "hypothetical"]

Need = tuple[tuple[str, ...], ...]
"""Texts that must be found: one of each group."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that must survive.

    messages: numbers of the messages it stands in. quote: the words of the first of them. need: what an entry must hold to carry it;
    reason: what it must hold besides, for a decision. wrong: what a correction replaces. hedge: words that keep a guess a guess.
    certainty: None where it is not known whether it was a guess. until: the message from which it holds no more (done, corrected), None
    where it holds to the end.
    """

    id: str
    category: Category
    messages: tuple[int, ...]
    quote: str
    need: Need
    speaker: str
    certainty: Certainty | None = "said"
    reason: Need = ()
    wrong: tuple[str, ...] = ()
    hedge: tuple[str, ...] = ()
    until: int | None = None


def item_of(value: Mapping[str, Any], where: str) -> Item:
    """An item of a key file. Raises UsageError."""
    try:
        item = Item(
            str(value["id"]),
            value["category"],
            tuple(map(int, value["messages"])),
            str(value["quote"]),
            _need(value["need"]),
            str(value["speaker"]),
            value.get("certainty", "said"),
            _need(value.get("reason", ())),
            tuple(map(str, value.get("wrong", ()))),
            tuple(map(str, value.get("hedge", ()))),
            value.get("until"),
        )
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{where}: an item has `id`, `category`, `messages`, `quote`, `need` and `speaker`.") from None
    if item.category not in CATEGORIES or item.certainty not in get_args(Certainty) or not item.messages or not item.need:
        raise UsageError(f"{where}, item {item.id}: unknown category or certainty, or no message or need.")
    return item


def _need(groups: Sequence[Sequence[str]]) -> Need:
    return tuple(tuple(map(str, group)) for group in groups)


IDENTIFIER = re.compile(
    r"https?://[^\s<>\"']+[\w/]"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?<![\w/])~?(?:/[\w+-]+(?:\.[\w+-]+)*){2,}"
    r"|(?<![\w.,])(?=[\w.:/+-]*\d)(?=[\w.:/+-]*[A-Za-z])[A-Za-z0-9][\w.:/+-]{2,}\w"
    r"|(?<![\w.,])\d{1,3}(?:[.,:]\d+)+(?![\w])"
    r"|(?<![\w.,])\d{3,}(?![\w.,])",
    re.ASCII,
)
"""Exact identifiers as the evaluation knows them: URLs, addresses, paths, words with digits, long or composed numbers."""
_LONGEST_RULE = 300
_RULE = re.compile(
    r"\b(?:don't|do not|never|must(?:n't)?|only|unless|niemals|nie wieder|auf keinen Fall|keinesfalls|nur|jamais|surtout pas|nunca"
    r"|nigdy|tylko|żadn\w+)\b|絶対|しないで|ないでください|必ず|不要|不能|千万|绝对",
    re.IGNORECASE,
)


def guessed(messages: Sequence[Message]) -> tuple[Item, ...]:
    """A rough key of a transcript without one: its identifiers, and the sentences of people that forbid or demand something.

    What is found so was not weighed by anybody, so it says how much of it stays word for word, not how much ought to.
    """
    items: dict[str, Item] = {}
    for message in messages:
        if message.role != "user":
            continue
        name = message.sender_name or message.sender or "user"
        for found in IDENTIFIER.findall(message.text):
            items.setdefault(found, Item(f"i{len(items)}", "identifier", (message.seq,), found, ((found,),), name, None))
        for sentence in sentences(message.text):
            if _RULE.search(sentence) and NEGATION.search(sentence) and len(sentence) <= _LONGEST_RULE:
                items.setdefault(sentence, Item(f"i{len(items)}", "constraint", (message.seq,), sentence, ((sentence,),), name, None))
    return tuple(items.values())
