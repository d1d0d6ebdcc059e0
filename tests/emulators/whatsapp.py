"""Meta's Cloud API for WhatsApp as its documentation describes it, for one number, and its signed webhook.

What it can be told to do wrong: `next`, a queue of faults, each for one message that clew sends.
"""

import hashlib
import hmac
import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
from aiohttp import web

from tests.emulators.listening import Fault, Listening
from tests.emulators.server import JsonObject

TOKEN, SECRET, VERIFY = "EAAG-the-token-of-the-tests", "the app's secret", "chosen for the tests"
NUMBER_ID = "106540352242922"
LIMIT = 4096


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def notification(*messages: JsonObject, names: dict[str, str] | None = None, number: str = NUMBER_ID, **more: Any) -> JsonObject:
    """What the webhook gets for these messages, in one change."""
    contacts = [{"profile": {"name": name}, "wa_id": who} for who, name in (names or {}).items()]
    value = {"messaging_product": "whatsapp", "metadata": {"display_phone_number": "1555", "phone_number_id": number}, "contacts": contacts}
    if messages:
        value["messages"] = list(messages)
    change = {"field": "messages", "value": value | more}
    return {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [change]}]}


class WhatsappEmulator(Listening):
    """Use as an async context manager.

    messages: what was sent, in order, as clew sent it, with its `id`. reads: wamids that were marked as read, with typing or without.
    """

    def __init__(self) -> None:
        super().__init__()
        self.next: deque[Fault] = deque()
        self.messages: list[JsonObject] = []
        self.reads: list[JsonObject] = []
        self.files: dict[str, bytes] = {}
        self.closed: set[str] = set()
        self._number = 0

    def _routes(self) -> Sequence[web.RouteDef]:
        return [
            web.post(f"/v23.0/{NUMBER_ID}/messages", self._send),
            web.get(f"/v23.0/{NUMBER_ID}", self._who),
            web.get("/v23.0/{file}", self._media),
            web.get("/stored/{file}", self._file),
        ]

    # What people do ----------------------------------------------------------------------------------------------

    def message(self, text: str, sender: str, **more: Any) -> JsonObject:
        """A text, as it stands in a notification."""
        self._number += 1
        message = {"from": sender, "id": f"wamid.{self._number:06}", "timestamp": str(1_800_000_000 + self._number), "type": "text"}
        return message | {"text": {"body": text}} | more

    async def post(self, clew: str, told: JsonObject | bytes, secret: str = SECRET) -> int:
        """POST a notification to the clew at that address."""
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        headers = {"Content-Type": "application/json", "X-Hub-Signature-256": signature(body, secret)}
        async with aiohttp.ClientSession() as http, http.post(f"{clew}/webhooks/whatsapp/", data=body, headers=headers) as response:
            return response.status

    def texts(self, to: str) -> list[str]:
        return [_said(each) for each in self.messages if each["to"] == to]

    # What clew asks ----------------------------------------------------------------------------------------------

    async def _send(self, request: web.Request) -> web.StreamResponse:
        if refusal := _unknown(request):
            return refusal
        asked = await request.json()
        if asked.get("messaging_product") != "whatsapp":
            return error(400, 100, "(#100) Invalid parameter")
        if asked.get("status") == "read":
            self.reads.append(asked)
            self._changed.set()
            return web.json_response({"success": True})
        if asked.get("type") == "interactive":
            text, most = asked["interactive"]["body"]["text"], 1024
            buttons = [each["reply"] for each in asked["interactive"]["action"]["buttons"]]
            if not 1 <= len(buttons) <= 3 or any(len(each["title"]) > 20 or len(each["id"]) > 256 for each in buttons):
                return error(400, 131009, "(#131009) Parameter value is not valid")
        else:
            text, most = asked["text"]["body"] if asked.get("type") == "text" else "", LIMIT
        if not text.strip() or len(text) > most:
            return error(400, 100, f"(#100) Param text['body'] must be at most {most} characters long.")
        if asked["to"] in self.closed:
            return error(400, 131047, "Re-engagement message")

        def carried_out() -> JsonObject:
            self._number += 1
            self.messages.append(asked | {"id": f"wamid.{self._number:06}"})
            self._changed.set()
            sent = {"messaging_product": "whatsapp", "contacts": [{"input": asked["to"], "wa_id": asked["to"]}]}
            return sent | {"messages": [{"id": self.messages[-1]["id"]}]}

        if self.next:
            return await self.next.popleft()(request, carried_out)
        return web.json_response(carried_out())

    async def _who(self, request: web.Request) -> web.StreamResponse:
        return _unknown(request) or web.json_response({"display_phone_number": "+1 555-000-1111", "id": NUMBER_ID})

    async def _media(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["file"]
        if refusal := _unknown(request):
            return refusal
        if name not in self.files:
            return error(404, 100, "Unsupported get request. Object does not exist")
        return web.json_response({"url": f"{self.url}/stored/{name}", "mime_type": "image/jpeg", "file_size": len(self.files[name])})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return _unknown(request) or web.Response(body=self.files[request.match_info["file"]])


def _said(message: JsonObject) -> str:
    return str(message["text"]["body"] if message["type"] == "text" else message["interactive"]["body"]["text"])


def _unknown(request: web.Request) -> web.Response | None:
    if request.headers.get("Authorization") == f"Bearer {TOKEN}":
        return None
    return error(401, 190, "Invalid OAuth access token - Cannot parse access token")


def error(status: int, code: int, why: str, **headers: str) -> web.Response:
    body = {"error": {"message": why, "type": "OAuthException", "code": code, "fbtrace_id": "A"}}
    return web.json_response(body, status=status, headers=headers)


# Faults ----------------------------------------------------------------------------------------------------------


def refuses(status: int, code: int, why: str, **headers: str) -> Fault:
    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        return error(status, code, why, **headers)

    return behave
