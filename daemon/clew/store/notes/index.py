"""The search index of the notes: a row for each entity, observation and relation, with its scope as an indexed term."""

import json
from collections.abc import Collection, Sequence

from clew.context.naming import name_key, text_key
from clew.context.notes import Match, ranked
from clew.context.sought import Sought
from clew.context.stopwords import stop_words
from clew.context.text import INDEX_VERSION, UNSPACED_RUN, WORD, index_text, letters, normalise, pairs, stem
from clew.store.connection import Connection
from clew.store.words import scope_term

_PLACE: dict[str, int] = {"entities": 0, "observations": 1, "relations": 2}
MOST_TERMS = 16
NAME_WEIGHT = 4.0
"""What a word in a name counts for one in a text."""
MOST_MATCHES = 500
"""Rows of the index that are looked at for one query, those that fit best."""

_TEXTS = {
    "entities": "SELECT 4 * e.id, e.scope, e.name, e.type FROM entities AS e",
    "observations": "SELECT 4 * o.id + 1, e.scope, '', o.text FROM observations AS o JOIN entities AS e ON e.id = o.entity",
    "relations": "SELECT 4 * r.id + 2, e.scope, '', e.name || ' ' || replace(r.type, '_', ' ') || ' ' || t.name"
    " FROM relations AS r JOIN entities AS e ON e.id = r.entity JOIN entities AS t ON t.id = r.target",
}
"""What the index is made of: (its row, scope, name, text) of each row of a table."""
_ROW_OF = {"entities": "e.id", "observations": "o.id", "relations": "r.id"}
_ALL = " UNION ALL ".join(_TEXTS.values())
_VERSION = "notes_index_version"


def put(db: Connection, kind: str, identifier: int) -> None:
    """Index a row of one of the tables."""
    _insert(db, *db.execute(f"{_TEXTS[kind]} WHERE {_ROW_OF[kind]} = ?", (identifier,)).fetchone())


def _insert(db: Connection, item: int, scope: int, name: str, text: str) -> None:
    db.words("notes").put(item, (index_text(name), index_text(text), scope_term(scope)))


def remove(db: Connection, kind: str, identifier: int) -> None:
    db.execute("DELETE FROM notes_fts WHERE rowid = ?", (4 * identifier + _PLACE[kind],))


def is_current(db: Connection) -> bool:
    """Whether the index is of this version, or there is nothing in it."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_VERSION,)).fetchone()
    if row is None:
        return db.execute("SELECT 1 FROM entities LIMIT 1").fetchone() is None
    return bool(row[0] == str(INDEX_VERSION))


def rebuild(db: Connection) -> None:
    """Build the index anew from the tables."""
    db.words("notes").clear()
    for row in db.readable(_ALL):
        _insert(db, *row)
    sign(db)


def sign(db: Connection) -> None:
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (_VERSION, str(INDEX_VERSION))
    )


def problems(db: Connection) -> list[str]:
    """What is wrong with notes, in words: the index against the tables, and relations or observations of nothing."""
    texts = db.readable(_ALL)
    expected = {item: (index_text(name), index_text(text), scope_term(scope)) for item, scope, name, text in texts}
    lost = db.execute(f"SELECT count(*) FROM ({_ALL}) AS every_one").fetchone()[0] - len(texts)
    stored = {item: tuple(row) for item, *row in db.execute("SELECT rowid, name, text, scope FROM notes_fts")}
    differing = [item for item in expected.keys() | stored.keys() if expected.get(item) != stored.get(item)]
    found = [f"{lost} notes cannot be read; the others are used"] if lost else []
    found += [f"the index of the notes differs from them in {len(differing)} places"] if len(differing) > lost and is_current(db) else []
    for table, column in (("observations", "entity"), ("relations", "entity"), ("relations", "target")):
        loose = db.execute(f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM entities)").fetchone()[0]
        found += [f"{loose} {table} are of an entity that is not there"] if loose else []
    broken = db.execute("SELECT count(*) FROM note_changes WHERE NOT json_valid(rows)").fetchone()[0]
    return found + ([f"{broken} changes in the history of the notes cannot be read"] if broken else [])


def terms(query: str) -> list[str]:
    """The words by which a query is looked up: those that say something, where any do; pairs of characters of scripts without spaces."""
    plain = normalise(query[:2000])
    words = WORD.findall(plain)
    dropped = stop_words(words) if words else frozenset[str]()
    runs = [piece for run in UNSPACED_RUN.findall(plain) for piece in (pairs(run) or letters(run))]
    telling = [word for word in words if word not in dropped]
    return list(dict.fromkeys([*telling, *runs] or words))[:MOST_TERMS]


def search(db: Connection, scopes: Collection[int], query: str, limit: int) -> list[int]:
    """Entities of these scopes that a query asks for, best first; with nothing to look for, those noted last."""
    if not scopes:
        return []
    within = json.dumps(sorted(scopes))
    if not query.strip():
        rows = db.execute(
            "SELECT id FROM entities WHERE scope IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY id DESC LIMIT ?",
            (within, limit),
        )
        return [identifier for (identifier,) in rows]
    wanted = terms(query)
    items = _matching(db, scopes, wanted) if wanted else []
    if not items:
        return _containing(db, within, query, limit)
    return ranked([stem(each) for each in wanted], _matches(db, within, items), limit)


def _matching(db: Connection, scopes: Collection[int], wanted: Sequence[str]) -> list[int]:
    return db.words("notes").best(Sought(("name", "text"), tuple(wanted)), scopes, NAME_WEIGHT, MOST_MATCHES)


def _matches(db: Connection, within: str, items: Sequence[int]) -> list[Match]:
    """The indexed rows with the entities that they are about, which must be of these scopes."""
    rows = db.execute(
        "SELECT f.name, f.text, coalesce(e.id, o.entity, r.entity), r.target FROM notes_fts AS f"
        " LEFT JOIN entities AS e ON f.rowid % 4 = 0 AND e.id = f.rowid / 4"
        " LEFT JOIN observations AS o ON f.rowid % 4 = 1 AND o.id = f.rowid / 4"
        " LEFT JOIN relations AS r ON f.rowid % 4 = 2 AND r.id = f.rowid / 4"
        " JOIN entities AS owner ON owner.id = coalesce(e.id, o.entity, r.entity)"
        " WHERE f.rowid IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
        " AND owner.scope IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (json.dumps(items), within),
    )
    return [
        Match(tuple(filter(None, (entity, target))), frozenset(map(stem, f"{name} {text}".split())), bool(name))
        for name, text, entity, target in rows
    ]


def _containing(db: Connection, within: str, query: str, limit: int) -> list[int]:
    """Entities in whose name or observations the query stands as it is, inside of a word too."""
    rows = db.execute(
        "SELECT DISTINCT e.id FROM entities AS e LEFT JOIN observations AS o ON o.entity = e.id"
        " WHERE e.scope IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
        " AND (instr(e.key, ?) > 0 OR instr(o.key, ?) > 0) ORDER BY e.id DESC LIMIT ?",
        (within, name_key(query), text_key(query), limit),
    )
    return [identifier for (identifier,) in rows]
