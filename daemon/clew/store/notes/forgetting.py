"""Notes whose source is to be forgotten, and what the history says of them."""

import json
from collections.abc import Sequence

from clew.store.connection import Connection
from clew.store.notes import By
from clew.store.notes.verbs import Work, told


def forget(db: Connection, ids: Sequence[str], now: float) -> list[tuple[str, str]]:
    """Remove what was noted from these messages, in every scope, the changes of the history that quote it, and entities of which nothing
    is known any more. Returns (scope, words) of each fact that was removed."""
    listed = json.dumps(ids)
    noted: dict[int, list[tuple[str, int, int]]] = {}
    words: list[tuple[str, str]] = []
    for table, said in (("observations", "f.text"), ("relations", "f.type || ' ' || (SELECT name FROM entities WHERE id = f.target)")):
        rows = db.execute(
            f"SELECT e.scope, f.id, f.entity, s.scope, {said} FROM {table} AS f JOIN entities AS e ON e.id = f.entity"
            " JOIN note_scopes AS s ON s.id = e.scope WHERE f.source IN (SELECT value FROM json_each(?))",
            (listed,),
        )
        for scope, identifier, entity, name, text in rows:
            noted.setdefault(scope, []).append((table, identifier, entity))
            words.append((name, text))
    for scope, facts in noted.items():
        work = Work(db, scope, By(), now, ())
        for table, identifier, _ in facts:
            work.delete(table, identifier)
        for entity in {entity for _, _, entity in facts}:
            if not _known(db, entity):
                work.delete("entities", entity)
        told(work)
    _leave_history(db, ids)
    return words


def _known(db: Connection, entity: int) -> bool:
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM observations WHERE entity = ?1) OR EXISTS (SELECT 1 FROM relations WHERE ?1 IN (entity, target))",
        (entity,),
    ).fetchone()
    return bool(row[0])


def _leave_history(db: Connection, ids: Sequence[str]) -> None:
    """A change that quotes a source cannot be read or undone any more."""
    wanted = {f'"source": "{each}"' for each in ids}
    gone = [number for number, rows in db.execute("SELECT id, rows FROM note_changes") if any(each in rows for each in wanted)]
    db.executemany("DELETE FROM note_changes WHERE id = ?", [(number,) for number in gone])
