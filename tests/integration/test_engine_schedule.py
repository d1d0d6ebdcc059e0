import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from clew.config import Job
from clew.errors import NotFound
from tests.databases import BOTH
from tests.emulators.scripts import say
from tests.emulators.server import Fault
from tests.integration.engine import DEADLINE_S, START, Clock, World, engine, spoken, words_of

pytestmark = BOTH

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
EIGHT = START
"""2027-01-15 08:00 UTC."""


def schedule(world: World, *jobs: Job) -> None:
    world.config = world.config.model_copy(update={"schedule": jobs})


def job(name: str = "brief", **more: Any) -> Job:
    settings = {"prompt": "Give me the brief.", "deliver_to": "desk:ada", **more}
    return Job.model_validate({"name": name, **settings})


def daily(**more: Any) -> Job:
    return job(cron="0 8 * * *", timezone="UTC", **more)


async def runs(world: World, name: str = "brief") -> list[tuple[float, str]]:
    return [(run["instant"], run["outcome"]) for run in reversed(await world.store.job_history(name, 100))]


async def after_a_pause(world: World, clock: Clock, *, gone: float, back: float) -> Sequence[Any]:
    """A service that stops at `gone` and starts again at `back`; the log of the second start until all is done."""
    clock.at = gone
    async with world.running():
        await world.service.scheduler.fire_due()
        await world.idle()
    clock.at = back
    with capture_logs() as logs:
        async with world.running():
            await world.service.scheduler.fire_due()
            await world.idle()
    return logs


@pytest.mark.asyncio
async def test_a_scheduled_reply_is_delivered_and_part_of_the_chat(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT - MINUTE)
    async with engine(tmp_path, lambda body: say("Rain at noon."), clock=clock) as world:
        schedule(world, daily())
        async with world.running():
            await world.desk.ask("good morning")
            session = await world.session()
            clock.at = EIGHT + 1
            with capture_logs() as logs:
                await world.service.scheduler.fire_due()
                await world.desk.until(lambda: len(world.desk.sent) == 2)
            assert [line["job"] for line in logs if line["event"] == "cron.fired"] == ["brief"]
            world.model.script = lambda body: say("At noon, I said.")
            await world.desk.ask("when exactly?")
            assert await world.session() == session
            told = [words_of(message) for message in spoken(world.replies[-1])]
            assert "Give me the brief." in told[2]
            assert told[3] == "Rain at noon."
            await world.service.scheduler.fire_due()
            await world.idle()
            assert await runs(world) == [(EIGHT, "done")]


@pytest.mark.asyncio
async def test_a_job_begins_a_chat_that_its_person_can_go_on_with(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT - 1)
    async with engine(tmp_path, lambda body: say("Rain at noon."), clock=clock) as world:
        schedule(world, daily())
        async with world.running():
            clock.at = EIGHT
            await world.service.scheduler.fire_due()
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            await world.desk.ask("thanks")
            assert len(spoken(world.replies[-1])) == 3


@pytest.mark.asyncio
async def test_a_run_missed_within_its_grace_is_made_up_and_marked(tmp_path: Path) -> None:  # P45, BO-082
    clock = Clock()
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, daily(grace="3h"))
        await after_a_pause(world, clock, gone=EIGHT - 10 * MINUTE, back=EIGHT + 95 * MINUTE)
        assert len(world.replies) == len(world.desk.sent) == 1
        assert "it was due at 2027-01-15 08:00 +00:00 UTC. It runs late." in words_of(spoken(world.replies[0])[-1])
        await after_a_pause(world, clock, gone=EIGHT + 96 * MINUTE, back=EIGHT + 97 * MINUTE)
        assert len(world.replies) == 1


@pytest.mark.asyncio
async def test_a_run_missed_beyond_its_grace_is_said_and_not_made_up(tmp_path: Path) -> None:  # P45, BO-082
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        schedule(world, daily(grace="3h"))
        logs = await after_a_pause(world, clock, gone=EIGHT - 10 * MINUTE, back=EIGHT + 6 * HOUR)
        assert world.model.calls == []
        missed = [(line["log_level"], line["job"], line["newest"]) for line in logs if line["event"] == "cron.missed"]
        assert missed == [("warning", "brief", "2027-01-15T08:00:00Z")]
        async with world.running():
            assert await runs(world) == [(EIGHT, "missed")]
            assert (await world.store.jobs())[0].next_at == EIGHT + DAY


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("misfire", "expected"),
    [
        ("skip", ["missed", "missed", "missed"]),
        ("once", ["missed", "missed", "done"]),
        ("all", ["done", "done", "done"]),
    ],
)
async def test_the_misfire_rule_decides_over_a_long_absence(tmp_path: Path, misfire: str, expected: list[str]) -> None:  # P45
    clock = Clock()
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, daily(misfire=misfire, overlap="queue"))
        await after_a_pause(world, clock, gone=EIGHT - HOUR, back=EIGHT + 2 * DAY + HOUR)
        async with world.running():
            assert await runs(world) == [(EIGHT + n * DAY, outcome) for n, outcome in enumerate(expected)]
        assert len(world.replies) == expected.count("done")


@pytest.mark.asyncio
async def test_a_machine_that_slept_runs_a_minute_job_once(tmp_path: Path) -> None:  # P45, BO-084
    clock = Clock(EIGHT + 1)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, job(cron="* * * * *"))
        async with world.running():
            clock.at = EIGHT + 10 * MINUTE + 30
            await world.service.scheduler.fire_due()
            await world.idle()
            assert [outcome for _, outcome in await runs(world)] == ["missed"] * 9 + ["done"]
            assert len(world.desk.sent) == 1


@pytest.mark.asyncio
async def test_a_run_that_outlasts_its_interval_is_not_run_beside_itself(tmp_path: Path) -> None:  # P45, BO-083
    clock = Clock(EIGHT)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, job(every="5m"))
        async with world.running():
            for _ in range(4):
                held = world.model.hold()
                clock.at += 5 * MINUTE
                await world.service.scheduler.fire_due()
                await held.reached.wait()
                for _ in range(2):
                    clock.at += 5 * MINUTE
                    await world.service.scheduler.fire_due()
                held.release()
                await world.idle()
            assert len(world.replies) == 4
            outcomes = [outcome for _, outcome in await runs(world)]
            assert (outcomes.count("done"), outcomes.count("missed")) == (4, 8)


@pytest.mark.asyncio
async def test_an_overlapping_run_may_queue(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, job(every="5m", overlap="queue"))
        async with world.running():
            held = world.model.hold()
            for _ in range(3):
                clock.at += 5 * MINUTE
                await world.service.scheduler.fire_due()
            await held.reached.wait()
            held.release()
            await world.idle()
            assert [outcome for _, outcome in await runs(world)] == ["done"] * 3


@pytest.mark.asyncio
async def test_a_run_that_was_interrupted_is_finished_and_delivered_once(tmp_path: Path) -> None:  # P45, P48, BO-081
    clock = Clock(EIGHT - 1)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, daily())
        async with world.running(remote=False):
            await world.store.fire("brief", EIGHT, EIGHT + DAY, EIGHT, "Give me the brief.", world.desk.message("").address)
        for _ in range(3):
            clock.at += MINUTE
            async with world.running():
                await world.service.scheduler.fire_due()
                await world.idle()
        assert len(world.replies) == len(world.desk.sent) == 1


@pytest.mark.asyncio
async def test_one_shot_jobs_run_once(tmp_path: Path) -> None:  # P45, BO-080
    clock = Clock(EIGHT)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, job(at="2027-01-15T09:30", timezone="Europe/Berlin"))
        async with world.running():
            clock.at = EIGHT + 30 * MINUTE
            for _ in range(3):
                await world.service.scheduler.fire_due()
            await world.idle()
        for _ in range(2):
            clock.at += DAY
            async with world.running():
                await world.service.scheduler.fire_due()
                await world.idle()
                assert await runs(world) == [(EIGHT + 30 * MINUTE, "done")]
        assert len(world.replies) == 1


@pytest.mark.asyncio
async def test_a_job_can_be_run_by_hand(tmp_path: Path) -> None:  # P45
    async with engine(tmp_path, lambda body: say("ok"), clock=Clock(EIGHT)) as world:
        schedule(world, daily())
        async with world.running():
            await world.service.scheduler.run_now("brief")
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            with pytest.raises(NotFound):
                await world.service.scheduler.run_now("nosuch")


@pytest.mark.asyncio
async def test_a_failed_run_is_written_down_and_said(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT - 1)
    async with engine(tmp_path, lambda body: Fault(400, "invalid_request_error", "no"), clock=clock) as world:
        schedule(world, daily())
        async with world.running():
            clock.at = EIGHT
            await world.service.scheduler.fire_due()
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            await world.idle()
            assert "refused the request" in world.desk.sent[0].text
            assert await runs(world) == [(EIGHT, "failed")]


@pytest.mark.asyncio
async def test_a_job_reaches_no_words_but_its_chats(tmp_path: Path) -> None:  # P33, P38
    clock = Clock(EIGHT - HOUR)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(
            world,
            daily(prompt="What was my locker code?"),
            job("other", cron="0 8 * * *", deliver_to="desk:bob", prompt="What was my locker code?"),
        )
        async with world.running():
            await world.desk.ask("my locker code is 5512")
            await world.desk.ask("/new")
            clock.at = EIGHT
            await world.service.scheduler.fire_due()
            await world.idle()
            by_chat = {delivery.address.chat for delivery in world.desk.sent[2:]}
            assert by_chat == {"ada", "bob"}
            assert sorted("5512" in str(body) for body in world.replies[1:]) == [False, True]


@pytest.mark.parametrize("expression", ["evry 5 minutes", "61 * * * *", "0 0 31 2 *", "", "* * * *", "0 * * * * *", "@reboot"])
def test_a_wrong_expression_is_refused_with_a_reason(expression: str) -> None:  # P45, BO-085
    with pytest.raises(ValidationError) as caught:
        job(cron=expression)
    (error,) = caught.value.errors()
    assert "never occurs" in error["msg"] or "is not a cron expression" in error["msg"]
    assert ("never occurs" in error["msg"]) == (expression == "0 0 31 2 *")


@pytest.mark.asyncio
async def test_a_single_time_long_past_is_listed_as_missed_once_and_one_that_ran_is_not(tmp_path: Path) -> None:  # P45, BO-082
    clock = Clock(EIGHT)
    async with engine(tmp_path, lambda body: say("ok"), clock=clock) as world:
        schedule(world, job("old", at="2026-12-01T08:00", timezone="UTC"), job("due", at="2027-01-15T08:30", timezone="UTC"))
        async with world.running():
            clock.at = EIGHT + 30 * MINUTE
            await world.service.scheduler.fire_due()
            await world.idle()
        for _ in range(2):
            clock.at += DAY
            with capture_logs() as logs:
                async with world.running():
                    assert [outcome for _, outcome in await runs(world, "old")] == ["missed"]
                    assert [outcome for _, outcome in await runs(world, "due")] == ["done"]
            assert not [line for line in logs if line["event"] == "cron.missed"]


@pytest.mark.asyncio
async def test_jobs_have_their_turn_while_somebody_always_waits(tmp_path: Path) -> None:  # P44
    clock = Clock(EIGHT - MINUTE)
    async with engine(tmp_path, lambda body: say("yes"), clock=clock) as world:
        schedule(world, daily(deliver_to="desk:eve"))
        world.config = world.config.model_copy(
            update={
                "access": world.config.access.model_copy(update={"unknown": "allow"}),
                "limits": world.config.limits.model_copy(update={"turns_at_once": 1000}),
            }
        )
        async with world.running():
            clock.at = EIGHT
            with capture_logs() as logs:
                await asyncio.gather(
                    world.desk.accept(*(world.desk.message("hello", f"guest{number}") for number in range(60))),
                    world.service.scheduler.fire_due(),
                )
                await world.idle()
        kinds = [line["kind"] for line in logs if line["event"] == "turn.started"]
        assert len(kinds) == 61
        assert kinds.index("job") <= 20


@pytest.mark.asyncio
async def test_a_schedule_that_ends_while_it_is_rung_ends_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(EIGHT - MINUTE)
    async with engine(tmp_path, lambda body: say("Rain."), clock=clock) as world:
        schedule(world, daily())
        async with world.running():
            scheduler = world.service.scheduler
            async with scheduler._firing, asyncio.timeout(DEADLINE_S):  # a look takes its time
                scheduler._be_woken(await world.store.jobs(), EIGHT)
                while scheduler._timers.get_job("next") is not None:
                    await asyncio.sleep(0.01)
                scheduler.stop()
                while scheduler._timers.running:
                    await asyncio.sleep(0)
                await asyncio.sleep(0)
    assert [record for record in caplog.records if record.name.startswith("apscheduler") and record.levelname == "ERROR"] == []
