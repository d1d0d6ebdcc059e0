"""A program that writes what it hears to its standard output: whisper.cpp, faster-whisper, or any other."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import structlog

from clew.programs import run
from clew.providers.failures import safe
from clew.transcribers import LONGEST, NotTranscribed, Recording, Transcript

log = structlog.get_logger()

PLACE = "{file}"
"""What stands in the command for the path of the recording."""


class Program:
    """See `clew.transcribers.Transcriber`.

    command: the program and its arguments, with `{file}` for the path of the recording, which else comes last. timeout: seconds for one
    recording. One runs at a time: each takes all of a machine that it gets.
    """

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self._command = tuple(command)
        self._timeout = timeout
        self._place = asyncio.Semaphore(1)

    async def transcribe(self, recording: Recording) -> Transcript:
        async with self._place:
            with tempfile.TemporaryDirectory(prefix="clew-voice-") as folder:
                path = Path(folder) / recording.name
                await asyncio.to_thread(path.write_bytes, recording.body)
                return Transcript(await self._run(str(path)))

    async def _run(self, path: str) -> str:
        command = [each.replace(PLACE, path) for each in self._command]
        command += [] if any(PLACE in each for each in self._command) else [path]
        try:
            ended = await run(command, self._timeout, {}, most=2 * LONGEST)
        except OSError as error:
            log.warning("transcriber.refused", err=f"{command[0]}: {error.strerror}")
            raise NotTranscribed("the transcriber cannot be started, which whoever runs me must mend") from None
        if ended.status is None:
            raise NotTranscribed(f"the transcriber took longer than {self._timeout:.0f} seconds")
        if ended.status != 0:
            log.warning("transcriber.refused", status=ended.status, err=safe(ended.errors))
            raise NotTranscribed("the transcriber cannot make anything of it")
        return ended.output
