"""What is older than the config lets it be is forgotten, and nothing else."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from clew.cli import clew as cli
from clew.config import Config, Sessions
from clew.store.retention import anything, rule
from tests.databases import BOTH, databases
from tests.integration.engine import START, Clock, World, engine

pytestmark = BOTH

DAY = 86_400.0
OLD, NEW = "marmalade", "cinnamon"


def keeping(world: World, **sessions: object) -> None:
    world.config = world.config.model_copy(update={"sessions": Sessions.model_validate(sessions)})


async def texts(world: World, session: str) -> Sequence[str]:
    return [row.text for row in await world.store.transcript(session)]


@pytest.mark.asyncio
async def test_only_what_is_older_in_chats_with_a_rule_is_forgotten(tmp_path: Path) -> None:  # P5, P6
    clock = Clock(START)
    async with engine(tmp_path, clock=clock) as world:
        world.compression(trigger_messages=1000, keep_recent=2)
        keeping(world, chats={"desk:ada": "30d", "desk:ada/kept": "forever"})
        async with world.running():
            await world.desk.ask(f"the {OLD} jar")
            await world.desk.ask(f"we must not open the {OLD}")
            await world.desk.ask("the pinned one")
            await world.desk.ask("/pin #5")
            await world.desk.ask(f"/memory set jam {OLD}")
            await world.desk.ask("/compact")
            gone, other, kept = await world.session(), "", ""
            await world.desk.ask("/new")
            await world.desk.ask(f"in a thread that ends, the {OLD}")
            other = await world.session()
            await world.desk.ask("/new")
            await world.desk.ask(f"{OLD} is kept here", "ada/kept")
            await world.desk.ask(f"{OLD} of bob", "bob")
            kept = await world.session("ada/kept")
            clock.at += 29 * DAY
            await world.desk.ask(f"the {NEW} jar")
            await world.service.upkeep.look()
            assert any(OLD in text for text in await texts(world, gone))
            clock.at += 2 * DAY
            world.service.upkeep._expire_from = 0.0  # an hour has passed
            for _ in range(3):
                await world.service.upkeep.look()
                world.service.upkeep._expire_from = 0.0
            assert list(await texts(world, gone)) == ["the pinned one"]
            rows = await world.store.view(gone)
            assert rows.compaction is not None
            assert OLD not in rows.compaction.text + rows.compaction.ledger
            assert other not in [row.id for row in await world.store.sessions()]
            assert any(NEW in text for text in await texts(world, await world.session()))
            assert any(OLD in text for text in await texts(world, kept))
            assert any(OLD in text for text in await texts(world, await world.session("bob")))
            assert f"jam: {OLD}" in await world.desk.ask("/memory")
            for row in await world.store.sessions():
                assert await world.store.verify_session(row.id) == []
            assert await world.store.check() == []
            while await world.store.clean_some():
                pass


@pytest.mark.asyncio
async def test_by_default_nothing_is_ever_forgotten(tmp_path: Path) -> None:  # P5
    clock = Clock(START)
    async with engine(tmp_path, clock=clock) as world, world.running():
        await world.desk.ask(f"the {OLD} jar")
        clock.at += 4000 * DAY
        await world.service.upkeep.look()
        await world.service.upkeep.look()
        assert [(each.seconds, each.due) for each in await world.store.kept(world.config.sessions, clock.at)] == [(None, 0)]
        assert any(OLD in text for text in await texts(world, await world.session()))


def test_the_preview_says_what_is_due_and_by_which_rule(tmp_path: Path) -> None:  # P5
    import asyncio

    async def talked() -> None:
        async with engine(tmp_path / "data", clock=Clock(START - 400 * DAY * 30)) as world, world.running():
            await world.desk.ask("hello")
            await world.desk.ask("hello", "team", sender="bob", direct=False)

    (tmp_path / "data").mkdir()
    asyncio.run(talked())
    config = tmp_path / "clew.yaml"
    config.write_text(
        json.dumps(
            {
                "data_dir": str(tmp_path / "data"),
                "store": databases.store(tmp_path / "data"),
                "providers": {"none": {"kind": "offline"}},
                "sessions": {"retention": "90d", "chats": {"desk:team": "forever"}},
            }
        )
    )
    out = CliRunner().invoke(cli, ["session", "retention", "--json", "--config", str(config)])
    assert out.exit_code == 0, out.output
    found = {each["address"]: each for each in json.loads(out.output)}
    assert (found["desk:ada"]["due"], found["desk:ada"]["rule"]) == (2, "sessions.retention")
    assert (found["desk:team"]["due"], found["desk:team"]["rule"], found["desk:team"]["seconds"]) == (0, "sessions.chats.desk:team", None)
    table = CliRunner().invoke(cli, ["session", "retention", "--config", str(config)])
    assert "sessions.chats.desk:team" in table.output


Retention = Literal["forever"] | float
spans: st.SearchStrategy[Retention] = st.sampled_from(("forever", 3600.0, 86_400.0))
names = st.sampled_from(["desk:ada", "desk:ada/kitchen", "desk:bob"])


@given(
    general=spans,
    chats=st.dictionaries(names, spans),
    people=st.dictionaries(st.sampled_from(["ada", "bob"]), spans),
    transports=st.dictionaries(st.sampled_from(["desk", "irc"]), spans),
    address=names,
    person=st.sampled_from(["ada", "bob", None]),
)
def test_the_narrowest_rule_counts(
    general: Retention,
    chats: dict[str, Retention],
    people: dict[str, Retention],
    transports: dict[str, Retention],
    address: str,
    person: str | None,
) -> None:  # P5
    settings = Sessions.model_construct(reset="never", retention=general, chats=chats, people=people, transports=transports)
    place = address.partition("/")[0]
    wanted = [rules[key] for rules, key in ((chats, address), (chats, place), (people, person or ""), (transports, "desk")) if key in rules]
    expected = (wanted or [general])[0]
    seconds, key = rule(settings, address, person)
    assert seconds == (None if expected == "forever" else expected)
    assert key.startswith("sessions.")
    if seconds is not None:
        assert anything(settings)


def test_a_slip_of_the_pen_is_no_rule() -> None:
    for value in ("10s", "yesterday"):
        with pytest.raises(ValueError, match="retention"):
            Config.model_validate({"sessions": {"retention": value}})
