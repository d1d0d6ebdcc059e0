"""Files of messages, from a platform to a model: stored, read, sent or named, told of, let go."""

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clew.agent import WORDS
from clew.attaching import DEAF, GONE
from clew.config import Limits
from clew.errors import StoreError, UsageError
from clew.messages import File
from clew.providers import ollama
from clew.recall import search
from clew.store.sqlite.backup import backup, copied_files
from clew.transport import Attachment
from tests.databases import BOTH, SQLITE
from tests.emulators.anthropic_cache import Accounting
from tests.emulators.ollama import OllamaEmulator
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo, numbered
from tests.emulators.server import Fault, JsonObject, Reply
from tests.files import docx, paragraph, pdf
from tests.integration.engine import World, engine, spoken, words_of
from tests.pictures import OGG, gif, png

pytestmark = [pytest.mark.asyncio, BOTH]

PHOTO = png()
DIGEST = hashlib.sha256(PHOTO).hexdigest()


def photo(ref: str = "p", size: int = 0, **more: Any) -> Attachment:
    return Attachment("photo.jpg", "image/jpeg", size, ref, **more)


@asynccontextmanager
async def world(folder: Path, *, files: dict[str, bytes] | None = None, **more: Any) -> AsyncIterator[World]:
    async with engine(folder, **more) as made:
        made.desk.files = {"p": PHOTO} if files is None else files
        yield made


def stored(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "files").glob("??/*"))


def images(body: JsonObject) -> list[str]:
    """The images in a request to either emulator, in base64."""
    found = []
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image":
                found.append(part["source"]["data"])
            elif part["type"] == "image_url":
                found.append(part["image_url"]["url"].partition(",")[2])
    return found


async def test_a_photo_reaches_the_model_and_lies_beside_the_database(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, provider="anthropic") as made, made.running():
        assert await made.desk.ask("what is this?", attachments=(photo(),)) != ""
        (body,) = made.replies
        content = spoken(body)[-1]["content"]
        assert [part["type"] for part in content] == ["text", "image"]
        assert content[1]["source"] == {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PHOTO).decode()}
        place = tmp_path / "files" / DIGEST[:2] / DIGEST
        assert place.read_bytes() == PHOTO
        assert place.stat().st_mode & 0o777 == 0o600
        assert await made.store.check() == []
        (message, _) = await made.transcript()
        assert message.files == (File(DIGEST, "photo.jpg", "image/png", len(PHOTO), width=64, height=48),)


async def test_a_photo_is_sent_as_a_data_url_where_models_are_asked_so(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made, made.running():
        await made.desk.ask("what is this?", attachments=(photo(),))
        content = spoken(made.replies[0])[-1]["content"]
        assert content[1] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PHOTO).decode()}"}}


async def test_a_photo_alone_is_a_message(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made, made.running():
        await made.desk.ask("", attachments=(photo(),))
        content = spoken(made.replies[0])[-1]["content"]
        assert [part["type"] for part in content] == ["text", "image_url"]
        assert content[0]["text"].startswith("[")  # the time at which it came


async def test_the_prompt_cache_reads_all_that_stands_before_a_new_message(tmp_path: Path) -> None:  # P28 P29 P47
    async with world(tmp_path, provider="anthropic") as made, made.running():
        await made.desk.ask("words " * 2000)
        for number in range(3):
            await made.desk.ask(f"what is this, {number}?", attachments=(photo(),))
            await made.desk.ask(f"and now, {number}?")
        found = [record.accounting for record in made.model.calls]
        accounts = [each for each in found if isinstance(each, Accounting)]
        assert len(accounts) == 7
        assert all(each.read == each.longest_unexpired_prefix for each in accounts)
        # The first image of a conversation moves its messages once; from then on each call reads what the one before it wrote.
        assert all(later.read == earlier.total for earlier, later in pairwise(accounts[1:]))


async def test_of_an_image_whose_message_was_summarised_its_line_is_left(tmp_path: Path) -> None:  # P15 P47
    async with world(tmp_path) as made:
        made.compression(trigger_messages=6, keep_recent=2)
        async with made.running():
            await made.desk.ask("what is this?", attachments=(photo(),))
            for number in range(4):
                await made.desk.ask(f"and this, {number}?")
            (summary,) = made.summaries
            assert f"[image photo.jpg, image/png, 64×48 pixels, {len(PHOTO)} bytes]" in words_of(summary["messages"][-1])
            assert images(summary) == []
            assert [len(images(body)) for body in made.replies][-1] == 0
            assert await made.store.verify_session(await made.session()) == []
            assert len(stored(tmp_path)) == 1  # the transcript still has it


async def test_a_restart_changes_no_byte(tmp_path: Path) -> None:  # P29 P47
    async with world(tmp_path) as made:
        async with made.running():
            await made.desk.ask("what is this?", attachments=(photo(),))
        async with made.running():
            await made.desk.ask("and now?")
        first, second = made.replies
        assert spoken(second)[: len(spoken(first))] == spoken(first)


async def test_only_so_many_images_are_sent_and_the_older_ones_are_named(tmp_path: Path) -> None:  # P47
    files = {str(number): png(grey=number) for number in range(24)}
    async with world(tmp_path, files=files) as made, made.running():
        for number in range(24):
            await made.desk.ask(f"number {number}", attachments=(photo(str(number)),))
        counts = [len(images(body)) for body in made.replies]
        assert counts == [*range(1, 21), 10, 11, 12, 13]
        assert "[image photo.jpg, image/png, 64×48 pixels" in words_of(spoken(made.replies[-1])[0])


async def test_a_model_that_sees_nothing_is_told_of_the_file(tmp_path: Path) -> None:  # P47
    async with OllamaEmulator(script=echo) as server, world(tmp_path) as made:
        section = made.config.providers["local"].model_copy(
            update={"kind": "ollama", "settings": ollama.Settings(model=next(iter(server.models)), base_url=server.url)}
        )
        made.config = made.config.model_copy(update={"providers": {"local": section}})
        async with made.running():
            await made.desk.ask("what is this?", attachments=(photo(),))
            (body,) = [call.body for call in server.calls if call.body and "messages" in call.body]
            assert f"[image photo.jpg, image/png, 64×48 pixels, {len(PHOTO)} bytes]" in body["messages"][-1]["content"]
            assert "images" not in body["messages"][-1]


async def test_a_model_with_eyes_behind_ollama_gets_the_image(tmp_path: Path) -> None:  # P47
    async with OllamaEmulator(script=echo, capabilities=("completion", "vision")) as server, world(tmp_path) as made:
        section = made.config.providers["local"].model_copy(
            update={"kind": "ollama", "settings": ollama.Settings(model=next(iter(server.models)), base_url=server.url)}
        )
        made.config = made.config.model_copy(update={"providers": {"local": section}})
        async with made.running():
            await made.desk.ask("what is this?", attachments=(photo(),))
            (body,) = [call.body for call in server.calls if call.body and "messages" in call.body]
            assert body["messages"][-1]["images"] == [base64.b64encode(PHOTO).decode()]


async def test_a_model_that_refuses_an_image_is_asked_without_it_and_the_person_is_told(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, replies=numbered("seen"), sees=False) as made:
        async with made.running():
            told = await made.desk.ask("what is this?", attachments=(photo(),))
            assert told == "My model did not take photo.jpg; this is answered without it.\n\nseen 1"
        async with made.running():  # it is remembered, and the bytes of the thread are the same
            assert await made.desk.ask("and now?") == "seen 2"
        refused, first, second = made.replies
        assert [len(images(body)) for body in (refused, first, second)] == [1, 0, 0]
        assert spoken(second)[: len(spoken(first))] == spoken(first)


async def test_a_broken_image_blinds_the_model_for_no_other(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, replies=numbered("seen"), files={"p": PHOTO, "q": png(grey=7)}) as made, made.running():
        assert isinstance(made.model, OpenAIEmulator)
        assert await made.desk.ask("this works", attachments=(photo(),)) == "seen 1"
        made.model.broken.add(base64.b64encode(png(grey=7)).decode())
        assert (await made.desk.ask("and this?", attachments=(photo("q"),))).endswith("\n\nseen 2")
        assert [len(images(body)) for body in made.replies] == [1, 2, 1]


async def test_a_refusal_for_another_reason_is_no_refusal_of_the_image(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, replies=numbered("seen")) as made, made.running():
        made.model.faults.extend([Fault(400, "invalid_request_error", "no")] * 2)
        assert await made.desk.ask("what is this?", attachments=(photo(),)) == WORDS["invalid"]
        await made.desk.ask("and now?")
        assert len(images(made.replies[-1])) == 1


async def test_a_fetch_that_fails_is_tried_again(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made, made.running():
        made.desk.losses["p"] = [OSError("no route")]
        await made.desk.ask("what is this?", attachments=(photo(),))
        assert made.desk.fetched == ["p", "p"]
        assert len(images(made.replies[0])) == 1


async def test_a_file_that_is_gone_is_told_and_the_message_goes_on_without_it(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, replies=numbered("seen"), files={}) as made, made.running():
        assert await made.desk.ask("what is this?", attachments=(photo(),)) == f"I could not use photo.jpg: {GONE}.\n\nseen 1"
        assert f"[image photo.jpg, image/jpeg, 0 bytes: {GONE}]" in words_of(spoken(made.replies[0])[-1])
        assert made.desk.fetched == ["p"]


async def test_a_message_of_nothing_but_a_file_that_is_gone_costs_no_model_call(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, files={}) as made, made.running():
        assert await made.desk.ask("", attachments=(photo(),)) == f"I could not use photo.jpg: {GONE}."
        assert made.replies == []
        assert await made.desk.ask("are you there?") != ""


async def test_a_file_larger_than_its_platform_says_is_given_up(tmp_path: Path) -> None:  # P47 BO-079
    async with world(tmp_path, replies=numbered("seen"), files={"p": PHOTO + bytes(5000)}) as made:
        made.config = made.config.model_copy(update={"limits": Limits(attachment_bytes=4000)})
        async with made.running():
            told = await made.desk.ask("look", attachments=(photo(size=10),))
            assert told == "I could not use photo.jpg: it is larger than 4,000 bytes, the most I take.\n\nseen 1"
            assert stored(tmp_path) == []


async def test_a_file_that_says_that_it_is_too_large_is_not_fetched(tmp_path: Path) -> None:  # P47 BO-079
    async with world(tmp_path) as made:
        for _ in range(2):
            async with made.running():
                huge = replace(made.desk.message("look", client_id="m1"), attachments=(photo(size=12 * 2**30),))
                await made.desk.accept(huge)
                assert await made.desk.ask("are you there?") != ""
        refusals = [each for each in made.desk.sent if each.answers == ("m1",)]
        assert len(refusals) == 1
        assert made.desk.fetched == []


async def test_a_stranger_s_file_is_not_fetched(tmp_path: Path) -> None:  # P46 P47
    async with world(tmp_path) as made, made.running():
        await made.desk.accept(made.desk.message("look", "mallory", attachments=(photo(),)))
        await made.desk.ask("look", attachments=(photo("q"),), chat="bob")
        assert made.desk.fetched == ["q"]


async def test_a_chat_that_waits_for_a_file_holds_up_no_other_and_keeps_its_order(tmp_path: Path) -> None:  # P44 P47
    async with world(tmp_path) as made, made.running():
        made.desk.withheld["p"] = asyncio.Event()
        first, second = made.desk.message("look", attachments=(photo(),)), made.desk.message("and?")
        await made.desk.accept(first, second)
        await made.desk.until(lambda: made.desk.fetched == ["p"])
        assert await made.desk.ask("hello", "bob") != ""
        assert made.desk.answers(second) == []
        made.desk.withheld["p"].set()
        await made.desk.until(lambda: bool(made.desk.answers(second)))
        assert [message.text.partition("\n")[0] for message in await made.transcript() if message.role == "user"] == ["look", "and?"]


async def test_what_a_process_began_to_fetch_the_next_one_fetches(tmp_path: Path) -> None:  # P47 P48
    async with world(tmp_path) as made:
        message = made.desk.message("look", attachments=(photo(),))
        async with made.running():
            made.desk.withheld["p"] = asyncio.Event()
            await made.desk.accept(message)
            await made.desk.until(lambda: made.desk.fetched == ["p"])
        del made.desk.withheld["p"]
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files" / "unfinished-1").write_bytes(b"half")
        async with made.running():
            await made.desk.until(lambda: bool(made.desk.answers(message)))
            assert len(images(made.replies[0])) == 1
            assert sorted(path.name for path in (tmp_path / "files").iterdir()) == [DIGEST[:2]]


async def test_a_text_is_read_by_its_beginning_and_opened_for_the_rest(tmp_path: Path) -> None:  # P20 P47
    text = "".join(f"line {number} of the list\n" for number in range(2000))

    def script(body: JsonObject) -> Any:
        last = words_of(body["messages"][-1])
        if body["messages"][-1]["role"] == "tool":
            return Reply([{"type": "text", "text": "read"}])
        opened = re.search(r'session_open with id "(\w+)", around 0 and offset (\d+)', last)
        assert opened is not None
        asked = {"id": opened[1], "around": 0, "offset": int(opened[2])}
        return Reply([{"type": "tool_use", "id": "c1", "name": "session_open", "input": asked}], "tool_use")

    async with world(tmp_path, replies=script, files={"t": text.encode()}) as made, made.running():
        assert await made.desk.ask("read this", attachments=(Attachment("list.csv", "image/png", 3, "t"),)) == "read"
        said = words_of(spoken(made.replies[0])[-1])
        assert "[file list.csv, text/csv, " in said
        assert "> line 0 of the list" in said
        assert len(said) < 6000
        given = words_of(spoken(made.replies[1])[-1])
        shown = said[said.index("> line 0") :].split("\n[…")[0]
        last = shown.splitlines()[-1].removeprefix("> ")
        rest = given.split(": ", 1)[1].splitlines()
        assert text.startswith("\n".join(line.removeprefix("> ") for line in shown.splitlines()))
        assert (last + rest[0]) in text  # it goes on where it broke off
        hits = await made.store.transcript(await made.session())
        assert hits[0].files[0].text == text


async def test_what_is_in_a_text_is_found_by_search(tmp_path: Path) -> None:  # P20 P47
    async with world(tmp_path, files={"t": b"The heron nests at Kallisaari."}) as made, made.running():
        await made.desk.ask("read this", attachments=(Attachment("birds.txt", "text/plain", 0, "t"),))
        found = await search(made.store, await made.store.scope_for(person="ada"), "Kallisaari heron", limit=5, today=date(2027, 1, 1))
        assert "nests at Kallisaari" in found[0].candidate.text


async def test_a_file_that_nobody_can_read_is_named(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, files={"z": b"PK\x03\x04" + bytes(90)}) as made, made.running():
        await made.desk.ask("keep this", attachments=(Attachment("../../etc/a.zip", "text/plain", 0, "z"),))
        assert "[file a.zip, application/zip, 94 bytes]" in words_of(spoken(made.replies[0])[-1])


async def test_a_voice_note_without_a_transcriber_is_told_of_at_once(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, files={"v": OGG}) as made, made.running():
        note = Attachment("voice.ogg", "audio/ogg", 0, "v", voice=True)
        assert await made.desk.ask("", attachments=(note,)) == f"I could not use voice.ogg: {DEAF}."
        assert made.replies == []
        assert len(stored(tmp_path)) == 1  # it is kept


async def test_files_go_with_their_session_and_what_is_forgotten(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, files={"p": PHOTO, "g": gif()}) as made, made.running():
        await made.desk.ask("what is this?", attachments=(photo(),))
        await made.desk.ask("the same?", attachments=(photo(),), chat="bob")
        await made.desk.ask("a drawing", attachments=(photo("g"),))
        assert len(stored(tmp_path)) == 2
        await made.desk.ask("/forget")
        await made.store.files.sweep()  # it waits for the one that follows the commit
        assert stored(tmp_path) == [DIGEST]  # bob's
        session = await made.session("bob")
        await made.store.delete_session(session)
        assert stored(tmp_path) == []
        assert await made.store.check() == []


@SQLITE
async def test_a_file_that_is_missing_or_damaged_is_told_and_its_thread_goes_on(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, files={"p": PHOTO, "g": gif()}) as made, made.running():
        await made.desk.ask("what is this?", attachments=(photo(), photo("g")))
        place = tmp_path / "files" / DIGEST[:2] / DIGEST
        place.write_bytes(b"other")
        (problem,) = await made.store.check()
        assert "1 file of messages are damaged" in problem
        assert await made.desk.ask("and now?") != ""
        assert len(images(made.replies[-1])) == 1
        place.unlink()
        (problem,) = await made.store.check()
        assert "missing" in problem


async def test_an_export_brings_its_files_back(tmp_path: Path) -> None:  # P4 P47
    async with world(tmp_path, files={"p": PHOTO, "t": b"The heron nests."}) as made, made.running():
        await made.desk.ask("what is this?", attachments=(photo(), Attachment("birds.txt", "text/plain", 0, "t")))
        session = await made.session()
        exported = await made.store.export_session(session)
        await made.store.delete_session(session)
        assert stored(tmp_path) == []
        await made.store.import_session(exported, 0.0)
        assert len(stored(tmp_path)) == 2
        assert await made.store.export_session(session) == exported
        assert await made.store.check() == []
        await made.desk.ask("and now?")
        assert len(images(made.replies[-1])) == 1


async def test_an_export_with_other_bytes_than_its_own_is_refused(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made, made.running():
        await made.desk.ask("what is this?", attachments=(photo(),))
        session = await made.session()
        exported = await made.store.export_session(session)
        exported["files"][0]["data"] = base64.b64encode(b"other").decode()
        await made.store.delete_session(session)
        with pytest.raises(UsageError, match="not what it was"):
            await made.store.import_session(exported, 0.0)
        assert stored(tmp_path) == []


@SQLITE
async def test_a_backup_has_the_files_beside_it(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made:
        async with made.running():
            await made.desk.ask("what is this?", attachments=(photo(),))
        target = tmp_path / "copy.db"
        backup(tmp_path / "clew.db", target)
        assert copied_files(tmp_path / "clew.db", target) == 1
        place = tmp_path / "copy.db.files" / DIGEST[:2] / DIGEST
        assert place.read_bytes() == PHOTO
        (tmp_path / "files" / DIGEST[:2] / DIGEST).unlink()
        with pytest.raises(StoreError, match="1 files of messages are missing"):
            copied_files(tmp_path / "clew.db", tmp_path / "copy.db")


@SQLITE
async def test_the_next_backup_shares_the_files_of_the_one_before(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made:
        async with made.running():
            await made.desk.ask("what is this?", attachments=(photo(),))
        first, second, third = (tmp_path / f"{name}.db" for name in ("first", "second", "third"))
        for target, earlier in ((first, None), (second, first)):
            backup(tmp_path / "clew.db", target)
            assert copied_files(tmp_path / "clew.db", target, earlier) == 1
        one, two, three = (Path(f"{path}.files") / DIGEST[:2] / DIGEST for path in (first, second, third))
        assert one.samefile(two)
        assert not one.samefile(tmp_path / "files" / DIGEST[:2] / DIGEST)
        two.unlink()
        two.write_bytes(b"spoilt")
        backup(tmp_path / "clew.db", third)
        copied_files(tmp_path / "clew.db", third, second)
        assert three.read_bytes() == PHOTO


async def test_what_nobody_holds_is_swept_away_at_a_start(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made:
        async with made.running():
            await made.desk.ask("what is this?", attachments=(photo(),))
        made_up = "ab" + "0" * 62
        (tmp_path / "files" / "ab").mkdir()
        (tmp_path / "files" / "ab" / made_up).write_bytes(b"orphan")
        async with made.running():
            assert stored(tmp_path) == [DIGEST]


async def test_a_file_in_a_line_that_is_only_listened_to_is_named_and_not_fetched(tmp_path: Path) -> None:  # P47
    async with world(tmp_path) as made, made.running():
        line = made.desk.message("here it is", "room", sender="bob", direct=False, kind="context", attachments=(photo(size=7),))
        await made.desk.accept(line)
        await made.desk.ask("what did bob send?", "room", sender="ada", direct=False)
        assert any("[image photo.jpg, image/jpeg, 7 bytes]" in words_of(each) for each in spoken(made.replies[0]))
        assert made.desk.fetched == []


async def test_of_a_pdf_and_a_docx_the_words_are_read(tmp_path: Path) -> None:  # P47
    made_of = {"a": pdf(["The heron nests at Kallisaari."]), "b": docx(paragraph("The tern nests at Utö."))}
    async with world(tmp_path, files=made_of) as made, made.running():
        both = (Attachment("a.pdf", "", 0, "a"), Attachment("b.docx", "", 0, "b"))
        await made.desk.ask("read these", attachments=both)
        said = words_of(spoken(made.replies[0])[-1])
        assert "> The heron nests at Kallisaari." in said
        assert "> The tern nests at Utö." in said


async def test_a_scan_is_seen_by_models_that_take_pages_and_named_to_others(tmp_path: Path) -> None:  # P47
    scan = pdf([""])
    for provider in ("anthropic", "openai"):
        folder = tmp_path / provider
        folder.mkdir()
        async with world(folder, provider=provider, files={"s": scan}) as made, made.running():
            await made.desk.ask("what is in this?", attachments=(Attachment("scan.pdf", "", 0, "s"),))
            content = spoken(made.replies[0])[-1]["content"]
            if provider == "anthropic":
                source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(scan).decode()}
                assert (content[1]["type"], content[1]["source"]) == ("document", source)
            else:
                assert f"[file scan.pdf, application/pdf, {len(scan):,} bytes]" in content


async def test_a_document_that_cannot_be_read_is_told(tmp_path: Path) -> None:  # P47
    async with world(tmp_path, replies=numbered("seen"), files={"b": docx("<broken")}) as made, made.running():
        told = await made.desk.ask("read this", attachments=(Attachment("b.docx", "", 0, "b"),))
        assert told.startswith("I could not use b.docx: ")
        assert told.endswith("\n\nseen 1")


async def test_many_files_of_one_chat_leave_room_to_others(tmp_path: Path) -> None:  # P44 P47
    async with world(tmp_path) as made, made.running():
        made.desk.withheld["slow"] = asyncio.Event()
        for _ in range(20):
            await made.desk.accept(made.desk.message("look", attachments=(photo("slow"),) * 16))
        assert await made.desk.ask("look", "bob", attachments=(photo(),)) != ""
        assert made.desk.fetched.count("slow") == 2
