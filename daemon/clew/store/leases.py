"""Leases: what the daemons on one database hold, for as long as each of them says in time that it lives.

A daemon has the lease `daemon:<owner>`; its other leases, turns and deliveries are held as long as that one. Every time here is told by
the database's own clock, which is one for all of them.
"""

from collections.abc import Callable, Collection
from functools import update_wrapper
from typing import Concatenate, ParamSpec, TypeVar

from clew.store import LeaseLost, outbox, turns
from clew.store.connection import Connection
from clew.store.records.leases import Lease, TakenOver

P = ParamSpec("P")
T = TypeVar("T")

DAEMON = "daemon:"
LIVES = "EXISTS (SELECT 1 FROM leases WHERE name = :daemon AND until > wall_clock())"
"""That the lease `daemon` is not over."""


def clock(db: Connection) -> float:
    """Seconds since the epoch by the database's clock."""
    return float(db.execute("SELECT wall_clock()").fetchone()[0])


def lives(db: Connection, owner: str) -> bool:
    """Whether a daemon's lease is not over."""
    return bool(db.execute(f"SELECT {LIVES}", {"daemon": DAEMON + owner}).fetchone()[0])


def in_time(verb: Callable[Concatenate[Connection, str, P], T]) -> Callable[Concatenate[Connection, str, P], T]:
    """`verb`, whose second argument is an owner. Raises LeaseLost where theirs is over."""

    def checked(db: Connection, owner: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not lives(db, owner):
            raise LeaseLost(owner)
        return verb(db, owner, *args, **kwargs)

    update_wrapper(checked, verb)  # its name and what it bears beside it are the same
    return checked


def renew(db: Connection, owner: str, length: float) -> frozenset[str]:
    """Hold all that a daemon holds for `length` seconds from now. Returns the names; without its own, its lease is over."""
    now = clock(db)
    rows = db.execute("UPDATE leases SET until = ? WHERE owner = ? AND until > ? RETURNING name", (now + length, owner, now))
    return frozenset(name for (name,) in rows.fetchall())


def free(db: Connection, names: Collection[str]) -> list[str]:
    """Those of `names` that nobody holds who lives; asked of a reader, so that looking costs no write."""
    held = {name for (name,) in db.execute("SELECT name FROM leases WHERE until > ?", (clock(db),)).fetchall()}
    return [name for name in names if name not in held]


def acquire(db: Connection, owner: str, name: str) -> bool:
    """Hold a name as long as one's own lease, unless somebody who lives does. False: they do, or one's own lease is over."""
    now = clock(db)  # asked once: by the rows alone two who come at once are told apart
    return bool(
        db.execute(
            "INSERT INTO leases (name, owner, epoch, until) SELECT ?, owner, 1, until FROM leases WHERE name = ? AND until > ?"
            " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = leases.epoch + 1, until = excluded.until"
            " WHERE leases.until <= ?",
            (name, DAEMON + owner, now, now),
        ).rowcount
    )


def release(db: Connection, owner: str, names: Collection[str]) -> None:
    """Hold these no more."""
    db.executemany("DELETE FROM leases WHERE owner = ? AND name = ?", [(owner, name) for name in names])


def any_over(db: Connection) -> bool:
    """Whether somebody did not renew in time."""
    return db.execute("SELECT 1 FROM leases WHERE until <= ? LIMIT 1", (clock(db),)).fetchone() is not None


def take_over(db: Connection, idempotent: frozenset[str], now: float, also: str = "") -> TakenOver:
    """Take back what those held whose lease is over, and what `also` held, as a start does after a crash.

    idempotent: transports whose receivers drop repeats. now: seconds since the epoch by the caller's clock, for the rows.
    """
    gone = db.execute("DELETE FROM leases WHERE until <= ? OR owner = ? RETURNING name, owner", (clock(db), also)).fetchall()
    dead = sorted(owner for name, owner in gone if name == DAEMON + owner and owner != also)
    return TakenOver(tuple(dead), turns.void(db), outbox.recover(db, idempotent, now))


def join(db: Connection, owner: str, length: float, idempotent: frozenset[str], now: float, former: str = "") -> TakenOver:
    """Begin to live under a name that nobody had before. former: one's own name until now, under which nothing is done any more."""
    taken = take_over(db, idempotent, now, former)
    db.execute("INSERT INTO leases (name, owner, epoch, until) VALUES (?, ?, 1, ?)", (DAEMON + owner, owner, clock(db) + length))
    return taken


def alone(db: Connection, idempotent: frozenset[str], now: float) -> TakenOver:
    """At a start where no other process can be: nobody holds anything."""
    db.execute("DELETE FROM leases")
    return take_over(db, idempotent, now)


def listing(db: Connection) -> list[Lease]:
    """Who holds what, by name."""
    now = clock(db)
    rows = db.execute("SELECT name, owner, epoch, until FROM leases ORDER BY name")
    return [Lease(name, owner, epoch, until - now) for name, owner, epoch, until in rows]
