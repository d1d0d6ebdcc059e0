"""Rows of files: each goes from its platform to the store, and from there into its message."""

import json
from collections.abc import Collection, Iterable
from typing import Any

from clew.clock import new_id
from clew.messages import Block, File, Text, blocks_to_json, readable_blocks
from clew.store.connection import Connection
from clew.store.files import UPLOAD, Kept, Waiting
from clew.transport import Attachment

OPEN = "state IN ('waiting', 'fetched')"
"""That a file's message waits for it, in the words of the index `attachments_open`."""
LONGEST_WAIT = 120.0
"""Seconds. A time that lies further ahead was written by a clock that has been set back since."""
_DUE = (
    "SELECT id, address, transport, state, name, mime, size, ref, voice, hash, attempts, next_at, client_id FROM"
    " (SELECT a.*, i.transport, i.client_id, row_number() OVER (PARTITION BY a.address ORDER BY a.number) AS place"
    f"  FROM attachments AS a JOIN inbox AS i ON i.id = a.inbox WHERE a.{OPEN} AND i.state = 'new' AND (a.next_at <= ? OR a.next_at > ?)"
    "  AND i.transport NOT IN (SELECT value FROM json_each(?)))"
    " AS found WHERE place <= ? ORDER BY number LIMIT ?"
)


def put(db: Connection, inbox: int, address: str, attachments: Iterable[Attachment], now: float, *, wanted: bool, said: bool) -> None:
    """Note the files of an arrival. wanted: they are to be fetched. said: there are words beside them."""
    for each in attachments:
        if wanted and _was_uploaded(db, inbox, address, each.ref, now, said=said):
            continue
        voice = each.voice or (each.mime.startswith("audio/") and not said)
        db.execute(
            "INSERT INTO attachments (id, inbox, address, state, name, mime, size, ref, voice, next_at, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(new_id(), inbox, address, "waiting" if wanted else "left", each.name, each.mime, each.size),
                *(each.ref if wanted else "", int(voice), now, now),
            ),
        )


def _was_uploaded(db: Connection, inbox: int, address: str, ref: str, now: float, *, said: bool) -> bool:
    """Make an upload at this address a file of an arrival. False: there is none by this ref."""
    if not ref.startswith(UPLOAD):
        return False
    changed = db.execute(
        "UPDATE attachments SET inbox = ?, state = 'fetched', next_at = ?,"
        " voice = CASE WHEN ? = 0 AND lower(mime) LIKE 'audio/%' THEN 1 ELSE 0 END"
        " WHERE id = ? AND address = ? AND state = 'uploaded'",
        (inbox, now, int(said), ref.removeprefix(UPLOAD), address),
    )
    return changed.rowcount == 1


def due(db: Connection, now: float, limit: int, of_one: int, left_out: Collection[str] = ()) -> tuple[list[Waiting], float | None]:
    """(files that can be gone on with, in the order of their messages, so many of one address at most; when the next one can). left_out:
    transports whose files are somebody else's to fetch."""
    rows = db.execute(_DUE, (now, now + LONGEST_WAIT, json.dumps(sorted(left_out)), of_one, limit))
    found = [_waiting(*row) for row in rows.fetchall()]
    later = db.execute(f"SELECT min(next_at) FROM attachments WHERE {OPEN} AND next_at > ?", (now,)).fetchone()[0]
    return found, later


def _waiting(
    identifier: str, address: str, transport: str, state: Any, name: str, mime: str, size: int, ref: str, voice: int, *more: Any
) -> Waiting:
    return Waiting(identifier, address, transport, state, name, mime, size, ref, bool(voice), *more)


def begin(db: Connection, identifier: str, again_at: float) -> None:
    """Count a try before it begins, so that one that brings the process down counts too."""
    db.execute("UPDATE attachments SET attempts = attempts + 1, next_at = ? WHERE id = ?", (again_at, identifier))


def spare(db: Connection, identifier: str, again_at: float) -> None:
    """Do not count the try that was begun."""
    db.execute(
        "UPDATE attachments SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END, next_at = ? WHERE id = ?",
        (again_at, identifier),
    )


def took(db: Connection, of: str, digest: str, size: int, now: float) -> None:
    """The bytes are stored: what is left is to read them."""
    db.execute(
        f"UPDATE attachments SET state = 'fetched', hash = ?, size = ?, ref = '', attempts = 0, next_at = ? WHERE id = ? AND {OPEN}",
        (digest, size, now, of),
    )


def settle(db: Connection, identifier: str, file: File, words: str) -> None:
    """What its message will hold of it: the file and, of a voice note, what was said. Settled once."""
    db.execute(
        f"UPDATE attachments SET state = ?, file = ?, words = ?, ref = '' WHERE id = ? AND {OPEN}",
        ("failed" if file.fault else "ready", blocks_to_json((file,)), words, identifier),
    )


def are_open(db: Connection, inbox: int) -> bool:
    """Whether a message waits for one of its files."""
    return db.execute(f"SELECT 1 FROM attachments WHERE inbox = ? AND {OPEN}", (inbox,)).fetchone() is not None


def blocks(db: Connection, inbox: int) -> tuple[Block, ...]:
    """What the files of an arrival are in its message: what was said in them, then the files. Those that nobody fetches are named."""
    rows = db.execute(
        "SELECT name, mime, size, file, words FROM attachments WHERE inbox = ? AND state IN ('ready', 'failed', 'left') ORDER BY number",
        (inbox,),
    ).fetchall()
    said = [Text(words) for *_, words in rows if words]
    named = [readable_blocks(file) if file else (File("", name, mime, size),) for name, mime, size, file, _ in rows]
    return (*said, *(block for held in named for block in held))


def join(db: Connection, inbox: int, message: str) -> None:
    """The files of an arrival are its message's from now on."""
    db.execute("UPDATE attachments SET message = ? WHERE inbox = ?", (message, inbox))


def wanted(db: Connection, hashes: Collection[str] | None = None) -> set[str]:
    """Hashes of the files that somebody holds; of these alone where they are named."""
    if hashes is None:
        return {digest for (digest,) in db.execute("SELECT DISTINCT hash FROM attachments WHERE hash != ''")}
    rows = db.execute("SELECT DISTINCT hash FROM attachments WHERE hash IN (SELECT value FROM json_each(?))", (json.dumps(list(hashes)),))
    return {digest for (digest,) in rows}


def forget(db: Connection, messages: str) -> None:
    """Let go of the files of these messages (JSON: ids)."""
    db.execute("DELETE FROM attachments WHERE message IN (SELECT value FROM json_each(?))", (messages,))


def at(db: Connection, address: str, identifier: str) -> Kept | None:
    """A file that was sent at `address`, if its bytes are stored."""
    row = db.execute(
        "SELECT id, name, mime, size, hash FROM attachments WHERE id = ? AND address = ? AND hash != ''", (identifier, address)
    ).fetchone()
    return Kept(*row) if row else None


EXPORTED = ("message", "name", "mime", "size", "voice", "hash", "at")


def of_session(db: Connection, session: str) -> list[dict[str, Any]]:
    """The stored files of a session as plain values, in order."""
    rows = db.execute(
        f"SELECT {', '.join(f'a.{name}' for name in EXPORTED)} FROM attachments AS a JOIN messages AS m ON m.id = a.message"
        " WHERE m.session = ? AND a.hash != '' ORDER BY m.seq, a.number",
        (session,),
    )
    return [dict(zip(EXPORTED, row, strict=True)) for row in rows]


def restore(db: Connection, row: dict[str, Any], address: str, file: File) -> None:
    """Put a file of an imported message, whose bytes are stored, where it was."""
    values = (row["message"], address, row["name"], row["mime"], row["size"], row["voice"], row["hash"], blocks_to_json((file,)), row["at"])
    db.execute(
        "INSERT INTO attachments (id, message, address, state, name, mime, size, voice, hash, file, next_at, at)"
        " VALUES (?, ?, ?, 'ready', ?, ?, ?, ?, ?, ?, 0, ?)",
        (new_id(), *values),
    )


def upload(db: Connection, address: str, name: str, mime: str, size: int, digest: str, now: float) -> str:
    """Note a file that somebody is about to send with a message. Returns its id."""
    identifier = new_id()
    db.execute(
        "INSERT INTO attachments (id, address, state, name, mime, size, hash, next_at, at) VALUES (?, ?, 'uploaded', ?, ?, ?, ?, 0, ?)",
        (identifier, address, name, mime, size, digest, now),
    )
    return identifier


def uploaded(db: Connection, address: str, identifiers: Collection[str]) -> list[Kept]:
    """Of these the uploads at an address, in the order of the ids."""
    found = []
    for each in identifiers:
        row = db.execute(
            "SELECT id, name, mime, size, hash FROM attachments WHERE id = ? AND address = ? AND state = 'uploaded'", (each, address)
        ).fetchone()
        found += [Kept(*row)] if row else []
    return found


def expire_uploads(db: Connection, before: float) -> None:
    """Let go of what was uploaded earlier and not sent."""
    db.execute("DELETE FROM attachments WHERE state = 'uploaded' AND at < ?", (before,))


def refuse(db: Connection, session: str, provider: str, model: str, hashes: Iterable[str]) -> None:
    """Note files of a session that a model did not take."""
    db.executemany(
        "INSERT INTO refused_files (session, provider, model, hash) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(session, provider, model, each) for each in hashes],
    )


def refused(db: Connection, session: str) -> frozenset[tuple[str, str, str]]:
    """(provider, model, hash) of what models did not take."""
    return frozenset(db.execute("SELECT provider, model, hash FROM refused_files WHERE session = ?", (session,)))
