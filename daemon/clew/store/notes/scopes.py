"""Whose notes are whose. There is no way to a note but through a reach, and a reach is made of rows, never of what a model says."""

from collections.abc import Iterable, Mapping

from clew.context.notes import ScopeKind
from clew.errors import UsageError
from clew.store.connection import Connection
from clew.store.notes import Where

Reach = Mapping[ScopeKind, str]
"""The scopes that may be seen and changed, by their kind."""


def reach(db: Connection, where: Where) -> Reach:
    """What may be seen from a chat: its project's notes and, in somebody's direct chat, that person's own. Nothing where there is no chat.

    A chat that no project names is a project of its own, by its address; the name of a project holds for the threads of its chats too.
    """
    person, project = where.person, where.project
    if where.address is not None:
        row = db.execute("SELECT direct, person FROM chats WHERE address = ?", (where.address,)).fetchone()
        if row is None:
            return {}
        person, project = row[1] if row[0] else None, project_of(db, where.address)
    own: dict[ScopeKind, str] = {"user": f"user:{person}", "cross": f"cross:{person}"} if person else {}
    shared: dict[ScopeKind, str] = {"project": f"project:{project}"} if project else {}
    return {**own, **shared}


def project_of(db: Connection, address: str) -> str:
    """The project of the chat at an address."""
    row = db.execute(
        "SELECT name FROM projects WHERE address IN (?, ?) ORDER BY address = ? DESC LIMIT 1",
        (address, address.partition("/")[0], address),
    ).fetchone()
    return row[0] if row else address


def zone(db: Connection, where: Where) -> str | None:
    """The IANA name of the zone of the person whose own notes may be seen."""
    person = reach(db, where).get("user", "").partition(":")[2]
    row = db.execute("SELECT timezone FROM people WHERE id = ?", (person,)).fetchone()
    return row[0] if row else None


def sync_projects(db: Connection, projects: Mapping[str, str]) -> None:
    """Make the projects exactly those of the config: address → name."""
    db.execute("DELETE FROM projects")
    db.executemany("INSERT INTO projects (address, name) VALUES (?, ?)", projects.items())


def machines_owner(db: Connection) -> str | None:
    """The owner that was made up for this machine while none was configured."""
    row = db.execute("SELECT id FROM people WHERE origin = 'local'").fetchone()
    return row[0] if row else None


def hand_over(db: Connection, before: str | None, owner: str | None) -> None:
    """Give the notes of the machine's owner to the owner whom the config names now, unless these have notes of their own already."""
    if before is None or owner is None or before == owner:
        return
    for kind in ("user", "cross"):
        theirs = f"{kind}:{owner}"
        db.execute(
            "UPDATE note_scopes SET scope = ? WHERE scope = ? AND NOT EXISTS (SELECT 1 FROM note_scopes WHERE scope = ?)",
            (theirs, f"{kind}:{before}", theirs),
        )


def chosen(within: Reach, kind: ScopeKind | None) -> ScopeKind:
    """The kind of notes that is meant: the person's own where nothing else is said and there are such. Raises UsageError."""
    usual: tuple[ScopeKind, ...] = ("user", "project")
    meant = kind or next((each for each in usual if each in within), None)
    if meant is None or meant not in within:
        there = " and ".join(within) or "nothing"
        raise UsageError(f"There are no {meant or 'user'} notes here.", hint=f"What can be noted here: {there}.")
    return meant


def number(db: Connection, scope: str) -> int:
    """The number of a scope, which is made where it is new."""
    found = db.execute("SELECT id FROM note_scopes WHERE scope = ?", (scope,)).fetchone()
    made = found or db.execute("INSERT INTO note_scopes (scope) VALUES (?) RETURNING id", (scope,)).fetchone()
    return int(made[0])


def numbers(db: Connection, scopes: Iterable[str]) -> dict[str, int]:
    """The numbers of those scopes in which something was ever noted."""
    found = {}
    for scope in scopes:
        if row := db.execute("SELECT id FROM note_scopes WHERE scope = ?", (scope,)).fetchone():
            found[scope] = int(row[0])
    return found
