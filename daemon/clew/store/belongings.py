"""What belongs to a person: everything of their own chats, their lines in groups, and what is known of them."""

import json
from typing import Any

from clew.errors import NotFound
from clew.store.connection import Connection

PAGE = 2_000
"""Rows that are read at once."""

OWN = (
    "direct = 1 AND (person = :person OR (person IS NULL AND (former = :person"
    " OR id IN (SELECT chat FROM messages WHERE sender = :person))))"
)
"""That a row of `chats` is a person's own chat; one that is nobody's any more is whose it was, or whose words stand in it."""
_OWN = f"SELECT id FROM chats WHERE {OWN}"
_THEIRS = f"SELECT id FROM messages WHERE sender = :person OR chat IN ({_OWN})"
_SCOPES = (
    "SELECT id FROM {} WHERE scope IN ('user:' || :person, 'cross:' || :person) OR scope IN"
    f" (SELECT 'project:' || address FROM chats WHERE {OWN})"
)
PARTS = {
    "person": "SELECT id, role, name, timezone, origin, created FROM people WHERE id = :person",
    "identities": "SELECT identity, origin, created, seen FROM identities WHERE person = :person ORDER BY identity",
    "logins": "SELECT how, agent, created, seen, expires FROM logins WHERE person = :person ORDER BY created",
    "requests": "SELECT r.* FROM access_requests AS r JOIN identities AS i ON i.identity = r.identity WHERE i.person = :person"
    " ORDER BY r.identity",
    "chats": f"SELECT address, direct, created FROM chats WHERE {OWN}"
    " UNION ALL SELECT address, direct, joined FROM chat_members AS c JOIN chats ON chats.id = c.chat WHERE c.person = :person"
    " ORDER BY 1, 3",
    "threads": f"SELECT id, title, created, run FROM sessions WHERE chat IN ({_OWN}) ORDER BY created, id",
    "messages": "SELECT m.id, m.session, m.seq, c.address, m.role, m.blocks, m.sender, m.sender_name, m.metadata, m.at,"
    " (SELECT reason FROM retractions WHERE message = m.id) AS taken_back FROM messages AS m JOIN chats AS c ON c.id = m.chat"
    f" WHERE m.sender = :person OR m.chat IN ({_OWN}) ORDER BY m.number",
    "summaries": "SELECT c.id, c.session, c.from_seq, c.to_seq, c.text, c.created, c.undone_at FROM compactions AS c"
    f" JOIN sessions AS s ON s.id = c.session WHERE s.chat IN ({_OWN}) ORDER BY c.created, c.id",
    "pins": f"SELECT session, message, by, at FROM pins WHERE by = :person OR session IN (SELECT id FROM sessions WHERE chat IN ({_OWN}))"
    " ORDER BY session, message",
    "preferences": f"SELECT s.scope, key, value, at FROM preferences AS p JOIN note_scopes AS s ON s.id = p.scope"
    f" WHERE p.scope IN ({_SCOPES.format('note_scopes')}) ORDER BY 1, 2",
    "notes": "SELECT s.scope, e.name, e.type, o.text, o.valid_from, o.valid_to, o.expires, o.source, o.speaker FROM observations AS o"
    " JOIN entities AS e ON e.id = o.entity JOIN note_scopes AS s ON s.id = e.scope"
    f" WHERE e.scope IN ({_SCOPES.format('note_scopes')}) OR o.source IN ({_THEIRS}) ORDER BY o.id",
    "relations": "SELECT s.scope, e.name, r.type, t.name AS target, r.valid_from, r.valid_to, r.source, r.speaker FROM relations AS r"
    " JOIN entities AS e ON e.id = r.entity JOIN entities AS t ON t.id = r.target JOIN note_scopes AS s ON s.id = e.scope"
    f" WHERE e.scope IN ({_SCOPES.format('note_scopes')}) OR r.source IN ({_THEIRS}) ORDER BY r.id",
    "documents": f"SELECT id, source, name, title, added FROM documents WHERE ready = 1 AND scope IN ({_SCOPES.format('document_scopes')})"
    " ORDER BY number",
    "jobs": "SELECT name, origin, spec, enabled, next_at, created FROM jobs WHERE person = :person ORDER BY name",
    "approvals": "SELECT tool, arguments, state, how, asked, answered FROM approvals WHERE person = :person OR behalf = :person"
    " ORDER BY asked",
    "standing": "SELECT c.address, s.tool, s.by, s.at FROM standing_approvals AS s JOIN chats AS c ON c.id = s.chat"
    " WHERE s.person = :person ORDER BY 1, 2",
    "usage": "SELECT purpose, session, provider, model, input, output, cache_read, cache_write, cost, started FROM model_calls"
    " WHERE payer = :person ORDER BY started, id",
    "spending": "SELECT period, calls, input, output, cache_read, cache_write, micros, unpriced FROM spending"
    " WHERE kind = 'person' AND subject = :person ORDER BY period",
    "deliveries": "SELECT address, text, state, created, settled FROM outbox WHERE address IN"
    f" (SELECT address FROM chats WHERE {OWN}) ORDER BY number",
    "files": f"SELECT message, name, mime, size, hash, at FROM attachments WHERE hash != '' AND (message IN ({_THEIRS})"
    f" OR address IN (SELECT address FROM chats WHERE {OWN})) ORDER BY number",
}
"""What is read of a person, by the name of its part. A group gives their own lines alone, not what others said."""
_JSON = frozenset({"blocks", "metadata", "spec", "arguments"})


def check(db: Connection, person: str) -> None:
    """Raises NotFound where nothing here is theirs."""
    row = db.execute(
        "SELECT 1 FROM people WHERE id = :person UNION ALL SELECT 1 FROM chats WHERE person = :person"
        " UNION ALL SELECT 1 FROM messages WHERE sender = :person LIMIT 1",
        {"person": person},
    ).fetchone()
    if row is None:
        raise NotFound(f"Nobody is known as {person[:60]!r}.", hint="An id is meant: `clew access people` lists them.")


def counts(db: Connection, person: str) -> dict[str, int]:
    """How many rows each part has that has some."""
    check(db, person)
    found = {name: db.execute(f"SELECT count(*) FROM ({sql}) AS part", {"person": person}).fetchone()[0] for name, sql in PARTS.items()}
    return {name: count for name, count in found.items() if count}


def page(db: Connection, person: str, part: str, offset: int) -> list[dict[str, Any]]:
    """Some rows of a part, as plain values."""
    found = db.execute(f"{PARTS[part]} LIMIT :page OFFSET :offset", {"person": person, "page": PAGE, "offset": offset})
    names = [column[0] for column in found.description]
    return [{name: _value(name, value) for name, value in zip(names, row, strict=True)} for row in found]


def _value(name: str, value: Any) -> Any:
    if name not in _JSON or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
