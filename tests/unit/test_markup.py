"""Markdown in Telegram's HTML and as plain text, by example."""

import pytest

from clew_transports.markup import plain, read
from clew_transports.telegram.html import rendered, size, visible
from clew_transports.text import split


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**bold** *it* ~~gone~~ `x < 1`", "<b>bold</b> <i>it</i> <s>gone</s> <code>x &lt; 1</code>"),
        ("use snake_case and *args [x", "use snake_case and *args [x"),
        ("a **b `c` d**", "a <b>b </b><code>c</code><b> d</b>"),
        ("# Head\n\ntext", "<b>Head</b>\n\ntext"),
        ("[a **b** `c`](https://e.org/?a=1&b=2)", '<a href="https://e.org/?a=1&amp;b=2">a <b>b</b> c</a>'),
        ("[you](tg://user?id=5) <b>&", "you &lt;b&gt;&amp;"),
        ("- one\n- two\n    - three\n\n2. four", "• one\n• two\n  • three\n\n2. four"),
        ("> a\n> > b\n>\n> ```\n> c\n> ```", "<blockquote>a\nb</blockquote>\n\n<pre>c</pre>"),
        ("```python title\nif a < b:\n    pass\n```", '<pre><code class="language-python">if a &lt; b:\n    pass</code></pre>'),
        ("| a | b |\n|---|---|\n| 二 | 2 |", "<pre>a  | b\n二 | 2</pre>"),
        ("![alt](https://e.org/p.png)", '<a href="https://e.org/p.png">alt</a>'),
        ("See [1].\n\n[1]: https://e.org", "See [1].\n\n[1]: https://e.org"),
        ("one\ntwo  \nthree\n\n---", "one\ntwo\nthree\n\n———"),
        ("1.\n2. x", "1. \n2. x"),
    ],
)
def test_markdown_in_html(markdown: str, html: str) -> None:
    assert rendered(markdown) == html


def test_plain_text_keeps_addresses_and_labels() -> None:
    assert plain(
        read("**Hi** [there](https://e.org), see [https://e.org](https://e.org)\n\n1. `a`\n2. b\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    ) == ("Hi there (https://e.org), see https://e.org\n\n1. a\n2. b\n\na | b\n1 | 2")


def test_a_table_that_is_too_wide_is_not_padded() -> None:
    html = rendered("| a | b |\n|---|---|\n| " + "x" * 70 + " | 2 |")
    assert html == "<pre>a | b\n" + "x" * 70 + " | 2</pre>"


def test_an_emoji_at_the_limit_is_not_cut() -> None:  # BO-060
    family, flag = "👨‍👩‍👧‍👦", "🇩🇪"
    parts = split("a" * 4095 + family + flag + "b" * 2000, 4096, "utf16", size)
    assert [visible(rendered(part)) for part in parts] == ["a" * 4095, family + flag + "b" * 2000]


def test_what_grows_when_it_is_rendered_is_cut_by_what_it_grows_to() -> None:
    table = "| a | b |\n|---|---|\n" + "".join(f"| {'x' * (50 if number == 0 else 1)} | {number} |\n" for number in range(100))
    assert len(table) < 1300 < size(table)
    parts = split(table, 1300, "utf16", size)
    assert len(parts) > 1
    assert all(size(part) <= 1300 for part in parts)
