"""The transport of docs/examples, with people who put files into a folder."""

import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

from tests.emulators.server import JsonObject
from tests.integration.platforms import Platform
from tests.integration.web_harness import Clew
from tests.servers import Mosquitto


class Folder(Platform):
    name = "folder"
    needs = "folder_package"
    groups = refuses = loses_answers = False

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        with tempfile.TemporaryDirectory() as folder:
            yield cls(Path(folder))

    def __init__(self, place: Path) -> None:
        self.place = place
        for each in ("in", "taken"):
            (place / each).mkdir()

    def section(self) -> JsonObject:
        return {"path": str(self.place), "every": "20ms"}

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        """Its file has been moved already, and has the name by which a repeat is known."""
        said = f"{time.time_ns():020}.{who}.txt", text
        await self.again(clew, said)
        return said

    async def again(self, clew: Clew, said: Any) -> None:
        name, text = said
        (self.place / name).write_text(text)
        (self.place / name).rename(self.place / "taken" / name)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return [each.read_text().strip() for each in sorted(self.place.glob(f"out/{who}/*.txt"))]
