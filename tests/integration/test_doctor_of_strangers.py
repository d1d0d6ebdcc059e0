"""What the doctors of transports say of a server that is none of theirs: a fault in words, whatever it answers."""

from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from clew.plugins import Fault, registry
from tests.integration.test_cli_doctor import serving

pytestmark = pytest.mark.asyncio

SETTINGS: dict[str, dict[str, Any]] = {
    "discord": {"token": SecretStr("abcdefghijkl.abc.abcdefghijkl")},
    "matrix": {"user": "@clew:example.org", "token": SecretStr("x")},
    "ntfy": {"topics": {"asks": "hears"}},
    "slack": {"bot_token": SecretStr("xoxb-1"), "app_token": SecretStr("xapp-1")},
    "sms": {"account_sid": f"AC{'0' * 32}", "auth_token": SecretStr("x"), "number": "+15551234567", "url": "https://x/webhooks/sms/"},
    "telegram": {"token": SecretStr("1:a")},
    "whatsapp": {
        "token": SecretStr("x"),
        "app_secret": SecretStr("x"),
        "verify_token": SecretStr("x"),
        "phone_number_id": "12345",
    },
}
ANSWERS = {
    "a page": "<html>It works!</html>",
    "a list": "[]",
    "an empty object": "{}",
    "null": "null",
    "numbers": '{"ok": 1, "result": 7, "healthy": 7, "flows": 7, "incoming_phone_numbers": 7, "id": [], "shards": "x", "url": 3}',
    "lists of them": '{"ok": true, "result": [7], "healthy": "yes", "flows": [7], "incoming_phone_numbers": [7], "id": {"a": 1}}',
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("kind", SETTINGS)
async def test_a_server_of_another_kind_is_not_taken_for_the_platform(kind: str, answer: str) -> None:
    plugin = registry("clew.transports")[kind]
    assert plugin.examine is not None
    async with serving(lambda request: web.Response(text=ANSWERS[answer], content_type="application/json")) as url:
        found = await plugin.examine(kind, plugin.Config(base_url=url, **SETTINGS[kind]))
    assert any(isinstance(each, Fault) and each.serious for each in found)


async def test_every_transport_with_a_base_url_is_asked() -> None:
    kinds = registry("clew.transports").items()
    assert {name for name, plugin in kinds if "base_url" in plugin.Config.model_fields} == set(SETTINGS)
