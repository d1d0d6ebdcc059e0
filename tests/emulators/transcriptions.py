"""An emulator of OpenAI-compatible `/audio/transcriptions`: its form, kinds of files, models, keys, faults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from .openai_rules import error_body
from .scripts import echo
from .server import Clock, Emulator, Fault, JsonObject, Malformed, Record, Rejected, before_first_byte, refuse

KINDS = frozenset({"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"})
LARGEST = 25 * 2**20
"""Bytes of a recording."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A recording that came. language: as it was given, empty where it was not."""

    body: bytes
    name: str
    language: str


class TranscriptionsEmulator(Emulator[Record]):
    """Give `base_url` to a client. See `Emulator` for faults, holds and records.

    say: what is said in a recording. usage: what it took, as the answer tells it. heard: the recordings that came, in order. going: set
    when one has come; it is answered once `may` is.
    """

    def __init__(
        self,
        *,
        say: Callable[[bytes], str] = lambda body: "",
        models: Sequence[str] = ("whisper-1",),
        api_key: str | None = None,
        usage: JsonObject | None = None,
        clock: Clock = time.time,
    ) -> None:
        super().__init__(script=echo, clock=clock)
        self.say = say
        self.usage = usage
        self.models = list(models)
        self.api_key = api_key
        self.heard: list[Heard] = []
        self.going, self.may = asyncio.Event(), asyncio.Event()
        self.may.set()

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def _routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/v1/audio/transcriptions", self._call(self._transcribe))]

    def _new_record(self, request_id: str, path: str, headers: dict[str, str], started: float) -> Record:
        return Record(request_id, path, headers, started)

    def _error_body(self, error: Rejected, record: Record) -> JsonObject:
        return error_body(error)

    def _authenticate(self, record: Record) -> None:
        key = record.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key not in (None, key):
            raise Rejected(f"Incorrect API key provided: {key}.", status=401, fields={"code": "invalid_api_key"})

    async def _transcribe(self, request: web.Request, record: Record) -> web.StreamResponse:
        heard = await self._form(request)
        self.heard.append(heard)
        fault = self._next_fault()
        refuse(fault if isinstance(fault, Fault) else None, streaming=False)
        self.going.set()
        await self.may.wait()
        await before_first_byte(request, record, fault, streaming=False)
        if isinstance(fault, Malformed):
            return web.Response(text=fault.body, content_type="application/json")
        return web.json_response({"text": self.say(heard.body)} | ({"usage": self.usage} if self.usage else {}))

    async def _form(self, request: web.Request) -> Heard:
        form = await request.post()
        file, model = form.get("file"), form.get("model")
        if model not in self.models:
            raise Rejected("The model does not exist or you do not have access to it.", status=404)
        if not isinstance(file, web.FileField):
            raise Rejected("[{'loc': ('body', 'file'), 'msg': 'field required'}]", status=422)
        if form.get("response_format") not in ("json", None):
            raise Rejected("this emulator answers JSON")
        if file.filename.rpartition(".")[2] not in KINDS:
            raise Rejected(f"Invalid file format. Supported formats: {sorted(KINDS)}")
        with file.file:
            body = file.file.read()
        if len(body) > LARGEST:
            raise Rejected("Maximum content size limit exceeded.", status=413)
        return Heard(body, file.filename, str(form.get("language") or ""))
