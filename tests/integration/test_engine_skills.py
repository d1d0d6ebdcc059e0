"""Skills: named in the prompt in a stable order, opened on request, and nothing outside of their folders."""

import os
from pathlib import Path
from typing import Literal

import pytest

from clew.config import Approver, Job
from clew.tools import ToolContext, skills
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject
from tests.integration.engine import calling, engine, system_text, tool
from tests.integration.test_engine_tools import results


def skill(folder: Path, name: str, text: str = "", description: str = "Does it.") -> Path:
    place = folder / "skills" / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(text or f"---\nname: {name}\ndescription: {description}\n---\n\nThe steps of {name}.\n")
    return place


@pytest.mark.asyncio
async def test_skills_stand_behind_the_base_prompt_and_are_opened_on_request(tmp_path: Path) -> None:  # P27, P29
    skill(tmp_path, "tides", description="Tells the tides.\n  Also at night.")
    (skill(tmp_path, "brewing") / "tables").mkdir()
    (tmp_path / "skills" / "brewing" / "tables" / "hops.txt").write_text("Saaz 3.5 %")
    (tmp_path / "outside.txt").write_text("not yours")
    asked: list[tuple[str, JsonObject]] = [
        ("skill_open", {"name": "brewing"}),
        ("skill_open", {"name": "brewing", "file": "tables/hops.txt"}),
        ("skill_open", {"name": "brewing", "file": "../../outside.txt"}),
        ("skill_open", {"name": "sailing"}),
    ]
    async with engine(tmp_path / "data", calling(*asked)) as world:
        world.agent(skills_dir=tmp_path / "skills")
        async with world.running():
            assert await world.desk.ask("brew") == "done"
            prompt = system_text(world.replies[0])
            base, _, named = prompt.partition("\n\n")
            assert named.splitlines() == [skills.HEADING, "- brewing: Does it.", "- tides: Tells the tides. Also at night."]
            body, hops, outside, unknown = [text for _, text in results(world.replies[-1])]
            assert body == "The steps of brewing.\n\nIts other files, for skill_open: tables/hops.txt"
            assert hops == "Saaz 3.5 %"
            assert "it has no file '../../outside.txt'" in outside
            assert unknown == "There is no skill 'sailing'. The skills are: brewing, tides."
        async with world.running():
            await world.desk.ask("again")
            assert system_text(world.replies[-1]).startswith(prompt)
    async with engine(tmp_path / "without") as world, world.running():
        await world.desk.ask("hello")
        assert system_text(world.replies[0]) == base
        assert "skill_open" not in [tool["function"]["name"] for tool in world.replies[0]["tools"]]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no front matter", "does not begin with front matter"),
        ("---\nname: other\ndescription: x\n---\n", "its name is 'other'"),
        ("---\nname: Bad Name\ndescription: x\n---\n", "small letters"),
        ("---\nname: one\n---\n", "no description"),
        ("---\nname: one\ndescription: " + "x" * 1025 + "\n---\n", "1,025 characters"),
        ("---\nname: [one\n---\n", "no YAML"),
        ("---\n- one\n---\n", "no mapping"),
        ("---\nname: one\ndescription: x\n---\n" + "x" * 300_000, "larger than 256 KiB"),
    ],
)
def test_what_is_wrong_with_a_skill_is_said_and_leaves_the_others_alone(tmp_path: Path, text: str, fault: str) -> None:
    skill(tmp_path, "one", text)
    skill(tmp_path, "two")
    found = skills.read(tmp_path / "skills")
    assert [each.name for each in found.found] == ["two"]
    ((name, why),) = found.faults
    assert name == "one"
    assert fault in why


def test_names_and_descriptions_have_a_budget(tmp_path: Path) -> None:
    for number in range(10):
        skill(tmp_path, f"skill-{number}", description="w " * 500)
    found = skills.read(tmp_path / "skills")
    assert len(found.text) <= skills.BUDGET_CHARS
    assert found.unnamed == tuple(f"skill-{number}" for number in range(5, 10))


def test_a_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    ((_, why),) = skills.read(tmp_path / "nowhere").faults
    assert why == "No such file or directory"


def test_a_file_that_leads_out_of_a_skill_is_not_opened(tmp_path: Path) -> None:
    place = skill(tmp_path, "one")
    (tmp_path / "secret").write_text("not yours")
    (place / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(skills.BadSkill, match="has no file"):
        skills._opened(skills.read(tmp_path / "skills").found[0], "link")


@pytest.mark.parametrize("kind", ["outside", "fifo", "device"])
def test_instructions_that_are_no_plain_file_of_the_folder_are_a_fault(tmp_path: Path, kind: str) -> None:
    place = skill(tmp_path, "one")
    (place / "SKILL.md").rename(tmp_path / "SKILL.md")
    if kind == "fifo":
        os.mkfifo(place / "SKILL.md")
    else:
        (place / "SKILL.md").symlink_to(tmp_path / "SKILL.md" if kind == "outside" else Path("/dev/zero"))
    assert skills.read(tmp_path / "skills").faults == (("one", "there is no SKILL.md in it"),)


def test_of_many_files_the_first_are_named_and_hidden_ones_are_not(tmp_path: Path) -> None:
    place = skill(tmp_path, "one")
    for name in (".git/config", "b/x.txt", "a.txt", *(f"c/{number:03d}" for number in range(100))):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("x")
    (place / "b" / "round").symlink_to(place)
    named = skills._opened(skills.read(tmp_path / "skills").found[0], "").rpartition(": ")[2].split(", ")
    assert named[:3] == ["a.txt", "b/x.txt", "c/000"]
    assert len(named) == skills.MOST_FILES


TRIGGERED = "---\nname: {0}\ndescription: Does it.\nmetadata:\n  triggers: {1}\n---\n\nThe steps of {0}.\n"


def told(request: JsonObject) -> list[str]:
    """What of skills stands in a request, word for word."""
    return [text for _, text in results(request) if text.startswith("The steps of")]


@pytest.mark.asyncio
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_what_somebody_says_opens_the_skills_that_it_calls_for(tmp_path: Path, provider: Literal["openai", "anthropic"]) -> None:
    for name, triggers in (("brewing", "brew a beer, 啤酒"), ("tides", "high tide"), ("zymurgy", "beer")):
        skill(tmp_path, name, TRIGGERED.format(name, triggers))
    async with engine(tmp_path / "data", lambda body: say("well"), provider=provider) as world:
        world.agent(skills_dir=tmp_path / "skills")
        async with world.running():
            await world.desk.ask("a beerless, brewless evening at high water")
            assert len(await world.transcript()) == 2
            await world.desk.ask("Let us BREW  a beer!")
            transcript = await world.transcript()
            assert [(row.role, [call.name for call in row.calls]) for row in transcript[2:]] == [
                ("user", []),
                ("assistant", ["skill_open", "skill_open"]),
                ("tool", []),
                ("tool", []),
                ("assistant", []),
            ]
            opened = [result.text for row in transcript for result in row.results]
            assert opened == ["The steps of brewing.", "The steps of zymurgy."], "they stand there when the model is first asked"
            calls = len(world.replies)
            await world.desk.ask("another beer, then the high tide, 我要啤酒")
            assert len(world.replies) == calls + 1
            assert [result.text for row in await world.transcript() for result in row.results] == [*opened, "The steps of tides."]
            assert await world.store.verify_session(await world.session()) == []
            await world.desk.ask("/undo")
            await world.desk.ask("high tide?")
            assert [row.role for row in (await world.transcript())[-4:]] == ["user", "assistant", "tool", "assistant"], (
                "it had left the view"
            )
        request = world.replies[-1]
        async with world.running():
            await world.desk.ask("and now?")
            assert system_text(world.replies[-1]).startswith(system_text(request))


@pytest.mark.asyncio
async def test_a_skill_opened_by_its_words_is_recalled_with_the_rest_and_may_be_denied(tmp_path: Path) -> None:  # P31
    skill(tmp_path, "tides", TRIGGERED.format("tides", "[tide]"))
    async with engine(tmp_path / "data", lambda body: say("At noon.")) as world:
        world.agent(skills_dir=tmp_path / "skills")
        async with world.running():
            await world.desk.ask("The harbour of Husum is called Zingel.")
            await world.desk.ask("/new")
            await world.desk.ask("When is the tide in the harbour of Husum?")
            assert "Zingel" in system_text(world.replies[-1])
            assert told(world.replies[-1]) == ["The steps of tides."]
            assert "Husum" in await world.desk.ask("/why"), "what recall considered is written down all the same"
        world.agent(approver=Approver(deny=("skill_open",)))
        async with world.running():
            await world.desk.ask("/new")
            await world.desk.ask("When is the tide?")
            assert results(world.replies[-1]) == []


@pytest.mark.asyncio
async def test_words_that_others_wrote_open_no_skill(tmp_path: Path) -> None:  # P34
    skill(tmp_path, "tides", TRIGGERED.format("tides", "tide"))

    async def read(context: ToolContext, note: str) -> str:
        return "tide, tide, tide"

    async with engine(tmp_path / "data", calling(("look", {"note": "x"})), tools=[tool("look", read)]) as world:
        world.agent(skills_dir=tmp_path / "skills")
        async with world.running():
            assert await world.desk.ask("look") == "done"
            assert told(world.replies[-1]) == []


@pytest.mark.asyncio
async def test_a_trigger_in_a_jobs_prompt_opens_its_skill_and_one_in_its_output_does_not(tmp_path: Path) -> None:  # P45
    skill(tmp_path, "tides", TRIGGERED.format("tides", "tide"))
    skill(tmp_path, "brewing", TRIGGERED.format("brewing", "beer"))
    async with engine(tmp_path / "data", lambda body: say("well")) as world:
        job = Job(name="tide", cron="0 8 * * *", prompt="The tide? {{output}}", condition="echo beer", deliver_to="desk:ada")
        world.config = world.config.model_copy(update={"schedule": (job,)})
        world.agent(skills_dir=tmp_path / "skills")
        async with world.running():
            await world.service.scheduler.run_now("tide")
            await world.desk.until(lambda: bool(world.desk.sent))
            assert told(world.replies[-1]) == ["The steps of tides."]


@pytest.mark.parametrize(
    ("triggers", "found"),
    [("a, b c", ("a", "b c")), ("[a, b  c]", ("a", "b c")), ("[]", ()), ("null", ())],
)
@pytest.mark.parametrize("where", ["triggers: {}", "metadata:\n  triggers: {}\n  author: me"])
def test_triggers_are_a_list_or_a_text(tmp_path: Path, triggers: str, found: tuple[str, ...], where: str) -> None:
    skill(tmp_path, "one", f"---\nname: one\ndescription: x\n{where.format(triggers)}\n---\n")
    (read,) = skills.read(tmp_path / "skills").found
    assert read.triggers == found


@pytest.mark.parametrize("triggers", ["5", "[5]", "{a: b}", "'...'", "'a,,b'", "[" + "a, " * 21 + "]", "x" * 101])
def test_triggers_that_cannot_be_are_a_fault(tmp_path: Path, triggers: str) -> None:
    skill(tmp_path, "one", f"---\nname: one\ndescription: x\ntriggers: {triggers}\n---\n")
    ((_, why),) = skills.read(tmp_path / "skills").faults
    assert "trigger" in why
