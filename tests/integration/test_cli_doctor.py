"""What `clew doctor` sees of models and other servers, against emulators of them."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from clew.cli.doctor import machine
from clew.cli.doctor.doors import port, public_address
from clew.cli.doctor.findings import Finding
from clew.cli.doctor.models import embeddings, providers
from clew.config import Config, Embeddings, ProviderSection
from clew.plugins import registry
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.embeddings import EmbeddingsEmulator
from tests.emulators.ollama import OllamaEmulator
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import say
from tests.emulators.server import Fault
from tests.integration.web_harness import running, settings

pytestmark = pytest.mark.asyncio

KEY = "sk-right-0123456789"
NOBODY = "http://127.0.0.1:9/v1"


def section(name: str, kind: str, **more: Any) -> ProviderSection:
    model = registry("clew.providers")[kind].Config
    return ProviderSection(name=name, kind=kind, settings=model(**more))


def config(*sections: ProviderSection, provider: str = "auto") -> Config:
    whole = Config(providers={each.name: each for each in sections})
    return whole.model_copy(update={"agent": whole.agent.model_copy(update={"provider": provider})})


async def found(*sections: ProviderSection, provider: str = "auto") -> list[tuple[str, str, str]]:
    return [(each.of, each.level, each.text) for each in await providers(config(*sections, provider=provider))]


async def test_each_provider_is_called_for_one_token() -> None:
    async with (
        AnthropicEmulator(script=lambda body: say("y"), api_key=KEY) as claude,
        OpenAIEmulator(script=lambda body: say("y"), api_key=KEY) as other,
    ):
        sections = (
            section("claude", "anthropic", api_key=SecretStr(KEY), base_url=claude.url),
            section("other", "openai", api_key=SecretStr(KEY), base_url=other.base_url, model="gpt-5.6"),
        )
        seen = await found(*sections)
        assert [each[:2] for each in seen] == [("claude", "ok"), ("other", "ok")]
        assert seen[1][2].startswith("gpt-5.6 answers (")
        for emulator in (claude, other):
            [body] = [each.body for each in emulator.records if each.body]
            assert body["max_tokens"] == 1


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
@pytest.mark.parametrize("provider", ["auto", "mine"])
async def test_a_key_that_is_refused_is_a_problem(kind: str, provider: str) -> None:
    emulators: dict[str, Callable[..., Any]] = {"anthropic": AnthropicEmulator, "openai": OpenAIEmulator}
    async with emulators[kind](script=lambda body: say("y"), api_key=KEY) as server:
        url = server.url if kind == "anthropic" else server.base_url
        seen = await found(section("mine", kind, api_key=SecretStr("sk-wrong-012345"), base_url=url), provider=provider)
    assert seen[0] == ("mine", "problem", "refuses the key")


@pytest.mark.parametrize(
    ("fault", "level", "text"),
    [
        (
            Fault(429, "", "no money", details={"code": "insufficient_quota"}),
            "problem",
            "has no credit left, or a spending limit is reached",
        ),
        (Fault(503, "server_error", "later"), "warning", "answers, but not the call: 503"),
        (Fault(400, "invalid_request_error", "unknown model"), "problem", "answers, but not the call: 400"),
        (
            Fault(400, "invalid_request_error", "Could not finish the message because max_tokens or model output limit was reached."),
            "ok",
            "m answers (",
        ),
    ],
)
async def test_what_a_server_says_to_the_call_is_judged(fault: Fault, level: str, text: str) -> None:
    async with OpenAIEmulator(script=lambda body: say("y")) as server:
        server.faults.extend([fault] * 5)
        [(_, found_level, found_text), *_] = await found(section("mine", "openai", base_url=server.base_url, model="m"), provider="mine")
    assert (found_level, found_text.startswith(text)) == (level, True)


async def test_what_auto_does_not_need_is_no_fault() -> None:
    silent = section("silent", "openai", base_url=NOBODY)
    async with OllamaEmulator(script=lambda body: say("y")) as server:
        lacking = section("lacking", "ollama", base_url=server.url, model="gone")
        there = section("there", "ollama", base_url=server.url, model=next(iter(server.models)))
        seen = await found(silent, lacking, there)
    assert [each[:2] for each in seen] == [("silent", "ok"), ("lacking", "ok"), ("there", "ok")]
    assert seen[1][2] == "does not answer or lacks the model; not needed, for there answers"
    assert [each[:2] for each in await found(silent)] == [("silent", "ok"), ("", "warning")]
    assert [each[:2] for each in await found(silent, provider="silent")] == [("silent", "problem")]
    assert [each[1] for each in await found(section("none", "offline"))] == ["warning"]


async def test_a_text_becomes_a_vector() -> None:
    async with EmbeddingsEmulator() as server:
        whole = config(section("local", "openai", base_url=server.base_url)).model_copy(
            update={"embeddings": Embeddings(provider="local", model="small")}
        )
        assert [each.level for each in await embeddings(whole)] == ["ok"]
    assert [each.level for each in await embeddings(whole)] == ["problem"]
    assert [each.level for each in await embeddings(Config())] == ["ok"]


@asynccontextmanager
async def serving(handler: Callable[[web.Request], web.Response]) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        return handler(request)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(("ahead", "level"), [(0, "ok"), (-90, "warning"), (3600, "problem")])
async def test_the_clock_is_compared_with_that_of_a_server(monkeypatch: pytest.MonkeyPatch, ahead: float, level: str) -> None:
    monkeypatch.setattr(machine, "on_this_machine", lambda url: False)
    async with serving(lambda request: web.Response(headers={"Date": formatdate(time.time() - ahead, usegmt=True)})) as url:
        [seen] = await machine.clock(config(section("mine", "openai", base_url=url)))
    assert seen.level == level
    assert ("127.0.0.1" in seen.text) == (level != "ok")


async def test_the_clock_of_a_server_on_this_machine_is_this_one() -> None:
    [seen] = await machine.clock(config(section("mine", "openai", base_url=NOBODY)))
    assert (seen.level, "none could be asked" in seen.text) == ("ok", True)


async def test_the_public_address_leads_to_this_daemon(tmp_path: Path) -> None:
    async def seen(url: str) -> Finding:
        http = whole.http.model_copy(update={"public_url": url})
        [only] = await public_address(whole.model_copy(update={"http": http}))
        return only

    whole = settings(tmp_path / "clew")
    async with running(whole) as clew:
        assert (await seen(clew.url)).level == "ok"
        assert [each.level for each in await port(whole)] == ["ok"]
        wrong = await seen("http://127.0.0.1:9")
        assert (wrong.level, "is not reached from here" in wrong.text) == ("warning", True)
        async with serving(lambda request: web.Response(text="It works!")) as url:
            other = await seen(url)
        assert (other.level, "it is not clew" in other.text) == ("warning", True)
