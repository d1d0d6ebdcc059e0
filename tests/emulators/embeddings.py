"""An emulator of OpenAI-compatible `/embeddings`: batch and length limits, keys, dimensions, faults."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from aiohttp import web

from .openai_rules import error_body
from .scripts import echo
from .server import (
    Clock,
    DropAfter,
    Empty,
    Emulator,
    Fault,
    JsonObject,
    Malformed,
    Record,
    Rejected,
    before_first_byte,
    drop,
    refuse,
)

Render = Callable[[JsonObject], JsonObject]


class EmbeddingsEmulator(Emulator[Record]):
    """Give `base_url` to a client. See `Emulator` for faults, holds and records.

    A text's vector is the sum of its words', so that texts share as much as their words do; `meaning` gives words that mean the same
    one name. batch: texts of one call at most. window: tokens of one text at most. dimensions: of every vector. A fault `Malformed` is
    the whole body, `DropAfter(n > 0)` cuts it in the middle, `Empty` leaves the last vector out. render: changes a good answer.
    """

    def __init__(
        self,
        *,
        meaning: Mapping[str, str] | None = None,
        batch: int = 2048,
        window: int = 8192,
        dimensions: int = 64,
        models: Sequence[str] = ("small",),
        api_key: str | None = None,
        clock: Clock = time.time,
    ) -> None:
        super().__init__(script=echo, clock=clock)
        self.meaning = dict(meaning or {})
        self.batch = batch
        self.window = window
        self.dimensions = dimensions
        self.models = list(models)
        self.api_key = api_key
        self.render: Render = lambda answer: answer

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def texts(self) -> list[str]:
        """Every text that was embedded, in order."""
        return [text for call in self.calls if call.outcome == "answered" for text in call.body["input"]]

    def _routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/v1/embeddings", self._call(self._embed))]

    def _new_record(self, request_id: str, path: str, headers: dict[str, str], started: float) -> Record:
        return Record(request_id, path, headers, started)

    def _error_body(self, error: Rejected, record: Record) -> JsonObject:
        return error_body(error)

    def _authenticate(self, record: Record) -> None:
        key = record.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key not in (None, key):
            raise Rejected(f"Incorrect API key provided: {key}.", status=401, fields={"code": "invalid_api_key"})

    async def _embed(self, request: web.Request, record: Record) -> web.StreamResponse:
        body = await self._read(request, record)
        fault = self._next_fault()
        await self._held(body)
        refuse(fault if isinstance(fault, Fault) else None, streaming=False)
        texts = self._checked(body)
        vectors = [self.vector(text) for text in texts[: -1 if isinstance(fault, Empty) else None]]
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        tokens = sum(self.tok(text) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        answer = self.render({"object": "list", "data": data, "model": body["model"], "usage": usage})
        text = fault.body if isinstance(fault, Malformed) else json.dumps(answer)
        await before_first_byte(request, record, fault if not isinstance(fault, DropAfter) or not fault.events else None, streaming=False)
        if isinstance(fault, DropAfter) and fault.events:
            return await self._cut(request, record, text)
        return web.Response(text=text, content_type="application/json")

    async def _cut(self, request: web.Request, record: Record, text: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(text))})
        await response.prepare(request)
        await response.write(text[: len(text) // 2].encode())
        drop(request, record)
        return response

    def _checked(self, body: JsonObject) -> list[str]:
        if body.get("model") not in self.models:
            message = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            raise Rejected(message, status=404, fields={"code": "model_not_found"})
        texts = body.get("input")
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            raise Rejected("'$.input' is invalid. Please check the API reference.")
        if len(texts) > self.batch:
            raise Rejected(f"'$.input' is invalid: at most {self.batch} inputs.", status=413)
        if body.get("encoding_format", "float") not in ("float", "base64"):
            raise Rejected("encoding_format must be float or base64")
        for text in texts:
            if (tokens := self.tok(text)) > self.window:
                raise Rejected(
                    f"This model's maximum context length is {self.window} tokens, however you requested {tokens} tokens "
                    f"({tokens} in your prompt; 0 for the completion). Please reduce your prompt; or completion length."
                )
        return texts

    def vector(self, text: str) -> list[float]:
        sums = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()) or [""]:
            for place, sign in _places(self.meaning.get(word, word), self.dimensions):
                sums[place] += sign
        return sums


def _places(word: str, dimensions: int) -> list[tuple[int, float]]:
    digest = blake2b(word.encode(), digest_size=16).digest()
    return [(int.from_bytes(digest[at : at + 2], "big") % dimensions, 1.0 if digest[at + 2] & 1 else -1.0) for at in (0, 4, 8, 12)]
