"""Who may: requests that are answered, people who are given a role or a name, linked or removed. Each change is planned, then made."""

import json
from collections.abc import Callable, Mapping, Sequence

from clew.clock import new_id
from clew.context.text import normalise
from clew.errors import NotFound, UsageError
from clew.store import AccessEffect, AccessRequest, Changed, Given, Identity, Known, Person, PersonRole, approvals, merging, outbox, people
from clew.store.connection import Connection

REQUEST_DAYS = 7
"""Days after which a request that nobody answered is forgotten: its code lets nobody in, and its place is free for another."""
LONGEST_NAME, LONGEST_IDENTITY = 40, 512
PAGE = "web:"
"""Accounts that are made by logging in, and go with their person."""
ROLES: Mapping[PersonRole, int] = {"guest": 0, "member": 1, "owner": 2}
GONE = "whoever wrote it may not talk to me any more"
_REQUEST = "identity, address, name, code, state, messages, created"
_BASE = "CASE WHEN instr(address, '/') > 0 THEN substr(address, 1, instr(address, '/') - 1) ELSE address END"


def listing(db: Connection) -> list[Known]:
    """Everybody who may talk to clew, owners first."""
    rows = db.execute("SELECT id, name, role, origin FROM people ORDER BY role <> 'owner', role <> 'member', created, id").fetchall()
    return [_known(db, row) for row in rows]


def _known(db: Connection, row: Sequence[str]) -> Known:
    accounts = db.execute("SELECT identity, origin, created, seen FROM identities WHERE person = ? ORDER BY created, identity", (row[0],))
    identities = tuple(Identity(*each) for each in accounts)
    seen = max((each.seen for each in identities if each.seen is not None), default=None)
    return Known(row[0], row[1], row[2], row[3], identities, seen)  # type: ignore[arg-type]  # checked by the table


def person(db: Connection, key: str) -> Known:
    """The person with this id, name or identity. Raises NotFound."""
    found = _find(db, key)
    if found is None:
        raise NotFound(f"There is no person {key[:80]!r}.", hint="`clew access people` and /access people list those that are.")
    return found


def _find(db: Connection, key: str) -> Known | None:
    row = db.execute(
        "SELECT id, name, role, origin FROM people WHERE id = :key OR id = :named"
        " OR id = (SELECT person FROM identities WHERE identity = :key) ORDER BY id = :key DESC, id = :named DESC LIMIT 1",
        {"key": key, "named": _named(db, key)},
    ).fetchone()
    return _known(db, row) if row else None


def _named(db: Connection, name: str) -> str | None:
    """The id of whoever has this name, however it is written: in capitals, with accents of their own."""
    wanted = normalise(name)
    names = db.execute("SELECT id, name FROM people WHERE name <> ''").fetchall()
    return next((person for person, each in names if normalise(each) == wanted), None)


def requests(db: Connection, state: str | None, now: float) -> list[AccessRequest]:
    """Requests, the oldest first; those that expired are none any more."""
    rows = db.execute(
        f"SELECT {_REQUEST} FROM access_requests WHERE state = coalesce(?, state) AND NOT (state = 'open' AND created < ?)"
        " ORDER BY created, identity",
        (state, now - REQUEST_DAYS * 86_400),
    )
    return [AccessRequest(*row) for row in rows]


def _request(db: Connection, key: str, now: float) -> AccessRequest:
    """The request with this code or of this identity. Raises NotFound."""
    since = now - REQUEST_DAYS * 86_400
    row = db.execute(
        f"SELECT {_REQUEST} FROM access_requests WHERE identity = ? OR (code = ? AND NOT (state = 'open' AND created < ?))",
        (key, key.upper(), since),
    ).fetchone()
    if row is not None:
        return AccessRequest(*row)
    if not _is_identity(key):
        hint = "It may have expired. `/access` in a chat and `clew access list` show who waits; an identity is transport:user."
        raise NotFound(f"Nobody was given the code {key[:80]}.", hint=hint)
    return AccessRequest(key, key, "", "", "open", 0, now)


def _is_identity(text: str) -> bool:
    """Whether it is written as an account is: transport:user, in characters that can be shown."""
    transport, _, user = text.partition(":")
    return bool(transport and user) and len(text) <= LONGEST_IDENTITY and text.isprintable()


# Planning --------------------------------------------------------------------------------------------------------


def plan(db: Connection, effect: AccessEffect, now: float) -> Changed:
    """What an effect would come to. Raises NotFound or UsageError with what stands against it."""
    return _PLANS[effect.kind](db, effect, now)


def _plan_approve(db: Connection, effect: AccessEffect, now: float) -> Changed:
    request = _request(db, effect.key, now)
    known = _at(db, request.identity)
    if known is not None:
        _paired(known, request.identity)
    name = _free_name(db, effect.name, known) if effect.name else known.name if known else ""
    return Changed("approve", known, request, request.identity, effect.role, name)


def _plan_deny(db: Connection, effect: AccessEffect, now: float) -> Changed:
    request = _request(db, effect.key, now)
    known = _at(db, request.identity)
    if known is not None:
        _paired(known, request.identity)
    return Changed("deny", known, request, request.identity, jobs=_jobs(db, known) if known else 0)


def _plan_role(db: Connection, effect: AccessEffect, now: float) -> Changed:
    known = _own(db, effect.key)
    return Changed("role", known, role=effect.role)


def _plan_rename(db: Connection, effect: AccessEffect, now: float) -> Changed:
    known = _own(db, effect.key)
    return Changed("rename", known, name=_free_name(db, effect.name, known) if effect.name else "")


def _plan_remove(db: Connection, effect: AccessEffect, now: float) -> Changed:
    known = _own(db, effect.key)
    return Changed("remove", known, jobs=_jobs(db, known))


def _plan_link(db: Connection, effect: AccessEffect, now: float) -> Changed:
    known = person(db, effect.key)
    if not _is_identity(effect.identity):
        raise UsageError(f"{effect.identity[:80]!r} is no identity.", hint="It is written transport:user, such as mqtt:ada.")
    other = _at(db, effect.identity)
    if other is not None and other.id == known.id:
        raise UsageError(f"{effect.identity} is {known.called} already.")
    if other is not None:
        _paired(other, effect.identity)
    return Changed("link", known, identity=effect.identity)


def _plan_unlink(db: Connection, effect: AccessEffect, now: float) -> Changed:
    known = _at(db, effect.key)
    if known is None or (effect.by is not None and known.id != effect.by):
        raise NotFound(f"{effect.key[:80]} is nobody's account here." if effect.by is None else f"{effect.key[:80]} is not yours.")
    _changeable(known, effect.key)
    if effect.key.startswith(PAGE):
        raise UsageError(
            f"{effect.key} is the page that {known.called} logs in to.", hint="/logout, or `clew access logout --person`, ends that."
        )
    if known.id == effect.key:
        raise UsageError(f"{known.called} was let in by {effect.key}.", hint=f"`clew access remove {effect.key}` takes all access away.")
    return Changed("unlink", known, identity=effect.key, jobs=len(_jobs_at(db, known, effect.key)))


_PLANS: Mapping[str, Callable[[Connection, AccessEffect, float], Changed]] = {
    "approve": _plan_approve,
    "deny": _plan_deny,
    "role": _plan_role,
    "rename": _plan_rename,
    "remove": _plan_remove,
    "link": _plan_link,
    "unlink": _plan_unlink,
}


def _at(db: Connection, identity: str) -> Known | None:
    """Whoever has this identity."""
    row = db.execute(
        "SELECT id, name, role, people.origin FROM people JOIN identities ON person = id WHERE identity = ?", (identity,)
    ).fetchone()
    return _known(db, row) if row else None


def _own(db: Connection, key: str) -> Known:
    """A person whom the config does not name. Raises NotFound or UsageError."""
    known = person(db, key)
    if known.origin != "paired":
        raise UsageError(f"{known.called} is in the config.", hint="Change it there.")
    return known


def _changeable(known: Known, identity: str) -> None:
    origin = next(each.origin for each in known.identities if each.identity == identity)
    if origin in ("config", "local"):
        raise UsageError(f"{identity} is {known.called} in the config.", hint="Change it there.")


def _paired(known: Known, identity: str) -> None:
    """Raises UsageError where an identity is not the one that its person was let in by."""
    _changeable(known, identity)
    if known.id != identity:
        raise UsageError(f"{identity} is {known.called}, linked.", hint=f"Unlink it first: `clew access unlink {identity}`.")


def _free_name(db: Connection, name: str, whose: Known | None) -> str:
    """A name that nobody else has, empty for none. Raises UsageError."""
    name = " ".join(name.split(" ")).strip()
    if len(name) > LONGEST_NAME or ":" in name or not name.isprintable():
        raise UsageError(f"A name has at most {LONGEST_NAME} characters, no colon and no line break.")
    if name.lower() in ROLES:
        raise UsageError(f"{name} is a role, so it is no name.")
    other = _find(db, name) if name else None
    if other is not None and (whose is None or other.id != whose.id):
        raise UsageError(
            f"{other.called} is somebody already.",
            hint=f"Is it the same person? `clew access link {name} IDENTITY` says so; else take another.",
        )
    return name


def _jobs(db: Connection, known: Known) -> int:
    row = db.execute("SELECT count(*) FROM jobs WHERE person = ? AND enabled = 1", (known.id,)).fetchone()
    return int(row[0])


def _chats_at(db: Connection, known: Known, identity: str) -> str:
    """JSON: the direct chats of one of somebody's accounts. Where addresses do not name accounts (a channel that a platform made for the
    two), all of theirs there, lest one that is another's now goes on as theirs."""
    rows = db.execute(
        f"SELECT address FROM chats WHERE direct = 1 AND person = :person AND ({_BASE} = :identity OR (transport = :transport"
        f" AND {_BASE} NOT IN (SELECT identity FROM identities WHERE person = :person)))",
        {"person": known.id, "identity": identity, "transport": identity.partition(":")[0]},
    )
    return json.dumps([address for (address,) in rows])


def _jobs_at(db: Connection, known: Known, identity: str) -> list[str]:
    """Jobs of somebody's that speak in the chats of one of their accounts."""
    address = "spec ->> 'deliver_to'"
    rows = db.execute(
        f"SELECT name FROM jobs WHERE person = ? AND enabled = 1 AND ({address} = ? OR substr({address}, 1, ?) = ?"
        f" OR {address} IN (SELECT value FROM json_each(?)))",
        (known.id, identity, len(identity) + 1, f"{identity}/", _chats_at(db, known, identity)),
    )
    return [name for (name,) in rows]


# Making ----------------------------------------------------------------------------------------------------------


def take(db: Connection, effect: AccessEffect, now: float) -> Changed:
    """Make a change, and tell others of it. Raises NotFound or UsageError with what stands against it."""
    changed = plan(db, effect, now)
    known = changed.person
    match changed.kind:
        case "approve":
            _let_in(db, changed, now)
        case "deny":
            if known is not None:
                _remove(db, known, now)
            _answered(db, changed.identity, "denied", now)
        case "role" if known is not None:
            _give_role(db, known, changed.role)
        case "rename" if known is not None:
            db.execute("UPDATE people SET name = ? WHERE id = ?", (changed.name, known.id))
        case "remove" if known is not None:
            _remove(db, known, now)
        case "link" if known is not None:
            link(db, known.id, changed.identity, now)
        case "unlink" if known is not None:
            _unlink(db, known, changed.identity, now)
    for notice in effect.notices:
        outbox.put(db, notice, session="", turn="", now=now)
    return changed


def _let_in(db: Connection, changed: Changed, now: float) -> None:
    if changed.person is not None:
        _give_role(db, changed.person, changed.role)
    people.add(db, Person(changed.identity, changed.role, None, (changed.identity,)), "paired", now)
    db.execute("UPDATE chats SET person = former, former = NULL WHERE direct = 1 AND person IS NULL AND former = ?", (changed.identity,))
    db.execute("UPDATE people SET name = ? WHERE id = ?", (changed.name, changed.identity))
    _answered(db, changed.identity, "approved", now)


def _answered(db: Connection, identity: str, state: str, now: float) -> None:
    """Write down what became of a request; one that was never made is made, so that a stranger who is denied gets no code."""
    db.execute(
        "INSERT INTO access_requests (identity, address, name, code, state, messages, created, answered) VALUES (?, ?, '', ?, ?, 0, ?, ?)"
        " ON CONFLICT (identity) DO UPDATE SET state = excluded.state, answered = excluded.answered",
        (identity, identity, new_id(), state, now, now),
    )


def _give_role(db: Connection, known: Known, role: PersonRole) -> None:
    """A role that may less takes the yeses for good with it that were given by or for them."""
    db.execute("UPDATE people SET role = ? WHERE id = ?", (role, known.id))
    if ROLES[role] < ROLES[known.role]:
        db.execute("DELETE FROM standing_approvals WHERE person = ? OR by = ?", (known.id, known.id))


def _remove(db: Connection, known: Known, now: float) -> None:
    revoke(db, known.id, now)
    for each in known.identities:
        _answered(db, each.identity, "denied", now)
    db.execute("DELETE FROM people WHERE id = ?", (known.id,))


def revoke(db: Connection, person: str, now: float) -> None:
    """Nothing more of somebody's is answered: what waits is refused, what runs is stopped, their jobs are off. What they said is kept."""
    db.execute(
        "UPDATE job_runs SET outcome = 'stopped', note = ?, ended = ? WHERE outcome = 'fired' AND (job, instant) IN"
        " (SELECT job, instant FROM inbox WHERE person = ? AND state = 'new' AND kind = 'job')",
        (GONE, now, person),
    )
    db.execute("UPDATE inbox SET state = 'refused', reason = ? WHERE person = ? AND state = 'new' AND kind <> 'notice'", (GONE, person))
    running = db.execute(
        "SELECT DISTINCT turns.id FROM turns JOIN inbox ON inbox.turn = turns.id"
        " WHERE turns.state IN ('running', 'waiting') AND person = ?",
        (person,),
    )
    for (turn,) in running.fetchall():
        db.execute("UPDATE turns SET stop_requested_at = ? WHERE id = ?", (now, turn))
        approvals.stop(db, turn, now)
    questions = db.execute("SELECT DISTINCT asking, turn FROM approvals WHERE person = ? AND state = 'open'", (person,))
    for asking, turn in questions.fetchall():
        approvals.give(db, Given(asking, turn, yes=False, how="stopped"), now)
    db.execute("UPDATE jobs SET enabled = 0 WHERE person = ?", (person,))
    own = "SELECT sessions.id FROM sessions JOIN chats ON chats.id = sessions.chat WHERE direct = 1 AND person = ?"
    db.execute(f"DELETE FROM boundaries WHERE session IN ({own})", (person,))
    db.execute("DELETE FROM standing_approvals WHERE person = ? OR by = ?", (person, person))


def link(db: Connection, person: str, identity: str, now: float) -> None:
    """Let an account be somebody's. Its direct chats that are nobody's, or of whoever was let in by it, are theirs too."""
    former = _at(db, identity)
    if former is not None:
        merging.merge(db, former.id, person)
    db.execute(
        "INSERT INTO identities (identity, person, origin, created) VALUES (?, ?, 'linked', ?)"
        " ON CONFLICT (identity) DO UPDATE SET person = excluded.person, origin = excluded.origin",
        (identity, person, now),
    )
    theirs = "(person = :person OR person IS NULL)"  # one that was given up is theirs again
    db.execute(
        f"UPDATE chats SET person = :person, former = NULL WHERE direct = 1 AND {theirs} AND {_BASE} = :identity",
        {"person": person, "identity": identity},
    )
    _answered(db, identity, "approved", now)


def _unlink(db: Connection, known: Known, identity: str, now: float) -> None:
    """Its chats stay with the person who spoke there, until somebody else does; nothing of theirs is said there any more."""
    for job in _jobs_at(db, known, identity):
        db.execute("UPDATE jobs SET enabled = 0 WHERE name = ?", (job,))
    addresses = (_chats_at(db, known, identity),)
    chats = "SELECT id FROM chats WHERE address IN (SELECT value FROM json_each(?))"
    db.execute(
        f"UPDATE inbox SET state = 'refused', reason = ? WHERE state = 'new' AND kind <> 'notice' AND chat IN ({chats})", (GONE, *addresses)
    )
    for (turn,) in db.execute(f"SELECT id FROM turns WHERE state IN ('running', 'waiting') AND chat IN ({chats})", addresses).fetchall():
        db.execute("UPDATE turns SET stop_requested_at = ? WHERE id = ?", (now, turn))
        approvals.stop(db, turn, now)
    db.execute(f"UPDATE chats SET former = person WHERE id IN ({chats})", addresses)
    db.execute("DELETE FROM identities WHERE identity = ?", (identity,))
    db.execute("DELETE FROM access_requests WHERE identity = ?", (identity,))


def stopping(db: Connection) -> list[str]:
    """Turns that run and that somebody has stopped."""
    rows = db.execute("SELECT id FROM turns WHERE state IN ('running', 'waiting') AND stop_requested_at IS NOT NULL")
    return [turn for (turn,) in rows]


def announced(db: Connection, identity: str, now: float, window: float, most: int) -> bool:
    """Note that the owner is told of a request. False: it was told already, or `most` were within `window` seconds."""
    if db.execute("SELECT count(*) FROM access_requests WHERE told > ?", (now - window,)).fetchone()[0] >= most:
        return False
    return bool(db.execute("UPDATE access_requests SET told = ? WHERE identity = ? AND told IS NULL", (now, identity)).rowcount)


def answer(db: Connection, key: str, approve: bool, role: str, now: float) -> AccessRequest:
    """Let somebody in (again, or in another role), or turn them away. Raises NotFound or UsageError."""
    effect = AccessEffect("approve" if approve else "deny", key, role)  # type: ignore[arg-type]  # checked by the table
    return take(db, effect, now).answered
