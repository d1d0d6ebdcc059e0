"""Message Styling (XEP-0393). Pure."""

from clew_transports import marks

WIDEST_TABLE = 80


def rendered(markdown: str) -> str:
    """`markdown` in Message Styling."""
    return marks.rendered(markdown, WIDEST_TABLE)
