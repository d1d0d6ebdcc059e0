"""The index of words in SQLite: FTS5 tables."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from clew.context.sought import Sought
from clew.store.connection import Connection
from clew.store.places import CHAT_BITS
from clew.store.words import Columns, Name, Within, scope_term

PAGES = 64
"""Pages of an index that one slice merges: a few milliseconds."""
DIFFERING = 3
"""Words that are told of an index that is wrong."""
COUNTED_AT_ONCE = 32
"""Messages whose words are counted together: each word of a message is a place of its own in the file, and those of several are often the
same."""
TOKENIZER = "tokenize='porter unicode61 remove_diacritics 2'"
_MESSAGES, _CITED = ("text", "day", "speaker"), ("name", "text", "scope")
_COLUMNS: Mapping[Name, tuple[str, ...]] = {"messages": _MESSAGES, "new_messages": _MESSAGES, "notes": _CITED, "chunks": _CITED}

SHAPES: Mapping[str, tuple[str, ...]] = {
    "messages_fts": (f"CREATE VIRTUAL TABLE {{}} USING fts5(text, day, speaker, content='', {TOKENIZER})",),
    "document_frequency": ("CREATE TABLE {} (term TEXT PRIMARY KEY, messages INTEGER NOT NULL) STRICT, WITHOUT ROWID",),
    "counting": ("CREATE TABLE {} (number INTEGER PRIMARY KEY, terms TEXT NOT NULL, step INTEGER NOT NULL) STRICT",),
    "places": ("CREATE TABLE {} (place INTEGER PRIMARY KEY, message INTEGER NOT NULL UNIQUE REFERENCES messages (number)) STRICT",),
}
"""The tables of the index of messages, as the migrations leave them."""


def expression(sought: Sought, scopes: Collection[int] | None = None) -> str:
    """What FTS5 is asked for (https://sqlite.org/fts5.html#full_text_query_syntax)."""
    joined = (" AND " if sought.every else " OR ").join(_quoted(phrase) for phrase in sought.phrases)
    asked = f"{{{' '.join(sought.columns)}}} : ({joined})"
    return asked if scopes is None else f"(scope : ({' OR '.join(map(scope_term, sorted(scopes)))})) AND ({asked})"


def _quoted(phrase: str) -> str:
    return '"' + phrase.replace('"', '""') + '"'


class SqliteWords:
    """`clew.store.words.WordIndex`."""

    __slots__ = ("_columns", "_db", "_table")

    def __init__(self, db: Connection, name: Name) -> None:
        self._db = db
        self._table = f"{name}_fts"
        self._columns = _COLUMNS[name]

    def put(self, row: int, columns: Columns) -> None:
        self._db.execute(_insert(self._table, self._columns), (row, *columns))

    def put_all(self, rows: Iterable[tuple[int, Columns]]) -> None:
        self._db.executemany(_insert(self._table, self._columns), ((row, *columns) for row, columns in rows))

    def remove(self, row: int, columns: Columns) -> None:
        if self._columns is _MESSAGES:  # it keeps no text, so that it must be told what goes
            sql = f"INSERT INTO {self._table} ({self._table}, rowid, text, day, speaker) VALUES ('delete', ?, ?, ?, ?)"
            self._db.execute(sql, (row, *columns))
        else:
            self._db.execute(f"DELETE FROM {self._table} WHERE rowid = ?", (row,))

    def clear(self) -> None:
        keeps_none = self._columns is _MESSAGES
        self._db.execute(f"INSERT INTO {self._table} ({self._table}) VALUES ('delete-all')" if keeps_none else f"DELETE FROM {self._table}")
        if keeps_none:
            self._db.execute(f"DELETE FROM {self._counting}")
            self._db.execute(f"DELETE FROM {self._counted}")

    def newest(self, wanted: Sequence[Within], chats: Collection[int] | None, most: int) -> list[list[int]]:
        condition, values = "", []
        if chats is not None:
            condition = f" AND rowid >> {CHAT_BITS} IN (SELECT value FROM json_each(?))"
            values = [json.dumps(sorted(chats))]
        sql = (
            f"SELECT json_group_array(rowid) FROM (SELECT rowid FROM {self._table} WHERE {self._table} MATCH ?"
            f" AND rowid BETWEEN ? AND ?{condition} ORDER BY rowid DESC LIMIT ?)"
        )
        return [self._newest(sql, values, expression(sought), ranges, most) if sought.phrases else [] for sought, ranges in wanted]

    def _newest(self, sql: str, values: Sequence[str], asked: str, ranges: Sequence[tuple[int, int]], most: int) -> list[int]:
        found: list[int] = []
        for first, last in ranges:
            if len(found) >= most:
                break
            found += json.loads(self._db.execute(sql, (asked, first, last, *values, most - len(found))).fetchone()[0])
        return found

    def best(self, sought: Sought, scopes: Collection[int] | None, weight: float, limit: int) -> list[int]:
        if not sought.phrases:
            return []
        rows = self._db.execute(
            f"SELECT rowid FROM {self._table} WHERE {self._table} MATCH ? ORDER BY bm25({self._table}, {weight}, 1.0, 0.0), rowid LIMIT ?",
            (expression(sought, scopes), limit),
        )
        return [row for (row,) in rows]

    def some(self, sought: Sought, scopes: Collection[int] | None, limit: int) -> frozenset[int]:
        sql = f"SELECT rowid FROM {self._table} WHERE {self._table} MATCH ? LIMIT ?"
        return frozenset(row for (row,) in self._db.execute(sql, (expression(sought, scopes), limit)))

    def holds(self, row: int, sought: Sought) -> bool:
        sql = f"SELECT 1 FROM {self._table} WHERE rowid = ? AND {self._table} MATCH ?"
        return self._db.execute(sql, (row, expression(sought))).fetchone() is not None

    def matching(self, sought: Sought) -> tuple[str, list[Any]]:
        return f"SELECT rowid FROM {self._table} WHERE {self._table} MATCH ?", [expression(sought)]

    @contextmanager
    def compared(self) -> Iterator["_Comparison"]:
        columns = ", ".join(self._columns)
        self._db.execute(f"CREATE VIRTUAL TABLE temp.rebuilt USING fts5({columns}, content='', {TOKENIZER})")
        self._db.execute("CREATE VIRTUAL TABLE temp.rebuilt_words USING fts5vocab(temp, rebuilt, instance)")
        self._db.execute(f"CREATE VIRTUAL TABLE temp.stored_words USING fts5vocab(main, {self._table}, instance)")
        try:
            yield _Comparison(self._db, self._columns)
        finally:
            for table in ("stored_words", "rebuilt_words", "rebuilt"):
                self._db.execute(f"DROP TABLE temp.{table}")

    @property
    def _counted(self) -> str:
        return self._table.replace("messages_fts", "document_frequency")

    @property
    def _counting(self) -> str:
        return self._table.replace("messages_fts", "counting")

    def count(self, terms: Collection[str], step: int) -> None:
        values = (json.dumps(list(terms), ensure_ascii=False), step)
        number = self._db.insert(f"INSERT INTO {self._counting} (terms, step) VALUES (?, ?)", values, "number")
        if number >= COUNTED_AT_ONCE:  # numbers begin anew in an empty table
            self._count_in()

    def _count_in(self) -> None:
        self._db.execute(
            f"INSERT INTO {self._counted} (term, messages) SELECT value, sum(step) FROM {self._counting}, json_each(terms) WHERE true"
            " GROUP BY value ON CONFLICT (term) DO UPDATE SET messages = messages + excluded.messages"
        )
        self._db.execute(f"DELETE FROM {self._counting}")

    def frequencies(self, terms: Collection[str]) -> dict[str, int]:
        sql = f"SELECT term, messages FROM json_each(?) CROSS JOIN {self._counted} WHERE term = value"
        found = dict(self._db.execute(sql, (json.dumps(sorted(terms), ensure_ascii=False),)).fetchall())
        wanted = set(terms)
        for held, step in self._db.execute(f"SELECT terms, step FROM {self._counting}"):
            for term in wanted.intersection(json.loads(held)):
                found[term] = found.get(term, 0) + step
        return found

    def counts(self) -> dict[str, int]:
        rows = self._db.execute(
            f"SELECT term, sum(messages) FROM (SELECT term, messages FROM {self._counted}"
            f" UNION ALL SELECT value, step FROM {self._counting}, json_each(terms)) GROUP BY term HAVING sum(messages) <> 0"
        )
        return dict(rows.fetchall())

    def drop_uncounted(self) -> None:
        self._count_in()
        self._db.execute(f"DELETE FROM {self._counted} WHERE messages <= 0")

    def merge(self, *, begun: bool) -> bool:
        """The first slice, a negative number of pages, marks all parts of the index for one merge. There was nothing to merge any more
        where SQLite counts fewer than two changes (https://sqlite.org/fts5.html#the_merge_command)."""
        before = self._changes()
        self._db.execute(f"INSERT INTO {self._table} ({self._table}, rank) VALUES ('merge', ?)", (PAGES if begun else -PAGES,))
        return self._changes() - before >= 2

    def _changes(self) -> int:
        return int(self._db.execute("SELECT total_changes()").fetchone()[0])


class _Comparison:
    def __init__(self, db: Connection, columns: tuple[str, ...]) -> None:
        self._db = db
        self._insert = _insert("temp.rebuilt", columns)

    def add(self, row: int, columns: Columns) -> None:
        self._db.execute(self._insert, (row, *columns))

    def differing(self) -> tuple[list[str], list[str]]:
        return self._only("rebuilt_words", "stored_words"), self._only("stored_words", "rebuilt_words")

    def _only(self, one: str, other: str) -> list[str]:
        words = "SELECT term, doc, col, offset FROM temp.{}"
        rows = self._db.execute(f"SELECT term FROM ({words.format(one)} EXCEPT {words.format(other)}) LIMIT {DIFFERING}")
        return [term for (term,) in rows]


def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} (rowid, {', '.join(columns)}) VALUES (?, ?, ?, ?)"
