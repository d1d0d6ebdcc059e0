"""IRC's lines: written and read again, cut to what a server takes, whatever they hold."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from clew_transports.irc.lines import LIMIT, Line, addressed, folded, said, written
from clew_transports.irc.transport import LINE_BYTES, size
from clew_transports.markup import plain, read
from clew_transports.text import MIN_LIMIT, parts

WORD = st.text(st.characters(exclude_characters=" \r\n\0:", exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8)
MARKDOWN = st.text(alphabet=st.sampled_from(list("ab *_~`>#-|[]()\n1.äß👩‍🔬你\x01\x02\x03\r")), max_size=300)


@given(WORD, st.text(max_size=40))
def test_a_line_is_one_line_and_comes_back(target: str, words: str) -> None:
    raw = written("PRIVMSG", target, words)
    assert raw.count(b"\n") == 1
    line = Line.parse(raw)
    clean = words.encode("utf-8", "replace").decode()
    assert line.params == (target, clean.replace("\r", "").replace("\n", "").replace("\0", ""))


@given(st.binary(max_size=200))
def test_any_line_is_read_or_refused(raw: bytes) -> None:
    with contextlib.suppress(ValueError):
        Line.parse(raw)


@given(st.lists(MARKDOWN, min_size=1, max_size=30).map("\n\n".join))
def test_parts_are_few_short_lines(markdown: str) -> None:  # BO-055
    for part in parts(markdown, LIMIT, "bytes", size):
        lines = said(plain(read(part.text)))
        # What is shorter than the shortest part is not cut: fifty lines of one letter.
        assert len(lines) <= max(LIMIT // LINE_BYTES, MIN_LIMIT // 2)
        assert all(len(line.encode()) <= LIMIT for line in lines)


@given(st.text(max_size=30), st.sampled_from(["clew", "c[1]", "_x_"]))
def test_who_is_called_by_name_is_meant(words: str, nick: str) -> None:  # BO-069
    for text in (f"{nick}: {words}", f"@{nick.upper()} {words}", f"hey {nick}, {words}", f"{words} {nick}"):
        assert addressed(text, nick) is not None
    assert addressed(f"x{nick}x {words}".replace(nick.upper(), ""), f"{nick}zz") is None or f"{nick}zz" in words


def test_names_are_compared_as_servers_do() -> None:
    assert folded("Bob[1]\\") == folded("bob{1}|") == "bob{1}|"
