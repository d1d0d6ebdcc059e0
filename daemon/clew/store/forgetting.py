"""Messages that are to be forgotten: neither a model nor a search comes upon them again, nor upon what was made of them.

Their rows keep their places in the transcript, empty. What was derived from them goes too: summaries' entries, notes and their history,
recall blocks, the results of tools that quoted them or told of such a note in any thread, files, and the lines of the chat page.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, tzinfo
from typing import Any

from clew.context import ledger as ledgers
from clew.context.forgetting import silent, without
from clew.context.redact import redact
from clew.context.sought import Sought
from clew.store import Compaction, Foreseen, branches, cleaning, compactions, runs, transcript
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.files import verbs as files
from clew.store.notes import Where, scopes
from clew.store.notes import forgetting as notes

LONGEST_PHRASE = 20
"""Words by which a fact is told from another."""
BEGINNING, SHORTEST = 40, 12
"""Characters of a message by which an answer that quotes it is known; what is shorter could be anybody's."""
ASKED = 100
"""Messages that the index is asked for at once."""
_IN = "(SELECT value FROM json_each(?))"


def take(
    db: Connection,
    session: str,
    ids: Sequence[str],
    zone: tzinfo,
    known: Collection[str],
    now: float,
    *,
    notes_stay: bool = False,
) -> None:
    """Forget messages of a session, and the runs of jobs that they tell of. zone: of the dates in its summary; known: secrets of this
    installation. notes_stay: what was noted from them is kept."""
    for run, theirs in runs.behind(db, ids).items():
        take(db, run, list(dict.fromkeys(theirs)), zone, known, now, notes_stay=notes_stay)
    branched = branches.copies(db, ids)
    for branch, theirs in branched.items():
        if theirs:
            take(db, branch, theirs, zone, known, now, notes_stay=notes_stay)
    listed = json.dumps(ids)
    first, turns = _first(db, session, listed), _turns(db, session, listed)
    facts = [] if notes_stay else notes.forget(db, ids, now)
    told = [*quoting(db, ids), *_telling(db, facts)]
    answers = [*_answers(db, listed, [text for _, text in facts]), *_commands_since(db, session, listed, first)]
    _retract(db, (*ids, *told), now)
    db.execute(f"DELETE FROM pins WHERE message IN {_IN}", (listed,))
    db.execute(f"DELETE FROM recalled WHERE message IN {_IN}", (listed,))
    files.forget(db, listed)
    _leave_prompts(db, set(ids), {scope for scope, _ in facts})
    db.execute(f"DELETE FROM timeline WHERE inbox IN (SELECT id FROM inbox WHERE turn IN {_IN})", (turns,))
    transcript.blank(db, (*ids, *told))
    _leave_turns(db, turns)
    db.execute(f"DELETE FROM edits WHERE message IN {_IN}", (listed,))
    cleaning.ask(db)
    _leave_deliveries(db, turns)
    _leave_commands(db, answers)
    for branch in branched:
        leave_summaries(db, branch, set(ids), first, zone, known)
    if transcript.between(db, session, 0):
        leave_summaries(db, session, set(ids), first, zone, known)
    else:
        end(db, session)


def foreseen(db: Connection, session: str, ids: Sequence[str]) -> Foreseen:
    """What goes with these messages of a session."""
    listed = json.dumps(ids)

    def count(sql: str) -> int:
        return int(db.execute(f"SELECT count(*) FROM {sql} IN {_IN}", (listed,)).fetchone()[0])

    newest = compactions.tip(db, session)
    held = set(ids)
    try:
        entries = sum(bool(held.intersection(entry.sources)) for entry in ledgers.from_json(newest.ledger)) if newest else 0
    except ValueError:
        entries = 0
    return Foreseen(
        messages=len(ids),
        files=count("attachments WHERE hash != '' AND message"),
        notes=count("observations WHERE source") + count("relations WHERE source"),
        entries=entries,
        quotes=len(quoting(db, ids)),
        copies=sum(map(len, branches.copies(db, ids).values())),
    )


def _leave_turns(db: Connection, turns: str) -> None:
    """Take the words of these turns out of what is written down beside their messages."""
    said = f"SELECT id FROM inbox WHERE turn IN {_IN}"
    db.execute(f"UPDATE inbox SET text = '', context = '{{}}', sender_name = '' WHERE id IN ({said})", (turns,))
    edits = "UPDATE inbox SET text = '' WHERE edits IN (SELECT external_id FROM inbox WHERE id IN ({}))"
    db.execute(edits.format(said), (turns,))
    db.execute(f"UPDATE tool_calls SET arguments = '{{}}' WHERE turn IN {_IN}", (turns,))
    db.execute(f"UPDATE approvals SET question = '', arguments = '{{}}' WHERE turn IN {_IN}", (turns,))
    db.execute(f"DELETE FROM recalled WHERE turn IN {_IN}", (turns,))


def _leave_deliveries(db: Connection, turns: str) -> None:
    """What is on its way keeps its row, without words: it says nothing more, and takes away what was shown of it."""
    db.execute(f"DELETE FROM outbox WHERE turn IN {_IN} AND state IN ('sent', 'dead', 'unknown')", (turns,))
    db.execute(f"UPDATE outbox SET text = '', parts = '[]' WHERE turn IN {_IN} AND state IN ('pending', 'sending')", (turns,))


def _leave_commands(db: Connection, turns: Sequence[str]) -> None:
    """Take away commands with what was answered to them: they stand in no transcript."""
    listed = json.dumps(turns)
    db.execute(f"DELETE FROM timeline WHERE inbox IN (SELECT id FROM inbox WHERE turn IN {_IN})", (listed,))
    db.execute(f"UPDATE inbox SET text = '', context = '{{}}' WHERE turn IN {_IN}", (listed,))
    _leave_deliveries(db, listed)


def _answers(db: Connection, listed: str, facts: Sequence[str] = ()) -> list[str]:
    """Turns of commands whose answers quote how one of these messages or facts begins, in any chat."""
    rows = db.execute(f"SELECT {transcript.COLUMNS} FROM messages WHERE id IN {_IN}", (listed,)).fetchall()
    texts = [*facts, *(redact(transcript.message(row).text) for row in rows)]
    wanted = [each for each in {" ".join(text.split())[:BEGINNING] for text in texts} if len(each) >= SHORTEST]
    if not wanted:
        return []
    said = db.execute("SELECT o.turn, o.text FROM turns AS t JOIN outbox AS o ON o.turn = t.id WHERE t.kind = 'command'")
    return [turn for turn, text in said if any(map(" ".join(text.split()).__contains__, wanted))]


def _commands_since(db: Connection, session: str, listed: str, first: int) -> list[str]:
    """Turns of a session's commands that were answered since the first of these messages, where nothing is left behind it."""
    left = f"SELECT 1 FROM messages WHERE session = ? AND seq > ? AND blocks != '[]' AND id NOT IN {_IN}"
    if db.execute(left, (session, first, listed)).fetchone():
        return []
    since = "SELECT coalesce(min(at), 0.0) FROM messages WHERE session = ? AND seq >= ?"
    rows = db.execute(
        f"SELECT id FROM turns AS t WHERE session = ? AND started >= ({since}) AND kind = 'command'"
        " AND EXISTS (SELECT 1 FROM outbox WHERE turn = t.id)",  # the one that forgets has no answer yet
        (session, session, first),
    )
    return [turn for (turn,) in rows]


def _retract(db: Connection, ids: Sequence[str], now: float) -> None:
    db.executemany(
        "INSERT INTO retractions (message, reason, at) VALUES (?, 'deleted', ?) ON CONFLICT (message) DO UPDATE"
        " SET reason = 'deleted', shown = 0",
        [(each, now) for each in ids],
    )


def untell(db: Connection, facts: Sequence[tuple[str, str]]) -> None:
    """Notes are gone: so are the results of tools that told them, as of when they were written, and the blocks of prompts."""
    _blank(db, _telling(db, facts))
    _leave_prompts(db, set(), {scope for scope, _ in facts})


def _blank(db: Connection, ids: Sequence[str]) -> None:
    db.execute(
        f"INSERT INTO retractions (message, reason, at) SELECT id, 'deleted', at FROM messages WHERE id IN {_IN}"
        " ON CONFLICT (message) DO UPDATE SET reason = 'deleted', shown = 0",
        (json.dumps(ids),),
    )
    transcript.blank(db, ids)


def unquote(db: Connection, ids: Sequence[str]) -> None:
    """Messages are about to be deleted: what quotes them elsewhere goes too, as of when it was written."""
    _leave_commands(db, _answers(db, json.dumps(ids)))
    _blank(db, quoting(db, ids))
    db.execute(f"DELETE FROM recalled WHERE message IN {_IN}", (json.dumps(ids),))
    _leave_prompts(db, set(ids), set())


def _first(db: Connection, session: str, listed: str) -> int:
    """The place of the first of these messages in their session."""
    row = db.execute(f"SELECT coalesce(min(seq), 0) FROM messages WHERE session = ? AND id IN {_IN}", (session, listed)).fetchone()
    return int(row[0])


def _turns(db: Connection, session: str, listed: str) -> str:
    rows = db.execute(f"SELECT DISTINCT turn FROM messages WHERE session = ? AND id IN {_IN} AND turn != ''", (session, listed))
    return json.dumps([turn for (turn,) in rows])


def quoting(db: Connection, ids: Sequence[str]) -> list[str]:
    """Results of tools that quote one of these messages, in any thread: the search tools put the id in front of what they quote."""
    found: list[str] = []
    for start in range(0, len(ids), ASKED):
        holding, values = _holding(db, [db.index_text(each) for each in ids[start : start + ASKED]])
        rows = db.execute(f"SELECT m.id FROM {holding} WHERE m.role = 'tool'", values)
        found += [identifier for (identifier,) in rows]
    return list(dict.fromkeys(found))


def _holding(db: Connection, phrases: Sequence[str]) -> tuple[str, list[Any]]:
    """Rows of `messages AS m` that hold one of these phrases, to select from; and its values."""
    matching, values = db.words("messages").matching(Sought(("text",), tuple(phrases)))
    return f"({matching}) AS f JOIN places AS p ON p.place = f.rowid JOIN messages AS m ON m.number = p.message", values


def _telling(db: Connection, facts: Sequence[tuple[str, str]]) -> list[str]:
    """Results of tools that tell one of these facts, (scope, words), in a chat that its scope is seen from."""
    found: list[str] = []
    for scope, text in facts:
        words = db.index_text(text).split()[:LONGEST_PHRASE]
        if not words:
            continue
        holding, values = _holding(db, [" ".join(words)])
        rows = db.execute(f"SELECT m.id, c.address FROM {holding} JOIN chats AS c ON c.id = m.chat WHERE m.role = 'tool'", values)
        found += [message for message, address in rows.fetchall() if scope in scopes.reach(db, Where(address=address)).values()]
    return found


def _leave_prompts(db: Connection, ids: set[str], noted: set[str]) -> None:
    """Take recall blocks away that quote one of them, and blocks of notes of these scopes: they are made anew for the next message."""
    db.executemany("UPDATE prompt_state SET notes = '' WHERE instr(notes_key, ?) > 0", [(f'"{scope}"',) for scope in noted])
    for session, excerpts in db.execute("SELECT session, excerpts FROM prompt_state WHERE recall != ''").fetchall():
        shown: list[dict[str, list[str]]] = readable(excerpts, [])
        if any(ids.intersection(each.get("ids", ())) for each in shown):
            db.execute("UPDATE prompt_state SET recall = '', excerpts = '[]' WHERE session = ?", (session,))


def leave_summaries(db: Connection, session: str, ids: set[str], first: int, zone: tzinfo, known: Collection[str]) -> None:
    """Take what stands on them out of every summary that saw them, those that were undone too."""
    for row in compactions.listing(db, session):
        if row.to_seq < first:
            continue
        try:
            ledger = without(ledgers.from_json(row.ledger), ids)
        except ValueError:
            ledger = ()
        held = [message for message in transcript.standing(db, row.held) if message.id not in ids]
        text = ledgers.render(ledger, held, known, zone=zone, year=_year(row, zone)) if ledger or held else ""
        db.execute(
            "UPDATE compactions SET ledger = ?, text = ?, held = ?, report = ? WHERE id = ?",
            (ledgers.to_json(ledger), text, json.dumps([message.id for message in held]), silent(row.report), row.id),
        )


def _year(row: Compaction, zone: tzinfo) -> int | None:
    at = readable(row.report, {"first_at": 0.0}).get("first_at")
    return datetime.fromtimestamp(at, zone).year if at else None


def end(db: Connection, session: str) -> None:
    """Nothing of a thread is left: nor are its summaries."""
    for table in ("compactions", "compaction_state", "boundaries", "prompt_state"):
        db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    db.execute("UPDATE sessions SET title = '' WHERE id = ?", (session,))
