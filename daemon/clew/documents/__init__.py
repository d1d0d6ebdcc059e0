"""Documents as they are read: what formats there are, what comes out of one, and why one is refused."""

from dataclasses import dataclass
from typing import Literal

from clew.context.chunks import Section
from clew.errors import UsageError

Kind = Literal["markdown", "text", "html", "pdf", "docx"]

MOST_CHARS = 5_000_000
"""Characters of text in one document, about 2,500 pages."""
MOST_PAGES = 2000
"""Pages of a PDF."""
SUFFIXES: dict[str, Kind] = {
    **dict.fromkeys((".md", ".markdown", ".mdown"), "markdown"),
    **dict.fromkeys((".txt", ".text", ".rst", ".org", ".adoc", ".log", ".csv", ".tsv"), "text"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
}
"""What a file is by the end of its name. A file that is named by itself may have any other and is text then."""
MEDIA_TYPES: dict[str, Kind] = {
    "text/markdown": "markdown",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
"""What a page of the web is by its media type; any other text is text."""


class Refused(UsageError):
    """A document that is not taken, with the reason and, where there is something to do, what."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What was read of a document. title: as it names itself, empty where it does not."""

    title: str
    sections: tuple[Section, ...]
