"""Telegram calling clew: the webhook that is set for the bot, and the requests that come to it."""

import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog
from aiohttp import web

from clew_transports.incoming import Answered, body
from clew_transports.telegram.api import Api

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
CONNECTIONS = 10
"""Requests that Telegram may make at the same time; those of one chat it makes one after the other."""
LOOK_S = 60.0
"""Seconds between two looks at whether Telegram reaches clew."""

log = structlog.get_logger()


class Unreachable(Exception):
    """Telegram cannot reach clew, in words for whoever can mend it."""


def secret_of(token: str) -> str:
    """What proves that a request is Telegram's: 64 of the characters that secret_token may have.

    It is made of the bot's token, which nobody else knows, so that there is no second secret to keep.
    """
    return hmac.new(token.encode(), b"clew webhook", hashlib.sha256).hexdigest()


class Webhook:
    """name: of the section. take: stores updates, None while clew takes none. clock: seconds since the epoch."""

    def __init__(
        self,
        name: str,
        token: str,
        take: Callable[[], Callable[[Sequence[Any]], Awaitable[None]] | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._secret = secret_of(token)
        self._take = take
        self._clock = clock
        self._heard = 0.0

    async def set(self, api: Api, url: str, updates: Sequence[str]) -> None:
        """Have Telegram call `url` from now on, with what waits there too. Raises what `Api.call` raises."""
        arguments = {"url": url, "secret_token": self._secret, "max_connections": CONNECTIONS, "allowed_updates": updates}
        await api.call("setWebhook", arguments)

    async def look(self, api: Api, url: str) -> None:
        """Raises Unreachable where what Telegram has for clew does not arrive, and what `Api.call` raises."""
        info = await api.call("getWebhookInfo") or {}
        if info.get("url") != url:
            raise Unreachable("another program has set or deleted this bot's webhook: stop it, or give clew a bot of its own")
        failed = info.get("last_error_date")
        if info.get("pending_update_count") and isinstance(failed, int) and failed > self._heard:
            raise Unreachable(f"Telegram does not reach {url}: {str(info.get('last_error_message', ''))[:200]}")

    async def posted(self, request: web.Request) -> web.Response:
        """An update. It is stored before it is answered; what is not answered with 200 Telegram sends again."""
        try:
            stated = request.headers.getall(SECRET_HEADER, [])
            if len(stated) != 1 or not hmac.compare_digest(stated[0].encode("utf-8", "replace"), self._secret.encode()):
                log.warning("inbox.rejected", transport=self._name, reason="the secret token is missing or wrong")
                raise Answered(401, "the secret token is missing or wrong")
            update = _read(await body(request))
            if (take := self._take()) is None:
                raise Answered(503, "clew does not take messages right now; send it again later")
            await take([update])
            self._heard = self._clock()
        except Answered as answer:
            return answer.response()
        return web.Response()


def _read(raw: bytes) -> dict[str, Any]:
    try:
        update = json.loads(raw.decode())
    except (ValueError, RecursionError):
        update = None
    if not isinstance(update, dict):
        raise Answered(400, "the body is not a JSON object")
    return update
