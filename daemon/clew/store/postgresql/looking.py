"""A look at a PostgreSQL server, before or while clew uses it."""

import time
from dataclasses import dataclass
from statistics import median

import asyncpg

from clew.errors import StoreError
from clew.store.postgresql.connection import CONNECT_TIMEOUT
from clew.store.postgresql.database import OLDEST, refused

TRIPS = 5
"""Questions by which it is measured how far away a server is."""


@dataclass(frozen=True, slots=True)
class Looked:
    """version: as in `15.8`; old: it is too old for clew. encoding: of the database. creates: clew may make its tables there.
    away: seconds that a question takes, the median of some. room: connections that are free."""

    version: str
    old: bool
    encoding: str
    creates: bool
    away: float
    room: int


async def looked(url: str) -> Looked:
    """Raises StoreError where the server cannot be reached or lets nobody in."""
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT, command_timeout=CONNECT_TIMEOUT, statement_cache_size=0)
        try:
            return await _looked(connection)
        finally:
            await connection.close(timeout=CONNECT_TIMEOUT)
    except Exception as error:
        told = refused(url, error)
        if isinstance(told, StoreError):
            raise told from error
        raise


async def _looked(connection: asyncpg.Connection) -> Looked:
    number, version, encoding, creates, room = await connection.fetchrow(
        "SELECT current_setting('server_version_num')::int, split_part(current_setting('server_version'), ' ', 1),"
        " current_setting('server_encoding'), coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),"
        " current_setting('max_connections')::int - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int"
    )
    trips = []
    for _ in range(TRIPS):
        begun = time.perf_counter()
        await connection.execute("SELECT 1")
        trips.append(time.perf_counter() - begun)
    return Looked(version, number < OLDEST, encoding, creates, median(trips), room)
