"""The notes in the prompt: what stands there, and when that gives way to what is known by now."""

import json
from dataclasses import dataclass, replace
from datetime import tzinfo

from clew.config import Notes as Settings
from clew.context.notes import Block, block
from clew.store import PromptState
from clew.store.notes import Standing, Where, still_stands
from clew.store.sql import SqlStore


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the notes may be, and in which zone their days are. limit_tokens: estimated, a sixteenth of the window."""

    settings: Settings
    limit_tokens: int
    zone: tzinfo
    zone_name: str

    @property
    def key(self) -> str:
        return f"{self.settings.budget_chars}/{self.limit_tokens}/{self.zone_name}"


async def noted(
    store: SqlStore, where: Where, state: PromptState, standing: Standing, bounds: Bounds, *, free: bool, now: float
) -> PromptState:
    """The state of a session's prompt with the notes of its next turn.

    They stay byte for byte while nothing is changed in them. What is merely new waits until the block may change at no cost (`free`:
    a compaction came between, or nothing of the prefix is cached any more), for whoever noted it has it in view. What holds no
    longer, and what a person changed by hand, is brought up to date at once. now: seconds since the epoch, UTC.
    """
    if not bounds.settings.enabled:
        return replace(state, notes="", notes_key="", notes_version=0, notes_until=None) if state.notes_key else state
    if not standing.breaks and not state.notes_key:
        return state
    bounded = state.notes_key.partition("\n")[2]
    stands = still_stands(state.notes_key, standing.breaks) and bounded in ("", bounds.key)
    expired = state.notes_until is not None and now >= state.notes_until
    if stands and not expired and (state.notes_version == standing.version or not free):
        return state
    if standing.notes is None:
        standing = await store.notes.standing(where, now)
    made = made_of(standing, bounds)
    key = f"{json.dumps(dict(standing.breaks), ensure_ascii=False)}\n{bounds.key}"
    return replace(state, notes=made.text, notes_key=key, notes_version=standing.version, notes_until=made.until)


def made_of(standing: Standing, bounds: Bounds) -> Block:
    """The block of what is known."""
    if standing.notes is None or not bounds.settings.enabled:
        return Block("")
    return block(standing.notes, budget_chars=bounds.settings.budget_chars, limit_tokens=bounds.limit_tokens, zone=bounds.zone)
