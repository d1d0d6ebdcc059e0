"""Transcripts and keys as files: what is read, and what people are told of a file that cannot be."""

import json
from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.evaluation.key import guessed
from clew.evaluation.transcript import exported, in_folder, of_lines, of_session, shipped
from clew.messages import Message, Text

LINES = [
    '{"role": "user", "name": "Ada", "text": "hi", "at": "2026-03-01T08:00:00+01:00"}',
    '{"role": "assistant", "content": "", "at": 1772348410, "calls": [{"id": "c", "name": "f", "arguments": {"a": 1}}]}',
    '{"role": "tool", "call": "c", "name": "f", "text": "done", "error": true}',
]
KEY = [
    '{"language": "en", "about": "a test", "zone": "Europe/Berlin", "direct": false, "fits": false}',
    '{"id": "k", "category": "identifier", "messages": [1], "quote": "hi", "need": [["hi"]], "speaker": "Ada"}',
]


def test_a_transcript_is_one_message_a_line() -> None:
    read = of_lines("t", LINES, KEY)
    assert [message.role for message in read.messages] == ["user", "assistant", "tool"]
    assert read.messages[0].at == 1_772_348_400
    assert read.messages[1].calls[0].arguments == '{"a": 1}'
    assert read.messages[2].results[0].is_error
    assert (read.language, read.zone, read.direct, read.fits) == ("en", "Europe/Berlin", False, False)
    assert read.key[0].need == (("hi",),)
    assert read.speakers == {"Ada"}


@pytest.mark.parametrize(
    ("lines", "key", "said"),
    [
        ([], [], "t holds no message."),
        (["{"], [], "t, line 1 is not JSON."),
        (["[]"], [], "t, line 1 is no JSON object."),
        (['{"role": "system", "text": "x"}'], [], "t, line 1: `role` must be user, assistant or tool."),
        (['{"role": "user", "text": 1}'], [], "t, line 1: `text` must be a text."),
        (['{"role": "user", "text": "x", "at": "noon"}'], [], "t, line 1: `at` must be a time"),
        (['{"role": "assistant", "text": "x"}'], [], "t must begin with a message of a person."),
        (['{"role": "user", "text": "x"}', '{"role": "assistant", "calls": 1}'], [], "t, line 2: `calls` must be a list of calls."),
        (LINES, ["{}", '{"id": "k"}'], "the key of t: an item has"),
        (LINES, ["{}", KEY[1].replace("identifier", "mood")], "the key of t, item k: unknown category"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(lines: list[str], key: list[str], said: str) -> None:
    with pytest.raises(UsageError, match="^" + said.replace(".", r"\.")):
        of_lines("t", lines, key)


def test_a_folder_holds_transcripts_keys_and_exports(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(LINES))
    (tmp_path / "a.key.jsonl").write_text("\n".join(KEY))
    blocks = [{"kind": "text", "text": "hi"}]
    message = {"role": "user", "blocks": blocks, "at": 1.0, "sender": "ada", "sender_name": "Ada"}
    greeting = {**message, "role": "assistant"}
    (tmp_path / "b.json").write_text(json.dumps({"clew": 1, "session": {"direct": True}, "messages": [greeting, message]}))
    (tmp_path / "notes.txt").write_text("not read")
    first, second = in_folder(tmp_path)
    assert (first.name, len(first.key)) == ("a", 1)
    assert (second.name, second.key, [each.role for each in second.messages]) == ("b", (), ["user"])


def test_a_folder_without_transcripts_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no transcript"):
        in_folder(tmp_path)
    with pytest.raises(UsageError, match="is no folder"):
        in_folder(tmp_path / "none")


def test_what_is_no_export_is_refused() -> None:
    wrong: list[object] = [None, {}, {"session": {}, "messages": [{}]}, {"session": {}, "messages": [{"role": "user"}]}]
    for data in wrong:
        with pytest.raises(UsageError, match="no export"):
            exported("b", data)
    with pytest.raises(UsageError, match="no message of a person"):
        of_session("s", [Message("1", 1, "assistant", (Text("hi"),), 0.0)], direct=True)


def test_a_thread_that_is_not_in_the_corpus_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="no thread 'nope'") as raised:
        shipped(["nope"])
    assert "homelab" in raised.value.hint


def test_a_key_is_guessed_from_identifiers_and_rules_of_people() -> None:
    said = "Put it into /srv/www/site.conf. Don't ever restart it at night. It's fine. Write to ops@example.org or see https://x.example/a?b=1."
    messages = (
        Message("1", 1, "user", (Text(said),), 0.0, sender_name="Ada"),
        Message("2", 2, "assistant", (Text("I never touch /etc/passwd."),), 1.0),
    )
    items = guessed(messages)
    assert [item.quote for item in items if item.category == "identifier"] == [
        "/srv/www/site.conf",
        "ops@example.org",
        "https://x.example/a?b=1",
    ]
    assert [item.quote for item in items if item.category == "constraint"] == ["Don't ever restart it at night."]
    assert {item.speaker for item in items} == {"Ada"}
    assert {item.certainty for item in items} == {None}


def test_a_line_ends_where_json_lines_end_and_is_counted_with_the_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '\r\n{"role": "user", "text": "one\u2028line\x85only"}\r\n\r\n{"role": "user", "text": "two"}\n', encoding="utf-8", newline=""
    )
    (found,) = in_folder(tmp_path)
    assert [(message.seq, message.text) for message in found.messages] == [(1, "one\u2028line\x85only"), (2, "two")]
    with pytest.raises(UsageError, match="line 4 is not JSON"):
        of_lines("a", ["", '{"role": "user", "text": "one"}', "", "two"])


def test_half_a_character_is_named() -> None:
    with pytest.raises(UsageError, match="line 1 holds half a character"):
        of_lines("a", ['{"role": "user", "text": "\\ud83d"}'])
