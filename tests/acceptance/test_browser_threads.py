"""The console's threads in a real browser: what htmx makes smoother, and that all of it works without a script too."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from clew.web.console.threads import PAGE, THREAD, THREADS
from tests.acceptance.test_browser import PATIENCE_MS, browser, chromium
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo
from tests.integration.engine import chat_script
from tests.integration.test_web_console_threads import import_rows, talk
from tests.integration.web_harness import Clew, running, settings

__all__ = ["browser", "chromium"]

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

ROWS = 2 * PAGE + 20
SUMMARY = "add | fact | local | said | #1 | The pump has 4 valves."


@pytest_asyncio.fixture(loop_scope="module")
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with OpenAIEmulator(script=chat_script(echo, SUMMARY)) as model:
        agent = {"compression": {"trigger_messages": 60, "keep_recent": 2}}
        async with running(settings(tmp_path / "c", base_url=model.base_url, agent=agent)) as found:
            yield found


async def rows(page: Page) -> list[int]:
    """The rows that are shown, from above."""
    return [int(each[1:]) for each in await page.locator(".transcript .said").evaluate_all("all => all.map(each => each.id)")]


async def test_a_thread_is_found_read_searched_compacted_and_undone(clew: Clew, browser: Browser) -> None:  # P20, P21, P24
    await import_rows(clew, "longer", ROWS)
    session = await talk(clew, *(f"The pump has {number} valves." for number in range(5)))
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    await page.clock.install()

    await page.goto(clew.url + THREADS)
    await page.get_by_role("searchbox").fill("An old one")
    await page.get_by_role("searchbox").press("Enter")
    await page.get_by_role("link", name="An old one").click()
    await expect(page.locator(".transcript .said")).to_have_count(PAGE)
    await page.evaluate("window.stayed = true")
    for shown in (2 * PAGE, ROWS):
        await page.get_by_role("link", name="Earlier messages").press("Enter")
        await expect(page.locator(".transcript .said")).to_have_count(shown)
        if shown < ROWS:
            await expect(page.get_by_role("link", name="Earlier messages")).to_be_focused()
    assert await rows(page) == list(range(1, ROWS + 1))
    await expect(page.get_by_role("link", name="Earlier messages")).to_have_count(0)
    assert await page.evaluate("window.stayed")

    await page.goto(f"{clew.url}{THREAD}?id={session}")
    await talk(clew, "One more valve.")
    await page.clock.fast_forward(11_000)
    await expect(page.locator("#m12")).to_contain_text("answer to:", timeout=PATIENCE_MS)
    assert await rows(page) == list(range(1, 13))

    await page.get_by_role("button", name="Pin #3").press("Enter")
    await expect(page.locator("#m3")).to_contain_text("pinned")
    await page.get_by_role("link", name="Compactions (0)").click()
    await page.get_by_role("link", name="Compact now…").click()
    await expect(page.get_by_text("10 messages would go into the summary")).to_be_visible()
    await page.get_by_label("What the summary must keep").fill("the valves")
    await page.get_by_role("button", name="Compact now").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Compaction 1")
    await expect(page.locator(".diff ins").filter(has_text="4 valves").first).to_be_visible()
    await page.get_by_role("button", name="Undo this compaction").click()
    await expect(page.get_by_role("heading", name="Compaction 1")).to_contain_text("undone")

    await page.get_by_role("link", name="Search", exact=True).click()
    await page.get_by_role("searchbox").fill("how many valves")
    await page.get_by_role("searchbox").press("Enter")
    await page.locator(".hits a").first.click()
    await expect(page.locator(".said:target")).to_have_count(1)
    assert complaints == []
    await page.close()


async def test_the_overview_renews_itself_and_leaves_the_focus_where_it_is(clew: Clew, browser: Browser) -> None:
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    await page.clock.install()
    await page.goto(f"{clew.url}/console")
    links = page.locator("#now a")
    assert await links.evaluate_all("all => all.filter(each => !each.id).length") == 0
    await links.first.focus()
    await page.evaluate("document.getElementById('now').dataset.old = 'yes'")
    clew.service.host("web").report(False, "the line is cut")
    await page.clock.fast_forward(11_000)
    await expect(page.get_by_text("web: the line is cut")).to_be_visible()
    assert await page.locator("#now").get_attribute("data-old") is None
    await expect(links.first).to_be_focused()
    await page.close()


async def test_without_a_script_a_thread_is_read_page_by_page_and_deleted(clew: Clew, browser: Browser) -> None:  # P4
    await import_rows(clew, "longer", ROWS)
    context = await browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = await context.new_page()
    await page.goto(f"{clew.url}{THREAD}?id=longer")
    await expect(page.locator("#m120")).to_be_visible()
    await page.get_by_role("link", name="Earlier messages").click()
    await expect(page.locator(".said")).to_have_count(PAGE)
    await expect(page.locator("#m70")).to_be_visible()
    await page.get_by_role("link", name="Later messages").click()
    await expect(page.locator("#m71")).to_be_visible()
    await page.get_by_role("link", name="What the model saw").first.wait_for(state="detached")
    await page.get_by_role("link", name="Delete…").click()
    await page.get_by_role("link", name="Keep it").click()
    await page.get_by_role("link", name="Delete…").click()
    await page.get_by_role("button", name="Delete it for good").click()
    await expect(page.get_by_text("There are no threads yet.")).to_be_visible()
    await context.close()
