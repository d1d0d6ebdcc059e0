"""Browsers that log in by a link or the token, as an attacker would see it: nobody gets in, and whoever is thrown out stays out."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from clew.store import AccessEffect
from clew.store.logins import MOST, page_name
from clew.web.auth import TRIES
from clew.web.console import PLACES
from tests.databases import databases
from tests.integration.web_harness import Clew, Tab, running, settings

TOKEN = "a-long-enough-token"
PUBLIC = "https://chat.example.org"
HOST = {"Host": "chat.example.org"}
PAGE = HOST | {"Origin": PUBLIC}
OWNER = HOST | {"Authorization": f"Bearer {TOKEN}"}
CHANGES: tuple[tuple[str, str, object], ...] = (
    ("POST", "/api/v1/access/X", {"approve": True}),
    ("POST", "/api/v1/people/bob/identities", {"identity": "mqtt:mallory"}),
    ("PATCH", "/api/v1/people/bob", {"role": "owner"}),
    ("DELETE", "/api/v1/people/bob", None),
    ("DELETE", "/api/v1/logins", None),
    ("POST", "/console/schedule/job", None),
    ("POST", "/console/outbox", None),
    ("POST", "/chat/files?chat=local", None),
)
PAGES = [place.path for place in PLACES if place.page]
PEOPLE = {"ada": {"role": "owner"}, "bob": {"role": "member"}, "olga": {"role": "owner"}, "gus": {"role": "guest"}}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    http = {"port": 0, "token": TOKEN, "public_url": PUBLIC}
    async with running(settings(tmp_path / "c", http=http, people=PEOPLE)) as found:
        found.http._cookie_jar = aiohttp.DummyCookieJar()
        yield found


async def link_for(clew: Clew, person: str) -> str:
    status, answer = await clew.ask_locally("POST", f"/api/v1/people/{person}/login")
    assert status == 200, answer
    return str(answer["url"])


async def opened(clew: Clew, link: str, **headers: str) -> tuple[int, Any, str]:
    """Press the button of a link's page: (status, answer, cookie)."""
    secret = link.partition("#")[2]
    async with clew.http.post(f"{clew.url}/login/link", json={"link": secret}, headers=PAGE | headers) as response:
        cookie = response.headers.get("Set-Cookie", "").partition(";")[0]
        return response.status, await response.json(), cookie


async def logged_in(clew: Clew, person: str) -> dict[str, str]:
    """The headers of a browser that is logged in."""
    status, _, cookie = await opened(clew, await link_for(clew, person))
    assert status == 200
    return PAGE | {"Cookie": cookie}


async def said(clew: Clew, headers: dict[str, str], text: str, query: str = "after=0") -> Tab:
    async with Tab.open(clew, query, headers=headers) as tab:
        await tab.say(f"id-{text}", text)
        await tab.until("message", in_reply_to=f"id-{text}")
        return tab


# Links -----------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_link_logs_in_once_and_a_look_at_it_uses_nothing_up(clew: Clew) -> None:
    link = await link_for(clew, "bob")
    assert link.startswith(f"{PUBLIC}/login/link#")
    secret = link.partition("#")[2]
    for _ in range(3):  # what a chat's server does with a link that it is shown
        async with clew.http.get(f"{clew.url}/login/link", headers=HOST) as response:
            page = await response.text()
            assert (response.status, "Set-Cookie" in response.headers, secret in page) == (200, False, False)
            assert response.headers["Referrer-Policy"] == "no-referrer"
        async with clew.http.get(f"{clew.url}/login/link?link={secret}", headers=HOST) as response:
            assert "Set-Cookie" not in response.headers
    with capture_logs() as logs:
        status, answer, cookie = await opened(clew, link)
        assert (status, answer["name"]) == (200, "bob")
        assert (await clew.get("/login", headers=PAGE | {"Cookie": cookie}))[1]["name"] == "bob"
        assert (await opened(clew, link))[0] == 401, "a link that was used is none"
    assert secret not in str(logs)
    assert cookie.partition("=")[2] not in str(logs)


@pytest.mark.asyncio
async def test_two_presses_at_once_let_one_in(clew: Clew) -> None:
    link = await link_for(clew, "bob")
    answers = await asyncio.gather(*(opened(clew, link) for _ in range(8)))
    assert sorted(status for status, _, _ in answers) == [200] + [401] * 7


@pytest.mark.asyncio
async def test_a_link_expires(clew: Clew) -> None:
    link = await link_for(clew, "bob")
    await clew.service.store._db.write(lambda db: db.execute("UPDATE login_links SET expires = expires - 601").rowcount)
    assert (await opened(clew, link))[0] == 401


@pytest.mark.asyncio
async def test_links_and_logins_are_kept_as_hashes(clew: Clew, tmp_path: Path) -> None:  # P19
    spent, open_ = await link_for(clew, "bob"), await link_for(clew, "bob")
    _, _, cookie = await opened(clew, spent)
    stored = databases.dump(tmp_path / "c" / "data")
    for secret in (spent.partition("#")[2], open_.partition("#")[2], cookie.partition("=")[2], TOKEN):
        assert secret
        assert secret not in stored


@pytest.mark.asyncio
async def test_a_link_that_is_asked_for_in_a_chat_is_no_part_of_the_talk(clew: Clew) -> None:  # P19
    headers = await logged_in(clew, "bob")
    tab = await said(clew, headers, "/login")
    found = re.search(r"/login/link#(\S+)", tab.texts("assistant")[-1])
    assert found
    for session in await clew.service.store.sessions(None, 100):
        assert await clew.service.store.transcript(session.id) == ()
    dumped = await clew.service.store._db.read(lambda db: db.execute("SELECT count(*) FROM messages").fetchone()[0])
    assert dumped == 0
    assert (await opened(clew, found[0].partition("#")[0] + "#" + found[1]))[0] == 200


@pytest.mark.asyncio
async def test_guests_and_strangers_get_no_link(clew: Clew) -> None:
    assert (await clew.ask_locally("POST", "/api/v1/people/gus/login"))[0] == 400
    assert (await clew.ask_locally("POST", "/api/v1/people/nobody/login"))[0] == 404


@pytest.mark.asyncio
async def test_nobody_logs_in_where_no_token_is_set(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "n", people=PEOPLE)) as clew:
        assert (await clew.ask_locally("POST", "/api/v1/people/bob/login"))[0] == 400
        assert (await clew.post("/login/link", {"link": "x"}))[0] == 403


# Logins ----------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_cookie_is_for_this_page_alone(clew: Clew) -> None:
    link = await link_for(clew, "bob")
    async with clew.http.post(f"{clew.url}/login/link", json={"link": link.partition("#")[2]}, headers=PAGE) as response:
        cookie = response.headers["Set-Cookie"]
    assert cookie.startswith("__Host-clew_login=")
    for flag in ("HttpOnly", "SameSite=Strict", "Secure", "Path=/"):
        assert flag in cookie
    assert "Domain" not in cookie


@pytest.mark.asyncio
async def test_a_member_sees_their_own_chats_alone(clew: Clew) -> None:  # P33
    bob, ada = await logged_in(clew, "bob"), await logged_in(clew, "ada")
    await said(clew, ada, "the owners words")
    tab = await said(clew, bob, "a members words")
    assert tab.texts("user") == []
    assert "owners" not in str(tab.frames)
    await said(clew, bob, "in the kitchen", "chat=kitchen&after=0")
    for chat in ("local", "kitchen", page_name("bob"), page_name("ada"), "web:local", "..", "~", "%2e%2e"):
        status, page = await clew.get(f"/api/v1/chats/{chat}/messages", headers=bob)
        assert "owners" not in str(page), chat
        assert status in (200, 400, 404)
    addresses = {session.address for session in await clew.service.store.sessions(None, 100)}
    assert addresses == {"web:local", f"web:{page_name('bob')}", f"web:{page_name('bob')}/kitchen"}
    # And the owner does not come by accident to what is bob's: no chat's name has a `~`.
    assert (await clew.get(f"/api/v1/chats/{page_name('bob')}/messages", headers=OWNER))[0] == 400


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/sessions", "/api/v1/people", "/api/v1/access", "/api/v1/logins", "/metrics"])
async def test_what_is_the_owners_is_no_members(clew: Clew, path: str) -> None:
    bob = await logged_in(clew, "bob")
    assert (await clew.get(path, headers=bob))[0] == 403
    assert (await clew.get(path, headers=PAGE))[0] == 401


@pytest.mark.asyncio
async def test_no_page_of_the_console_is_a_members(clew: Clew) -> None:
    bob = await logged_in(clew, "bob")
    for page in PAGES:
        async with clew.http.get(f"{clew.url}{page}", headers=bob) as response:
            assert response.status == 403, page
    async with clew.http.get(f"{clew.url}/console", headers=await logged_in(clew, "olga")) as response:
        assert response.status == 200


@pytest.mark.asyncio
async def test_a_second_owner_has_a_page_of_their_own(clew: Clew) -> None:  # P33
    await said(clew, await logged_in(clew, "ada"), "adas words")
    tab = await said(clew, await logged_in(clew, "olga"), "olgas words")
    assert "adas" not in str(tab.frames)


@pytest.mark.asyncio
async def test_a_file_of_one_is_not_given_to_another(clew: Clew) -> None:  # P33
    bob, olga = await logged_in(clew, "bob"), await logged_in(clew, "olga")
    upload, kind = f"{clew.url}/chat/files?chat=local&name=x.png", {"Content-Type": "application/octet-stream"}
    async with clew.http.post(upload, data=b"\x89PNG secret", headers=bob | kind) as response:
        file = (await response.json())["id"]
    for headers, chat in ((olga, "local"), (OWNER, "local"), (olga, page_name("bob")), (OWNER, page_name("bob"))):
        async with clew.http.get(f"{clew.url}/chat/files/{file}?chat={chat}", headers=headers) as response:
            assert response.status in (400, 404)


@pytest.mark.asyncio
async def test_a_login_that_is_ended_is_over_at_once_and_its_socket_too(clew: Clew) -> None:
    bob = await logged_in(clew, "bob")
    async with Tab.open(clew, headers=bob) as tab:
        await tab.say("1", "/help")
        await tab.until("ack", id="1")
        _, listed = await clew.ask_locally("GET", "/api/v1/logins")
        (login,) = listed["logins"]
        assert (login["person"], login["how"]) == ("bob", "link")
        assert (await clew.ask_locally("DELETE", f"/api/v1/logins/{login['id']}"))[0] == 200
        await tab.say("2", "still here?")
        while True:
            frame = await tab.ws.receive(timeout=20)
            if frame.type is not aiohttp.WSMsgType.TEXT:
                break
            assert '"id":"2"' not in frame.data
        assert frame.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING)
    assert (await clew.get("/login", headers=bob))[1]["login"] is True
    assert (await clew.ask_locally("DELETE", f"/api/v1/logins/{login['id']}"))[0] == 404


@pytest.mark.asyncio
async def test_whoever_is_removed_or_made_a_guest_is_out(clew: Clew) -> None:  # P46
    await clew.service.change_access(AccessEffect("approve", "mqtt:carol", role="owner"))
    carol, open_ = await logged_in(clew, "mqtt:carol"), await link_for(clew, "mqtt:carol")
    assert (await clew.get("/api/v1/status", headers=carol))[0] == 200
    await clew.service.change_access(AccessEffect("role", "mqtt:carol", role="member"))
    assert (await clew.get("/api/v1/status", headers=carol))[0] == 403
    await clew.service.change_access(AccessEffect("role", "mqtt:carol", role="guest"))
    assert (await clew.get("/login", headers=carol))[1]["login"] is True
    assert (await opened(clew, open_))[0] == 401
    await clew.service.change_access(AccessEffect("role", "mqtt:carol", role="member"))
    open_ = await link_for(clew, "mqtt:carol")
    await clew.service.change_access(AccessEffect("remove", "mqtt:carol"))
    assert (await clew.get("/login", headers=carol))[1]["login"] is True
    assert (await opened(clew, open_))[0] == 401
    assert await clew.service.store.logins(clew.service.time.wall()) == []


@pytest.mark.asyncio
async def test_logging_out_ends_what_the_browser_keeps(clew: Clew) -> None:
    bob = await logged_in(clew, "bob")
    async with clew.http.post(f"{clew.url}/logout", headers=HOST | {"Cookie": bob["Cookie"], "Origin": "https://evil.example"}) as response:
        assert response.status == 403
    async with clew.http.post(f"{clew.url}/logout", headers=HOST | {"Cookie": bob["Cookie"]}) as response:
        assert response.status == 200
    assert (await clew.get("/login", headers=bob))[1]["login"] is False, "no page of ours is known to have asked for it"
    async with clew.http.post(f"{clew.url}/logout", headers=bob):
        pass
    assert (await clew.get("/login", headers=bob))[1]["login"] is True
    first, second = await logged_in(clew, "bob"), await logged_in(clew, "bob")
    async with Tab.open(clew, headers=first) as tab:
        await tab.say("1", "/logout")
        while (await tab.ws.receive(timeout=20)).type is aiohttp.WSMsgType.TEXT:
            pass
    for headers in (first, second):
        assert (await clew.get("/login", headers=headers))[1]["login"] is True


@pytest.mark.asyncio
async def test_another_token_ends_all_logins(tmp_path: Path) -> None:
    http = {"port": 0, "token": TOKEN}
    async with running(settings(tmp_path / "t", http=http)) as clew, clew.http.post(f"{clew.url}/login", json={"token": TOKEN}) as response:
        cookie = response.headers["Set-Cookie"].partition(";")[0]
    async with running(settings(tmp_path / "t", http=http)) as clew:
        clew.http._cookie_jar = aiohttp.DummyCookieJar()
        assert (await clew.get("/login", headers={"Cookie": cookie}))[1]["login"] is False, "a restart ends none"
    async with running(settings(tmp_path / "t", http=http | {"token": "another-long-token"})) as clew:
        clew.http._cookie_jar = aiohttp.DummyCookieJar()
        assert (await clew.get("/login", headers={"Cookie": cookie}))[1]["login"] is True


@pytest.mark.asyncio
async def test_the_page_is_no_account_to_be_given_up_or_taken_over(clew: Clew) -> None:
    bob = await logged_in(clew, "bob")
    page = f"web:{page_name('bob')}"
    assert page in [each.identity for each in (await clew.service.store.known("bob")).identities]
    status, answer = await clew.ask_locally("DELETE", f"/api/v1/people/bob/identities/{page}")
    assert (status, "/logout" in answer["hint"]) == (400, True)
    assert (await clew.ask_locally("POST", "/api/v1/people/olga/identities", {"identity": page}))[0] == 400
    assert (await clew.ask_locally("POST", f"/api/v1/access/{page}", {"approve": True}))[0] == 400
    await said(clew, bob, "still mine")


@pytest.mark.asyncio
async def test_a_login_ends_by_itself(clew: Clew) -> None:
    bob = await logged_in(clew, "bob")
    await clew.service.store._db.write(lambda db: db.execute("UPDATE logins SET expires = created").rowcount)
    assert (await clew.get("/login", headers=bob))[1]["login"] is True


@pytest.mark.asyncio
async def test_logins_are_bounded_and_the_oldest_goes(clew: Clew) -> None:
    first = last = await logged_in(clew, "bob")
    for _ in range(MOST):
        await clew.service.store._db.write(lambda db: db.execute("UPDATE logins SET created = created - 1").rowcount)
        last = await logged_in(clew, "bob")
    assert len(await clew.service.store.logins(clew.service.time.wall())) == MOST
    assert (await clew.get("/login", headers=first))[1]["login"] is True
    assert (await clew.get("/login", headers=last))[1]["login"] is False


# Attacks ---------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_session_that_was_planted_is_worth_nothing(clew: Clew) -> None:
    planted = {"Cookie": "__Host-clew_login=planted; clew_login=planted"}
    status, _, cookie = await opened(clew, await link_for(clew, "bob"), **planted)
    assert status == 200
    assert "planted" not in cookie
    assert (await clew.get("/login", headers=PAGE | planted))[1]["login"] is True
    # Logging in anew ends what the browser was before.
    before = PAGE | {"Cookie": cookie}
    await opened(clew, await link_for(clew, "olga"), Cookie=cookie)
    assert (await clew.get("/login", headers=before))[1]["login"] is True


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://chat.example.org.evil.example"},
        {"Origin": "https://evil.example/chat.example.org"},
        {"Origin": "https://chat.example.org:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
    ],
)
async def test_no_other_page_does_anything_with_the_owners_cookie(clew: Clew, headers: dict[str, str]) -> None:
    olga = await logged_in(clew, "olga")
    sent = HOST | {"Cookie": olga["Cookie"]} | headers
    for method, path, body in CHANGES:
        async with clew.http.request(method, clew.url + path, json=body, headers=sent) as response:
            assert response.status in (401, 403), path
    assert await clew.service.store.access_requests() == []
    assert len(await clew.service.store.logins(clew.service.time.wall())) == 1


@pytest.mark.asyncio
async def test_no_other_page_logs_a_browser_in_as_somebody_else(clew: Clew) -> None:
    link = await link_for(clew, "bob")
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site", "Origin": "null"}):
        assert (await opened(clew, link, **headers))[0] == 403
    secret = link.partition("#")[2]
    async with clew.http.post(f"{clew.url}/login/link", data={"link": secret}, headers=PAGE) as response:
        assert response.status == 400, "a form is not taken"
    assert (await opened(clew, link))[0] == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "chat.example.org.evil.example"},
        {"Host": "evil.example:443", "X-Forwarded-Host": "chat.example.org"},
        {"Host": "chat.example.org@evil.example"},
        {"Host": "chat.example.org:1"},
        {"Host": "evil.example", "Forwarded": "host=chat.example.org"},
        {"Host": "evil.example", "X-Original-URL": "/api/v1/status"},
        {"Host": ""},
    ],
)
async def test_a_name_that_is_not_ours_is_not_answered_to(clew: Clew, headers: dict[str, str]) -> None:
    bob = await logged_in(clew, "bob")
    for path in ("/", "/login", "/login/link", "/api/v1/chats/local/messages"):
        assert (await clew.get(path, headers={"Cookie": bob["Cookie"]} | headers))[0] == 403


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers", [{"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "127.0.0.1"}, {"X-Forwarded-User": "ada"}, {"Remote-User": "ada"}]
)
async def test_nobody_becomes_the_owner_by_what_they_say_of_themselves(clew: Clew, headers: dict[str, str]) -> None:
    assert (await clew.get("/api/v1/status", headers=HOST | headers))[0] == 401


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "//evil.example/%2e%2e",
        "/login?next=https://evil.example",
        "/login/link?next=//evil.example",
        "/\\evil.example",
        "/login/../../evil.example",
        "/static/..%2f..%2fauth.py",
        "/static/....//auth.py",
        "/static/%2e%2e%2fauth.py",
        "/login/link/..%2f..%2fapi/v1/status",
        "/api/v1/../../etc/passwd",
    ],
)
async def test_no_path_leads_elsewhere(clew: Clew, path: str) -> None:
    async with clew.http.get(f"{clew.url}{path}", headers=HOST, allow_redirects=False) as response:
        assert "Location" not in response.headers
        assert response.status in (200, 400, 401, 404)
        assert "import hmac" not in await response.text()


@pytest.mark.asyncio
async def test_links_cannot_be_guessed(clew: Clew) -> None:
    link = await link_for(clew, "bob")
    assert len(link.partition("#")[2]) >= 43  # 256 bits
    for number in range(TRIES):
        status, answer, _ = await opened(clew, f"#{number}")
        assert (status, answer["error"]) == (401, "This link logs nobody in (any more).")
    status, _, _ = await opened(clew, link)
    assert status == 429, "not even the right one"
    assert (await clew.get("/api/v1/status", headers=OWNER))[0] == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("link", ["", "x" * 101, "\x00", "' OR 1=1 --", "{}"])
async def test_whatever_stands_in_a_link_is_no_error_of_ours(clew: Clew, link: str) -> None:
    async with clew.http.post(f"{clew.url}/login/link", json={"link": link}, headers=PAGE) as response:
        assert response.status in (400, 401)


@pytest.mark.asyncio
@pytest.mark.parametrize("cookie", ["", "x", "x" * 4000, '"', "a=b", "%00", "' OR 1=1 --", "1800000000.0" + "a" * 64])
async def test_whatever_a_browser_sends_as_its_cookie_is_nobody(clew: Clew, cookie: str) -> None:
    headers = HOST | {"Cookie": f"__Host-clew_login={cookie}"}
    assert (await clew.get("/api/v1/status", headers=headers))[0] == 401
    # Another name for it, which a page on a domain beside ours could set, is not looked at.
    bob = (await logged_in(clew, "bob"))["Cookie"].partition("=")[2]
    assert (await clew.get("/login", headers=HOST | {"Cookie": f"clew_login={bob}"}))[1]["login"] is True


@pytest.mark.asyncio
async def test_a_second_browser_of_the_owner_is_seen_and_can_be_ended(clew: Clew) -> None:
    async with clew.http.post(f"{clew.url}/login", json={"token": TOKEN}, headers=PAGE | {"User-Agent": "Phone " * 50}) as response:
        assert response.status == 200
    (login,) = (await clew.get("/api/v1/logins", headers=OWNER))[1]["logins"]
    assert (login["person"], login["how"], login["agent"]) == ("ada", "token", ("Phone " * 50)[:120])
    assert (await clew.ask_locally("DELETE", "/api/v1/logins?person=ada"))[1]["told"] == ["One browser was logged out, of ada."]
