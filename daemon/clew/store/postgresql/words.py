"""The index of words in PostgreSQL: `tsvector` columns, made here of clew's own words.

PostgreSQL's parser and stemmers see none of it: a lexeme is what `clew.context.text.stem` makes of a word of the index text, so that both
databases split a text alike. A column other than the text is told by what its lexemes begin with, which no word of a text has; weights do
the same, but make the server read the row of every word that it finds.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.context.sought import Sought
from clew.context.text import stem
from clew.store.connection import Connection
from clew.store.places import CHAT_BITS
from clew.store.words import Columns, Name, scope_term

LAST_POSITION, MOST_POSITIONS = 16_383, 255
"""Of a text, and of one lexeme (https://www.postgresql.org/docs/current/textsearch-limitations.html). A phrase in a text that has more is
found wherever all of its words are."""
LONGEST = 1_000_000
"""Bytes of a `tsvector`, a little less than there may be. Only a text of some hundred thousand different words has more; its last ones are
not found."""
CUT = "cut:"
"""The lexeme of a row whose positions are not all there."""
AT_ONCE = 200
"""Rows that are compared by one statement."""
_LAST = 2**63 - 2
"""The greatest place that a range may end with: it is written down with the one behind it."""
DIFFERING = 3
"""Words that are told of an index that is wrong."""


class _Column(NamedTuple):
    name: str
    prefix: str = ""
    label: str = ""


_MESSAGES = (_Column("text"), _Column("day", "on:"), _Column("speaker", "by:"))
_CITED = (_Column("name", label="A"), _Column("text"), _Column("scope", "in:"))
_COLUMNS: Mapping[Name, tuple[_Column, ...]] = {"messages": _MESSAGES, "new_messages": _MESSAGES, "notes": _CITED, "chunks": _CITED}
_KEEPS_TEXT: Sequence[Name] = ("notes",)

SHAPES: Mapping[str, tuple[str, ...]] = {
    "messages_fts": (
        "CREATE TABLE {0} (rowid BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        "CREATE INDEX ON {0} USING gin (words)",
    ),
    "document_frequency": ('CREATE TABLE {} (term TEXT COLLATE "C" PRIMARY KEY, messages BIGINT NOT NULL)',),
    "places": ("CREATE TABLE {} (place BIGINT PRIMARY KEY, message BIGINT NOT NULL UNIQUE REFERENCES messages (number))",),
}
"""The tables of the index of messages, as the migrations leave them."""


def vector(columns: Columns, shape: Sequence[_Column]) -> str:
    """The `tsvector` of a row, as text."""
    where: dict[str, list[str]] = {}
    at, cut = 0, False
    for column, text in zip(reversed(shape), reversed(columns), strict=True):  # the long one last
        for word in text.split():
            at += 1
            positions = where.setdefault(column.prefix + stem(word), [])
            if at <= LAST_POSITION and len(positions) < MOST_POSITIONS:
                positions.append(f"{at}{column.label}")
            else:
                cut = True
        at += 1  # no phrase goes on from one column into another
    if cut:
        where[CUT] = []
    return _literal(_bounded(where))


def _bounded(where: dict[str, list[str]]) -> dict[str, list[str]]:
    if sum(len(lexeme.encode()) + 4 + 2 * len(positions) for lexeme, positions in where.items()) <= LONGEST:
        return where
    kept: dict[str, list[str]] = {CUT: []}
    left = LONGEST
    for lexeme in where:
        left -= len(lexeme.encode()) + 4
        if left < 0:
            break
        kept[lexeme] = []
    return kept


def _literal(where: Mapping[str, Sequence[str]]) -> str:
    return " ".join([f"{_quoted(lexeme)}:{','.join(positions)}" if positions else _quoted(lexeme) for lexeme, positions in where.items()])


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def expression(sought: Sought, shape: Sequence[_Column], scopes: Collection[int] | None = None) -> str:
    """What is asked for as a `tsquery`, empty where that is nothing."""
    prefixes = dict.fromkeys(column.prefix for column in shape if column.name in sought.columns)
    each = [_phrase(phrase.split(), prefixes) for phrase in sought.phrases if phrase.split()]
    asked = (" & " if sought.every else " | ").join(each)
    if scopes is None or not asked:
        return asked
    within = " | ".join(_quoted(f"in:{scope_term(scope)}") for scope in sorted(scopes))
    return f"({within}) & ({asked})" if within else ""


def _phrase(words: Sequence[str], prefixes: Iterable[str]) -> str:
    found = []
    for prefix in prefixes:
        lexemes = [_quoted(prefix + stem(word)) for word in words]
        if len(lexemes) == 1:
            found += lexemes
        else:
            found.append(f"({' <-> '.join(lexemes)}) | ({' & '.join([_quoted(CUT), *dict.fromkeys(lexemes)])})")
    return f"({' | '.join(found)})"


class PostgresWords:
    """`clew.store.words.WordIndex`."""

    __slots__ = ("_db", "_keeps", "_shape", "_table")

    def __init__(self, db: Connection, name: Name) -> None:
        self._db = db
        self._table = f"{name}_fts"
        self._shape = _COLUMNS[name]
        self._keeps = name in _KEEPS_TEXT

    def put(self, row: int, columns: Columns) -> None:
        self._db.execute(self._insert, self._row(row, columns))

    def put_all(self, rows: Iterable[tuple[int, Columns]]) -> None:
        self._db.executemany(self._insert, [self._row(row, columns) for row, columns in rows])

    @property
    def _insert(self) -> str:
        if self._keeps:
            return f"INSERT INTO {self._table} (rowid, words, name, text, scope) VALUES (?, ?, ?, ?, ?)"
        return f"INSERT INTO {self._table} (rowid, words) VALUES (?, ?)"

    def _row(self, row: int, columns: Columns) -> tuple[Any, ...]:
        made = vector(columns, self._shape)
        return (row, made, *columns) if self._keeps else (row, made)

    def remove(self, row: int, columns: Columns) -> None:
        self._db.execute(f"DELETE FROM {self._table} WHERE rowid = ?", (row,))

    def clear(self) -> None:
        self._db.execute(f"DELETE FROM {self._table}")

    def newest(self, sought: Sought, ranges: Sequence[tuple[int, int]], chats: Collection[int] | None, most: int) -> list[int]:
        asked = expression(sought, self._shape)
        if not asked or not ranges:
            return []
        condition, values = "", []
        if chats is not None:
            condition = f" AND rowid >> {CHAT_BITS} = ANY(?)"
            values = [sorted(chats)]
        rows = self._db.execute(  # what the index finds is sorted: to follow the order of rows would read each of them
            f"WITH found AS MATERIALIZED (SELECT rowid FROM {self._table} WHERE words @@ CAST(? AS tsquery)"
            f" AND rowid <@ CAST(CAST(? AS text) AS int8multirange){condition}) SELECT rowid FROM found ORDER BY rowid DESC LIMIT ?",
            (asked, f"{{{','.join(f'[{first},{min(last, _LAST)}]' for first, last in ranges)}}}", *values, most),
        )
        return [row for (row,) in rows]

    def best(self, sought: Sought, scopes: Collection[int] | None, weight: float, limit: int) -> list[int]:
        asked = expression(sought, self._shape, scopes)
        if not asked:
            return []
        rows = self._db.execute(
            f"SELECT rowid FROM {self._table} WHERE words @@ CAST(? AS tsquery)"
            " ORDER BY ts_rank(words, CAST(? AS tsquery)) DESC, rowid LIMIT ?",
            (asked, expression(sought, self._shape), limit),
        )
        return [row for (row,) in rows]

    def some(self, sought: Sought, scopes: Collection[int] | None, limit: int) -> frozenset[int]:
        asked = expression(sought, self._shape, scopes)
        sql = f"SELECT rowid FROM {self._table} WHERE words @@ CAST(? AS tsquery) LIMIT ?"
        return frozenset(row for (row,) in self._db.execute(sql, (asked, limit))) if asked else frozenset()

    def holds(self, row: int, sought: Sought) -> bool:
        sql = f"SELECT 1 FROM {self._table} WHERE rowid = ? AND words @@ CAST(? AS tsquery)"
        return self._db.execute(sql, (row, expression(sought, self._shape))).fetchone() is not None

    def matching(self, sought: Sought) -> tuple[str, list[Any]]:
        return f"SELECT rowid FROM {self._table} WHERE words @@ CAST(? AS tsquery)", [expression(sought, self._shape)]

    @contextmanager
    def compared(self) -> Iterator["_Comparison"]:
        yield _Comparison(self._db, self._table, self._shape)

    def merge(self, *, begun: bool) -> bool:
        """Autovacuum does that."""
        return False


@dataclass(slots=True)
class _Comparison:
    _db: Connection
    _table: str
    _shape: Sequence[_Column]
    _waiting: list[tuple[int, str]] = field(default_factory=list)
    _looked: int = -1
    _lacks: dict[str, None] = field(default_factory=dict)
    _holds: dict[str, None] = field(default_factory=dict)

    def add(self, row: int, columns: Columns) -> None:
        self._waiting.append((row, vector(columns, self._shape)))
        if len(self._waiting) == AT_ONCE:
            self._compare(self._waiting[-1][0])

    def differing(self) -> tuple[list[str], list[str]]:
        self._compare(2**63 - 1)
        return list(self._lacks)[:DIFFERING], list(self._holds)[:DIFFERING]

    def _compare(self, last: int) -> None:
        rows = self._db.execute(
            "SELECT tsvector_to_array(made.words), tsvector_to_array(held.words)"
            " FROM unnest(CAST(? AS bigint[]), CAST(CAST(? AS text[]) AS tsvector[])) AS made (rowid, words)"
            f" FULL JOIN (SELECT rowid, words FROM {self._table} WHERE rowid > ? AND rowid <= ?) AS held ON held.rowid = made.rowid"
            " WHERE made.words IS DISTINCT FROM held.words",
            ([row for row, _ in self._waiting], [words for _, words in self._waiting], self._looked, last),
        )
        for made, held in rows:
            lacks, holds = set(made or ()), set(held or ())
            self._lacks |= dict.fromkeys(sorted(lacks - holds or lacks))
            self._holds |= dict.fromkeys(sorted(holds - lacks))
        self._looked = last
        self._waiting = []
