"""clew with a model that answers at once and costs nothing, so that what is measured is clew. `python -m bench.daemon CONFIG`."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Literal

from clew.config import load
from clew.context.redact import redact
from clew.logging import setup
from clew.messages import Text, Usage
from clew.plugins import registry
from clew.providers import Began, Delta, Done, Event, Limits, Request, Ttl
from clew.service import Service


class Instant:
    """Says the same to everything. `cache_ttl` as the default provider has it, so that markers are placed."""

    name, kind, model, configured = "instant", "instant", "instant", True
    cache_ttl: Ttl | None = "1h"
    max_tokens: int | Literal["auto"] = "auto"

    async def prepare(self) -> None:
        return

    async def answers(self) -> bool:
        return True

    async def limits(self) -> Limits:
        return Limits(200_000, 4096, 512)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        text = "The kettle is in the garden house." if request.purpose == "reply" else "Goal\n- to keep the kettle in the garden house"
        usage = Usage(input=100, output=20, cache_read=1000, cache_write=200)
        yield Began(usage)
        yield Delta(text)
        yield Done((Text(text),), "end", usage, "instant")

    async def close(self) -> None:
        return


async def main(path: Path) -> None:
    kinds = {group: {kind: plugin.Config for kind, plugin in registry(f"clew.{group}").items()} for group in ("transports", "providers")}
    config = load(path, transports=kinds["transports"], providers=kinds["providers"])
    setup(config.log.level, "json", partial(redact, known=config.secrets()))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Service.open(config, provider=Instant()):
        print("clew is ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
