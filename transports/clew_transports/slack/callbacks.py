"""Requests of the Events API: proven, stored, answered within the time that Slack waits."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from clew_transports.incoming import Answered, body
from clew_transports.signature import Forged, Scheme

SLACK = Scheme("X-Slack-Request-Timestamp", "X-Slack-Signature", "v0=", before=b"v0:", between=b":")

ACCEPT_S, BODY_S = 2.0, 0.8
"""Seconds that an event may take to be stored, and its body to arrive: Slack waits three in all, and asks again where it gets no answer."""

MAX_FIELDS = 10
"""Fields of a form; Slack sends one."""

log = structlog.get_logger()


class Inlet(Protocol):
    """Where events go."""

    async def payload(self, payload: Any) -> None: ...

    def missed_some(self) -> None: ...


class Callbacks:
    """name: of the section. secret: the app's signing secret; an empty one lets nobody in. clock: seconds since the epoch. inlet: where
    events go now; None while clew cannot take any."""

    def __init__(self, name: str, secret: str, clock: Callable[[], float], inlet: Callable[[], Inlet | None]) -> None:
        self._name = name
        self._secret = secret
        self._clock = clock
        self._inlet = inlet
        self._storing: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Give up what is being stored: nobody was told that it was, and it will be offered again."""
        for task in self._storing:
            task.cancel()
        await asyncio.gather(*self._storing, return_exceptions=True)

    async def posted(self, request: web.Request) -> web.Response:
        """An event, or Slack's question whether this is the right address."""
        try:
            payload = await self._payload(request)
            if payload.get("type") == "url_verification":
                return web.json_response({"challenge": str(payload.get("challenge"))[:1000]})
            if (inlet := self._inlet()) is None:
                raise Answered(503, "clew does not take messages right now; send it again later")
            if payload.get("type") == "app_rate_limited":
                inlet.missed_some()
            else:
                await self._stored(inlet, payload)
            return web.Response()
        except Answered as answer:
            return answer.response()

    async def _payload(self, request: web.Request) -> dict[str, Any]:
        """The payload of a request that Slack signed. Raises Answered for any other."""
        try:
            headers = request.headers
            stamp, signature = SLACK.stated(headers.getall(SLACK.timestamp, []), headers.getall(SLACK.signature, []), self._clock())
            raw = await body(request, body_s=BODY_S)
            SLACK.check(stamp, signature, raw, [self._secret])
        except Forged as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            raise Answered(401, "the timestamp or the signature is missing or wrong") from None
        try:
            if request.content_type == "application/x-www-form-urlencoded":  # a button that was pressed
                raw = dict(parse_qsl(raw.decode(), max_num_fields=MAX_FIELDS)).get("payload", "").encode()
            payload = json.loads(raw.decode())
        except (ValueError, RecursionError):
            payload = None
        if not isinstance(payload, dict):
            raise Answered(400, "the body is not a JSON object")
        return payload

    async def _stored(self, inlet: Inlet, payload: dict[str, Any]) -> None:
        """Store an event, or ask Slack to offer it again. What takes longer goes on, and is known when it comes again."""
        storing = asyncio.create_task(inlet.payload(payload), name=f"{self._name}.event")
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        await asyncio.wait((storing,), timeout=ACCEPT_S)
        if not storing.done():
            raise Answered(503, "it is not stored yet; send it again")
        storing.result()
