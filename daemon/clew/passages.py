"""What documents say: one engine for the block of a prompt, the tool and the search command."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter

import structlog

from clew.context import documents
from clew.context.documents import Found, Shown
from clew.context.query import Query, query
from clew.context.tokens import estimate
from clew.store import PromptState
from clew.store.documents import Looked
from clew.store.notes import Where
from clew.store.sql import SqlStore

log = structlog.get_logger()

DEPTH = 60
"""Pieces that each ranking gives."""

Nearest = Callable[[Where | None, str, int], Awaitable[Sequence[int]]]
"""The pieces that may be seen from there and are nearest to a text by what it means, best first; at most so many."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A message that may need documents. text, previous: the person's words of this turn, and before it (oldest first).

    where: it is answered. state: what stands in the prompt. keep: False where the block may be replaced freely. limit_tokens: estimated
    tokens that the block may have.
    """

    where: Where
    text: str
    previous: tuple[str, ...]
    state: PromptState
    keep: bool
    limit_tokens: int


class Passages:
    """Finds what documents say. budget_chars: code points of the block, 0 for none. nearest: the ranking by meaning, where there is one."""

    def __init__(self, store: SqlStore, budget_chars: int, nearest: Nearest | None = None) -> None:
        self._store = store
        self._budget_chars = budget_chars
        self._nearest = nearest

    async def search(self, where: Where | None, text: str, limit: int) -> list[Found]:
        """The passages that answer `text` best, best first; `where` None: in all documents."""
        _, _, found = await self._found(where, query(text, sought=True), text, ())
        return found[:limit]

    async def decide(self, asked: Asked) -> PromptState:
        """The state of a session's prompt with the block of its next turn.

        It stays byte for byte unless something clearly better was found; what may be seen no longer leaves at once.
        """
        if not asked.state.documents and (not self._budget_chars or self._store.documents.empty):
            return asked.state
        started = perf_counter()
        before = shown_passages(asked.state) if asked.keep else ()
        wanted = query(asked.text, asked.previous) if self._budget_chars and not self._store.documents.empty else None
        looked, relevant, found = await self._found(asked.where, wanted, asked.text, [each.id for each in before])
        fresh = documents.shown(wanted, documents.chosen(relevant), budget_chars=self._budget_chars) if wanted else []
        still = [each for each in before if each.id in looked.visible]
        scores = {each.passage.id: each.score for each in found}
        if before and len(still) == len(before) and not documents.replaces(before, fresh, scores) and self._fits(asked, before):
            return asked.state
        passages = self._fitting(asked, fresh or still)
        if passages or before:
            log.info("documents.recalled", passages=len(passages), ms=round((perf_counter() - started) * 1000, 1))
        return replace(asked.state, documents=documents.block(passages), passages=json.dumps([asdict(each) for each in passages]))

    async def _found(
        self, where: Where | None, wanted: Query | None, text: str, shown: Sequence[int]
    ) -> tuple[Looked, list[Found], list[Found]]:
        """(what the index gave, what of it has to do with a message by itself, all of it, best first)."""
        nearest = await self._nearest(where, text, DEPTH) if self._nearest and wanted else ()
        looked = await self._store.documents.look_up(where, wanted.terms if wanted else (), DEPTH, nearest, shown)
        if wanted is None:
            return looked, [], []
        rankings = (looked.lexical, looked.nearest)
        found = documents.ranked(wanted, looked.counts, looked.total, rankings, looked.passages, looked.holding)
        return looked, documents.relevant(wanted, looked.counts, looked.total, found, rankings), found

    def _fits(self, asked: Asked, passages: Sequence[Shown]) -> bool:
        text = documents.block(passages)
        return len(text) <= self._budget_chars and estimate(text) <= asked.limit_tokens

    def _fitting(self, asked: Asked, passages: Sequence[Shown]) -> list[Shown]:
        kept = list(passages)
        while kept and not self._fits(asked, kept):
            kept.pop()
        return kept


def shown_passages(state: PromptState) -> tuple[Shown, ...]:
    """The passages that a prompt state's block shows."""
    return tuple(Shown(**{**each, "why": tuple(each["why"])}) for each in json.loads(state.passages))
