"""From the README to the first reply, on a machine that has never seen clew."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from tests.acceptance.test_browser import FLAGS, PATIENCE_MS
from tests.servers import find_program

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.asyncio]

ROOT = Path(__file__).parents[2]
PORT = 8130
STEPS = ["git clone <this repository> clew && cd clew", "make run"]
"""What the README has one type before the first reply; the address is opened and something written then."""


def block() -> list[str]:
    """The first commands of the README."""
    found = re.search(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found
    return [re.sub(r"\s+#.*", "", line) for line in found[1].splitlines()]


def free() -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", PORT)) != 0


@pytest.mark.timeout(900)
async def test_two_commands_lead_to_the_first_reply(tmp_path: Path) -> None:
    if not free():
        pytest.skip(f"something listens on port {PORT}, where the example config has the page")
    assert block() == STEPS
    home, checkout = tmp_path / "home", tmp_path / "clew"
    home.mkdir()
    checkout.mkdir()
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, tracked):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, checkout / name)
    kept = {name: value for name, value in os.environ.items() if not re.match(r"CLEW_|XDG_|ANTHROPIC_|OPENAI_|VIRTUAL_ENV", name)}
    clew = await asyncio.create_subprocess_exec(
        "make",
        "run",
        cwd=checkout,
        env={**kept, "HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert clew.stdout is not None
        async with asyncio.timeout(800):
            while not (ready := re.search(rb"ready: (http://\S+)", line := await clew.stdout.readline())):
                assert line, "make run ended before clew was ready"
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_program("chromium"), args=FLAGS)
            page = await browser.new_page()
            await page.goto(ready[1].decode())
            await page.get_by_role("textbox").fill("Good morning! The spare key is under the mat.")
            await page.keyboard.press("Enter")
            messages = page.get_by_role("log", name="Messages")
            await expect(messages.get_by_text("No model is configured")).to_be_visible(timeout=PATIENCE_MS)
            await browser.close()
        assert (home / ".local/share/clew/clew.db").exists()
    finally:
        os.killpg(clew.pid, signal.SIGTERM)
        await clew.wait()
