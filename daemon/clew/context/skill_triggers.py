"""Words that call for a skill. Pure."""

import re

from clew.context.text import UNSPACED_RUN, WORD, letters, normalise

LOOKED_AT = 10_000
"""Characters of a message that are looked at."""
_RUN = re.compile(f"{WORD.pattern}|{UNSPACED_RUN.pattern}")


class Said:
    """What somebody said, to be asked for triggers."""

    def __init__(self, text: str) -> None:
        self._words = f" {' '.join(words(text[:LOOKED_AT]))} "

    def has(self, trigger: str) -> bool:
        """Whether the words of a trigger stand in it, whole and next to each other, whatever their capitals and what is between them.

        In scripts without spaces its characters do. A trigger without a word is in no text.
        """
        wanted = " ".join(words(trigger))
        return bool(wanted) and f" {wanted} " in self._words


def words(text: str) -> list[str]:
    """The words of a text, and of scripts without spaces the single letters."""
    found: list[str] = []
    for run in _RUN.findall(normalise(text)):
        found += letters(run) if UNSPACED_RUN.match(run) else [run]
    return found
