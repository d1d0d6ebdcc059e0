"""HTML: its headings, paragraphs, lists, tables and code, without what is not text."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from clew.context.chunks import Section
from clew.documents import Contents
from clew.documents.markdown import Headings

LONGEST_TITLE = 200
START = "beginning"
"""The place of what no heading and no title stands above."""

_HEADING = re.compile(r"h[1-6]\Z")
_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "nav", "button", "select", "textarea", "iframe", "object"))
_PARAGRAPHS = frozenset(
    ("p", "div", "section", "article", "main", "aside", "header", "footer", "ul", "ol", "dl", "table", "blockquote", "figure", "form", "hr")
)
_LINES = frozenset(("br", "li", "dt", "dd", "tr", "figcaption", "caption"))
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def html(text: str) -> Contents:
    """The sections of a page, one for each heading, and its title. Nothing in it is run or fetched."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.contents()


def charset(body: bytes) -> str:
    """The encoding that a page names in its beginning, empty where it names none."""
    found = _CHARSET.search(body[:4096])
    return found[1].decode("ascii", "replace").lower() if found else ""


class _Lines:
    """Lines as they are written: words of a paragraph on one, a blank one between paragraphs, code as it is in a fence."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._words: list[str] = []

    def say(self, data: str) -> None:
        self._words.append(data)

    def end_line(self) -> None:
        line = " ".join("".join(self._words).split())
        self._words = []
        if line:
            self._lines.append(line)

    def end_paragraph(self) -> None:
        self.end_line()
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def end_code(self) -> None:
        code = "".join(self._words).strip("\n")
        self._words = []
        if code.strip():
            self._lines += ["```", *code.replace("```", "'''").split("\n"), "```", ""]

    def take(self) -> str:
        """All of them; what comes then begins anew."""
        self.end_line()
        text, self._lines = "\n".join(self._lines).strip("\n"), []
        return text


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._headings = Headings()
        self._sections: list[Section] = []
        self._lines = _Lines()
        self._heading: list[str] | None = None
        self._title: list[str] | None = None
        self._named = ""
        self._skipped = ""
        self._depth = 0
        self._pre = False

    def contents(self) -> Contents:
        self._end_heading()
        self._end_section()
        # What stands in front of the first heading is cited by the page's own name.
        return Contents(self._named, tuple(each if each.place else replace(each, place=self._named or START) for each in self._sections))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _PARAGRAPHS or tag in _LINES - {"br"} or tag == "pre":
            self._end_heading()  # somebody forgot to
        if self._skipped:
            self._depth += tag == self._skipped
        elif tag in _SKIPPED:
            self._skipped, self._depth = tag, 1
        elif tag == "title":
            self._title = []
        elif _HEADING.match(tag):
            self._end_heading()
            self._end_section()
            self._headings.enter(int(tag[1]), "")
            self._heading = []
        elif tag == "pre":
            self._lines.end_paragraph()
            self._pre = True
        elif tag in _PARAGRAPHS and not self._pre:
            self._lines.end_paragraph()
        elif tag in _LINES and not self._pre:
            self._lines.end_line()
            self._lines.say("- " if tag == "li" else "")
        elif tag in ("br", "td", "th"):
            self._lines.say("\n" if tag == "br" else " | ")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._depth -= tag == self._skipped
            self._skipped = self._skipped if self._depth else ""
        elif tag == "title" and self._title is not None:
            self._named, self._title = self._named or " ".join("".join(self._title).split())[:LONGEST_TITLE], None
        elif _HEADING.match(tag):
            self._end_heading()
        elif tag == "pre" and self._pre:
            self._end_code()
        elif tag in _PARAGRAPHS and not self._pre:
            self._lines.end_paragraph()

    def handle_data(self, data: str) -> None:
        if self._title is not None:
            self._title.append(data)
        elif self._heading is not None:
            self._heading.append(data)
        elif not self._skipped:
            self._lines.say(data)

    def _end_code(self) -> None:
        self._lines.end_code()
        self._pre = False

    def _end_heading(self) -> None:
        if self._heading is not None:
            self._headings.name("".join(self._heading))
            self._heading = None

    def _end_section(self) -> None:
        if self._pre:
            self._end_code()
        if text := self._lines.take():
            self._sections.append(Section(self._headings.place, text))
