"""Threads that branch off others, and which thread a chat goes on with.

A branch begins with copies of the rows that its parent's window held at that place, under the same numbers and behind the summary that
stood in front of them. What that summary covers stays with the parent alone. Neither sees what comes in the other afterwards.
"""

import json
from collections.abc import Collection, Mapping, Sequence

from clew.clock import new_id
from clew.errors import NotFound, UsageError
from clew.messages import Message
from clew.store import Compaction, NewMessage, Switch, compactions, transcript
from clew.store.connection import Connection
from clew.store.damage import readable

MOST_COPIED = 5_000
"""Rows of a window that a branch may begin with: they are indexed in one transaction."""


def point(db: Connection, session: str, seq: int | None) -> tuple[str, int]:
    """(thread, its row) at which a branch begins: row `seq` of a thread, which may be one of the thread that it branched off itself, or its
    last one; results of tools go with their calls. Raises NotFound."""
    wanted = seq
    while True:
        parent, fork_seq, run = _origin(db, session)
        first, last = db.execute("SELECT min(seq), max(seq) FROM messages WHERE session = ?", (session,)).fetchone()
        wanted = (last or fork_seq) if wanted is None else wanted
        if last is not None and first <= wanted <= last:
            return session, _whole(db, session, wanted)
        if parent is None or run or not 0 < wanted <= fork_seq:
            raise NotFound(
                f"There is no message #{wanted} here.", hint="`clew session show` numbers them; without a number it is the last one."
            )
        session = parent


def _origin(db: Connection, session: str) -> tuple[str | None, int, bool]:
    row = db.execute("SELECT parent, fork_seq, run FROM sessions WHERE id = ?", (session,)).fetchone()
    return (row[0], row[1], bool(row[2])) if row else (None, 0, False)


def _whole(db: Connection, session: str, seq: int) -> int:
    """The row behind which no result is parted from its call."""
    row = db.execute("SELECT min(seq) FROM messages WHERE session = ? AND seq > ? AND role != 'tool'", (session, seq)).fetchone()
    last = db.execute("SELECT max(seq) FROM messages WHERE session = ?", (session,)).fetchone()[0]
    return (row[0] - 1) if row[0] is not None else int(last)


def switch(db: Connection, chat: int, to: Switch, now: float) -> None:
    """Let a chat go on with another thread; one that branches off is made first. Raises UsageError."""
    if to.parent and not db.execute("SELECT 1 FROM sessions WHERE id = ?", (to.session,)).fetchone():
        _begin(db, chat, to, now)
    elif not db.execute("SELECT 1 FROM sessions WHERE id = ?", (to.session,)).fetchone():
        raise UsageError("That conversation was deleted just now.")
    db.execute("UPDATE chats SET session = ? WHERE id = ?", (to.session, chat))


def _begin(db: Connection, chat: int, to: Switch, now: float) -> None:
    newest = compactions.tip(db, to.parent, to.seq)
    rows = db.execute(
        f"SELECT chat, metadata, {transcript.COLUMNS} FROM messages WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
        (to.parent, newest.to_seq if newest else 0, to.seq, MOST_COPIED + 1),
    ).fetchall()
    if len(rows) > MOST_COPIED:
        raise UsageError(
            f"The window holds more than {MOST_COPIED:,} messages there, too many for a branch to begin with.",
            hint="/compact, then try again.",
        )
    title = f"branch of {to.parent} at #{to.seq}"
    db.execute(
        "INSERT INTO sessions (id, chat, title, created, parent, fork_seq) VALUES (?, ?, ?, ?, ?, ?)",
        (to.session, chat, title, now, to.parent, to.seq),
    )
    ids = _copy(db, to.session, [(where, readable(metadata, {}), transcript.message(row)) for where, metadata, *row in rows])
    if newest is not None:
        compactions.put(db, _base(newest, to.session, ids))
    _copy_marks(db, to, ids)
    _copy_prompt(db, to, newest.id if newest else None)


def _copy(db: Connection, session: str, rows: Sequence[tuple[int, Mapping[str, object], Message]]) -> dict[str, str]:
    """Copy rows, each exchange under a turn of its own. Returns their new ids."""
    turns = {row.turn: new_id() if row.turn and not row.overheard else row.turn for _, _, row in rows}
    ids: dict[str, str] = {}
    for chat, metadata, row in rows:
        ids[row.id] = new_id()
        about = {key: value for key, value in metadata.items() if key != "inbox"}
        new = NewMessage(row.role, row.blocks, row.at, row.sender, row.sender_name, about)
        transcript.restore(db, session, chat, turns[row.turn], row.seq, ids[row.id], new)
    return ids


def _base(newest: Compaction, session: str, ids: Mapping[str, str]) -> Compaction:
    """The compaction that a branch begins behind."""
    report = newest.report
    for old in newest.shortened:
        report = report.replace(f'"{old}"', f'"{ids.get(old, old)}"')
    return Compaction(
        id=new_id(),
        session=session,
        parent=None,
        from_seq=1,
        to_seq=newest.to_seq,
        ledger=newest.ledger,
        text=newest.text,
        trigger=newest.trigger,
        prompt_version=newest.prompt_version,
        report=report,
        messages=newest.messages,
        covered=newest.to_seq,
        created=newest.created,
        held=newest.held,
        kind="summary" if newest.to_seq else "shorten",
        shortened=tuple(ids[each] for each in newest.shortened if each in ids),
    )


def _copy_marks(db: Connection, to: Switch, ids: Mapping[str, str]) -> None:
    """What people and platforms said of the rows: pinned, taken back, edited, private; and their files."""
    pairs = list(ids.items())
    listed = json.dumps(pairs)
    copies = "json_each(?) AS pair JOIN {} AS old ON old.message = pair.value ->> 0"
    db.execute(
        "INSERT INTO pins (session, message, by, at) SELECT ?1, coalesce((SELECT value ->> 1 FROM json_each(?2)"
        " WHERE value ->> 0 = p.message), p.message), by, p.at FROM pins AS p JOIN messages AS m ON m.id = p.message"
        " WHERE p.session = ?3 AND m.seq <= ?4",
        (to.session, listed, to.parent, to.seq),
    )
    db.execute(
        "INSERT INTO retractions (message, reason, at, shown) SELECT pair.value ->> 1, reason, at, shown"
        f" FROM {copies.format('retractions')}",
        (listed,),
    )
    db.execute(f"INSERT INTO edits (message, text, at) SELECT pair.value ->> 1, text, at FROM {copies.format('edits')}", (listed,))
    files = db.execute(f"SELECT pair.value ->> 1, old.number FROM {copies.format('attachments')} ORDER BY old.number", (listed,)).fetchall()
    db.executemany(
        "INSERT INTO attachments (id, message, address, state, name, mime, size, voice, hash, file, words, next_at, at)"
        " SELECT CAST(? AS TEXT), CAST(? AS TEXT), address, state, name, mime, size, voice, hash, file, words, 0, at"
        " FROM attachments WHERE number = ?",
        [(new_id(), message, number) for message, number in files],
    )
    db.execute(
        "INSERT INTO private_spans (session, from_seq, until_seq) SELECT ?1, from_seq, CASE WHEN until_seq <= ?3 THEN until_seq END"
        " FROM private_spans WHERE session = ?2 AND from_seq < ?3",
        (to.session, to.parent, to.seq),
    )
    db.execute(
        "INSERT INTO refused_files (session, provider, model, hash) SELECT ?, provider, model, hash FROM refused_files WHERE session = ?",
        (to.session, to.parent),
    )


def _copy_prompt(db: Connection, to: Switch, newest: str | None) -> None:
    """Notes and recall stand in the branch as in its parent, so that its prompt begins with the same bytes."""
    state = compactions.prompt_state(db, to.parent)
    if state.compaction == newest:
        compactions.save_prompt(db, to.session, state)
        db.execute(
            "UPDATE prompt_state SET compaction = (SELECT id FROM compactions WHERE session = ?1), recall_turn = '' WHERE session = ?1",
            (to.session,),
        )


def in_front(db: Connection, session: str) -> list[tuple[object, ...]]:
    """Of a thread that branched off, the rows of others that its first summary covers: as an export has them, in order."""
    rows: list[tuple[object, ...]] = []
    parent, fork_seq, run = _origin(db, session)
    base = next((each for each in compactions.listing(db, session) if compactions.begins_branch(db, each)), None)
    until = base.to_seq if base else 0
    while parent is not None and not run and until:
        found = db.execute(
            "SELECT m.id, seq, role, blocks, sender, sender_name, turn, metadata, at, c.address FROM messages AS m"
            " JOIN chats AS c ON c.id = m.chat WHERE m.session = ? AND seq <= ? ORDER BY seq",
            (parent, until),
        ).fetchall()
        rows = [*found, *rows]
        until = found[0][1] - 1 if found else min(until, fork_seq)
        parent, fork_seq, run = _origin(db, parent)
    return rows


def copies(db: Connection, ids: Collection[str]) -> dict[str, list[str]]:
    """The copies of messages in threads that branched off theirs, and off these again, by thread; none for a branch that holds no copy of
    them but may have them in its summary."""
    found: dict[str, list[str]] = {}
    wanted = list(ids)
    while wanted:
        rows = db.execute(
            "SELECT s.id, b.id FROM json_each(?) AS wanted CROSS JOIN messages AS m"
            " JOIN sessions AS s ON s.parent = m.session AND s.run = 0 AND m.seq <= s.fork_seq"
            " LEFT JOIN messages AS b ON b.session = s.id AND b.seq = m.seq WHERE m.id = wanted.value",
            (json.dumps(wanted),),
        ).fetchall()
        wanted = [copy for branch, copy in rows if copy is not None and copy not in found.get(branch, ())]
        for branch, copy in rows:
            theirs = found.setdefault(branch, [])
            if copy is not None and copy not in theirs:
                theirs.append(copy)
    return found
