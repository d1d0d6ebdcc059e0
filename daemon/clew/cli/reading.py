"""Reading commands open the store read-only and never write."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from clew.config import Config
from clew.errors import NotFound
from clew.store.sqlite import SqliteStore


def store_path(config: Config) -> Path:
    return config.data_dir / "clew.db"


@asynccontextmanager
async def reading(config: Config) -> AsyncIterator[SqliteStore]:
    """The store, read-only. Raises NotFound where there is none yet."""
    path = store_path(config)
    if not path.exists():
        raise NotFound(f"Nothing is stored yet: there is no {path}.", hint="`clew chat` or `clew run` makes it.")
    store = await SqliteStore.open(path, time.time(), read_only=True, known=config.secrets())
    try:
        yield store
    finally:
        await store.close()
