"""Proof that a session is whole: each message is in one place, and what a summary stands for is found by search."""

from collections.abc import Collection, Iterator, Sequence

from clew.context.sought import Sought
from clew.messages import searchable
from clew.store import Compaction, compactions, transcript
from clew.store.connection import Connection

NAMED = 5
"""Messages that one line of a report names."""
WORDS = 8
"""Words of its own by which a message is searched for."""


def verify(db: Connection, session: str) -> list[str]:
    """What is wrong with a session, in words; empty where promises 6 and 20 hold.

    Each message must be in exactly one of window (messages held in the summary included), summary and taken back, the compactions that
    stand must follow one another, and the index must give every covered message for words of its own.
    """
    rows = db.execute("SELECT id, seq FROM messages WHERE session = ? ORDER BY seq", (session,)).fetchall()
    forked = db.execute("SELECT fork_seq FROM sessions WHERE id = ? AND parent IS NOT NULL AND run = 1", (session,)).fetchone()
    if forked:  # a run beside its chat's session: its own rows are all in its window
        whole = [seq for _, seq in rows] == list(range(forked[0] + 1, forked[0] + 1 + len(rows)))
        return ([] if whole else ["the transcript has gaps"]) + _unreadable(db, session)
    places = dict(rows)
    damaged = compactions.damaged(db, session)
    chain = [each for each in compactions.listing(db, session) if each.undone_at is None and each.id not in damaged]
    before = chain[0].to_seq if chain and compactions.begins_branch(db, chain[0]) else 0  # the summary's rows are the parent's
    problems = [] if list(places.values()) == list(range(before + 1, before + 1 + len(places))) else ["the transcript has gaps"]
    problems += _unreadable(db, session)
    problems += [f"compaction {identifier} cannot be read" for identifier in damaged]
    problems += _chain(chain, before + len(places))
    problems += _partition(db, session, places, chain)
    return [*problems, *_unfindable(db, session, chain[-1].to_seq if chain else 0)]


def _unreadable(db: Connection, session: str) -> list[str]:
    return [f"message {row.id} cannot be read, or not all of it" for row in transcript.between(db, session, 0) if row.damaged]


def _chain(chain: Sequence[Compaction], length: int) -> Iterator[str]:
    """What is wrong with the compactions that stand, oldest first, of a transcript of `length` messages."""
    covered, parent = 0, None
    for each in chain:
        if each.parent != parent:
            yield f"compaction {each.id} does not revise the one before it"
        demotes = each.to_seq >= each.from_seq if each.kind == "summary" else each.to_seq == each.from_seq - 1
        if each.from_seq != covered + 1 or not demotes:
            yield f"compaction {each.id} covers {each.from_seq}-{each.to_seq}, but {covered + 1} comes next"
        covered, parent = each.to_seq, each.id
    if covered > length:
        yield "the summary covers messages that are not in the transcript"


def _partition(db: Connection, session: str, places: dict[str, int], chain: Sequence[Compaction]) -> Iterator[str]:
    view = compactions.view(db, session)
    held = set(view.compaction.held) if view.compaction else set()
    if chain and compactions.begins_branch(db, chain[0]):
        held &= places.keys()
    back = db.execute("SELECT message FROM retractions WHERE session = ? AND shown = 0", (session,))
    taken = {identifier for (identifier,) in back}
    spans = [(each.from_seq, each.to_seq) for each in chain]
    covered = {identifier for identifier, seq in places.items() if any(first <= seq <= last for first, last in spans)} - taken
    window = {row.id for row in view.messages}
    for what, wrong in (
        ("in neither window, summary nor taken back", places.keys() - window - covered - taken),
        ("in the window and in the summary", window & covered),
        ("taken back and still in the window", window & taken),
        ("held in the summary and not behind it", held - covered - taken),
        ("shortened and not in the window", view.shortened - window - taken),
    ):
        if wrong:
            yield f"{what}: {_named(wrong)}"


def _unfindable(db: Connection, session: str, to_seq: int) -> Iterator[str]:
    """Covered messages that have words and are not found by them."""
    lost = []
    rows = db.execute(
        f"SELECT place, {transcript.COLUMNS} FROM messages LEFT JOIN places ON message = number WHERE session = ? AND seq <= ?"
        " AND id NOT IN (SELECT message FROM retractions) ORDER BY seq",
        (session, to_seq),
    ).fetchall()
    for place, *columns in rows:
        row = transcript.message(columns)
        words = list(dict.fromkeys(db.index_text(searchable(row.blocks)).split()))[:WORDS]
        if not words:
            continue
        if not db.words("messages").holds(place, Sought(("text",), tuple(words), every=True)):
            lost.append(row.id)
    if lost:
        yield f"not found by search: {_named(lost)}"


def _named(identifiers: Collection[str]) -> str:
    some = sorted(identifiers)[:NAMED]
    return ", ".join(some) + (f" and {len(identifiers) - NAMED} more" if len(identifiers) > NAMED else "")
