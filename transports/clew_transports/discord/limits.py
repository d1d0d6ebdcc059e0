"""How long Discord wants to be left alone, as it says in the headers of its answers. All times in seconds of one clock."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

MOST_CALLS = 45
"""Calls in one second, below the 50 that Discord allows a bot in all."""
LOOK_S = 0.05
"""Seconds between two looks whether one of MOST_CALLS has been answered."""
MAX_BUCKETS = 2000
"""Buckets that are remembered; the one that was met longest ago is forgotten first."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a limit is for. route: method and path without ids. major: the channel, which has limits of its own."""

    route: str
    major: str


@dataclass(slots=True)
class _Bucket:
    left: int
    until: float


class Limits:
    """Buckets of calls, and the limit of all calls together."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._everything = 0.0
        self._under_way = 0
        self._answered: deque[float] = deque(maxlen=MOST_CALLS)

    def wait(self, call: Call, now: float) -> float:
        """Seconds until `call` may be made; 0.0 if it may now."""
        free = [self._everything]
        bucket = self._buckets.get(self._key(call))
        if bucket and bucket.left <= 0:
            free.append(bucket.until)
        return max(max(free) - now, self._crowd(now))

    def everywhere(self, now: float) -> bool:
        """Whether Discord asked to make no calls at all now."""
        return self._everything > now

    def began(self, call: Call, now: float) -> None:
        """`call` is made now. Of calls that are made before an answer is there, each takes its place."""
        self._under_way += 1
        bucket = self._buckets.get(self._key(call))
        if bucket and bucket.until > now:
            bucket.left -= 1

    def ended(self, now: float) -> None:
        """A call was answered, or will not be. It counts for a second more, for it is not known when Discord took it."""
        self._under_way -= 1
        self._answered.append(now)

    def learn(self, call: Call, headers: Mapping[str, str], now: float) -> None:
        """What an answer to `call` says of its bucket."""
        if name := headers.get("X-RateLimit-Bucket", ""):
            self._names[call.route] = name
        try:
            left, seconds = int(headers["X-RateLimit-Remaining"]), float(headers["X-RateLimit-Reset-After"])
        except (KeyError, ValueError):
            return
        self._note(call, left, now + seconds)

    def refused(self, call: Call, after: float, now: float, *, everywhere: bool) -> None:
        """Discord answered 429: nothing like `call`, or nothing at all, before `after` seconds have passed."""
        if everywhere:
            self._everything = max(self._everything, now + after)
        else:
            self._note(call, 0, now + after)

    def _crowd(self, now: float) -> float:
        """Seconds until there is room for one more of MOST_CALLS."""
        while self._answered and self._answered[0] <= now - 1.0:
            self._answered.popleft()
        if self._under_way + len(self._answered) < MOST_CALLS:
            return 0.0
        return self._answered[0] + 1.0 - now if self._answered else LOOK_S

    def _note(self, call: Call, left: int, until: float) -> None:
        key = self._key(call)
        before = self._buckets.pop(key, None)
        if before and before.left <= 0 and left > 0 and before.until > until:
            left, until = before.left, before.until  # an answer that was overtaken by a refusal
        self._buckets[key] = _Bucket(left, until)
        while len(self._buckets) > MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]

    def _key(self, call: Call) -> tuple[str, str]:
        return self._names.get(call.route, call.route), call.major
