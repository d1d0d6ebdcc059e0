"""The search index of the documents: a row for each piece, with its scope as an indexed term."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from clew.context.documents import Passage
from clew.store.connection import Connection
from clew.store.documents import Looked

MOST_PLACES = 10_000
"""Pieces with a term that are looked at: a term in more of them says little."""
RENEWED = 50
"""Pieces that one transaction indexes anew: some 20 ms."""
NAME_WEIGHT = 2.0
"""What a word in a name or a heading counts for one in the text."""

_SOURCE = (
    "SELECT c.id, d.name || ' ' || d.title || ' ' || c.place, c.text, 'scope' || d.scope"
    " FROM chunks AS c JOIN documents AS d ON d.number = c.document"
)
"""What the index is made of: (its row, the words it is cited by, its text, the term of its scope) of each piece."""
_WORDS = "SELECT term, doc, col, offset FROM temp.{}"


def term(scope: int) -> str:
    """The indexed term of a scope."""
    return f"scope{scope}"


def put(db: Connection, rows: Iterable[tuple[int, str, str, int]]) -> None:
    """Index pieces: (id, index text of what it is cited by, index text of its words, scope)."""
    db.executemany(
        "INSERT INTO chunks_fts (rowid, name, text, scope) VALUES (?, ?, ?, ?)",
        [(chunk, name, text, term(scope)) for chunk, name, text, scope in rows],
    )


def rebuild(db: Connection) -> None:
    """Build the index anew from the pieces, and take secrets that are known by now out of them."""
    db.execute("DELETE FROM chunks_fts")
    _fill(db, "chunks_fts")


def renew(db: Connection, after: int) -> int | None:
    """Index some pieces behind the id `after` anew. Returns the last of them, None where there was none left."""
    ids = [chunk for (chunk,) in db.execute("SELECT id FROM chunks WHERE id > ? ORDER BY id LIMIT ?", (after, RENEWED))]
    if not ids:
        db.execute("DELETE FROM chunks_fts WHERE rowid NOT IN (SELECT id FROM chunks)")
        return None
    db.execute("DELETE FROM chunks_fts WHERE rowid BETWEEN ? AND ?", (after + 1, ids[-1]))
    _fill(db, "chunks_fts", " WHERE c.id BETWEEN ? AND ?", after + 1, ids[-1])
    return int(ids[-1])


def _fill(db: Connection, table: str, which: str = "", *values: int) -> int:
    """Index pieces that can be read, all of them or some, into a table of this shape. Returns their number."""
    rows = db.readable(_SOURCE + which, *values)
    db.executemany(f"INSERT INTO {table} (rowid, name, text, scope) VALUES (?, index_text(?), index_text(?), ?)", rows)
    return len(rows)


def problems(db: Connection) -> list[str]:
    """What is wrong with documents, in words: the index against one that is built anew from the pieces beside it."""
    tokenizer = "tokenize='porter unicode61 remove_diacritics 2'"
    db.execute(f"CREATE VIRTUAL TABLE temp.anew USING fts5(name, text, scope, content='', {tokenizer})")
    db.execute("CREATE VIRTUAL TABLE temp.anew_words USING fts5vocab(temp, anew, instance)")
    db.execute("CREATE VIRTUAL TABLE temp.held_words USING fts5vocab(main, chunks_fts, instance)")
    try:
        read = _fill(db, "temp.anew")
        differing = [
            db.execute(f"SELECT term FROM ({_WORDS.format(one)} EXCEPT {_WORDS.format(other)}) LIMIT 3").fetchall()
            for one, other in (("anew_words", "held_words"), ("held_words", "anew_words"))
        ]
    finally:
        for table in ("held_words", "anew_words", "anew"):
            db.execute(f"DROP TABLE temp.{table}")
    whats = ("lacks words of them", "holds words that they do not")
    found = [
        f"the index of the documents {what}, for instance {', '.join(word for (word,) in words)}"
        for what, words in zip(whats, differing, strict=True)
        if words
    ]
    lost = db.execute("SELECT count(*) FROM chunks").fetchone()[0] - read
    found += [f"{lost} pieces of documents cannot be read, or are of none"] if lost else []
    counted = db.execute(
        "SELECT count(*) FROM documents AS d WHERE ready = 1 AND chunks != (SELECT count(*) FROM chunks WHERE document = d.number)"
    ).fetchone()[0]
    return found + ([f"{counted} documents are not whole"] if counted else [])


def look_up(
    db: Connection,
    scopes: Collection[int] | None,
    terms: Sequence[str],
    limit: int,
    nearest: Sequence[int] = (),
    shown: Sequence[int] = (),
) -> Looked:
    """What the pieces of these scopes have for a query's terms; `scopes` None: the operator's, all there are.

    limit: of pieces that are read. nearest: pieces that a query means by its sense, best first. shown: pieces of which it is to be said
    whether they may (still) be seen.
    """
    if scopes is not None and not scopes:
        return Looked(0, (0,) * len(terms), (), (), {}, {}, frozenset())
    seen, prefix = within(scopes)
    asked = [f'{{name text}} : "{each.replace(chr(34), chr(34) * 2)}"' for each in terms]
    places = [_places(db, f"{prefix}({expression})") for expression in asked]
    lexical = _best(db, f"{prefix}({' OR '.join(f'({each})' for each in asked)})", limit) if asked else []
    passages = _passages(db, seen, [*lexical, *nearest[:limit]])
    holding = {chunk: tuple(number for number, found in enumerate(places) if chunk in found) for chunk in passages}
    allowed, values = seen
    total = db.execute(f"SELECT coalesce(sum(d.chunks), 0) FROM documents AS d WHERE d.ready = 1 AND {allowed}", values).fetchone()[0]
    return Looked(
        total,
        tuple(map(len, places)),
        tuple(chunk for chunk in lexical if chunk in passages),
        tuple(chunk for chunk in nearest[:limit] if chunk in passages),
        passages,
        holding,
        frozenset(_passages(db, seen, shown)) if shown else frozenset(),
    )


def within(scopes: Collection[int] | None) -> tuple[tuple[str, list[Any]], str]:
    """The condition that a row of `documents AS d` may be seen, its values, and the same as the beginning of a MATCH."""
    if scopes is None:
        return ("true", []), ""
    condition = "d.scope IN (SELECT value FROM json_each(?))"
    return (condition, [json.dumps(sorted(scopes))]), f"(scope : ({' OR '.join(map(term, sorted(scopes)))})) AND "


def _places(db: Connection, expression: str) -> frozenset[int]:
    rows = db.execute("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT ?", (expression, MOST_PLACES))
    return frozenset(chunk for (chunk,) in rows)


def _best(db: Connection, expression: str, limit: int) -> list[int]:
    rows = db.execute(
        f"SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY bm25(chunks_fts, {NAME_WEIGHT}, 1.0, 0.0), rowid LIMIT ?",
        (expression, limit),
    )
    return [chunk for (chunk,) in rows]


def _passages(db: Connection, seen: tuple[str, list[Any]], ids: Iterable[int]) -> dict[int, Passage]:
    """Those of these pieces that may be seen."""
    allowed, values = seen
    rows = db.readable(
        "SELECT c.id, d.id, d.name, d.source, c.place, c.text FROM json_each(?) AS wanted CROSS JOIN chunks AS c ON c.id = wanted.value"
        f" JOIN documents AS d ON d.number = c.document WHERE d.ready = 1 AND {allowed}",
        json.dumps(list(ids)),
        *values,
    )
    return {row[0]: Passage(*row) for row in rows}
