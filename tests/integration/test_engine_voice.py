"""Voice notes: what is said in them is what its speaker wrote."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from clew.attaching import NOT_READ, SILENT
from clew.cli.doctor.models import transcriber
from clew.config import Config, Transcriber
from clew.messages import File, Text
from clew.recall import search
from clew.transport import Attachment
from tests.emulators.scripts import numbered
from tests.emulators.server import Fault, Malformed
from tests.emulators.transcriptions import TranscriptionsEmulator
from tests.integration.engine import World, engine, spoken, words_of
from tests.pictures import OGG

pytestmark = pytest.mark.asyncio

KEY = "sk-0123456789abcdefghij"
SAID = "Please water the fig tree at Kallisaari."


def note(**more: Any) -> Attachment:
    return Attachment("voice.ogg", "audio/ogg", 0, "v", voice=True, **more)


@asynccontextmanager
async def hearing(folder: Path, said: str = SAID, **more: Any) -> AsyncIterator[tuple[World, TranscriptionsEmulator]]:
    async with TranscriptionsEmulator(say=lambda body: said, api_key=KEY) as server, engine(folder, numbered("answer"), **more) as world:
        world.desk.files = {"v": OGG}
        chosen = Transcriber(kind="openai", base_url=server.base_url, api_key=SecretStr(KEY), language="en")
        world.config = world.config.model_copy(update={"transcriber": chosen})
        yield world, server


def program(code: str, **more: Any) -> Transcriber:
    return Transcriber(kind="command", command=(sys.executable, "-c", f"import sys\n{code}", "{file}"), **more)


async def test_a_voice_note_alone_is_a_message_like_any_other(tmp_path: Path) -> None:  # P47 BO-077
    async with hearing(tmp_path) as (world, server), world.running():
        assert await world.desk.ask("", attachments=(note(),)) == "answer 1"
        (body,) = world.replies
        assert SAID in words_of(spoken(body)[-1])
        (message, _) = await world.transcript()
        assert [block for block in message.blocks if isinstance(block, Text) and block.text] == [Text(SAID)]
        assert message.files == (File(message.files[0].hash, "voice.ogg", "audio/ogg", len(OGG)),)
        assert (server.heard[0].body, server.heard[0].name, server.heard[0].language) == (OGG, "voice.ogg", "en")


async def test_what_was_said_is_found_by_search(tmp_path: Path) -> None:  # P20 P47
    async with hearing(tmp_path) as (world, _), world.running():
        await world.desk.ask("", attachments=(note(),))
        found = await search(world.store, await world.store.scope_for(person="ada"), "fig tree", limit=5, today=date(2027, 1, 1))
        assert SAID in found[0].candidate.text


async def test_a_stranger_s_voice_is_not_heard(tmp_path: Path) -> None:  # P46 P47
    async with hearing(tmp_path) as (world, server), world.running():
        await world.desk.accept(world.desk.message("", "mallory", attachments=(note(),)))
        await world.desk.ask("are you there?")
        assert (world.desk.fetched, server.heard) == ([], [])


async def test_a_recording_is_transcribed_once_whatever_restarts(tmp_path: Path) -> None:  # P47 P48
    async with hearing(tmp_path) as (world, server):
        message = world.desk.message("", attachments=(note(),))
        async with world.running():
            server.may.clear()
            await world.desk.accept(message)
            async with asyncio.timeout(20):
                await server.going.wait()
        server.may.set()
        async with world.running():
            await world.desk.until(lambda: bool(world.desk.answers(message)))
        async with world.running():
            await world.desk.ask("and now?")
        assert world.desk.fetched == ["v"]
        assert len(server.heard) == 2  # the one that was cut, and the one that was stored


async def test_a_note_in_which_nothing_is_understood_is_told_of_once(tmp_path: Path) -> None:  # P47 BO-078
    for said in ("", " [BLANK_AUDIO]\n (coughs) ", "[00:00:00.000 --> 00:00:02.000]   ♪"):
        folder = tmp_path / str(len(said))
        folder.mkdir()
        async with hearing(folder, said) as (world, server), world.running():
            assert await world.desk.ask("", attachments=(note(),)) == f"I could not use voice.ogg: {SILENT}."
            assert (len(server.heard), world.replies) == (1, [])
            assert len(list((folder / "files").glob("??/*"))) == 1  # the recording is kept


async def test_a_transcriber_that_fails_is_asked_again(tmp_path: Path) -> None:  # P47
    async with hearing(tmp_path) as (world, server), world.running():
        server.faults.extend([Fault(503, "overloaded", "busy"), Malformed("{}")])
        assert await world.desk.ask("", attachments=(note(),)) == "answer 1"
        assert len(server.heard) == 3


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault(401, "invalid_api_key", "no"), "the transcriber does not let me in, which whoever runs me has to mend"),
        (Fault(400, "invalid_request_error", "no"), "the transcriber cannot make anything of it"),
        (Fault(413, "too_large", "no"), "it is too long for the transcriber"),
    ],
)
async def test_a_transcriber_that_refuses_is_asked_once(tmp_path: Path, fault: Fault, told: str) -> None:  # P47 BO-078
    async with hearing(tmp_path) as (world, server), world.running():
        server.faults.append(fault)
        assert await world.desk.ask("", attachments=(note(),)) == f"I could not use voice.ogg: {told}."
        assert len(server.heard) == 1


async def test_words_beside_a_note_that_fails_are_answered(tmp_path: Path) -> None:  # P47
    async with hearing(tmp_path, "") as (world, _), world.running():
        assert await world.desk.ask("listen", attachments=(note(),)) == f"I could not use voice.ogg: {SILENT}.\n\nanswer 1"


async def test_a_recording_that_is_sent_as_a_file_is_read_like_one(tmp_path: Path) -> None:  # P47
    async with hearing(tmp_path) as (world, _), world.running():
        await world.desk.ask("what do they say?", attachments=(Attachment("talk.mp3", "audio/mpeg", 0, "v"),))
        said = words_of(spoken(world.replies[0])[-1])
        assert f"> {SAID}" in said
        assert "[file talk.mp3, audio/ogg, " in said


async def test_a_program_hears_as_well(tmp_path: Path) -> None:  # P47
    async with engine(tmp_path, numbered("answer")) as world:
        world.desk.files = {"v": OGG}
        heard = "import pathlib; p = pathlib.Path(sys.argv[1]); print('[00:00:00.000 --> 00:00:02.000]  ', p.suffix, len(p.read_bytes()))"
        world.config = world.config.model_copy(update={"transcriber": program(heard)})
        async with world.running():
            assert await world.desk.ask("", attachments=(note(),)) == "answer 1"
            assert f".ogg {len(OGG)}" in words_of(spoken(world.replies[0])[-1])


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (program("sys.exit(3)"), "the transcriber cannot make anything of it"),
        (program("import time; time.sleep(600)", timeout=1.0), "the transcriber took longer than 1 seconds"),
        (
            Transcriber(kind="command", command=("/nowhere/whisper",)),
            "the transcriber cannot be started, which whoever runs me must mend",
        ),
    ],
)
async def test_a_program_that_fails_is_told_of(tmp_path: Path, chosen: Transcriber, told: str) -> None:  # P47 BO-078
    async with engine(tmp_path, numbered("answer")) as world:
        world.desk.files = {"v": OGG}
        world.config = world.config.model_copy(update={"transcriber": chosen})
        async with world.running():
            assert await world.desk.ask("", attachments=(note(),)) == f"I could not use voice.ogg: {told}."


async def test_tries_that_bring_the_process_down_come_to_an_end(tmp_path: Path) -> None:  # P47 BO-079
    async with hearing(tmp_path) as (world, server):
        message = world.desk.message("", attachments=(note(),))
        server.may.clear()
        async with world.running():
            await world.desk.accept(message)
            async with asyncio.timeout(20):
                await server.going.wait()
        async with world.file() as store:
            (file,), _ = await store.files.due(2e9, 10, 10)
            for _ in range(6):
                await store.files.begin(file, 0.0)
        async with world.running():
            await world.desk.until(lambda: bool(world.desk.answers(message)))
            assert world.desk.answers(message)[0].text == f"I could not use voice.ogg: {NOT_READ}."
            assert len(server.heard) == 1
        server.may.set()


@pytest.mark.parametrize(("key", "level", "text"), [(KEY, "ok", "it hears"), ("sk-wrong-0123456789", "problem", "does not let me in")])
async def test_the_doctor_lets_the_transcriber_hear_silence(key: str, level: str, text: str) -> None:  # P47
    async with TranscriptionsEmulator(api_key=KEY) as server:
        chosen = Transcriber(kind="openai", base_url=server.base_url, api_key=SecretStr(key))
        [found] = await transcriber(Config(transcriber=chosen))
        assert (found.level, text in found.text) == (level, True)
        if level == "ok":
            assert server.heard[0].name == "voice.wav"


async def test_the_doctor_says_that_there_is_no_transcriber() -> None:  # P47
    assert [each.level for each in await transcriber(Config())] == ["ok"]
