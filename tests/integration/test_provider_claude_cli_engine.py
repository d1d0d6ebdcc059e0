"""The two ways to a model that keep something on this machine, through the whole engine."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew.config.settings import ProviderSection
from clew.providers import claude_cli, ollama
from tests.emulators.claude import FakeClaude, fails, limit
from tests.emulators.ollama import OllamaEmulator
from tests.emulators.scripts import say
from tests.emulators.server import Fault
from tests.integration.engine import World, engine


def use(world: World, *sections: ProviderSection) -> None:
    """The first one, with the others to fall back on."""
    first, *others = (section.name for section in sections)
    providers = {**world.config.providers, **{section.name: section for section in sections}}
    world.config = world.config.model_copy(update={"providers": providers})
    world.agent(provider=first, fallback=tuple(others))


def claude_section(claude: FakeClaude) -> ProviderSection:
    return ProviderSection(kind="claude_cli", name="sub", settings=claude_cli.Settings(executable=str(claude.executable)))


def ollama_section(server: OllamaEmulator) -> ProviderSection:
    return ProviderSection(kind="ollama", name="home", settings=ollama.Settings(base_url=server.url, context_window=32_768))


@pytest.mark.asyncio
async def test_a_chat_stays_with_one_claude(tmp_path: Path) -> None:
    claude = FakeClaude(tmp_path / "claude")
    async with engine(tmp_path / "data") as world:
        use(world, claude_section(claude))
        async with world.running():
            for text in ("the key is under the mat", "thank you", "where was it?"):
                assert text in await world.desk.ask(text)
    assert len(claude.starts) == 1
    assert [len(each["texts"]) for each in claude.heard] == [2, 2, 2]


@pytest.mark.asyncio
async def test_a_limit_of_the_plan_leads_to_the_fallback_without_more_tries(tmp_path: Path) -> None:  # BO-112
    claude = FakeClaude(tmp_path / "claude")
    until = limit("rejected", resetsAt=4_000_000_000)
    claude.plan(fails("You've hit your session limit", error="rate_limit", status=429, before=(until,)))
    async with engine(tmp_path / "data") as world, OllamaEmulator(script=lambda body: say("home here")) as server:
        use(world, claude_section(claude), ollama_section(server))
        async with world.running():
            with capture_logs() as logs:
                assert await world.desk.ask("hello?") == "home here"
    assert [line["kind"] for line in logs if line["event"] == "provider.fallback"] == ["rate_limit"]
    assert len(claude.starts) == 1


@pytest.mark.asyncio
async def test_ollama_gets_the_whole_thread_and_one_window(tmp_path: Path) -> None:  # BO-112
    async with engine(tmp_path / "data") as world, OllamaEmulator(script=lambda body: say("understood")) as server:
        use(world, ollama_section(server))
        server.faults.extend([Fault(503, "", "server busy, please try again", {"retry-after": "0"})] * 2)
        async with world.running():
            for text in ("the key is under the mat", "where is it?"):
                assert await world.desk.ask(text) == "understood"
        assert [message["role"] for message in server.calls[-1].body["messages"]] == ["system", "user", "assistant", "user"]
        assert server.loads == [("qwen3:latest", 32_768)]
        assert len(server.calls) == 4
