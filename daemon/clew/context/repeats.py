"""What recall leaves out because it is there already, or was a moment ago. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from clew.context.query import Query
from clew.context.ranking import Scored, relevant
from clew.context.recall import MARGIN

COMPARED = 1_000
"""Characters of a message by which it is told from another of the same length."""
WORTH = 16
"""Bytes from which on the same words are a repeat: a `yes` that stands in view says nothing of another one."""


def without_repeats(
    query: Query, scored: Sequence[Scored], in_view: Iterable[str], summary: str = "", lately: Collection[str] = ()
) -> list[Scored]:
    """Of what was found, best first, that which adds something.

    Left out are words that stand in view, in the summary, or in a better message that was found. `lately` are ids of messages that were
    recalled in the last turns and stand in the prompt no more: the model has answered with them, so that they give way to what it has
    not seen. They come again where there is nothing of the kind, or it is worse by more than `MARGIN`.
    """
    seen = {_compared(text) for text in in_view}
    told = _plain(summary)
    found: list[Scored] = []
    for item in scored:
        length, words = _compared(item.candidate.text)
        if len(words.encode("utf-8", "surrogatepass")) >= WORTH:
            if (length, words) in seen or (length == len(words) and words in told):
                continue
            seen.add((length, words))
        found.append(item)
    new = [item for item in found if item.candidate.id not in lately]
    if not new or len(new) == len(found):
        return found
    return new if relevant(query, new[0].score) and found[0].score - new[0].score <= MARGIN else found


def _compared(text: str) -> tuple[int, str]:
    """Texts are one where they differ in case and blanks only: by their length and how they begin."""
    plain = _plain(text[:COMPARED])
    return (len(plain) if len(text) <= COMPARED else len(text), plain)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
