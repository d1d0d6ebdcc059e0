"""What the search index holds of a text, so that every row is made and deleted alike."""

import hashlib
import secrets
from collections.abc import Collection
from functools import lru_cache

from clew.context.redact import redact
from clew.context.text import INDEX_VERSION, index_text
from clew.store.connection import Connection

SHORT = 40
REMEMBERED = 256
"""Texts of so many characters, and so many of them, are remembered: names come with every message."""


class Indexer:
    """Makes index texts. `known`: secrets of this installation, which the index must not hold."""

    def __init__(self, known: Collection[str] = ()) -> None:
        self._known = frozenset(known)
        self._short = lru_cache(REMEMBERED)(self._made)

    def __call__(self, text: str) -> str:
        return self._short(text) if len(text) <= SHORT else self._made(text)

    def _made(self, text: str) -> str:
        return index_text(redact(text, self._known) if self._known else text)

    def sign(self, db: Connection) -> None:
        """Note in a transaction that writes that the index is what this one makes."""
        db.execute("INSERT INTO meta (key, value) VALUES ('salt', ?) ON CONFLICT (key) DO NOTHING", (secrets.token_hex(16),))
        db.execute(
            "INSERT INTO meta (key, value) VALUES ('index_version', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (self.version(db),),
        )

    def is_current(self, db: Connection) -> bool:
        """Whether the index is of this version and these secrets; one that nobody signed is not."""
        return _meta(db, "salt") is not None and _meta(db, "index_version") == self.version(db)

    def version(self, db: Connection) -> str:
        """What an index that this one makes is signed with. It tells nobody the secrets."""
        salt = _meta(db, "salt") or ""
        digest = hashlib.blake2b("\0".join(sorted(self._known)).encode("utf-8", "surrogatepass"), key=salt.encode(), digest_size=8)
        return f"{INDEX_VERSION}-{digest.hexdigest()}"


def _meta(db: Connection, key: str) -> str | None:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None
