"""Calls of Discord's HTTP API, at the rate that it allows, and what their failures mean."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from clew_transports.calls import ANSWER_S, Answer, Calls, Unanswered, Unreached
from clew_transports.discord.limits import Call, Limits

MAX_FILE_BYTES = 500 * 1024 * 1024
"""The longest file that anybody can upload to Discord."""
LONGEST_REASON = 200
PATIENCE_S = 5.0
"""Seconds that a call waits by itself for its turn; who has to wait longer is told."""
WAIT_S = 5.0
"""Seconds to wait where a 429 does not say how long."""
NOT_DONE = frozenset({502, 503, 521, 522, 523})
"""Answers of what stands in front of Discord when the request did not get through."""
CLOSE_S = 2.0

NO_HISTORY = 160_002
"""Discord's code where a reply needs the permission to read the history."""
UNEDITABLE = frozenset({10_008, 50_005})
"""Its codes for a message that is not there (any more), and for somebody else's."""


_ID = re.compile(r"[0-9]{1,20}|[A-Za-z0-9_-]{30,1000}")
"""A number, or the token of an interaction."""


class Refusal(Exception):
    """Discord answered, and did not do it.

    status: of HTTP. code: Discord's own, 0 for none. retry_after: seconds to wait, where it says so. everywhere: that is for all calls.
    """

    def __init__(self, status: int, why: str, code: int = 0, retry_after: float | None = None, *, everywhere: bool = False) -> None:
        super().__init__(f"Discord answered {status}: {why[:LONGEST_REASON]}" + (f" ({code})" if code else ""))
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.everywhere = everywhere


class Api:
    """The HTTP API for one token, below `base_url`. Use as an async context manager."""

    def __init__(self, base_url: str, token: str, answer_s: float = ANSWER_S) -> None:
        self._base = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": "DiscordBot (clew, 1)"}
        self._answer_s = answer_s
        self._calls = Calls("Discord")
        self._limits = Limits()
        self.date: float | None = None
        """When the last answer was given, by Discord's clock, in seconds since the epoch."""

    async def __aenter__(self) -> Self:
        await self._calls.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._calls.__aexit__(kind, error, trace)

    async def call(
        self, method: str, path: str, *ids: str, patience_s: float = PATIENCE_S, query: dict[str, str] | None = None, json: Any = None
    ) -> Any:
        """What Discord answers. Raises Refusal, Unreached or Unanswered.

        path: with `{}` for each of `ids`; the first is what the limits of the call are counted by. patience_s: a longer
        wait for the call's turn is a Refusal without a call.
        """
        if not all(_ID.fullmatch(each) for each in ids):
            raise Refusal(404, "that is no id that Discord gives anything")
        call = Call(f"{method} {path}", ids[0] if ids else "")
        await self._turn(call, patience_s)
        url = URL(self._base + path.format(*ids), encoded=True).with_query(query or {})
        body = {} if json is None else {"json": json}
        loop = asyncio.get_running_loop()
        try:
            answer = await self._calls.call(method, url, self._answer_s, headers=self._headers, **body)
        finally:
            now = loop.time()
            self._limits.ended(now)
        self._limits.learn(call, answer.headers, now)
        with contextlib.suppress(ValueError):
            self.date = parsedate_to_datetime(answer.headers.get("Date", "")).timestamp()
        if answer.status == 429:
            refusal = _too_many(answer)
            self._limits.refused(call, refusal.retry_after or 0.0, now, everywhere=refusal.everywhere)
            raise refusal
        return _result(answer)

    async def download(self, url: str) -> AsyncIterator[bytes]:
        """The bytes of a file at an address that Discord gave. Raises LookupError where there is none that can be had."""
        async for piece in self._calls.download(URL(url), MAX_FILE_BYTES):
            yield piece

    async def websocket(self, url: str) -> aiohttp.ClientWebSocketResponse:
        """An open gateway, which whoever asked for it closes, with a code of theirs. Raises Unreached."""
        address = URL(url).with_query(v="10", encoding="json")
        return await self._calls.websocket(address, timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S), autoclose=False)

    async def _turn(self, call: Call, patience_s: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        while wait := self._limits.wait(call, loop.time()):
            if loop.time() + wait > until:
                raise Refusal(429, "it asked to wait", retry_after=wait, everywhere=self._limits.everywhere(loop.time()))
            await asyncio.sleep(wait)
        self._limits.began(call, loop.time())


def _too_many(answer: Answer) -> Refusal:
    said = answer.json()
    if not isinstance(said, dict):  # Cloudflare, which shuts a whole address out
        return Refusal(429, "too many requests", retry_after=answer.retry_after() or WAIT_S, everywhere=True)
    wait = said.get("retry_after")
    after = float(wait) if isinstance(wait, int | float) and 0 <= wait < 86_400 else answer.retry_after() or WAIT_S
    code = said.get("code")
    why = str(said.get("message", ""))
    return Refusal(429, why, code if isinstance(code, int) else 0, after, everywhere=said.get("global") is True)


def _result(answer: Answer) -> Any:
    if answer.status == 204:
        return None
    said = answer.json()
    if 200 <= answer.status < 300 and said is not None:
        return said
    if answer.status in NOT_DONE or 300 <= answer.status < 400:
        raise Unreached(f"Discord answered {answer.status}")
    if answer.status >= 500 or answer.status < 300:
        raise Unanswered(f"Discord answered {answer.status}, which does not say whether it was done")
    if not isinstance(said, dict) or "message" not in said:
        raise Unreached(f"{answer.status} was answered, and not by Discord's API")
    code = said.get("code")
    raise Refusal(answer.status, str(said["message"]), code if isinstance(code, int) else 0)
