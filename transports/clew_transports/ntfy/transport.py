"""The ntfy transport: what is written to a person's topic is answered in another; any other topic can be notified."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

import structlog
from pydantic import AfterValidator, Field, SecretStr
from yarl import URL

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
from clew_transports.ntfy.events import TOPIC, event, read
from clew_transports.ntfy.setup import SETUP
from clew_transports.pace import kept_up
from clew_transports.reading import Malformed
from clew_transports.settings import BaseUrl, Section, plain_http
from clew_transports.text import parts

LIMIT = 4096
"""Bytes of a message; a longer one becomes a file, or is refused."""
SILENT_S = 150.0
"""Seconds without a keepalive, which comes every 45 (ntfy's default), after which the stream is taken for dead."""
LOOK_S = 60.0
"""Seconds between two looks at the server where there is no topic to read."""
LONGEST_PAUSE_S = 60.0
MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_TOPICS = 100

log = structlog.get_logger()


def _are_topics(topics: Mapping[str, str]) -> Mapping[str, str]:
    for topic in (*topics, *topics.values()):
        if not TOPIC.fullmatch(topic):
            raise ValueError(f"{topic[:80]!r} is no topic: 1 to 64 letters, digits, _ and -")
    if both := set(topics) & set(topics.values()):
        raise ValueError(f"{min(both)!r} is read and written: clew would answer itself; use two topics")
    return topics


def _is_token(token: SecretStr) -> SecretStr:
    if not token.get_secret_value().isascii() or not token.get_secret_value().isprintable():
        raise ValueError("must be printable ASCII, as ntfy gives it (tk_…)")
    return token


class Settings(Section):
    """`token`: an access token. topics: those that are read, each with the one where replies go."""

    base_url: BaseUrl = "https://ntfy.sh"
    token: Annotated[SecretStr, AfterValidator(_is_token)] | None = None
    topics: Annotated[Mapping[str, str], AfterValidator(_are_topics), Field(max_length=MAX_TOPICS, default_factory=dict)]


def unreachable(to: Address) -> str:
    """Why nothing can be published for `to`; empty where it may."""
    return "" if TOPIC.fullmatch(to.chat) and to.thread is None else "the chat must be a topic: 1 to 64 letters, digits, _ and -"


class Stopped(Exception):
    """ntfy does not give the stream."""


class NtfyTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(limit=LIMIT, unit="bytes", markup="markdown", can_find=True, merges=True, unreachable=unreachable)

    def __init__(
        self, name: str, settings: Settings, *, first_pause: float = 1.0, silent_s: float = SILENT_S, answer_s: float = ANSWER_S
    ) -> None:
        self._name = name
        self._settings = settings
        self._base = settings.base_url.rstrip("/")
        self._headers = _headers(settings)
        self._first_pause = first_pause
        self._silent_s = silent_s
        self._answer_s = answer_s
        self._calls = Calls("ntfy")

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        reading = self._batches if self._settings.topics else self._looks
        async with self._calls:
            await kept_up(host, lambda: reading(host), (Stopped, Unreached, Unanswered), self._first_pause, LONGEST_PAUSE_S)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, "bytes")

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part. A part that comes twice has the same sequence id, and newer apps show it once."""
        part, topic = delivery.parts[delivery.sent], self._target(delivery.address)
        if not part.text.strip():
            return Sent(upto=delivery.sent + 1)
        headers = self._headers | {"Markdown": "yes", "X-Sequence-ID": _key(delivery, part)}
        try:
            answer = await self._call("POST", topic, data=part.text.encode(), headers=headers)
        except Unreached as why:
            raise Retry(str(why)) from None
        except Unanswered as why:
            raise Unknown(str(why)) from None
        if answer.status != 200:
            # 401 and 403 are mended in ntfy or in the config, 413 and other 4xx are about these very words.
            if answer.status in (401, 403, 404, 408, 429) or answer.status >= 500:
                raise Retry(_said(answer), answer.retry_after(), everywhere=answer.status == 429)
            raise Refused(_said(answer))
        return Sent(_number(answer), delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """The first part that is not confirmed, if its topic's cache has it."""
        key = _key(delivery, delivery.parts[delivery.sent])
        try:
            answer = await self._call(
                "GET", f"{self._target(delivery.address)}/json", query={"poll": "1", "since": str(int(delivery.ts) - 1)}
            )
        except (Unreached, Unanswered):
            return None
        for line in answer.body.splitlines() if answer.status == 200 else ():
            try:
                found = event(line)
            except Malformed:
                continue
            if found.get("sequence_id") == key:
                return Sent(str(found.get("id", "")), delivery.sent + 1)
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        """Only from the server itself: elsewhere anybody could make clew call anything."""
        url = URL(ref)
        if url.origin() != URL(self._base).origin():
            raise LookupError("the file is not on the ntfy server")
        async for piece in self._calls.download(url, MAX_FILE_BYTES, headers=self._headers):
            yield piece

    # Messages in -------------------------------------------------------------------------------------------------

    async def _batches(self, host: Host) -> AsyncIterator[None]:
        """Read for ever. ntfy begins with what it has kept behind the last message that is stored, or with all it has."""
        topics = ",".join(sorted(self._settings.topics))
        url = self._url(f"{topics}/json", {"since": await host.cursor() or "all"})
        async with self._calls.stream(url, self._silent_s, headers=self._headers) as (status, lines):
            if status != 200:
                raise Stopped(_refused(status))
            async for some in lines:
                await self._take(host, some)
                host.report(True, topics)
                yield
        raise Unanswered("ntfy closed the stream")

    async def _take(self, host: Host, lines: Sequence[bytes]) -> None:
        batch: list[Inbound] = []
        for line in filter(None, lines):
            try:
                inbound = read(event(line), self._name, self._settings.topics)
            except Malformed as reason:
                log.warning("inbox.rejected", transport=self._name, reason=str(reason))
                continue
            if inbound:
                batch.append(inbound)
        if batch:
            await host.accept(batch, batch[-1].client_id)

    async def _looks(self, host: Host) -> AsyncIterator[None]:
        """Nothing is to be read: only whether the server is there."""
        while True:
            answer = await self._call("GET", "v1/health")
            if answer.status != 200:
                raise Stopped(_refused(answer.status))
            host.report(True, "for notifications only")
            yield
            await asyncio.sleep(LOOK_S)

    # Both --------------------------------------------------------------------------------------------------------

    def _target(self, to: Address) -> str:
        """The topic in which `to` reads."""
        if unreachable(to):
            raise Refused(f"{to}: {unreachable(to)}")
        return self._settings.topics.get(to.chat, to.chat)

    def _url(self, path: str, query: Mapping[str, str] | None = None) -> URL:
        return URL(f"{self._base}/{path}").with_query(query or {})

    async def _call(self, method: str, path: str, query: Mapping[str, str] | None = None, **request: Any) -> Answer:
        return await self._calls.call(method, self._url(path, query), self._answer_s, **{"headers": self._headers} | request)


def _headers(settings: Settings) -> dict[str, str]:
    return {"Authorization": f"Bearer {settings.token.get_secret_value()}"} if settings.token else {}


def _key(delivery: Delivery, part: Part) -> str:
    """The part's sequence id: the same whenever it is sent again."""
    return f"{delivery.id}-{part.index}"[-64:]


def _number(answer: Answer) -> str:
    found = answer.json()
    return str(found.get("id", "")) if isinstance(found, dict) else ""


def _said(answer: Answer) -> str:
    found = answer.json()
    why = str(found.get("error", ""))[:200] if isinstance(found, dict) else ""
    return f"ntfy answered {answer.status}" + (f": {why}" if why else "")


def _refused(status: int) -> str:
    if status in (401, 403):
        return f"ntfy answered {status}: the token is not known, or may not read these topics"
    return f"ntfy answered {status}"


async def _examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: whether the server is there and lets clew read its topics; topics that anybody may read."""
    async with Calls("ntfy") as calls:
        base = settings.base_url.rstrip("/")
        try:
            answer = await calls.call("GET", URL(f"{base}/v1/health"))
            health = answer.json()
            if answer.status != 200 or not isinstance(health, dict) or health.get("healthy") is not True:
                return [Fault(f"{base} does not answer as an ntfy that is well does", f"check transports.{name}.base_url")]
            faults = []
            for topic in settings.topics:
                url = URL(f"{base}/{topic}/json").with_query({"poll": "1", "since": "none"})
                status = (await calls.call("GET", url, headers=_headers(settings))).status
                if status != 200:
                    faults.append(Fault(f"{topic}: {_refused(status)}", f"check transports.{name}.token"))
                elif (await calls.call("GET", url)).status == 200:
                    faults.append(Fault(f"{topic}: whoever knows its name can read it, and write as its owner", "ntfy access", False))
            return faults
        except (Unreached, Unanswered) as error:
            return [Fault(str(error), f"check transports.{name}.base_url")]


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    return plain_http(settings.base_url)


def _sender(settings: Settings, text: str) -> str:
    if settings.topics and text not in settings.topics:
        raise ValueError(f"must stand a topic that is read, and those are: {', '.join(sorted(settings.topics))}")
    return text


def _build(name: str, settings: Settings) -> NtfyTransport:
    return NtfyTransport(name, settings)


plugin = Plugin("ntfy", Settings, _build, _examine, _mistakes, _sender, setup=SETUP)
