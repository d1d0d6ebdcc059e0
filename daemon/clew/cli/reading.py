"""Reading commands open the store read-only and never write."""

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from clew.cli.options import log_to_stderr
from clew.clock import Time
from clew.config import Config
from clew.config.database import is_shared, shown
from clew.errors import NotFound
from clew.store.opening import FILE, open_store
from clew.store.sql import SqlStore

if TYPE_CHECKING:
    from clew.meaning import Meaning


def known_meaning(config: Config, store: SqlStore) -> "AbstractAsyncContextManager[Meaning | None]":
    """What is known of the store's texts by their meaning; nothing of it is imported where the config names no model for it."""
    if config.embeddings is None:
        return nullcontext()
    from clew.assembly import meaning_of

    log_to_stderr(config, "warning")
    return meaning_of(config, store, Time())


def place(config: Config) -> str:
    """Where the store is, for people: its file, or the address of its database."""
    return shown(config.store) if is_shared(config.store) else str(store_path(config))


def store_path(config: Config) -> Path:
    """The file of a store that is in one."""
    return config.data_dir / FILE


def existing_store(config: Config) -> Path:
    """The file of a store that is in one. Raises NotFound where there is none yet."""
    path = store_path(config)
    if not path.exists():
        raise NotFound(f"Nothing is stored yet: there is no {path}.", hint="`clew chat` or `clew run` makes it.")
    return path


@asynccontextmanager
async def reading(config: Config) -> AsyncIterator[SqlStore]:
    """The store, read-only. Raises NotFound where there is none yet."""
    if not is_shared(config.store):
        existing_store(config)
    store = await open_store(config.store, config.data_dir, time.time(), read_only=True, known=config.secrets())
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def reading_any(config: Config) -> AsyncIterator[SqlStore | None]:
    """The same, None where there is none yet."""
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(reading(config))
        except NotFound:
            store = None
        yield store
