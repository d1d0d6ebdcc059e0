"""Calls of Matrix' client-server API, and what their failures mean."""

import re
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from yarl import URL

from clew_transports.calls import ANSWER_S, LONGEST_WAIT_S, Answer, Calls, Unanswered, Unreached

LONGEST_REASON = 200
MAX_FILE_BYTES = 100 * 1024 * 1024
"""The longest file that is fetched; what may be stored is the host's to say."""
_MXC = re.compile(r"mxc://([A-Za-z0-9\[][A-Za-z0-9.:\[\]_-]{0,254})/([A-Za-z0-9_=-]{1,255})")

Query = Mapping[str, str | int]
_NO_QUERY: Query = {}


class Refusal(Exception):
    """The homeserver answered, and did not do it.

    code: an HTTP status. kind: Matrix' name of the error, such as M_FORBIDDEN. retry_after: seconds to wait, where it says so. session:
    where it asks who clew is once more, what the answer belongs to.
    """

    def __init__(self, code: int, kind: str, why: str, retry_after: float | None = None, session: str = "") -> None:
        super().__init__(f"the homeserver answered {code} {kind}: {why[:LONGEST_REASON]}")
        self.code = code
        self.kind = kind
        self.retry_after = retry_after
        self.session = session

    @property
    def lasts(self) -> bool:
        """Whether it would be the same another time, and has nothing to do with who clew is."""
        return 400 <= self.code < 500 and self.code not in (401, 429)


class Api:
    """The client-server API below `base_url`. Use as an async context manager. `token` is set once there is one."""

    def __init__(self, base_url: str, token: str = "") -> None:
        self._base = base_url.rstrip("/")
        self.token = token
        self._calls = Calls("the homeserver")

    async def __aenter__(self) -> Self:
        await self._calls.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._calls.__aexit__(kind, error, trace)

    async def call(self, method: str, *path: str, query: Query = _NO_QUERY, body: Any = None, answer_s: float = ANSWER_S) -> dict[str, Any]:
        """What `/_matrix/client/v3/<path>` answers; each piece of the path is escaped. Raises Refusal, Unreached or Unanswered."""
        request: dict[str, Any] = {"headers": self._headers}
        if body is not None:
            request["json"] = body
        return _result(await self._calls.call(method, self._url("client/v3", path, query), answer_s, **request))

    async def download(self, mxc: str) -> AsyncIterator[bytes]:
        """The bytes of a file, from the endpoint that asks who wants it or, on older servers, from the one that does not.

        Raises LookupError where there is none that can be had.
        """
        if not (place := _MXC.fullmatch(mxc)):
            raise LookupError("the address of a file is none")
        first = True
        try:
            url = self._url("client/v1", ("media", "download", *place.groups()))
            async for piece in self._calls.download(url, MAX_FILE_BYTES, headers=self._headers):
                first = False
                yield piece
            return
        except LookupError:
            if not first:
                raise
        url = self._url("media/v3", ("download", *place.groups()))
        async for piece in self._calls.download(url, MAX_FILE_BYTES):
            yield piece

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def _url(self, version: str, path: tuple[str, ...], query: Query = _NO_QUERY) -> URL:
        pieces = "/".join(quote(each, safe="") for each in path)
        return URL(f"{self._base}/_matrix/{version}/{pieces}" + (f"?{urlencode(query)}" if query else ""), encoded=True)


def _result(answer: Answer) -> dict[str, Any]:
    said = answer.json()
    if isinstance(said, dict) and answer.status == 401 and "flows" in said:
        raise Refusal(401, "M_UNAUTHORIZED", "the account has to be confirmed", session=str(said.get("session", "")))
    if not isinstance(said, dict) or (answer.status >= 400 and "errcode" not in said):
        # Not a homeserver, but something in front of it. Behind a gateway that gave up waiting it may have been done.
        maybe = answer.status == 504 or answer.status < 400
        raise (Unanswered if maybe else Unreached)(f"the homeserver answered {answer.status} with nothing of Matrix")
    if answer.status < 400:
        return said
    wait = answer.retry_after()
    if wait is None and isinstance(stated := said.get("retry_after_ms"), int | float):
        wait = min(max(stated / 1000, 0.0), LONGEST_WAIT_S)
    raise Refusal(answer.status, str(said["errcode"])[:50], str(said.get("error", "")), wait)
