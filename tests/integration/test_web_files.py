"""Files of the chat page: taken before their message, shown with it, and to nobody else."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import numbered
from tests.integration.web_harness import Clew, Tab, running, settings
from tests.pictures import OGG, png

pytestmark = pytest.mark.asyncio

PHOTO = png()
BODY = {"Content-Type": "application/octet-stream"}
PAGE = "<script>alert(1)</script>"


@asynccontextmanager
async def talking(folder: Path, **extra: Any) -> AsyncIterator[tuple[Clew, OpenAIEmulator]]:
    async with (
        OpenAIEmulator(script=numbered("answer")) as model,
        running(settings(folder / "c", base_url=model.base_url, **extra)) as clew,
    ):
        yield clew, model


async def upload(clew: Clew, body: bytes = PHOTO, name: str = "photo.png", chat: str = "local", **options: Any) -> tuple[int, Any]:
    query = {"chat": chat, "name": name, "type": "image/png"}
    async with clew.http.post(f"{clew.url}/chat/files", params=query, data=body, headers=BODY, **options) as response:
        return response.status, await response.json()


async def send(tab: Tab, identifier: str, text: str, *files: str) -> None:
    await tab.ws.send_json({"type": "message", "id": identifier, "text": text, "attachments": list(files)})


async def test_a_photo_is_uploaded_sent_answered_and_shown(tmp_path: Path) -> None:  # P47
    async with talking(tmp_path) as (clew, model), Tab.open(clew) as tab, Tab.open(clew) as other:
        status, file = await upload(clew)
        assert (status, file["name"], file["mime"]) == (200, "photo.png", "image/png")
        await send(tab, "m1", "", file["id"])
        await tab.until("ack", id="m1")
        reply = await tab.until("message", role="assistant")
        assert reply["text"] == "answer 1"
        content = model.calls[0].body["messages"][-1]["content"]
        assert content[1]["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PHOTO).decode()}"
        shown = await other.until("message", role="user")
        assert shown["attachments"] == [{"id": file["id"], "name": "photo.png", "mime": "image/png", "size": len(PHOTO)}]
        listed = (await clew.get("/api/v1/chats/local/messages"))[1]["messages"]
        assert [each["files"] for each in listed if each["role"] == "user"] == [shown["attachments"]]
        async with clew.http.get(f"{clew.url}/chat/files/{file['id']}?chat=local") as response:
            assert (response.status, await response.read()) == (200, PHOTO)
            assert response.headers["Content-Type"] == "image/png"
            assert response.headers["Content-Disposition"] == "inline; filename*=UTF-8''photo.png"
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_message_that_is_sent_again_is_the_same_message(tmp_path: Path) -> None:  # P42 P47
    async with talking(tmp_path) as (clew, model):
        _, file = await upload(clew)
        for _ in range(2):
            async with Tab.open(clew) as tab:
                await send(tab, "m1", "look", file["id"])
                await tab.until("ack", id="m1")
                await tab.until("message", role="assistant")
        assert len(model.calls) == 1


async def test_what_was_not_uploaded_here_is_told_and_nothing_is_taken_from_another_chat(tmp_path: Path) -> None:  # P33 P47
    async with talking(tmp_path) as (clew, model), Tab.open(clew) as tab:
        _, theirs = await upload(clew, chat="other")
        await send(tab, "m1", "look", theirs["id"])
        reply = await tab.until("message", role="assistant")
        assert reply["text"] == "I could not use file: it is not there any more.\n\nanswer 1"
        assert all(isinstance(message["content"], str) for message in model.calls[0].body["messages"])
        async with clew.http.get(f"{clew.url}/chat/files/{theirs['id']}?chat=local") as response:
            assert response.status == 404


@pytest.mark.parametrize("name", ["page.html", "../../../etc/passwd", "a\r\nSet-Cookie: x=1", "ö; filename=evil.exe", "", "x" * 5000])
async def test_what_is_no_image_is_only_given_to_be_saved(tmp_path: Path, name: str) -> None:  # P47
    async with talking(tmp_path) as (clew, _):
        _, file = await upload(clew, PAGE.encode(), name)
        async with clew.http.get(f"{clew.url}/chat/files/{file['id']}?chat=local") as response:
            assert response.headers["Content-Type"] == "application/octet-stream"
            assert response.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert "Set-Cookie" not in response.headers
            assert await response.text() == PAGE
        assert "/" not in file["name"]


@pytest.mark.parametrize("identifier", ["..%2F..%2Fclew.db", "%2e%2e", "a" * 12, "%00", "ox4zo25uhtui/..", "%ed%a0%80"])
async def test_only_files_of_the_chat_are_given(tmp_path: Path, identifier: str) -> None:  # P47
    async with talking(tmp_path) as (clew, _), clew.http.get(f"{clew.url}/chat/files/{identifier}?chat=local") as response:
        assert response.status == 404


async def test_an_upload_is_bounded(tmp_path: Path) -> None:  # P47
    async with talking(tmp_path, limits={"attachment_bytes": 1000}) as (clew, _):

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield bytes(100)

        assert (await upload(clew, bytes(1001)))[0] == 413
        async with clew.http.post(f"{clew.url}/chat/files?chat=local", data=endless(), headers=BODY) as response:
            assert response.status == 413
        assert (await upload(clew, bytes(1000)))[0] == 200
        assert [path.name for path in (tmp_path / "c" / "data" / "files").iterdir() if path.name.startswith("unfinished")] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"Content-Type": "multipart/form-data"},
        {"Content-Type": "text/plain"},
    ],
)
async def test_no_other_page_can_upload(tmp_path: Path, headers: dict[str, str]) -> None:  # P47
    async with talking(tmp_path) as (clew, _):
        async with clew.http.post(f"{clew.url}/chat/files?chat=local", data=b"x", headers=BODY | headers) as response:
            assert response.status in (400, 403)
        assert not (tmp_path / "c" / "data" / "files").exists()


async def test_without_the_token_nothing_is_taken_or_shown(tmp_path: Path) -> None:  # P46 P47
    async with talking(tmp_path, http={"port": 0, "token": "a-long-enough-token"}) as (clew, _):
        assert (await upload(clew))[0] == 401
        async with clew.http.get(f"{clew.url}/chat/files/{'a' * 12}?chat=local") as response:
            assert response.status == 401


async def test_uploads_that_nobody_sends_go_after_a_day(tmp_path: Path) -> None:  # P47
    async with talking(tmp_path) as (clew, _):
        await upload(clew)
        files, now = clew.service.store.files, clew.service.time.wall()
        assert await files.sweep(uploads_before=now - 3600) == 0
        assert await files.sweep(uploads_before=now + 1) == 1


async def test_a_recording_without_words_is_a_voice_note(tmp_path: Path) -> None:  # P47
    async with talking(tmp_path) as (clew, model), Tab.open(clew) as tab:
        query = {"chat": "local", "name": "note.ogg", "type": "audio/ogg"}
        async with clew.http.post(f"{clew.url}/chat/files", params=query, data=OGG, headers=BODY) as response:
            file = await response.json()
        await send(tab, "m1", "", file["id"])
        reply = await tab.until("message", role="assistant")
        assert reply["text"] == "I could not use note.ogg: I cannot listen to it, since no transcriber is set up."
        assert model.calls == []
