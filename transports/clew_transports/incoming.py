"""Requests of platforms that call in: their bodies, bounded in size and time, and the answers that end them early."""

import asyncio

import aiohttp
from aiohttp import web

MAX_BODY_BYTES = 1024 * 1024
"""The longest body that is read. The host's limit for a message is smaller; this one bounds what is read before anybody is known."""
BODY_S = 30.0
"""Seconds for a body to arrive."""


class Answered(Exception):
    """What ends a request early: its status and what the caller is told."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status

    def response(self) -> web.Response:
        return web.json_response({"error": str(self)}, status=self.status)


async def body(request: web.Request, max_bytes: int = MAX_BODY_BYTES, body_s: float = BODY_S) -> bytes:
    """The bytes as they came, which is what signatures are made of.

    Raises Answered for too many, too slow ones, compressed ones, and ones that break off.
    """
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Answered(415, "the body must not be compressed")
    too_long = Answered(413, f"the body has more than {max_bytes} bytes")
    if (request.content_length or 0) > max_bytes:
        raise too_long
    read = bytearray()
    try:
        async with asyncio.timeout(body_s):
            async for piece in request.content.iter_any():
                read += piece
                if len(read) > max_bytes:
                    raise too_long
    except TimeoutError:
        raise Answered(408, f"the body did not arrive within {body_s:.0f} s") from None
    except (aiohttp.ClientError, web.RequestPayloadError, OSError):
        raise Answered(400, "the body broke off") from None
    return bytes(read)
