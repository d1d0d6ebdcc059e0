"""What the tortures share: a model that fails now and then, people who talk, and what has to be true in the end.

`CLEW_TORTURE_SEED` repeats the choices of a run; each run prints its own.
"""

import asyncio
import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from clew.outage import NOW, THEN
from tests.acceptance import stamp
from tests.acceptance.clients import Client
from tests.acceptance.harness import DEADLINE_S, PROGRAM, Daemon, Watched
from tests.emulators.scripts import last_is_tool_result, say
from tests.emulators.server import AnyFault, DropAfter, Empty, Fault, JsonObject, Malformed, Reply, Stall, StreamError
from tests.integration.engine import SUMMARY, is_summary
from tests.integration.webhook_harness import Behaviour, answers, drops

SEED = "CLEW_TORTURE_SEED"
FAULTY = 0.06
"""Part of the model calls that fail."""
CALLING = 0.2
"""Part of the messages for which the model calls the tool."""
AHEAD = 12
"""Messages of one person that may wait for their answer."""
PATIENCE_S = 3 * DEADLINE_S
"""Seconds that an answer may take: leases run out in the meantime, one after the other."""

UNASKED = tuple(words.partition("{")[0] for words in (NOW, THEN))
"""How a reply begins that answers nobody: the owner is told that nothing could be stored for a while."""

Disturb = Callable[[], Awaitable[None]]
Query = Callable[[str], list[str]]
"""Runs a query on what is stored; the rows' first columns, as texts."""

FAULTS: dict[str, Callable[[], AnyFault]] = {
    "429": lambda: Fault(429, "rate_limit_error", "Slow down"),
    "429 with a wait": lambda: Fault(429, "rate_limit_error", "Slow down", {"retry-after": "1"}),
    "529": lambda: Fault(529, "overloaded_error", "Overloaded"),
    "500": lambda: Fault(500, "api_error", "Internal server error"),
    "error in the stream": StreamError,
    "cut before the first byte": DropAfter,
    "cut in the stream": lambda: DropAfter(4),
    "silent from the start": Stall,
    "silent in the stream": lambda: Stall(3),
    "malformed": Malformed,
    "empty": Empty,
}


class Model:
    """Answers after a short while, mostly; now and then it calls the tool, or fails in one of many ways."""

    def __init__(self, choices: random.Random) -> None:
        self._random = choices
        self._calls = 0
        self.failed: Counter[str] = Counter()

    async def __call__(self, body: JsonObject) -> Any:
        await asyncio.sleep(self._random.random() * 0.05)
        if self._random.random() < FAULTY:
            kind = self._random.choice(tuple(FAULTS))
            self.failed[kind] += 1
            return FAULTS[kind]()
        if is_summary(body):
            return say(SUMMARY)
        if not last_is_tool_result(body) and self._random.random() < CALLING:
            return Reply([self._call() for _ in range(self._random.randint(1, 2))], "tool_use")
        return say(f"answer to: {newest(body)}")

    def _call(self) -> JsonObject:
        self._calls += 1
        identifier = f"toolu_{self._calls:06d}"
        return {"type": "tool_use", "id": identifier, "name": "stamp", "input": {"call": identifier}}


def newest(body: JsonObject) -> str:
    """The words said last: messages that wait, or whose turn failed, stand in one with the next."""
    said = (message["content"] for message in reversed(body["messages"]) if message["role"] == "user")
    texts = next(found for content in said if (found := [part["text"] for part in content if part["type"] == "text"]))
    return str(texts[-1]).rpartition("] ")[2]


class Crowd(Watched):
    """Everybody who talks to clew."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: list[Client] = []

    def __str__(self) -> str:
        return "\n".join(map(str, self.clients))

    def changed(self) -> None:
        self._tell()

    @property
    def said(self) -> int:
        return sum(len(client.texts) for client in self.clients)

    @property
    def waiting(self) -> int:
        return sum(client.waiting for client in self.clients)


def seeded() -> random.Random:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(2**32))
    print(f"{SEED}={seed}")
    return random.Random(seed)


async def talk(client: Client, count: int, choices: random.Random) -> None:
    """Say so many things, in bursts, never too far ahead of the answers."""
    for number in range(1, count + 1):
        await client.until(lambda: client.waiting < AHEAD, "answers", PATIENCE_S)
        thread = choices.choice(client.threads)
        await client.say(f"number {number} of {client.name}{thread[:1]} about {choices.choice(('tea', 'boats', 'maps'))}", thread)
        if choices.random() < 0.3:
            await asyncio.sleep(choices.random() * 0.3)


async def tortured(crowd: Crowd, messages: int, disturbances: Sequence[Disturb], choices: random.Random) -> None:
    """Let everybody say their share of the messages, and disturb at random moments of it; return when all is answered."""
    talks = choices.getrandbits(64)
    share = messages // len(crowd.clients)
    disturbing = list(disturbances)
    choices.shuffle(disturbing)
    moments = sorted(choices.randrange(1, share * len(crowd.clients)) for _ in disturbing)
    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(crowd.clients):
            group.create_task(talk(client, share, random.Random(talks + number)))
        for moment, disturb in zip(moments, disturbing, strict=True):
            await crowd.until(lambda moment=moment: crowd.said >= moment, f"message {moment}", PATIENCE_S)  # type: ignore[misc]
            await asyncio.sleep(choices.random() * 0.5)
            await disturb()
    await crowd.until(lambda: crowd.waiting <= 0, "an answer to everything", PATIENCE_S)


def figures(crowd: Crowd, daemons: Sequence[Daemon], disturbed: str) -> None:
    """Print what a run came to."""
    log = Counter(line.get("event") for clew in daemons for line in clew.log)
    resumed, repeats = sum(clew.count("turn.started", resumed=True) for clew in daemons), sum(client.repeats for client in crowd.clients)
    print(f"{crowd.said} messages, {disturbed}: {resumed} turns resumed,")
    print(f"{log['inbox.duplicate']} messages and {repeats} replies came again, {log['provider.retry']} model calls and", end=" ")
    print(f"{log['outbox.retry'] + log['outbox.unknown']} sends were repeated, {log['agent.compressed']} compactions")


def check_answers(clients: Sequence[Client]) -> None:
    """Each message was answered once, in the order of its thread, with its own words."""
    for client in clients:
        for thread, said in client.said.items():
            assert client.answered(thread) == said, f"{client.name}/{thread}: {client.answered(thread)}"
        assert client.differing == []
        assert client.waiting == 0, "a reply to nothing"
        for reply in client.replies.values():
            if not reply["answers"]:
                assert reply["text"].startswith(UNASKED)
                continue
            assert reply["in_reply_to"] == reply["answers"][-1]
            if reply["text"].startswith("answer to: "):
                assert reply["text"] == f"answer to: {client.texts[reply['in_reply_to']]}"
    replies = [reply for client in clients for reply in client.replies.values()]
    plain = [reply["text"] for reply in replies if not reply["text"].startswith("answer to: ")]
    assert len(plain) <= len(replies) // 50, plain


def check_store(folder: Path, path: Path, query: Query) -> None:
    """Everything has come to its end, every transcript and the database are sound, no call took effect twice."""
    for command in (("db", "check"), ("session", "verify")):
        ran = subprocess.run([PROGRAM, *command, "--config", path], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert states(query, "inbox") <= {"answered", "failed"}
    assert states(query, "turns") <= {"done", "failed"}
    assert states(query, "outbox") == {"sent"}
    assert states(query, "tool_calls") <= {"done", "interrupted"}
    results = [json.loads(blocks)[0] for blocks in query("SELECT blocks FROM messages WHERE role = 'tool'")]
    effects = stamp.stamps(folder)
    assert len(effects) == len(set(effects)), "a call took effect twice"
    assert {result["call_id"] for result in results if not result["is_error"]} <= set(effects) <= {each["call_id"] for each in results}


def states(query: Query, table: str) -> set[str]:
    return set(query(f"SELECT DISTINCT state FROM {table}"))


def failing(choices: random.Random) -> Behaviour:
    """What becomes of a reply: mostly taken; refused for now; or taken, and the connection lost before the receiver could say so."""
    return choices.choices([answers(200), answers(503), drops], [0.92, 0.04, 0.04])[0]
