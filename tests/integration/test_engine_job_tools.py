"""Jobs that people make in a chat: with `/jobs`, and through their model."""

import re
from pathlib import Path
from typing import Any

import pytest

from clew.booking import booked
from clew.config import Person
from clew.store import Job
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject
from tests.integration.engine import Clock, World, calling, engine, words_of
from tests.integration.test_engine_schedule import EIGHT, HOUR, MINUTE, daily, schedule

pytestmark = pytest.mark.asyncio


def zones(world: World, **people: Person) -> None:
    world.config = world.config.model_copy(update={"people": {**world.config.people, **people}})


def ada(timezone: str = "Asia/Kolkata") -> Person:
    return Person(role="member", timezone=timezone, identities=("desk:ada",))


def result_of(body: JsonObject) -> str:
    """What the tool answered, as the model is told."""
    return words_of(next(message for message in reversed(body["messages"]) if message["role"] == "tool"))


async def jobs(world: World) -> dict[str, Job]:
    return {job.name: job for job in await world.store.jobs()}


async def made(world: World, tool_or_words: str, arguments: JsonObject | None = None) -> str:
    """Have ada make a job, by /jobs or with a tool, and return what it is called."""
    before = set(await jobs(world))
    if arguments is None:
        await world.desk.ask(tool_or_words)
    else:
        await asked(world, tool_or_words, arguments)
    (name,) = set(await jobs(world)) - before
    return name


async def asked(world: World, tool: str, arguments: JsonObject, chat: str = "ada", **more: Any) -> str:
    world.model.script = calling((tool, arguments))
    await world.desk.ask("please do it", chat, **more)
    return result_of(world.replies[-1])


async def test_a_model_makes_a_reminder_for_the_person_it_talks_with(tmp_path: Path) -> None:  # P45, BO-087
    clock = Clock(EIGHT)  # 13:30 in Kolkata
    async with engine(tmp_path, clock=clock) as world:
        zones(world, ada=ada())
        async with world.running():
            said = await asked(world, "schedule_create", {"prompt": "Remind me to call mum.", "at": "17:30"})
            assert "next 2027-01-15T17:30:00+05:30" in said
            (job,) = (await jobs(world)).values()
            assert re.fullmatch("remind-me-to-call-[a-z2-7]{4}", job.name)
            assert (job.origin, job.person, job.next_at) == ("chat", "ada", EIGHT + 4 * HOUR)  # 12:00 UTC
            world.model.script = lambda body: say("Call mum!")
            clock.at = EIGHT + 4 * HOUR
            await world.service.scheduler.fire_due()
            await world.desk.until(lambda: len(world.desk.sent) == 2)
            assert (world.desk.sent[1].text, str(world.desk.sent[1].address)) == ("Call mum!", "desk:ada")
            await world.idle()
            assert await jobs(world) == {}  # it is done
            assert [run["outcome"] for run in await world.store.job_history(job.name, 5)] == ["done"]


@pytest.mark.parametrize("field", ["deliver_to", "target", "address", "command", "condition", "person"])
async def test_a_model_cannot_say_where_a_job_speaks_nor_name_a_program(tmp_path: Path, field: str) -> None:  # P45, BO-089
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        said = await asked(world, "schedule_create", {"prompt": "hi", "every": "1h", field: "999"})
        assert field in said
        assert await jobs(world) == {}


async def test_a_job_speaks_in_the_thread_where_it_was_asked_for(tmp_path: Path) -> None:  # P45, BO-090
    clock = Clock(EIGHT)
    async with engine(tmp_path, clock=clock) as world, world.running():
        await asked(world, "schedule_create", {"prompt": "Say hi.", "at": "2027-01-15T08:30"}, chat="ada/7")
        world.model.script = lambda body: say("Hi!")
        clock.at = EIGHT + 30 * MINUTE
        await world.service.scheduler.fire_due()
        await world.desk.until(lambda: len(world.desk.sent) == 2)
        assert str(world.desk.sent[1].address) == "desk:ada/7"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"cron": "evry 5 minutes"}, "is not a cron expression"),
        ({"cron": "61 * * * *"}, "is not a cron expression"),
        ({"cron": "0 0 31 2 *"}, "never occurs"),
        ({"cron": ""}, "is not a cron expression"),
        ({"every": "10s"}, "1m is the shortest"),
        ({"at": "2020-01-01T08:00"}, "has passed"),
        ({"at": "tomorrow"}, "must be a date and time"),
        ({"every": "1h", "at": "2028-01-01T08:00"}, "exactly one of cron, every and at"),
        ({}, "exactly one of cron, every and at"),
        ({"every": "1h", "timezone": "Mars/Olympus"}, "is not a time zone"),
        ({"every": "1h", "prompt": "{{secrets}}"}, "it may name"),
    ],
)
async def test_what_is_wrong_is_refused_with_a_reason(tmp_path: Path, arguments: JsonObject, why: str) -> None:  # P45, BO-085
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        assert why in await asked(world, "schedule_create", {"prompt": "hi", **arguments})
        assert await jobs(world) == {}


async def test_nobody_changes_anothers_job(tmp_path: Path) -> None:  # P33, P45
    async with engine(tmp_path, clock=Clock(EIGHT)) as world:
        schedule(world, daily())
        async with world.running():
            plants = await made(world, "schedule_create", {"prompt": "Water the plants.", "every": "6h", "name": "plants"})
            for name in (plants, "brief", "nothing"):
                for tool, more in (("schedule_delete", {}), ("schedule_update", {"prompt": "x"}), ("schedule_update", {"enabled": False})):
                    assert f"There is no job '{name}' of yours" in await asked(world, tool, {"name": name, **more}, chat="bob")
                for words in (f"/jobs remove {name}", f"/jobs pause {name}", f"/jobs run {name}", f"/jobs history {name}"):
                    assert "There is no job" in await world.desk.ask(words, "bob")
            assert "plants" not in await asked(world, "schedule_list", {}, chat="bob")
            assert await world.desk.ask("/jobs", "bob") == await world.desk.ask("/jobs", "eve")
            assert (await jobs(world))[plants].enabled


async def test_what_a_person_is_told_says_nothing_of_anothers_jobs(tmp_path: Path) -> None:  # P33, P45
    arguments: JsonObject = {"prompt": "Water the plants.", "every": "6h"}
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        theirs = await made(world, "schedule_create", {**arguments, "name": "plants"})
        for name in ("plants", theirs, "cats"):
            said = await asked(world, "schedule_create", {**arguments, "name": name}, chat="bob")
            assert re.match(rf"{name}-[a-z2-7]{{4}} \(yours\): every 6h", said)
        await made(world, "/jobs add every 6h Feed the cat")
        for words in ("Feed the cat", "Feed the dog"):
            stem = words.lower().replace(" ", "-")
            assert re.match(rf"Made: {stem}-[a-z2-7]{{4}} \(yours\)", await world.desk.ask(f"/jobs add every 6h {words}", "bob"))
        for tried in ("remove", "pause", "run", "history"):
            known, unknown = [await world.desk.ask(f"/jobs {tried} {name}", "bob") for name in (theirs, "plants-none")]
            assert known == unknown.replace("plants-none", theirs)


async def test_a_prompt_is_bounded_and_a_name_can_be_seen(tmp_path: Path) -> None:  # P45
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        assert "it has 100,000 characters, and 10,000 are the most" in await world.desk.ask(f"/jobs add cron @daily {'p' * 100_000}")
        assert "cannot be seen" in await asked(world, "schedule_create", {"prompt": "hi", "every": "1h", "name": "nul\0z"})
        assert await jobs(world) == {}


async def test_a_persons_jobs_elsewhere_are_not_shown_in_a_group(tmp_path: Path) -> None:  # P33, P45
    group: dict[str, Any] = {"sender": "ada", "direct": False}
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        clinic = await made(world, "schedule_create", {"prompt": "Remind me of the clinic.", "every": "6h", "name": "clinic"})
        await world.desk.ask("/jobs add every 1d Water the garden", "team", **group)
        for said in (
            await world.desk.ask("/jobs", "team", **group),
            await asked(world, "schedule_list", {}, chat="team", **group),
        ):
            assert "Water the garden" in said
            assert "clinic" not in said
        for tool, more in (("schedule_update", {"enabled": True}), ("schedule_delete", {})):
            assert f"no job '{clinic}' of yours here" in await asked(world, tool, {"name": clinic, **more}, chat="team", **group)
        for words in (f"/jobs history {clinic}", f"/jobs run {clinic}", f"/jobs remove {clinic}"):
            assert f"no job '{clinic}' of yours here" in await world.desk.ask(words, "team", **group)
        listed = await world.desk.ask("/jobs")
        assert "clinic" in listed
        assert "Water the garden" in listed
        assert {name[:-5] for name in await jobs(world)} == {"clinic", "water-the-garden"}


async def test_a_model_changes_and_deletes_the_persons_own_job(tmp_path: Path) -> None:  # P45
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        plants = await made(world, "schedule_create", {"prompt": "Water the plants.", "every": "6h", "name": "plants"})
        assert "30 7 * * * UTC, next 2027-01-16T07:30" in await asked(world, "schedule_update", {"name": plants, "cron": "30 7 * * *"})
        assert "Water the plants." in await asked(world, "schedule_list", {})
        assert "off" in await asked(world, "schedule_update", {"name": plants, "enabled": False})
        assert "next" in await asked(world, "schedule_update", {"name": plants, "enabled": True})
        assert await asked(world, "schedule_delete", {"name": plants}) == f"Deleted {plants}."
        assert await jobs(world) == {}


async def test_a_scheduled_run_makes_no_jobs(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT - 1)
    async with engine(tmp_path, calling(("schedule_create", {"prompt": "more of me", "every": "1m"})), clock=clock) as world:
        schedule(world, daily())
        async with world.running():
            clock.at = EIGHT
            await world.service.scheduler.fire_due()
            await world.idle()
            assert "A job may not make or change jobs" in result_of(world.replies[-1])
            assert set(await jobs(world)) == {"brief"}


async def test_guests_have_no_jobs(tmp_path: Path) -> None:  # P45, P46
    async with engine(tmp_path, clock=Clock(EIGHT)) as world:
        zones(world, ada=Person(role="guest", identities=("desk:ada",)))
        async with world.running():
            assert "Only members and owners" in await asked(world, "schedule_create", {"prompt": "hi", "every": "1h"})
            assert "Only members and owners" in await world.desk.ask("/jobs add every 1h hi")


async def test_the_job_of_somebody_who_is_let_in_no_more_asks_no_model(tmp_path: Path) -> None:  # P45, P46
    clock = Clock(EIGHT)
    async with engine(tmp_path, clock=clock) as world:
        async with world.running():
            hourly = await made(world, "schedule_create", {"prompt": "hi", "every": "1h", "name": "hourly"})
        asked_before = len(world.replies)
        world.config = world.config.model_copy(update={"people": {"bob": world.config.people["bob"]}})
        async with world.running():
            clock.at = EIGHT + HOUR + 1
            await world.service.scheduler.fire_due()
            await world.idle()
            assert await world.store.job_history(hourly, 5) == []
            assert not (await world.store.job(hourly)).enabled
            assert len(world.replies) == asked_before


async def test_a_persons_job_recalls_what_that_person_may_see(tmp_path: Path) -> None:  # P33, P38, P45
    clock = Clock(EIGHT)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world, world.running():
        await world.desk.ask("my locker code is 5512", "ada")
        await world.desk.ask("/new", "ada")
        await world.desk.ask("my locker code is 7731", "bob")
        await asked(world, "schedule_create", {"prompt": "What is my locker code?", "every": "1h"})
        world.model.script = lambda body: say("ok")
        clock.at = EIGHT + HOUR + 1
        await world.service.scheduler.fire_due()
        await world.idle()
        assert "5512" in str(world.replies[-1])
        assert "7731" not in str(world.replies[-1])


# In a chat, by hand ---------------------------------------------------------------------------------------------------


async def test_jobs_are_made_listed_switched_run_and_removed_in_a_chat(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT)
    async with engine(tmp_path, lambda body: say("Water them!"), clock=clock) as world:
        zones(world, ada=ada("Europe/Berlin"))
        schedule(world, daily())
        async with world.running():
            said = await world.desk.ask("/jobs add cron 30 8 * * 1-5 Water the plants")
            (name,) = set(await jobs(world)) - {"brief"}
            assert said.startswith(f"Made: {name} (yours): 30 8 * * 1-5 Europe/Berlin, next 2027-01-18T08:30:00+01:00")
            listed = await world.desk.ask("/jobs")
            assert "brief (from the config): 0 8 * * * UTC" in listed
            assert f"{name} (yours)" in listed
            said = await world.desk.ask(f"/jobs change {name} at 17:30 Water the roses")
            assert said.startswith(
                f"Changed: {name} (yours): at 2027-01-15T17:30 Europe/Berlin, next 2027-01-15T17:30:00+01:00: Water the roses"
            )
            said = await world.desk.ask(f"/jobs change {name} cron 0 9 * * *")
            assert said.startswith(f"Changed: {name} (yours): 0 9 * * * Europe/Berlin")
            assert "Water the plants" in await world.desk.ask(f"/jobs change {name} Water the plants")
            assert "What is to be different?" in await world.desk.ask(f"/jobs change {name}")
            assert "never occurs" in await world.desk.ask(f"/jobs change {name} cron 0 0 31 2 * hi")
            assert "There is no job 'brief' of yours" in await world.desk.ask("/jobs change brief hi")
            assert await world.desk.ask(f"/jobs pause {name}") == f"{name} is off."
            assert "Europe/Berlin, off" in await world.desk.ask("/jobs")
            assert await world.desk.ask(f"/jobs resume {name}") == f"{name} is on."
            assert await world.desk.ask(f"/jobs run {name}") == f"{name} runs."
            await world.idle()
            assert world.desk.sent[-1].text == "Water them!"
            assert "done, sent" in await world.desk.ask(f"/jobs history {name}")
            assert "There is no job 'brief' of yours" in await world.desk.ask("/jobs remove brief")
            assert await world.desk.ask(f"/jobs remove {name}") == f"Removed: {name}."
            assert set(await jobs(world)) == {"brief"}


@pytest.mark.parametrize(
    ("words", "due"),
    [
        ("at 17:30 tea", "2027-01-15T17:30:00+00:00"),
        ("at 07:30 tea", "2027-01-16T07:30:00+00:00"),
        ("at 2027-03-01T09:00 tea", "2027-03-01T09:00:00+00:00"),
        ("every 90m tea", "2027-01-15T09:30:00+00:00"),
        ("cron @daily tea", "2027-01-16T00:00:00+00:00"),
    ],
)
async def test_a_clock_is_written_shortly(tmp_path: Path, words: str, due: str) -> None:  # P45
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        assert f"next {due}" in await world.desk.ask(f"/jobs add {words}")


@pytest.mark.parametrize("words", ["add", "add tea", "add every 1h", "add cron * * tea", "add at", "nonsense", "remove"])
async def test_what_is_not_understood_says_how_it_is_written(tmp_path: Path, words: str) -> None:  # P45, BO-085
    async with engine(tmp_path, clock=Clock(EIGHT)) as world, world.running():
        assert "It is written so:" in await world.desk.ask(f"/jobs {words}")
        assert await jobs(world) == {}


async def test_what_is_made_by_hand_outlives_a_reload_and_a_new_entry_of_its_name(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world, world.running():
        fields = {"name": "brief", "every": "2h", "prompt": "hi", "deliver_to": "desk:ada"}
        effect, _ = booked(fields, taken=(), origin="cli", person=None, now=EIGHT, zone="UTC")
        await world.store.change_job(effect, EIGHT)
        schedule(world, daily())
        await world.service.reload(world.config)
        assert {name: job.origin for name, job in (await jobs(world)).items()} == {"brief": "config", "brief-2": "cli"}
        schedule(world)
        await world.service.reload(world.config)
        assert set(await jobs(world)) == {"brief-2"}
        clock.at = EIGHT + 2 * HOUR + 1
        await world.service.scheduler.fire_due()
        await world.idle()
        assert world.desk.sent[-1].text == "ok"


async def test_one_person_has_fifty_jobs_at_most(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT)
    async with engine(tmp_path, clock=clock) as world, world.running():
        for _ in range(50):
            clock.at += MINUTE  # as a person writes, and not a program that answers at once
            assert (await world.desk.ask("/jobs add every 1d tea")).startswith("Made")
        assert "50 jobs are the most" in await world.desk.ask("/jobs add every 1d tea")
