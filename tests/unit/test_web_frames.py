"""Frames of the chat's WebSocket, and values as JSON."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.web.chat import REMEMBERED, Recent, Unusable, frame_limit, parse
from clew.web.wire import plain

LIMIT = 1024


def frame(**fields: object) -> str:
    return json.dumps({"type": "message", "id": "1", "text": "hi"} | fields)


def test_a_message_is_taken_as_it_was_written() -> None:
    assert parse(frame(id="a-1", text="  Grüße\n東京  "), LIMIT) == ("a-1", "  Grüße\n東京  ", ())


def test_files_may_stand_without_words() -> None:  # P47
    assert parse(frame(text="", attachments=["ox4zo25uhtui"]), LIMIT) == ("1", "", ("ox4zo25uhtui",))


@pytest.mark.parametrize("uploads", [None, "a", {}, [1], ["../../etc"], ["OX4ZO25UHTUI"], ["ox4zo25uhtui"] * 17, ["\ud800" * 12]])
def test_what_is_no_list_of_uploads_is_refused(uploads: object) -> None:
    with pytest.raises(Unusable, match="at most 16 ids of uploads"):
        parse(frame(attachments=uploads), LIMIT)


@pytest.mark.parametrize("text", ["", "hi", "[]", "null", '{"type": 1}', '{"type":"typing"}', "{" * 100_000, "[" * 100_000, "NaN"])
def test_what_is_no_message_is_named(text: str) -> None:
    with pytest.raises(Unusable) as caught:
        parse(text, LIMIT)
    assert caught.value.id == ""


@pytest.mark.parametrize("identifier", ["", None, 7, "x" * 129, "a\nb", "\ud800", ["x"]])
def test_an_id_is_a_short_printable_text(identifier: object) -> None:
    with pytest.raises(Unusable, match="id must be"):
        parse(frame(id=identifier), LIMIT)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        (None, "empty"),
        (3, "empty"),
        (["hi"], "empty"),
        ("half \ud83d", "half a character"),
        ("é" * 513, "1026 bytes, and at most 1024"),
    ],
)
def test_a_text_that_cannot_be_taken_names_its_message(text: object, reason: str) -> None:
    with pytest.raises(Unusable, match=reason) as caught:
        parse(frame(id="mine", text=text), LIMIT)
    assert caught.value.id == "mine"


@given(st.text(min_size=1, max_size=LIMIT))
def test_every_message_that_is_not_too_long_fits_a_frame(text: str) -> None:
    whole = frame(id="x" * 128, text=text)
    if text.strip() and len(text.encode("utf-8", "surrogatepass")) <= LIMIT:
        assert len(whole) <= frame_limit(LIMIT)
        assert parse(whole, LIMIT)[1] == text


@given(st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)).map(json.dumps))
def test_any_text_is_a_message_or_named(text: str) -> None:
    with pytest.raises(Unusable):
        parse(text, LIMIT)


def test_remembered_ids_are_bounded() -> None:
    recent = Recent()
    for number in range(REMEMBERED + 5):
        recent.add(str(number))
    assert "4" not in recent
    assert "5" in recent


def test_values_become_plain_json() -> None:
    @dataclass(frozen=True, slots=True)
    class Inner:
        names: frozenset[str]

    @dataclass(frozen=True, slots=True)
    class Outer:
        pair: tuple[int, Inner]
        error: ValueError

    found = plain(Outer((1, Inner(frozenset({"b", "a"}))), ValueError("no")))
    assert json.loads(json.dumps(found)) == {"pair": [1, {"names": ["a", "b"]}], "error": "no"}
