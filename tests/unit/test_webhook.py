"""The webhook's settings, its reply hosts and its signature, without a socket."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from clew.config import load
from clew.errors import ConfigError
from clew.plugins import registry
from clew.transport import Address, Transport, Typing
from clew_transports.signature import Forged
from clew_transports.webhook.message import read
from clew_transports.webhook.origin import Origin, origin, origins
from clew_transports.webhook.signature import CLEW
from clew_transports.webhook.transport import Settings, WebhookTransport, plugin
from tests.unit.test_config_example import models

NOW = 1_800_000_000


def test_it_is_found_by_entry_point() -> None:
    assert registry("clew.transports")["webhook"] is plugin
    transport: Transport = plugin.build("hook", Settings(secret=SecretStr("s")))
    assert not transport.capabilities.merges
    assert [(route.method, route.path) for route in transport.routes()] == [("POST", "/")]


def test_without_a_secret_it_does_not_start(tmp_path: Path) -> None:  # BO-066
    path = tmp_path / "clew.yaml"
    for section in ("{}", '{secret: ""}', '{secret: "${NO_SUCH:-}", old_secrets: [old]}'):
        path.write_text(f"transports: {{webhook: {section}}}")
        with pytest.raises(ConfigError, match=r"secret.*must not be empty"):
            load(path, transports=models("transports"), providers=models("providers"), env={"HOME": "/home/ada"})
    path.write_text("transports: {hook: {kind: webhook, secret: s, old_secrets: [o], reply_hosts: [a.example]}}")
    config = load(path, transports=models("transports"), providers=models("providers"), env={"HOME": "/home/ada"})
    assert {"s", "o"} <= config.secrets()


@pytest.mark.parametrize(
    "entry",
    [
        *("", "*", "*.example.org", "https://", "ftp://a.example", "a.example/", "a.example/x", "https://a.example/", "a.example.", ".a"),
        *("a..b", "a.example:0", "a.example:65536", "a.example:x", "u@a.example", "é.example", "[::1", "[1::2::3]", "::1", "a b", "http:a"),
    ],
)
def test_an_entry_that_is_no_origin_is_a_fault_of_the_config(entry: str) -> None:
    with pytest.raises(ValidationError):
        Settings(secret=SecretStr("s"), reply_hosts=(entry,))


@pytest.mark.parametrize(
    ("entry", "allows"),
    [
        ("Hooks.example.org", {"https://hooks.example.org:443"}),
        ("hooks.example.org:8443", {"https://hooks.example.org:8443"}),
        ("https://hooks.example.org", {"https://hooks.example.org:443"}),
        ("http://box.lan", {"http://box.lan:80"}),
        ("HTTP://box.lan:9000", {"http://box.lan:9000"}),
        ("192.168.1.7:9000", {"https://192.168.1.7:9000"}),
        ("localhost", {"https://localhost:443", "http://localhost:80"}),
        ("127.0.0.1:9000", {"https://127.0.0.1:9000", "http://127.0.0.1:9000"}),
        ("https://127.0.0.1:9000", {"https://127.0.0.1:9000"}),
        ("[0:0::1]:9000", {"https://[::1]:9000", "http://[::1]:9000"}),
        ("localhost.example.org", {"https://localhost.example.org:443"}),
    ],
)
def test_an_entry_allows_just_what_it_says(entry: str, allows: set[str]) -> None:
    assert {str(each) for each in origins(entry)} == allows


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("https://hooks.example.org", Origin("https", "hooks.example.org", 443)),
        ("HTTPS://HOOKS.Example.org:443/x?y=http://evil.example/@", Origin("https", "hooks.example.org", 443)),
        ("http://[0:0:0:0:0:0:0:1]:9000?x", Origin("http", "::1", 9000)),
        ("http://xn--bcher-kva.example/", Origin("http", "xn--bcher-kva.example", 80)),
    ],
)
def test_the_same_place_is_the_same_however_it_is_written(url: str, where: Origin) -> None:
    assert origin(url) == where


@pytest.mark.parametrize(
    "url",
    [
        # A Kelvin sign and a long s are letters k and s to whoever ignores case beyond ASCII.
        *(
            "https://\u212a.example/",
            "http\u017f://a.example/",
            "https://a.example\u2024b/",
            "https://a\u3002example/",
            "https://ａ.example/",
        ),
        *("https://a.example.:443/", "https://a.example\n/", "https://[fe80::1%25eth0]/", "https://[::1].evil.example/", "https://a:b@c/"),
        *("https:a.example/", "https:///a.example/", "https://a.example:/", "https://a.example#b", "https://a.example/\\b", "javascript:1"),
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_not_read(url: str) -> None:
    with pytest.raises(ValueError, match=r"must be|IPv6|At least|Only|Unexpected"):
        origin(url)


def test_a_signature_holds_for_its_bytes_its_time_and_its_secret() -> None:  # BO-066
    stamp, signature = CLEW.signed("s", NOW, b"{}").values()
    # Written down from `printf '1800000000.{}' | openssl dgst -sha256 -hmac s`.
    assert (stamp, signature) == ("1800000000", "sha256=50413bb129c976321854cdb57ee935bf7cc01ce87dd02c6def1cbf0e3f3f2905")
    for now in (NOW - 300, NOW + 300):
        CLEW.check(*CLEW.stated([stamp], [signature.upper().replace("SHA", "sha")], now), b"{}", ["other", "s"])
    for now in (NOW - 301, NOW + 301):
        with pytest.raises(Forged):
            CLEW.stated([stamp], [signature], now)
    for body, secrets in ((b"{} ", ["s"]), (b"{}", ["other"]), (b"{}", []), (b"{}", [""])):
        with pytest.raises(Forged):
            CLEW.check(stamp, signature, body, secrets)
    with pytest.raises(Forged):
        CLEW.check("1800000000", CLEW.signed("", NOW, b"{}")[CLEW.signature], b"{}", ["", ""])


def test_ids_belong_to_the_section() -> None:  # P42
    body = b'{"id": "m/1", "chat": "a/b/c", "sender": "ada", "text": "Hi", "reply_url": null}'
    one, other = (read(body, name, frozenset()) for name in ("hook", "webhook"))
    assert (one.external_id, other.external_id) == ("hook/m/1", "webhook/m/1")
    assert (one.address, str(one.address), one.identity) == (Address("hook", "a", "b/c"), "hook:a/b/c", "hook:ada")


@pytest.mark.asyncio
async def test_what_a_webhook_has_not() -> None:
    transport = WebhookTransport("webhook", Settings(secret=SecretStr("s")))
    assert await transport.hint(Address("webhook", "ada"), Typing()) is None
    with pytest.raises(LookupError):
        await anext(transport.fetch("x"))
