"""A connection to PostgreSQL as the verbs want it: one call after the other, in a thread of its own."""

import asyncio
import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast
from zlib import crc32

import asyncpg

from clew.context.text import index_text
from clew.store.connection import Unfit, Values
from clew.store.postgresql.words import SHAPES, PostgresWords
from clew.store.words import Name, WordIndex

T = TypeVar("T")

COMMAND_TIMEOUT = 60.0
"""Seconds that one statement may take; a server that is gone without a word is noticed so."""
CONNECT_TIMEOUT = 10.0
SETTINGS = {
    "application_name": "clew",
    "jit": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "synchronous_commit": "on",
    "idle_in_transaction_session_timeout": "120000",
}
"""SQLite joins by loops through an index alone, so every statement has its index. Two of them joined by a hash would be read as a whole,
which the server likes to do with lists whose length it cannot know."""
ONE_WRITER = 0x636C6577
"""The advisory lock that a transaction holds which writes ("clew"): alone, or shared with others of a kind that bear each other."""
NAMES = 0x6E616D65
"""The class of the advisory locks of names ("name")."""
SILENT_MS = 10_000
"""Milliseconds for which a transaction that writes may say nothing before the server ends it. A daemon that was frozen in one holds up all
others for so long: more than a verb computes between two statements, less than a lease."""
FROZEN = (
    "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.usename = current_user"
    " AND a.application_name = ? AND a.state = 'active' AND a.wait_event = 'ClientRead'"
    f" AND a.state_change < clock_timestamp() - interval '{SILENT_MS} milliseconds'"
    " AND EXISTS (SELECT 1 FROM pg_locks AS l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted)"
)
"""Ends the transactions that write of daemons that were frozen between the making of a statement and its first use: the server waits for
more then, and takes nobody for idle."""
OUTSIDE = ("08", "53", "57", "58", "25006", "25P03", "3D", "28")
"""Beginnings of the codes of errors that come from the machine, not from a statement
(https://www.postgresql.org/docs/current/errcodes-appendix.html). They pass."""
UNFIT = (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError, TypeError, ValueError, OverflowError)
BUSY = ("40001", "40P01", "55P03")
"""Codes of a transaction that another one was in the way of."""
TAKEN = "23"
"""What codes begin with of a key that is taken: beside other transactions it may be theirs."""

_MARKS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\?(\d*)|(?<!:):([a-z_]\w*)")
_Convert = Callable[[Any], Any]


def _text(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _whole(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{value!r} is no whole number")
    return int(value)


_CONVERTERS: dict[str, _Convert] = {"int8": _whole, "int4": _whole, "int2": _whole, "bool": bool, "text": _text}
"""By a parameter's type: SQLite takes a truth for a number, a whole number for either kind, and a NUL in a text."""


@lru_cache(512)
def numbered(sql: str) -> tuple[str, tuple[str | int, ...]]:
    """A statement with `$1`, `$2` … in the place of `?`, `?1` and `:name`, and which of the given values each of them is."""
    wanted: list[str | int] = []

    def mark(found: re.Match[str]) -> str:
        number, name = found.group(1), found.group(2)
        if number is None and name is None:
            return found.group()
        each = name or (int(number) - 1 if number else sum(isinstance(one, int) for one in wanted))
        if each not in wanted:
            wanted.append(each)
        return f"${wanted.index(each) + 1}"

    text = _MARKS.sub(mark, sql)
    return text, tuple(wanted)


class BesideOthers(Exception):
    """A transaction that others write beside has come to what is for the only one."""


def _key(name: str) -> int:
    """The lock of a name. Two names that share one only wait for each other."""
    return crc32(name.encode()) - 2**31


class Rows:
    """What a statement found, a cursor's way."""

    __slots__ = ("_left", "description", "rowcount")

    def __init__(self, rows: Sequence[Any], status: str, names: Sequence[str]) -> None:
        self._left = map(tuple, rows)
        self.description = [(name,) for name in names]
        self.rowcount = -1 if status.startswith("SELECT") else int(status.rpartition(" ")[2] or 0) if status[-1:].isdigit() else -1

    def fetchone(self) -> Any:
        return next(self._left, None)

    def fetchall(self) -> list[Any]:
        return list(self._left)

    def __iter__(self) -> Iterator[Any]:
        return self._left


class _Statement:
    """A prepared statement, and how its values are given."""

    __slots__ = ("_converters", "_prepared", "_wanted", "names")

    def __init__(self, prepared: Any, wanted: tuple[str | int, ...]) -> None:
        self._prepared = prepared
        self._wanted = wanted
        self._converters = [_CONVERTERS.get(each.name) for each in prepared.get_parameters()]
        self.names = [each.name for each in prepared.get_attributes()]

    def values(self, given: Values) -> list[Any]:
        chosen = [cast(Any, given)[each] for each in self._wanted]
        return [
            value if convert is None or value is None else convert(value) for convert, value in zip(self._converters, chosen, strict=True)
        ]

    async def fetch(self, given: Values) -> Rows:
        return Rows(await self._prepared.fetch(*self.values(given)), self._prepared.get_statusmsg(), self.names)

    async def run_many(self, given: Iterable[Sequence[Any]]) -> None:
        await self._prepared.executemany([self.values(each) for each in given])


class PostgresConnection:
    """`clew.store.connection.Connection` and `clew.store.grouping.Transactional` on PostgreSQL.

    It connects at its first statement, and again at the next one after it was cut; a transaction that was cut fails. url: postgresql://….
    indexer: makes index texts.
    """

    def __init__(self, url: str, read_only: bool = False, indexer: Callable[[str], str] = index_text) -> None:
        self._url = url
        self._indexer = indexer
        self._settings = SETTINGS | ({"default_transaction_read_only": "on"} if read_only else {})
        self._loop = asyncio.new_event_loop()
        self._raw: Any = None
        self._begun = False  # a transaction, which goes on on this connection or not at all
        self._alone = True  # nobody else writes while it does
        self._parted = False
        self._statements: dict[str, _Statement] = {}

    # What the verbs use ---------------------------------------------------------------------------------------------

    def execute(self, sql: str, values: Values = (), /) -> Rows:
        return self._run(self._execute(sql, values))

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> Rows:
        return self._run(self._execute_many(sql, values))

    def insert(self, sql: str, values: Values, number: str) -> int:
        return int(self.execute(f"{sql} RETURNING {number}", values).fetchone()[0])

    def readable(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.execute(sql, values).fetchall()  # a text that is no UTF-8 does not get in

    locked, unlocked = " FOR UPDATE", " FOR UPDATE SKIP LOCKED"

    def hold(self, *names: str) -> bool:
        if self._alone:
            return True
        sql = f"SELECT {' AND '.join(['pg_try_advisory_xact_lock(?, ?)'] * len(names))}"
        return bool(self.execute(sql, [value for name in names for value in (NAMES, _key(name))]).fetchone()[0])

    def alone(self) -> None:
        if not self._alone:
            raise BesideOthers

    @contextmanager
    def attempt(self) -> Iterator[None]:
        self.script("SAVEPOINT attempt")
        try:
            yield
        except BaseException as error:
            if self.in_transaction:
                self.script("ROLLBACK TO attempt; RELEASE attempt")
            if isinstance(error, UNFIT):
                raise Unfit(str(error)) from error
            raise
        self.script("RELEASE attempt")

    def columns(self, table: str) -> frozenset[str]:
        found = self.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped", (table,)
        )
        return frozenset(name for (name,) in found)

    def words(self, name: Name, /) -> WordIndex:
        return PostgresWords(self, name)

    @property
    def shapes(self) -> Mapping[str, Sequence[str]]:
        return SHAPES

    def index_text(self, text: str, /) -> str:
        return self._indexer(text)

    def integrity(self) -> list[str]:
        return []  # the server sees to its own files

    def is_damage(self, error: Exception, /) -> bool:
        return isinstance(error, asyncpg.DataCorruptedError | asyncpg.IndexCorruptedError)

    # What runs them ---------------------------------------------------------------------------------------------------

    def script(self, sql: str, timeout: float = COMMAND_TIMEOUT) -> None:
        """Run statements without values. timeout: seconds."""
        self._run(self._script(sql, timeout))

    @property
    def in_transaction(self) -> bool:
        """Also where its connection was lost: it is to be ended all the same, so that nobody takes it for done."""
        return self._begun or (self._raw is not None and not self._raw.is_closed() and self._raw.is_in_transaction())

    def begin(self, *, relaxed: bool, holds: Collection[str] | None) -> None:
        """Nothing is relaxed: a server may die alone, and the daemons would go on with what it has forgotten."""
        if holds is None:
            self.begin_writing(f"SELECT pg_advisory_xact_lock({ONE_WRITER})")
        else:
            names = [f"; SELECT pg_advisory_xact_lock({NAMES}, {key})" for key in sorted(set(map(_key, holds)))]
            self.begin_writing(f"SELECT pg_advisory_xact_lock_shared({ONE_WRITER}){''.join(names)}")
        self._alone = holds is None

    def begin_part(self) -> None:
        self.script("RELEASE part; SAVEPOINT part" if self._parted else "SAVEPOINT part")
        self._parted = True

    def undo_part(self) -> None:
        self.script("ROLLBACK TO part")

    def begin_writing(self, first: str = "") -> None:
        """A transaction that may hold up others. first: a statement that it begins with."""
        self._begin(f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {SILENT_MS}; {first}")

    def end_frozen(self) -> None:
        """End what holds up everybody and nobody goes on with; see `FROZEN`."""
        self.execute(FROZEN, (SETTINGS["application_name"],))

    def begin_reading(self) -> None:
        """One snapshot for all that is read until `commit`."""
        self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _begin(self, sql: str) -> None:
        self.script(sql)
        self._begun, self._alone, self._parted = True, True, False

    def commit(self) -> None:
        self.script("COMMIT")
        self._begun = False

    def rollback(self) -> None:
        self._begun = False
        if self._raw is not None and not self._raw.is_closed():  # else the server has done it
            self.script("ROLLBACK")

    def is_busy(self, error: BaseException) -> bool:
        if isinstance(error, BesideOthers):
            return True
        code = str(error.sqlstate) if isinstance(error, asyncpg.PostgresError) else ""
        return code in BUSY or (code.startswith(TAKEN) and not self._alone)

    def is_outside(self, error: BaseException) -> bool:
        return is_outside(error)

    def close(self) -> None:
        try:
            if self._raw is not None:
                self._run(self._raw.close(timeout=CONNECT_TIMEOUT))
        finally:
            self._run(asyncio.sleep(0))  # what was cut off closes its socket in the loop
            self._loop.close()

    def cut(self) -> None:
        """Let go of the connection as it is: what was begun on it comes to nothing."""
        self._begun = False
        if self._raw is not None:
            self._raw.terminate()
            self._raw = None
            self._run(asyncio.sleep(0))  # the socket closes in the loop

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _connection(self) -> Any:
        if self._raw is None or self._raw.is_closed():
            if self._begun:  # the rest would stand by itself on another one, without the lock and without what was looked at before
                raise asyncpg.ConnectionDoesNotExistError("the connection was lost in a transaction")
            self._statements.clear()
            self._raw = await asyncpg.connect(
                self._url, timeout=CONNECT_TIMEOUT, command_timeout=COMMAND_TIMEOUT, server_settings=self._settings, statement_cache_size=0
            )
            await self._raw.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=_number, format="text")
        return self._raw

    async def _execute(self, sql: str, values: Values) -> Rows:
        return await (await self._statement(sql)).fetch(values)

    async def _execute_many(self, sql: str, values: Iterable[Sequence[Any]]) -> Rows:
        statement = await self._statement(sql)
        await statement.run_many(values)
        return Rows((), "", statement.names)

    async def _statement(self, sql: str) -> _Statement:
        connection = await self._connection()
        known = self._statements.get(sql)
        if known is None:
            text, wanted = numbered(sql)
            known = self._statements[sql] = _Statement(await connection.prepare(text), wanted)
        return known

    async def _script(self, sql: str, timeout: float) -> None:
        await (await self._connection()).execute(sql, timeout=timeout)


def is_outside(error: BaseException) -> bool:
    """Whether an error comes from the machine or the network, not from a statement."""
    if isinstance(error, asyncpg.PostgresError):
        return str(error.sqlstate).startswith(OUTSIDE)
    return isinstance(error, OSError | TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError)


def _number(text: str) -> int | float:
    """A sum of whole numbers is one."""
    return float(text) if "." in text or "N" in text or "I" in text else int(text)
