"""Any Markdown in Discord's own, whole and in parts, as its clients show it."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from clew_transports.discord.markdown import LIMIT, rendered, size
from clew_transports.markup import plain, read
from clew_transports.text import pieces, split
from tests.emulators.discord_markdown import CODE, OTHER, shown
from tests.property.test_markup import limits, markdown

GAP = "\u200b"
SPECIAL = re.compile(r"([!-/:-@\[-`{-~])")
PIECES = (
    *("**", "*", "__", "_", "~~", "||", "`", "```", "> ", ">>> ", "# ", "### ", "-# ", "- ", "+ ", "1. ", "12) ", "\\", "\\\\"),
    *("<@123>", "<@&5>", "<#7>", "<t:1:R>", "<:x:1>", "</a:1>", "@everyone", "[a](b)", "[", "](", "<", ">", "|", "snake_case", "x*y*z"),
    *("word", "Ende.", "שלום", "你好。", "👨‍👩‍👧‍👦", " ", "\n", "\n\n", "http", "://", "&", "%"),
)
visible = st.text(st.characters(exclude_categories=["C"]), max_size=80)
literal = st.one_of(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), visible)


def bare(text: str) -> str:
    """Without white space, and what nobody sees."""
    return re.sub(rf"[\s{GAP}]+", "", text)


@given(literal)
@example("- - a\n1. b\n# c\n> d\n-# e\n+ f\n12) g")
@example("a **b** __c__ ||d|| ~~e~~ <@1> <t:1> `f` [g](h) _i_ *j* ``` k ```")
def test_words_are_shown_as_they_are_whatever_marks_they_hold(text: str) -> None:
    words = "\n".join(line.strip() for line in text.split("\n") if line.strip())
    if "http" in words:
        return  # addresses are links, and encoded
    quoted = SPECIAL.sub(r"\\\1", words)
    assert bare(plain(read(quoted))) == bare(words)
    assert bare(shown(rendered(quoted))) == bare(words)


styles = st.sampled_from(
    ["**{}**", "*{}*", "~~{}~~", "***{}***", "**a *{}* b**", "*a **{}** b*", "~~**{}**~~", "`{}`", "[{}](https://e.org/)"]
)
styled = st.lists(st.tuples(styles, st.sampled_from(["word", "two words", "x1", "你好", "é"])), min_size=1, max_size=12)


@given(styled, st.sampled_from(["", " ", "\n", ", ", "\n\n", "\n- ", "\n> ", "\n# "]))
def test_styles_beside_and_in_one_another_leave_their_words(said: list[tuple[str, str]], joint: str) -> None:
    text = joint.join(style.format(words) for style, words in said)
    seen = bare(shown(rendered(text))).replace(CODE, "").translate({40: "[", 41: "]"})
    assert seen == bare("".join(run.text for block in read(text) for run in block.runs))


@given(markdown)
def test_nothing_becomes_a_mention_a_time_or_a_spoiler(text: str) -> None:  # BO-125
    assert OTHER not in shown(rendered(text))


@given(st.text(st.sampled_from("`ab \n~"), max_size=60), st.sampled_from(["", "python", "a b", "c++"]))
def test_code_stays_code_whatever_ticks_it_holds(code: str, language: str) -> None:
    fence = "~" * 70
    text = f"{fence}{language}\n{code}\n{fence}\nbehind"
    if "~~~" in code or not code.strip():
        return
    seen = shown(rendered(text))
    assert seen.endswith("behind")
    assert bare(seen.split(CODE)[1]) == bare(code)


@given(markdown, limits)
@example("!|-" * 1400, 1200)
@example("- " * 60 + "x", 400)
@example("| a" * 60 + "|\n" + "|-" * 60 + "|\n" + "| b" * 60 + "|", 400)
def test_each_part_fits_and_closes_what_it_opens(text: str, limit: int) -> None:  # BO-059, BO-061
    for part in split(text, limit, "characters", size):
        said = rendered(part)
        assert len(said) <= LIMIT
        assert said.count("```") % 2 == 0
    assert all(size(part) <= limit for part in split(text, limit, "characters", size) if len(part) > 100)


@given(markdown, limits)
def test_the_parts_rejoin_to_the_text(text: str, limit: int) -> None:
    assert "".join(piece.body for piece in pieces(text, limit, "characters", size)) == text
