"""The console's documents: what is there and what could not be read; adding, reading again, removing, searching."""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from clew.store.notes import Where
from clew.web.console.documents import SIZE
from tests.integration.console_harness import HOSTILE, OWN, seen, sent
from tests.integration.web_harness import Clew, running, settings

PATH = "/console/documents"
TOKEN = "a-long-enough-token"
MOST = 2000


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    library = tmp_path / "library"
    library.mkdir()
    limits = {"attachment_bytes": MOST, "message_bytes": 1024}
    async with running(settings(tmp_path / "c", docs={"paths": [str(library)]}, limits=limits)) as found:
        yield found


async def upload(clew: Clew, name: str, body: bytes, headers: Mapping[str, str] = OWN, field: str = "file") -> tuple[int, str]:
    data = aiohttp.FormData()
    data.add_field(field, body, filename=name)
    async with clew.http.post(f"{clew.url}{PATH}/upload", data=data, headers=headers, allow_redirects=False) as response:
        return response.status, response.headers.get("Location", "") or await response.text()


async def names(clew: Clew) -> list[str]:
    return [each.name for each in await clew.service.store.documents.listing(None, 1000)]


def item(page: str, name: str) -> str:
    """The id of the document whose buttons stand behind its name."""
    found = re.search(r'name="id" value="(\w+)"', page[page.index(f"<bdi>{name}</bdi>") :])
    assert found
    return found[1]


@pytest.mark.asyncio
async def test_a_file_is_uploaded_found_and_removed(clew: Clew) -> None:  # P41
    assert "There are no documents." in await seen(clew, PATH)
    assert await upload(clew, "garden.md", b"# Garden\n\nRoses are watered on Mondays.\n") == (303, PATH)
    assert await upload(clew, "C:\\x\\..\\boat.txt", b"Das Boot liegt an Platz 14.") == (303, PATH)
    page = await seen(clew, PATH)
    assert "<bdi>garden.md</bdi>" in page
    assert "(2)" in page
    found = await seen(clew, f"{PATH}?find=when+are+roses+watered")
    assert "[garden.md, Garden]" in found
    assert "Roses are watered on Mondays." in found
    assert "No document says anything like that." in await seen(clew, f"{PATH}?find=submarines")
    status, page = await sent(clew, PATH, do="again", id=item(page, "garden.md"))
    assert (status, "cannot read it again" in page) == (400, True)
    assert await sent(clew, PATH, do="remove", id=item(await seen(clew, PATH), "garden.md")) == (303, PATH)
    assert len(await names(clew)) == 1
    assert (await sent(clew, PATH, do="remove", id="nosuch"))[0] == 404


@pytest.mark.asyncio
async def test_what_cannot_be_taken_in_is_told(clew: Clew) -> None:
    for name, body, status, why in (
        ("big.txt", b"x" * (MOST + 1), 413, "The file is larger than 2,000 bytes"),
        ("broken.pdf", b"%PDF-1.7 nothing of the kind", 400, "PDF"),
        ("", b"words", 400, "No file was chosen."),
    ):
        answered, page = await upload(clew, name, body)
        assert (answered, why in page) == (status, True), name
    assert (await upload(clew, "a.txt", b"words", field="other"))[0] == 400
    for kind in ("multipart/form-data", "multipart/form-data; boundary=", "text/plain", "multipart/form-data; boundary=x"):
        headers = {**OWN, "Content-Type": kind}
        async with clew.http.post(f"{clew.url}{PATH}/upload", data=b"--y\r\nwhat", headers=headers) as response:
            assert response.status == 400
    for url, status in (("ftp://x", 400), ("/etc/passwd", 400), ("http://127.0.0.1:1/x", 400), ("", 400)):
        assert (await sent(clew, PATH, do="add", url=url))[0] == status, url
    assert (await sent(clew, PATH, do="add", url="https://example.org/", person="nobody"))[0] == 404
    assert await names(clew) == []


@pytest.mark.asyncio
async def test_watched_files_that_cannot_be_read_are_named_until_they_can_be(clew: Clew, tmp_path: Path) -> None:  # P41
    library, watch = tmp_path / "library", clew.service.watch
    (library / "good.md").write_text("# Good\n\nWords.\n")
    (library / "broken.pdf").write_bytes(b"%PDF-1.7 nothing of the kind")
    (library / "gone.pdf").write_bytes(b"%PDF-1.7 nothing of the kind either")
    await watch.look()
    page = await seen(clew, PATH)
    assert str(library / "broken.pdf") in page
    assert '<h2 id="refused">Not read <span class="tag bad">2</span></h2>' in page
    assert "(watched)" in page
    assert "Remove" not in page  # they leave with their file
    (library / "broken.pdf").write_bytes(b"")
    (library / "broken.pdf").unlink()
    (library / "gone.pdf").unlink()
    await watch.look()
    assert "Not read" not in await seen(clew, PATH)


@pytest.mark.asyncio
async def test_what_others_named_stays_words_and_many_come_in_pages(clew: Clew) -> None:
    documents = clew.service.store.documents
    scope = await documents.scope(Where(person="me"), "user")
    await clew.service.library.add_file(scope, Path(f"/n/{HOSTILE}.md"), HOSTILE.encode())
    for path in (PATH, f"{PATH}?find=hacked"):
        page = await seen(clew, path)
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
    for number in range(SIZE):
        await clew.service.library.add_file(scope, Path(f"/n/{number:03}.txt"), f"number {number}".encode())
    page = await seen(clew, PATH)
    assert page.count("<article") == SIZE
    assert (await seen(clew, f"{PATH}?page=2")).count("<article") == 1


@pytest.mark.asyncio
async def test_nobody_else_sees_or_changes_anything(tmp_path: Path, clew: Clew) -> None:
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await upload(clew, "a.txt", b"words", headers))[0] == 403
        assert (await sent(clew, PATH, headers, do="remove", id="x"))[0] == 403
    async with running(settings(tmp_path / "g", http={"port": 0, "token": TOKEN})) as guarded:
        assert "Upload" not in await seen(guarded, PATH, 401)
        assert (await upload(guarded, "a.txt", b"words"))[0] == 401
    assert await names(clew) == []
