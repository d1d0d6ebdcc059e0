"""What the verbs ask of a database: statements of SQL that SQLite and PostgreSQL both understand, `?` for each value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from clew.store.words import Name, WordIndex

Values = Sequence[Any] | Mapping[str, Any]


class Unfit(Exception):
    """Values break a rule of the schema, a key, a reference or a check, or are of another kind than their column."""


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

    def hold(self, *names: str) -> bool:
        """Hold names (see `grouping.shared`) until the transaction ends. False: another transaction has one of them."""

    def alone(self) -> None:
        """What follows is for the only transaction that writes: where others may write beside it, it begins anew without them."""

    @property
    def locked(self) -> str:
        """What a SELECT ends with whose rows no other transaction may change until this one ends; it waits for those that do."""

    @property
    def unlocked(self) -> str:
        """The same, of those rows alone that nobody else has locked: it waits for nobody."""

    def attempt(self) -> AbstractContextManager[None]:
        """A block whose statements stand whole or not at all. Raises Unfit where one of them does not fit the schema."""

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns."""

    def words(self, name: Name, /) -> WordIndex:
        """An index of words."""

    @property
    def shapes(self) -> Mapping[str, Sequence[str]]:
        """Of each table of the index of messages the statements that make it, `{0}` in the place of its name."""

    def index_text(self, text: str, /) -> str:
        """What an index holds of a text: without the secrets of this installation."""

    def integrity(self) -> list[str]:
        """What is wrong with the database itself, in words."""

    def is_damage(self, error: Exception, /) -> bool:
        """Whether an error says that what is stored cannot be read."""
