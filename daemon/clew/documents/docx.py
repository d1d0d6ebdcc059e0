"""DOCX: headings, paragraphs and tables of a Word document. Runs in a process of its own, see `reading`."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from clew.context.chunks import Section
from clew.documents import MOST_CHARS, Contents, Refused
from clew.documents.markdown import Headings

MOST_PARTS = 5000
"""Files in the archive that a document is."""
MOST_UNPACKED = 200 * 2**20
"""Bytes of all of them."""
MOST_XML = 64 * 2**20
"""Bytes of one that holds text or structure."""
_HEADING = re.compile(r"(?:Heading|heading|Title)\s?([1-9])?\Z")


def docx(body: bytes) -> Contents:
    """The sections of a document, one for each heading. Raises Refused; where the library is missing, ImportError."""
    import docx as library

    _check(body)
    try:
        document = library.Document(io.BytesIO(body))
        sections = tuple(_sections(document))
        title = str(document.core_properties.title or "")
    except Refused:
        raise
    except Exception as error:  # the library meets XML of any shape, and raises what that makes it raise
        raise Refused(f"it is damaged or no Word document ({type(error).__name__}: {error}).") from None
    return Contents(" ".join(title.split())[:200], sections)


def _check(body: bytes) -> None:
    """That it unpacks to a bounded size, and declares no entities. Raises Refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS:
                raise Refused(f"it has {len(parts):,} parts, and at most {MOST_PARTS:,} are read.")
            size = sum(part.file_size for part in parts)
            if size > MOST_UNPACKED:
                raise Refused(f"it unpacks to {size // 2**20:,} MiB, and at most {MOST_UNPACKED // 2**20} MiB are read.")
            for part in parts:
                if part.filename.lower().endswith((".xml", ".rels")):
                    _check_xml(archive, part)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise Refused(f"it is damaged or no Word document ({error}).") from None


def _check_xml(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    if part.file_size > MOST_XML:
        raise Refused(f"{part.filename} in it has {part.file_size // 2**20:,} MiB, and at most {MOST_XML // 2**20} MiB are read.")
    with archive.open(part) as file:
        # The standard of these documents forbids a DTD, and an attack by entities needs one.
        if b"<!DOCTYPE" in file.read(MOST_XML).replace(b"\0", b""):
            raise Refused(f"{part.filename} in it declares a document type, which no Word document does.")


def _sections(document: Any) -> Iterator[Section]:
    headings = Headings()
    lines: list[str] = []
    first = number = 1
    size = 0
    for block in document.iter_inner_content():
        text, level = _read(block)
        size += len(text)
        if size > MOST_CHARS:
            raise Refused(f"it has more than {MOST_CHARS:,} characters of text.", hint="Cut it in parts.")
        if level and text:
            if lines:
                yield Section(headings.place, "\n".join(lines), "paragraph", first)
            headings.enter(level, text)
            lines, first = [], number + 1
        elif text or lines:
            lines += text.split("\n")
        else:
            first = number + 1
        number += 1
    if any(lines):
        yield Section(headings.place, "\n".join(lines), "paragraph", first)


def _read(block: Any) -> tuple[str, int]:
    """(the text of a paragraph or a table, the level of a heading or 0)."""
    if hasattr(block, "rows"):
        rows = (" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in block.rows)
        return "\n".join(rows), 0
    text = " ".join(block.text.split())
    style = _HEADING.match(block.style.name or "") if block.style is not None else None
    return text, (int(style[1] or 1) if style else 0)
