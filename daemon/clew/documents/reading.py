"""From the bytes of a document to its sections, whoever made it."""

import asyncio
import codecs
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import cast

import clew
from clew.context.chunks import Section
from clew.documents import MOST_CHARS, Contents, Kind, Refused
from clew.documents.html import charset
from clew.documents.markdown import markdown, plain

PATIENCE = 120.0
"""Seconds for one document, on a busy machine too; the process has half as many of CPU."""
AT_ONCE = 2
"""Documents that are read side by side."""
LONGEST_ANSWER = 16 * MOST_CHARS
"""Bytes: every character escaped, and what stands around them."""
INSTALL = "pip install 'clew[docs]'"

PATHS = (str(Path(clew.__file__).parents[1]),)
"""Where the process finds clew, beside what Python finds by itself."""
_NAMED = {"pdf": "PDF", "docx": "DOCX"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Reader:
    """Reads documents: text in a thread, everything else in a process with bounds."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)

    async def read(self, kind: Kind, body: bytes, encoding: str = "") -> Contents:
        """The contents of a document. encoding: as its sender named it, empty where nobody did. Raises Refused."""
        if not body.strip():
            raise Refused("it is empty.")
        if kind == "html":
            text = await asyncio.to_thread(decoded, body, encoding or charset(body))
            body = text.encode("utf-8", "replace")
        async with self._places:
            if kind == "markdown" or kind == "text":
                read = markdown if kind == "markdown" else plain
                contents = await asyncio.to_thread(lambda: read(decoded(body, encoding)))
            else:
                contents = await _apart(kind, body)
        if not any(section.text.strip() for section in contents.sections):
            raise Refused("no text is in it.")
        return contents


def decoded(body: bytes, encoding: str = "") -> str:
    """The text of a file: by its byte order mark, else in the encoding that is named, else UTF-8. Raises Refused."""
    name = next((name for mark, name in _MARKS if body.startswith(mark)), encoding or "utf-8")
    try:
        text = body.decode(codecs.lookup(name).name)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise Refused(
            f"it is no {name.upper()} text: byte 0x{body[error.start]:02x} in line {line:,}.",
            hint="Write it in UTF-8, such as with `iconv -f latin1 -t utf-8`, and add that.",
        ) from None
    except (LookupError, UnicodeError):
        raise Refused(f"its encoding {name!r} is not known, or is another one.", hint="Write it in UTF-8, and add that.") from None
    if "\0" in text:
        raise Refused("it is no text: there are zero bytes in it.")
    if len(text) > MOST_CHARS:
        raise Refused(f"it has more than {MOST_CHARS:,} characters of text.", hint="Cut it in parts.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


async def _apart(kind: Kind, body: bytes) -> Contents:
    """Read it in a process that may be ended at any moment. Raises Refused."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "clew.documents.child",
        kind,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(PATHS), "LANG": "C.UTF-8"},
        cwd="/",
    )
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await _talk(process, body)
    except TimeoutError:
        raise Refused(f"reading it takes longer than {PATIENCE:.0f} seconds.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return await asyncio.to_thread(_contents, kind, answer)


async def _talk(process: asyncio.subprocess.Process, body: bytes) -> bytes:
    """Hand the document over, and take what comes back. Both at once: neither side waits for the other."""
    given, taken = cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout)

    async def hand_over() -> None:
        with suppress(ConnectionError):  # it has ended, and says why
            given.write(body)
            await given.drain()
            given.close()

    handing = asyncio.create_task(hand_over())
    answer = bytearray()
    try:
        while piece := await taken.read(2**20):
            answer += piece
            if len(answer) > LONGEST_ANSWER:
                raise Refused(f"it has more than {MOST_CHARS:,} characters of text.", hint="Cut it in parts.")
        await process.wait()
    finally:
        handing.cancel()
        await asyncio.wait([handing])
    return bytes(answer)


def _contents(kind: Kind, answer: bytes) -> Contents:
    try:
        said = json.loads(answer)
    except ValueError:
        raise Refused("reading it takes too much time or memory, or breaks off.") from None
    if "missing" in said:
        raise Refused(f"{_NAMED[kind]} is read with the extra `docs`, which is not installed: {INSTALL}")
    if "refused" in said:
        raise Refused(str(said["refused"]), hint=str(said["hint"]))
    sections = tuple(Section(place, text, unit, first) for place, text, unit, first in said["sections"])
    if sum(len(section.text) for section in sections) > MOST_CHARS:
        raise Refused(f"it has more than {MOST_CHARS:,} characters of text.", hint="Cut it in parts.")
    return Contents(str(said["title"]), sections)
