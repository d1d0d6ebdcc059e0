"""Whether somebody answers as no person does: a bot that answers clew, or clew's own words come back. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

MOMENTS = 2.0
"""Seconds behind a reply in which nobody has read it and written back. Reading eight words takes a person as long (238 words a minute:
Brysbaert 2019, "How many words do we read per minute?"), and typing two more (52 words a minute: Dhakal and others 2018, "Observations
on Typing from 136 Million Keystrokes")."""
IN_A_ROW = 8
"""Such messages of one person in one chat, one behind the other, after which they are not answered: one may be chance, a person who pastes
what they had ready manages a few."""
REST = 600.0
"""Seconds without an answer then. With `IN_A_ROW` a loop costs less than one reply a minute, which is less than people cause."""
COMPARED = 4_000
"""Characters of a text that are compared."""
REMEMBERED = 256
"""Texts whose letters are remembered: a reply is compared with each of the next messages."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What clew said in a chat. at: when it was with the platform, None while it is on its way. Seconds since the epoch."""

    text: str
    at: float | None


def is_mechanical(text: str, before: Callable[[], str], replies: Iterable[Spoken], now: float, *, direct: bool) -> bool:
    """Whether a message looks like a machine's: one of clew's own replies come back; or sent within moments of a reply, in a group, or
    with the words of the sender's message before it. In a direct chat whoever is quick may be a program that asks one thing after another.

    before: tells the sender's message before it in this chat, and is rarely asked. replies: the newest of clew's there.
    """
    words = _plain(text[:COMPARED])
    said = list(replies)
    if words and any(words == _plain(each.text[:COMPARED]) for each in said):
        return True
    at_once = any(each.at is not None and 0 <= now - each.at < MOMENTS for each in said)
    return at_once and (not direct or (words != "" and words == _plain(before()[:COMPARED])))


@lru_cache(maxsize=REMEMBERED)
def _plain(text: str) -> str:
    """The letters and figures of a text: what is left of it whatever a platform makes of its markup."""
    return "".join(filter(str.isalnum, text.casefold()))
