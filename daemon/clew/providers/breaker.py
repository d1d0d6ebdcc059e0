"""A circuit breaker: a provider that keeps failing is left alone for a while, then tried with one call."""

from collections.abc import Callable
from typing import Literal

from clew.providers import ErrorKind

FAILURES = 5
"""Failures in a row after which calls are no longer tried."""
COOLING = 30.0
"""Seconds before one call may try whether the provider is back."""
COUNTED: frozenset[ErrorKind] = frozenset({"overloaded", "server", "network", "cut", "stall"})
"""Failures that say something about the provider and not about the request or the account."""

State = Literal["closed", "open", "half-open"]


class Breaker:
    """Of one provider. `steady`: a clock that does not jump, seconds. A call that tries has COOLING seconds before another one may."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._failures = 0
        self._opened = 0.0
        self.state: State = "closed"

    def wait(self) -> float:
        """Seconds until a call may be tried; 0 where it may be now. The first one to ask after the cooling is the one that tries."""
        if self.state == "closed":
            return 0.0
        left = self._opened + COOLING - self._steady()
        if left > 0:
            return left
        self.state = "half-open"
        self._opened = self._steady()
        return 0.0

    def succeeded(self) -> None:
        self._failures = 0
        self.state = "closed"

    def failed(self, kind: ErrorKind) -> None:
        """Count a failure."""
        if kind not in COUNTED:
            self.release()
            return
        self._failures += 1
        if self.state == "half-open" or self._failures >= FAILURES:
            self.state, self._opened = "open", self._steady()

    def release(self) -> None:
        """The call that tried came to no verdict (it was stopped, or failed for its own reasons): let another one try."""
        if self.state == "half-open":
            self.state = "open"
            self._opened = self._steady() - COOLING
