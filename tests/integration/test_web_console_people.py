"""The console's pages of people and of browsers that are logged in."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from clew.store import AccessEffect, Sender, Verdict
from clew.transport import Address, Inbound
from clew.web.console.people import LOGINS, PATH, SIZE
from tests.integration.web_harness import Clew, running, settings

TOKEN = "a-long-enough-token"
OWN = {"Sec-Fetch-Site": "same-origin"}
OWNER = {"Authorization": f"Bearer {TOKEN}"}
HOSTILE = '<img src=x onerror="hacked()">\'&'
PEOPLE = {"ada": {"role": "owner"}, "bob": {"role": "member"}}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c", http={"port": 0, "token": TOKEN}, people=PEOPLE)) as found:
        found.http._cookie_jar = aiohttp.DummyCookieJar()
        yield found


async def seen(clew: Clew, path: str = PATH, headers: dict[str, str] = OWNER) -> tuple[int, str]:
    async with clew.http.get(clew.url + path, headers=headers) as response:
        assert response.content_type == "text/html"
        return response.status, unescape(await response.text())


async def press(clew: Clew, path: str = PATH, headers: Any = OWN | OWNER, **fields: str) -> tuple[int, str]:
    async with clew.http.post(clew.url + path, data=fields, headers=headers, allow_redirects=False) as response:
        return response.status, unescape(await response.text())


async def asks(clew: Clew, sender: str, name: str = "") -> None:
    """A stranger writes."""

    def decide(item: Inbound, sender: Sender) -> Verdict:
        return Verdict(refused="unknown sender", pair=f"CODE{len(item.sender):04d}")

    item = Inbound(f"desk/{sender}", Address("desk", sender), sender, "let me in", sender_name=name)
    await clew.service.store.accept("desk", [item], None, clew.service.time.wall(), decide)


@pytest.mark.asyncio
async def test_strangers_are_let_in_or_not(clew: Clew) -> None:  # P46
    await asks(clew, "carol", HOSTILE)
    await asks(clew, "mallory")
    async with clew.http.get(clew.url + PATH, headers=OWNER) as response:
        assert "<img src=x" not in await response.text()
    _, page = await seen(clew)
    for words in ("desk:carol", HOSTILE, "CODE0005", "desk:mallory", "wrote 1 time"):
        assert words in page
    assert (await press(clew, do="approve", key="desk:carol", name="Carol", role="guest"))[0] == 303
    assert (await press(clew, do="deny", key="desk:mallory", name="", role="member"))[0] == 303
    _, page = await seen(clew)
    assert "Nobody waits for an answer" in page
    carol = await clew.service.store.known("Carol")
    assert (carol.id, carol.role) == ("desk:carol", "guest")
    with pytest.raises(Exception, match="no person"):
        await clew.service.store.known("desk:mallory")


@pytest.mark.asyncio
async def test_people_are_changed_linked_and_removed(clew: Clew) -> None:  # P46
    await clew.service.change_access(AccessEffect("approve", "desk:carol"))
    for fields in (
        {"do": "role", "key": "desk:carol", "role": "owner"},
        {"do": "rename", "key": "desk:carol", "name": " Carol "},
        {"do": "link", "key": "desk:carol", "identity": "mqtt:carol"},
        {"do": "link", "key": "bob", "identity": "mqtt:bob"},
    ):
        assert (await press(clew, **fields))[0] == 303
    _, page = await seen(clew)
    assert page.count("linked</span>") == 2
    carol = await clew.service.store.known("Carol")
    assert (carol.role, [each.identity for each in carol.identities]) == ("owner", ["desk:carol", "mqtt:carol"])
    assert (await press(clew, do="unlink", key="mqtt:bob"))[0] == 303
    assert (await press(clew, do="remove", key="desk:carol"))[0] == 303
    assert [each.id for each in await clew.service.store.people()] == ["ada", "bob"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"do": "role", "key": "bob", "role": "owner"}, 400, "bob is in the config"),
        ({"do": "remove", "key": "ada"}, 400, "ada is in the config"),
        ({"do": "approve", "key": "NOSUCHCD"}, 404, "Nobody was given the code"),
        ({"do": "approve", "key": "desk:x", "role": "king"}, 400, "role"),
        ({"do": "dance", "key": "bob"}, 400, "do"),
        ({"do": "link", "key": "bob", "identity": "nothing"}, 400, "is no identity"),
        ({"do": "role", "key": ""}, 400, "key"),
    ],
)
async def test_what_cannot_be_is_said(clew: Clew, fields: dict[str, str], status: int, words: str) -> None:
    found, page = await press(clew, **fields)
    assert found == status
    assert words in page


@pytest.mark.asyncio
async def test_browsers_are_listed_logged_in_and_out(clew: Clew) -> None:
    assert "No browser is logged in" in (await seen(clew, LOGINS))[1]
    status, page = await press(clew, LOGINS, do="link", key="bob")
    assert status == 200
    link = re.search(r"/login/link#([\w-]+)", page)
    assert link
    assert link[1] not in (await seen(clew, LOGINS))[1], "it is shown once"
    headers = {"Origin": clew.url, "User-Agent": HOSTILE}
    async with clew.http.post(f"{clew.url}/login/link", json={"link": link[1]}, headers=headers) as response:
        cookie = {"Cookie": response.headers["Set-Cookie"].partition(";")[0]}
    _, page = await seen(clew, LOGINS)
    for words in ("bob", HOSTILE, "by a link"):
        assert words in page
    (login,) = await clew.service.store.logins(clew.service.time.wall())
    assert (await press(clew, LOGINS, do="out", key=login.id))[0] == 303
    assert (await press(clew, LOGINS, do="out", key=login.id))[0] == 404
    assert (await clew.get("/login", headers=cookie))[1]["login"] is True
    assert (await press(clew, LOGINS, do="all"))[0] == 404
    async with clew.http.post(f"{clew.url}/login", json={"token": TOKEN}):
        pass
    assert (await press(clew, LOGINS, do="all"))[0] == 303
    assert await clew.service.store.logins(clew.service.time.wall()) == []


@pytest.mark.asyncio
async def test_the_pages_are_the_owners_alone_and_their_buttons_clews_own(clew: Clew) -> None:
    for path in (PATH, LOGINS):
        assert (await seen(clew, path, {}))[0] == 401
        for headers in (OWNER, OWNER | {"Origin": "https://evil.example"}, OWNER | {"Sec-Fetch-Site": "cross-site"}, OWN):
            assert (await press(clew, path, headers, do="all", key="bob"))[0] in (401, 403)
    assert len(await clew.service.store.people()) == 2


@pytest.mark.asyncio
async def test_many_people_stand_on_several_pages(clew: Clew) -> None:
    for number in range(SIZE):
        await clew.service.change_access(AccessEffect("approve", f"desk:guest{number}", role="guest"))
    assert "Page 1 of 2" in (await seen(clew))[1]
    assert "desk:guest49" in (await seen(clew, f"{PATH}?page=2"))[1]
    assert (await seen(clew, f"{PATH}?page=0"))[0] == 400
    assert "Nobody stands on this page" in (await seen(clew, f"{PATH}?page=9"))[1]


@pytest.mark.asyncio
async def test_without_a_token_nobody_is_logged_in(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "n")) as clew:
        assert "http.token" in (await seen(clew, LOGINS, {}))[1]
        assert (await press(clew, LOGINS, OWN, do="link", key="owner"))[0] == 400
