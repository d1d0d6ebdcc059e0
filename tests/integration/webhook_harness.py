"""What the webhook's tests share: a caller that signs, and a receiver of replies that answers as it is told."""

import asyncio
import hashlib
import hmac
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from aiohttp import web

from tests.integration.web_harness import DEADLINE_S, Clew

SECRET = "the secret of the tests"
OLD_SECRET = "the secret before it"


def proof(body: bytes, *, secret: str = SECRET, age: float = 0.0) -> dict[str, str]:
    """The headers of a request, written down from the docs. age: seconds since it was signed."""
    stamp = str(int(time.time() - age))
    digest = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Clew-Timestamp": stamp, "X-Clew-Signature": f"sha256={digest}"}


def message(id: str = "m1", text: str = "Hello", **more: Any) -> dict[str, Any]:
    return {"id": id, "chat": "ada", "sender": "ada", "text": text, **more}


async def call(clew: Clew, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    async with clew.http.post(f"{clew.url}/webhooks/webhook", data=BytesIO(body), headers=headers) as response:
        return response.status, await response.json()


async def say(clew: Clew, fields: dict[str, Any], **how: Any) -> tuple[int, Any]:
    body = json.dumps(fields).encode()
    return await call(clew, body, proof(body, **how))


async def until(condition: Callable[[], bool], tick: float = 0.01) -> None:
    """Wait until `condition` holds; it is looked at every `tick` seconds."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(tick)


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    def is_signed(self, secret: str = SECRET) -> bool:
        signed = self.headers["x-clew-timestamp"].encode() + b"." + self.raw
        return self.headers["x-clew-signature"] == "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


Behaviour = Callable[[web.Request], Any]


@dataclass
class Receiver:
    """Keeps each POST. `next`: what becomes of the next ones; 200 when there is nothing left."""

    calls: list[Call] = field(default_factory=list)
    next: deque[Behaviour] = field(default_factory=deque)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _take(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.calls.append(Call(request.path_qs, headers, await request.read()))
        answer = await self.next.popleft()(request) if self.next else web.Response()
        assert isinstance(answer, web.StreamResponse)
        return answer


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", receiver._take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.port = runner.addresses[0][1]
        yield receiver
    finally:
        await runner.cleanup()


def answers(status: int, **headers: str) -> Behaviour:
    async def behave(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return behave


async def drops(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def hangs(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()
