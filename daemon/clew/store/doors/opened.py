"""What the verbs of the store share."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from clew.messages import Message
from clew.store import Claim, Item, Reply, Step, claiming, leases, model_calls, outbox, transcript, turns
from clew.store.changes import Changes, Deliveries
from clew.store.connection import Connection
from clew.store.database import Database
from clew.store.documents.door import DocumentsDoor
from clew.store.doors.doubt import Doubt
from clew.store.doors.leases import LeasesDoor
from clew.store.doors.spending import SpendingDoor
from clew.store.files.door import FilesDoor
from clew.store.indexing import Indexer
from clew.store.notes.door import NotesDoor
from clew.store.prefix_cache import LIMIT, PrefixCache
from clew.store.vectors import Vectors
from clew.store.windows import Windows
from clew.transport import Address, Delivery

P = ParamSpec("P")
T = TypeVar("T")

SAID = "said/"
"""What a name begins with that tells where something was said."""


class Opened:
    """A store that is open, with what its verbs share.

    arrivals: there may be a turn to claim. stops: somebody stopped a turn. jobs_changed: somebody changed a job. chores: there may be
    something to do in the background. freed: a daemon left. deliveries: by transport, there may be something to send. notes, documents,
    files, vectors, spending, leases: their verbs. shared: other processes may work on the same database; else nobody else is told.
    """

    FILES = FilesDoor
    """The verbs of files, by where their bytes are kept."""

    def __init__(self, path: Path, database: Database, index: Indexer, known: Collection[str] = ()) -> None:
        self._path = path
        self._db = database
        self._index = index
        self._known = frozenset(known)
        self.notes = NotesDoor(database, self._known)
        self.documents = DocumentsDoor(database, index, self._known, self._notify)
        self.vectors = Vectors(database)
        self.spending = SpendingDoor(database)
        self._prefixes = PrefixCache()
        self._windows = Windows()
        self._claims = Doubt[tuple[claiming.Looked, int]](database, lambda db, found: _holds(db, found[0].claim))
        self._opened = Doubt[Claim](database, lambda db, claim: transcript.holds(db, claim.rows.messages[-1:] if claim.rows else ()))
        self._steered = Doubt[tuple[tuple[Item, ...], tuple[Message, ...]]](database, lambda db, taken: transcript.holds(db, taken[1]))
        self._recorded = Doubt[tuple[tuple[Message, ...], Step]](
            database, lambda db, written: transcript.holds(db, written[0]) or model_calls.holds(db, written[1].calls)
        )
        self._sends = Doubt[tuple[Delivery | None, float | None]](
            database, lambda db, found: found[0] is not None and outbox.is_held(db, found[0])
        )
        self._any = Changes()
        self.shared = database.shared
        self.leases = LeasesDoor(database)
        self.arrivals = Changes("arrivals")
        self.stops = Changes("stops")
        self.files = self.FILES(database, path, lambda: self._notify(self.arrivals))
        self.jobs_changed = Changes("jobs")
        self.chores = Changes("chores")
        self.freed = Changes("freed")
        self.deliveries = Deliveries()

    @property
    def version(self) -> int:
        """Grows with every change that somebody may wait for."""
        return self._any.version

    async def changed(self, seen: int, timeout: float) -> int:
        return await self._any.wait(seen, timeout)

    def _notify(self, *which: Changes) -> None:
        for changes in (*which, self._any):
            changes.tell()
        self._tell_others(*which)

    def _tell_others(self, *which: Changes, said: Iterable[Address] = ()) -> None:
        """Tell other processes what was committed. said: where something was said that is read in the store."""
        if self.shared:
            self._db.tell({*(changes.name for changes in which), *(f"{SAID}{address}" for address in said)})

    def _told(self, replies: Collection[Reply]) -> None:
        """Tell other processes of words that nobody has to send: whoever reads them there may be connected to another one."""
        if said := [reply.address for reply in replies if reply.instant]:
            self._tell_others(said=said)
        if others := {reply.address.transport for reply in replies if not reply.instant}:
            self._tell_others(*(self.deliveries[transport] for transport in others))

    def _in_time(self, verb: Callable[Concatenate[Connection, str, P], T]) -> Callable[Concatenate[Connection, str, P], T]:
        """`verb`, whose second argument is an owner: where others may work on the database it raises LeaseLost after theirs is over."""
        return leases.in_time(verb) if self.shared else verb

    async def listen(self, said: Callable[[Address], None]) -> None:
        """Hear what other processes tell, until cancelled. said: told where something was said."""
        async for name in self._db.heard():
            if name.startswith(SAID):
                said(Address.parse(name.removeprefix(SAID)))
            for changes in self._all():
                if changes.name == name:
                    changes.tell()
            self._any.tell()

    def tell_of_leaving(self) -> None:
        """What this process held is free, and what it left undone is to be done."""
        self._tell_others(self.freed, self.arrivals)

    def look(self) -> None:
        """Let everybody look who waits for something: what others told may not have been heard."""
        for changes in (*self._all(), self._any):
            changes.tell()

    def _all(self) -> tuple[Changes, ...]:
        return (self.arrivals, self.stops, self.jobs_changed, self.chores, self.freed, self.files.news, *self.deliveries.values())

    async def _load_prefixes(self) -> None:
        self._prefixes = prefixes = PrefixCache()
        if self.shared:  # others fill the table too: it is asked
            return
        if (entries := await self._db.read(model_calls.cache, LIMIT)) is not None:
            prefixes.load(entries)


def _holds(db: Connection, claim: Claim | None) -> bool:
    return claim is not None and turns.holds(db, claim)
