"""Lanes: where common words stand in the full segments of a chat, so that a word of a hundred thousand messages is looked up at once.

They are made in the background, of segments that no new message joins, and go with the first of their messages that is deleted. The
search index knows all that they know: a segment without lanes, or a word without one there, is looked up in it.
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from clew.context.regions import SEGMENT_BITS, lane
from clew.store.connection import Connection
from clew.store.places import CHAT_BITS

FEWEST = 8
"""Messages of a segment that must hold a word for it to have a lane there: below, two bytes for each would do."""
SLICE = 1024
"""Places that are read in one transaction."""
_CHAT_SEGMENTS = CHAT_BITS - SEGMENT_BITS
_DONE = ""
_WINDOW = -10
"""Deflate without a header, looking back as far as a lane is long."""


@dataclass(slots=True)
class Making:
    """A segment whose lanes are being made. words: those at each place that was read; rows: (place, number) of its messages; newest: the
    id of the last of them."""

    segment: int
    words: list[tuple[int, Collection[str]]] = field(default_factory=list)
    rows: list[tuple[int, int]] = field(default_factory=list)
    newest: str = ""

    @property
    def slices(self) -> Iterator[tuple[int, int]]:
        """(first, last) places to read, a few at a time."""
        first = self.segment << SEGMENT_BITS
        return ((each, each + SLICE - 1) for each in range(first, first + (1 << SEGMENT_BITS), SLICE))

    def add(self, read: Iterable[tuple[int, int, str, Collection[str]]]) -> None:
        """What stands at more of its places, in order: place, the message's number and id, its words."""
        for place, number, self.newest, words in read:
            self.words.append((place, words))
            self.rows.append((place, number))


def due(db: Connection) -> Making | None:
    """The first segment that is full and has no lanes."""
    newest = db.execute(
        "SELECT * FROM (SELECT id,"
        f" (SELECT max(place) FROM places WHERE place BETWEEN id << {CHAT_BITS} AND ((id + 1) << {CHAT_BITS}) - 1) AS newest"
        f" FROM chats) AS each WHERE newest & {(1 << CHAT_BITS) - 1} >= {1 << SEGMENT_BITS} ORDER BY id",
    )
    for chat, place in newest.fetchall():
        first, end = chat << _CHAT_SEGMENTS, place >> SEGMENT_BITS
        done = set(_done(db, [(first, end - 1)]))
        if len(done) < end - first:
            return Making(next(segment for segment in range(first, end) if segment not in done))
    return None


def put(db: Connection, making: Making) -> None:
    """Write the lanes, unless the segment changed meanwhile: messages went, or were given other places. Places and numbers become free
    from the newest down, so that the id of the newest message tells whether others have them now."""
    first, last = making.segment << SEGMENT_BITS, (making.segment + 1 << SEGMENT_BITS) - 1
    rows = db.execute("SELECT place, message FROM places WHERE place BETWEEN ? AND ? ORDER BY place", (first, last)).fetchall()
    newest = db.execute("SELECT id FROM messages WHERE number = ?", (rows[-1][1],)).fetchone()[0] if rows else ""
    if (rows, newest) == (making.rows, making.newest):
        made = [(making.segment, term, deflated) for term, deflated in sorted(lanes(making.words).items())]
        db.executemany(
            "INSERT INTO lanes (segment, term, lane) VALUES (?, ?, ?) ON CONFLICT (segment, term) DO UPDATE SET lane = excluded.lane",
            [(making.segment, _DONE, b""), *made],
        )


def forget_rows(db: Connection, numbers: str) -> None:
    """Take away the lanes of the segments that hold one of these messages (JSON: numbers), whose words are about to go."""
    db.execute(
        "DELETE FROM lanes WHERE segment IN"
        f" (SELECT place >> {SEGMENT_BITS} FROM json_each(?) JOIN places ON message = CAST(value AS BIGINT))",
        (numbers,),
    )


def lanes(words: Iterable[tuple[int, Collection[str]]]) -> dict[str, bytes]:
    """The deflated lanes of a segment, given the words at its places."""
    where = defaultdict[str, list[int]](list)
    for place, held in words:
        for word in held:
            where[word].append(place)
    return {word: _deflated(lane(places)) for word, places in where.items() if len(places) >= FEWEST}


def done_within(db: Connection, runs: Sequence[tuple[int, int]], chats: Collection[int] | None) -> list[int]:
    """The segments with lanes in these runs of places that are of these chats (None: of any), the newest first."""
    found = _done(db, [(first >> SEGMENT_BITS, last >> SEGMENT_BITS) for first, last in runs])
    return [segment for segment in found if chats is None or segment >> _CHAT_SEGMENTS in chats]


def find(db: Connection, segments: Sequence[int], words: Collection[str]) -> dict[str, dict[int, bytes]]:
    """The lanes of words in these segments."""
    rows = db.execute(
        "SELECT term, segment, lane FROM json_each(?) AS word CROSS JOIN json_each(?) AS one"
        " CROSS JOIN lanes WHERE segment = CAST(one.value AS BIGINT) AND term = word.value",
        (json.dumps(sorted(words), ensure_ascii=False), json.dumps(segments)),
    )
    found: dict[str, dict[int, bytes]] = {word: {} for word in words}
    for word, segment, deflated in rows:
        found[word][segment] = zlib.decompress(deflated, _WINDOW)
    return found


def differing(db: Connection, words: Iterable[tuple[int, Collection[str]]]) -> list[str]:
    """Words whose lanes are not what the words at all places, in order, make them; at most a few."""
    done, checked = set(_done(db, [(0, 2**63 - 1)])), set()
    wrong: set[str] = set()
    for segment, group in groupby(words, key=lambda each: each[0] >> SEGMENT_BITS):
        if segment in done:
            stored = db.execute("SELECT term, lane FROM lanes WHERE segment = ? AND term != ?", (segment, _DONE)).fetchall()
            wrong |= {word for word, _ in set(stored) ^ lanes(group).items()}
            checked.add(segment)
    stray = db.execute(
        "SELECT term FROM lanes WHERE segment NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", (json.dumps(sorted(checked)),)
    )
    return sorted(wrong | {word or "no word" for (word,) in stray})[:3]


def _done(db: Connection, runs: Sequence[tuple[int, int]]) -> Iterator[int]:
    for first, last in runs:
        rows = db.execute("SELECT segment FROM lanes WHERE term = '' AND segment BETWEEN ? AND ? ORDER BY segment DESC", (first, last))
        yield from (segment for (segment,) in rows)


def _deflated(plain: bytes) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, _WINDOW)
    return deflate.compress(plain) + deflate.flush()


def uncovered(lanes: Mapping[int, bytes], runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of runs of places, the newest first, without the segments that lanes cover."""
    left = []
    for first, last in runs:
        for segment in sorted((each for each in lanes if first <= each << SEGMENT_BITS <= last), reverse=True):
            left.append((segment + 1 << SEGMENT_BITS, last))
            last = (segment << SEGMENT_BITS) - 1
        left.append((first, last))
    return [(first, last) for first, last in left if first <= last]
