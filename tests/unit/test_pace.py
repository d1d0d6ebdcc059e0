import asyncio

import pytest

from clew.pace import LONGEST, MAX_CHATS, Pace
from clew.transport import Address, Retry

ADA, BOB = Address("desk", "ada"), Address("desk", "bob")


class Steady:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


def test_a_wait_that_is_asked_for_one_chat_is_kept_for_that_chat_alone() -> None:  # P43, BO-054, BO-064
    steady = Steady()
    pace = Pace(None, steady)
    pace.rest(ADA, Retry("429", 3600.0))
    pace.rest(ADA, Retry("429", 5.0))
    assert (pace.left(ADA), pace.left(BOB), pace.rests) == (3600.0, 0.0, 0.0)
    assert (pace.is_free(ADA), pace.is_free(BOB)) == (False, True)
    steady.at += 3600.0
    assert (pace.left(ADA), pace.is_free(ADA)) == (0.0, True)


def test_a_wait_of_the_whole_account_is_kept_for_all() -> None:  # P43
    pace = Pace(None, Steady())
    pace.rest(ADA, Retry("429", 7.0, everywhere=True))
    assert (pace.left(ADA), pace.left(BOB), pace.rests) == (7.0, 7.0, 7.0)
    assert not pace.is_free(BOB)


@pytest.mark.parametrize(("after", "kept"), [(None, 0.0), (-3.0, 0.0), (1e300, LONGEST)])
def test_waits_that_are_none_or_beyond_reason(after: float | None, kept: float) -> None:
    pace = Pace(None, Steady())
    pace.rest(ADA, Retry("429", after))
    assert pace.left(ADA) == kept


@pytest.mark.asyncio
async def test_places_are_as_far_apart_as_the_platform_wants_them() -> None:  # P43
    steady = Steady()
    pace = Pace(4.0, steady, steady.sleep)
    at = []
    for _ in range(4):
        await pace.turn()
        at.append(steady.at - 1000.0)
    assert at == [0.0, 0.25, 0.5, 0.75]
    assert not pace.is_free(ADA)
    steady.at += 1.0  # whoever comes late makes nobody hurry
    assert pace.is_free(ADA)
    await pace.turn()
    await pace.turn()
    assert steady.at == 1002.0


@pytest.mark.asyncio
async def test_nothing_that_can_be_left_out_goes_in_front_of_what_waits_for_a_place() -> None:
    steady, gate = Steady(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        await gate.wait()

    pace = Pace(4.0, steady, sleep)
    await pace.turn()
    waiting = asyncio.create_task(pace.turn())
    await asyncio.sleep(0)
    steady.at += 9.0
    assert not pace.is_free(ADA)
    gate.set()
    await waiting


@pytest.mark.asyncio
async def test_without_a_limit_nobody_waits() -> None:
    async def never(seconds: float) -> None:
        raise AssertionError

    pace = Pace(None, Steady(), never)
    for _ in range(100):
        await pace.turn()
    assert pace.is_free(ADA)


def test_only_so_many_chats_are_remembered() -> None:
    pace = Pace(None, Steady())
    for number in range(MAX_CHATS + 1):
        pace.rest(Address("desk", str(number)), Retry("429", 9.0))
    assert (pace.left(Address("desk", "0")), pace.left(Address("desk", str(MAX_CHATS)))) == (0.0, 9.0)
