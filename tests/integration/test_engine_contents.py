"""What `/context` says is in the window is what the next request is made of."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clew.cli import clew as cli
from clew.context.tokens import estimate
from tests.databases import databases
from tests.integration.engine import START, Clock, engine, exchanges, system_text, user, words_of


@pytest.mark.asyncio
async def test_the_parts_of_the_window_are_those_of_the_request(tmp_path: Path) -> None:  # P9, P24
    async with engine(tmp_path, clock=Clock(START)) as world:
        world.compression(trigger_messages=20, keep_recent=2)
        async with world.running():
            session = await world.seed(user("We must not paint the shed red."), *exchanges(5))
            await world.desk.ask("/memory set tone calm")
            await world.desk.ask("/pin #1")
            before = await world.service.contents.of(session)
            names = {part.name: part for part in before.parts}
            assert names["messages"].count == before.messages == 11
            assert "summary" not in names
            assert (before.at_messages, before.pinned, before.summarised) == (20, 1, 0)
            said = await world.desk.ask("/context")
            assert f"- messages: {names['messages'].tokens:,} (11)\n\nNothing was compacted here yet.\n" in said
            assert "The next compaction comes at 20 messages (9 more) or above 168,300 tokens, or after 1h of silence" in said
            await world.desk.ask("/compact")
            await world.desk.ask("go on")
            after = await world.service.contents.of(session)
            sizes = {part.name: part.tokens for part in after.parts}
            body = world.replies[-1]
            sent = estimate(system_text(body)) + sum(estimate(words_of(each)) for each in body["messages"] if each["role"] != "system")
            ratio = (await world.store.view(session)).ratio("local", "any")
            assert abs(sum(tokens for name, tokens in sizes.items() if name != "tools") - sent * ratio) < 120
            assert sizes["summary"] > 0
            assert sizes["notes"] > 0
            assert sizes["messages"] < before.tokens
            assert after.summarised == 9
            assert "9 messages stand behind the summary." in await world.desk.ask("/context")
            world.compression(enabled=False)
            await world.service.reload(world.config)
            assert "It is compacted by /compact, or where a request would not fit any more." in await world.desk.ask("/context")


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    import asyncio

    async def talked() -> str:
        async with engine(tmp_path / "data", clock=Clock(START)) as world, world.running():
            return await world.seed(*exchanges(3))

    (tmp_path / "data").mkdir()
    session = asyncio.run(talked())
    config = tmp_path / "clew.yaml"
    data = tmp_path / "data"
    settings = {"data_dir": str(data), "store": databases.store(data), "http": {"port": 0}, "providers": {"none": {"kind": "offline"}}}
    config.write_text(json.dumps(settings))
    out = CliRunner().invoke(cli, ["session", "context", session, "--config", str(config)])
    assert out.exit_code == 0, out.output
    assert "- messages: " in out.output
    figures = CliRunner().invoke(cli, ["session", "context", session, "--json", "--config", str(config)])
    assert json.loads(figures.output)["messages"] == 6
