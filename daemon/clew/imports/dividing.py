"""Conversations in pieces that are stored at once. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby

from clew.imports.conversation import LONGEST_KEY, LONGEST_TITLE, Conversation, Said, line
from clew.messages import blocks_to_json

MOST, MOST_BYTES = 1_000, 8 * 2**20
"""Messages, and bytes of them, that are stored in one session and in one transaction: meanwhile nobody else's are."""


def divided(whole: Conversation) -> Iterator[Conversation]:
    """`whole` as it is, or its parts one after the other, each with a key that stays the same when the conversation goes on."""
    whole = replace(whole, key=line(whole.key, LONGEST_KEY - 20) or "-", title=line(whole.title, LONGEST_TITLE - 10))
    part, size, number = list[Said](), 0, 1
    for each in whole.messages:
        length = len(blocks_to_json(each.blocks).encode())
        if part and (len(part) >= MOST or size + length > MOST_BYTES):
            yield _part(whole, part, number)
            part, size, number = [], 0, number + 1
        part.append(each)
        size += length
    if part:
        yield _part(whole, part, number)


def by_month(key: str, title: str, messages: Iterable[Said]) -> Iterator[Conversation]:
    """A chat of years as a conversation for each month (UTC) that something was said in, which is all of it that is held at once.

    A message that comes later and says it is of an earlier month stays with those before it.
    """
    latest = ""

    def month(each: Said) -> str:
        nonlocal latest
        latest = max(latest, f"{datetime.fromtimestamp(each.at, UTC):%Y-%m}")
        return latest

    for name, said in groupby(messages, month):
        yield Conversation(f"{key}/{name}", f"{title}, {name}", tuple(said))


def _part(whole: Conversation, part: list[Said], number: int) -> Conversation:
    if number == 1:
        return Conversation(whole.key, whole.title, tuple(part))
    return Conversation(f"{whole.key}#{number}", f"{whole.title} ({number})", tuple(part))
