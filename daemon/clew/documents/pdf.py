"""PDF: the text of its pages. Runs in a process of its own, see `reading`."""

import io

from clew.context.chunks import Section
from clew.documents import MOST_CHARS, MOST_PAGES, Contents, Refused

NO_TEXT = "A PDF of scanned pages has to go through character recognition first, such as `ocrmypdf`."


def pdf(body: bytes) -> Contents:
    """The pages of a PDF that have text. Raises Refused; where the library is missing, ImportError."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise _encrypted()
        count = len(reader.pages)
        if count > MOST_PAGES:
            raise Refused(f"it has {count:,} pages, and at most {MOST_PAGES:,} are read.", hint="Cut it in parts.")
        sections, size = [], 0
        for number, page in enumerate(reader.pages, start=1):
            text = page.extract_text().strip()
            size += len(text)
            if size > MOST_CHARS:
                raise Refused(f"it has more than {MOST_CHARS:,} characters of text.", hint="Cut it in parts.")
            if text:
                sections.append(Section(f"page {number}", text))
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except DependencyError:
        raise _encrypted() from None
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, NotImplementedError) as error:
        raise Refused(f"it is damaged or no PDF ({type(error).__name__}: {error}).") from None
    if not sections:
        raise Refused("no text is in it.", hint=NO_TEXT)
    return Contents(" ".join(title.split())[:200], tuple(sections))


def _encrypted() -> Refused:
    return Refused("it is encrypted.", hint="Save it without a password, and add that.")
