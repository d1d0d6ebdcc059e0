"""The console's pages of what is spent."""

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio

from clew.transport import Address
from clew.web.console.spend import SPEND, SPEND_THREAD, days_up_to
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import say
from tests.integration.console_harness import HOSTILE, seen
from tests.integration.engine import chat_script
from tests.integration.test_web_console_threads import talk
from tests.integration.web_harness import Clew, running, settings

pytestmark = pytest.mark.asyncio

BUDGETS = {"house": {"per": "all", "every": "month", "money": 20}, "each": {"every": "day", "tokens": 100_000}}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with AnthropicEmulator(script=chat_script(lambda body: say("yes"))) as model:
        made = settings(tmp_path / "c", budgets=BUDGETS, agent={"compression": {"keep_recent": 2}})
        provider = {"kind": "anthropic", "api_key": "sk-ant-a-test-key-0123456789", "base_url": model.url}
        config = json.loads((tmp_path / "c" / "clew.yaml").read_text()) | {"providers": {"model": provider}}
        made = settings(tmp_path / "c", **{key: value for key, value in config.items() if key not in ("data_dir", "http")})
        async with running(made) as found:
            yield found


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


async def test_days_budgets_people_models_and_threads(clew: Clew) -> None:  # P30
    empty = text_of(await seen(clew, SPEND))
    assert "Nothing was spent on these days." in empty
    session = await talk(clew, "hello", "hello again")
    assert "The transcript has 4 messages in 1 session." in text_of(await seen(clew, "/console"))
    page = await seen(clew, SPEND)
    told = text_of(page)
    lines = (await clew.get("/api/v1/cost"))[1]["lines"]
    assert lines[0].removeprefix("Everybody, today: ") in told
    assert next(line for line in lines if line.startswith("Budget")) in told
    assert "Budget each (owner, today):" in told, "the budgets of those who spent something"
    assert f'href="{SPEND_THREAD}?id={session}"' in page
    assert page.count("<figure") == 4
    assert page.count('role="img" aria-labelledby="chart-') == page.count('aria-describedby="days"') == 4
    assert page.count("<g><title>") == 4 * 30
    (row,) = re.findall(r'<tr><th scope="row">(\d{4}-\d{2}-\d{2})</th>(.*?)</tr>', page)
    assert row[0] == days_up_to(clew.service.time.wall(), clew.service.zone, 1)[0]
    assert text_of(row[1]).startswith("2 ")
    assert (await seen(clew, f"{SPEND}?days=7")).count("<g><title>") == 4 * 7
    assert "Spend of owner" in text_of(await seen(clew, f"{SPEND}?person=owner"))
    await seen(clew, f"{SPEND}?days=8", status=400)


async def test_a_thread_by_turn_with_compactions_and_why_the_cache_fell_short(clew: Clew) -> None:  # P21, P28, P30
    session = await talk(clew, *(f"message {number}" for number in range(4)))
    await clew.service.compactor.compact(session, "command")
    await talk(clew, "after it")
    page = await seen(clew, f"{SPEND_THREAD}?id={session}")
    told = text_of(page)
    turns = re.findall(r'<tr><th scope="row"><a href="/console/threads/turn\?id=(\w+)">', page)
    assert len(turns) == 5
    assert page.count(">compacted</span>") == 1
    assert page.count('vector-effect="non-scaling-stroke"') == 1
    assert "a compaction in front of it" in told
    rows = re.findall(r'<td class="why">(.*?)</td>', page)
    assert rows[0].endswith(": compaction")
    assert rows[1].endswith("tokens that it could")
    assert rows[-1].startswith(("nothing to read", "read "))
    assert "Calls beside turns" in told
    assert text_of(rows[0]) in "\n".join((await clew.get(f"/api/v1/cost?session={session}"))[1]["lines"])
    assert f'href="{SPEND_THREAD}?id={session}"' in await seen(clew, f"/console/threads/thread?id={session}")
    await seen(clew, f"{SPEND_THREAD}?id=nosuchsession", status=404)


async def test_names_of_others_are_text(clew: Clew) -> None:
    page = await seen(clew, SPEND, params={"person": HOSTILE})
    assert HOSTILE not in page
    assert "Spend of" in page
    page = await seen(clew, f"{SPEND_THREAD}?id={await clew.service.attach(Address('web', 'x'), 'web:local', None, HOSTILE)}")
    assert "No model was called here yet." in page
    assert HOSTILE not in page
