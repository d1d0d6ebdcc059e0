"""What was said elsewhere, within a scope."""

from collections.abc import Sequence
from typing import Any

from clew.store import Ask, Found, RecalledFor, Scope, lanes, recalled, search, transcript
from clew.store.doors.opened import Opened


class SearchDoor(Opened):
    """What was said elsewhere, within a scope."""

    async def scope_for(
        self, *, session: tuple[str, str, int] | None = None, person: str | None = None, address: str | None = None, operator: bool = False
    ) -> Scope:
        """Exactly one of: a session with the address it is answered at and the last row not in view, a person, an address, the operator."""
        if session is not None:
            return await self._db.read(search.scope_of_session, *session)
        if person is not None:
            return await self._db.read(search.scope_of_person, person)
        if address is not None:
            return await self._db.read(search.scope_of_chat, address)
        if operator:
            return search.scope_of_operator()
        raise ValueError("a scope is of somebody")

    async def search(self, scope: Scope, ask: Ask, limit: int, shown: Sequence[str] = ()) -> Found:
        return await self._db.read(search.search, scope, ask, limit, shown)

    async def make_lanes(self) -> bool:
        """Index the common words of one full segment of a chat, if any waits for it. False: none does."""
        making = await self._db.read(lanes.due)
        if making is None:
            return False
        for first, last in making.slices:
            making.add(await self._db.read(transcript.words_at, first, last))
        await self._db.write_relaxed(lanes.put, making)
        return True

    async def around(self, scope: Scope, message: str, before: int, after: int) -> list[Any]:
        return await self._db.read(search.around, scope, message, before, after)

    async def recalled_for(self, scope: Scope, session: str, turn: str | None = None) -> RecalledFor | None:
        """What recall gave a turn of `session`, the newest where none is named, as far as `scope` may see it; None without such a turn."""
        return await self._db.read(recalled.of, scope, session, turn)

    async def found_for(
        self, asking: tuple[str, str, int], ask: Ask, limit: int, shown: Sequence[str], *, again: bool
    ) -> tuple[Found, frozenset[str]]:
        """What `search` finds in the scope of a session (see `scope_for`) and, if anything and where it asks again, the ids of the messages
        that were recalled for it in the last turns."""
        return await self._db.read(recalled.found_for, asking, ask, limit, shown, again=again)
