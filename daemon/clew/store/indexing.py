"""What the search index holds of a text: known to SQL as the function `index_text`, so that every row is made and deleted alike."""

import hashlib
import sqlite3
from collections.abc import Collection

from clew.context.redact import redact
from clew.context.text import INDEX_VERSION, index_text


class Indexer:
    """Makes index texts. `known`: secrets of this installation, which the index must not hold."""

    def __init__(self, known: Collection[str] = ()) -> None:
        self._known = frozenset(known)

    def __call__(self, text: str) -> str:
        return index_text(redact(text, self._known) if self._known else text)

    def version(self, db: sqlite3.Connection) -> str:
        """Names what this one makes: with another version, or with other secrets, the index has to be built anew."""
        (salt,) = db.execute("SELECT value FROM meta WHERE key = 'salt'").fetchone()
        digest = hashlib.blake2b("\0".join(sorted(self._known)).encode("utf-8", "surrogatepass"), key=bytes.fromhex(salt), digest_size=8)
        return f"{INDEX_VERSION}-{digest.hexdigest()}"

    def is_current(self, db: sqlite3.Connection) -> bool:
        row = db.execute("SELECT value FROM meta WHERE key = 'index_version'").fetchone()
        return bool(row and row[0] == self.version(db))
