"""Whatever arrives at the webhook: nothing breaks, and nothing unsigned is stored."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from ipaddress import IPv6Address
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from aiohttp.test_utils import make_mocked_request
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict
from pydantic import SecretStr
from yarl import URL

from clew.transport import Cursor, Inbound, Receipt
from clew_transports.signature import Forged
from clew_transports.webhook.origin import origin
from clew_transports.webhook.signature import CLEW
from clew_transports.webhook.transport import Settings, WebhookTransport

NOW = 1_800_000_000
SECRET = "the secret"
PLACES = ("127.0.0.1:9000", "hooks.example.org")

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
names = st.text(min_size=1, max_size=6)
urls = st.sampled_from(["https://hooks.example.org/x", "http://127.0.0.1:9000", "http://hooks.example.org/", "http://evil.example/"])
near = st.fixed_dictionaries(
    {"id": names, "chat": names, "sender": names, "text": st.text(max_size=20)}, optional={"reply_url": urls | st.none(), "more": anything}
)
keys = st.sampled_from(["id", "chat", "sender", "text", "reply_url"])
bodies = st.one_of(st.binary(max_size=100), st.one_of(near, st.dictionaries(keys, anything)).map(lambda value: json.dumps(value).encode()))
values = st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=80)
headers = st.lists(
    st.tuples(st.sampled_from(["X-Clew-Timestamp", "x-clew-signature", "Content-Type", "Content-Encoding"]), values),
    max_size=4,
)


class Kept:
    """A host that takes everything."""

    def __init__(self) -> None:
        self.items: list[Inbound] = []
        self.up = asyncio.Event()

    async def accept(self, batch: Sequence[Inbound], cursor: Cursor | None = None) -> list[Receipt]:
        self.items += batch
        return [Receipt(item.external_id, "stored") for item in batch]

    async def cursor(self) -> str | None:
        return None

    def folder(self) -> Path:
        raise NotImplementedError

    async def known(self, sender: str) -> bool:
        return False

    def webhook(self) -> str:
        return ""

    def report(self, up: bool, detail: str = "") -> None:
        self.up.set()


async def posted(body: bytes, given: CIMultiDict[str]) -> tuple[int, list[Inbound]]:
    """The status of a request, and what it stored."""
    transport = WebhookTransport("webhook", Settings(secret=SecretStr(SECRET), reply_hosts=PLACES), clock=lambda: NOW)
    host = Kept()
    running = asyncio.create_task(transport.run(host))
    await host.up.wait()
    loop = asyncio.get_running_loop()
    stream = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
    stream.feed_data(body)
    stream.feed_eof()
    (route,) = transport.routes()
    answer = await route.handler(make_mocked_request("POST", "/", headers=given, payload=stream))
    assert isinstance(answer, web.Response)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return answer.status, host.items


@given(bodies, headers)
def test_nothing_unsigned_is_stored_and_nothing_breaks(body: bytes, some: list[tuple[str, str]]) -> None:  # P42, BO-066
    given = CIMultiDict([("Content-Type", "application/json"), *some])
    status, stored = asyncio.run(posted(body, given))
    assert (status in (401, 413, 415), stored) == (True, [])


@given(bodies, bodies)
def test_a_signature_is_worth_nothing_for_another_body(body: bytes, other: bytes) -> None:  # BO-066
    given = CIMultiDict({"Content-Type": "application/json", **CLEW.signed(SECRET, NOW, other)})
    status, stored = asyncio.run(posted(body, given))
    if body != other:
        assert (status, stored) == (401, [])


@given(bodies)
def test_what_is_signed_is_stored_or_refused_with_a_reason(body: bytes) -> None:  # P42
    given = CIMultiDict({"Content-Type": "application/json", **CLEW.signed(SECRET, NOW, body)})
    status, stored = asyncio.run(posted(body, given))
    assert (status, len(stored)) in ((202, 1), (400, 0))
    for item in stored:
        for kept in (item.external_id, item.client_id, str(item.address), item.sender, *item.context.values()):
            assert kept.isprintable()
            kept.encode()
        assert item.context.get("reply_url") in (None, "https://hooks.example.org/x", "http://127.0.0.1:9000")


marks = ["://", "//", "/", ":", "@", "#", "?", "\\", "[", "]", "%00", "%2f", ".", "。", " ", "\t", "\n", "\u00ad", "\u212a", "-", ";"]
words = ["http", "https", "::1", "1", "１", "a", "HOOKS.example.org", "127.0.0.1", "evil.example", ":9000", ":80", "xn--", "0x7f"]
pieces = st.sampled_from([*marks, *words])


def same(host: str | None) -> str:
    """`host` in the one form in which hosts are compared."""
    return str(IPv6Address(host)) if ":" in (host or "") else (host or "").lower()


@given(st.lists(pieces, max_size=9).map("".join) | st.lists(pieces, max_size=6).map(lambda some: "http://" + "".join(some)))
@example("http://HOOKS.example.org:9000/x")
@example("http://[0::1]:80?@evil.example")
def test_three_parsers_agree_on_where_a_url_leads(url: str) -> None:
    try:
        where = origin(url)
    except ValueError:
        return
    ours = URL(url, encoded=True)
    assert (ours.scheme, same(ours.raw_host), ours.port) == where
    split = urlsplit(url)
    assert (split.scheme, same(split.hostname)) == where[:2]
    assert split.port in (None, where.port)
    assert (split.username, split.fragment) == (None, "")


@given(st.text(min_size=1), st.binary(), st.integers(0, 10**11), st.integers(0, 10**6))
def test_one_changed_byte_breaks_a_signature(secret: str, body: bytes, at: int, where: int) -> None:  # BO-066
    secret = secret.encode("utf-8", "replace").decode()
    stamp, signature = CLEW.signed(secret, at, body).values()
    CLEW.check(*CLEW.stated([stamp], [signature], at), body, ["", secret])
    place = where % (len(body) + 1)
    for other in (body[:place] + b"\0" + body[place:], bytes(byte ^ (n == place) for n, byte in enumerate(body))):
        if other == body:
            continue
        with contextlib.suppress(Forged):
            CLEW.check(stamp, signature, other, [secret])
            raise AssertionError("a changed body passed")
