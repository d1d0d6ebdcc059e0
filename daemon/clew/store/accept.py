"""What arrives: stored with the transport's cursor in one commit, each arrival once."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from clew.clock import new_id
from clew.store import (
    Decide,
    Offer,
    Person,
    PersonRole,
    Reply,
    Sender,
    Verdict,
    access,
    approvals,
    deletions,
    edits,
    links,
    loops,
    outbox,
    people,
)
from clew.store.connection import Connection
from clew.store.files import verbs as files
from clew.store.grouping import lane, shared
from clew.transport import Address, Cursor, Inbound, Part, Receipt

DELETED = "it was deleted before it was answered"

SPOKEN = ("message", "context")
"""Kinds of what is said by itself."""
_STATES = {"control": "answered", "answer": "answered", "edit": "context"}
"""Kinds of arrivals that start no turn, and the state in which they are stored."""

_OPEN = "state IN ('running', 'waiting')"
_FACTS = (
    "SELECT EXISTS (SELECT 1 FROM inbox WHERE external_id = :id), EXISTS (SELECT 1 FROM deletions WHERE external_id = :id),"
    " EXISTS (SELECT 1 FROM inbox WHERE edits = :id), people.id, people.role, identities.seen, chats.id, chats.person, chats.former,"
    " (SELECT count(*) FROM inbox WHERE chat = chats.id AND state = 'new' AND kind <> 'job' AND overheard = :overheard),"
    # A job that speaks here can be stopped here, where nobody's own turn runs.
    f" coalesce((SELECT min(id) FROM turns WHERE session = chats.session AND {_OPEN}),"
    f" (SELECT min(id) FROM turns WHERE kind = 'job' AND chat = chats.id AND {_OPEN})),"
    f" EXISTS (SELECT 1 FROM approvals AS a WHERE a.chat = chats.id AND a.person = people.id AND {approvals.ANSWERABLE}),"
    " coalesce(loops.length, 0), coalesce(loops.rests_until, 0.0)"
    " FROM (SELECT 1) AS one LEFT JOIN identities ON identities.identity = :identity LEFT JOIN people ON people.id = identities.person"
    " LEFT JOIN chats ON chats.address = :address LEFT JOIN loops ON loops.chat = chats.id AND loops.person = people.id"
)
"""All that is read of every arrival, in one statement: a database may be far away."""


class _Facts(NamedTuple):
    """What is known of an arrival, of its sender and of its chat, before anything is decided.

    stored, deleted, edited: something came under its id, was said to be deleted, was edited. owner: whose direct chat it is; former: who
    had it before they went. waiting: arrivals of its chat that wait, of those that are answered or of those that are only kept, as this
    one is. asked: there are questions that it may answer. length, rests_until: of the loop that its sender may be in.
    """

    stored: bool
    deleted: bool
    edited: bool
    person: str | None
    role: PersonRole | None
    seen: float | None
    chat: int | None
    owner: str | None
    former: str | None
    waiting: int
    running: str | None
    asked: bool
    length: int
    rests_until: float


def _holds(
    transport: str, items: Sequence[Inbound], cursor: Cursor | None, now: float, decide: Decide, instant: bool
) -> Iterable[str] | None:
    """Where people speak; what they say of messages that are there may be about any turn. A cursor that is made of the stored one."""
    made = {f"cursor {transport}"} if cursor is not None and not isinstance(cursor, str) else set()
    return made | {lane(item.address) for item in items} if all(item.kind in SPOKEN for item in items) else None


@shared(_holds)
def accept(
    db: Connection, transport: str, items: Sequence[Inbound], cursor: Cursor | None, now: float, decide: Decide, instant: bool
) -> tuple[list[Receipt], list[Verdict]]:
    """Store arrivals of one transport. `instant`: its replies count as sent when committed.

    The verdicts stand beside their receipts, for what is to be done at once.
    """
    receipts, verdicts = [], []
    for item in items:
        if item.kind == "reaction":
            receipt, verdict = _reacted(db, item, now, decide)
        elif item.kind == "delete":
            receipt, verdict = _deleted(db, item, now, decide)
        else:
            receipt, verdict = _accept(db, item, now, decide, instant)
        receipts.append(receipt)
        verdicts.append(verdict)
    if cursor is not None:
        _keep(db, transport, cursor, now)
    return receipts, verdicts


def _keep(db: Connection, transport: str, given: Cursor, now: float) -> None:
    value = given if isinstance(given, str) else given(cursor(db, transport))
    db.execute(
        "INSERT INTO cursors (transport, value, at) VALUES (?, ?, ?) ON CONFLICT (transport) DO UPDATE"
        " SET value = excluded.value, at = excluded.at WHERE cursors.value <> excluded.value",
        (transport, value, now),
    )


def cursor(db: Connection, transport: str) -> str | None:
    row = db.execute("SELECT value FROM cursors WHERE transport = ?", (transport,)).fetchone()
    return row[0] if row else None


def _accept(db: Connection, item: Inbound, now: float, decide: Decide, instant: bool) -> tuple[Receipt, Verdict]:
    facts = _facts(db, item, now)
    if facts.stored:
        return Receipt(item.external_id, "duplicate"), Verdict(refused="duplicate")
    if facts.deleted:
        return Receipt(item.external_id, "refused", DELETED), Verdict(refused=DELETED)
    sender = _sender(db, item, facts, now)
    if facts.edited and facts.person is not None and facts.chat is not None:
        item = edits.applied(db, item, facts.chat, facts.person)
    verdict = decide(item, sender)
    if verdict.spent is not None or verdict.stop or verdict.given:
        db.alone()
    if verdict.spent is not None:
        item, sender = _spend(db, item, sender, verdict, verdict.spent, now)
        facts = _facts(db, item, now)  # a chat may be another's now
    if verdict.refused and (item.kind != "message" or sender.loop):
        return Receipt(item.external_id, "refused", verdict.refused), verdict  # nobody waits for it, and it is kept nowhere
    stored_id = _stored_id(item, verdict)
    if stored_id != item.external_id and db.execute("SELECT 1 FROM inbox WHERE external_id = ?", (stored_id,)).fetchone():
        return Receipt(item.external_id, "duplicate"), Verdict(refused="duplicate")
    if verdict.pair or (sender.person is None and verdict.refused):
        _note_request(db, item, verdict, now)
    else:
        _store(db, item, stored_id, sender, facts, verdict, now)
    if verdict.stop:
        db.execute("UPDATE turns SET stop_requested_at = ? WHERE id = ? AND ended IS NULL", (now, verdict.stop))
        approvals.stop(db, verdict.stop, now)
    for given in verdict.given:
        approvals.give(db, given, now)
    if verdict.reply:
        reply = Reply(
            item.address,
            verdict.reply,
            (Part(verdict.reply),),
            in_reply_to=item.client_id,
            answers=(item.client_id,) if item.client_id else (),
            context=item.context,
            instant=instant,
        )
        outbox.put(db, reply, session="", turn="", now=now)
    return Receipt(item.external_id, "refused" if verdict.refused else "stored", verdict.refused), verdict


def _spend(db: Connection, item: Inbound, sender: Sender, verdict: Verdict, offer: Offer, now: float) -> tuple[Inbound, Sender]:
    """Close a link code, with whose account it came from from now on. The code itself is kept nowhere."""
    links.spend(db, offer, item.identity if verdict.links else None, now)
    if verdict.confirm:
        told = Reply(Address.parse(offer.address), verdict.confirm, (Part(verdict.confirm),), instant=offer.instant)
        outbox.put(db, told, session="", turn="", now=now)
    return replace(item, text=links.COMMAND), replace(sender, person=offer.person) if verdict.links else sender


def _reacted(db: Connection, item: Inbound, now: float, decide: Decide) -> tuple[Receipt, Verdict]:
    """A reaction answers a question or does nothing; it is no message, so nothing of it is stored but the answer."""
    found = people.find(db, item.identity)
    asked = approvals.reacted_to(db, item.address, found[0], item.reply_to) if found and item.reply_to else ()
    person, role = found or (None, None)
    verdict = decide(item, Sender(person, role, None, 0, 0, None, asked))  # type: ignore[arg-type]  # checked by the table
    for given in verdict.given:
        approvals.give(db, given, now)
    return Receipt(item.external_id, "refused" if verdict.refused else "stored", verdict.refused), verdict


def _deleted(db: Connection, item: Inbound, now: float, decide: Decide) -> tuple[Receipt, Verdict]:
    """Whoever took it back, it is the platform that says so."""
    verdict = decide(item, Sender(None, None, None, 0, 0, None))
    new = deletions.take(db, item, now)
    return Receipt(item.external_id, "stored" if new else "duplicate"), verdict


def _stored_id(item: Inbound, verdict: Verdict) -> str:
    """The id under which an arrival is known from now on; one that was refused leaves its own free for what may come under it again."""
    match verdict.again:
        case "changed":
            return f"{item.external_id}#{hashlib.sha256(repr((item.text, item.refused)).encode()).hexdigest()[:16]}"
        case "later":
            return f"{item.external_id}#{new_id()}"
    return item.external_id


def _facts(db: Connection, item: Inbound, now: float) -> _Facts:
    values = {
        "id": item.external_id,
        "identity": item.identity,
        "address": str(item.address),
        "overheard": int(item.kind == "context"),
        "now": now,
    }
    return _Facts(*db.execute(_FACTS, values).fetchone())


def _sender(db: Connection, item: Inbound, facts: _Facts, now: float) -> Sender:
    person = facts.person
    if person is None:
        db.alone()  # what strangers may do is counted for all of them
    request, open_requests = _requests(db, item.identity, now) if person is None else (None, 0)
    offer = links.meant(db, item, now, known=person is not None)
    if person is not None:
        people.seen(db, item.identity, facts.seen, now)
    return Sender(
        person=person,
        role=facts.role,
        request=request,  # type: ignore[arg-type]  # checked by the table
        queued=facts.waiting,
        open_requests=open_requests,
        running=facts.running,
        asked=approvals.asked_at(db, facts.chat, person, now) if facts.asked and facts.chat and person else (),
        lines=facts.waiting,
        loop=loops.seen(db, item, facts.chat, person, facts.length, facts.rests_until, now) if facts.chat and person else "",
        offer=offer,
        past=offer is not None and links.past(db, item, offer.person),
    )


def _requests(db: Connection, identity: str, now: float) -> tuple[str | None, int]:
    """(the state of a stranger's own request for access, how many are open); those that nobody answered are forgotten first."""
    db.execute("DELETE FROM access_requests WHERE state = 'open' AND created < ?", (now - access.REQUEST_DAYS * 86_400,))
    own = db.execute("SELECT state FROM access_requests WHERE identity = ?", (identity,)).fetchone()
    return own[0] if own else None, db.execute("SELECT count(*) FROM access_requests WHERE state = 'open'").fetchone()[0]


def _note_request(db: Connection, item: Inbound, verdict: Verdict, now: float) -> None:
    """A stranger's words are not kept, only that they wrote."""
    if verdict.pair:
        db.execute(
            "INSERT INTO access_requests (identity, address, name, code, state, messages, created) VALUES (?, ?, ?, ?, 'open', 1, ?)",
            (item.identity, str(item.address), item.sender_name, verdict.pair, now),
        )
    else:
        db.execute("UPDATE access_requests SET messages = messages + 1 WHERE identity = ?", (item.identity,))


def _store(db: Connection, item: Inbound, stored_id: str, sender: Sender, facts: _Facts, verdict: Verdict, now: float) -> None:
    person = sender.person or _newcomer(db, item, now)
    chat = _chat(db, item, person, (facts.chat, facts.owner, facts.former), now)
    joined = next((given.turn for given in verdict.given if given.joins), None)
    state = "refused" if verdict.refused else "claimed" if joined else _STATES.get(verdict.kind, "new")
    number = db.insert(
        "INSERT INTO inbox (external_id, client_id, kind, state, transport, address, chat, person, sender_name, text,"
        " reply_to, context, reason, received, sent_at, expires, turn, overheard, edits)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            stored_id,
            item.client_id,
            verdict.kind,
            state,
            item.address.transport,
            str(item.address),
            chat,
            person,
            item.sender_name,
            item.text,
            item.reply_to,
            json.dumps(dict(item.context)),
            verdict.refused,
            now,
            item.sent_at,
            item.expires_at,
            joined,
            int(item.kind == "context"),
            item.edits if item.kind == "edit" else None,
        ),
        "id",
    )
    if item.kind == "edit":
        edits.take(db, item, chat, person, now)
    elif item.kind == "message" and not verdict.refused:
        db.execute("INSERT INTO timeline (address, inbox) VALUES (?, ?)", (str(item.address), number))
    if item.attachments:
        wanted = state == "new" and verdict.kind == "message"
        files.put(db, number, str(item.address), item.attachments, now, wanted=wanted, said=bool(item.text.strip()))


def _newcomer(db: Connection, item: Inbound, now: float) -> str:
    """Somebody whom `access.unknown: allow` lets in."""
    people.add(db, Person(item.identity, "guest", None, (item.identity,)), "paired", now)
    return item.identity


def chat_for(db: Connection, item: Inbound, person: str, now: float) -> int:
    """The chat of an arrival, made if it is new; its person or its members are brought up to date."""
    known = db.execute("SELECT id, person, former FROM chats WHERE address = ?", (str(item.address),)).fetchone()
    return _chat(db, item, person, known or (None, None, None), now)


def _chat(db: Connection, item: Inbound, person: str, stored: tuple[int | None, str | None, str | None], now: float) -> int:
    """See `chat_for`. stored: the chat's id, whose direct chat it is, and whose it was."""
    chat, known, former = stored
    owner = person if item.direct else None
    if chat is not None and owner is not None and people.is_another(db, item.identity, owner, known, former):
        db.alone()
        people.set_aside(db, chat, str(item.address))
    if chat is None or known != owner or (former is not None and owner is not None):
        chat = db.execute(
            "INSERT INTO chats (address, transport, direct, person, created) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (address) DO UPDATE SET person = excluded.person, former = NULL RETURNING id",
            (str(item.address), item.address.transport, int(item.direct), owner, now),
        ).fetchone()[0]
    if not item.direct:
        db.execute(
            "INSERT INTO chat_members (chat, person, joined) SELECT ?, ?, ? WHERE NOT EXISTS"
            " (SELECT 1 FROM chat_members WHERE chat = ? AND person = ? AND left_at IS NULL)",
            (chat, person, now, chat, person),
        )
    return chat
