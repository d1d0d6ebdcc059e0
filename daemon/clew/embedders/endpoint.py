"""OpenAI-compatible `/embeddings`: api.openai.com, llama.cpp, vLLM, Ollama, TEI, LM Studio and their like."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from clew.context.vectors import quantised
from clew.embedders import BATCH, MAX_CHARS, Vectors
from clew.providers import ProviderError
from clew.providers.failures import Answer, failure, safe, stalled
from clew.providers.probe import on_this_machine
from clew.providers.wire import well_formed

LARGEST_ANSWER = 16 * 2**20
"""Bytes of an answer that are read: 32 vectors of 8,192 numbers in JSON are about 6 MB."""
MOST_TOKENS = 10**7
"""Tokens of one call that are believed."""
SHORTEST = 200
"""Characters to which texts are shortened, by halves, for a model that finds them too long."""
NOWHERE = " "
"""What stands for an empty text, which some servers refuse; its vector is dropped."""


class Endpoint:
    """See `clew.embedders.Embedder`.

    base_url: without `/embeddings`. key: None where none is needed. timeout: seconds for one call.
    """

    def __init__(self, base_url: str, model: str, key: str | None, timeout: float) -> None:
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        self._key = key or ""
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    @property
    def version(self) -> str:
        return f"{urlsplit(self._url).netloc}/{self._model}"

    async def prepare(self) -> None:
        return None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > BATCH:
            raise ValueError(f"at most {BATCH} texts")
        longest = MAX_CHARS
        while True:
            try:
                return await self._asked([well_formed(text[:longest]) for text in texts])
            except ProviderError as error:
                if error.kind != "overflow" or longest <= SHORTEST:
                    raise
                longest //= 2

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _asked(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": [text if text.strip() else NOWHERE for text in texts], "encoding_format": "float"}
        answer = await self._post(body)
        try:
            vectors = _vectors(answer, len(texts))
        except (ValueError, TypeError, KeyError) as error:
            raise ProviderError("server", safe(f"an answer of another shape: {error}", self._key)) from None
        return Vectors((vector if text.strip() else b"" for text, vector in zip(texts, vectors, strict=True)), _tokens(answer))

    async def _post(self, body: Mapping[str, object]) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=not on_this_machine(self._url))
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._session.post(self._url, json=body, headers=headers, allow_redirects=False) as response,
            ):
                status, told, raw = response.status, response.headers, await _body(response)
        except TimeoutError:
            raise stalled(self._timeout) from None
        except aiohttp.ClientPayloadError as error:
            raise ProviderError("cut", safe(f"the response ended early: {error}", self._key)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ProviderError("network", safe(f"{type(error).__name__}: {error}", self._key)) from None
        if status != 200:
            raise failure(_answer(status, told, raw), time.time(), secret=self._key)
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise ProviderError("server", "an answer that is not JSON") from None


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(2**16):
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise ProviderError("server", f"an answer of more than {LARGEST_ANSWER:,} bytes")
    return bytes(body)


def _vectors(answer: Any, count: int) -> list[bytes]:
    """The vectors of an answer, by index. Raises ValueError, TypeError or KeyError for one that is none."""
    entries = {entry["index"]: entry["embedding"] for entry in answer["data"]}
    if entries.keys() != set(range(count)):
        raise ValueError(f"{len(entries)} vectors for {count} texts")
    vectors = [quantised(entries[index]) for index in range(count)]
    if len({len(entry) for entry in entries.values()}) > 1:
        raise ValueError("vectors of different lengths")
    return vectors


def _tokens(answer: Mapping[str, Any]) -> int:
    """Tokens that a server says it read, 0 where it says nothing of them."""
    usage = answer.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and 0 <= tokens <= MOST_TOKENS else 0


def _answer(status: int, headers: Mapping[str, str], raw: bytes) -> Answer:
    text = raw.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    error = body.get("error", body) if isinstance(body, dict) else None
    told = error if isinstance(error, dict) else {"message": error if isinstance(error, str) else text}
    return Answer(
        status=status,
        message=str(told.get("message") or text),
        type=str(told.get("type") or ""),
        code=str(told.get("code") or ""),
        headers={name.lower(): value for name, value in headers.items()},
    )
