"""Plug-ins with tools that leave a mark outside of clew: each call that takes effect is a line in a file. `seal` needs a yes."""

import asyncio
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from clew.plugins import Plugin
from clew.tools import Tool, ToolContext

FILE = "STAMP_FILE"
"""The environment variable that names the file."""
ROOT = Path(__file__).parents[2]
PAUSE_S = 0.02
"""Seconds before and behind the effect, so that a kill also falls there."""


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Call(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    call: str


async def stamp(context: ToolContext, arguments: BaseModel) -> str:
    call = Call.model_validate(arguments.model_dump()).call
    await asyncio.sleep(PAUSE_S)
    with Path(os.environ[FILE]).open("a") as file:
        file.write(f"{call}\n")
    await asyncio.sleep(PAUSE_S)
    return f"stamped {call}"


tool = Tool("stamp", "Stamp a call.", Call, stamp)
plugin = Plugin("stamp", Nothing, lambda name, settings: tool)
asking = Plugin("seal", Nothing, lambda name, settings: Tool("seal", "Seal a call.", Call, stamp, asks=True))


def installed(folder: Path) -> dict[str, str]:
    """Put what an installer leaves of a package with this plug-in into `folder`. Returns the environment for a daemon that has it."""
    metadata = folder / "site" / "clew_stamp-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: clew-stamp\nVersion: 1\n")
    entries = "[clew.tools]\nstamp = tests.acceptance.stamp:plugin\nseal = tests.acceptance.stamp:asking\n"
    (metadata / "entry_points.txt").write_text(entries)
    file = folder / "stamps"
    file.touch()
    roots = (folder / "site", ROOT, ROOT / "daemon", ROOT / "transports")
    return {"PYTHONPATH": ":".join(map(str, roots)), FILE: str(file)}


def stamps(folder: Path) -> list[str]:
    """The calls that took effect, in order."""
    return (folder / "stamps").read_text().split()
