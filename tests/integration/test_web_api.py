"""The JSON API, monitoring and webhooks over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from clew.connections import Running
from clew.transport import Route
from clew.web.app import build
from clew.web.openapi import BASE
from clew.web.transport import LookIn
from tests.integration.web_harness import Clew, Tab, running, settings

JOB = {"name": "water", "cron": "30 7 * * *", "prompt": "Does it rain?", "deliver_to": "web:local"}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c", schedule=[JOB])) as found:
        yield found


async def talk(clew: Clew, *texts: str) -> str:
    """Say something on the chat page, wait for the replies. Returns the session."""
    async with Tab.open(clew) as tab:
        for number, text in enumerate(texts):
            await tab.say(f"m{number}", text)
            await tab.until("message", in_reply_to=f"m{number}")
    session = await clew.service.store.current_session("web:local")
    assert session is not None
    return session


@pytest.mark.asyncio
async def test_every_route_is_described_and_nothing_else(clew: Clew) -> None:
    status, document = await clew.get("/api/v1/openapi.json")
    assert status == 200
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    served = {
        (route.method, route.resource.canonical)
        for route in build(clew.service).router.routes()
        if route.resource and route.resource.canonical.startswith(BASE) and route.method not in ("HEAD", "*")
    }
    assert described == served - {("GET", f"{BASE}/openapi.json")}
    assert len(described) > 40
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation["summary"]
            _check_references(operation, document["components"]["schemas"])


def _check_references(value: Any, schemas: dict[str, Any]) -> None:
    if isinstance(value, dict):
        if "$ref" in value:
            assert value["$ref"].removeprefix("#/components/schemas/") in schemas
        for each in value.values():
            _check_references(each, schemas)
    elif isinstance(value, list):
        for each in value:
            _check_references(each, schemas)


@pytest.mark.asyncio
async def test_sessions_are_listed_shown_and_read(clew: Clew) -> None:  # P4
    session = await talk(clew, "remember the harbour")
    status, listed = await clew.get("/api/v1/sessions")
    assert (status, [row["id"] for row in listed["sessions"]]) == (200, [session])
    assert (await clew.get(f"/api/v1/sessions/{session[:6]}"))[1] == listed["sessions"][0]
    _, transcript = await clew.get(f"/api/v1/sessions/{session}/transcript?limit=1")
    assert [(each["role"], each["text"]) for each in transcript["messages"]] == [("user", "remember the harbour")]
    assert transcript["more"] is True
    _, rest = await clew.get(f"/api/v1/sessions/{session}/transcript?after=1")
    assert [each["role"] for each in rest["messages"]] == ["assistant"]
    assert rest["messages"][0]["blocks"][0]["kind"] == "text"
    assert await clew.get(f"/api/v1/sessions/{session}/compactions") == (200, {"compactions": []})


@pytest.mark.asyncio
async def test_an_export_comes_back_equal(clew: Clew) -> None:  # P4
    session = await talk(clew, "Grüße 東京", "and more")
    _, export = await clew.get(f"/api/v1/sessions/{session}/export")
    status, conflict = await clew.post("/api/v1/sessions/import", export)
    assert status == 409
    assert session in conflict["error"]
    async with clew.http.delete(f"{clew.url}/api/v1/sessions/{session}") as response:
        assert (response.status, await response.json()) == (200, {"session": session, "messages": 4})
    assert (await clew.get(f"/api/v1/sessions/{session}"))[0] == 404
    assert await clew.post("/api/v1/sessions/import", export) == (200, {"session": session})
    _, status = await clew.get("/api/v1/status")
    assert (status["work"]["import"]["state"], status["work"]["import"]["done"]) == ("done", len(export["messages"]))
    assert await clew.get(f"/api/v1/sessions/{session}/export") == (200, export)


@pytest.mark.asyncio
async def test_a_compaction_is_previewed_and_done(clew: Clew) -> None:  # P24
    session = await talk(clew, *[f"message {number} about the harbour wall" for number in range(8)])
    status, preview = await clew.post(f"/api/v1/sessions/{session}/compact?preview=1", {})
    assert status == 200
    assert preview["demoted"] > 0
    assert (await clew.get(f"/api/v1/sessions/{session}/compactions"))[1] == {"compactions": []}
    status, outcome = await clew.post(f"/api/v1/sessions/{session}/compact", {"focus": "the wall"})
    assert (status, outcome["state"]) == (200, "done")
    _, done = await clew.get(f"/api/v1/sessions/{session}/compactions")
    assert [each["covered"] for each in done["compactions"]] == [preview["demoted"]]


@pytest.mark.asyncio
async def test_a_compaction_is_undone_and_written_anew(clew: Clew) -> None:  # P21
    session = await talk(clew, *[f"message {number} about the harbour wall" for number in range(8)])
    assert (await clew.post(f"/api/v1/sessions/{session}/undo-compaction", {}))[0] == 404
    await clew.post(f"/api/v1/sessions/{session}/compact", {})
    status, outcome = await clew.post(f"/api/v1/sessions/{session}/redo", {"focus": "the wall"})
    assert (status, outcome["state"], outcome["covered"]) == (200, "done", 8)
    assert (await clew.post(f"/api/v1/sessions/{session}/redo", {"instructions": "x" * 10_001}))[0] == 400
    status, undone = await clew.post(f"/api/v1/sessions/{session}/undo-compaction", {})
    assert (status, undone["covered"], undone["undone_at"] is None) == (200, 8, False)
    _, done = await clew.get(f"/api/v1/sessions/{session}/compactions")
    assert [each["undone_at"] is None for each in done["compactions"]] == [False, False]


@pytest.mark.asyncio
async def test_messages_are_pinned_listed_and_let_go(clew: Clew) -> None:  # P13
    session = await talk(clew, "Never deploy on Fridays.", "two")
    status, pinned = await clew.post(f"/api/v1/sessions/{session}/pins", {"message": "#1"})
    assert (status, pinned["new"], pinned["behind"], pinned["message"]["text"]) == (200, True, False, "Never deploy on Fridays.")
    _, listed = await clew.get(f"/api/v1/sessions/{session}/pins")
    assert [each["message"]["seq"] for each in listed["pins"]] == [1]
    assert (await clew.post(f"/api/v1/sessions/{session}/pins", {"message": "nonsense"}))[0] == 404
    async with clew.http.delete(f"{clew.url}/api/v1/sessions/{session}/pins/{pinned['message']['id']}") as response:
        assert (response.status, (await response.json())["new"]) == (200, True)
    assert (await clew.get(f"/api/v1/sessions/{session}/pins"))[1] == {"pins": []}


@pytest.mark.asyncio
async def test_a_chat_is_read_forwards_and_backwards(clew: Clew) -> None:
    await talk(clew, *[f"text {number}" for number in range(6)])
    _, whole = await clew.get("/api/v1/chats/local/messages")
    seqs = [each["seq"] for each in whole["messages"]]
    assert len(seqs) == 12
    assert seqs == sorted(seqs)
    assert whole["more"] is False
    _, newest = await clew.get("/api/v1/chats/local/messages?limit=5")
    assert ([each["seq"] for each in newest["messages"]], newest["more"]) == (seqs[-5:], True)
    _, older = await clew.get(f"/api/v1/chats/local/messages?limit=5&before={seqs[-5]}")
    assert ([each["seq"] for each in older["messages"]], older["more"]) == (seqs[2:7], True)
    _, oldest = await clew.get(f"/api/v1/chats/local/messages?limit=5&before={seqs[2]}")
    assert ([each["seq"] for each in oldest["messages"]], oldest["more"]) == (seqs[:2], False)
    _, after = await clew.get(f"/api/v1/chats/local/messages?limit=5&after={seqs[3]}")
    assert ([each["seq"] for each in after["messages"]], after["more"]) == (seqs[4:9], True)


@pytest.mark.asyncio
async def test_a_job_is_listed_and_run(clew: Clew) -> None:  # P45
    _, listed = await clew.get("/api/v1/jobs")
    assert [(job["name"], job["enabled"], job["spec"]["prompt"]) for job in listed["jobs"]] == [("water", True, "Does it rain?")]
    async with Tab.open(clew) as tab:
        assert await clew.post("/api/v1/jobs/water/run", {}) == (200, {"job": "water"})
        await tab.until("message", role="assistant")
    assert (await clew.post("/api/v1/jobs/nothing/run", {}))[0] == 404
    _, history = await clew.get("/api/v1/jobs/water/history")
    assert [(run["outcome"], run["delivery"]) for run in history["runs"]] == [("done", "sent")]
    assert (await clew.get("/api/v1/jobs/nothing/history"))[0] == 404


@pytest.mark.asyncio
async def test_jobs_are_made_switched_and_removed(clew: Clew) -> None:  # P45, BO-085
    body = {"prompt": "Feed the cat", "deliver_to": "web:local", "cron": "0 7 * * *", "timezone": "Europe/Berlin"}
    status, made = await clew.post("/api/v1/jobs", body)
    assert (status, made["job"], len(made["coming"])) == (200, "feed-the-cat", 5)
    _, listed = await clew.get("/api/v1/jobs")
    cat = next(job for job in listed["jobs"] if job["name"] == "feed-the-cat")
    assert (cat["origin"], cat["enabled"], cat["coming"], cat["spec"]["timezone"]) == ("api", True, made["coming"], "Europe/Berlin")
    assert (await clew.post("/api/v1/jobs", {**body, "name": "feed-the-cat"}))[0] == 400
    for wrong in (
        {"cron": "0 0 31 2 *"},
        {"cron": None},
        {"command": "true"},
        {"deliver_to": "nowhere:ada"},
        {"at": "2020-01-01T00:00", "cron": None},
        {"deliver_to": "web:日 本"},
        {"deliver_to": "web:local/"},
        {"deliver_to": "web:local/../x"},
        {"name": "nul\0z"},
        {"name": ".."},
        {"prompt": "\0\x1b"},
        {"name": "two\nlines"},
        {"prompt": "p" * 10_001},
    ):
        status, refused = await clew.post("/api/v1/jobs", {**body, **wrong})
        assert (status, bool(refused["error"])) == (400, True)
    assert (await clew.post("/api/v1/jobs/feed-the-cat/disable", {}))[1] == {"job": "feed-the-cat", "enabled": False}
    assert (await clew.post("/api/v1/jobs/feed-the-cat/enable", {}))[1] == {"job": "feed-the-cat", "enabled": True}
    async with clew.http.delete(f"{clew.url}/api/v1/jobs/feed-the-cat") as response:
        assert response.status == 200
    async with clew.http.delete(f"{clew.url}/api/v1/jobs/water") as response:
        assert "is in the config" in (await response.json())["error"]


async def changed(clew: Clew, job: str, **fields: object) -> tuple[int, Any]:
    async with clew.http.patch(f"{clew.url}/api/v1/jobs/{job}", json=fields) as response:
        return response.status, await response.json()


async def job_of(clew: Clew, name: str) -> dict[str, Any]:
    _, listed = await clew.get("/api/v1/jobs")
    found: dict[str, Any] = next(job for job in listed["jobs"] if job["name"] == name)
    return found


@pytest.mark.asyncio
async def test_a_job_is_changed_in_one_step_and_keeps_its_history_and_its_clock(clew: Clew) -> None:  # P45
    body = {"prompt": "Feed the cat", "deliver_to": "web:local", "every": "6h", "name": "cat", "grace": "1h"}
    assert (await clew.post("/api/v1/jobs", body))[0] == 200
    await clew.post("/api/v1/jobs/cat/run", {})
    before = await job_of(clew, "cat")
    status, answer = await changed(clew, "cat", prompt="Feed both cats", grace=None)
    after = await job_of(clew, "cat")
    assert (status, answer["coming"]) == (200, before["coming"]), "its clock goes on"
    assert (after["next_at"], after["spec"]["prompt"], after["spec"]["grace"]) == (before["next_at"], "Feed both cats", None)
    status, answer = await changed(clew, "cat", cron="0 7 * * *", timezone="Europe/Berlin", enabled=False)
    assert (status, answer["schedule"], answer["enabled"], answer["coming"]) == (200, "0 7 * * *", False, [])
    assert (await changed(clew, "cat", enabled=True))[1]["coming"][0].split("T")[1][:8] == "07:00:00"
    assert (await job_of(clew, "cat"))["spec"] | {"every": 1} == after["spec"] | {
        "cron": "0 7 * * *",
        "timezone": "Europe/Berlin",
        "every": 1,
    }
    _, history = await clew.get("/api/v1/jobs/cat/history")
    assert len(history["runs"]) == 1


@pytest.mark.asyncio
async def test_a_change_that_cannot_be_leaves_the_job_as_it_was(clew: Clew) -> None:  # P45, BO-085
    assert (await clew.post("/api/v1/jobs", {"prompt": "hi", "deliver_to": "web:local", "cron": "0 7 * * *", "name": "cat"}))[0] == 200
    before = await job_of(clew, "cat")
    wrong: tuple[dict[str, object], ...] = (
        {},
        {"cron": "61 * * * *"},
        {"cron": None},
        {"cron": "@daily", "every": "1h"},
        {"at": "2020-01-01T00:00"},
        {"timezone": "Mars/Olympus"},
        {"deliver_to": "nowhere:ada"},
        {"deliver_to": None},
        {"prompt": ""},
        {"prompt": None},
        {"prompt": "\0"},
        {"name": "dog"},
        {"command": "true"},
        {"misfire": "never"},
        {"enabled": "perhaps"},
    )
    for each in wrong:
        status, refused = await changed(clew, "cat", **each)
        assert (status, bool(refused["error"])) == (400, True), each
    assert await job_of(clew, "cat") == before
    assert (await changed(clew, "dog", prompt="hi"))[0] == 404
    assert "is in the config" in (await changed(clew, "water", prompt="hi"))[1]["error"]
    assert (await changed(clew, "water", enabled=False))[1]["enabled"] is False


@pytest.mark.asyncio
async def test_a_job_asks_no_more_than_a_message_may(tmp_path: Path) -> None:  # P45
    async with running(settings(tmp_path / "c", limits={"message_bytes": "1KiB"})) as clew:
        body = {"deliver_to": "web:local", "cron": "@daily"}
        status, refused = await clew.post("/api/v1/jobs", {**body, "prompt": "é" * 513})
        assert (status, "1,026 bytes, and 1,024 are the most" in refused["error"]) == (400, True)
        assert (await clew.post("/api/v1/jobs", {**body, "prompt": "é" * 512}))[0] == 200


@pytest.mark.asyncio
async def test_somebody_is_let_in(clew: Clew) -> None:  # P46
    await clew.service.store.sync({}, None, (), 1.0)
    async with Tab.open(clew) as tab:
        await tab.say("m1", "who am I?")
        await tab.until("error", id="m1")
    _, asked = await clew.get("/api/v1/access?state=open")
    (request,) = asked["requests"]
    assert request["identity"] == "web:local"
    status, answered = await clew.post(f"/api/v1/access/{request['code']}", {"approve": True, "role": "member"})
    assert (status, answered["identity"]) == (200, "web:local")
    assert (await clew.get("/api/v1/access?state=approved"))[1]["requests"][0]["code"] == request["code"]
    assert (await clew.post(f"/api/v1/access/{request['code']}", {"approve": True, "role": "guest"}))[0] == 200
    assert (await clew.post("/api/v1/access/NOSUCHCD", {"approve": True}))[0] == 404
    async with Tab.open(clew) as tab:
        await tab.say("m2", "and now?")
        await tab.until("ack", id="m2")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/api/v1/sessions/nosuchsession", None, 404, "nosuchsession"),
        ("GET", "/api/v1/sessions?limit=0", None, 400, "limit"),
        ("GET", "/api/v1/sessions?colour=red", None, 400, "colour"),
        ("GET", "/api/v1/chats/a%20b/messages", None, 400, "chat must be"),
        ("GET", "/api/v1/chats/local/messages?after=1&before=2", None, 400, "not both"),
        ("GET", "/api/v1/nothing", None, 404, ""),
        ("PUT", "/api/v1/sessions", b"{}", 405, ""),
        ("POST", "/api/v1/access/ABC", b'{"approve": "perhaps"}', 400, "approve"),
        ("POST", "/api/v1/access/ABC", b"{", 400, "not JSON"),
        ("POST", "/api/v1/access/ABC", b"[" * 60_000, 400, "not JSON"),
        ("POST", "/api/v1/access/ABC", b"[]", 400, "not a JSON object"),
        ("POST", "/api/v1/access/ABC", b"\xff\xfe{", 400, "not JSON"),
        ("POST", "/api/v1/access/ABC", b" " * 70_000, 413, "longer than"),
        ("POST", "/api/v1/sessions/import", b'{"clew": 1, "session": {"id": "x"}}', 422, "not an export"),
        ("POST", "/api/v1/sessions/import", b"{}", 400, "clew"),
        ("POST", "/api/v1/terminal/session", b"{}", 400, "socket"),
    ],
)
async def test_what_cannot_be_done_is_said(clew: Clew, method: str, path: str, body: bytes | None, status: int, words: str) -> None:
    headers = {"Content-Type": "application/json"}
    async with clew.http.request(method, clew.url + path, data=body, headers=headers) as response:
        answer = await response.json()
    assert response.status == status
    assert set(answer) == {"error", "hint"}
    assert words in answer["error"]


@pytest.mark.asyncio
async def test_without_a_terminal_session_latest_is_not_found(clew: Clew) -> None:
    status, answer = await clew.ask_locally("POST", "/api/v1/terminal/session", {"session": "latest"})
    assert status == 404
    assert "clew chat" in answer["hint"]


@pytest.mark.asyncio
async def test_monitors_see_health_readiness_and_figures(clew: Clew) -> None:
    assert await clew.get("/healthz") == (200, {"ok": True})
    assert await clew.get("/readyz") == (200, {"ready": True, "reasons": []})
    clew.service.host("web").report(False, "somebody pulled the plug")
    assert await clew.get("/readyz") == (503, {"ready": False, "reasons": ["web: somebody pulled the plug"]})
    assert (await clew.get("/healthz"))[0] == 200
    async with clew.http.get(f"{clew.url}/metrics") as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert 'clew_transport_up{transport="web"} 0.0' in await response.text()
    assert (await clew.get("/api/v1/status"))[1]["ready"] is False


class Hook(LookIn):
    """A platform that calls in."""

    def routes(self) -> Sequence[Route]:
        return [Route("POST", "", self.take), Route("GET", "/verify", self.verify)]

    async def take(self, request: web.Request) -> web.Response:
        return web.Response(status=202, text=f"took {len(await request.read())}")

    async def verify(self, request: web.Request) -> web.Response:
        return web.Response(text=request.query["challenge"])


@pytest.mark.asyncio
async def test_platforms_call_in_under_any_name(clew: Clew) -> None:
    clew.service.transports["hook"] = Running(Hook(), True, "", 0.0)
    headers = {"Host": "chat.example.org", "Origin": "https://platform.example"}
    async with clew.http.post(f"{clew.url}/webhooks/hook", data=b"x" * 100, headers=headers) as response:
        assert (response.status, await response.text()) == (202, "took 100")
    async with clew.http.get(f"{clew.url}/webhooks/hook/verify?challenge=17") as response:
        assert await response.text() == "17"
    for method, path, status in (("POST", "hook/none", 404), ("GET", "none", 404), ("PUT", "hook", 405), ("GET", "web", 404)):
        async with clew.http.request(method, f"{clew.url}/webhooks/{path}") as response:
            assert response.status == status


@pytest.mark.asyncio
async def test_a_webhook_that_fails_is_our_fault_and_says_nothing_of_it(clew: Clew) -> None:
    clew.service.transports["hook"] = Running(Hook(), True, "", 0.0)
    async with clew.http.get(f"{clew.url}/webhooks/hook/verify") as response:
        answer = await response.json()
    assert response.status == 500
    assert "challenge" not in str(answer)


@pytest.mark.asyncio
async def test_pages_can_be_switched_off_and_the_api_stays(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "off", transports={"web": {"enabled": False}})) as clew:
        for path in ("/", "/chat/ws", "/static/page.js", "/login"):
            async with clew.http.get(clew.url + path) as response:
                assert response.status == 404
        assert (await clew.get("/api/v1/status"))[0] == 200


@pytest.mark.asyncio
async def test_many_ask_at_once(clew: Clew) -> None:
    await talk(clew, "hello")
    answers = await asyncio.gather(*(clew.get("/api/v1/chats/local/messages") for _ in range(50)))
    assert {status for status, _ in answers} == {200}


@pytest.mark.asyncio
async def test_messages_are_found_as_on_the_command_line(clew: Clew) -> None:  # P37
    session = await talk(clew, "the aubergine ledger is in the blue drawer")
    status, found = await clew.get("/api/v1/search?query=blue+drawer")
    (hit,) = [each for each in found["messages"] if each["role"] == "user"]
    assert (status, hit["session"], hit["chat"], hit["why"]) == (200, session, "web:local", ["blue", "drawer"])
    assert hit["score"] > 0
    assert (await clew.get("/api/v1/search?query=blue+drawer&person=owner"))[1] == found
    assert (await clew.get(f"/api/v1/search?query=blue+drawer&session={session}"))[1] == {"messages": []}  # it is in view there
    assert (await clew.get("/api/v1/search?query=blue+drawer&chat=mqtt:ada"))[1] == {"messages": []}
    assert (await clew.get("/api/v1/search?query=x&person=nobody"))[0] == 404
    assert (await clew.get("/api/v1/search?query=x&person=owner&chat=web:local"))[0] == 400
    assert (await clew.get("/api/v1/search"))[0] == 400


@pytest.mark.asyncio
async def test_what_was_recalled_for_a_turn_is_told_with_its_reasons(clew: Clew) -> None:  # P31
    first = await talk(clew, "the aubergine ledger is in the blue drawer")
    async with Tab.open(clew) as tab:
        for identifier, text in (("n", "/new"), ("q", "where is the aubergine ledger?")):
            await tab.say(identifier, text)
            await tab.until("message", in_reply_to=identifier)
    session = await clew.service.store.current_session("web:local")
    assert session not in (None, first)
    status, told = await clew.get(f"/api/v1/sessions/{session}/recalled")
    assert (status, told["asked"]) == (200, "where is the aubergine ledger?")
    quoted = next(each for each in told["excerpts"] if each["role"] == "user")
    assert (quoted["session"], quoted["why"], quoted["shown"]) == (first, ["aubergine", "ledger"], True)
    assert quoted["age"] >= 0
    assert (await clew.get(f"/api/v1/sessions/{session}/recalled?message=%231"))[1] == told
    assert (await clew.get(f"/api/v1/sessions/{session}/recalled?message=nothing"))[0] == 404


@pytest.mark.asyncio
async def test_the_index_is_built_anew_and_says_how_far_it_is(clew: Clew) -> None:  # P20
    await talk(clew, "the aubergine ledger is in the blue drawer")
    assert (await clew.get("/api/v1/index"))[1] == {"rebuilding": False, "done": 0, "total": 0}
    status, begun = await clew.post("/api/v1/index/rebuild", {})
    assert (status, begun) == (200, {"rebuilding": True, "done": 0, "total": 2})
    while (await clew.get("/api/v1/index"))[1]["rebuilding"]:
        pass
    assert await clew.service.store.check() == []
    assert (await clew.get("/api/v1/search?query=aubergine"))[1]["messages"]
