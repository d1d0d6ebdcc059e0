"""What belongs to a person, and that it goes."""

import asyncio
from datetime import tzinfo
from typing import Any

from clew.config import Sessions
from clew.store import belongings, erased, erasing, retention
from clew.store.doors.opened import Opened


class PrivacyDoor(Opened):
    """What belongs to a person, and that it goes."""

    async def belongings(self, person: str) -> dict[str, int]:
        """How many rows of each kind are theirs. Raises NotFound."""
        return await self._db.read(belongings.counts, person)

    async def belonging(self, person: str, part: str, offset: int) -> list[dict[str, Any]]:
        """At most `belongings.PAGE` rows of a part."""
        return await self._db.read(belongings.page, person, part, offset)

    async def erase(self, person: str, now: float) -> erasing.Erasure:
        """Begin to erase a person. Raises NotFound, or UsageError while they are being answered."""
        begun = await self._db.write(erasing.begin, person, now)
        await self.note_erasures()
        self._notify(self.arrivals, self.chores)
        return begun

    async def erasures(self) -> list[erasing.Erasure]:
        """Those that go on."""
        return await self._db.read(erasing.pending)

    async def erasure(self, identifier: str) -> erasing.Erasure:
        """Raises NotFound."""
        return await self._db.read(erasing.find, identifier)

    async def erase_some(self, identifier: str, zone: tzinfo, now: float) -> erasing.State:
        """Erase one more slice. zone: of the dates in summaries."""
        self._windows.clear()
        state = await self._db.write(erasing.step, identifier, erasing.Means(zone, self._known, now))
        self._windows.clear()
        return state

    async def erased(self, identifier: str, now: float) -> None:
        """Nothing of it is left anywhere."""
        await self._db.write(erasing.end, identifier, now)
        self._notify(self.chores)

    async def kept(self, settings: Sessions, now: float) -> list[retention.Kept]:
        """Each chat with how long its words are kept, and what is older."""
        return await self._db.read(retention.listing, settings, now)

    async def expire_some(self, settings: Sessions, zone: tzinfo, now: float) -> retention.Gone:
        """Forget some of what is older than it may be. zone: of the dates in summaries."""
        gone = await self._db.write_relaxed(retention.step, settings, zone, self._known, now)
        if gone.threads:
            self._windows.clear()
        return gone

    async def note_erasures(self) -> None:
        """Write what was erased to the file that no backup brings back."""
        entries = await self._db.read(erasing.unnoted)
        if entries:
            await asyncio.to_thread(erased.write, self._path, entries)
            await self._db.write(erasing.noted, [entry["id"] for entry in entries])

    async def erase_again(self, now: float) -> int:
        """Begin again what this file does not know of, since it is an older copy. Returns how many erasures were begun."""
        entries = await asyncio.to_thread(lambda: list(erased.read(self._path)))
        return await self._db.write(erasing.come_back, entries, now) if entries else 0
