"""Any Markdown in Matrix' HTML, whole and in parts."""

import json
import re
from html import unescape
from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st

from clew.transport import Address
from clew_transports.markup import read
from clew_transports.matrix.content import edited, posted
from clew_transports.matrix.html import LIMIT, MAX_DEPTH, html, size, words
from clew_transports.text import pieces, split
from tests.property.test_markup import limits, markdown
from tests.property.test_markup import words as said_words

ALLOWED = {
    *(
        "p",
        "br",
        "b",
        "i",
        "del",
        "code",
        "pre",
        "a",
        "h3",
        "ul",
        "ol",
        "li",
        "blockquote",
        "hr",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ),
}
ATTRIBUTES = {("a", "href"), ("ol", "start"), ("code", "class")}
ALONE = {"br", "hr"}


class Tags(HTMLParser):
    """What a parser of HTML in general makes of it: the open tags must be closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.deepest = 0
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        assert all((tag, name) in ATTRIBUTES for name, _ in attrs)
        if tag not in ALONE:
            self.open.append(tag)
            self.deepest = max(self.deepest, len(self.open))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def length(content: dict[str, object]) -> int:
    return len(json.dumps(content, ensure_ascii=False).encode())


@given(markdown)
def test_any_markdown_is_html_of_the_list_with_tags_closed(text: str) -> None:  # BO-062
    shown = Tags(html(read(text)))
    assert shown.open == []
    assert shown.deepest <= 100


@given(markdown)
@example(">" * 60 + "x")
@example("\x01\n" * 300)
@example("1.\n2)\n" * 100)
def test_an_event_is_never_longer_than_it_is_counted(text: str) -> None:  # BO-059
    assert length(words(text)) <= size(text)


@given(markdown, limits)
def test_each_part_is_valid_by_itself_and_fits(text: str, limit: int) -> None:  # BO-059
    for part in split(text, limit + 400, "bytes", size):
        assert Tags(html(read(part))).open == []
        assert length(words(part)) <= max(limit + 400, size(part[:100]))


@given(markdown, limits)
def test_the_parts_rejoin_to_the_text(text: str, limit: int) -> None:
    assert "".join(piece.body for piece in pieces(text, limit, "bytes", size)) == text


@given(said_words, st.sampled_from([" ", "\n", "\n\n", "\n- ", "\n\n> ", "\n\n1. ", "\n\n# ", ". "]))
def test_no_word_is_lost(said: list[str], joint: str) -> None:
    shown = unescape(re.sub(r"<[^>]*>", " ", html(read(joint.join(said)))))
    assert all(word in shown for word in said)


@given(st.integers(1, 400), st.sampled_from(["> ", "- ", "1. "]))
def test_words_below_any_nesting_are_shown_and_tags_stay_shallow(depth: int, mark: str) -> None:
    shown = Tags(html(read(mark * depth + "the words")))
    assert "the words" in shown.text
    assert shown.deepest <= 2 * MAX_DEPTH + 3


@given(st.text(max_size=200), st.sampled_from(["javascript:alert(1)", "file:///etc/passwd", "intent://x", "data:text/html,x", "mxc://a/b"]))
def test_only_addresses_of_pages_and_mail_become_links(text: str, address: str) -> None:
    assert "<a " not in html(read(f"[x]({address})"))


@given(markdown)
def test_an_edit_fits_where_its_message_fits_encrypted_too(text: str) -> None:  # BO-059
    for part in split(text * 40, LIMIT, "bytes", size):
        said = words(part)
        assert length(edited(said, "$" + "e" * 43)) * 4 / 3 + 8000 < 65_536
        sent = posted(said, Address("matrix", "!r", "$t"), "$" + "q" * 43, {"sender": "@" + "a" * 254}, replies=True)
        assert sent["m.mentions"] == {"user_ids": ["@" + "a" * 254]}
