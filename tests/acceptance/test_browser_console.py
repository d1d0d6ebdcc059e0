"""The console's pages in a browser: what comes by itself with scripts, and that everything works without."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import structlog
from playwright.async_api import Browser, expect

from clew.store.notes import Where
from tests.acceptance.furnished import furnished
from tests.acceptance.test_browser import browser, chromium
from tests.integration.web_harness import Clew

__all__ = ["browser", "chromium"]

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module")
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with furnished(tmp_path) as found:
        yield found


async def test_new_lines_of_the_log_come_by_themselves_and_older_ones_stay(clew: Clew, browser: Browser) -> None:
    page = await browser.new_page()
    await page.goto(f"{clew.url}/console/log")
    await page.get_by_label("Event").fill("fresh.")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("#lines")).to_contain_text("No line of the log is like that.")
    for number in range(2):
        structlog.get_logger().info(f"fresh.{number}", session="abc", text="<b>bold</b>")
        await expect(page.locator(".log li")).to_have_count(number + 1)
    await expect(page.locator(".log li").first).to_contain_text("<b>bold</b>")
    await page.close()


async def test_without_scripts_every_form_works(clew: Clew, browser: Browser, tmp_path: Path) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()

    await page.goto(f"{clew.url}/console/outbox?state=dead")
    await page.get_by_role("button", name="Give up").click()
    await expect(page.get_by_text("Nothing waits to be sent.")).to_be_visible()

    await page.goto(f"{clew.url}/console/notes")
    await page.get_by_label("New preference").fill("tone")
    await page.get_by_label("Its value").fill("plain")
    await page.get_by_role("button", name="Set it").click()
    await expect(page.get_by_label("tone")).to_have_value("plain")
    await page.get_by_text("Change likes coffee").click()
    await page.get_by_label("What is so instead").locator("visible=true").fill("likes cocoa")
    await page.get_by_role("button", name="Note it").locator("visible=true").click()
    await expect(page.locator(".fact", has_text="likes cocoa (")).to_be_visible()
    notes = await clew.service.store.notes.listing(Where(person="ada"), "user", clew.service.time.wall())
    assert [each.key for each in notes.preferences] == ["style", "tone"]

    await page.goto(f"{clew.url}/console/approvals")
    await page.get_by_role("button", name=re.compile("^No")).click()
    await expect(page.get_by_text("No question waits.")).to_be_visible()

    file = tmp_path / "chosen.md"
    file.write_text("# Harbour\n\nThe crane lifts forty tons.\n")
    await page.goto(f"{clew.url}/console/documents")
    await page.get_by_label("A file of yours").set_input_files(file)
    await page.get_by_role("button", name="Upload").click()
    await page.get_by_label("Look for").fill("what does the crane lift")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_text("The crane lifts forty tons.")).to_be_visible()

    await page.goto(f"{clew.url}/console/config")
    await page.get_by_role("button", name="Take it over").click()
    await expect(page.get_by_role("heading", name="The file counts")).to_be_visible()
    assert clew.service.config.agent.compression.trigger_messages == 14

    await page.goto(f"{clew.url}/console/upkeep")
    await page.get_by_role("button", name="Back up now").click()
    await expect(page.get_by_role("heading", name="Upkeep")).to_be_visible()
    assert "backup" in {each.name for each in clew.service.progress.works}
    await context.close()
