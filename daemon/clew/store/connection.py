"""What the verbs ask of a database: statements of SQL that SQLite and PostgreSQL both understand, `?` for each value."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

Values = Sequence[Any] | Mapping[str, Any]


class Cursor(Protocol):
    """What a statement found or did."""

    @property
    def rowcount(self) -> int:
        """Rows that it wrote; -1 where it wrote none because it reads."""

    @property
    def description(self) -> Sequence[Sequence[Any]]:
        """Of each column a sequence that begins with its name."""

    def fetchone(self) -> Any:
        """The next row, a tuple; None behind the last."""

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection in the middle of a transaction, which is begun and ended by whoever runs the verb."""

    def execute(self, sql: str, values: Values = ..., /) -> Cursor: ...

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> Cursor: ...

    def insert(self, sql: str, values: Values, number: str) -> int:
        """Insert a row. Returns what the database gave it for its column `number`."""

    def readable(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; those with a text that is damaged are left out: one bad row must not hide the others."""
