"""An ntfy server as its documentation describes it: topics with a cache, streams of JSON lines, publishing with its limit, access tokens.

What it can be told to do wrong: `next`, a queue of faults, each for one publication.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aiohttp import web

from tests.emulators.listening import Fault, Listening
from tests.emulators.server import JsonObject

TOKEN = "tk_the_token_of_the_tests"
LIMIT = 4096


class NtfyEmulator(Listening):
    """Use as an async context manager.

    messages: all that was published, as the streams say it. sinces: the `since` of each stream that was opened. closed: topics that need
    TOKEN.
    """

    def __init__(self) -> None:
        super().__init__()
        self.next: deque[Fault] = deque()
        self.messages: list[JsonObject] = []
        self.sinces: list[str] = []
        self.closed: set[str] = set()
        self.files: dict[str, bytes] = {}
        self._streams: set[web.StreamResponse] = set()
        self._news = asyncio.Condition()
        self._number = 0

    def _routes(self) -> Sequence[web.RouteDef]:
        return [
            web.get("/v1/health", self._health),
            web.get("/file/{name}", self._file),
            web.get("/{topics}/json", self._read),
            web.post("/{topic}", self._publish),
        ]

    # What people do ----------------------------------------------------------------------------------------------

    async def say(self, topic: str, text: str, **more: Any) -> JsonObject:
        """Publish something. Returns the message."""
        self._number += 1
        message = {"id": f"m{self._number:09}", "time": 1_800_000_000 + self._number, "event": "message", "topic": topic, "message": text}
        message |= more
        await self.give(message)
        return message

    async def give(self, message: JsonObject) -> None:
        async with self._news:
            self.messages.append(message)
            self._news.notify_all()

    def texts(self, topic: str) -> list[str]:
        """What is in a topic; a message whose sequence id came again is the later one."""
        found = {each.get("sequence_id", each["id"]): each["message"] for each in self.messages if each["topic"] == topic}
        return list(found.values())

    async def cut(self) -> None:
        """All streams break."""
        for stream in list(self._streams):
            assert stream._req is not None
            assert stream._req.transport is not None
            stream._req.transport.abort()

    # What clew asks ----------------------------------------------------------------------------------------------

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"healthy": True})

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])

    async def _read(self, request: web.Request) -> web.StreamResponse:
        topics = request.match_info["topics"].split(",")
        if refusal := self._refusal(request, topics):
            return refusal
        since = request.query.get("since", "all" if "poll" in request.query else "none")
        if "poll" in request.query:
            return web.Response(text="".join(_lines(self._cached(since, topics))), content_type="application/x-ndjson")
        self.sinces.append(since)
        response = web.StreamResponse(headers={"content-type": "application/x-ndjson; charset=utf-8"})
        await response.prepare(request)
        self._streams.add(response)
        try:
            await self._stream(response, topics, since)
        finally:
            self._streams.discard(response)
        return response

    async def _stream(self, response: web.StreamResponse, topics: list[str], since: str) -> None:
        opened = {"id": "o", "time": 1, "event": "open", "topic": ",".join(topics)}
        behind = len(self.messages)
        for line in _lines([opened, *self._cached(since, topics)]):
            await response.write(line.encode())
        while True:
            async with self._news:
                while len(self.messages) <= behind:
                    await self._news.wait()
                new, behind = self.messages[behind:], len(self.messages)
            for line in _lines([each for each in new if each["topic"] in topics]):
                await response.write(line.encode())

    def _cached(self, since: str, topics: list[str]) -> list[JsonObject]:
        """Behind an id that is not in the cache comes all of it."""
        if since == "none":
            return []
        mine = self.messages
        if since.isdecimal():
            mine = [each for each in mine if each["time"] >= int(since)]
        elif since != "all":
            places = [place for place, each in enumerate(mine) if each["id"] == since]
            mine = mine[places[0] + 1 :] if places else mine
        return [each for each in mine if each["topic"] in topics]

    async def _publish(self, request: web.Request) -> web.StreamResponse:
        topic, body = request.match_info["topic"], await request.read()
        if refusal := self._refusal(request, [topic]):
            return refusal
        if len(body) > LIMIT:
            return _error(413, 41301, "attachment too large, or bandwidth limit reached")
        text = body.decode().strip()  # an emulator that is given no UTF-8 fails its test
        self._number += 1
        message: JsonObject = {
            "id": f"m{self._number:09}",
            "time": 1_800_000_000 + self._number,
            "event": "message",
            "topic": topic,
            "message": text or "triggered",
        }
        if sequence := request.headers.get("X-Sequence-ID"):
            message["sequence_id"] = sequence
        if request.headers.get("Markdown") == "yes":
            message["content_type"] = "text/markdown"

        def carried_out() -> JsonObject:
            self.messages.append(message)
            return message

        if self.next:
            return await self.next.popleft()(request, carried_out)
        await self.give(message)
        return web.json_response(message)

    def _refusal(self, request: web.Request, topics: list[str]) -> web.Response | None:
        if self.closed.isdisjoint(topics) or request.headers.get("Authorization") == f"Bearer {TOKEN}":
            return None
        return _error(403, 40301, "forbidden")


def _lines(messages: list[JsonObject]) -> Iterator[str]:
    return (json.dumps(each, ensure_ascii=False) + "\n" for each in messages)


def _error(status: int, code: int, why: str, **headers: str) -> web.Response:
    return web.json_response({"code": code, "http": status, "error": why}, status=status, headers=headers)


# Faults ----------------------------------------------------------------------------------------------------------


def too_many(seconds: int) -> Fault:
    """Refuses a publication, nothing done."""

    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        return _error(429, 42901, "limit reached: too many requests", **{"Retry-After": str(seconds)})

    return behave


def refuses(status: int, why: str) -> Fault:
    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        return _error(status, status * 100 + 1, why)

    return behave
