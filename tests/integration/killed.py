"""An adapter to be killed: `python -m tests.integration.killed KIND SETTINGS FILE PORT`.

It stores what comes in FILE, an SQLite database, and prints a line for each commit. SETTINGS is the section of the config, in JSON. PORT is
where platforms that call in reach it; 0: nowhere.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

from clew.plugins import registry
from tests.emulators.server import JsonObject
from tests.integration.mqtt_harness import ROOT, Disk, line


@contextlib.asynccontextmanager
async def process(kind: str, section: JsonObject, file: Path, port: int = 0) -> AsyncIterator[asyncio.subprocess.Process]:
    """This module as a program, killed at the end if it still runs."""
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.killed", kind, json.dumps(section), str(file), str(port)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT}/daemon:{ROOT}/transports"},
    )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.communicate()


async def stored(clew: asyncio.subprocess.Process, host: Disk, count: int) -> None:
    """Wait until `host` has that many texts."""
    while len(host.texts_stored()) < count:
        assert await line(clew), host.texts_stored()


async def _serve(kind: str, settings: str, file: str, port: str) -> None:
    plugin = registry("clew.transports")[kind]
    transport = plugin.build(kind, plugin.Config.model_validate_json(settings))
    app = web.Application(client_max_size=2**24)
    for route in transport.routes():
        app.router.add_route(route.method, f"/webhooks/{kind}{route.path}", route.handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    if int(port):
        await web.TCPSite(runner, "127.0.0.1", int(port), reuse_address=True).start()
    await transport.run(Disk(Path(file), f"http://127.0.0.1:{port}/webhooks/{kind}/"))


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:5]))
