"""What Slack's emulator and its tests share: answers that are errors, messages as they are read, signed requests, faults."""

import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp import web

from tests.emulators.listening import Fault
from tests.emulators.server import JsonObject

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
_CONTROL = re.compile(r"<([^<>]*)>")


class No(Exception):
    """An answer with `ok: false`."""

    def __init__(self, error: str, status: int = 200, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(error)
        self.status, self.headers, self.more = status, headers, more

    @property
    def response(self) -> web.Response:
        return web.json_response({"ok": False, "error": str(self), **self.more}, status=self.status, headers=self.headers)


def shown(text: str) -> str:
    """A message in mrkdwn as it is read. Raises AssertionError for characters that should have been escaped, and for mentions."""
    rest = re.sub(r"(?m)^> ", "", text)
    for control in _CONTROL.findall(rest):
        assert re.match(r"(?:https?://|mailto:)[^|\s]+(?:\||$)", control), f"a mention or no link: {control}"
    bare = _CONTROL.sub("", rest)
    assert "<" not in bare, bare
    assert ">" not in bare, bare
    assert not re.search(r"&(?!(?:lt|gt|amp);)", rest), rest
    words = _CONTROL.sub(lambda found: found[1].partition("|")[2] or found[1], rest)
    return words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def check_buttons(attachments: list[JsonObject]) -> None:
    """Raises No for attachments that are no rows of buttons as Slack takes them."""
    rows = [block for each in attachments for block in each["blocks"]]
    for row in rows:
        ids = [each["action_id"] for each in row["elements"]]
        fits = row["type"] == "actions" and 1 <= len(ids) <= 25 and len(set(ids)) == len(ids)
        for each in row["elements"]:
            label = each["text"]
            fits = fits and each["type"] == "button" and label["type"] == "plain_text" and 0 < len(label["text"]) <= 75
            fits = fits and len(each["value"]) <= 2000 and each.get("style", "primary") in ("primary", "danger")
        if not fits:
            raise No("invalid_blocks")


def proof(body: bytes, *, secret: str = SECRET, age: float = 0.0) -> dict[str, str]:
    """The headers of a request of the Events API, written down from Slack's documentation. age: seconds since it was signed."""
    stamp = str(int(time.time() - age))
    digest = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


async def post(http: aiohttp.ClientSession, url: str, payload: JsonObject, **headers: str) -> tuple[int, str]:
    """Offer a payload to a request URL, signed. Returns the status and the body of the answer."""
    body = json.dumps(payload).encode()
    async with http.post(
        url, data=body, headers=proof(body) | {name.replace("_", "-"): value for name, value in headers.items()}
    ) as response:
        return response.status, await response.text()


# Faults ----------------------------------------------------------------------------------------------------------


def refuses(error: str, status: int = 200, **more: Any) -> Fault:
    """Answers with an error of the API and does nothing."""

    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        return No(error, status, **more).response

    return behave


def too_many(seconds: int) -> Fault:
    return refuses("ratelimited", 429, headers={"Retry-After": str(seconds)})


def does_and_fails(error: str) -> Fault:
    """Does what it was asked, and says that something went wrong."""

    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        carry_out()
        return No(error).response

    return behave
