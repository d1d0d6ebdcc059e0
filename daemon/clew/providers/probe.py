"""Short questions to a model server over plain HTTP: is it there, what does it say about itself."""

import asyncio
import ipaddress
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

MAX_ANSWER_BYTES = 4 * 2**20
"""Bytes of an answer that are read: a gateway lists several hundred models in about 1 MiB."""

_FAILURES = (aiohttp.ClientError, OSError, ValueError, TimeoutError)


def on_this_machine(url: str) -> bool:
    """Whether `url` names a loopback host, which no proxy of the environment may come between."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


async def status_of(url: str, headers: Mapping[str, str], timeout: float) -> int | None:
    """The HTTP status of GET `url`; None if no server answers within `timeout` seconds. Never raises for its faults."""
    answer = await _get(url, headers, timeout)
    return answer[0] if answer else None


async def get_json(url: str, headers: Mapping[str, str], timeout: float) -> Any:
    """The JSON of a 2xx answer to GET `url`; None if there is none within `timeout` seconds."""
    answer = await _get(url, headers, timeout)
    if answer is None or not 200 <= answer[0] < 300:
        return None
    try:
        return json.loads(answer[1])
    except (ValueError, RecursionError):
        return None


async def _get(url: str, headers: Mapping[str, str], timeout: float) -> tuple[int, bytes] | None:
    try:
        async with (
            asyncio.timeout(timeout),
            aiohttp.ClientSession(trust_env=not on_this_machine(url)) as session,
            session.get(url, headers=headers) as response,
        ):
            return response.status, await _body(response)
    except _FAILURES:
        return None


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(2**16):
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise ValueError("the answer is too long")
    return bytes(body)
