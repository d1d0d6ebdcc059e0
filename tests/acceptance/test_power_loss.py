"""The power goes at the moment a message is acknowledged: what is on the disk then opens, is sound, and holds the message.

Two models of the disk. In the first the files are copied as they are, all writes included, while the daemon stands still. In the second
the daemon's system calls are watched: of what it wrote, the disk keeps what it synced, and of the rest nothing, or any part.
"""

import contextlib
import json
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import aiohttp
import pytest

from tests.acceptance import harness, stamp
from tests.acceptance.clients import Client, MqttClient, WebClient, WebhookClient, online, write_config
from tests.acceptance.harness import Daemon, running
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import echo
from tests.integration.webhook_harness import SECRET, Receiver, receiving
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio]

KINDS = ("mqtt", "web", "webhook")
MESSAGES = 24
WORDS = 500
"""Words of each message: long enough that the log is copied back into the database (a checkpoint) while they come."""
FILES = ("clew.db", "clew.db-wal")

Acknowledged = Callable[[str], None]


def check(folder: Path, expected: Sequence[str]) -> None:
    """The copy in `folder` opens, is sound, and holds these messages."""
    with contextlib.closing(sqlite3.connect(folder / "clew.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        held = {identifier for (identifier,) in db.execute("SELECT client_id FROM inbox")}
    assert set(expected) <= held


@contextlib.asynccontextmanager
async def talking(folder: Path, kind: str, broker: Mosquitto, acknowledged: Callable[[Daemon, str], None]) -> AsyncIterator[Client]:
    """A daemon and one person who talks to it over this transport."""
    async with AnthropicEmulator(script=echo) as model, receiving() as receiver, aiohttp.ClientSession() as http:
        path = write_config(folder, model.url, broker.port, secret=SECRET, reply_hosts=[receiver.url])
        async with running(path, stamp.installed(folder)) as clew:
            url = f"http://127.0.0.1:{json.loads(path.read_text())['http']['port']}"
            client = client_of(kind, broker, receiver, http, url, lambda identifier: acknowledged(clew, identifier))
            async with online([client]):
                yield client
            assert await clew.terminate() == 0


def client_of(
    kind: str, broker: Mosquitto, receiver: Receiver, http: aiohttp.ClientSession, url: str, acknowledged: Acknowledged
) -> Client:
    def nothing() -> None: ...

    if kind == "mqtt":
        return MqttClient("ada", broker.port, nothing, acknowledged)
    if kind == "web":
        return WebClient("ada", http, [url], nothing, acknowledged)
    return WebhookClient("ada", http, [url], receiver, nothing, acknowledged)


async def say_all(client: Client) -> list[str]:
    """Say everything, each after the answer to the one before the last, so that turns run while messages come. Returns the ids."""
    said = []
    for number in range(MESSAGES):
        await client.until(lambda: client.waiting < 2, "an answer")
        said.append(await client.say(f"number {number}: " + " ".join(f"word{number * WORDS + each}" for each in range(WORDS))))
    await client.until(lambda: client.waiting == 0, "the last answers")
    return said


@pytest.mark.parametrize("kind", KINDS)
async def test_a_copy_of_the_files_at_each_acknowledgement_holds_the_message(kind: str, tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P48
    acknowledged: list[str] = []
    sizes = set()

    def copied(clew: Daemon, identifier: str) -> None:
        acknowledged.append(identifier)
        with tempfile.TemporaryDirectory(dir=tmp_path) as copy:
            clew.signal(signal.SIGSTOP)
            for name in FILES:
                shutil.copy(tmp_path / "data" / name, copy)
            clew.signal(signal.SIGCONT)
            sizes.add((Path(copy) / "clew.db").stat().st_size)
            check(Path(copy), acknowledged)

    async with talking(tmp_path, kind, mosquitto, copied) as client:
        said = await say_all(client)
        await client.until(lambda: len(acknowledged) == len(said), "acknowledgements")
    assert acknowledged == said
    assert len(sizes) > 1, "no checkpoint fell between the copies"


# The disk that keeps what was synced ---------------------------------------------------------------------------------

CALL = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\(\d+<(?P<file>[^>]*)>(?P<rest>.*)")
RESUMED = re.compile(r"(?P<thread>\d+) +<\.\.\. \w+ resumed>(?P<rest>.*)")
UNFINISHED = " <unfinished ...>"
WRITE = re.compile(r', "(?P<bytes>(?:\\x[0-9a-f]{2})*)", \d+, (?P<offset>\d+)\)? += \d+')
SENT = re.compile(r', "(?P<bytes>(?:\\x[0-9a-f]{2})*)"')
TRUNCATE = re.compile(r", (?P<size>\d+)\)? += 0")
SYNCED = re.compile(r"\)? += 0")

ACKNOWLEDGEMENTS = {
    "mqtt": re.compile(rb"\A\x40"),
    "web": re.compile(rb'"type":"ack"'),
    "webhook": re.compile(rb"\AHTTP/1\.1 202 "),
}
"""How the bytes of an acknowledgement begin, or what is in them."""


class Disk:
    """Files as bytes: `kept` is what was synced, `loose` the writes since then, in order."""

    def __init__(self) -> None:
        self.kept = {name: bytearray() for name in FILES}
        self.loose: dict[str, list[tuple[int, bytes | None]]] = {name: [] for name in FILES}

    def write(self, name: str, offset: int, data: bytes | None) -> None:
        """None: the file ends at `offset`."""
        self.loose[name].append((offset, data))

    def sync(self, name: str) -> None:
        for offset, data in self.loose[name]:
            _put(self.kept[name], offset, data)
        self.loose[name].clear()

    def after_a_power_cut(self, folder: Path, survives: Callable[[], bool]) -> None:
        """Write down what a power cut leaves."""
        for name in FILES:
            image = bytearray(self.kept[name])
            for offset, data in self.loose[name]:
                if survives():
                    _put(image, offset, data)
            (folder / name).write_bytes(image)


def _put(image: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del image[offset:]
        return
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


def calls(trace: Path) -> Iterator[tuple[str, str, str]]:
    """(name, file, rest of the line) of each system call: of sends where they begin, of others where they end."""
    begun: dict[str, tuple[str, str, str]] = {}
    with trace.open() as lines:
        for line in lines:
            if found := RESUMED.match(line):
                name, file, rest = begun.pop(found["thread"], ("", "", ""))
                if name and name != "sendto":
                    yield name, file, rest + found["rest"]
            elif found := CALL.match(line):
                name, file, rest = found["name"], found["file"], found["rest"]
                if UNFINISHED in rest:
                    begun[found["thread"]] = name, file, rest.removesuffix(UNFINISHED)
                if UNFINISHED not in rest or name == "sendto":
                    yield name, file, rest


def unescaped(match: re.Match[str] | None) -> bytes:
    assert match is not None
    return bytes.fromhex(match["bytes"].replace("\\x", ""))


def plain(path: str) -> str:
    return bytes.fromhex(path.replace("\\x", "")).decode() if path.startswith("\\x") else path


def replayed(trace: Path, acknowledgement: re.Pattern[bytes]) -> Iterator[Disk]:
    """The disk at each acknowledgement."""
    disk = Disk()
    for call, path, rest in calls(trace):
        name = Path(plain(path)).name
        if call == "sendto":
            if acknowledgement.search(unescaped(SENT.match(rest))):
                yield disk
        elif name in FILES:
            if call == "pwrite64" and (written := WRITE.match(rest)):
                disk.write(name, int(written["offset"]), unescaped(written))
            elif call == "ftruncate" and (cut := TRUNCATE.match(rest)):
                disk.write(name, int(cut["size"]), None)
            elif call in ("fdatasync", "fsync") and SYNCED.match(rest):
                disk.sync(name)
            else:
                raise AssertionError(f"{call} {path} {rest[-80:]}")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let every daemon of this test be watched. Returns the file that its system calls are written to."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-f", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("strace is missing (apt-get install strace) or not allowed here")
    trace, program = tmp_path / "trace", tmp_path / "watched"
    wanted = "trace=pwrite64,pwritev,write,ftruncate,fdatasync,fsync,sendto"
    # -D: the daemon keeps the process id that the test knows.
    program.write_text(f'#!/bin/sh\nexec {strace} -D -f --seccomp-bpf -y -xx -s 1000000 -e {wanted} -o {trace} {harness.PROGRAM} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setattr(harness, "PROGRAM", program)
    return trace


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_synced_by_each_acknowledgement_holds_the_message(
    kind: str, tmp_path: Path, mosquitto: Mosquitto, watched: Path
) -> None:
    # P42 P48
    async with talking(tmp_path, kind, mosquitto, lambda clew, identifier: None) as client:
        said = await say_all(client)
    chances = random.Random(0)
    count = 0
    for count, disk in enumerate(replayed(watched, ACKNOWLEDGEMENTS[kind]), 1):
        for survives in (lambda: False, lambda: chances.random() < 0.5):
            with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
                disk.after_a_power_cut(Path(folder), survives)
                check(Path(folder), said[:count])
    assert count == len(said)
