"""Files that came with messages: their bytes in a folder beside the database, by their SHA-256, and a row for each of them."""

from dataclasses import dataclass
from typing import Literal

UPLOAD = "upload:"
"""What the ref of a file begins with that was uploaded before its message: its id follows."""

State = Literal["waiting", "fetched", "ready", "failed", "left", "uploaded"]
"""waiting: to be fetched; fetched: its bytes are stored, and are to be read; ready, failed: its message may be taken up, with it or
without; left: nobody fetches it; uploaded: nobody has sent it with a message yet."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file of a message that waits for it.

    mime, size: as its platform told them. voice: what is said in it are its sender's words. attempts: tries so far at what is to be done
    now. due: when the next may begin.
    """

    id: str
    address: str
    transport: str
    state: Literal["waiting", "fetched"]
    name: str
    mime: str
    size: int
    ref: str
    voice: bool
    hash: str
    attempts: int
    due: float
    client_id: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A file whose bytes are stored. size: bytes."""

    id: str
    name: str
    mime: str
    size: int
    hash: str
