"""Browsers that are logged in, and links that log one in: good for minutes and one use."""

from base64 import b32encode
from hashlib import blake2b

from clew.clock import new_id
from clew.store import Login, LoginLink, NewLogin, Visitor
from clew.store.connection import Connection

LINK_LASTS = 600.0
"""Seconds for which a link is good."""
MOST, MOST_LINKS = 50, 3
"""Logins and open links of one person; the oldest goes first."""
SEEN_AGAIN = 3600.0
HERE = "web:local"


def offer(db: Connection, link: LoginLink, now: float) -> None:
    """Give out a link."""
    db.execute("DELETE FROM login_links WHERE expires <= ?", (now,))
    db.execute("INSERT INTO login_links (hash, person, expires) VALUES (?, ?, ?)", (link.hash, link.person, link.expires))
    db.execute(
        "DELETE FROM login_links WHERE person = :person AND hash NOT IN"
        " (SELECT hash FROM login_links WHERE person = :person ORDER BY expires DESC LIMIT :most)",
        {"person": link.person, "most": MOST_LINKS},
    )


def redeem(db: Connection, link: str, new: NewLogin, now: float) -> str | None:
    """Begin a login by a link, whose hash this is: the person's name. None: it was used, has expired, or never was; or they may not."""
    row = db.execute(
        "DELETE FROM login_links WHERE hash = ? AND expires > ? AND expires <= ? RETURNING person", (link, now, now + LINK_LASTS)
    ).fetchone()
    person = row and db.execute("SELECT id, coalesce(nullif(name, ''), id) FROM people WHERE id = ? AND role <> 'guest'", row).fetchone()
    if not person:
        return None
    begin(db, person[0], new, now)
    return str(person[1])


def begin(db: Connection, person: str, new: NewLogin, now: float) -> None:
    """Log a browser in. The page becomes an account of the person's."""
    db.execute("DELETE FROM logins WHERE expires <= ?", (now,))
    db.execute(
        "INSERT INTO logins (id, hash, mark, person, how, agent, created, seen, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (new_id(), new.hash, new.mark, person, new.how, new.agent, now, now, new.expires),
    )
    db.execute(
        "DELETE FROM logins WHERE person = :person AND id NOT IN"
        " (SELECT id FROM logins WHERE person = :person ORDER BY created DESC, id LIMIT :most)",
        {"person": person, "most": MOST},
    )
    db.execute(
        "INSERT INTO identities (identity, person, origin, created) SELECT ?, id, 'linked', ? FROM people WHERE id = ?"
        " AND NOT EXISTS (SELECT 1 FROM identities WHERE identity = ? AND person = people.id) ON CONFLICT (identity) DO NOTHING",
        (f"web:{page_name(person)}", now, person, HERE),
    )


def visitor(db: Connection, digest: str, now: float) -> Visitor | None:
    """Whoever is behind what a browser keeps. None where no login holds, or its person may have none any more."""
    row = db.execute(
        "SELECT logins.id, people.id, coalesce(nullif(name, ''), people.id), role, mark, seen,"
        " EXISTS (SELECT 1 FROM identities WHERE identity = ? AND identities.person = people.id)"
        " FROM logins JOIN people ON people.id = logins.person WHERE hash = ? AND expires > ? AND logins.created <= ? AND role <> 'guest'",
        (HERE, digest, now, now + SEEN_AGAIN),  # a clock that was put far back makes no login last longer
    ).fetchone()
    return Visitor(*row) if row else None


def seen(db: Connection, login: str, now: float) -> None:
    db.execute("UPDATE logins SET seen = ? WHERE id = ?", (now, login))


def listing(db: Connection, now: float) -> list[Login]:
    """Browsers that are logged in, the one seen last first."""
    rows = db.execute(
        "SELECT logins.id, person, coalesce(nullif(name, ''), person), how, agent, logins.created, seen, expires FROM logins"
        " JOIN people ON people.id = person WHERE expires > ? ORDER BY seen DESC, logins.id",
        (now,),
    )
    return [Login(*row) for row in rows]


def end(db: Connection, *, login: str | None = None, person: str | None = None) -> int:
    """End a login, or all of a person's with their open links; all there are where neither is named. Returns how many logins."""
    if login is None:
        db.execute("DELETE FROM login_links WHERE person = coalesce(:person, person)", {"person": person})
    gone = db.execute(
        "DELETE FROM logins WHERE id = coalesce(:login, id) AND person = coalesce(:person, person)",
        {"login": login, "person": person},
    )
    return gone.rowcount


def page_name(person: str) -> str:
    """The name of the page of somebody who is not this machine's owner. No chat that is named in an address has a `~`."""
    return f"~{b32encode(blake2b(person.encode('utf-8', 'surrogatepass'), digest_size=10).digest()).decode().lower()}"
