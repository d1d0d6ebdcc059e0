"""Transactions that arrive together share one commit, on any database."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Concatenate, Literal, ParamSpec, Protocol, TypedDict, TypeVar, cast

from clew.errors import StoreError
from clew.store.connection import Connection
from clew.store.database import Look
from clew.transport import Address

P = ParamSpec("P")
T = TypeVar("T")

GROUP = 64
"""Writes that may share one commit."""
MOST_NAMES = 256
"""Names that a transaction may hold: a server has room for some thousands of locks. With more it is alone."""
BUSY_TRIES = 6
"""Times that a transaction is tried whose database was busy with another one."""

When = Literal["at once", "joined", "relaxed"]
Ended = tuple[object, BaseException | None]
"""(the result of a write, or the failure in its place)."""
Verb = Callable[Concatenate[Connection, P], T]
Done = tuple[list[Ended], int]
"""(the results of a group of writes; the number of commits it took, one or none)."""


class Kind(TypedDict):
    """How a transaction begins, see `Transactional.begin`."""

    relaxed: bool
    holds: frozenset[str] | None


class Transactional(Connection, Protocol):
    """A connection whose transactions are begun and ended here."""

    @property
    def in_transaction(self) -> bool: ...

    def begin(self, *, relaxed: bool, holds: Collection[str] | None) -> None:
        """Begin to write. relaxed: it may be lost at a power cut. holds: the names that it holds beside other daemons' transactions of
        this kind, see `shared`; None: while nobody else writes."""

    def begin_part(self) -> None:
        """What is written from here on can be undone by itself, and what was written since the last part began cannot any more."""

    def undo_part(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def is_busy(self, error: BaseException) -> bool:
        """Whether another transaction was in the way: it may be tried again at once."""

    def is_outside(self, error: BaseException) -> bool:
        """Whether the error comes from the machine, not from a statement: the whole commit is in doubt."""


def shared(holds: Callable[P, Iterable[str] | None]) -> Callable[[Verb[P, T]], Verb[P, T]]:
    """Mark a verb as safe beside others of its kind, which other daemons' transactions are made of at the same time.

    holds: of a verb's arguments the names that its transaction holds from its beginning to its end, each of one transaction at a time
    (`lane`, `thread`); None: these arguments make it a verb for the only writer. Transactions take their names in one order and wait for
    none later on (`Connection.hold` does not wait), so that names alone lock nobody out for good.

    A statement sees all that was committed before it began, not what others write beside it. So a verb that decides by what it has read
    holds that: by a name, by locking its row (`Connection.locked`), by a condition in the statement that writes, or by a unique key. Where
    it comes to what is not held so, because it is rare, it asks for `Connection.alone`. What is not marked is alone. What goes through rows
    in the order of their numbers, whatever chat they are of, has to be, for a number is given before the commit.
    """

    def marked(run: Verb[P, T]) -> Verb[P, T]:
        run.__dict__["holds"] = holds
        return run

    return marked


def lane(address: Address | str) -> str:
    """The name of what is said at an address, both ways, and of the rows of its chat: arrivals, replies, places in the index."""
    return f"lane {address}"


def thread(session: str) -> str:
    """The name of which turn a session has; whose turn runs writes in it without holding it."""
    return f"thread {session}"


class Write:
    """A transaction that waits for its commit. `look` says first whether there is anything to do."""

    __slots__ = ("future", "holds", "look", "relaxed", "run")

    def __init__(
        self,
        run: Callable[[Connection], object],
        relaxed: bool,
        holds: frozenset[str] | None,
        look: Callable[[Connection], Look] | None,
    ) -> None:
        self.run = run
        self.relaxed = relaxed
        self.holds = holds
        self.look = look
        self.future: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def settle(self, value: object, failure: BaseException | None) -> None:
        if self.future.done():  # whoever waited was cancelled
            return
        if failure is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(failure)
            self.future.exception()  # whoever waits may be cancelled yet, and asyncio would complain of an error that nobody looked at


class GroupedDatabase(ABC):
    """The writing half of a `Database`: a transaction is one function of a connection, run in one hop to the connection's thread; writes
    that arrive together share one commit, each behind the first in a savepoint of its own, so that one failing takes no other with it.
    """

    def __init__(self) -> None:
        self._waiting: list[Write] = []
        self._group: list[Write] = []  # those that are being committed
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self.commits = 0
        self.failure: StoreError | None = None
        self.failed = asyncio.Event()

    def write(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run one transaction, durable when the future is done. Cancelling the future does not undo it."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "at once", _holds(run, *args, **kwargs))

    def write_joined(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Like `write`, a round of the loop later: what others who were told of it write then is in the same commit, behind it."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "joined", _holds(run, *args, **kwargs))

    def write_relaxed(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Like `write`, but may be lost at a power cut (not at a crash of the process)."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "relaxed", _holds(run, *args, **kwargs))

    def write_if(
        self,
        look: Callable[[Connection], Look],
        run: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> asyncio.Future[T]:
        """Like `write`, where `look` finds something to do; else there is no transaction and its result is returned. One hop for both."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "at once", _holds(run, *args, **kwargs), look)

    @abstractmethod
    def _hand_over(self, group: list[Write]) -> None:
        """Let the writer's thread run `outcome` of these, and hand what comes out to `_committed` in the loop."""

    @abstractmethod
    async def _behind(self) -> None:
        """Wait until the writer's thread is done with what it was handed."""

    @abstractmethod
    def _for_people(self, error: BaseException) -> BaseException:
        """A StoreError in the place of an error that lies outside of a statement."""

    async def _finish_writing(self) -> None:
        """Take no more writes, and commit what still waits."""
        self._closing = True
        self._commit_if_idle()
        while self._group:
            await self._behind()

    def _enqueue(
        self,
        run: Callable[[Connection], T],
        when: When,
        holds: frozenset[str] | None,
        look: Callable[[Connection], Look] | None = None,
    ) -> asyncio.Future[T]:
        if self._closing:
            raise StoreError("The store is closed.", lasting=True)
        write = Write(run, when == "relaxed", holds, look)
        self._waiting.append(write)
        if when == "joined":
            self._loop.call_soon(self._commit_if_idle)
        else:
            self._commit_if_idle()
        return cast("asyncio.Future[T]", write.future)  # cancelling it does not cancel the write

    def _commit_if_idle(self) -> None:
        if not self._group:
            self._commit_next()

    def _commit_next(self) -> None:
        self._group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
        if self._group:
            self._hand_over(self._group)

    def _committed(self, outcome: Done | BaseException) -> None:
        group = self._group
        self._commit_next()
        if isinstance(outcome, BaseException):
            told = self._for_people(outcome)
            if isinstance(told, StoreError):
                self.failure = told
                self.failed.set()
            for write in group:
                write.settle(None, told)
            return
        results, commits = outcome
        self.commits += commits
        for write, (value, failure) in zip(group, results, strict=True):
            write.settle(value, failure)


def _holds(run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> frozenset[str] | None:
    holds: Callable[P, Iterable[str] | None] | None = getattr(run, "holds", None)
    names = holds(*args, **kwargs) if holds is not None else None
    return None if names is None else frozenset(names)


def outcome(db: Transactional, group: list[Write]) -> Done | BaseException:
    """Run these writes in one transaction."""
    try:
        return _carry_out(db, group)
    except BaseException as error:
        return error


def _carry_out(db: Transactional, group: list[Write]) -> Done:
    seen: list[Look] = []
    for write in group:
        behind = any(go for go, _ in seen)  # what is to be found may be written in the same transaction
        seen.append((True, None) if behind or write.look is None else write.look(db))
    todo = [write for write, (go, _) in zip(group, seen, strict=True) if go]
    done = iter(_transact_patiently(db, todo) if todo else ())
    return [next(done) if go else (value, None) for go, value in seen], int(bool(todo))


def _transact_patiently(db: Transactional, group: list[Write]) -> list[Ended]:
    for tries in range(BUSY_TRIES, 0, -1):
        try:
            return _transact(db, group, alone=tries < BUSY_TRIES)
        except Exception as error:
            if not db.is_busy(error) or tries == 1:
                raise
    raise AssertionError("unreachable")


def _transact(db: Transactional, group: list[Write], *, alone: bool = False) -> list[Ended]:
    kind: Kind = {"relaxed": all(write.relaxed for write in group), "holds": None if alone else _held(group)}
    try:
        results = [_first(db, group[0], kind), *(_part(db, write, kind) for write in group[1:])]
        if db.in_transaction:
            db.commit()
    except BaseException:
        if db.in_transaction:
            db.rollback()
        raise
    return results


def _held(group: list[Write]) -> frozenset[str] | None:
    """The names of all of them; None where one of them has to be alone."""
    names: frozenset[str] = frozenset()
    for write in group:
        if write.holds is None:
            return None
        names |= write.holds
    return names if len(names) <= MOST_NAMES else None


def _first(db: Transactional, write: Write, kind: Kind) -> Ended:
    """The first write of a transaction, which is rolled back if it fails: nothing else is in it yet."""
    db.begin(**kind)
    try:
        return write.run(db), None
    except Exception as error:
        if db.is_outside(error) or db.is_busy(error):
            raise
        db.rollback()
        return None, error


def _part(db: Transactional, write: Write, kind: Kind) -> Ended:
    if not db.in_transaction:  # all before it failed
        return _first(db, write, kind)
    db.begin_part()
    try:
        return write.run(db), None
    except Exception as error:
        if db.is_outside(error) or db.is_busy(error):
            raise  # the whole commit is in doubt
        db.undo_part()
        return None, error
