"""What people page through."""

from clew.store import (
    Compaction,
    CompactionRow,
    Filed,
    Lines,
    Listed,
    Past,
    PromptState,
    Sight,
    Trouble,
    compactions,
    pages,
    past,
    troubles,
)
from clew.store.doors.opened import Opened


class PagesDoor(Opened):
    """What people page through: bounded, however much there is."""

    async def session_page(self, filed: Filed, limit: int, offset: int) -> tuple[list[Listed], int]:
        """Sessions that have messages, the one spoken in last first, and how many there are in all."""
        return await self._db.read(pages.sessions, filed, limit, offset)

    async def listed(self, session: str) -> Listed:
        """A session that is there, as it stands on a page."""
        return (await self._db.read(pages.listed, [session]))[0]

    async def chat_transports(self) -> list[str]:
        """Transports of which there are chats."""
        return await self._db.read(pages.transports)

    async def lines(self, session: str, limit: int, *, before: int | None = None, after: int | None = None) -> Lines:
        """At most `limit` rows of a transcript: the first behind row `after`, else the last in front of row `before`, else the last."""
        return await self._db.read(pages.lines, session, limit, before=before, after=after)

    async def compaction_page(self, session: str, limit: int, offset: int) -> tuple[list[CompactionRow], int]:
        """A session's compactions, the newest first, and how many there are."""
        return await self._db.read(pages.compaction_rows, session, limit, offset)

    async def newest_compaction(self, session: str) -> Compaction | None:
        """The newest one that stands."""
        return await self._db.read(compactions.tip, session)

    async def cuts(self, session: str, first: int, last: int) -> list[CompactionRow]:
        """Summaries of a session that stand and whose last covered row is one of these, in order."""
        return await self._db.read(pages.cuts, session, first, last)

    async def compaction(self, session: str, number: int) -> tuple[Compaction, Compaction | None, int]:
        """A session's compaction with this number, the one that it revises, and that one's number. Raises NotFound."""
        return await self._db.read(pages.compaction, session, number)

    async def failing_compactions(self, session: str | None = None, limit: int = 20) -> list[tuple[str, int, str]]:
        """(session, compactions that failed in a row, the last one's error) of those, or of one, where some did."""
        return await self._db.read(compactions.failing, session, limit)

    async def past(self, turn: str) -> Past:
        """A turn by its id, with all that it did. Raises NotFound."""
        return await self._db.read(past.past, turn)

    async def sight(self, turn: str, at: float, limit: int) -> Sight:
        """What was shown of its session to a turn's model call that began then. Raises NotFound."""
        return await self._db.read(past.sight, turn, at, limit)

    async def prompt_state(self, session: str) -> PromptState:
        """What stands in a session's prompt between turns."""
        return await self._db.read(compactions.prompt_state, session)

    async def troubles(self, limit: int) -> list[Trouble]:
        """What went wrong lately, the newest first: turns, replies, and jobs by their newest run."""
        return await self._db.read(troubles.newest, limit)
