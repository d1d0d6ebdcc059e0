"""Skills: named in the prompt in a stable order, opened on request, and nothing outside of their folders."""

from pathlib import Path

import pytest

from clew.tools import skills
from tests.emulators.server import JsonObject
from tests.integration.engine import calling, engine, system_text
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
        skills._inside(skills.read(tmp_path / "skills").found[0], "link")
