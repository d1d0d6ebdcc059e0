"""What people do to a thread by hand: pin messages, undo a compaction, take an exchange back, forget it.

Deciding is separate from doing: a command's effect takes place in the commit that stores its answer, so that no crash lets it take
place twice or without one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.budget import numbers
from clew.clock import Time, new_id
from clew.config import Compression
from clew.context.tokens import estimate
from clew.errors import NotFound, UsageError
from clew.messages import Message
from clew.providers import Provider
from clew.store import Compaction, Effect, Foreseen, Switch
from clew.store.sql import SqlStore

_NUMBER = re.compile(r"#?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Pinned:
    """A message that is pinned or unpinned. new: False where it is so already. behind: it takes effect at the next compaction only."""

    message: Message
    new: bool
    behind: bool
    effect: Effect


@dataclass(frozen=True, slots=True)
class TakenBack:
    """An exchange that leaves the window."""

    messages: tuple[Message, ...]
    effect: Effect


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Messages that are forgotten, with all that was made of them. whole: they are all of their session. with_them: what goes with them."""

    messages: tuple[Message, ...]
    whole: bool
    effect: Effect
    with_them: Foreseen


@dataclass(frozen=True, slots=True)
class Undone:
    """A compaction that is undone."""

    compaction: Compaction
    effect: Effect


class Threads:
    """The same for chat commands, the API and the command line. own: the session's own model, whose window bounds what is pinned."""

    def __init__(self, store: SqlStore, settings: Compression, own: Provider, time: Time) -> None:
        self._store = store
        self._settings = settings
        self._own = own
        self._time = time

    async def pin(self, session: str, key: str = "", by: str = "", replied_to: str | None = None) -> Pinned:
        """Keep a message word for word, whatever is compacted: the one with this key, else the one replied to, else the newest.

        Raises NotFound, or UsageError where there is no room for it.
        """
        message = await self.meant(session, key, replied_to) or await self._store.newest_words(session)
        if message is None or not message.text.strip():
            raise NotFound("There is no message with words to pin.")
        rows = await self._store.view(session)
        if new := message.id not in rows.pins:
            await self._check_room(session, message)
        return Pinned(message, new, message.seq <= rows.to_seq, Effect("pin", (message.id,), by))

    async def unpin(self, session: str, key: str = "", replied_to: str | None = None) -> Pinned:
        """Let go of a pinned message: the one with this key, else the one replied to, else the one pinned last.

        Raises NotFound or UsageError.
        """
        message = await self.meant(session, key, replied_to)
        if message is None:
            pins = await self._store.pins(session)
            if not pins:
                raise NotFound("Nothing is pinned here.")
            message = pins[-1].message
        rows = await self._store.view(session)
        return Pinned(message, message.id in rows.pins, message.seq <= rows.to_seq, Effect("unpin", (message.id,)))

    async def meant(self, session: str, key: str, replied_to: str | None = None) -> Message | None:
        """The message with this key, else the one replied to, else None. Raises NotFound or UsageError where there is no such message."""
        if key:
            return await self._store.find_message(session, key)
        if not replied_to:
            return None
        if found := await self._store.answered_to(session, replied_to):
            return found
        raise NotFound("The message you replied to is not in this conversation.")

    async def _check_room(self, session: str, message: Message) -> None:
        """Pinned messages stand in the summary, so that they share its eighth of the window."""
        bounds = numbers(self._own, await self._own.limits(), self._settings)
        ratio = (await self._store.view(session)).ratio(self._own.name, self._own.model)
        most = int(bounds.summary_limit / ratio)
        taken = sum(estimate(each.message.text) for each in await self._store.pins(session))
        wanted = estimate(message.text)
        if taken + wanted > most:
            raise UsageError(
                f"There is no room to pin it: it has about {wanted:,} tokens, and of {most:,} that may be pinned {taken:,} are taken.",
                hint="Unpin another one first, or write down what matters of it and pin that.",
            )

    async def undo_compaction(self, session: str) -> Undone:
        """Undo the newest compaction, so that what it covered is in the window again. Raises NotFound."""
        newest = (await self._store.view(session)).compaction
        if newest is None:
            raise NotFound("There is no compaction to undo.")
        if await self._store.begins_branch(newest):
            raise NotFound("This thread began with that summary.", hint="What is in it stands in the thread that it branched off.")
        return Undone(newest, Effect("undo", (newest.id,)))

    async def take_back(self, session: str) -> TakenBack:
        """Take the last exchange out of the window; its rows stay in the transcript. Raises NotFound where the window holds none."""
        rows = await self._store.view(session)
        taken = last_exchange(rows.messages)
        if not taken:
            raise NotFound(
                "There is nothing in the window to take back.",
                hint="What is in the summary comes back with /undo compaction." * bool(rows.to_seq),
            )
        return TakenBack(taken, Effect("take_back", tuple(row.id for row in taken)))

    async def forget(self, session: str, key: str = "", replied_to: str | None = None, zone: str = "UTC") -> Forgotten:
        """Forget the exchange of the message with this key, or of the one replied to; without either the whole session.

        zone: of the dates in its summary (IANA). Raises NotFound or UsageError.
        """
        message = await self.meant(session, key, replied_to)
        rows = await self._store.transcript(session)
        if message is not None:
            rows = tuple(row for row in rows if row.id == message.id or (message.turn and row.turn == message.turn))
        if not rows:
            raise NotFound("There is nothing here that could be forgotten.")
        ids = tuple(row.id for row in rows)
        return Forgotten(rows, message is None, Effect("forget", ids, zone=zone), await self._store.foreseen(session, ids))

    async def branch(self, session: str, number: str = "", replied_to: str | None = None) -> Switch:
        """A new thread that begins as `session` was at a message: `7`, `#7` or an id, else the one replied to, else the last.

        Raises NotFound or UsageError."""
        seq = int(number.lstrip("#")) if _NUMBER.fullmatch(number) else None
        if seq is None and (message := await self.meant(session, number, replied_to)) is not None:
            seq = message.seq
        parent, at = await self._store.branch_point(session, seq)
        return Switch(new_id(), parent, at)

    async def carry_out(self, session: str, effect: Effect) -> None:
        """Let it take place now. Raises UsageError where the compaction to undo is not the newest any more."""
        await self._store.take_effect(session, effect, self._time.wall())


def last_exchange(rows: Sequence[Message]) -> tuple[Message, ...]:
    """What somebody wrote last and all that came of it: several messages that were answered together go together."""
    asked = [row for row in rows if row.role == "user" and not row.overheard]
    if not asked:
        return ()
    first = next(row.seq for row in asked if row.turn == asked[-1].turn)
    return tuple(row for row in rows if row.seq >= first and not row.overheard)
