"""clew with a model that answers at once and costs nothing, so that what is measured is clew.

`python -m bench.daemon CONFIG [SUMMARY [REPLY]]`

SUMMARY, REPLY: seconds that a summary and a reply take. It says how many tasks it has on a line of their own when it is sent SIGUSR1.
"""

import asyncio
import itertools
import json
import re
import signal
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Literal

from clew.config import load
from clew.context.redact import redact
from clew.lifecycle import keep_what_is_there
from clew.logging import setup
from clew.messages import Block, Text, ToolCall, ToolResult, Usage
from clew.plugins import registry
from clew.providers import Began, Delta, Done, Event, Limits, Request, Ttl
from clew.service import Service
from clew.web.server import serve

LOOK_UP = "Look it up."
"""Words in a message for which the model calls a tool before it answers."""
ENTRIES = 12
"""Entries of a summary above which the model drops the first one."""
_ENTRY = re.compile(r"^(\d+) \| ", re.MULTILINE)
_SAID = re.compile(r"^\[#(\d+) \S+ \S+ [^\]]*\] (.+)$", re.MULTILINE)


class Instant:
    """Says the same to everything. `cache_ttl` as the default provider has it, so that markers are placed."""

    name, kind, model, configured = "instant", "instant", "instant", True
    cache_ttl: Ttl | None = "1h"
    max_tokens: int | Literal["auto"] = "auto"

    def __init__(self, summary_s: float = 0.0, reply_s: float = 0.0) -> None:
        self._summary_s = summary_s
        self._reply_s = reply_s
        self._calls = itertools.count(1)

    async def prepare(self) -> None:
        return

    async def answers(self) -> bool:
        return True

    async def limits(self) -> Limits:
        return Limits(200_000, 4096, 512)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        if seconds := self._summary_s if request.purpose == "summary" else self._reply_s:
            await asyncio.sleep(seconds)
        block = self._answer(request)
        usage = Usage(input=100, output=20, cache_read=1000, cache_write=200)
        yield Began(usage)
        if isinstance(block, Text):
            yield Delta(block.text)
        yield Done((block,), "tools" if isinstance(block, ToolCall) else "end", usage, "instant")

    async def close(self) -> None:
        return

    def _answer(self, request: Request) -> Block:
        newest = request.messages[-1].blocks
        said = "\n".join(block.text for block in newest if isinstance(block, Text))
        if request.purpose == "summary":
            return Text(_changes(said))
        if LOOK_UP in said and not any(isinstance(block, ToolResult) for block in newest):
            return ToolCall(f"call_{next(self._calls)}", "session_search", json.dumps({"query": said[-200:]}))
        return Text("The kettle is in the garden house.")


def _changes(asked: str) -> str:
    """What new messages change in the summary: the first of them is a fact from now on; where there are many facts, the oldest goes."""
    kept = _ENTRY.findall(asked)
    number, text = _SAID.findall(asked)[0]
    dropped = f"- {kept[0]} | it is old\n" if len(kept) >= ENTRIES else ""
    return f"{dropped}+ fact | somebody | said | #{number} | {text[:200]}"


async def main(path: Path, summary_s: float = 0.0, reply_s: float = 0.0) -> None:
    kinds = {group: {kind: plugin.Config for kind, plugin in registry(f"clew.{group}").items()} for group in ("transports", "providers")}
    config = load(path, transports=kinds["transports"], providers=kinds["providers"])
    setup(config.log.level, "json", partial(redact, known=config.secrets()))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: print(len(asyncio.all_tasks()), flush=True))
    async with Service.open(config, serve=serve, provider=Instant(summary_s, reply_s)):
        keep_what_is_there()
        print("clew is ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(float, sys.argv[2:])))
