"""What a process has loaded once it is ready to run clew with a kind of provider. `python -m bench.loaded [KIND]`, as JSON.

stdin: names of modules, as JSON, that are not to be found.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path


async def prepare(kind: str) -> None:
    """Load what a provider loads before clew is ready. Nothing is connected to."""
    from clew.plugins import registry

    plugin = registry("clew.providers")[kind]
    settings = {"api_key": "not-a-key"} if kind == "anthropic" else {}
    provider = plugin.build(kind, plugin.Config(**settings))
    await provider.prepare()
    await provider.close()


def main(kind: str = "") -> None:
    hidden = json.load(sys.stdin)
    sys.modules.update(dict.fromkeys(hidden))
    import clew.cli.run
    import clew.service
    import clew.web.server  # noqa: F401

    if kind:
        asyncio.run(prepare(kind))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    modules = sorted({name.partition(".")[0] for name in sys.modules}.difference(hidden))
    print(json.dumps({"cpu": time.process_time(), "mb": pages * os.sysconf("SC_PAGE_SIZE") / 2**20, "modules": modules}))


if __name__ == "__main__":
    main(*sys.argv[1:])
