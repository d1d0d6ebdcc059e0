"""What a compaction lets go and notes take up: facts that hold beyond the thread, in the words of whoever said them."""

from collections.abc import Sequence

from clew.context.durable import lasting
from clew.context.ledger import NOBODY
from clew.context.revision import NO_ROOM, Change
from clew.store.notes import Offer
from clew.store.sqlite import SqliteStore

MOST = 10
"""Facts that one compaction offers."""


async def offers(store: SqliteStore, dropped: Sequence[Change]) -> tuple[Offer, ...]:
    """Of what left a summary for want of room, what is worth a note: told by the words alone, without a model.

    Only what a person said themselves; what was taken back, closed or corrected is not among it.
    """
    wanted = [each for each in dropped if each.why == NO_ROOM and each.sources and lasting(each.text)][:MOST]
    if not wanted:
        return ()
    rows = {row.id: row for row in await store.messages([each.sources[-1] for each in wanted])}
    said = ((each, rows.get(each.sources[-1])) for each in wanted)
    return tuple(
        Offer(row.sender, row.sender_name or row.sender, each.text, row.id, row.at)
        for each, row in said
        if row is not None and row.role == "user" and row.sender not in NOBODY
    )
