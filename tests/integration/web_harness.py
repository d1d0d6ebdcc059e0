"""A whole clew in this process for the web room's tests: real store, real listeners, a model that is emulated or none."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
from pydantic import BaseModel

from clew.config import Config, Source, load
from clew.plugins import registry
from clew.service import Service
from clew.store.sql import SqlStore
from clew.web.server import Listening, serve
from tests.databases import databases

DEADLINE_S = 20.0


def settings(folder: Path, *, base_url: str | None = None, **extra: Any) -> Config:
    """A config in `folder` on a free port; with the model at `base_url`, else with none."""
    folder.mkdir(exist_ok=True)
    model = {"kind": "openai", "base_url": base_url, "model": "any", "context_window": 32768} if base_url else {"kind": "offline"}
    path = folder / "clew.yaml"
    data = folder / "data"
    values = {"data_dir": str(data), "store": databases.store(data), "http": {"port": 0}, "providers": {"model": model}}
    path.write_text(json.dumps(values | extra))
    return load(path, transports=_models("transports"), providers=_models("providers"))


def _models(group: str) -> dict[str, type[BaseModel]]:
    return {name: plugin.Config for name, plugin in registry(f"clew.{group}").items()}


@dataclass(slots=True)
class Clew:
    """A clew that listens. `http` goes by TCP, `local` by the daemon's socket."""

    service: Service
    listening: Listening
    http: aiohttp.ClientSession
    local: aiohttp.ClientSession

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listening.port}"

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        async with self.http.get(self.url + path, **options) as response:
            return response.status, await response.json()

    async def post(self, path: str, body: object, **options: Any) -> tuple[int, Any]:
        async with self.http.post(self.url + path, json=body, **options) as response:
            return response.status, await response.json()

    async def ask_locally(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        async with self.local.request(method, f"http://clew{path}", json=body) as response:
            return response.status, await response.json()


@asynccontextmanager
async def running(config: Config, source: Source | None = None, store: SqlStore | None = None) -> AsyncIterator[Clew]:
    async with Service.open(config, source=source, store=store) as service, serve(service) as listening:
        service.listening = listening
        local = aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(listening.socket)))
        async with aiohttp.ClientSession() as http, local:
            yield Clew(service, listening, http, local)


class Tab:
    """A client of the chat's WebSocket that keeps every frame it was sent."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws
        self.frames: list[dict[str, Any]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, clew: Clew, query: str = "chat=local&after=0", *, local: bool = False, **options: Any) -> AsyncIterator[Self]:
        session, base = (clew.local, "http://clew") if local else (clew.http, clew.url)
        async with session.ws_connect(f"{base}/chat/ws?{query}", max_msg_size=0, **options) as ws:
            yield cls(ws)

    async def say(self, identifier: str, text: str) -> None:
        await self.ws.send_json({"type": "message", "id": identifier, "text": text})

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The first frame of that type with these fields, already there or still to come."""
        position = 0
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for frame in self.frames[position:]:
                    if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                        return frame
                position = len(self.frames)
                self.frames.append(await self.ws.receive_json())

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] == kind]

    def texts(self, role: str) -> list[str]:
        return [frame["text"] for frame in self.of("message") if frame["role"] == role]
