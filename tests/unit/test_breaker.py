"""A provider that keeps failing is left alone, then tried with one call."""

import pytest

from clew.providers import ErrorKind
from clew.providers.breaker import COOLING, FAILURES, Breaker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def opened() -> tuple[Clock, Breaker]:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        assert breaker.wait() == 0
        breaker.failed("server")
    return clock, breaker


def test_it_opens_after_failures_in_a_row_and_lets_one_call_try_after_a_while() -> None:
    clock, breaker = opened()
    assert breaker.state == "open"
    assert breaker.wait() == COOLING
    clock.now += COOLING
    assert breaker.wait() == 0
    assert str(breaker.state) == "half-open"
    assert breaker.wait() > 0, "only one call tries"
    breaker.succeeded()
    assert (breaker.state, breaker.wait()) == ("closed", 0)


def test_a_try_that_fails_opens_it_again_at_once() -> None:
    clock, breaker = opened()
    clock.now += COOLING
    assert breaker.wait() == 0
    breaker.failed("stall")
    assert (breaker.state, breaker.wait()) == ("open", COOLING)


def test_a_try_without_a_verdict_lets_another_one_try() -> None:
    clock, breaker = opened()
    clock.now += COOLING
    assert breaker.wait() == 0
    breaker.release()
    assert breaker.wait() == 0


def test_a_try_that_never_came_back_does_not_keep_it_shut() -> None:
    clock, breaker = opened()
    clock.now += COOLING
    assert breaker.wait() == 0
    clock.now += COOLING
    assert breaker.wait() == 0


@pytest.mark.parametrize("kind", ["auth", "quota", "overflow", "invalid", "rate_limit"])
def test_failures_that_say_nothing_about_the_provider_do_not_count(kind: ErrorKind) -> None:
    breaker = Breaker(Clock())
    for _ in range(FAILURES * 2):
        breaker.failed(kind)
    assert breaker.state == "closed"


def test_a_success_starts_the_count_anew() -> None:
    breaker = Breaker(Clock())
    for _ in range(FAILURES - 1):
        breaker.failed("server")
    breaker.succeeded()
    breaker.failed("server")
    assert breaker.state == "closed"
