"""People on a real homeserver, each a client of its own."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from tests.emulators.server import JsonObject
from tests.synapse import Synapse

PASSWORD = "the password of the tests"
DEADLINE_S = 60.0
_NUMBERS = count(1)


class Someone:
    """An account on the homeserver, signed in. events: what was seen in each room, in order."""

    def __init__(self, server: Synapse, http: aiohttp.ClientSession, account: JsonObject) -> None:
        self._url = server.url
        self._http = http
        self.token: str = account["access_token"]
        self.id: str = account["user_id"]
        self.name = self.id[1:].partition(":")[0]
        self.events: dict[str, list[JsonObject]] = {}
        self._numbers = count(1)
        self._changed = asyncio.Event()

    async def call(self, method: str, *path: str, body: Any = None, query: dict[str, str] | None = None, raw: bytes | None = None) -> Any:
        """What the homeserver answers. Fails on a refusal."""
        status, answer = await self.ask(method, *path, body=body, query=query, raw=raw)
        assert status == 200, (path, status, answer)
        return answer

    async def ask(
        self, method: str, *path: str, body: Any = None, query: dict[str, str] | None = None, raw: bytes | None = None
    ) -> tuple[int, Any]:
        root = "media" if path[0] == "upload" else "client"
        url = URL(f"{self._url}/_matrix/{root}/v3/" + "/".join(quote(each, safe="") for each in path), encoded=True).with_query(query or {})
        headers = {"Authorization": f"Bearer {self.token}"}
        more: JsonObject = {"data": raw} if raw is not None else {"json": body} if body is not None else {}
        async with self._http.request(method, url, headers=headers, **more) as answer:
            return answer.status, await answer.json()

    async def room(self, *invited: "Someone", **more: Any) -> str:
        """A new room of this person's; the invited ones are asked, not joined."""
        body = {"preset": "private_chat", "invite": [each.id for each in invited], **more}
        return str((await self.call("POST", "createRoom", body=body))["room_id"])

    async def invite(self, room: str, whom: "Someone") -> None:
        await self.call("POST", "rooms", room, "invite", body={"user_id": whom.id})

    async def join(self, room: str) -> None:
        await self.call("POST", "rooms", room, "join", body={})

    async def send(self, room: str, content: JsonObject, kind: str = "m.room.message") -> str:
        answer = await self.call("PUT", "rooms", room, "send", kind, f"t{next(self._numbers)}", body=content)
        return str(answer["event_id"])

    async def say(self, room: str, text: str, **more: Any) -> str:
        return await self.send(room, {"msgtype": "m.text", "body": text, **more})

    async def edit(self, room: str, event: str, text: str, **more: Any) -> str:
        new = {"msgtype": "m.text", "body": text, **more}
        relation = {"rel_type": "m.replace", "event_id": event}
        return await self.send(room, {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation})

    async def redact(self, room: str, event: str) -> None:
        await self.call("PUT", "rooms", room, "redact", event, f"t{next(self._numbers)}", body={})

    async def upload(self, data: bytes, mime: str = "image/png") -> str:
        return str((await self.call("POST", "upload", raw=data, query={"filename": "x"}))["content_uri"])

    async def watch(self) -> None:
        """Keep up with the rooms, until cancelled."""
        since, query = "", {"timeout": "0", "filter": json.dumps({"room": {"timeline": {"limit": 200}}})}
        with contextlib.suppress(aiohttp.ClientError):
            while True:
                answer = await self.call("GET", "sync", query=query)
                for room, each in answer.get("rooms", {}).get("join", {}).items():
                    self.events.setdefault(room, []).extend(each["timeline"]["events"])
                since = answer["next_batch"]
                query = {**query, "timeout": "20000", "since": since}
                self._changed.set()

    def seen(self, room: str, whose: str) -> list[JsonObject]:
        """The messages of somebody's in a room, in order, each as it was edited last."""
        found: dict[str, JsonObject] = {}
        for event in self.events.get(room, ()):
            if event["sender"] != whose or event["type"] != "m.room.message":
                continue
            content = event["content"]
            relation = content.get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace":
                if relation["event_id"] in found:
                    found[relation["event_id"]] |= content["m.new_content"]
            elif "msgtype" in content:
                found.setdefault(event["event_id"], {**content, "event_id": event["event_id"]})
        return list(found.values())

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until `condition` holds, looked at after each answer of /sync. Returns what it gave."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not (found := condition()):
                    self._changed.clear()
                    await self._changed.wait()
                return found
        except TimeoutError:
            raise AssertionError(f"{self.id} saw {json.dumps(self.events, indent=1)[-4000:]}") from None


@contextlib.asynccontextmanager
async def people(server: Synapse, *names: str, watching: bool = True) -> AsyncIterator[list[Someone]]:
    """New accounts; each name gets a number behind it, for the homeserver is one for all tests."""
    async with aiohttp.ClientSession() as http:
        number = next(_NUMBERS)
        found = [Someone(server, http, await server.register(http, f"{name}{number}", PASSWORD)) for name in names]
        tasks = [asyncio.create_task(each.watch()) for each in found] if watching else []
        try:
            yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
