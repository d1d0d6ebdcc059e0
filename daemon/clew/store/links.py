"""Codes by which an account becomes somebody's: shown once, kept as hashes, good for minutes and one use; guesses are counted."""

import re
import secrets
from hashlib import sha256

from clew.store import LinkCode, Offer, access
from clew.store.connection import Connection
from clew.transport import Inbound

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that are not mistaken for one another."""
LENGTH = 8
COMMAND = "/link"
"""What is kept of a message that was a code."""
LASTS = 600.0
"""Seconds for which a code is good."""
TRIES, TRIES_WINDOW = 5, 86_400.0
"""Guesses that one identity may make in a day."""
ALL_TRIES, ALL_WINDOW = 100, 3600.0
"""Guesses of all strangers in an hour, beyond which no code is taken: of 32^8 codes a hundred are one in ten billion."""
_SHAPE = re.compile(rf"(?:/link\s+)?([{ALPHABET}]{{4}})[- ]?([{ALPHABET}]{{4}})", re.IGNORECASE)


def drawn() -> str:
    """A code: 40 random bits."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def hashed(code: str) -> str:
    return sha256(code.encode()).hexdigest()


def read(text: str) -> str | None:
    """The code that a message consists of, None where it is something else."""
    found = _SHAPE.fullmatch(text.strip()) if len(text) < 64 else None
    return (found[1] + found[2]).upper() if found else None


def put(db: Connection, code: LinkCode) -> None:
    """Give out a code; an earlier one of the same person is void."""
    db.execute(
        "INSERT INTO link_codes (hash, person, address, instant, expires) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (person) DO UPDATE SET hash = excluded.hash, address = excluded.address, instant = excluded.instant,"
        " expires = excluded.expires",
        (code.hash, code.person, code.address, int(code.instant), code.expires),
    )


def meant(db: Connection, item: Inbound, now: float, *, known: bool) -> Offer | None:
    """The open code that a message consists of. A stranger's guess is counted, and too many are not looked at."""
    code = read(item.text) if item.kind in ("message", "context") else None
    if code is None:
        return None
    db.alone()
    if not known and _exhausted(db, item.identity, now):
        return None
    row = db.execute(
        "SELECT hash, person, coalesce(nullif(name, ''), id), address, instant FROM link_codes JOIN people ON id = person"
        " WHERE hash = ? AND expires > ? AND expires <= ?",  # a clock that was put back makes no code last longer
        (hashed(code), now, now + LASTS),
    ).fetchone()
    if row is None and not known:
        _count(db, item.identity, now)
    return Offer(row[0], row[1], row[2], row[3], bool(row[4])) if row else None


def past(db: Connection, item: Inbound, person: str) -> bool:
    """Whether somebody else spoke in this account's direct chats before."""
    row = db.execute(
        "SELECT 1 FROM chats WHERE direct = 1 AND (address = ? OR substr(address, 1, ?) = ?) AND person IS DISTINCT FROM ?"
        " AND EXISTS (SELECT 1 FROM messages WHERE messages.chat = chats.id) LIMIT 1",
        (item.identity, len(item.identity) + 1, f"{item.identity}/", person),
    ).fetchone()
    here = db.execute(
        "SELECT 1 FROM chats WHERE address = ? AND person IS DISTINCT FROM ?"
        " AND EXISTS (SELECT 1 FROM messages WHERE messages.chat = chats.id)",
        (str(item.address), person),
    ).fetchone()
    return row is not None or here is not None


def spend(db: Connection, offer: Offer, identity: str | None, now: float) -> None:
    """Close a code. identity: whose is its person's from now on."""
    db.execute("DELETE FROM link_codes WHERE hash = ?", (offer.hash,))
    if identity is not None:
        access.link(db, offer.person, identity, now)


def resting(db: Connection, now: float) -> bool:
    """Whether so many guesses were made that no code is taken."""
    return _tries(db, "", now, ALL_WINDOW) >= ALL_TRIES


def _exhausted(db: Connection, identity: str, now: float) -> bool:
    return resting(db, now) or _tries(db, identity, now, TRIES_WINDOW) >= TRIES


def _tries(db: Connection, who: str, now: float, window: float) -> int:
    row = db.execute("SELECT tries FROM guesses WHERE who = ? AND since > ?", (who, now - window)).fetchone()
    return int(row[0]) if row else 0


def _count(db: Connection, identity: str, now: float) -> None:
    db.execute("DELETE FROM guesses WHERE since <= ?", (now - TRIES_WINDOW,))
    for who, window in (("", ALL_WINDOW), (identity, TRIES_WINDOW)):
        db.execute(
            "INSERT INTO guesses (who, tries, since) VALUES (:who, 1, :now) ON CONFLICT (who) DO UPDATE SET"
            " tries = CASE WHEN guesses.since > :begun THEN guesses.tries + 1 ELSE 1 END,"
            " since = CASE WHEN guesses.since > :begun THEN guesses.since ELSE :now END",
            {"who": who, "now": now, "begun": now - window},
        )
