"""The file of what was erased, beside the database. A backup that is put back brings the rows again, and not this file: so clew knows what
to erase once more. Of people it holds digests, no names.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from clew.clock import new_id
from clew.store.connection import Connection

NAME = "erased.jsonl"
"""Beside the database: a line for each erasure."""
LONGEST_LINE = 2**22
"""Characters."""


def digest(erasure: str, name: str) -> str:
    """What stands for the id or an account of a person in the entry of an erasure: another one in each."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), key=erasure.encode(), digest_size=16).hexdigest()


def record(db: Connection, what: Literal["session", "messages"], keys: Mapping[str, Any], now: float) -> None:
    """Note something that is deleted for good, in the transaction that deletes it. now: seconds since the epoch."""
    db.execute("INSERT INTO erasures (id, what, keys, begun, done) VALUES (?, ?, ?, ?, ?)", (new_id(), what, json.dumps(keys), now, now))


def write(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Append entries to the file beside the database at `path`, and let the disk have them. Raises OSError."""
    handle = os.open(path.with_name(NAME), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, "".join(f"\n{json.dumps(entry)}\n" for entry in entries).encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of the file beside the database at `path`; a line that a crash left unfinished is passed over."""
    try:
        file = path.with_name(NAME).open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    with file:
        while line := file.readline(LONGEST_LINE):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and {"id", "what", "keys", "begun"} <= entry.keys():
                yield entry
