"""Who is let in, by which name, from which page; and where clew listens."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from clew.errors import ClewError
from clew.service import Service
from clew.web.app import HEADERS
from clew.web.auth import TRIES
from clew.web.server import serve
from tests.integration.web_harness import Clew, Tab, running, settings

TOKEN = "a-long-enough-token"
OWNER = {"Authorization": f"Bearer {TOKEN}"}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c")) as found:
        yield found


@pytest_asyncio.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Clew]:
    """A clew with a token and a public address."""
    http = {"port": 0, "token": TOKEN, "public_url": "https://chat.example.org"}
    async with running(settings(tmp_path / "g", http=http)) as found:
        yield found


@pytest.mark.asyncio
@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "localhost:1", "localhost", "127.0.0.1.evil.example:{port}", ""])
async def test_a_rebound_name_is_not_answered_to(clew: Clew, host: str) -> None:
    headers = {"Host": host.format(port=clew.listening.port)}
    for path in ("/", "/api/v1/status", "/login", "/metrics"):
        assert (await clew.get(path, headers=headers))[0] == 403
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with Tab.open(clew, headers=headers):
            pass
    assert caught.value.status == 403


@pytest.mark.asyncio
@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
async def test_names_of_this_machine_are_answered_to(clew: Clew, host: str) -> None:
    headers = {"Host": host.format(port=clew.listening.port)}
    assert (await clew.get("/api/v1/status", headers=headers))[0] == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://localhost.evil.example:{port}", "x"])
async def test_another_sites_page_gets_no_socket_and_changes_nothing(clew: Clew, origin: str) -> None:
    headers = {"Origin": origin.format(port=clew.listening.port)}
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with Tab.open(clew, headers=headers):
            pass
    assert caught.value.status == 403
    assert (await clew.post("/api/v1/jobs/x/run", {}, headers=headers))[0] == 403
    assert (await clew.post("/login", {"token": "x"}, headers=headers))[0] == 403


@pytest.mark.asyncio
async def test_our_own_page_may(clew: Clew) -> None:
    headers = {"Origin": f"http://localhost:{clew.listening.port}"}
    async with Tab.open(clew, headers=headers) as tab:
        await tab.say("m1", "/help")
        await tab.until("ack", id="m1")


@pytest.mark.asyncio
async def test_a_form_of_another_site_cannot_post(clew: Clew) -> None:
    async with clew.http.post(f"{clew.url}/api/v1/access/X", data=b'{"approve": true}', headers={"Content-Type": "text/plain"}) as response:
        assert response.status == 400
    async with clew.http.post(f"{clew.url}/api/v1/jobs/x/run", headers={"Sec-Fetch-Site": "cross-site"}) as response:
        assert response.status == 403


@pytest.mark.asyncio
async def test_behind_a_proxy_nobody_is_the_owner_without_a_token(clew: Clew) -> None:
    status, answer = await clew.get("/api/v1/status", headers={"X-Forwarded-For": "203.0.113.5"})
    assert status == 403
    assert "http.token" in answer["error"]


@pytest.mark.asyncio
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}, {"Cookie": "clew_login=1.x"}])
async def test_with_a_token_set_nobody_comes_in_without_it(guarded: Clew, headers: dict[str, str]) -> None:
    for path in ("/api/v1/status", "/api/v1/chats/local/messages", "/metrics"):
        assert (await guarded.get(path, headers=headers))[0] == 401
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with Tab.open(guarded, headers=headers):
            pass
    assert caught.value.status == 401
    assert (await guarded.get("/login", headers=headers))[1]["login"] is True
    assert (await guarded.get("/healthz", headers=headers))[0] == 200


@pytest.mark.asyncio
async def test_the_token_as_bearer_is_the_owner(guarded: Clew) -> None:
    assert (await guarded.get("/api/v1/status", headers=OWNER))[0] == 200
    async with Tab.open(guarded, headers=OWNER) as tab:
        await tab.say("m1", "/help")
        await tab.until("ack", id="m1")


@pytest.mark.asyncio
async def test_a_browser_logs_in_once(guarded: Clew) -> None:
    async with guarded.http.post(f"{guarded.url}/login", json={"token": TOKEN}) as response:
        assert response.status == 200
        cookie = response.headers["Set-Cookie"]
    for flag in ("HttpOnly", "SameSite=Strict", "Secure", "Path=/"):
        assert flag in cookie
    assert TOKEN not in cookie
    headers = {"Cookie": cookie.partition(";")[0], "Host": "chat.example.org", "Origin": "https://chat.example.org"}
    assert (await guarded.get("/api/v1/status", headers=headers))[0] == 200
    assert (await guarded.get("/login", headers=headers))[1]["login"] is False
    async with Tab.open(guarded, headers=headers) as tab:
        await tab.say("m1", "/help")
        await tab.until("ack", id="m1")
    async with guarded.http.post(f"{guarded.url}/logout", headers=headers) as response:
        assert 'clew_login=""' in response.headers["Set-Cookie"]


@pytest.mark.asyncio
async def test_wrong_tokens_are_counted_however_they_come(guarded: Clew) -> None:
    for number in range(TRIES):
        if number % 2:
            assert (await guarded.post("/login", {"token": "wrong"}))[0] == 401
        else:
            assert (await guarded.get("/api/v1/status", headers={"Authorization": "Bearer wrong"}))[0] == 401
    async with guarded.http.post(f"{guarded.url}/login", json={"token": TOKEN}) as response:
        assert response.status == 429
        assert int(response.headers["Retry-After"]) > 0
    assert (await guarded.get("/api/v1/status", headers=OWNER))[0] == 200, "whoever has the token is not shut out by others"


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/", "/static/page.js", "/static/none", "/api/v1/status", "/api/v1/none", "/healthz", "/metrics"])
async def test_every_answer_is_guarded_by_its_headers(clew: Clew, path: str) -> None:
    async with clew.http.get(clew.url + path) as response:
        for name, value in HEADERS.items():
            assert response.headers[name] == value
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/app.py", "/static/", "/static/%00"])
async def test_only_the_pages_files_are_served(clew: Clew, path: str) -> None:
    async with clew.http.get(clew.url + path) as response:
        assert response.status == 404


@pytest.mark.asyncio
async def test_the_socket_is_its_owners_and_goes_with_the_daemon(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "s")) as clew:
        assert stat.S_IMODE(clew.listening.socket.stat().st_mode) == 0o600
        status, _ = await clew.ask_locally("GET", "/api/v1/status")
        assert status == 200
        path = clew.listening.socket
    assert not path.exists()


@pytest.mark.asyncio
async def test_what_a_killed_daemon_left_is_no_obstacle(tmp_path: Path) -> None:  # P48
    config = settings(tmp_path / "s")
    config.data_dir.mkdir()
    (config.data_dir / "clew.sock").write_text("")
    async with running(config) as clew:
        assert (await clew.ask_locally("GET", "/healthz"))[0] == 200


@pytest.mark.asyncio
async def test_a_port_in_use_is_told_with_what_to_do(tmp_path: Path, clew: Clew) -> None:
    config = settings(tmp_path / "second", http={"port": clew.listening.port})
    with pytest.raises(ClewError, match="Cannot listen on") as caught:
        async with running(config):
            pass
    assert "http.port" in caught.value.hint


@pytest.mark.asyncio
async def test_without_tcp_only_the_socket_listens(tmp_path: Path) -> None:
    async with Service.open(settings(tmp_path / "s"), remote=False) as service, serve(service, tcp=False) as listening:
        assert listening.port == 0
        reader, writer = await asyncio.open_unix_connection(listening.socket)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: clew\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in await reader.read()
        writer.close()
        await writer.wait_closed()


@pytest.mark.asyncio
async def test_the_address_to_open_is_the_public_one(guarded: Clew, clew: Clew) -> None:
    assert guarded.listening.url == "https://chat.example.org/"
    assert clew.listening.url == f"http://127.0.0.1:{clew.listening.port}/"


@pytest.mark.asyncio
async def test_a_path_too_long_for_a_socket_is_said(tmp_path: Path) -> None:
    config = settings(tmp_path / ("x" * 100))
    assert len(os.fsencode(config.data_dir)) > 107
    with pytest.raises(ClewError, match="at most 107 bytes") as caught:
        async with running(config):
            pass
    assert "data_dir" in caught.value.hint
