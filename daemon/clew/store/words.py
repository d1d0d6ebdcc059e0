"""The index of words that search looks into, as a database has it: FTS5 in SQLite, `tsvector` in PostgreSQL."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from clew.context.sought import Sought

Name = Literal["messages", "new_messages", "notes", "chunks"]
"""Which index. That of messages has the columns text, day and speaker and keeps no text; the others have name, text and scope."""
Columns = Sequence[str]
"""Index texts, in the order of an index's columns."""
Within = tuple[Sought, Sequence[tuple[int, int]]]
"""What is sought, and the ranges of places, (first, last), where it is; they are in descending order."""


class Comparison(Protocol):
    """An index beside what it should hold."""

    def add(self, row: int, columns: Columns) -> None:
        """What a row should hold; rows come in order."""

    def differing(self) -> tuple[list[str], list[str]]:
        """Words that the index lacks, and words that it holds beyond what was added; a few of each."""


class WordIndex(Protocol):
    """One index. Rows are numbers: places of messages, items of notes, pieces of documents. Words are counted for messages alone."""

    def put(self, row: int, columns: Columns) -> None: ...

    def put_all(self, rows: Iterable[tuple[int, Columns]]) -> None: ...

    def remove(self, row: int, columns: Columns) -> None:
        """Take a row out. columns: what it was put with."""

    def clear(self) -> None:
        """Let it hold nothing, and no word be counted."""

    def newest(self, wanted: Sequence[Within], chats: Collection[int] | None, most: int) -> list[list[int]]:
        """For each that is wanted the last `most` places that hold it within its ranges and these chats (None: any), descending."""

    def best(self, sought: Sought, scopes: Collection[int] | None, weight: float, limit: int) -> list[int]:
        """The rows of these scopes (None: of any) that hold it, those that fit best first. weight: of a word of the name for one of the
        text."""

    def some(self, sought: Sought, scopes: Collection[int] | None, limit: int) -> frozenset[int]:
        """Rows of these scopes (None: of any) that hold it, as many as that at most."""

    def holds(self, row: int, sought: Sought) -> bool: ...

    def matching(self, sought: Sought) -> tuple[str, list[Any]]:
        """A query for the rows that hold it, column `rowid`, to be joined with; and its values."""

    def compared(self) -> AbstractContextManager[Comparison]: ...

    def count(self, terms: Collection[str], step: int) -> None:
        """So many more messages hold these words."""

    def frequencies(self, terms: Collection[str]) -> dict[str, int]:
        """In how many messages each of these words stands, of those that stand in any."""

    def counts(self) -> dict[str, int]:
        """In how many messages each word stands."""

    def drop_uncounted(self) -> None:
        """Let go of the words that stand in no message any more."""

    def merge(self, *, begun: bool) -> bool:
        """Let what was removed leave the database's own pages, a slice of bounded work. begun: it is not the first one. False: nothing was
        left to do."""


def scope_term(scope: int) -> str:
    """What the column `scope` says of a row."""
    return f"scope{scope}"
