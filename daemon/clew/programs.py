"""Programs that the config names: run without a shell where that is possible, bounded in time and output, with few variables."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OUTPUT_CHARS = 20_000
"""Characters that are kept of what a program says, half of them from its end."""
READ_BYTES = 4 * 2**20
"""Bytes that are read of it; a program that says more is ended."""
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR")
"""Variables that a program gets of this process's; keys of models and platforms are not among them."""
_SHELL = re.compile(r"[|&;<>()$`*?\[\]#~=%{}!\n]|\\\\")
"""What only a shell understands."""
_OF_A_SHELL = """
. : break case cd command continue eval exec exit export for getopts if read readonly return set shift times trap type ulimit umask unset
until wait while
"""
_BUILT_IN = frozenset(_OF_A_SHELL.split())
"""What a shell does itself, as POSIX has it, where no program is sure to do the same."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. status: its exit code, negative for a signal, None where its time was up. output, errors: what it wrote."""

    status: int | None
    output: str
    errors: str


def arguments(command: str | Sequence[str]) -> list[str]:
    """The program and its arguments: a list as it is, a text without anything of a shell's in it in words, any other through `sh -c`."""
    if not isinstance(command, str):
        return list(command)
    if _SHELL.search(command):
        return ["/bin/sh", "-c", command]
    try:
        words = shlex.split(command)
    except ValueError:  # an open quote: the shell says what is wrong with it
        words = []
    return words if words and words[0] not in _BUILT_IN else ["/bin/sh", "-c", command]


async def run(command: str | Sequence[str], timeout: float, variables: Mapping[str, str], most: int = OUTPUT_CHARS) -> Ended:
    """Run a program to its end, at most `timeout` seconds; then, or if this is cancelled, it is killed with all that it started.

    variables: beside KEPT. most: characters that are kept of what it says. Raises OSError where it cannot be started.
    """
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | dict(variables)
    process = await asyncio.create_subprocess_exec(
        *arguments(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    readers = [asyncio.create_task(_read(stream)) for stream in (process.stdout, process.stderr)]
    try:
        async with asyncio.timeout(timeout):
            output, errors = await asyncio.gather(*readers)
            status: int | None = await process.wait()
    except TimeoutError:
        status, output, errors = None, "", ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        process._transport.close()  # type: ignore[attr-defined]  # there is no other way to let go of pipes that nobody reads on
        await process.wait()
    return Ended(status, bounded(output, most), bounded(errors))


async def _read(stream: asyncio.StreamReader | None) -> str:
    """What comes until the end of a stream, or until there is too much of it."""
    read = bytearray()
    while stream and (piece := await stream.read(2**16)) and len(read) < READ_BYTES:
        read += piece
    return read.decode("utf-8", "replace")


def bounded(text: str, most: int = OUTPUT_CHARS) -> str:
    """`text` without space around it; of a longer one beginning and end."""
    text = text.strip()
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
