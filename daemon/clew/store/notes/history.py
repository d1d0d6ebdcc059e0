"""What changed in the notes, and taking it back."""

import json
from collections.abc import Collection
from typing import Any

from clew.context.notes import ScopeKind
from clew.errors import NotFound, UsageError
from clew.store.connection import Connection, Unfit
from clew.store.notes import By, Change, NoteEffect, Where, scopes
from clew.store.notes.verbs import INDEXED, Work, change, log

CHANGED_SINCE = "Something it changed was changed again since. Undo that first."


def listing(db: Connection, where: Where, kind: ScopeKind, limit: int) -> list[Change]:
    """Changes of a scope, the newest first."""
    within = scopes.reach(db, where)
    rows = db.execute(
        "SELECT c.id, c.summary, c.by, c.at, c.undone_by, NOT json_valid(c.rows) FROM note_changes AS c"
        " JOIN note_scopes AS s ON s.id = c.scope WHERE s.scope = ? ORDER BY c.id DESC LIMIT ?",
        (within[scopes.chosen(within, kind)], limit),
    )
    return [Change(number, kind, summary, by, at, undone, bool(damaged)) for number, summary, by, at, undone, damaged in rows]


def take(db: Connection, effect: NoteEffect, now: float, known: Collection[str]) -> None:
    """Let the effect of a command take place. Raises NotFound or UsageError where it cannot."""
    if not effect.edits:
        undo(db, effect.where, effect.kind, effect.undo, effect.by, now)
        return
    done = change(db, effect.where, effect.kind, effect.edits, effect.by, now, known)
    if refused := next((each for each in done if each.state == "refused"), None):
        raise UsageError(f"I did not note {refused.what}: {refused.why}.")
    if all(each.state == "missing" for each in done):
        raise NotFound(f"Nothing is noted as {done[0].what}.")


def undo(db: Connection, where: Where, kind: ScopeKind, number: int | None, by: By, now: float) -> Change:
    """Take a change back, the newest that stands if no `number` is given. Returns it.

    Undoing is a change too, which can be undone. Raises NotFound, or UsageError where what it changed was changed again since.
    """
    within = scopes.reach(db, where)
    scope = scopes.number(db, within[scopes.chosen(within, kind)])
    found = _found(db, scope, number)
    if found is None:
        raise NotFound("There is no change to undo." if number is None else f"There is no change {number}.")
    identifier, summary, text, who, at, undone_by = found
    if undone_by is not None:
        raise UsageError(f"Change {identifier} is undone already, by change {undone_by}.")
    work = Work(db, scope, by, now, ())
    for table, before, after in reversed(_rows(identifier, text)):
        _restore(work, table, before, after)
    work.breaks = True
    done = log(work, f"undid {identifier}: {summary}")
    db.execute("UPDATE note_changes SET undone_by = NULL WHERE undone_by = ?", (identifier,))
    db.execute("UPDATE note_changes SET undone_by = ? WHERE id = ?", (done, identifier))
    return Change(identifier, kind, summary, who, at, done)


def newest(db: Connection, where: Where, kind: ScopeKind) -> Change:
    """The newest change that stands and is no undoing itself. Raises NotFound or UsageError."""
    within = scopes.reach(db, where)
    known = scopes.numbers(db, [within[scopes.chosen(within, kind)]])
    found = next((row for scope in known.values() if (row := _found(db, scope, None))), None)
    if found is None:
        raise NotFound("There is no change to undo.")
    identifier, summary, _, who, at, undone_by = found
    return Change(identifier, kind, summary, who, at, undone_by)


def _found(db: Connection, scope: int, number: int | None) -> tuple[int, str, str, str, float, int | None] | None:
    """A row of the history: of this number or, without one, the newest that stands and is no undoing itself."""
    row: tuple[int, str, str, str, float, int | None] | None = db.execute(
        "SELECT id, summary, rows, by, at, undone_by FROM note_changes WHERE scope = ?"
        " AND (id = ? OR (CAST(? AS BIGINT) IS NULL AND undone_by IS NULL"
        " AND id NOT IN (SELECT undone_by FROM note_changes WHERE scope = ? AND undone_by IS NOT NULL))) ORDER BY id DESC LIMIT 1",
        (scope, number, number, scope),
    ).fetchone()
    return row


def _rows(number: int, text: str) -> list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
    try:
        return [(table, before, after) for table, before, after in json.loads(text)]
    except ValueError:
        raise UsageError(f"Change {number} is damaged and cannot be undone.", hint="Change the notes themselves instead.") from None


def _restore(work: Work, table: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
    """Bring one row back to what it was, if it is still what the change made of it."""
    identifier = (before or after or {})["id"]
    if work.find(table, identifier) != after:
        raise UsageError(CHANGED_SINCE)
    try:
        with work.db.attempt():
            if before is None:
                _nothing_hangs_on(work, table, identifier)
                work.delete(table, identifier)
            elif after is None:
                work.insert(table, **before)
            else:
                work.update(table, identifier, **before)
    except Unfit:
        raise UsageError(CHANGED_SINCE) from None


def _nothing_hangs_on(work: Work, table: str, identifier: int) -> None:
    if table != "entities":
        return
    for hanging in INDEXED - {table}:
        columns = ("entity", "target") if hanging == "relations" else ("entity",)
        of_it = " OR ".join(f"{column} = ?" for column in columns)
        if work.db.execute(f"SELECT 1 FROM {hanging} WHERE {of_it}", (identifier,) * len(columns)).fetchone():
            raise UsageError(CHANGED_SINCE)
