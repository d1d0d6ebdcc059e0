"""What a person is asked before a call is run, and what of their words is an answer."""

import json
import unicodedata
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.consent import LONGEST_QUESTION, Answer, question, read_answer, read_reaction
from clew.messages import ToolCall
from clew_transports.markup import plain, read
from clew_transports.telegram.html import rendered, visible


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Yes!",
        " YES. ",
        "ok",
        "Go ahead",
        "ja",
        "Ja, bitte.",
        "oui",
        "D’accord",
        "sí",
        "Si",
        "sim",
        "sì",
        "tak",
        "да",
        "はい",
        "好的",
        "네",
        "👍",
        "✅",
    ],
)
def test_a_yes_is_understood_in_the_common_languages(text: str) -> None:
    assert read_answer(text) == Answer("yes")


@pytest.mark.parametrize(
    "text", ["no", "No.", "nope", "don't", "Don’t!", "nein", "non", "não", "nie", "нет", "いいえ", "不", "아니요", "👎", "❌", "ne"]
)
def test_a_no_is_understood_in_the_common_languages(text: str) -> None:
    assert read_answer(text) == Answer("no")


@pytest.mark.parametrize("text", ["always", "Yes, always", "immer", "ja, immer", "toujours", "siempre", "всегда", "いつも"])
def test_always_is_understood(text: str) -> None:
    assert read_answer(text) == Answer("always")


def test_a_code_behind_it_names_the_question() -> None:
    assert read_answer("yes k7qd") == Answer("yes", "k7qd")
    assert read_answer("No [K7QD]") == Answer("no", "k7qd")
    assert read_answer("yes always k7qd") == Answer("always", "k7qd")
    assert read_answer("no idea") == Answer("no", "idea"), "which names no question, and so is a message like any other"


@pytest.mark.parametrize(
    "text", ["", "yes, but only the first one", "no way out", "what?", "yes yes yes and more", "not yes", "k7qd", "yes " * 50, "/stop"]
)
def test_anything_else_is_a_message(text: str) -> None:
    assert read_answer(text) is None


def test_a_question_says_tool_arguments_and_what_silence_means() -> None:
    text = question([ToolCall("c1", "send_mail", json.dumps({"to": "bob@example.org", "copies": 2}))], "k7qd", "1 hour")
    assert text == (
        'May I call send_mail?\n\n```\nsend_mail:\n- to: "bob@example.org"\n- copies: 2\n```\n\n'
        "Reply yes or no. “Always” is a yes for each later call of send_mail in this chat too. Without an answer within"
        " 1 hour it is a no. [k7qd]"
    )
    assert question([ToolCall("c1", "go", "{}")], "k7qd", "1 hour", "eve at mqtt:eve").startswith(
        "eve at mqtt:eve needs your yes. May I call go?"
    )


def test_a_question_does_not_hide_that_something_is_hidden() -> None:
    text = question([ToolCall("c1", "write", json.dumps({"text": "x" * 50_000}))], "k7qd", "1 hour")
    assert "more characters, which you do not see here" in text
    assert len(text) < LONGEST_QUESTION + 1000


values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each))


@given(st.dictionaries(st.text(), values, max_size=4))
def test_no_argument_passes_for_another_line_of_the_question(arguments: dict[str, object]) -> None:
    call = ToolCall("c1", "write", json.dumps(arguments))
    lines = question([call], "k7qd", "1 hour").split("\n")
    assert lines[2] == lines[-3] == "```"
    shown = lines[lines.index("write:") + 1 : -3]
    assert len(shown) <= max(len(arguments), 1) + 1  # one more where the question was too long
    assert all(line.startswith(("- ", "[…")) for line in shown)
    assert not [char for char in "".join(lines) if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize(
    ("emoji", "said"), [("👍", "yes"), ("👍🏿", "yes"), ("✅", "yes"), ("👌🏼", "yes"), ("👎🏻", "no"), ("🚫", "no"), ("❌", "no")]
)
def test_a_plain_emoji_is_an_answer_whatever_its_skin(emoji: str, said: str) -> None:
    assert read_reaction(emoji) == said


@pytest.mark.parametrize("emoji", ["", "❤", "🎉", "💯", "🤔", "👍 k7qd"])
def test_no_other_emoji_is_one_and_none_means_always(emoji: str) -> None:
    assert read_reaction(emoji) is None


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    found = read_answer(text)
    assert found is None or found.kind in ("yes", "no", "always")


@pytest.mark.parametrize("hidden", ["[https://good.example](https://evil.example)", "||x||", "**x**", "<b>x</b>", "```", "~~~", "# x"])
def test_no_platform_takes_markup_in_an_argument_for_such(hidden: str) -> None:
    text = question([ToolCall("c1", "fetch", json.dumps({"url": hidden}))], "k7qd", "1 hour")
    assert f"- url: {json.dumps(hidden)}" in unescape(visible(rendered(text)))
    assert "<a href" not in rendered(text)
    assert f"- url: {json.dumps(hidden)}" in plain(read(text))
