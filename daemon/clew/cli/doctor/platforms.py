"""The transports: whether their servers are there, and what they say of the account."""

import asyncio
from collections.abc import Mapping, Sequence

from clew.cli.doctor.findings import Bounded, Finding
from clew.config import Config, TransportSection
from clew.context.redact import redact
from clew.plugins import Fault, Remark, registry

CONNECTED_S = 5.0
"""Seconds that a server has to take a connection."""
EXAMINED_S = 25.0
"""Seconds that a transport may take to look at its account."""


async def transports(config: Config) -> Sequence[Finding]:
    """All that are enabled, at once."""
    enabled = [each for each in config.transports.values() if each.enabled]
    return [each for some in await asyncio.gather(*(findings_of(config, each.name) for each in enabled)) for each in some]


async def findings_of(config: Config, name: str) -> Sequence[Finding]:
    """What is to be said of the transport `name`."""
    section = config.transports[name]
    if (place := _place(section)) and not await _accepts(*place):
        text = "nobody answers at {}:{}".format(*place)
        return [Finding("problem", text, f"start it there, or correct transports.{section.name} in the config", section.name)]
    said = await _said_by(section)
    faults = [each for each in said if isinstance(each, Fault)]
    # A platform may say back what it was sent.
    known = config.secrets()
    found = [
        Finding("problem" if each.serious else "warning", redact(each.text, known=known), each.command, section.name) for each in faults
    ]
    remarks = [redact(each.text, known=known) for each in said if isinstance(each, Remark)]
    if remarks or not found:
        found.append(Finding("ok", "; ".join(remarks) or "nothing is wrong with it", of=section.name))
    return found


async def _said_by(section: TransportSection) -> Sequence[Fault | Remark]:
    """What the transport itself finds of its account."""
    examine = registry("clew.transports")[section.kind].examine
    if examine is None:
        return ()
    try:
        async with asyncio.timeout(EXAMINED_S):
            return await examine(section.name, section.settings)
    except TimeoutError:
        return (Fault(f"the platform has not answered everything within {EXAMINED_S:.0f} s", f"check transports.{section.name}"),)
    except Exception as error:  # a plug-in may be anybody's
        return (Fault(f"it fails at looking: {type(error).__name__}: {error}"[:500], "tell whoever makes the plug-in"),)


def _place(section: TransportSection) -> tuple[str, int] | None:
    """The server that a transport connects to, where its settings name one by host and port."""
    host, port = getattr(section.settings, "host", None), getattr(section.settings, "port", None)
    return (host, port) if isinstance(host, str) and isinstance(port, int) else None


async def _accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECTED_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


CHECKS: Mapping[str, Bounded] = {"transport": Bounded(transports, CONNECTED_S + EXAMINED_S + 10)}
