"""Reading notes: what stands in a prompt, what is looked up, what is listed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from clew.context.naming import name_key
from clew.context.notes import Entity, Fact, Notes, Preference, ScopeKind
from clew.store import PromptState
from clew.store.connection import Connection
from clew.store.notes import Kept, Standing, Where, index, scopes, still_stands

SHOWN_FACTS = 300
"""Facts that are considered for a prompt, the newest."""
SHOWN_NAMES = 200
_AMONG = "IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
_HOLDS = "valid_to IS NULL AND coalesce(expires, 9e18) > ?"
_SCOPES_AT = (
    "SELECT s.scope, s.version, s.breaks FROM note_scopes AS s, (SELECT direct, person, coalesce("
    "(SELECT name FROM projects WHERE projects.address = chats.address),"
    " (SELECT name FROM projects WHERE projects.address = ?), chats.address) AS project FROM chats WHERE chats.address = ?) AS c"
    " WHERE s.scope = 'project:' || c.project OR (c.direct = 1 AND s.scope IN ('user:' || c.person, 'cross:' || c.person)) ORDER BY s.scope"
)
"""The scopes that a chat sees, as `scopes.reach` has them, in one statement: this is asked for every turn."""


def standing(db: Connection, address: str, state: PromptState, now: float) -> Standing:
    """What is known at an address; the notes are read only where the session's prompt shows what may not stay."""
    rows = db.execute(_SCOPES_AT, (address.partition("/")[0], address)).fetchall()
    return _standing(db, rows, state, now)


def standing_for(db: Connection, where: Where, now: float) -> Standing:
    """What is known there, whatever any prompt shows."""
    rows = []
    for scope in sorted(scopes.reach(db, where).values()):
        rows += db.execute("SELECT scope, version, breaks FROM note_scopes WHERE scope = ?", (scope,)).fetchall()
    return _standing(db, rows, None, now)


def _standing(db: Connection, rows: Sequence[tuple[str, int, int]], state: PromptState | None, now: float) -> Standing:
    if not rows:
        return Standing(notes=None if state and not state.notes_key else Notes())
    breaks = {scope: count for scope, _, count in rows}
    version = sum(version for _, version, _ in rows)
    expired = state and state.notes_until is not None and now >= state.notes_until
    if state and state.notes_key and not expired and still_stands(state.notes_key, breaks):
        return Standing(breaks, version)
    kinds = {scopes.number(db, scope): _kind(scope) for scope in breaks}
    return Standing(breaks, version, _for_prompt(db, kinds, now))


def _kind(scope: str) -> ScopeKind:
    return scope.partition(":")[0]  # type: ignore[return-value]  # one of them


def _for_prompt(db: Connection, kinds: Mapping[int, ScopeKind], now: float) -> Notes:
    within = json.dumps(sorted(kinds))
    facts = db.readable(
        f"SELECT entity, text, '', valid_from, expires FROM observations WHERE {_HOLDS}"
        f" AND entity IN (SELECT id FROM entities WHERE scope {_AMONG})"
        " UNION ALL SELECT r.entity, r.type, t.name, r.valid_from, NULL FROM relations AS r JOIN entities AS t ON t.id = r.target"
        f" WHERE r.valid_to IS NULL AND r.entity IN (SELECT id FROM entities WHERE scope {_AMONG})"
        " ORDER BY valid_from DESC, entity, text LIMIT ?",
        now,
        within,
        within,
        SHOWN_FACTS,
    )
    of: dict[int, list[Fact]] = {}
    for entity, text, target, since, expires in facts:
        of.setdefault(entity, []).append(Fact("", text, since, target, expires=expires))
    newest = db.execute(
        f"SELECT id FROM entities WHERE scope {_AMONG} ORDER BY id DESC LIMIT ?",
        (within, SHOWN_NAMES),
    )
    wanted = list(dict.fromkeys([*of, *(identifier for (identifier,) in newest)]))
    return Notes(_preferences(db, kinds), tuple(_entity(row, kinds, of.get(row[0], [])) for row in _named(db, within, wanted)))


def _named(db: Connection, within: str, wanted: Sequence[int]) -> list[Any]:
    """Rows of these entities, of these scopes only, in the order in which they are wanted."""
    rows = db.readable(
        f"SELECT id, scope, name, type, created FROM entities WHERE id {_AMONG} AND scope {_AMONG}",
        json.dumps(wanted),
        within,
    )
    found = {row[0]: row for row in rows}
    return [found[each] for each in wanted if each in found]


def _entity(row: Sequence[Any], kinds: Mapping[int, ScopeKind], facts: Sequence[Fact]) -> Entity:
    _, scope, name, kind, created = row
    return Entity(kinds[scope], name, kind, tuple(facts), created)


def _preferences(db: Connection, kinds: Mapping[int, ScopeKind]) -> tuple[Preference, ...]:
    rows = db.readable(
        f"SELECT scope, key, value, at FROM preferences WHERE scope {_AMONG} ORDER BY key, scope",
        json.dumps(sorted(kinds)),
    )
    return tuple(Preference(kinds[scope], key, value, at) for scope, key, value, at in rows)


# Looking up ------------------------------------------------------------------------------------------------------


def listing(db: Connection, where: Where, kind: ScopeKind | None, now: float) -> Notes:
    """All notes of one kind, or of all that may be seen: the entities noted first at the beginning, with all of their facts."""
    kinds = _seen(db, where, kind)
    within = json.dumps(sorted(kinds))
    rows = db.execute(f"SELECT id FROM entities WHERE scope {_AMONG} ORDER BY scope, id", (within,))
    return Notes(_preferences(db, kinds), _whole(db, kinds, [identifier for (identifier,) in rows], now))


def kept(db: Connection) -> list[Kept]:
    """Every scope in which something was ever noted, by name."""
    counted = ", ".join(f"(SELECT count(*) FROM {table} WHERE scope = s.id)" for table in ("preferences", "entities", "note_changes"))
    rows = db.execute(f"SELECT s.scope, {counted} FROM note_scopes AS s ORDER BY s.scope").fetchall()
    return [Kept(_kind(scope), scope.partition(":")[2], *counts) for scope, *counts in rows]


def search(db: Connection, where: Where, query: str, limit: int, now: float) -> tuple[Entity, ...]:
    """What a query asks for, best first, with all facts."""
    kinds = _seen(db, where, None)
    return _whole(db, kinds, index.search(db, kinds, query, limit), now)


def opened(db: Connection, where: Where, names: Sequence[str], now: float) -> tuple[Entity, ...]:
    """The entities with these names, in every scope that may be seen."""
    kinds = _seen(db, where, None)
    rows = db.execute(
        f"SELECT id FROM entities WHERE scope {_AMONG} AND key IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(sorted(kinds)), json.dumps([name_key(name) for name in names], ensure_ascii=False)),
    )
    return _whole(db, kinds, [identifier for (identifier,) in rows], now)


def preference(db: Connection, where: Where, kind: ScopeKind, key: str) -> Preference | None:
    return next((each for each in _preferences(db, _seen(db, where, kind)) if each.key == key), None)


def _seen(db: Connection, where: Where, kind: ScopeKind | None) -> dict[int, ScopeKind]:
    """The scopes that are meant, of those that may be seen. Raises UsageError where there is none of that kind."""
    within = scopes.reach(db, where)
    meant = within if kind is None else {kind: within[scopes.chosen(within, kind)]}
    found = scopes.numbers(db, meant.values())
    return {found[scope]: each for each, scope in meant.items() if scope in found}


def _whole(db: Connection, kinds: Mapping[int, ScopeKind], wanted: Sequence[int], now: float) -> tuple[Entity, ...]:
    """Entities with all of their facts, the oldest first; relations to them too."""
    rows = _named(db, json.dumps(sorted(kinds)), wanted)
    chosen = json.dumps([row[0] for row in rows])
    facts: dict[int, list[Fact]] = {row[0]: [] for row in rows}
    observations = db.readable(
        "SELECT entity, text, valid_from, valid_to, expires, coalesce(source, ''), speaker FROM observations"
        f" WHERE entity {_AMONG} ORDER BY valid_from, id",
        chosen,
    )
    for entity, text, since, until, expires, source, speaker in observations:
        ended = expires if until is None and expires is not None and expires <= now else until
        facts[entity].append(Fact("", text, since, "", ended, expires, source, speaker))
    relations = db.readable(
        "SELECT r.entity, e.name, r.target, t.name, r.type, r.valid_from, r.valid_to, coalesce(r.source, ''), r.speaker"
        " FROM relations AS r JOIN entities AS e ON e.id = r.entity JOIN entities AS t ON t.id = r.target"
        f" WHERE r.entity {_AMONG} OR r.target {_AMONG} ORDER BY r.valid_from, r.id",
        chosen,
        chosen,
    )
    for one, name, other, target, kind, since, until, source, speaker in relations:
        for entity in {one, other} & facts.keys():
            facts[entity].append(Fact(name, kind, since, target, until, None, source, speaker))
    return tuple(_entity(row, kinds, facts[row[0]]) for row in rows)
