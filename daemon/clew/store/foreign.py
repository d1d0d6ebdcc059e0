"""Conversations that were had with other programs, as sessions of the person who brings them in."""

import hashlib
from base64 import b32encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.messages import Block, Role
from clew.store import NewMessage, transcript
from clew.store.connection import Connection

Outcome = Literal["new", "grown", "here", "changed"]
"""What became of a conversation: it is a session now; more was said in it since it was brought in, and that was added; all of it is here
already; what is here is no beginning of it, and was left as it is."""


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """key: names it in its conversation. name: of somebody else who wrote it; empty for the person themselves and for an assistant."""

    key: str
    role: Role
    blocks: tuple[Block, ...]
    at: float
    name: str = ""


def address(source: str, person: str) -> str:
    """Where the conversations of a person with `source` are: a direct chat of theirs, to which nothing can be sent."""
    return f"import:{person}/{source}"


def bring(
    db: Connection, source: str, person: str, key: str, title: str, messages: Sequence[ForeignMessage], now: float
) -> tuple[str, Outcome, int]:
    """(its session, what became of it, how many messages were written). The same key is the same session, however often it comes."""
    session = _derived(source, person, key)
    chat = _chat(db, address(source, person), person, now)
    ids = [_derived(session, each.key, str(index)) for index, each in enumerate(messages)]
    found = db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone()
    here = [row for (row,) in db.execute("SELECT id FROM messages WHERE session = ? ORDER BY seq", (session,))]
    if found and here != ids[: len(here)]:
        return session, "changed", 0
    if found and len(here) == len(ids):
        return session, "here", 0
    if not found:
        created = messages[0].at or now
        db.execute("INSERT INTO sessions (id, chat, title, created) VALUES (?, ?, ?, ?)", (session, chat, title, created))
    turn = ids[0]
    for seq, (identifier, each) in enumerate(zip(ids, messages, strict=True), 1):
        turn = identifier if each.role == "user" else turn
        if seq > len(here):
            sender = "" if each.role != "user" else f"{source}:{each.name}" if each.name else person
            new = NewMessage(each.role, each.blocks, each.at, sender, each.name, {"imported": source})
            transcript.restore(db, session, chat, turn, seq, identifier, new)
    return session, "grown" if found else "new", len(ids) - len(here)


def _derived(*parts: str) -> str:
    """An id like those of the store, the same whenever it is made of the same parts."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).digest()
    return b32encode(digest).decode().lower()[:12]


def _chat(db: Connection, place: str, person: str, now: float) -> int:
    db.execute(
        "INSERT INTO chats (address, transport, direct, person, created) VALUES (?, 'import', 1, ?, ?) ON CONFLICT (address) DO NOTHING",
        (place, person, now),
    )
    return int(db.execute("SELECT id FROM chats WHERE address = ?", (place,)).fetchone()[0])
