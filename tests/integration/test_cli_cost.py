"""`clew cost` and the API behind the same words."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo
from tests.integration.engine import Clock, engine
from tests.integration.test_engine_spending import PRICE, budgets
from tests.integration.web_harness import Tab, running, settings
from tests.unit.test_cli import called

Asking = Callable[..., tuple[int, str, str]]

CONFIG = """\
data_dir: {folder}
agent: {{timezone: Europe/Berlin}}
people: {{ada: {{}}}}
budgets: {{house: {{per: all, every: month, money: 20}}, each: {{every: day, tokens: 100000}}}}
"""


async def spent(folder: Path) -> str:
    """Ada and Bob talk, each once, and Ada again. Returns Ada's session."""
    async with engine(folder, provider="anthropic", clock=Clock()) as world:
        budgets(world, {"claude-sonnet-5-5": PRICE})
        async with world.running():
            for who in ("ada", "bob", "ada"):
                await world.desk.ask(f"hello from {who}", who)
            await world.idle()
            return await world.session()


@pytest.fixture
def session(tmp_path: Path) -> str:
    return asyncio.run(spent(tmp_path))


@pytest.fixture
def asking(session: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asking:
    path = tmp_path / "clew.yaml"
    path.write_text(CONFIG.format(folder=tmp_path))
    return lambda *args: called(capsys, "cost", "--config", str(path), *args)


def test_all_that_was_spent_is_told_by_person_model_and_purpose(asking: Asking) -> None:
    code, told, _ = asking("--month", "2027-01")
    assert code == 0
    lines = told.splitlines()
    assert lines[0].startswith("Everybody, 2027-01: 3 calls, ")
    assert "By person, 2027-01:" in lines
    assert [line.split(":")[0].strip() for line in lines if line.startswith("  ")] == ["ada", "bob", "local claude-sonnet-5-5", "reply"]
    assert lines[-1].startswith("Budget house (everybody together, this month): $0.00 of $20.00 used (0%)"), "of now"
    code, told, _ = asking("--month", "2027-01", "--json")
    values = json.loads(told)
    assert values["lines"] == lines
    assert values["accounts"][0]["calls"] == 3
    assert sum(each["cost"] for each in values["parts"]["by person, 2027-01"]) == pytest.approx(values["accounts"][0]["cost"])
    assert values["budgets"][0]["most"] == 20


def test_one_person_one_chat_and_one_day(asking: Asking) -> None:
    _, person, _ = asking("--person", "ada", "--day", "2027-01-15")
    _, chat, _ = asking("--chat", "desk:ada", "--day", "2027-01-15")
    assert person.startswith("Ada, 2027-01-15: 2 calls, ")
    assert chat.splitlines()[0].partition(":")[2] == chat.splitlines()[0].partition(":")[2]
    assert "Budget each (ada, today)" in person
    assert asking("--person", "ada")[1].splitlines()[:2] == ["Ada, today: nothing", "Ada, this month: nothing"]


def test_the_turns_of_a_session_with_what_the_cache_did(asking: Asking, session: str) -> None:  # P30
    code, told, _ = asking("--session", session[:6])
    assert code == 0
    first, newest, oldest, *_ = told.splitlines()
    assert first.startswith(f"Session {session}: 2 calls, ")
    assert newest.startswith("2027-01-15 09:00 turn ")
    assert "Prompt cache: " in newest
    assert "Prompt cache: " in oldest
    turns = json.loads(asking("--session", session, "--json")[1])["turns"]
    assert [turn["calls"] for turn in turns] == [1, 1]
    assert all(turn["cache"]["told"] in told for turn in turns)


def test_wrong_usage_is_told(asking: Asking) -> None:
    assert asking("--person", "ada", "--chat", "desk:ada")[0] == 2
    assert asking("--day", "2027-01-15", "--month", "2027-01")[0] == 2
    assert asking("--session", "nosuchsession")[0] == 3
    assert asking("--person", "nobody")[0] == 3
    assert asking("--day", "yesterday")[0] == 2


@pytest.mark.asyncio
async def test_the_api_and_the_status_say_the_same(tmp_path: Path) -> None:
    async with OpenAIEmulator(script=echo) as model:
        prices = {"any": {"input": 1, "output": 2}}
        made = settings(tmp_path, base_url=model.base_url, prices=prices, budgets={"house": {"per": "all", "every": "day", "money": 1}})
        async with running(made) as clew:
            async with Tab.open(clew) as tab:
                await tab.say("m1", "hello")
                await tab.until("message", in_reply_to="m1")
            status, told = await clew.get("/api/v1/cost")
            assert status == 200
            assert told["accounts"][0]["calls"] == 1
            assert [each["budget"] for each in told["budgets"]] == ["house"]
            assert 0 < told["budgets"][0]["used"] == told["accounts"][0]["cost"]
            spent = (await clew.get("/api/v1/status"))[1]["spent"]
            assert told["lines"][0] == f"Everybody, today: {spent['today']}"
            assert spent["budget house"] == told["lines"][-1]
            session = await clew.service.store.current_session("web:local")
            turns = (await clew.get(f"/api/v1/cost?session={session}"))[1]["turns"]
            assert len(turns) == 1
            refused = {
                "period=2026": 400,
                "person=a&chat=b": 400,
                "session=x&period=2026-11": 400,
                "session=nosuch": 404,
                "person=nobody": 404,
            }
            for wrong, code in refused.items():
                assert (await clew.get(f"/api/v1/cost?{wrong}"))[0] == code
