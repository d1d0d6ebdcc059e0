"""WhatsApp's marks. Pure.

WhatsApp has no escapes: where a mark of the text itself could be taken for one, a word joiner stands in front of it.
"""

import re

from clew_transports import marks
from clew_transports.text import measure

LIMIT = 4096
"""Characters of a text message."""
WIDEST_TABLE = 40
"""Columns; wider ones would be broken on a telephone."""

_TAKEN = re.compile(r"(?<!\w)([*_~`])(?=\S)")
"""A mark that begins a word, which is where WhatsApp looks for them."""


def rendered(markdown: str) -> str:
    """`markdown` as WhatsApp shows it."""
    return marks.rendered(markdown, WIDEST_TABLE, lambda words: _TAKEN.sub("\u2060\\1", words))


def size(markdown: str) -> int:
    """Characters of what is sent."""
    return measure(rendered(markdown), "characters")
