"""Any Markdown in Telegram's HTML, whole and in parts."""

import re
from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st

from clew_transports.markup import plain, read
from clew_transports.telegram.html import rendered, size, visible
from clew_transports.text import measure, pieces, split
from tests.emulators.telegram import parsed

PIECES = (
    *("# Title\n", "- item\n", "  - inner\n", "    - deeper\n", "3. third\n", "> quoted\n", "> > twice\n", "---\n", "***\n"),
    *("```python\n", "```\n", "~~~\n", "x < 1 && y\n", "| a | b |\n", "|---|---|\n", "| 1 | 二二 |\n", "[1]: http://e.org\n"),
    *("**bold**", "*it*", "__b__", "_i_", "~~s~~", "`code`", "``a`b``", "**", "*", "_", "`", "~~", "[", "](", ")", "\\*", "&amp;"),
    *("[link](https://e.org/a_(b)?c=1&d=2)", "![alt](http://e.org/p.png)", "[u](tg://user?id=1)", "<b>", "</a>", "<https://e.org>"),
    *("snake_case ", "*args ", "2 < 3 > 1 & 4 ", "https://e.org/x_y_z ", "word ", "Ende. ", "שלום ", "你好。", "👨‍👩‍👧‍👦", "🇩🇪", "e\u0301"),
    *(" ", "\n", "\n\n", "\t", "\x00", "    ", "&lt;", '"'),
)
markdown = st.one_of(st.lists(st.sampled_from(PIECES), max_size=150).map("".join), st.text(max_size=300))
limits = st.integers(400, 1200)

MARKS = re.compile(r"[\W_]+")


class Tags(HTMLParser):
    """What a parser of HTML in general makes of it: the open tags must be closed in their order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@given(markdown)
def test_any_markdown_is_html_that_telegram_parses(text: str) -> None:  # BO-062
    html = rendered(text)
    assert parsed(html) == visible(html)
    assert Tags(html).open == []


@given(markdown)
@example("- - - - - x\n1.\n2.\n- a\n\n      - b")
def test_what_is_shown_is_never_longer_than_it_is_counted(text: str) -> None:  # BO-059
    assert measure(visible(rendered(text)), "utf16") <= size(text)


@given(markdown, limits)
@example("!.-" * 1400, 1200)
def test_each_part_is_valid_by_itself_and_fits_as_it_is_counted(text: str, limit: int) -> None:  # BO-059
    for part in split(text, limit, "utf16", size):
        assert measure(parsed(rendered(part)), "utf16") <= limit
        assert measure(part, "utf16") <= limit


@given(markdown, limits)
def test_the_parts_rejoin_to_the_text(text: str, limit: int) -> None:
    assert "".join(piece.body for piece in pieces(text, limit, "utf16", size)) == text


words = st.lists(st.sampled_from(["alpha", "beta2", "γάμμα", "дельта", "你好", "שלום", "snake_case", "x<1"]), min_size=1, max_size=60)
joints = st.sampled_from([" ", "\n", "\n\n", "\n- ", "\n\n> ", "\n\n1. ", "\n\n# ", ". "])


@given(words, joints)
def test_no_word_is_lost_in_a_dialect(said: list[str], joint: str) -> None:
    text = joint.join(said)
    expected = [MARKS.sub("", word) for word in said]
    for shown in (plain(read(text)), visible(rendered(text))):
        assert "".join(expected) in re.sub(r"\d+\. ", "", shown).replace("•", "").translate({ord(c): None for c in "_<> \n.#1-"}) or all(
            word in shown for word in said
        )


@given(st.integers(1, 400), st.sampled_from(["> ", "- ", "1. "]))
def test_words_below_any_nesting_are_shown(depth: int, mark: str) -> None:
    assert "the words" in plain(read(mark * depth + "the words"))


@given(
    st.lists(
        st.sampled_from(["[a link](https://e.org/long/path_1)", "`some code`", "**bold words**", "word", "Ende."]),
        min_size=60,
        max_size=200,
    ),
    limits,
)
def test_no_cut_inside_a_link_code_or_emphasis(said: list[str], limit: int) -> None:
    whole = [piece.body for piece in pieces(" ".join(said), limit, "utf16", size)]
    assert [each for body in whole for each in re.findall(r"\[.*?\)|`.*?`|\*\*.*?\*\*|\S+", body)] == [
        each for word in said for each in ([word] if word[0] in "[`*" else word.split())
    ]


@given(
    st.text(max_size=200),
    st.sampled_from(["tg://user?id=1", "javascript:alert(1)", "file:///etc/passwd", "intent://x", "data:text/html,x"]),
)
def test_only_addresses_of_pages_and_mail_become_links(text: str, address: str) -> None:
    assert "<a " not in rendered(f"[x]({address})")
