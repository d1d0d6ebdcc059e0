"""The WhatsApp transport: messages come by Meta's webhook, replies go by the Cloud API."""

import asyncio
import contextlib
import hmac
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

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
from clew_transports.buttons import BUTTONS, CLOSED, Presses, has_buttons
from clew_transports.calls import ANSWER_S, Answer, Calls, Unanswered, Unreached
from clew_transports.incoming import Answered, body
from clew_transports.pace import kept_up
from clew_transports.settings import BaseUrl, Section, plain_http
from clew_transports.text import parts
from clew_transports.whatsapp.dialect import LIMIT, rendered, size
from clew_transports.whatsapp.messages import is_signed, read
from clew_transports.whatsapp.setup import SETUP

MAX_BODY_BYTES = 3 * 1024 * 1024
"""The longest notification, by Meta's documentation."""
LOOK_S = 300.0
"""Seconds between two looks at whether the API answers."""
TYPING_S = 20.0
"""WhatsApp shows the typing indicator for 25 seconds or less."""
HINT_S = 5.0
LONGEST_PAUSE_S = 300.0
MAX_FILE_BYTES = 100 * 1024 * 1024
MAX_ASKED = 1024
"""Characters of a message with buttons; a longer question goes without."""
MAX_DELIVERED = 10_000
"""Confirmations that are remembered."""

PAIR_LIMIT, PAIR_S = 131056, 6.0
"""Too many messages to one person: one in six seconds is allowed (Meta's documentation)."""
LATER = frozenset({1, 2, 3, 4, 10, 368, 80007, 130429, 131000, 131016, 131031, 131042, 131048, 131057, 133004, 133005, 133010, 133016})
"""Errors that pass, or that are mended at Meta or in the config: limits, an account that is locked, not paid or not registered."""
NUMBER_LIMIT, WINDOW_CLOSED = 130429, 131047
TOO_LATE = "more than 24 hours since they last wrote; WhatsApp then takes nothing but templates"

_FILE_HOSTS = re.compile(r"(?:.+\.)?(?:fbsbx\.com|whatsapp\.net|facebook\.com|whatsapp\.com)")

log = structlog.get_logger()


def _is_number(number: str) -> str:
    if number and not re.fullmatch(r"[0-9]{5,30}", number):
        raise ValueError("must be the telephone number's id, digits only, and not the number itself")
    return number


def _is_version(version: str) -> str:
    if not re.fullmatch(r"v[0-9]{1,3}\.[0-9]", version):
        raise ValueError("must look like v23.0")
    return version


class Settings(Section):
    """token: of a system user. app_secret: signs what Meta sends. verify_token: chosen by you, entered at Meta."""

    token: SecretStr = SecretStr("")
    app_secret: SecretStr = SecretStr("")
    verify_token: SecretStr = SecretStr("")
    phone_number_id: Annotated[str, Needed(), AfterValidator(_is_number)] = ""
    base_url: BaseUrl = "https://graph.facebook.com"
    version: Annotated[str, AfterValidator(_is_version)] = "v23.0"


def unreachable(to: Address) -> str:
    """Why no message can be sent to `to`; empty where it may."""
    fits = re.fullmatch(r"[A-Za-z0-9._-]{5,64}", to.chat) and to.thread is None
    return "" if fits else "the chat must be a WhatsApp id, as a telephone number's digits with the country's code"


class WhatsappTransport:
    """`name` is the section's name in the config, the path below `/webhooks/` and the first part of its addresses. Times in seconds."""

    capabilities = Capabilities(
        limit=LIMIT, markup="markdown", can_find=True, merges=True, typing_s=TYPING_S, unreachable=unreachable, spread=True
    )

    def __init__(
        self, name: str, settings: Settings, *, first_pause: float = 1.0, look_s: float = LOOK_S, answer_s: float = ANSWER_S
    ) -> None:
        self._name = name
        self._settings = settings
        self._first_pause = first_pause
        self._look_s = look_s
        self._answer_s = answer_s
        self._calls = Calls("WhatsApp")
        self._host: Host | None = None
        self._delivered: OrderedDict[str, str] = OrderedDict()
        self._hints: dict[Address, asyncio.Task[None]] = {}
        self._presses = Presses(name, self._answer)

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Notifications arrive at `routes`; this looks whether the API knows the number."""
        self._host = host
        async with self._calls:
            try:
                await kept_up(host, lambda: self._looks(host), (Retry, Refused), self._first_pause, LONGEST_PAUSE_S)
            finally:
                self._host = None
                await self._presses.stop()
                for task in self._hints.values():
                    task.cancel()
                await asyncio.gather(*self._hints.values(), return_exceptions=True)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, size=size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part."""
        part = delivery.parts[delivery.sent]
        text = rendered(part.text)
        if not text.strip():
            return Sent(upto=delivery.sent + 1)
        if unreachable(delivery.address):
            raise Refused(f"{delivery.address}: {unreachable(delivery.address)}")
        words = _asking(text) if has_buttons(delivery) and len(text) <= MAX_ASKED else _saying(text)
        answer = await self._post(
            {
                "recipient_type": "individual",
                "to": delivery.address.chat,
                **words,
                "biz_opaque_callback_data": _key(delivery, part),
            }
        )
        return Sent(_number(answer), delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """The first part that is not confirmed, if a notification has told since that WhatsApp has it."""
        number = self._delivered.get(_key(delivery, delivery.parts[delivery.sent]))
        return Sent(number, delivery.sent + 1) if number else None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        """Typing. WhatsApp ties it to the message that is answered, which it marks as read."""
        if self._host and event.in_reply_to.startswith("wamid.") and isinstance(event, Typing) and to not in self._hints:
            reading = {"status": "read", "message_id": event.in_reply_to, "typing_indicator": {"type": "text"}}
            task = self._hints[to] = asyncio.create_task(self._hint(reading), name=f"{self._name}.hint")
            task.add_done_callback(lambda _: self._hints.pop(to, None))
        return None

    def routes(self) -> Sequence[Route]:
        return (Route("GET", "/", self._verify), Route("POST", "/", self._receive))

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        """By the file's id. Where it is stored is told for some minutes only."""
        if not re.fullmatch(r"[0-9A-Za-z_-]{1,100}", ref):
            raise LookupError(f"{ref[:40]!r} is no file of WhatsApp")
        answer = await self._call("GET", ref)
        if answer.status == 429 or answer.status >= 500:
            raise Unreached(f"WhatsApp answered {answer.status} for a file")
        found = answer.json()
        try:
            url = URL(str(found["url"]), encoded=True) if isinstance(found, dict) and "url" in found else None
        except ValueError as why:
            raise LookupError(str(why)) from None
        base = URL(self._settings.base_url)
        if url is None or (url.origin() != base.origin() and not (url.scheme == "https" and _FILE_HOSTS.fullmatch(url.host or ""))):
            raise LookupError("WhatsApp does not have the file")
        async for piece in self._calls.download(url, MAX_FILE_BYTES, headers=self._headers):
            yield piece

    # Messages in -------------------------------------------------------------------------------------------------

    async def _verify(self, request: web.Request) -> web.Response:
        """Meta asks once whether this is the address that was meant."""
        query, token = request.query, self._settings.verify_token.get_secret_value()
        right = hmac.compare_digest(query.get("hub.verify_token", "").encode("utf-8", "replace"), token.encode())
        if query.get("hub.mode") != "subscribe" or not right:
            return Answered(403, "the verify token is wrong").response()
        return web.Response(text=query.get("hub.challenge", "")[:1000])

    async def _receive(self, request: web.Request) -> web.Response:
        try:
            raw = await body(request, MAX_BODY_BYTES)
            stated = request.headers.getall("X-Hub-Signature-256", [])
            if len(stated) != 1 or not is_signed(stated[0], self._settings.app_secret.get_secret_value(), raw):
                log.warning("inbox.rejected", transport=self._name, reason="the signature is missing or wrong")
                raise Answered(401, "the signature is missing or wrong")
            news = read(raw, self._name, self._settings.phone_number_id)
            if self._host is None:
                raise Answered(503, "clew does not take messages right now; send it again later")
            if news.messages:
                self._presses.answer(news.messages, await self._host.accept(news.messages))
            self._remember(news.delivered)
            for reason in news.damaged:
                log.warning("inbox.rejected", transport=self._name, reason=reason)
        except Answered as answer:
            return answer.response()
        return web.json_response({})

    def _remember(self, delivered: Sequence[tuple[str, str]]) -> None:
        self._delivered.update(delivered)
        while len(self._delivered) > MAX_DELIVERED:
            self._delivered.popitem(last=False)

    async def _answer(self, pressed: Inbound, taken: bool) -> None:
        """See `buttons.Answer`. WhatsApp lets a button be pressed once by itself."""
        if not taken:
            await self._hint({"recipient_type": "individual", "to": pressed.address.chat, **_saying(CLOSED)})

    # Replies out -------------------------------------------------------------------------------------------------

    async def _looks(self, host: Host) -> AsyncIterator[None]:
        """Look for ever."""
        while True:
            host.report(True, await self._who())
            yield
            await asyncio.sleep(self._look_s)

    async def _who(self) -> str:
        """The number as people see it. Raises Retry or Refused."""
        try:
            answer = await self._call("GET", self._settings.phone_number_id, query={"fields": "display_phone_number"})
        except (Unreached, Unanswered) as why:
            raise Retry(str(why)) from None
        found = answer.json()
        if answer.status != 200 or not isinstance(found, dict):
            raise _refusal(answer)
        shown = found.get("display_phone_number")
        if not isinstance(shown, str):
            raise Retry(f"{self._settings.base_url} does not answer as WhatsApp's API does")
        return shown

    async def _post(self, message: Mapping[str, Any]) -> Answer:
        """Raises Retry, Refused or Unknown."""
        try:
            path = f"{self._settings.phone_number_id}/messages"
            answer = await self._call("POST", path, json={"messaging_product": "whatsapp", **message})
        except Unreached as why:
            raise Retry(str(why)) from None
        except Unanswered as why:
            raise Unknown(str(why)) from None
        if answer.status != 200:
            raise _refusal(answer)
        return answer

    async def _hint(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(Retry, Refused, Unknown, TimeoutError):
            async with asyncio.timeout(HINT_S):
                await self._post(message)

    async def _call(self, method: str, path: str, query: Mapping[str, str] | None = None, **request: Any) -> Answer:
        url = URL(f"{self._settings.base_url.rstrip('/')}/{self._settings.version}/{path}").with_query(query or {})
        return await self._calls.call(method, url, self._answer_s, headers=self._headers, **request)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._settings.token.get_secret_value()}"}


def _saying(text: str) -> dict[str, Any]:
    return {"type": "text", "text": {"preview_url": False, "body": text}}


def _asking(text: str) -> dict[str, Any]:
    """A question with buttons."""
    buttons = [{"type": "reply", "reply": {"id": answer, "title": title}} for title, answer in BUTTONS]
    return {"type": "interactive", "interactive": {"type": "button", "body": {"text": text}, "action": {"buttons": buttons}}}


def _key(delivery: Delivery, part: Part) -> str:
    """What comes back with the confirmation of a part."""
    return f"{delivery.id}/{part.index}"


def _number(answer: Answer) -> str:
    found = answer.json()
    messages = found.get("messages") if isinstance(found, dict) else None
    return str(messages[0].get("id", "")) if isinstance(messages, list) and messages and isinstance(messages[0], dict) else ""


def _refusal(answer: Answer) -> Retry | Refused:
    found = answer.json()
    error = found.get("error") if isinstance(found, dict) else None
    error = error if isinstance(error, dict) else {}
    code, why = error.get("code"), str(error.get("message", ""))[:200]
    said = f"WhatsApp answered {answer.status}" + (f" ({code})" if code else "") + (f": {why}" if why else "")
    if code == 190 or answer.status == 401:
        return Retry("WhatsApp does not know the token, or it has expired")
    if code == WINDOW_CLOSED:
        return Refused(TOO_LATE)
    if code == PAIR_LIMIT:
        return Retry(said, PAIR_S)
    if code in LATER or answer.status in (403, 404, 408, 429) or answer.status >= 500:
        return Retry(said, answer.retry_after(), everywhere=code == NUMBER_LIMIT)
    return Refused(said)


async def _examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: the token, the number, and whether the app hears of messages."""
    transport = WhatsappTransport(name, settings)
    try:
        async with transport._calls:
            await transport._who()
    except (Retry, Refused) as error:
        return [Fault(str(error), f"check transports.{name}")]
    return []


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    return plain_http(settings.base_url)


def _sender(settings: Settings, text: str) -> str:
    digits = re.sub(r"[ ()./-]", "", text).removeprefix("+")
    if not re.fullmatch(r"[0-9]{5,20}", digits):
        raise ValueError("must stand the person's number with the country's code, such as 15551234567")
    return digits


def _account(settings: Settings) -> tuple[str, str]:
    return "phone_number_id", settings.phone_number_id


def _build(name: str, settings: Settings) -> WhatsappTransport:
    return WhatsappTransport(name, settings)


plugin = Plugin("whatsapp", Settings, _build, _examine, _mistakes, _sender, _account, setup=SETUP)
