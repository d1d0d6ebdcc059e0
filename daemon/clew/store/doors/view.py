"""What a session shows its model, and what people do to single messages of it."""

from collections.abc import Sequence
from datetime import tzinfo

from clew.messages import Message
from clew.store import (
    Boundary,
    CacheEntry,
    Compaction,
    Effect,
    ModelCall,
    Pin,
    Reader,
    ViewRows,
    boundaries,
    compactions,
    deletions,
    marks,
    model_calls,
    transcript,
)
from clew.store.connection import Connection
from clew.store.doors.opened import Opened
from clew.store.notes import Offer, offers


class ViewDoor(Opened):
    """What a session shows its model, and what people do to single messages of it."""

    async def view(self, session: str) -> ViewRows:
        return await self._db.read(compactions.view, session)

    async def cached(self, provider: str, model: str, hashes: Sequence[str], now: float) -> dict[str, CacheEntry]:
        """Those of these prefixes that the provider still holds."""
        if self._prefixes.whole:
            return self._prefixes.held(provider, model, hashes, now)
        return await self._db.read(model_calls.cached, provider, model, hashes, now)

    async def expire_cache(self, now: float) -> None:
        await self._db.write_relaxed(model_calls.expire_cache, now)
        if self._prefixes.whole or self.shared:
            self._prefixes.expire(now)
        else:
            await self._load_prefixes()

    async def before_summary(self, session: str) -> tuple[ViewRows, Compaction, Compaction] | None:
        return await self._db.read(compactions.before_summary, session)

    async def compact(
        self,
        parent: str | None,
        new: Compaction,
        calls: Sequence[ModelCall],
        tip: str | None = None,
        cache: Sequence[CacheEntry] = (),
        offered: Sequence[Offer] = (),
    ) -> bool:
        """Commit a compaction if `parent` is still the newest one, and note what is `offered` of what it lets go."""

        def both(db: Connection) -> bool:
            done = compactions.commit(db, parent, new, calls, tip, cache)
            if done and offered:
                offers.take(db, new.session, offered, new.created, self._known)
            return done

        done = await self._db.write(both)
        if done:
            self._prefixes.add(cache)
        return done

    async def let_go(self, session: str, zone: tzinfo) -> None:
        """Let what was deleted leave the prompt of a session, which changes anyway. zone: of the dates in its summary."""
        await self._db.write_if(lambda db: (transcript.taken_back(db, session)[1], None), deletions.let_go, session, zone, self._known)

    async def reader(self, session: str) -> Reader:
        return await self._db.read(compactions.reader, session)

    async def note_calls(self, session: str, calls: Sequence[ModelCall]) -> None:
        """Write down model calls that came to nothing."""
        await self._db.write(model_calls.note, session, calls)

    async def summary_tokens(self, since: float) -> int:
        return await self._db.read(model_calls.summary_tokens, since)

    async def compaction_failed(self, session: str, error: str, calls: Sequence[ModelCall]) -> int:
        return await self._db.write(compactions.failed, session, error, calls)

    async def take_boundaries(self, now: float, limit: int) -> list[Boundary]:
        """Places to compact at that are due. Each is given out once."""
        return await self._db.write_if(lambda db: (boundaries.any_due(db, now), []), boundaries.take, now, limit)

    async def next_boundary(self, now: float) -> float | None:
        """When the next place is due that is not yet, None where there is none."""
        return await self._db.read(boundaries.next_due, now)

    async def begins_branch(self, compaction: Compaction) -> bool:
        """Whether a thread that branched off begins behind this compaction, which stands for good then."""
        return await self._db.read(compactions.begins_branch, compaction)

    async def compactions(self, session: str) -> list[Compaction]:
        return await self._db.read(compactions.listing, session)

    async def take_effect(self, session: str, effect: Effect, now: float) -> None:
        """Raises UsageError where the compaction to undo is not the newest any more."""
        await self._db.write(marks.take, session, effect, now, self._known)

    async def pins(self, session: str) -> list[Pin]:
        return await self._db.read(marks.pins, session)

    async def find_message(self, session: str, key: str) -> Message:
        """Raises NotFound or UsageError."""
        return await self._db.read(marks.find, session, key)

    async def answered_to(self, session: str, reference: str) -> Message | None:
        return await self._db.read(marks.answered_to, session, reference)

    async def newest_words(self, session: str) -> Message | None:
        return await self._db.read(marks.newest, session)
