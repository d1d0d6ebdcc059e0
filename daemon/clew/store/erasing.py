"""Everything of a person erased, in slices: each is one transaction that takes up where the last one ended, over restarts too.

First their lines in groups, with what was answered to them, then the threads of their own chats, then what is known of them.
"""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Literal

from clew.clock import new_id
from clew.errors import NotFound, UsageError
from clew.store import cleaning, erased, forgetting, sessions, transcript
from clew.store.belongings import OWN
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.notes import forgetting as notes
from clew.store.notes import index as notes_index

SCAN = 5_000
"""Rows of the transcript that one slice looks through for lines of a person."""
LINES, ROWS, SMALL = 50, 200, 1_000
"""Lines in groups, rows of a thread, and rows in the inbox and outbox that one slice erases."""
_IN = "(SELECT value FROM json_each(?))"
_NUMBERS = "(SELECT CAST(value AS BIGINT) FROM json_each(?))"

State = Literal["going", "busy", "cleared"]
"""Of an erasure after a slice: there is more to do; a turn runs in what is to go; nothing is left in the tables."""


@dataclass(slots=True)
class Erasure:
    """An erasure that goes on. keys, counts: as in its row."""

    id: str
    what: Literal["person", "session", "messages"]
    keys: dict[str, Any]
    counts: Counter[str]
    begun: float
    done: float | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What a slice works with. zone: of the dates in summaries; known: secrets of this installation; now: seconds since the epoch."""

    zone: tzinfo
    known: Collection[str]
    now: float = field(default=0.0)


def begin(db: Connection, person: str, now: float) -> Erasure:
    """Begin to erase a person: what of theirs waits is answered no more. Raises NotFound, or UsageError while they are being answered."""
    keys = _keys(db, person)
    going = next((each for each in pending(db) if each.keys.get("person") == person), None)
    if going is not None:
        return going
    if _answered(db, keys):
        raise UsageError(f"{person} is being answered just now.", hint="Wait for the reply, or write /stop in that chat, then try again.")
    identifier = new_id()
    keys |= {"digests": [erased.digest(identifier, name) for name in (person, *keys["identities"])]}
    erasure = Erasure(identifier, "person", keys, Counter(), now)
    db.execute(
        "INSERT INTO erasures (id, what, keys, begun) VALUES (?, 'person', ?, ?)", (identifier, json.dumps(keys, ensure_ascii=False), now)
    )
    db.execute("UPDATE inbox SET state = 'refused', reason = 'erased', text = '' WHERE person = ? AND state = 'new'", (person,))
    return erasure


def _keys(db: Connection, person: str) -> dict[str, Any]:
    identities = [each for (each,) in db.execute("SELECT identity FROM identities WHERE person = ? ORDER BY identity", (person,))]
    chats = db.execute(f"SELECT id, address FROM chats WHERE {OWN} ORDER BY id", {"person": person}).fetchall()
    known = db.execute("SELECT 1 FROM people WHERE id = ?", (person,)).fetchone()
    if not (known or chats or db.execute("SELECT 1 FROM messages WHERE sender = ? LIMIT 1", (person,)).fetchone()):
        raise NotFound(f"Nobody is known as {person[:60]!r}.", hint="An id is meant: `clew access people` lists them.")
    return {
        "person": person,
        "identities": identities,
        "chats": [number for number, _ in chats],
        "addresses": [address for _, address in chats],
        "stage": "lines",
        "after": 0,
    }


def _answered(db: Connection, keys: dict[str, Any]) -> bool:
    row = db.execute(
        "SELECT 1 FROM turns WHERE state IN ('running', 'waiting')"
        f" AND (chat IN {_NUMBERS} OR id IN (SELECT turn FROM inbox WHERE person = ?))",
        (json.dumps(keys["chats"]), keys["person"]),
    ).fetchone()
    return row is not None


def pending(db: Connection) -> list[Erasure]:
    """Those that go on, in the order in which they were begun."""
    rows = db.execute("SELECT id, what, keys, counts, begun, done FROM erasures WHERE done IS NULL ORDER BY begun, id")
    return [_erasure(row) for row in rows]


def find(db: Connection, identifier: str) -> Erasure:
    """Raises NotFound."""
    row = db.execute("SELECT id, what, keys, counts, begun, done FROM erasures WHERE id = ?", (identifier,)).fetchone()
    if row is None:
        raise NotFound(f"There is no erasure {identifier[:40]!r}.")
    return _erasure(row)


def _erasure(row: Sequence[Any]) -> Erasure:
    identifier, what, keys, counts, begun, done = row
    return Erasure(identifier, what, readable(keys, {}), Counter(readable(counts, {})), begun, done)


def step(db: Connection, identifier: str, means: Means) -> State:
    """Erase some more."""
    erasure = find(db, identifier)
    if erasure.done is not None:
        return "cleared"
    how = {"person": _person, "session": _session, "messages": _messages}[erasure.what]
    state = how(db, erasure, means)
    if state != "busy":
        keys, counts = json.dumps(erasure.keys, ensure_ascii=False), json.dumps(erasure.counts)
        db.execute("UPDATE erasures SET keys = ?, counts = ? WHERE id = ?", (keys, counts, identifier))
    return state


def end(db: Connection, identifier: str, now: float) -> None:
    """It is done: of a person nothing but digests is left in its row."""
    erasure = find(db, identifier)
    keys = {"digests": erasure.keys.get("digests", [])} if erasure.what == "person" else erasure.keys
    db.execute("UPDATE erasures SET done = ?, keys = ? WHERE id = ?", (now, json.dumps(keys), identifier))


# What was erased once, come back with a backup ---------------------------------------------------------------------


def unnoted(db: Connection) -> list[dict[str, Any]]:
    """Entries of erasures that do not stand in the file yet."""
    rows = db.execute("SELECT id, what, keys, begun FROM erasures WHERE noted = 0 ORDER BY begun, id").fetchall()
    return [{"id": number, "what": what, "keys": _told(what, readable(keys, {})), "begun": begun} for number, what, keys, begun in rows]


def _told(what: str, keys: dict[str, Any]) -> dict[str, Any]:
    return {"digests": keys.get("digests", [])} if what == "person" else keys


def noted(db: Connection, ids: Collection[str]) -> None:
    db.execute(f"UPDATE erasures SET noted = 1 WHERE id IN {_IN}", (json.dumps(list(ids)),))


def come_back(db: Connection, entries: Sequence[dict[str, Any]], now: float) -> int:
    """Begin again what this file does not know of, since it is older. Returns how many were begun."""
    begun = 0
    for entry in entries:
        if db.execute("SELECT 1 FROM erasures WHERE id = ?", (entry["id"],)).fetchone():
            continue
        keys = _known_again(db, str(entry["id"]), entry["keys"]) if entry["what"] == "person" else entry["keys"]
        db.execute(
            "INSERT INTO erasures (id, what, keys, begun, done, noted) VALUES (?, ?, ?, ?, ?, 1)",
            (entry["id"], entry["what"], json.dumps(keys or entry["keys"], ensure_ascii=False), now, None if keys else now),
        )
        begun += bool(keys)
    return begun


def _known_again(db: Connection, identifier: str, keys: dict[str, Any]) -> dict[str, Any] | None:
    """The keys of a person whom digests tell of; None where nobody here is that."""
    wanted = set(keys.get("digests", ()))
    people = db.execute("SELECT id FROM people UNION SELECT DISTINCT sender FROM messages").fetchall()
    found = next((person for (person,) in people if erased.digest(identifier, person) in wanted), None)
    if found is None:
        rows = db.execute("SELECT person, identity FROM identities").fetchall()
        found = next((person for person, identity in rows if erased.digest(identifier, identity) in wanted), None)
    return _keys(db, found) | {"digests": sorted(wanted)} if found is not None else None


def _session(db: Connection, erasure: Erasure, means: Means) -> State:
    session = erasure.keys.get("session", "")
    if not db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone():
        return "cleared"
    if _runs(db, [session]):
        return "busy"
    erasure.counts["messages"] += sessions.delete(db, session)
    erasure.counts["threads"] += 1
    return "going"


def _messages(db: Connection, erasure: Erasure, means: Means) -> State:
    session = erasure.keys.get("session", "")
    ids = [
        each
        for (each,) in db.execute(
            f"SELECT id FROM messages WHERE session = ? AND blocks != '[]' AND id IN {_IN} ORDER BY seq LIMIT ?",
            (session, json.dumps(erasure.keys.get("ids", [])), ROWS),
        )
    ]
    if not ids:
        return "cleared"
    if _runs(db, [session]):
        return "busy"
    forgetting.take(db, session, ids, means.zone, means.known, means.now)
    erasure.counts["messages"] += len(ids)
    return "going"


# A person --------------------------------------------------------------------------------------------------------


def _person(db: Connection, erasure: Erasure, means: Means) -> State:
    match erasure.keys.get("stage"):
        case "lines":
            return _lines(db, erasure, means)
        case "threads":
            return _threads(db, erasure, means)
        case "rest":
            return _rest(db, erasure)
    return "cleared"


def _runs(db: Connection, which: Collection[str]) -> bool:
    row = db.execute(f"SELECT 1 FROM turns WHERE session IN {_IN} AND state IN ('running', 'waiting')", (json.dumps(list(which)),))
    return row.fetchone() is not None


def _lines(db: Connection, erasure: Erasure, means: Means) -> State:
    """What they wrote in groups, or anywhere but in threads of their own, and what was answered to it."""
    person, chats, after = erasure.keys["person"], json.dumps(erasure.keys["chats"]), erasure.keys["after"]
    last = db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0]
    rows = db.execute(
        f"SELECT number, id, session, turn FROM messages WHERE number > ? AND number <= ? AND (sender = ? OR chat IN {_NUMBERS})"
        f" AND session NOT IN (SELECT id FROM sessions WHERE chat IN {_NUMBERS}) ORDER BY number LIMIT ?",
        (after, after + SCAN, person, chats, chats, LINES),
    ).fetchall()
    said: dict[str, set[str]] = {}
    for _, identifier, session, turn in rows:
        answered = db.execute("SELECT id FROM messages WHERE session = ? AND turn = ? AND turn != ''", (session, turn))
        said.setdefault(session, set()).update([identifier, *(each for (each,) in answered)])
    if _runs(db, list(said)):
        return "busy"
    for session, ids in said.items():
        forgetting.take(db, session, sorted(ids), means.zone, means.known, means.now)
        transcript.blank(db, ids, nameless=True)
    erasure.counts["lines in groups"] += len(rows)
    erasure.keys["after"] = rows[-1][0] if len(rows) == LINES else min(after + SCAN, last)
    if erasure.keys["after"] >= last:
        erasure.keys["stage"] = "threads"
    return "going"


def _threads(db: Connection, erasure: Erasure, means: Means) -> State:
    """The threads of their own chats, from the end of each."""
    row = db.execute(
        f"SELECT id FROM sessions WHERE chat IN {_NUMBERS} ORDER BY run DESC, created, id LIMIT 1", (json.dumps(erasure.keys["chats"]),)
    ).fetchone()
    if row is None:
        erasure.keys["stage"] = "rest"
        return "going"
    session = row[0]
    if _runs(db, [session]):
        return "busy"
    forgetting.end(db, session)
    ids = [each for (each,) in db.execute("SELECT id FROM messages WHERE session = ? ORDER BY seq DESC LIMIT ?", (session, ROWS))]
    if not ids:
        sessions.delete(db, session)
        erasure.counts["threads"] += 1
        return "going"
    listed = json.dumps(ids)
    erasure.counts["files"] += _count(db, f"attachments WHERE hash != '' AND message IN {_IN}", listed)
    facts = notes.forget(db, ids, means.now)
    erasure.counts["notes"] += len(facts)
    forgetting.untell(db, facts)
    forgetting.unquote(db, ids)
    erasure.counts["messages"] += transcript.forget(db, session, ROWS)
    return "going"


def _count(db: Connection, what: str, *values: object) -> int:
    return int(db.execute(f"SELECT count(*) FROM {what}", values).fetchone()[0])


def _rest(db: Connection, erasure: Erasure) -> State:
    """What waits and was sent, then what is known of them: the last of it in one transaction."""
    chats, addresses = json.dumps(erasure.keys["chats"]), json.dumps(erasure.keys["addresses"])
    if _count(db, f"turns WHERE chat IN {_NUMBERS} AND state IN ('running', 'waiting')", chats):
        return "busy"
    if _said_since(db, erasure, chats):
        erasure.keys["stage"] = "lines"
        return "going"
    for table, condition, values in (
        ("inbox", f"id IN (SELECT id FROM inbox WHERE chat IN {_NUMBERS} LIMIT ?)", (chats, SMALL)),
        ("outbox", f"number IN (SELECT number FROM outbox WHERE address IN {_IN} AND state != 'sending' LIMIT ?)", (addresses, SMALL)),
    ):
        if gone := db.execute(f"DELETE FROM {table} WHERE {condition}", values).rowcount:
            erasure.counts["arrivals and deliveries"] += gone
            return "going"
    if _count(db, f"outbox WHERE address IN {_IN}", addresses):
        return "busy"  # it is being sent
    _leave_tables(db, erasure, chats, addresses)
    _leave_notes(db, erasure)
    _leave_people(db, erasure, chats)
    cleaning.ask(db)
    erasure.keys["stage"] = "cleared"
    return "cleared"


def _said_since(db: Connection, erasure: Erasure, chats: str) -> bool:
    """Whether they said something while the rest of it went."""
    lines = "messages WHERE number > ? AND sender = ?"
    return bool(_count(db, f"sessions WHERE chat IN {_NUMBERS}", chats) or _count(db, lines, erasure.keys["after"], erasure.keys["person"]))


def _leave_tables(db: Connection, erasure: Erasure, chats: str, addresses: str) -> None:
    person = erasure.keys["person"]
    jobs = "SELECT name FROM jobs WHERE origin != 'config' AND (person = ?1 OR spec ->> 'deliver_to' IN (SELECT value FROM json_each(?2)))"
    erasure.counts["jobs"] += _count(db, f"({jobs}) AS found", person, addresses)
    db.execute(f"DELETE FROM job_runs WHERE job IN ({jobs}) OR job IN (SELECT name FROM jobs WHERE person = ?1)", (person, addresses))
    db.execute(f"DELETE FROM jobs WHERE name IN ({jobs})", (person, addresses))
    erasure.counts["approvals"] += db.execute(
        f"DELETE FROM approvals WHERE chat IN {_NUMBERS} OR person = ? OR behalf = ?", (chats, person, person)
    ).rowcount
    for sql in (
        "DELETE FROM standing_approvals WHERE person = ?",
        "UPDATE standing_approvals SET by = '' WHERE by = ?",
        "UPDATE pins SET by = '' WHERE by = ?",
        "UPDATE model_calls SET payer = '' WHERE payer = ?",
        "UPDATE inbox SET person = NULL, sender_name = '', text = '', context = '{}' WHERE person = ?",
        "DELETE FROM loops WHERE person = ?",
        "DELETE FROM chat_members WHERE person = ?",
    ):
        db.execute(sql, (person,))
    for table, whose in (("spending", "kind = 'person' AND subject"), ("reservations", "person")):
        db.execute(f"DELETE FROM {table} WHERE {whose} = ?", (person,))
    for table, where in (("attachments", "address"), ("spending", "kind = 'chat' AND subject"), ("reservations", "chat")):
        db.execute(f"DELETE FROM {table} WHERE {where} IN {_IN}", (addresses,))
    db.execute(f"DELETE FROM turns WHERE chat IN {_NUMBERS}", (chats,))
    scopes = json.dumps([f"user:{person}", *(f"project:{each}" for each in erasure.keys["addresses"])])
    erasure.counts["documents"] += db.execute(
        f"UPDATE documents SET ready = 0 WHERE ready = 1 AND scope IN (SELECT id FROM document_scopes WHERE scope IN {_IN})", (scopes,)
    ).rowcount


def _leave_notes(db: Connection, erasure: Erasure) -> None:
    """The notes of their own scopes, with their history; of others that they changed by hand, who did it."""
    person = erasure.keys["person"]
    db.execute("UPDATE note_changes SET by = '' WHERE by = ?", (person,))
    wanted = json.dumps([f"user:{person}", f"cross:{person}", *(f"project:{each}" for each in erasure.keys["addresses"])])
    for (scope,) in db.execute(f"SELECT id FROM note_scopes WHERE scope IN {_IN}", (wanted,)).fetchall():
        for kind, which in (
            ("relations", "entity IN (SELECT id FROM entities WHERE scope = ?)"),
            ("observations", "entity IN (SELECT id FROM entities WHERE scope = ?)"),
            ("entities", "scope = ?"),
        ):
            for (identifier,) in db.execute(f"SELECT id FROM {kind} WHERE {which}", (scope,)).fetchall():
                notes_index.remove(db, kind, identifier)
                db.execute(f"DELETE FROM {kind} WHERE id = ?", (identifier,))
                erasure.counts["notes"] += kind != "entities"
        erasure.counts["notes"] += _count(db, "preferences WHERE scope = ?", scope)
        db.execute("DELETE FROM note_scopes WHERE id = ?", (scope,))


def _leave_people(db: Connection, erasure: Erasure, chats: str) -> None:
    """Who they are. Whom the config names stays named there."""
    person, identities = erasure.keys["person"], json.dumps(erasure.keys["identities"])
    for sql, values in (
        (f"DELETE FROM access_requests WHERE identity IN {_IN}", (identities,)),
        (f"DELETE FROM guesses WHERE who IN {_IN}", (identities,)),
        ("DELETE FROM identities WHERE person = ? AND origin IN ('paired', 'linked')", (person,)),
        ("DELETE FROM link_codes WHERE person = ?", (person,)),
        ("DELETE FROM logins WHERE person = ?", (person,)),
        ("DELETE FROM login_links WHERE person = ?", (person,)),
        ("DELETE FROM export_links WHERE person = ?", (person,)),
        ("DELETE FROM people WHERE id = ? AND origin = 'paired'", (person,)),
        (f"DELETE FROM chats WHERE id IN {_NUMBERS} AND id NOT IN (SELECT chat FROM messages)", (chats,)),
        (
            "UPDATE chats SET address = 'erased:' || id, transport = 'erased', person = NULL, former = NULL, session = NULL"
            f" WHERE id IN {_NUMBERS}",
            (chats,),
        ),
    ):
        db.execute(sql, values)
    for name in (person, *erasure.keys["identities"], *erasure.keys["addresses"]):
        db.execute("DELETE FROM meta WHERE substr(key, 1, 5) = 'said/' AND instr(key, ?) > 0", (name,))
