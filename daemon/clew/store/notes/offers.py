"""Facts that a compaction lets go, noted in the commit that lets them go."""

from collections.abc import Collection, Sequence

from clew.store.connection import Connection
from clew.store.notes import By, Offer, PutEntity, PutFact, Where, scopes, verbs

CLEW = "clew"
"""Who notes them, as the history has it."""


def take(db: Connection, session: str, offered: Sequence[Offer], now: float, known: Collection[str]) -> None:
    """Note what people said of themselves: in their own chat as theirs, else as the chat's. known: secrets of this installation."""
    row = db.execute("SELECT address FROM chats WHERE id = (SELECT chat FROM sessions WHERE id = ?)", (session,)).fetchone()
    if row is None:
        return
    where = Where(address=row[0])
    within = scopes.reach(db, where)
    for each in offered:
        if within.get("user", f"user:{each.person}") != f"user:{each.person}":
            continue  # somebody else's words in a person's own chat
        by = By(CLEW, source=each.source, speaker=each.name, at=each.at)
        verbs.change(db, where, None, [PutEntity(each.name, "person"), PutFact(each.name, each.text)], by, now, known)
