"""The verbs of the notes, one transaction each."""

from collections.abc import Collection, Sequence

from clew.context.notes import Entity, Notes, Preference, ScopeKind
from clew.store.database import Database
from clew.store.notes import By, Change, Edit, Kept, Noted, Standing, Where, history, index, reading, scopes, verbs


class NotesDoor:
    """Notes by where they are asked for. known: secrets of this installation. Every `now` is seconds since the epoch, UTC."""

    def __init__(self, database: Database, known: Collection[str]) -> None:
        self._db = database
        self._known = frozenset(known)

    async def prepare(self) -> None:
        """Build the index anew where it is of another version."""
        if not await self._db.read(index.is_current):
            await self._db.write(index.rebuild)

    async def change(self, where: Where, kind: ScopeKind | None, edits: Sequence[Edit], by: By, now: float) -> list[Noted]:
        """Carry edits out. kind: None for the usual one. Raises UsageError where there are no such notes."""
        return await self._db.write(verbs.change, where, kind, edits, by, now, self._known)

    async def undo(self, where: Where, kind: ScopeKind, number: int | None, by: By, now: float) -> Change:
        """Take a change back, the newest that stands if no number is given. Raises NotFound or UsageError."""
        return await self._db.write(history.undo, where, kind, number, by, now)

    async def changes(self, where: Where, kind: ScopeKind, limit: int) -> list[Change]:
        """The history, the newest first. Raises UsageError."""
        return await self._db.read(history.listing, where, kind, limit)

    async def newest(self, where: Where, kind: ScopeKind) -> Change:
        """The change that `undo` would take back. Raises NotFound or UsageError."""
        return await self._db.read(history.newest, where, kind)

    async def listing(self, where: Where, kind: ScopeKind | None, now: float) -> Notes:
        """All notes of one kind, or of all that may be seen there. Raises UsageError."""
        return await self._db.read(reading.listing, where, kind, now)

    async def kept(self) -> list[Kept]:
        """Every scope in which something was ever noted, by name: for the operator."""
        return await self._db.read(reading.kept)

    async def search(self, where: Where, query: str, limit: int, now: float) -> tuple[Entity, ...]:
        """What a query asks for, best first; with an empty one, what was noted last."""
        return await self._db.read(reading.search, where, query, limit, now)

    async def open(self, where: Where, names: Sequence[str], now: float) -> tuple[Entity, ...]:
        return await self._db.read(reading.opened, where, names, now)

    async def preference(self, where: Where, kind: ScopeKind, key: str) -> Preference | None:
        return await self._db.read(reading.preference, where, kind, key)

    async def standing(self, where: Where, now: float) -> Standing:
        """What is considered for a prompt there."""
        return await self._db.read(reading.standing_for, where, now)

    async def zone(self, where: Where) -> str | None:
        """The zone of the person whose own notes are seen there, None where there is none."""
        return await self._db.read(scopes.zone, where)

    async def check(self) -> list[str]:
        """What is wrong with them, in words."""
        return await self._db.read(index.problems)
