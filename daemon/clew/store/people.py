"""People, their identities, and requests for access."""

import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from clew.clock import new_id
from clew.errors import NotFound, UsageError
from clew.store import AccessRequest, Person


def find(db: sqlite3.Connection, identity: str) -> tuple[str, str] | None:
    """(person, role) behind an identity."""
    row = db.execute(
        "SELECT people.id, people.role FROM identities JOIN people ON people.id = identities.person WHERE identity = ?",
        (identity,),
    ).fetchone()
    return (row[0], row[1]) if row else None


def person_at(db: sqlite3.Connection, identity: str, now: float, *, local: bool) -> str:
    """The person behind an identity. `local`: it is a user of this machine, who is the owner. Raises NotFound."""
    known = find(db, identity)
    if known is not None:
        return known[0]
    owner = db.execute("SELECT id FROM people WHERE role = 'owner' ORDER BY created, id LIMIT 1").fetchone()
    if not local or owner is None:
        raise NotFound(f"Nobody is known as {identity}.")
    db.execute("INSERT INTO identities (identity, person, origin, created) VALUES (?, ?, 'local', ?)", (identity, owner[0], now))
    return str(owner[0])


def get(db: sqlite3.Connection, person: str | None) -> Person | None:
    row = db.execute("SELECT id, role, timezone FROM people WHERE id = ?", (person,)).fetchone()
    if row is None:
        return None
    identities = db.execute("SELECT identity FROM identities WHERE person = ? ORDER BY identity", (person,))
    return Person(row[0], row[1], row[2], tuple(identity for (identity,) in identities))


def add(db: sqlite3.Connection, person: Person, origin: str, now: float) -> None:
    """Add somebody, or bring their role, zone and identities up to date. An identity that was another's is theirs now."""
    db.execute(
        "INSERT INTO people (id, role, timezone, origin, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
        " SET role = excluded.role, timezone = excluded.timezone, origin = excluded.origin",
        (person.id, person.role, person.timezone, origin, now),
    )
    for identity in person.identities:
        db.execute(
            "INSERT INTO identities (identity, person, origin, created) VALUES (?, ?, ?, ?) ON CONFLICT (identity) DO"
            " UPDATE SET person = excluded.person, origin = excluded.origin",
            (identity, person.id, origin, now),
        )
        db.execute(
            "UPDATE access_requests SET state = 'approved', answered = ? WHERE identity = ? AND state = 'open'",
            (now, identity),
        )


def sync(db: sqlite3.Connection, people: Mapping[str, Person], local: Person | None, now: float) -> None:
    """Make config-born people exactly `people`; add `local`, the owner of the machine, where no owner is configured."""
    known = [*people.values(), *([local] if local else [])]
    keep = {person.id for person in known}
    for (gone,) in db.execute("SELECT id FROM people WHERE origin IN ('config', 'local')").fetchall():
        if gone not in keep:
            db.execute("DELETE FROM people WHERE id = ?", (gone,))
    db.execute("DELETE FROM identities WHERE origin IN ('config', 'local')")
    for person in people.values():
        add(db, person, "config", now)
    if local:
        add(db, local, "local", now)
    _adopt_chats(db)


def _adopt_chats(db: sqlite3.Connection) -> None:
    """A direct chat belongs to whoever its address is an identity of."""
    db.execute(
        "UPDATE chats SET person = (SELECT person FROM identities WHERE identity ="
        " CASE WHEN instr(address, '/') THEN substr(address, 1, instr(address, '/') - 1) ELSE address END)"
        " WHERE direct = 1 AND person IS NULL"
    )


def owner_address(db: sqlite3.Connection) -> str | None:
    """The direct chat in which an owner was heard last."""
    found = owner_chat(db)
    return found[0] if found else None


def owner_chat(db: sqlite3.Connection) -> tuple[str, str] | None:
    """(address, person): the direct chat in which an owner was heard last."""
    row = db.execute(
        "SELECT chats.address, chats.person FROM chats JOIN people ON people.id = chats.person"
        " WHERE people.role = 'owner' AND chats.direct = 1"
        " ORDER BY (SELECT max(seq) FROM timeline WHERE timeline.address = chats.address) DESC LIMIT 1"
    ).fetchone()
    return (row[0], row[1]) if row else None


def requests(db: sqlite3.Connection, state: str | None = None) -> list[AccessRequest]:
    rows = db.execute(
        "SELECT identity, address, name, code, state, messages, created FROM access_requests WHERE ? IS NULL OR state = ? ORDER BY created",
        (state, state),
    )
    return [AccessRequest(*row) for row in rows]


def answer(db: sqlite3.Connection, key: str, approve: bool, role: str, now: float) -> AccessRequest:
    """Let somebody in (again, or in another role), or turn them away, by the code of their request or by their identity.

    Raises NotFound for a code that nobody was given, and UsageError for somebody whom the config names.
    """
    request = _request(db, key, now)
    known = db.execute("SELECT person, origin FROM identities WHERE identity = ?", (request.identity,)).fetchone()
    if known and known[1] != "paired":
        raise UsageError(f"{request.identity} is {known[0]} in the config.", hint="Change it there.")
    if approve:
        add(db, Person(request.identity, role, None, (request.identity,)), "paired", now)  # type: ignore[arg-type]  # checked by the table
    elif known:
        db.execute("DELETE FROM people WHERE id = ? AND origin = 'paired'", (known[0],))
    state = "approved" if approve else "denied"
    db.execute("UPDATE access_requests SET state = ?, answered = ? WHERE identity = ?", (state, now, request.identity))
    return replace(request, state=state)  # type: ignore[arg-type]  # one of its states


def _request(db: sqlite3.Connection, key: str, now: float) -> AccessRequest:
    """The request with this code or of this identity; an identity that never asked gets one."""
    row = db.execute(
        "SELECT identity, address, name, code, state, messages, created FROM access_requests WHERE code = ? OR identity = ?",
        (key.upper(), key),
    ).fetchone()
    if row is not None:
        return AccessRequest(*row)
    transport, colon, user = key.partition(":")
    if not (transport and colon and user):
        raise NotFound(f"Nobody was given the code {key}.", hint="`clew access list` shows who waits; an identity is transport:user.")
    db.execute(
        "INSERT INTO access_requests (identity, address, name, code, state, messages, created) VALUES (?, ?, '', ?, 'open', 0, ?)",
        (key, key, new_id(), now),
    )
    return AccessRequest(key, key, "", "", "open", 0, now)
