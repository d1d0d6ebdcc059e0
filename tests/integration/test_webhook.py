"""Messages through the webhook of a whole clew: real sockets, real store, an emulated model."""

import asyncio
import contextlib
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr
from structlog.testing import capture_logs

from clew.errors import StoreError
from clew.transport import Cursor, Inbound, Receipt
from clew_transports.incoming import MAX_BODY_BYTES
from clew_transports.webhook.transport import Settings, WebhookTransport
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo
from tests.integration.web_harness import Clew, running, settings
from tests.integration.webhook_harness import OLD_SECRET, SECRET, Receiver, call, drops, message, proof, receiving, say, until

PAGE = Path(__file__).parents[2] / "docs" / "transports" / "webhook.md"
PEOPLE = {"ada": {"role": "owner", "identities": ["webhook:ada"]}}


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=echo) as server:
        yield server


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


@pytest_asyncio.fixture
async def clew(tmp_path: Path, emulator: OpenAIEmulator, receiver: Receiver) -> AsyncIterator[Clew]:
    section = {"secret": SECRET, "old_secrets": [OLD_SECRET, ""], "reply_hosts": [f"127.0.0.1:{receiver.port}"]}
    config = settings(tmp_path / "c", base_url=emulator.base_url, transports={"webhook": section}, people=PEOPLE)
    async with running(config) as found:
        await until(lambda: found.service.transports["webhook"].up)
        yield found


async def stored(clew: Clew) -> list[str]:
    """The ids of what ada's chat holds."""
    return [said.id for said in await clew.service.store.history("webhook:ada", 0, 100, newest=True)]


async def nothing_happened(clew: Clew, emulator: OpenAIEmulator) -> bool:
    return not (await stored(clew) or await clew.service.store.outbox(("pending", "sending", "sent", "dead")) or emulator.calls)


@pytest.mark.asyncio
async def test_a_signed_message_is_stored_acknowledged_and_answered(clew: Clew, receiver: Receiver) -> None:  # P42, P43
    assert await say(clew, message(reply_url=f"{receiver.url}/hook?key=1", extra={"unknown": [1]})) == (
        202,
        {"id": "m1", "status": "stored"},
    )
    await until(lambda: bool(receiver.calls))
    (reply,) = receiver.calls
    assert reply.is_signed()
    assert (reply.path, reply.headers["content-type"]) == ("/hook?key=1", "application/json")
    assert reply.headers["idempotency-key"] == reply.body["id"]
    assert set(reply.body) == {"v", "id", "in_reply_to", "answers", "text", "part", "parts", "final", "ts"}
    assert (reply.body["in_reply_to"], reply.body["answers"], reply.body["final"]) == ("m1", ["m1"], True)
    assert "Hello" in reply.body["text"]


@pytest.mark.asyncio
async def test_it_is_acknowledged_while_the_model_thinks_and_retries_are_duplicates(
    clew: Clew, receiver: Receiver, emulator: OpenAIEmulator
) -> None:  # P42, BO-068
    hold = emulator.hold()
    sent = message(reply_url=receiver.url)
    assert (await say(clew, sent))[0] == 202
    assert await stored(clew) == ["m1"]
    await hold.reached.wait()
    assert [await say(clew, sent) for _ in range(2)] == [(202, {"id": "m1", "status": "duplicate"})] * 2
    hold.release()
    await until(lambda: bool(receiver.calls))
    assert (await say(clew, sent))[1]["status"] == "duplicate"
    await say(clew, message("m2", reply_url=receiver.url))
    await until(lambda: len(receiver.calls) == 2)
    assert [reply.body["in_reply_to"] for reply in receiver.calls] == ["m1", "m2"]
    assert len(emulator.calls) == 2


@pytest.mark.asyncio
async def test_identical_posts_at_once_are_one_turn(clew: Clew, receiver: Receiver, emulator: OpenAIEmulator) -> None:  # P42, BO-050
    body = json.dumps(message(reply_url=receiver.url)).encode()
    headers = proof(body)
    found = await asyncio.gather(*(call(clew, body, headers) for _ in range(12)))
    assert {status for status, _ in found} == {202}
    assert sorted(answer["status"] for _, answer in found) == ["duplicate"] * 11 + ["stored"]
    await say(clew, message("last", reply_url=receiver.url))
    await until(lambda: len(receiver.calls) == 2)
    assert [reply.body["in_reply_to"] for reply in receiver.calls] == ["m1", "last"]
    assert len(emulator.calls) == 2


BODY = json.dumps(message()).encode()
FORGED: dict[str, Callable[[], tuple[bytes, dict[str, str]]]] = {  # made when they are sent, so that only what they name is wrong
    "no headers": lambda: (BODY, {"Content-Type": "application/json"}),
    "no signature": lambda: (BODY, {**proof(BODY), "X-Clew-Signature": ""}),
    "no timestamp": lambda: (BODY, {**proof(BODY), "X-Clew-Timestamp": ""}),
    "another secret": lambda: (BODY, proof(BODY, secret="guessed")),
    "the empty secret": lambda: (BODY, proof(BODY, secret="")),
    "another body": lambda: (BODY + b" ", proof(BODY)),
    "no body": lambda: (b"", proof(BODY)),
    "ten minutes old": lambda: (BODY, proof(BODY, age=600)),
    "just too old": lambda: (BODY, proof(BODY, age=302)),
    "from the future": lambda: (BODY, proof(BODY, age=-310)),
    "an old signature with a new timestamp": lambda: (BODY, {**proof(BODY, age=600), "X-Clew-Timestamp": proof(BODY)["X-Clew-Timestamp"]}),
    "no scheme": lambda: (BODY, {**proof(BODY), "X-Clew-Signature": proof(BODY)["X-Clew-Signature"].removeprefix("sha256=")}),
    "a cut signature": lambda: (BODY, {**proof(BODY), "X-Clew-Signature": proof(BODY)["X-Clew-Signature"][:-1]}),
    "not ASCII": lambda: (BODY, {**proof(BODY), "X-Clew-Timestamp": "１７００００００００", "X-Clew-Signature": "sha256=" + "é" * 64}),
    "a negative timestamp": lambda: (BODY, {**proof(BODY), "X-Clew-Timestamp": "-1"}),
    "a huge timestamp": lambda: (BODY, {**proof(BODY), "X-Clew-Timestamp": "9" * 5000}),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("case", FORGED)
async def test_what_is_not_signed_just_now_is_turned_away(clew: Clew, emulator: OpenAIEmulator, case: str) -> None:  # P42, BO-066
    status, answer = await call(clew, *FORGED[case]())
    assert (status, answer) == (401, {"error": "the timestamp or the signature is missing or wrong"})
    assert await nothing_happened(clew, emulator)


@pytest.mark.asyncio
async def test_two_signatures_are_none(clew: Clew, emulator: OpenAIEmulator) -> None:  # BO-066
    headers = [*proof(BODY).items(), ("X-Clew-Signature", proof(BODY, secret="guessed")["X-Clew-Signature"])]
    async with clew.http.post(f"{clew.url}/webhooks/webhook", data=BODY, headers=headers) as response:
        assert response.status == 401
    assert await nothing_happened(clew, emulator)


@pytest.mark.asyncio
async def test_a_message_is_taken_until_its_window_ends_and_only_once(clew: Clew, receiver: Receiver) -> None:  # P42
    headers = proof(BODY, age=280)
    assert (await call(clew, BODY, headers))[1]["status"] == "stored"
    assert (await call(clew, BODY, headers))[1]["status"] == "duplicate"
    assert (await call(clew, BODY, proof(BODY, age=-280)))[1]["status"] == "duplicate"


@pytest.mark.asyncio
async def test_while_secrets_change_the_old_one_is_taken_and_the_new_one_signs(clew: Clew, receiver: Receiver) -> None:  # BO-066
    assert (await say(clew, message(reply_url=receiver.url), secret=OLD_SECRET))[0] == 202
    await until(lambda: bool(receiver.calls))
    assert receiver.calls[0].is_signed(SECRET)
    assert not receiver.calls[0].is_signed(OLD_SECRET)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff{}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (json.dumps({**message(), "id": 7}).encode(), "id: "),
        (json.dumps({**message(), "id": "a\u0000"}).encode(), "id: "),
        (json.dumps({**message(), "id": "x" * 201}).encode(), "id: "),
        (json.dumps({**message(), "chat": ""}).encode(), "chat: "),
        (json.dumps({**message(), "chat": "/a"}).encode(), "chat: "),
        (json.dumps({**message(), "sender": None}).encode(), "sender: "),
        (json.dumps({**message(), "sender": "\ud800"}).encode(), "sender: "),
        (json.dumps({**message(), "text": ["a"]}).encode(), "text: "),
        (json.dumps({**message(), "reply_url": 1}).encode(), "reply_url: "),
    ],
)
async def test_what_is_malformed_is_told_why(clew: Clew, emulator: OpenAIEmulator, body: bytes, reason: str) -> None:
    status, answer = await call(clew, body, proof(body))
    assert status == 400
    assert reason in answer["error"]
    assert await nothing_happened(clew, emulator)


@pytest.mark.asyncio
@pytest.mark.parametrize("more", [{"Content-Type": "text/plain"}, {"Content-Type": ""}, {"Content-Encoding": "gzip"}])
async def test_only_plain_json_is_read(clew: Clew, emulator: OpenAIEmulator, more: dict[str, str]) -> None:
    assert (await call(clew, BODY, proof(BODY) | more))[0] == 415
    assert await nothing_happened(clew, emulator)


@pytest.mark.asyncio
async def test_a_body_that_is_too_long_is_not_read_to_its_end(clew: Clew, emulator: OpenAIEmulator) -> None:
    body = json.dumps(message(text="x" * MAX_BODY_BYTES)).encode()
    assert (await call(clew, body, proof(body)))[0] == 413

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65536):
            yield body[start : start + 65536]

    async with clew.http.post(f"{clew.url}/webhooks/webhook", data=pieces(), headers=proof(body)) as response:
        assert response.status == 413
    assert await nothing_happened(clew, emulator)


@pytest.mark.asyncio
async def test_a_body_that_breaks_off_is_nobodys_fault(clew: Clew, emulator: OpenAIEmulator) -> None:
    with capture_logs() as lines:
        _, writer = await asyncio.open_connection("127.0.0.1", clew.listening.port)
        head = [f"{name}: {value}" for name, value in proof(BODY).items()]
        lengthy = ["POST /webhooks/webhook HTTP/1.1", "Host: x", *head, f"Content-Length: {len(BODY) + 10}", "", ""]
        writer.write("\r\n".join(lengthy).encode() + BODY)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await say(clew, message("m2")))[0] == 202
    assert "web.failed" not in [line["event"] for line in lines]
    assert "m1" not in await stored(clew)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/",
        "http://127.0.0.1/",
        "http://127.0.0.1:1/",
        "http://127.0.0.1.:{port}/",
        "http://127.0.0.1.evil.example:{port}/",
        "http://127.0.0.1:{port}@evil.example/",
        "http://ada@127.0.0.1:{port}/",
        "http://evil.example#@127.0.0.1:{port}/",
        "http://evil.example\\@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}\\.evil.example/",
        "http://127.1:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f000001:{port}/",
        "http://0177.0.0.1:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://localhost:{port}/",
        "http://１２７.0.0.1:{port}/",
        "http://127。0。0。1:{port}/",
        "http://%31%32%37.0.0.1:{port}/",
        "ftp://127.0.0.1:{port}/",
        "file:///etc/passwd",
        "//127.0.0.1:{port}/",
        "127.0.0.1:{port}",
        "",
        " http://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}/\r\nX: y",
        "http://127.0.0.1:{port}/\tx",
        "http://127.0.0.1:0{port}0/",
        "http://127.0.0.1:{port}/" + "x" * 2000,
    ],
)
async def test_a_reply_url_that_is_not_listed_is_refused_before_it_is_stored(
    clew: Clew, emulator: OpenAIEmulator, receiver: Receiver, url: str
) -> None:
    status, answer = await say(clew, message(reply_url=url.format(port=receiver.port)))
    assert status == 400
    assert answer["error"].startswith("reply_url: ")
    assert await nothing_happened(clew, emulator)
    assert receiver.calls == []


@pytest.mark.asyncio
async def test_a_message_without_a_reply_url_is_answered_in_the_store_alone(clew: Clew) -> None:  # P43
    assert (await say(clew, message()))[0] == 202
    dead: list[Any] = []
    async with asyncio.timeout(20):
        while not dead:
            dead = list(await clew.service.store.outbox(("dead",)))
            await asyncio.sleep(0.01)
    assert len(await stored(clew)) == 2


@pytest.mark.asyncio
async def test_a_refusal_is_told_and_answered(clew: Clew, receiver: Receiver, emulator: OpenAIEmulator) -> None:
    status, answer = await say(clew, message(text=" ", reply_url=receiver.url))
    assert (status, answer) == (422, {"id": "m1", "status": "refused", "error": "it is empty"})
    await until(lambda: bool(receiver.calls))
    assert receiver.calls[0].body["text"] == "I could not take that message: it is empty."
    assert not emulator.calls


@pytest.mark.asyncio
async def test_a_chat_that_is_not_named_for_its_sender_is_a_group(clew: Clew, receiver: Receiver) -> None:
    for number, chat in enumerate(("ada", "ada/kitchen", "team")):
        await say(clew, {**message(f"m{number}", reply_url=receiver.url), "chat": chat})
    await until(lambda: len(receiver.calls) == 3)
    sessions = {row.address: row.person for row in await clew.service.store.sessions(None, 10)}
    assert sessions == {"webhook:ada": "ada", "webhook:ada/kitchen": "ada", "webhook:team": None}


@pytest.mark.asyncio
async def test_a_stranger_is_refused_and_costs_no_model_call(tmp_path: Path, emulator: OpenAIEmulator, receiver: Receiver) -> None:
    for unknown in ("deny", "pair"):
        section = {"secret": SECRET, "reply_hosts": [f"127.0.0.1:{receiver.port}"]}
        config = settings(
            tmp_path / unknown, base_url=emulator.base_url, transports={"webhook": section}, access={"unknown": unknown}, people=PEOPLE
        )
        async with running(config) as clew:
            await until(lambda: clew.service.transports["webhook"].up)
            sent = {**message(reply_url=receiver.url), "sender": "eve", "chat": "eve"}
            for _ in range(2):
                assert await say(clew, sent) == (403, {"id": "m1", "status": "refused", "error": "unknown sender"})
            if unknown == "deny":
                continue
            await until(lambda: bool(receiver.calls))
            assert "Give this code" in receiver.calls[0].body["text"]
            code = receiver.calls[0].body["text"].split()[-1]
            status, _ = await clew.ask_locally("POST", f"/api/v1/access/{code}", {"approve": True})
            assert status == 200
            assert await say(clew, sent) == (202, {"id": "m1", "status": "stored"})
            await until(lambda: len(receiver.calls) == 2)
    assert len(emulator.calls) == 1


@pytest.mark.asyncio
async def test_a_reply_that_was_dropped_comes_again_under_the_same_id(clew: Clew, receiver: Receiver) -> None:  # P43
    receiver.next.append(drops)
    await say(clew, message(reply_url=receiver.url))
    await until(lambda: len(receiver.calls) == 2)
    first, second = receiver.calls
    assert first.raw == second.raw
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


@pytest.mark.asyncio
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="the example needs curl and openssl")
async def test_the_example_of_the_docs_works(clew: Clew, receiver: Receiver) -> None:  # P42, P43
    (example,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    program = await asyncio.create_subprocess_exec(
        *("sh", "-euc", example.replace(":9000", f":{receiver.port}")),
        env={"PATH": os.environ["PATH"], "CLEW_WEBHOOK_SECRET": SECRET, "CLEW_URL": clew.url},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await program.communicate()
    assert json.loads(printed) == {"id": "q1", "status": "stored"}
    await until(lambda: bool(receiver.calls))
    assert (receiver.calls[0].path, receiver.calls[0].body["in_reply_to"]) == ("/replies", "q1")


class Full:
    """A host whose disk is full."""

    up = False

    async def accept(self, batch: Sequence[Inbound], cursor: Cursor | None = None) -> list[Receipt]:
        raise StoreError("the disk is full")

    async def cursor(self) -> str | None:
        return None

    def folder(self) -> Path:
        raise NotImplementedError

    async def known(self, sender: str) -> bool:
        return False

    def webhook(self) -> str:
        return ""

    def report(self, up: bool, detail: str = "") -> None:
        self.up = up


@pytest.mark.asyncio
async def test_what_cannot_be_stored_is_not_acknowledged(clew: Clew) -> None:  # P42
    transport = WebhookTransport("webhook", Settings(secret=SecretStr(SECRET)))
    clew.service.transports["webhook"].transport = transport
    status, answer = await say(clew, message())
    assert (status, "status" in answer) == (503, False)
    task = asyncio.create_task(transport.run(host := Full()))
    await until(lambda: host.up)
    status, answer = await say(clew, message())
    assert (status, "status" in answer) == (503, False)
    assert "disk is full" in answer["error"]
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (await say(clew, message()))[0] == 503


@pytest.mark.asyncio
async def test_another_method_and_another_path_are_not_taken(clew: Clew) -> None:
    for method, path, status in (("GET", "webhook", 405), ("POST", "webhook/messages", 404), ("POST", "other", 404)):
        async with clew.http.request(method, f"{clew.url}/webhooks/{path}", data=BODY, headers=proof(BODY)) as response:
            assert response.status == status
