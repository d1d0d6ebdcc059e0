"""How documents are cut: by their structure, never inside a code fence."""

import pytest

from clew.context.chunks import LONGEST, LONGEST_FENCE, Chunk, Section, chunks
from clew.documents.html import html
from clew.documents.markdown import markdown, plain

GUIDE = """Before the first heading.

# The garden

Intro.

## Watering ##

Roses want water in the morning.

```sh
# not a heading
water --roses
```

Second Part
-----------

Text below an underlined heading.

### Empty

## [Tools](tools.md)
Spade.
"""


def places(text: str) -> list[tuple[str, str]]:
    return [(section.place, section.text.strip()) for section in markdown(text).sections]


def test_markdown_is_cut_at_its_headings() -> None:  # P41
    assert places(GUIDE) == [
        ("", "Before the first heading."),
        ("The garden", "Intro."),
        ("The garden › Watering", "Roses want water in the morning.\n\n```sh\n# not a heading\nwater --roses\n```"),
        ("The garden › Second Part", "Text below an underlined heading."),
        ("The garden › Second Part › Empty", "Empty"),
        ("The garden › Tools", "Spade."),
    ]
    assert markdown(GUIDE).title == "The garden"


def test_a_heading_above_headings_is_not_a_section_of_its_own() -> None:
    assert places("# One\n## Two\ntext") == [("One › Two", "text")]
    assert places("# One\n# Two") == [("One", "One"), ("Two", "Two")]


@pytest.mark.parametrize(
    "text", ["---\ntitle: Notes\n---\ntext", "a line\nof text\n---\nmore", "#hashtag", "    # code", "text\n\n---\n\ntext"]
)
def test_what_only_looks_like_a_heading_is_text(text: str) -> None:
    assert [place for place, _ in places(text)] == [""]


def test_paragraphs_join_up_to_the_longest_piece() -> None:
    text = "\n\n".join(f"{number} " + "word " * 80 for number in range(10))
    found = chunks(plain(text).sections)
    assert len(found) == 5
    assert all(len(each.text) <= LONGEST for each in found)
    assert [each.place for each in found] == ["line 1", "line 5", "line 9", "line 13", "line 17"]


def test_pieces_do_not_reach_over_headings_or_pages() -> None:
    sections = [Section("page 1", "one"), Section("page 2", "two"), Section("page 2", "  \n ")]
    assert chunks(sections) == [Chunk("page 1", "one"), Chunk("page 2", "two")]


def test_a_long_paragraph_is_cut_behind_a_sentence_else_a_word_else_anywhere() -> None:
    sentences = "This is a sentence of its own. " * 60
    assert all(each.text.endswith("own.") for each in chunks([Section("", sentences)]))
    words = "word " * 600
    assert {piece for each in chunks([Section("", words)]) for piece in each.text.split(" ")} == {"word"}
    assert "".join(each.text for each in chunks([Section("", "x" * 5000)])) == "x" * 5000
    japanese = "雨が降ったので水やりはしません。" * 200
    assert all(each.text.endswith("。") for each in chunks([Section("", japanese)]))


def test_a_block_of_code_is_one_piece_even_where_it_is_longer_than_others() -> None:  # P41
    code = "```python\n" + "\n\n".join(f"value_{number} = {number}" for number in range(120)) + "\n```"
    assert LONGEST < len(code) < LONGEST_FENCE
    assert [each.text for each in chunks([Section("", f"before\n{code}\nafter")])] == ["before", code, "after"]


def test_a_very_long_block_of_code_is_parts_that_are_fenced_each() -> None:
    code = "~~~~ python\n" + "\n".join(f"value_{number} = {number}" for number in range(1000)) + "\n~~~~"
    found = [each.text for each in chunks([Section("Setup", code)])]
    assert len(found) > 1
    assert all(each.startswith("~~~~ python\n") and each.endswith("\n~~~~") and len(each) <= LONGEST_FENCE for each in found)
    assert "\n".join(each[len("~~~~ python\n") : -len("\n~~~~")] for each in found) == code[len("~~~~ python\n") : -len("\n~~~~")]


def test_a_page_of_the_web_is_its_text() -> None:  # P41
    page = """<!doctype html><html><head><title>The &amp; garden</title><style>p { color: red }</style>
    <script>track("everyone")</script></head><body><nav><a href="/">Home</a></nav>
    <p>Welcome
      here.</p><h1>Water<b>ing</b></h1><p>Roses<br>want water.<ul><li>in the morning<li>not at noon</ul>
    <pre><code>water --roses
  --slowly</code></pre><h2>Tools</h2><table><tr><th>Tool<th>Use</tr><tr><td>Spade<td>Digging</tr></table>
    <script>more()</script><template>hidden</template>"""
    contents = html(page)
    assert contents.title == "The & garden"
    assert [(section.place, section.text) for section in contents.sections] == [
        ("The & garden", "Welcome here."),
        ("Watering", "Roses\nwant water.\n\n- in the morning\n- not at noon\n\n```\nwater --roses\n  --slowly\n```"),
        ("Watering › Tools", "| Tool | Use\n| Spade | Digging"),
    ]


def test_a_broken_page_is_read_as_far_as_it_goes() -> None:
    contents = html("<h2>One<p>two</h3><pre>code ``` here<h1>Three</p></div></li><li>four")
    assert [(section.place, section.text) for section in contents.sections] == [
        ("One", "two\n\n```\ncode ''' here\n```"),
        ("Three", "- four"),
    ]
