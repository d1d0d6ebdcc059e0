"""Calls of Telegram's Bot API, and what their failures mean."""

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

from yarl import URL

from clew_transports.calls import ANSWER_S, Calls, Unanswered, Unreached

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


class Api:
    """The Bot API for one token, below `base_url`. Use as an async context manager.

    Errors never name the address: the token is part of it.
    """

    def __init__(self, base_url: str, token: str) -> None:
        base = base_url.rstrip("/")
        self._methods = f"{base}/bot{token}"
        self._files = f"{base}/file/bot{token}"
        self._calls = Calls("Telegram")

    async def __aenter__(self) -> Self:
        await self._calls.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._calls.__aexit__(kind, error, trace)

    async def call(self, method: str, arguments: Mapping[str, Any] | None = None, answer_s: float = ANSWER_S) -> Any:
        """The result of a method. Raises Refusal, Unreached or Unanswered."""
        answer = await self._calls.call("POST", URL(f"{self._methods}/{method}", encoded=True), answer_s, json=arguments or {})
        return _result(answer.status, answer.json())

    async def download(self, file_id: str) -> AsyncIterator[bytes]:
        """The bytes of a file. Raises LookupError where there is none, or it is too large for the Bot API; Refusal, Unreached or Unanswered
        where it may be had another time."""
        try:
            path = (await self.call("getFile", {"file_id": file_id}))["file_path"]
        except Refusal as refusal:
            if refusal.code in (400, 404):
                raise LookupError(str(refusal)) from None
            raise
        except (KeyError, TypeError):
            raise LookupError("Telegram's answer to getFile names no file") from None
        async for piece in self._calls.download(URL(f"{self._files}/{path}"), MAX_FILE_BYTES):
            yield piece


def _result(status: int, answer: Any) -> Any:
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
