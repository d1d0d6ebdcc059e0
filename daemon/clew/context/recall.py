"""From ranked messages to the block that the model reads, and when a shown block gives way to a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from clew.context.query import Query, query
from clew.context.quoting import CLOSE, HEADING_OTHER, HEADING_SAME, OPEN, QUOTE, SHORTEST, harmless, shortened, strip_appendix
from clew.context.ranking import Candidate, Scored
from clew.context.redact import redact

__all__ = [
    "HEADING_OTHER",
    "HEADING_SAME",
    "Candidate",
    "Excerpt",
    "Query",
    "Scored",
    "appendix",
    "current_scores",
    "excerpts",
    "query",
    "replaces",
    "strip_appendix",
]

MARGIN = 0.4
"""By how much of the query's weight the best new excerpt must beat every shown one before the block is replaced. Measured on public
two-person chats: 26 % of turns replace the block at 0.4, 46 % at 0.2, 14 % at 0.6."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Messages of one day of one session, quoted.

    `id` is the best of its messages, `ids` are all of them in order, `heading` its date and chat, `text` one line per message,
    `score` the best message's, `why` the terms of the query that it holds.
    """

    id: str
    session: str
    chat: str
    at: float
    heading: str
    text: str
    score: float
    why: tuple[str, ...]
    ids: tuple[str, ...]
    same_session: bool = False


def excerpts(query: Query, scored: Sequence[Scored], *, max_excerpts: int, budget_chars: int, zone: tzinfo) -> list[Excerpt]:
    """The best messages as at most `max_excerpts` excerpts, best first, that an appendix of `budget_chars` code points holds.

    Messages join in order of score, whole ones as far as they fit; long ones are shortened around what matched. `zone` is the
    asking person's, for the dates.
    """
    longest = max(SHORTEST, budget_chars * 3 // 10)
    groups: dict[tuple[str, str], list[tuple[Scored, str]]] = {}
    framed: set[bool] = set()
    left = budget_chars
    for item in scored:
        message = item.candidate
        key = (message.session, _day(message, zone))
        extra = 1
        if key not in groups:
            if len(groups) >= max_excerpts:
                continue
            extra += len(_heading(message, zone)) + 1
            extra += 0 if message.same_session in framed else _frame_size(message.same_session)
        if left - extra < SHORTEST:
            if groups and left < SHORTEST:
                break
            continue
        line = _line(query, message, longest)
        if len(line) > left - extra:
            continue
        left -= extra + len(line)
        framed.add(message.same_session)
        groups.setdefault(key, []).append((item, line))
    return [_excerpt(members, zone) for members in groups.values()]


def appendix(excerpts: Sequence[Excerpt], *, budget_chars: int) -> str:
    """The block for the prompt: a heading, a fence and quoted lines for each kind of excerpt; empty where nothing fits.

    Never longer than `budget_chars` code points. Excerpts that do not fit are left out, the later ones first; the rest stand in order
    of date, so that the bytes depend on which they are and not on their scores.
    """
    kept: list[Excerpt] = []
    for excerpt in excerpts:
        if len(_block([*kept, excerpt])) <= budget_chars:
            kept.append(excerpt)
    return _block(kept)


def current_scores(shown: Sequence[Excerpt], scored: Sequence[Scored]) -> dict[str, float]:
    """For each shown excerpt, by id, the best score that its messages have for the current message; 0 where none was found."""
    scores = {item.candidate.id: item.score for item in scored}
    return {excerpt.id: max((scores.get(member, 0.0) for member in excerpt.ids), default=0.0) for excerpt in shown}


def replaces(shown: Sequence[Excerpt], fresh: Sequence[Excerpt], scores_of_shown: Mapping[str, float], margin: float = MARGIN) -> bool:
    """Whether `fresh` excerpts replace the `shown` ones: the best new one must beat every shown one by more than `margin`.

    `scores_of_shown` are for the current message, as from `current_scores`. An empty result, or one whose messages are shown
    already, changes nothing.
    """
    seen = {member for excerpt in shown for member in excerpt.ids}
    new = [excerpt.score for excerpt in fresh if not seen.issuperset(excerpt.ids)]
    if not new or not shown:
        return bool(new)
    return max(new) - max(scores_of_shown.get(excerpt.id, 0.0) for excerpt in shown) > margin


def _block(excerpts: Sequence[Excerpt]) -> str:
    parts = []
    for same, heading in ((False, HEADING_OTHER), (True, HEADING_SAME)):
        group = sorted((e for e in excerpts if e.same_session is same), key=lambda e: (e.at, e.id))
        if group:
            parts.append("\n".join([heading, OPEN, *(f"{e.heading}\n{e.text}" for e in group), CLOSE]))
    return "\n".join(parts)


def _frame_size(same: bool) -> int:
    return len(HEADING_SAME if same else HEADING_OTHER) + len(OPEN) + len(CLOSE) + 3


def _excerpt(members: list[tuple[Scored, str]], zone: tzinfo) -> Excerpt:
    best = members[0][0].candidate
    ordered = sorted(members, key=lambda member: (member[0].candidate.seq, member[0].candidate.id))
    first = ordered[0][0].candidate
    return Excerpt(
        id=best.id,
        session=best.session,
        chat=best.chat,
        at=first.at,
        heading=_heading(first, zone),
        text="\n".join(line for _, line in ordered),
        score=members[0][0].score,
        why=tuple(dict.fromkeys(term for item, _ in members for term in item.why)),
        ids=tuple(item.candidate.id for item, _ in ordered),
        same_session=best.same_session,
    )


def _day(message: Candidate, zone: tzinfo) -> str:
    try:
        return datetime.fromtimestamp(message.at, zone).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return "undated"


def _heading(message: Candidate, zone: tzinfo) -> str:
    return f"[{_day(message, zone)}, {harmless(message.chat)[:80]}]"


def _line(query: Query, message: Candidate, size: int) -> str:
    head = f"{QUOTE}{harmless(message.speaker)[:40] or message.role}: "
    text = harmless(redact(message.text))
    room = max(SHORTEST // 2, size - len(head))
    return head + (text if len(text) <= room else shortened(query, text, room))
