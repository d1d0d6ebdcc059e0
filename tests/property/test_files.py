"""What files are by their bytes, and which of them a model gets."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.files import (
    IMAGES,
    MOST,
    MOST_BYTES,
    PDF,
    Sight,
    file_tokens,
    notices,
    says_nothing,
    seen,
    shown,
)
from clew.context.sniffing import DOCX, UNKNOWN, sniffed
from clew.context.view import Rendered, window
from clew.messages import File, Message, Text, blocks_from_json, blocks_to_json, searchable
from clew.transcribers import words
from tests.pictures import OGG, gif, jpeg, png, webp

sides = st.integers(1, 9000)
names = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=20)
pictures = st.builds(
    lambda number, mime, size, width, height: File(f"{number:064x}", "a.png", mime, size, width=width, height=height),
    st.integers(0, 50),
    st.sampled_from(sorted(IMAGES)),
    st.integers(1, 8 * 2**20),
    sides,
    sides,
)
texts = st.builds(
    lambda name, text, shown: File("a" * 64, name, "text/plain", len(text), text=text, shown=min(shown, len(text))),
    names,
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=80).map(lambda text: f"{text}\n{text}"),
    st.integers(0, 60),
)
others = st.builds(lambda name, fault: File("b" * 64, name, "application/zip", 9, fault=fault), names, st.sampled_from(["", "it is gone"]))
pages = st.integers(0, 30).map(lambda count: File("c" * 64, "a.pdf", PDF, 1000, pages=count))
files = st.one_of(pictures, texts, others, pages)
sights = st.builds(Sight, st.sampled_from([frozenset(), IMAGES, IMAGES | {PDF}]), st.sampled_from([0, 500, 5_000, 50_000]))


def message(seq: int, *held: File, text: str = "look") -> Message:
    return Message(f"m{seq}", seq, "user", (Text(text), *held), 1_800_000_000.0 + seq, "ada")


@st.composite
def threads(draw: st.DrawFn) -> list[Rendered]:
    many = draw(st.lists(st.lists(files, max_size=4), min_size=1, max_size=40))
    return list(window([message(seq, *held) for seq, held in enumerate(many, 1)]).messages)


def kept(messages: tuple[Rendered, ...]) -> list[File]:
    return [block for each in messages for block in each.blocks if isinstance(block, File)]


@given(st.binary(max_size=400), names)
def test_any_bytes_are_something(body: bytes, name: str) -> None:
    found = sniffed(body, name)
    assert found.mime.count("/") == 1
    assert found.width >= 0
    assert found.height >= 0


@given(st.integers(1, 8000), st.integers(1, 8000), names)
def test_the_size_of_a_picture_is_read_and_its_name_is_not_believed(width: int, height: int, name: str) -> None:
    for make, mime in ((jpeg, "image/jpeg"), (gif, "image/gif"), (webp, "image/webp")):
        found = sniffed(make(width, height), name)
        assert (found.mime, found.width, found.height) == (mime, width, height)


@pytest.mark.parametrize(
    ("body", "name", "mime"),
    [
        (png(3, 4), "a.txt", "image/png"),
        (b"%PDF-1.7\n", "photo.jpg", "application/pdf"),
        (OGG, "a.mp3", "audio/ogg"),
        (b"ID3\x04" + bytes(20), "", "audio/mpeg"),
        (b"\xff\xfb\x90\x00" + bytes(20), "", "audio/mpeg"),
        (b"\xff\xf1\x50\x80" + bytes(20), "", "audio/aac"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "", "audio/wav"),
        (b"\0\0\0\x20ftypM4A \0\0\0\0", "", "audio/mp4"),
        (b"\0\0\0\x20ftypisom\0\0\0\0", "", "video/mp4"),
        (b"\0\0\0\x20ftypheic\0\0\0\0", "photo.jpg", "image/heic"),
        (b"\x1a\x45\xdf\xa3" + bytes(9), "", "video/webm"),
        (b"PK\x03\x04" + bytes(30), "a.docx", "application/zip"),
        (b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml", "a", DOCX),
        (b"<!DOCTYPE html><p>hi", "a.txt", "text/html"),
        (b"a,b\n1,2\n", "list.csv", "text/csv"),
        (b"# Head\n", "notes.MD", "text/markdown"),
        ("grüße".encode("utf-16"), "a.txt", "text/plain"),
        ("grüße".encode("latin-1"), "a.txt", UNKNOWN),
        (b"MZ\x90\0", "report.pdf", UNKNOWN),
        (b"plain", "", "text/plain"),
    ],
)
def test_what_a_file_is(body: bytes, name: str, mime: str) -> None:
    assert sniffed(body, name).mime == mime


@given(threads(), sights)
def test_every_file_is_sent_or_named_within_the_bounds(messages: list[Rendered], sight: Sight) -> None:
    result = seen(messages, sight)
    assert [len(each.blocks) for each in result] == [len(each.blocks) for each in messages]
    found = kept(result)
    assert len(found) <= MOST
    assert sum(file.size for file in found) <= MOST_BYTES
    assert sum(map(file_tokens, found)) <= sight.tokens
    assert all(file.mime in sight.types and not file.text and not file.fault for file in found)


@given(threads(), st.lists(files, max_size=3), sights)
def test_a_new_message_changes_nothing_before_it_but_that_older_files_go(messages: list[Rendered], held: list[File], sight: Sight) -> None:
    before = seen(messages, sight)
    (last,) = window([message(len(messages) + 1, *held)]).messages
    after = seen([*messages, last], sight)
    changed = [index for index, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    if changed:  # then so many go at once that there is room again
        assert len(kept(after)) <= max(MOST // 2 + len(held), 1)
        assert kept(after[: len(before)]) == kept(before)[len(kept(before)) - len(kept(after[: len(before)])) :]


@given(threads(), sights)
def test_what_a_model_refused_is_named(messages: list[Rendered], sight: Sight) -> None:
    refused = {file.hash for file in kept(seen(messages, sight))}
    assert not {file.hash for file in kept(seen(messages, sight, refused))} & refused


@given(texts)
def test_a_text_stands_quoted_and_the_rest_of_it_begins_where_it_says(file: File) -> None:
    row = message(1, file)
    lines = shown(row, file).text.splitlines()
    assert lines[0].startswith("[file ")
    rest = [line for line in lines if line.startswith("[… ")]
    assert all(line.startswith("> ") for line in lines[1 : len(lines) - len(rest)])
    if rest:
        offset = int(rest[0].rpartition("offset ")[2].partition(" ")[0])
        assert searchable(row.blocks)[offset:] == file.text[file.shown :]
    else:
        assert file.shown == len(file.text)


@given(st.lists(files, max_size=5))
def test_files_are_stored_as_they_are(held: list[File]) -> None:
    assert blocks_from_json(blocks_to_json(held)) == tuple(held)


@given(st.lists(files, min_size=1, max_size=5), st.sampled_from(["", " \n", "look"]))
def test_nothing_is_said_where_all_files_fail_and_there_are_no_words(held: list[File], text: str) -> None:
    said = message(1, *held, text=text)
    assert says_nothing([said]) == (not text.strip() and all(file.fault for file in held))
    assert len(notices([said], ())) == len({(file.name, file.fault) for file in held if file.fault})
    assert len(notices([said], {file.hash for file in held})) >= len(notices([said], ()))


def test_a_size_that_cannot_be_read_is_no_image_to_send() -> None:
    unread = replace(File("d" * 64, "a.jpg", "image/jpeg", 10))
    assert kept(seen(window([message(1, unread)]).messages, Sight(IMAGES, 50_000))) == []


@given(st.text(max_size=300))
def test_a_transcript_is_what_it_says_or_nothing(text: str) -> None:
    found = words(text)
    assert found == "" or any(letter.isalnum() for letter in found)
    assert words(found) == found
