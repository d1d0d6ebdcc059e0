"""The wall clock jumps by a day, forward or back: turns, deliveries and jobs take no notice of it, or make up for it at once."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clew.transport import Retry
from tests.emulators.scripts import say
from tests.integration.engine import START, Clock, World, engine
from tests.integration.test_engine_schedule import DAY, EIGHT, HOUR, MINUTE, daily, job, runs, schedule

pytestmark = pytest.mark.asyncio

jumps = pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])


@jumps
async def test_a_turn_that_runs_is_run_once(tmp_path: Path, jump: float) -> None:  # P42, P48
    clock = Clock()
    async with engine(tmp_path, lambda body: say("Yes."), clock=clock) as world, world.running():
        hold = world.model.hold()
        asked = world.desk.message("are you there?")
        await world.desk.accept(asked)
        await hold.reached.wait()
        clock.at += jump
        await world.desk.accept(world.desk.message("somebody else speaks", "bob"))
        await world.desk.until(lambda: len(world.desk.sent) == 1)  # the inbox was looked at
        hold.release()
        await world.desk.until(lambda: len(world.desk.sent) == 2)
        await world.idle()
        assert [delivery.text for delivery in world.desk.answers(asked)] == ["Yes."]
        assert len(world.replies) == 2


@jumps
async def test_a_delivery_that_waits_is_tried_again(tmp_path: Path, jump: float) -> None:  # P43, P48
    clock = Clock()
    async with engine(tmp_path, lambda body: say("Yes."), clock=clock) as world, world.running():
        world.desk.faults["desk:ada"] = [Retry("the platform asks for patience", after=0.5)]
        asked = world.desk.message("are you there?")
        await world.desk.accept(asked)
        await world.desk.until(lambda: len(world.desk.tries) == 1)
        clock.at += jump + 1
        await world.desk.ask("and again")
        assert len(world.desk.answers(asked)) == 1


async def test_a_clock_that_was_ahead_at_the_last_run_holds_up_nothing(tmp_path: Path) -> None:  # P43, P48
    clock = Clock(START + DAY)
    async with engine(tmp_path, lambda body: say("Yes."), clock=clock) as world:
        world.desk.faults["desk:ada"] = [Retry("the platform asks for patience", after=200.0)]
        asked = world.desk.message("are you there?")
        async with world.running():
            await world.desk.accept(asked)
            await world.desk.until(lambda: len(world.desk.tries) == 1)
        clock.at = START
        async with world.running():
            clock.at += 5 * MINUTE
            await world.desk.ask("and again")
        assert len(world.desk.answers(asked)) == 1


@pytest.mark.parametrize(
    "entry", [daily(), job(every="1d"), job(cron="0 8 * * *", timezone="Europe/Berlin")], ids=["cron", "every", "zone"]
)
async def test_a_job_runs_once_per_instant_whatever_the_clock_does(tmp_path: Path, entry: Any) -> None:  # P45, P48
    clock = Clock(EIGHT - 2 * HOUR)
    async with engine(tmp_path, lambda body: say("Rain."), clock=clock) as world:
        schedule(world, entry)
        async with world.running():
            await day_after_day(world, clock, EIGHT + HOUR)
            ahead = await runs(world)
            await day_after_day(world, clock, EIGHT + HOUR + DAY + HOUR)  # a day ahead
            await day_after_day(world, clock, EIGHT + 2 * HOUR)  # and back
            for hour in range(24, 97):
                await day_after_day(world, clock, EIGHT + 2 * HOUR + (hour - 23) * HOUR)
            done = await runs(world)
        assert len({instant for instant, _ in done}) == len(done)
        instants = sorted(instant for instant, outcome in done if outcome == "done")
        assert instants[: len(ahead)] == [instant for instant, _ in ahead]
        gaps = [later - earlier for earlier, later in pairwise(instants)]
        assert all(gap <= DAY + HOUR for gap in gaps), gaps
        assert instants[-1] > clock.at - DAY - HOUR


async def test_an_hourly_job_does_not_fall_silent_when_a_clock_that_was_ahead_is_put_right(tmp_path: Path) -> None:  # P45, P48
    clock = Clock(EIGHT - MINUTE)
    async with engine(tmp_path, lambda body: say("Rain."), clock=clock) as world:
        schedule(world, job(cron="0 * * * *", timezone="UTC"))
        async with world.running():
            await day_after_day(world, clock, EIGHT + 1)
            await day_after_day(world, clock, EIGHT + DAY + 1)
            for hour in range(1, 4):
                await day_after_day(world, clock, EIGHT + hour * HOUR - MINUTE)
                await day_after_day(world, clock, EIGHT + hour * HOUR + 1)
            done = [instant for instant, outcome in await runs(world) if outcome == "done"]
        assert sorted(done) == [EIGHT, EIGHT + HOUR, EIGHT + 2 * HOUR, EIGHT + 3 * HOUR, EIGHT + DAY]


async def day_after_day(world: World, clock: Clock, at: float) -> None:
    clock.at = at
    await world.service.scheduler.fire_due()
    await world.idle()
