"""Ways from a voice note to its words, one file for each."""

import re
from dataclasses import dataclass
from typing import Protocol

from clew.messages import Usage

LONGEST = 100_000
"""Characters of a transcript that are kept: about three hours of speech."""
SUFFIXES = {
    "audio/ogg": "ogg",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/aac": "aac",
    "audio/amr": "amr",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
"""How the names of recordings end, by their type: some servers and programs go by it."""
NOTHING = Usage()
_STAMP = re.compile(r"^\s*\[[0-9:.,]+ --> [0-9:.,]+\]\s*", re.MULTILINE)
_NOISE = re.compile(r"\[[^\]\n]{0,60}\]|\([^)\n]{0,60}\)|\*[^*\n]{0,60}\*|♪")
"""What whisper writes for silence, music and coughs."""


class NotTranscribed(Exception):
    """A recording that another try would not make words of. Its text is for whoever spoke."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is to be heard. mime: by its bytes."""

    body: bytes
    mime: str

    @property
    def name(self) -> str:
        return f"voice.{SUFFIXES.get(self.mime, 'ogg')}"


class Transcript(str):
    """What is said in a recording, with what the server says it took: tokens, or seconds for which it is paid; nothing where it says
    nothing."""

    usage: Usage
    seconds: float

    def __new__(cls, text: str, usage: Usage = NOTHING, seconds: float = 0.0) -> "Transcript":
        made = super().__new__(cls, text)
        made.usage, made.seconds = usage, seconds
        return made


class Transcriber(Protocol):
    """See `Endpoint` and `Program`."""

    async def transcribe(self, recording: Recording) -> Transcript:
        """What is said in it, as it is written down. Raises NotTranscribed; any other error may be over at the next try."""


def words(transcript: str) -> str:
    """The words of a transcript, empty where nothing was said: without the time stamps that whisper may write, and no noises alone."""
    text = _STAMP.sub("", transcript[: 2 * LONGEST]).strip()
    if not any(letter.isalnum() for letter in _NOISE.sub("", text)):
        return ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} [… what follows is left out]"
