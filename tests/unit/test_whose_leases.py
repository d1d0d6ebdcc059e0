"""Who lives on a database, and what each of them holds, as `clew status` says it."""

from clew.membership import whose_leases
from clew.store.records.leases import Lease


def test_the_own_daemon_comes_first_and_who_is_dead_not_at_all() -> None:
    listed = [
        Lease("daemon:ada", "ada", 1, 9.0),
        Lease("daemon:bob", "bob", 1, 12.0),
        Lease("daemon:eve", "eve", 1, -1.0),
        Lease("transport:mqtt", "ada", 3, 9.0),
        Lease("transport:telegram", "eve", 1, -1.0),
        Lease("upkeep", "ada", 1, 9.0),
    ]
    assert list(whose_leases(listed, "bob").items()) == [
        ("bob (this one)", ["nothing but turns"]),
        ("ada", ["transport:mqtt", "upkeep"]),
    ]
