"""Links by which a person fetches one of their threads: good for an hour and one use."""

import hashlib
import secrets

from clew.store import ExportLink
from clew.store.connection import Connection

LASTS = 3600.0
"""Seconds."""
MOST = 3
"""Open links of one person; the oldest goes first."""


def made(session: str, person: str, now: float) -> tuple[str, ExportLink]:
    """(what stands in a new link, its row)."""
    secret = secrets.token_urlsafe(24)
    return secret, ExportLink(digest(secret), session, person, now + LASTS)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def offer(db: Connection, link: ExportLink, now: float) -> None:
    """Give out a link."""
    db.execute("DELETE FROM export_links WHERE expires <= ?", (now,))
    db.execute(
        "INSERT INTO export_links (hash, session, person, expires) VALUES (?, ?, ?, ?)",
        (link.hash, link.session, link.person, link.expires),
    )
    db.execute(
        "DELETE FROM export_links WHERE person = :person AND hash NOT IN"
        " (SELECT hash FROM export_links WHERE person = :person ORDER BY expires DESC LIMIT :most)",
        {"person": link.person, "most": MOST},
    )


def redeem(db: Connection, secret: str, now: float) -> str | None:
    """The thread of a link, which is used up; None: it was used, has expired, or never was."""
    row = db.execute(
        "DELETE FROM export_links WHERE hash = ? AND expires > ? AND expires <= ? RETURNING session", (digest(secret), now, now + LASTS)
    ).fetchone()
    return row[0] if row else None
