"""No page of the console shows a secret of the config, whoever said it where, in whichever form.

The pages are those of the navigation and all that they lead to, so that a new one is among them by itself.
"""

import re
from collections.abc import AsyncIterator
from functools import partial
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import pytest_asyncio

from clew.cli.options import source
from clew.context.redact import redact
from clew.store import Reply, Settlement
from clew.store.notes import By, PutFact, PutPreference, Where
from clew.transport import Address, Part
from clew.web.console import PLACES
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo
from tests.integration.web_harness import Clew, Tab, running
from tests.unit.test_log_ring import logging_to_stderr

TOKEN = "a-long/enough+token&with=odd signs"
KEY = "k3y/with+odd=signs&Zx9Qw7Er5Ty3Ui1Op8"
WEBHOOK = "webhook-secret/of+this=house"
HEADER = "mcp-secret/of+this=house"
SECRETS = (TOKEN, KEY, WEBHOOK, HEADER)
FORMS = tuple({form for secret in SECRETS for form in (secret, quote(secret), quote(secret, safe=""))})
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
MOST = 300
RECORD = {"/console/threads/thread", "/console/threads/message"}
"""The owner's own record, which shows what was said as it was said (docs/console.md)."""
CONFIG = """\
data_dir: {folder}/data
http: {{port: 0, token: "{token}"}}
providers: {{model: {{kind: openai, base_url: "{base_url}", model: any, context_window: 32768, api_key: "{key}"}}}}
transports: {{webhook: {{enabled: true, secret: "{webhook}"}}}}
mcp_servers: {{house: {{url: "http://127.0.0.1:1/", headers: {{Authorization: "{header}"}}}}}}
agent: {{compression: {{trigger_messages: 8, keep_recent: 2}}}}
schedule:
  - {{name: leak, every: 6h, prompt: "Use {token} and {key}.", deliver_to: "web:local"}}
"""


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    """A clew in which everybody says its secrets."""
    async with OpenAIEmulator(script=echo, api_key=KEY) as model:
        file = tmp_path / "clew.yaml"
        secrets = {"token": TOKEN, "key": KEY, "webhook": WEBHOOK, "header": HEADER}
        file.write_text(CONFIG.format(folder=tmp_path, base_url=model.base_url, **secrets))
        where = source(file, lambda config: None)
        config = where.read()
        with logging_to_stderr(partial(redact, known=config.secrets())) as log:
            async with running(config, where) as found:
                await _told(found)
                log.warning("told", values=list(FORMS), url=f"https://example.org/?key={quote(KEY, safe='')}")
                file.write_text(file.read_text().replace("trigger_messages: 8", f"trigger_messages: 9, prompt: '{KEY}'"))
                yield found


async def _told(clew: Clew) -> None:
    service, now = clew.service, clew.service.time.wall()
    everything = " ".join(FORMS)
    async with Tab.open(clew, headers=AUTHORIZED) as tab:
        for number in range(8):
            await tab.say(f"m{number}", f"Number {number} is {FORMS[number % len(FORMS)]} and {everything}")
            await tab.until("message", role="assistant", in_reply_to=f"m{number}")
    for edit in (PutFact("house", f"has {KEY}"), PutPreference("key", KEY), PutFact(TOKEN, "is it")):
        await service.store.notes.change(Where(person="me"), "user", [edit], By("me"), now)
    await service.store.say(Reply(Address("mqtt", "ada"), everything, (Part(everything),)), now)
    delivery, _ = await service.store.claim_delivery("test", "mqtt", now)
    assert delivery is not None
    await service.store.settle(delivery, Settlement("dead", reason=everything), now)
    await service.store.missed("leak", [now - 60], None, now, everything)
    scope = await service.store.documents.scope(Where(person="me"), "user")
    await service.library.add_file(scope, Path(f"/{quote(KEY, safe='')}.md"), f"# {TOKEN}\n\n{everything}\n".encode())
    service.host("web").report(False, f"GET /bot{KEY}/me failed: {everything}")
    with pytest.raises(OSError, match="disk"), service.progress.of("import", "messages"):
        raise OSError(f"disk {everything}")


async def read(clew: Clew) -> dict[str, str]:
    """Every page that can be reached, by its path and query."""
    waiting, found = [place.path for place in PLACES if place.page], dict[str, str]()
    while waiting and len(found) < MOST:
        path = waiting.pop(0)
        if path in found:
            continue
        async with clew.http.get(clew.url + path, headers=AUTHORIZED) as response:
            assert response.status in (200, 204), path  # 204: nothing new in the log
            found[path] = await response.text() if response.content_type == "text/html" else ""
        links = [unescape(link) for link in re.findall(r'(?:href|hx-get|src)="(/console[^"#]*)', found[path])]
        waiting += [link for link in links if not link.startswith("/console/threads/export")]
    return found


@pytest.mark.asyncio
async def test_no_page_but_the_transcript_shows_a_secret_of_the_config(clew: Clew) -> None:  # P19, BO-099
    pages = await read(clew)
    kinds = {urlsplit(path).path for path in pages}
    assert {place.path for place in PLACES if place.page} < kinds
    assert sum("[redacted" in page for page in pages.values()) > len(kinds) // 2
    shown = [(path, form) for path, page in pages.items() for form in FORMS if form in unescape(page) or form in page]
    assert {urlsplit(path).path for path, _ in shown} == RECORD
