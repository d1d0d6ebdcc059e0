"""The console: what its pages show, who sees them, and what its buttons do."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio

from clew.booking import booked
from clew.store import JobEffect, Reply, Settlement
from clew.transport import Address, Part
from clew.web.app import HEADERS
from clew.web.console.schedule import HISTORY, JOB_PAGE, JOBS
from clew.web.wire import BODY_BYTES
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.server import Fault
from tests.integration.web_harness import DEADLINE_S, Clew, Tab, running, settings

TOKEN = "a-long-enough-token"
JOB = {"name": "water", "cron": "30 2 * * 1-5", "timezone": "Europe/Berlin", "prompt": "Does it rain?", "deliver_to": "web:local"}
HOSTILE = '<img src=x onerror="hacked()">\'&'
PAGES = ("/console", "/console/schedule", f"{JOB_PAGE}?name=water")
OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c", schedule=[JOB])) as found:
        yield found


@pytest_asyncio.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "g", schedule=[JOB], http={"port": 0, "token": TOKEN})) as found:
        yield found


async def seen(clew: Clew, path: str, **options: Any) -> tuple[int, str]:
    async with clew.http.get(clew.url + path, **options) as response:
        assert response.content_type == "text/html"
        return response.status, await response.text()


async def press(clew: Clew, name: str, do: str, headers: dict[str, str] = OWN) -> tuple[int, str]:
    """Status, and where it leads."""
    data = {"name": name, "do": do}
    async with clew.http.post(clew.url + JOB_PAGE, data=data, headers=headers, allow_redirects=False) as response:
        return response.status, response.headers.get("Location", "")


async def enabled(clew: Clew, name: str = "water") -> bool:
    return (await clew.service.store.job(name)).enabled


async def make(clew: Clew, name: str, prompt: str = "hello") -> None:
    """A job whose name and prompt nobody looked at."""
    fields = {"name": "x", "prompt": prompt, "deliver_to": "web:local", "every": "1h"}
    now = clew.service.time.wall()
    effect, _ = booked(fields, taken=(), origin="api", person=None, now=now, zone="UTC")
    spec = json.dumps(json.loads(effect.spec) | {"name": name})
    await clew.service.store.change_job(JobEffect("add", name, None, spec, effect.next_at, "api"), now)


@pytest.mark.asyncio
async def test_the_overview_says_what_readyz_says_and_counts_the_queues(clew: Clew) -> None:
    status, page = await seen(clew, "/console")
    assert status == 200
    _, answer = await clew.get("/api/v1/status")
    assert answer["ready"] is True
    assert '<span class="tag good">ready</span>' in page
    assert set(answer["spent"]) >= {"today", "this_month"}
    for words in (*answer["spent"].values(), answer["version"], "Outbox, dead", "web", "It is not being built anew"):
        assert words in page
    clew.service.host("web").report(False, "the line is cut")
    _, ready = await clew.get("/readyz")
    _, page = await seen(clew, "/console")
    assert '<span class="tag bad">not ready</span>' in page
    assert ready["reasons"] == ["web: the line is cut"]
    assert f"<li>{ready['reasons'][0]}</li>" in page


@pytest.mark.asyncio
async def test_a_part_of_a_page_is_drawn_alone_for_whoever_asks_for_it(clew: Clew) -> None:
    asks = {"HX-Request": "true", "HX-Target": "now"}
    _, page = await seen(clew, "/console")
    assert 'id="now" hx-get="/console" hx-trigger="every 10s"' in page
    _, part = await seen(clew, "/console", headers=asks)
    assert part.lstrip().startswith('<div id="now"')
    assert "Outbox, dead" in part
    for headers in (asks | {"HX-Target": "nosuch"}, asks | {"HX-Target": ""}, {"HX-Target": "now"}):
        _, whole = await seen(clew, "/console", headers=headers)
        assert "<!doctype html>" in whole


@pytest.mark.asyncio
async def test_the_navigation_says_where_one_is(clew: Clew) -> None:
    for path, said in (("/console", "page"), ("/console/schedule", "page"), (f"{JOB_PAGE}?name=water", "true")):
        _, page = await seen(clew, path)
        place = "Overview" if path == "/console" else "Schedule"
        assert re.findall(r'aria-current="(\w+)">(\w+)<', page) == [(said, place)]


@pytest.mark.asyncio
async def test_a_rebuild_of_the_index_is_shown(clew: Clew) -> None:
    await clew.service.store.rebuild_index()
    _, page = await seen(clew, "/console")
    assert "It is being built anew" in page
    assert "<progress" in page


@pytest.mark.asyncio
async def test_the_next_five_instants_are_those_of_the_command_line(clew: Clew, tmp_path: Path) -> None:  # P45
    await make(clew, "second")
    program = Path(sys.executable).with_name("clew")
    listing = await asyncio.create_subprocess_exec(
        program, "cron", "list", "--json", "--config", tmp_path / "c" / "clew.yaml", stdout=asyncio.subprocess.PIPE
    )
    jobs = {job["name"]: job for job in json.loads((await listing.communicate())[0])}
    assert set(jobs) == {"water", "second"}
    for name, job in jobs.items():
        _, page = await seen(clew, f"{JOB_PAGE}?name={name}")
        assert len(job["next"]) == 5
        assert re.findall(r'datetime="([^"]+)"', page) == job["next"]
    _, page = await seen(clew, "/console/schedule")
    assert re.findall(r'datetime="([^"]+)"', page) == jobs["second"]["next"] + jobs["water"]["next"]
    for words in ("At 02:30 on Monday through Friday", "30 2 * * 1-5", "Europe/Berlin", "every 1h", ">on<", "config", "api"):
        assert words in page


@pytest.mark.asyncio
async def test_buttons_turn_a_job_off_and_on_and_run_it(clew: Clew) -> None:  # P45
    there = f"{JOB_PAGE}?name=water"
    assert await press(clew, "water", "disable") == (303, there)
    assert not await enabled(clew)
    _, page = await seen(clew, there)
    assert 'value="enable"' in page
    assert "It is off." in page
    assert await press(clew, "water", "enable") == (303, there)
    assert await enabled(clew)
    async with Tab.open(clew) as tab:
        assert await press(clew, "water", "run") == (303, there)
        await tab.until("message", role="assistant")
    _, page = await seen(clew, there)
    assert re.findall(r'class="tag good">([^<]+)<', page) == ["on", "done", "reply sent"]


@pytest.mark.asyncio
async def test_what_others_named_and_wrote_stays_words(clew: Clew) -> None:
    await make(clew, HOSTILE, prompt=f"{HOSTILE} {{{{7*7}}}} \ud800\u202e")
    clew.service.host("web").report(False, HOSTILE)
    await clew.service.store.missed(HOSTILE, [1.0], None, 2.0, HOSTILE)
    nosuch = f"{JOB_PAGE}?name={quote(HOSTILE + 'x')}"
    for path in ("/console", "/console/schedule", f"{JOB_PAGE}?name={quote(HOSTILE)}", nosuch):
        _, page = await seen(clew, path)
        assert "<img src=x" not in page
        assert "&lt;img src=x onerror=" in page
        assert path == nosuch or HOSTILE in unescape(page)
        assert re.findall(r"<script[^>]*>|\son\w+=\"|javascript:|style=", page) == ['<script src="/static/htmx.min.js" defer>']
    status, where = await press(clew, HOSTILE, "disable")
    assert (status, await enabled(clew, HOSTILE)) == (303, False)
    status, page = await seen(clew, where)
    assert (status, "It is off." in page, "49" in re.findall(r'class="words"[^>]*>([^<]*)<', page)[0]) == (200, True, False)


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["..", "a/b?c#d%2F", "ä ö 🙂", "x" * 64])
async def test_any_name_of_a_job_has_a_page(clew: Clew, name: str) -> None:
    await make(clew, name)
    _, listing = await seen(clew, "/console/schedule")
    link = next(unescape(each) for each in re.findall(r'href="(/console/schedule/job[^"]+)"', listing) if "water" not in each)
    _, page = await seen(clew, link)
    assert f"<title>{name} · Schedule" in unescape(page)
    assert await press(clew, name, "disable") == (303, link)


@pytest.mark.asyncio
async def test_secrets_of_the_config_are_never_shown(guarded: Clew) -> None:
    await make(guarded, "leak", prompt=f"Use {TOKEN} there.")
    guarded.service.host("web").report(False, f"GET /bot{TOKEN}/me failed")
    page = ""
    for path in ("/console", "/console/schedule", f"{JOB_PAGE}?name=leak"):
        status, page = await seen(guarded, path, headers={"Authorization": f"Bearer {TOKEN}"})
        assert status == 200
        assert TOKEN not in page
    assert "Use [redacted" in page


@pytest.mark.asyncio
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Cookie": "clew_login=1.x"}])
async def test_nobody_else_sees_or_presses_anything(guarded: Clew, headers: dict[str, str]) -> None:
    for path in PAGES:
        status, page = await seen(guarded, path, headers=headers)
        assert status == 401
        assert "Log in on the chat page" in page
        assert "water" not in page
    assert await press(guarded, "water", "disable", headers | OWN) == (401, "")
    assert await enabled(guarded)


@pytest.mark.asyncio
async def test_a_browser_that_is_logged_in_sees_and_presses(guarded: Clew) -> None:
    async with guarded.http.post(f"{guarded.url}/login", json={"token": TOKEN}) as response:
        cookie = {"Cookie": response.headers["Set-Cookie"].partition(";")[0]}
    for path in PAGES:
        assert (await seen(guarded, path, headers=cookie))[0] == 200
    assert (await press(guarded, "water", "disable", cookie | {"Origin": guarded.url}))[0] == 303
    assert not await enabled(guarded)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
        {"X-Forwarded-For": "203.0.113.5", "Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_another_sites_form_presses_no_button(clew: Clew, headers: dict[str, str]) -> None:
    assert await press(clew, "water", "disable", headers) == (403, "")
    assert await enabled(clew)


@pytest.mark.asyncio
async def test_only_a_form_with_a_known_button_is_heard(clew: Clew) -> None:
    bodies: list[tuple[object, str, int]] = [
        ('{"name": "water", "do": "disable"}', "application/json", 400),
        ("name=water&do=disable", "text/plain", 400),
        ("name=water&do=remove", "application/x-www-form-urlencoded", 400),
        ("name=water", "application/x-www-form-urlencoded", 400),
        ("name=water&do=disable&more=1", "application/x-www-form-urlencoded", 400),
        ("&".join(["name=water"] * 20), "application/x-www-form-urlencoded", 400),
        ("name=water&do=disable&x=" + "y" * BODY_BYTES, "application/x-www-form-urlencoded", 413),
        ("name=nosuch&do=run", "application/x-www-form-urlencoded", 404),
        (b"\xff\xfe=%ff", "application/x-www-form-urlencoded", 400),
    ]
    for body, kind, expected in bodies:
        async with clew.http.post(clew.url + JOB_PAGE, data=body, headers=OWN | {"Content-Type": kind}) as response:
            assert (response.status, response.content_type) == (expected, "text/html")
    assert await enabled(clew)


@pytest.mark.asyncio
async def test_a_page_that_is_asked_for_changes_nothing_and_no_other_method_is_heard(clew: Clew) -> None:
    query = urlencode({"name": "water", "do": "disable"})
    assert (await seen(clew, f"{JOB_PAGE}?{query}"))[0] == 400
    for path in PAGES:
        for method in ("PUT", "PATCH", "DELETE"):
            async with clew.http.request(method, clew.url + path, headers=OWN) as response:
                assert response.status == 405
        async with clew.http.head(clew.url + path) as response:
            assert response.status == 200
    for path in PAGES[:2]:
        async with clew.http.post(clew.url + path, data={"name": "water", "do": "disable"}, headers=OWN) as response:
            assert response.status == 405
    assert await enabled(clew)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path", ["/console/schedule?page=0", "/console/schedule?page=x", "/console/schedule?x=1", JOB_PAGE, f"{JOB_PAGE}?name="]
)
async def test_what_makes_no_sense_is_said_on_a_page(clew: Clew, path: str) -> None:
    status, page = await seen(clew, path)
    assert status == 400
    assert "That did not work" in page


@pytest.mark.asyncio
async def test_a_long_schedule_comes_in_pages_and_a_long_history_ends(clew: Clew) -> None:
    for number in range(JOBS):
        await make(clew, f"job {number:03}")
    _, page = await seen(clew, "/console/schedule")
    assert page.count("<article") == JOBS
    assert "Page 1 of 2" in page
    _, page = await seen(clew, "/console/schedule?page=2")
    assert page.count("<article") == 1
    await clew.service.store.missed("water", [float(second) for second in range(HISTORY + 1)], None, 200.0, "it was off")
    _, page = await seen(clew, f"{JOB_PAGE}?name=water")
    assert page.count("it was off") == HISTORY
    assert f"the newest {HISTORY} runs" in page


@pytest.mark.asyncio
async def test_the_history_of_a_job_outlives_it(clew: Clew) -> None:
    await make(clew, "gone")
    await clew.service.store.missed("gone", [1.0], None, 2.0, "it was off")
    await clew.service.store.change_job(JobEffect("remove", "gone"), 3.0)
    status, page = await seen(clew, f"{JOB_PAGE}?name=gone")
    assert (status, "This job is no more" in page, "it was off" in page, "<form" in page) == (200, True, True, False)
    assert (await seen(clew, f"{JOB_PAGE}?name=never"))[0] == 404


@pytest.mark.asyncio
async def test_every_page_is_guarded_by_its_headers_and_goes_with_the_chat_page(clew: Clew, tmp_path: Path) -> None:
    for path in (*PAGES, f"{JOB_PAGE}?name=nosuch"):
        async with clew.http.get(clew.url + path) as response:
            assert {name: response.headers[name] for name in HEADERS} == HEADERS
            assert response.headers["Cache-Control"] == "no-store"
    async with running(settings(tmp_path / "off", transports={"web": {"enabled": False}})) as off:
        assert (await off.get("/console"))[0] == 404


@pytest.mark.asyncio
async def test_the_overview_names_what_failed_and_leads_there(tmp_path: Path) -> None:  # P25
    def refuse(body: object) -> Fault:
        return Fault(400, "invalid_request_error", f"no {HOSTILE} for {TOKEN}")

    async with OpenAIEmulator(script=refuse) as model:
        config = settings(tmp_path / "f", base_url=model.base_url, schedule=[JOB], http={"port": 0, "token": TOKEN})
        async with running(config) as clew:
            login = {"Authorization": f"Bearer {TOKEN}"}
            assert "No turn, reply, job or compaction failed" in (await seen(clew, "/console", headers=login))[1]
            store = clew.service.store
            async with Tab.open(clew, headers=login) as tab:
                await tab.say("one", "hello")
                await tab.until("message", role="assistant")
            await press(clew, "water", "run", OWN | login)
            async with asyncio.timeout(DEADLINE_S):
                while (await store.job_history("water", 1))[0]["outcome"] != "failed":
                    await store.changed(store.version, 1.0)
            session = await store.current_session("web:local")
            assert session is not None
            await store.compaction_failed(session, HOSTILE, [])
            await store.say(Reply(Address("nowhere", "x"), "hello", (Part("hello"),)), 1.0)
            delivery, _ = await store.claim_delivery("me", "nowhere", 2.0)
            assert delivery is not None
            await store.settle(delivery, Settlement("dead", reason=f"refused {HOSTILE}"), 3.0)
            _, page = await seen(clew, "/console", headers=login)
            errors = page[page.index('aria-labelledby="errors"') : page.index('aria-labelledby="index"')]
            kinds = re.findall(r'<a id="[^"]+" href="/console[^"]+">(Compaction|Job|Reply|Turn)</a>', errors)
            assert sorted(set(kinds)) == ["Compaction", "Job", "Reply", "Turn"]
            assert kinds[-1] == "Reply"
            assert "<img" not in errors
            assert TOKEN not in errors
            assert f"dead: refused {HOSTILE}" in unescape(errors)
            turn = re.findall(r'href="(/console/threads/turn[^"]+)"', errors)[0]
            _, page = await seen(clew, turn, headers=login)
            assert ">failed<" in page
            assert TOKEN not in page
