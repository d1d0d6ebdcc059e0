"""What a store asks of its database: transactions, each one function of a connection."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from clew.errors import StoreError
from clew.store.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")

Look = tuple[bool, Any]
"""(whether to go on with the transaction, the result if not)."""


class Database(Protocol):
    """One writer, separate readers. A write that fails takes no other with it, also where several share a commit.

    shared: whether other processes may work on the same one. commits: write transactions so far. failure, failed: the last write that
    failed for a reason that lies outside of it; `failed` is cleared by whoever watches.
    """

    shared: bool
    commits: int
    failure: StoreError | None
    failed: asyncio.Event

    def write(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run one transaction, durable when the future is done. Cancelling the future does not undo it."""

    def write_joined(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Like `write`, a round of the loop later: what others who were told of it write then is in the same commit, behind it."""

    def write_relaxed(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Like `write`, but may be lost at a power cut (not at a crash of the process)."""

    def write_if(
        self,
        look: Callable[[Connection], Look],
        run: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> asyncio.Future[T]:
        """Like `write`, where `look` finds something to do; else there is no transaction and its result is returned."""

    async def write_aside(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `write`, and it waits for no other write where the database can do that: for what must happen in time. `run` holds, by
        the rows that it changes, all that it goes by."""

    async def read(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run queries on one snapshot, which ends before this returns."""

    def tell(self, names: Collection[str]) -> None:
        """Tell those other processes that something of these names changed, which was committed before. Never waits, and may get lost."""

    def heard(self) -> AsyncIterator[str]:
        """The names that others tell from now on, for ever."""

    async def everywhere(self, run: Callable[[Connection], T]) -> list[T]:
        """What `run` makes of each connection: functions and extensions are theirs alone."""

    async def checkpoint(self) -> None:
        """Let what was written arrive where it stays, and forget the log of it, where the database keeps one that grows."""

    async def vacuum(self) -> None:
        """Give back the room of deleted rows, to the disk or to what is written next; where it is one file, writes wait meanwhile. Raises
        StoreError."""

    async def size(self) -> int:
        """Bytes that it takes on its disk."""

    async def close(self) -> None:
        """Commit what still waits, then close."""
