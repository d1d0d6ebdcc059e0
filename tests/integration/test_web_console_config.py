"""The console's page of the config: what counts and where it comes from, what is wrong with the file, and taking it over."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

from clew.cli.options import source
from clew.config import Config
from tests.integration.console_harness import HOSTILE, seen, sent
from tests.integration.web_harness import Clew, running, settings

KEY = "k3y-with-odd-signs-Zx9Qw7Er5Ty3"
FILE = """\
data_dir: {folder}
http: {{port: 0}}
providers:
  none: {{kind: offline}}
  far: {{kind: anthropic, model: claude-sonnet-5-5, api_key: "${{file:{folder}/key}}", base_url: "http://ada:swordfish7@127.0.0.1:9/"}}
agent:
  provider: none
  compression:
    trigger_messages: 40
"""


@dataclass(slots=True)
class Kept:
    """A clew with the file that its config was read from, and what was read."""

    clew: Clew
    file: Path
    read: list[Config]

    def write(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))

    async def page(self) -> str:
        return await seen(self.clew, "/console/config")

    async def take_over(self) -> tuple[int, str]:
        return await sent(self.clew, "/console/config", do="reload")


@asynccontextmanager
async def kept(folder: Path) -> AsyncIterator[Kept]:
    file = folder / "clew.yaml"
    (folder / "key").write_text(KEY)
    file.write_text(FILE.format(folder=folder))
    read: list[Config] = []
    where = source(file, read.append)
    async with running(where.read(), where) as clew:
        yield Kept(clew, file, read)


def row(page: str, key: str) -> list[str]:
    """The cells of a value: what it is, and where it comes from."""
    [found] = re.findall(rf'<th scope="row">{re.escape(key)}</th>(.*?)</tr>', page, re.DOTALL)
    return [unescape(re.sub("<[^>]+>", "", cell)).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", found, re.DOTALL)]


@pytest.mark.asyncio
async def test_every_value_is_shown_with_where_it_comes_from_and_without_secrets(tmp_path: Path) -> None:  # P19, BO-099
    async with kept(tmp_path) as found:
        page = await found.page()
    assert row(page, "agent.compression.trigger_messages") == ["40", "line 9"]
    assert row(page, "agent.compression.keep_recent") == ["8", ""]
    assert row(page, "providers.far.api_key") == ["***", f"line 5, the file {tmp_path}/key"]
    assert row(page, "providers.far.model") == ["claude-sonnet-5-5", "line 5"]
    assert row(page, "transports.telegram.enabled") == ["false", ""]
    assert "swordfish7" not in page
    assert KEY not in page
    assert ">counts<" in page
    assert str(found.file) in page


@pytest.mark.asyncio
async def test_a_change_is_told_and_taken_over_by_the_button(tmp_path: Path) -> None:
    async with kept(tmp_path) as found:
        found.write("trigger_messages: 40", "trigger_messages: 50")
        found.write("http: {port: 0}", "http: {port: 0, public_url: https://clew.example}")
        page = await found.page()
        assert ">not taken over<" in page
        assert "<code>agent.compression.trigger_messages</code> <span><del>40</del> → <ins>50</ins>" in page
        assert "<code>http.public_url</code>" in page
        assert await found.take_over() == (303, "/console/config")
        assert found.clew.service.config.agent.compression.trigger_messages == 50
        assert found.clew.service.config.http.public_url is None
        page = await found.page()
        assert ">needs a restart<" in page
        assert "trigger_messages</code>" not in page
        assert row(page, "agent.compression.trigger_messages") == ["50", "line 9"]


@pytest.mark.asyncio
async def test_a_secret_that_changed_is_told_and_never_shown(tmp_path: Path) -> None:  # P19, BO-099
    async with kept(tmp_path) as found:
        (tmp_path / "key").write_text("another-" + KEY)
        page = await found.page()
        assert "<code>providers.far.api_key</code> <span><del>***</del> → <ins>***</ins></span>" in page
        assert KEY not in page
        await found.take_over()
        assert "another-" + KEY in found.read[-1].secrets()  # whoever keeps the log free of secrets was told
        assert ">counts<" in await found.page()


MISTAKES: list[tuple[str, str, str]] = [
    ("  compression:", "  compression:\n    max_mesages: 20", "clew.yaml:9:5 agent.compression.max_mesages"),
    ("agent:", "agnet: {}\nagent:", "clew.yaml:6:1 agnet"),
    ("trigger_messages: 40", "trigger_messages: twenty", "clew.yaml:9:23 agent.compression.trigger_messages"),
    ("agent:", "transports: {terminal: {require_mention: true}}\nagent:", "transports.terminal.require_mention"),
]


@pytest.mark.asyncio
async def test_a_faulty_file_is_told_with_its_places_and_changes_nothing(tmp_path: Path) -> None:  # BO-100
    async with kept(tmp_path) as found:
        good = found.file.read_text()
        for old, new, told in MISTAKES:
            found.file.write_text(good)
            found.write(old, new)
            page = unescape(await found.page())
            assert ">faulty<" in page
            assert told in page
            assert await found.take_over() == (303, "/console/config")
            assert found.clew.service.config.agent.compression.trigger_messages == 40
        assert "did you mean agent?" in unescape(await with_text(found, good.replace("agent:", "agnet: {}\nagent:")))
        assert ">faulty<" in await with_text(found, f"agent: {{{HOSTILE}: 1}}")
        assert "<img src=x" not in await found.page()
        found.file.unlink()
        assert "there is no such file" in await found.page()
        assert await found.take_over() == (303, "/console/config")


async def with_text(found: Kept, text: str) -> str:
    found.file.write_text(text)
    return await found.page()


@pytest.mark.asyncio
async def test_what_is_allowed_and_has_no_effect_is_noted(tmp_path: Path) -> None:
    async with kept(tmp_path) as found:
        found.write("trigger_messages: 40", "{trigger_messages: 10, keep_recent: 8}")
        found.write("compression:\n    {", "compression: {")
        assert "agent.compression: trigger_messages (10) is only 2 above keep_recent (8)" in await found.page()


@pytest.mark.asyncio
async def test_without_a_file_to_read_again_the_page_shows_what_counts(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "c")) as clew:
        page = await seen(clew, "/console/config")
        assert "was not started by" in page
        assert row(page, "agent.compression.trigger_messages") == ["60", ""]
        assert "<form" not in page
        status, page = await sent(clew, "/console/config", do="reload")
        assert (status, "cannot read its config again" in page) == (400, True)


@pytest.mark.asyncio
async def test_only_the_owner_sees_it_and_only_clews_own_page_takes_it_over(tmp_path: Path) -> None:
    async with kept(tmp_path) as found:
        found.write("trigger_messages: 40", "trigger_messages: 50")
        for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await sent(found.clew, "/console/config", headers, do="reload"))[0] == 403
        assert (await sent(found.clew, "/console/config", do="restart"))[0] == 400
        assert found.clew.service.config.agent.compression.trigger_messages == 40
    async with running(settings(tmp_path / "g", http={"port": 0, "token": "a-long-enough-token"})) as guarded:
        assert "trigger_messages" not in await seen(guarded, "/console/config", 401)
