"""Points of a clew on PostgreSQL at which the server is killed: behind each write, in each commit, and behind it.

In a commit means that the server has it on its disk and dies before it says so. It is one that waits for a standby, which it has not, where
a commit is not said to be `local`.
"""

import threading
from pathlib import Path

from clew.store.postgresql.connection import SETTINGS, PostgresConnection
from tests.acceptance.points import Points, in_writes
from tests.databases import kill_server

SERVER = ("synchronous_standby_names = 'nobody'", "synchronous_commit = local")
"""Settings of the server."""
WAITS = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
KILLED = "killed"
"""What stands behind the point where it was killed."""


def install(points: Points, server: Path, store: str) -> None:
    """Put the points into this process's clew. server: its folder. store: address of the database."""
    SETTINGS["synchronous_commit"] = "local"
    commit, begin = PostgresConnection.commit, PostgresConnection.begin_writing
    here = threading.local()

    def kill() -> None:
        kill_server(server)
        points(KILLED)

    def reach(name: str) -> None:
        kind, _, verb = name.partition(" ")
        if kind == "written":
            here.verbs.append(verb)
        if points(name):
            kill()

    def kill_behind_commit() -> None:
        db = PostgresConnection(store)
        while not db.execute(WAITS).fetchall():
            pass
        kill()
        db.cut()

    def beginning(self: PostgresConnection, first: str = "") -> None:
        here.verbs = []
        begin(self, first)

    def committing(self: PostgresConnection) -> None:
        here_it_is = [points(f"commit {verb}") for verb in getattr(here, "verbs", ())]
        if any(here_it_is):
            self.script("SET LOCAL synchronous_commit = on")
            threading.Thread(target=kill_behind_commit).start()
        commit(self)

    PostgresConnection.begin_writing = beginning  # type: ignore[method-assign]
    PostgresConnection.commit = committing  # type: ignore[method-assign]
    in_writes(reach)
