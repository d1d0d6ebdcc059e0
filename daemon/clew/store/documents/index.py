"""The search index of the documents: a row for each piece, with its scope as an indexed term."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from clew.context.documents import Passage
from clew.context.sought import Sought
from clew.store.connection import Connection
from clew.store.documents import Looked
from clew.store.words import scope_term

MOST_PLACES = 10_000
"""Pieces with a term that are looked at: a term in more of them says little."""
RENEWED = 50
"""Pieces that one transaction indexes anew: some 20 ms."""
NAME_WEIGHT = 2.0
"""What a word in a name or a heading counts for one in the text."""
_SEARCHED = ("name", "text")

_SOURCE = (
    "SELECT c.id, d.name || ' ' || d.title || ' ' || c.place, c.text, d.scope FROM chunks AS c JOIN documents AS d ON d.number = c.document"
)
"""What the index is made of: (its row, the words it is cited by, its text, the term of its scope) of each piece."""


def put(db: Connection, rows: Iterable[tuple[int, str, str, int]]) -> None:
    """Index pieces: (id, index text of what it is cited by, index text of its words, scope)."""
    db.words("chunks").put_all((chunk, (name, text, scope_term(scope))) for chunk, name, text, scope in rows)


def rebuild(db: Connection) -> None:
    """Build the index anew from the pieces, and take secrets that are known by now out of them."""
    db.words("chunks").clear()
    db.words("chunks").put_all(_rows(db))


def renew(db: Connection, after: int) -> int | None:
    """Index some pieces behind the id `after` anew. Returns the last of them, None where there was none left."""
    ids = [chunk for (chunk,) in db.execute("SELECT id FROM chunks WHERE id > ? ORDER BY id LIMIT ?", (after, RENEWED))]
    if not ids:
        db.execute("DELETE FROM chunks_fts WHERE rowid NOT IN (SELECT id FROM chunks)")
        return None
    db.execute("DELETE FROM chunks_fts WHERE rowid BETWEEN ? AND ?", (after + 1, ids[-1]))
    db.words("chunks").put_all(_rows(db, " WHERE c.id BETWEEN ? AND ?", after + 1, ids[-1]))
    return int(ids[-1])


def _rows(db: Connection, which: str = "", *values: int) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """What the index holds of the pieces that can be read, all of them or some, in order."""
    for chunk, name, text, scope in db.readable(f"{_SOURCE}{which} ORDER BY c.id", *values):
        yield chunk, (db.index_text(name), db.index_text(text), scope_term(scope))


def problems(db: Connection) -> list[str]:
    """What is wrong with documents, in words: the index against one that is built anew from the pieces beside it."""
    rows = list(_rows(db))
    with db.words("chunks").compared() as beside:
        for chunk, columns in rows:
            beside.add(chunk, columns)
        differing = beside.differing()
    whats = ("lacks words of them", "holds words that they do not")
    found = [
        f"the index of the documents {what}, for instance {', '.join(words)}" for what, words in zip(whats, differing, strict=True) if words
    ]
    lost = db.execute("SELECT count(*) FROM chunks").fetchone()[0] - len(rows)
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
    seen, words = within(scopes), db.words("chunks")
    places = [words.some(Sought(_SEARCHED, (each,)), scopes, MOST_PLACES) for each in terms]
    lexical = words.best(Sought(_SEARCHED, tuple(terms)), scopes, NAME_WEIGHT, limit)
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


def within(scopes: Collection[int] | None) -> tuple[str, list[Any]]:
    """The condition that a row of `documents AS d` may be seen, and its values."""
    return ("true", []) if scopes is None else ("d.scope IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", [json.dumps(sorted(scopes))])


def _passages(db: Connection, seen: tuple[str, list[Any]], ids: Iterable[int]) -> dict[int, Passage]:
    """Those of these pieces that may be seen."""
    allowed, values = seen
    rows = db.readable(
        "SELECT c.id, d.id, d.name, d.source, c.place, c.text FROM json_each(?) AS wanted CROSS JOIN chunks AS c CROSS JOIN documents AS d"
        f" WHERE c.id = CAST(wanted.value AS BIGINT) AND d.number = c.document AND d.ready = 1 AND {allowed}",
        json.dumps(list(ids)),
        *values,
    )
    return {row[0]: Passage(*row) for row in rows}
