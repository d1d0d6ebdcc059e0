"""Cross-session recall: one engine for the appendix of a prompt, the tools and the search command."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, tzinfo
from time import perf_counter
from typing import Protocol

import structlog

from clew.config import Recall as Settings
from clew.context.nearness import CANDIDATES, joined, neighbours
from clew.context.query import ENOUGH_TERMS, Frequencies, Query, query
from clew.context.ranking import Scored, relevant
from clew.context.recall import Excerpt, appendix, current_scores, excerpts, replaces
from clew.context.repeats import without_repeats
from clew.context.tokens import estimate
from clew.errors import UsageError
from clew.meaning import Meaning
from clew.metrics import Metrics
from clew.store import Found, PromptState, Scope
from clew.store.notes import Where
from clew.store.sql import SqlStore

log = structlog.get_logger()

DEPTH = 60
"""Messages that are ranked with their texts."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """What a recall provider is told of a turn.

    address: where it is answered. after_seq: the last row that is not in view. text, previous: the person's words of this turn, and
    before it (oldest first). names: people known in the chat. zone: the asking person's. state: what stands in the prompt. keep: False
    where the block may be replaced freely (a compaction came between, or the cache is cold). limit_tokens: estimated tokens that the
    block may have, None for any number. at: when it is asked, seconds since the epoch. in_view: the texts of the window's messages, this
    turn's included; summary: what stands in front of them.
    """

    session: str
    address: str
    after_seq: int
    text: str
    previous: tuple[str, ...]
    names: tuple[str, ...]
    zone: tzinfo
    state: PromptState
    keep: bool
    limit_tokens: int | None = None
    at: float = 0.0
    in_view: tuple[str, ...] = ()
    summary: str = ""


class Appendix(str):
    """A recall block, and the excerpts it was made of. `considered`: those found for this turn, and those that stood there already, with
    their scores for this turn; `shown`: those in the block."""

    __slots__ = ("considered", "shown")

    considered: tuple[Excerpt, ...]
    shown: tuple[Excerpt, ...]

    def __new__(cls, text: str, considered: Sequence[Excerpt], shown: Sequence[Excerpt]) -> "Appendix":
        self = super().__new__(cls, text)
        self.considered = tuple(considered)
        self.shown = tuple(shown)
        return self


class RecallProvider(Protocol):
    """Where the appendix comes from; another one can be plugged in by the entry-point group `clew.recall`."""

    async def system_appendix(self, session: SessionView) -> str: ...


class IndexRecall:
    """The built-in recall, on the full-text index."""

    def __init__(self, store: SqlStore, settings: Settings, metrics: Metrics, meaning: Meaning | None = None) -> None:
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._meaning = meaning

    async def system_appendix(self, session: SessionView) -> Appendix:
        """The block for this turn, empty where nothing is relevant."""
        if not self._settings.enabled:
            return Appendix("", (), ())
        started = perf_counter()
        result = await self._decide(session)
        seconds = perf_counter() - started
        self._metrics.recall_seconds.observe(seconds)
        log.info("agent.recalled", excerpts=len(result.shown), chars=len(result), ms=round(seconds * 1000, 1))
        return result

    async def _decide(self, session: SessionView) -> Appendix:
        shown = shown_excerpts(session.state)
        members = [member for excerpt in shown for member in excerpt.ids]
        today = datetime.fromtimestamp(session.at, session.zone).date()

        def ask(frequencies: Frequencies, total: int) -> Query | None:
            return query(session.text, session.previous, session.names, frequencies, total, today)

        asking = session.session, session.address, session.after_seq
        found, lately = await self._store.found_for(asking, ask, _depth(self._meaning), members, again=bool(session.previous))
        fresh: list[Excerpt] = []
        if found.query is not None and found.scored and relevant(found.query, found.scored[0].score):
            found = await _with_meaning(found, _asked(session, found.query), self._meaning)
            fresh = await asyncio.to_thread(self._quoted, found, session, lately.difference(members))
        allowed = [excerpt for excerpt in shown if found.visible.issuperset(excerpt.ids)]
        if session.keep and len(allowed) == len(shown) and not replaces(shown, fresh, current_scores(shown, found.scored)):
            return Appendix(session.state.recall, [*fresh, *_stood(shown, fresh, found.scored)], shown)
        chosen = fresh or ([] if not session.keep else allowed)
        text = appendix(chosen, budget_chars=self._settings.budget_chars)
        while chosen and session.limit_tokens is not None and estimate(text) > session.limit_tokens:
            chosen = chosen[:-1]
            text = appendix(chosen, budget_chars=self._settings.budget_chars)
        return Appendix(text, fresh, chosen)

    def _quoted(self, found: Found, session: SessionView, gone: frozenset[str]) -> list[Excerpt]:
        """The excerpts of what was found. gone: messages that were recalled in the last turns and do not stand in the prompt any more.
        Takes milliseconds, so not on the loop."""
        if found.query is None or not found.scored or not relevant(found.query, found.scored[0].score):
            return []
        limit = self._settings
        new = without_repeats(found.query, found.scored, session.in_view, session.summary, gone)
        return excerpts(found.query, new, max_excerpts=limit.max_excerpts, budget_chars=limit.budget_chars, zone=session.zone)


def _stood(shown: Sequence[Excerpt], fresh: Sequence[Excerpt], scored: Sequence[Scored]) -> list[Excerpt]:
    """The shown excerpts that were not found anew, with what they have in common with the current message."""
    found = {member for excerpt in fresh for member in excerpt.ids}
    scores, why = current_scores(shown, scored), {each.candidate.id: each.why for each in scored}
    return [
        replace(excerpt, score=scores[excerpt.id], why=tuple(dict.fromkeys(term for member in excerpt.ids for term in why.get(member, ()))))
        for excerpt in shown
        if found.isdisjoint(excerpt.ids)
    ]


def shown_excerpts(state: PromptState) -> tuple[Excerpt, ...]:
    """The excerpts that a prompt state's block shows."""
    return tuple(Excerpt(**{**each, "why": tuple(each["why"]), "ids": tuple(each["ids"])}) for each in json.loads(state.excerpts))


def excerpts_json(shown: Sequence[Excerpt]) -> str:
    """The inverse of `shown_excerpts`."""
    return json.dumps([asdict(excerpt) for excerpt in shown], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose words are searched. zone: of the person whose they are (IANA), None where there is no such person or none is known."""

    scope: Scope
    zone: str | None = None


async def search(
    store: SqlStore, scope: Scope, text: str, *, limit: int, today: date | None = None, meaning: Meaning | None = None
) -> list[Scored]:
    """The messages that answer `text` best within `scope`, best first: the same engine and ranking as the appendix.

    Who searches wants to see what there is: the gate that keeps small talk from recalling anything does not apply.
    """

    def ask(frequencies: Frequencies, total: int) -> Query | None:
        return query(text, (), (), frequencies, total, today, sought=True)

    found = await _with_meaning(await store.search(scope, ask, _depth(meaning)), text, meaning)
    return list(found.scored[:limit])


def _depth(meaning: Meaning | None) -> int:
    return DEPTH if meaning is None else CANDIDATES


async def _with_meaning(found: Found, text: str, meaning: Meaning | None) -> Found:
    """What was found by its words, ranked by its meaning too. Only what may be seen was found, and nothing else is asked for."""
    if meaning is None or found.query is None or not found.scored:
        return found
    candidates = [each.candidate for each in found.scored]
    speakers, ids = {each.speaker for each in candidates}, [each.id for each in candidates]
    near = await meaning.near(text, speakers, ids, neighbours(found.scored))
    return replace(found, scored=tuple(joined(found.query, found.scored, near, DEPTH)))


def _asked(session: SessionView, asked: Query) -> str:
    """The words whose meaning is sought: a message with few of its own is understood with the one before it."""
    before = session.previous[-1:] if len(asked.words) < ENOUGH_TERMS else ()
    return "\n".join((*before, session.text))


async def whose_words(store: SqlStore, *, person: str | None = None, chat: str | None = None, session: str | None = None) -> Whose:
    """What recall would find for a person, at the address of a chat, or for a session; everything where none of them is named.

    Raises UsageError where several are, NotFound for a session that is not there.
    """
    if sum(each is not None for each in (person, chat, session)) > 1:
        raise UsageError("A person, a chat and a session exclude each other.")
    if person is not None:
        return Whose(await store.scope_for(person=person), await store.notes.zone(Where(person=person)))
    if chat is not None:
        return Whose(await store.scope_for(address=chat), await store.notes.zone(Where(address=chat)))
    if session is None:
        return Whose(await store.scope_for(operator=True))
    row = await store.find_session(session)
    seen = (await store.view(row.id)).to_seq
    return Whose(await store.scope_for(session=(row.id, row.address, seen)), await store.notes.zone(Where(address=row.address)))
