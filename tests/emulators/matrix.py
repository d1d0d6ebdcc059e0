"""What stands between clew and a real homeserver, and does what that cannot be made to do: requests that are refused, lost before or after
they are done, or never answered, floods of 429, events that come again, a homeserver that is down.

`next[what]` is a queue of faults, each for one call; `what` is the last fixed word of the path, such as `sync`, `send` or `messages`.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any, Self

import aiohttp
from aiohttp import web
from yarl import URL

WORDS = (
    "sync",
    "send",
    "typing",
    "messages",
    "members",
    "event",
    "join",
    "login",
    "whoami",
    "displayname",
    "state",
    "download",
    "keys",
    "sendToDevice",
)

Forward = Callable[[], Awaitable[web.Response]]
Fault = Callable[[web.Request, Forward], Awaitable[web.StreamResponse]]


def refuses(status: int, kind: str, **more: Any) -> Fault:
    async def fault(request: web.Request, forward: Forward) -> web.StreamResponse:
        return web.json_response({"errcode": kind, "error": f"{kind} of the tests", **more}, status=status)

    return fault


def too_many(seconds: float) -> Fault:
    return refuses(429, "M_LIMIT_EXCEEDED", retry_after_ms=int(seconds * 1000))


def answers(status: int, text: str = "<html>Bad Gateway</html>") -> Fault:
    """A proxy in front of the homeserver speaks, and no homeserver."""

    async def fault(request: web.Request, forward: Forward) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type="text/html")

    return fault


async def drops(request: web.Request, forward: Forward) -> web.StreamResponse:
    """The connection breaks, and nothing is done."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def does_and_drops(request: web.Request, forward: Forward) -> web.StreamResponse:
    """It is done, and the connection breaks before the answer."""
    await forward()
    return await drops(request, forward)


async def hangs(request: web.Request, forward: Forward) -> web.StreamResponse:
    """Nothing is done, and no answer comes."""
    await asyncio.Event().wait()
    raise AssertionError


class Gateway:
    """Use as an async context manager. calls: (what, method, path, query, body) of all requests, in order."""

    def __init__(self, homeserver: str) -> None:
        self._homeserver = homeserver
        self.next: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.calls: list[tuple[str, str, str, dict[str, str], Any]] = []
        self.url = ""
        self.first_since: str | None = None
        self._rewound = asyncio.Event()
        self._changed = asyncio.Event()
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(auto_decompress=False)
        await self.up()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.down()
        assert self._http is not None
        await self._http.close()

    async def up(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._called)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        assert site._server is not None
        self._port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._port}"

    async def down(self) -> None:
        if self._runner:
            await self._runner.cleanup()
        self._runner = None

    def rewind(self) -> None:
        """The next /sync, and one that waits, begin where the first one that had a `since` began: all events come again."""
        self._rewound.set()

    def of(self, what: str) -> list[tuple[str, str, dict[str, str], Any]]:
        """(method, path, query, body) of the calls of one kind."""
        return [call[1:] for call in self.calls if call[0] == what]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def _called(self, request: web.Request) -> web.StreamResponse:
        what = next((each for each in reversed(request.path.split("/")) if each in WORDS), "")
        query = dict(request.query)
        raw = await request.read()
        self.calls.append((what, request.method, request.path, query, await request.json() if raw else None))
        self._changed.set()
        if what == "sync":
            return await self._sync(request, query)

        async def forward() -> web.Response:
            return await self._forward(request, raw, str(request.rel_url))

        if self.next[what]:
            return await self.next[what].popleft()(request, forward)
        return await forward()

    async def _sync(self, request: web.Request, query: dict[str, str]) -> web.StreamResponse:
        async def forward() -> web.Response:
            return await self._poll(request, query)

        if self.first_since is None:
            self.first_since = query.get("since")
        if self.next["sync"]:
            return await self.next["sync"].popleft()(request, forward)
        return await forward()

    async def _poll(self, request: web.Request, query: dict[str, str]) -> web.Response:
        """A poll that waits is begun again from the first place when it is rewound."""
        while True:
            if self._rewound.is_set() and self.first_since and "since" in query:
                self._rewound.clear()
                query = {**query, "since": self.first_since}
            poll = asyncio.create_task(self._forward(request, b"", str(request.rel_url.with_query(query))))
            rewound = asyncio.create_task(self._rewound.wait())
            try:
                await asyncio.wait((poll, rewound), return_when=asyncio.FIRST_COMPLETED)
                if poll.done():
                    return poll.result()
            finally:
                poll.cancel()
                rewound.cancel()
                await asyncio.gather(poll, rewound, return_exceptions=True)

    async def _forward(self, request: web.Request, raw: bytes, path: str) -> web.Response:
        assert self._http is not None
        kept = {name: value for name, value in request.headers.items() if name.lower() in ("authorization", "content-type", "accept")}
        async with self._http.request(request.method, URL(self._homeserver + path, encoded=True), data=raw, headers=kept) as answer:
            body = await answer.read()
            headers = {name: value for name, value in answer.headers.items() if name.lower() in ("content-type", "retry-after")}
            return web.Response(status=answer.status, body=body, headers=headers)
