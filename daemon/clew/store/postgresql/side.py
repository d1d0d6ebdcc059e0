"""A PostgreSQL database as it is copied from or into, see `clew.store.copying`."""

from collections.abc import Mapping

from clew.store.indexing import Indexer
from clew.store.postgresql import files
from clew.store.postgresql.connection import PostgresConnection
from clew.store.postgresql.database import prepare

_NUMBERED = (
    "SELECT table_name, column_name, pg_get_serial_sequence(quote_ident(table_name), column_name)"
    " FROM information_schema.columns WHERE is_identity = 'YES' AND table_schema = current_schema()"
)


class PostgresSide:
    """A connection of its own."""

    def __init__(self, url: str, index: Indexer) -> None:
        self.db = PostgresConnection(url, indexer=index)
        try:
            prepare(self.db, url, read_only=False)
            self.begin()
            self.db.words("messages").drop_uncounted()  # what waits to be counted is not copied
            self.commit()
        except BaseException:
            self.db.close()
            raise

    def begin(self) -> None:
        self.db.begin(relaxed=False, holds=None)
        self.db.script("SET CONSTRAINTS ALL DEFERRED")  # a row may come in front of the one of its own table that it names

    def commit(self) -> None:
        self.db.commit()

    def numbers(self) -> dict[str, int]:
        return {
            table: max(self.db.execute(f"SELECT last_value FROM {sequence}").fetchone()[0], self._highest(table, column))
            for table, column, sequence in self.db.execute(_NUMBERED).fetchall()
        }

    def count_on(self, numbers: Mapping[str, int]) -> None:
        for table, column, sequence in self.db.execute(_NUMBERED).fetchall():
            newest = max(numbers.get(table, 0), self._highest(table, column))
            if newest:
                self.db.execute("SELECT setval(CAST(CAST(? AS TEXT) AS regclass), ?)", (sequence, newest))

    def hashes(self) -> set[str]:
        return files.hashes(self.db)

    def body(self, digest: str) -> bytes | None:
        return files.find(self.db, digest)

    def put(self, digest: str, body: bytes) -> None:
        files.put(self.db, digest, body, 0.0)

    def _highest(self, table: str, column: str) -> int:
        return int(self.db.execute(f"SELECT coalesce(max({column}), 0) FROM {table}").fetchone()[0])

    def close(self) -> None:
        self.db.close()
