"""Twilio's REST API for messages as its documentation describes it, for one account and number, and its webhook, which it calls once.

What it can be told to do wrong: `next`, a queue of faults, each for one message that clew sends.
"""

import base64
import hashlib
import hmac
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from email.utils import formatdate, parsedate_to_datetime
from typing import Any

import aiohttp
from aiohttp import web

from tests.emulators.listening import Fault, Listening
from tests.emulators.server import JsonObject

SID, TOKEN, NUMBER = "AC" + "0" * 32, "the token of the tests", "+15550001111"
LIMIT = 1600
WEBHOOK = "https://clew.example.org/webhooks/sms/"
"""The webhook as it is entered at Twilio; requests reach clew by way of a proxy."""


def signature(fields: dict[str, str], token: str = TOKEN, url: str = WEBHOOK) -> str:
    """X-Twilio-Signature, written down from Twilio's page on security."""
    text = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    return base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()).decode()


class TwilioEmulator(Listening):
    """Use as an async context manager.

    messages: all of the account, oldest first, as the list gives them. media: the files of a message, by its sid, as (type, bytes).
    page: how many messages a page of the list holds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.next: deque[Fault] = deque()
        self.messages: list[JsonObject] = []
        self.media: dict[str, list[tuple[str, bytes]]] = {}
        self.looks = 0
        self.page = 50
        self.stopped: set[str] = set()
        self.sms_url = WEBHOOK

    def _routes(self) -> Sequence[web.RouteDef]:
        account = f"/2010-04-01/Accounts/{SID}"
        return [
            web.post(f"{account}/Messages.json", self._send),
            web.get(f"{account}/Messages.json", self._list),
            web.get(f"{account}/Messages/{{sid}}/Media.json", self._media),
            web.get(f"{account}/Messages/{{sid}}/Media/{{number}}", self._moved),
            web.get("/stored/{sid}/{number}", self._file),
            web.get(f"{account}/IncomingPhoneNumbers.json", self._numbers),
        ]

    # What people do ----------------------------------------------------------------------------------------------

    def say(self, text: str, sender: str, *files: tuple[str, bytes], at: float | None = None) -> JsonObject:
        """A message to the number. Returns the fields of the request that the webhook gets. at: seconds since the epoch."""
        sid = self._add(text, sender, NUMBER, "inbound", len(files), at)["sid"]
        self.media[sid] = list(files)
        fields = {"MessageSid": sid, "AccountSid": SID, "From": sender, "To": NUMBER, "Body": text, "NumMedia": str(len(files))}
        for number, (mime, _) in enumerate(files):
            place = f"{self.url}/2010-04-01/Accounts/{SID}/Messages/{sid}/Media/ME{number}"
            fields |= {f"MediaUrl{number}": place, f"MediaContentType{number}": mime}
        return fields

    async def call(self, clew: str, fields: dict[str, str], token: str = TOKEN) -> tuple[int, str]:
        """POST to the webhook of the clew at that address."""
        async with aiohttp.ClientSession() as http:
            headers = {"X-Twilio-Signature": signature(fields, token)}
            async with http.post(f"{clew}/webhooks/sms/", data=fields, headers=headers) as response:
                return response.status, await response.text()

    def texts(self, to: str) -> list[str]:
        return [each["body"] for each in self.messages if each["to"] == to and each["direction"] == "outbound-api"]

    # What clew asks ----------------------------------------------------------------------------------------------

    def _add(self, text: str, sender: str, to: str, direction: str, files: int = 0, at: float | None = None) -> JsonObject:
        message = {
            "sid": f"SM{len(self.messages):032x}",
            "from": sender,
            "to": to,
            "body": text,
            "direction": direction,
            "num_media": str(files),
            "date_sent": formatdate(time.time() if at is None else at),
            "date_created": formatdate(time.time() if at is None else at),
        }
        self.messages.append(message)
        self._changed.set()
        return message

    async def _send(self, request: web.Request) -> web.StreamResponse:
        if refusal := _unknown(request):
            return refusal
        form = await request.post()
        to, text = str(form["To"]), str(form["Body"])
        if form["From"] != NUMBER:
            return _error(400, 21606, "The From phone number is not a valid message-capable Twilio phone number")
        if to in self.stopped:
            return _error(400, 21610, "Attempt to send to unsubscribed recipient")
        if not text:
            return _error(400, 21602, "Message body is required")
        if len(text) > LIMIT:
            return _error(400, 21617, "The concatenated message body exceeds the 1600 character limit")

        def carried_out() -> JsonObject:
            return self._add(text, NUMBER, to, "outbound-api")

        if self.next:
            return await self.next.popleft()(request, carried_out)
        return web.json_response(carried_out(), status=201)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if refusal := _unknown(request):
            return refusal
        query, start = request.query, int(request.query.get("Page", 0))
        since = datetime.fromisoformat(query["DateSent>"]).timestamp()
        found = [
            each
            for each in reversed(self.messages)
            if each["to"] == query["To"] and parsedate_to_datetime(each["date_sent"]).timestamp() >= since
            if "From" not in query or each["from"] == query["From"]
        ]
        following = str(request.rel_url.update_query(Page=start + 1)) if len(found) > (start + 1) * self.page else None
        self.looks += 1
        self._changed.set()
        return web.json_response({"messages": found[start * self.page : (start + 1) * self.page], "next_page_uri": following})

    async def _media(self, request: web.Request) -> web.StreamResponse:
        sid = request.match_info["sid"]
        place = f"/2010-04-01/Accounts/{SID}/Messages/{sid}/Media/ME"
        listed = [{"content_type": mime, "uri": f"{place}{number}.json"} for number, (mime, _) in enumerate(self.media[sid])]
        return _unknown(request) or web.json_response({"media_list": listed})

    async def _moved(self, request: web.Request) -> web.StreamResponse:
        sid, number = request.match_info["sid"], request.match_info["number"]
        return _unknown(request) or web.Response(status=307, headers={"Location": f"{self.url}/stored/{sid}/{number}"})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" in request.headers:
            return web.Response(status=400, text="Only one auth mechanism allowed")
        return web.Response(body=self.media[request.match_info["sid"]][int(request.match_info["number"][2:])][1])

    async def _numbers(self, request: web.Request) -> web.StreamResponse:
        mine = [{"phone_number": NUMBER, "sms_url": self.sms_url}] if request.query["PhoneNumber"] == NUMBER else []
        return _unknown(request) or web.json_response({"incoming_phone_numbers": mine})


def _unknown(request: web.Request) -> web.Response | None:
    if request.headers.get("Authorization") == aiohttp.encode_basic_auth(SID, TOKEN):
        return None
    return _error(401, 20003, "Authenticate")


def _error(status: int, code: int, why: str, **headers: str) -> web.Response:
    return web.json_response({"code": code, "message": why, "status": status}, status=status, headers=headers)


# Faults ----------------------------------------------------------------------------------------------------------


def refuses(status: int, code: int, why: str, **headers: Any) -> Fault:
    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        return _error(status, code, why, **headers)

    return behave


def too_many(seconds: int) -> Fault:
    return refuses(429, 20429, "Too Many Requests", **{"Retry-After": str(seconds)})
