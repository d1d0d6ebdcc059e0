"""Search: who may see a text is part of what the index is asked, and a condition of the SQL that reads it."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate, pairwise
from math import inf
from typing import Any

from clew.context.query import Query
from clew.context.ranking import Candidate, Line, Matcher, Ranked, Scored, rank
from clew.context.regions import BLOCK_BITS, BLOCKS, EDGE, Hits, regions
from clew.context.sought import Sought
from clew.context.text import SPOKEN_BY, stem
from clew.messages import readable_blocks, searchable, searchable_in
from clew.store import Ask, Found, Scope, lanes, private
from clew.store.connection import Connection
from clew.store.places import first_place, last_place
from clew.store.words import Within

_NOTHING_IN_VIEW = 2**62
"""A place behind every row."""
RANGES = 8
"""Runs of places that are looked at for one scope; more chats than that share them, and are told apart row by row."""
LOOKUPS = 10_000
"""The most places that the index is asked for, the rarest terms first: what bounds the cost of a query. A term that is too common for it is
sought in the texts that the others lead to. Of 100,000 messages in which none had lanes 7,000 lost 3 points of evidence recall."""
LINES = BLOCKS * ((1 << BLOCK_BITS) + 2 * EDGE)
"""The most messages that are looked at closely, as `regions` has them. A database that is not told so expects many, and reads them all."""
IN_VIEW = 200
"""The newest messages of a window that are kept from crowding out what is sought."""
SEGMENTS = 1_000
"""The newest segments whose lanes are looked at: eight million messages."""
DAY = 86_400
"""Seconds."""
_EVER = 9e18
"""Seconds: what stands for infinity, which JSON has not."""

_POSITION = re.compile(r"#[0-9]{1,9}\Z")
_IN_SPAN = (
    "EXISTS (WITH span(chat, since, until) AS MATERIALIZED (SELECT CAST(value ->> 0 AS BIGINT), CAST(value ->> 1 AS DOUBLE PRECISION),"
    " CAST(value ->> 2 AS DOUBLE PRECISION) FROM json_each(?))"
    " SELECT 1 FROM span WHERE span.chat = m.chat AND m.at BETWEEN since AND until)"
)
"""The condition that a row of `messages AS m` was written in one of the spans (chat, since, until) of a JSON list. Materialized, so that
it is read once for a query, not for each row."""
_SPEAKER = "coalesce(nullif(m.sender_name, ''), m.sender)"


def scope_of_session(db: Connection, session: str, address: str, after_seq: int) -> Scope:
    """What may reach a prompt of `session` that is answered at `address`: a group sees itself, a person's chats see their person's."""
    chat = db.execute("SELECT id, direct, person FROM chats WHERE address = ?", (address,)).fetchone()
    if chat is None:
        return Scope((), session, after_seq)
    number, direct, person = chat
    base = db.execute("SELECT parent, fork_seq FROM sessions WHERE id = ? AND parent IS NOT NULL", (session,)).fetchone()
    chats = _chats_of(db, person, own=number) if direct else ((number, -inf, inf),)
    return Scope(chats, session, after_seq, base)


def scope_of_person(db: Connection, person: str) -> Scope:
    """What `person` may see: their direct chats, and of groups what was written while they were in them."""
    return Scope(_chats_of(db, person))


def scope_of_chat(db: Connection, address: str) -> Scope:
    """What may be seen at `address`."""
    return scope_of_session(db, "", address, 0)


def scope_of_operator() -> Scope:
    return Scope(None)


def _chats_of(db: Connection, person: str | None, own: int | None = None) -> tuple[tuple[int, float, float], ...]:
    spans = [(own, -inf, inf)] if own is not None else []
    if person is not None:
        direct = db.execute("SELECT id FROM chats WHERE direct = 1 AND person = ?", (person,))
        spans += [(number, -inf, inf) for (number,) in direct if number != own]
        groups = db.execute(
            "SELECT chat, joined, coalesce(left_at, 9e18) FROM chat_members JOIN chats ON chats.id = chat"
            " WHERE chat_members.person = ? AND direct = 0",
            (person,),
        )
        spans += list(groups)
    return tuple(spans)


def search(db: Connection, scope: Scope, ask: Ask, limit: int, shown: Sequence[str] = ()) -> Found:
    """What `ask` makes of the index's word counts, asked and ranked: at most `limit` messages, the best first.

    Messages of the asking session that are in view are not found, and neither is what somebody took back. `shown`: ids of messages
    of which it is to be said whether they may (still) be seen.
    """
    counts: dict[str, int] = {}

    def frequencies(words: Collection[str]) -> Mapping[str, int]:
        counts.update(db.words("messages").frequencies(words))
        return counts

    query = ask(frequencies, _total(db))
    if query is None or scope.chats == ():
        return Found(query, (), visible(db, scope, shown))
    hits, unsought = _hits(db, scope, query, counts)
    if not hits:
        return Found(query, (), visible(db, scope, shown))
    lines = _lines(db, scope, regions(query, hits, _in_view(db, scope)))
    ranked = rank(query, lines, hits, limit)
    texts = _texts(db, ranked)
    if unsought:
        hits = _with_common(query, hits, unsought, ranked, texts)
        ranked = rank(query, sorted(each.line for each in ranked), hits, limit)
    scored = tuple(
        Scored(_candidate(scope, *texts[each.line.number], each.line), each.score, tuple(query.terms[number] for number in each.terms))
        for each in ranked
    )
    return Found(query, scored, visible(db, scope, shown))


def _hits(db: Connection, scope: Scope, query: Query, counts: Mapping[str, int]) -> tuple[Hits, frozenset[int]]:
    """Where the terms stand, and the numbers of those that the index was not asked for in full."""
    runs = _ranges(scope)
    parts = [[stem(word) for word in term.split(" ")] for term in query.terms] + [[SPOKEN_BY + stem(name)] for name, _ in query.speakers]
    often = [min(counts.get(each, 0) for each in words) for words in parts]
    held = _lanes(db, scope, runs, parts, often)
    terms, unsought = _term_places(db, scope, query, often, [lanes.uncovered(each, runs) for each in held[: len(query.terms)]])
    others = [
        *((query.spoken_by(number), lanes.uncovered(held[len(query.terms) + number], runs)) for number in range(len(query.speakers))),
        *((days.sought, runs) for days in query.days),
    ]
    found = _places(db, scope, others, LOOKUPS) if others else []
    return Hits(terms, tuple(found[len(query.speakers) :]), held, tuple(found[: len(query.speakers)])), unsought


def _term_places(
    db: Connection, scope: Scope, query: Query, often: Sequence[int], runs: Sequence[Sequence[tuple[int, int]]]
) -> tuple[tuple[Sequence[int], ...], frozenset[int]]:
    """Where each term stands in its runs of places, and the numbers of those that were not looked up in full.

    often: in how many messages each is, as it is counted. The index joins a few words more than are counted as one, so that it is asked
    for those without a message too: for all of them at once, for hardly one is there.
    """
    found: list[Sequence[int]] = [()] * len(query.terms)
    rarest = sorted(range(len(query.terms)), key=lambda number: (-query.weights[number], query.terms[number]))
    unknown = [number for number in rarest if not often[number]]
    if len(unknown) > 1:
        any_of_them = Sought(("text",), tuple(query.terms[number] for number in unknown))
        if not _places(db, scope, [(any_of_them, runs[unknown[0]])], 1)[0]:
            rarest = [number for number in rarest if often[number]]
    left, unsought = LOOKUPS, set[int]()
    while rarest:
        some = _within(rarest, often, left)
        rarest = rarest[len(some) :]
        wanted = [(query.sought(number), runs[number]) for number in some] if left else []
        for number, places in zip(some, _places(db, scope, wanted, left) if wanted else [()] * len(some), strict=True):
            found[number] = places[:left]
            left -= len(found[number])
            if not left:
                unsought.add(number)
    return tuple(found), frozenset(unsought)


def _within(terms: Sequence[int], often: Sequence[int], left: int) -> Sequence[int]:
    """The first of these terms, at least one, that all together should have no more than so many places."""
    for count, sum_ in enumerate(accumulate(often[number] for number in terms)):
        if sum_ > left:
            return terms[: max(count, 1)]
    return terms


def _lanes(
    db: Connection, scope: Scope, runs: Sequence[tuple[int, int]], parts: Sequence[Sequence[str]], often: Sequence[int]
) -> tuple[Mapping[int, bytes], ...]:
    """The lanes of each of these words and phrases that are so common that most segments should have one of them. Those of a phrase say
    where all of its words stand in one message. often: in how many messages each is."""
    chats = None if scope.chats is None else {chat for chat, _, _ in scope.chats}
    segments = lanes.done_within(db, runs, chats)[:SEGMENTS]
    common = [bool(segments) and count >= lanes.FEWEST * len(segments) for count in often]
    wanted = {word for words, is_common in zip(parts, common, strict=True) if is_common for word in words}
    found = lanes.find(db, segments, wanted) if wanted else {}
    return tuple(
        _together([found.get(word, {}) for word in words]) if is_common else {} for words, is_common in zip(parts, common, strict=True)
    )


def _together(held: Sequence[Mapping[int, bytes]]) -> Mapping[int, bytes]:
    """Of words' lanes, where all of them have one, those of the messages that hold every word."""
    if len(held) == 1:
        return held[0]
    shared = set(held[0]).intersection(*held[1:])
    return {segment: reduce(_both, [each[segment] for each in held]) for segment in shared}


def _both(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") & int.from_bytes(other, "little")).to_bytes(len(one), "little")


def _ranges(scope: Scope) -> list[tuple[int, int]]:
    """Runs of places that hold the chats of a scope, the newest chats first: a few, which may hold other chats between them."""
    if scope.chats is None:
        return [(0, 2**63 - 1)]
    chats = sorted({chat for chat, _, _ in scope.chats})
    gaps = sorted(((later - earlier, later) for earlier, later in pairwise(chats) if later - earlier > 1), reverse=True)[: RANGES - 1]
    firsts = sorted({chats[0], *(later for _, later in gaps)})
    runs = [
        (first_place(first), last_place(max(chat for chat in chats if chat < following)))
        for first, following in zip(firsts, [*firsts[1:], chats[-1] + 1], strict=True)
    ]
    return runs[::-1]


def _places(db: Connection, scope: Scope, wanted: Sequence[Within], most: int) -> list[list[int]]:
    """Where the index has each that is wanted in the chats of a scope, the newest places if they are too many."""
    return db.words("messages").newest(wanted, None if scope.chats is None else {chat for chat, _, _ in scope.chats}, most)


def _in_view(db: Connection, scope: Scope) -> list[int]:
    rows = db.execute(
        "SELECT place FROM messages JOIN places ON message = number WHERE session = ? AND seq > ? ORDER BY seq DESC LIMIT ?",
        (scope.session, scope.after_seq, IN_VIEW),
    ).fetchall()
    if scope.base is not None:
        rows += db.execute(
            "SELECT place FROM messages JOIN places ON message = number WHERE session = ? AND seq > ? AND seq <= ?"
            " ORDER BY seq DESC LIMIT ?",
            (*_in_base(scope), IN_VIEW),
        ).fetchall()
    return [place for (place,) in rows]


def _in_base(scope: Scope) -> tuple[str | None, int, int]:
    """(session, the rows of it behind which and up to which are in view) that the asking one goes on from."""
    base, until = scope.base or (None, 0)
    return base, scope.after_seq, until


def _lines(db: Connection, scope: Scope, runs: Sequence[tuple[int, int]]) -> list[Line]:
    allowed, values = _allowed(scope)
    rows = db.execute(
        f"SELECT place, m.number, m.session, {_SPEAKER}, m.at, m.seq, length(m.blocks),"
        " substr(m.blocks, length(m.blocks) - 3, 1) IN ('?', '？')"
        " FROM (SELECT place, message FROM json_each(?) AS run CROSS JOIN places"
        f" WHERE place BETWEEN CAST(run.value ->> 0 AS BIGINT) AND CAST(run.value ->> 1 AS BIGINT) LIMIT {LINES}) AS near"
        f" CROSS JOIN messages AS m WHERE m.number = message AND {allowed}",
        (json.dumps(runs), *values),
    )
    return sorted([Line._make((*row, int(row[4] / DAY))) for row in rows])


def _texts(db: Connection, ranked: Sequence[Ranked]) -> dict[int, tuple[str, str, str, str]]:
    """Of each line its message's id, address, role and text, by row."""
    rows = db.execute(
        "SELECT m.number, m.id, c.address, m.role, m.blocks FROM json_each(?) AS wanted CROSS JOIN messages AS m CROSS JOIN chats AS c"
        " WHERE m.number = CAST(wanted.value AS BIGINT) AND c.id = m.chat",
        (json.dumps([each.line.number for each in ranked]),),
    )
    return {number: (identifier, address, role, _text(blocks)) for number, identifier, address, role, blocks in rows}


def _with_common(
    query: Query, hits: Hits, unsought: Collection[int], ranked: Sequence[Ranked], texts: Mapping[int, tuple[str, str, str, str]]
) -> Hits:
    """The hits, and where in the texts terms stand that were too common to be looked up."""
    matcher = Matcher([query.terms[number] for number in unsought])
    where = defaultdict[str, list[int]](list)
    for each in ranked:
        if each.line.number in texts:
            for term in matcher(texts[each.line.number][3]):
                where[term].append(each.line.place)
    terms = [where[query.terms[number]] if number in unsought else places for number, places in enumerate(hits.terms)]
    return replace(hits, terms=tuple(terms))


def _allowed(scope: Scope) -> tuple[str, list[Any]]:
    """The condition that a row of `messages AS m` may be seen, and its values."""
    base = scope.base[0] if scope.base else None
    conditions = ["m.id NOT IN (SELECT message FROM retractions)", private.HIDDEN]
    values: list[Any] = [scope.session, base]
    if scope.session is not None:
        conditions.append("NOT (m.session = ? AND m.seq > ?)")
        values += [scope.session, scope.after_seq]
    if scope.base is not None:
        conditions.append("NOT (m.session = ? AND m.seq > ? AND m.seq <= ?)")
        values += _in_base(scope)
    if scope.chats is not None:
        conditions.append(
            "(m.session IS NOT DISTINCT FROM ? OR NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = m.session AND run = 1))"
        )
        values.append(scope.session)
        conditions.append(_IN_SPAN)
        values.append(json.dumps([(chat, max(since, -_EVER), min(until, _EVER)) for chat, since, until in scope.chats]))
    return " AND ".join(conditions), values


def _candidate(scope: Scope, identifier: str, address: str, role: str, text: str, line: Line) -> Candidate:
    speaker = line.speaker or ("clew" if role == "assistant" else role)
    own = line.session in (scope.session, scope.base[0] if scope.base else None)
    return Candidate(identifier, line.session, address, speaker, role, line.at, text, line.seq, own)


def _text(blocks: str) -> str:
    try:
        return searchable_in(blocks)
    except ValueError:
        return searchable(readable_blocks(blocks))


def visible(db: Connection, scope: Scope, ids: Sequence[str]) -> frozenset[str]:
    """Which of these messages may (still) be seen and are not in view."""
    if scope.chats == () or not ids:
        return frozenset()
    allowed, values = _allowed(scope)
    rows = db.execute(
        f"SELECT m.id FROM messages AS m WHERE m.id IN (SELECT value FROM json_each(?)) AND {allowed}", (json.dumps(ids), *values)
    )
    return frozenset(identifier for (identifier,) in rows)


def around(db: Connection, scope: Scope, message: str, before: int, after: int) -> list[Candidate]:
    """A message that may be seen, with what stands around it in its session; empty where it may not or is not.

    message: its id or, in the session that asks, `#` and its position, as a summary names it.
    """
    if scope.chats == ():
        return []
    everywhere = Scope(scope.chats, scope.session, _NOTHING_IN_VIEW, scope.base)  # opened by id: what is in view may be opened too
    base = scope.base[0] if scope.base else None
    allowed, values = _allowed(everywhere)
    seq = int(message[1:]) if _POSITION.match(message) else 0
    place = db.execute(
        f"SELECT m.session, m.seq FROM messages AS m WHERE (m.id = ? OR (m.session IN (?, ?) AND m.seq = ?)) AND {allowed}"
        " ORDER BY m.session = ? DESC LIMIT 1",
        (message, scope.session, base, seq, *values, scope.session),
    ).fetchone()
    if place is None:
        return []
    rows = db.execute(
        f"SELECT m.id, m.session, c.address, {_SPEAKER}, m.role, m.at, m.blocks, m.seq FROM messages AS m JOIN chats AS c ON c.id = m.chat"
        f" WHERE m.session = ? AND m.seq BETWEEN ? AND ? AND {allowed} ORDER BY m.seq",
        (place[0], place[1] - before, place[1] + after, *values),
    )
    return [
        _candidate(scope, identifier, address, role, _text(blocks), Line(0, 0, session, speaker, at, seq, 0, asks=False, day=0))
        for identifier, session, address, speaker, role, at, blocks, seq in rows
    ]


def _total(db: Connection) -> int:
    """Messages in the store, near enough: the newest row's number."""
    row = db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()
    return int(row[0])
