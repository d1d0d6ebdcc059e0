"""Changing notes: each call is part of one transaction, and leaves one entry in the history of its scope."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.context.contradictions import contradicted, slot
from clew.context.naming import name_key, text_key
from clew.context.notes import ScopeKind
from clew.context.screening import refusal, tidy
from clew.store import private
from clew.store.connection import Connection
from clew.store.notes import (
    HISTORY,
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_TYPE,
    MOST_ENTITIES,
    MOST_FACTS,
    MOST_OF_ONE,
    MOST_PREFERENCES,
    By,
    DropAll,
    DropEntity,
    DropFact,
    DropPreference,
    DropRelation,
    Edit,
    Noted,
    Put,
    PutEntity,
    PutFact,
    PutPreference,
    PutRelation,
    Row,
    Where,
    index,
    scopes,
)

INDEXED = frozenset({"entities", "observations", "relations"})
PRIVATE = "what is said in private is not noted"
_SUMMARY = 300
"""Characters of a change's summary in the history."""


class _Refused(Exception):
    """Why an edit is not carried out."""


@dataclass(slots=True)
class Work:
    """A change in the making. rows: (table, row before, row after) of each row that it changed, in order. breaks: something that was
    known holds no longer."""

    db: Connection
    scope: int
    by: By
    now: float
    known: Collection[str]
    rows: list[tuple[str, Row | None, Row | None]] = field(default_factory=list)
    breaks: bool = False

    # Rows, with the index and the history -------------------------------------------------------------------------

    def find(self, table: str, identifier: int) -> Row | None:
        return next(iter(self.select(f"SELECT * FROM {table} WHERE id = ?", identifier)), None)

    def get(self, table: str, identifier: int) -> Row:
        return self.select(f"SELECT * FROM {table} WHERE id = ?", identifier)[0]

    def select(self, sql: str, *values: Any) -> list[Row]:
        names = [column[0] for column in self.db.execute(f"{sql} LIMIT 0", values).description]
        return [dict(zip(names, row, strict=True)) for row in self.db.readable(sql, *values)]

    def insert(self, table: str, **values: Any) -> int:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks}) RETURNING id"
        identifier: int = self.db.execute(sql, tuple(values.values())).fetchone()[0]
        self.rows.append((table, None, self.get(table, identifier)))
        if table in INDEXED:
            index.put(self.db, table, identifier)
        return identifier

    def update(self, table: str, identifier: int, **values: Any) -> None:
        before = self.get(table, identifier)
        changes = ", ".join(f"{name} = ?" for name in values)
        self.db.execute(f"UPDATE {table} SET {changes} WHERE id = ?", (*values.values(), identifier))
        self.rows.append((table, before, self.get(table, identifier)))
        if table in INDEXED:
            index.remove(self.db, table, identifier)
            index.put(self.db, table, identifier)

    def delete(self, table: str, identifier: int) -> None:
        if before := self.find(table, identifier):  # what cannot be read goes without leaving a trace
            self.rows.append((table, before, None))
        self.db.execute(f"DELETE FROM {table} WHERE id = ?", (identifier,))
        if table in INDEXED:
            index.remove(self.db, table, identifier)
        self.breaks = True

    def end(self, table: str, identifier: int, at: float) -> None:
        """Let a fact hold no longer from `at` on."""
        self.update(table, identifier, valid_to=at)
        self.breaks = True

    def text(self, text: str, longest: int, what: str) -> str:
        """A text as it is noted. Raises _Refused."""
        noted = tidy(text)
        if not noted:
            raise _Refused(f"the {what} is empty")
        if len(noted) > longest:
            raise _Refused(f"the {what} has {len(noted):,} characters, and {longest:,} are the most")
        return noted

    def screened(self, *texts: str, by_hand: bool = False) -> None:
        for text in texts:
            if why := refusal(text, self.known, by_hand=by_hand):
                raise _Refused(why)

    def room(self, count: str, most: int, what: str) -> None:
        if self.db.execute(count, (self.scope,)).fetchone()[0] >= most:
            raise _Refused(f"there are {most:,} {what} already; remove some first")

    def entity(self, name: str) -> int | None:
        row = self.db.execute("SELECT id FROM entities WHERE scope = ? AND key = ?", (self.scope, name_key(name))).fetchone()
        return int(row[0]) if row else None


def change(
    db: Connection, where: Where, kind: ScopeKind | None, edits: Sequence[Edit], by: By, now: float, known: Collection[str]
) -> list[Noted]:
    """Carry edits out, one after the other; one that is refused leaves the others alone.

    kind: the scope; None: the usual one here or, for what is removed, every one that may be seen. known: secrets of this installation.
    Raises UsageError where there is no such scope.
    """
    within = scopes.reach(db, where)
    by = _sourced(db, by)
    if by.source and any(isinstance(each, Put) for each in edits) and private.is_source(db, by.source):
        return [Noted(_named(each), "refused", why=PRIVATE) for each in edits]
    if kind is None and not any(isinstance(each, Put) for each in edits):
        meant = list(within.values()) or [within[scopes.chosen(within, None)]]
    else:
        meant = [within[scopes.chosen(within, kind)]]
    by_scope = [_changed(db, scope, edits, by, now, known) for scope in meant]
    # Of several scopes, what was removed from any of them counts.
    return [min(each, key=lambda noted: noted.state != "removed") for each in zip(*by_scope, strict=True)]


def _changed(db: Connection, scope: str, edits: Sequence[Edit], by: By, now: float, known: Collection[str]) -> list[Noted]:
    work = Work(db, scopes.number(db, scope), by, now, known)
    done = [_carried_out(work, each) for each in edits]
    if work.rows:
        log(work, "; ".join(_said(each) for each in done if each.state in ("noted", "removed") or each.closed))
    return done


def log(work: Work, summary: str) -> int:
    """Write a change into the history, and let prompts know of it. Returns its number."""
    db, scope = work.db, work.scope
    short = summary if len(summary) <= _SUMMARY else f"{summary[: _SUMMARY - 1]}…"
    number: int = db.execute(
        "INSERT INTO note_changes (scope, summary, rows, by, at) VALUES (?, ?, ?, ?, ?) RETURNING id",
        (scope, short, json.dumps(work.rows, ensure_ascii=False), work.by.person, work.now),
    ).fetchone()[0]
    db.execute(
        "DELETE FROM note_changes WHERE scope = ? AND id <="
        " (SELECT id FROM note_changes WHERE scope = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (scope, scope, HISTORY),
    )
    told(work)
    return number


def told(work: Work) -> None:
    """Let prompts know of a change."""
    breaks = int(work.breaks or work.by.hand)
    work.db.execute("UPDATE note_scopes SET version = version + 1, breaks = breaks + ? WHERE id = ?", (breaks, work.scope))
    index.sign(work.db)


def _said(noted: Noted) -> str:
    verb = {"removed": "removed "}.get(noted.state, "")
    return f"{verb}{noted.what}" + "".join(f" (no longer: {each})" for each in noted.closed)


def _sourced(db: Connection, by: By) -> By:
    """With the newest user message of its turn as the source."""
    row = db.execute(
        "SELECT id, coalesce(nullif(sender_name, ''), sender), at FROM messages WHERE turn = ? AND role = 'user' ORDER BY seq DESC LIMIT 1",
        (by.turn,),
    ).fetchone()
    return By(by.person, by.turn, row[0], row[1], row[2], by.hand) if by.turn and row else by


def _carried_out(work: Work, edit: Edit) -> Noted:
    try:
        return _HOW[type(edit)](work, edit)
    except _Refused as refused:
        return Noted(_named(edit), "refused", why=str(refused))


def _named(edit: Edit) -> str:
    """An edit that was refused, without what it would have noted."""
    match edit:
        case PutEntity(name) | DropEntity(name) | PutFact(name) | DropFact(name) | PutRelation(name) | DropRelation(name):
            what = name
        case PutPreference(key) | DropPreference(key):
            what = key
        case _:
            what = "everything"
    short = tidy(what)[:60]
    return "a note" if refusal(short) else short


# Putting ---------------------------------------------------------------------------------------------------------


def _put_entity(work: Work, edit: PutEntity) -> Noted:
    name, kind, found = _entity_texts(work, edit.name, edit.type)
    if found is None:
        work.insert("entities", scope=work.scope, name=name, key=name_key(name), type=kind, created=work.now)
        return Noted(f"{name} ({kind})" if kind else name, "noted")
    stored = work.find("entities", found)
    if stored is None:
        raise _Refused("what is noted under this name cannot be read; delete it first")
    if kind and not stored["type"]:
        work.update("entities", found, type=kind)
        return Noted(f"{stored['name']} ({kind})", "noted")
    other = f"known as {stored['type']}" if kind and text_key(kind) != text_key(stored["type"]) else ""
    return Noted(stored["name"], "known", why=other)


def _entity_texts(work: Work, name: str, kind: str) -> tuple[str, str, int | None]:
    """(name, type, number where it is known). Raises _Refused."""
    name = work.text(name, LONGEST_NAME, "name")
    kind = work.text(kind, LONGEST_TYPE, "type") if kind.strip() else ""
    found = work.entity(name)
    work.screened(name, kind, f"{name} {kind}")
    if found is None:
        work.room("SELECT count(*) FROM entities WHERE scope = ?", MOST_ENTITIES, "names")
    return name, kind, found


def _ensured(work: Work, name: str, found: int | None) -> int:
    return found or work.insert("entities", scope=work.scope, name=name, key=name_key(name), type="", created=work.now)


def _put_fact(work: Work, edit: PutFact) -> Noted:
    name, _, found = _entity_texts(work, edit.entity, "")
    text = work.text(edit.text, LONGEST_TEXT, "observation")
    work.screened(text)
    said = f"{name}: {text}"
    since = min(work.by.at if work.by.at is not None else work.now, work.now)
    if edit.expires is not None and edit.expires <= work.now:
        raise _Refused("it has expired already")
    key, entity = text_key(text), found
    standing = _standing(work, entity) if entity else {}
    same = next((number for number, row in standing.items() if row["key"] == key), None)
    if same is not None:
        return _known_fact(work, same, standing[same], edit, said)
    if entity and _was_noted(work, entity, key, since):
        return Noted(said, "known", why="it was noted before and holds no longer")
    work.room("SELECT count(*) FROM observations JOIN entities ON entities.id = entity WHERE scope = ?", MOST_FACTS, "observations")
    if len(standing) >= MOST_OF_ONE:
        raise _Refused(f"there are {MOST_OF_ONE:,} observations of it already; remove some first")
    replaced = {text_key(each) for each in edit.replaces}
    older = contradicted(text, name, [(number, row["text"], row["slot"]) for number, row in standing.items()])
    ending = [number for number, row in standing.items() if number in older or row["key"] in replaced]
    newer = [standing[number]["valid_from"] for number in ending if standing[number]["valid_from"] > since]
    entity = _ensured(work, name, entity)
    if not newer:
        for number in ending:
            work.end("observations", number, since)
    work.insert(
        "observations",
        entity=entity,
        text=text,
        key=key,
        slot=slot(text, name),
        valid_from=since,
        valid_to=min(newer, default=None),
        expires=edit.expires,
        source=work.by.source or None,
        speaker=work.by.speaker,
    )
    if newer:
        return Noted(said, "noted", why="something later says otherwise, so it is kept as what was so before")
    return Noted(said, "noted", tuple(standing[number]["text"] for number in ending))


def _standing(work: Work, entity: int) -> dict[int, Row]:
    """Observations that hold, by number; those that have expired end here."""
    rows = work.select("SELECT * FROM observations WHERE entity = ? AND valid_to IS NULL", entity)
    for row in rows:
        if row["expires"] is not None and row["expires"] <= work.now:
            work.end("observations", row["id"], row["expires"])
    return {row["id"]: row for row in rows if row["expires"] is None or row["expires"] > work.now}


def _known_fact(work: Work, number: int, row: Row, edit: PutFact, said: str) -> Noted:
    """The same again changes nothing but when it expires."""
    if edit.expires is None or edit.expires == row["expires"]:
        return Noted(said, "known")
    work.update("observations", number, expires=edit.expires)
    work.breaks = True
    return Noted(said, "noted", why="with another day on which it expires")


def _was_noted(work: Work, entity: int, key: str, since: float) -> bool:
    """Whether the same words, said at the same time, were noted before."""
    sql = "SELECT 1 FROM observations WHERE entity = ? AND key = ? AND valid_from = ?"
    return work.db.execute(sql, (entity, key, since)).fetchone() is not None


def _put_relation(work: Work, edit: PutRelation) -> Noted:
    name, _, one = _entity_texts(work, edit.entity, "")
    target, _, other = _entity_texts(work, edit.target, "")
    kind = work.text(edit.type, LONGEST_TYPE, "relation")
    work.screened(kind, f"{name} {kind} {target}")
    words = _relation_words(kind)
    said = f"{name} {words} {target}"
    key = text_key(words)
    since = min(work.by.at if work.by.at is not None else work.now, work.now)
    if one and other and _relation(work, one, other, key) is not None:
        return Noted(said, "known")
    work.room("SELECT count(*) FROM relations JOIN entities ON entities.id = entity WHERE scope = ?", MOST_FACTS, "relations")
    one = _ensured(work, name, one)
    other = _ensured(work, target, work.entity(target))
    own = slot(f"{words} {target}", name)
    own = "" if own.startswith("=") else own
    rows = work.db.execute(
        "SELECT r.id, t.name, r.type FROM relations AS r JOIN entities AS t ON t.id = r.target"
        " WHERE r.entity = ? AND r.slot = ? AND r.slot != '' AND r.valid_to IS NULL",
        (one, own),
    ).fetchall()
    for number, _, _ in rows:
        work.end("relations", number, since)
    work.insert(
        "relations",
        entity=one,
        target=other,
        type=kind,
        key=key,
        slot=own,
        valid_from=since,
        source=work.by.source or None,
        speaker=work.by.speaker,
    )
    return Noted(said, "noted", tuple(f"{_relation_words(kind)} {target}" for _, target, kind in rows))


def _relation_words(kind: str) -> str:
    return " ".join(kind.replace("_", " ").split())


def _relation(work: Work, one: int, other: int, key: str) -> int | None:
    row = work.db.execute(
        "SELECT id FROM relations WHERE entity = ? AND target = ? AND key = ? AND valid_to IS NULL", (one, other, key)
    ).fetchone()
    return int(row[0]) if row else None


def _put_preference(work: Work, edit: PutPreference) -> Noted:
    key = work.text(edit.key, LONGEST_TYPE, "key")
    value = work.text(edit.value, LONGEST_TEXT, "value")
    work.screened(f"{key}: {value}", by_hand=True)
    row = work.db.execute("SELECT id, value FROM preferences WHERE scope = ? AND key = ?", (work.scope, key)).fetchone()
    if row is None:
        work.room("SELECT count(*) FROM preferences WHERE scope = ?", MOST_PREFERENCES, "preferences")
        work.insert("preferences", scope=work.scope, key=key, value=value, at=work.now)
    elif row[1] == value:
        return Noted(f"{key}: {value}", "known")
    else:
        work.update("preferences", row[0], value=value, at=work.now)
        work.breaks = True
    return Noted(f"{key}: {value}", "noted", (f"{key}: {row[1]}",) if row else ())


# Dropping --------------------------------------------------------------------------------------------------------


def _drop_entity(work: Work, edit: DropEntity) -> Noted:
    entity = work.entity(edit.name)
    if entity is None:
        return Noted(tidy(edit.name), "missing")
    stored = work.find("entities", entity)
    for table, columns in (("observations", ("entity",)), ("relations", ("entity", "target"))):
        of_it = " OR ".join(f"{column} = ?" for column in columns)
        for (number,) in work.db.execute(f"SELECT id FROM {table} WHERE {of_it}", (entity,) * len(columns)).fetchall():
            work.delete(table, number)
    work.delete("entities", entity)
    return Noted(stored["name"] if stored else tidy(edit.name), "removed")


def _drop_fact(work: Work, edit: DropFact) -> Noted:
    """An observation, and the same words where they hold no longer."""
    entity = work.entity(edit.entity)
    sql = "SELECT id FROM observations WHERE entity = ? AND key = ?"
    found = work.db.execute(sql, (entity, text_key(tidy(edit.text)))).fetchall()
    for (number,) in found:
        work.delete("observations", number)
    return Noted(f"{tidy(edit.entity)}: {tidy(edit.text)}", "removed" if found else "missing")


def _drop_relation(work: Work, edit: DropRelation) -> Noted:
    one, other = work.entity(edit.entity), work.entity(edit.target)
    words = _relation_words(tidy(edit.type))
    sql = "SELECT id FROM relations WHERE entity = ? AND target = ? AND key = ?"
    found = work.db.execute(sql, (one, other, text_key(words))).fetchall()
    for (number,) in found:
        work.delete("relations", number)
    return Noted(f"{tidy(edit.entity)} {words} {tidy(edit.target)}", "removed" if found else "missing")


def _drop_preference(work: Work, edit: DropPreference) -> Noted:
    row = work.db.execute("SELECT id FROM preferences WHERE scope = ? AND key = ?", (work.scope, tidy(edit.key))).fetchone()
    if row is None:
        return Noted(tidy(edit.key), "missing")
    work.delete("preferences", row[0])
    return Noted(tidy(edit.key), "removed")


def _drop_all(work: Work, edit: DropAll) -> Noted:
    names = work.db.execute("SELECT name FROM entities WHERE scope = ? ORDER BY id", (work.scope,)).fetchall()
    keys = work.db.execute("SELECT key FROM preferences WHERE scope = ? ORDER BY id", (work.scope,)).fetchall()
    for (name,) in names:
        _drop_entity(work, DropEntity(name))
    for (key,) in keys:
        _drop_preference(work, DropPreference(key))
    return Noted("everything", "removed" if names or keys else "missing")


_HOW: dict[type, Callable[[Work, Any], Noted]] = {
    PutEntity: _put_entity,
    PutFact: _put_fact,
    PutRelation: _put_relation,
    PutPreference: _put_preference,
    DropEntity: _drop_entity,
    DropFact: _drop_fact,
    DropRelation: _drop_relation,
    DropPreference: _drop_preference,
    DropAll: _drop_all,
}
