"""What daemons on one PostgreSQL database tell each other: NOTIFY and LISTEN, on a connection of its own."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any

import asyncpg
import structlog

from clew.errors import StoreError
from clew.store.changes import BEHIND
from clew.store.postgresql.connection import CONNECT_TIMEOUT, SETTINGS, is_outside

log = structlog.get_logger()

CHANNEL = "clew"
LONGEST_NAME = 7_000
"""Bytes of a name; PostgreSQL takes 8,000 (https://www.postgresql.org/docs/current/sql-notify.html)."""


class Wakes:
    """Names of what changed. They are told behind the commit that they are about, in a transaction of their own: as a part of it they would
    let no two commits run side by side. What is told while nobody listens here is lost, and found by the next look."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None
        self._untold: set[str] = set()
        self._telling: asyncio.Task[None] | None = None

    def tell(self, names: Collection[str]) -> None:
        """See `Database.tell`."""
        if self._connection is None:
            return
        self._untold |= {name for name in names if len(name.encode()) <= LONGEST_NAME}
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell(self._connection), name="store.tell")

    async def _tell(self, connection: Any) -> None:
        while self._untold:
            names, self._untold = self._untold, set()
            try:
                await connection.execute("SELECT pg_notify($1, name) FROM unnest($2::text[]) AS told (name)", CHANNEL, list(names))
            except Exception as error:
                if not is_outside(error):
                    raise
                log.debug("store.not_told", err=str(error))
                return

    async def heard(self) -> AsyncIterator[str]:
        """See `Database.heard`. Raises StoreError where the connection is lost."""
        names: asyncio.Queue[str | None] = asyncio.Queue(BEHIND + 1)

        def hear(connection: Any, by: int, channel: str, name: str) -> None:
            if by != connection.get_server_pid() and names.qsize() < BEHIND:
                names.put_nowait(name)

        connection = None
        try:
            connection = await asyncpg.connect(
                self._url, timeout=CONNECT_TIMEOUT, command_timeout=CONNECT_TIMEOUT, server_settings=SETTINGS
            )
            connection.add_termination_listener(lambda _: names.put_nowait(None))
            await connection.add_listener(CHANNEL, hear)
            self._connection = connection
            while (name := await names.get()) is not None:
                yield name
        except Exception as error:
            if not is_outside(error):
                raise
            raise StoreError(f"The store tells nothing just now ({error}).") from error
        finally:
            self._connection = None
            if connection is not None:
                if self._telling is not None:
                    await asyncio.wait((self._telling,))
                connection.terminate()
        raise StoreError("The store tells nothing any more: its connection was lost.")
