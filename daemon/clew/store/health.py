"""What the store says of itself: counts, usage, checks."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from clew.messages import Usage
from clew.store import lanes, spending, transcript, turns, vectors
from clew.store.connection import Connection
from clew.store.indexing import Indexer


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """Model calls of a session and their tokens. last: usage of the newest reply's call; by: the provider that made it."""

    calls: int
    usage: Usage
    last: Usage = field(default_factory=Usage)
    by: str = ""


def counts(db: Connection, now: float) -> dict[str, int]:
    found = {
        "inbox_new": "SELECT (SELECT count(*) FROM inbox WHERE state = 'new' AND kind <> 'job')"
        " + (SELECT count(*) FROM inbox WHERE state = 'new' AND kind = 'job')",
        "outbox_pending": "SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')",
        "sessions": "SELECT count(*) FROM sessions",
        "messages": "SELECT coalesce(max(number), 0) FROM messages",
        "turns_running": f"SELECT count(*) FROM turns WHERE {turns.RUNNING}",
    }
    expired = db.execute("SELECT count(*) FROM cache_entries WHERE expires <= ?", (now,)).fetchone()[0]
    # An index on some states serves only a query that names exactly those.
    troubled = dict(db.execute("SELECT state, count(*) FROM outbox WHERE state IN ('unknown', 'dead') GROUP BY state").fetchall())
    return {name: db.execute(sql).fetchone()[0] for name, sql in found.items()} | {
        "outbox_unknown": troubled.get("unknown", 0),
        "outbox_dead": troubled.get("dead", 0),
        "cache_expired": expired,
        "calls_unsummed": spending.waiting(db),
    }


def session_usage(db: Connection, session: str) -> SessionUsage:
    sums = db.execute(
        "SELECT count(*), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0)"
        " FROM model_calls WHERE session = ?",
        (session,),
    ).fetchone()
    last = db.execute(
        "SELECT provider, input, output, cache_read, cache_write FROM model_calls WHERE session = ? AND purpose = 'reply' AND error = ''"
        " ORDER BY started DESC LIMIT 1",
        (session,),
    ).fetchone()
    usage = SessionUsage(sums[0], Usage(*sums[1:]))
    return replace(usage, last=Usage(*last[1:]), by=last[0]) if last else usage


def check(db: Connection, index: Indexer) -> list[str]:
    """What is wrong with the file, in words. The index is compared with one that is built anew beside it; nothing is written."""
    if problems := db.integrity():
        return problems
    try:
        return [*_index_problems(db, index), *vectors.problems(db)]
    except Exception as error:
        if not db.is_damage(error):
            raise
        return [f"the search index is malformed: {error}"]


def _index_problems(db: Connection, index: Indexer) -> list[str]:
    if not index.is_current(db):
        return ["the search index was built by another version or for other secrets; it is built anew at the next start"]
    with db.words("messages").compared() as beside:
        counts = Counter[str]()
        unlike = lanes.differing(db, _counted(transcript.index_into(db, beside), counts))
        differing = beside.differing()
        stored = db.words("messages").counts()
    problems = [f"the search index has no place, or a wrong one, for {', '.join(lost)}"] if (lost := transcript.misplaced(db)) else []
    problems += [
        f"the search index {what}, for instance {', '.join(terms)}"
        for what, terms in zip(("lacks words of the transcript", "holds words that the transcript does not"), differing, strict=True)
        if terms
    ]
    if stored != counts:
        problems.append("the word counts differ from the transcript's")
    if unlike:
        problems.append(f"the lanes of common words differ from the transcript, for instance of {', '.join(unlike)}")
    return problems


def _counted(words: Iterable[tuple[int, set[str]]], counts: Counter[str]) -> Iterator[tuple[int, set[str]]]:
    for place, held in words:
        counts.update(held)
        yield place, held


def probe(db: Connection) -> None:
    db.execute("SELECT 1 FROM inbox LIMIT 1").fetchone()


def probe_write(db: Connection, now: float) -> None:
    db.execute("INSERT INTO meta (key, value) VALUES ('probe', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (repr(now),))
