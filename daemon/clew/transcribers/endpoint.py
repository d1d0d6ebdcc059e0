"""OpenAI-compatible `/audio/transcriptions`: api.openai.com, Groq, whisper.cpp's server, speaches, LocalAI and their like."""

import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import structlog

from clew.messages import Usage
from clew.providers.failures import safe
from clew.providers.probe import on_this_machine
from clew.transcribers import NotTranscribed, Recording, Transcript

log = structlog.get_logger()

LARGEST_ANSWER = 2**20
"""Bytes of an answer that are read."""
MOST_USED = 10**6
"""Tokens or seconds of one recording that are believed."""
_SAYINGS = {
    401: "the transcriber does not let me in, which whoever runs me has to mend",
    403: "the transcriber does not let me in, which whoever runs me has to mend",
    404: "the transcriber or its model is not there, which whoever runs me has to mend",
    413: "it is too long for the transcriber",
}


class Unanswered(Exception):
    """The server could not be reached, or failed; another try may find it well."""


class Endpoint:
    """See `clew.transcribers.Transcriber`.

    base_url: without `/audio/transcriptions`. key: None where none is needed. language: ISO 639-1, None where the model finds out. timeout:
    seconds for one recording.
    """

    def __init__(self, base_url: str, model: str, key: str | None, language: str | None, timeout: float) -> None:
        self._url = f"{base_url.rstrip('/')}/audio/transcriptions"
        self._model = model
        self._key = key or ""
        self._language = language
        self._timeout = aiohttp.ClientTimeout(total=timeout)

    async def transcribe(self, recording: Recording) -> Transcript:
        form = aiohttp.FormData()
        form.add_field("model", self._model)
        form.add_field("response_format", "json")
        if self._language:
            form.add_field("language", self._language)
        form.add_field("file", recording.body, filename=recording.name, content_type=recording.mime)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout, trust_env=not on_this_machine(self._url)) as session,
                session.post(self._url, data=form, headers=headers, allow_redirects=False) as response,
            ):
                body = await _read(response)
                status = response.status
        except (aiohttp.ClientError, OSError) as error:
            raise Unanswered(safe(f"{type(error).__name__}: {error}", self._key)) from None
        if status == 200:
            return _transcript(body)
        told = safe(f"{status}: {body.decode('utf-8', 'replace')}", self._key)
        if status in (408, 409, 425, 429) or status >= 500:
            raise Unanswered(told)
        log.warning("transcriber.refused", err=told)
        raise NotTranscribed(_SAYINGS.get(status, "the transcriber cannot make anything of it"))


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > LARGEST_ANSWER:
            raise aiohttp.ClientPayloadError("the answer is too long")
    return bytes(body)


def _transcript(body: bytes) -> Transcript:
    try:
        answer = json.loads(body)
        text, usage = answer["text"], answer.get("usage")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        text, usage = None, None
    if not isinstance(text, str):
        raise Unanswered("an answer of another shape")
    told = usage if isinstance(usage, dict) else {}
    return Transcript(text, Usage(round(_number(told, "input_tokens")), round(_number(told, "output_tokens"))), _number(told, "seconds"))


def _number(usage: Mapping[str, Any], name: str) -> float:
    """A figure of a server's, 0 where it is none that can be believed."""
    figure = usage.get(name)
    return float(figure) if isinstance(figure, (int, float)) and 0 <= figure <= MOST_USED else 0.0
