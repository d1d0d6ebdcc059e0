"""The SMS transport: messages come by Twilio's webhook, or from its list if the webhook did not reach clew; replies go by its REST API."""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import parse_qsl

import aiohttp
import structlog
from aiohttp import web
from pydantic import AfterValidator, SecretStr
from yarl import URL

from clew.config import Needed
from clew.plugins import Fault, Mistake, Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Host,
    Inbound,
    Part,
    Preview,
    PreviewRef,
    Refused,
    Retry,
    Route,
    Sent,
    Typing,
    Unknown,
)
from clew_transports.calls import ANSWER_S, Answer, Calls, Unanswered, Unreached
from clew_transports.incoming import Answered, body
from clew_transports.markup import plain, read
from clew_transports.pace import kept_up
from clew_transports.reading import Malformed
from clew_transports.settings import BaseUrl, Section, plain_http
from clew_transports.sms.messages import is_sent, is_signed, media, next_page, of_list, of_post
from clew_transports.sms.setup import SETUP
from clew_transports.text import parts

LIMIT = 1600
"""Characters of a message; Twilio refuses longer ones (error 21617)."""
LOOK_S = 120.0
"""Seconds between two looks at Twilio's list: its webhooks are not sent again."""
OVERLAP_S = 600.0
"""Seconds that a look goes back behind the last one: messages may be listed late."""
LONGEST_PAUSE_S = 300.0
MAX_PAGES = 50
MAX_SEEN = 10_000
MAX_FIELDS = 200
MAX_FILE_BYTES = 20 * 1024 * 1024
NEVER = frozenset({21211, 21408, 21610, 21612, 21614, 21617, 30006})
"""Twilio's errors of numbers that take no message: not valid, not permitted, unsubscribed, not reachable, no mobile; too long; landline."""

log = structlog.get_logger()


_NUMBER = re.compile(r"\+[1-9][0-9]{5,14}")


def _is_sid(sid: str) -> str:
    if sid and not re.fullmatch(r"AC[0-9a-f]{32}", sid):
        raise ValueError("must look like AC and 32 letters and digits")
    return sid


def _is_number(number: str) -> str:
    if number and not _NUMBER.fullmatch(number):
        raise ValueError("must be a telephone number like +15551234567")
    return number


def _is_url(url: str) -> str:
    if url and not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]{1,255}/[!-~]{0,500}", url):
        raise ValueError("must be the http(s) address that is entered at Twilio")
    return url


class Settings(Section):
    """The account, its `number`, and the `url` of the webhook as it is entered at Twilio: the signature is made with it."""

    account_sid: Annotated[str, Needed(), AfterValidator(_is_sid)] = ""
    auth_token: SecretStr = SecretStr("")
    number: Annotated[str, Needed(), AfterValidator(_is_number)] = ""
    url: Annotated[str, Needed(), AfterValidator(_is_url)] = ""
    base_url: BaseUrl = "https://api.twilio.com"


def unreachable(to: Address) -> str:
    """Why no message can be sent to `to`; empty where it may."""
    fits = _NUMBER.fullmatch(to.chat) and to.thread is None
    return "" if fits else "the chat must be a telephone number like +15551234567"


class Stopped(Exception):
    """Twilio answered, and did not do it."""


class SmsTransport:
    """`name` is the section's name in the config, the path below `/webhooks/` and the first part of its addresses. Times in seconds."""

    capabilities = Capabilities(limit=LIMIT, markup="plain", can_find=True, merges=True, unreachable=unreachable, spread=True)

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        first_pause: float = 1.0,
        look_s: float = LOOK_S,
        answer_s: float = ANSWER_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._settings = settings
        self._token = settings.auth_token.get_secret_value()
        self._base = settings.base_url.rstrip("/")
        self._auth = _authorization(settings)
        self._first_pause = first_pause
        self._look_s = look_s
        self._answer_s = answer_s
        self._clock = clock
        self._calls = Calls("Twilio")
        self._host: Host | None = None
        self._seen: OrderedDict[str, None] = OrderedDict()

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        self._host = host
        errors = (Stopped, Malformed, Unreached, Unanswered)
        async with self._calls:
            try:
                await kept_up(host, lambda: self._looks(host), errors, self._first_pause, LONGEST_PAUSE_S)
            finally:
                self._host = None

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, size=lambda part: max(len(_words(part)), len(part)))

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part."""
        text = _words(delivery.parts[delivery.sent].text)
        if not text.strip():
            return Sent(upto=delivery.sent + 1)
        if unreachable(delivery.address):
            raise Refused(f"{delivery.address}: {unreachable(delivery.address)}")
        form = {"To": delivery.address.chat, "From": self._settings.number, "Body": text}
        try:
            answer = await self._call("POST", "Messages.json", data=form)
        except Unreached as why:
            raise Retry(str(why)) from None
        except Unanswered as why:
            raise Unknown(str(why)) from None
        if answer.status not in (200, 201):
            found = answer.json()
            code = found.get("code") if isinstance(found, dict) else None
            if code in NEVER or answer.status == 400:
                raise Refused(_said(answer))
            raise Retry(_said(answer), answer.retry_after(), everywhere=answer.status == 429)
        found = answer.json()
        return Sent(str(found.get("sid", "")) if isinstance(found, dict) else "", delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """The first part that is not confirmed, if Twilio's list has it since the reply was written."""
        query = {"To": delivery.address.chat, "From": self._settings.number, "DateSent>": _stamp(delivery.ts - 1), "PageSize": "100"}
        answer = await self._call("GET", "Messages.json", query=query)
        number = is_sent(answer.json(), _words(delivery.parts[delivery.sent].text)) if answer.status == 200 else ""
        return Sent(number, delivery.sent + 1) if number else None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        return None

    def routes(self) -> Sequence[Route]:
        return (Route("POST", "/", self._receive),)

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        """From Twilio with the account's token; where it sends clew on, without."""
        url = URL(ref)
        if url.origin() != URL(self._base).origin():
            raise LookupError("the file is not at Twilio")
        answer = await self._calls.call("GET", url, self._answer_s, headers=self._auth)
        if answer.status == 429 or answer.status >= 500:
            raise Unreached(f"Twilio answered {answer.status} for a file")
        if answer.status == 200:
            yield answer.body
            return
        place = answer.headers.get("Location", "")
        if answer.status not in (302, 303, 307, 308) or URL(place).scheme != url.scheme:
            raise LookupError(f"Twilio answered {answer.status} for a file")
        async for piece in self._calls.download(URL(place, encoded=True), MAX_FILE_BYTES):
            yield piece

    # Messages in -------------------------------------------------------------------------------------------------

    async def _receive(self, request: web.Request) -> web.Response:
        try:
            fields = await self._fields(request)
            inbound = of_post(fields, self._name, self._settings.number)
            if self._host is None:
                raise Answered(503, "clew does not take messages right now")
            if inbound:
                await self._host.accept([inbound], None)
                self._remember(inbound.external_id)
        except Malformed as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            return Answered(400, str(reason)).response()
        except Answered as answer:
            return answer.response()
        return web.Response(text="<Response/>", content_type="text/xml")

    async def _fields(self, request: web.Request) -> list[tuple[str, str]]:
        """The fields of a request that Twilio has signed. Raises Answered for any other."""
        if request.content_type != "application/x-www-form-urlencoded":
            raise Answered(415, "the body must be application/x-www-form-urlencoded")
        raw = await body(request)
        try:
            fields = parse_qsl(raw.decode(), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=MAX_FIELDS)
        except ValueError:
            raise Answered(400, "the body is no form") from None
        stated = request.headers.getall("X-Twilio-Signature", [])
        if len(stated) != 1 or not stated[0].isascii() or not is_signed(stated[0], self._token, self._settings.url, fields):
            log.warning("inbox.rejected", transport=self._name, reason="the signature is missing or wrong")
            raise Answered(401, "the signature is missing or wrong")
        return fields

    async def _looks(self, host: Host) -> AsyncIterator[None]:
        """Look for ever."""
        while True:
            await self._look(host)
            host.report(True, self._settings.number)
            yield
            await asyncio.sleep(self._look_s)

    async def _look(self, host: Host) -> None:
        """Take what Twilio's list has and clew has not. The first look of all begins now: an account's past is no question."""
        now, since = self._clock(), await host.cursor()
        if since is not None and _is_time(since):
            found = await self._listed(float(since) - OVERLAP_S)
            # The list begins with the newest, and tells times in whole seconds.
            missed = [each for each in reversed(found) if each[0].external_id not in self._seen]
            missed.sort(key=lambda each: each[0].sent_at or 0.0)
            batch = [await self._with_files(each) if has_files else each for each, has_files in missed]
        else:
            batch = []
        await host.accept(batch, repr(now))
        for inbound in batch:
            self._remember(inbound.external_id)

    async def _listed(self, since: float) -> list[tuple[Inbound, bool]]:
        query = {"To": self._settings.number, "DateSent>": _stamp(since), "PageSize": "1000"}
        answer = await self._call("GET", "Messages.json", query=query)
        found: list[tuple[Inbound, bool]] = []
        for _ in range(MAX_PAGES):
            if answer.status != 200:
                raise Stopped(_said(answer))
            page = answer.json()
            found += of_list(page, self._name, self._settings.number)
            if not (path := next_page(page)):
                break
            answer = await self._calls.call("GET", URL(self._base + path, encoded=True), self._answer_s, headers=self._auth)
        return found

    async def _with_files(self, inbound: Inbound) -> Inbound:
        answer = await self._call("GET", f"Messages/{inbound.client_id}/Media.json")
        if answer.status != 200:
            raise Stopped(_said(answer))
        return replace(inbound, attachments=media(answer.json(), self._base))

    def _remember(self, external_id: str) -> None:
        self._seen[external_id] = None
        while len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)

    async def _call(self, method: str, path: str, query: Mapping[str, str] | None = None, **request: Any) -> Answer:
        url = URL(f"{self._base}/2010-04-01/Accounts/{self._settings.account_sid}/{path}")
        return await self._calls.call(method, url.with_query(query or {}), self._answer_s, headers=self._auth, **request)


def _authorization(settings: Settings) -> dict[str, str]:
    return {"Authorization": aiohttp.encode_basic_auth(settings.account_sid, settings.auth_token.get_secret_value())}


def _words(text: str) -> str:
    return plain(read(text))


def _is_time(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,11}(\.[0-9]+)?", text) is not None


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _said(answer: Answer) -> str:
    found = answer.json()
    why, code = (str(found.get("message", ""))[:200], found.get("code")) if isinstance(found, dict) else ("", None)
    if answer.status == 401:
        return "Twilio does not know the account or its token"
    return f"Twilio answered {answer.status}" + (f" ({code})" if code else "") + (f": {why}" if why else "")


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    own = f"/webhooks/{name}/"
    elsewhere = not URL(settings.url).path.endswith(own)
    text = f"clew takes what Twilio sends at {own}: with another path it must be changed on the way (docs/transports/sms.md)"
    return (*((Mistake("url", text, serious=False),) if elsewhere else ()), *plain_http(settings.base_url))


def _sender(settings: Settings, text: str) -> str:
    number = re.sub(r"[ ()./-]", "", text)
    if not _NUMBER.fullmatch(number):
        raise ValueError("must stand a telephone number with the country's code, such as +15551234567")
    return number


def _account(settings: Settings) -> tuple[str, str]:
    return "number", settings.number


def _build(name: str, settings: Settings) -> SmsTransport:
    return SmsTransport(name, settings)


async def _examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: the account, the number, and where Twilio sends what comes to it."""
    here = f"check transports.{name}"
    try:
        async with Calls("Twilio") as calls:
            url = URL(f"{settings.base_url.rstrip('/')}/2010-04-01/Accounts/{settings.account_sid}/IncomingPhoneNumbers.json")
            answer = await calls.call("GET", url.with_query({"PhoneNumber": settings.number}), headers=_authorization(settings))
    except (Unreached, Unanswered) as error:
        return [Fault(str(error), here)]
    if answer.status != 200:
        return [Fault(_said(answer), here)]
    found = answer.json()
    numbers = found.get("incoming_phone_numbers") if isinstance(found, dict) else None
    if not isinstance(numbers, list) or not all(isinstance(each, dict) for each in numbers):
        return [Fault(f"{settings.base_url} does not answer as Twilio does", f"{here}.base_url")]
    if not numbers:
        return [Fault(f"{settings.number} is none of this account's numbers", here)]
    if numbers[0].get("sms_url") != settings.url:
        text = f"Twilio sends what comes to {settings.number} elsewhere; clew finds it in the list, up to {LOOK_S:.0f} s later"
        return [Fault(text, f"Twilio Console: {settings.number}, A message comes in: Webhook {settings.url}, HTTP POST", False)]
    return []


plugin = Plugin("sms", Settings, _build, _examine, _mistakes, _sender, _account, setup=SETUP)
