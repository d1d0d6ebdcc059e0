"""Names of people, asked of Slack once in a while."""

import asyncio
from collections.abc import Iterable

from clew_transports.calls import Unanswered, Unreached
from clew_transports.slack.api import Api, Refusal

MAX_NAMES = 2000
"""Names that are remembered; the one that was asked for first is forgotten first."""
LASTING_S, NAMELESS_S = 6 * 3600.0, 60.0
"""Seconds after which a name is asked for again, and one that could not be had."""
ANSWER_S = 1.0
"""Seconds that a name may take: an event is to be acknowledged within three."""


class Names:
    """What people call themselves. Lossy: without an answer, or the scope users:read, a name is empty."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, tuple[str, float]] = {}

    async def of(self, users: Iterable[str]) -> dict[str, str]:
        """The names of these users, by their ids."""
        now = asyncio.get_running_loop().time()
        asked = [user for user in users if user not in self._known or self._known[user][1] <= now]
        for user, name in zip(asked, await asyncio.gather(*map(self._ask, asked)), strict=True):
            self._known.pop(user, None)
            self._known[user] = (name, now + (LASTING_S if name else NAMELESS_S))
        while len(self._known) > MAX_NAMES:
            del self._known[next(iter(self._known))]
        return {user: self._known[user][0] for user in users if user in self._known}

    async def _ask(self, user: str) -> str:
        try:
            async with asyncio.timeout(ANSWER_S):
                told = (await self._api.call("users.info", {"user": user}, ANSWER_S)).get("user") or {}
            profile = told.get("profile") or {}
            return str(profile.get("display_name") or profile.get("real_name") or told.get("name") or "")[:200]
        except (Refusal, Unreached, Unanswered, TimeoutError, AttributeError):
            return ""
