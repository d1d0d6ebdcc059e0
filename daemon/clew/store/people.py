"""People, their identities, and requests for access."""

from collections.abc import Mapping

from clew.errors import NotFound
from clew.store import Person
from clew.store.connection import Connection

SEEN_AGAIN = 3600.0
"""Seconds for which an account that wrote is not noted again."""


def find(db: Connection, identity: str) -> tuple[str, str] | None:
    """(person, role) behind an identity."""
    row = db.execute(
        "SELECT people.id, people.role FROM identities JOIN people ON people.id = identities.person WHERE identity = ?",
        (identity,),
    ).fetchone()
    return (row[0], row[1]) if row else None


def person_at(db: Connection, identity: str, now: float, *, local: bool) -> str:
    """The person behind an identity. `local`: it is a user of this machine, who is the owner. Raises NotFound."""
    known = find(db, identity)
    if known is not None:
        return known[0]
    owner = db.execute("SELECT id FROM people WHERE role = 'owner' ORDER BY created, id LIMIT 1").fetchone()
    if not local or owner is None:
        raise NotFound(f"Nobody is known as {identity}.")
    db.execute("INSERT INTO identities (identity, person, origin, created) VALUES (?, ?, 'local', ?)", (identity, owner[0], now))
    return str(owner[0])


def get(db: Connection, person: str | None) -> Person | None:
    rows = db.execute(
        "SELECT p.id, p.role, p.timezone, i.identity FROM people AS p LEFT JOIN identities AS i ON i.person = p.id WHERE p.id = ?"
        " ORDER BY i.identity",
        (person,),
    ).fetchall()
    if not rows:
        return None
    identifier, role, timezone, _ = rows[0]
    return Person(identifier, role, timezone, tuple(identity for *_, identity in rows if identity is not None))


def add(db: Connection, person: Person, origin: str, now: float) -> None:
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


def seen(db: Connection, identity: str, last: float | None, now: float) -> None:
    """Note that an account wrote. last: when it was noted before."""
    if last is None or not 0 <= now - last < SEEN_AGAIN:
        db.execute("UPDATE identities SET seen = ? WHERE identity = ?", (now, identity))


def sync(db: Connection, people: Mapping[str, Person], local: Person | None, now: float) -> None:
    """Make config-born people exactly `people`; add `local`, the owner of the machine, where no owner is configured."""
    known = [*people.values(), *([local] if local else [])]
    keep = {person.id for person in known}
    owner = local or next((person for person in people.values() if person.role == "owner"), None)
    if owner is not None:
        _hand_over(db, owner, now)
    for (gone,) in db.execute("SELECT id FROM people WHERE origin IN ('config', 'local')").fetchall():
        if gone not in keep:
            db.execute("DELETE FROM people WHERE id = ?", (gone,))
    last = dict(db.execute("SELECT identity, seen FROM identities WHERE seen IS NOT NULL AND origin IN ('config', 'local')").fetchall())
    db.execute("DELETE FROM identities WHERE origin IN ('config', 'local')")
    for person in people.values():
        add(db, person, "config", now)
    if local:
        add(db, local, "local", now)
    db.executemany("UPDATE identities SET seen = ? WHERE identity = ?", [(at, identity) for identity, at in last.items()])
    _adopt_chats(db)


def gone(db: Connection, people: Mapping[str, Person]) -> list[str]:
    """Whom the config named and names no more."""
    return [person for (person,) in db.execute("SELECT id FROM people WHERE origin = 'config'").fetchall() if person not in people]


def _hand_over(db: Connection, owner: Person, now: float) -> None:
    """Linked accounts, chats and jobs of the owner made up for this machine are the named owner's, as soon as one is named."""
    row = db.execute("SELECT id FROM people WHERE origin = 'local' AND id <> ?", (owner.id,)).fetchone()
    if row is not None:
        add(db, Person(owner.id, owner.role, owner.timezone), "config", now)
        db.execute("UPDATE identities SET person = ? WHERE person = ? AND origin = 'linked'", (owner.id, row[0]))
        for table in ("chats", "jobs", "inbox"):
            db.execute(f"UPDATE {table} SET person = ? WHERE person = ?", (owner.id, row[0]))


def is_another(db: Connection, identity: str, person: str, now: str | None, former: str | None) -> bool:
    """Whether a direct chat was somebody else's, who is `now` there or was before they went. Who takes over after whom is the config's to
    say, where somebody may just have another name."""
    if now is not None or former is None:
        return now not in (None, person)
    by_config = db.execute("SELECT 1 FROM identities WHERE identity = ? AND origin IN ('config', 'local')", (identity,)).fetchone()
    return former != person and by_config is None


def set_aside(db: Connection, chat: int, address: str) -> None:
    """Make room at a direct chat's address for whoever has its account now: what was said there stays with whoever said it, at one of
    its own. What was not sent yet is sent to nobody."""
    aside = f"{address}#{chat}"
    db.execute("UPDATE chats SET address = ?, former = coalesce(former, person) WHERE id = ?", (aside, chat))
    db.execute("DELETE FROM outbox WHERE address = ? AND state IN ('draft', 'pending', 'dead', 'unknown')", (address,))
    for table in ("outbox", "timeline", "attachments"):
        db.execute(f"UPDATE {table} SET address = ? WHERE address = ?", (aside, address))
    db.execute(
        "UPDATE note_scopes SET scope = ?1 WHERE scope = ?2 AND NOT EXISTS (SELECT 1 FROM note_scopes AS there WHERE there.scope = ?1)",
        (f"project:{aside}", f"project:{address}"),
    )


def _adopt_chats(db: Connection) -> None:
    """A direct chat belongs to whoever its address is an identity of by the config. Somebody who was let in again has their own again."""
    base = "CASE WHEN instr(address, '/') > 0 THEN substr(address, 1, instr(address, '/') - 1) ELSE address END"
    may = "(origin IN ('config', 'local') OR coalesce(former, person) = person)"
    whose = f"(SELECT person FROM identities WHERE identity = {base} AND {may})"
    db.execute(f"UPDATE chats SET person = {whose}, former = CASE WHEN {whose} IS NULL THEN former END WHERE direct = 1 AND person IS NULL")


def owner_address(db: Connection) -> str | None:
    """The direct chat in which an owner was heard last."""
    found = owner_chat(db)
    return found[0] if found else None


def owner_chat(db: Connection) -> tuple[str, str] | None:
    """(address, person): the direct chat in which an owner was heard last, by an account that is still theirs."""
    row = db.execute(
        "SELECT chats.address, chats.person FROM chats JOIN people ON people.id = chats.person"
        " WHERE people.role = 'owner' AND chats.direct = 1 AND chats.former IS NULL"
        " ORDER BY (SELECT max(seq) FROM timeline WHERE timeline.address = chats.address) DESC NULLS LAST LIMIT 1"
    ).fetchone()
    return (row[0], row[1]) if row else None
