"""A voice note over Telegram, killed at each of its points in turn: from the commit of its message to the note that its answer was sent.

The points are found by a run that is not killed. After a restart without faults the note is stored, transcribed, answered and told once.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from clew.messages import File, Text, blocks_from_json
from tests.acceptance import stamp
from tests.acceptance.clients import TelegramClient, online
from tests.acceptance.kills import Daemons, after, at_each, read
from tests.databases import databases
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.telegram import TOKEN, TelegramEmulator, person
from tests.emulators.transcriptions import TranscriptionsEmulator
from tests.integration.web_harness import running
from tests.pictures import OGG
from tests.servers import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio, pytest.mark.timeout(300)]

SAID = "Please water the fig tree."
END = "committed settle 2"
"""The last point: the first is that of the file, this one that of the reply."""
AT_LEAST = 26
"""Points at which a daemon is killed."""
HEARD = "committed settle 1"


@dataclass(slots=True)
class House:
    """What stands around the daemons."""

    folder: Path
    telegram: TelegramEmulator
    model: AnthropicEmulator
    transcriber: TranscriptionsEmulator
    daemons: Daemons
    numbers: Iterator[int] = field(default_factory=count)

    def config(self, folder: Path, name: str) -> Path:
        folder.mkdir()
        values = {
            "data_dir": str(folder / "data"),
            "store": databases.store(folder / "data"),
            "http": {"port": free_port()},
            "log": {"level": "info", "format": "json"},
            "providers": {
                "claude": {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": self.model.url}
            },
            "agent": {"provider": "claude", "timezone": "UTC"},
            "people": {name: {"role": "owner", "identities": [f"telegram:{TelegramClient.number(name)}"]}},
            "transports": {"telegram": {"enabled": True, "token": TOKEN, "base_url": self.telegram.url}},
            "transcriber": {"kind": "openai", "base_url": self.transcriber.base_url},
        }
        path = folder / "clew.yaml"
        path.write_text(json.dumps(values))
        return path

    async def killed_at(self, at: str = "") -> Sequence[str]:
        """Say something, kill the daemon at a point (empty: not at all), restart and compare. Returns the points from its commit on."""
        number = next(self.numbers)
        folder, name = self.folder / f"files{number}", f"ada{number}"
        path = self.config(folder, name)
        self.telegram.forget()
        self.telegram.files["v"] = OGG
        self.transcriber.heard.clear()
        client = TelegramClient(name, self.telegram, lambda: None)
        async with online([client]):
            voice = {"file_id": "v", "file_size": len(OGG), "duration": 2}
            message = self.telegram.say("", person(client.number(name), name), voice=voice)
            client.said[""].append(str(message["message_id"]))
            client.texts[str(message["message_id"])] = ""
            passed = await self.daemons.run(folder, path, at, END)
            async with running(read(path)) as clew:
                await client.until(lambda: bool(client.replies), "the reply")
                assert await clew.service.store.check() == []
        self._check(folder, client, at if at in passed else "", passed)
        return after("committed accept 1", passed)

    def _check(self, folder: Path, client: TelegramClient, at: str, passed: list[str]) -> None:
        where = f"killed at {at or 'nothing'}"
        stored = databases.rows(folder / "data", "SELECT role, blocks FROM messages ORDER BY seq")
        rows = [(role, blocks_from_json(blocks)) for role, blocks in stored]
        states = databases.rows(folder / "data", "SELECT state, attempts FROM attachments")
        turns = databases.rows(folder / "data", "SELECT kind, state FROM turns")
        (asked, said), (answered, _) = rows
        assert (asked, answered, turns) == ("user", "assistant", [("message", "done")]), where
        assert [block.text for block in said if isinstance(block, Text) and block.text] == [SAID], where
        (file,) = [block for block in said if isinstance(block, File)]
        assert [state for state, _ in states] == ["ready"], where
        assert [path.name for path in (folder / "data" / "files").glob("*/*")] == [file.hash], where
        assert list((folder / "data" / "files").glob("unfinished*")) == [], where
        assert len(self.transcriber.heard) <= (1 if not at or HEARD in passed else 2), where
        assert [each["text"] for each in client.replies.values()] == ["Watered."], where


async def test_killed_at_any_point_a_voice_note_is_answered_as_if_it_had_not_been(tmp_path: Path) -> None:  # P42 P47 P48
    environment = stamp.installed(tmp_path)
    async with (
        TelegramEmulator() as telegram,
        AnthropicEmulator(script=lambda body: say("Watered." if SAID in last_user_text(body) else "What?")) as model,
        TranscriptionsEmulator(say=lambda body: SAID) as transcriber,
        Daemons.ready(environment) as daemons,
    ):
        house = House(tmp_path, telegram, model, transcriber, daemons)
        points = await house.killed_at()
        print("\n".join(points))
        assert {"before download 1", "before keep 1", "after keep 1", "committed took 1", HEARD} <= set(points)
        await at_each(points, house.killed_at, AT_LEAST)
