"""What checks find. They all run at once, each for as long as it is given."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.config import Config

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. command: mends it, or says where to look; empty where nothing needs mending. of: which of several (providers,
    transports …) it is about. mend: the same for `--fix`, None where a person must."""

    level: Level
    text: str
    command: str = ""
    of: str = ""
    mend: Callable[[], None] | None = None


Check = Callable[[Config], Awaitable[Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A check and the seconds that it may take."""

    examine: Check
    within: float = 10.0

    async def findings(self, config: Config) -> Sequence[Finding]:
        """What it finds; where its time is over, or it cannot do its work, a finding that says so."""
        try:
            async with asyncio.timeout(self.within):
                return await self.examine(config)
        except TimeoutError:
            return [Finding("warning", f"could not be looked at within {self.within:.0f} s")]
        except OSError as error:
            return [Finding("problem", f"could not be looked at: {error}")]


async def examined(config: Config, checks: Mapping[str, Bounded], fix: bool) -> dict[str, Sequence[Finding]]:
    """What each of the checks finds. fix: what can be mended is, and looked at again; what is well then is told of as mended."""
    found = dict(zip(checks, await asyncio.gather(*(each.findings(config) for each in checks.values())), strict=True))
    for name, findings in found.items() if fix else ():
        mended = {(each.of, each.text): each.mend for each in findings if each.mend}
        for mend in mended.values():
            mend()
        if mended:
            now = await checks[name].findings(config)
            left = {(each.of, each.text) for each in now}
            found[name] = [*(Finding("ok", f"mended: {text}", of=of) for of, text in mended if (of, text) not in left), *now]
    return found
