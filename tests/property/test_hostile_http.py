"""Whatever comes to the port: each request is answered and none by an error of the server's own, each frame of the chat's socket too.

CLEW_FUZZ_EXAMPLES: see `test_hostile_inputs`; a tenth of them is sent here.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.integration.web_harness import Clew, running
from tests.integration.web_harness import settings as configured
from tests.integration.webhook_harness import SECRET, proof
from tests.property.test_hostile_inputs import CALLED, EXAMPLES, EXPORT, damaged, junk, texts

share = settings(
    max_examples=max(EXAMPLES // 40, 50),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
LEAST_S = 20.0
"""Seconds in which each answer has to be there."""


class Served:
    """A clew that listens, on a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        webhook = {"enabled": True, "secret": SECRET, "reply_hosts": ["http://127.0.0.1:9000"]}
        people = {"ada": {"role": "owner", "identities": ["webhook:ada"]}}
        config = configured(folder, transports={"webhook": webhook}, people=people, access={"unknown": "deny"})
        self.clew: Clew = self.runner.run(self._stack.enter_async_context(running(config)))

    def close(self) -> None:
        self.runner.run(self._stack.aclose())
        self.runner.close()

    def ask(self, method: str, path: str, **options: Any) -> int:
        return self.runner.run(self._ask(method, path, **options))

    async def _ask(self, method: str, path: str, **options: Any) -> int:
        async with asyncio.timeout(LEAST_S), self.clew.http.request(method, self.clew.url + path, **options) as response:
            await response.read()
            return response.status

    def frames(self, said: list[str | bytes]) -> list[Any]:
        return self.runner.run(self._frames(said))

    async def _frames(self, said: list[str | bytes]) -> list[Any]:
        """What is answered to frames; the last one asked is a ping that has to be answered."""
        async with asyncio.timeout(LEAST_S), self.clew.http.ws_connect(f"{self.clew.url}/chat/ws?chat=hostile&after=9") as ws:
            for each in said:
                await (ws.send_bytes(each) if isinstance(each, bytes) else ws.send_str(each))
            await ws.send_str(json.dumps({"type": "message", "id": "last", "text": ""}))
            answers: list[Any] = []
            while not answers or answers[-1].get("id") != "last":
                answers.append(await ws.receive_json())
            return answers

    def send(self, raw: bytes) -> None:
        """These bytes and nothing more, until the other side has closed too."""
        self.runner.run(self._send(raw))

    async def _send(self, raw: bytes) -> None:
        async with asyncio.timeout(LEAST_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.clew.listening.port)
            with suppress(ConnectionError):
                writer.write(raw)
                writer.write_eof()
                await reader.read()
            writer.close()

    def alive(self) -> bool:
        """It is the same process, nothing of it was started again, and its store is sound."""
        return not self.clew.service.tasks.failure.done() and self.ask("GET", "/readyz") == 200


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served") / "clew")
    yield made
    assert made.alive()
    assert made.runner.run(made.clew.service.store.check()) == []
    made.close()


paths = st.sampled_from(
    [
        *("/api/v1/sessions", "/api/v1/sessions/{}", "/api/v1/sessions/{}/transcript", "/api/v1/sessions/{}/export"),
        *("/api/v1/sessions/{}/compact", "/api/v1/sessions/{}/compactions", "/api/v1/sessions/import", "/api/v1/chats/{}/messages"),
        *("/api/v1/jobs/{}/run", "/api/v1/outbox/{}/retry", "/api/v1/outbox/{}", "/api/v1/access", "/api/v1/access/{}"),
        *("/api/v1/terminal/session", "/chat/ws", "/webhooks/webhook", "/login", "/{}"),
    ]
)
names = st.text(st.characters(), max_size=30).map(lambda text: quote(text.encode("utf-8", "replace"), safe="")) | st.just("abc")
queries = st.dictionaries(
    st.sampled_from(["limit", "after", "chat", "preview", "state", "transport", "x"]), st.text(st.characters(codec="utf-8"), max_size=12)
)
bodies = st.one_of(
    junk.map(json.dumps), texts, *(damaged(each).map(json.dumps) for each in (EXPORT, {"focus": "x", "approve": True, "role": "member"}))
)
frames = st.one_of(
    texts, junk.map(json.dumps), st.binary(max_size=50), damaged({"type": "message", "id": "m", "text": "Hi"}).map(json.dumps)
)
requests = texts.map(lambda text: f"GET /{text} HTTP/1.1\r\nHost: x\r\n{text}: {text}\r\n\r\n".encode("utf-8", "replace"))


@share
@given(st.sampled_from(["GET", "POST", "DELETE", "PUT"]), paths, names, queries, bodies)
def test_any_request_is_answered(served: Served, method: str, path: str, name: str, query: dict[str, str], body: str) -> None:  # P48
    sent = body.encode("utf-8", "replace") if method in ("POST", "PUT") else None
    status = served.ask(method, path.format(name), params=query, data=sent, headers={"Content-Type": "application/json"})
    assert status < 500, f"{method} {path} {query}"


@share
@given(damaged(CALLED), st.booleans())
@example({**CALLED, "text": "\ud800", "chat": "\ud800", "sender": "ada"}, True)
def test_any_webhook_that_is_signed_is_answered(served: Served, value: Any, compact: bool) -> None:  # P42
    body = json.dumps(value, separators=(",", ":") if compact else None).encode()
    headers = {**proof(body), "Content-Type": "application/json"}
    assert served.ask("POST", "/webhooks/webhook", data=body, headers=headers) in (202, 400, 403, 422)


@share
@given(st.lists(frames, max_size=5))
def test_any_frames_are_answered(served: Served, said: list[str | bytes]) -> None:  # P42
    answers = served.frames([each.encode("utf-8", "replace").decode() if isinstance(each, str) else each for each in said])
    assert {each["type"] for each in answers} <= {"error", "ack", "typing", "message", "delta"}


@share
@given(st.binary(max_size=300) | requests)
def test_any_bytes_on_the_port_end_nothing(served: Served, sent: bytes) -> None:  # P48
    served.send(sent)
