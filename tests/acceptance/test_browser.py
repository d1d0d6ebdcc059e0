"""The chat page in a real browser, against a daemon started as a user starts it."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.acceptance import stamp
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo, say
from tests.emulators.server import Answer, Fault, JsonObject, Reply, Stall
from tests.pictures import png
from tests.servers import find_program, free_port

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
START_S = 30.0
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)

ATTACK = """<img src=x onerror="window.hacked=1"> <script>window.hacked=1</script>

[a](javascript:window.hacked=1) [b](data:text/html;base64,PGI+) [c](  JaVaScRiPt:window.hacked=1 ) <javascript:window.hacked=1>
![d](https://track.example/pixel.png) [**e**](https://example.org/?q="><img>)

| <img src=x onerror="window.hacked=1"> | [f](vbscript:x) |
|---|---|
| `<svg onload=window.hacked=1>` | **<b onclick=window.hacked=1>g</b>** |

```<img src=x onerror="window.hacked=1">
</code></pre><script>window.hacked=1</script>
```
"""


@dataclass(slots=True)
class Daemon:
    """`clew run` as a process of its own, on one port for ever."""

    config: Path
    url: str
    environment: dict[str, str] = field(default_factory=dict)
    process: Process | None = None

    async def start(self) -> None:
        program = Path(sys.executable).with_name("clew")
        environment = {**os.environ, **self.environment}
        self.process = await asyncio.create_subprocess_exec(
            program, "run", "--config", self.config, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        assert self.process.stdout is not None
        async with asyncio.timeout(START_S):
            while self.url not in (line := (await self.process.stdout.readline()).decode()):
                assert line, "clew run ended before it was ready"

    async def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.communicate()
        self.process = None


@pytest_asyncio.fixture(loop_scope="module")
async def emulator() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=echo) as server:
        yield server


@asynccontextmanager
async def daemon_in(
    folder: Path, base_url: str, *, http: JsonObject | None = None, environment: dict[str, str] | None = None, **extra: object
) -> AsyncIterator[Daemon]:
    port = free_port()
    config = folder / "clew.yaml"
    model = {"kind": "openai", "base_url": base_url, "model": "any", "context_window": 32768}
    values = {"data_dir": str(folder / "data"), "http": {"port": port} | (http or {}), "providers": {"model": model}}
    config.write_text(json.dumps(values | extra))
    daemon = Daemon(config, f"http://127.0.0.1:{port}/", environment or {})
    await daemon.start()
    try:
        yield daemon
    finally:
        if daemon.process is not None:
            await daemon.kill()


@pytest_asyncio.fixture(loop_scope="module")
async def daemon(tmp_path: Path, emulator: OpenAIEmulator) -> AsyncIterator[Daemon]:
    async with daemon_in(tmp_path, emulator.base_url) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """One for a whole module: it takes longer to start than most tests take."""
    program = find_program("chromium")
    if program is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        await running.close()


@pytest_asyncio.fixture(loop_scope="module")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    """With nothing in it of another test: pages, cookies and storage are of a context, and those end with the test."""
    yield chromium
    for context in chromium.contexts:
        await context.close()


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    made = await browser.new_context(viewport={"width": 1280, "height": 800})
    yield made
    await made.close()


async def open_page(context: BrowserContext, daemon: Daemon) -> Page:
    page = await context.new_page()
    await page.goto(daemon.url)
    await connected(page)
    return page


async def connected(page: Page) -> None:
    await expect(page.locator("#state")).to_have_attribute("data-state", "open")


async def say_on(page: Page, text: str) -> None:
    await page.locator("#text").fill(text)
    await page.locator("#text").press("Enter")


async def test_a_chat_survives_reload_kill_and_restart(daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator) -> None:
    """P2, P42, P48"""
    page = await open_page(context, daemon)
    await expect(page.locator("#empty")).to_be_visible()
    await say_on(page, "the first message")
    await expect(page.locator(".assistant .prose")).to_contain_text(["the first message"])
    await expect(page.locator("#empty")).to_be_hidden()
    await page.reload()
    await connected(page)
    await expect(page.locator(".entry")).to_have_count(2)

    await daemon.kill()
    await expect(page.locator("#state")).not_to_have_attribute("data-state", "open")
    await say_on(page, "written while it was down")
    await expect(page.locator(".user").last).to_have_attribute("data-state", "pending")
    await daemon.start()
    await connected(page)
    await expect(page.locator(".assistant .prose")).to_contain_text(["the first message", "written while it was down"])
    await expect(page.locator(".user")).to_have_count(2)
    await expect(page.locator(".user").last).to_have_attribute("data-state", "sent")
    assert len(emulator.calls) == 2

    await page.reload()
    await expect(page.locator(".entry")).to_have_count(4)
    await expect(page.locator(".user .bubble")).to_have_text(["the first message", "written while it was down"])
    assert len(emulator.calls) == 2


async def test_a_message_outlives_the_page_that_wrote_it(daemon: Daemon, context: BrowserContext) -> None:  # P42
    page = await open_page(context, daemon)
    await daemon.kill()
    await expect(page.locator("#state")).not_to_have_attribute("data-state", "open")
    await say_on(page, "closed too early")
    await page.close()
    await daemon.start()
    again = await open_page(context, daemon)
    await expect(again.locator(".user .bubble")).to_have_text(["closed too early"])
    await expect(again.locator(".assistant .prose")).to_contain_text(["closed too early"])


async def test_killed_while_it_speaks_the_reply_comes_once(daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator) -> None:
    """P48: the half that was shown goes, the reply stands there once."""
    emulator.script = lambda body: say("one two three four five six seven eight")
    stall = Stall(after=4)
    emulator.faults.append(stall)
    page = await open_page(context, daemon)
    await say_on(page, "count")
    await expect(page.locator("#preview .prose")).to_contain_text("one")
    await daemon.kill()
    stall.until.set()
    await expect(page.locator("#preview")).to_be_hidden()
    await daemon.start()
    await connected(page)
    await expect(page.locator(".assistant .prose")).to_have_text(["one two three four five six seven eight"])
    await expect(page.locator("#preview")).to_be_hidden()
    await expect(page.locator(".user")).to_have_count(1)


async def test_two_tabs_show_the_same_once(daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator) -> None:  # BO-122
    one, two = await open_page(context, daemon), await open_page(context, daemon)
    await say_on(one, "from the first tab")
    await say_on(two, "from the second tab")
    for page in (one, two):
        await expect(page.locator(".user")).to_have_count(2)
        await expect(page.locator(".assistant").last).to_contain_text("tab")
        await expect(page.locator("#preview")).to_be_hidden()
    texts = [sorted(await page.locator(".entry").all_inner_texts()) for page in (one, two)]
    assert texts[0] == texts[1]
    assert len(emulator.calls) in (1, 2)


async def test_a_name_that_is_none_opens_no_chat(daemon: Daemon, context: BrowserContext) -> None:
    page = await context.new_page()
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    await page.goto(f"{daemon.url}?chat=bad%20chat/../x")
    await expect(page.locator("#notice")).to_contain_text("“bad chat/../x” is no name for a chat")
    await expect(page.locator("#text")).to_be_disabled()
    await page.evaluate("dispatchEvent(new Event('online'))")
    assert sockets == []
    await page.goto(f"{daemon.url}?chat=")
    await connected(page)


async def test_a_reply_that_says_that_there_is_none_is_marked(daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator) -> None:
    page = await open_page(context, daemon)
    emulator.faults.append(Fault(401, "authentication_error", "no"))
    await say_on(page, "one")
    await expect(page.locator(".assistant.unanswered")).to_have_count(1)
    await say_on(page, "two")
    await expect(page.locator(".assistant")).to_have_count(2)
    await page.reload()
    await expect(page.locator(".assistant")).to_have_count(2)
    await expect(page.locator(".assistant.unanswered")).to_have_count(1)


GIVEN = """(element, [kind, bytes]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "other.png", { type: "image/png" }));
    const event = kind === "drop" ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
        : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    element.dispatchEvent(event);
}"""


async def test_photos_are_chosen_dropped_pasted_sent_and_shown(
    daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator
) -> None:  # P47
    page = await open_page(context, daemon)
    await page.locator("#file").set_input_files({"name": "photo.png", "mimeType": "image/png", "buffer": png()})
    for count, kind in ((2, "drop"), (3, "paste")):
        await page.locator("#text").evaluate(GIVEN, [kind, list(png(grey=count))])
        await expect(page.locator(".chosen li:not(.busy)")).to_have_count(count)
    await page.locator(".chosen li:last-child button").click()
    await expect(page.locator(".chosen li")).to_have_count(2)
    await say_on(page, "")
    await expect(page.locator(".assistant .prose")).to_have_count(1)
    await expect(page.locator(".chosen")).to_be_hidden()
    for _ in range(2):
        pictures = page.locator(".entry.user .file img")
        await expect(pictures).to_have_count(2)
        await expect(pictures.first).to_have_js_property("naturalWidth", 64)
        await expect(page.locator(".entry.user .bubble")).to_be_hidden()
        await page.reload()
        await connected(page)
    (body,) = [record.body for record in emulator.calls]
    assert [part["type"] for part in body["messages"][-1]["content"]] == ["text", "image_url", "image_url"]


async def test_a_file_that_is_too_large_is_said_and_not_uploaded(
    tmp_path: Path, emulator: OpenAIEmulator, context: BrowserContext
) -> None:  # P47
    async with daemon_in(tmp_path, emulator.base_url, limits={"attachment_bytes": 1000}) as daemon:
        page = await open_page(context, daemon)
        await page.locator("#file").set_input_files({"name": "a.bin", "mimeType": "", "buffer": bytes(1001)})
        await expect(page.locator("#notice")).to_contain_text("a.bin is too large")
        await expect(page.locator("#send")).to_be_disabled()


async def test_words_of_a_model_stay_words(daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator) -> None:
    emulator.script = lambda body: say(ATTACK)
    page = await open_page(context, daemon)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await say_on(page, '<img src=x onerror="window.hacked=1">')
    reply = page.locator(".assistant .prose")
    await expect(reply).to_contain_text('<img src=x onerror="window.hacked=1"> <script>window.hacked=1</script>')
    await expect(reply).to_contain_text("a (javascript:window.hacked=1)")
    assert await page.locator("#log").locator("img, script, svg, iframe, b, style").count() == 0
    links = await reply.locator("a").evaluate_all("links => links.map(link => [link.protocol, link.rel])")
    assert links
    assert {tuple(link) for link in links} == {("https:", "noopener noreferrer nofollow")}
    assert await page.evaluate("window.hacked") is None
    assert complaints == []
    assert [url for url in requests if not url.startswith(daemon.url)] == []


async def test_markdown_is_drawn(daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator) -> None:
    source = [
        "# Title",
        "Some *soft* and **loud** words, `code`, ~~old~~, a_name_with_lines, 2 * 3 * 4 and https://example.org/a_(b).",
        "",
        "1. one\n2. two\n   - inner\n\n     ```py\n     x = 1\n     ```\n3. three",
        "",
        "> quoted\n> twice",
        "",
        "| a | b |\n|:--|--:|\n| 1 | 2 |",
        "",
        "---",
        "```\n# not a heading\n```",
    ]
    emulator.script = lambda body: say("\n".join(source))
    page = await open_page(context, daemon)
    await say_on(page, "draw")
    reply = page.locator(".assistant .prose")
    await expect(reply.locator("h3")).to_have_text("Title")
    await expect(reply.locator("em")).to_have_text(["soft"])
    await expect(reply.locator("strong")).to_have_text(["loud"])
    await expect(reply.locator("del")).to_have_text(["old"])
    await expect(reply.locator("p > code")).to_have_text(["code"])
    await expect(reply.locator("> p a")).to_have_attribute("href", "https://example.org/a_(b)")
    await expect(reply.locator("> p").first).to_contain_text("a_name_with_lines, 2 * 3 * 4 and")
    await expect(reply.locator("> ol > li")).to_have_count(3)
    await expect(reply.locator("ol ul > li")).to_contain_text(["inner"])
    await expect(reply.locator("ol pre code")).to_have_text(["x = 1"])
    await expect(reply.locator("blockquote")).to_contain_text("quoted")
    await expect(reply.locator("td")).to_have_text(["1", "2"])
    await expect(reply.locator("hr")).to_have_count(1)
    await expect(reply.locator("> .code pre")).to_have_text("# not a heading")


async def test_texts_of_marks_alone_are_drawn_in_a_moment(daemon: Daemon, context: BrowserContext) -> None:
    page = await open_page(context, daemon)
    source = """async () => {
        const { render } = await import("/static/markdown.js");
        const texts = ["*", "[", "](", "`", "**a", "_a ", "<", "> ", "- ", "| ", "~~~", "http://", "\\\\", "1. ", "`` ` "];
        return texts.map((text) => render(text.repeat(60000 / text.length)).textContent.length);
    }"""
    assert len(await page.evaluate(source)) == 15


async def test_what_is_too_long_is_said_and_kept(daemon: Daemon, context: BrowserContext) -> None:
    page = await open_page(context, daemon)
    await say_on(page, "x" * 200_000)
    await expect(page.locator("#notice")).to_contain_text("too long")
    assert await page.locator("#text").input_value() == "x" * 200_000
    await expect(page.locator(".entry")).to_have_count(0)


async def test_what_is_refused_says_so_and_can_be_written_again(tmp_path: Path, emulator: OpenAIEmulator, context: BrowserContext) -> None:
    async with daemon_in(tmp_path, emulator.base_url, limits={"queued_per_chat": 1}) as daemon:
        hold = emulator.hold()
        page = await open_page(context, daemon)
        await say_on(page, "runs")
        await hold.reached.wait()
        await say_on(page, "waits")
        await expect(page.locator(".user[data-state=sent]")).to_have_count(2)
        await say_on(page, "one too many")
        refused = page.locator(".user[data-state=failed]")
        await expect(refused).to_contain_text("Not taken")
        await refused.locator(".again").click()
        await expect(page.locator("#text")).to_have_value("one too many")
        hold.release()
        await expect(page.locator(".assistant")).to_contain_text(["could not take", "runs", "waits"])
        await page.locator("#text").press("Enter")
        await expect(page.locator(".assistant").last).to_contain_text("one too many")


async def test_older_messages_are_loaded_where_one_reads(daemon: Daemon, context: BrowserContext, emulator: OpenAIEmulator) -> None:
    page = await open_page(context, daemon)
    # Commands are answered without the model; 120 of them are more than a page is given at first.
    for number in range(120):
        await page.evaluate("text => { document.querySelector('#text').value = text; }", f"/status {number}")
        await page.evaluate("document.querySelector('#composer').requestSubmit()")
        if number % 20 == 19:
            await expect(page.locator(".assistant")).to_have_count(number + 1)
    await page.reload()
    await expect(page.locator(".entry")).to_have_count(200)
    older = page.locator("#older")
    await expect(older).to_be_visible()
    await older.click()
    await expect(page.locator(".entry")).to_have_count(240)
    await expect(older).to_be_hidden()
    await expect(page.locator(".user .bubble").first).to_have_text("/status 0")
    await expect(page.locator(".day:visible")).to_have_count(1)


async def test_a_link_logs_a_member_in_and_leaves_the_owners_things_alone(
    tmp_path: Path, emulator: OpenAIEmulator, context: BrowserContext
) -> None:  # P33
    people = {"ada": {"role": "owner"}, "bob": {"role": "member"}}
    async with daemon_in(tmp_path, emulator.base_url, http={"token": "open sesame"}, people=people) as daemon:
        program = Path(sys.executable).with_name("clew")
        asked = await asyncio.create_subprocess_exec(
            program, "access", "web", "bob", "--config", daemon.config, stdout=PIPE, stderr=DEVNULL
        )
        link = (await asked.communicate())[0].decode().strip()
        page = await context.new_page()
        await page.goto(link)
        await expect(page.get_by_role("heading")).to_have_text("Log in to clew")
        assert "#" not in page.url, "the secret does not stay in the address"
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("#state")).to_have_attribute("data-state", "open")
        await expect(page.locator("#to-console")).to_be_hidden()
        await expect(page.locator("#logout")).to_have_attribute("title", "Logged in as bob")
        await page.locator("#text").fill("a members words")
        await page.locator("#text").press("Enter")
        await expect(page.locator(".entry.assistant, .bubble").last).to_contain_text("a members words")
        again = await context.new_page()
        await again.goto(link)
        await again.get_by_role("button", name="Log in").click()
        await expect(again.locator("#link-error")).to_contain_text("This link logs nobody in")
        await page.locator("#logout").click()
        await expect(page.locator("#login")).to_be_visible()


async def test_with_a_token_the_page_asks_once(tmp_path: Path, emulator: OpenAIEmulator, context: BrowserContext) -> None:
    async with daemon_in(tmp_path, emulator.base_url, http={"token": "open sesame"}) as daemon:
        page = await context.new_page()
        await page.goto(daemon.url)
        await page.locator("#token").fill("wrong")
        await page.locator("#token").press("Enter")
        await expect(page.locator("#login-error")).to_contain_text("not the token")
        await page.locator("#token").fill("open sesame")
        await page.locator("#token").press("Enter")
        await connected(page)
        await page.reload()
        await connected(page)
        await say_on(page, "I am in")
        await expect(page.locator(".assistant")).to_contain_text(["I am in"])
        await page.locator("#logout").click()
        await expect(page.locator("#login")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390, 1280])
async def test_nothing_is_wider_than_the_screen(daemon: Daemon, browser: Browser, emulator: OpenAIEmulator, width: int) -> None:
    wide = "| " + " | ".join("column" * 3 for _ in range(12)) + " |\n|" + "---|" * 12
    emulator.script = lambda body: say(f"{'x' * 500}\n\n```\n{'y' * 500}\n```\n\n{wide}\n\nhttps://example.org/{'z' * 500}")
    context = await browser.new_context(viewport={"width": width, "height": 700}, is_mobile=width < 700, has_touch=width < 700)
    page = await open_page(context, daemon)
    await page.locator("#text").fill("w" * 500)
    await page.locator("#send").click()
    await expect(page.locator(".assistant .prose")).to_contain_text("zzz")
    assert await page.evaluate("document.querySelector('#scroller').scrollWidth <= document.querySelector('#scroller').clientWidth")
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await page.locator("#text").evaluate("box => parseFloat(getComputedStyle(box).fontSize)") >= 16
    await context.close()


# A call that needs a yes --------------------------------------------------------------------------------------------


def sealing(body: JsonObject) -> Answer:
    last = body["messages"][-1]
    if last["role"] == "tool":
        return say(f"Then: {last['content']}")
    return Reply([{"type": "tool_use", "id": "c1", "name": "seal", "input": {"call": "letter"}}], "tool_use")


async def test_a_question_is_answered_by_a_button(tmp_path: Path, browser: Browser) -> None:
    environment = stamp.installed(tmp_path)
    async with OpenAIEmulator(script=sealing) as model, daemon_in(tmp_path, model.base_url, environment=environment) as daemon:
        page = await browser.new_page()
        await page.goto(daemon.url)
        await connected(page)
        for button, outcome in (("No", "Then: "), ("Yes", "stamped letter")):
            await page.locator("#text").fill("seal the letter")
            await page.keyboard.press("Enter")
            question = page.locator(".entry.assistant", has=page.locator(".choices")).last
            await expect(question).to_contain_text('call: "letter"')
            await page.reload()
            await expect(page.locator(".choices")).to_have_count(1)
            await daemon.kill()
            await daemon.start()
            await question.get_by_role("button", name=button, exact=True).click()
            await expect(page.locator(".entry.assistant").last).to_contain_text(outcome)
            await expect(page.locator(".choices")).to_have_count(0)
        assert stamp.stamps(tmp_path) == ["letter"]
        await page.reload()
        await expect(page.locator(".entry.assistant").last).to_contain_text("stamped letter")
        await expect(page.locator(".choices")).to_have_count(0)
        await page.close()


# The console ---------------------------------------------------------------------------------------------------------

JOBS = [
    {"name": "morning", "cron": "30 7 * * 1-5", "timezone": "Europe/Berlin", "prompt": "What is on today?", "deliver_to": "web:local"},
    {"name": "<b>x</b>" + "y" * 56, "every": "6h", "prompt": f"<img src=x onerror=window.hacked=1> {'z' * 500}", "deliver_to": "web:local"},
]
FAINT = """() => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => parts(colour).slice(0, 3).map((value) => value / 255)
        .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = (element) => {
        const colour = getComputedStyle(element).backgroundColor;
        return parts(colour)[3] === 0 ? ground(element.parentElement) : colour;
    };
    const told = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    return [...document.querySelectorAll("body *")].filter(told).filter((element) => {
        const [one, other] = [getComputedStyle(element).color, ground(element)].map(light).sort((a, b) => a - b);
        return (other + 0.05) / (one + 0.05) < 4.5;
    }).map((element) => element.outerHTML);
}"""
"""Elements whose words have less contrast than 4.5:1 (WCAG 2.2, 1.4.3)."""


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 320)])
async def test_the_console_is_read_and_used_by_keyboard(
    tmp_path: Path, emulator: OpenAIEmulator, browser: Browser, theme: Literal["light", "dark"], width: int
) -> None:
    async with daemon_in(tmp_path, emulator.base_url, schedule=JOBS, http={"token": "open sesame"}) as daemon:
        phone = width < 700
        context = await browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=theme, is_mobile=phone, has_touch=phone, reduced_motion="reduce"
        )
        page = await context.new_page()
        await page.goto(f"{daemon.url}console")
        await page.get_by_role("link", name="Log in on the chat page").click()
        await page.locator("#token").fill("open sesame")
        await page.locator("#token").press("Enter")
        await connected(page)
        await expect(page.locator("#logout")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") == width
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        await page.get_by_role("link", name="Console").click()
        await looked_at(page, "Overview", tmp_path / "overview.png", width)
        await expect(page.get_by_role("heading", name="Health ready")).to_be_visible()

        await page.get_by_role("link", name="Schedule").click()
        await looked_at(page, "Schedule", tmp_path / "schedule.png", width)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()
        for button, state in (("Disable morning", "off"), ("Enable morning", "on")):
            await page.get_by_role("button", name=button).press("Enter")
            await expect(page.get_by_role("heading", name=f"morning {state}")).to_be_visible()
        await page.get_by_role("button", name="Run morning now").press("Enter")
        await expect(page.locator(".runs li")).to_have_count(1)
        await page.goto(daemon.url)
        await expect(page.locator(".assistant .prose")).to_contain_text(["What is on today?"])
        await page.go_back()
        await page.reload()
        await expect(page.locator(".runs li")).to_contain_text("done")
        await looked_at(page, "morning on", tmp_path / "job.png", width)
        assert await page.evaluate("window.hacked") is None
        assert complaints == []
        await context.close()


async def looked_at(page: Page, title: str, picture: Path, width: int) -> None:
    """That a page of the console fits its screen and can be read; its picture is kept."""
    await expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    await page.wait_for_load_state()  # words are there before their styles are
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await page.evaluate(FAINT) == []
    small = "all => all.filter(each => each.getBoundingClientRect().height < 24).map(each => each.outerHTML)"
    assert await page.locator("nav a, button").evaluate_all(small) == []
    await page.screenshot(path=picture, full_page=True)
