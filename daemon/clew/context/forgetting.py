"""What is left of a summary when some of its messages are to be forgotten. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection

from clew.context.ledger import Ledger

ENTRIES = ("kept", "added", "changed", "dropped", "refused")
ASKED = ("focus", "instructions")


def without(ledger: Ledger, forgotten: Collection[str]) -> Ledger:
    """The entries that stand on none of these messages. One that names no source may stand on them."""
    return tuple(entry for entry in ledger if entry.sources and not set(entry.sources).intersection(forgotten))


def silent(report: str) -> str:
    """A compaction's report without its entries, which quote what was said, before and after: its counts and sizes are left.

    `report` is a JSON object; one that cannot be read comes to an empty one.
    """
    try:
        told = json.loads(report)
    except ValueError:
        told = {}
    left = {key: value for key, value in told.items() if key not in (*ENTRIES, *ASKED)} if isinstance(told, dict) else {}
    return json.dumps(left, ensure_ascii=False)
