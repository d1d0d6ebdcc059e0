"""Calls of Telegram's Bot API, and what their failures mean."""

import json
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

CONNECT_S = 15.0
ANSWER_S = 30.0
"""Seconds for a connection and for an answer."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""A hundred updates, the most that one answer holds, are far smaller."""
MAX_FILE_BYTES = 20 * 1024 * 1024
"""The longest file that the Bot API hands out (getFile)."""
LONGEST_REASON = 200


class Refusal(Exception):
    """Telegram answered, and did not do it.

    code: an HTTP status. retry_after: seconds to wait, where it says so. moved_to: the id of the supergroup that the chat has become.
    """

    def __init__(self, code: int, why: str, retry_after: float | None = None, moved_to: int | None = None) -> None:
        super().__init__(f"Telegram answered {code}: {why[:LONGEST_REASON]}")
        self.code = code
        self.why = why.lower()
        self.retry_after = retry_after
        self.moved_to = moved_to


class Unreached(Exception):
    """The request did not reach the Bot API."""


class Unanswered(Exception):
    """The request left, and no answer came: it may or may not have been done."""


class Api:
    """The Bot API for one token, below `base_url`. Use as an async context manager.

    Errors never name the address: the token is part of it.
    """

    def __init__(self, base_url: str, token: str) -> None:
        base = base_url.rstrip("/")
        self._methods = f"{base}/bot{token}"
        self._files = f"{base}/file/bot{token}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # A connection for each call: one that was kept could be closed under the next call, whose fate were then unknown.
        connector = aiohttp.TCPConnector(force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session:
            await self._session.close()
        self._session = None

    async def call(self, method: str, arguments: Mapping[str, Any] | None = None, answer_s: float = ANSWER_S) -> Any:
        """The result of a method. Raises Refusal, Unreached or Unanswered."""
        if self._session is None:
            raise Unreached("the transport is not running")
        timeout = aiohttp.ClientTimeout(total=CONNECT_S + answer_s, connect=CONNECT_S, sock_read=answer_s)
        url = URL(f"{self._methods}/{method}", encoded=True)
        try:
            async with self._session.post(url, json=arguments or {}, timeout=timeout, allow_redirects=False) as response:
                status, body = response.status, await _read(response)
        except aiohttp.ConnectionTimeoutError:
            raise Unreached(f"no connection to Telegram within {CONNECT_S:.0f} s") from None
        except aiohttp.ClientConnectorError as error:
            raise Unreached(f"no connection to Telegram ({error.strerror or type(error).__name__})") from None
        except TimeoutError:
            raise Unanswered(f"no answer from Telegram within {answer_s:.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unanswered(f"the connection to Telegram broke before the answer ({type(error).__name__})") from None
        return _result(status, body)

    async def download(self, file_id: str) -> AsyncIterator[bytes]:
        """The bytes of a file. Raises LookupError where there is none that can be had."""
        try:
            path = (await self.call("getFile", {"file_id": file_id}))["file_path"]
            if self._session is None:
                raise Unreached("the transport is not running")
            left = MAX_FILE_BYTES
            async with self._session.get(f"{self._files}/{path}", allow_redirects=False) as response:
                if response.status != 200:
                    raise LookupError(f"Telegram answered {response.status} for a file")
                async for piece in response.content.iter_any():
                    left -= len(piece)
                    if left < 0:
                        raise LookupError(f"a file has more than {MAX_FILE_BYTES:,} bytes")
                    yield piece
        except (Refusal, Unreached, Unanswered, KeyError, TypeError) as error:
            raise LookupError(str(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise LookupError(f"the connection to Telegram broke ({type(error).__name__})") from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError
    return bytes(body)


def _result(status: int, body: bytes) -> Any:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or "ok" not in answer:
        # Not the Bot API, but something in front of it. Behind a gateway that gave up waiting it may have been done.
        raise (Unanswered if status == 504 or status < 400 else Unreached)(f"Telegram answered {status} with no JSON of the Bot API")
    if answer["ok"]:
        return answer.get("result")
    more = answer.get("parameters")
    more = more if isinstance(more, dict) else {}
    wait, moved_to = more.get("retry_after"), more.get("migrate_to_chat_id")
    raise Refusal(
        code if isinstance(code := answer.get("error_code"), int) else status,
        str(answer.get("description", "")),
        float(wait) if isinstance(wait, int | float) else None,
        moved_to if isinstance(moved_to, int) else None,
    )
