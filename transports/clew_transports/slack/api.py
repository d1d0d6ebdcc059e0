"""Calls of Slack's Web API, and what their failures mean."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from clew_transports.calls import ANSWER_S, Answer, Calls, Unanswered, Unreached
from clew_transports.pace import Pauses

MAX_FILE_BYTES = 1024 * 1024 * 1024
"""The longest file that Slack stores. The host's own bound is smaller."""
LONGEST_REASON = 200
_SLACKS = re.compile(r"([a-z0-9-]+\.)*slack(-gov)?\.com", re.ASCII)
POST, UPDATE, DELETE = "chat.postMessage", "chat.update", "chat.delete"

ACCOUNT = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type", "missing_scope"}
    | {"no_permission", "org_login_required", "two_factor_setup_required", "access_denied", "accesslimited", "team_access_not_granted"}
    | {"forbidden_team"}
)
"""Errors that only somebody who administers the app or the workspace can mend: nothing is lost meanwhile."""
LATER = frozenset(
    {"ratelimited", "rate_limited", "message_limit_exceeded", "service_unavailable", "request_timeout", "team_added_to_org"}
    | {"external_channel_migrating", "method_not_supported_for_channel_type_yet"}
)
"""Errors after which the same call is right later: nothing was done."""
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "cant_delete_message"})
"""Errors about a message that cannot be changed any more."""
HALF_DONE = frozenset({"internal_error", "fatal_error"})
"""Errors of which Slack says that some of it may have been done."""
DEFAULT_WAIT_S = 30.0
"""Seconds to wait where Slack says that it is too much, and not for how long."""


class Refusal(Exception):
    """Slack answered, and did not do it.

    method: what was asked. error: Slack's name for the reason, such as `channel_not_found`. retry_after: seconds to wait, where it is
    about the rate. needed: the scope that is missing.
    """

    def __init__(self, method: str, error: str, retry_after: float | None = None, needed: str = "") -> None:
        super().__init__(f"Slack refused {method}: {error[:LONGEST_REASON]}" + (f" (needs {needed[:LONGEST_REASON]})" if needed else ""))
        self.method = method
        self.error = error
        self.retry_after = retry_after
        self.needed = needed


class Api:
    """The Web API below `base_url`, for an app with these tokens. Use as an async context manager. Errors never name a token."""

    def __init__(self, base_url: str, bot_token: str, app_token: str = "") -> None:
        self._base = URL(base_url.rstrip("/"))
        self._bot_token = bot_token
        self._app_token = app_token
        self._calls = Calls("Slack")
        self._waits = Pauses()

    async def __aenter__(self) -> Self:
        await self._calls.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._calls.__aexit__(kind, error, trace)

    async def call(self, method: str, arguments: Mapping[str, Any] | None = None, answer_s: float = ANSWER_S) -> dict[str, Any]:
        """The answer of a method, as the bot. Raises Refusal, Unreached or Unanswered.

        Sent as a form, which each method takes. Slack's limits are for a method in a workspace: a method that it asked to leave alone is
        refused here, but for chat.postMessage, whose limit is that of a channel.
        """
        now = asyncio.get_running_loop().time()
        if wait := self._waits.left(method, now):
            raise Refusal(method, "ratelimited", wait)
        try:
            return _result(method, await self._answer(method, arguments or {}, self._bot_token, answer_s))
        except Refusal as refusal:
            if refusal.retry_after is not None and method != POST:
                self._waits.pause(method, now + refusal.retry_after)
            raise

    async def address(self) -> URL:
        """Where a new Socket Mode connection may be opened, once. Raises Refusal, Unreached or Unanswered."""
        method = "apps.connections.open"
        answer = _result(method, await self._answer(method, {}, self._app_token, ANSWER_S))
        url = URL(str(answer.get("url") or ""), encoded=True)
        if url.scheme != "wss" and url.host != self._base.host:
            raise Unreached("apps.connections.open gave no secure address")
        return url

    async def socket(self, heartbeat_s: float) -> aiohttp.ClientWebSocketResponse:
        """A new Socket Mode connection. Raises Refusal, Unreached or Unanswered."""
        return await self._calls.websocket(await self.address(), heartbeat_s)

    async def download(self, file: str) -> AsyncIterator[bytes]:
        """The bytes of a file by its id. Raises LookupError where there is none, or it does not lie with Slack; Refusal, Unreached or
        Unanswered where it may be had another time."""
        try:
            told = (await self.call("files.info", {"file": file})).get("file") or {}
        except Refusal as refusal:
            if refusal.error in ACCOUNT | LATER | HALF_DONE:
                raise
            raise LookupError(str(refusal)) from None
        url = URL(str(told.get("url_private_download") or told.get("url_private") or ""), encoded=True)
        if not self._is_slacks(url):
            raise LookupError("the file does not lie with Slack")
        async for piece in self._calls.download(url, MAX_FILE_BYTES, headers=_bearer(self._bot_token)):
            yield piece

    def _is_slacks(self, url: URL) -> bool:
        """Whether the token may be sent there: a host of Slack's, or the one that the config names as such."""
        if url.absolute and url.origin() == self._base.origin():
            return True
        return url.scheme == "https" and url.explicit_port is None and _SLACKS.fullmatch(url.host or "") is not None

    async def examined(self) -> tuple[dict[str, Any], frozenset[str], float | None]:
        """What auth.test says, the scopes of the bot's token (empty if Slack does not tell), and Slack's clock, in seconds since the epoch.

        Raises Refusal, Unreached or Unanswered.
        """
        answer = await self._answer("auth.test", {}, self._bot_token, ANSWER_S)
        scopes = frozenset(filter(None, re.split(r"[\s,]+", answer.headers.get("x-oauth-scopes", ""))))
        try:
            clock = parsedate_to_datetime(answer.headers.get("Date", "")).timestamp()
        except (ValueError, OverflowError):
            clock = None
        return _result("auth.test", answer), scopes, clock

    async def _answer(self, method: str, arguments: Mapping[str, Any], token: str, answer_s: float) -> Answer:
        form = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
        return await self._calls.call("POST", URL(f"{self._base}/{method}", encoded=True), answer_s, data=form, headers=_bearer(token))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _result(method: str, answer: Answer) -> dict[str, Any]:
    if answer.status == 429:
        raise Refusal(method, "ratelimited", answer.retry_after() or DEFAULT_WAIT_S)
    said = answer.json()
    if not isinstance(said, dict) or "ok" not in said:
        # Not the Web API, but something in front of it. Behind a gateway that gave up waiting it may have been done.
        unknown = answer.status in (500, 504) or answer.status < 400
        raise (Unanswered if unknown else Unreached)(f"Slack answered {answer.status} with no JSON of the Web API")
    if said["ok"]:
        return said
    error = str(said.get("error", ""))
    wait = answer.retry_after()
    if wait is None and error in ("ratelimited", "rate_limited", "message_limit_exceeded"):
        wait = DEFAULT_WAIT_S
    raise Refusal(method, error, wait, str(said.get("needed") or ""))
