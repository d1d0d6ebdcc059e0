"""Sessions, their transcripts and timelines."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from clew.messages import Message
from clew.store import (
    Foreseen,
    Said,
    SessionRow,
    branches,
    erased,
    exports,
    foreign,
    forgetting,
    imports,
    private,
    proof,
    sessions,
    transcript,
)
from clew.store.connection import Connection
from clew.store.doors.opened import Opened
from clew.transport import Inbound


class SessionsDoor(Opened):
    """Sessions, their transcripts and timelines."""

    async def sessions(self, address: str | None = None, limit: int = 1000) -> list[SessionRow]:
        return await self._db.read(sessions.listing, address, limit)

    async def find_session(self, prefix: str) -> SessionRow:
        """Raises NotFound or UsageError."""
        return await self._db.read(sessions.find, prefix)

    async def sessions_for(self, address: str, limit: int) -> list[SessionRow]:
        """The threads that may be gone on with at an address, the one used last first."""
        return await self._db.read(sessions.listing_for, address, limit)

    async def find_session_for(self, address: str, prefix: str) -> SessionRow:
        """One of them, by an unambiguous beginning of its id. Raises NotFound or UsageError."""
        return await self._db.read(sessions.find_for, address, prefix)

    async def branch_point(self, session: str, seq: int | None) -> tuple[str, int]:
        """(thread, its row) at which a branch of `session` begins: row `seq`, None for its last one. Raises NotFound."""
        return await self._db.read(branches.point, session, seq)

    async def is_private(self, session: str) -> bool:
        """Whether what is said in a thread now is private."""
        return await self._db.read(private.goes_on, session)

    async def private_rows(self, session: str) -> tuple[str, ...]:
        """Ids of what was said in private in a thread."""
        return await self._db.read(private.rows, session)

    async def current_session(self, address: str) -> str | None:
        return await self._db.read(sessions.current, address)

    async def open_chat(self, item: Inbound, person: str, now: float, title: str = "") -> str:
        """Make a new session at an address and let its next message join it. Returns the session."""
        return await self._db.write(sessions.open_chat, item, person, now, title)

    async def join_chat(self, item: Inbound, person: str, session: str, now: float) -> None:
        """Let the next message at an address join `session`; it stays with its own chat too."""
        await self._db.write(sessions.join_chat, item, person, session, now)

    async def transcript(self, session: str, after: int = 0) -> tuple[Message, ...]:
        return await self._db.read(transcript.between, session, after)

    async def messages(self, ids: Iterable[str]) -> tuple[Message, ...]:
        return await self._db.read(transcript.by_ids, ids)

    async def export_session(self, session: str) -> dict[str, Any]:
        """All of a session as plain values. Its files' bytes come with it in base64, those of the newest while they fit the bound."""
        exported = await self._db.read(sessions.export, session)
        return exported | {"files": await self.files.exported(session)}

    async def redeem_export(self, secret: str, now: float) -> str | None:
        """The thread that a link of /export gives, once; None where it gives nothing (any more)."""
        return await self._db.write(exports.redeem, secret, now)

    async def import_session(self, data: dict[str, Any], now: float, tell: Callable[[int], object] = lambda done: None) -> str:
        """Raises UsageError where `data` is no export, or its session is here already. Returns the session's id.

        tell: told how many of its messages are written, now and then.
        """
        export = await asyncio.to_thread(imports.check, data)
        session, messages = export.session, export.messages
        await self._db.write(imports.begin, session, now)
        try:
            for start in range(0, len(messages), imports.PIECE):
                piece = messages[start : start + imports.PIECE]
                await self._db.write(imports.add, session, piece, now)
                tell(start + len(piece))
            async with self.files.placing():
                for kept in export.files:
                    await self.files.put(await asyncio.to_thread(imports.body, kept))
                await self._db.write(imports.end, export, now)
        except BaseException:
            await self._db.write(sessions.delete, session.id)
            raise
        return session.id

    async def bring_in(
        self, source: str, person: str, key: str, title: str, messages: Sequence[foreign.ForeignMessage], now: float
    ) -> tuple[str, foreign.Outcome, int]:
        """See `foreign.bring`."""
        return await self._db.write(foreign.bring, source, person, key, title, messages, now)

    async def foreseen(self, session: str, ids: Sequence[str]) -> Foreseen:
        """What goes with messages of a session when they are forgotten."""
        return await self._db.read(forgetting.foreseen, session, ids)

    async def delete_session(self, session: str, now: float = 0.0) -> int:
        """Delete a session for good, and what quotes it elsewhere. now: seconds since the epoch, 0 where nobody asks when. Returns how many
        messages it had. Raises UsageError while a turn of it runs."""
        self._windows.forget(session)  # before: whoever waits for the commit may be cancelled

        def both(db: Connection) -> int:
            gone = sessions.delete(db, session)
            erased.record(db, "session", {"session": session}, now)
            return gone

        gone = await self._db.write(both)
        await self.files.sweep()
        return gone

    async def tell_repairs(self, session: str, repairs: Sequence[str]) -> tuple[str, ...]:
        """Which of these repairs of a session's view were not told yet; they are from now on."""

        def look(db: Connection) -> tuple[bool, tuple[str, ...]]:
            return bool(sessions.untold(db, session, repairs)), ()

        return await self._db.write_if(look, sessions.tell, session, repairs)

    async def verify_session(self, session: str) -> list[str]:
        return await self._db.read(proof.verify, session)

    async def history(self, address: str, after: int, limit: int, *, newest: bool = True) -> list[Said]:
        return await self._db.read(sessions.history, address, after, limit, newest=newest)
