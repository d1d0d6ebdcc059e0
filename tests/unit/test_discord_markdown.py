"""Markdown in Discord's own, by example."""

import pytest

from clew_transports.discord.markdown import LIMIT, rendered, size
from clew_transports.text import split

GAP = "\u200b"


@pytest.mark.parametrize(
    ("markdown", "discord"),
    [
        ("**bold *it* more** ~~gone~~ `x < 1`", "**bold *it* more** ~~gone~~ `x < 1`"),
        ("__bold__, _it_", "**bold**, *it*"),
        ("use snake_case and *args [x", "use snake\\_case and \\*args \\[x"),
        ("||spoiler|| <@1> <t:1> @everyone", "\\|\\|spoiler\\|\\| \\<@1> \\<t:1> @everyone"),
        ("*a***b**", f"*a*{GAP}**b**"),
        ("`a``b`", f"``a`{GAP}`b``"),
        ("`` a`b `` ``` c``d ```", f"``a`b`` ``c`{GAP}`d``"),
        ("# Head\n\ntext", "### Head\n\ntext"),
        ("- # Head", "- **Head**"),
        ("- one\n- two\n    - three\n\n2) four", "- one\n- two\n  - three\n\n2. four"),
        ("1\\. x\n\\- y\n\\# z\n\\> q\n-\\# s", "1\\. x\n\\- y\n\\# z\n\\> q\n\\-# s"),
        ("> a\n> > b\n>\n> ```\n> c\n> ```", "> a\n> b\n\n```\nc\n```"),
        ("- x\n  ```sh\n  ls\n  ```", "- x\n```sh\nls\n```"),
        ("~~~\na ``` b ```` c\n~~~", f"```\na ``{GAP}` b ``{GAP}`` c\n```"),
        ("```\n\n```", f"```\n{GAP}\n```"),
        ("| a | b |\n|---|---|\n| 二 | 2 |", "```\na  | b\n二 | 2\n```"),
        ("[a **b** `c`](https://e.org/a_(b)?a=1&b=2)", "[a **b** c](https://e.org/a_%28b%29?a=1&b=2)"),
        ("[1 [2] ] 3](https://e.org/)", "\\[1 \\[2\\] \\] 3\\](<https://e.org/>)"),
        ("[see [1]](https://e.org/)", "[see (1)](https://e.org/)"),
        ("[www.bank.org](https://evil.org/)", "www.bank.org (<https://evil.org/>)"),
        ("[you](tg://user?id=5) [me](mailto:a_b@e.org) <c@e.org>", "you me (a\\_b@e.org) c@e.org"),
        ("see https://e.org/x_y. (https://e.org/a_(b)) **https://e.org**", "see <https://e.org/x_y>. (<https://e.org/a_(b)>) **<https://e.org>**"),
        ("![alt](https://e.org/p.png)", "[alt](https://e.org/p.png)"),
        ("one\ntwo  \nthree\n\n---", "one\ntwo\nthree\n\n———"),
    ],
)  # fmt: skip
def test_markdown_in_discords_own(markdown: str, discord: str) -> None:
    assert rendered(markdown) == discord


def test_an_emoji_at_the_limit_is_not_cut() -> None:  # BO-060
    family, flag = "👨‍👩‍👧‍👦", "🇩🇪"
    parts = split("a" * (LIMIT - 1) + family + flag + "b" * 1000, LIMIT, "characters", size)
    assert parts == ["a" * (LIMIT - 1), family + flag + "b" * 1000]


def test_what_grows_by_its_marks_is_cut_by_what_it_grows_to() -> None:  # BO-059, BO-061
    parts = split("!|-" * 900, LIMIT, "characters", size)
    assert len(parts) > 1
    assert all(len(rendered(part)) <= LIMIT for part in parts)
