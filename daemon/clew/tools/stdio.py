"""A program that speaks MCP over its standard input and output: bounded in the length of a line, and ended with all that it started."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

LONGEST_LINE = 16 * 2**20
"""Bytes of a message; twice as much is held at most."""
ON_LOOP = 2**16
"""Bytes of a message that is read beside everything else; a longer one is read in a thread."""
MOST_AT_ONCE, PACE = 500, 1.0
"""Messages that are taken in so many seconds; a program that says more waits."""
PATIENCE = 2.0
"""Seconds that a program has to end when its input does, and again when it is asked to."""


@asynccontextmanager
async def talking(command: Sequence[str], env: Mapping[str, str]) -> "AsyncIterator[Streams]":
    """The messages of a program that is started with `env` beside a few harmless variables: (what it says, what it is told).

    Lines that are no message are passed over. Raises OSError or ValueError where it cannot be started, and ValueError where
    the conversation ended since it wrote a line that is too long.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # its own words are not ours to log
        env=get_default_environment() | dict(env),
        limit=LONGEST_LINE,
        start_new_session=True,
    )
    stdin, stdout = cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout)
    said, hearing = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    telling, told = anyio.create_memory_object_stream["SessionMessage"](0)
    reading = asyncio.create_task(_read(stdout, said), name="mcp.reading")
    writing = asyncio.create_task(_write(stdin, told, said), name="mcp.writing")
    try:
        yield hearing, telling
    except Exception:
        if reading.done() and isinstance(reading.exception(), ValueError):
            raise ValueError(f"it wrote a line of more than {LONGEST_LINE // 2**20} MiB") from None
        raise
    finally:
        with anyio.CancelScope(shield=True):
            for stream in (hearing, telling):
                await stream.aclose()
            stdin.close()
            await _ended(process)
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)


async def _read(stdout: asyncio.StreamReader, said: "MemoryObjectSendStream[SessionMessage | Exception]") -> None:
    """Hand on what it says, until it says no more. Raises ValueError for a line that is too long."""
    import anyio

    loop = asyncio.get_running_loop()
    begun, taken = loop.time(), 0
    async with said:
        while line := await stdout.readline():
            taken += 1
            if taken > MOST_AT_ONCE:
                await asyncio.sleep(max(begun + PACE - loop.time(), 0.0))
                begun, taken = loop.time(), 0
            message = await asyncio.to_thread(_message, line) if len(line) > ON_LOOP else _message(line)
            if message is not None:
                try:
                    await said.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return


def _message(line: bytes) -> "SessionMessage | None":
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return None


async def _write(
    stdin: asyncio.StreamWriter,
    told: "MemoryObjectReceiveStream[SessionMessage]",
    said: "MemoryObjectSendStream[SessionMessage | Exception]",
) -> None:
    """Tell it what is to be told. Where it no longer listens the conversation is over."""
    try:
        async with told:
            async for each in told:
                stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()
    except OSError:
        await said.aclose()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Let a program end by itself, then ask it to, then kill it; what it started is killed in any case."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if await _gone(process):
            break
        _signal(process, number)
    _signal(process, signal.SIGKILL)
    await _gone(process)
    process._transport.close()  # type: ignore[attr-defined]  # there is no other way to let go of a pipe that a child of it holds


async def _gone(process: asyncio.subprocess.Process) -> bool:
    """Whether it, and all who hold its pipes, end within `PATIENCE`."""
    try:
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    except TimeoutError:
        return False
    return True


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    """To it and to all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
