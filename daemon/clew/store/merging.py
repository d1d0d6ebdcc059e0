"""Two people who are one: somebody who was let in by an account that is somebody else's now, by the owner's word or the config's."""

from collections.abc import Iterable, Mapping

from clew.store import Person, spending
from clew.store.connection import Connection
from clew.store.documents import verbs as documents
from clew.store.notes import scopes


def merge(db: Connection, former: str, person: str) -> None:
    """All that is `former`'s is `person`'s: chats, jobs, accounts, what waits, notes where `person` has none. Yeses for good end."""
    for table in ("chats", "jobs", "inbox", "identities"):
        db.execute(f"UPDATE {table} SET person = ? WHERE person = ?", (person, former))
    db.execute(
        "UPDATE chat_members SET person = ?1 WHERE person = ?2 AND NOT EXISTS (SELECT 1 FROM chat_members AS theirs"
        " WHERE theirs.person = ?1 AND theirs.chat = chat_members.chat AND theirs.joined = chat_members.joined)",
        (person, former),
    )
    db.execute("DELETE FROM standing_approvals WHERE person = ? OR by = ?", (former, former))
    scopes.hand_over(db, former, person)
    documents.hand_over(db, former, person)
    spending.hand_over(db, former, person)
    db.execute("DELETE FROM people WHERE id = ?", (former,))


def renamed(db: Connection, people: Mapping[str, Person]) -> list[tuple[str, Person]]:
    """(somebody whom the config named, who they are by it now): all their accounts are those of one person who is new in it."""
    found = []
    for (gone,) in db.execute("SELECT id FROM people WHERE origin = 'config'").fetchall():
        accounts = {
            identity for (identity,) in db.execute("SELECT identity FROM identities WHERE person = ? AND origin = 'config'", (gone,))
        }
        new = [each for each in people.values() if accounts and accounts <= set(each.identities)]
        if gone not in people and new and not db.execute("SELECT 1 FROM people WHERE id = ?", (new[0].id,)).fetchone():
            found.append((gone, new[0]))
    return found


def claimed(db: Connection, people: Iterable[Person]) -> list[tuple[str, str]]:
    """(who was let in by an account, whose it is by the config), of those who are not the same yet."""
    found = []
    for person in people:
        for identity in person.identities:
            row = db.execute("SELECT 1 FROM people WHERE id = ? AND origin = 'paired'", (identity,)).fetchone()
            if row is not None and identity != person.id:
                found.append((identity, person.id))
    return found
