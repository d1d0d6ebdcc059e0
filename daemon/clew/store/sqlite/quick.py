"""A look at the whole file that ends in time."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

BETWEEN = 10_000
"""Steps of SQLite's machine between two looks at the clock."""


def looked(path: Path, seconds: float) -> list[str] | None:
    """What SQLite finds wrong with the pages and references of the database `path`, in words; None if `seconds` were not enough.

    Reads only. What is not examined is the search index (`health.check`).
    """
    end = time.monotonic() + seconds
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=seconds)) as db:
            db.set_progress_handler(lambda: time.monotonic() > end, BETWEEN)
            pages = [row[0] for row in db.execute("PRAGMA quick_check(10)") if row[0] != "ok"]
            lost = {(table, parent) for table, _, parent, _ in db.execute("PRAGMA foreign_key_check")}
    except sqlite3.OperationalError as error:
        return None if "interrupted" in str(error) else [str(error)]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return pages + [f"rows of {table} refer to rows of {parent} that are not there" for table, parent in sorted(lost)]
