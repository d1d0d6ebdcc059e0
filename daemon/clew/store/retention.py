"""How long what was said is kept, where the config says so: what is older is forgotten, in slices."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import tzinfo

from clew.config import Sessions
from clew.store import forgetting, sessions
from clew.store.connection import Connection
from clew.store.places import first_place, last_place

ROWS = 200
"""Messages that one slice forgets."""
_RUNS = "SELECT session FROM turns WHERE state IN ('running', 'waiting')"
_OLD = (
    "FROM places AS p CROSS JOIN messages AS m WHERE m.number = p.message AND p.place BETWEEN :first AND :last AND m.at < :before"
    " AND m.blocks != '[]' AND m.id NOT IN (SELECT message FROM pins)"
)
"""Messages of a chat that are older than they may be. What is pinned is kept: somebody said so."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How long a chat's words are kept: seconds, None for ever. rule: the key of the config that says so. due: messages that are older;
    pinned: those that are kept all the same."""

    address: str
    person: str | None
    seconds: float | None
    rule: str
    due: int = 0
    pinned: int = 0


@dataclass(frozen=True, slots=True)
class Gone:
    """What a slice took away."""

    messages: int = 0
    threads: int = 0


def rule(settings: Sessions, address: str, person: str | None) -> tuple[float | None, str]:
    """(seconds or None for ever, the key that says so) for a chat: what is said of the chat, else of its whole place where it is a thread,
    else of the person whose direct chat it is, else of its transport, else of all."""
    place, transport = address.partition("/")[0], address.partition(":")[0]
    for name, rules, key in (
        ("chats", settings.chats, address),
        ("chats", settings.chats, place),
        ("people", settings.people, person or ""),
        ("transports", settings.transports, transport),
    ):
        if key in rules:
            found = rules[key]
            return (None if found == "forever" else found), f"sessions.{name}.{key}"
    return (None if settings.retention == "forever" else settings.retention), "sessions.retention"


def anything(settings: Sessions) -> bool:
    """Whether anything is not kept for ever."""
    rules = (settings.retention, *settings.chats.values(), *settings.people.values(), *settings.transports.values())
    return any(each != "forever" for each in rules)


def listing(db: Connection, settings: Sessions, now: float) -> list[Kept]:
    """Each chat with its rule, and what is due."""
    found = []
    for number, address, person in _chats(db):
        seconds, key = rule(settings, address, person)
        due = pinned = 0
        if seconds is not None:
            values = _values(number, now - seconds)
            due = db.execute(f"SELECT count(*) {_OLD}", values).fetchone()[0]
            pinned = db.execute(
                "SELECT count(*) FROM messages WHERE chat = :chat AND at < :before AND id IN (SELECT message FROM pins)", values
            ).fetchone()[0]
        found.append(Kept(address, person, seconds, key, due, pinned))
    return found


def _chats(db: Connection) -> list[tuple[int, str, str | None]]:
    return db.execute("SELECT id, address, person FROM chats WHERE transport != 'erased' ORDER BY address").fetchall()


def _values(chat: int, before: float) -> dict[str, float]:
    return {"chat": chat, "first": first_place(chat), "last": last_place(chat), "before": before}


def step(db: Connection, settings: Sessions, zone: tzinfo, known: Collection[str], now: float) -> Gone:
    """Forget some of what is older than it may be; nothing under a turn that runs. zone: of the dates in summaries."""
    for number, address, person in _chats(db):
        seconds, _ = rule(settings, address, person)
        if seconds is not None and (gone := _step(db, number, address, now - seconds, zone, known, now)) != Gone():
            return gone
    return Gone()


def _step(db: Connection, chat: int, address: str, before: float, zone: tzinfo, known: Collection[str], now: float) -> Gone:
    rows = db.execute(
        f"SELECT m.session, m.id {_OLD} AND m.session NOT IN ({_RUNS}) ORDER BY p.place LIMIT {ROWS}", _values(chat, before)
    ).fetchall()
    by_session: dict[str, list[str]] = {}
    for session, identifier in rows:
        by_session.setdefault(session, []).append(identifier)
    for session, ids in by_session.items():
        forgetting.take(db, session, ids, zone, known, now, notes_stay=True)
    threads = 0
    if not rows:
        _leave_rest(db, chat, address, before)
        threads = _leave_threads(db, chat, before)
    return Gone(len(rows), threads)


def _leave_rest(db: Connection, chat: int, address: str, before: float) -> None:
    """Commands and what was answered to them, which stand in no transcript."""
    db.execute(
        "UPDATE inbox SET text = '', context = '{}' WHERE chat = ? AND received < ? AND text != '' AND state NOT IN ('new', 'claimed')"
        " AND kind != 'message'",
        (chat, before),
    )
    db.execute("DELETE FROM outbox WHERE address = ? AND created < ? AND state IN ('sent', 'dead', 'unknown')", (address, before))


def _leave_threads(db: Connection, chat: int, before: float) -> int:
    """Threads of which nothing is left and that no chat goes on with."""
    rows = db.execute(
        f"SELECT s.id FROM sessions AS s WHERE s.chat = ? AND s.created < ? AND s.id NOT IN ({_RUNS})"
        " AND s.id NOT IN (SELECT session FROM chats WHERE session IS NOT NULL) AND s.id NOT IN (SELECT session FROM job_sessions)"
        " AND NOT EXISTS (SELECT 1 FROM messages WHERE session = s.id AND blocks != '[]') LIMIT 20",
        (chat, before),
    ).fetchall()
    for (session,) in rows:
        sessions.delete(db, session)
    return len(rows)
