"""Every page for everybody: judged by axe-core in both themes, on a phone and a wide screen, and walked by keyboard.

The pages are those of the console's navigation and those that they lead to, so that a new one is among them by itself.
"""

import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from clew.web.console import PLACES
from tests.acceptance.furnished import furnished
from tests.acceptance.test_browser import browser, chromium, connected
from tests.integration.web_harness import Clew

__all__ = ["browser", "chromium"]

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

AXE = Path(__file__).parents[1] / "axe" / "axe.min.js"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Of axe-core 4.14.1, as npm has it."""
GRAVE = ("serious", "critical")
MOST_PAGES = 60
MOST_TABS = 80
"""Places on a page that are walked through."""
FOCUSED = """() => {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    const all = [...document.querySelectorAll("*")];
    return {
        html: element.outerHTML.slice(0, 200),
        order: all.indexOf(element),
        seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
        ring: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
    };
}"""


@pytest_asyncio.fixture(loop_scope="module")
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with furnished(tmp_path) as found:
        yield found


async def opened(page: Page, clew: Clew, path: str) -> None:
    answer = await page.goto(clew.url + path)
    assert answer is not None
    assert answer.status == 200, path
    if path == "/":
        await connected(page)


async def pages(page: Page, clew: Clew) -> AsyncIterator[str]:
    """Open the pages of the navigation, and one of each kind that they lead to, one after the other."""
    waiting, found = [place.path for place in PLACES], dict[str, str]()
    while waiting:
        path = waiting.pop(0)
        kind = re.sub(r"/[0-9a-z]{12}(?=/|$)", "/ID", urlsplit(path).path)
        if kind in found or len(found) >= MOST_PAGES:
            continue
        found[kind] = path
        await opened(page, clew, path)
        waiting += [link for link in await page.eval_on_selector_all("a[href]", LINKS) if link.startswith("/console")]
        yield path


LINKS = "all => all.map(each => each.getAttribute('href'))"


async def judged(page: Page, path: str) -> list[str]:
    """What axe has against a page, one line each."""
    await page.evaluate(f"() => {{ {AXE.read_text()} }}")
    result: dict[str, Any] = await page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{path}: {each['impact']} {each['id']}: {node['html'][:200]}"
        for each in result["violations"]
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_has_nothing_grave_against_any_page(
    clew: Clew, browser: Browser, tmp_path: Path, theme: Literal["light", "dark"], width: int
) -> None:
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == SHA256
    phone = width < 700
    context = await browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=theme, is_mobile=phone, has_touch=phone, reduced_motion="reduce"
    )
    page = await context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    findings, seen = list[str](), list[str]()
    async for path in pages(page, clew):
        seen.append(path)
        found = await judged(page, path)
        if (wide := await page.evaluate("document.documentElement.scrollWidth")) > width:
            found.append(f"{path}: is {wide} px wide")
        if found:
            await page.screenshot(path=tmp_path / f"{len(seen):02}.png", full_page=True)
        findings += found
    assert {place.path for place in PLACES} < set(seen)
    assert findings == []
    assert complaints == []
    await context.close()


async def test_every_page_is_walked_through_by_keyboard_in_order_and_one_sees_where_one_is(clew: Clew, browser: Browser) -> None:
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    findings = []
    async for path in pages(page, clew):
        if path == "/":
            continue  # its field has the focus when it opens
        walked = await walk(page)
        skip = walked[0]["html"] if walked else ""
        if 'class="skip"' not in skip:
            findings.append(f"{path}: does not begin with the link to its content, but {skip}")
        orders = [each["order"] for each in walked]
        if orders != sorted(orders) or len(orders) != len(set(orders)):
            findings.append(f"{path}: is walked in another order than it is read")
        findings += [f"{path}: cannot be seen: {each['html']}" for each in walked if not each["seen"]]
        findings += [f"{path}: does not show the focus: {each['html']}" for each in walked if not each["ring"]]
        await opened(page, clew, path)
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        if await page.evaluate("document.activeElement.id") != "main":
            findings.append(f"{path}: the first link does not lead to its content")
    assert findings == []
    await page.close()


async def walk(page: Page) -> list[dict[str, Any]]:
    """Where the focus goes with each press of Tab, up to the end of the page."""
    walked: list[dict[str, Any]] = []
    for _ in range(MOST_TABS):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(FOCUSED)
        if focused is None or (walked and focused["order"] == walked[0]["order"]):
            break
        walked.append(focused)
    return walked
