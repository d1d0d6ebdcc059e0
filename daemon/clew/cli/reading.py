"""Reading commands open the store read-only and never write."""

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from clew.cli.options import log_to_stderr
from clew.clock import Time
from clew.config import Config
from clew.errors import NotFound
from clew.store.sql import SqlStore
from clew.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from clew.meaning import Meaning


def known_meaning(config: Config, store: SqlStore) -> "AbstractAsyncContextManager[Meaning | None]":
    """What is known of the store's texts by their meaning; nothing of it is imported where the config names no model for it."""
    if config.embeddings is None:
        return nullcontext()
    from clew.assembly import meaning_of

    log_to_stderr(config, "warning")
    return meaning_of(config, store, Time())


def store_path(config: Config) -> Path:
    return config.data_dir / "clew.db"


def existing_store(config: Config) -> Path:
    """Its file. Raises NotFound where there is none yet."""
    path = store_path(config)
    if not path.exists():
        raise NotFound(f"Nothing is stored yet: there is no {path}.", hint="`clew chat` or `clew run` makes it.")
    return path


@asynccontextmanager
async def reading(config: Config) -> AsyncIterator[SqlStore]:
    """The store, read-only. Raises NotFound where there is none yet."""
    store = await SqliteStore.open(existing_store(config), time.time(), read_only=True, known=config.secrets())
    try:
        yield store
    finally:
        await store.close()
