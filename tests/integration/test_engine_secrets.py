"""With the real log, at its chattiest, no configured secret leaves the process."""

import asyncio
import json
import logging
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
import structlog

from clew.context.redact import redact
from clew.logging import setup
from clew.recall import search
from tests.databases import databases
from tests.emulators.scripts import say
from tests.emulators.server import DropAfter, Fault, JsonObject, Reply
from tests.integration.engine import engine, openai_section, user

ROOT = Path(__file__).parents[2]
KEY = 'k3y/with+odd="signs\\&Zx9Qw7Er5Ty3Ui1Op8'
"""Written otherwise in URLs, in JSON and by `repr`."""


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_secret_is_logged(tmp_path: Path, level: str) -> None:  # P19, BO-099
    command = [sys.executable, "-m", "tests.integration.test_engine_secrets", str(tmp_path), level]
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT}/daemon:{ROOT}/transports"}
    ended = subprocess.run(command, cwd=ROOT, env=paths, capture_output=True, text=True, timeout=100, check=False)
    written = ended.stdout + ended.stderr
    assert ended.returncode == 0, written
    assert written.count("turn.finished") == 11
    assert "provider.retry" in written
    assert written.count('"event": "told"') == len(TOLD)
    assert not [secret for _, secret in TOLD.values() if secret in written]
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert "signs" not in written
    for form in (KEY, quote(KEY, safe=""), quote(KEY), json.dumps(KEY)[1:-1], repr(KEY)[1:-1]):
        assert form not in written
        assert form.encode() not in stored


TOLD = {
    "password": ("Das Passwort für das WLAN ist Sonnenblume-22.", "Sonnenblume-22"),
    "token": ("export GITHUB_TOKEN=ghp_" + "aB3dE5fG7h" * 4, "ghp_" + "aB3dE5fG7h" * 4),
    "url": ("It runs at postgres://ada:swordfish7@db.local/clew now.", "swordfish7"),
    "key": (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5v\n-----END OPENSSH PRIVATE KEY-----",
        "b3BlbnNzaC1rZXktdjEAAAAABG5v",
    ),
}
SHA = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"


@pytest.mark.asyncio
async def test_what_a_person_tells_reaches_no_door_and_the_transcript_keeps_it(tmp_path: Path) -> None:  # P17, P19
    secrets = [secret for _, secret in TOLD.values()]
    told = [text for text, _ in TOLD.values()]

    def summary(body: JsonObject) -> Reply:  # a summariser that was told them all the same, and writes them down
        return say("\n".join(f"+ fact | ada | said | #{number} | {text}" for number, text in enumerate(told, 1)))

    async with engine(tmp_path, lambda body: say("Noted."), summary=summary) as world:
        world.compression(keep_recent=2)
        async with world.running():
            session = await world.seed(*[user(text) for text in told], user(f"The commit is {SHA}."), user("So far."), user("Go on."))
            await world.desk.ask(f"/compact keep {told[0]}")
            (done,) = await world.store.compactions(session)
            asked = str(world.summaries)
            scope = await world.store.scope_for(operator=True)
            found = [each for secret in secrets for each in await search(world.store, scope, secret, limit=5)]
            assert [message.text for message in await world.transcript()][: len(told)] == told
            assert await world.store.verify_session(session) == []
    assert not found
    doors = [asked, done.text, done.ledger, done.report]
    assert not [secret for secret in secrets for door in doors if secret in door]
    assert SHA in done.text
    terms = set(databases.counted(tmp_path))
    assert {"commit", SHA} <= terms
    assert not terms & {word.lower() for secret in secrets for word in re.findall(r"[A-Za-z0-9_]{6,}", secret)}


async def talk(folder: Path, level: str) -> None:
    """Ten turns with a key that the model's server repeats in its errors, and what else the log is told."""
    async with engine(folder, lambda body: say("ok"), api_key=KEY) as world:
        world.config = world.config.model_copy(update={"providers": {"local": openai_section(world.model, key=KEY)}})  # type: ignore[arg-type]
        setup(level, "json", partial(redact, known=world.config.secrets()))
        for text, _ in TOLD.values():
            structlog.get_logger().warning("told", text=text, nested={"of": [text]})
            logging.getLogger("library").warning("GET %s", text)
        async with world.running():
            for n in range(10):
                if n == 3:
                    world.model.faults.append(Fault(503, "api_error", f"no room for {KEY} at /v1?key={quote(KEY)}", {"retry-after": "0"}))
                if n == 6:
                    world.model.faults.append(DropAfter(0))
                await world.desk.ask(f"turn {n}")
            world.model.faults.append(Fault(400, "invalid_request_error", f"Bearer {KEY} is odd: {quote(KEY, safe='')}"))
            await world.desk.ask("the last turn")
            await world.idle()


if __name__ == "__main__":
    asyncio.run(talk(Path(sys.argv[1]), sys.argv[2]))
