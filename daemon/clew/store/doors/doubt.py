"""Writes whose connection broke while they were being committed: nobody knows whether they stand, until somebody looks."""

import asyncio
from collections.abc import Callable, Sequence
from functools import WRAPPER_UPDATES, update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar

from clew.errors import StoreError
from clew.store.connection import Connection
from clew.store.database import Database, Look

P = ParamSpec("P")
T = TypeVar("T")

LIMIT = 1000
"""Writes that may be in doubt at once; what was tried the longest time ago is given up first."""


class Doubt(Generic[T]):
    """Writes of one verb, each by a key: the same object whenever it is tried again. One whose first try stands is not made twice.

    stands: whether what a try came to is in the store. It is asked in a transaction of its own behind the one in doubt, whose locks the
    database keeps until it has ended: whoever tries again does so as the only writer.
    """

    def __init__(self, database: Database, stands: Callable[[Connection, T], bool]) -> None:
        self._db = database
        self._stands = stands
        self._left: dict[int, tuple[object, T]] = {}

    def of(self, key: object) -> bool:
        """Whether a try with this key is in doubt."""
        return id(key) in self._left

    def write_if(
        self,
        key: object,
        look: Callable[[Connection], Look],
        run: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> asyncio.Future[T]:
        """`Database.write_if`; what an earlier try with this key came to, where that stands."""
        came_to: list[T] = []

        def tried(db: Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if (left := self._left.get(id(key))) is not None and self._stands(db, left[1]):
                return left[1]
            result = run(db, *args, **kwargs)
            came_to[:] = [result]
            return result

        marks = () if self.of(key) else WRAPPER_UPDATES  # of what it may do beside others
        update_wrapper(tried, run, updated=marks)  # its name is the same
        future = self._db.write_if(lambda db: (True, None) if self.of(key) else look(db), tried, *args, **kwargs)
        future.add_done_callback(lambda done: self._settled(key, came_to, done))
        return future

    def write(self, key: object, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """`Database.write`, likewise."""
        return self.write_if(key, lambda db: (True, None), run, *args, **kwargs)

    def _settled(self, key: object, came_to: Sequence[T], done: asyncio.Future[T]) -> None:
        if done.cancelled() or not isinstance(done.exception(), StoreError):
            self._left.pop(id(key), None)
            return
        for result in came_to:
            self._left[id(key)] = (key, result)
        if len(self._left) > LIMIT:
            del self._left[next(iter(self._left))]
