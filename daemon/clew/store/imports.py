"""Exports coming back: checked as a whole first, then written piece by piece, so that nobody's reply waits for a long thread."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from clew.errors import UsageError
from clew.messages import File, blocks_from_json
from clew.store import NewMessage, spending, transcript
from clew.store.connection import Connection, Unfit
from clew.store.files import verbs as files
from clew.transport import Address

FORMAT = 1
PIECE = 200
"""Messages that are written in one transaction."""

Time = Annotated[float, Field(ge=0, le=32_503_680_000)]
"""Seconds since the epoch, up to the year 3000."""
Name = Annotated[str, Field(min_length=1, max_length=1000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Session(_Part):
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    address: Name
    direct: bool
    title: str
    created: Time


class Message(_Part):
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    seq: Annotated[int, Field(ge=1)]
    role: Literal["user", "assistant", "tool"]
    blocks: list[dict[str, JsonValue]]
    sender: str
    sender_name: str
    turn: str
    metadata: dict[str, JsonValue]
    at: Time
    address: Name


class Compaction(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    id: Name
    session: Name
    parent: str | None
    from_seq: int
    to_seq: int
    created: Time
    undone_at: Time | None


class Kept(_Part):
    """A file of a message. data: its bytes in base64, None where they were left out."""

    message: Name
    name: Annotated[str, Field(max_length=1000)]
    mime: Annotated[str, Field(max_length=200)]
    size: Annotated[int, Field(ge=0)]
    voice: Annotated[int, Field(ge=0, le=1)]
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    at: Time
    data: Annotated[str, Field(max_length=2**30)] | None


class Export(_Part):
    """What `sessions.export` gives."""

    clew: Literal[1]
    session: Session
    messages: list[Message]
    compactions: list[Compaction]
    pins: list[dict[str, JsonValue]]
    edits: list[dict[str, JsonValue]] = []
    retractions: list[dict[str, JsonValue]] = []
    model_calls: list[dict[str, JsonValue]]
    files: list[Kept] = []


def check(data: Any) -> Export:
    """The export in `data`. Raises UsageError where it is none, or where the store's own checks would not hold for it."""
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()  # half a character and NaN can be read, and not be stored
        export = Export.model_validate(data)
        for message in export.messages:
            blocks_from_json(json.dumps(message.blocks))
            Address.parse(message.address)
        Address.parse(export.session.address)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise _wrong(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise _wrong(str(error)) from None
    if [message.seq for message in export.messages] != list(range(1, len(export.messages) + 1)):
        raise _wrong("its messages are not numbered from 1 without a gap")
    chain = [each for each in export.compactions if each.undone_at is None]
    if any(later.from_seq != earlier.to_seq + 1 or later.parent != earlier.id for earlier, later in pairwise(chain)):
        raise _wrong("its compactions do not follow one another")
    if any(each.session != export.session.id or each.to_seq > len(export.messages) for each in export.compactions):
        raise _wrong("a compaction is not of its messages")
    return export


def _wrong(why: str) -> UsageError:
    return UsageError(f"This is not an export of a clew session ({why}).")


def begin(db: Connection, session: Session, now: float) -> None:
    """Make the session. Raises UsageError where it is here already."""
    if db.execute("SELECT 1 FROM sessions WHERE id = ?", (session.id,)).fetchone():
        raise UsageError(f"The session {session.id} is here already.", hint="Delete it first, or keep the one that is here.")
    home = _chat(db, session.address, session.direct, now)
    db.execute("INSERT INTO sessions (id, chat, title, created) VALUES (?, ?, '(being imported)', ?)", (session.id, home, session.created))


def add(db: Connection, session: Session, messages: Sequence[Message], now: float) -> None:
    """Write messages of a session that `begin` made."""
    for each in messages:
        new = NewMessage(each.role, blocks_from_json(json.dumps(each.blocks)), each.at, each.sender, each.sender_name, each.metadata)
        chat = _chat(db, each.address, session.direct, now)
        transcript.restore(db, session.id, chat, each.turn, each.seq, each.id, new)


def end(db: Connection, export: Export, now: float) -> None:
    """Write what hangs on the messages; a chat that has no session goes on with this one."""
    session = export.session
    for kept in export.files:
        _restore_file(db, export, kept)
    _restore(db, "compactions", [each.model_dump() for each in export.compactions])
    spending.roll(db)
    _restore(db, "model_calls", export.model_calls)
    spending.skip(db)  # what was spent elsewhere, or is counted already
    _restore(db, "pins", [{"session": session.id, **pin} for pin in export.pins])
    _restore(db, "edits", export.edits)
    _restore(db, "retractions", export.retractions)
    db.execute("UPDATE sessions SET title = ? WHERE id = ?", (session.title, session.id))
    home = _chat(db, session.address, session.direct, now)
    db.execute("UPDATE chats SET session = ? WHERE id = ? AND session IS NULL", (session.id, home))


def body(kept: Kept) -> bytes | None:
    """The bytes of a file in an export; None where they were left out. Raises UsageError where they are other bytes."""
    if kept.data is None:
        return None
    try:
        found = base64.b64decode(kept.data, validate=True)
    except ValueError:
        raise _wrong(f"the data of {kept.name!r} is not base64") from None
    if hashlib.sha256(found).hexdigest() != kept.hash:
        raise _wrong(f"the data of {kept.name!r} is not what it was")
    return found


def _restore_file(db: Connection, export: Export, kept: Kept) -> None:
    message = next((each for each in export.messages if each.id == kept.message), None)
    blocks = blocks_from_json(json.dumps(message.blocks)) if message else ()
    block = next((each for each in blocks if isinstance(each, File) and each.hash == kept.hash), None)
    if message is None or block is None:
        raise _wrong(f"the file {kept.name!r} is of none of its messages")
    if kept.data is not None:
        files.restore(db, kept.model_dump(), message.address, block)


def _restore(db: Connection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = db.columns(table)
    try:
        with db.attempt():
            for row in rows:
                if not row or not columns.issuperset(row):
                    raise _wrong(f"{table}: unknown field, or none")
                db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    except Unfit as error:
        raise _wrong(f"{table}: {error}") from None


def _chat(db: Connection, address: str, direct: bool, now: float) -> int:
    db.execute(
        "INSERT INTO chats (address, transport, direct, created) VALUES (?, ?, ?, ?) ON CONFLICT (address) DO NOTHING",
        (address, address.partition(":")[0], int(direct), now),
    )
    row = db.execute("SELECT id FROM chats WHERE address = ?", (address,)).fetchone()
    return int(row[0])
