"""The append-only transcript and its index."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from clew.clock import new_id
from clew.context.spans import written_on
from clew.context.text import SPOKEN_BY, tokens
from clew.messages import Message, Role, blocks_from_json, blocks_to_json, readable_blocks, searchable
from clew.store import NewMessage, Seen, lanes
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.places import CHAT_BITS, first_place, last_place
from clew.store.words import Comparison, WordIndex

BESIDE = "new_"
"""What the names of the index's tables begin with while it is built anew beside itself, see `rebuilding`."""
REBUILDING = "rebuilding"
"""The row of `meta` that says how far that came: up to which message."""
GONE = "rows_gone"
"""The row of `meta` that counts how often rows of the transcript were deleted or emptied."""
ROWS_GONE = f"coalesce((SELECT value FROM meta WHERE key = '{GONE}'), '0')"
"""How often that was, in digits."""
LONGEST_NAME = 100
"""Characters of a speaker's name that are indexed."""
FOLLOWED = ("vectors", REBUILDING)
"""Rows of `meta` that say up to which message something was done."""
EVERY = 9_000_000_000
"""More rows than a session has."""
DAY = 86_400
COLUMNS = "id, seq, role, blocks, at, sender, sender_name, turn"
REMEMBERED, REMEMBERED_CHARS = 2048, 2_000
"""So many rows, of so many characters at most, are not read anew: a session's window is the same from turn to turn but for its end."""


def message(row: Sequence[Any]) -> Message:
    """A row of COLUMNS as a message. Blocks that are damaged are left out: one bad row must not end its thread."""
    return _remembered(*row) if len(row[3]) <= REMEMBERED_CHARS else _message(*row)


def _message(identifier: str, seq: int, role: Role, blocks: str, at: float, sender: str, sender_name: str, turn: str) -> Message:
    try:
        return Message(identifier, seq, role, blocks_from_json(blocks), at, sender, sender_name, turn)
    except ValueError:
        return Message(identifier, seq, role, readable_blocks(blocks), at, sender, sender_name, turn, damaged=True)


_remembered = lru_cache(maxsize=REMEMBERED)(_message)


def append(db: Connection, session: str, chat: int, turn: str, new: Iterable[NewMessage]) -> tuple[Message, ...]:
    """Append messages and index them."""
    first = "coalesce((SELECT fork_seq FROM sessions WHERE id = ?), 0)"  # where a run goes on from its chat's session
    last: int = db.execute(f"SELECT coalesce(max(seq), {first}) FROM messages WHERE session = ?", (session, session)).fetchone()[0]
    return tuple(_append(db, session, chat, turn, seq, each) for seq, each in enumerate(new, last + 1))


def _append(db: Connection, session: str, chat: int, turn: str, seq: int, new: NewMessage) -> Message:
    return restore(db, session, chat, turn, seq, new_id(), new)


def restore(db: Connection, session: str, chat: int, turn: str, seq: int, identifier: str, new: NewMessage) -> Message:
    """Put a message with this id at this place, and index it."""
    number = db.insert(
        "INSERT INTO messages (id, session, seq, chat, role, blocks, sender, sender_name, turn, metadata, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            identifier,
            session,
            seq,
            chat,
            new.role,
            blocks_to_json(new.blocks),
            new.sender,
            new.sender_name,
            turn,
            json.dumps(dict(new.metadata), ensure_ascii=False),
            new.at,
        ),
        "number",
    )
    found = Message(identifier, seq, new.role, new.blocks, new.at, new.sender, new.sender_name, turn)
    _index(db, number, chat, found)
    return found


def _index(db: Connection, number: int, chat: int, found: Message, into: str = "") -> None:
    first, last = first_place(chat), last_place(chat)
    newest = f"SELECT max(place) FROM {into}places WHERE place BETWEEN ? AND ?"
    sql = (
        f"INSERT INTO {into}places (place, message) VALUES (coalesce(({newest}), ?) + 1, ?) ON CONFLICT (place) DO NOTHING RETURNING place"
    )
    while (row := db.execute(sql, (first, last, first, number)).fetchone()) is None:
        pass  # another daemon wrote in this chat: its place is taken, and seen from now on
    (place,) = row
    columns = _columns(db, found)
    _words_of(db, into).put(place, columns)
    _count(db, columns, 1, into)


def _words_of(db: Connection, into: str) -> WordIndex:
    return db.words("new_messages" if into else "messages")


def _unindex(db: Connection, number: int, found: Message, into: str = "") -> None:
    place = db.execute(f"DELETE FROM {into}places WHERE message = ? RETURNING place", (number,)).fetchone()[0]
    columns = _columns(db, found)
    _words_of(db, into).remove(place, columns)
    _count(db, columns, -1, into)


def _columns(db: Connection, found: Message) -> tuple[str, str, str]:
    """What the index holds of a message: its text, its day, its speaker."""
    speaker = (found.sender_name or found.sender)[:LONGEST_NAME]
    return db.index_text(searchable(found.blocks)), day_words(found.at), db.index_text(speaker) if speaker else ""


def _words(columns: tuple[str, str, str]) -> set[str]:
    """The words that are counted: those of the text and, marked, those of the speaker's name."""
    text, _, speaker = columns
    return {*tokens(text), *(SPOKEN_BY + word for word in tokens(speaker))}


def _count(db: Connection, columns: tuple[str, str, str], step: int, into: str) -> None:
    if not (words := _words(columns)):
        return
    _words_of(db, into).count(words, step)


def day_words(at: float) -> str:
    """The index's words for the day of a time (seconds since the epoch)."""
    try:
        return _words_of_day(int(round(at, 6) // DAY))  # rounded as a datetime is
    except (OverflowError, ValueError, OSError):
        return ""


@lru_cache(maxsize=REMEMBERED)
def _words_of_day(number: int) -> str:
    """Those of the day that began so many days behind the epoch: one day has many messages."""
    return written_on(datetime.fromtimestamp(number * DAY, UTC).date())


def forget(db: Connection, session: str, newest: int = EVERY) -> int:
    """Take a session's messages out of the index and delete them: all, or so many of the newest. Returns their number."""
    rows = db.execute(f"SELECT number, {COLUMNS} FROM messages WHERE session = ? ORDER BY seq DESC LIMIT ?", (session, newest)).fetchall()
    built = built_beside(db)
    numbers = json.dumps([number for number, *_ in rows])
    lanes.forget_rows(db, numbers)
    for number, *row in rows:
        found = message(row)
        for into in ("", BESIDE) if number <= built else ("",):
            _unindex(db, number, found, into)
    for into in ("", BESIDE) if built else ("",):
        _words_of(db, into).drop_uncounted()
    db.execute("DELETE FROM messages WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", (numbers,))
    _follow(db)
    if rows:
        _note_gone(db)
    return len(rows)


def _follow(db: Connection) -> None:
    """After messages were deleted: a number that is free again will be another message's, for which nothing was done yet."""
    newest = db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0]
    for key in FOLLOWED:
        state = _state(db, key)
        if state.get("done", 0) > newest:
            db.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(state | {"done": newest}), key))


def _state(db: Connection, key: str) -> dict[str, Any]:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    state: dict[str, Any] = readable(row[0], {}) if row else {}
    return state


def rows_gone(db: Connection) -> int:
    """How often rows were deleted or emptied so far."""
    return int(db.execute(f"SELECT {ROWS_GONE}").fetchone()[0])


def _note_gone(db: Connection) -> None:
    """Let other processes know that what they keep of rows does not hold any more."""
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (GONE, str(rows_gone(db) + 1)),
    )


def blank(db: Connection, ids: Iterable[str], *, nameless: bool = False) -> int:
    """Take the words of messages that were forgotten out of their rows and of the index, for good. nameless: who said them too. Returns
    how many there were."""
    rows = db.execute(
        f"SELECT number, {COLUMNS} FROM messages WHERE id IN (SELECT value FROM json_each(?))"
        " AND (blocks != '[]' OR (CAST(? AS BIGINT) = 1 AND sender != ''))",
        (json.dumps(tuple(ids)), int(nameless)),
    ).fetchall()
    built = built_beside(db)
    lanes.forget_rows(db, json.dumps([number for number, *_ in rows]))
    for number, *row in rows:
        found = message(row)
        empty = replace(found, blocks=(), sender="" if nameless else found.sender, sender_name="")
        for into in ("", BESIDE) if number <= built else ("",):
            _reindex(db, number, found, empty, into)
        db.execute(
            "UPDATE messages SET blocks = '[]', metadata = '{}', sender_name = '', sender = ? WHERE number = ?", (empty.sender, number)
        )
    for into in ("", BESIDE) if built and rows else ("",) if rows else ():
        _words_of(db, into).drop_uncounted()
    if rows:
        _note_gone(db)
    return len(rows)


def _reindex(db: Connection, number: int, before: Message, after: Message, into: str) -> None:
    """Let a message have other words in the index, in the same place."""
    place = db.execute(f"SELECT place FROM {into}places WHERE message = ?", (number,)).fetchone()[0]
    words, old, new = _words_of(db, into), _columns(db, before), _columns(db, after)
    words.remove(place, old)
    words.put(place, new)
    _count(db, old, -1, into)
    _count(db, new, 1, into)


def built_beside(db: Connection) -> int:
    """Up to which message the index was built anew beside the one that answers, 0 where it is not."""
    return int(_state(db, REBUILDING).get("done", 0))


def index_some(db: Connection, after: int, messages: int, characters: int, into: str) -> int | None:
    """Index the messages behind number `after` into tables whose names begin with `into`: so many of them, or as many as have so many
    characters. Returns the last one's number, None where there was none."""
    last, left = None, characters
    rows = db.execute(f"SELECT number, chat, {COLUMNS} FROM messages WHERE number > ? ORDER BY number LIMIT ?", (after, messages))
    for number, chat, *row in rows.fetchall():
        if left <= 0:
            break
        found = message(row)
        _index(db, number, chat, found, into)
        last, left = number, left - len(searchable(found.blocks))
    return last


def rebuild(db: Connection) -> int:
    """Build the index anew from the transcript. Returns the number of messages."""
    db.words("messages").clear()
    db.execute("DELETE FROM places")
    db.execute("DELETE FROM lanes")
    rows = 0
    for number, chat, *row in db.execute(f"SELECT number, chat, {COLUMNS} FROM messages ORDER BY number"):
        found = message(row)
        _index(db, number, chat, found)
        rows += 1
    return rows


def index_into(db: Connection, index: Comparison) -> Iterator[tuple[int, set[str]]]:
    """Index the whole transcript beside the index, as far as it has places. Gives the words at each place."""
    for place, _, found in _placed(db, 0, 2**63 - 1):
        columns = _columns(db, found)
        index.add(place, columns)
        yield place, _words(columns)


def index_places(db: Connection, after: int, limit: int) -> int | None:
    """Index the messages at the next places, so many, which are counted already. Returns the last place, None where there was none."""
    last = db.execute(
        "SELECT max(place) FROM (SELECT place FROM places WHERE place > ? ORDER BY place LIMIT ?) AS following", (after, limit)
    ).fetchone()[0]
    if last is not None:
        db.words("messages").put_all([(place, _columns(db, found)) for place, _, found in _placed(db, after + 1, last)])
    return None if last is None else int(last)


def words_at(db: Connection, first: int, last: int) -> list[tuple[int, int, str, set[str]]]:
    """(place, number, id, words) of the messages at these places, in order."""
    return [(place, number, found.id, _words(_columns(db, found))) for place, number, found in _placed(db, first, last)]


def _placed(db: Connection, first: int, last: int) -> Iterator[tuple[int, int, Message]]:
    columns = ", ".join(f"m.{column}" for column in COLUMNS.split(", "))
    rows = db.execute(
        f"SELECT place, number, {columns} FROM places CROSS JOIN messages AS m WHERE m.number = message AND place BETWEEN ? AND ?"
        " ORDER BY place",
        (first, last),
    )
    return ((place, number, message(row)) for place, number, *row in rows)


def misplaced(db: Connection) -> list[str]:
    """Ids of messages that have no place in the index, or none in their own chat in the order of their rows; at most a few."""
    rows = db.execute(
        f"SELECT id FROM (SELECT m.id, m.chat, p.place, m.number, max(m.number) OVER (PARTITION BY m.chat ORDER BY p.place) AS newest"
        f" FROM messages AS m LEFT JOIN places AS p ON p.message = m.number) AS ordered"
        f" WHERE place IS NULL OR place >> {CHAT_BITS} != chat OR newest != number LIMIT 3"
    )
    return [identifier for (identifier,) in rows]


def between(db: Connection, session: str, after: int, until: int | None = None) -> tuple[Message, ...]:
    """Messages with after < seq <= until that nobody took back, those that still stand in a prompt apart."""
    rows = db.execute(
        f"SELECT {COLUMNS} FROM messages AS m WHERE session = ? AND seq > ? AND seq <= coalesce(?, 9000000000)"
        " AND NOT EXISTS (SELECT 1 FROM retractions WHERE message = m.id AND shown = 0) ORDER BY seq",
        (session, after, until),
    )
    return tuple(message(row) for row in rows)


def behind(db: Connection, session: str, after: int, seen: Seen, taken_back: int) -> tuple[Message, ...]:
    """Messages with after < seq that nobody took back. seen: as it was read before; what it has is not read again while nothing more of
    the session was taken back, `taken_back` messages by now."""
    if not seen.messages or seen.after > after or seen.taken_back != taken_back:
        return between(db, session, after)
    kept = seen.messages if seen.after == after else tuple(message for message in seen.messages if message.seq > after)
    return (*kept, *between(db, session, max(after, seen.messages[-1].seq)))


def taken_back(db: Connection, session: str) -> tuple[int, bool]:
    """(how many messages of a session were taken back and do not stand in its prompt any more, whether one that was still does)."""
    gone, shown = db.execute(
        "SELECT count(*) - coalesce(sum(shown), 0), coalesce(max(shown), 0) FROM retractions WHERE session = ?", (session,)
    ).fetchone()
    return gone, bool(shown)


def standing(db: Connection, ids: Iterable[str]) -> tuple[Message, ...]:
    """Of these messages those that nobody took back, by session and place."""
    return tuple(row for row in by_ids(db, ids) if not db.execute("SELECT 1 FROM retractions WHERE message = ?", (row.id,)).fetchone())


def holds(db: Connection, written: Sequence[Message]) -> bool:
    """Whether these messages are there, which were written together."""
    return bool(written) and db.execute("SELECT 1 FROM messages WHERE id = ?", (written[0].id,)).fetchone() is not None


def by_ids(db: Connection, ids: Iterable[str]) -> tuple[Message, ...]:
    rows = db.execute(
        f"SELECT {COLUMNS} FROM messages WHERE id IN (SELECT value FROM json_each(?)) ORDER BY session, seq", (json.dumps(tuple(ids)),)
    )
    return tuple(message(row) for row in rows)
