"""Replies by webhook to a real receiver: what its answers and failures mean."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from email.utils import formatdate

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr

from clew.transport import Address, Delivery, Refused, Retry, Sent, Unknown
from clew_transports.calls import LONGEST_WAIT_S
from clew_transports.webhook.transport import PART_BYTES, Settings, WebhookTransport
from tests.integration.mqtt_harness import Inbox
from tests.integration.webhook_harness import SECRET, Receiver, answers, drops, hangs, receiving, until

ANSWER_S = 5.0


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


@contextlib.asynccontextmanager
async def running(*hosts: str, answer_s: float = ANSWER_S) -> AsyncIterator[WebhookTransport]:
    transport = WebhookTransport("webhook", Settings(secret=SecretStr(SECRET), reply_hosts=hosts), answer_s=answer_s)
    inbox = Inbox()
    task = asyncio.create_task(transport.run(inbox))
    try:
        await inbox.until(lambda: inbox.up)
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest_asyncio.fixture
async def transport(receiver: Receiver) -> AsyncIterator[WebhookTransport]:
    async with running(f"127.0.0.1:{receiver.port}") as found:
        yield found


def delivery(transport: WebhookTransport, url: str | None, text: str = "Lima.", sent: int = 0) -> Delivery:
    context = {"reply_url": url} if url else {}
    parts = tuple(transport.parts(text))
    return Delivery("k3v9", Address("webhook", "ada"), text, parts, 1_800_000_000.25, "m1", ("m1",), context, sent)


@pytest.mark.asyncio
@pytest.mark.parametrize("status", [200, 201, 202, 204])
async def test_any_yes_is_sent(transport: WebhookTransport, receiver: Receiver, status: int) -> None:  # P43
    receiver.next.append(answers(status))
    assert await transport.send(delivery(transport, f"{receiver.url}/a%2Fb?c=%20d")) == Sent()
    (call,) = receiver.calls
    assert call.is_signed()
    assert abs(int(call.headers["x-clew-timestamp"]) - time.time()) < 100
    assert (call.path, call.headers["idempotency-key"], "cookie" in call.headers) == ("/a%2Fb?c=%20d", "k3v9", False)
    assert call.body == {
        "v": 1,
        "id": "k3v9",
        "in_reply_to": "m1",
        "answers": ["m1"],
        "text": "Lima.",
        "part": 1,
        "parts": 1,
        "final": True,
        "ts": "2027-01-15T08:00:00.250Z",
    }


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("status", "header", "wait"),
    [
        (429, "7", 7.0),
        (503, "0", 0.0),
        (503, "9" * 400, LONGEST_WAIT_S),
        (429, formatdate(time.time() + 86400, usegmt=True), LONGEST_WAIT_S),
        (429, formatdate(0, usegmt=True), 0.0),
        (429, "soon", None),
        (429, "-3", None),
        (503, "", None),
        (408, "", None),
        (500, "", None),
        (502, "", None),
        (504, "", None),
    ],
)
async def test_a_receiver_that_cannot_now_is_asked_again(
    transport: WebhookTransport, receiver: Receiver, status: int, header: str, wait: float | None
) -> None:  # P43
    receiver.next.append(answers(status, Retry_After=header))
    with pytest.raises(Retry, match=f"answered {status}") as caught:
        await transport.send(delivery(transport, receiver.url))
    assert caught.value.after == wait


@pytest.mark.asyncio
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422])
async def test_a_receiver_that_will_not_is_not_asked_again(transport: WebhookTransport, receiver: Receiver, status: int) -> None:  # P43
    receiver.next.append(answers(status))
    with pytest.raises(Refused, match=f"answered {status}"):
        await transport.send(delivery(transport, f"{receiver.url}/secret-path"))
    assert len(receiver.calls) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(transport: WebhookTransport, receiver: Receiver, status: int) -> None:
    receiver.next.append(answers(status, Location="/elsewhere"))
    with pytest.raises(Refused, match="redirects are not followed"):
        await transport.send(delivery(transport, receiver.url))
    assert [call.path for call in receiver.calls] == ["/"]


@pytest.mark.asyncio
async def test_a_connection_that_breaks_behind_the_request_is_unknown(transport: WebhookTransport, receiver: Receiver) -> None:  # P43
    receiver.next.append(drops)
    with pytest.raises(Unknown, match="broke before the answer") as caught:
        await transport.send(delivery(transport, f"{receiver.url}/secret-path"))
    assert "secret-path" not in str(caught.value)
    assert transport.capabilities.idempotent_send


@pytest.mark.asyncio
async def test_no_answer_is_unknown(receiver: Receiver) -> None:  # P43
    receiver.next.append(hangs)
    async with running(f"127.0.0.1:{receiver.port}", answer_s=0.2) as transport:
        with pytest.raises(Unknown, match=r"no answer from .* within"):
            await transport.send(delivery(transport, receiver.url))
    assert len(receiver.calls) == 1


@pytest.mark.asyncio
async def test_where_nobody_listens_nothing_was_sent() -> None:  # P43
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        async with running(place) as transport:
            with pytest.raises(Retry, match=f"no connection to http://{place} "):
                await transport.send(delivery(transport, f"http://{place}/secret-path"))


@pytest.mark.asyncio
async def test_a_receiver_that_cannot_speak_tls_gets_nothing(transport: WebhookTransport, receiver: Receiver) -> None:
    with pytest.raises(Retry, match="no connection"):
        await transport.send(delivery(transport, f"https://127.0.0.1:{receiver.port}/"))
    assert receiver.calls == []


@pytest.mark.asyncio
async def test_before_and_after_its_run_nothing_is_sent(receiver: Receiver) -> None:
    async with running(f"127.0.0.1:{receiver.port}") as transport:
        idle = WebhookTransport("webhook", Settings(secret=SecretStr(SECRET), reply_hosts=(f"127.0.0.1:{receiver.port}",)))
        with pytest.raises(Retry):
            await idle.send(delivery(idle, receiver.url))
    with pytest.raises(Retry):
        await transport.send(delivery(transport, receiver.url))
    assert receiver.calls == []


@pytest.mark.asyncio
async def test_a_place_that_is_no_longer_listed_gets_nothing(receiver: Receiver) -> None:
    async with running("127.0.0.1:1") as transport:
        with pytest.raises(Refused, match="no longer among the reply_hosts"):
            await transport.send(delivery(transport, receiver.url))
        with pytest.raises(Refused, match="no reply_url"):
            await transport.send(delivery(transport, None))
    assert receiver.calls == []


@pytest.mark.asyncio
async def test_proxies_of_the_environment_are_not_used(
    transport: WebhookTransport, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        await transport.send(delivery(transport, receiver.url))
        assert (len(proxy.calls), len(receiver.calls)) == (0, 1)


@pytest.mark.asyncio
async def test_an_answer_without_end_is_not_read(transport: WebhookTransport, receiver: Receiver) -> None:
    left = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        try:
            await response.prepare(request)
            while True:
                await response.write(b"x" * 65536)
        finally:
            left.set()

    receiver.next.append(endless)
    assert await transport.send(delivery(transport, receiver.url)) == Sent()
    async with asyncio.timeout(20):
        await left.wait()


@pytest.mark.asyncio
async def test_neither_cookies_nor_connections_are_kept(receiver: Receiver) -> None:
    receiver.next.append(answers(200, Set_Cookie="a=b; Path=/"))
    async with running(f"localhost:{receiver.port}") as transport:
        for _ in range(2):
            await transport.send(delivery(transport, f"http://localhost:{receiver.port}/"))
    assert ["cookie" in call.headers for call in receiver.calls] == [False, False]
    assert [call.headers["connection"] for call in receiver.calls] == ["close", "close"]


@pytest.mark.asyncio
async def test_a_long_reply_comes_in_order_and_resumes_behind_what_was_sent(transport: WebhookTransport, receiver: Receiver) -> None:  # P43
    text = '"quoted"\n' * (PART_BYTES // 8)
    await transport.send(delivery(transport, receiver.url, text))
    assert [(call.headers["idempotency-key"], call.body["id"]) for call in receiver.calls] == [("k3v9.1",) * 2, ("k3v9.2",) * 2]
    assert [(call.body["part"], call.body["final"]) for call in receiver.calls] == [(1, False), (2, True)]
    assert "".join(call.body["text"] for call in receiver.calls) == text
    assert all(call.is_signed() and len(call.raw) < 2**20 for call in receiver.calls)
    await transport.send(delivery(transport, receiver.url, text, sent=1))
    await until(lambda: len(receiver.calls) == 3)
    assert receiver.calls[2].raw == receiver.calls[1].raw
