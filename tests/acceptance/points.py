"""Points that a program passes, by name and number, and those of its writes."""

import functools
import inspect
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from clew.store import grouping


def kill_this() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()


class Points:
    """Writes the name of each point down as it is passed, with how often it was by then, and kills something at one of them.

    at: such a line, empty for none. file: descriptor that they are written to.
    """

    def __init__(self, at: str, file: int, kill: Callable[[], None] = kill_this) -> None:
        self._at = at
        self._file = file
        self._kill = kill
        self._passed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, name: str) -> bool:
        with self._lock:
            self._passed[name] += 1
            point = f"{name} {self._passed[name]}"
            os.write(self._file, f"{point}\n".encode())
            if point == self._at:
                self._kill()
            return point == self._at


Reach = Callable[[str], object]


def in_writes(reach: Reach) -> None:
    """Put points behind each write and each commit of this process's clew."""
    transact, idle = grouping._transact, set[Any]()

    def written(run: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        def then_reach(db: Any, write: Any, kind: Any) -> Any:
            due = write.look is None or write.look(db)[0]  # one that shares a commit with others is not asked
            done = run(db, write, kind)
            if due and not _claimed_nothing(write, done):
                idle.discard(write)
                reach(f"written {_verb(write)}")
            else:
                idle.add(write)
            return done

        return then_reach

    def committed(db: Any, group: Any, **how: Any) -> Any:
        done = transact(db, group, **how)
        for write in group:  # which of them share a commit is a matter of moments
            if write not in idle:
                reach(f"committed {_verb(write)}")
        idle.clear()
        return done

    for name in ("_first", "_part"):
        setattr(grouping, name, written(getattr(grouping, name)))
    grouping._transact = committed


def _verb(write: Any) -> str:
    run = inspect.getclosurevars(write.run).nonlocals.get("run")
    run = run.func if isinstance(run, functools.partial) else run
    return str(getattr(run, "__name__", "other")).lstrip("_")


def _claimed_nothing(write: Any, outcome: Any) -> bool:
    """Whether it looked for a turn or a delivery and there was none after all. How often that happens is a matter of moments too."""
    value, _ = outcome
    return write.look is not None and _verb(write) in ("claim", "take") and not (value[0] if isinstance(value, tuple) and value else value)
