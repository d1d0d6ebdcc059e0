"""The console's page of approvals: questions are answered, and a yes for good is taken back."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from clew.errors import NotFound
from tests.emulators.openai import OpenAIEmulator
from tests.integration.console_harness import HOSTILE, seen, sent
from tests.integration.engine import calling, engine, plugged
from tests.integration.test_engine_approvals import Ledger, begun, code_of, question
from tests.integration.web_harness import Clew, Tab, running, settings

PATH = "/console/approvals"


@dataclass(slots=True)
class Asking:
    """A clew whose model wants to call `pay`, which asks first."""

    clew: Clew
    ledger: Ledger
    tab: Tab

    async def asked(self, number: int) -> str:
        """Have the model ask, and return the question's code."""
        await self.tab.say(f"m{number}", f"pay number {number}")
        await self.tab.until("message", role="assistant", in_reply_to=f"m{number}")
        [waiting] = await self.clew.service.store.open_questions()
        return waiting.code


@pytest_asyncio.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Asking]:
    ledger = Ledger()
    script = calling(("pay", {"note": HOSTILE}))
    with plugged("clew.tools", "pay", ledger.tool):
        async with (
            OpenAIEmulator(script=script) as model,
            running(settings(tmp_path / "c", base_url=model.base_url)) as clew,
            Tab.open(clew) as tab,
        ):
            yield Asking(clew, ledger, tab)


@pytest.mark.asyncio
async def test_a_question_is_read_and_answered(asking: Asking) -> None:
    clew = asking.clew
    assert "No question waits." in await seen(clew, PATH)
    code = await asking.asked(1)
    assert 'href="/console/approvals">1 question</a> waits for a yes.' in await seen(clew, "/console")
    page = await seen(clew, PATH)
    assert f"pay <code>{code}</code>" in page
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    for headers in ({}, {"Origin": "https://evil.example"}):
        assert (await sent(clew, PATH, headers, do="yes", code=code))[0] == 403
    for fields in ({"do": "always", "code": code}, {"do": "yes", "code": code, "x": "1"}):
        assert (await sent(clew, PATH, **fields))[0] == 400  # type: ignore[arg-type]
    assert (await sent(clew, PATH, do="yes", code="zzzz"))[0] == 404
    assert asking.ledger.done == []
    assert await sent(clew, PATH, do="yes", code=code) == (303, PATH)
    await asking.tab.until("message", role="assistant", text="done")
    assert asking.ledger.done == [HOSTILE]
    status, page = await sent(clew, PATH, do="no", code=code)
    assert (status, "still waits" in page) == (404, True)
    code = await asking.asked(2)
    assert await sent(clew, PATH, do="no", code=code) == (303, PATH)
    assert "No question waits." in await seen(clew, PATH)
    assert asking.ledger.done == [HOSTILE]


@pytest.mark.asyncio
async def test_a_yes_for_good_is_shown_and_taken_back(asking: Asking) -> None:
    clew = asking.clew
    assert "Nobody said always to a tool." in await seen(clew, PATH)
    await asking.asked(1)
    await asking.tab.say("yes", "always")
    await asking.tab.until("message", role="assistant", text="done")
    page = await seen(clew, PATH)
    assert "said always" in page
    fields = dict(re.findall(r'name="(address|tool|person)" value="([^"]*)"', page))
    assert fields["tool"] == "pay"
    assert await sent(clew, PATH, do="withdraw", **fields) == (303, PATH)
    assert await clew.service.store.standing() == []
    assert (await sent(clew, PATH, do="withdraw", **fields))[0] == 404


@pytest.mark.asyncio
async def test_what_somebody_else_was_asked_is_theirs_to_answer(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world, world.running():
        await begun(world)
        code = code_of(await question(world))
        [waiting] = await world.store.open_questions()
        assert (waiting.code, waiting.owners) == (code, False)
        assert "May I call" in waiting.question
        with pytest.raises(NotFound):
            await world.store.answer_question(code, True, 1.0)
        assert await world.store.open_questions() == [waiting]
    assert ledger.done == []


@pytest.mark.asyncio
async def test_nobody_else_sees_or_answers(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "g", http={"port": 0, "token": "a-long-enough-token"})) as guarded:
        assert "Waiting for an answer" not in await seen(guarded, PATH, 401)
        assert (await sent(guarded, PATH, do="yes", code="abcd"))[0] == 401
