"""What others wrote is made harmless before it is printed."""

import unicodedata
from datetime import UTC
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.output import Filter, escaped, harmless, print_table, width
from clew.cli.prompt import folded, wrapped
from clew.cli.status import _lines

SEQUENCES = (
    "\x1b[31m",
    "\x1b[2J",
    "\x1b[?1049h",
    "\x1b]0;title\x07",
    "\x1b]52;c;YQ==\x1b\\",
    "\x1bP1$q\x1b\\",
    "\x1bc",
    "\x1b(B",
    "\x9b2J",
    "\x1b7",
)
WORDS = st.text(st.characters(codec="utf-8"), max_size=8).map(lambda text: harmless(text).replace("\x1b", ""))


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_whole_sequence_goes_and_the_words_around_it_stay(sequence: str) -> None:
    assert harmless(f"before{sequence}after") == "beforeafter"


def test_controls_and_marks_of_direction_go_but_tab_and_newline() -> None:
    assert harmless("a\r\nb\tc\rd\x08e\x00f\x7fg\u202eh\u2066i\ud800") == "a\nb\tcdefghi"


@given(st.text())
def test_nothing_that_a_terminal_acts_upon_is_left(text: str) -> None:
    assert not [char for char in harmless(text) if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]
    assert harmless(harmless(text)) == harmless(text)


@given(st.text())
def test_an_escaped_name_is_one_harmless_line(name: str) -> None:
    shown = escaped(name)
    assert shown == harmless(shown) == escaped(shown)
    assert len(shown.splitlines()) <= 1
    assert name != shown or name.isprintable() or all(unicodedata.category(char) not in ("Cc", "Cs") for char in name)


@given(st.lists(st.one_of(WORDS, st.sampled_from(SEQUENCES))), st.lists(st.integers(0, 200)))
def test_pieces_are_as_harmless_as_the_whole(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    screen = Filter()
    assert "".join(screen.feed(text[start:end]) for start, end in pairwise(places)) == harmless(text)


def test_a_sequence_without_an_end_is_not_waited_for_long() -> None:
    screen = Filter()
    assert screen.feed("a\x1b]0;") == "a"
    assert "words" in screen.feed("x" * 300 + "words")


def test_tables_line_up_by_columns_of_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "N"), [("日本", 1), ("\x1b[2Jlong\nline", 2), ("x" * 100, None)])
    lines = capsys.readouterr().out.splitlines()
    assert [width(line[: line.rindex(cell)]) for line, cell in zip(lines[:3], ("N", "1", "2"), strict=True)] == [62, 62, 62]
    assert lines[2].startswith("long line ")
    assert lines[3] == "x" * 59 + "…"
    print_table(("NAME",), [])
    assert capsys.readouterr().out == ""


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n\t")), st.integers(2, 40))
def test_rows_hold_all_of_a_line_but_spaces_and_fit(text: str, columns: int) -> None:
    rows = list(wrapped(text, columns))
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")
    assert all(width(row) <= columns for row in rows)


@given(st.lists(st.text("abcd東", min_size=1, max_size=6), min_size=1), st.integers(12, 40))
def test_rows_are_cut_between_words_that_fit(words: list[str], columns: int) -> None:
    assert " ".join(wrapped(" ".join(words), columns)).split(" ") == words


def test_lines_are_folded_and_keep_their_indentation() -> None:
    assert folded("one two three four five six\n\n    code\n", 20) == "one two three four\nfive six\n\n    code\n"
    assert folded("x" * 25 + " y", 20) == "x" * 20 + "\nxxxxx y"


def test_long_work_is_a_line_of_the_status() -> None:
    work = {"unit": "messages", "since": 0.0, "of": 5000, "done": 1200, "state": "running", "ended": None, "why": ""}
    failed = work | {"state": "failed", "ended": 60.0, "why": "the disk is\x1b[2J full"}
    assert list(_lines({"ready": True, "work": {"import": work, "embedding": failed}}, UTC)) == [
        "ready: yes",
        "work:",
        "  import: running, 1,200 of 5,000 messages, since 1970-01-01 00:00:00",
        "  embedding: failed, 1,200 of 5,000 messages, at 1970-01-01 00:01:00 (the disk is full)",
    ]
